/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Where requests and messages come from. Thread-safe. */
#ifndef MCA_PML_BASE_CACHE_H
#define MCA_PML_BASE_CACHE_H

#include "ompi/mca/pml/base/pml_base_request.h"

#pragma GCC visibility push(default)

/* NULL: out of memory. Not zeroed but for super. */
mca_pml_send_t *mca_pml_base_send_alloc(void);
void mca_pml_base_send_free(mca_pml_send_t *send);

enum { MCA_PML_RECVS_READY = 128 }; /* two windows of 64; receives in memory that a process keeps at most, here */

/* Receives to be taken and put back by a thread that nobody disturbs: there is no other, or it is alone. */
typedef struct mca_pml_recvs_ready {
    uint32_t count;
    mca_pml_recv_t *recvs[MCA_PML_RECVS_READY];
} mca_pml_recvs_ready_t;

extern mca_pml_recvs_ready_t mca_pml_base_recvs_ready;

/* The same from where others may be, too, and where the above has none or no room. */
mca_pml_recv_t *mca_pml_base_recv_get(bool threads);
void mca_pml_base_recv_put(mca_pml_recv_t *recv, bool threads);

/* `threads`: others may do so at the same time. */
static inline mca_pml_recv_t *mca_pml_base_recv_alloc(bool threads)
{
    mca_pml_recvs_ready_t *ready = &mca_pml_base_recvs_ready;
    return OPAL_LIKELY(!threads && ready->count > 0) ? ready->recvs[--ready->count] : mca_pml_base_recv_get(threads);
}

static inline void mca_pml_base_recv_free(mca_pml_recv_t *recv, bool threads)
{
    mca_pml_recvs_ready_t *ready = &mca_pml_base_recvs_ready;
    if (OPAL_LIKELY(!threads && ready->count < MCA_PML_RECVS_READY)) {
        ready->recvs[ready->count++] = recv;
    } else {
        mca_pml_base_recv_put(recv, threads);
    }
}

/* A message with room for so many bytes of header and payload. */
mca_pml_message_t *mca_pml_base_message_alloc(size_t room);
void mca_pml_base_message_free(mca_pml_message_t *message);

int mca_pml_base_cache_init(void);
/* Nothing is in use any more. */
void mca_pml_base_cache_fini(void);

#pragma GCC visibility pop

#endif
