/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Arrivals that hand nothing to the engine: acknowledgments, probes, echoes, void ranges; and what came damaged. */
#ifndef MCA_PML_DR_CONTROL_H
#define MCA_PML_DR_CONTROL_H

#include "ompi/mca/pml/dr/pml_dr_done.h"

/* All but DATA. */
OPAL_COLD void dr_on_control(dr_peer_t *d, mca_btl_arrival_t *arrival, const dr_prefix_t *prefix);

/* Fragments that came with damage, wherever it was. */
extern _Atomic uint64_t dr_damaged;
/* Make the event that tells tools of damage known. */
int dr_control_register(void);
/* Count it, and tell. `link`: which brought it; NULL: unknown. */
OPAL_COLD void dr_note_damage(const mca_pml_peer_t *peer, mca_pml_link_t *link, size_t bytes);

OPAL_COLD void dr_on_damaged_header(dr_peer_t *d, const mca_btl_arrival_t *arrival);
OPAL_COLD void dr_on_damaged_payload(dr_peer_t *d, const mca_btl_arrival_t *arrival, uint64_t seq, uint32_t span);

#endif
