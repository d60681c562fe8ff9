/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending again what is lost, over whichever link works; acknowledgments, probes and other things of dr's own. The
 * caller holds the peer's lock.
 */
#ifndef MCA_PML_DR_AGAIN_H
#define MCA_PML_DR_AGAIN_H

#include "ompi/mca/pml/dr/pml_dr_done.h"

/* Something of dr's own, without a range. */
int dr_send_control(dr_peer_t *d, const mca_btl_module_t *module, mca_btl_endpoint_t *endpoint, dr_kind_t kind,
                    uint64_t token, const void *header, size_t len);
/* Acknowledge what has come; if no link takes that now, it stays urgent. */
void dr_ack_now(dr_peer_t *d);
/* The same where nothing may follow for long. If it is lost its receiver waits for so long: twice, where something was lost lately. */
void dr_ack_last(dr_peer_t *d);
/* Send what is lost, and an acknowledgment if one is urgent. */
void dr_service(dr_peer_t *d, dr_out_t *out);

#endif
