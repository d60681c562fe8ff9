/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bare fragments. Without checksums all that the stream does is to make loss good. Over a link that loses nothing and does not fail while
 * the peer lives, as over shared memory, there is none: what such a link takes need not be kept, and no acknowledgment says more than that
 * it was taken. So it goes as under teg, behind a prefix that says so, and takes no number. Any other link of the same peer is used as
 * ever; which came first is the engine's business, which orders messages by themselves. Compiled into pml_dr.c.
 */
#ifndef MCA_PML_DR_BARE_H
#define MCA_PML_DR_BARE_H

#include "ompi/mca/pml/dr/pml_dr_params.h"
#include "ompi/mca/pml/dr/pml_dr_wire.h"
#include "opal/util/copy.h"

/* ---- Sending ---- */

static OPAL_ALWAYS_INLINE bool goes_bare(const mca_pml_link_t *link)
{
    return dr_params.bare && link->safe;
}

/* Prefix and header, as the link's header; its length. `head` has MCA_BTL_HEADER_MAX bytes. */
static inline size_t write_bare_head(unsigned char *head, const void *hdr, size_t hdr_len)
{
    dr_wire_write_bare(head, hdr_len);
    memcpy(head + sizeof(dr_prefix_t), hdr, hdr_len);
    return sizeof(dr_prefix_t) + hdr_len;
}

/* A message of any length that the link takes as short. */
static OPAL_NOINLINE int send_bare_any(mca_pml_link_t *link, const void *hdr, size_t hdr_len, const void *data, size_t len)
{
    unsigned char head[MCA_BTL_HEADER_MAX];
    size_t head_len = write_bare_head(head, hdr, hdr_len);
    return link->send_short(link->endpoint, head, head_len, data, len);
}

/* As policy_short(): into the lines that stand ready, if there are enough. The peer looks at the first one, so it is written last. */
static OPAL_ALWAYS_INLINE int send_bare(mca_pml_link_t *link, const void *hdr, size_t hdr_len, const void *data, size_t len)
{
    const mca_btl_standing_t *room = link->standing;
    unsigned char *to = room->ptr;
    const bool one = DR_USUAL_HEAD + len <= room->len;
    if (OPAL_UNLIKELY(hdr_len != DR_USUAL_HEADER || !(one || (uintptr_t) to + DR_USUAL_HEAD + len <= (uintptr_t) room->end))) {
        return send_bare_any(link, hdr, hdr_len, data, len);
    }
    if (one) {
        uint32_t sum;
        uint64_t word = dr_wire_read_tiny(NULL, false, data, len, &sum);
        memcpy(to + DR_USUAL_HEAD, &word, sizeof(word));
    } else {
        opal_copy(to + DR_USUAL_HEAD, data, len);
    }
    opal_copy_words3(to + sizeof(dr_prefix_t), hdr);
    dr_wire_write_bare(to, DR_USUAL_HEADER);
    return one ? link->publish(link->endpoint, DR_USUAL_HEAD + len) : link->publish_more(link->endpoint, DR_USUAL_HEAD + len);
}

/* As policy_reserve() and policy_commit(): the link's own room, behind the prefix. */
static int reserve_bare(mca_pml_link_t *link, size_t min, size_t want, mca_btl_room_t *room)
{
    int rc = link->module->ops->reserve(link->endpoint, sizeof(dr_prefix_t) + min, sizeof(dr_prefix_t) + want, room);
    if (OPAL_LIKELY(rc == MCA_SUCCESS)) {
        room->ptr = (char *) room->ptr + sizeof(dr_prefix_t);
        room->len -= sizeof(dr_prefix_t);
    }
    return rc;
}

static void commit_bare(mca_pml_link_t *link, mca_btl_room_t *room, size_t len)
{
    size_t hdr_len = len > 0 ? mca_pml_hdr_length(room->ptr, len) : 0;
    room->ptr = (char *) room->ptr - sizeof(dr_prefix_t);
    room->len += sizeof(dr_prefix_t);
    if (len > 0) {
        dr_wire_write_bare(room->ptr, hdr_len);
        len += sizeof(dr_prefix_t);
    }
    link->module->ops->commit(link->endpoint, room, len);
}

/* Header and payload into the link's room. */
static int put_bare(mca_pml_link_t *link, const void *hdr, size_t hdr_len, const struct iovec *iov, size_t count, size_t payload)
{
    mca_btl_room_t room = {.how = MCA_BTL_COPY_ANY};
    int rc = reserve_bare(link, hdr_len + payload, hdr_len + payload, &room);
    if (OPAL_UNLIKELY(rc != MCA_SUCCESS)) {
        return rc;
    }
    char *to = (char *) room.ptr + hdr_len;
    for (size_t i = 0; i < count; i++) {
        opal_copy_into(to, iov[i].iov_base, iov[i].iov_len, (opal_copy_how_t) room.how);
        to += iov[i].iov_len;
    }
    opal_copy_head(room.ptr, hdr, hdr_len);
    commit_bare(link, &room, hdr_len + payload);
    return MCA_SUCCESS;
}

static mca_btl_parts_t bare_parts_of(const mca_pml_link_t *link)
{
    mca_btl_parts_t parts = mca_pml_base_no_parts;
    if (link->module->component->contract_minor >= 13 && link->module->ops->parts) {
        link->module->ops->parts(link->endpoint, &parts);
        parts.max -= parts.max > sizeof(dr_prefix_t) ? sizeof(dr_prefix_t) : 0;
    }
    return parts;
}

/* A whole message that the peer reads while it is written. */
static int send_bare_parts(mca_pml_link_t *link, const void *hdr, size_t hdr_len, const void *data, size_t len)
{
    unsigned char head[MCA_BTL_HEADER_MAX];
    size_t head_len = write_bare_head(head, hdr, hdr_len);
    return link->module->ops->send_parts(link->endpoint, head, head_len, data, len);
}

/* ---- Receiving ---- */

/* It is all there is to look at: the engine sees to the rest. */
static OPAL_ALWAYS_INLINE bool is_bare(const void *data, size_t len)
{
    return dr_wire_is_bare(data, len) && dr_params.checksum == OPAL_CHECKSUM_NONE;
}

/* As upcall arrive_brief: a whole message that comes as most do. Not with threads. */
static OPAL_ALWAYS_INLINE bool take_bare(mca_pml_peer_t *peer, const void *data, size_t len, opal_copy_how_t how)
{
    const void *hdr = (const char *) data + sizeof(dr_prefix_t);
    int32_t before;
    mca_pml_recv_t *recv = engine_take_brief(peer, hdr, len - sizeof(dr_prefix_t), how, false, true, &before);
    return engine_brief_taken(recv, before);
}

#endif
