/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What the MPI benchmark programs share: start, end, and a line that says where each rank runs. */
#ifndef HAWSER_BENCH_MPI_SUPPORT_H
#define HAWSER_BENCH_MPI_SUPPORT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include <sched.h>
#include <mpi.h>

#include "support.h"

typedef struct bench_world {
    int rank;
    int size;
} bench_world_t;

/* The first processor this process may run on, and how many there are. */
static inline void bench_where(int where[2])
{
    cpu_set_t set;

    where[0] = where[1] = -1;
    if (0 != sched_getaffinity(0, sizeof(set), &set)) {
        return;
    }
    where[1] = CPU_COUNT(&set);
    for (int cpu = 0; cpu < CPU_SETSIZE && where[0] < 0; cpu++) {
        where[0] = CPU_ISSET(cpu, &set) ? cpu : -1;
    }
}

/* Binds the calling thread to the nth, from 0, of these processors; -1, or if there are not as many: leaves it. */
static inline void bench_bind(const cpu_set_t *set, int nth)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    for (int cpu = 0; nth >= 0 && cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, set) && 0 == nth--) {
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof(one), &one);
        }
    }
}

/* Once MPI is started: prints "where rank=R cpu=C of=N" for each rank: the driver checks the binding. */
static inline bench_world_t bench_world(const char *program, int at_least)
{
    bench_world_t world;
    int where[2], all[2];

    MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world.size);
    if (world.size < at_least) {
        fprintf(stderr, "%s: needs at least %d ranks\n", program, at_least);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    bench_where(where);
    if (0 != world.rank) {
        MPI_Send(where, 2, MPI_INT, 0, 0, MPI_COMM_WORLD);
        return world;
    }
    printf("where rank=0 cpu=%d of=%d\n", where[0], where[1]);
    for (int peer = 1; peer < world.size; peer++) {
        MPI_Recv(all, 2, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("where rank=%d cpu=%d of=%d\n", peer, all[0], all[1]);
    }
    return world;
}

static inline bench_world_t bench_start(int *argc, char ***argv, int at_least)
{
    MPI_Init(argc, argv);
    return bench_world((*argv)[0], at_least);
}

/* Ends MPI; "done" tells the driver that nothing was lost on the way. */
static inline int bench_end(const bench_world_t *world)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == world->rank) {
        puts("done");
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}

#endif
