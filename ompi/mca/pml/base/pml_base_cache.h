/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Where requests and messages come from. Thread-safe. */
#ifndef MCA_PML_BASE_CACHE_H
#define MCA_PML_BASE_CACHE_H

#include "ompi/mca/pml/base/pml_base_request.h"

#pragma GCC visibility push(default)

/* NULL: out of memory. Not zeroed but for super. `threads`: others may be at the same cache. */
mca_pml_send_t *mca_pml_base_send_alloc(void);
void mca_pml_base_send_free(mca_pml_send_t *send);
mca_pml_recv_t *mca_pml_base_recv_alloc(bool threads);
void mca_pml_base_recv_free(mca_pml_recv_t *recv, bool threads);
/* A message with room for so many bytes of header and payload. */
mca_pml_message_t *mca_pml_base_message_alloc(size_t room);
void mca_pml_base_message_free(mca_pml_message_t *message);

int mca_pml_base_cache_init(void);
/* Nothing is in use any more. */
void mca_pml_base_cache_fini(void);

#pragma GCC visibility pop

#endif
