/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Which interfaces are used: our business card, one module with two sockets for each. */
#include "ompi/mca/btl/udp/btl_udp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MTU_UNKNOWN = 1500 };

static void wanted_fill(opal_net_wanted_t *wanted)
{
    const btl_udp_component_t *c = &mca_btl_udp;
    *wanted = (opal_net_wanted_t){
        .name = "udp",
        .prefix = "btl_udp",
        .if_include = c->params.if_include,
        .if_exclude = c->params.if_exclude,
        .family = (int) c->params.family,
        .host = c->services->job->host,
        .base = c->services->base,
        .rejected = c->services->rejected,
    };
}

/* ---- Sockets ---- */

static bool set_int(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof(value)) == 0;
}

/* As much as is allowed: with privilege the system's limit does not count. */
static void set_buffer(int fd, int force, int option, uint64_t size)
{
    if (size > 0 && !set_int(fd, SOL_SOCKET, force, (int) size)) {
        set_int(fd, SOL_SOCKET, option, (int) size);
    }
}

/* Never fragmented on the way: a datagram that is too large for the path is an error that we hear
 * of. */
static void socket_options(btl_udp_module_t *m, btl_udp_socket_t *s, int family)
{
    const btl_udp_params_t *p = &mca_btl_udp.params;
    const char *name = mca_btl_udp.card.net.nif[m->nif].name;
    set_buffer(s->fd, SO_SNDBUFFORCE, SO_SNDBUF, p->sndbuf);
    set_buffer(s->fd, SO_RCVBUFFORCE, SO_RCVBUF, p->rcvbuf == 0 || p->rcvbuf > BTL_UDP_FRAG_WEIGHT ? p->rcvbuf : BTL_UDP_FRAG_WEIGHT);
    if (family == AF_INET) {
        set_int(s->fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
        set_int(s->fd, IPPROTO_IP, IP_RECVERR, 1);
    } else {
        set_int(s->fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
        set_int(s->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
        set_int(s->fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
    }
    /* With two interfaces in one subnet routing would use one of them for both. Refused without
     * privilege on old kernels: then routing decides. */
    if (opal_net_card_shares_subnet(&mca_btl_udp.card.net, m->nif) &&
        setsockopt(s->fd, SOL_SOCKET, SO_BINDTODEVICE, name, (socklen_t) strlen(name)) != 0) {
        BTL_UDP_LOG(MCA_LOG_DEBUG, "can't bind to %s: %s", name, strerror(errno));
    }
}

/* What the kernel really gives, half of it: datagrams weigh more there than they are charged for
 * here where network cards receive into pages. */
static uint64_t socket_budget(int fd)
{
    int size = 0;
    socklen_t len = sizeof(size);
    if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &len) != 0 || size < 0) {
        size = 0;
    }
    return (uint64_t) size / 2;
}

static int try_port(int fd, const opal_net_addr_t *addr, unsigned scope, unsigned port)
{
    struct sockaddr_storage sock;
    socklen_t len = opal_net_addr_to_sock(addr, scope, (uint16_t) port, &sock);
    return bind(fd, (struct sockaddr *) &sock, len);
}

/* Bind to any port in the range; processes of one machine start at different places. */
static int bind_in_range(int fd, const opal_net_addr_t *addr, unsigned scope, unsigned lo,
                         unsigned hi)
{
    unsigned span = hi - lo + 1;
    unsigned start = mca_btl_udp.services->job->local_rank * BTL_UDP_CHANNELS % span;
    for (unsigned i = 0; i < span; i++) {
        if (try_port(fd, addr, scope, lo + (start + i) % span) == 0) {
            return MCA_SUCCESS;
        }
        if (errno != EADDRINUSE) {
            break;
        }
    }
    return MCA_ERR_NOT_AVAILABLE;
}

static int socket_open(btl_udp_module_t *m, btl_udp_channel_id_t id, unsigned lo, unsigned hi)
{
    const opal_net_card_if_t *nif = &mca_btl_udp.card.net.nif[m->nif];
    struct sockaddr_storage sock;
    socklen_t len = sizeof(sock);
    btl_udp_socket_t *s = &m->socket[id];
    int family = nif->addr[0].family;
    s->module = m;
    s->channel = id;
    s->burst = 1;
    s->fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->fd < 0) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    socket_options(m, s, family);
    if (bind_in_range(s->fd, &nif->addr[0], if_nametoindex(nif->name), lo, hi) != MCA_SUCCESS ||
        getsockname(s->fd, (struct sockaddr *) &sock, &len) != 0) {
        mca_btl_udp.services->base->report(
            "btl-udp:no-port",
            "btl/udp can't receive on any port from %u to %u of interface %s on host %s: %s. Change "
            "btl_udp_port_min, btl_udp_port_range or net_ports.",
            lo, hi, nif->name, mca_btl_udp.services->job->host, strerror(errno));
        return MCA_ERR_NOT_AVAILABLE;
    }
    s->budget = socket_budget(s->fd);
    /* The port stands at the same place in both families' addresses. */
    mca_btl_udp.card.port[m->nif][id] = ntohs(((struct sockaddr_in *) (void *) &sock)->sin_port);
    return MCA_SUCCESS;
}

void btl_udp_module_close(btl_udp_module_t *m)
{
    for (int id = 0; id < BTL_UDP_CHANNELS; id++) {
        btl_udp_socket_t *s = &m->socket[id];
        if (s->event) {
            mca_btl_udp.services->event_del(s->event);
        }
        if (s->fd >= 0) {
            close(s->fd);
        }
        s->event = NULL;
        s->fd = -1;
    }
    pthread_mutex_destroy(&m->lock);
}

/* ---- Modules ---- */

static uint32_t interface_mtu(const char *name)
{
    struct ifreq request = {0};
    uint64_t asked = mca_btl_udp.params.mtu;
    int mtu = MTU_UNKNOWN, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    if (fd >= 0 && ioctl(fd, SIOCGIFMTU, &request) == 0) {
        mtu = request.ifr_mtu;
    }
    if (fd >= 0) {
        close(fd);
    }
    mtu = asked > 0 && (int) asked < mtu ? (int) asked : mtu;
    return mtu > BTL_UDP_MTU_MIN ? (uint32_t) mtu : BTL_UDP_MTU_MIN;
}

static void limits(const btl_udp_module_t *m, mca_btl_limits_t *l)
{
    const btl_udp_params_t *p = &mca_btl_udp.params;
    const opal_net_card_if_t *nif = &mca_btl_udp.card.net.nif[m->nif];
    size_t segments = m->datagram >= BTL_UDP_PEEK_MIN ? 1 : (size_t) p->segments;
    size_t whole = segments * btl_udp_segment_of(m->datagram);
    size_t eager = p->eager_limit + MCA_BTL_HEADER_MAX;
    l->max_frag = p->max_frag < whole ? p->max_frag : whole;
    l->eager_limit = eager < l->max_frag ? eager : l->max_frag;
    l->short_max = l->eager_limit;
    l->min_frag = p->min_frag < l->max_frag ? p->min_frag : l->max_frag;
    l->send_min = 1; /* nothing is copied but by the kernel */
    l->window = p->window;
    l->get_min = l->get_try = SIZE_MAX;
    l->bandwidth = nif->loopback ? p->loopback_bandwidth
                   : nif->mbps   ? (uint64_t) nif->mbps * 125000
                                 : p->bandwidth;
    l->latency_ns = nif->loopback ? 5000 : (uint32_t) p->latency_ns;
    l->exclusivity = (int32_t) p->exclusivity;
    l->caps = MCA_BTL_CAP_CAN_FAIL | MCA_BTL_CAP_PLACE | MCA_BTL_CAP_LET_GO |
              (nif->loopback ? MCA_BTL_CAP_LOCAL : 0);
}

static void offloads(btl_udp_module_t *m)
{
    const btl_udp_params_t *p = &mca_btl_udp.params;
    int fd = m->socket[BTL_UDP_LONG].fd;
    /* Where datagrams are large, each is peeked at and read to its place: none may be joined. */
    m->peek = m->datagram >= BTL_UDP_PEEK_MIN;
    m->gro = p->gro && !m->peek && set_int(fd, IPPROTO_UDP, UDP_GRO, 1);
    m->gso = p->gso && set_int(fd, IPPROTO_UDP, UDP_SEGMENT, 0);
}

static int module_init(btl_udp_module_t *m, unsigned nif, unsigned lo, unsigned hi)
{
    extern const mca_base_component_t mca_btl_udp_component;
    const opal_net_card_if_t *own = &mca_btl_udp.card.net.nif[nif];
    m->super.struct_size = sizeof(m->super);
    m->super.ops = &btl_udp_ops;
    m->super.component = &mca_btl_udp_component;
    snprintf(m->super.name, sizeof(m->super.name), "udp:%s", own->name);
    m->nif = nif;
    pthread_mutex_init(&m->lock, NULL);
    m->socket[BTL_UDP_SHORT].fd = m->socket[BTL_UDP_LONG].fd = -1;
    mca_btl_udp.card.mtu[nif] = interface_mtu(own->name);
    m->datagram = btl_udp_datagram_of(mca_btl_udp.card.mtu[nif], own->addr[0].family == AF_INET6);
    limits(m, &m->super.limits);
    for (int id = 0; id < BTL_UDP_CHANNELS; id++) {
        int rc = socket_open(m, (btl_udp_channel_id_t) id, lo, hi);
        if (rc != MCA_SUCCESS) {
            return rc;
        }
    }
    offloads(m);
    m->round = 1;
    for (int id = 0; id < BTL_UDP_CHANNELS; id++) {
        btl_udp_grant(m, (btl_udp_channel_id_t) id, 1);
    }
    return MCA_SUCCESS;
}

/* The one address of an interface that is used: IPv4 if it has one, and not a link-local one. */
static void one_address(opal_net_card_if_t *nif)
{
    unsigned best = 0;
    int best_rank = -1;
    for (unsigned i = 0; i < nif->addr_count; i++) {
        int rank = 2 * !opal_net_addr_is_link_local(&nif->addr[i]) +
                   (nif->addr[i].family == AF_INET);
        if (rank > best_rank) {
            best = i;
            best_rank = rank;
        }
    }
    nif->addr[0] = nif->addr[best];
    nif->addr_count = 1;
}

int btl_udp_make_modules(btl_udp_component_t *c)
{
    opal_net_wanted_t wanted;
    unsigned lo, hi;
    wanted_fill(&wanted);
    c->card.net = (opal_net_card_t){.version = BTL_UDP_VERSION, .links = 1};
    int rc = opal_net_card_choose(&wanted, &c->card.net);
    if (rc == MCA_SUCCESS) {
        rc = opal_net_port_range(&wanted, c->params.port_min, c->params.port_range, &lo, &hi);
    }
    if (rc != MCA_SUCCESS) {
        return rc;
    }
    c->modules = calloc(c->card.net.if_count, sizeof(*c->modules));
    c->module_list = calloc(c->card.net.if_count, sizeof(*c->module_list));
    if (!c->modules || !c->module_list) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    for (unsigned i = 0; rc == MCA_SUCCESS && i < c->card.net.if_count; i++) {
        one_address(&c->card.net.nif[i]);
        c->module_list[c->module_count++] = &c->modules[i].super;
        rc = module_init(&c->modules[i], i, lo, hi);
    }
    c->modules_open = c->module_count;
    return rc;
}
