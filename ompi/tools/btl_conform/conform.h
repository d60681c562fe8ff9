/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * hawser-btl-conform: drives a BTL through its public contract, without the MPI library, and says
 * whether it keeps it. Each test runs in fresh processes, forked by the kit, that exchange cards
 * and meet at barriers through it. Nothing here knows any BTL: what a link can't do (limits,
 * capabilities) is skipped.
 *
 *   main.c      options; forks the processes of each test, prints TAP
 *   services.c  the services table: parameters, a small progress engine over poll(2)
 *   link.c      loading the plug-in, peers, upcalls that check the rules, sending whole fragments
 *   test_*.c    the tests
 *   faults.c    a kernel that takes little at a time
 *   bench.c     half round trip, rate and bandwidth through the raw contract
 */
#ifndef BTL_CONFORM_H
#define BTL_CONFORM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "hawser/btl.h"

enum {
    CONFORM_MAX_PROCESSES = 128,
    CONFORM_MAX_MODULES = 48, /* lanes, too */
    CONFORM_CARD_MAX = 4096,
    CONFORM_MAX_PARAMS = 64,
    CONFORM_FAILED = 1,
    CONFORM_SKIPPED = 77,
};

/* ---- main.c: options, and the world outside the process ---- */

typedef struct conform_options {
    const char *plugin;
    const char *only;          /* name of the one test to run */
    const char *skip;          /* NAME=REASON of one that is left out */
    const char *module;        /* name of the one module to use */
    uint64_t seed;
    int processes;             /* of benchmarks and of tests among many */
    bool threads;              /* tell the BTL that there are threads in every test */
    bool lanes;                /* ... and that lanes are wanted */
    bool forbid_cma;           /* process_vm_* fail with EPERM */
    bool short_writes;         /* sockets take parts of what they are given */
    bool forked;               /* the peer that dies leaves a child behind */
    bool keepalive;            /* the link notices a peer's death though nothing is sent */
    bool asymmetric_fence;
    bool verbose, bench, pin;
    unsigned timeout;          /* seconds for one test */
    const char *params[CONFORM_MAX_PARAMS]; /* name=value */
    int param_count;
    const char *others[8];     /* plug-ins that the one tested may ask for by name */
    int other_count;
} conform_options_t;
extern conform_options_t conform_options;

/* What a process waits for, told when a test fails. */
typedef struct conform_note {
    _Atomic uint64_t since_ns; /* 0: it does not wait */
    char what[112];
} conform_note_t;

/* Memory shared by the processes of one test, zeroed. */
typedef struct conform_shared {
    _Atomic uint32_t flags[64];
    _Atomic uint64_t words[64];
    conform_note_t notes[CONFORM_MAX_PROCESSES];
} conform_shared_t;

typedef struct conform_process {
    int rank, size;
    int control;               /* to the kit's parent */
    conform_shared_t *shared;
    uint64_t random;           /* state of this process's generator */
    char job_id[64];
    uint8_t secret[32];
} conform_process_t;
extern conform_process_t self;

/* Say what this process now waits for, and that it goes on. */
__attribute__((format(printf, 1, 2))) void conform_waits(const char *format, ...);
void conform_goes_on(void);
/* All processes of the test. One that has ended does not count. */
void conform_barrier(void);
/* The same, while progress goes on in here. */
void conform_progress_barrier(void);
/* Cards of all processes, exchanged by the parent: cards[rank]. */
void conform_exchange(const void *card, size_t len);
extern unsigned char conform_cards[CONFORM_MAX_PROCESSES][CONFORM_CARD_MAX];
extern size_t conform_card_len[CONFORM_MAX_PROCESSES];
/* Kill another process of this test; its end is then no failure. */
void conform_kill(int rank);

/* A reproducible random number below n (n > 0). */
uint64_t conform_random(uint64_t n);

__attribute__((noreturn, format(printf, 3, 4))) void conform_fail(const char *file, int line,
                                                                  const char *format, ...);
#define FAIL(...) conform_fail(__FILE__, __LINE__, __VA_ARGS__)
#define REQUIRE(condition, ...)        \
    do {                               \
        if (!(condition)) {            \
            FAIL(__VA_ARGS__);         \
        }                              \
    } while (0)
/* The link can't do what the test is about. */
__attribute__((noreturn, format(printf, 1, 2))) void conform_skip(const char *format, ...);

/* ---- services.c ---- */

extern mca_btl_services_t conform_services;
extern mca_btl_job_t conform_job;
extern unsigned char conform_card[CONFORM_CARD_MAX];
extern size_t conform_published;
extern unsigned conform_open_handles; /* pollers, events, timers not yet given back */
/* True while pollers or event callbacks run in this thread. */
extern _Thread_local bool conform_in_progress;

void conform_services_start(void);
/* One of the options that set a parameter which no plug-in has, once they are loaded; NULL: none. */
const char *conform_unknown_param(void);
/* One round without sleeping; number of things done. */
int conform_progress(void);
/* The pollers alone. */
int conform_poll(void);
/* Progress, sleeping in the kernel when there is nothing to do, until done(context) or `ms` are
 * over: false. */
bool conform_wait(bool (*done)(void *context), void *context, unsigned ms);
/* Sleep at most `ms` unless something is there already; true if something woke it. */
bool conform_sleep(int ms);
uint64_t conform_now(void);

/* ---- link.c ---- */

/* Header of each of the kit's fragments. */
typedef struct conform_header {
    uint32_t magic;
    uint16_t kind;
    uint16_t stream;    /* fragments are numbered per stream */
    uint64_t number;
    uint64_t seed;      /* of the payload's bytes */
    uint32_t len;       /* of the payload */
    uint32_t check;     /* of the fields above */
} conform_header_t;
_Static_assert(sizeof(conform_header_t) == 32, "no padding");

enum { CONFORM_MAGIC = 0x636f6e66, CONFORM_STREAMS = 32, CONFORM_NUMBERS_MAX = 1 << 24 };

/* Which numbers of a stream have come, of a link that does not keep their order. */
typedef struct conform_seen {
    uint64_t *bits;
    size_t words;
} conform_seen_t;

typedef struct conform_peer {
    int rank;
    mca_btl_endpoint_t *endpoint[CONFORM_MAX_MODULES];
    _Atomic bool blocked;        /* refused, and not told writable yet */
    _Atomic uint64_t writables;
    bool down;
    uint64_t downs;            /* how often it went down: it may be up again before anybody looks */
    char down_why[160];        /* the last time */
    uint64_t next_in[CONFORM_STREAMS];   /* numbers expected */
    uint64_t next_out[CONFORM_STREAMS];
    conform_seen_t seen[CONFORM_STREAMS];
    uint64_t arrived, arrived_bytes;
    uint64_t returned;
} conform_peer_t;

extern mca_btl_module_t *conform_modules[CONFORM_MAX_MODULES];
extern int conform_module_count;
extern mca_btl_module_t *conform_module; /* the one tested */
extern int conform_module_index;
extern conform_peer_t conform_peers[CONFORM_MAX_PROCESSES];

/* Upcalls that check the rules; each module's after conform_link_start(). */
extern const mca_btl_upcalls_t conform_upcalls;

/* Load a plug-in, register its parameters, open it. */
const mca_base_component_t *conform_open_plugin(const char *path);
/* The plug-in named NAME in a file mca_btl_NAME.so of --component; NULL: none. */
const mca_base_component_t *conform_other(const char *name);
/* Load the plug-in, register parameters, init. */
void conform_link_init(void);
/* The same, and exchange cards. No peer is added yet. */
void conform_link_start(void);
conform_peer_t *conform_add(int rank);
/* del_peer, finalize, close. */
void conform_link_end(void);

/* What a test does with arrivals; NULL: check order and bytes, count. */
typedef void (*conform_arrive_fn_t)(conform_peer_t *peer, mca_btl_arrival_t *arrival,
                                    const conform_header_t *header, const unsigned char *payload);
extern conform_arrive_fn_t conform_on_arrive;

void conform_make_header(conform_header_t *h, uint16_t kind, uint16_t stream, uint64_t number, uint32_t len);
void conform_fill(unsigned char *to, size_t len, uint64_t seed);
/* Position of the first wrong byte, or -1. */
ptrdiff_t conform_compare(const unsigned char *bytes, size_t len, uint64_t seed);
/* The default treatment of an arrival. */
void conform_check_arrival(conform_peer_t *peer, const conform_header_t *header,
                           const unsigned char *payload);

typedef enum { WAY_SHORT, WAY_RESERVE, WAY_SEND, WAY_ANY } conform_way_t;
/* One fragment of `len` payload bytes; MCA_SUCCESS, MCA_ERR_AGAIN or MCA_ERR_UNREACHABLE. */
int conform_try_send(conform_peer_t *peer, conform_way_t way, uint16_t stream, size_t len);
/* The same, making progress until it is taken. */
void conform_send(conform_peer_t *peer, conform_way_t way, uint16_t stream, size_t len);
/* Descriptors under way that have not had their last event. */
extern _Atomic int conform_descriptors;
/* Largest payload that a way takes. */
size_t conform_max_len(conform_way_t way);
/* Wait until peer->arrived reaches `count`; fails when nothing arrives for long. From a link that is not
 * reliable some may lack. */
void conform_wait_arrived(conform_peer_t *peer, uint64_t count);
/* How many of `count` fragments the link may lose where nothing disturbs it. */
uint64_t conform_loss_max(uint64_t count);
/* All that was sent has been handed up. */
void conform_wait_idle(conform_peer_t *peer);

/* ---- Tests ---- */

typedef struct conform_test {
    const char *name;
    const char *what;
    int processes;             /* 0: as many as asked for; 1 if the link reaches its own process only */
    void (*run)(void);
} conform_test_t;
extern const conform_test_t conform_tests[];

void conform_bench(void);

#endif
