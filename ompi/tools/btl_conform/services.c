/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The services table: parameters from the command line, and a small progress engine over
 * poll(2). */
#include "ompi/tools/btl_conform/conform.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAX_POLLERS = 32, MAX_EVENTS = 1024, MAX_TIMERS = 1024, EVENT_INTERVAL = 32 };

typedef struct poller {
    const mca_btl_poller_t *ops;
    void *context;
} poller_t;

typedef struct event {
    int fd;
    unsigned what;
    mca_btl_event_fn_t fn;
    void *context;
} event_t;

typedef struct timer {
    uint64_t at; /* 0: fired */
    mca_btl_timer_fn_t fn;
    void *context;
} timer_entry_t;

static poller_t *pollers[MAX_POLLERS];
static event_t *events[MAX_EVENTS];
static timer_entry_t *timers[MAX_TIMERS];
static pthread_mutex_t tables = PTHREAD_MUTEX_INITIALIZER;
static int wake_fd = -1;
static unsigned rounds;

mca_btl_job_t conform_job;
unsigned char conform_card[CONFORM_CARD_MAX];
size_t conform_published;
unsigned conform_open_handles;
_Thread_local bool conform_in_progress;

uint64_t conform_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- Parameters ---- */

static bool param_known[CONFORM_MAX_PARAMS]; /* a plug-in has a parameter of this name */

/* [RANK:]NAME=VALUE without the rank; is it for this process? */
static const char *param_of_rank(const char *text, bool *mine)
{
    char *end;
    long rank = strtol(text, &end, 10);
    *mine = end == text || *end != ':' || rank == self.rank;
    return end == text || *end != ':' ? text : end + 1;
}

static const char *param_value(const char *name)
{
    size_t len = strlen(name);
    const char *value = NULL;
    for (int i = 0; i < conform_options.param_count; i++) {
        bool mine;
        const char *p = param_of_rank(conform_options.params[i], &mine);
        if (strncmp(p, name, len) == 0 && p[len] == '=') {
            param_known[i] = true;
            value = mine ? p + len + 1 : value;
        }
    }
    return value;
}

const char *conform_unknown_param(void)
{
    for (int i = 0; i < conform_options.param_count; i++) {
        if (!param_known[i]) {
            return conform_options.params[i];
        }
    }
    return NULL;
}

static bool param_bool(const char *text, bool *out)
{
    static const char *const words[] = {"false", "no", "off", "0", "true", "yes", "on", "1"};
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(words[i], text) == 0) {
            *out = i >= 4;
            return true;
        }
    }
    return false;
}

static bool param_enum(const mca_base_var_desc_t *d, const char *text, int64_t *out)
{
    for (const mca_base_var_enum_t *e = d->enums; e && e->name; e++) {
        if (strcasecmp(e->name, text) == 0) {
            *out = e->value;
            return true;
        }
    }
    return false;
}

static bool param_size(const char *text, uint64_t *out)
{
    char *end;
    *out = strtoull(text, &end, 0);
    const char *units = "kmgt", *unit = *end ? strchr(units, *end | 0x20) : NULL;
    if (unit) {
        *out <<= 10 * (unit - units + 1);
        end++;
    }
    return *end == '\0';
}

static bool param_parse(const mca_base_var_desc_t *d, const char *text, void *storage)
{
    char *end = NULL;
    switch (d->type) {
    case MCA_VAR_INT:
        *(int64_t *)storage = strtoll(text, &end, 0);
        return *end == '\0';
    case MCA_VAR_SIZE:
        return param_size(text, storage);
    case MCA_VAR_BOOL:
        return param_bool(text, storage);
    case MCA_VAR_DOUBLE:
        *(double *)storage = strtod(text, &end);
        return *end == '\0';
    case MCA_VAR_ENUM:
        return param_enum(d, text, storage);
    case MCA_VAR_STRING:
    case MCA_VAR_LIST:
        *(char **)storage = strdup(text);
        return true;
    }
    return false;
}

static void param_default(const mca_base_var_desc_t *d, void *storage)
{
    switch (d->type) {
    case MCA_VAR_INT:
    case MCA_VAR_ENUM:
        *(int64_t *)storage = d->def.i;
        break;
    case MCA_VAR_SIZE:
        *(uint64_t *)storage = d->def.size;
        break;
    case MCA_VAR_BOOL:
        *(bool *)storage = d->def.b;
        break;
    case MCA_VAR_DOUBLE:
        *(double *)storage = d->def.d;
        break;
    case MCA_VAR_STRING:
    case MCA_VAR_LIST:
        *(char **)storage = d->def.s ? strdup(d->def.s) : NULL;
        break;
    }
}

static int service_var_register(const mca_base_var_desc_t *d, void *storage)
{
    char name[256];
    REQUIRE(d->name && d->help && *d->help, "a parameter without name or help");
    snprintf(name, sizeof(name), "%s%s%s%s%s", d->framework ? d->framework : "", d->framework ? "_" : "",
             d->component ? d->component : "", d->component ? "_" : "", d->name);
    const char *text = param_value(name);
    if (!text) {
        param_default(d, storage);
    } else if (!param_parse(d, text, storage)) {
        fprintf(stderr, "hawser-btl-conform: %s=%s does not parse\n", name, text);
        exit(CONFORM_FAILED);
    }
    return MCA_SUCCESS;
}

__attribute__((format(printf, 4, 5))) static void service_log(const char *framework, const char *component,
                                                              mca_log_level_t level, const char *format, ...)
{
    if (!conform_options.verbose && level > MCA_LOG_WARN) {
        return;
    }
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    fprintf(stderr, "# [%d] %s/%s: %s\n", self.rank, framework, component, line);
}

__attribute__((format(printf, 2, 3))) static void service_report(const char *topic, const char *format, ...)
{
    char line[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    fprintf(stderr, "# [%d] %s: %s\n", self.rank, topic, line);
}

/* ---- Tables ---- */

static int slot_put(void **table, int size, void *entry, void **handle)
{
    int rc = MCA_ERR_OUT_OF_RESOURCE;
    pthread_mutex_lock(&tables);
    for (int i = 0; entry && i < size; i++) {
        if (!table[i]) {
            table[i] = entry;
            *handle = entry;
            conform_open_handles++;
            rc = MCA_SUCCESS;
            break;
        }
    }
    pthread_mutex_unlock(&tables);
    return rc;
}

static void slot_remove(void **table, int size, void *entry)
{
    pthread_mutex_lock(&tables);
    for (int i = 0; i < size; i++) {
        if (table[i] == entry) {
            table[i] = NULL;
            conform_open_handles--;
            pthread_mutex_unlock(&tables);
            free(entry);
            return;
        }
    }
    FAIL("a handle given back that is not one (given back twice?)");
}

static int service_poller_add(const mca_btl_poller_t *ops, void *context, void **handle)
{
    poller_t *p = malloc(sizeof(*p));
    if (p) {
        *p = (poller_t){ops, context};
    }
    return slot_put((void **)pollers, MAX_POLLERS, p, handle);
}

static void service_poller_del(void *handle)
{
    slot_remove((void **)pollers, MAX_POLLERS, handle);
}

static void service_poller_active(void *handle, bool active)
{
    (void)handle, (void)active;
}

static uint64_t lanes_taken; /* bits */
static unsigned lanes_entered;

static void service_poller_lane(void *handle, uint32_t lane)
{
    REQUIRE(handle && lane >= 1 && lane <= MCA_BTL_LANES_MAX, "the poller of lane %u", lane);
    REQUIRE(!(lanes_taken & (uint64_t)1 << lane), "lane %u has two pollers", lane);
    lanes_taken |= (uint64_t)1 << lane;
}

/* One thread makes progress here: what is to be seen is that a poller enters no lane, and that who enters leaves. */
static void service_lane_enter(void *handle)
{
    REQUIRE(handle && lanes_entered++ == 0, "a lane entered twice");
}

static void service_lane_leave(void *handle)
{
    REQUIRE(handle && lanes_entered-- == 1, "a lane left that was not entered");
}

static int service_event_add(int fd, unsigned what, mca_btl_event_fn_t fn, void *context, void **handle)
{
    event_t *e = malloc(sizeof(*e));
    if (e) {
        *e = (event_t){fd, what, fn, context};
    }
    return slot_put((void **)events, MAX_EVENTS, e, handle);
}

static int service_event_mod(void *handle, unsigned what)
{
    ((event_t *)handle)->what = what;
    return MCA_SUCCESS;
}

static void service_event_del(void *handle)
{
    slot_remove((void **)events, MAX_EVENTS, handle);
}

static int service_timer_add(uint64_t us, mca_btl_timer_fn_t fn, void *context, void **handle)
{
    timer_entry_t *t = malloc(sizeof(*t));
    if (t) {
        *t = (timer_entry_t){conform_now() + us * 1000 + 1, fn, context};
    }
    return slot_put((void **)timers, MAX_TIMERS, t, handle);
}

static void service_timer_del(void *handle)
{
    slot_remove((void **)timers, MAX_TIMERS, handle);
}

static void service_wake(void)
{
    uint64_t one = 1;
    if (write(wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN) {
        FAIL("eventfd: %s", strerror(errno));
    }
}

/* Why a link is not used may interest whoever finds that there is none. */
static void service_rejected(const char *link, const char *why)
{
    REQUIRE(link && why && *link && *why, "a rejection without a name or a reason");
}

static int service_component(const char *name, const mca_base_component_t **component, const char **why)
{
    *component = conform_other(name);
    *why = "the kit has no such plug-in (--component FILE)";
    return *component ? MCA_SUCCESS : MCA_ERR_NOT_AVAILABLE;
}

static int service_counter(const char *component, const char *name, const char *help,
                           uint64_t (*fn)(void *context), void *context)
{
    REQUIRE(component && name && *name && help && *help && fn, "a counter without name or help");
    (void)fn(context);
    return MCA_SUCCESS;
}

static int service_publish(const char *component, const void *data, size_t len)
{
    (void)component;
    REQUIRE(conform_published == 0, "published twice");
    REQUIRE(len <= CONFORM_CARD_MAX, "a card of %zu bytes", len);
    memcpy(conform_card, data, len);
    conform_published = len;
    return MCA_SUCCESS;
}

static const mca_base_services_t base_services = {
    .struct_size = sizeof(mca_base_services_t),
    .var_register = service_var_register,
    .log = service_log,
    .report = service_report,
};

static bool waiting = true; /* by turns, but in benchmarks */

mca_btl_services_t conform_services = {
    .struct_size = sizeof(mca_btl_services_t),
    .base = &base_services,
    .job = &conform_job,
    .poller_add = service_poller_add,
    .poller_del = service_poller_del,
    .poller_active = service_poller_active,
    .event_add = service_event_add,
    .event_mod = service_event_mod,
    .event_del = service_event_del,
    .timer_add = service_timer_add,
    .timer_del = service_timer_del,
    .now_ns = conform_now,
    .wake = service_wake,
    .publish = service_publish,
    .rejected = service_rejected,
    .component = service_component,
    .counter = service_counter,
    .lane_enter = service_lane_enter,
    .lane_leave = service_lane_leave,
    .waiting = &waiting,
};

static bool membarrier_register(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

void conform_services_start(void)
{
    static char host[256];
    gethostname(host, sizeof(host) - 1);
    if (wake_fd < 0) {
        wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    }
    REQUIRE(wake_fd >= 0, "eventfd: %s", strerror(errno));
    conform_job = (mca_btl_job_t){
        .self = (uint64_t)0xc0f0u << 32 | (uint32_t)self.rank,
        .size = (uint32_t)self.size, .local_rank = (uint32_t)self.rank, .local_size = (uint32_t)self.size,
        .job_id = self.job_id, .host = host,
    };
    memcpy(conform_job.secret, self.secret, sizeof(conform_job.secret));
    conform_services.threads = conform_options.threads;
    lanes_taken = 0;
    conform_services.poller_lane = conform_options.lanes ? service_poller_lane : NULL;
    conform_services.oversubscribed = self.size > sysconf(_SC_NPROCESSORS_ONLN);
    conform_services.asymmetric_fence = conform_options.asymmetric_fence && membarrier_register();
}

/* ---- Progress ---- */

static int run_timers(void)
{
    int count = 0;
    uint64_t now = conform_now();
    for (int i = 0; i < MAX_TIMERS; i++) {
        timer_entry_t *t = timers[i];
        if (t && t->at != 0 && t->at <= now) {
            t->at = 0;
            t->fn(t->context);
            count++;
        }
    }
    return count;
}

/* Milliseconds until the next timer, at most `ms` (negative: no limit). */
static int timers_due(int ms)
{
    uint64_t now = conform_now();
    for (int i = 0; i < MAX_TIMERS; i++) {
        if (timers[i] && timers[i]->at != 0) {
            uint64_t left = timers[i]->at > now ? (timers[i]->at - now) / 1000000 + 1 : 0;
            ms = ms < 0 || left < (uint64_t)ms ? (int)left : ms;
        }
    }
    return ms;
}

static int run_events(int ms)
{
    struct pollfd fds[MAX_EVENTS + 1];
    event_t *who[MAX_EVENTS + 1];
    nfds_t n = 0;
    fds[n] = (struct pollfd){.fd = wake_fd, .events = POLLIN};
    who[n++] = NULL;
    for (int i = 0; i < MAX_EVENTS; i++) {
        if (events[i] && events[i]->what) {
            short what = (events[i]->what & MCA_BTL_EVENT_READ ? POLLIN : 0)
                         | (events[i]->what & MCA_BTL_EVENT_WRITE ? POLLOUT : 0);
            fds[n] = (struct pollfd){.fd = events[i]->fd, .events = what};
            who[n++] = events[i];
        }
    }
    int count = 0, ready = poll(fds, n, ms);
    for (nfds_t i = 0; ready > 0 && i < n; i++) {
        if (fds[i].revents == 0) {
            continue;
        }
        if (!who[i]) {
            uint64_t value;
            (void)!read(wake_fd, &value, sizeof(value));
            count++;
            continue;
        }
        for (int k = 0; k < MAX_EVENTS; k++) { /* a callback may have removed it */
            if (events[k] == who[i] && who[i]->fd == fds[i].fd) {
                unsigned bad = fds[i].revents & (POLLERR | POLLHUP | POLLNVAL) ? who[i]->what : 0;
                unsigned what = (fds[i].revents & POLLIN ? MCA_BTL_EVENT_READ : 0)
                                | (fds[i].revents & POLLOUT ? MCA_BTL_EVENT_WRITE : 0) | bad;
                who[i]->fn(who[i]->fd, what & who[i]->what, who[i]->context);
                count++;
                break;
            }
        }
    }
    return count + run_timers();
}

int conform_poll(void)
{
    bool outer = conform_in_progress;
    int count = 0;
    conform_in_progress = true;
    for (int i = 0; i < MAX_POLLERS && pollers[i]; i++) {
        count += pollers[i]->ops->poll(pollers[i]->context);
    }
    conform_in_progress = outer;
    return count;
}

int conform_progress(void)
{
    REQUIRE(!conform_in_progress, "the kit progressed inside progress");
    conform_in_progress = true;
    int count = conform_poll();
    if (++rounds % EVENT_INTERVAL == 0) {
        count += run_events(0);
        __atomic_store_n(&waiting, conform_options.bench || !waiting, __ATOMIC_RELAXED);
    }
    conform_in_progress = false;
    return count;
}

static void arm(bool on)
{
    for (int i = 0; i < MAX_POLLERS && pollers[i]; i++) {
        void (*fn)(void *) = on ? pollers[i]->ops->arm : pollers[i]->ops->disarm;
        if (fn) {
            fn(pollers[i]->context);
        }
    }
}

bool conform_sleep(int ms)
{
    int count;
    conform_in_progress = true;
    arm(true);
    atomic_thread_fence(memory_order_seq_cst);
    if (conform_services.asymmetric_fence) {
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
    }
    count = conform_poll();
    count += run_events(count > 0 ? 0 : timers_due(ms)); /* timers fire however busy pollers are */
    arm(false);
    conform_in_progress = false;
    return count > 0;
}

bool conform_wait(bool (*done)(void *context), void *context, unsigned ms)
{
    enum { SPINS = 2000 };
    uint64_t end = conform_now() + (uint64_t)ms * 1000000;
    for (int idle = 0; !done(context);) {
        if (conform_progress() > 0) {
            idle = 0;
        } else if (++idle > SPINS) {
            uint64_t now = conform_now();
            if (now >= end) {
                return done(context);
            }
            conform_sleep((int)((end - now) / 1000000 + 1));
            idle = 0;
        }
    }
    return true;
}
