/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The collectives contract. At the creation of a communicator every component is asked which operations it offers
 * on it and how gladly; each slot of the communicator's table is taken from the highest bidder. A component's state
 * for the communicator travels in the slot's `module`. Arguments are checked by the caller; MPI_IN_PLACE reaches the component.
 * A component may hand single calls down to those that bid less: mca_coll_base_below(); all processes must then do so.
 * Counts and displacements of the v/w forms come as views (ompi_counts_t).
 *
 * All processes must have the same components and the same values of their parameters, which choose algorithms: processes compare
 * them when they first meet (ompi/runtime/alike.h). A parameter that may differ has the scope LOCAL.
 */
#ifndef OMPI_MCA_COLL_COLL_H
#define OMPI_MCA_COLL_COLL_H

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/datatype.h"
#include "ompi/mpi/c/counts.h"
#include "ompi/op/op.h"
#include "ompi/request/request.h"
#include "opal/mca/base/framework.h"

#pragma GCC visibility push(default) /* components use these */

#define MCA_COLL_CONTRACT_MAJOR 1
#define MCA_COLL_CONTRACT_MINOR 2

#define MCA_COLL_ARGS ompi_communicator_t *comm, void *module
/*
 * Of an operation that hands back a request: a started one, or a persistent one, which keeps no pointer to arrays of counts,
 * displacements and datatypes that it was given. Neither needs another call into the component before it is complete, nor
 * a thread: the progress engine drives it. Any number of them may be under way on a communicator, beside blocking ones.
 */
#define MCA_COLL_REQUEST_ARGS bool persistent, ompi_request_t **request, MCA_COLL_ARGS

typedef struct mca_coll_table {
    struct { int (*fn)(MCA_COLL_ARGS); void *module; } barrier;
    struct { int (*fn)(void *buf, size_t count, ompi_datatype_t *type, int root, MCA_COLL_ARGS); void *module; } bcast;
    struct { int (*fn)(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op, int root,
                       MCA_COLL_ARGS); void *module; } reduce;
    struct { int (*fn)(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                       MCA_COLL_ARGS); void *module; } allreduce, scan, exscan, reduce_scatter_block;
    struct { int (*fn)(const void *sbuf, void *rbuf, ompi_counts_t rcounts, ompi_datatype_t *type, ompi_op_t *op,
                       MCA_COLL_ARGS); void *module; } reduce_scatter;
    struct { int (*fn)(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                       ompi_datatype_t *rtype, int root, MCA_COLL_ARGS); void *module; } gather, scatter;
    struct { int (*fn)(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, ompi_counts_t rcounts,
                       ompi_counts_t displs, ompi_datatype_t *rtype, int root, MCA_COLL_ARGS); void *module; } gatherv;
    struct { int (*fn)(const void *sbuf, ompi_counts_t scounts, ompi_counts_t displs, ompi_datatype_t *stype, void *rbuf,
                       size_t rcount, ompi_datatype_t *rtype, int root, MCA_COLL_ARGS); void *module; } scatterv;
    struct { int (*fn)(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                       ompi_datatype_t *rtype, MCA_COLL_ARGS); void *module; } allgather, alltoall;
    struct { int (*fn)(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, ompi_counts_t rcounts,
                       ompi_counts_t displs, ompi_datatype_t *rtype, MCA_COLL_ARGS); void *module; } allgatherv;
    struct { int (*fn)(const void *sbuf, ompi_counts_t scounts, ompi_counts_t sdispls, ompi_datatype_t *stype, void *rbuf,
                       ompi_counts_t rcounts, ompi_counts_t rdispls, ompi_datatype_t *rtype, MCA_COLL_ARGS);
             void *module; } alltoallv;
    struct { int (*fn)(const void *sbuf, ompi_counts_t scounts, ompi_counts_t sdispls, const MPI_Datatype stypes[],
                       void *rbuf, ompi_counts_t rcounts, ompi_counts_t rdispls, const MPI_Datatype rtypes[],
                       MCA_COLL_ARGS); void *module; } alltoallw;

    /* The same without waiting: see MCA_COLL_REQUEST_ARGS; and with the neighbours of the communicator's topology, where blocking
     * ones wait for these. */
    struct { int (*fn)(MCA_COLL_REQUEST_ARGS); void *module; } ibarrier;
    struct { int (*fn)(void *buf, size_t count, ompi_datatype_t *type, int root,
                       MCA_COLL_REQUEST_ARGS); void *module; } ibcast;
    struct { int (*fn)(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                       ompi_datatype_t *rtype, int root, MCA_COLL_REQUEST_ARGS); void *module; } igather, iscatter;
    struct { int (*fn)(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, ompi_counts_t rcounts,
                       ompi_counts_t displs, ompi_datatype_t *rtype, int root,
                       MCA_COLL_REQUEST_ARGS); void *module; } igatherv;
    struct { int (*fn)(const void *sbuf, ompi_counts_t scounts, ompi_counts_t displs, ompi_datatype_t *stype,
                       void *rbuf, size_t rcount, ompi_datatype_t *rtype, int root,
                       MCA_COLL_REQUEST_ARGS); void *module; } iscatterv;
    struct { int (*fn)(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, size_t rcount,
                       ompi_datatype_t *rtype, MCA_COLL_REQUEST_ARGS); void *module; } iallgather, ialltoall,
                       ineighbor_allgather, ineighbor_alltoall;
    struct { int (*fn)(const void *sbuf, size_t scount, ompi_datatype_t *stype, void *rbuf, ompi_counts_t rcounts,
                       ompi_counts_t displs, ompi_datatype_t *rtype,
                       MCA_COLL_REQUEST_ARGS); void *module; } iallgatherv, ineighbor_allgatherv;
    struct { int (*fn)(const void *sbuf, ompi_counts_t scounts, ompi_counts_t sdispls, ompi_datatype_t *stype,
                       void *rbuf, ompi_counts_t rcounts, ompi_counts_t rdispls, ompi_datatype_t *rtype,
                       MCA_COLL_REQUEST_ARGS); void *module; } ialltoallv, ineighbor_alltoallv;
    struct { int (*fn)(const void *sbuf, ompi_counts_t scounts, ompi_counts_t sdispls, const MPI_Datatype stypes[],
                       void *rbuf, ompi_counts_t rcounts, ompi_counts_t rdispls, const MPI_Datatype rtypes[],
                       MCA_COLL_REQUEST_ARGS); void *module; } ialltoallw, ineighbor_alltoallw;
    struct { int (*fn)(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op, int root,
                       MCA_COLL_REQUEST_ARGS); void *module; } ireduce;
    struct { int (*fn)(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                       MCA_COLL_REQUEST_ARGS); void *module; } iallreduce, ireduce_scatter_block, iscan, iexscan;
    struct { int (*fn)(const void *sbuf, void *rbuf, ompi_counts_t rcounts, ompi_datatype_t *type, ompi_op_t *op,
                       MCA_COLL_REQUEST_ARGS); void *module; } ireduce_scatter;

    void *private_state; /* of coll/base: modules to release */
} mca_coll_table_t;

/* mca_base_component_t.ops of framework "coll". */
typedef struct mca_coll_component_ops {
    size_t struct_size;
    /* Fill those slots of `offer` that it has for this communicator; *priority < 0: none. *module is handed to comm_release(). */
    int (*comm_query)(ompi_communicator_t *comm, int *priority, mca_coll_table_t *offer, void **module);
    void (*comm_release)(ompi_communicator_t *comm, void *module);
} mca_coll_component_ops_t;

extern mca_base_framework_t mca_coll_base_framework;

int mca_coll_base_open(void);
void mca_coll_base_close(void);
/* Build or tear down comm->coll. Local calls. Every slot is filled, or it fails. */
int mca_coll_base_comm_select(ompi_communicator_t *comm);
void mca_coll_base_comm_unselect(ompi_communicator_t *comm);
/* Once the communicator's table is built: what the slots would hold without the component that has `module`. Fills
 * *below, which then may be used as long as the communicator lives. */
void mca_coll_base_below(const ompi_communicator_t *comm, const void *module, mca_coll_table_t *below);

/* Internal tags, one per operation, all negative; never matched by MPI_ANY_TAG. */
enum {
    MCA_COLL_TAG_BARRIER = -10, MCA_COLL_TAG_BCAST = -11, MCA_COLL_TAG_REDUCE = -12, MCA_COLL_TAG_ALLREDUCE = -13,
    MCA_COLL_TAG_SCAN = -14, MCA_COLL_TAG_EXSCAN = -15, MCA_COLL_TAG_REDUCE_SCATTER = -16, MCA_COLL_TAG_GATHER = -17,
    MCA_COLL_TAG_SCATTER = -18, MCA_COLL_TAG_ALLGATHER = -19, MCA_COLL_TAG_ALLTOALL = -20, MCA_COLL_TAG_SHM = -21,
    MCA_COLL_TAG_NONBLOCKING = -64, /* and downwards */
};

#pragma GCC visibility pop

#endif
