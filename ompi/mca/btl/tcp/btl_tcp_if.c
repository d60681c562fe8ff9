/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Which interfaces are used: our business card and one module per interface and link. */
#include "ompi/mca/btl/tcp/btl_tcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Equal in processes on one network stack: this boot of the machine, this network namespace. */
static uint64_t network_domain(void)
{
    opal_sha256_t hash;
    uint8_t digest[OPAL_SHA256_BYTES], boot[64];
    struct stat ns = {0};
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    size_t len = file ? fread(boot, 1, sizeof(boot), file) : 0;
    if (file) {
        fclose(file);
    }
    if (len == 0) { /* no /proc: the host's name is the next best */
        len = strnlen(mca_btl_tcp.services->job->host, sizeof(boot));
        memcpy(boot, mca_btl_tcp.services->job->host, len);
    }
    if (stat("/proc/self/ns/net", &ns) != 0) {
        ns.st_dev = ns.st_ino = 0;
    }
    opal_sha256_init(&hash);
    opal_sha256_update(&hash, boot, len);
    opal_sha256_update(&hash, &ns.st_dev, sizeof(ns.st_dev));
    opal_sha256_update(&hash, &ns.st_ino, sizeof(ns.st_ino));
    opal_sha256_final(&hash, digest);
    return btl_tcp_get64(digest);
}

static bool family_wanted(const opal_net_addr_t *addr)
{
    int64_t family = mca_btl_tcp.params.family;
    return family == 0 || (family == 4) == (addr->family == AF_INET);
}

static void reject(const char *interface, const char *why)
{
    char link[32];
    snprintf(link, sizeof(link), "tcp:%s", interface);
    mca_btl_tcp.services->rejected(link, why);
}

static void card_add(btl_tcp_card_t *card, const opal_net_if_t *nif)
{
    btl_tcp_card_if_t *own = &card->nif[card->if_count];
    memset(own, 0, sizeof(*own));
    for (unsigned i = 0; i < nif->addr_count; i++) {
        if (family_wanted(&nif->addr[i])) {
            own->addr[own->addr_count++] = nif->addr[i];
        }
    }
    if (own->addr_count == 0) {
        reject(nif->name, "no address of the wanted family");
        return;
    }
    snprintf(own->name, sizeof(own->name), "%s", nif->name);
    own->loopback = (nif->flags & OPAL_NET_LOOPBACK) != 0;
    own->mbps = nif->mbps;
    card->if_count++;
}

static int parse_filter(const char *name, const char *text, opal_net_filter_t **filter)
{
    char why[200];
    int rc = opal_net_filter_parse(text, filter, why, sizeof(why));
    if (rc != OPAL_SUCCESS) {
        mca_btl_tcp.services->base->report("btl-tcp:bad-list", "Parameter %s: %s.", name, why);
    }
    return rc;
}

/* The user's lists: the component's own, or else those shared with the launcher. */
static int filters(opal_net_filter_t **include, opal_net_filter_t **exclude, const char **origin)
{
    const btl_tcp_params_t *p = &mca_btl_tcp.params;
    const mca_base_services_t *base = mca_btl_tcp.services->base;
    const opal_net_params_t *shared;
    int rc = opal_net_params(base, &shared);
    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    bool own = (p->if_include && *p->if_include) || (p->if_exclude && *p->if_exclude);
    const char *in = own ? p->if_include : shared->include,
               *ex = own ? p->if_exclude : shared->exclude;
    *origin = own ? "btl_tcp_if_include and btl_tcp_if_exclude" : "net_include and net_exclude";
    if (in && *in && ex && *ex) {
        base->report("btl-tcp:both-lists",
                     "The parameters %s are both set (\"%s\" and \"%s\"). They exclude each other: "
                     "say which "
                     "interfaces to use, or which not to.",
                     *origin, in, ex);
        return MCA_ERR_BAD_PARAM;
    }
    rc = parse_filter(own ? "btl_tcp_if_include" : "net_include", in, include);
    if (rc == MCA_SUCCESS) {
        rc = parse_filter(own ? "btl_tcp_if_exclude" : "net_exclude", ex, exclude);
    }
    return rc;
}

static void limits(mca_btl_limits_t *l, const btl_tcp_card_if_t *nif)
{
    const btl_tcp_params_t *p = &mca_btl_tcp.params;
    uint64_t bandwidth = nif->loopback ? p->loopback_bandwidth
                         : nif->mbps   ? (uint64_t) nif->mbps * 125000
                                       : p->bandwidth;
    l->eager_limit = p->eager_limit + MCA_BTL_HEADER_MAX;
    l->short_max = l->eager_limit < BTL_TCP_SHORT_MAX ? l->eager_limit : BTL_TCP_SHORT_MAX;
    l->min_frag = p->min_frag;
    /* A fragment that occupies the link for long leaves the scheduler nothing to balance links
     * with. */
    uint64_t two_ms = bandwidth / 500;
    l->max_frag = p->max_frag < two_ms ? p->max_frag : two_ms;
    l->max_frag = l->max_frag > l->eager_limit ? l->max_frag : l->eager_limit;
    l->send_min = p->send_min;
    l->get_min = SIZE_MAX;
    l->bandwidth = bandwidth / (uint64_t) p->links;
    l->window = p->window;
    l->latency_ns = nif->loopback ? 4000 : (uint32_t) p->latency_ns;
    l->exclusivity = (int32_t) p->exclusivity;
    l->caps = MCA_BTL_CAP_RELIABLE | MCA_BTL_CAP_ORDERED | MCA_BTL_CAP_CAN_FAIL |
              MCA_BTL_CAP_PLACE | (nif->loopback ? MCA_BTL_CAP_LOCAL : 0);
}

/* Do two of our interfaces stand in one subnet? Then routing alone would send everything through
 * one of them. */
static bool shares_subnet(const btl_tcp_card_t *card, unsigned index)
{
    for (unsigned k = 0; k < card->if_count; k++) {
        for (unsigned a = 0; k != index && a < card->nif[index].addr_count; a++) {
            for (unsigned b = 0; b < card->nif[k].addr_count; b++) {
                if (!opal_net_addr_is_link_local(&card->nif[k].addr[b]) &&
                    opal_net_addr_same_net(&card->nif[index].addr[a], &card->nif[k].addr[b])) {
                    return true;
                }
            }
        }
    }
    return false;
}

static void module_init(btl_tcp_module_t *m, unsigned nif, unsigned link)
{
    const btl_tcp_card_if_t *own = &mca_btl_tcp.card.nif[nif];
    extern const mca_base_component_t mca_btl_tcp_component;
    m->super.struct_size = sizeof(m->super);
    m->super.ops = &btl_tcp_ops;
    m->super.component = &mca_btl_tcp_component;
    if (link == 0) {
        snprintf(m->super.name, sizeof(m->super.name), "tcp:%s", own->name);
    } else {
        snprintf(m->super.name, sizeof(m->super.name), "tcp:%s#%u", own->name, link);
    }
    limits(&m->super.limits, own);
    m->nif = nif;
    m->link = link;
    m->kernel_index = if_nametoindex(own->name);
    m->bind_device = shares_subnet(&mca_btl_tcp.card, nif);
    pthread_mutex_init(&m->lock, NULL);
}

static int make_modules(btl_tcp_component_t *c)
{
    size_t links = c->card.links;
    c->modules = calloc(c->card.if_count * links, sizeof(*c->modules));
    c->module_list = calloc(c->card.if_count * links, sizeof(*c->module_list));
    if (!c->modules || !c->module_list) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    for (unsigned i = 0; i < c->card.if_count; i++) {
        for (unsigned link = 0; link < links; link++) {
            btl_tcp_module_t *m = &c->modules[i * links + link];
            module_init(m, i, link);
            c->module_list[c->module_count++] = &m->super;
        }
    }
    c->modules_open = c->module_count;
    return MCA_SUCCESS;
}

/* Has it an address that says where it leads? Link-local ones are the same everywhere. */
static bool is_numbered(const opal_net_if_t *nif)
{
    for (unsigned i = 0; i < nif->addr_count; i++) {
        if (family_wanted(&nif->addr[i]) && !opal_net_addr_is_link_local(&nif->addr[i])) {
            return true;
        }
    }
    return false;
}

static void choose(btl_tcp_card_t *card, const opal_net_if_t *list, size_t count,
                   const opal_net_filter_t *include, const opal_net_filter_t *exclude)
{
    bool numbered = false;
    for (size_t i = 0; i < count; i++) {
        numbered |= !*opal_net_if_unwanted(&list[i], include, exclude) && is_numbered(&list[i]) &&
                    !(list[i].flags & OPAL_NET_LOOPBACK);
    }
    for (size_t i = 0; i < count; i++) {
        const char *why = opal_net_if_unwanted(&list[i], include, exclude);
        if (!*why && card->if_count == BTL_TCP_IFS_MAX) {
            why = "more interfaces than can be used";
        } else if (!*why && numbered && include->count == 0 && !is_numbered(&list[i])) {
            why = "link-local addresses only, and not asked for";
        }
        if (*why) {
            reject(list[i].name, why);
        } else {
            card_add(card, &list[i]);
        }
    }
}

int btl_tcp_make_modules(btl_tcp_component_t *c)
{
    opal_net_filter_t *include = NULL, *exclude = NULL;
    opal_net_if_t *list = NULL;
    const char *origin;
    size_t count;
    int rc = filters(&include, &exclude, &origin);
    if (rc == MCA_SUCCESS && opal_net_if_list(&list, &count) != OPAL_SUCCESS) {
        BTL_TCP_LOG(MCA_LOG_ERROR, "can't list the network interfaces");
        rc = MCA_ERR_NOT_AVAILABLE;
    }
    if (rc != MCA_SUCCESS) {
        goto out;
    }
    c->card = (btl_tcp_card_t){.domain = network_domain(), .links = (uint16_t) c->params.links};
    choose(&c->card, list, count, include, exclude);
    if (c->card.if_count == 0) {
        c->services->base->report(
            "btl-tcp:no-interface",
            "No network interface is left for btl/tcp on host %s: of %zu interfaces none is "
            "up and admitted by the parameters %s (and btl_tcp_family). Change them, or "
            "leave btl/tcp out (--mca btl ^tcp).",
            c->services->job->host, count, origin);
        rc = MCA_ERR_NOT_AVAILABLE;
    } else {
        rc = make_modules(c);
    }
out:
    free(include);
    free(exclude);
    free(list);
    return rc;
}
