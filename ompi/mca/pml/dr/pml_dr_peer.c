/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The states of peers come and go. */
#include "ompi/mca/pml/dr/pml_dr_peer.h"

#include "ompi/mca/pml/base/pml_base_util.h"
#include "ompi/mca/pml/dr/pml_dr_frag.h"

/* All that a peer costs beyond teg when it rests; malloc() adds 8 bytes to what it gives. */
static_assert(sizeof(dr_peer_t) + 8 <= 256, "memory per peer");

dr_peer_t *dr_peer_new(mca_pml_peer_t *peer)
{
    dr_peer_t *d = calloc(1, sizeof(*d));
    if (!d) {
        mca_pml_base_out_of_memory("the state of a peer");
    }
    uint64_t self = ompi_rte.self, other = peer->proc->name;
    d->peer = peer;
    d->out = (dr_seal_t){dr_params.checksum, dr_wire_key(self, other)};
    d->in = (dr_seal_t){dr_params.checksum, dr_wire_key(other, self)};
    d->quiet = true;
    d->due = UINT64_MAX;
    dr_timer_init(&d->timer);
    opal_list_item_init(&d->urgent_item);
    dr_stream_init(&d->stream, &dr_params.stream, self * 0x9e3779b97f4a7c15u ^ other);
    peer->policy = d;
    return d;
}

void dr_peer_free(dr_peer_t *d)
{
    dr_spare_release(d);
    dr_stream_fini(&d->stream);
    free(d);
}

void dr_add_paths(dr_peer_t *d)
{
    const mca_pml_peer_t *peer = d->peer;
    if (!dr_stream_add_paths(&d->stream, peer->link_count)) {
        mca_pml_base_out_of_memory("the state of a peer");
    }
    for (unsigned i = 0; i < peer->link_count; i++) {
        const mca_btl_limits_t *limits = &peer->links[i].module->limits;
        dr_stream_init_path(&d->stream, i, limits->caps & MCA_BTL_CAP_RELIABLE, limits->window);
    }
}
