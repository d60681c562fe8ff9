/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handing fragments to links: in one call if they are short, into room that the link lends, or from where they lie. The
 * caller holds the peer's lock.
 */
#ifndef MCA_PML_DR_PUT_H
#define MCA_PML_DR_PUT_H

#include "ompi/mca/pml/dr/pml_dr_frag.h"

/* The peer is to acknowledge what comes at once, so that the window does not close. */
static inline bool dr_is_half_full(const dr_stream_t *s)
{
    return s->kept > s->params->window / 2;
}

static inline uint8_t dr_flags_of(const dr_peer_t *d, const dr_frag_t *f)
{
    const bool again = f->record.tries > 1;
    return (uint8_t) ((f->is.asks || again || dr_is_half_full(&d->stream) ? DR_FLAG_ACK_NOW : 0) | (again ? DR_FLAG_AGAIN : 0));
}

/* Fill in the prefix; the payload's sum is known. While a link holds the fragment it stays as it was, which is right. */
static inline void dr_seal_frag(dr_peer_t *d, dr_frag_t *f)
{
    if (OPAL_UNLIKELY(f->descs != NULL)) {
        return;
    }
    const unsigned flags = dr_flags_of(d, f);
    const uint32_t ack = flags & DR_FLAG_AGAIN ? 0 : dr_stream_ride(&d->stream);
    dr_wire_write(&d->out, (dr_prefix_t *) f->bytes, f->is.what == DR_EMPTY ? DR_VOID : DR_DATA, flags, f->header_len, f->record.seq, ack,
                  f->payload_sum, dr_head_length(f) + f->payload_len);
}

/* The prefix is the link's header: as long as a header of the engine's, for which links have their shortest way. */
static inline int dr_send_kept(mca_pml_link_t *link, const dr_frag_t *f)
{
    return link->send_short(link->endpoint, f->bytes, sizeof(dr_prefix_t), f->bytes + sizeof(dr_prefix_t),
                            (size_t) f->header_len + f->payload_len);
}

/* Put a new fragment, of which the stream will be told that it is on its way, into a link's room, and keep it; its payload is still at
 * `data`. Not as a descriptor: what the stream does not know no event can be about. */
int dr_put_whole(dr_peer_t *d, mca_pml_link_t *link, dr_frag_t *f, const void *data);

/* As dr_put(), the first time, of payload that is in one place in the user's memory, and so that the peer reads it while it is written and
 * summed. MCA_ERR_NOT_AVAILABLE: not now. */
int dr_put_filled(dr_peer_t *d, mca_pml_link_t *link, dr_frag_t *f);

/* Hand a fragment, of which the stream knows that it is on its way, to a link. */
int dr_put(dr_peer_t *d, mca_pml_link_t *link, dr_frag_t *f);

/* Committed is committed: what of a new fragment's payload the link does not take now counts as lost, and goes soon. */
void dr_commit(dr_peer_t *d, mca_pml_link_t *link, dr_frag_t *f);

#endif
