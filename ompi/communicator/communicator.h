/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators. A communicator has one context id, the same in all its processes, under which
 * messages match; collectives use negative tags of the same context (MPI_ANY_TAG matches tags >= 0
 * only). A context id is a small number, reused when the communicator is gone, with a count of its
 * uses above it, so that a late message meets no stranger.
 */
#ifndef OMPI_COMMUNICATOR_COMMUNICATOR_H
#define OMPI_COMMUNICATOR_COMMUNICATOR_H

#include <stdatomic.h>
#include "ompi/group/group.h"
#include "opal/runtime/refs.h"

#pragma GCC visibility push(default) /* components use these */

struct mca_coll_table;
struct mca_pml_comm;
struct mca_topo;
struct ompi_attribute_set;

enum {
    OMPI_COMM_INTER = 1u << 0,
    OMPI_COMM_PREDEFINED = 1u << 1,
    OMPI_COMM_FREED = 1u << 2, /* handle freed; alive while operations use it */
    OMPI_COMM_ASSERT_NO_ANY_TAG = 1u << 3, /* info assertions of MPI-4 */
    OMPI_COMM_ASSERT_NO_ANY_SOURCE = 1u << 4,
    OMPI_COMM_ASSERT_ALLOW_OVERTAKING = 1u << 5,
    OMPI_COMM_MIXED = 1u << 7, /* numbers may look otherwise in some process than in others */
};

struct ompi_communicator_t {
    ompi_handle_base_t base;
    /* What a send or receive reads comes first. */
    int32_t my_rank;
    int32_t remote_size;           /* of remote_group; equals the size of an intracommunicator */
    uint32_t context;
    uint32_t flags;
    struct mca_pml_comm *pml;      /* the PML's state: matching, sequence numbers, peers */
    struct mca_coll_table *coll;
    _Atomic int32_t refs;
    ompi_group_t *local_group;
    ompi_group_t *remote_group;    /* the same object as local_group in an intracommunicator */
    _Atomic(ompi_errhandler_t *) errhandler;
    struct ompi_attribute_set *attrs;
    ompi_info_t *info;
    struct mca_pml_bind *bind;     /* which links its messages may use; NULL: any */
    int32_t lane;                  /* for its short messages among threads, and opal_progress_lane of who waits for some; 0: none. The PML's */
    /* Of an intercommunicator: its local group, for the library's own use. */
    ompi_communicator_t *local_comm;
    uint32_t idups;                /* MPI_Comm_idup's started on it */
    _Atomic int32_t persistent;    /* persistent requests on it that the user has, each with a reference */
    struct mca_topo *topo;         /* process topology; NULL: none. Set before it is enabled */
    char name[MPI_MAX_OBJECT_NAME];
};

extern ompi_communicator_t ompi_comm_world, ompi_comm_self;

static inline int32_t ompi_comm_size(const ompi_communicator_t *comm)
{
    return comm->local_group->size;
}
static inline bool ompi_comm_is_inter(const ompi_communicator_t *comm)
{
    return comm->flags & OMPI_COMM_INTER;
}
/* Then nobody may pass on another's bytes: each message must be received as what it is. The same answer in
 * all its processes. */
static inline bool ompi_comm_is_mixed(const ompi_communicator_t *comm)
{
    return comm->flags & OMPI_COMM_MIXED;
}
/* The process to which messages for `rank` go. */
static inline ompi_proc_t *ompi_comm_peer(const ompi_communicator_t *comm, int32_t rank)
{
    return ompi_proc_of_rank(ompi_group_world_rank(comm->remote_group, rank));
}

static inline void ompi_comm_retain(ompi_communicator_t *comm)
{
    opal_refs_take(&comm->refs);
}
/* Tear it down (PML, collectives, groups; attributes were handled by free): nobody refers to it. */
OMPI_DECLSPEC void ompi_comm_end(ompi_communicator_t *comm);
static inline void ompi_comm_release(ompi_communicator_t *comm)
{
    if (OPAL_UNLIKELY(opal_refs_drop(&comm->refs))) {
        ompi_comm_end(comm);
    }
}
/* The user gets a persistent request that refers to it (1), or gives it up (-1). */
static inline void ompi_comm_count_persistent(ompi_communicator_t *comm, int32_t more)
{
    atomic_fetch_add_explicit(&comm->persistent, more, memory_order_relaxed);
}
/* By context id, or NULL. Thread-safe. For arrivals. */
ompi_communicator_t *ompi_comm_of_context(uint32_t context);
/* Is it that of a communicator that was here, and is no more? False: it is here, or still to come. */
bool ompi_comm_is_past(uint32_t context);

enum {
    /* Lower bits: place in the table of communicators; above: count of its uses. */
    OMPI_CONTEXT_SLOT_BITS = 20,
    OMPI_CONTEXT_SLOT_MASK = (1 << OMPI_CONTEXT_SLOT_BITS) - 1,
};

/* A communicator that is not enabled yet: nobody can send to it. The groups are retained;
 * remote_group is NULL for an intracommunicator. NULL: out of memory. */
ompi_communicator_t *ompi_comm_new(ompi_group_t *local_group, ompi_group_t *remote_group);
/* Have it, which the PML knows, follow the hints in `info`; what can't be followed leaves `info`. */
int ompi_comm_take_hints(ompi_communicator_t *comm);
/* Error handler and info assertions of the parent. */
void ompi_comm_inherit(ompi_communicator_t *comm, ompi_communicator_t *parent, bool info);
/* Give it its context, make it known to the PML, choose its collectives. Returns an MPI error
 * class. */
int ompi_comm_enable(ompi_communicator_t *comm, uint32_t context);
/* MPI_Comm_free without asking whether it is allowed: attributes, handle, the user's reference. */
int ompi_comm_free(ompi_communicator_t *comm);

/* MPI_Comm_create for an intercommunicator. */
int ompi_comm_create_inter(ompi_communicator_t *comm, ompi_group_t *group,
                           ompi_communicator_t **newcomm);

/* World and self: after the runtime and groups, before the PML's add_comm (called in here). */
int ompi_comm_init(void);
void ompi_comm_finalize(void);

#pragma GCC visibility pop

#endif
