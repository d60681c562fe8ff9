/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A module: its queues, pools and limits. */
#include "ompi/mca/btl/openib/btl_openib.h"
#include "ompi/mca/btl/openib/btl_openib_cm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "opal/util/le.h"
#include "opal/util/sha256.h"

enum {
    PAGE = 4096,
    GREETINGS_MAX = 512,   /* receives for HELLOs at most */
    SPARE_REQUESTS = 16,   /* work requests of a connection beyond its window */
    FIRST_CONNECTIONS = 8, /* that the completion queue has room for */
    RD_MAX = 16,
    LOW = 4,               /* the adapter tells when less than this part of the receives is left */
};

/* ---- The greeter ---- */

static uint32_t derive_qkey(void)
{
    static const char label[] = "hawser btl openib qkey";
    uint8_t digest[OPAL_SHA256_BYTES];
    opal_hmac_sha256_t ctx;
    opal_hmac_sha256_init(&ctx, mca_btl_openib.services->job->secret, 32);
    opal_hmac_sha256_update(&ctx, label, sizeof(label));
    opal_hmac_sha256_final(&ctx, digest);
    return opal_le_get32(digest) & 0x7fffffff; /* with the highest bit set, it would stand for the queue pair's own */
}

static bool greeter_ready(btl_openib_module_t *m)
{
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = m->port->number, .pkey_index = m->port->pkey_index, .qkey = m->qkey};
    if (common_verbs_lib.modify_qp(m->greeter, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) != 0) {
        return false;
    }
    to.qp_state = IBV_QPS_RTR;
    if (common_verbs_lib.modify_qp(m->greeter, &to, IBV_QP_STATE) != 0) {
        return false;
    }
    to.qp_state = IBV_QPS_RTS;
    return common_verbs_lib.modify_qp(m->greeter, &to, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0;
}

static int greeter_open(btl_openib_module_t *m)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = m->cq, .recv_cq = m->cq, .qp_type = IBV_QPT_UD,
        .cap = {.max_send_wr = BTL_OPENIB_GREETINGS, .max_recv_wr = GREETINGS_MAX, .max_send_sge = 1,
                .max_recv_sge = 1}};
    m->qkey = derive_qkey();
    m->greeter = common_verbs_lib.create_qp(m->port->device->pd, &attr);
    if (!m->greeter || !greeter_ready(m)) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    m->greeting_memory = aligned_alloc(PAGE, PAGE);
    _Static_assert(BTL_OPENIB_GREETINGS * BTL_OPENIB_HELLO <= PAGE, "HELLOs on their way out stand in one page");
    m->greeting_mr = m->greeting_memory ? common_verbs_lib.reg_mr(m->port->device->pd, m->greeting_memory, PAGE,
                                                                  IBV_ACCESS_LOCAL_WRITE) : NULL;
    common_verbs_pool_init(&m->greetings, m->port->device->pd, mca_btl_openib.threads, BTL_OPENIB_GRH + BTL_OPENIB_HELLO,
                           GREETINGS_MAX);
    m->greetings.qp = m->greeter;
    m->port->addr.qpn = m->greeter->qp_num;
    return m->greeting_mr && common_verbs_pool_grow(&m->greetings, 1) ? MCA_SUCCESS : MCA_ERR_OUT_OF_RESOURCE;
}

/* An adapter that is a program has its queue fail where the route to an address is gone for a moment. */
void btl_openib_greeter_repair(btl_openib_module_t *m)
{
    struct ibv_qp_attr to = {.qp_state = IBV_QPS_RESET}, again = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE};
    if (!m->greeter_failed || m->port_down || m->greeting_done != m->greeting_sent) {
        return;
    }
    if (atomic_load_explicit(&m->greetings.posted, memory_order_relaxed) > 0) { /* its sending half alone, or not yet all is back */
        m->greeter_failed = common_verbs_lib.modify_qp(m->greeter, &again, IBV_QP_STATE | IBV_QP_CUR_STATE) != 0;
        return;
    }
    BTL_OPENIB_LOG(MCA_LOG_DEBUG, "%s: its queue pair for greetings had failed", m->super.name);
    if (common_verbs_lib.modify_qp(m->greeter, &to, IBV_QP_STATE) == 0 && greeter_ready(m)) {
        m->greeter_failed = false;
        common_verbs_pool_post(&m->greetings, true);
    }
}

/* ---- Queues ---- */

static int cq_size(const btl_openib_module_t *m, unsigned connections)
{
    unsigned receives = m->srq ? 0 : btl_openib_queue_receives();
    return (int) (m->received.max + GREETINGS_MAX + BTL_OPENIB_GREETINGS + connections * (m->depth + receives));
}

bool btl_openib_module_make_room(btl_openib_module_t *m)
{
    int wanted = cq_size(m, m->connections + 1);
    if (wanted <= m->cq->cqe) {
        return true;
    }
    int most = m->port->device->attr.max_cqe, twice = cq_size(m, 2 * (m->connections + 1));
    return common_verbs_lib.resize_cq(m->cq, twice < most ? twice : most) == 0 && wanted <= m->cq->cqe;
}

void btl_openib_module_arm(btl_openib_module_t *m)
{
    ibv_req_notify_cq(m->cq, 0);
}

static void channel_ready(int fd, unsigned what, void *context)
{
    btl_openib_module_t *m = context;
    struct ibv_cq *cq;
    void *cq_context;
    (void) fd;
    (void) what;
    while (common_verbs_lib.get_cq_event(m->channel, &cq, &cq_context) == 0) {
        common_verbs_lib.ack_cq_events(cq, 1);
    }
    btl_openib_heat();
    if (btl_openib_receive(m) == 0) {
        btl_openib_module_arm(m); /* what rang has been dealt with already */
    }
}

/* What a queue pair can have here, tried with one. */
static bool try_qp(btl_openib_module_t *m)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = m->cq, .recv_cq = m->cq, .srq = m->srq, .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = m->depth, .max_recv_wr = m->srq ? 0 : btl_openib_queue_receives(),
                .max_send_sge = m->sge_max, .max_recv_sge = 1, .max_inline_data = m->inline_max}};
    struct ibv_qp *qp = common_verbs_lib.create_qp(m->port->device->pd, &attr);
    if (!qp) {
        attr.cap.max_inline_data = m->inline_max = BTL_OPENIB_PREFIX;
        qp = common_verbs_lib.create_qp(m->port->device->pd, &attr);
    }
    if (qp) {
        m->inline_max = attr.cap.max_inline_data < m->inline_max ? attr.cap.max_inline_data : m->inline_max;
        common_verbs_lib.destroy_qp(qp);
    }
    return qp && m->inline_max >= BTL_OPENIB_PREFIX;
}

static void arm_srq(btl_openib_module_t *m)
{
    struct ibv_srq_attr attr = {.srq_limit = m->received.buffers / LOW};
    common_verbs_lib.modify_srq(m->srq, &attr, IBV_SRQ_LIMIT);
}

static void qp_event(btl_openib_module_t *m, const struct ibv_async_event *e)
{
    btl_openib_lock(m);
    mca_btl_endpoint_t *ep = opal_hash_find(&m->qps, e->element.qp->qp_num);
    if (ep && ep->qp == e->element.qp && e->event_type == IBV_EVENT_QP_LAST_WQE_REACHED) {
        ep->emptied = true;
        if (ep->ending_ns != 0) {
            btl_openib_ask(ep, BTL_OPENIB_FAIL);
        }
    } else if (ep && ep->qp == e->element.qp) {
        btl_openib_fail_soon(ep, "its queue pair has failed");
    }
    btl_openib_unlock(m);
}

void btl_openib_event(common_verbs_device_t *device, const struct ibv_async_event *e)
{
    for (size_t i = 0; i < mca_btl_openib.module_count; i++) {
        btl_openib_module_t *m = &mca_btl_openib.modules[i];
        if (m->port->device != device) {
            continue;
        }
        if (e->event_type == IBV_EVENT_SRQ_LIMIT_REACHED && e->element.srq == m->srq) {
            btl_openib_heat();
            btl_openib_receive(m);
            common_verbs_pool_grow(&m->received, m->received.buffers + COMMON_VERBS_CHUNK);
            arm_srq(m);
        } else if ((e->event_type == IBV_EVENT_CQ_ERR && e->element.cq == m->cq) ||
                   (e->event_type == IBV_EVENT_SRQ_ERR && e->element.srq == m->srq)) {
            m->broken = true;
            btl_openib_port_changed(m->port, false, "one of its queues has failed");
        } else if (e->event_type == IBV_EVENT_QP_FATAL || e->event_type == IBV_EVENT_QP_REQ_ERR ||
                   e->event_type == IBV_EVENT_QP_ACCESS_ERR || e->event_type == IBV_EVENT_QP_LAST_WQE_REACHED) {
            qp_event(m, e);
        }
    }
}

static int queues_open(btl_openib_module_t *m)
{
    const btl_openib_params_t *p = &mca_btl_openib.params;
    const struct ibv_device_attr *a = &m->port->device->attr;
    struct ibv_context *context = m->port->device->context;
    uint32_t receives = (uint32_t) p->recv_max < (uint32_t) a->max_srq_wr ? (uint32_t) p->recv_max
                                                                         : (uint32_t) a->max_srq_wr;
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = receives, .max_sge = 1}};
    common_verbs_pool_init(&m->received, m->port->device->pd, mca_btl_openib.threads,
                           (uint32_t) (BTL_OPENIB_PREFIX + m->super.limits.max_frag), receives);
    common_verbs_pool_init(&m->small, m->port->device->pd, mca_btl_openib.threads,
                           sizeof(btl_openib_item_t) + BTL_OPENIB_SMALL + BTL_OPENIB_SLOT_TAIL, (uint32_t) p->send_max);
    common_verbs_pool_init(&m->large, m->port->device->pd, mca_btl_openib.threads,
                           (uint32_t) (sizeof(btl_openib_item_t) + m->super.limits.max_frag), (uint32_t) p->send_max);
    m->channel = common_verbs_lib.create_comp_channel(context);
    if (!m->channel || fcntl(m->channel->fd, F_SETFL, fcntl(m->channel->fd, F_GETFL) | O_NONBLOCK) != 0) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    bool shared = p->receive_queue == BTL_OPENIB_QUEUE_SHARED;
    m->srq = shared ? common_verbs_lib.create_srq(m->port->device->pd, &srq) : NULL;
    m->cq = common_verbs_lib.create_cq(context, cq_size(m, FIRST_CONNECTIONS), NULL, m->channel, 0);
    if (!m->cq || (shared && !m->srq) || !try_qp(m)) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    m->received.srq = m->srq;
    if (shared && !common_verbs_pool_grow(&m->received, (uint32_t) p->recv_num)) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    if (shared) {
        arm_srq(m);
    }
    return mca_btl_openib.services->event_add(m->channel->fd, MCA_BTL_EVENT_READ | MCA_BTL_EVENT_LATE, channel_ready, m, &m->event);
}

/* ---- Modules ---- */

static void limits(btl_openib_module_t *m, mca_btl_limits_t *l)
{
    const btl_openib_params_t *p = &mca_btl_openib.params;
    l->max_frag = (size_t) p->max_frag;
    l->short_max = l->eager_limit = l->max_frag;
    l->min_frag = l->max_frag < 1024 ? l->max_frag : 1024;
    l->send_min = SIZE_MAX; /* reserve() lends what the adapter sends from */
    l->window = (size_t) p->window * l->max_frag;
    l->get_min = (size_t) p->get_min;
    l->get_try = SIZE_MAX;
    l->bandwidth = m->port->bandwidth;
    l->latency_ns = (uint32_t) p->latency_ns;
    l->exclusivity = (int32_t) p->exclusivity;
    l->caps = MCA_BTL_CAP_RELIABLE | MCA_BTL_CAP_ORDERED | MCA_BTL_CAP_CAN_FAIL | MCA_BTL_CAP_LET_GO | MCA_BTL_CAP_PUT |
              MCA_BTL_CAP_GET;
    if (p->trust_reads == BTL_OPENIB_NEVER || (p->trust_reads == BTL_OPENIB_AUTO && !m->port->device->hardware)) {
        l->caps |= MCA_BTL_CAP_GET_UNSURE;
    }
}

static uint32_t at_most(int value, uint32_t most)
{
    return value < 1 ? 1 : (uint32_t) value < most ? (uint32_t) value : most;
}

int btl_openib_module_open(btl_openib_module_t *m, unsigned index)
{
    const btl_openib_params_t *p = &mca_btl_openib.params;
    m->super.struct_size = sizeof(m->super);
    m->super.ops = &btl_openib_ops;
    m->super.component = &mca_btl_openib_component;
    m->index = index;
    m->port = &mca_btl_openib.verbs.port[index];
    snprintf(m->super.name, sizeof(m->super.name), "openib:%.23s", m->port->name);
    m->inline_max = p->inline_max > BTL_OPENIB_PREFIX ? (uint32_t) p->inline_max : BTL_OPENIB_PREFIX;
    m->sge_max = at_most(m->port->device->attr.max_sge, MCA_BTL_IOV_MAX);
    m->read_sge_max = at_most(m->port->device->attr.max_sge_rd, m->sge_max);
    m->rd_max = at_most(m->port->device->attr.max_qp_rd_atom, RD_MAX);
    m->rd_begin = at_most(m->port->device->attr.max_qp_init_rd_atom, RD_MAX);
    m->depth = (uint32_t) p->window + SPARE_REQUESTS;
    pthread_mutex_init(&m->lock, NULL);
    opal_list_init(&m->dying);
    opal_list_init(&m->work);
    opal_list_init(&m->owing);
    opal_list_init(&m->starved);
    opal_list_init(&m->rings);
    opal_list_init(&m->spare_queues);
    m->eager_rdma = p->eager_rdma == BTL_OPENIB_ALWAYS || (p->eager_rdma == BTL_OPENIB_AUTO && m->port->device->hardware);
    limits(m, &m->super.limits);
    errno = 0;
    const char *why = common_verbs_cache_init(&m->cache, m->port->device->pd, mca_btl_openib.threads,
                                              (size_t) p->cache_bytes, (uint32_t) p->cache_count);
    if (why) {
        BTL_OPENIB_LOG(MCA_LOG_INFO, "%s: the user's memory is registered anew for each transfer: %s", m->super.name, why);
    }
    int rc = queues_open(m);
    if (rc == MCA_SUCCESS && p->connect == BTL_OPENIB_BY_RDMACM) {
        why = btl_openib_cm_open(m);
        if (why) {
            mca_btl_openib.services->rejected(m->super.name, why);
            return MCA_ERR_NOT_AVAILABLE;
        }
    } else if (rc == MCA_SUCCESS) {
        rc = greeter_open(m);
    }
    if (rc != MCA_SUCCESS) {
        mca_btl_openib.services->rejected(m->super.name, errno == ENOMEM || errno == EAGAIN
            ? "no memory can be registered; is the limit of locked memory (ulimit -l) too small?"
            : "its queues can't be made");
        return rc;
    }
    btl_openib_module_arm(m);
    return MCA_SUCCESS;
}

void btl_openib_module_look(btl_openib_module_t *m)
{
    uint32_t quiet = (uint32_t) mca_btl_openib.params.recv_num;
    btl_openib_lock(m);
    uint32_t least = m->promised > quiet ? m->promised : quiet;
    common_verbs_pool_post(&m->received, true);
    common_verbs_pool_look(&m->received, least);
    common_verbs_pool_look(&m->small, COMMON_VERBS_CHUNK);
    common_verbs_pool_look(&m->large, COMMON_VERBS_CHUNK);
    btl_openib_rings_look(m);
    btl_openib_unlock(m);
    common_verbs_cache_look(&m->cache);
    btl_openib_greeter_repair(m); /* if it could not be */
}

static void queues_close(btl_openib_module_t *m)
{
    if (m->event) {
        mca_btl_openib.services->event_del(m->event);
    }
    if (m->greeter) {
        common_verbs_lib.destroy_qp(m->greeter);
    }
    if (m->greeting_mr) {
        common_verbs_lib.dereg_mr(m->greeting_mr);
    }
    free(m->greeting_memory);
    if (m->srq) {
        common_verbs_lib.destroy_srq(m->srq);
    }
    if (m->cq) {
        common_verbs_lib.destroy_cq(m->cq);
    }
    if (m->channel) {
        common_verbs_lib.destroy_comp_channel(m->channel);
    }
}

/* All endpoints have gone. */
void btl_openib_module_close(btl_openib_module_t *m)
{
    if (!m->port) {
        return;
    }
    btl_openib_cm_close(m);
    queues_close(m);
    btl_openib_queues_free(m);
    common_verbs_pool_fini(&m->received);
    common_verbs_pool_fini(&m->small);
    common_verbs_pool_fini(&m->large);
    common_verbs_pool_fini(&m->greetings);
    common_verbs_cache_fini(&m->cache);
    opal_hash_free(&m->peers);
    opal_hash_free(&m->qps);
    pthread_mutex_destroy(&m->lock);
}
