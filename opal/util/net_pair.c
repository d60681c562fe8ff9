/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Pairing the interfaces of two processes, from their business cards. */
#include "opal/util/net_pair.h"

#include <stdlib.h>
#include <string.h>

static bool has_loopback(const opal_net_card_t *card)
{
    for (unsigned i = 0; i < card->if_count; i++) {
        if (card->nif[i].loopback) {
            return true;
        }
    }
    return false;
}

static opal_net_way_t way_between(const opal_net_addr_t *a, const opal_net_addr_t *b, bool one_stack)
{
    if (a->family != b->family) {
        return OPAL_NET_WAY_NONE;
    }
    if (one_stack) {
        /* Each address of the stack reaches each other; the equal one is the straight way. */
        return opal_net_addr_equal(a, b) ? OPAL_NET_WAY_LOOPBACK : OPAL_NET_WAY_NONE;
    }
    bool local_a = opal_net_addr_is_link_local(a), local_b = opal_net_addr_is_link_local(b);
    if (local_a || local_b) {
        return local_a && local_b ? OPAL_NET_WAY_LINK_LOCAL : OPAL_NET_WAY_NONE;
    }
    if (opal_net_addr_same_net(a, b)) {
        return OPAL_NET_WAY_SUBNET;
    }
    return opal_net_addr_is_private(a) == opal_net_addr_is_private(b) ? OPAL_NET_WAY_ROUTED
                                                                      : OPAL_NET_WAY_MIXED;
}

/* The same address on two machines is that of a bridge inside each (docker0), not a way between
 * them. */
static bool is_duplicate(const opal_net_card_if_t *a, const opal_net_card_if_t *b)
{
    for (unsigned i = 0; i < a->addr_count; i++) {
        for (unsigned k = 0; k < b->addr_count; k++) {
            if (opal_net_addr_equal(&a->addr[i], &b->addr[k])) {
                return true;
            }
        }
    }
    return false;
}

static bool may_pair(const opal_net_card_t *x, unsigned i, const opal_net_card_t *y, unsigned k)
{
    const opal_net_card_if_t *a = &x->nif[i], *b = &y->nif[k];
    bool one_stack = x->domain == y->domain;
    if (a->loopback != b->loopback) {
        return false;
    }
    if (!one_stack) {
        return !a->loopback && !is_duplicate(a, b);
    }
    /* On one stack everything goes through the loopback device: one link is enough. */
    return a->loopback || !has_loopback(x) || !has_loopback(y);
}

static opal_net_way_t best_way(const opal_net_card_t *x, unsigned i, const opal_net_card_t *y,
                              unsigned k)
{
    opal_net_way_t best = OPAL_NET_WAY_NONE;
    if (!may_pair(x, i, y, k)) {
        return best;
    }
    for (unsigned a = 0; a < x->nif[i].addr_count; a++) {
        for (unsigned b = 0; b < y->nif[k].addr_count; b++) {
            opal_net_way_t way = way_between(&x->nif[i].addr[a], &y->nif[k].addr[b],
                                            x->domain == y->domain);
            best = way > best ? way : best;
        }
    }
    return best;
}

typedef struct candidate {
    opal_net_way_t way;
    uint32_t mbps; /* of the slower end */
    unsigned i, k;
} candidate_t;

/* Better way first, then faster, then in the order of the cards. */
static int compare_candidates(const void *left, const void *right)
{
    const candidate_t *a = left, *b = right;
    if (a->way != b->way) {
        return a->way > b->way ? -1 : 1;
    }
    if (a->mbps != b->mbps) {
        return a->mbps > b->mbps ? -1 : 1;
    }
    if (a->i != b->i) {
        return a->i < b->i ? -1 : 1;
    }
    return a->k < b->k ? -1 : a->k > b->k;
}

/* The pairing seen from the process with the lower name: partner[i] of x's interface i, and its
 * way. */
static void pair_all(const opal_net_card_t *x, const opal_net_card_t *y, int partner[OPAL_NET_CARD_IFS_MAX],
                     opal_net_way_t way[OPAL_NET_CARD_IFS_MAX])
{
    candidate_t list[OPAL_NET_CARD_IFS_MAX * OPAL_NET_CARD_IFS_MAX];
    bool taken[OPAL_NET_CARD_IFS_MAX] = {false};
    size_t count = 0;
    for (unsigned i = 0; i < x->if_count; i++) {
        partner[i] = -1;
        way[i] = OPAL_NET_WAY_NONE;
        for (unsigned k = 0; k < y->if_count; k++) {
            uint32_t a = x->nif[i].mbps, b = y->nif[k].mbps;
            candidate_t c = {best_way(x, i, y, k), a < b ? a : b, i, k};
            if (c.way != OPAL_NET_WAY_NONE) {
                list[count++] = c;
            }
        }
    }
    qsort(list, count, sizeof(list[0]), compare_candidates);
    for (size_t n = 0; n < count; n++) {
        if (partner[list[n].i] < 0 && !taken[list[n].k]) {
            partner[list[n].i] = (int) list[n].k;
            way[list[n].i] = list[n].way;
            taken[list[n].k] = true;
        }
    }
}

static const char *why_alone(const opal_net_card_t *ours, const opal_net_card_t *peers,
                             unsigned index)
{
    bool one_stack = ours->domain == peers->domain;
    if (peers->if_count == 0) {
        return "the peer uses no interface";
    }
    if (ours->nif[index].loopback && !one_stack) {
        return "the loopback interface does not leave this machine";
    }
    if (one_stack && !ours->nif[index].loopback && has_loopback(ours) && has_loopback(peers)) {
        return "the peer is on this machine and reached through the loopback interface";
    }
    for (unsigned k = 0; k < peers->if_count; k++) {
        if (!one_stack && is_duplicate(&ours->nif[index], &peers->nif[k])) {
            return "the peer has the same address: it belongs to a bridge inside each machine";
        }
    }
    return "no interface of the peer is left that this one could reach";
}

opal_net_pair_t opal_net_pair(const opal_net_card_t *ours, uint64_t our_name,
                            const opal_net_card_t *peers, uint64_t peer_name, unsigned index)
{
    int partner[OPAL_NET_CARD_IFS_MAX];
    opal_net_way_t way[OPAL_NET_CARD_IFS_MAX];
    opal_net_pair_t pair = {.peer_if = -1, .why = "", .way = OPAL_NET_WAY_NONE};
    if (our_name < peer_name) {
        pair_all(ours, peers, partner, way);
        pair.peer_if = partner[index];
        pair.way = way[index];
    } else {
        pair_all(peers, ours, partner, way);
        for (unsigned i = 0; i < peers->if_count; i++) {
            if (partner[i] == (int) index) {
                pair.peer_if = (int) i;
                pair.way = way[i];
            }
        }
    }
    if (pair.peer_if < 0) {
        pair.why = why_alone(ours, peers, index);
    }
    return pair;
}

unsigned opal_net_routes(const opal_net_card_t *ours, unsigned our_if, const opal_net_card_t *peers,
                        unsigned peer_if, opal_net_route_t routes[OPAL_NET_ROUTES_MAX])
{
    const opal_net_card_if_t *a = &ours->nif[our_if], *b = &peers->nif[peer_if];
    unsigned count = 0;
    for (int wanted = OPAL_NET_WAY_LOOPBACK; wanted > OPAL_NET_WAY_NONE; wanted--) {
        for (unsigned i = 0; i < a->addr_count; i++) {
            for (unsigned k = 0; k < b->addr_count && count < OPAL_NET_ROUTES_MAX; k++) {
                opal_net_way_t way =
                    way_between(&a->addr[i], &b->addr[k], ours->domain == peers->domain);
                if ((int) way == wanted) {
                    routes[count++] = (opal_net_route_t){a->addr[i], b->addr[k], way};
                }
            }
        }
    }
    return count;
}
