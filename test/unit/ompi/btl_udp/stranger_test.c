/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sockets of btl/udp, and who sends to them: noise, wrong codes, replays, datagrams of another
 * job, and a peer that this test plays, whose fragments come cut, shuffled, repeated and in part. And errors that networks tell of,
 * and a process that is away when things come.
 */
#include "ompi/mca/btl/udp/btl_udp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "test/support/tap.h"

extern const mca_base_component_t mca_btl_udp_component;

enum { SEG = 1416, PEER = 1 };

/* ---- The surroundings of the component ---- */

static const mca_btl_poller_t *poller;
static void *poller_context;
static uint8_t card_bytes[BTL_UDP_CARD_MAX];
static size_t card_len;
static unsigned arrived, incoming, placed, cancelled, wrong, writables, downs, ups;
static uint64_t skipped_ns; /* of the clock */
static size_t arrived_len;
static uint8_t place_to[BTL_UDP_FRAG_MAX];
static bool offer_place;
static mca_btl_event_fn_t short_ready; /* of the socket that is made first */
static void *short_context;

static int var_register(const mca_base_var_desc_t *desc, void *storage)
{
    switch (desc->type) {
    case MCA_VAR_BOOL:
        *(bool *) storage = desc->def.b;
        break;
    case MCA_VAR_SIZE:
        *(uint64_t *) storage = strcmp(desc->name, "mtu") == 0 ? 1500 : desc->def.size;
        break;
    case MCA_VAR_LIST:
        *(const char **) storage = strcmp(desc->name, "if_include") == 0 ? "lo" : NULL;
        break;
    case MCA_VAR_STRING:
        *(const char **) storage = NULL;
        break;
    default:
        *(int64_t *) storage = desc->def.i;
    }
    return MCA_SUCCESS;
}

static void quiet_log(const char *framework, const char *component, mca_log_level_t level,
                      const char *format, ...)
{
    (void) framework, (void) component, (void) level, (void) format;
}

static void quiet_report(const char *topic, const char *format, ...)
{
    printf("# %s: %s\n", topic, format);
}

static int poller_add(const mca_btl_poller_t *ops, void *context, void **handle)
{
    poller = ops;
    poller_context = context;
    *handle = &poller;
    return MCA_SUCCESS;
}

static void handle_del(void *handle)
{
    (void) handle;
}

static void poller_active(void *handle, bool active)
{
    (void) handle, (void) active;
}

static int event_add(int fd, unsigned what, mca_btl_event_fn_t fn, void *context, void **handle)
{
    (void) fd, (void) what;
    if (!short_ready) {
        short_ready = fn;
        short_context = context;
    }
    *handle = &poller;
    return MCA_SUCCESS;
}

static int event_mod(void *handle, unsigned what)
{
    (void) handle, (void) what;
    return MCA_SUCCESS;
}

static int timer_add(uint64_t us, mca_btl_timer_fn_t fn, void *context, void **handle)
{
    (void) us, (void) fn, (void) context;
    *handle = &poller;
    return MCA_SUCCESS;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return skipped_ns + (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static void wake(void)
{
}

static int publish(const char *component, const void *data, size_t len)
{
    (void) component;
    memcpy(card_bytes, data, len);
    card_len = len;
    return MCA_SUCCESS;
}

static void rejected(const char *link, const char *why)
{
    (void) link, (void) why;
}

static const mca_base_services_t base = {sizeof(base), var_register, quiet_log, quiet_report};
static mca_btl_job_t job = {.self = (uint64_t) 7 << 32, .size = 2, .host = "here", .secret = {1, 2}};
static const mca_btl_services_t services = {
    .struct_size = sizeof(services), .base = &base, .job = &job, .poller_add = poller_add,
    .poller_del = handle_del, .poller_active = poller_active, .event_add = event_add,
    .event_mod = event_mod, .event_del = handle_del, .timer_add = timer_add,
    .timer_del = handle_del, .now_ns = now_ns, .wake = wake, .publish = publish,
    .rejected = rejected};

/* ---- Its user: bytes of fragment n are n ---- */

static void arrive(void *peer, mca_btl_arrival_t *arrival)
{
    const uint8_t *bytes = arrival->data;
    (void) peer;
    arrived++;
    arrived_len = arrival->len + arrival->placed_len;
    for (size_t i = 1; i < arrival->len; i++) {
        wrong += bytes[i] != bytes[0];
    }
    for (size_t i = 0; i < arrival->placed_len; i++) {
        wrong += place_to[i] != bytes[0];
    }
    placed += arrival->place_token != NULL;
}

static bool place(void *peer, const void *head, size_t head_len, size_t len, mca_btl_place_t *out)
{
    (void) peer, (void) head;
    if (!offer_place || head_len < 48) {
        return false;
    }
    *out = (mca_btl_place_t){.iov = {{place_to, len - 48}}, .iov_count = 1, .header_len = 48,
                             .token = place_to};
    return true;
}

static void place_cancel(void *peer, void *token)
{
    (void) peer, (void) token;
    cancelled++;
}

static void writable(void *peer, mca_btl_endpoint_t *ep)
{
    (void) peer, (void) ep;
    writables++;
}

static void returned(void *peer, mca_btl_endpoint_t *ep, const void *data, size_t len, int status)
{
    (void) peer, (void) ep, (void) data, (void) len, (void) status;
}

static void state(void *peer, mca_btl_endpoint_t *ep, mca_btl_state_t now, const char *why)
{
    (void) peer, (void) ep, (void) why;
    downs += now == MCA_BTL_STATE_DOWN;
    ups += now == MCA_BTL_STATE_UP;
}

static void *incoming_fn(mca_btl_module_t *module, mca_btl_name_t name)
{
    (void) module;
    incoming++;
    return name == job.self + PEER ? &incoming : NULL;
}

static const mca_btl_upcalls_t upcalls = {.struct_size = sizeof(upcalls), .arrive = arrive, .place = place,
                                          .place_cancel = place_cancel, .writable = writable, .returned = returned,
                                          .state = state, .incoming = incoming_fn};

/* ---- The peer that this test plays ---- */

static btl_udp_module_t *module;
static btl_udp_card_t card;
static opal_siphash_key_t key;
static int out_fd;
static uint32_t at[BTL_UDP_CHANNELS], epoch = 100;
static uint8_t last[2048];
static size_t last_len;

/* It is in the socket, and nobody has looked yet. */
static void lay(btl_udp_channel_id_t channel, const void *bytes, size_t len)
{
    struct sockaddr_storage to;
    socklen_t to_len = opal_net_addr_to_sock(&card.net.nif[0].addr[0], 0, card.port[0][channel], &to);
    if (sendto(out_fd, bytes, len, 0, (struct sockaddr *) &to, to_len) != (ssize_t) len) {
        wrong++;
    }
}

static void throw(btl_udp_channel_id_t channel, const void *bytes, size_t len)
{
    lay(channel, bytes, len);
    for (int i = 0; i < 3000; i++) { /* both sockets have their turn whatever their temperature */
        poller->poll(poller_context);
    }
}

static btl_udp_header_t header(uint32_t number, uint32_t len, unsigned index)
{
    bool is_long = len > SEG;
    uint32_t data = btl_udp_segment_len(len, SEG, index);
    at[is_long] += data + BTL_UDP_HEADER + BTL_UDP_CHARGE;
    return (btl_udp_header_t){.from = job.self + PEER, .epoch = epoch, .type = BTL_UDP_DATA,
                              .flags = is_long ? BTL_UDP_FLAG_LONG : 0, .number = number,
                              .len = len, .index = (uint16_t) index, .seg = SEG,
                              .at = at[is_long]};
}

static btl_udp_channel_id_t make_data(const btl_udp_header_t *h, const opal_siphash_key_t *with)
{
    uint32_t data = btl_udp_segment_len(h->len, h->seg, h->index);
    btl_udp_header_write(last, h);
    memset(last + BTL_UDP_HEADER, (int) h->number, data);
    opal_le_put64(last, btl_udp_code(with, last, data));
    last_len = BTL_UDP_HEADER + data;
    return h->flags & BTL_UDP_FLAG_LONG ? BTL_UDP_LONG : BTL_UDP_SHORT;
}

static void throw_data(const btl_udp_header_t *h, const opal_siphash_key_t *with)
{
    btl_udp_channel_id_t channel = make_data(h, with);
    throw(channel, last, last_len);
}

static void send_number(uint32_t number, uint32_t len, unsigned index)
{
    btl_udp_header_t h = header(number, len, index);
    throw_data(&h, &key);
}

static void lay_number(uint32_t number, uint32_t len, unsigned index)
{
    btl_udp_header_t h = header(number, len, index);
    btl_udp_channel_id_t channel = make_data(&h, &key);
    lay(channel, last, last_len);
}

/* ---- The tests ---- */

static void test_noise(void)
{
    uint8_t noise[512];
    unsigned seed = 1;
    for (int i = 0; i < 300; i++) {
        size_t len = (size_t) rand_r(&seed) % sizeof(noise);
        for (size_t k = 0; k < len; k++) {
            noise[k] = (uint8_t) rand_r(&seed);
        }
        if (len > 25) {
            noise[24] = BTL_UDP_MAGIC;
        }
        throw(i % 2 ? BTL_UDP_SHORT : BTL_UDP_LONG, noise, len);
    }
    TAP_OK(arrived == 0 && incoming == 0, "noise leads to nothing");
}

static void test_codes(void)
{
    uint8_t other[32] = {9};
    opal_siphash_key_t theirs;
    btl_udp_key(other, job.self + PEER, 0, job.self, 0, &theirs);
    btl_udp_header_t h = header(0, 100, 0);
    throw_data(&h, &theirs);
    TAP_OK(arrived == 0 && incoming == 0, "another job's datagram leads to nothing");
    last[BTL_UDP_HEADER]++;
    h.from = job.self; /* reflected */
    throw_data(&h, &key);
    h.from = job.self + 5;
    throw_data(&h, &key);
    TAP_OK(arrived == 0 && incoming == 0, "nor one from ourselves, nor from a rank that is not");
    send_number(0, 100, 0);
    TAP_OK(arrived == 1 && incoming == 1 && arrived_len == 100, "the peer's is handed up");
    uint8_t copy[2048];
    memcpy(copy, last, last_len);
    throw(BTL_UDP_SHORT, copy, last_len);
    TAP_OK(arrived == 1, "its replay is not");
    throw(BTL_UDP_LONG, copy, last_len);
    TAP_OK(arrived == 1, "nor in the other channel");
    unsigned handed = arrived;
    for (size_t bit = 0; bit < (BTL_UDP_HEADER + 100) * 8; bit++) {
        btl_udp_header_t next = header(1, 100, 0);
        btl_udp_header_write(last, &next);
        memset(last + BTL_UDP_HEADER, 1, 100);
        opal_le_put64(last, btl_udp_code(&key, last, 100));
        last[bit / 8] ^= (uint8_t) (1 << bit % 8);
        if (bit % 7 == 0) { /* a sample: each takes thousands of polls */
            throw(BTL_UDP_SHORT, last, BTL_UDP_HEADER + 100);
        }
    }
    TAP_OK(arrived == handed, "a datagram with any bit changed is dropped");
}

static void test_fragments(bool with_place)
{
    static const unsigned order[] = {2, 0, 3, 1}, straight[] = {0, 1, 2, 3};
    const char *how = with_place ? "with a place" : "without one";
    uint32_t number = with_place ? 1000 : 10;
    unsigned before = arrived, places = placed, gone = cancelled;
    offer_place = with_place;
    for (int i = 0; i < 4; i++) {
        send_number(number, 5000, straight[i]);
        send_number(number, 5000, straight[i]);
    }
    TAP_OK(arrived == before + 1 && arrived_len == 5000 && wrong == 0 && placed == places + with_place,
           "a fragment of four datagrams, each twice, arrives once (%s)", how);
    for (int i = 0; i < 4; i++) {
        send_number(number + 1, 5000, order[i]);
    }
    TAP_OK(arrived == before + 2 && wrong == 0, "in any order");
    for (uint32_t i = 0; i < 3 * BTL_UDP_PARTS; i++) {
        send_number(number + 2 + i, 5000, 0);
    }
    TAP_OK(arrived == before + 2 && cancelled - gone == (with_place ? 2 * BTL_UDP_PARTS : 0),
           "of many incomplete ones the oldest are given up");
    btl_udp_header_t h = header(number + 1 + 3 * BTL_UDP_PARTS, 6000, 1);
    throw_data(&h, &key);
    TAP_OK(arrived == before + 2 && wrong == 0, "one that contradicts its first datagram is dropped");
    for (unsigned i = 1; i < 4; i++) {
        send_number(number + 1 + 3 * BTL_UDP_PARTS, 5000, i);
    }
    TAP_OK(arrived == before + 3 && wrong == 0, "the last one can still become complete");
    send_number(number + 2, 5000, 1);
    TAP_OK(arrived == before + 3, "one given up stays so");
}

static void test_epochs(void)
{
    unsigned before = arrived;
    epoch = 101;
    at[0] = at[1] = 0;
    send_number(0, 100, 0);
    TAP_OK(arrived == before + 1, "a peer that begins anew is heard");
    epoch = 100;
    send_number(5000, 100, 0);
    TAP_OK(arrived == before + 1, "what it sent before is not");
    epoch = 101;
}

/* ---- A process that looks at nothing for a while ---- */

static const uint64_t ms = 1000 * 1000;

/* Looks every 10 ms, for so long. */
static void wait_ms(unsigned for_ms)
{
    for (unsigned i = 0; i < for_ms; i += 10) {
        skipped_ns += 10 * ms;
        btl_udp_care_round();
    }
}

static void test_away_parts(void)
{
    unsigned before = arrived;
    offer_place = false;
    send_number(20000, 5000, 0);
    send_number(20000, 5000, 1);
    skipped_ns += 10000 * ms;
    lay_number(20000, 5000, 2);
    lay_number(20000, 5000, 3);
    btl_udp_care_round();
    TAP_OK(arrived == before + 1 && wrong == 0, "a fragment whose rest came while nobody looked is whole");
    send_number(20001, 5000, 0);
    wait_ms(300);
    lay_number(20001, 5000, 1);
    lay_number(20001, 5000, 2);
    lay_number(20001, 5000, 3);
    btl_udp_care_round();
    TAP_OK(arrived == before + 1, "but who looks all the time gives it up");
}

static void test_away_silence(mca_btl_endpoint_t *ep)
{
    while (btl_udp_send_short(ep, last, 48, NULL, 0) == MCA_SUCCESS) {
    }
    poller->poll(poller_context);
    wait_ms(100);
    writables = 0;
    skipped_ns += 60000 * ms;
    btl_udp_care_round();
    TAP_OK(writables == 0 && !ep->given_up, "who computes for a minute takes none of it for its peer's silence");
    wait_ms(1500);
    TAP_OK(writables == 1, "but what follows, if the peer says nothing then");
}

static void test_away_errors(mca_btl_endpoint_t *ep)
{
    btl_udp_complain(ep, EHOSTUNREACH);
    btl_udp_complain(ep, EHOSTUNREACH);
    skipped_ns += 1000 * ms;
    lay_number(20010, 100, 0);
    btl_udp_complain(ep, EHOSTUNREACH);
    btl_udp_care_round();
    TAP_OK(downs == 0 && ep->complaints == 0, "a peer that was heard meanwhile is not cut off");
    btl_udp_complain(ep, EHOSTUNREACH);
    btl_udp_complain(ep, EHOSTUNREACH);
    skipped_ns += 60000 * ms;
    btl_udp_complain(ep, EHOSTUNREACH);
    btl_udp_complain(ep, EHOSTUNREACH);
    wait_ms(100);
    TAP_OK(downs == 0, "errors before and after a minute are none that persist");
    for (int i = 0; i < 10; i++) {
        btl_udp_complain(ep, EHOSTUNREACH);
        wait_ms(50);
    }
    TAP_OK(downs == 1 && ups == 0, "a path whose errors go on is down");
    lay_number(20011, 100, 0);
    wait_ms(10);
    TAP_OK(ups == 1, "until something comes");
}

static void test_away(void)
{
    mca_btl_endpoint_t *ep = btl_udp_endpoint_find(module, job.self + PEER);
    TAP_REQUIRE(ep != NULL, "the peer is known");
    test_away_parts();
    test_away_silence(ep);
    test_away_errors(ep);
}

/* A send was told of the error of another datagram, so that reads are not; the socket is ready all the same until
 * somebody takes the rest from its queue of errors. */
static void test_errors(void)
{
    const btl_udp_socket_t *s = short_context;
    struct pollfd look = {.fd = s->fd};
    struct sockaddr_storage nobody;
    int closed = socket(card.net.nif[0].addr[0].family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t len = opal_net_addr_to_sock(&card.net.nif[0].addr[0], 0, 0, &nobody);
    TAP_REQUIRE(closed >= 0 && bind(closed, (struct sockaddr *) &nobody, len) == 0 &&
                getsockname(closed, (struct sockaddr *) &nobody, &len) == 0, "a port");
    close(closed);
    TAP_REQUIRE(sendto(s->fd, "x", 1, 0, (struct sockaddr *) &nobody, len) == 1 && poll(&look, 1, 20000) == 1 &&
                look.revents == POLLERR, "nobody is there any more, and the socket knows it");
    TAP_REQUIRE(sendto(s->fd, "x", 1, 0, (struct sockaddr *) &nobody, len) < 0 && poll(&look, 1, 0) == 1 &&
                look.revents == POLLERR, "a send was told");
    short_ready(s->fd, MCA_BTL_EVENT_READ, short_context);
    TAP_OK(poll(&look, 1, 0) == 0, "errors do not keep a socket ready");
}

int main(void)
{
    const mca_btl_component_ops_t *ops = mca_btl_udp_component.ops;
    mca_btl_module_t **modules;
    size_t count;
    tap_start(100);
    TAP_REQUIRE(mca_btl_udp_component.register_params(&base) == MCA_SUCCESS, "parameters");
    TAP_REQUIRE(ops->init(&services, &modules, &count) == MCA_SUCCESS && count == 1, "one module");
    modules[0]->upcalls = &upcalls;
    module = (btl_udp_module_t *) modules[0];
    TAP_REQUIRE(btl_udp_card_read(card_bytes, card_len, &card) == MCA_SUCCESS, "a card");
    out_fd = socket(card.net.nif[0].addr[0].family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    btl_udp_key(job.secret, job.self + PEER, 0, job.self, 0, &key);
    test_noise();
    test_codes();
    test_fragments(false);
    test_fragments(true);
    test_epochs();
    test_away();
    test_errors();
    TAP_OK(module->strangers >= 300, "%u datagrams were nobody's", (unsigned) module->strangers);
    modules[0]->ops->finalize(modules[0]);
    close(out_fd);
    return tap_end();
}
