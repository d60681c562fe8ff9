/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Connections: queue pairs, and the HELLOs by which two sides learn of each other's. */
#include "ompi/mca/btl/openib/btl_openib.h"
#include "ompi/mca/btl/openib/btl_openib_cm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum {
    MS = 1000 * 1000,          /* ns */
    GREET_FIRST_NS = 20 * MS,  /* until a HELLO is repeated; then twice as long, */
    GREET_MAX_NS = 500 * MS,   /* up to this */
    TIMER_US = 10 * 1000,      /* between two looks at who waits */
    AWAY_NS = 100 * MS,        /* so much of the time in which this process did not look counts as the peer's at most */
    RNR_FOR_EVER = 7,
    RNR_PAUSE = 12,            /* 0.64 ms */
    PSN_MASK = 0xffffff,
    ENDING_NS = 100 * MS,      /* for the adapter to say that it has given back all receives; not every one does */
};

/* ---- Queue pairs ---- */

static bool qp_make(mca_btl_endpoint_t *ep)
{
    btl_openib_module_t *m = ep->module;
    struct ibv_qp_init_attr attr = {
        .send_cq = m->cq, .recv_cq = m->cq, .srq = m->srq, .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = m->depth, .max_recv_wr = m->srq ? 0 : btl_openib_queue_receives(),
                .max_send_sge = m->sge_max, .max_recv_sge = 1, .max_inline_data = m->inline_max}};
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = m->port->number, .pkey_index = m->port->pkey_index,
                               .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};
    ep->qp = common_verbs_lib.create_qp(m->port->device->pd, &attr);
    if (!ep->qp) {
        return false;
    }
    if (common_verbs_lib.modify_qp(ep->qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                                      IBV_QP_ACCESS_FLAGS) != 0 ||
        !btl_openib_queue_attach(ep) || opal_hash_set(&m->qps, ep->qp->qp_num, ep) != OPAL_SUCCESS) {
        btl_openib_queue_detach(ep);
        common_verbs_lib.destroy_qp(ep->qp);
        ep->qp = NULL;
        return false;
    }
    return true;
}

/* To the peer's queue pair, as its HELLO says. */
static bool qp_ready(mca_btl_endpoint_t *ep, const btl_openib_hello_t *h)
{
    btl_openib_module_t *m = ep->module;
    uint8_t ours = m->port->addr.mtu;
    struct ibv_qp_attr rtr = {
        .qp_state = IBV_QPS_RTR, .path_mtu = h->addr.mtu < ours ? h->addr.mtu : ours, .dest_qp_num = h->qpn,
        .rq_psn = h->psn, .max_dest_rd_atomic = (uint8_t) m->rd_max, .min_rnr_timer = RNR_PAUSE};
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS, .sq_psn = ep->psn, .timeout = (uint8_t) mca_btl_openib.params.timeout,
        .retry_cnt = (uint8_t) mca_btl_openib.params.retry_count, .rnr_retry = RNR_FOR_EVER,
        .max_rd_atomic = (uint8_t) (h->rd < m->rd_begin ? h->rd : m->rd_begin)};
    common_verbs_route(m->port, &h->addr, (uint32_t) (ep->name ^ mca_btl_openib.services->job->self), &rtr.ah_attr);
    return common_verbs_lib.modify_qp(ep->qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                                        IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                                        IBV_QP_MIN_RNR_TIMER) == 0 &&
           common_verbs_lib.modify_qp(ep->qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                                        IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                                        IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

/* What the adapter has taken from the shared queue for a queue pair, and completions that nobody has looked at, may go with it: those
 * receives would be lost. In error it gives all of them back, and says so. */
bool btl_openib_ended(mca_btl_endpoint_t *ep)
{
    btl_openib_module_t *m = ep->module;
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    uint64_t now = mca_btl_openib.services->now_ns();
    if (!ep->qp || !m->srq || ep->peer_id == 0 || m->ending) {
        return true;
    }
    if (ep->ending_ns == 0) {
        if (common_verbs_lib.modify_qp(ep->qp, &error, IBV_QP_STATE) != 0) {
            return true;
        }
        ep->work |= BTL_OPENIB_FAIL; /* nothing is posted any more */
        ep->ending_ns = now + ENDING_NS;
        btl_openib_timer_start();
    }
    if (!ep->emptied && now < ep->ending_ns) {
        return false;
    }
    btl_openib_unlock(m);
    btl_openib_receive_all(m);
    btl_openib_lock(m);
    return true;
}

void btl_openib_disconnect(mca_btl_endpoint_t *ep)
{
    btl_openib_module_t *m = ep->module;
    if (ep->qp) {
        opal_hash_remove(&m->qps, ep->qp->qp_num);
        common_verbs_lib.destroy_qp(ep->qp); /* from now on the adapter touches no memory for it */
        m->connections--;
        *ep->promised -= ep->granted - ep->in + BTL_OPENIB_CONTROL_ROOM;
        btl_openib_queue_detach(ep);
    }
    if (ep->ah) {
        common_verbs_lib.destroy_ah(ep->ah);
    }
    btl_openib_rings_end(ep);
    btl_openib_cm_forget(ep);
    opal_list_remove(&ep->owing_item);
    ep->qp = NULL;
    ep->ah = NULL;
    ep->id = ep->peer_id = 0;
    ep->posted = ep->freed = 0;
    ep->ending_ns = 0;
    ep->emptied = false;
}

void btl_openib_fail_soon(mca_btl_endpoint_t *ep, const char *why)
{
    if (!(ep->work & BTL_OPENIB_FAIL)) {
        snprintf(ep->why, sizeof(ep->why), "%s", why);
        btl_openib_ask(ep, BTL_OPENIB_FAIL);
    }
}

/* ---- HELLOs ---- */

static bool make_handle(mca_btl_endpoint_t *ep)
{
    struct ibv_ah_attr attr;
    if (!ep->ah) {
        common_verbs_route(ep->module->port, &ep->addr, 0, &attr);
        ep->ah = common_verbs_lib.create_ah(ep->module->port->device->pd, &attr);
    }
    return ep->ah != NULL;
}

void btl_openib_hello_make(mca_btl_endpoint_t *ep, uint8_t out[BTL_OPENIB_HELLO])
{
    btl_openib_module_t *m = ep->module;
    btl_openib_hello_t h = {.from = mca_btl_openib.services->job->self, .to = ep->name, .id = ep->id,
                            .your_id = ep->peer_id, .qpn = ep->qp->qp_num, .psn = ep->psn,
                            .room = BTL_OPENIB_FIRST_ROOM, .port = (uint8_t) m->index, .rd = (uint8_t) m->rd_max,
                            .flags = ep->state == BTL_OPENIB_UP ? 0 : BTL_OPENIB_HELLO_ANSWER, .addr = m->port->addr};
    btl_openib_hello_write(&h, mca_btl_openib.services->job->secret, out);
}

/* A lost one is repeated, and so is one for which there was no room. */
static void greet(mca_btl_endpoint_t *ep)
{
    btl_openib_module_t *m = ep->module;
    struct ibv_send_wr *bad;
    if (m->cm_channel) {
        btl_openib_cm_greet(ep);
        return;
    }
    if (m->greeter_failed || m->greeting_sent - m->greeting_done >= BTL_OPENIB_GREETINGS || !make_handle(ep)) {
        return;
    }
    uint32_t number = m->greeting_sent + 1;
    uint8_t *to = m->greeting_memory + (size_t) (number % BTL_OPENIB_GREETINGS) * BTL_OPENIB_HELLO;
    struct ibv_sge sge = {.addr = (uintptr_t) to, .length = BTL_OPENIB_HELLO, .lkey = m->greeting_mr->lkey};
    struct ibv_send_wr wr = {.wr_id = BTL_OPENIB_SENT | number, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.ud = {.ah = ep->ah, .remote_qpn = ep->addr.qpn, .remote_qkey = m->qkey}};
    btl_openib_hello_make(ep, to);
    if (ibv_post_send(m->greeter, &wr, &bad) == 0) {
        m->greeting_sent = number;
    }
}

void btl_openib_connect(mca_btl_endpoint_t *ep)
{
    btl_openib_module_t *m = ep->module;
    btl_openib_disconnect(ep);
    ep->id = atomic_fetch_add_explicit(&mca_btl_openib.last_id, 1, memory_order_relaxed) + 1;
    if (getrandom(&ep->psn, sizeof(ep->psn), 0) != sizeof(ep->psn)) {
        ep->psn = ep->id;
    }
    ep->psn &= PSN_MASK;
    ep->state = BTL_OPENIB_GREETING;
    if (m->port_down || !btl_openib_module_make_room(m) || !qp_make(ep)) {
        btl_openib_fail_soon(ep, m->port_down ? "the port is down" : "no queue pair can be made for it");
        return;
    }
    m->connections++;
    ep->sent = ep->confirmed = ep->limit = ep->in = ep->handed = ep->told = 0;
    ep->granted = ep->room = BTL_OPENIB_FIRST_ROOM;
    *ep->promised += BTL_OPENIB_FIRST_ROOM + BTL_OPENIB_CONTROL_ROOM;
    common_verbs_pool_grow(ep->queue_in, *ep->promised);
    ep->farewell = false;
    ep->since_ns = mca_btl_openib.services->now_ns();
    ep->pause_ns = GREET_FIRST_NS;
    ep->greet_ns = ep->since_ns + ep->pause_ns;
    greet(ep);
    btl_openib_timer_start();
}

bool btl_openib_is_up(mca_btl_endpoint_t *ep)
{
    bool tell = ep->told_down && !ep->deleted;
    ep->state = BTL_OPENIB_UP;
    ep->told_down = false;
    ep->retry_ns = (uint64_t) mca_btl_openib.params.retry_first_ms * MS;
    BTL_OPENIB_LOG(MCA_LOG_DEBUG, "%s: connected to rank %u", ep->module->super.name, (uint32_t) ep->name);
    btl_openib_ask(ep, BTL_OPENIB_FLUSH | (ep->want_writable ? BTL_OPENIB_WRITABLE : 0));
    return tell;
}

/* The endpoint that a HELLO is for, made if the user wants it; under the lock, which is left for an upcall. */
static mca_btl_endpoint_t *greeted(btl_openib_module_t *m, const btl_openib_hello_t *h)
{
    mca_btl_endpoint_t *ep = opal_hash_find(&m->peers, h->from);
    if (!ep) {
        btl_openib_unlock(m);
        void *cookie = m->super.upcalls->incoming(&m->super, h->from);
        btl_openib_lock(m);
        ep = opal_hash_find(&m->peers, h->from);
        if (!ep && cookie) {
            ep = btl_openib_endpoint_make(m, h->from, h->port, &h->addr, cookie);
        }
    }
    return ep && ep->peer_port == h->port ? ep : NULL;
}

/* The peer's half of the connection. */
static void meet(mca_btl_endpoint_t *ep, const btl_openib_hello_t *h)
{
    ep->peer_id = ep->heard_id = h->id;
    ep->limit = h->room;
    if (!qp_ready(ep, h)) {
        btl_openib_fail_soon(ep, "its queue pair can't be made ready");
    }
}

/* Where the peer is now: its port may have another address than the one that it once published. */
static void note_address(mca_btl_endpoint_t *ep, const common_verbs_addr_t *addr)
{
    bool same = ep->addr.lid == addr->lid && ep->addr.qpn == addr->qpn && memcmp(ep->addr.gid, addr->gid, sizeof(addr->gid)) == 0;
    if (!same && ep->ah) {
        common_verbs_lib.destroy_ah(ep->ah);
        ep->ah = NULL;
    }
    ep->addr = *addr;
}

/* Under the lock, which is left for upcalls. True: it is up, and the user is to be told. */
static bool hello_in(mca_btl_endpoint_t *ep, const btl_openib_hello_t *h)
{
    bool up = false;
    note_address(ep, &h->addr);
    if (ep->peer_id != 0 && ep->peer_id != h->id && !(ep->work & BTL_OPENIB_FAIL)) {
        ep->farewell = true; /* if nothing was under way, nobody need know */
        btl_openib_fail_soon(ep, "the peer began a new connection");
    }
    if (ep->state == BTL_OPENIB_APART || ep->state == BTL_OPENIB_DOWN) {
        btl_openib_connect(ep);
    }
    if (ep->work & BTL_OPENIB_FAIL) {
        return false; /* it will greet again */
    }
    bool fresh = ep->state == BTL_OPENIB_GREETING && ep->peer_id == 0;
    if (fresh) {
        meet(ep, h);
    }
    if (ep->state == BTL_OPENIB_GREETING && h->your_id == ep->id && !(ep->work & BTL_OPENIB_FAIL)) {
        up = btl_openib_is_up(ep);
    }
    if ((h->flags & BTL_OPENIB_HELLO_ANSWER) && !(ep->work & BTL_OPENIB_FAIL)) {
        greet(ep);
    }
    return up;
}

void btl_openib_greeting_in(btl_openib_module_t *m, const uint8_t *data, size_t len)
{
    const mca_btl_job_t *job = mca_btl_openib.services->job;
    btl_openib_hello_t h;
    if (!btl_openib_hello_read(data, len, job->secret, &h) || h.to != job->self || h.from == job->self) {
        atomic_fetch_add_explicit(&m->strangers, 1, memory_order_relaxed);
        return;
    }
    btl_openib_lock(m);
    mca_btl_endpoint_t *ep = m->port_down ? NULL : greeted(m, &h);
    bool up = ep && h.id >= ep->heard_id && hello_in(ep, &h); /* else it comes late, from an earlier connection */
    btl_openib_unlock(m);
    if (up) {
        m->super.upcalls->state(ep->cookie, ep, MCA_BTL_STATE_UP, "connected again");
    }
}

/* ---- Time ---- */

/* A write of no bytes, which looks at no memory: its completion says whether the other queue pair is there. */
static void probe(mca_btl_endpoint_t *ep, uint64_t now)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    if (now >= ep->probe_ns) {
        ep->probe_ns = now + BTL_OPENIB_PROBE_NS;
        btl_openib_post(ep, &wr);
    }
}

/* In `ns` this process has looked at nothing: that is not the peer's silence. */
static void pass_over(mca_btl_endpoint_t *ep, uint64_t ns, uint64_t now)
{
    uint64_t *const times[] = {&ep->since_ns, &ep->silent_ns};
    for (int i = 0; i < 2; i++) {
        *times[i] = now - *times[i] > ns ? *times[i] + ns : now;
    }
}

/* True: there is more to wait for. */
static bool look_at(mca_btl_endpoint_t *ep, uint64_t now)
{
    const btl_openib_params_t *p = &mca_btl_openib.params;
    uint64_t most = ep->told_down ? (uint64_t) p->retry_max_ms * MS : GREET_MAX_NS;
    if (ep->ending_ns != 0) {
        if (now >= ep->ending_ns) {
            btl_openib_ask(ep, BTL_OPENIB_FAIL);
        }
        return true;
    }
    if (ep->state == BTL_OPENIB_DOWN) {
        if (now >= ep->greet_ns && !ep->module->port_down) {
            btl_openib_connect(ep);
        }
        return true;
    }
    if (ep->state == BTL_OPENIB_UP && ep->waiting) {
        ep->waiting = ep->held > 0 || btl_openib_remotes_any(ep);
        if (ep->waiting) {
            probe(ep, now);
        }
        return ep->waiting;
    }
    if (ep->state != BTL_OPENIB_GREETING || !ep->qp) {
        return false;
    }
    if (now >= ep->greet_ns) {
        greet(ep);
        ep->pause_ns = 2 * ep->pause_ns < most ? 2 * ep->pause_ns : most;
        ep->greet_ns = now + ep->pause_ns;
    }
    uint64_t heard_ns = ep->silent_ns > ep->since_ns ? ep->silent_ns : ep->since_ns;
    bool awaited = ep->held > 0 || btl_openib_remotes_any(ep);
    if (!ep->told_down && p->silence_ms > 0 && awaited && now - heard_ns > (uint64_t) p->silence_ms * MS) {
        ep->silent_ns = now;
        btl_openib_ask(ep, BTL_OPENIB_SILENT);
    }
    if (!ep->told_down && p->peer_timeout_ms > 0 && now - ep->since_ns > (uint64_t) p->peer_timeout_ms * MS) {
        btl_openib_fail_soon(ep, "the peer does not answer");
    }
    return true;
}

static void timer_fired(void *context)
{
    btl_openib_component_t *c = context;
    uint64_t now = c->services->now_ns(), due = c->timer_ns + AWAY_NS, away = now > due ? now - due : 0, name;
    bool more = false;
    void *ep;
    c->services->timer_del(c->timer);
    c->timer = NULL;
    for (size_t i = 0; i < c->module_count; i++) {
        btl_openib_module_t *m = &c->modules[i];
        btl_openib_receive(m); /* what has come counts before anybody is called silent */
        now = c->services->now_ns();
        btl_openib_lock(m);
        for (size_t cursor = 0; opal_hash_next(&m->peers, &cursor, &name, &ep);) {
            pass_over(ep, away, now);
            more |= look_at(ep, now);
        }
        opal_list_item_t *item, *tmp;
        OPAL_LIST_FOREACH (item, tmp, &m->dying) {
            btl_openib_ask(OPAL_CONTAINER_OF(item, mca_btl_endpoint_t, dying_item), BTL_OPENIB_FREE);
            more = true;
        }
        btl_openib_unlock(m);
        more |= btl_openib_rings_timer(m);
    }
    if (more) {
        btl_openib_timer_start();
    }
}

void btl_openib_timer_start(void)
{
    btl_openib_component_t *c = &mca_btl_openib;
    if (c->timer) {
        return;
    }
    c->timer_ns = c->services->now_ns() + (uint64_t) TIMER_US * 1000;
    if (c->services->timer_add(TIMER_US, timer_fired, c, &c->timer) != MCA_SUCCESS) {
        c->timer = NULL; /* the next to need it tries again */
    }
}
