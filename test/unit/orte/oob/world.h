/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * A world of daemons for tests: `count` processes on this machine, forked in the order of their
 * indices, each of which listens, connects to its parent and then runs a scenario in its event
 * loop. What a scenario returns is the process's exit code.
 */
#ifndef TEST_UNIT_ORTE_OOB_WORLD_H
#define TEST_UNIT_ORTE_OOB_WORLD_H

#include "opal/mca/base/var.h"
#include "orte/oob/oob.h"
#include "test/support/tap.h"

#include <event2/event.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum {
    WORLD_MAX = 64,
    WORLD_OK = 0,
    WORLD_TIMEOUT = 90, /* exit codes of a daemon besides the scenario's own */
    WORLD_SETUP = 91,
    WORLD_LIMIT_S = 60,
    TAG_TEST = ORTE_OOB_TAG_FIRST,
    TAG_BYE,
};

/* One daemon. */
typedef struct world {
    uint32_t index, count, radix;
    unsigned seed;
    struct event_base *base;
    orte_oob_t *oob;
    void *arg;          /* of the scenario */
    int code;           /* exit code once the loop ends */
    uint32_t connected; /* neighbours so far */
    uint32_t lost_count;
    uint32_t lost[WORLD_MAX];
    orte_oob_loss_t why[WORLD_MAX];
    char sentence[ORTE_OOB_SENTENCE]; /* of the last loss */
    void (*on_lost)(struct world *w, uint32_t index);
    void (*on_drained)(struct world *w, uint32_t index);
} world_t;

/* Shared by all processes of a world. */
typedef struct world_board {
    _Atomic uint64_t slot[WORLD_MAX];
} world_board_t;
static world_board_t *world_board;
static pid_t world_pid[WORLD_MAX]; /* of the daemons, in the process that started them */

static inline double world_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline void world_end(world_t *w, int code)
{
    w->code = code;
    event_base_loopbreak(w->base);
}

static inline void world_left(void *arg)
{
    event_base_loopbreak(((world_t *)arg)->base);
}

/* Leave in order, with this exit code. */
static inline void world_leave(world_t *w, int code)
{
    w->code = code;
    orte_oob_leave(w->oob, 5000, world_left, w);
}

static inline void world_on_connected(void *arg, uint32_t index, const char *hostname)
{
    world_t *w = arg;

    (void)index;
    (void)hostname;
    w->connected++;
}

static inline void world_on_failed(void *arg, int rc, const char *sentence)
{
    (void)rc;
    printf("# %s\n", sentence);
    world_end(arg, WORLD_SETUP);
}

static inline void world_on_lost(void *arg, uint32_t index, orte_oob_loss_t why,
                                 const char *sentence)
{
    world_t *w = arg;

    if (w->lost_count < WORLD_MAX) {
        w->why[w->lost_count] = why;
        w->lost[w->lost_count++] = index;
    }
    snprintf(w->sentence, sizeof(w->sentence), "%s", sentence);
    if (w->on_lost != NULL) {
        w->on_lost(w, index);
    }
}

static inline void world_on_drained(void *arg, uint32_t index)
{
    world_t *w = arg;

    if (w->on_drained != NULL) {
        w->on_drained(w, index);
    }
}

static inline void world_bye(void *arg, orte_oob_message_t *message)
{
    (void)message;
    world_leave(arg, WORLD_OK);
}

/* mpirun says that all is done: everybody leaves. */
static inline void world_dismiss(world_t *w)
{
    orte_oob_send(w->oob, ORTE_OOB_EVERYBODY, TAG_BYE, ORTE_OOB_CONTROL, NULL, 0);
    world_leave(w, WORLD_OK);
}

static inline void world_expired(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    world_end(arg, WORLD_TIMEOUT);
}

/* The daemon's whole life. `say`: where its contact goes. */
static inline int world_daemon(world_t *w, const uint8_t *key, const char *parent, int say,
                               void (*scenario)(world_t *w))
{
    char host[32], why[ORTE_OOB_SENTENCE];
    const char *contact;
    struct timeval limit = {.tv_sec = WORLD_LIMIT_S};
    orte_oob_config_t config = {
        .index = w->index, .count = w->count, .radix = w->radix, .hostname = host, .arg = w,
        .on_connected = world_on_connected, .on_connect_failed = world_on_failed,
        .on_lost = world_on_lost, .on_drained = world_on_drained,
    };

    snprintf(host, sizeof(host), "h%u", w->index);
    memcpy(config.key, key, sizeof(config.key));
    w->base = event_base_new();
    w->oob = orte_oob_create(w->base, &config);
    struct event *timer = event_new(w->base, -1, 0, world_expired, w);
    if (w->oob == NULL || timer == NULL || event_add(timer, &limit) != 0 ||
        orte_oob_listen(w->oob, &contact, why) != OPAL_SUCCESS ||
        write(say, contact, strlen(contact) + 1) < 0) {
        return WORLD_SETUP;
    }
    close(say);
    orte_oob_handle(w->oob, TAG_BYE, world_bye, w);
    scenario(w);
    if (w->index > 0 && orte_oob_connect(w->oob, parent) != OPAL_SUCCESS) {
        return WORLD_SETUP;
    }
    event_base_dispatch(w->base);
    event_free(timer);
    orte_oob_destroy(w->oob);
    event_base_free(w->base);
    libevent_global_shutdown();
    return w->code;
}

/* Start all; false: a daemon could not be. */
static inline bool world_start(uint32_t count, uint32_t radix, unsigned seed, void *arg,
                               void (*scenario)(world_t *w))
{
    static char contact[WORLD_MAX][512];
    uint8_t key[ORTE_OOB_KEY_BYTES];

    fflush(stdout);
    memset(world_board, 0, sizeof(*world_board));
    if (orte_oob_key_create(key) != OPAL_SUCCESS) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        int fds[2];
        if (pipe(fds) != 0) {
            return false;
        }
        world_pid[i] = fork();
        if (world_pid[i] < 0) {
            return false;
        }
        if (world_pid[i] == 0) {
            world_t w = {.index = i, .count = count, .radix = radix, .seed = seed + i, .arg = arg};
            struct rlimit memory = {.rlim_cur = (rlim_t)4 << 30, .rlim_max = (rlim_t)4 << 30};
            prctl(PR_SET_PDEATHSIG, SIGKILL);
#if !defined(__SANITIZE_ADDRESS__)
            setrlimit(RLIMIT_AS, &memory); /* a message storm ends here, not in the machine */
#else
            (void)memory;
#endif
            alarm(0);
            close(fds[0]);
            uint32_t parent = orte_oob_tree_parent(i, radix);
            exit(world_daemon(&w, key, i == 0 ? NULL : contact[parent], fds[1], scenario));
        }
        close(fds[1]);
        ssize_t got = read(fds[0], contact[i], sizeof(contact[i]) - 1);
        close(fds[0]);
        if (got <= 0) {
            return false;
        }
    }
    return true;
}

/* Whether the daemon could be signalled; never anything but a process of ours. */
static inline bool world_kill(uint32_t index, int signal_number)
{
    return world_pid[index] > 0 && kill(world_pid[index], signal_number) == 0;
}

/* Wait for all; returns how many ended with another code than 0. One killed by `expected` (a
 * signal; 0: none) is no failure. */
static inline int world_wait(uint32_t count, int expected)
{
    int bad = 0;

    for (uint32_t i = 0; i < count; i++) {
        int status = -1;
        if (waitpid(world_pid[i], &status, 0) < 0) {
            status = -1;
        }
        const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == expected && expected != 0;
        if (status != 0 && !killed) {
            printf("# daemon %u of %u ended with status 0x%x\n", i, count, status);
            bad++;
        }
    }
    return bad;
}

static inline int world_run(uint32_t count, uint32_t radix, unsigned seed, void *arg,
                            void (*scenario)(world_t *w))
{
    if (!world_start(count, radix, seed, arg, scenario)) {
        return -1;
    }
    return world_wait(count, 0);
}

/* Parameters as "name=value", for all worlds that follow. */
static inline void world_setup(const char *const *params)
{
    char name[64];

    for (; *params != NULL; params++) {
        const char *equals = strchr(*params, '=');
        snprintf(name, sizeof(name), "OMPI_MCA_%.*s", (int)(equals - *params), *params);
        setenv(name, equals + 1, 1);
    }
    world_board = mmap(NULL, sizeof(*world_board), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TAP_REQUIRE(world_board != MAP_FAILED && mca_base_var_init() == OPAL_SUCCESS &&
                    orte_oob_register_params() == OPAL_SUCCESS,
                "parameters");
}

/* Bytes of resident memory. */
static inline size_t world_memory(void)
{
    unsigned long total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (file != NULL) {
        if (fscanf(file, "%lu %lu", &total, &resident) != 2) {
            resident = 0;
        }
        fclose(file);
    }
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* A task for the loop after a while. */
static inline void world_later(world_t *w, int ms, event_callback_fn fn)
{
    struct timeval time = {.tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000};

    event_base_once(w->base, -1, EV_TIMEOUT, fn, w, &time);
}

#endif
