/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * btl/ud over an adapter that is this program, and who sends to it: noise, wrong codes, cut and stretched datagrams, replays,
 * senders that are not who they say; a peer that knows the secret, and says what can't be. Each datagram stands in
 * exactly as much memory as it has, so that a sanitizer sees what is read beyond it.
 */
#include "ompi/mca/btl/ud/btl_ud.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "opal/util/le.h"
#include "test/support/fuzz.h"
#include "test/support/tap.h"
#include "test/support/verbs_adapter.h"

enum { SELF = 1, PEER = 2, OTHER = 3, WINDOW = 32, PEER_QPN = 0x77, MTU = 1024, RANDOM = 200000 };

/* ---- What is posted ---- */

static struct {
    uint64_t receive[ADAPTER_RING];
    unsigned in, out, sent;
    uint8_t last[MTU];     /* that was sent */
    uint32_t last_qpn, last_qkey;
} hw;

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    (void) bad;
    for (; wr; wr = wr->next) {
        if (qp->state == IBV_QPS_ERR) {
            adapter_complete(qp->recv_cq, &(struct ibv_wc){.wr_id = wr->wr_id, .status = IBV_WC_WR_FLUSH_ERR});
        } else {
            hw.receive[hw.in++ % ADAPTER_RING] = wr->wr_id;
        }
    }
    return 0;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    (void) bad;
    if (qp->state != IBV_QPS_RTS) {
        adapter_complete(qp->send_cq, &(struct ibv_wc){.wr_id = wr->wr_id, .status = IBV_WC_WR_FLUSH_ERR});
        return 0;
    }
    hw.sent++;
    memcpy(hw.last, (void *) (uintptr_t) wr->sg_list->addr, wr->sg_list->length);
    hw.last_qpn = wr->wr.ud.remote_qpn;
    hw.last_qkey = wr->wr.ud.remote_qkey;
    if (wr->send_flags & IBV_SEND_SIGNALED) {
        adapter_complete(qp->send_cq, &(struct ibv_wc){.wr_id = wr->wr_id, .status = IBV_WC_SUCCESS});
    }
    return 0;
}

/* ---- Services and the user ---- */

static mca_btl_job_t job = {.self = SELF, .size = 4, .secret = {9}};
static unsigned arrived, incoming, writables, downs, ups;
static mca_btl_name_t more; /* when something goes down: peers that the user adds */
static size_t arrived_len;
static uint32_t arrived_sum;
static bool mixed_up;

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
    (void) fd, (void) what, (void) fn, (void) context;
    *handle = &hw;
    return MCA_SUCCESS;
}

static int timer_add(uint64_t us, mca_btl_timer_fn_t fn, void *context, void **handle)
{
    (void) us, (void) fn, (void) context;
    *handle = &hw;
    return MCA_SUCCESS;
}

static void nothing(void *handle)
{
    (void) handle;
}

static uint64_t clock_ns = 1;

static uint64_t now_ns(void)
{
    return clock_ns += 1000;
}

static void user_arrive(void *cookie, mca_btl_arrival_t *arrival)
{
    const uint8_t *data = arrival->data;
    arrived++;
    arrived_len = arrival->len;
    mixed_up |= cookie != &job || arrival->len == 0;
    for (size_t i = 0; i < arrival->len; i++) {
        arrived_sum += data[i];
    }
}

static void user_writable(void *cookie, mca_btl_endpoint_t *ep)
{
    (void) cookie, (void) ep;
    writables++;
}

static mca_btl_endpoint_t *add(mca_btl_name_t name);

static void user_state(void *cookie, mca_btl_endpoint_t *ep, mca_btl_state_t state, const char *why)
{
    (void) cookie, (void) ep, (void) why;
    downs += state == MCA_BTL_STATE_DOWN;
    ups += state == MCA_BTL_STATE_UP;
    for (; more > 0 && state == MCA_BTL_STATE_DOWN; more--) {
        add(1000 + more);
    }
}

static void *user_incoming(mca_btl_module_t *of, mca_btl_name_t name)
{
    (void) of;
    incoming++;
    return name == PEER ? &job : NULL;
}

static btl_ud_module_t *module;
static bool infiniband;

static void start(void)
{
    static const mca_base_services_t base = {.log = logs};
    static const mca_btl_services_t services = {.base = &base, .job = &job, .poller_active = poller_active,
                                                .event_add = event_add, .event_del = nothing, .timer_add = timer_add,
                                                .timer_del = nothing, .now_ns = now_ns};
    static const mca_btl_upcalls_t upcalls = {.arrive = user_arrive, .writable = user_writable, .state = user_state,
                                              .incoming = user_incoming};
    btl_ud_component_t *c = &mca_btl_ud;
    memset(&hw, 0, sizeof(hw));
    adapter_start();
    adapter.context.ops.post_recv = post_recv;
    adapter.context.ops.post_send = post_send;
    *c = (btl_ud_component_t){
        .services = &services, .epoch = 1000, .qkey = btl_ud_qkey(job.secret), .module_count = 1, .modules_open = 1,
        .params = {.qps = 4, .send_depth = 64, .recv_num = 128, .recv_max = 256, .window = WINDOW, .probe_us = 5000,
                   .silence_ms = 1000, .retry_max_ms = 1000}};
    c->modules = calloc(1, sizeof(*c->modules));
    c->verbs.count = 1;
    c->verbs.device[0] = adapter_device();
    c->verbs.port[0] = (common_verbs_port_t){.device = &c->verbs.device[0], .number = 1, .ethernet = true,
                                             .addr = {.mtu = IBV_MTU_1024,
                                                      .gid = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}}};
    if (infiniband) {
        c->verbs.port[0].ethernet = false;
        c->verbs.port[0].addr = (common_verbs_addr_t){.mtu = IBV_MTU_1024, .lid = 8, .gid = {0xfe, 0x80, [15] = 1}};
    }
    c->verbs.port[0].pkey_index = adapter.pkey_index = 2;
    opal_list_init(&c->care);
    opal_list_init(&c->owing);
    mca_btl_base_attention_init(&c->attention, &services);
    module = c->modules;
    TAP_REQUIRE(btl_ud_module_open(module, 0) == MCA_SUCCESS, "a module");
    module->super.upcalls = &upcalls;
    arrived = incoming = writables = downs = ups = 0;
}

static mca_btl_endpoint_t *add(mca_btl_name_t name)
{
    common_verbs_t theirs = {.count = 1, .port[0].addr = {.mtu = IBV_MTU_1024, .qpn = 0x88,
                                                          .gid = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 9}}};
    uint8_t card[COMMON_VERBS_CARD_MAX];
    mca_btl_peer_t peer = {.name = name, .card = card, .card_len = common_verbs_card_write(&theirs, card)};
    mca_btl_endpoint_t *ep = NULL;
    const char *why;
    int rc = module->super.ops->add_peer(&module->super, &peer, &job, &ep, &why);
    return rc == MCA_SUCCESS ? ep : NULL;
}

/* What the polling thread was asked for. */
static void kicks(void)
{
    while (btl_ud_poll(&mca_btl_ud) > 0) {
    }
}

static bool all_there(void)
{
    return module->pool.posted + module->pool.idle_count == module->pool.buffers && module->pool.buffers <= 256;
}

static void finish(void)
{
    TAP_OK(all_there() && hw.in - hw.out == module->pool.posted, "every receive buffer is posted again, or free");
    module->super.ops->finalize(&module->super);
    TAP_OK(adapter.registrations == 0 && adapter.qps == 0 && adapter.ahs == 0 && adapter.attached == 0, "nothing is left of it");
}

/* ---- Datagrams ---- */

static const uint8_t grh6[BTL_UD_GRH] = {[0] = 0x60, [8] = 0xfe, [9] = 0x80, [23] = 5};
static const uint8_t grh4[BTL_UD_GRH] = {[20] = 0x45, [32] = 10, [35] = 7}; /* 10.0.0.7 */

/* `total`: bytes as the adapter tells them, GRH included. */
static void throw_raw(const uint8_t *grh, const uint8_t *bytes, size_t total, enum ibv_wc_status status)
{
    if (hw.in == hw.out) {
        TAP_REQUIRE(false, "a receive is posted");
    }
    common_verbs_buffer_t *buffer = (common_verbs_buffer_t *) (uintptr_t) hw.receive[hw.out++ % ADAPTER_RING];
    uint8_t *own = buffer->data, *exact = malloc(total > 0 ? total : 1);
    memcpy(exact, grh, total < BTL_UD_GRH ? total : BTL_UD_GRH);
    if (total > BTL_UD_GRH) {
        memcpy(exact + BTL_UD_GRH, bytes, total - BTL_UD_GRH);
    }
    buffer->data = exact;
    adapter_complete(module->recv_cq, &(struct ibv_wc){.wr_id = (uintptr_t) buffer, .status = status,
                                                       .byte_len = (uint32_t) total, .wc_flags = IBV_WC_GRH});
    btl_ud_receive(module);
    buffer->data = own;
    free(exact);
}

static void throw(const uint8_t *datagram, size_t len)
{
    throw_raw(grh4, datagram, BTL_UD_GRH + len, IBV_WC_SUCCESS);
}

static uint32_t epoch = 100, at;
static uint16_t peer_lid; /* of four that its port has, if it is one of InfiniBand */
static uint8_t made[MTU];

/* What the peer would send, if nothing else is said. */
static btl_ud_header_t header(btl_ud_type_t type, size_t len)
{
    at += type == BTL_UD_DATA;
    return (btl_ud_header_t){.from = PEER, .epoch = epoch, .type = (uint8_t) type, .room = WINDOW, .len = (uint16_t) len,
                             .at = at, .qpn = PEER_QPN, .lid = peer_lid, .lmc = peer_lid > 0 ? 2 : 0};
}

/* Made by one who knows this secret, for our port `to_port`. */
static size_t make(const btl_ud_header_t *h, const uint8_t *secret, unsigned to_port)
{
    opal_siphash_key_t key;
    size_t len = BTL_UD_HEADER + h->len;
    btl_ud_key(secret, h->from, h->port, SELF, to_port, &key);
    btl_ud_header_write(made, h);
    memset(made + BTL_UD_HEADER, (int) h->at, h->len);
    opal_le_put64(made, btl_ud_code(&key, made, len));
    return len;
}

static void peer_says(const btl_ud_header_t *h)
{
    throw(made, make(h, job.secret, 0));
}

static void peer_sends(size_t len)
{
    btl_ud_header_t h = header(BTL_UD_DATA, len);
    peer_says(&h);
}

static bool quiet(void)
{
    return arrived == 0 && incoming == 0 && hw.sent == 0 && !btl_ud_endpoint_find(module, PEER);
}

/* ---- Before anybody is known ---- */

static void test_noise(void)
{
    uint8_t noise[MTU];
    unsigned seed = fuzz_seed(1);
    start();
    for (int i = 0; i < 2000; i++) {
        size_t len = (size_t) rand_r(&seed) % sizeof(noise);
        for (size_t k = 0; k < len; k++) {
            noise[k] = (uint8_t) rand_r(&seed);
        }
        if (len >= BTL_UD_HEADER) { /* as right as one can be without the secret */
            btl_ud_header_t h = header((btl_ud_type_t) (1 + i % 5), len - BTL_UD_HEADER);
            btl_ud_header_write(noise, &h);
        }
        throw(noise, len);
    }
    TAP_OK(quiet() && module->strangers == 2000, "noise leads to nothing");
    finish();
}

static void test_unknown(void)
{
    static const uint8_t other[32] = {10};
    start();
    btl_ud_header_t h = header(BTL_UD_DATA, 100);
    throw(made, make(&h, other, 0));
    TAP_OK(quiet(), "another job's datagram leads to nothing");
    throw(made, make(&h, job.secret, 1));
    TAP_OK(quiet(), "nor one for another port");
    make(&h, job.secret, 0);
    opal_le_put64(made + 8, OTHER);
    throw(made, BTL_UD_HEADER + 100);
    TAP_OK(quiet(), "nor one that another seems to have sent");
    h.from = SELF;
    peer_says(&h);
    TAP_OK(quiet(), "nor one from ourselves");
    h = header(BTL_UD_BYE, 0);
    peer_says(&h);
    TAP_OK(quiet() && module->strangers == 5, "nor a farewell from nobody");
    h = header(BTL_UD_DATA, 100);
    h.from = OTHER;
    peer_says(&h);
    TAP_OK(incoming == 1 && arrived == 0 && hw.sent == 0 && !btl_ud_endpoint_find(module, OTHER),
           "one whom the user does not want gets nothing");
    h = header(BTL_UD_DATA, 100);
    throw_raw(grh4, made, BTL_UD_GRH + make(&h, job.secret, 0), IBV_WC_WR_FLUSH_ERR);
    TAP_OK(arrived == 0 && !btl_ud_endpoint_find(module, PEER), "a receive that failed holds nothing");
    finish();
}

static void test_lengths(void)
{
    start();
    btl_ud_header_t h = header(BTL_UD_DATA, 100);
    size_t len = make(&h, job.secret, 0);
    for (size_t total = 0; total < BTL_UD_GRH + len; total++) {
        throw_raw(grh4, made, total, IBV_WC_SUCCESS);
    }
    TAP_OK(quiet() && module->strangers == BTL_UD_GRH + len, "a datagram cut anywhere leads to nothing");
    memset(made + len, 0, sizeof(made) - len);
    for (size_t more = 1; more < 64; more++) {
        throw(made, len + more);
    }
    TAP_OK(quiet(), "nor does one with something behind it");
    for (size_t bit = 0; bit < len * 8; bit++) {
        made[bit / 8] ^= (uint8_t) (1 << bit % 8);
        throw(made, len);
        made[bit / 8] ^= (uint8_t) (1 << bit % 8);
    }
    TAP_OK(quiet(), "nor one with any bit changed");
    throw(made, len);
    TAP_OK(arrived == 1 && arrived_len == 100 && incoming == 1 && btl_ud_endpoint_find(module, PEER),
           "whole, it makes an endpoint, and is handed up");
    finish();
}

/* ---- A known peer, and others in its name ---- */

static mca_btl_endpoint_t *meet(const uint8_t *grh)
{
    at = 0;
    btl_ud_header_t h = header(BTL_UD_DATA, 100);
    throw_raw(grh, made, BTL_UD_GRH + make(&h, job.secret, 0), IBV_WC_SUCCESS);
    mca_btl_endpoint_t *ep = btl_ud_endpoint_find(module, PEER);
    TAP_REQUIRE(ep && arrived > 0, "the peer is met");
    btl_ud_care(ep, 0); /* as the poller would */
    return ep;
}

static void test_known(void)
{
    uint8_t copy[MTU];
    start();
    mca_btl_endpoint_t *ep = meet(grh4);
    TAP_OK(ep->remote_qpn == PEER_QPN && ep->addr.gid[10] == 0xff && ep->addr.gid[12] == 10 && ep->addr.gid[15] == 7,
           "the way back is where it came from");
    memcpy(copy, made, sizeof(copy));
    throw(copy, BTL_UD_HEADER + 100);
    TAP_OK(arrived == 1 && module->strangers == 0, "its replay is not handed up");
    for (uint32_t i = 0; i < 2 * BTL_UD_SEEN_BITS; i++) {
        peer_sends(8);
    }
    throw(copy, BTL_UD_HEADER + 100);
    TAP_OK(arrived == 1 + 2 * BTL_UD_SEEN_BITS, "nor is it long after");
    btl_ud_header_t h = header(BTL_UD_DATA, 8);
    h.port = 1;
    peer_says(&h);
    h = header(BTL_UD_DATA, 8);
    make(&h, job.secret, 0);
    made[BTL_UD_HEADER]++;
    throw(made, BTL_UD_HEADER + 8);
    TAP_OK(arrived == 1 + 2 * BTL_UD_SEEN_BITS && module->strangers == 2,
           "from another port of its, or damaged on the way, it is a stranger");
    epoch++;
    at = 0;
    peer_sends(9);
    TAP_OK(arrived == 2 + 2 * BTL_UD_SEEN_BITS && arrived_len == 9, "a peer that begins anew is heard");
    throw(copy, BTL_UD_HEADER + 100);
    TAP_OK(arrived == 2 + 2 * BTL_UD_SEEN_BITS && module->strangers == 3, "what it sent before is not");
    finish();
    start();
    ep = meet(grh6);
    TAP_OK(ep->addr.gid[0] == 0xfe && ep->addr.gid[1] == 0x80 && ep->addr.gid[15] == 5, "over IPv6, too");
    finish();
}

/* ---- What a peer says of us ---- */

static int send_one(mca_btl_endpoint_t *ep)
{
    return btl_ud_send_short(ep, "header", 6, NULL, 0);
}

static unsigned send_all(mca_btl_endpoint_t *ep)
{
    unsigned n = 0;
    while (n < 10 * WINDOW && send_one(ep) == MCA_SUCCESS) {
        n++;
    }
    return n;
}

static void report(mca_btl_endpoint_t *ep, uint32_t seen, unsigned room, uint32_t of)
{
    btl_ud_header_t h = header(BTL_UD_REPORT, 0);
    (void) ep;
    h.peer_epoch = of;
    h.seen = seen;
    h.room = (uint16_t) room;
    peer_says(&h);
}

static void test_quality(void)
{
    start();
    module->port->service_level = 3;
    meet(grh4);
    TAP_OK(adapter.last_ah.sl == 3, "what goes to a peer is of the port's service level");
    TAP_OK(adapter.pkeys == 0, "and of its partition");
    finish();
}

static void test_credits(void)
{
    start();
    mca_btl_endpoint_t *ep = meet(grh4);
    report(ep, 0, WINDOW, ep->epoch);
    unsigned sent = send_all(ep);
    TAP_OK(sent == WINDOW && hw.last_qpn == PEER_QPN && hw.last_qkey == btl_ud_qkey(job.secret),
           "a sender has as many under way as it was granted");
    report(ep, sent + 1, WINDOW, ep->epoch);
    report(ep, 0x80000000u, WINDOW, ep->epoch);
    report(ep, 0xffffffffu, WINDOW, ep->epoch);
    TAP_OK(ep->seen == 0 && writables == 0, "who has read what was never sent has read nothing");
    report(ep, sent, WINDOW, ep->epoch - 1);
    report(ep, sent, WINDOW, 0);
    TAP_OK(ep->seen == 0 && writables == 0, "nor has who speaks of another endpoint");
    report(ep, 0, BTL_UD_ROOM_MAX + 1, ep->epoch);
    report(ep, 0, 0xffff, ep->epoch);
    report(ep, 0, 0, ep->epoch);
    TAP_OK(ep->room == WINDOW && writables == 0 && module->strangers == 3, "room that nobody grants changes nothing");
    report(ep, sent, WINDOW, ep->epoch);
    TAP_OK(ep->seen == sent && writables == 1, "a true report makes it writable");
    report(ep, sent - 1, WINDOW, ep->epoch);
    TAP_OK(ep->seen == sent, "an old one takes nothing back");
    report(ep, sent, 1, ep->epoch);
    TAP_OK(send_all(ep) == 1, "the smallest room is one datagram");
    finish();
}

/* ---- Who waits, and was away itself ---- */

enum { MS = 1000 * 1000 };

/* Looks every 10 ms, for so long. */
static void wait_ms(unsigned ms)
{
    for (unsigned i = 0; i < ms; i += 10) {
        clock_ns += 10 * MS;
        btl_ud_care_round();
    }
}

/* It is here, and nobody has looked yet. */
static void lies_ready(const uint8_t *datagram, size_t len)
{
    common_verbs_buffer_t *buffer = (common_verbs_buffer_t *) (uintptr_t) hw.receive[hw.out++ % ADAPTER_RING];
    memcpy(buffer->data, grh4, BTL_UD_GRH);
    memcpy(buffer->data + BTL_UD_GRH, datagram, len);
    adapter_complete(module->recv_cq, &(struct ibv_wc){.wr_id = (uintptr_t) buffer, .status = IBV_WC_SUCCESS,
                                                       .byte_len = (uint32_t) (BTL_UD_GRH + len), .wc_flags = IBV_WC_GRH});
}

static void test_away(void)
{
    const uint8_t noise[BTL_UD_HEADER] = {0};
    start();
    mca_btl_ud.params.peer_timeout_ms = 2000;
    mca_btl_endpoint_t *ep = meet(grh4);
    report(ep, 0, WINDOW, ep->epoch);
    send_all(ep);
    module->super.ops->idle(&module->super, ep); /* who drains waits on, whatever it hears */
    kicks();
    wait_ms(100);
    clock_ns += UINT64_C(60000) * MS;
    btl_ud_care_round();
    TAP_OK(downs == 0 && writables == 0 && !ep->given_up, "who computes for a minute takes none of it for its peer's silence");
    wait_ms(1500);
    TAP_OK(downs == 0 && writables > 0, "but what follows, if the peer does not answer then");
    clock_ns += UINT64_C(60000) * MS;
    for (int i = 0; i < 2 * BTL_UD_BATCH; i++) {
        lies_ready(noise, sizeof(noise));
    }
    btl_ud_header_t h = header(BTL_UD_REPORT, 0);
    h.peer_epoch = ep->epoch;
    lies_ready(made, make(&h, job.secret, 0));
    wait_ms(600);
    TAP_OK(downs == 0, "all that has come meanwhile is read before anybody is given up");
    wait_ms(3000);
    TAP_OK(downs == 1 && ep->down, "a peer that does not answer is given up after its time");
    finish();
}

static void test_answers(void)
{
    btl_ud_header_t h, answer;
    start();
    meet(grh4);
    unsigned before = hw.sent;
    for (int i = 0; i < 50; i++) {
        report(NULL, 0, WINDOW, 0);
    }
    TAP_OK(hw.sent == before, "reports are not answered");
    h = header(BTL_UD_PROBE, 0);
    h.at = 1000;
    peer_says(&h);
    TAP_OK(hw.sent == before + 1 && btl_ud_header_read(hw.last, BTL_UD_HEADER, &answer) && answer.type == BTL_UD_REPORT &&
               answer.seen == 1000 && answer.peer_epoch == epoch && answer.room <= WINDOW,
           "a probe is, with how far we have read");
    h.at = 5;
    peer_says(&h);
    TAP_OK(btl_ud_header_read(hw.last, BTL_UD_HEADER, &answer) && answer.seen == 1000, "which never goes back");
    finish();
}

/* ---- Queue pairs that fail ---- */

static void qp_fails(unsigned i)
{
    module->qp[i].qp->state = IBV_QPS_ERR;
    while (i == 0 && hw.out != hw.in) {
        adapter_complete(module->recv_cq, &(struct ibv_wc){.wr_id = hw.receive[hw.out++ % ADAPTER_RING],
                                                           .status = IBV_WC_WR_FLUSH_ERR});
    }
}

/* Looks, until nothing is done. */
static int look(int most)
{
    int rounds = 0;
    while (rounds < most && btl_ud_receive(module) + btl_ud_send_poll(module) > 0) {
        rounds++;
    }
    return rounds;
}

static bool all_ready(void)
{
    bool ready = !module->failed && !module->deaf;
    for (unsigned i = 0; i < module->qps; i++) {
        ready &= module->qp[i].qp->state == IBV_QPS_RTS && !module->qp[i].failed;
    }
    return ready;
}

static void test_failed(void)
{
    start();
    mca_btl_endpoint_t *ep = meet(grh4);
    report(ep, 0, WINDOW, ep->epoch);
    qp_fails(0);
    int rounds = look(1000);
    TAP_OK(rounds < 100, "a queue pair that has failed keeps nobody busy (%d rounds)", rounds);
    TAP_OK(all_ready() && module->pool.posted == module->pool.buffers && module->port->addr.qpn == module->qp[0].qp->qp_num,
           "and is as new, under its number");
    peer_sends(20);
    TAP_OK(arrived == 2 && arrived_len == 20, "what is sent to it arrives");
    for (unsigned i = 0; i < module->qps; i++) {
        qp_fails(i);
    }
    send_all(ep);
    look(1000);
    TAP_OK(all_ready() && module->pool.posted == module->pool.buffers, "so are all, whatever was sent meanwhile");
    report(ep, ep->sent, WINDOW, ep->epoch);
    unsigned before = hw.sent;
    TAP_OK(send_all(ep) == WINDOW && hw.sent - before >= WINDOW, "and send");
    finish();
}

/* A port that comes back may have its address at another place of its table. */
static void test_port(void)
{
    start();
    mca_btl_endpoint_t *ep = meet(grh4);
    btl_ud_port_changed(module->port, false, "its address has gone");
    TAP_OK(ep->down && !ep->ah && adapter.ahs == 0, "while a port is down nobody has a way from it");
    btl_ud_port_changed(module->port, true, "its address is back");
    TAP_OK(ep->ah && adapter.ahs == 1, "and a new one when it is back");
    btl_ud_port_changed(module->port, false, "the port is down");
    module->port->addr.mtu = IBV_MTU_512;
    btl_ud_port_changed(module->port, true, "the port is up");
    TAP_OK(ep->down && module->port_down, "one that carries shorter packets only when it is back is of no use");
    module->port->addr.mtu = IBV_MTU_1024;
    btl_ud_port_changed(module->port, true, "the port is up");
    TAP_OK(!module->port_down && ep->ah, "until it carries them again");
    finish();
}

/* A queue that has failed tells of nothing any more: the user is to know. */
static void test_broken(void)
{
    struct ibv_async_event e = {.event_type = IBV_EVENT_CQ_ERR};
    start();
    mca_btl_endpoint_t *ep = meet(grh4);
    e.element.cq = &adapter.cq[3].cq;
    btl_ud_event(module->port->device, &e);
    TAP_OK(!ep->down, "another's completion queue is no business of ours");
    e.element.cq = module->recv_cq;
    btl_ud_event(module->port->device, &e);
    btl_ud_port_changed(module->port, true, "the port is up");
    TAP_OK(ep->down && downs == 1 && module->port_down, "one of ours that fails takes the port's links down for good");
    finish();
}

/* The user adds peers while it is told that the port is down, and later. */
static void test_port_many(void)
{
    enum { PEERS = 11, MORE = 40 };
    start();
    for (mca_btl_name_t name = 1; name <= PEERS; name++) {
        add(100 + name);
    }
    kicks();
    more = MORE;
    btl_ud_port_changed(module->port, false, "the port is down");
    kicks();
    TAP_OK(downs == PEERS + MORE, "a port takes all its links down, also those that are new: %u", downs);
    add(3000);
    kicks();
    TAP_OK(downs == PEERS + MORE + 1, "and what is added while it is down");
    finish();
}

/* On InfiniBand the subnet's manager may give a port other numbers at any time. */
static void test_moved(void)
{
    btl_ud_header_t answer;
    infiniband = true;
    start();
    peer_lid = 64;
    mca_btl_endpoint_t *ep = meet(grh6);
    TAP_OK(adapter.last_ah.dlid >= 64 && adapter.last_ah.dlid < 68, "the way to a peer is one of its port's paths (%u)",
           adapter.last_ah.dlid);
    peer_sends(8);
    btl_ud_header_t late = header(BTL_UD_DATA, 8);
    peer_lid = 80;
    peer_sends(8);
    TAP_OK(ep->ah && adapter.ahs == 1 && adapter.last_ah.dlid >= 80 && adapter.last_ah.dlid < 84,
           "when its port has another number it is found there (%u)", adapter.last_ah.dlid);
    peer_says(&late);
    TAP_OK(adapter.last_ah.dlid >= 80, "what was sent before that changes nothing");
    module->port->addr.lid = 16;
    btl_ud_port_changed(module->port, false, "it has another LID");
    btl_ud_port_changed(module->port, true, "it has another LID");
    btl_ud_care_round();
    TAP_OK(btl_ud_header_read(hw.last, BTL_UD_HEADER, &answer) && answer.type == BTL_UD_PROBE && answer.lid == 16,
           "a peer is told of our own port's");
    finish();
    infiniband = false;
    peer_lid = 0;
}

/* The port that we and the peer use is given another LID: neither can tell the other, who is not where it was. */
static void test_moved_together(void)
{
    static const uint8_t own[BTL_UD_GRH] = {[0] = 0x60, [8] = 0xfe, [9] = 0x80, [23] = 1};
    infiniband = true;
    start();
    peer_lid = module->port->addr.lid;
    meet(own);
    TAP_OK(adapter.last_ah.dlid >= 8 && adapter.last_ah.dlid < 12, "a peer at our own port is reached there");
    module->port->addr.lid = 16;
    btl_ud_port_changed(module->port, false, "it has another LID");
    btl_ud_port_changed(module->port, true, "it has another LID");
    btl_ud_care_round();
    TAP_OK(adapter.last_ah.dlid == 16, "and when that has another LID, too");
    finish();
    infiniband = false;
    peer_lid = 0;
}

/* ---- Groups ---- */

enum { GROUP = 42 };

static unsigned cast_count, cast_len;
static mca_btl_name_t cast_from;

static void on_cast(void *context, mca_btl_name_t from, const void *data, size_t len)
{
    (void) data;
    cast_count += context == &hw;
    cast_from = from;
    cast_len = (unsigned) len;
}

/* To that group, from `from`, by one who knows the secret. */
static void cast(uint64_t group, mca_btl_name_t from, uint32_t life, uint32_t number, const uint8_t *secret)
{
    uint32_t tag;
    opal_siphash_key_t key;
    uint8_t gid[16];
    btl_ud_header_t h = header(BTL_UD_CAST, 30);
    btl_ud_group_secrets(secret, group, true, &tag, &key, gid);
    h.from = from;
    h.epoch = life;
    h.at = number;
    h.peer_epoch = tag;
    btl_ud_header_write(made, &h);
    memset(made + BTL_UD_HEADER, (int) number, h.len);
    btl_ud_code_put(&key, made, BTL_UD_HEADER + h.len);
    throw(made, BTL_UD_HEADER + h.len);
}

static void test_group(void)
{
    static const uint8_t other[32] = {10};
    mca_btl_group_t *group;
    start();
    if (!(module->super.limits.caps & MCA_BTL_CAP_MULTICAST)) {
        TAP_SKIP("no interface has 127.0.0.1, so there are no groups");
        finish();
        return;
    }
    cast_count = 0;
    cast(GROUP, PEER, 5, 1, job.secret);
    TAP_OK(quiet() && module->strangers == 1, "a datagram to a group that nobody has joined leads to nothing");
    TAP_REQUIRE(module->super.ops->group_join(&module->super, GROUP, on_cast, &hw, &group) == MCA_SUCCESS, "joined");
    cast(GROUP, PEER, 5, 2, job.secret);
    TAP_OK(cast_count == 1 && cast_from == PEER && cast_len == 30 && arrived == 0, "joined, it is handed up");
    throw(made, BTL_UD_HEADER + 30);
    cast(GROUP, OTHER, 5, 2, job.secret);
    TAP_OK(cast_count == 2 && cast_from == OTHER, "its replay is not, another's with its number is");
    cast(GROUP, PEER, 5, 1, job.secret);
    cast(GROUP, PEER, 6, 1, job.secret);
    cast(GROUP, PEER, 5, 9, job.secret);
    TAP_OK(cast_count == 4, "a late one is, one of a sender that began anew, and none of before that");
    cast(GROUP, PEER, 6, 2, other);
    cast(GROUP + 1, PEER, 6, 2, job.secret);
    cast(GROUP, SELF, 6, 2, job.secret);
    TAP_OK(cast_count == 4 && module->strangers == 3, "nor another job's, another group's, or one's own");
    cast(GROUP, PEER, 6, 3, job.secret);
    for (size_t bit = 0; bit < (BTL_UD_HEADER + 30) * 8; bit++) {
        made[bit / 8] ^= (uint8_t) (1 << bit % 8);
        throw(made, BTL_UD_HEADER + 30);
        made[bit / 8] ^= (uint8_t) (1 << bit % 8);
    }
    TAP_OK(cast_count == 5 && arrived == 0 && !btl_ud_endpoint_find(module, PEER), "nor one with any bit changed");
    TAP_OK(module->super.ops->group_send(group, "header", 6, "data", 4) == MCA_SUCCESS && hw.last_qpn == 0xffffff &&
               hw.last_qkey == btl_ud_qkey(job.secret), "what is sent goes to all");
    TAP_OK(module->super.ops->group_send(group, made, MTU, NULL, 0) == MCA_ERR_BAD_PARAM, "too long is refused");
    module->super.ops->group_leave(group);
    cast(GROUP, PEER, 6, 4, job.secret);
    TAP_OK(cast_count == 5, "who has left hears no more");
    TAP_REQUIRE(module->super.ops->group_join(&module->super, GROUP, on_cast, &hw, &group) == MCA_SUCCESS, "joined again");
    finish(); /* which leaves */
}

/* ---- One who knows the secret, and says anything ---- */

static btl_ud_header_t anything(unsigned *seed, const mca_btl_endpoint_t *ep)
{
    static const uint32_t odd[] = {0, 1, 2, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
    epoch = ep->peer_epoch; /* else one who began anew far ahead would be the last to be heard */
    btl_ud_header_t h = header((btl_ud_type_t) (1 + rand_r(seed) % 4), 0);
    h.len = (uint16_t) (h.type == BTL_UD_DATA ? 1 + rand_r(seed) % 300 : 0);
    h.peer_epoch = rand_r(seed) % 4 ? ep->epoch : (uint32_t) rand_r(seed);
    h.seen = rand_r(seed) % 2 ? ep->sent : odd[rand_r(seed) % 7];
    h.flags = (uint8_t) (rand_r(seed) % 2);
    switch (rand_r(seed) % 16) {
    case 0:
        h.at = odd[rand_r(seed) % 7] + at;
        break;
    case 1:
        h.epoch += odd[rand_r(seed) % 7];
        break;
    case 2:
        h.room = (uint16_t) rand_r(seed);
        break;
    case 3:
        h.qpn = (uint32_t) rand_r(seed);
        break;
    case 4:
        h.type = (uint8_t) rand_r(seed);
        break;
    case 5:
        h.len = (uint16_t) (rand_r(seed) % 900);
        break;
    case 6:
        h.port = (uint8_t) rand_r(seed);
        break;
    default:
        break;
    }
    return h;
}

static void test_anything(void)
{
    unsigned seed = fuzz_seed(20261122), talkative = 0, beyond = 0, lost = 0;
    start();
    mca_btl_endpoint_t *ep = meet(grh4);
    for (int i = 0; i < RANDOM * fuzz_times(); i++) {
        btl_ud_header_t h = anything(&seed, ep);
        unsigned sent = hw.sent, handed = arrived;
        peer_says(&h);
        talkative += hw.sent - sent > 1 || arrived - handed > (h.type == BTL_UD_DATA);
        beyond += ep->sent - ep->seen > BTL_UD_ROOM_MAX || ep->room < 1 || ep->room > BTL_UD_ROOM_MAX;
        lost += !all_there();
        if (rand_r(&seed) % 4 == 0) {
            send_one(ep);
        }
    }
    TAP_OK(talkative == 0, "whatever comes is handed up once at most, and answered once at most");
    TAP_OK(beyond == 0 && !mixed_up, "what is under way is never more than anybody grants");
    TAP_OK(lost == 0, "no buffer is lost, and there are not ever more");
    finish();
}

int main(void)
{
    tap_start(120);
    test_noise();
    test_unknown();
    test_lengths();
    test_known();
    test_quality();
    test_credits();
    test_away();
    test_answers();
    test_failed();
    test_port();
    test_broken();
    test_port_many();
    test_moved();
    test_moved_together();
    test_group();
    test_anything();
    return tap_end();
}
