/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is over: acknowledged, given up, or wanted back by the engine. A fragment ends when no link holds it any more.
 * Upcalls to the engine are collected in a dr_out_t and made by dr_leave(), without any lock.
 */
#ifndef MCA_PML_DR_DONE_H
#define MCA_PML_DR_DONE_H

#include "ompi/mca/pml/dr/pml_dr_frag.h"
#include "ompi/mca/pml/dr/pml_dr_engine.h"

/* Upcalls that are due once the lock is released. */
typedef struct dr_out {
    mca_btl_descriptor_t *confirmed, *returned; /* lists through btl_private[0] */
    bool flush;
} dr_out_t;

static inline void dr_chain(mca_btl_descriptor_t **list, mca_btl_descriptor_t *desc)
{
    desc->btl_private[0] = *list;
    *list = desc;
}

/* Have a fragment back from the links that can let go of it; `stuck`: from those that may not work only. */
OPAL_COLD int dr_recall(dr_peer_t *d, const dr_frag_t *f, bool stuck);
OPAL_COLD void dr_run_events(mca_btl_descriptor_t *list, mca_btl_event_t event, int status);
/* There may be room again for what was refused. */
void dr_reopen(dr_peer_t *d, dr_out_t *out);

/* The engine has its descriptor back, its bytes go under other numbers, and these become void. */
void dr_make_empty(dr_peer_t *d, dr_frag_t *f, dr_out_t *out);
/* ... of all that it wants back and that no link holds. */
void dr_end_recalled(dr_peer_t *d, dr_out_t *out);
/* A link says what became of a fragment that it held. */
void dr_on_desc(mca_btl_descriptor_t *desc, mca_btl_event_t event, int status);

static OPAL_ALWAYS_INLINE void dr_end_frag(dr_peer_t *d, dr_frag_t *f, bool failed, dr_out_t *out)
{
    if (OPAL_UNLIKELY(f->user != NULL)) {
        dr_chain(failed ? &out->returned : &out->confirmed, f->user);
        dr_frag_leave_user(f);
    }
    dr_frag_free(d, f);
}

/* `done` is of no use any more. */
static inline void dr_end_frags(dr_peer_t *d, const opal_list_t *done, dr_out_t *out, bool failed)
{
    for (opal_list_item_t *i = done->head.next, *next; i != &done->head; i = next) {
        dr_frag_t *f = OPAL_CONTAINER_OF(i, dr_frag_t, record.item);
        next = i->next;
        if (OPAL_LIKELY(!f->descs)) {
            dr_end_frag(d, f, failed, out);
        } else {
            f->over = true;
            f->failed = failed;
            dr_recall(d, f, true);
        }
    }
}

/*
 * An acknowledgment that rode on a message is taken in between two rounds of progress, when the process waits for the next one, not
 * before the message is handed up: that would keep the answer waiting. One peer's at a time; with threads, or when
 * round trips are being measured, at once.
 */
typedef struct dr_told {
    dr_peer_t *peer; /* NULL: nothing is to be taken in */
    uint32_t ack;
    bool seen;       /* by the poller, in the round in which it came */
} dr_told_t;

extern dr_told_t dr_told;

/* Sequence numbers that are acknowledged, but for being taken in. The caller holds the peer's lock. */
static inline uint64_t dr_told_span(const dr_peer_t *d)
{
    uint64_t to = dr_told.peer == d ? dr_wire_widen(dr_told.ack, d->stream.next) : 0;
    return to > d->stream.acked ? to - d->stream.acked : 0;
}

/* Take in what has been told. By the owner of progress; the caller holds no lock. */
void dr_settle(void);
void dr_take_told(dr_peer_t *d, dr_out_t *out);

/* Release the lock, and do what could not be done under it. */
static inline void dr_leave(dr_peer_t *d, dr_out_t *out)
{
    if (OPAL_UNLIKELY(d->refused)) {
        dr_reopen(d, out);
    }
    mca_pml_peer_unlock(d->peer);
    if (OPAL_UNLIKELY(out->confirmed || out->returned)) {
        dr_run_events(out->confirmed, MCA_BTL_CONFIRMED, MCA_SUCCESS);
        dr_run_events(out->returned, MCA_BTL_UNCONFIRMED, MCA_ERR_UNREACHABLE);
    }
    if (OPAL_UNLIKELY(out->flush)) {
        dr_engine_flush(d->peer);
    }
}

#endif
