/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What comes that is not data, and data that is not what was sent. */
#include "ompi/mca/pml/dr/pml_dr_control.h"

#include "ompi/mca/pml/dr/pml_dr_again.h"
#include "ompi/mca/pml/dr/pml_dr_due.h"
#include "ompi/mca/pml/dr/pml_dr_paths.h"
#include "ompi/runtime/event.h"

_Atomic uint64_t dr_damaged;
static ompi_event_type_t *damage_event;

int dr_control_register(void)
{
    static const ompi_event_desc_t desc = {
        .framework = "pml", .component = "dr", .name = "damaged_fragment", .level = MCA_VAR_LEVEL_USER,
        .help = "A fragment came damaged; it will be sent again", .values = {"rank of the peer in its job", "bytes"}};
    return ompi_event_register(&desc, &damage_event);
}

void dr_note_damage(const mca_pml_peer_t *peer, mca_pml_link_t *link, size_t bytes)
{
    const int64_t values[] = {peer->proc->rank, (int64_t) bytes};
    atomic_fetch_add_explicit(&dr_damaged, 1, memory_order_relaxed);
    if (link) {
        atomic_fetch_add_explicit(&link->damaged, 1, memory_order_relaxed);
    }
    ompi_event_raise(damage_event, values);
}

void dr_on_damaged_header(dr_peer_t *d, const mca_btl_arrival_t *arrival)
{
    dr_note_damage(d->peer, mca_pml_base_link_of(d->peer, arrival->endpoint), arrival->len);
    mca_base_log("pml", "dr", MCA_LOG_DEBUG, "rank %u: %zu bytes over %s with a damaged header", d->peer->proc->rank,
                 arrival->len, arrival->module->name);
}

void dr_on_damaged_payload(dr_peer_t *d, const mca_btl_arrival_t *arrival, uint64_t seq, uint32_t span)
{
    dr_note_damage(d->peer, mca_pml_base_link_of(d->peer, arrival->endpoint), arrival->len);
    mca_base_log("pml", "dr", MCA_LOG_DEBUG, "rank %u: [%" PRIu64 ", +%u) came damaged over %s", d->peer->proc->rank,
                 seq, span, arrival->module->name);
    mca_pml_peer_lock(d->peer);
    dr_stream_damaged(&d->stream, seq, span);
    mca_pml_peer_unlock(d->peer);
    dr_urgent(d);
}

/* An echo: its link works in both directions. */
static void on_echo(dr_peer_t *d, const mca_btl_arrival_t *arrival, uint64_t token, dr_out_t *out)
{
    mca_pml_link_t *link = mca_pml_base_link_of(d->peer, arrival->endpoint);
    if (!link) {
        return;
    }
    dr_stream_echoed(&d->stream, dr_path_of(d, link), token, opal_now_ns());
    out->flush = true;
}

void dr_on_control(dr_peer_t *d, mca_btl_arrival_t *arrival, const dr_prefix_t *prefix)
{
    const unsigned char *header = (const unsigned char *) (prefix + 1);
    dr_out_t out = {0};
    opal_list_t done = OPAL_LIST_INIT(done);
    mca_pml_peer_lock(d->peer);
    if (OPAL_UNLIKELY(atomic_load_explicit(&d->peer->state, memory_order_acquire) == MCA_PML_PEER_FAILED)) {
        mca_pml_peer_unlock(d->peer); /* whom we have given up hears nothing, and so finds out */
        return;
    }
    uint64_t now = dr_ack_time(d), token = le64toh(prefix->seq);
    d->stream.heard = true;
    dr_ack_t ack;
    dr_wire_void_t body;
    switch (prefix->kind) {
    case DR_VOID:
        if (prefix->header_len == sizeof(body)) {
            memcpy(&body, header, sizeof(body));
            if (dr_stream_judge(&d->stream, token, le32toh(body.span)) == DR_NEW) {
                dr_stream_deliver(&d->stream, token, le32toh(body.span), true);
            }
        }
        break;
    case DR_ACK:
        if (dr_wire_read_ack(header, prefix->header_len, &ack)) {
            dr_take_told(d, &out); /* its upper half is known now */
            dr_stream_told(&d->stream, token);
            dr_stream_take_ack(&d->stream, &ack, now, &done);
        }
        break;
    case DR_PROBE:
        dr_send_control(d, arrival->module, arrival->endpoint, DR_ECHO, token, NULL, 0);
        break;
    default:
        on_echo(d, arrival, token, &out);
        dr_sync_paths(d, &out);
        break;
    }
    dr_end_frags(d, &done, &out, false);
    if (d->stream.need == DR_ACK_URGENT || !opal_list_is_empty(&d->stream.lost)) {
        dr_urgent(d);
    }
    dr_active(d);
    dr_leave(d, &out);
}
