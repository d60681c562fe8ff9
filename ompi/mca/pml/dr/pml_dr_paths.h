/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the engine is told of links, and what it tells: those that speak for themselves say when they are down or up; of the
 * others the stream finds out (pml_dr_stream.h), by probes.
 */
#ifndef MCA_PML_DR_PATHS_H
#define MCA_PML_DR_PATHS_H

#include "ompi/mca/pml/dr/pml_dr_done.h"

/* The link says so itself; the engine sees to its own part. The caller holds the lock. */
void dr_link_says(mca_pml_peer_t *peer, mca_pml_link_t *link, bool up);
/* Tell the engine what became of links that do not speak for themselves. The caller holds the lock. */
void dr_sync_paths(dr_peer_t *d, dr_out_t *out);
/* Those that are due. The caller holds the lock. */
void dr_send_probes(dr_peer_t *d, uint64_t now);
/* Not a sign of life for pml_dr_path_timeout. */
void dr_give_up(mca_pml_peer_t *peer);

#endif
