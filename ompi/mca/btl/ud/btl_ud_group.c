/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups: one datagram to all who have joined (MCA_BTL_CAP_MULTICAST). The group's address comes from its number and the
 * job's secret; the switch, and the kernel of each host, are asked for it by joining at the IP level, too: an adapter that is
 * told alone gets nothing, as the network does not know of it. So this is for RoCE ports whose interface the process sees. (On
 * InfiniBand the subnet's manager would have to be asked.)
 *
 * Datagrams have the header of all others (btl_ud_wire.h), with a key that all of the job have. What a sender has sent is
 * numbered, and handed up once. Groups belong to the thread that polls, but for sending.
 */
#include "ompi/mca/btl/ud/btl_ud.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MULTICAST_QPN = 0xffffff, MAPPED = 12 /* bytes before an IPv4 address in a GID */ };

struct mca_btl_group {
    opal_list_item_t item;      /* in the module's list */
    btl_ud_module_t *module;
    mca_btl_group_fn_t fn;
    void *context;
    uint32_t tag, epoch;
    opal_siphash_key_t key;
    union ibv_gid gid;
    struct ibv_ah *ah;
    int socket;                 /* which has joined for us */
    bool attached;
    uint32_t sent;              /* under the module's lock */
    opal_hash_t senders;        /* sender_t by name */
};

/* What has come from one of the members. */
typedef struct sender {
    uint32_t epoch;
    btl_ud_seen_t numbers;
} sender_t;

/* ---- The network ---- */

static bool has_gid(const struct sockaddr *a, const uint8_t gid[16])
{
    if (!a || a->sa_family != (common_verbs_gid_is_ipv4(gid) ? AF_INET : AF_INET6)) {
        return false;
    }
    return a->sa_family == AF_INET
               ? memcmp(&((const struct sockaddr_in *) (const void *) a)->sin_addr, gid + MAPPED, 4) == 0
               : memcmp(&((const struct sockaddr_in6 *) (const void *) a)->sin6_addr, gid, 16) == 0;
}

/* The index of the interface with the port's address; 0: this process sees none. */
static unsigned interface_of(const common_verbs_port_t *port)
{
    struct ifaddrs *all, *i;
    if (getifaddrs(&all) != 0) {
        return 0;
    }
    for (i = all; i && !has_gid(i->ifa_addr, port->addr.gid); i = i->ifa_next) {
    }
    unsigned index = i ? if_nametoindex(i->ifa_name) : 0;
    freeifaddrs(all);
    return index;
}

bool btl_ud_groups_possible(const common_verbs_port_t *port)
{
    return port->ethernet && interface_of(port) != 0;
}

/* As long as it is open the kernel wants what is sent to this address. -1: it can't be had. */
static int join_network(const union ibv_gid *gid, unsigned interface)
{
    bool v4 = common_verbs_gid_is_ipv4(gid->raw);
    int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;
    if (fd < 0) {
        return -1;
    }
    if (v4) {
        struct ip_mreqn wanted = {.imr_ifindex = (int) interface};
        memcpy(&wanted.imr_multiaddr, gid->raw + MAPPED, 4);
        rc = setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &wanted, sizeof(wanted));
    } else {
        struct ipv6_mreq wanted = {.ipv6mr_interface = interface};
        memcpy(&wanted.ipv6mr_multiaddr, gid->raw, 16);
        rc = setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &wanted, sizeof(wanted));
    }
    if (rc != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* ---- Joining and leaving ---- */

static struct ibv_ah *make_ah(const btl_ud_module_t *m, const union ibv_gid *gid)
{
    common_verbs_addr_t addr = {.qpn = MULTICAST_QPN};
    struct ibv_ah_attr attr;
    memcpy(addr.gid, gid->raw, 16);
    common_verbs_route(m->port, &addr, 0, &attr);
    return common_verbs_lib.create_ah(m->port->device->pd, &attr);
}

static int join(mca_btl_group_t *g)
{
    btl_ud_module_t *m = g->module;
    g->socket = join_network(&g->gid, interface_of(m->port));
    if (g->socket < 0) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    g->ah = make_ah(m, &g->gid);
    g->attached = g->ah && common_verbs_lib.attach_mcast(m->qp[0].qp, &g->gid, 0) == 0;
    return g->attached ? MCA_SUCCESS : MCA_ERR_NOT_AVAILABLE;
}

void btl_ud_group_leave(mca_btl_group_t *g)
{
    size_t cursor = 0;
    uint64_t name;
    void *sender;
    if (g->attached) {
        common_verbs_lib.detach_mcast(g->module->qp[0].qp, &g->gid, 0);
    }
    if (g->ah) {
        common_verbs_lib.destroy_ah(g->ah);
    }
    if (g->socket >= 0) {
        close(g->socket);
    }
    while (opal_hash_next(&g->senders, &cursor, &name, &sender)) {
        free(sender);
    }
    opal_hash_free(&g->senders);
    opal_list_remove(&g->item);
    free(g);
}

void btl_ud_groups_end(btl_ud_module_t *m)
{
    opal_list_item_t *item;
    while ((item = opal_list_first(&m->groups))) {
        btl_ud_group_leave(OPAL_CONTAINER_OF(item, mca_btl_group_t, item));
    }
}

void btl_ud_groups_renew(btl_ud_module_t *m)
{
    opal_list_item_t *item, *tmp;
    OPAL_LIST_FOREACH (item, tmp, &m->groups) {
        mca_btl_group_t *g = OPAL_CONTAINER_OF(item, mca_btl_group_t, item);
        struct ibv_ah *ah = make_ah(m, &g->gid), *old = g->ah;
        if (ah) {
            btl_ud_lock(&m->lock);
            g->ah = ah;
            btl_ud_unlock(&m->lock);
            common_verbs_lib.destroy_ah(old);
        }
    }
}

int btl_ud_group_join(mca_btl_module_t *super, uint64_t id, mca_btl_group_fn_t fn, void *context, mca_btl_group_t **group)
{
    btl_ud_module_t *m = (btl_ud_module_t *) super;
    mca_btl_group_t *g = calloc(1, sizeof(*g));
    if (!g) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    *g = (mca_btl_group_t){.module = m, .fn = fn, .context = context, .socket = -1,
                           .epoch = atomic_fetch_add_explicit(&mca_btl_ud.epoch, 1, memory_order_relaxed)};
    btl_ud_group_secrets(mca_btl_ud.services->job->secret, id, common_verbs_gid_is_ipv4(m->port->addr.gid), &g->tag, &g->key, g->gid.raw);
    opal_list_append(&m->groups, &g->item);
    int rc = join(g);
    if (rc != MCA_SUCCESS) {
        btl_ud_group_leave(g);
        return rc;
    }
    *group = g;
    return MCA_SUCCESS;
}

/* ---- Sending ---- */

int btl_ud_group_send(mca_btl_group_t *g, const void *header, size_t header_len, const void *payload, size_t len)
{
    btl_ud_module_t *m = g->module;
    size_t all = header_len + len;
    if (all == 0 || all > m->super.limits.max_frag) {
        return MCA_ERR_BAD_PARAM;
    }
    btl_ud_lock(&m->lock);
    uint8_t *entry, *to;
    btl_ud_qp_t *q = btl_ud_entry(m, &entry);
    if (q) {
        const btl_ud_header_t h = {
            .from = mca_btl_ud.services->job->self, .epoch = g->epoch, .peer_epoch = g->tag, .type = BTL_UD_CAST,
            .port = (uint8_t) m->index, .room = 1, .len = (uint16_t) all, .at = ++g->sent, .qpn = m->port->addr.qpn};
        to = entry + BTL_UD_HEADER;
        if (header_len > 0) {
            memcpy(to, header, header_len);
        }
        if (len > 0) {
            memcpy(to + header_len, payload, len);
        }
        btl_ud_header_write(entry, &h);
        btl_ud_code_put(&g->key, entry, BTL_UD_HEADER + all);
        btl_ud_post(m, q, &(btl_ud_way_t){g->ah, MULTICAST_QPN}, entry, BTL_UD_HEADER + all);
    }
    btl_ud_unlock(&m->lock);
    btl_ud_heat();
    return q ? MCA_SUCCESS : MCA_ERR_AGAIN;
}

/* ---- Receiving ---- */

/* Once at most, and not from a life that the sender has ended. */
static bool is_new(mca_btl_group_t *g, const btl_ud_header_t *h)
{
    sender_t *s = opal_hash_find(&g->senders, h->from);
    if (!s) {
        s = calloc(1, sizeof(*s));
        if (!s || opal_hash_set(&g->senders, h->from, s) != OPAL_SUCCESS) {
            free(s);
            return false;
        }
        s->epoch = h->epoch;
    }
    if ((int32_t) (h->epoch - s->epoch) > 0) {
        *s = (sender_t){.epoch = h->epoch};
    }
    return h->epoch == s->epoch && btl_ud_seen_add(&s->numbers, h->at);
}

bool btl_ud_group_arrived(btl_ud_module_t *m, const btl_ud_header_t *h, const uint8_t *datagram, size_t len)
{
    opal_list_item_t *item, *tmp;
    bool ours = false;
    if (h->from == mca_btl_ud.services->job->self) {
        return true; /* our own comes back */
    }
    OPAL_LIST_FOREACH (item, tmp, &m->groups) {
        mca_btl_group_t *g = OPAL_CONTAINER_OF(item, mca_btl_group_t, item);
        if (g->tag == h->peer_epoch && btl_ud_code(&g->key, datagram, len) == btl_ud_code_get(datagram)) {
            ours = true;
            if (is_new(g, h)) {
                g->fn(g->context, h->from, datagram + BTL_UD_HEADER, h->len);
            }
            break;
        }
    }
    return ours;
}
