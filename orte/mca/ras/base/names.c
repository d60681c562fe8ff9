/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Which names mean which hosts. No name service is asked. */
#include "orte/mca/ras/base/base.h"

#include "opal/constants.h"
#include "opal/util/net_if.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

bool orte_ras_base_same_name(const char *a, const char *b)
{
    size_t a_first = strcspn(a, "."), b_first = strcspn(b, ".");

    if (strcasecmp(a, b) == 0) {
        return true;
    }
    if (orte_ras_base_is_address(a) || orte_ras_base_is_address(b)) {
        return false;
    }
    /* "n1" and "n1.cluster", but neither "n1.a" and "n1.b" nor an empty name. */
    return a_first == b_first && a_first > 0 && strncasecmp(a, b, a_first) == 0 &&
           (a[a_first] == '\0' || b[b_first] == '\0');
}

/* Is it an address of one of our interfaces? */
static bool is_own_address(const char *text)
{
    static opal_net_if_t *list; /* asked for once: a host file may have many addresses */
    static size_t count;
    unsigned char binary[16];
    bool v6 = strchr(text, ':') != NULL, found = false;

    if (inet_pton(v6 ? AF_INET6 : AF_INET, text, binary) != 1) {
        return false;
    }
    if (!v6 && binary[0] == 127) {
        return true;
    }
    if (list == NULL && opal_net_if_list(&list, &count) != OPAL_SUCCESS) {
        return false;
    }
    for (size_t i = 0; i < count && !found; i++) {
        for (unsigned k = 0; k < list[i].addr_count && !found; k++) {
            const opal_net_addr_t *addr = &list[i].addr[k];
            found = addr->family == (v6 ? AF_INET6 : AF_INET) &&
                    memcmp(addr->bytes, binary, v6 ? 16 : 4) == 0;
        }
    }
    return found;
}

bool orte_ras_base_is_self(const orte_runtime_t *rt, const char *name, const char *self)
{
    if (self != NULL && orte_ras_base_same_name(name, self)) {
        return true;
    }
    if (orte_ras_base_is_address(name)) {
        return strcmp(name, "::1") == 0 || is_own_address(name);
    }
    return orte_ras_base_same_name(name, "localhost") ||
           orte_ras_base_same_name(name, rt->hostname);
}

bool orte_ras_is_node(const orte_runtime_t *rt, const orte_node_t *node, const char *name)
{
    return orte_ras_base_same_name(node->name, name) ||
           (node->local && orte_ras_base_is_self(rt, name, NULL));
}

orte_node_t *orte_ras_find_node(const orte_runtime_t *rt, const orte_ras_host_t *host)
{
    const char *name = host->name;

    if (host->kind == ORTE_RAS_INDEX) {
        return host->number < rt->nnodes ? rt->nodes[host->number] : NULL;
    }
    for (int i = 0; name != NULL && i < rt->nnodes; i++) {
        if (strcasecmp(rt->nodes[i]->name, name) == 0) {
            return rt->nodes[i];
        }
    }
    if (name != NULL && rt->self->index >= 0 && orte_ras_base_is_self(rt, name, NULL)) {
        return rt->self;
    }
    size_t first = name == NULL ? 0 : strcspn(name, ".");
    for (int i = 0; i < rt->nnodes && first > 0; i++) {
        /* The first comparison is cheap, and fails nearly always. */
        if (strncasecmp(rt->nodes[i]->name, name, first) == 0 &&
            orte_ras_base_same_name(rt->nodes[i]->name, name)) {
            return rt->nodes[i];
        }
    }
    return NULL;
}
