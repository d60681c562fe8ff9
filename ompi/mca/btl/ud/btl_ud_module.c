/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A module: completion queues, queue pairs, limits. */
#include "ompi/mca/btl/ud/btl_ud.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, ALIGN = 64 };

/* ---- Queue pairs ---- */

static int qp_ready(btl_ud_module_t *m, struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = m->port->number, .pkey_index = m->port->pkey_index, .qkey = mca_btl_ud.qkey};
    if (common_verbs_lib.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) != 0) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    attr.qp_state = IBV_QPS_RTR;
    if (common_verbs_lib.modify_qp(qp, &attr, IBV_QP_STATE) != 0) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = 0;
    return common_verbs_lib.modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0 ? MCA_SUCCESS
                                                                                   : MCA_ERR_NOT_AVAILABLE;
}

bool btl_ud_qp_repair(btl_ud_module_t *m, btl_ud_qp_t *q)
{
    struct ibv_qp_attr again = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE}, to = {.qp_state = IBV_QPS_RESET};
    bool deaf = q == &m->qp[0] && m->deaf;
    if (deaf ? atomic_load_explicit(&m->pool.posted, memory_order_relaxed) > 0 : q->freed != q->posted) {
        return false;
    }
    /* An error of the sending half leaves the other one as it is; if it was none, the receives that come back will say so. */
    if (!deaf && common_verbs_lib.modify_qp(q->qp, &again, IBV_QP_STATE | IBV_QP_CUR_STATE) == 0) {
        return true;
    }
    if ((q == &m->qp[0] && !deaf) || common_verbs_lib.modify_qp(q->qp, &to, IBV_QP_STATE) != 0) {
        return false;
    }
    q->freed = q->posted; /* what is still to be heard of its sends is old news */
    return qp_ready(m, q->qp) == MCA_SUCCESS;
}

static int qp_open(btl_ud_module_t *m, btl_ud_qp_t *q, bool receives)
{
    const btl_ud_params_t *p = &mca_btl_ud.params;
    size_t bytes = ((size_t) p->send_depth * m->stride + PAGE - 1) / PAGE * PAGE;
    struct ibv_qp_init_attr attr = {
        .send_cq = m->send_cq, .recv_cq = m->recv_cq, .qp_type = IBV_QPT_UD,
        .cap = {.max_send_wr = (uint32_t) p->send_depth, .max_recv_wr = receives ? (uint32_t) p->recv_max : 1,
                .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = (uint32_t) p->inline_max}};
    q->qp = common_verbs_lib.create_qp(m->port->device->pd, &attr);
    if (!q->qp && attr.cap.max_inline_data > 0) {
        attr.cap.max_inline_data = 0;
        q->qp = common_verbs_lib.create_qp(m->port->device->pd, &attr);
    }
    if (!q->qp) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    m->inline_max = attr.cap.max_inline_data < m->inline_max ? attr.cap.max_inline_data : m->inline_max;
    q->memory = aligned_alloc(PAGE, bytes);
    q->mr = q->memory ? common_verbs_lib.reg_mr(m->port->device->pd, q->memory, bytes, IBV_ACCESS_LOCAL_WRITE) : NULL;
    return q->mr ? qp_ready(m, q->qp) : MCA_ERR_OUT_OF_RESOURCE;
}

static void qp_close(btl_ud_qp_t *q)
{
    if (q->qp) {
        common_verbs_lib.destroy_qp(q->qp);
    }
    if (q->mr) {
        common_verbs_lib.dereg_mr(q->mr);
    }
    free(q->memory);
    *q = (btl_ud_qp_t){.qp = NULL};
}

/* ---- Completion queues ---- */

void btl_ud_module_arm(btl_ud_module_t *m)
{
    ibv_req_notify_cq(m->recv_cq, 0);
    ibv_req_notify_cq(m->send_cq, 0);
}

void btl_ud_event(common_verbs_device_t *device, const struct ibv_async_event *e)
{
    for (size_t i = 0; i < mca_btl_ud.module_count; i++) {
        btl_ud_module_t *m = &mca_btl_ud.modules[i];
        if (m->port->device == device && e->event_type == IBV_EVENT_CQ_ERR &&
            (e->element.cq == m->recv_cq || e->element.cq == m->send_cq)) {
            m->broken = true;
            btl_ud_port_changed(m->port, false, "one of its queues has failed");
        }
    }
}

static void channel_ready(int fd, unsigned what, void *context)
{
    btl_ud_module_t *m = context;
    struct ibv_cq *cq;
    void *cq_context;
    (void) fd;
    (void) what;
    while (common_verbs_lib.get_cq_event(m->channel, &cq, &cq_context) == 0) {
        common_verbs_lib.ack_cq_events(cq, 1);
    }
    btl_ud_heat();
    if (btl_ud_receive(m) + btl_ud_send_poll(m) == 0) {
        btl_ud_module_arm(m); /* what rang has been dealt with already */
    }
}

static int queues_open(btl_ud_module_t *m)
{
    const btl_ud_params_t *p = &mca_btl_ud.params;
    struct ibv_context *context = m->port->device->context;
    m->channel = common_verbs_lib.create_comp_channel(context);
    if (!m->channel || fcntl(m->channel->fd, F_SETFL, fcntl(m->channel->fd, F_GETFL) | O_NONBLOCK) != 0) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    m->recv_cq = common_verbs_lib.create_cq(context, (int) p->recv_max + 1, NULL, m->channel, 0);
    m->send_cq = common_verbs_lib.create_cq(context, (int) (p->qps * p->send_depth) + 1, NULL, m->channel, 0);
    if (!m->recv_cq || !m->send_cq) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    return mca_btl_ud.services->event_add(m->channel->fd, MCA_BTL_EVENT_READ | MCA_BTL_EVENT_LATE, channel_ready, m, &m->event);
}

/* ---- Modules ---- */

static void limits(btl_ud_module_t *m, mca_btl_limits_t *l)
{
    const btl_ud_params_t *p = &mca_btl_ud.params;
    l->max_frag = m->datagram - BTL_UD_HEADER;
    if (p->max_frag > 0 && p->max_frag < l->max_frag) {
        l->max_frag = p->max_frag;
    }
    l->short_max = l->eager_limit = l->max_frag;
    l->min_frag = l->max_frag < 1024 ? l->max_frag : 1024;
    l->send_min = SIZE_MAX; /* reserve() lends what the adapter sends from */
    l->window = (size_t) p->window * l->max_frag;
    l->get_min = l->get_try = SIZE_MAX;
    l->bandwidth = m->port->bandwidth;
    l->latency_ns = (uint32_t) p->latency_ns;
    l->exclusivity = (int32_t) p->exclusivity;
    l->caps = MCA_BTL_CAP_CAN_FAIL | MCA_BTL_CAP_LET_GO | (btl_ud_groups_possible(m->port) ? MCA_BTL_CAP_MULTICAST : 0);
}

int btl_ud_module_open(btl_ud_module_t *m, unsigned index)
{
    extern const mca_base_component_t mca_btl_ud_component;
    const btl_ud_params_t *p = &mca_btl_ud.params;
    m->super.struct_size = sizeof(m->super);
    m->super.ops = &btl_ud_ops;
    m->super.component = &mca_btl_ud_component;
    m->index = index;
    m->port = &mca_btl_ud.verbs.port[index];
    snprintf(m->super.name, sizeof(m->super.name), "ud:%.27s", m->port->name);
    m->datagram = common_verbs_mtu_bytes(m->port->addr.mtu);
    m->stride = (BTL_UD_GRH + m->datagram + ALIGN - 1) / ALIGN * ALIGN;
    m->inline_max = (uint32_t) p->inline_max;
    pthread_mutex_init(&m->lock, NULL);
    opal_list_init(&m->full);
    opal_list_init(&m->groups);
    int rc = queues_open(m);
    for (; rc == MCA_SUCCESS && m->qps < p->qps; m->qps++) {
        rc = qp_open(m, &m->qp[m->qps], m->qps == 0);
    }
    if (rc != MCA_SUCCESS) {
        int error = errno;
        mca_btl_ud.services->rejected(m->super.name, error == ENOMEM || error == EAGAIN
            ? "no memory can be registered; is the limit of locked memory (ulimit -l) too small?"
            : "its queues can't be made");
        return rc;
    }
    limits(m, &m->super.limits);
    m->port->addr.qpn = m->qp[0].qp->qp_num;
    m->round = 1;
    common_verbs_pool_init(&m->pool, m->port->device->pd, mca_btl_ud.threads, (uint32_t) (BTL_UD_GRH + m->datagram),
                           (uint32_t) p->recv_max);
    m->pool.qp = m->qp[0].qp;
    if (!common_verbs_pool_grow(&m->pool, (uint32_t) p->recv_num)) {
        mca_btl_ud.services->rejected(m->super.name, "no memory can be registered for its receives; is the limit of "
                                                     "locked memory (ulimit -l) too small?");
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    btl_ud_grant(m, 1);
    btl_ud_module_arm(m);
    return MCA_SUCCESS;
}

void btl_ud_module_close(btl_ud_module_t *m)
{
    if (m->event) {
        mca_btl_ud.services->event_del(m->event);
    }
    if (m->port) {
        btl_ud_groups_end(m);
    }
    for (unsigned i = 0; i < BTL_UD_QPS_MAX; i++) {
        qp_close(&m->qp[i]);
    }
    if (m->send_cq) {
        common_verbs_lib.destroy_cq(m->send_cq);
    }
    if (m->recv_cq) {
        common_verbs_lib.destroy_cq(m->recv_cq);
    }
    if (m->channel) {
        common_verbs_lib.destroy_comp_channel(m->channel);
    }
    if (m->port) {
        common_verbs_pool_fini(&m->pool);
        opal_hash_free(&m->peers);
        pthread_mutex_destroy(&m->lock);
    }
}
