/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Which interfaces are used: our business card and one module per interface and link. */
#include "ompi/mca/btl/tcp/btl_tcp.h"

#include <stdio.h>
#include <stdlib.h>

/* Of what is kept until it is confirmed there is to be room for several. */
static size_t alone_limit(size_t max_frag)
{
    const btl_tcp_params_t *p = &mca_btl_tcp.params;
    size_t most = p->keep_limit / BTL_TCP_KEPT_ALONE, limit = p->alone_limit < most ? p->alone_limit : most;
    limit += MCA_BTL_HEADER_MAX;
    return limit < max_frag ? limit : max_frag;
}

static void limits(mca_btl_limits_t *l, const opal_net_card_if_t *nif)
{
    const btl_tcp_params_t *p = &mca_btl_tcp.params;
    uint64_t bandwidth = nif->loopback ? p->loopback_bandwidth
                         : nif->mbps   ? (uint64_t) nif->mbps * 125000
                                       : p->bandwidth;
    l->eager_limit = p->eager_limit + MCA_BTL_HEADER_MAX;
    l->min_frag = p->min_frag;
    /* A fragment that occupies the link for long leaves the scheduler nothing to balance links
     * with. */
    uint64_t two_ms = bandwidth / 500;
    l->max_frag = (p->max_frag < two_ms ? p->max_frag : two_ms) + MCA_BTL_HEADER_MAX;
    l->max_frag = l->max_frag > l->eager_limit ? l->max_frag : l->eager_limit;
    l->short_max = alone_limit(l->max_frag);
    l->short_max = l->short_max > l->eager_limit ? l->short_max : l->eager_limit;
    l->send_min = p->send_min;
    l->get_min = SIZE_MAX;
    l->bandwidth = bandwidth / (uint64_t) p->links;
    l->window = p->window;
    l->latency_ns = nif->loopback ? 4000 : (uint32_t) p->latency_ns;
    l->exclusivity = (int32_t) p->exclusivity;
    l->caps = MCA_BTL_CAP_RELIABLE | MCA_BTL_CAP_ORDERED | MCA_BTL_CAP_CAN_FAIL |
              MCA_BTL_CAP_PLACE | MCA_BTL_CAP_LET_GO |
              (nif->loopback ? MCA_BTL_CAP_LOCAL : 0);
}

static void module_init(btl_tcp_module_t *m, unsigned nif, unsigned link)
{
    const opal_net_card_if_t *own = &mca_btl_tcp.card.nif[nif];
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
    m->bind_device = opal_net_card_shares_subnet(&mca_btl_tcp.card, nif);
    m->arp_exact = m->bind_device && btl_tcp_is_arp_exact(own->name);
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

void btl_tcp_wanted(opal_net_wanted_t *wanted)
{
    const btl_tcp_component_t *c = &mca_btl_tcp;
    *wanted = (opal_net_wanted_t){
        .name = "tcp",
        .prefix = "btl_tcp",
        .if_include = c->params.if_include,
        .if_exclude = c->params.if_exclude,
        .family = (int) c->params.family,
        .host = c->services->job->host,
        .base = c->services->base,
        .rejected = c->services->rejected,
    };
}

int btl_tcp_make_modules(btl_tcp_component_t *c)
{
    opal_net_wanted_t wanted;
    btl_tcp_wanted(&wanted);
    c->card = (opal_net_card_t){.version = BTL_TCP_VERSION, .links = (uint16_t) c->params.links};
    int rc = opal_net_card_choose(&wanted, &c->card);
    return rc == MCA_SUCCESS ? make_modules(c) : rc;
}
