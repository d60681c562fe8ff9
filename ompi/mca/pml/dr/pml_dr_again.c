/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lost fragment goes again over whichever link works. If it is longer than that one takes, the engine gets it back
 * (unconfirmed) and cuts it anew, under new numbers, and its own numbers are made void.
 */
#include "ompi/mca/pml/dr/pml_dr_again.h"

#include "ompi/mca/pml/dr/pml_dr_due.h"
#include "ompi/mca/pml/dr/pml_dr_put.h"

/* Does it matter that a link had no room for the last fragment? A short one may find some where a long one did not. */
typedef enum { ROOM_MATTERS, ROOM_IS_SOUGHT } dr_room_t;

/* How good a link is for a fragment of `len` bytes that failed on `bad` (-1: on none); 0: not at all. */
static unsigned fitness(const dr_peer_t *d, const mca_pml_link_t *link, size_t len, int bad, dr_room_t room)
{
    int path = (int) dr_path_of(d, link);
    const dr_path_t *p = d->stream.paths ? &d->stream.paths[path] : NULL;
    if (!link->up || len > link->module->limits.max_frag || (p && p->state == DR_PATH_DOWN)) {
        return 0;
    }
    bool good = !link->suspect && (!p || (p->state == DR_PATH_UP && (path != bad || p->vain == 0)));
    return 1u + (good ? 4 : 0) + (room == ROOM_MATTERS && dr_is_full(d, link) ? 0 : 2) + (path != bad);
}

static mca_pml_link_t *choose_link_for(const dr_peer_t *d, size_t len, int bad, dr_room_t room)
{
    mca_pml_link_t *best = NULL;
    unsigned most = 0;
    for (int i = 0; i < d->peer->link_count; i++) {
        mca_pml_link_t *link = &d->peer->links[i];
        unsigned fit = fitness(d, link, len, bad, room);
        if (fit > most || (fit > 0 && fit == most &&
                           link->module->limits.latency_ns < best->module->limits.latency_ns)) {
            best = link;
            most = fit;
        }
    }
    return best;
}

static mca_pml_link_t *choose_link(const dr_peer_t *d, size_t len, int bad)
{
    return choose_link_for(d, len, bad, ROOM_MATTERS);
}

/* No link that is left takes so long a fragment: the engine has it back, its numbers become void. Only pieces of
 * matched messages can be so long. */
static bool recut(dr_peer_t *d, dr_frag_t *f, dr_out_t *out)
{
    unsigned char *header = f->bytes + sizeof(dr_prefix_t);
    if (f->descs || !choose_link(d, 0, -1) || header[0] != MCA_PML_HDR_FRAG || f->is.what == DR_EMPTY) {
        return false;
    }
    if (f->is.what == DR_KEPT) {
        dr_engine_queue_raw(d->peer, header, f->header_len, header + f->header_len, f->payload_len);
    }
    dr_make_empty(d, f, out);
    out->flush = true;
    return true;
}

static bool resend(dr_peer_t *d, dr_frag_t *f, dr_out_t *out)
{
    size_t len = dr_head_length(f) + f->payload_len;
    mca_pml_link_t *link = choose_link(d, len, f->record.path);
    if (!link && recut(d, f, out)) {
        len = dr_head_length(f);
        link = choose_link(d, len, f->record.path);
    }
    if (!link || dr_is_full(d, link)) {
        return false;
    }
    unsigned path = dr_path_of(d, link);
    dr_stream_resend(&d->stream, &f->record, path, d->stream.paths[path].reliable ? 0 : opal_now_ns());
    int rc = dr_put(d, link, f);
    if (rc != MCA_SUCCESS) {
        dr_stream_lose(&d->stream, &f->record);
        return false;
    }
    link->retries++;
    dr_engine_count(link, len);
    dr_active(d); /* or nobody would look whether this copy arrives, if it is all that is under way */
    return true;
}

int dr_send_control(dr_peer_t *d, const mca_btl_module_t *module, mca_btl_endpoint_t *endpoint, dr_kind_t kind,
                    uint64_t token, const void *header, size_t len)
{
    struct {
        dr_prefix_t prefix;
        unsigned char header[sizeof(dr_wire_ack_t)];
    } bytes;
    if (len > 0) {
        memcpy(bytes.header, header, len);
    }
    dr_wire_write(&d->out, &bytes.prefix, kind, 0, len, token, 0, 0, sizeof(bytes.prefix) + len);
    return module->ops->send_short(endpoint, &bytes.prefix, sizeof(bytes.prefix), bytes.header, len);
}

static int ack_over(dr_peer_t *d, mca_pml_link_t *link)
{
    dr_ack_t ack;
    dr_wire_ack_t wire;
    dr_stream_fill_ack(&d->stream, &ack);
    int rc = dr_send_control(d, link->module, link->endpoint, DR_ACK, d->stream.next, &wire, dr_wire_write_ack(&wire, &ack));
    if (rc == MCA_SUCCESS) {
        dr_stream_ack_sent(&d->stream);
        dr_engine_count(link, sizeof(dr_prefix_t));
    } else {
        dr_note_full(d, link, rc);
    }
    return rc;
}

/*
 * Acknowledgments go over the quickest link, as long as that takes them: a link that has no room for another long fragment mostly has some
 * for them, and over a slower one, they would come late, and cost both sides system calls. NULL: there is none.
 */
static mca_pml_link_t *ack_somewhere(dr_peer_t *d)
{
    const size_t len = sizeof(dr_prefix_t) + sizeof(dr_wire_ack_t);
    mca_pml_link_t *link = choose_link_for(d, len, -1, ROOM_IS_SOUGHT);
    if (link && ack_over(d, link) == MCA_ERR_AGAIN) {
        mca_pml_link_t *other = choose_link(d, len, -1);
        if (other != link) {
            ack_over(d, other);
            link = other;
        }
    }
    return link;
}

void dr_ack_now(dr_peer_t *d)
{
    (void) ack_somewhere(d);
}

void dr_ack_last(dr_peer_t *d)
{
    mca_pml_link_t *link = ack_somewhere(d);
    if (link && OPAL_UNLIKELY(d->stream.careful > 0) && !(link->module->limits.caps & MCA_BTL_CAP_RELIABLE)) {
        ack_over(d, link);
    }
}

void dr_service(dr_peer_t *d, dr_out_t *out)
{
    dr_record_t *r;
    if (atomic_load_explicit(&d->peer->state, memory_order_acquire) != MCA_PML_PEER_READY) {
        return;
    }
    if (OPAL_UNLIKELY(d->any_recalled)) {
        dr_end_recalled(d, out);
    }
    while ((r = dr_stream_first_lost(&d->stream)) && resend(d, OPAL_CONTAINER_OF(r, dr_frag_t, record), out)) {
    }
    if (d->stream.need == DR_ACK_URGENT) {
        dr_ack_now(d);
    }
}
