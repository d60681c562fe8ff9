/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Choosing among a port's addresses. See common_verbs_gid.h. */
#include "ompi/mca/common/verbs/common_verbs_gid.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GIDS_MAX = 256, IB_SUBNET_BITS = 64, MAPPED_BITS = 96 };

/* ---- What the user wants ---- */

/* The CIDR blocks of a list of devices, ports and blocks. */
static int parse_blocks(const mca_btl_services_t *services, const char *component, const char *list,
                        opal_net_filter_t **filter)
{
    char *blocks = calloc(1, list ? strlen(list) + 2 : 1), why[200];
    size_t used = 0;
    for (const char *at = list; blocks && at && *at;) {
        size_t len = strcspn(at, ",");
        if (memchr(at, '/', len)) {
            used += (size_t) sprintf(blocks + used, "%s%.*s", used > 0 ? "," : "", (int) len, at);
        }
        at += len + (at[len] == ',');
    }
    int rc = blocks ? opal_net_filter_parse(blocks, filter, why, sizeof(why)) : OPAL_ERR_OUT_OF_RESOURCE;
    if (rc == OPAL_ERR_BAD_PARAM) {
        services->base->report("common-verbs:bad-list", "Parameter btl_%s_if_include or btl_%s_if_exclude: %s.", component,
                               component, why);
    }
    free(blocks);
    return rc == OPAL_SUCCESS ? MCA_SUCCESS : rc == OPAL_ERR_BAD_PARAM ? MCA_ERR_BAD_PARAM : MCA_ERR_OUT_OF_RESOURCE;
}

static int parse_shared(const mca_btl_services_t *services, const char *text, const char *name, opal_net_filter_t **filter)
{
    char why[200];
    int rc = opal_net_filter_parse(text, filter, why, sizeof(why));
    if (rc == OPAL_ERR_BAD_PARAM) {
        services->base->report("common-verbs:bad-net-list", "Parameter %s: %s.", name, why);
    }
    return rc == OPAL_SUCCESS ? MCA_SUCCESS : rc == OPAL_ERR_BAD_PARAM ? MCA_ERR_BAD_PARAM : MCA_ERR_OUT_OF_RESOURCE;
}

int common_verbs_gids_begin(common_verbs_gids_t *g, const mca_btl_services_t *services, const char *component,
                            const common_verbs_params_t *w)
{
    const opal_net_params_t *shared;
    *g = (common_verbs_gids_t){.ifs = NULL};
    bool own = (w->if_include && *w->if_include) || (w->if_exclude && *w->if_exclude);
    int rc = MCA_SUCCESS;
    if (own) {
        rc = parse_blocks(services, component, w->if_include, &g->include);
        rc = rc == MCA_SUCCESS ? parse_blocks(services, component, w->if_exclude, &g->exclude) : rc;
    } else if (opal_net_params(services->base, &shared) == OPAL_SUCCESS) {
        rc = parse_shared(services, shared->include, "net_include", &g->include);
        rc = rc == MCA_SUCCESS ? parse_shared(services, shared->exclude, "net_exclude", &g->exclude) : rc;
    }
    if (opal_net_if_list(&g->ifs, &g->if_count) != OPAL_SUCCESS) {
        g->ifs = NULL;
        g->if_count = 0;
    }
    return rc;
}

void common_verbs_gids_end(common_verbs_gids_t *g)
{
    free(g->ifs);
    free(g->include);
    free(g->exclude);
    *g = (common_verbs_gids_t){.ifs = NULL};
}

/* ---- One address ---- */

bool common_verbs_gid_is_ipv4(const uint8_t gid[16])
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return memcmp(gid, mapped, sizeof(mapped)) == 0;
}

/* RoCE: the interface that has this address, with it alone; without a name: none that this process sees. */
static opal_net_if_t interface_of(const common_verbs_gids_t *g, const uint8_t gid[16])
{
    bool mapped = common_verbs_gid_is_ipv4(gid);
    opal_net_if_t found = {.addr_count = 1, .addr[0] = {.family = mapped ? AF_INET : AF_INET6, .prefix = mapped ? 32 : 128}};
    memcpy(found.addr[0].bytes, mapped ? gid + 12 : gid, mapped ? 4 : 16);
    for (size_t i = 0; i < g->if_count; i++) {
        for (unsigned k = 0; k < g->ifs[i].addr_count; k++) {
            if (opal_net_addr_equal(&g->ifs[i].addr[k], &found.addr[0])) {
                found.addr[0].prefix = g->ifs[i].addr[k].prefix;
                memcpy(found.name, g->ifs[i].name, sizeof(found.name));
                return found;
            }
        }
    }
    return found;
}

static bool is_wanted(const common_verbs_gids_t *g, const uint8_t gid[16])
{
    opal_net_if_t nif = interface_of(g, gid);
    return (!g->include || g->include->count == 0 || opal_net_filter_match(g->include, &nif)) &&
           !(g->exclude && opal_net_filter_match(g->exclude, &nif));
}

/* Bits of the GID that name the subnet; 0: not known. */
static uint8_t subnet_bits(const common_verbs_gids_t *g, const uint8_t gid[16])
{
    opal_net_if_t nif = interface_of(g, gid);
    return (uint8_t) (nif.name[0] == 0 ? 0 : nif.addr[0].prefix + (common_verbs_gid_is_ipv4(gid) ? MAPPED_BITS : 0));
}

/* RoCE v2 over IPv4, over routed IPv6, over link-local IPv6; then RoCE v1. */
static int gid_rank(const struct ibv_gid_entry *e)
{
    bool link_local = e->gid.raw[0] == 0xfe && (e->gid.raw[1] & 0xc0) == 0x80;
    if (e->gid_type != IBV_GID_TYPE_ROCE_V2) {
        return 1;
    }
    return common_verbs_gid_is_ipv4(e->gid.raw) ? 4 : link_local ? 2 : 3;
}

/* ---- The choice ---- */

const char *common_verbs_gid_choose(const common_verbs_gids_t *g, common_verbs_port_t *p, int index)
{
    struct ibv_gid_entry e, best = {0};
    int best_rank = 0;
    bool any = false;
    for (int i = 0; i < GIDS_MAX; i++) {
        if ((index >= 0 ? i != index : !p->ethernet && i > 0) ||
            common_verbs_lib.query_gid_ex(p->device->context, p->number, (uint32_t) i, &e, 0, sizeof(e)) != 0) {
            continue;
        }
        any = true;
        int rank = p->ethernet ? gid_rank(&e) : 1;
        if (rank > best_rank && (!p->ethernet || is_wanted(g, e.gid.raw))) {
            best = e;
            best_rank = rank;
        }
    }
    if (best_rank == 0) {
        return any ? "none of its addresses is one that the user wants (if_include, if_exclude, net_include, net_exclude)"
               : index >= 0 ? "it has no address with the index in gid_index" : "it has no address (GID)";
    }
    p->gid_index = (uint8_t) best.gid_index;
    p->gid_type = best.gid_type;
    memcpy(p->addr.gid, best.gid.raw, 16);
    p->addr.prefix = p->ethernet ? subnet_bits(g, p->addr.gid) : IB_SUBNET_BITS;
    return NULL;
}

int common_verbs_gid_find(const common_verbs_port_t *p)
{
    struct ibv_gid_entry e;
    for (int i = 0; i < GIDS_MAX; i++) {
        if (common_verbs_lib.query_gid_ex(p->device->context, p->number, (uint32_t) i, &e, 0, sizeof(e)) == 0 &&
            e.gid_type == p->gid_type && memcmp(e.gid.raw, p->addr.gid, sizeof(p->addr.gid)) == 0) {
            return i;
        }
    }
    return -1;
}
