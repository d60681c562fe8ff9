/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tests of coll.c with every collective as a request: each call is replaced, in turn, by its non-blocking form and
 * MPI_Wait, by that and MPI_Test, or by a persistent request that is started once.
 */
#include <mpi.h>

#include <sched.h>
#include <stdlib.h>

/* Threads take turns of their own. */
static __thread unsigned turn;

static int run_started(int rc, MPI_Request *request)
{
    int flag = 0;
    if (rc != MPI_SUCCESS || turn++ % 3 == 0) {
        return rc == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : rc;
    }
    while (rc == MPI_SUCCESS && !flag) {
        rc = MPI_Test(request, &flag, MPI_STATUS_IGNORE);
        sched_yield();
    }
    return rc;
}

static int run_persistent(int rc, MPI_Request *request)
{
    turn++;
    if (rc == MPI_SUCCESS) {
        rc = MPI_Start(request);
        rc = rc == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : rc;
        MPI_Request_free(request); /* it stays after an error, too */
    }
    return rc;
}

#define AS_REQUEST(Nonblocking, Persistent, ...)                                                                  \
    __extension__({                                                                                               \
        MPI_Request request_;                                                                                     \
        turn % 3 == 2 ? run_persistent(Persistent(__VA_ARGS__, MPI_INFO_NULL, &request_), &request_)           \
                      : run_started(Nonblocking(__VA_ARGS__, &request_), &request_);                                   \
    })

#define MPI_Barrier(...) AS_REQUEST(MPI_Ibarrier, MPI_Barrier_init, __VA_ARGS__)
#define MPI_Bcast(...) AS_REQUEST(MPI_Ibcast, MPI_Bcast_init, __VA_ARGS__)
#define MPI_Bcast_c(...) AS_REQUEST(MPI_Ibcast_c, MPI_Bcast_init_c, __VA_ARGS__)
#define MPI_Gather(...) AS_REQUEST(MPI_Igather, MPI_Gather_init, __VA_ARGS__)
#define MPI_Gather_c(...) AS_REQUEST(MPI_Igather_c, MPI_Gather_init_c, __VA_ARGS__)
#define MPI_Gatherv(...) AS_REQUEST(MPI_Igatherv, MPI_Gatherv_init, __VA_ARGS__)
#define MPI_Gatherv_c(...) AS_REQUEST(MPI_Igatherv_c, MPI_Gatherv_init_c, __VA_ARGS__)
#define MPI_Scatter(...) AS_REQUEST(MPI_Iscatter, MPI_Scatter_init, __VA_ARGS__)
#define MPI_Scatter_c(...) AS_REQUEST(MPI_Iscatter_c, MPI_Scatter_init_c, __VA_ARGS__)
#define MPI_Scatterv(...) AS_REQUEST(MPI_Iscatterv, MPI_Scatterv_init, __VA_ARGS__)
#define MPI_Scatterv_c(...) AS_REQUEST(MPI_Iscatterv_c, MPI_Scatterv_init_c, __VA_ARGS__)
#define MPI_Allgather(...) AS_REQUEST(MPI_Iallgather, MPI_Allgather_init, __VA_ARGS__)
#define MPI_Allgather_c(...) AS_REQUEST(MPI_Iallgather_c, MPI_Allgather_init_c, __VA_ARGS__)
#define MPI_Allgatherv(...) AS_REQUEST(MPI_Iallgatherv, MPI_Allgatherv_init, __VA_ARGS__)
#define MPI_Allgatherv_c(...) AS_REQUEST(MPI_Iallgatherv_c, MPI_Allgatherv_init_c, __VA_ARGS__)
#define MPI_Alltoall(...) AS_REQUEST(MPI_Ialltoall, MPI_Alltoall_init, __VA_ARGS__)
#define MPI_Alltoall_c(...) AS_REQUEST(MPI_Ialltoall_c, MPI_Alltoall_init_c, __VA_ARGS__)
#define MPI_Alltoallv(...) AS_REQUEST(MPI_Ialltoallv, MPI_Alltoallv_init, __VA_ARGS__)
#define MPI_Alltoallv_c(...) AS_REQUEST(MPI_Ialltoallv_c, MPI_Alltoallv_init_c, __VA_ARGS__)
#define MPI_Alltoallw(...) AS_REQUEST(MPI_Ialltoallw, MPI_Alltoallw_init, __VA_ARGS__)
#define MPI_Alltoallw_c(...) AS_REQUEST(MPI_Ialltoallw_c, MPI_Alltoallw_init_c, __VA_ARGS__)
#define MPI_Reduce(...) AS_REQUEST(MPI_Ireduce, MPI_Reduce_init, __VA_ARGS__)
#define MPI_Reduce_c(...) AS_REQUEST(MPI_Ireduce_c, MPI_Reduce_init_c, __VA_ARGS__)
#define MPI_Allreduce(...) AS_REQUEST(MPI_Iallreduce, MPI_Allreduce_init, __VA_ARGS__)
#define MPI_Allreduce_c(...) AS_REQUEST(MPI_Iallreduce_c, MPI_Allreduce_init_c, __VA_ARGS__)
#define MPI_Scan(...) AS_REQUEST(MPI_Iscan, MPI_Scan_init, __VA_ARGS__)
#define MPI_Scan_c(...) AS_REQUEST(MPI_Iscan_c, MPI_Scan_init_c, __VA_ARGS__)
#define MPI_Exscan(...) AS_REQUEST(MPI_Iexscan, MPI_Exscan_init, __VA_ARGS__)
#define MPI_Exscan_c(...) AS_REQUEST(MPI_Iexscan_c, MPI_Exscan_init_c, __VA_ARGS__)
#define MPI_Reduce_scatter_block(...) AS_REQUEST(MPI_Ireduce_scatter_block, MPI_Reduce_scatter_block_init, __VA_ARGS__)
#define MPI_Reduce_scatter_block_c(...) AS_REQUEST(MPI_Ireduce_scatter_block_c, MPI_Reduce_scatter_block_init_c, __VA_ARGS__)
#define MPI_Reduce_scatter(...) AS_REQUEST(MPI_Ireduce_scatter, MPI_Reduce_scatter_init, __VA_ARGS__)
#define MPI_Reduce_scatter_c(...) AS_REQUEST(MPI_Ireduce_scatter_c, MPI_Reduce_scatter_init_c, __VA_ARGS__)

#include "mpi/coll.c"
