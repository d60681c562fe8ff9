/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * What dr's files ask of its instance of the engine, which is compiled into pml_dr.c. The caller holds the peer's lock,
 * except for flush and path_timeout: there it holds none.
 */
#ifndef MCA_PML_DR_ENGINE_H
#define MCA_PML_DR_ENGINE_H

#include "ompi/mca/pml/base/pml_base_request.h"

void dr_engine_flush(mca_pml_peer_t *peer);
void dr_engine_queue_raw(mca_pml_peer_t *peer, const void *hdr, size_t hdr_len, const void *data, size_t len);
void dr_engine_count(mca_pml_link_t *link, size_t len);
void dr_engine_link_lost(mca_pml_peer_t *peer, mca_pml_link_t *link, const char *reason);
void dr_engine_link_back(mca_pml_peer_t *peer, mca_pml_link_t *link);
void dr_engine_path_timeout(mca_pml_peer_t *peer);

#endif
