/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policy's send side: a fragment of the engine gets a prefix and a range, and goes to a link. Short, in the engine's
 * descriptor or in lent room; what the engine would let go of when a link took it is copied. Compiled into pml_dr.c.
 */
#ifndef MCA_PML_DR_SEND_H
#define MCA_PML_DR_SEND_H

#include "ompi/mca/pml/dr/pml_dr_bare.h"
#include "ompi/mca/pml/dr/pml_dr_done.h"
#include "ompi/mca/pml/dr/pml_dr_due.h"
#include "ompi/mca/pml/dr/pml_dr_put.h"
#include "opal/util/copy.h"

/* The engine has to wait; dr_leave() calls it back. */
static OPAL_COLD int refuse(dr_peer_t *d)
{
    d->refused = true;
    return MCA_ERR_AGAIN;
}

/* A link did not take what was about to go; the stream knows nothing of it. `f`: it was made for that; or NULL. */
static OPAL_COLD int unsent(dr_peer_t *d, dr_frag_t *f, int rc)
{
    if (f) {
        dr_frag_free(d, f);
    }
    if (d->stream.rx.next > 0) {
        dr_stream_want_ack(&d->stream, false); /* one may have been riding on it */
    }
    dr_active(d);
    return rc;
}

/* Whatever was not granted. */
static OPAL_NOINLINE int send_entered(dr_peer_t *d, mca_pml_link_t *link, const void *hdr, size_t hdr_len,
                                      const void *data, size_t len)
{
    dr_stream_t *s = &d->stream;
    size_t span = hdr_len + len, cost = sizeof(dr_frag_t) + sizeof(dr_prefix_t) + span;
    if (OPAL_UNLIKELY(!s->paths)) {
        dr_add_paths(d);
    }
    unsigned path = dr_path_of(d, link);
    if (OPAL_UNLIKELY(!dr_stream_has_room(s, path, cost, span))) {
        return refuse(d);
    }
    dr_frag_t *f = dr_frag_new(d, DR_KEPT, sizeof(dr_prefix_t) + span);
    if (OPAL_UNLIKELY(!f)) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    f->header_len = (uint8_t) hdr_len;
    f->payload_len = (uint32_t) len;
    f->summed = true;
    unsigned char *payload = f->bytes + sizeof(dr_prefix_t) + hdr_len;
    opal_copy_head(f->bytes + sizeof(dr_prefix_t), hdr, hdr_len);
    f->payload_sum = opal_checksum_finish(
        d->out.kind, opal_checksum_copy(d->out.kind, dr_wire_begin(&d->out), payload, data, len));
    f->record.seq = s->next; /* what dr_stream_send() will say: the peer need not wait for the bookkeeping */
    f->record.tries = 1;
    dr_seal_frag(d, f);
    int rc = dr_send_kept(link, f);
    if (OPAL_UNLIKELY(rc != MCA_SUCCESS)) {
        return unsent(d, f, dr_note_full(d, link, rc));
    }
    dr_stream_send(s, &f->record, path, (uint32_t) span, (uint32_t) cost, dr_send_time(d, path));
    dr_stream_grant(s, path);
    dr_active(d);
    return MCA_SUCCESS;
}

/* Into the room that stands ready in the link. The peer waits for nothing else: the message is kept when it is out, without its
 * prefix, which dr_seal_frag() would write anew. */
static OPAL_ALWAYS_INLINE void send_tiny(dr_peer_t *d, mca_pml_link_t *link, dr_frag_t *f, bool sums, const void *hdr,
                                         const void *data, size_t len)
{
    enum { MAX = MCA_BTL_STANDING_MAX - DR_USUAL_HEAD };
    static_assert(MAX == sizeof(uint64_t), "the payload is a word");
    unsigned char *room = link->standing->ptr;
    uint32_t sum;
    uint64_t word = dr_wire_read_tiny(&d->out, sums, data, len, &sum);
    memcpy(room + DR_USUAL_HEAD, &word, sizeof(word));
    dr_wire_write_usual_head(&d->out, sums, room, d->stream.next, dr_stream_ride(&d->stream), hdr, sum, len);
    link->publish(link->endpoint, DR_USUAL_HEAD + len);
    opal_copy_words3(f->bytes + sizeof(dr_prefix_t), hdr);
    memcpy(f->bytes + DR_USUAL_HEAD, &word, sizeof(word));
    f->payload_sum = sum;
}

/* The same into as many lines as it takes, if they stand ready. */
static OPAL_ALWAYS_INLINE bool send_lines(dr_peer_t *d, mca_pml_link_t *link, dr_frag_t *f, bool sums, const void *hdr,
                                          const void *data, size_t len)
{
    const mca_btl_standing_t *room = link->standing;
    if (OPAL_UNLIKELY((uintptr_t) room->ptr + DR_USUAL_HEAD + len > (uintptr_t) room->end)) {
        return false;
    }
    f->payload_sum = dr_wire_write_usual(&d->out, sums, room->ptr, d->stream.next, dr_stream_ride(&d->stream), hdr, data, len);
    link->publish_more(link->endpoint, DR_USUAL_HEAD + len);
    opal_copy_words3(f->bytes + sizeof(dr_prefix_t), hdr);
    opal_copy(f->bytes + DR_USUAL_HEAD, data, len);
    return true;
}

static OPAL_ALWAYS_INLINE int send_usual(dr_peer_t *d, mca_pml_link_t *link, dr_frag_t *f, bool sums, const void *hdr,
                                         const void *data, size_t len)
{
    f->payload_sum = dr_wire_write_usual(&d->out, sums, f->bytes, d->stream.next, dr_stream_ride(&d->stream), hdr, data, len);
    return link->send_short(link->endpoint, f->bytes, sizeof(dr_prefix_t), f->bytes + sizeof(dr_prefix_t),
                            DR_USUAL_HEADER + len);
}

/* What is granted is out. */
static OPAL_ALWAYS_INLINE void sent_granted(dr_peer_t *d, dr_frag_t *f, unsigned path, size_t len)
{
    uint32_t span = DR_USUAL_HEADER + (uint32_t) len;
    f->header_len = DR_USUAL_HEADER;
    f->summed = true;
    f->payload_len = (uint32_t) len;
    dr_stream_send_granted(&d->stream, &f->record, path, span, (uint32_t) (sizeof(dr_frag_t) + sizeof(dr_prefix_t)) + span);
    dr_active(d);
}

/* What is granted, and fits spare memory. */
static OPAL_ALWAYS_INLINE int send_granted(dr_peer_t *d, mca_pml_link_t *link, unsigned path, bool sums, const void *hdr,
                                           const void *data, size_t len)
{
    dr_frag_t *f = d->spare;
    if (OPAL_LIKELY(DR_USUAL_HEAD + len <= link->standing->len)) {
        send_tiny(d, link, f, sums, hdr, data, len);
    } else if (!send_lines(d, link, f, sums, hdr, data, len)) {
        int rc = send_usual(d, link, f, sums, hdr, data, len);
        if (OPAL_UNLIKELY(rc != MCA_SUCCESS)) {
            return unsent(d, NULL, dr_note_full(d, link, rc));
        }
    }
    dr_frag_take_spare(d, f);
    sent_granted(d, f, path, len);
    return MCA_SUCCESS;
}

/* What is granted, and does not fit spare memory, or there is none. */
static OPAL_NOINLINE int send_granted_longer(dr_peer_t *d, mca_pml_link_t *link, unsigned path, const void *hdr, const void *data,
                                             size_t len)
{
    dr_frag_t *f = dr_frag_new(d, DR_KEPT, DR_USUAL_HEAD + len);
    if (OPAL_UNLIKELY(!f)) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    const bool sums = d->out.kind != OPAL_CHECKSUM_NONE;
    if (!send_lines(d, link, f, sums, hdr, data, len)) {
        int rc = send_usual(d, link, f, sums, hdr, data, len);
        if (OPAL_UNLIKELY(rc != MCA_SUCCESS)) {
            return unsent(d, f, dr_note_full(d, link, rc));
        }
    }
    sent_granted(d, f, path, len);
    return MCA_SUCCESS;
}

static inline int policy_short(mca_pml_peer_t *peer, mca_pml_link_t *link, const void *hdr, size_t hdr_len,
                               const void *data, size_t len)
{
    if (goes_bare(link)) {
        return send_bare(link, hdr, hdr_len, data, len);
    }
    dr_peer_t *d = dr_of(peer);
    size_t span = DR_USUAL_HEADER + len, cost = sizeof(dr_frag_t) + sizeof(dr_prefix_t) + span;
    unsigned path = dr_path_of(d, link);
    if (OPAL_UNLIKELY(!dr_stream_is_granted(&d->stream, path, cost, span) || hdr_len != DR_USUAL_HEADER ||
                      !dr_wire_has_usual_sums(&d->out))) {
        return send_entered(d, link, hdr, hdr_len, data, len);
    }
    if (OPAL_UNLIKELY(len > DR_SMALL - DR_USUAL_HEAD || !d->spare)) {
        return send_granted_longer(d, link, path, hdr, data, len);
    }
    return d->out.kind == OPAL_CHECKSUM_NONE ? send_granted(d, link, path, false, hdr, data, len)
                                             : send_granted(d, link, path, true, hdr, data, len);
}

/* Memory for a fragment of so many bytes behind the prefix that will be kept, if stream and link have room for it. */
static int claim(dr_peer_t *d, mca_pml_link_t *link, size_t span, dr_frag_t **frag)
{
    if (!d->stream.paths) {
        dr_add_paths(d);
    }
    if (dr_is_full(d, link)) {
        return MCA_ERR_AGAIN;
    }
    if (!dr_stream_has_room(&d->stream, dr_path_of(d, link), sizeof(dr_frag_t) + sizeof(dr_prefix_t) + span, span)) {
        return refuse(d);
    }
    *frag = dr_frag_new(d, DR_KEPT, sizeof(dr_prefix_t) + span);
    return *frag ? MCA_SUCCESS : MCA_ERR_OUT_OF_RESOURCE;
}

/* Lend a fragment's own memory: it will be kept. */
static int policy_reserve(mca_pml_peer_t *peer, mca_pml_link_t *link, size_t min, size_t want, mca_btl_room_t *room)
{
    size_t max = link->module->limits.max_frag - sizeof(dr_prefix_t);
    size_t len = want < max ? want : max;
    if (goes_bare(link) && len >= min) {
        return reserve_bare(link, min, len, room);
    }
    dr_peer_t *d = dr_of(peer);
    dr_frag_t *f;
    int rc = len < min ? MCA_ERR_BAD_PARAM : claim(d, link, len, &f);
    if (rc == MCA_SUCCESS) {
        *room = (mca_btl_room_t){.ptr = f->bytes + sizeof(dr_prefix_t), .len = len, .token = {(uintptr_t) f}};
    }
    return rc;
}

static void policy_commit(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_btl_room_t *room, size_t len)
{
    if (goes_bare(link)) {
        commit_bare(link, room, len);
        return;
    }
    dr_peer_t *d = peer->policy;
    dr_frag_t *f = (dr_frag_t *) (uintptr_t) room->token[0];
    if (len == 0) {
        dr_frag_free(d, f);
        return;
    }
    f->header_len = (uint8_t) mca_pml_hdr_length(room->ptr, len);
    f->payload_len = (uint32_t) len - f->header_len;
    dr_commit(d, link, f);
}

/* A whole message from the user's memory goes into the link's room first, and what is kept of it is copied while the peer is at work. */
static int policy_whole(mca_pml_peer_t *peer, mca_pml_link_t *link, const void *hdr, size_t hdr_len, const void *data, size_t len)
{
    if (goes_bare(link)) {
        const struct iovec iov = {(void *) (uintptr_t) data, len};
        return put_bare(link, hdr, hdr_len, &iov, 1, len);
    }
    dr_peer_t *d = dr_of(peer);
    dr_frag_t *f;
    if (len >= link->module->limits.send_min) {
        return engine_put_bytes(peer, link, hdr, hdr_len, data, len); /* it would rather send from memory: from the kept copy */
    }
    int rc = claim(d, link, hdr_len + len, &f);
    if (OPAL_UNLIKELY(rc != MCA_SUCCESS)) {
        return rc;
    }
    f->header_len = (uint8_t) hdr_len;
    f->payload_len = (uint32_t) len;
    opal_copy_head(f->bytes + sizeof(dr_prefix_t), hdr, hdr_len);
    f->record.seq = d->stream.next; /* what dr_stream_send() will say */
    f->record.tries = 1;
    rc = dr_put_whole(d, link, f, data);
    if (OPAL_UNLIKELY(rc != MCA_SUCCESS)) {
        return unsent(d, f, rc);
    }
    unsigned path = dr_path_of(d, link);
    dr_stream_send(&d->stream, &f->record, path, (uint32_t) (hdr_len + len), dr_frag_cost(f), dr_send_time(d, path));
    dr_active(d);
    return MCA_SUCCESS;
}

/*
 * Must a piece in place be acknowledged at once? Of a message's pieces the last one, for which the sender waits, and enough of
 * the others that the window never closes; each would be a datagram in answer to nearly each datagram. Where there are
 * several links, all: what they carry is measured by that.
 */
static bool asks(dr_peer_t *d, const mca_pml_link_t *link, const mca_btl_descriptor_t *desc, size_t payload)
{
    const mca_pml_frag_t *piece = OPAL_CONTAINER_OF(desc, mca_pml_frag_t, desc);
    dr_path_t *path = &d->stream.paths[dr_path_of(d, link)];
    const uint64_t window = dr_window_of(d, link);
    path->unasked += (uint32_t) payload;
    if (d->peer->bandwidth_count == 1 && link->flow.queued > payload && path->unasked < window / 4 &&
        le64toh(piece->hdr.offset) + payload < piece->send->end) {
        return false;
    }
    path->unasked = 0;
    return true;
}

/* Is it a whole message of one piece for which a link lends room, and is all else as it is for nearly all that are lent? */
static inline bool is_usually_lent(const dr_peer_t *d, const mca_pml_link_t *link, const mca_btl_descriptor_t *desc)
{
    return ((const mca_pml_hdr_common_t *) desc->header)->type == MCA_PML_HDR_MATCH && desc->header_len == DR_USUAL_HEADER &&
           desc->iov_count == 1 && desc->iov[0].iov_len < link->module->limits.send_min && dr_wire_has_usual_sums(&d->out) &&
           !dr_is_half_full(&d->stream);
}

/* Such a one; d->spare is there. The stream hears of it when it is out, as in policy_whole(). */
static int send_lent(dr_peer_t *d, mca_pml_link_t *link, mca_btl_descriptor_t *desc, unsigned path, size_t cost)
{
    dr_frag_t *f = d->spare;
    const opal_checksum_kind_t kind = d->out.kind;
    size_t payload = desc->iov[0].iov_len, len = DR_USUAL_HEAD + payload;
    mca_btl_room_t room = {.how = MCA_BTL_COPY_ANY};
    int rc = link->module->ops->reserve(link->endpoint, len, len, &room);
    if (OPAL_UNLIKELY(rc != MCA_SUCCESS)) {
        return unsent(d, NULL, dr_note_full(d, link, rc));
    }
    char *to = (char *) room.ptr + DR_USUAL_HEAD;
    uint64_t sum = opal_checksum_copy_into(kind, dr_wire_begin(&d->out), to, desc->iov[0].iov_base, payload, (opal_copy_how_t) room.how);
    f->payload_sum = opal_checksum_finish(kind, sum);
    dr_wire_write_usual_head(&d->out, kind != OPAL_CHECKSUM_NONE, f->bytes, d->stream.next, dr_stream_ride(&d->stream), desc->header,
                             f->payload_sum, payload);
    memcpy(room.ptr, f->bytes, DR_USUAL_HEAD);
    link->module->ops->commit(link->endpoint, &room, len);
    dr_frag_take_spare(d, f);
    f->user = desc;
    f->is.what = DR_LENT;
    f->summed = true;
    f->header_len = DR_USUAL_HEADER;
    f->payload_len = (uint32_t) payload;
    desc->btl_private[1] = f;
    dr_stream_send(&d->stream, &f->record, path, (uint32_t) (DR_USUAL_HEADER + payload), (uint32_t) cost, dr_send_time(d, path));
    dr_active(d);
    dr_count_lent(&dr_lending.lent);
    return 0;
}

/* Of a message whose pieces follow its announcement. */
static inline bool is_unasked(const mca_btl_descriptor_t *desc)
{
    return ((const mca_pml_hdr_frag_t *) desc->header)->common.flags & MCA_PML_FLAG_UNASKED;
}

static inline bool is_first_unasked(const mca_btl_descriptor_t *desc)
{
    return is_unasked(desc) && ((const mca_pml_hdr_frag_t *) desc->header)->offset == 0;
}

static inline size_t policy_wide(const mca_pml_link_t *link)
{
    const size_t heads = sizeof(dr_prefix_t) + sizeof(mca_pml_hdr_frag_t) + sizeof(dr_behind_t);
    size_t most = link->filled_max > heads ? link->filled_max - heads : 0;
    return most < dr_params.wide_max ? most : dr_params.wide_max;
}

/* A new piece, which may be longer than a fragment. */
static int put_piece(dr_peer_t *d, mca_pml_link_t *link, dr_frag_t *f)
{
    const size_t len = f->payload_len;
    int rc = MCA_ERR_NOT_AVAILABLE;
    if (is_unasked(f->user) && len >= ENGINE_WIDE_MIN && len <= policy_wide(link) && f->user->iov_count == 1) {
        rc = dr_put_filled(d, link, f);
    }
    return rc == MCA_ERR_NOT_AVAILABLE && dr_head_length(f) + len <= link->module->limits.max_frag ? dr_put(d, link, f) : rc;
}

static int policy_send(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_btl_descriptor_t *desc)
{
    size_t payload = 0;
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        payload += desc->iov[i].iov_len;
    }
    bool whole = ((const mca_pml_hdr_common_t *) desc->header)->type != MCA_PML_HDR_FRAG;
    if (!whole && goes_bare(link) && payload < link->module->limits.send_min) {
        int rc = put_bare(link, desc->header, desc->header_len, desc->iov, desc->iov_count, payload);
        return rc == MCA_SUCCESS ? 1 : rc;
    }
    dr_peer_t *d = dr_of(peer);
    if (!d->stream.paths) {
        dr_add_paths(d);
    }
    size_t span = desc->header_len + payload, head = sizeof(dr_prefix_t) + desc->header_len;
    bool lent = whole && OPAL_CONTAINER_OF(desc, mca_pml_send_t, desc)->lent; /* else somebody waits for the acknowledgment */
    size_t cost = sizeof(dr_frag_t) + head + (lent ? payload : 0);
    unsigned path = dr_path_of(d, link);
    if (!dr_stream_has_room(&d->stream, path, cost, span)) {
        return refuse(d);
    }
    if (OPAL_LIKELY(lent && d->spare) && is_usually_lent(d, link, desc)) {
        return send_lent(d, link, desc, path, cost);
    }
    dr_frag_t *f = dr_frag_new(d, lent ? DR_LENT : whole ? DR_WHOLE : DR_IN_PLACE, head);
    if (!f) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    f->user = desc;
    f->is.asks = whole ? !lent : asks(d, link, desc, payload);
    desc->btl_private[1] = f;
    f->header_len = (uint8_t) desc->header_len;
    f->payload_len = (uint32_t) payload;
    opal_copy_head(f->bytes + sizeof(dr_prefix_t), desc->header, desc->header_len);
    dr_stream_send(&d->stream, &f->record, path, (uint32_t) span, (uint32_t) cost, dr_send_time(d, path));
    int rc = whole ? dr_put(d, link, f) : put_piece(d, link, f);
    if (rc != MCA_SUCCESS) {
        dr_stream_undo(&d->stream, &f->record);
        return unsent(d, f, rc);
    }
    dr_active(d);
    if (lent) {
        dr_count_lent(&dr_lending.lent);
    } else if (!whole && is_first_unasked(desc)) {
        dr_count_lent(&dr_lending.pieces);
    }
    return 0;
}

/*
 * Somebody waits for a message that is lent. Not while a link holds it. Most are acknowledged before that, so the memory for the copy is got here, and
 * the fragment moves there: while it is lent it is as small as its header, and many of them stand close together.
 */
static bool policy_keep(mca_btl_descriptor_t *desc)
{
    dr_frag_t *lent = desc->btl_private[1];
    dr_peer_t *d = lent->owner;
    size_t head = dr_head_length(lent);
    dr_frag_t *f = lent->descs ? NULL : dr_frag_new(d, DR_KEPT, head + lent->payload_len);
    if (!f) {
        return false; /* out of memory: until it is acknowledged, then */
    }
    dr_stream_move(&lent->record, &f->record);
    f->payload_len = lent->payload_len;
    f->payload_sum = lent->payload_sum;
    f->header_len = lent->header_len;
    f->summed = lent->summed;
    memcpy(f->bytes, lent->bytes, head);
    memcpy(f->bytes + head, desc->iov[0].iov_base, desc->iov[0].iov_len);
    dr_frag_leave_user(lent);
    dr_frag_free(d, lent);
    dr_count_lent(&dr_lending.copied);
    return true;
}

/* Links read it where their descriptors say. */
static void policy_moved(mca_btl_descriptor_t *desc)
{
    const dr_frag_t *f = desc->btl_private[1];
    for (dr_desc_t *own = f ? f->descs : NULL; own; own = own->next) {
        memcpy(own->desc.iov, desc->iov, desc->iov_count * sizeof(struct iovec));
    }
}

static inline size_t policy_lends_from(void)
{
    return dr_params.lend_min;
}

static inline bool policy_keeps(const mca_pml_link_t *link)
{
    return !goes_bare(link);
}

static inline int policy_parts(mca_pml_link_t *link, const void *hdr, size_t hdr_len, const void *data, size_t len)
{
    return send_bare_parts(link, hdr, hdr_len, data, len);
}

/* The engine wants it back: its bytes have arrived another way. */
static int policy_recall(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_btl_descriptor_t *desc)
{
    (void) link;
    dr_frag_t *f = desc->btl_private[1];
    dr_peer_t *d = peer->policy;
    int rc = f ? dr_recall(d, f, false) : MCA_SUCCESS; /* else its event is due */
    if (f && rc == MCA_SUCCESS && !f->over) {
        f->is.recalled = d->any_recalled = true; /* the event comes from progress */
        dr_urgent(d);
    }
    return rc;
}

#endif
