/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* btl/chaos over a link that only notes down what it is given, under a clock that stands still unless it is moved. */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "hawser/btl.h"
#include "test/support/tap.h"

enum { FRAGS_MAX = 20000, FRAG_LEN = 200, LEN_MAX = 4096, COUNTERS_MAX = 32, MS = 1000000 };

/* Fatal, and without a word if it holds: for what happens often. */
static void need(bool ok, const char *what)
{
    if (!ok) {
        TAP_REQUIRE(ok, "%s", what);
    }
}

/* ---- Parameters: name=value of the test, else the default ---- */

typedef struct setting {
    const char *name, *value; /* without btl_chaos_ */
} setting_t;

static const setting_t *settings;
static int64_t *loss_storage;

static int var_register(const mca_base_var_desc_t *d, void *storage)
{
    const char *value = NULL;
    for (const setting_t *s = settings; s && s->name; s++) {
        value = strcmp(s->name, d->name) == 0 ? s->value : value;
    }
    if (d->type == MCA_VAR_STRING || d->type == MCA_VAR_LIST) {
        *(const char **) storage = value ? value : d->def.s;
    } else if (d->type == MCA_VAR_BOOL) {
        *(bool *) storage = value ? *value == '1' : d->def.b;
    } else {
        *(int64_t *) storage = value ? strtoll(value, NULL, 10) : d->def.i;
    }
    if (strcmp(d->name, "loss") == 0) {
        loss_storage = storage;
    }
    return MCA_SUCCESS;
}

static char said[1024]; /* the last report */

__attribute__((format(printf, 4, 5))) static void log_nothing(const char *framework, const char *component,
                                                              mca_log_level_t level, const char *format, ...)
{
    (void) framework, (void) component, (void) level, (void) format;
}

__attribute__((format(printf, 2, 3))) static void report(const char *topic, const char *format, ...)
{
    va_list args;
    (void) topic;
    va_start(args, format);
    vsnprintf(said, sizeof(said), format, args);
    va_end(args);
}

/* ---- Services ---- */

static uint64_t clock_ns;
static mca_btl_poller_t poller;
static void *poller_context;
static mca_btl_timer_fn_t timer_fn;
static void *timer_context;
static uint64_t timer_us;
static struct {
    const char *name;
    uint64_t (*read)(void *context);
    void *context;
} counters[COUNTERS_MAX];
static int counter_count;

static int poller_add(const mca_btl_poller_t *p, void *context, void **handle)
{
    poller = *p;
    poller_context = context;
    *handle = &poller;
    return MCA_SUCCESS;
}

static void poller_del(void *handle)
{
    (void) handle;
    poller.poll = NULL;
}

static void poller_active(void *handle, bool active)
{
    (void) handle, (void) active;
}

static int timer_add(uint64_t us, mca_btl_timer_fn_t fn, void *context, void **handle)
{
    timer_fn = fn;
    timer_context = context;
    timer_us = us;
    *handle = &timer_fn;
    return MCA_SUCCESS;
}

static void timer_del(void *handle)
{
    (void) handle;
    timer_fn = NULL;
}

static uint64_t now_ns(void)
{
    return clock_ns;
}

static void wake(void)
{
}

static unsigned char card[256];
static size_t card_len;

static int publish(const char *component, const void *data, size_t len)
{
    need(strcmp(component, "chaos") == 0 && len <= sizeof(card), "the card is chaos's own");
    memcpy(card, data, len);
    card_len = len;
    return MCA_SUCCESS;
}

static int counter(const char *component, const char *name, const char *help, uint64_t (*read)(void *context),
                   void *context)
{
    (void) component, (void) help;
    counters[counter_count].name = name;
    counters[counter_count].read = read;
    counters[counter_count++].context = context;
    return MCA_SUCCESS;
}

static uint64_t counted(const char *name)
{
    for (int i = 0; i < counter_count; i++) {
        if (strcmp(counters[i].name, name) == 0) {
            return counters[i].read(counters[i].context);
        }
    }
    return UINT64_MAX;
}

static int component_of(const char *name, const mca_base_component_t **component, const char **why);

static const mca_base_services_t base = {
    .struct_size = sizeof(base), .var_register = var_register, .log = log_nothing, .report = report};
static const mca_btl_job_t job = {.self = (uint64_t) 7 << 32 | 1, .size = 2, .job_id = "test", .host = "here"};
static const mca_btl_services_t services = {
    .struct_size = sizeof(services), .base = &base, .job = &job, .poller_add = poller_add, .poller_del = poller_del,
    .poller_active = poller_active, .timer_add = timer_add, .timer_del = timer_del, .now_ns = now_ns, .wake = wake,
    .publish = publish, .component = component_of, .counter = counter};

/* ---- The link below ---- */

struct mca_btl_endpoint {
    int unused;
};

static mca_btl_endpoint_t below_endpoint;
static struct {
    size_t len;
    unsigned char bytes[LEN_MAX];
} passed[FRAGS_MAX];
static size_t passed_count, passed_bytes;
static int refusals; /* of the next sends */
static void *below_cookie;
static unsigned char room_bytes[LEN_MAX];

static int note(const void *a, size_t a_len, const void *b, size_t b_len)
{
    if (refusals > 0) {
        refusals--;
        return MCA_ERR_AGAIN;
    }
    need(passed_count < FRAGS_MAX && a_len + b_len <= LEN_MAX, "room for a fragment");
    passed[passed_count].len = a_len + b_len;
    memcpy(passed[passed_count].bytes, a, a_len);
    if (b_len > 0) {
        memcpy(passed[passed_count].bytes + a_len, b, b_len);
    }
    passed_count++;
    passed_bytes += a_len + b_len;
    return MCA_SUCCESS;
}

static int below_add_peer(mca_btl_module_t *module, const mca_btl_peer_t *peer, void *cookie,
                          mca_btl_endpoint_t **endpoint, const char **why)
{
    (void) module, (void) why;
    need(peer->card_len == 4 && memcmp(peer->card, "note", 4) == 0, "the link finds its own part of the card");
    below_cookie = cookie;
    *endpoint = &below_endpoint;
    return MCA_SUCCESS;
}

static void below_del_peer(mca_btl_module_t *module, mca_btl_endpoint_t *endpoint)
{
    (void) module, (void) endpoint;
}

static bool below_idle(mca_btl_module_t *module, mca_btl_endpoint_t *endpoint)
{
    (void) module, (void) endpoint;
    return true;
}

static void below_finalize(mca_btl_module_t *module)
{
    (void) module;
}

static int below_send_short(mca_btl_endpoint_t *ep, const void *header, size_t header_len, const void *payload,
                            size_t len)
{
    (void) ep;
    return note(header, header_len, payload, len);
}

static int below_reserve(mca_btl_endpoint_t *ep, size_t min, size_t want, mca_btl_room_t *room)
{
    (void) ep, (void) min;
    if (refusals > 0) {
        refusals--;
        return MCA_ERR_AGAIN;
    }
    room->ptr = room_bytes;
    room->len = want < LEN_MAX ? want : LEN_MAX;
    return MCA_SUCCESS;
}

static void below_commit(mca_btl_endpoint_t *ep, mca_btl_room_t *room, size_t len)
{
    (void) ep;
    if (len > 0) {
        note(room->ptr, len, NULL, 0);
    }
}

static int below_send(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc)
{
    (void) ep;
    int rc = note(desc->header, desc->header_len, desc->iov[0].iov_base, desc->iov[0].iov_len);
    return rc == MCA_SUCCESS ? 1 : rc;
}

static int below_get(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key)
{
    (void) ep, (void) key;
    memcpy(desc->iov[0].iov_base, (const void *) (uintptr_t) remote, desc->iov[0].iov_len);
    return 1;
}

static int below_put(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key)
{
    (void) ep, (void) key;
    memcpy((void *) (uintptr_t) remote, desc->iov[0].iov_base, desc->iov[0].iov_len);
    return 1;
}

static int below_recall(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc)
{
    (void) ep, (void) desc;
    return MCA_ERR_BAD_PARAM;
}

static const mca_btl_module_ops_t below_ops = {
    .add_peer = below_add_peer, .del_peer = below_del_peer, .idle = below_idle, .finalize = below_finalize,
    .send_short = below_send_short, .reserve = below_reserve, .commit = below_commit, .send = below_send,
    .put = below_put, .get = below_get, .recall = below_recall};
static mca_btl_module_t below_module;

static int below_init(const mca_btl_services_t *s, mca_btl_module_t ***modules, size_t *count)
{
    static mca_btl_module_t *list[1] = {&below_module};
    *modules = list;
    *count = 1;
    return s->publish("note", "note", 4);
}

static const mca_btl_component_ops_t below_component_ops = {.struct_size = sizeof(below_component_ops),
                                                            .init = below_init};
static const mca_base_component_t below_component = {.name = "note", .ops = &below_component_ops};

static int component_of(const char *name, const mca_base_component_t **component, const char **why)
{
    *component = &below_component;
    *why = "there is only one";
    return strcmp(name, "note") == 0 ? MCA_SUCCESS : MCA_ERR_NOT_AVAILABLE;
}

/* ---- Chaos, and its user ---- */

static const mca_base_component_t *chaos;
static mca_btl_module_t *module;
static mca_btl_endpoint_t *ep;
static int downs, ups, writables, confirmed, unconfirmed, last_status;
static uint32_t returned_ids[FRAGS_MAX];
static int returned_count;

static void on_returned(void *peer, mca_btl_endpoint_t *endpoint, const void *data, size_t len, int status)
{
    (void) peer, (void) endpoint, (void) len, (void) status;
    memcpy(&returned_ids[returned_count++], data, sizeof(uint32_t));
}

static void on_state(void *peer, mca_btl_endpoint_t *endpoint, mca_btl_state_t state, const char *why)
{
    (void) peer, (void) endpoint, (void) why;
    downs += state == MCA_BTL_STATE_DOWN;
    ups += state == MCA_BTL_STATE_UP;
}

static void on_writable(void *peer, mca_btl_endpoint_t *endpoint)
{
    (void) peer, (void) endpoint;
    writables++;
}

static const mca_btl_upcalls_t upcalls = {
    .struct_size = sizeof(upcalls), .writable = on_writable, .returned = on_returned, .state = on_state};

static void on_event(mca_btl_descriptor_t *desc, mca_btl_event_t event, int status)
{
    confirmed += event == MCA_BTL_CONFIRMED;
    unconfirmed += event == MCA_BTL_UNCONFIRMED;
    last_status = status;
    if (!desc->user) {
        return;
    }
    if (event == MCA_BTL_UNCONFIRMED) {
        memcpy(&returned_ids[returned_count++], desc->header, sizeof(uint32_t));
    }
    free(desc->user);
}

static void reset(void)
{
    passed_count = passed_bytes = 0;
    counter_count = returned_count = refusals = 0;
    downs = ups = writables = confirmed = unconfirmed = 0;
    clock_ns = (uint64_t) 1000 * MS;
    said[0] = '\0';
    below_module = (mca_btl_module_t){
        .struct_size = sizeof(below_module), .ops = &below_ops, .component = &below_component, .name = "note:0",
        .limits = {.short_max = 1024, .eager_limit = 1024, .min_frag = 1024, .max_frag = LEN_MAX, .window = 1 << 20,
                   .bandwidth = 1000000000, .caps = MCA_BTL_CAP_RELIABLE | MCA_BTL_CAP_ORDERED | MCA_BTL_CAP_PUT |
                                                    MCA_BTL_CAP_GET | MCA_BTL_CAP_SINGLE_COPY | MCA_BTL_CAP_LET_GO}};
}

static int try_start(const setting_t *with)
{
    mca_btl_module_t **modules;
    size_t count = 0;
    reset();
    settings = with;
    need(chaos->register_params(&base) == MCA_SUCCESS, "parameters");
    int rc = chaos->open(&base);
    rc = rc == MCA_SUCCESS ? ((const mca_btl_component_ops_t *) chaos->ops)->init(&services, &modules, &count) : rc;
    module = rc == MCA_SUCCESS && count == 1 ? modules[0] : NULL;
    return rc;
}

static void start(const setting_t *with)
{
    const char *why = NULL;
    need(try_start(with) == MCA_SUCCESS && module, "chaos stands over the link");
    module->upcalls = &upcalls;
    const mca_btl_peer_t peer = {.name = (uint64_t) 7 << 32, .card = card, .card_len = card_len};
    need(module->ops->add_peer(module, &peer, &ep, &ep, &why) == MCA_SUCCESS, "a peer");
}

static void stop(void)
{
    module->ops->del_peer(module, ep);
    module->ops->finalize(module);
    chaos->close();
}

/* Let this time pass, and progress be made. */
static void pass_time(uint64_t ns)
{
    clock_ns += ns;
    for (int i = 0; i < 4; i++) {
        poller.poll(poller_context);
    }
}

/* ---- Fragments: a number, and bytes that follow from it ---- */

static void make(unsigned char *to, uint32_t id, size_t len)
{
    memcpy(to, &id, sizeof(id));
    for (size_t i = sizeof(id); i < len; i++) {
        to[i] = (unsigned char) (id * 31 + i * 7);
    }
}

static int send_one(uint32_t id, size_t len)
{
    unsigned char bytes[LEN_MAX];
    mca_btl_room_t room = {.how = MCA_BTL_COPY_ANY};
    int rc;
    make(bytes, id, len);
    switch (id % 3) {
    case 0:
        return module->ops->send_short(ep, bytes, 16, bytes + 16, len - 16);
    case 1:
        rc = module->ops->reserve(ep, len, len, &room);
        if (rc == MCA_SUCCESS) {
            memcpy(room.ptr, bytes, len);
            module->ops->commit(ep, &room, len);
        }
        return rc;
    default: {
        struct {
            mca_btl_descriptor_t desc;
            unsigned char bytes[LEN_MAX];
        } *d = calloc(1, sizeof(*d));
        memcpy(d->bytes, bytes, len);
        d->desc = (mca_btl_descriptor_t){.header = d->bytes, .header_len = 16, .iov_count = 1, .event = on_event,
                                         .iov = {{d->bytes + 16, len - 16}}, .user = d};
        rc = module->ops->send(ep, &d->desc);
        need(memcmp(d->bytes, bytes, len) == 0, "the user's memory is as it was");
        if (rc != 0) {
            free(d);
        }
        return rc < 0 ? rc : MCA_SUCCESS;
    }
    }
}

static int send_many(uint32_t count)
{
    int refused = 0;
    for (uint32_t id = 0; id < count; id++) {
        refused += send_one(id, FRAG_LEN) != MCA_SUCCESS;
    }
    return refused;
}

/* Bits in which a passed fragment differs from the one with this number. */
static unsigned wrong_bits(size_t i, uint32_t id)
{
    unsigned char want[LEN_MAX];
    unsigned bits = 0;
    make(want, id, FRAG_LEN);
    for (size_t k = 0; k < FRAG_LEN; k++) {
        bits += (unsigned) __builtin_popcount(passed[i].bytes[k] ^ want[k]);
    }
    return bits + (passed[i].len != FRAG_LEN ? 1000 : 0);
}

static uint32_t id_of(size_t i)
{
    uint32_t id;
    memcpy(&id, passed[i].bytes, sizeof(id));
    return id;
}

static bool all_intact(void)
{
    for (size_t i = 0; i < passed_count; i++) {
        if (wrong_bits(i, id_of(i)) != 0) {
            return false;
        }
    }
    return true;
}

static bool in_order(size_t count)
{
    for (size_t i = 0; i < passed_count; i++) {
        if (id_of(i) != i) {
            return false;
        }
    }
    return passed_count == count;
}

/* About `share` of `count`, within six standard deviations. */
static bool is_about(uint64_t n, double count, double share)
{
    double off = (double) n - count * share;
    return off * off <= 36 * count * share * (1 - share);
}

#define WRAP {"wrap", "note"}
#define START(...) start((const setting_t[]){WRAP, __VA_ARGS__ {NULL, NULL}})

/* ---- The tests ---- */

static void nothing(void)
{
    START();
    TAP_OK(module->limits.caps == below_module.limits.caps, "without faults it promises what the link does");
    TAP_OK(strcmp(module->name, "chaos:note:0") == 0, "its name says over what it stands");
    TAP_OK(send_many(3000) == 0 && in_order(3000) && all_intact(), "everything goes through");
    *loss_storage = 500000;
    TAP_OK(send_many(300) == 0 && passed_count == 3300, "a rate that is raised later breaks no promise");
    stop();
}

static void loss(void)
{
    START({"loss", "200000"}, );
    TAP_OK(!(module->limits.caps & MCA_BTL_CAP_RELIABLE), "a link that loses is not reliable");
    TAP_OK(send_many(6000) == 0 && is_about(counted("lost"), 6000, 0.2), "one in five is lost");
    TAP_OK(passed_count == 6000 - counted("lost") && all_intact(), "the others go through");
    *loss_storage = 0;
    passed_count = 0;
    TAP_OK(send_many(300) == 0 && passed_count == 300, "the rate can be changed");
    stop();
}

static void damage(void)
{
    uint64_t ones = 0, others = 0, at_start = 0;
    START({"damage", "200000"}, );
    TAP_OK(send_many(6000) == 0 && passed_count == 6000 && is_about(counted("damaged"), 6000, 0.2),
           "one in five is damaged");
    for (size_t i = 0; i < passed_count; i++) {
        unsigned bits = wrong_bits(i, (uint32_t) i);
        ones += bits == 1;
        others += bits > 1;
        at_start += bits == 1 && id_of(i) != i;
    }
    TAP_OK(ones == counted("damaged") && others == 0, "in exactly one bit");
    TAP_OK(at_start > 0 && at_start < ones / 2, "anywhere");
    stop();
}

static void duplicate(void)
{
    static unsigned times[6000];
    uint64_t twice = 0, other = 0;
    memset(times, 0, sizeof(times));
    START({"duplicate", "100000"}, );
    TAP_OK(send_many(6000) == 0 && is_about(counted("duplicated"), 6000, 0.1), "one in ten is sent twice");
    pass_time(100 * MS);
    for (size_t i = 0; i < passed_count; i++) {
        times[id_of(i)]++;
    }
    for (int i = 0; i < 6000; i++) {
        twice += times[i] == 2;
        other += times[i] != 1 && times[i] != 2;
    }
    TAP_OK(twice == counted("duplicated") && other == 0 && all_intact(), "twice, and the same");
    stop();
}

static void reorder(void)
{
    size_t farthest = 0, out_of_order = 0;
    START({"reorder", "100000"}, {"depth", "5"}, );
    TAP_OK(!(module->limits.caps & MCA_BTL_CAP_ORDERED), "a link that reorders is not ordered");
    for (uint32_t id = 0; id < 6000; id++) {
        send_one(id, FRAG_LEN);
        poller.poll(poller_context);
    }
    for (size_t i = 0; i < passed_count; i++) {
        size_t off = i > id_of(i) ? i - id_of(i) : 0;
        farthest = off > farthest ? off : farthest;
        out_of_order += off > 1;
    }
    TAP_OK(is_about(counted("reordered"), 6000, 0.1) && out_of_order > 100, "one in ten is overtaken");
    TAP_OK(farthest >= 2 && farthest <= 5, "by five at most");
    pass_time(100 * MS);
    TAP_OK(passed_count == 6000 && all_intact() && module->ops->idle(module, ep), "the last ones go when it is time");
    stop();
}

static void delay(void)
{
    START({"delay", "1000000"}, {"delay_us", "3000"}, );
    TAP_OK(module->limits.caps == below_module.limits.caps, "delay breaks no promise");
    TAP_OK(send_many(30) == 0 && passed_count == 0 && !module->ops->idle(module, ep), "nothing goes at once");
    poller.arm(poller_context);
    TAP_OK(timer_fn && timer_us <= 3001, "who sleeps is woken for it");
    poller.disarm(poller_context);
    TAP_OK(!timer_fn, "and only who sleeps");
    pass_time(3100000);
    TAP_OK(in_order(30) && all_intact() && module->ops->idle(module, ep), "all is there in its order later");
    TAP_OK(confirmed == 10, "descriptors are confirmed then");
    stop();
}

static void throttle(void)
{
    START({"throttle", "1000000"}, {"hold", "65536"}, );
    TAP_OK(module->limits.bandwidth == 1000000, "the bandwidth is told");
    int refused = send_many(1000);
    TAP_OK(refused > 500 && refused < 700, "at its limit it refuses");
    size_t before = passed_bytes;
    for (int i = 0; i < 50; i++) {
        pass_time(MS);
    }
    size_t in_50_ms = passed_bytes - before;
    TAP_OK(in_50_ms > 45000 && in_50_ms < 55000, "%zu bytes go in 50 ms at 1 MB/s", in_50_ms);
    TAP_OK(writables == 1, "who was refused hears of room, once");
    pass_time(1000 * (uint64_t) MS);
    for (int i = 0; i < 500 && !module->ops->idle(module, ep); i++) {
        pass_time(MS);
    }
    TAP_OK(module->ops->idle(module, ep), "all goes in the end");
    stop();
}

static void blocked(void)
{
    START({"damage", "500000"}, );
    refusals = 1;
    int refused = 0;
    for (uint32_t id = 0; id < 30 && !refused; id += 3) {
        refused = send_one(id, FRAG_LEN) == MCA_ERR_AGAIN || refusals == 0;
    }
    size_t before = passed_count;
    pass_time(MS);
    TAP_OK(refused && passed_count == before, "a full link is not asked again before it calls");
    below_module.upcalls->writable(below_cookie, &below_endpoint);
    pass_time(MS);
    TAP_OK(module->ops->idle(module, ep), "then all goes on");
    stop();
}

static void transfers(void)
{
    static unsigned char there[512], here[512];
    mca_btl_descriptor_t desc = {.iov_count = 1, .iov = {{here, sizeof(here)}}, .event = on_event};
    uint64_t at = (uint64_t) (uintptr_t) there;
    memset(there, 0x3c, sizeof(there));
    START({"damage", "1000000"}, );
    TAP_OK(module->ops->get(ep, &desc, at, NULL) == 1, "a get");
    unsigned bits = 0;
    for (size_t i = 0; i < sizeof(here); i++) {
        bits += (unsigned) __builtin_popcount(here[i] ^ 0x3c);
    }
    TAP_OK(bits == 1 && counted("damaged") == 1, "what was fetched is damaged in one bit");
    memset(here, 0x55, sizeof(here));
    TAP_OK(module->ops->put(ep, &desc, at, NULL) == 1, "a put");
    bits = 0;
    for (size_t i = 0; i < sizeof(here); i++) {
        bits += (unsigned) __builtin_popcount(there[i] ^ 0x55) + (here[i] != 0x55 ? 1000 : 0);
    }
    TAP_OK(bits == 1 && counted("damaged") == 2, "what was put is damaged in one bit, and its source is not");
    stop();
    START({"loss", "1000000"}, );
    int rc = module->ops->get(ep, &desc, at, NULL);
    pass_time(100 * MS);
    TAP_OK(rc == 0 && unconfirmed == 1 && counted("lost") == 1, "a get that is lost ends unconfirmed");
    stop();
    START({"delay", "1000000"}, );
    memset(there, 0x77, sizeof(there));
    rc = module->ops->get(ep, &desc, at, NULL);
    bool early = here[0] == 0x77;
    pass_time(100 * MS);
    TAP_OK(rc == 0 && !early && here[0] == 0x77 && confirmed == 1, "a get that is delayed comes later");
    stop();
}

/* Every fragment arrived or came back, and what came back did so in order. */
static bool all_accounted(uint32_t first, uint32_t end)
{
    static bool seen[FRAGS_MAX];
    memset(seen, 0, sizeof(seen));
    for (size_t i = 0; i < passed_count; i++) {
        seen[id_of(i)] = true;
    }
    for (int i = 0; i < returned_count; i++) {
        seen[returned_ids[i]] = true;
        if (i > 0 && returned_ids[i] <= returned_ids[i - 1]) {
            return false;
        }
    }
    for (uint32_t id = first; id < end; id++) {
        if (!seen[id]) {
            return false;
        }
    }
    return true;
}

static void death(void)
{
    START({"life", "100"}, {"dead", "100"}, {"fade", "20"}, );
    TAP_OK((module->limits.caps & (MCA_BTL_CAP_CAN_FAIL | MCA_BTL_CAP_RELIABLE)) ==
               (MCA_BTL_CAP_CAN_FAIL | MCA_BTL_CAP_RELIABLE), "a link that dies is reliable, and can fail");
    uint32_t id = 0;
    bool fine = true;
    while (downs == 0 && id < FRAGS_MAX) {
        fine &= send_one(id++, FRAG_LEN) == MCA_SUCCESS;
        pass_time(MS);
    }
    size_t arrived = passed_count;
    TAP_OK(fine && downs == 1 && counted("deaths") == 1, "it dies after a while (%u ms)", id);
    TAP_OK(returned_count > 0 && arrived < id && all_accounted(0, id) && all_intact(),
           "what had not gone comes back, in its order (%d)", returned_count);
    TAP_OK(send_one(0, FRAG_LEN) == MCA_ERR_UNREACHABLE && passed_count == arrived, "then it takes nothing");
    for (int i = 0; i < 200 && ups == 0; i++) {
        pass_time(MS);
    }
    TAP_OK(ups == 1 && counted("returns") == 1 && send_one(1, FRAG_LEN) == MCA_SUCCESS && passed_count == arrived + 1,
           "and it comes back");
    stop();
}

static void failing_below(void)
{
    START({"delay", "1000000"}, );
    send_many(9);
    below_module.upcalls->state(below_cookie, &below_endpoint, MCA_BTL_STATE_DOWN, "unplugged");
    TAP_OK(downs == 1 && returned_count == 9 && all_accounted(0, 9), "the link below fails: all that is held comes back");
    TAP_OK(send_one(0, FRAG_LEN) == MCA_ERR_UNREACHABLE, "and nothing is taken");
    below_module.upcalls->state(below_cookie, &below_endpoint, MCA_BTL_STATE_UP, "plugged in");
    TAP_OK(ups == 1 && send_one(0, FRAG_LEN) == MCA_SUCCESS, "until it works again");
    stop();
}

static void recall(void)
{
    static unsigned char bytes[FRAG_LEN];
    mca_btl_descriptor_t desc = {.header = bytes, .header_len = 16, .iov_count = 1, .event = on_event,
                                 .iov = {{bytes + 16, FRAG_LEN - 16}}};
    START({"delay", "1000000"}, );
    TAP_OK(module->ops->send(ep, &desc) == 0 && module->ops->recall(ep, &desc) == MCA_SUCCESS && unconfirmed == 0,
           "a descriptor is recalled");
    pass_time(100 * MS);
    TAP_OK(passed_count == 0 && unconfirmed == 1 && last_status == MCA_ERR_NOT_AVAILABLE, "and never goes");
    stop();
}

static uint64_t digest(void)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < passed_count; i++) {
        for (size_t k = 0; k < passed[i].len; k++) {
            hash = (hash ^ passed[i].bytes[k]) * 0x100000001b3u;
        }
    }
    return hash;
}

static uint64_t run_seed(const char *seed)
{
    START({"seed", seed}, {"loss", "50000"}, {"damage", "50000"}, {"duplicate", "50000"}, {"reorder", "50000"}, );
    for (uint32_t id = 0; id < 3000; id++) {
        refusals = id % 7 == 0;
        while (send_one(id, FRAG_LEN) == MCA_ERR_AGAIN) {
            below_module.upcalls->writable(below_cookie, &below_endpoint);
        }
        refusals = 0;
        below_module.upcalls->writable(below_cookie, &below_endpoint);
        pass_time(1000);
    }
    pass_time(100 * MS);
    uint64_t hash = digest();
    stop();
    return hash;
}

static void seeds(void)
{
    uint64_t first = run_seed("5"), again = run_seed("5"), other = run_seed("6");
    TAP_OK(first == again, "the same seed does the same");
    TAP_OK(first != other, "another seed something else");
}

/* ---- Scripts ---- */

static char path[] = "/tmp/chaos_test.XXXXXX";

static void write_script(const char *text)
{
    FILE *file = fopen(path, "w");
    need(file && fputs(text, file) >= 0 && fclose(file) == 0, "a script");
}

static void script(void)
{
    write_script("# a rehearsal\n0s loss 1000000\n\n10ms calm\n20ms damage 1000000 rank=0\n"
                 "30ms down link=note:0\n45ms up   # again\n60ms repeat\n");
    START({"script", path}, {"fade", "1"}, );
    pass_time(0);
    TAP_OK(send_many(30) == 0 && passed_count == 0, "a script: at the start all is lost");
    pass_time(12 * (uint64_t) MS);
    TAP_OK(send_many(30) == 0 && passed_count == 30 && all_intact(), "then nothing happens");
    pass_time(12 * (uint64_t) MS);
    TAP_OK(send_many(30) == 0 && passed_count == 60 && all_intact(), "what is for another rank does not happen here");
    pass_time(8 * (uint64_t) MS);
    pass_time(2 * (uint64_t) MS);
    TAP_OK(downs == 1 && send_one(0, FRAG_LEN) == MCA_ERR_UNREACHABLE, "the link dies");
    pass_time(14 * (uint64_t) MS);
    TAP_OK(ups == 1 && send_one(0, FRAG_LEN) == MCA_SUCCESS, "it comes back");
    pass_time(14 * (uint64_t) MS);
    passed_count = 0;
    TAP_OK(send_many(30) == 0 && passed_count == 0, "and all begins anew");
    stop();
}

static void bad_scripts(void)
{
    static const struct {
        const char *text, *wanted;
    } list[] = {
        {"0s loss 5\nsoon loss 5\n", "line 2: it does not begin with a time"},
        {"5s calm\n1s calm\n", "line 2: its time is before"},
        {"0s explode\n", "line 1: what is to happen is none of"},
        {"0s loss\n", "line 1: how much is missing"},
        {"0s loss 1000001\n", "line 1: how much is missing or out of range"},
        {"0s loss 600000\n1s damage 600000\n", "line 2: loss, damage,"},
        {"0s down where=here\n", "line 1: where is none of"},
        {"0s repeat\n", "line 1: a script can't be repeated"},
    };
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        const setting_t with[] = {WRAP, {"script", path}, {NULL, NULL}};
        write_script(list[i].text);
        TAP_OK(try_start(with) != MCA_SUCCESS && strstr(said, list[i].wanted), "%s", list[i].wanted);
        chaos->close();
    }
    unlink(path);
    const setting_t gone[] = {WRAP, {"script", path}, {NULL, NULL}};
    TAP_OK(try_start(gone) != MCA_SUCCESS && strstr(said, "can't be read"), "a script that is not there");
    const setting_t sums[] = {WRAP, {"loss", "600000"}, {"damage", "600000"}, {NULL, NULL}};
    TAP_OK(try_start(sums) != MCA_SUCCESS && strstr(said, "1200000 of a million"), "rates of more than all");
    const setting_t nobody[] = {{"wrap", "nobody"}, {NULL, NULL}};
    TAP_OK(try_start(nobody) != MCA_SUCCESS && strstr(said, "there is only one"), "a link that is not there");
    const setting_t none[] = {{NULL, NULL}};
    TAP_OK(try_start(none) == MCA_ERR_NOT_AVAILABLE, "nothing to stand over");
}

static void untouched(void)
{
    START({"links", "note:1"}, {"loss", "1000000"}, );
    TAP_OK(module->limits.caps == below_module.limits.caps && send_many(300) == 0 && in_order(300),
           "links that are not named are left alone");
    stop();
}

int main(void)
{
    tap_start(120);
    const char *build = getenv("top_builddir");
    char file[4096];
    snprintf(file, sizeof(file), "%s/ompi/mca/btl/chaos/.libs/mca_btl_chaos.so", build ? build : "..");
    void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        printf("1..0 # SKIP btl/chaos is not built as a loadable object\n");
        return 0;
    }
    chaos = dlsym(object, "mca_btl_chaos_component");
    TAP_REQUIRE(chaos, "the component");
    int fd = mkstemp(path);
    TAP_REQUIRE(fd >= 0 && close(fd) == 0, "a file for scripts");
    nothing();
    loss();
    damage();
    duplicate();
    reorder();
    delay();
    throttle();
    blocked();
    transfers();
    death();
    failing_below();
    recall();
    seeds();
    untouched();
    script();
    bad_scripts();
    return tap_end();
}
