/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fragment that dr has to send, kept until the peer has acknowledged it; and the memory for them: free lists for all
 * peers, one for each class of lengths. From malloc() longer ones would go back to the system whenever they are
 * acknowledged, and be new pages each time.
 */
#ifndef MCA_PML_DR_FRAG_H
#define MCA_PML_DR_FRAG_H

#include <pthread.h>
#include "ompi/mca/pml/dr/pml_dr_peer.h"
#include "opal/class/free_list.h"
#include "opal/runtime/progress.h"

/* Class 0 has DR_SMALL bytes, which nearly all messages fit; the others 2^(8 + class) and room for headers. */
enum {
    DR_SMALL = 192,
    DR_HEADERS = 64,
    DR_CLASSES = 11,
    DR_SPARE = 200, /* short messages that a peer keeps the memory of, for its next ones, at most */
};

typedef enum {
    DR_KEPT,     /* header and payload stand in `bytes` */
    DR_IN_PLACE, /* only the header; the payload is where the engine's descriptor says */
    DR_WHOLE,    /* so it is, and it is no piece: the engine does not see to it that it goes again */
    DR_LENT,     /* so it is, but it counts as kept: it may have to be copied, see policy_keep() */
    DR_EMPTY,    /* its numbers carry nothing any more */
} dr_what_t;

/* In one word, so that one look tells whether it is the usual short message: that is all zero. */
typedef union dr_nature {
    struct {
        uint8_t what;
        uint8_t class;          /* DR_CLASSES: of none, from malloc() */
        bool recalled;          /* the engine wants its descriptor back */
        bool asks;              /* IN_PLACE, WHOLE: for an acknowledgment at once */
    };
    uint32_t unusual;
} dr_nature_t;

typedef struct dr_frag {
    dr_record_t record;         /* its `item` links spare ones */
    dr_peer_t *owner;
    mca_btl_descriptor_t *user; /* IN_PLACE, WHOLE, LENT: the engine's, which waits for an event; its btl_private[1] leads here, and nowhere once that is due */
    struct dr_desc *descs;      /* what links hold of it; it must not change meanwhile */
    uint32_t payload_len, payload_sum;
    uint8_t header_len;
    bool summed;
    bool over;                  /* acknowledged, or given up: waits for the links only */
    bool failed;                /* given up */
    dr_nature_t is;
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

extern struct dr_memory {
    opal_free_list_t list[DR_CLASSES];
    pthread_mutex_t lock;
} dr_memory;

/* Messages that were lent, and those of them that had to be copied after all; and that went in pieces at once. No other thread counts: with
 * several there are none. */
extern struct dr_lending {
    _Atomic uint64_t lent, copied, pieces;
} dr_lending;

static inline void dr_count_lent(_Atomic uint64_t *count)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1, memory_order_relaxed);
}

static inline void dr_lock_memory(void)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        pthread_mutex_lock(&dr_memory.lock);
    }
}

static inline void dr_unlock_memory(void)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        pthread_mutex_unlock(&dr_memory.lock);
    }
}

static inline size_t dr_class_size(unsigned class)
{
    return class == 0 ? DR_SMALL : DR_HEADERS + ((size_t) 256 << class);
}

/* The first class that has room for so many bytes. */
static inline unsigned dr_class_of(size_t len)
{
    if (OPAL_LIKELY(len <= DR_SMALL)) {
        return 0;
    }
    unsigned class = 64u - (unsigned) __builtin_clzll((len - DR_HEADERS - 1) >> 8 | 1);
    return class < DR_CLASSES ? class : DR_CLASSES;
}

/* From the lists that all peers share, or the system. */
dr_frag_t *dr_frag_get(unsigned class, size_t len);
void dr_frag_put(dr_frag_t *f);

/* The first of the spare ones is used. The caller holds the peer's lock. */
static OPAL_ALWAYS_INLINE void dr_frag_take_spare(dr_peer_t *d, dr_frag_t *f)
{
    d->spare = (dr_frag_t *) f->record.item.next;
    d->spare_count--;
}

/* `len`: of `bytes`. NULL: out of memory. */
static inline dr_frag_t *dr_frag_new(dr_peer_t *d, dr_what_t what, size_t len)
{
    unsigned class = dr_class_of(len);
    dr_frag_t *f = dr_frag_get(class, len);
    if (OPAL_LIKELY(f != NULL)) {
        f->owner = d;
        f->user = NULL;
        f->descs = NULL;
        f->is = (dr_nature_t){.what = (uint8_t) what, .class = (uint8_t) class, .asks = what == DR_IN_PLACE};
        f->summed = f->over = f->failed = false;
    }
    return f;
}

/* The engine has its descriptor back; what was lent is then no other memory than a short message's. */
static inline void dr_frag_leave_user(dr_frag_t *f)
{
    f->user->btl_private[1] = NULL;
    f->user = NULL;
    f->is.what = f->is.what == DR_LENT ? DR_KEPT : f->is.what;
}

/* What is spare is as dr_frag_new() makes a short message. The caller holds the peer's lock. */
static OPAL_ALWAYS_INLINE void dr_frag_free(dr_peer_t *d, dr_frag_t *f)
{
    if (OPAL_LIKELY(f->is.unusual == 0 && d->spare_count < DR_SPARE)) {
        f->record.item.next = (opal_list_item_t *) d->spare;
        d->spare = f;
        d->spare_count++;
    } else {
        dr_frag_put(f);
    }
}

/* No message is likely soon: what is kept for the next ones goes back. The caller holds the peer's lock. */
void dr_spare_release(dr_peer_t *d);

static inline uint32_t dr_frag_cost(const dr_frag_t *f)
{
    return (uint32_t) sizeof(*f) + (uint32_t) sizeof(dr_prefix_t) + f->header_len +
           (f->is.what == DR_IN_PLACE || f->is.what == DR_WHOLE ? 0 : f->payload_len);
}

static inline size_t dr_head_length(const dr_frag_t *f)
{
    return sizeof(dr_prefix_t) + f->header_len;
}

int dr_memory_init(void);
/* Give back what has been too much for a while; called now and then while anything is sent or comes. `rest`: nothing is
 * any more, all that is not in use goes. */
void dr_memory_tick(bool rest);
/* All fragments are back. */
void dr_memory_fini(void);

#endif
