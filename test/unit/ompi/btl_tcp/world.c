/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Services and a user for btl/tcp in its tests. */
#include "test/unit/ompi/btl_tcp/world.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

extern const mca_base_component_t mca_btl_tcp_component;

world_t world;

enum { EVENTS_MAX = 16, TIMERS_MAX = 4096 };

/* ---- Services ---- */

static struct {
    const mca_btl_poller_t *ops;
    void *context;
} poller;

typedef struct event {
    int fd;
    unsigned what;
    mca_btl_event_fn_t fn;
    void *context;
} event_t;

typedef struct timer {
    uint64_t due;
    mca_btl_timer_fn_t fn;
    void *context;
    bool used, fired;
} timer_slot_t;

static event_t events[EVENTS_MAX];
static timer_slot_t timers[TIMERS_MAX];
static unsigned timer_high;
static const char *settings_text;

uint64_t world_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static int poller_add(const mca_btl_poller_t *ops, void *context, void **handle)
{
    poller.ops = ops;
    poller.context = context;
    *handle = &poller;
    return MCA_SUCCESS;
}

static void poller_del(void *handle)
{
    (void) handle;
    poller.ops = NULL;
}

static void poller_active(void *handle, bool active)
{
    (void) handle;
    (void) active;
}

static int event_add(int fd, unsigned what, mca_btl_event_fn_t fn, void *context, void **handle)
{
    for (int i = 0; i < EVENTS_MAX; i++) {
        if (!events[i].fn) {
            events[i] = (event_t){fd, what, fn, context};
            *handle = &events[i];
            return MCA_SUCCESS;
        }
    }
    return MCA_ERR_OUT_OF_RESOURCE;
}

static int event_mod(void *handle, unsigned what)
{
    ((event_t *) handle)->what = what;
    return MCA_SUCCESS;
}

static void event_del(void *handle)
{
    *(event_t *) handle = (event_t){.fn = NULL};
}

static int timer_add(uint64_t us, mca_btl_timer_fn_t fn, void *context, void **handle)
{
    for (unsigned i = 0; i < TIMERS_MAX; i++) {
        if (!timers[i].used) {
            timers[i] = (timer_slot_t){world_now_ns() + us * 1000, fn, context, true, false};
            timer_high = i >= timer_high ? i + 1 : timer_high;
            *handle = &timers[i];
            return MCA_SUCCESS;
        }
    }
    return MCA_ERR_OUT_OF_RESOURCE;
}

static void timer_del(void *handle)
{
    ((timer_slot_t *) handle)->used = false;
}

static void wake(void)
{
}

static void rejected(const char *link, const char *why)
{
    (void) link;
    (void) why;
}

static int publish(const char *component, const void *data, size_t len)
{
    if (strcmp(component, "tcp") != 0 || len > sizeof(world.card)) {
        return MCA_ERR_BAD_PARAM;
    }
    memcpy(world.card, data, len);
    world.card_len = len;
    return MCA_SUCCESS;
}

/* The text after "name=" in the settings, up to the next blank; NULL: not there. */
static char *setting(const char *name)
{
    size_t len = strlen(name);
    for (const char *p = settings_text; p && *p; p = strchr(p, ' ') ? strchr(p, ' ') + 1 : NULL) {
        if (strncmp(p, name, len) == 0 && p[len] == '=') {
            return strndup(p + len + 1, strcspn(p + len + 1, " "));
        }
    }
    return NULL;
}

enum { TEXTS_MAX = 32 };
static char *texts[TEXTS_MAX];
static unsigned text_count;

static void texts_free(void)
{
    while (text_count > 0) {
        free(texts[--text_count]);
    }
}

static int var_register(const mca_base_var_desc_t *desc, void *storage)
{
    char *text = setting(desc->name);
    switch (desc->type) {
    case MCA_VAR_INT:
    case MCA_VAR_ENUM:
        *(int64_t *) storage = text ? atoll(text) : desc->def.i;
        break;
    case MCA_VAR_SIZE:
        *(uint64_t *) storage = text ? (uint64_t) atoll(text) : desc->def.size;
        break;
    case MCA_VAR_BOOL:
        *(bool *) storage = text ? atoi(text) != 0 : desc->def.b;
        break;
    default:
        if (text_count < TEXTS_MAX) {
            texts[text_count++] = *(char **) storage = text; /* ours, as with the real parameters */
        }
        return MCA_SUCCESS;
    }
    free(text);
    return MCA_SUCCESS;
}

void (*world_on_log)(const char *format);

__attribute__((format(printf, 4, 5))) static void log_line(const char *framework,
                                                           const char *component,
                                                           mca_log_level_t level,
                                                           const char *format, ...)
{
    static int verbose = -1;
    va_list args;
    if (world_on_log) {
        world_on_log(format);
    }
    if (verbose < 0) {
        verbose = getenv("WORLD_VERBOSE") ? atoi(getenv("WORLD_VERBOSE")) : 0;
    }
    if ((int) level <= verbose) {
        fprintf(stderr, "# %u %s/%s: ", (uint32_t) world.job.self, framework, component);
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
    }
}

__attribute__((format(printf, 2, 3))) static void report(const char *topic, const char *format, ...)
{
    va_list args;
    int n = snprintf(world.last_report, sizeof(world.last_report), "%s: ", topic);
    va_start(args, format);
    vsnprintf(world.last_report + n, sizeof(world.last_report) - (size_t) n, format, args);
    va_end(args);
    world.reports++;
}

static const mca_base_services_t base_services = {sizeof(base_services), var_register, log_line,
                                                  report};

static int timers_run(void)
{
    uint64_t now = world_now_ns();
    int done = 0;
    for (unsigned i = 0; i < timer_high; i++) {
        if (timers[i].used && !timers[i].fired && timers[i].due <= now) {
            timers[i].fired = true;
            timers[i].fn(timers[i].context);
            done++;
        }
    }
    return done;
}

static int events_run(int ms)
{
    struct pollfd fds[EVENTS_MAX];
    event_t *who[EVENTS_MAX];
    nfds_t count = 0;
    int done = 0;
    for (event_t *e = events; e < events + EVENTS_MAX; e++) {
        if (e->fn) {
            who[count] = e;
            fds[count++] = (struct pollfd){
                .fd = e->fd,
                .events = (short) ((e->what & MCA_BTL_EVENT_READ ? POLLIN : 0) |
                                   (e->what & MCA_BTL_EVENT_WRITE ? POLLOUT : 0)),
            };
        }
    }
    if (poll(fds, count, ms) <= 0) {
        return 0;
    }
    for (nfds_t i = 0; i < count; i++) {
        if (who[i]->fn && fds[i].revents) {
            who[i]->fn(who[i]->fd, MCA_BTL_EVENT_READ, who[i]->context);
            done++;
        }
    }
    return done;
}

static void resend(void);

int world_progress(void)
{
    static unsigned round;
    int done = poller.ops->poll(poller.context);
    if (++round % 256 == 0) {
        done += events_run(0) + timers_run();
    }
    resend();
    return done;
}

void world_visit(void)
{
    poller.ops->poll(poller.context);
    events_run(0);
    timers_run();
    resend();
}

void world_sleep(int ms)
{
    poller.ops->arm(poller.context);
    if (poller.ops->poll(poller.context) == 0) {
        events_run(ms);
    }
    poller.ops->disarm(poller.context);
    timers_run();
    resend();
}

/* Progress, and leave the processor to others when nothing happens: tests run on busy machines. */
static void patient_progress(void)
{
    static unsigned idle;
    idle = world_progress() > 0 ? 0 : idle + 1;
    if (idle > 500) {
        world_sleep(1);
    }
}

bool world_wait(bool (*check)(void), unsigned ms)
{
    uint64_t end = world_now_ns() + (uint64_t) ms * 1000000;
    while (!check()) {
        if (world_now_ns() > end) {
            return false;
        }
        patient_progress();
    }
    return true;
}

/* ---- The user of the BTL ---- */

/* A fragment that waits to be sent again, or is in the hands of the BTL as a descriptor. */
typedef struct pending {
    struct pending *next;
    uint32_t rank;
    mca_btl_descriptor_t desc;
    world_header_t header;
    uint8_t data[];
} pending_t;

static pending_t *again_first, **again_last = &again_first;

void world_fill(uint8_t *out, uint32_t source, uint64_t sequence, size_t len)
{
    uint64_t x = (sequence + 1) * 0x9e3779b97f4a7c15u + source;
    for (size_t i = 0; i < len; i++) {
        if (i % 8 == 0) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
        out[i] = (uint8_t) (x >> (8 * (i % 8)));
    }
}

static bool is_intact(const uint8_t *data, uint32_t source, uint64_t sequence, size_t len)
{
    uint8_t *expected = malloc(len + 1);
    world_fill(expected, source, sequence, len);
    bool ok = memcmp(expected, data, len) == 0;
    free(expected);
    return ok;
}

static void account(world_peer_t *peer, const world_header_t *h, const uint8_t *payload, size_t len)
{
    if (h->len != len || h->sequence >= WORLD_WINDOW ||
        !is_intact(payload, h->source, h->sequence, len)) {
        peer->damaged++;
        return;
    }
    if (peer->seen[h->sequence]) {
        peer->repeats++;
        return;
    }
    peer->seen[h->sequence] = 1;
    peer->received++;
    peer->bytes += len;
    if (h->sequence == peer->next_in_order) {
        peer->next_in_order++;
    } else {
        peer->out_of_order++;
    }
}

enum { KEPT_MAX = 300 };
static struct kept {
    mca_btl_arrival_t arrival;
    world_peer_t *peer;
} kept[KEPT_MAX];
static unsigned kept_count;

static void kept_check(void)
{
    for (unsigned i = 0; i < kept_count; i++) {
        world_header_t h;
        memcpy(&h, kept[i].arrival.data, sizeof(h));
        account(kept[i].peer, &h, (const uint8_t *) kept[i].arrival.data + sizeof(h),
                kept[i].arrival.len - sizeof(h));
        kept[i].arrival.module->ops->release(&kept[i].arrival);
    }
    kept_count = 0;
}

static void arrive(void *cookie, mca_btl_arrival_t *a)
{
    world_peer_t *peer = cookie;
    world_header_t h;
    if (a->len < sizeof(h) || (uintptr_t) a->data % 8 != 0) {
        peer->damaged++;
        return;
    }
    memcpy(&h, a->data, sizeof(h));
    if (a->place_token) {
        peer->placed++;
        account(peer, &h, a->place_token, a->placed_len);
        free(a->place_token);
    } else if (world.keep && kept_count < KEPT_MAX && a->module->ops->keep(a) == MCA_SUCCESS) {
        kept[kept_count++] = (struct kept){*a, peer};
        if (kept_count == KEPT_MAX) {
            kept_check();
        }
    } else {
        account(peer, &h, (const uint8_t *) a->data + sizeof(h), a->len - sizeof(h));
    }
}

static bool place(void *cookie, const void *head, size_t head_len, size_t len,
                  mca_btl_place_t *place)
{
    (void) cookie;
    (void) head;
    size_t payload = len - sizeof(world_header_t);
    uint8_t *memory = world.place && head_len >= sizeof(world_header_t) ? malloc(payload) : NULL;
    if (!memory) {
        return false;
    }
    place->header_len = sizeof(world_header_t);
    place->token = memory;
    place->iov_count = 3; /* odd pieces on purpose */
    place->iov[0] = (struct iovec){memory, 13};
    place->iov[1] = (struct iovec){memory + 13, payload / 2};
    place->iov[2] = (struct iovec){memory + 13 + payload / 2, payload - 13 - payload / 2};
    return true;
}

static void place_cancel(void *cookie, void *token)
{
    ((world_peer_t *) cookie)->cancelled++;
    free(token);
}

static void writable(void *cookie, mca_btl_endpoint_t *ep)
{
    (void) ep;
    ((world_peer_t *) cookie)->writable++;
}

static void send_again(pending_t *p)
{
    p->next = NULL;
    *again_last = p;
    again_last = &p->next;
}

static void returned(void *cookie, mca_btl_endpoint_t *ep, const void *data, size_t len, int status)
{
    world_peer_t *peer = cookie;
    pending_t *p = malloc(sizeof(*p) + len);
    (void) ep;
    (void) status;
    memcpy(&p->header, data, sizeof(p->header));
    memcpy(p->data, (const uint8_t *) data + sizeof(p->header), len - sizeof(p->header));
    p->rank = (uint32_t) (peer - world.peer);
    peer->returned++;
    send_again(p);
}

static void state(void *cookie, mca_btl_endpoint_t *ep, mca_btl_state_t state, const char *why)
{
    world_peer_t *peer = cookie;
    if (state == MCA_BTL_STATE_SILENT || state == MCA_BTL_STATE_RESUMED) {
        return; /* neither an end nor a beginning */
    }
    for (size_t m = 0; m < world.module_count; m++) {
        if (peer->ep[m] == ep) {
            peer->down[m] = state == MCA_BTL_STATE_DOWN;
        }
    }
    if (state == MCA_BTL_STATE_DOWN) {
        peer->downs++;
        snprintf(peer->last_why, sizeof(peer->last_why), "%s", why);
    } else {
        peer->ups++;
    }
}

static void *incoming(mca_btl_module_t *module, mca_btl_name_t name)
{
    (void) module;
    uint32_t rank = (uint32_t) name;
    return name >> 32 == world.job.self >> 32 && rank < WORLD_PEERS_MAX ? &world.peer[rank] : NULL;
}

static const mca_btl_upcalls_t upcalls = {.struct_size = sizeof(upcalls), .arrive = arrive, .place = place,
                                          .place_cancel = place_cancel, .writable = writable, .returned = returned,
                                          .state = state, .incoming = incoming};

static void desc_event(mca_btl_descriptor_t *desc, mca_btl_event_t event, int status)
{
    pending_t *p = desc->user;
    world_peer_t *peer = &world.peer[p->rank];
    (void) status;
    if (event == MCA_BTL_CONFIRMED) {
        peer->confirmed++;
        free(p);
    } else if (event == MCA_BTL_UNCONFIRMED) {
        peer->unconfirmed++;
        send_again(p);
    }
}

static int send_room(mca_btl_endpoint_t *ep, const mca_btl_module_ops_t *ops, pending_t *p)
{
    mca_btl_room_t room = {.how = MCA_BTL_COPY_ANY};
    size_t len = sizeof(p->header) + p->header.len;
    int rc = ops->reserve(ep, len, len, &room);
    if (rc == MCA_SUCCESS) {
        memcpy(room.ptr, &p->header, sizeof(p->header));
        memcpy((uint8_t *) room.ptr + sizeof(p->header), p->data, p->header.len);
        ops->commit(ep, &room, len);
    }
    return rc;
}

static int send_desc(mca_btl_endpoint_t *ep, const mca_btl_module_ops_t *ops, pending_t *p)
{
    size_t len = p->header.len, third = len / 3;
    p->desc =
        (mca_btl_descriptor_t){.header = &p->header, .header_len = sizeof(p->header), .user = p};
    p->desc.event = desc_event;
    p->desc.iov_count = 3;
    p->desc.iov[0] = (struct iovec){p->data, third};
    p->desc.iov[1] = (struct iovec){p->data + third, third};
    p->desc.iov[2] = (struct iovec){p->data + 2 * third, len - 2 * third};
    return ops->send(ep, &p->desc);
}

/* Over the first link that takes it, starting with another one each time. Owns `p` if it was taken.
 */
static bool dispatch(pending_t *p, world_how_t how)
{
    static unsigned turn;
    world_peer_t *peer = &world.peer[p->rank];
    turn++;
    for (size_t i = 0; i < world.module_count; i++) {
        size_t m = (i + turn) % world.module_count;
        mca_btl_endpoint_t *ep = peer->ep[m];
        if (!ep) {
            continue;
        }
        const mca_btl_module_ops_t *ops = world.modules[m]->ops;
        world_how_t way = how == WORLD_ANY ? (world_how_t) (p->header.sequence % 3) : how;
        if (way == WORLD_SHORT &&
            sizeof(p->header) + p->header.len > world.modules[m]->limits.short_max) {
            way = WORLD_DESC;
        }
        int rc = way == WORLD_SHORT
                     ? ops->send_short(ep, &p->header, sizeof(p->header), p->data, p->header.len)
                 : way == WORLD_ROOM ? send_room(ep, ops, p)
                                     : send_desc(ep, ops, p);
        if (rc == 0) {
            if (way != WORLD_DESC) {
                free(p);
            }
            return true;
        }
    }
    return false;
}

static void resend(void)
{
    while (again_first) {
        pending_t *p = again_first, *next = p->next;
        if (!dispatch(p, WORLD_ANY)) {
            break;
        }
        again_first = next;
        if (!next) {
            again_last = &again_first;
        }
    }
}

bool world_send(uint32_t rank, uint64_t sequence, size_t len, world_how_t how)
{
    pending_t *p = malloc(sizeof(*p) + len);
    p->rank = rank;
    p->header = (world_header_t){sequence, (uint32_t) world.job.self, (uint32_t) len};
    world_fill(p->data, p->header.source, sequence, len);
    uint64_t end = world_now_ns() + 20000000000u;
    while (!dispatch(p, how)) {
        if (world_now_ns() > end) {
            free(p);
            return false;
        }
        patient_progress();
    }
    return true;
}

bool world_idle(void)
{
    kept_check();
    if (again_first) {
        return false;
    }
    for (unsigned r = 0; r < WORLD_PEERS_MAX; r++) {
        for (size_t m = 0; m < world.module_count; m++) {
            mca_btl_endpoint_t *ep = world.peer[r].ep[m];
            if (ep && !world.modules[m]->ops->idle(world.modules[m], ep)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- Life ---- */

bool world_start(uint32_t rank, uint32_t size, const char *settings, int *rc)
{
    const mca_btl_component_ops_t *ops = mca_btl_tcp_component.ops;
    memset(&world, 0, sizeof(world));
    memset(timers, 0, sizeof(timers));
    memset(events, 0, sizeof(events));
    settings_text = settings;
    world.job = (mca_btl_job_t){.self = (mca_btl_name_t) 0x4a4f4231 << 32 | rank,
                                .size = size, .local_rank = rank, .local_size = size,
                                .job_id = "job-1", .host = "testhost"};
    memset(world.job.secret, 0x5a, sizeof(world.job.secret));
    if (getenv("WORLD_SECRET")) {
        memset(world.job.secret, atoi(getenv("WORLD_SECRET")), sizeof(world.job.secret));
    }
    texts_free();
    char *threads = setting("threads");
    world.services = (mca_btl_services_t){
        .struct_size = sizeof(world.services), .base = &base_services, .job = &world.job,
        .threads = threads != NULL,
        .poller_add = poller_add, .poller_del = poller_del, .poller_active = poller_active,
        .event_add = event_add, .event_mod = event_mod, .event_del = event_del,
        .timer_add = timer_add, .timer_del = timer_del, .now_ns = world_now_ns, .wake = wake,
        .publish = publish, .rejected = rejected};
    free(threads);
    *rc = mca_btl_tcp_component.register_params(&base_services);
    if (*rc == MCA_SUCCESS) {
        *rc = ops->init(&world.services, &world.modules, &world.module_count);
    }
    for (size_t m = 0; *rc == MCA_SUCCESS && m < world.module_count; m++) {
        world.modules[m]->upcalls = &upcalls;
    }
    return *rc == MCA_SUCCESS;
}

void world_stop(void)
{
    size_t count = world.module_count;
    mca_btl_module_t *modules[WORLD_MODULES_MAX];
    kept_check();
    memcpy(modules, world.modules, count * sizeof(modules[0]));
    for (size_t m = 0; m < count; m++) {
        modules[m]->ops->finalize(modules[m]);
    }
    world.module_count = 0;
    texts_free();
}

int world_add(uint32_t rank, const void *card, size_t len)
{
    int count = 0;
    mca_btl_peer_t peer = {.name = (world.job.self & ~(mca_btl_name_t) 0xffffffff) | rank,
                           .local = true,
                           .local_rank = rank,
                           .host = "testhost",
                           .card = card,
                           .card_len = len};
    for (size_t m = 0; m < world.module_count; m++) {
        world_peer_t *p = &world.peer[rank];
        count += world.modules[m]->ops->add_peer(world.modules[m], &peer, p, &p->ep[m],
                                                 &p->why[m]) == MCA_SUCCESS;
    }
    return count;
}

/* ---- Several processes ---- */

static struct shared {
    _Atomic uint32_t arrived, round;
    uint32_t size;
    struct {
        uint8_t card[2048];
        size_t len;
    } process[WORLD_PEERS_MAX];
} *shared;

void world_barrier(void)
{
    uint32_t round = atomic_load(&shared->round);
    if (atomic_fetch_add(&shared->arrived, 1) + 1 == shared->size) {
        atomic_store(&shared->arrived, 0);
        atomic_fetch_add(&shared->round, 1);
        return;
    }
    while (atomic_load(&shared->round) == round) {
        patient_progress();
    }
}

void (*world_card_filter)(uint32_t rank, uint8_t *card);
void (*world_child_setup)(uint32_t rank);

static int child(uint32_t rank, const char *settings, world_fn_t fn)
{
    int rc;
    if (world_child_setup) {
        world_child_setup(rank);
    }
    if (!world_start(rank, shared->size, settings, &rc)) {
        fprintf(stderr, "# init: %d, %s\n", rc, world.last_report);
        return 100;
    }
    memcpy(shared->process[rank].card, world.card, world.card_len);
    shared->process[rank].len = world.card_len;
    world_barrier();
    for (uint32_t r = 0; r < shared->size; r++) {
        if (r != rank) {
            uint8_t card[sizeof(shared->process[r].card)];
            memcpy(card, shared->process[r].card, sizeof(card));
            if (world_card_filter) {
                world_card_filter(r, card);
            }
            world_add(r, card, shared->process[r].len);
        }
    }
    rc = fn(rank);
    world_barrier();
    world_stop();
    return rc;
}

void (*world_bystander)(pid_t first);

int world_run(uint32_t size, const char *settings, world_fn_t fn)
{
    pid_t pids[WORLD_PEERS_MAX] = {0};
    int good = 0;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared->size = size;
    fflush(stdout);
    for (uint32_t r = 0; r < size; r++) {
        pids[r] = fork();
        if (pids[r] == 0) {
            alarm(60);
            exit(child(r, settings, fn));
        }
    }
    if (world_bystander) {
        world_bystander(pids[0]);
    }
    for (uint32_t r = 0; r < size; r++) {
        int status = -1;
        waitpid(pids[r], &status, 0);
        good += WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            printf("# process %u: status 0x%x\n", r, status);
        }
    }
    munmap(shared, sizeof(*shared));
    return good;
}
