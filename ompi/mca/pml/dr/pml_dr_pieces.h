/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole message in pieces, each a fragment that is kept: while one is on its way, its sender copies and sums the next, and its receiver
 * reads and sums the one before. In one fragment all that comes one after the other, and what does not fit one waits for an answer first.
 * Where one fragment can hold all of it, and its payload is read to its place, as over TCP, it goes so instead.
 * Over a link that always lends room this process would copy each piece a second time for that, and what is hidden is less: there the pieces
 * come from the user's memory, and the message ends when they have arrived; see engine_follows(). Compiled into pml_dr.c.
 */
#ifndef MCA_PML_DR_PIECES_H
#define MCA_PML_DR_PIECES_H

#include <string.h>
#include "ompi/mca/pml/dr/pml_dr_bare.h"
#include "ompi/mca/pml/dr/pml_dr_done.h"
#include "ompi/mca/pml/dr/pml_dr_put.h"

enum { DR_PIECES_MAX = 64 };

/* Payload of one fragment before its receiver is known. Copies of whole lines are quicker. */
static size_t piece_most(size_t eager_max)
{
    return (eager_max - sizeof(mca_pml_hdr_rndv_t) - POLICY_ROOM) / OPAL_COPY_LINE * OPAL_COPY_LINE;
}

/* What does not fit one fragment; what goes bare as the link has it. See mca_pml_base_own_parts. */
static mca_btl_parts_t dr_parts_of(const mca_pml_link_t *link)
{
    const mca_btl_limits_t *limits = &link->module->limits;
    const size_t hdr = sizeof(mca_pml_hdr_match_t);
    if (goes_bare(link)) {
        return bare_parts_of(link);
    }
    if (mca_pml_base_goes_whole(limits)) {
        return mca_pml_base_no_parts;
    }
    bool lends = limits->send_min == SIZE_MAX;
    uint64_t most = lends && dr_params.pieces_max > 0 && dr_params.wide_max > dr_params.pieces_max ? dr_params.wide_max : dr_params.pieces_max;
    most = most < dr_params.stream.window / 2 ? most : dr_params.stream.window / 2;
    return most > 0 ? (mca_btl_parts_t){.min = limits->eager_limit - POLICY_ROOM + 1, .max = most + hdr} : mca_pml_base_no_parts;
}

/* Bytes of a piece; 0: there would be too many. */
static size_t piece_length(const mca_pml_peer_t *peer, size_t len)
{
    const size_t room = piece_most(peer->eager_max), count = (len + dr_params.piece - 1) / dr_params.piece;
    size_t piece = (len / (count > 2 ? count : 2) + OPAL_COPY_LINE) / OPAL_COPY_LINE * OPAL_COPY_LINE;
    piece = piece < room ? piece : room;
    return piece > 0 && (len + piece - 1) / piece <= DR_PIECES_MAX ? piece : 0;
}

/* May all of it be under way now, and leave half of what the link takes to others? A stream that holds nothing takes anything: so that is
 * asked, too. The acknowledgment of what went before has often come on the answer, and nobody has looked at it. */
static bool pieces_fit(dr_peer_t *d, const mca_pml_link_t *link, unsigned path, size_t len)
{
    const size_t most = DR_PIECES_MAX * (sizeof(dr_frag_t) + sizeof(dr_prefix_t) + sizeof(mca_pml_hdr_rndv_t)) + len;
    const uint64_t told = dr_told_span(d), more = most > told ? most - told : 0;
    return !dr_is_full(d, link) && len <= link->module->limits.window / 2 && most <= d->stream.paths[path].cwnd &&
           dr_stream_has_room(&d->stream, path, more, more);
}

/* Memory for all of them, with their headers. How many; 0: there is none. */
static unsigned pieces_new(dr_peer_t *d, const mca_pml_hdr_rndv_t *first, const mca_pml_hdr_frag_t *more, size_t len, size_t piece,
                           dr_frag_t *frags[])
{
    mca_pml_hdr_frag_t hdr = *more;
    unsigned count = 0;
    for (size_t at = 0; at < len; at += piece) {
        size_t hdr_len = at == 0 ? sizeof(*first) : sizeof(hdr), payload = len - at < piece ? len - at : piece;
        dr_frag_t *f = dr_frag_new(d, DR_KEPT, sizeof(dr_prefix_t) + hdr_len + payload);
        if (!f) {
            while (count > 0) {
                dr_frag_free(d, frags[--count]);
            }
            return 0;
        }
        hdr.offset = htole64(at);
        f->header_len = (uint8_t) hdr_len;
        f->payload_len = (uint32_t) payload;
        memcpy(f->bytes + sizeof(dr_prefix_t), at == 0 ? (const void *) first : &hdr, hdr_len);
        frags[count++] = f;
    }
    return count;
}

/* Copied and summed in one pass, it goes as what the engine packs does. */
static void piece_put(dr_peer_t *d, mca_pml_link_t *link, dr_frag_t *f, const void *data)
{
    const opal_checksum_kind_t kind = d->out.kind;
    uint64_t sum = opal_checksum_copy(kind, dr_wire_begin(&d->out), f->bytes + dr_head_length(f), data, f->payload_len);
    f->payload_sum = opal_checksum_finish(kind, sum);
    f->summed = true;
    dr_commit(d, link, f);
}

static int policy_pieces(mca_pml_peer_t *peer, mca_pml_link_t *link, const mca_pml_hdr_rndv_t *first, const mca_pml_hdr_frag_t *more,
                         const void *data, size_t len)
{
    dr_peer_t *d = dr_of(peer);
    dr_frag_t *frags[DR_PIECES_MAX];
    const unsigned path = dr_path_of(d, link);
    const size_t piece = piece_length(peer, len);
    if (!d->stream.paths) {
        dr_add_paths(d);
    }
    bool may = piece > 0 && pieces_fit(d, link, path, len);
    const unsigned count = may ? pieces_new(d, first, more, len, piece, frags) : 0;
    for (unsigned i = 0; i < count; i++) {
        piece_put(d, link, frags[i], (const char *) data + i * piece);
    }
    if (count == 0) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    dr_count_lent(&dr_lending.pieces);
    return MCA_SUCCESS;
}

#endif
