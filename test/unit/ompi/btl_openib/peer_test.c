/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * btl/openib over an adapter that is this program: work requests are noted, completions are made up, and the test plays the
 * peer, a good one and bad ones. Credits, the receive queue, crossing connections, failures.
 */
#include "ompi/mca/btl/openib/btl_openib_cm.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "opal/util/le.h"
#include "test/support/tap.h"
#include "test/support/verbs_adapter.h"

enum { POSTED_MAX = 8192, WINDOW = 16, FRAG = 1024, PEER_QPN = 0x77, PEER_PSN = 5, SELF = 1, PEER = 2 };

/* ---- The adapter ---- */

typedef struct sent {
    uint64_t wr_id;
    uint32_t qpn, len, to;
    enum ibv_wr_opcode opcode;
    uint64_t remote;
    uint8_t data[FRAG + 64];
} sent_t;

static struct {
    struct ibv_srq srq;
    unsigned limit_armed;
    struct ibv_recv_wr receives[POSTED_MAX], hellos[POSTED_MAX]; /* rings */
    struct ibv_sge receive_sge[POSTED_MAX], hello_sge[POSTED_MAX];
    unsigned receive_in, receive_out, hello_in, hello_out;
    sent_t sent[POSTED_MAX];
    unsigned sent_in, sent_out;
    uint64_t begun;      /* a receive of the shared queue in which half a message stands; 0: none, */
    uint32_t begun_qpn;  /* for that queue pair */
    unsigned reads;      /* that a queue pair may have under way */
    bool mute;           /* no event tells that a queue pair has given back its last receive */
} hw;

static struct ibv_srq *create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    (void) pd, (void) attr;
    hw.srq.context = &adapter.context;
    return &hw.srq;
}

static int modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
    (void) srq, (void) mask;
    hw.limit_armed = attr->srq_limit;
    return 0;
}

static int destroy_srq(struct ibv_srq *srq)
{
    (void) srq;
    return 0;
}

static int post_to(struct ibv_recv_wr *ring, struct ibv_sge *sges, unsigned *in, struct ibv_recv_wr *wr)
{
    for (; wr; wr = wr->next) {
        ring[*in % POSTED_MAX] = *wr;
        sges[*in % POSTED_MAX] = *wr->sg_list;
        ++*in;
    }
    return 0;
}

static void complete(uint64_t wr_id, uint32_t qpn, enum ibv_wc_status status, uint32_t len)
{
    const struct ibv_wc wc = {.wr_id = wr_id, .qp_num = qpn, .status = status, .byte_len = len};
    adapter_complete(&adapter.cq[0].cq, &wc);
}

/* In error it gives back what it has taken from the shared queue. */
static int modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    if (attr->qp_state == IBV_QPS_ERR && hw.begun != 0 && hw.begun_qpn == qp->qp_num) {
        complete(hw.begun, qp->qp_num, IBV_WC_WR_FLUSH_ERR, 0);
        hw.begun = 0;
    }
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC) {
        hw.reads = attr->max_rd_atomic;
        return hw.reads <= (unsigned) adapter_device().attr.max_qp_init_rd_atom ? adapter_modify_qp(qp, attr, mask) : EINVAL;
    }
    return adapter_modify_qp(qp, attr, mask);
}

/* Its completions that nobody has looked at go with it, as from mlx4 and mlx5, and so does what it has taken. */
static int destroy_qp(struct ibv_qp *qp)
{
    adapter_cq_t *q = &adapter.cq[0];
    unsigned kept = q->out;
    for (unsigned i = q->out; i != q->in; i++) {
        if (q->wc[i % ADAPTER_RING].qp_num != qp->qp_num) {
            q->wc[kept++ % ADAPTER_RING] = q->wc[i % ADAPTER_RING];
        }
    }
    q->in = kept;
    return adapter_destroy_qp(qp);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    (void) bad;
    for (; qp->state == IBV_QPS_ERR && wr; wr = wr->next) {
        complete(wr->wr_id, qp->qp_num, IBV_WC_WR_FLUSH_ERR, 0);
    }
    return qp->qp_type == IBV_QPT_UD ? post_to(hw.hellos, hw.hello_sge, &hw.hello_in, wr)
                                     : post_to(hw.receives, hw.receive_sge, &hw.receive_in, wr);
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    (void) srq, (void) bad;
    return post_to(hw.receives, hw.receive_sge, &hw.receive_in, wr);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    (void) bad;
    if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE) {
        complete(wr->wr_id, qp->qp_num, IBV_WC_WR_FLUSH_ERR, 0);
        return 0;
    }
    sent_t *s = &hw.sent[hw.sent_in++ % POSTED_MAX];
    *s = (sent_t){.wr_id = wr->wr_id, .qpn = qp->qp_num, .opcode = wr->opcode};
    s->to = qp->qp_type == IBV_QPT_UD ? wr->wr.ud.remote_qpn : 0;
    s->remote = wr->opcode == IBV_WR_SEND ? 0 : wr->wr.rdma.remote_addr;
    if (wr->num_sge == 1 && (wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_RDMA_WRITE)) {
        s->len = wr->sg_list->length;
        memcpy(s->data, (void *) (uintptr_t) wr->sg_list->addr, s->len);
    }
    if (wr->send_flags & IBV_SEND_SIGNALED) {
        complete(wr->wr_id, qp->qp_num, IBV_WC_SUCCESS, 0);
    }
    return 0;
}

static void hw_start(void)
{
    memset(&hw, 0, sizeof(hw));
    adapter_start();
    common_verbs_lib.create_srq = create_srq;
    common_verbs_lib.modify_srq = modify_srq;
    common_verbs_lib.destroy_srq = destroy_srq;
    common_verbs_lib.modify_qp = modify_qp;
    common_verbs_lib.destroy_qp = destroy_qp;
    adapter.context.ops.post_srq_recv = post_srq_recv;
    adapter.context.ops.post_send = post_send;
    adapter.context.ops.post_recv = post_recv;
}

/* ---- Services and the user ---- */

static uint64_t clock_ns = 1;
static mca_btl_event_fn_t event_fn;
static void *event_context;
static mca_btl_timer_fn_t timer_fn;
static void *timer_context;
static unsigned arrived, returned, downs, ups, silents, writables;
static size_t last_len;
static uint8_t last_data[16];
static char down_why[BTL_OPENIB_WHY_MAX];
static bool quiet_user; /* incoming() refuses */
static btl_openib_receive_queue_t receive_queue;
static btl_openib_way_t way;

static void logs(const char *framework, const char *component, mca_log_level_t level, const char *format, ...)
{
    (void) framework, (void) component, (void) level, (void) format;
}

static void poller_active(void *handle, bool active)
{
    (void) handle, (void) active;
}

static int event_add(int fd, unsigned what, mca_btl_event_fn_t fn, void *context, void **handle)
{
    (void) fd, (void) what;
    event_fn = fn; /* the last */
    event_context = context;
    *handle = &hw;
    return MCA_SUCCESS;
}

static void nothing(void *handle)
{
    (void) handle;
}

static int timer_add(uint64_t us, mca_btl_timer_fn_t fn, void *context, void **handle)
{
    (void) us;
    timer_fn = fn;
    timer_context = context;
    *handle = &timer_fn;
    return MCA_SUCCESS;
}

static uint64_t now_ns(void)
{
    return clock_ns;
}

static void user_arrive(void *peer, mca_btl_arrival_t *arrival)
{
    (void) peer;
    last_len = arrival->len;
    memcpy(last_data, arrival->data, arrival->len < sizeof(last_data) ? arrival->len : sizeof(last_data));
    arrived++;
}

static void user_writable(void *peer, mca_btl_endpoint_t *ep)
{
    (void) peer, (void) ep;
    writables++;
}

static void user_returned(void *peer, mca_btl_endpoint_t *ep, const void *data, size_t len, int status)
{
    (void) peer, (void) ep, (void) data, (void) len, (void) status;
    returned++;
}

static void user_state(void *peer, mca_btl_endpoint_t *ep, mca_btl_state_t state, const char *why)
{
    (void) peer, (void) ep;
    downs += state == MCA_BTL_STATE_DOWN;
    ups += state == MCA_BTL_STATE_UP;
    silents += state == MCA_BTL_STATE_SILENT;
    if (state == MCA_BTL_STATE_DOWN) {
        snprintf(down_why, sizeof(down_why), "%s", why);
    }
}

static void *user_incoming(mca_btl_module_t *module, mca_btl_name_t name)
{
    (void) module, (void) name;
    return quiet_user ? NULL : &hw;
}

static struct {
    const char *name;
    uint64_t (*read)(void *context);
    void *context;
} counters[COMMON_VERBS_CACHE_COUNTS];
static unsigned counter_count;

static int counter(const char *component, const char *name, const char *help, uint64_t (*read)(void *context), void *context)
{
    if (strcmp(component, "openib") == 0 && *help && counter_count < COMMON_VERBS_CACHE_COUNTS) {
        counters[counter_count].name = name;
        counters[counter_count].read = read;
        counters[counter_count++].context = context;
    }
    return MCA_SUCCESS;
}

/* -1: there is none of that name. */
static int counted(const char *name)
{
    for (unsigned i = 0; i < counter_count; i++) {
        if (strcmp(counters[i].name, name) == 0) {
            return (int) counters[i].read(counters[i].context);
        }
    }
    return -1;
}

static btl_openib_module_t module;

static void start(void)
{
    static mca_base_services_t base = {.log = logs};
    static mca_btl_job_t job = {.self = SELF, .secret = {9}};
    static mca_btl_services_t services = {.base = &base, .job = &job, .poller_active = poller_active,
                                          .event_add = event_add, .event_del = nothing, .timer_add = timer_add,
                                          .timer_del = nothing, .now_ns = now_ns, .poller_del = nothing,
                                          .counter = counter};
    static const mca_btl_upcalls_t upcalls = {.arrive = user_arrive, .writable = user_writable,
                                              .returned = user_returned, .state = user_state,
                                              .incoming = user_incoming};
    btl_openib_component_t *c = &mca_btl_openib;
    hw_start();
    *c = (btl_openib_component_t){
        .services = &services, .last_id = 100, .modules = &module, .module_count = 1, .modules_open = 2,
        .params = {.receive_queue = receive_queue, .connect = way, .recv_num = 64, .recv_max = 256, .send_max = 64, .window = WINDOW, .max_frag = FRAG, .inline_max = 64,
                   .eager_rdma = BTL_OPENIB_ALWAYS, .eager_rdma_peers = 1, .eager_rdma_slots = 4, .eager_rdma_after = 10000,
                   .timeout = 14, .retry_count = 7, .silence_ms = 1000, .retry_first_ms = 100, .retry_max_ms = 1000}};
    mca_btl_base_attention_init(&c->attention, &services);
    c->verbs.count = 1;
    c->verbs.port[0] = (common_verbs_port_t){.device = &c->verbs.device[0], .number = 1, .ethernet = true,
                                             .addr = {.mtu = IBV_MTU_4096, .gid = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}}};
    c->verbs.device[0] = adapter_device();
    c->verbs.port[0].pkey_index = adapter.pkey_index = 2;
    arrived = returned = downs = ups = silents = writables = 0;
    memset(&module, 0, sizeof(module));
    timer_fn = NULL;
    btl_openib_module_open(&module, 0);
    module.super.upcalls = &upcalls;
}

/* What happened to queue pairs, once each. */
static void tell_events(void)
{
    for (unsigned i = 0; i < adapter.qps && !hw.mute; i++) {
        struct ibv_qp *qp = adapter.qp[i];
        if (qp->qp_type == IBV_QPT_RC && qp->state == IBV_QPS_ERR && qp->events_completed == 0) {
            const struct ibv_async_event e = {.event_type = IBV_EVENT_QP_LAST_WQE_REACHED, .element.qp = qp};
            qp->events_completed = 1;
            btl_openib_event(module.port->device, &e);
        }
    }
}

static void progress(void)
{
    do {
        tell_events();
    } while (btl_openib_poll(&mca_btl_openib) > 0);
}

/* So long passes, with progress and timers. */
static void pass_ms(unsigned ms)
{
    for (unsigned i = 0; i < ms; i += 10) {
        clock_ns += 10 * 1000000u;
        mca_btl_timer_fn_t fn = timer_fn;
        timer_fn = NULL;
        if (fn) {
            fn(timer_context);
        }
        progress();
    }
}

/* Rounds of progress that do something. */
static int progress_at_most(int most)
{
    int rounds = 0;
    while (rounds < most && btl_openib_poll(&mca_btl_openib) > 0) {
        rounds++;
    }
    return rounds;
}

static void finish(void)
{
    while (!opal_list_is_empty(&module.dying)) {
        pass_ms(10);
    }
    btl_openib_module_close(&module);
    TAP_OK(adapter.registrations == 0 && adapter.qps == 0, "nothing is left registered, and no queue pair");
}

/* ---- The peer ---- */

static btl_openib_hello_t last_hello; /* that came to it */
static uint32_t last_to;              /* at this address */
static common_verbs_addr_t peer_at = {.mtu = IBV_MTU_4096, .qpn = 0x99}; /* where it is */

/* The next frame for the peer's queue pair, or false; HELLOs are noted. */
static bool next_frame(sent_t *frame)
{
    while (hw.sent_out != hw.sent_in) {
        *frame = hw.sent[hw.sent_out++ % POSTED_MAX];
        if (frame->len != BTL_OPENIB_HELLO ||
            !btl_openib_hello_read(frame->data, frame->len, mca_btl_openib.services->job->secret, &last_hello)) {
            return true;
        }
        last_to = frame->to;
    }
    return false;
}

static unsigned data_frames(void)
{
    sent_t f;
    unsigned n = 0;
    while (next_frame(&f)) {
        n += f.opcode == IBV_WR_SEND && f.data[6] == BTL_OPENIB_DATA;
    }
    return n;
}

/* Its HELLO is here, and nobody has looked yet. */
static void peer_has_greeted(uint32_t id, uint32_t your_id, unsigned flags)
{
    btl_openib_hello_t h = {.from = PEER, .to = SELF, .id = id, .your_id = your_id, .qpn = PEER_QPN, .psn = PEER_PSN,
                            .room = BTL_OPENIB_FIRST_ROOM, .flags = (uint8_t) flags, .rd = 8,
                            .addr = peer_at};
    unsigned at = hw.hello_out++ % POSTED_MAX;
    uint8_t *to = (uint8_t *) (uintptr_t) hw.hello_sge[at].addr;
    btl_openib_hello_write(&h, mca_btl_openib.services->job->secret, to + BTL_OPENIB_GRH);
    complete(hw.hellos[at].wr_id, module.greeter->qp_num, IBV_WC_SUCCESS, BTL_OPENIB_GRH + BTL_OPENIB_HELLO);
}

static void peer_greets(uint32_t id, uint32_t your_id, unsigned flags)
{
    peer_has_greeted(id, your_id, flags);
    progress();
}

/* False: the receiver was not ready. */
static bool peer_sends(unsigned type, uint32_t handed, unsigned room, size_t len)
{
    btl_openib_prefix_t p = {.handed = handed, .room = (uint16_t) room, .type = (uint8_t) type,
                             .tag = (uint8_t) last_hello.id};
    if (hw.receive_out == hw.receive_in) {
        return false;
    }
    unsigned at = hw.receive_out++ % POSTED_MAX;
    btl_openib_prefix_write(&p, (uint8_t *) (uintptr_t) hw.receive_sge[at].addr);
    complete(hw.receives[at].wr_id, last_hello.qpn, IBV_WC_SUCCESS, (uint32_t) (BTL_OPENIB_PREFIX + len));
    return true;
}

/* ---- Tests ---- */

static mca_btl_endpoint_t *add_named(mca_btl_name_t name)
{
    common_verbs_t theirs = {.count = 1, .port[0].addr = peer_at};
    uint8_t card[COMMON_VERBS_CARD_MAX];
    mca_btl_peer_t peer = {.name = name, .card = card, .card_len = common_verbs_card_write(&theirs, card)};
    mca_btl_endpoint_t *ep = NULL;
    const char *why = NULL;
    int rc = btl_openib_ops.add_peer(&module.super, &peer, &hw, &ep, &why);
    return rc == MCA_SUCCESS ? ep : NULL;
}

static mca_btl_endpoint_t *add(void)
{
    return add_named(PEER);
}

static int send_one(mca_btl_endpoint_t *ep)
{
    return btl_openib_send_short(ep, "header", 6, NULL, 0);
}

static mca_btl_endpoint_t *connected(void)
{
    mca_btl_endpoint_t *ep = add();
    send_one(ep);
    progress();
    data_frames();
    peer_greets(500, last_hello.id, 0);
    return ep;
}

static void test_connect(void)
{
    start();
    mca_btl_endpoint_t *ep = add();
    TAP_OK(ep && adapter.qps == 1, "adding a peer makes no connection");
    TAP_OK(send_one(ep) == MCA_SUCCESS, "a fragment is taken");
    progress();
    TAP_OK(data_frames() == 0 && last_hello.id != 0 && (last_hello.flags & BTL_OPENIB_HELLO_ANSWER),
           "a HELLO goes out, and the fragment waits");
    uint32_t id = last_hello.id;
    unsigned before = hw.sent_in;
    pass_ms(1500);
    TAP_OK(hw.sent_in - before >= 4 && hw.sent_in - before < 12, "it is repeated, ever more rarely");
    TAP_OK(silents == 1 && downs == 0, "a peer that does not answer is called silent, not down");
    peer_greets(500, 0, BTL_OPENIB_HELLO_ANSWER); /* theirs crossed ours */
    TAP_OK(data_frames() == 0 && last_hello.id == id && last_hello.your_id == 500, "a crossing HELLO is answered, once");
    peer_greets(500, id, 0);
    TAP_OK(data_frames() == 1, "who knows our number is connected: the fragment goes");
    peer_greets(400, 0, BTL_OPENIB_HELLO_ANSWER);
    TAP_OK(ep->state == BTL_OPENIB_UP && downs == 0, "a HELLO of an earlier connection changes nothing");
    peer_greets(501, 0, BTL_OPENIB_HELLO_ANSWER);
    TAP_OK(downs == 1 && returned == 1, "one of a new connection ends this one, and what was not confirmed comes back");
    peer_greets(501, 0, BTL_OPENIB_HELLO_ANSWER);
    data_frames();
    TAP_OK(last_hello.your_id == 501 && last_hello.id > id, "a new connection begins");
    peer_sends(BTL_OPENIB_DATA, 0, 4, 8);
    progress();
    TAP_OK(ups == 1 && arrived == 1, "data from the peer proves that it stands");
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
}

/* This process computes while it waits for an answer: for so long nobody was silent but itself. */
static void test_away(void)
{
    const uint64_t long_ns = UINT64_C(60000000000);
    start();
    mca_btl_openib.params.peer_timeout_ms = 2000;
    mca_btl_endpoint_t *ep = add();
    send_one(ep);
    progress();
    pass_ms(500);
    clock_ns += long_ns;
    pass_ms(10);
    TAP_OK(silents == 0 && downs == 0, "a peer that had no time to answer is not called silent, nor given up");
    pass_ms(600);
    TAP_OK(silents == 1 && downs == 0, "one that does not answer when we are back is called silent");
    pass_ms(600);
    clock_ns += long_ns;
    data_frames();
    peer_has_greeted(500, last_hello.id, 0);
    pass_ms(200);
    TAP_OK(downs == 0 && ep->state == BTL_OPENIB_UP, "what has come meanwhile is read before that counts");
    btl_openib_ops.del_peer(&module.super, ep);
    finish();

    start();
    mca_btl_openib.params.peer_timeout_ms = 2000;
    ep = add();
    send_one(ep);
    progress();
    for (int i = 0; i < 10; i++) {
        clock_ns += 700 * 1000000u;
        pass_ms(10);
    }
    TAP_OK(downs == 0, "who comes now and then waits as long as it looks");
    pass_ms(2000);
    TAP_OK(downs == 1 && strstr(down_why, "does not answer"), "but not for ever: %s", down_why);
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
}

/* Greetings and connections are of the port's service level. */
static void test_quality(void)
{
    start();
    module.port->service_level = 3;
    module.port->traffic_class = 0x20;
    mca_btl_endpoint_t *ep = connected();
    TAP_OK(adapter.last_ah.sl == 3 && adapter.last_ah.grh.traffic_class == 0x20, "a greeting is of the port's service level");
    TAP_OK(adapter.last_path.sl == 3 && adapter.last_path.grh.traffic_class == 0x20, "and so is a connection");
    TAP_OK(adapter.pkeys == 0, "both are of its partition");
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
}

static void test_sender_credits(void)
{
    start();
    mca_btl_endpoint_t *ep = connected();
    for (int i = 1; i < WINDOW; i++) {
        send_one(ep);
    }
    TAP_OK(data_frames() == BTL_OPENIB_FIRST_ROOM, "no more goes than the peer has room for");
    TAP_OK(send_one(ep) == MCA_ERR_AGAIN, "what is held is bounded");
    peer_sends(BTL_OPENIB_COUNT, 2, 6, 0);
    progress();
    TAP_OK(data_frames() == 4, "room that the peer grants is used");
    peer_sends(BTL_OPENIB_COUNT, 2, 1, 0);
    progress();
    TAP_OK(ep->limit == 8 && data_frames() == 0, "room that was granted is never taken back");
    peer_sends(BTL_OPENIB_COUNT, 8, WINDOW, 0);
    progress();
    TAP_OK(data_frames() == WINDOW - 8 && writables == 1, "and the user hears when it may send again");
    TAP_OK(!btl_openib_ops.idle(&module.super, ep), "not idle before all is confirmed");
    peer_sends(BTL_OPENIB_COUNT, WINDOW + 1, 4, 0);
    progress();
    TAP_OK(downs == 1 && strstr(down_why, "never sent"), "a peer that confirms what was never sent is dropped: %s", down_why);
    TAP_OK(returned == WINDOW - 8, "and what it had not confirmed comes back: %u", returned);
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
}

static unsigned send_all(mca_btl_endpoint_t *ep)
{
    unsigned n = 0;
    while (n <= WINDOW && send_one(ep) == MCA_SUCCESS) {
        n++;
    }
    return n;
}

/* As much waits for peers that do not look as may wait at all: what is for one that does goes all the same. */
static void test_slow_peers(void)
{
    enum { SLOW = 8 };
    mca_btl_endpoint_t *slow[SLOW];
    start();
    mca_btl_endpoint_t *ep = connected();
    peer_sends(BTL_OPENIB_COUNT, 1, WINDOW, 0);
    progress();
    for (unsigned i = 0; i < SLOW; i++) {
        slow[i] = add_named(100 + i);
        unsigned n = send_all(slow[i]);
        TAP_OK(n == (i < 4 ? WINDOW : BTL_OPENIB_OWN_ITEMS), "%u fragments wait for slow peer %u", n, i);
    }
    uint32_t handed = 1;
    unsigned sent = 0;
    for (int i = 0; i < 20; i++) {
        unsigned n = send_all(ep);
        sent += n;
        peer_sends(BTL_OPENIB_COUNT, handed += n, WINDOW, 0);
        progress_at_most(100);
    }
    TAP_OK(sent == 20 * BTL_OPENIB_OWN_ITEMS, "in 20 rounds %u fragments go to a peer that confirms them", sent);
    for (unsigned i = 0; i < SLOW; i++) {
        btl_openib_ops.del_peer(&module.super, slow[i]);
    }
    pass_ms(100);
    TAP_OK(send_all(ep) == WINDOW, "and a whole window when the slow ones have gone");
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
}

/* A peer that sends as much as it is told it may, and one that sends more. */
static void test_receiver_credits(uint32_t window, uint32_t receives)
{
    start();
    mca_btl_openib.params.window = window;
    module.received.max = receives;
    mca_btl_endpoint_t *ep = connected();
    sent_t f;
    uint32_t limit = BTL_OPENIB_FIRST_ROOM, theirs = 0, most = 0;
    bool ready = true, enough = true;
    for (int round = 0; round < 200; round++) {
        for (; (int32_t) (limit - theirs) > 0 && round < 199; theirs++) {
            ready &= peer_sends(BTL_OPENIB_DATA, 1, WINDOW, FRAG);
        }
        progress();
        for (int i = 0; i < 65; i++) {
            btl_openib_poll(&mca_btl_openib); /* long enough without anything new */
        }
        while (next_frame(&f)) {
            btl_openib_prefix_t p;
            if (f.opcode == IBV_WR_SEND && btl_openib_prefix_read(f.data, f.len, &p)) {
                limit = (int32_t) (p.handed + p.room - limit) > 0 ? p.handed + p.room : limit;
                most = p.room > most ? p.room : most;
            }
        }
        enough &= *ep->promised <= ep->queue_in->posted;
    }
    TAP_OK(ready, "while the peer keeps to its room there is always a receive for it");
    TAP_OK(enough, "never more is promised than receives are posted");
    TAP_OK(window < receives ? most == window : most > receives / 2 && most < receives,
           "one that uses up its room gets more, up to the window or as receives last: %u", most);
    TAP_OK(arrived == theirs && theirs > 1000, "%u fragments arrived", arrived);
    *ep->promised -= ep->granted - ep->in;
    ep->granted = ep->in; /* whatever it was told */
    peer_sends(BTL_OPENIB_DATA, 1, WINDOW, FRAG);
    progress();
    TAP_OK(downs == 1 && strstr(down_why, "more than it may"), "one that sends more is dropped: %s", down_why);
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
}

static void test_strangers(void)
{
    start();
    mca_btl_endpoint_t *ep = connected();
    data_frames();
    last_hello.id++;
    peer_sends(BTL_OPENIB_DATA, 0, 4, 8);
    progress();
    last_hello.id--;
    TAP_OK(arrived == 0 && downs == 0, "a frame of another connection is nobody's");
    peer_sends(9, 0, 4, 8);
    progress();
    TAP_OK(arrived == 0 && module.strangers == 1, "one of no known type, too");
    unsigned at = hw.hello_out++ % POSTED_MAX;
    memset((uint8_t *) (uintptr_t) hw.hello_sge[at].addr, 0x5a, BTL_OPENIB_GRH + BTL_OPENIB_HELLO);
    complete(hw.hellos[at].wr_id, module.greeter->qp_num, IBV_WC_SUCCESS, BTL_OPENIB_GRH + BTL_OPENIB_HELLO);
    progress();
    TAP_OK(module.strangers == 2, "a HELLO without the job's secret makes nothing");
    complete(BTL_OPENIB_SENT | UINT64_C(77) << 32 | 3, ep->qp->qp_num, IBV_WC_RETRY_EXC_ERR, 0);
    progress();
    TAP_OK(downs == 0, "an error of an earlier connection with the same queue pair's number means nothing");
    complete(BTL_OPENIB_SENT | (uint64_t) ep->id << 32 | 1, ep->qp->qp_num, IBV_WC_RETRY_EXC_ERR, 0);
    progress();
    TAP_OK(downs == 1 && returned == 1 && strstr(down_why, "nobody answers"), "one of this ends it: %s", down_why);
    TAP_OK(send_one(ep) == MCA_ERR_UNREACHABLE, "nothing is taken then");
    pass_ms(300);
    data_frames();
    TAP_OK(last_hello.your_id == 0 && ep->state == BTL_OPENIB_GREETING, "and a new attempt is made");
    peer_greets(600, last_hello.id, 0);
    TAP_OK(ups == 1 && send_one(ep) == MCA_SUCCESS && data_frames() == 1, "which brings it up");
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
}

static void test_port(void)
{
    start();
    mca_btl_endpoint_t *ep = connected();
    btl_openib_port_changed(module.port, false, "the port is down");
    progress();
    TAP_OK(downs == 1 && returned == 1 && strcmp(down_why, "the port is down") == 0, "a port takes its links down");
    pass_ms(3000);
    hw.sent_out = hw.sent_in;
    pass_ms(1000);
    TAP_OK(hw.sent_out == hw.sent_in, "while it is down, nothing is tried");
    btl_openib_port_changed(module.port, true, "the port is up");
    pass_ms(50);
    data_frames();
    peer_greets(700, last_hello.id, 0);
    TAP_OK(ups == 1, "when it is back, they come back");
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
}

/* The beginning of a longer message, of which no more will come. */
static void peer_begins(void)
{
    unsigned at = hw.receive_out++ % POSTED_MAX;
    hw.begun = hw.receives[at].wr_id;
    hw.begun_qpn = last_hello.qpn;
}

static bool no_receive_lost(void)
{
    return module.received.posted == hw.receive_in - hw.receive_out &&
           module.received.posted + module.received.idle_count == module.received.buffers;
}

/* A connection ends while much has come that nobody has looked at. */
static void test_ending(void)
{
    for (int mute = 0; mute < 2; mute++) {
        start();
        hw.mute = mute;
        mca_btl_endpoint_t *ep = connected();
        for (int i = 0; i < 3; i++) {
            peer_sends(BTL_OPENIB_DATA, 1, WINDOW, 8);
        }
        peer_begins();
        btl_openib_port_changed(module.port, false, "the port is down");
        progress();
        pass_ms(mute ? 300 : 0);
        TAP_OK(downs == 1 && adapter.qps == 1 && no_receive_lost(), "an adapter that %s gives all receives back, %u of %u",
               mute ? "does not say so" : "says when it is done", module.received.posted, module.received.buffers);
        TAP_OK(module.promised == 0, "nothing is promised to the peer any more");
        btl_openib_port_changed(module.port, true, "the port is up");
        pass_ms(50);
        data_frames();
        peer_greets(700, last_hello.id, 0);
        TAP_OK(ups == 1, "and it is connected again");
        peer_begins();
        btl_openib_ops.del_peer(&module.super, ep);
        pass_ms(300);
        TAP_OK(opal_list_is_empty(&module.dying) && no_receive_lost(), "so it is with one that is not wanted any more");
        finish();
    }
}

/* The peer has acknowledged all, and then died: only a probe finds out. */
static void test_probe(void)
{
    start();
    mca_btl_endpoint_t *ep = connected();
    hw.sent_out = hw.sent_in;
    pass_ms(2000);
    TAP_OK(hw.sent_out == hw.sent_in, "nobody waits: nothing is sent");
    btl_openib_ops.idle(&module.super, ep);
    progress();
    pass_ms(1200);
    unsigned probes = 0;
    for (; hw.sent_out != hw.sent_in; hw.sent_out++) {
        probes += hw.sent[hw.sent_out % POSTED_MAX].opcode == IBV_WR_RDMA_WRITE;
    }
    TAP_OK(probes == 2, "somebody waits: the peer is probed, %u times in 1.2 s", probes);
    peer_sends(BTL_OPENIB_COUNT, 1, 4, 0);
    progress();
    pass_ms(50);
    hw.sent_out = hw.sent_in;
    pass_ms(2000);
    TAP_OK(hw.sent_out == hw.sent_in && btl_openib_ops.idle(&module.super, ep), "no more once all is confirmed");
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
}

static unsigned moved, lost;

static void remote_event(mca_btl_descriptor_t *desc, mca_btl_event_t event, int status)
{
    (void) desc, (void) status;
    moved += event == MCA_BTL_CONFIRMED;
    lost += event == MCA_BTL_UNCONFIRMED;
}

/* In three pieces. */
static int move_pieces(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, const void *key, bool get)
{
    static uint8_t here[64];
    *desc = (mca_btl_descriptor_t){.iov_count = 3, .iov = {{here, 8}, {here + 16, 8}, {here + 32, 8}}, .event = remote_event};
    return get ? btl_openib_ops.get(ep, desc, 4096, key) : btl_openib_ops.put(ep, desc, 4096, key);
}

static int get_one(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, const void *key)
{
    static uint8_t here[64];
    *desc = (mca_btl_descriptor_t){.iov_count = 1, .iov[0] = {here, sizeof(here)}, .event = remote_event};
    return btl_openib_ops.get(ep, desc, 4096, key);
}

static mca_btl_descriptor_t frags[2];
static unsigned frag_ends[2];
static mca_btl_event_t frag_end;
static mca_btl_endpoint_t *frag_ep;

/* The first one's end makes the user have the second one back. */
static void frag_event(mca_btl_descriptor_t *desc, mca_btl_event_t event, int status)
{
    (void) status;
    frag_ends[desc - frags]++;
    if (desc == &frags[0]) {
        btl_openib_ops.recall(frag_ep, &frags[1]);
    } else {
        frag_end = event;
    }
}

/* One whose end is on its way is left alone: who tells of it looks at it without a lock. */
static void test_recall(void)
{
    start();
    frag_ep = connected();
    for (int i = 0; i < 2; i++) {
        frags[i] = (mca_btl_descriptor_t){.header = "header", .header_len = 6, .event = frag_event};
        frag_ends[i] = 0;
        btl_openib_ops.send(frag_ep, &frags[i]);
    }
    peer_sends(BTL_OPENIB_COUNT, 3, WINDOW, 0);
    progress();
    TAP_OK(frag_ends[0] == 1 && frag_ends[1] == 1 && frag_end == MCA_BTL_CONFIRMED, "one whose end is on its way has that end, once");
    btl_openib_ops.send(frag_ep, &frags[1]);
    btl_openib_ops.recall(frag_ep, &frags[1]);
    progress();
    TAP_OK(frag_ends[1] == 2 && frag_end == MCA_BTL_UNCONFIRMED, "another one is given back");
    peer_sends(BTL_OPENIB_COUNT, 4, WINDOW, 0);
    progress();
    TAP_OK(frag_ends[1] == 2 && btl_openib_ops.idle(&module.super, frag_ep), "and ends no second time when it is confirmed");
    btl_openib_ops.del_peer(&module.super, frag_ep);
    finish();
}

/* A queue pair may fail while nothing is being sent: then receives alone come back. */
static void test_receives_fail(void)
{
    for (int own = 0; own < 2; own++) {
        receive_queue = own ? BTL_OPENIB_QUEUE_PEER : BTL_OPENIB_QUEUE_SHARED;
        start();
        mca_btl_endpoint_t *ep = connected();
        peer_sends(BTL_OPENIB_COUNT, 1, WINDOW, 0);
        progress();
        ep->qp->state = IBV_QPS_ERR;
        do {
            complete(hw.receives[hw.receive_out++ % POSTED_MAX].wr_id, ep->qp->qp_num, IBV_WC_WR_FLUSH_ERR, 0);
        } while (own && hw.receive_out != hw.receive_in);
        int rounds = progress_at_most(1000);
        pass_ms(100);
        TAP_OK(rounds < 100 && downs == 1 && ep->state != BTL_OPENIB_UP, "%s receives come back: the connection fails (%d rounds)",
               own ? "its own" : "shared", rounds);
        btl_openib_ops.del_peer(&module.super, ep);
        finish();
    }
    receive_queue = BTL_OPENIB_QUEUE_SHARED;
}

/* A queue that has failed is not repaired by the port's coming up. */
static void test_broken(void)
{
    struct ibv_async_event e = {.event_type = IBV_EVENT_CQ_ERR};
    start();
    mca_btl_endpoint_t *ep = connected();
    e.element.cq = module.cq;
    btl_openib_event(module.port->device, &e);
    progress();
    TAP_OK(downs == 1 && strstr(down_why, "queues has failed"), "a completion queue that fails takes the port's links down");
    btl_openib_port_changed(module.port, true, "the port is up");
    pass_ms(500);
    TAP_OK(ep->state == BTL_OPENIB_DOWN && adapter.qps == 1, "for good");
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
}

/* Reads of the peer's memory: many at once, before there is a connection and when it ends. */
static void test_remotes(void)
{
    mca_btl_descriptor_t desc[64];
    mca_btl_registration_t *registration;
    uint8_t key[MCA_BTL_KEY_MAX], other[MCA_BTL_KEY_MAX];
    size_t key_len = 0;
    start();
    mca_btl_endpoint_t *ep = add();
    unsigned before = adapter.registrations;
    TAP_OK(btl_openib_ops.register_mem(&module.super, key, sizeof(key), key, &key_len, &registration) == MCA_SUCCESS &&
               key_len <= MCA_BTL_KEY_MAX, "memory is registered");
    moved = lost = 0;
    TAP_OK(get_one(ep, &desc[0], key) == 0, "a get is taken while there is no connection");
    progress();
    data_frames();
    peer_greets(500, last_hello.id, 0);
    progress();
    TAP_OK(moved == 1, "and done when there is one");
    unsigned reads = 0;
    hw.sent_out = hw.sent_in;
    for (int i = 0; i < 64; i++) {
        get_one(ep, &desc[i], key);
    }
    for (; hw.sent_out != hw.sent_in; hw.sent_out++) {
        reads += hw.sent[hw.sent_out % POSTED_MAX].opcode == IBV_WR_RDMA_READ;
    }
    TAP_OK(reads > 0 && reads <= 16, "of 64 the adapter is given %u at once", reads);
    TAP_OK(btl_openib_offer_counters() == MCA_SUCCESS && counter_count == COMMON_VERBS_CACHE_COUNTS &&
               counted("registration_hits") + counted("registration_misses") == 66 &&
               counted("registration_bytes") >= 66 && counted("registration_refused") == 0,
           "a tool can read that memory was registered or found 66 times");
    progress();
    TAP_OK(moved == 65 && lost == 0, "all are done in the end: %u", moved);
    TAP_OK(hw.reads == 4 && last_hello.rd == 16, "no more reads are begun at once than the adapter can begin, though it serves more");
    TAP_OK(move_pieces(ep, &desc[0], key, true) == MCA_ERR_NOT_AVAILABLE && move_pieces(ep, &desc[0], key, false) == 0,
           "into more pieces than it can read into nothing is read");
    progress();
    TAP_OK(moved == 66 && downs == 0, "as many are written from");
    moved--;
    memcpy(other, key, sizeof(other));
    other[2]++;
    TAP_OK(get_one(ep, &desc[0], other) == MCA_ERR_NOT_AVAILABLE, "a key of another port is refused");
    memset(other, 0, sizeof(other));
    TAP_OK(get_one(ep, &desc[0], other) == MCA_ERR_NOT_AVAILABLE, "so is one of another kind of link");
    for (int i = 0; i < 64; i++) {
        get_one(ep, &desc[i], key);
    }
    adapter.cq[0].out = adapter.cq[0].in; /* the adapter does nothing any more */
    btl_openib_port_changed(module.port, false, "the port is down");
    progress();
    TAP_OK(downs == 1 && moved == 65 && lost == 64, "those under way when the link fails are handed back");
    btl_openib_ops.deregister_mem(&module.super, registration);
    TAP_OK(adapter.registrations == before, "nothing stays registered for them");
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
}

/* What the user's threads do is not to make receives, which the polling thread does without a lock. */
static void test_own_growth(void)
{
    btl_openib_prefix_t told = {.room = 0};
    sent_t f;
    start();
    mca_btl_endpoint_t *ep = connected();
    ep->own->pool.max = 256;
    ep->room = 200; /* of a peer that has used up much */
    send_one(ep);
    TAP_OK(ep->own->pool.buffers == 64 && *ep->promised == 64, "a send makes no receives, though more could be promised");
    peer_sends(BTL_OPENIB_DATA, 1, WINDOW, 8);
    progress();
    for (int i = 0; i < 65; i++) {
        btl_openib_poll(&mca_btl_openib); /* long enough without anything new */
    }
    while (next_frame(&f)) {
        btl_openib_prefix_read(f.data, f.len, &told);
    }
    TAP_OK(told.room == 200 && arrived == 1 && ep->own->pool.posted == 256, "the polling thread does, and tells the peer");
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
}

/* Each connection with receives of its own. */
static void test_own_queue(void)
{
    receive_queue = BTL_OPENIB_QUEUE_PEER;
    start();
    TAP_OK(module.srq == NULL && hw.receive_in == 0, "without a shared queue nothing is posted before there is a connection");
    mca_btl_endpoint_t *ep = connected();
    TAP_OK(ep->own && hw.receive_in == 64 && *ep->promised <= 64, "then it has receives of its own");
    uint64_t stale = hw.receives[0].wr_id;
    uint32_t qpn = ep->qp->qp_num;
    btl_openib_port_changed(module.port, false, "the port is down");
    progress();
    TAP_OK(!ep->own && !opal_list_is_empty(&module.spare_queues), "they are left over when it ends");
    complete(stale, qpn, IBV_WC_WR_FLUSH_ERR, 0);
    progress();
    btl_openib_port_changed(module.port, true, "the port is up");
    pass_ms(50);
    data_frames();
    peer_greets(700, last_hello.id, 0);
    complete(stale, qpn, IBV_WC_WR_FLUSH_ERR, 0);
    progress();
    TAP_OK(ups == 1 && ep->own && opal_list_is_empty(&module.spare_queues) && ep->own->pool.posted == 64 &&
               ep->own->pool.buffers == 64 && hw.receive_in == 128, "and serve the next one; what still comes of the earlier counts for nothing");
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
    test_own_growth();
    test_receiver_credits(WINDOW, 256);
    test_receiver_credits(256, 4096);
    receive_queue = BTL_OPENIB_QUEUE_SHARED;
}

/* ---- Rings ---- */

typedef struct ring {
    uint64_t addr;
    uint32_t rkey, slots;
} ring_t;

/* Has a frame of that type been sent to the peer? */
static bool sent_type(unsigned type, sent_t *frame)
{
    bool found = false;
    sent_t f;
    while (next_frame(&f)) {
        if (f.opcode == IBV_WR_SEND && f.data[6] == type) {
            *frame = f;
            found = true;
        }
    }
    return found;
}

static unsigned handed_by_peer; /* fragments */

static void peer_writes(const ring_t *r, unsigned slot, unsigned lap, uint32_t number, uint8_t word)
{
    uint8_t *end = (uint8_t *) (uintptr_t) r->addr + (slot + 1) * BTL_OPENIB_SLOT, *tail = end - BTL_OPENIB_SLOT_TAIL;
    btl_openib_prefix_t p = {.handed = handed_by_peer, .room = 4, .type = BTL_OPENIB_DATA, .tag = (uint8_t) last_hello.id};
    uint64_t last = number | UINT64_C(5) << 32 | (uint64_t) lap << 48; /* 5 bytes */
    memset(tail - 8, word, 8);
    btl_openib_prefix_write(&p, tail - 16);
    atomic_store_explicit((_Atomic uint64_t *) (void *) tail, htole64(last), memory_order_release);
}

static mca_btl_endpoint_t *busy_peer(ring_t *ring)
{
    sent_t f;
    mca_btl_openib.params.eager_rdma_after = 3;
    mca_btl_endpoint_t *ep = connected();
    hw.sent_out = hw.sent_in;
    handed_by_peer = 1;
    for (int i = 0; i < 3; i++) {
        peer_sends(BTL_OPENIB_DATA, 1, 4, 8);
        progress();
    }
    TAP_REQUIRE(sent_type(BTL_OPENIB_RING, &f), "a peer that sends many short fragments gets a ring");
    const uint8_t *at = f.data + BTL_OPENIB_PREFIX;
    *ring = (ring_t){.addr = opal_le_get64(at), .rkey = opal_le_get32(at + 8), .slots = opal_le_get32(at + 12)};
    return ep;
}

static ring_t late_ring;

static void write_and_send(void)
{
    peer_writes(&late_ring, 2, 1, 7, 1);
    peer_sends(BTL_OPENIB_DATA, 1, 4, 8);
}

static void test_ring_in(void)
{
    ring_t ring;
    sent_t f;
    start();
    mca_btl_endpoint_t *ep = busy_peer(&ring);
    peer_writes(&ring, 0, 1, 4, 7);
    progress();
    TAP_OK(arrived == 4 && last_len == 5 && last_data[4] == 7, "what it writes there arrives");
    peer_writes(&ring, 1, 1, 6, 9);
    progress();
    TAP_OK(arrived == 4, "a fragment waits for the one before it");
    peer_sends(BTL_OPENIB_DATA, 1, 4, 8);
    progress();
    TAP_OK(arrived == 6 && last_data[4] == 9, "which was sent: then it is its turn");
    late_ring = ring;
    adapter.on_poll = write_and_send;
    progress();
    TAP_OK(arrived == 8 && last_len == 8, "what was written before something sent is read before it");
    send_one(ep);
    progress();
    handed_by_peer = 2;
    peer_writes(&ring, 3, 1, 9, 1);
    progress();
    peer_sends(BTL_OPENIB_COUNT, 1, 4, 0);
    progress();
    TAP_OK(arrived == 9 && downs == 0, "a count that is read later than a newer one is no crime");
    peer_writes(&ring, 0, 1, 10, 1);
    progress();
    TAP_OK(arrived == 9, "a slot's earlier lap is nothing new");
    peer_writes(&ring, 0, 2, 10, 1);
    progress();
    TAP_OK(arrived == 10, "its next is");
    /* Sleep */
    hw.sent_out = hw.sent_in;
    btl_openib_rings_sleep(&module);
    TAP_OK(sent_type(BTL_OPENIB_RING_OFF, &f), "before sleep the peer is asked to stop");
    peer_writes(&ring, 1, 2, 11, 1);
    mca_btl_timer_fn_t fn = timer_fn;
    fn(timer_context);
    TAP_OK(arrived == 11, "until it has, a timer looks");
    peer_sends(BTL_OPENIB_RING_LEFT, 2, 4, 0);
    progress();
    TAP_OK(ep->ring_in == NULL && module.ring_count == 0, "then the ring is gone");
    for (int i = 0; i < 5; i++) {
        peer_sends(BTL_OPENIB_DATA, 2, 4, 8);
        progress();
    }
    TAP_OK(ep->ring_in == NULL, "and stays so for a while");
    peer_sends(BTL_OPENIB_DATA, 2, 4, 8);
    progress();
    TAP_OK(ep->ring_in && sent_type(BTL_OPENIB_RING, &f), "after twice as many fragments there is one again");
    clock_ns += 1000000;
    btl_openib_module_look(&module);
    btl_openib_module_look(&module);
    TAP_OK(ep->ring_in->state == BTL_OPENIB_RING_LEAVING, "one that is idle ends, too");
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
}

static void test_ring_bad(void)
{
    ring_t ring;
    start();
    mca_btl_endpoint_t *ep = busy_peer(&ring);
    peer_writes(&ring, 0, 1, 4, 1);
    uint8_t *tail = (uint8_t *) (uintptr_t) ring.addr + BTL_OPENIB_SLOT - BTL_OPENIB_SLOT_TAIL;
    tail[4] = 255;
    progress();
    TAP_OK(arrived == 3 && downs == 0, "a length that a slot does not have is not read");
    tail[4] = 5;
    tail[-10] = BTL_OPENIB_RING_OFF;
    progress();
    TAP_OK(arrived == 3 && ep->ring_in->got == 1, "nor is a frame of another type");
    peer_greets(501, 0, BTL_OPENIB_HELLO_ANSWER);
    TAP_OK(ep->ring_in == NULL && module.ring_count == 0, "a new connection begins without a ring");
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
    start();
    mca_btl_openib.params.eager_rdma_peers = 0;
    mca_btl_openib.params.eager_rdma_after = 1;
    ep = connected();
    peer_sends(BTL_OPENIB_DATA, 1, 4, 8);
    progress();
    TAP_OK(ep->ring_in == NULL, "no more peers have one than may");
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
}

/* The peer opens a ring of that many slots for us. */
static void peer_opens(uint64_t addr, uint32_t slots)
{
    unsigned at = hw.receive_out % POSTED_MAX;
    uint8_t *to = (uint8_t *) (uintptr_t) hw.receive_sge[at].addr + BTL_OPENIB_PREFIX;
    opal_le_put64(to, addr);
    opal_le_put32(to + 8, 77);
    opal_le_put32(to + 12, slots);
    peer_sends(BTL_OPENIB_RING, 1, WINDOW, BTL_OPENIB_RING_FRAME - BTL_OPENIB_PREFIX);
    progress();
}

static void test_ring_out(void)
{
    sent_t f, left;
    unsigned written = 0, sent = 0;
    start();
    mca_btl_endpoint_t *ep = connected();
    hw.sent_out = hw.sent_in;
    peer_opens(0x10000, 1000);
    send_one(ep);
    TAP_OK(next_frame(&f) && f.opcode == IBV_WR_SEND, "a ring that makes no sense is not used");
    peer_opens(0x10000, 2);
    for (int i = 0; i < 4; i++) {
        send_one(ep);
    }
    while (next_frame(&f)) {
        if (f.opcode == IBV_WR_RDMA_WRITE) {
            const uint8_t *tail = f.data + f.len - BTL_OPENIB_SLOT_TAIL;
            TAP_OK(f.remote + f.len == 0x10000 + (written + 1) * BTL_OPENIB_SLOT && f.len == 8 + 8 + 8 &&
                       opal_le_get32(tail) == 3 + written && opal_le_get16(tail + 4) == 6 && opal_le_get16(tail + 6) == 1 &&
                       memcmp(f.data + BTL_OPENIB_PREFIX, "header", 6) == 0,
                   "a fragment is written to the end of slot %u", written);
            written++;
        } else {
            sent++;
        }
    }
    TAP_OK(written == 2 && sent == 2, "two go into the two slots, others are sent");
    ep->ring_out->put = 0; /* as after 2^32 of them */
    send_one(ep);
    TAP_OK(next_frame(&f) && f.opcode == IBV_WR_SEND, "so it is when their number has started anew");
    ep->ring_out->put = 2;
    peer_sends(BTL_OPENIB_COUNT, 3, WINDOW, 0);
    progress();
    send_one(ep);
    TAP_OK(next_frame(&f) && f.opcode == IBV_WR_RDMA_WRITE && f.remote + f.len == 0x10000 + BTL_OPENIB_SLOT &&
               opal_le_get16(f.data + f.len - 2) == 2, "a slot whose fragment is confirmed is used again");
    peer_sends(BTL_OPENIB_RING_OFF, 3, WINDOW, 0);
    progress();
    TAP_OK(sent_type(BTL_OPENIB_RING_LEFT, &left), "who is asked to stop answers");
    send_one(ep);
    TAP_OK(next_frame(&f) && f.opcode == IBV_WR_SEND, "and sends from then on");
    btl_openib_port_changed(module.port, false, "the port is down");
    progress();
    TAP_OK(returned == 6, "what was written and not confirmed comes back as well: %u", returned);
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
}

/* ---- rdma_cm ---- */

#ifdef HAWSER_HAVE_RDMACM

enum { CM_MAX = 64, CM_PORT = 4321 };

static struct {
    struct rdma_event_channel channel;
    struct rdma_cm_event queue[CM_MAX];
    unsigned in, out, ids, unacked, connects, accepts, rejects;
    struct rdma_cm_id *last;      /* that connect() was called of */
    uint8_t said[BTL_OPENIB_HELLO]; /* in the last request or reply */
    bool unreachable;
} cm;

static void cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, const uint8_t *hello)
{
    struct rdma_cm_event *e = &cm.queue[cm.in++ % CM_MAX];
    *e = (struct rdma_cm_event){.id = id, .event = type};
    if (hello) {
        e->param.ud.private_data = memcpy(malloc(180), hello, BTL_OPENIB_HELLO);
        e->param.ud.private_data_len = 180;
    }
}

static struct rdma_event_channel *cm_create_channel(void)
{
    cm.channel.fd = open("/dev/null", O_RDWR);
    return &cm.channel;
}

static void cm_destroy_channel(struct rdma_event_channel *channel)
{
    close(channel->fd);
}

static int cm_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context, enum rdma_port_space ps)
{
    *id = calloc(1, sizeof(**id));
    (*id)->channel = channel;
    (*id)->context = context;
    (*id)->ps = ps;
    cm.ids++;
    return 0;
}

static int cm_destroy_id(struct rdma_cm_id *id)
{
    for (unsigned i = cm.out; i != cm.in; i++) {
        cm.queue[i % CM_MAX].id = cm.queue[i % CM_MAX].id == id ? NULL : cm.queue[i % CM_MAX].id;
    }
    TAP_REQUIRE(cm.unacked == 0, "no id ends before its events are acknowledged");
    free(id);
    cm.ids--;
    return 0;
}

static int cm_get_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
    (void) channel;
    while (cm.out != cm.in && !cm.queue[cm.out % CM_MAX].id) {
        free((void *) (uintptr_t) cm.queue[cm.out++ % CM_MAX].param.ud.private_data);
    }
    if (cm.out == cm.in) {
        return -1;
    }
    cm.unacked++;
    *event = &cm.queue[cm.out++ % CM_MAX];
    return 0;
}

static int cm_ack(struct rdma_cm_event *event)
{
    free((void *) (uintptr_t) event->param.ud.private_data);
    cm.unacked--;
    return 0;
}

static int cm_bind(struct rdma_cm_id *id, struct sockaddr *addr)
{
    (void) id;
    return addr->sa_family == AF_INET ? 0 : -1;
}

static int cm_listen(struct rdma_cm_id *id, int backlog)
{
    (void) id, (void) backlog;
    return 0;
}

static uint16_t cm_port(struct rdma_cm_id *id)
{
    (void) id;
    return htobe16(CM_PORT);
}

static int cm_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int ms)
{
    (void) from, (void) to, (void) ms;
    cm_event(id, cm.unreachable ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
    return 0;
}

static int cm_resolve_route(struct rdma_cm_id *id, int ms)
{
    (void) ms;
    cm_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
    return 0;
}

static int cm_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
    cm.last = id;
    cm.connects++;
    memcpy(cm.said, param->private_data, param->private_data_len);
    return 0;
}

static int cm_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
    (void) id;
    cm.accepts++;
    memcpy(cm.said, param->private_data, param->private_data_len);
    return 0;
}

static int cm_reject(struct rdma_cm_id *id, const void *data, uint8_t len)
{
    (void) id, (void) data, (void) len;
    cm.rejects++;
    return 0;
}

static void cm_progress(void)
{
    do {
        event_fn(cm.channel.fd, MCA_BTL_EVENT_READ, event_context);
        progress();
    } while (cm.out != cm.in);
}

static bool cm_said(btl_openib_hello_t *h)
{
    return btl_openib_hello_read(cm.said, BTL_OPENIB_HELLO, mca_btl_openib.services->job->secret, h);
}

/* The peer's HELLO, by a request of its, or (`id`) in the reply to ours. */
static void cm_peer_says(struct rdma_cm_id *id, uint32_t hers, uint32_t ours, unsigned flags)
{
    btl_openib_hello_t h = {.from = PEER, .to = SELF, .id = hers, .your_id = ours, .qpn = PEER_QPN, .psn = PEER_PSN,
                            .room = BTL_OPENIB_FIRST_ROOM, .flags = (uint8_t) flags, .rd = 1,
                            .addr = {.mtu = IBV_MTU_4096, .service = 9, .gid = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2}}};
    uint8_t data[BTL_OPENIB_HELLO];
    struct rdma_cm_id *from = id;
    btl_openib_hello_write(&h, mca_btl_openib.services->job->secret, data);
    if (!from) {
        cm_create_id(&cm.channel, &from, NULL, RDMA_PS_UDP);
    }
    cm_event(from, id ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_REQUEST, data);
    cm_progress();
}

static mca_btl_endpoint_t *cm_add(uint16_t service)
{
    common_verbs_t theirs = {.count = 1, .port[0].addr = {.mtu = IBV_MTU_4096, .service = service,
                                                          .gid = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2}}};
    uint8_t card[COMMON_VERBS_CARD_MAX];
    mca_btl_peer_t peer = {.name = PEER, .card = card, .card_len = common_verbs_card_write(&theirs, card)};
    mca_btl_endpoint_t *ep = NULL;
    const char *why = NULL;
    return btl_openib_ops.add_peer(&module.super, &peer, &hw, &ep, &why) == MCA_SUCCESS ? ep : NULL;
}

static void cm_start(void)
{
    memset(&cm, 0, sizeof(cm));
    btl_openib_cm_lib = (btl_openib_cm_lib_t){
        .create_event_channel = cm_create_channel, .destroy_event_channel = cm_destroy_channel, .create_id = cm_create_id,
        .destroy_id = cm_destroy_id, .get_cm_event = cm_get_event, .ack_cm_event = cm_ack, .bind_addr = cm_bind,
        .listen = cm_listen, .get_src_port = cm_port, .resolve_addr = cm_resolve_addr, .resolve_route = cm_resolve_route,
        .connect = cm_connect, .accept = cm_accept, .reject = cm_reject};
    way = BTL_OPENIB_BY_RDMACM;
    start();
    way = BTL_OPENIB_BY_DATAGRAMS;
}

static void test_cm(void)
{
    btl_openib_hello_t h;
    cm_start();
    TAP_OK(module.cm_channel && module.port->addr.service == CM_PORT && !module.greeter && adapter.qps == 0,
           "with rdma_cm a port has a listener, and no queue pair for datagrams");
    TAP_OK(cm_add(0) == NULL, "a peer that connects in another way is refused");
    mca_btl_endpoint_t *ep = cm_add(9);
    send_one(ep);
    progress();
    cm_progress();
    TAP_OK(cm.connects == 1 && cm_said(&h) && h.your_id == 0 && h.addr.service == CM_PORT, "a request carries a HELLO");
    uint32_t id = h.id;
    cm_peer_says(cm.last, 500, id, BTL_OPENIB_HELLO_ANSWER);
    TAP_OK(ep->state == BTL_OPENIB_UP && data_frames() == 1, "the reply brings one back: the fragment goes");
    TAP_OK(cm.connects == 2 && cm_said(&h) && h.your_id == 500 && !(h.flags & BTL_OPENIB_HELLO_ANSWER),
           "and a last one tells the peer");
    cm_event(cm.last, RDMA_CM_EVENT_UNREACHABLE, NULL);
    cm_progress();
    TAP_OK(downs == 0 && cm.ids == 1, "which need not be answered");
    cm_peer_says(NULL, 501, 0, BTL_OPENIB_HELLO_ANSWER);
    TAP_OK(downs == 1 && cm.accepts == 0, "a request of a new connection ends the old one");
    cm_peer_says(NULL, 501, 0, BTL_OPENIB_HELLO_ANSWER);
    TAP_OK(downs == 1 && cm.accepts == 1 && cm_said(&h) && h.your_id == 501 && h.id != id,
           "repeated, it is replied to by what the peer then needs");
    cm_peer_says(NULL, 501, h.id, 0);
    TAP_OK(ups == 1 && cm.rejects == 2 && ep->state == BTL_OPENIB_UP, "one that wants no HELLO gets none");
    uint8_t nonsense[BTL_OPENIB_HELLO] = {0};
    struct rdma_cm_id *stranger_id;
    cm_create_id(&cm.channel, &stranger_id, NULL, RDMA_PS_UDP);
    cm_event(stranger_id, RDMA_CM_EVENT_CONNECT_REQUEST, nonsense);
    cm_progress();
    TAP_OK(cm.rejects == 3 && module.strangers == 1, "a stranger is turned away");
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
    TAP_OK(cm.ids == 0, "no id is left");
}

static unsigned rejections;

static void rejected(const char *link, const char *why)
{
    rejections += strcmp(link, "openib:ib0") == 0 && strstr(why, "RoCE");
}

/* Of two ports, one that rdma_cm can't be used on: the other one is. */
static void test_cm_ports(void)
{
    static const mca_base_services_t base = {.log = logs};
    static const mca_btl_job_t job = {.self = SELF};
    static const mca_btl_services_t services = {.base = &base, .job = &job, .event_add = event_add, .event_del = nothing,
                                                .now_ns = now_ns, .rejected = rejected};
    btl_openib_component_t *c = &mca_btl_openib;
    cm_start();
    finish();
    c->services = &services;
    c->verbs.count = 2;
    c->verbs.device[0].users = 2;
    c->verbs.port[1] = c->verbs.port[0];
    c->verbs.port[0] = (common_verbs_port_t){.device = &c->verbs.device[0], .name = "ib0", .addr = {.mtu = IBV_MTU_4096, .lid = 8}};
    snprintf(c->verbs.port[1].name, sizeof(c->verbs.port[1].name), "roce0");
    c->params.connect = BTL_OPENIB_BY_RDMACM;
    TAP_OK(btl_openib_modules_open(c) == MCA_SUCCESS && rejections == 1 && c->module_count == 1 && c->verbs.count == 1 &&
               strcmp(c->module_list[0]->name, "openib:roce0") == 0 && c->modules[0].index == 0 &&
               c->modules[0].port == &c->verbs.port[0] && c->verbs.port[0].addr.service == CM_PORT,
           "a port of which nothing can be made is told of, and keeps no other from being used");
    btl_openib_module_close(&c->modules[0]);
    free(c->modules);
    TAP_OK(adapter.registrations == 0 && adapter.qps == 0 && cm.ids == 0, "nothing is left of either");
    c->verbs.count = 1;
    c->verbs.port[0] = (common_verbs_port_t){.device = &c->verbs.device[0], .name = "ib0", .addr = {.mtu = IBV_MTU_4096, .lid = 8}};
    TAP_OK(btl_openib_modules_open(c) == MCA_ERR_NOT_AVAILABLE && rejections == 2 && c->module_count == 0, "if it is the only one there is none");
    free(c->modules);
}

static void test_cm_crossing(void)
{
    btl_openib_hello_t h;
    cm_start();
    mca_btl_endpoint_t *ep = cm_add(9);
    send_one(ep);
    progress();
    cm_progress();
    cm_peer_says(NULL, 500, 0, BTL_OPENIB_HELLO_ANSWER); /* hers crosses ours */
    TAP_OK(cm.accepts == 1 && cm_said(&h) && h.your_id == 500, "a crossing request is replied to");
    cm_peer_says(cm.last, 500, h.id, 0);
    TAP_OK(ep->state == BTL_OPENIB_UP && data_frames() == 1 && downs == 0, "both become one connection");
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
    cm_start();
    cm.unreachable = true;
    ep = cm_add(9);
    send_one(ep);
    progress();
    cm_progress();
    for (int i = 0; i < 30; i++) {
        pass_ms(50);
        cm_progress();
    }
    TAP_OK(ep->state == BTL_OPENIB_GREETING && silents == 1 && cm.connects == 0, "an address that leads nowhere is tried again");
    cm.unreachable = false;
    pass_ms(600);
    cm_progress();
    TAP_OK(cm.connects > 0, "until it does");
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
    TAP_OK(cm.ids == 0, "no id is left");
}

#else

static void test_cm(void)
{
    TAP_SKIP("no librdmacm");
}

static void test_cm_crossing(void)
{
}

static void test_cm_ports(void)
{
}

#endif

static void test_refused(void)
{
    start();
    quiet_user = true;
    peer_greets(500, 0, BTL_OPENIB_HELLO_ANSWER);
    quiet_user = false;
    TAP_OK(adapter.qps == 1 && hw.sent_in == 0, "a peer that the user does not want gets no answer");
    finish();
}

/* All that was posted to the greeter comes back, as from an adapter whose queue pair has failed. */
static void greeter_fails(enum ibv_qp_state state)
{
    module.greeter->state = state;
    while (state == IBV_QPS_ERR && hw.hello_out != hw.hello_in) {
        complete(hw.hellos[hw.hello_out++ % POSTED_MAX].wr_id, module.greeter->qp_num, IBV_WC_WR_FLUSH_ERR, 0);
    }
}

/* The peer's card says where it was once. */
static void test_moved(void)
{
    start();
    mca_btl_endpoint_t *ep = add();
    send_one(ep);
    progress();
    data_frames();
    TAP_OK(last_to == 0x99, "a peer is greeted where its card says");
    peer_at.qpn = 0x55;
    peer_greets(500, 0, BTL_OPENIB_HELLO_ANSWER);
    data_frames();
    TAP_OK(last_to == 0x55 && last_hello.your_id == 500, "and answered where it is");
    peer_greets(500, last_hello.id, 0);
    TAP_OK(ep->state == BTL_OPENIB_UP, "so that both get to know");
    peer_at.qpn = 0x99;
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
}

/* The port of InfiniBand that two processes use is given another LID: neither can tell the other, who is not where it was. */
static void test_moved_together(void)
{
    const common_verbs_addr_t before = peer_at;
    start();
    module.port->ethernet = false;
    module.port->addr.lid = peer_at.lid = 64;
    memcpy(peer_at.gid, module.port->addr.gid, sizeof(peer_at.gid));
    mca_btl_endpoint_t *ep = connected();
    TAP_OK(ep->state == BTL_OPENIB_UP && adapter.last_path.dlid == 64, "a peer at our own port is connected");
    module.port->addr.lid = 80;
    btl_openib_port_changed(module.port, false, "it has another LID");
    progress();
    btl_openib_port_changed(module.port, true, "it has another LID");
    pass_ms(50);
    data_frames();
    TAP_OK(last_hello.your_id == 0 && adapter.last_ah.dlid == 80, "when that has another LID it is greeted there");
    peer_at.lid = 80;
    peer_greets(700, last_hello.id, 0);
    TAP_OK(ups == 1 && adapter.last_path.dlid == 80, "and connected again");
    peer_at = before;
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
}

static void test_greeter(void)
{
    start();
    mca_btl_endpoint_t *ep = add();
    uint32_t qpn = module.greeter->qp_num, receives = module.greetings.posted;
    greeter_fails(IBV_QPS_ERR);
    int rounds = progress_at_most(1000);
    TAP_OK(rounds < 100, "a queue pair for greetings that has failed keeps nobody busy (%d rounds)", rounds);
    TAP_OK(module.greeter->state == IBV_QPS_RTS && module.greeter->qp_num == qpn && module.greetings.posted == receives,
           "and is as new, under its number");
    send_one(ep);
    progress();
    data_frames();
    peer_greets(500, last_hello.id, 0);
    TAP_OK(ep->state == BTL_OPENIB_UP, "peers get through to it");
    btl_openib_ops.del_peer(&module.super, ep);
    finish();

    start();
    ep = add();
    greeter_fails(IBV_QPS_SQE);
    send_one(ep);
    progress_at_most(1000);
    pass_ms(100);
    data_frames();
    TAP_OK(module.greeter->state == IBV_QPS_RTS && last_hello.id == ep->id, "one whose sending half has failed sends again");
    btl_openib_port_changed(module.port, false, "the port is down");
    greeter_fails(IBV_QPS_ERR);
    progress_at_most(1000);
    TAP_OK(module.greeter->state == IBV_QPS_ERR, "while the port is down it stays as it is");
    btl_openib_port_changed(module.port, true, "the port is up");
    progress();
    TAP_OK(module.greeter->state == IBV_QPS_RTS && module.greetings.posted == receives, "and then is ready");
    btl_openib_ops.del_peer(&module.super, ep);
    finish();
}

int main(void)
{
    tap_start(60);
    test_connect();
    test_away();
    test_greeter();
    test_moved();
    test_moved_together();
    test_quality();
    test_sender_credits();
    test_slow_peers();
    test_receiver_credits(WINDOW, 256);
    test_receiver_credits(512, 64);
    test_strangers();
    test_port();
    test_ending();
    test_probe();
    test_recall();
    test_receives_fail();
    test_broken();
    test_remotes();
    test_own_queue();
    test_ring_in();
    test_ring_bad();
    test_ring_out();
    test_cm();
    test_cm_crossing();
    test_cm_ports();
    test_refused();
    return tap_end();
}
