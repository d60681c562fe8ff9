/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fragment that dr has to send, kept until the peer has acknowledged it; and the memory for them. The memory of small
 * ones is cached, for all peers.
 */
#ifndef MCA_PML_DR_FRAG_H
#define MCA_PML_DR_FRAG_H

#include <pthread.h>
#include "ompi/mca/pml/dr/pml_dr_peer.h"
#include "opal/runtime/progress.h"

enum {
    DR_SMALL = 192,         /* bytes of a fragment whose memory is cached */
    DR_SPARE_MAX = 4096,    /* cached ones */
};

typedef enum {
    DR_KEPT,     /* header and payload stand in `bytes` */
    DR_IN_PLACE, /* only the header; the payload is where the engine's descriptor says */
    DR_EMPTY,    /* its numbers carry nothing any more */
} dr_what_t;

typedef struct dr_frag {
    dr_record_t record;
    dr_peer_t *owner;
    mca_btl_descriptor_t *user; /* IN_PLACE: the engine's, which waits for an event; its btl_private[1] leads here */
    struct dr_desc *descs;      /* what links hold of it; it must not change meanwhile */
    uint32_t payload_len, payload_sum;
    uint8_t what, header_len;
    bool small, summed;
    bool recalled;              /* the engine wants its descriptor back */
    bool over;                  /* acknowledged, or given up: waits for the links only */
    bool failed;                /* given up */
    _Alignas(8) unsigned char bytes[]; /* prefix, header, payload */
} dr_frag_t;

/* A fragment in a link's hands. */
typedef struct dr_desc {
    mca_btl_descriptor_t desc;
    dr_frag_t *frag;
    struct dr_desc *next;
    uint32_t number;  /* transmission */
    uint8_t path;
} dr_desc_t;

extern struct dr_spare {
    dr_frag_t *first; /* chained through `user` */
    unsigned count;
    pthread_mutex_t lock;
} dr_spare;

static inline void dr_lock_spare(void)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        pthread_mutex_lock(&dr_spare.lock);
    }
}

static inline void dr_unlock_spare(void)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        pthread_mutex_unlock(&dr_spare.lock);
    }
}

/* `len`: of `bytes`. NULL: out of memory. */
static inline dr_frag_t *dr_frag_new(dr_peer_t *d, dr_what_t what, size_t len)
{
    dr_frag_t *f = NULL;
    bool small = len <= DR_SMALL;
    if (OPAL_LIKELY(small)) {
        dr_lock_spare();
        if (OPAL_LIKELY(dr_spare.first != NULL)) {
            f = dr_spare.first;
            dr_spare.first = (dr_frag_t *) f->user;
            dr_spare.count--;
        }
        dr_unlock_spare();
    }
    f = OPAL_LIKELY(f != NULL) ? f : malloc(sizeof(*f) + (small ? DR_SMALL : len));
    if (OPAL_LIKELY(f != NULL)) {
        f->owner = d;
        f->user = NULL;
        f->what = (uint8_t) what;
        f->descs = NULL;
        f->small = small;
        f->summed = f->recalled = f->over = f->failed = false;
    }
    return f;
}

static inline void dr_frag_free(dr_frag_t *f)
{
    bool keep = false;
    if (OPAL_LIKELY(f->small)) {
        dr_lock_spare();
        keep = dr_spare.count < DR_SPARE_MAX;
        if (keep) {
            f->user = (mca_btl_descriptor_t *) dr_spare.first;
            dr_spare.first = f;
            dr_spare.count++;
        }
        dr_unlock_spare();
    }
    if (!keep) {
        free(f);
    }
}

static inline uint32_t dr_frag_cost(const dr_frag_t *f)
{
    return (uint32_t) sizeof(*f) + (uint32_t) sizeof(dr_prefix_t) + f->header_len +
           (f->what == DR_KEPT ? f->payload_len : 0);
}

static inline size_t dr_head_length(const dr_frag_t *f)
{
    return sizeof(dr_prefix_t) + f->header_len;
}

void dr_frag_free_spares(void);

#endif
