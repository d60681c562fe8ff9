/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* HELLOs by rdma_cm. See btl_openib_cm.h. */
#include "ompi/mca/btl/openib/btl_openib_cm.h"

#ifdef HAWSER_HAVE_RDMACM

#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>
#include "ompi/mca/btl/base/btl_base_load.h"

enum { BACKLOG = 128, RESOLVE_MS = 2000 };

btl_openib_cm_lib_t btl_openib_cm_lib;

static const mca_btl_load_entry_t table[] = {
#define ENTRY(name) {"rdma_" #name, offsetof(btl_openib_cm_lib_t, name)},
    BTL_OPENIB_CM_FUNCTIONS(ENTRY)
#undef ENTRY
};

/* The IP address that a GID of RoCE is. False: one of a link, without a route. */
static bool ip_of(const common_verbs_addr_t *addr, uint16_t port, struct sockaddr_storage *sock)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    memset(sock, 0, sizeof(*sock));
    if (memcmp(addr->gid, mapped, sizeof(mapped)) == 0) {
        struct sockaddr_in *in = (struct sockaddr_in *) sock;
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        memcpy(&in->sin_addr, addr->gid + 12, 4);
        return true;
    }
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *) sock;
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    memcpy(&in6->sin6_addr, addr->gid, 16);
    return !(addr->gid[0] == 0xfe && (addr->gid[1] & 0xc0) == 0x80);
}

/* ---- Requests ---- */

void btl_openib_cm_forget(mca_btl_endpoint_t *ep)
{
    if (ep->cm_id) {
        btl_openib_cm_lib.destroy_id(ep->cm_id);
        ep->cm_id = NULL;
    }
}

void btl_openib_cm_greet(mca_btl_endpoint_t *ep)
{
    btl_openib_module_t *m = ep->module;
    struct sockaddr_storage from, to;
    if (m->cm_answering) {
        m->cm_greeted = ep; /* in the reply */
        return;
    }
    btl_openib_cm_forget(ep);
    if (!ip_of(&m->port->addr, 0, &from) || !ip_of(&ep->addr, ep->addr.service, &to) ||
        btl_openib_cm_lib.create_id(m->cm_channel, &ep->cm_id, ep, RDMA_PS_UDP) != 0) {
        ep->cm_id = NULL;
        return; /* the next time, perhaps */
    }
    if (btl_openib_cm_lib.resolve_addr(ep->cm_id, (struct sockaddr *) &from, (struct sockaddr *) &to, RESOLVE_MS) != 0) {
        btl_openib_cm_forget(ep);
    }
}

/* False: rdma_cm does not go on with it. */
static bool request(mca_btl_endpoint_t *ep)
{
    uint8_t data[BTL_OPENIB_HELLO];
    struct rdma_conn_param param = {.private_data = data, .private_data_len = sizeof(data)};
    if (!ep->qp) {
        return false;
    }
    btl_openib_hello_make(ep, data);
    return btl_openib_cm_lib.connect(ep->cm_id, &param) == 0;
}

/* Somebody's request: the HELLO in it is dealt with, and ours, if one is due, is the reply. */
static void answer(btl_openib_module_t *m, struct rdma_cm_id *id, const uint8_t *hello, size_t len)
{
    uint8_t data[BTL_OPENIB_HELLO];
    struct rdma_conn_param param = {.private_data = data, .private_data_len = sizeof(data)};
    m->cm_answering = true;
    m->cm_greeted = NULL;
    btl_openib_greeting_in(m, hello, len);
    btl_openib_lock(m);
    mca_btl_endpoint_t *ep = m->cm_greeted;
    m->cm_answering = false;
    bool due = ep && ep->qp;
    if (due) {
        btl_openib_hello_make(ep, data);
        param.qp_num = ep->qp->qp_num;
        due = btl_openib_cm_lib.accept(id, &param) == 0;
    }
    if (!due) {
        btl_openib_cm_lib.reject(id, NULL, 0);
    }
    btl_openib_cm_lib.destroy_id(id);
    btl_openib_unlock(m);
}

/* An event of an endpoint's request. */
static void step(btl_openib_module_t *m, struct rdma_cm_id *id, enum rdma_cm_event_type type, const uint8_t *hello, size_t len)
{
    btl_openib_lock(m);
    mca_btl_endpoint_t *ep = id->context;
    bool goes_on = type == RDMA_CM_EVENT_ADDR_RESOLVED    ? btl_openib_cm_lib.resolve_route(id, RESOLVE_MS) == 0
                   : type == RDMA_CM_EVENT_ROUTE_RESOLVED ? request(ep)
                                                          : false;
    if (!goes_on) {
        btl_openib_cm_forget(ep);
    }
    btl_openib_unlock(m);
    if (type == RDMA_CM_EVENT_ESTABLISHED && len > 0) {
        btl_openib_greeting_in(m, hello, len);
    }
}

/* ---- Events ---- */

/* Acknowledged before anything else: an id with an event that is not can't be destroyed. */
static void handle(btl_openib_module_t *m, struct rdma_cm_event *event)
{
    uint8_t hello[BTL_OPENIB_HELLO];
    struct rdma_cm_id *id = event->id;
    enum rdma_cm_event_type type = event->event;
    bool carries = type == RDMA_CM_EVENT_CONNECT_REQUEST || type == RDMA_CM_EVENT_ESTABLISHED;
    size_t len = carries && event->param.ud.private_data_len >= sizeof(hello) ? sizeof(hello) : 0;
    if (len > 0) {
        memcpy(hello, event->param.ud.private_data, len);
    }
    btl_openib_cm_lib.ack_cm_event(event);
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
        answer(m, id, hello, len);
    } else if (id != m->cm_listener) {
        step(m, id, type, hello, len);
    }
}

static void channel_ready(int fd, unsigned what, void *context)
{
    btl_openib_module_t *m = context;
    struct rdma_cm_event *event;
    (void) fd;
    (void) what;
    btl_openib_heat();
    while (btl_openib_cm_lib.get_cm_event(m->cm_channel, &event) == 0) {
        handle(m, event);
    }
}

/* ---- Start and end ---- */

const char *btl_openib_cm_open(btl_openib_module_t *m)
{
    struct sockaddr_storage at;
    const char *why = btl_openib_cm_lib.create_id ? NULL : mca_btl_load("librdmacm.so.1", table, sizeof(table) / sizeof(table[0]),
                                                                        &btl_openib_cm_lib);
    if (why) {
        return "librdmacm can't be loaded (Debian: apt install librdmacm1)";
    }
    if (!m->port->ethernet || !ip_of(&m->port->addr, 0, &at)) {
        return "rdma_cm needs a RoCE address that is one of IPv4, or of IPv6 with a route";
    }
    m->cm_channel = btl_openib_cm_lib.create_event_channel();
    if (!m->cm_channel) {
        return "rdma_cm does not work here: is the kernel's module rdma_ucm loaded, and may /dev/infiniband/rdma_cm be opened?";
    }
    if (fcntl(m->cm_channel->fd, F_SETFL, fcntl(m->cm_channel->fd, F_GETFL) | O_NONBLOCK) != 0 ||
        btl_openib_cm_lib.create_id(m->cm_channel, &m->cm_listener, NULL, RDMA_PS_UDP) != 0 ||
        btl_openib_cm_lib.bind_addr(m->cm_listener, (struct sockaddr *) &at) != 0 ||
        btl_openib_cm_lib.listen(m->cm_listener, BACKLOG) != 0) {
        return "rdma_cm can't listen at its address";
    }
    m->port->addr.service = ntohs(btl_openib_cm_lib.get_src_port(m->cm_listener));
    return mca_btl_openib.services->event_add(m->cm_channel->fd, MCA_BTL_EVENT_READ | MCA_BTL_EVENT_LATE, channel_ready, m,
                                              &m->cm_event) == MCA_SUCCESS
               ? NULL
               : "its events can't be waited for";
}

void btl_openib_cm_close(btl_openib_module_t *m)
{
    if (m->cm_event) {
        mca_btl_openib.services->event_del(m->cm_event);
    }
    if (m->cm_listener) {
        btl_openib_cm_lib.destroy_id(m->cm_listener);
    }
    if (m->cm_channel) {
        btl_openib_cm_lib.destroy_event_channel(m->cm_channel);
    }
}

#else

const char *btl_openib_cm_open(btl_openib_module_t *m)
{
    (void) m;
    return "this build has no librdmacm";
}

void btl_openib_cm_close(btl_openib_module_t *m)
{
    (void) m;
}

void btl_openib_cm_greet(mca_btl_endpoint_t *ep)
{
    (void) ep;
}

void btl_openib_cm_forget(mca_btl_endpoint_t *ep)
{
    (void) ep;
}

#endif
