/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The surroundings of btl/tcp for its tests: services (one poller, events by poll(2), timers),
 * parameters set by the test, and a user of the BTL that resends what a failed link hands back and
 * drops repeats.
 *
 * Every fragment's header is a world_header_t; payload bytes follow from (source, sequence).
 */
#ifndef BTL_TCP_WORLD_H
#define BTL_TCP_WORLD_H

#include <stdatomic.h>
#include <sys/types.h>
#include "ompi/mca/btl/tcp/btl_tcp.h"
#include "test/support/tap.h"

enum { WORLD_PEERS_MAX = 8, WORLD_MODULES_MAX = 16, WORLD_WINDOW = 65536 };

typedef struct world_header {
    uint64_t sequence;   /* per sender, from 0 */
    uint32_t source;
    uint32_t len;        /* of the payload */
} world_header_t;

typedef struct world_peer {
    mca_btl_endpoint_t *ep[WORLD_MODULES_MAX];
    const char *why[WORLD_MODULES_MAX];
    bool down[WORLD_MODULES_MAX];
    uint8_t seen[WORLD_WINDOW];    /* sequences received */
    uint64_t received, repeats, bytes, next_in_order, out_of_order, damaged, placed;
    uint64_t ups, downs, returned, unconfirmed, confirmed, writable, cancelled;
    char last_why[BTL_TCP_WHY_MAX];
} world_peer_t;

typedef struct world {
    mca_btl_services_t services;
    mca_btl_job_t job;
    mca_btl_module_t **modules;
    size_t module_count;
    uint8_t card[2048];
    size_t card_len;
    world_peer_t peer[WORLD_PEERS_MAX];
    bool place;                    /* offer places for large payloads */
    bool keep;                     /* keep arrivals for a while */
    uint64_t reports;
    char last_report[512];
} world_t;

extern world_t world;

/* `settings`: "name=value ..." of btl_tcp parameters and net_*. False: init() said no (its code in
 * *rc). */
bool world_start(uint32_t rank, uint32_t size, const char *settings, int *rc);
void world_stop(void);
/* Let the peer's card, as it published it, be known; endpoints on all modules that take it. How
 * many did. */
int world_add(uint32_t rank, const void *card, size_t len);

/* One round of progress. */
int world_progress(void);
/* A call of MPI_Test by a program that comes seldom. */
void world_visit(void);
/* As the progress engine sleeps: arm, poll, wait at most `ms`, disarm. */
void world_sleep(int ms);
uint64_t world_now_ns(void);
bool world_wait(bool (*check)(void), unsigned ms);

/* Send a fragment over some link that is up, in the way that `how` says, progressing until one
 * takes it. False: no link took it in 20 s. */
typedef enum { WORLD_SHORT, WORLD_ROOM, WORLD_DESC, WORLD_ANY } world_how_t;
bool world_send(uint32_t rank, uint64_t sequence, size_t len, world_how_t how);
/* Nothing is waiting to be sent again, and all links are idle. */
bool world_idle(void);
void world_fill(uint8_t *out, uint32_t source, uint64_t sequence, size_t len);

/* Fork `size` processes, with all cards exchanged, running fn(rank) as a TAP-less child; the count
 * of those that returned 0. */
typedef int (*world_fn_t)(uint32_t rank);
int world_run(uint32_t size, const char *settings, world_fn_t fn);
/* If set: changes the card of `rank` before another process sees it. */
extern void (*world_card_filter)(uint32_t rank, uint8_t *card);
/* If set: called in each process before anything else. */
extern void (*world_child_setup)(uint32_t rank);
/* If set: called in the parent while the processes run. */
extern void (*world_bystander)(pid_t first);
/* If set: called for each line that the BTL logs, with its format: in the middle of what it does, as if by another thread. */
extern void (*world_on_log)(const char *format);
/* All processes of world_run() are here. */
void world_barrier(void);

#endif
