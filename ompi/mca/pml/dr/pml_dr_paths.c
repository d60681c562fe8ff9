/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Links as paths: up, suspect, down, probed. */
#include "ompi/mca/pml/dr/pml_dr_paths.h"

#include "ompi/mca/pml/dr/pml_dr_again.h"
#include "ompi/mca/pml/dr/pml_dr_due.h"

/* What this link was given last to tell the peer of what has come is lost, perhaps: told again over another one, or the peer would wait for
 * its timer, and send again what is here. */
static void tell_again(dr_peer_t *d, const mca_pml_link_t *down)
{
    for (int i = 0; i < d->peer->link_count; i++) {
        const mca_pml_link_t *link = &d->peer->links[i];
        if (link != down && link->up && d->stream.rx.next > 0) {
            dr_stream_want_ack(&d->stream, true);
            return;
        }
    }
}

void dr_link_says(mca_pml_peer_t *peer, mca_pml_link_t *link, bool up)
{
    dr_peer_t *d = peer->policy;
    if (!d) {
        return;
    }
    unsigned path = dr_path_of(d, link);
    d->full &= (uint8_t) ~(1u << path);
    link->probed = false;
    d->btl_down = (uint8_t) (up ? d->btl_down & ~(1u << path) : d->btl_down | 1u << path);
    if (!up) {
        tell_again(d, link);
    }
    if (d->stream.paths && up) {
        dr_stream_set_up(&d->stream, path, opal_now_ns());
    } else if (d->stream.paths) {
        dr_stream_set_down(&d->stream, path, opal_now_ns());
    }
    dr_urgent(d);
    dr_active(d);
}

void dr_sync_paths(dr_peer_t *d, dr_out_t *out)
{
    for (unsigned i = 0; i < d->stream.path_count; i++) {
        mca_pml_link_t *link = &d->peer->links[i];
        const dr_path_t *p = &d->stream.paths[i];
        uint8_t bit = (uint8_t) (1u << i);
        link->probed = p->state == DR_PATH_DOWN && !(d->btl_down & bit);
        if (d->btl_down & bit) {
            continue;
        }
        if (p->state == DR_PATH_DOWN && link->up) {
            tell_again(d, link);
            dr_engine_link_lost(d->peer, link, "nothing that is sent over it is acknowledged");
            out->flush = true;
        } else if (p->state != DR_PATH_DOWN && !link->up) {
            dr_engine_link_back(d->peer, link);
            out->flush = true;
        }
        bool suspect = p->state == DR_PATH_SUSPECT;
        if (suspect != !!(d->suspects & bit)) {
            d->suspects ^= bit;
            link->suspect = suspect && link->up;
            mca_pml_base_peer_relist(d->peer);
        }
    }
}

void dr_send_probes(dr_peer_t *d, uint64_t now)
{
    for (unsigned i = 0; i < d->stream.path_count; i++) {
        dr_path_t *p = &d->stream.paths[i];
        if (p->probe_due) {
            p->probe_due = false;
            if (!(d->btl_down & 1u << i)) {
                dr_send_control(d, d->peer->links[i].module, d->peer->links[i].endpoint, DR_PROBE, now, NULL, 0);
            }
        }
    }
}

void dr_give_up(mca_pml_peer_t *peer)
{
    mca_pml_peer_lock(peer);
    for (int i = 0; i < peer->link_count; i++) {
        if (peer->links[i].up) {
            mca_pml_base_link_down(peer, &peer->links[i], "no answer for longer than pml_dr_path_timeout");
        }
    }
    mca_pml_peer_unlock(peer);
    dr_engine_path_timeout(peer); /* no link is up any more */
}
