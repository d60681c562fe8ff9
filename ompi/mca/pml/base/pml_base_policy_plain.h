/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What a policy answers to the engine if it puts nothing in front of fragments and keeps nothing of them. */
#ifndef MCA_PML_BASE_POLICY_PLAIN_H
#define MCA_PML_BASE_POLICY_PLAIN_H

#include <limits.h>
#include "ompi/mca/pml/base/pml_base_request.h"

enum { POLICY_ROOM = 0, POLICY_KEEPS = 0, POLICY_IN_PLACE = 0, POLICY_FETCH = 1, POLICY_FETCH_PIECE = INT_MAX, POLICY_LOSSY = 0, POLICY_VERIFIES = 0 };

static inline int policy_whole(mca_pml_peer_t *peer, mca_pml_link_t *link, const void *hdr, size_t hdr_len, const void *data, size_t len)
{
    (void) peer;
    (void) link;
    (void) hdr;
    (void) hdr_len;
    (void) data;
    (void) len;
    return MCA_ERR_NOT_AVAILABLE;
}

static inline int policy_pieces(mca_pml_peer_t *peer, mca_pml_link_t *link, const mca_pml_hdr_rndv_t *first, const mca_pml_hdr_frag_t *more,
                                const void *data, size_t len)
{
    (void) peer;
    (void) link;
    (void) first;
    (void) more;
    (void) data;
    (void) len;
    return MCA_ERR_NOT_AVAILABLE;
}

static inline int policy_parts(mca_pml_link_t *link, const void *hdr, size_t hdr_len, const void *data, size_t len)
{
    return link->module->ops->send_parts(link->endpoint, hdr, hdr_len, data, len);
}

static inline size_t policy_wide(const mca_pml_link_t *link)
{
    (void) link;
    return 0;
}

static inline void policy_received(mca_pml_peer_t *peer)
{
    (void) peer;
}

static inline bool policy_place(mca_pml_peer_t *peer, const void *head, size_t head_len, size_t len,
                                mca_pml_placing_t *placing)
{
    (void) peer;
    (void) head;
    (void) head_len;
    (void) len;
    (void) placing;
    return true;
}

static inline void policy_unplace(mca_pml_peer_t *peer, const mca_pml_placing_t *placing)
{
    (void) peer;
    (void) placing;
}

static inline bool policy_trusts(const void *head, size_t head_len)
{
    (void) head;
    (void) head_len;
    return true;
}

static inline bool policy_checks(void)
{
    return false;
}

static inline uint32_t policy_sum(const mca_pml_peer_t *peer, bool incoming, const void *data, size_t len)
{
    (void) peer;
    (void) incoming;
    (void) data;
    (void) len;
    return 0;
}

static inline void policy_spoilt(mca_pml_peer_t *peer, mca_pml_link_t *link, size_t len)
{
    (void) peer;
    (void) link;
    (void) len;
}

static inline bool policy_returned(mca_pml_peer_t *peer, const void *data, size_t len)
{
    (void) peer;
    (void) data;
    (void) len;
    return false;
}

static inline void policy_link(mca_pml_peer_t *peer, mca_pml_link_t *link, bool up)
{
    (void) peer;
    (void) link;
    (void) up;
}

static inline void policy_doubt(mca_pml_peer_t *peer, const mca_pml_link_t *link)
{
    (void) peer;
    (void) link;
}

static inline void policy_writable(mca_pml_peer_t *peer, mca_pml_link_t *link)
{
    (void) peer;
    (void) link;
}

static inline void policy_fail(mca_pml_peer_t *peer)
{
    (void) peer;
}

static inline void policy_moved(mca_btl_descriptor_t *desc)
{
    (void) desc;
}

static inline bool policy_keep(mca_btl_descriptor_t *desc)
{
    (void) desc;
    return false;
}

static inline bool policy_keeps(const mca_pml_link_t *link)
{
    (void) link;
    return false;
}

static inline size_t policy_lends_from(void)
{
    return SIZE_MAX;
}

#endif
