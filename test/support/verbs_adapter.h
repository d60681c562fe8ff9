/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * An RDMA adapter that is the test program: libibverbs' functions as far as they make, count and destroy objects, and
 * completion queues that the test fills. What is posted is the business of the test, which has functions of its own for it.
 */
#ifndef TEST_SUPPORT_VERBS_ADAPTER_H
#define TEST_SUPPORT_VERBS_ADAPTER_H

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ompi/mca/common/verbs/common_verbs.h"

enum { ADAPTER_RING = 8192, ADAPTER_CQS = 4, ADAPTER_QPS = 64 };

typedef struct adapter_cq {
    struct ibv_cq cq;
    struct ibv_wc wc[ADAPTER_RING];
    unsigned in, out;
} adapter_cq_t;

static struct {
    struct ibv_context context;
    struct ibv_pd pd;
    struct ibv_comp_channel channel;
    adapter_cq_t cq[ADAPTER_CQS]; /* in the order in which they were made */
    struct ibv_qp *qp[ADAPTER_QPS];
    unsigned cqs, qps, ahs, registrations, attached;
    uint32_t last_qpn;
    struct ibv_ah_attr last_ah, last_path; /* what the last handle leads to, and the last connection */
    unsigned pkeys; /* queue pairs made ready for another partition than the port's */
    uint16_t pkey_index; /* the port's */
    void (*on_poll)(void); /* what happens just before completions are looked for, once */
} adapter;

static struct ibv_mr *adapter_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
    struct ibv_mr *mr = calloc(1, sizeof(*mr));
    (void) access;
    *mr = (struct ibv_mr){.context = &adapter.context, .pd = pd, .addr = addr, .length = len};
    adapter.registrations++;
    return mr;
}

static int adapter_dereg_mr(struct ibv_mr *mr)
{
    free(mr);
    adapter.registrations--;
    return 0;
}

static struct ibv_comp_channel *adapter_create_channel(struct ibv_context *context)
{
    (void) context;
    adapter.channel.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    return &adapter.channel;
}

static int adapter_destroy_channel(struct ibv_comp_channel *channel)
{
    return close(channel->fd);
}

static struct ibv_cq *adapter_create_cq(struct ibv_context *context, int cqe, void *user,
                                        struct ibv_comp_channel *channel, int vector)
{
    struct ibv_cq *cq = &adapter.cq[adapter.cqs++ % ADAPTER_CQS].cq;
    (void) user, (void) channel, (void) vector;
    cq->context = context;
    cq->cqe = cqe;
    return cq;
}

static int adapter_resize_cq(struct ibv_cq *cq, int cqe)
{
    cq->cqe = cqe;
    return 0;
}

static int adapter_destroy_cq(struct ibv_cq *cq)
{
    (void) cq;
    return 0;
}

static struct ibv_qp *adapter_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp *qp = calloc(1, sizeof(*qp));
    *qp = (struct ibv_qp){.context = &adapter.context, .pd = pd, .qp_num = ++adapter.last_qpn, .qp_type = attr->qp_type,
                          .send_cq = attr->send_cq, .recv_cq = attr->recv_cq};
    adapter.qp[adapter.qps++] = qp;
    return qp;
}

static int adapter_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    qp->state = attr->qp_state;
    adapter.pkeys += mask & IBV_QP_PKEY_INDEX && attr->pkey_index != adapter.pkey_index;
    if (mask & IBV_QP_AV) {
        adapter.last_path = attr->ah_attr;
    }
    return 0;
}

static int adapter_destroy_qp(struct ibv_qp *qp)
{
    for (unsigned i = 0; i < adapter.qps; i++) {
        if (adapter.qp[i] == qp) {
            adapter.qp[i] = adapter.qp[--adapter.qps];
        }
    }
    free(qp);
    return 0;
}

static struct ibv_ah *adapter_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    (void) pd;
    adapter.last_ah = *attr;
    adapter.ahs++;
    return calloc(1, sizeof(struct ibv_ah));
}

static int adapter_destroy_ah(struct ibv_ah *ah)
{
    adapter.ahs--;
    free(ah);
    return 0;
}

static int adapter_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void) qp, (void) gid, (void) lid;
    adapter.attached++;
    return 0;
}

static int adapter_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void) qp, (void) gid, (void) lid;
    adapter.attached--;
    return 0;
}

static int adapter_poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
    adapter_cq_t *q = (adapter_cq_t *) cq;
    int n = 0;
    if (adapter.on_poll) {
        adapter.on_poll();
        adapter.on_poll = NULL;
    }
    while (n < most && q->out != q->in) {
        wc[n++] = q->wc[q->out++ % ADAPTER_RING];
    }
    return n;
}

static int adapter_req_notify_cq(struct ibv_cq *cq, int solicited)
{
    (void) cq, (void) solicited;
    return 0;
}

static const char *adapter_wc_status_str(enum ibv_wc_status status)
{
    return status == IBV_WC_RETRY_EXC_ERR ? "nobody answers" : "?";
}

/* A completion that the next look finds. */
static inline void adapter_complete(struct ibv_cq *cq, const struct ibv_wc *wc)
{
    adapter_cq_t *q = (adapter_cq_t *) cq;
    q->wc[q->in++ % ADAPTER_RING] = *wc;
}

/* As new; the test adds what it posts with to adapter.context.ops. */
static inline void adapter_start(void)
{
    memset(&adapter, 0, sizeof(adapter));
    common_verbs_lib = (common_verbs_lib_t){
        .reg_mr = adapter_reg_mr, .dereg_mr = adapter_dereg_mr, .create_comp_channel = adapter_create_channel,
        .destroy_comp_channel = adapter_destroy_channel, .create_cq = adapter_create_cq, .resize_cq = adapter_resize_cq,
        .destroy_cq = adapter_destroy_cq, .create_qp = adapter_create_qp, .modify_qp = adapter_modify_qp,
        .destroy_qp = adapter_destroy_qp, .create_ah = adapter_create_ah, .destroy_ah = adapter_destroy_ah,
        .attach_mcast = adapter_attach_mcast, .detach_mcast = adapter_detach_mcast,
        .wc_status_str = adapter_wc_status_str};
    adapter.context.ops = (struct ibv_context_ops){.poll_cq = adapter_poll_cq, .req_notify_cq = adapter_req_notify_cq};
    adapter.pd.context = &adapter.context;
    adapter.last_qpn = 1; /* 0 and 1 are taken on every port */
}

/* The device of a port that the test makes up. */
static inline common_verbs_device_t adapter_device(void)
{
    return (common_verbs_device_t){
        .context = &adapter.context, .pd = &adapter.pd,
        .attr = {.max_srq_wr = 4096, .max_sge = 8, .max_sge_rd = 2, .max_qp_rd_atom = 16, .max_qp_init_rd_atom = 4, .max_cqe = 1 << 20}};
}

#endif
