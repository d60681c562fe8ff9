/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the links did, told to the user (parameter pml_base_report_links, mpirun --report-links):
 * at first contact with another process of this host, and of another host, which links lead there,
 * and why others do not; at the end what went over them, summed over the processes of each host.
 * And a trace of fragments over time (pml_base_trace_links), for Perfetto or chrome://tracing.
 *
 * Nothing here stands in the way of a message while neither is asked for.
 */
#ifndef MCA_PML_BASE_REPORT_H
#define MCA_PML_BASE_REPORT_H

#include "ompi/mca/pml/base/pml_base_peer.h"

#pragma GCC visibility push(default)

int mca_pml_base_report_register_params(void);
int mca_pml_base_trace_register_params(void);

/* `peer` has its links now; `refusals`: who refused and why, or NULL. */
void mca_pml_base_report_start(const mca_pml_peer_t *peer, const char *refusals);
/* All messages are sent: collect from all processes, and print. A collective call if reports are
 * on, and nothing else. */
int mca_pml_base_report_end(void);

/* ---- Trace ---- */

extern bool mca_pml_base_trace_on;

/* A fragment was handed to a link at `from`, and confirmed or given back at `to` (ns; equal: at
 * once). `what`: static. The caller holds the peer's lock. */
void mca_pml_base_trace(const mca_pml_peer_t *peer, const mca_pml_link_t *link, const char *what,
                        uint64_t from, uint64_t to, size_t bytes, uint64_t offset);
/* Have the short messages of a peer's link noted, too. Under the peer's lock. */
void mca_pml_base_trace_link(const mca_pml_peer_t *peer, mca_pml_link_t *link);
/* Write the file. Peers still exist. */
void mca_pml_base_trace_end(void);
/* A file has one writer: where there are several processes its name has the rank. */
bool mca_pml_base_trace_is_named(void);

#pragma GCC visibility pop

#endif
