/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll/nbc: non-blocking, persistent and neighbourhood collectives, and those blocking ones for which nobody has
 * anything faster, on every communicator. Each algorithm is described once, as a function that builds a schedule (nbc_sched.h).
 */
#ifndef COLL_NBC_H
#define COLL_NBC_H

#include "ompi/mca/coll/nbc/nbc_sched.h"

/* Which algorithm: decided by what is the same in all processes. Sizes in bytes. */
typedef struct nbc_params {
    int64_t priority;
    uint64_t bcast_long;       /* from here on through a chain, in segments */
    uint64_t segment;
    uint64_t reduce_long;      /* from here on a reduction divides its vector among the processes */
    uint64_t gather_short;     /* up to this block gather and scatter use a tree */
    uint64_t allgather_short;  /* up to this result allgather doubles */
    uint64_t alltoall_short;   /* up to this block alltoall forwards */
    int64_t window;            /* messages of each direction under way where everybody talks to everybody */
} nbc_params_t;

extern nbc_params_t nbc_params;

enum {
    NBC_TREE_MIN = 5,      /* processes; fewer are served best without a tree */
    NBC_WINDOW_MAX = 256,
    NBC_SEGMENTS_MAX = 4096, /* then they get longer */
};

/* A row of operations of which only some are under way at a time. */
typedef struct nbc_row {
    int32_t last[NBC_WINDOW_MAX]; /* nbc_params.window of them */
    int next;
} nbc_row_t;

void nbc_row_init(nbc_row_t *row);
void nbc_row_add(nbc_sched_t *s, nbc_row_t *row, int32_t id);

/*
 * Blocks of a buffer, one for each process: equal ones, one behind the other or all the same; or uneven ones, those of a v
 * form, or of a w form (then type is NULL), whose displacements are bytes.
 */
typedef struct nbc_blocks {
    const void *buf;
    size_t count;
    ompi_counts_t counts, displs;
    ompi_datatype_t *type;
    const MPI_Datatype *types;
    bool uneven;
    bool same;   /* the whole buffer is every process's block */
} nbc_blocks_t;

typedef struct nbc_block {
    void *at;
    size_t count;
    ompi_datatype_t *type;
    bool empty; /* no message is made of it, on neither side */
} nbc_block_t;

/* A count of a v or w form. One that is negative is noted as an error, and 0. */
size_t nbc_count(nbc_sched_t *s, ompi_counts_t counts, int i);
/* Where nothing can be in place: noted as an error. */
bool nbc_is_in_place(nbc_sched_t *s, const void *sbuf);

nbc_block_t nbc_block(nbc_sched_t *s, const nbc_blocks_t *blocks, int i);
void nbc_send_block(nbc_sched_t *s, const nbc_block_t *block, int peer);
void nbc_recv_block(nbc_sched_t *s, const nbc_block_t *block, int peer);
/* Hold the types of n blocks. */
void nbc_hold_blocks(nbc_sched_t *s, const nbc_blocks_t *blocks, int n);

/* With each of n peers: send its block of `out`, receive into its block of `in`, each unless NULL. Starts with the peer behind
 * `me`; leaves out `me` itself, if that is one of them. */
void nbc_exchange(nbc_sched_t *s, const nbc_blocks_t *out, const nbc_blocks_t *in, int n, int me);

static inline int nbc_size(const nbc_sched_t *s)
{
    return ompi_comm_size(s->comm);
}

/*
 * Algorithms that forward or cut what belongs to others move bytes, as the processes may describe equal data by different
 * types. That takes one representation of data in all processes; elsewhere each message goes straight to whom it is for.
 */
static inline bool nbc_may_forward(const nbc_sched_t *s)
{
    return !ompi_comm_is_mixed(s->comm);
}

static inline ompi_datatype_t *nbc_byte(void)
{
    return ompi_datatype_builtin(MPI_BYTE);
}

/* ---- Builders, on intracommunicators. sbuf or rbuf may be MPI_IN_PLACE as in MPI. ---- */

void nbc_build_barrier(nbc_sched_t *s);
void nbc_build_bcast(nbc_sched_t *s, void *buf, size_t count, ompi_datatype_t *type, int root);
void nbc_build_gather(nbc_sched_t *s, const void *sbuf, size_t scount, ompi_datatype_t *stype,
                      const nbc_blocks_t *in, int root);
void nbc_build_scatter(nbc_sched_t *s, const nbc_blocks_t *out, void *rbuf, size_t rcount, ompi_datatype_t *rtype,
                       int root);
void nbc_build_allgather(nbc_sched_t *s, const void *sbuf, size_t scount, ompi_datatype_t *stype,
                         const nbc_blocks_t *in);
void nbc_build_alltoall(nbc_sched_t *s, const nbc_blocks_t *out, const nbc_blocks_t *in);
void nbc_build_reduce(nbc_sched_t *s, const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type,
                      ompi_op_t *op, int root);
void nbc_build_allreduce(nbc_sched_t *s, const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type,
                         ompi_op_t *op);
/* Process i receives `count` elements, or counts[i] of them. */
void nbc_build_reduce_scatter(nbc_sched_t *s, const void *sbuf, void *rbuf, size_t count, ompi_counts_t counts,
                              ompi_datatype_t *type, ompi_op_t *op);
void nbc_build_scan(nbc_sched_t *s, const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                    bool inclusive);

/* ---- On intercommunicators: the same arguments ---- */

void nbc_build_inter_barrier(nbc_sched_t *s);
void nbc_build_inter_bcast(nbc_sched_t *s, void *buf, size_t count, ompi_datatype_t *type, int root);
void nbc_build_inter_gather(nbc_sched_t *s, const void *sbuf, size_t scount, ompi_datatype_t *stype,
                            const nbc_blocks_t *in, int root);
void nbc_build_inter_scatter(nbc_sched_t *s, const nbc_blocks_t *out, void *rbuf, size_t rcount,
                             ompi_datatype_t *rtype, int root);
void nbc_build_inter_allgather(nbc_sched_t *s, const void *sbuf, size_t scount, ompi_datatype_t *stype,
                               const nbc_blocks_t *in);
void nbc_build_inter_alltoall(nbc_sched_t *s, const nbc_blocks_t *out, const nbc_blocks_t *in);
void nbc_build_inter_reduce(nbc_sched_t *s, const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type,
                            ompi_op_t *op, int root);
void nbc_build_inter_allreduce(nbc_sched_t *s, const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type,
                               ompi_op_t *op);
void nbc_build_inter_reduce_scatter(nbc_sched_t *s, const void *sbuf, void *rbuf, size_t count, ompi_counts_t counts,
                                    ompi_datatype_t *type, ompi_op_t *op);

/* ---- Among neighbours: MPI_ERR_TOPOLOGY where no topology is ---- */

void nbc_build_neighbor_allgather(nbc_sched_t *s, const void *sbuf, size_t scount, ompi_datatype_t *stype,
                                 const nbc_blocks_t *in);
void nbc_build_neighbor_alltoall(nbc_sched_t *s, const nbc_blocks_t *out, const nbc_blocks_t *in);

/* ---- The component's parts ---- */

/* Fill the slots; the blocking operations are the non-blocking ones and a wait. */
void nbc_offer(mca_coll_table_t *offer);
void nbc_offer_blocking(mca_coll_table_t *offer);
void nbc_cache_close(void);

#endif
