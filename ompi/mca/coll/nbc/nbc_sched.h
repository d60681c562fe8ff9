/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Schedules: what this process has to do for one collective operation, as operations (send, receive, copy, reduce) and
 * the order between them. An algorithm only describes; nothing moves before the schedule runs. A schedule is
 * a request: of a non-blocking collective it runs once, of a persistent one at every start, of a blocking one it is waited for.
 *
 * Building. An operation is named by its number. It may start as soon as all those that it was told to come after
 * (nbc_after: when they are done; nbc_order: when they have started) let it; nbc_fence() puts everything that is added later behind
 * everything so far. Where memory is out the schedule notes it, builders go on, and nbc_go() answers MPI_ERR_NO_MEM.
 *
 * Messages. All messages of a schedule have one tag. Those from one process to another match in the order in which they start, so
 * that both sides must order them alike (messages that start at once start in the order of their numbers).
 *
 * Running. Nobody but the thread that has claimed a schedule touches its operations: first the one that starts it, later
 * the owner of progress. A message that completes is pushed on the schedule's list `finished`; if that was empty, and
 * nobody at work on the schedule, the schedule itself goes to the list of the poller in nbc_run.c:
 *
 *      finished: idle (NULL) --push--> op .. op --claim--> busy --push--> op .. busy
 *                  ^                                         |
 *                  +------------ nothing was pushed ---------+
 *
 * After an error the schedule goes on, lest others wait for us; the first error is the request's. Where data is missing, what
 * comes after it is not made of what happens to be in memory: it is spoilt, too. Nothing is combined or copied, and
 * messages say that there is no data (MCA_PML_FAILED), so that the error comes to all whose result needs it.
 *
 * Tags. Non-blocking operations take their tags in the order of their calls, which is the same in all processes, from a ring
 * of NBC_TAGS; one whose tag is still in use by its predecessor waits for that. (No process can need the later one to
 * end the earlier one, as all have called the earlier one first.) Persistent ones, which may be started in any order, have each
 * a tag of their own from their initialisation on.
 */
#ifndef NBC_SCHED_H
#define NBC_SCHED_H

#include <pthread.h>

#include "ompi/mca/coll/coll.h"
#include "ompi/mca/pml/pml.h"

enum {
    NBC_TAGS = 64,                                     /* of non-blocking operations */
    NBC_TAG_FIRST = MCA_COLL_TAG_NONBLOCKING,          /* and downwards */
    NBC_TAG_PERSISTENT = NBC_TAG_FIRST - NBC_TAGS,     /* and downwards */
    NBC_TAGS_PERSISTENT = 1 << 28,                     /* then from the beginning; others begin below that */
    NBC_NONE = -1,                                     /* no operation */
};

typedef enum { NBC_SEND, NBC_RECV, NBC_COPY, NBC_REDUCE, NBC_NOTHING } nbc_kind_t;

typedef struct nbc_sched nbc_sched_t;

typedef struct nbc_op {
    struct nbc_op *next;          /* in the list of those that may start, or of finished ones */
    nbc_sched_t *sched;
    ompi_request_t *request;      /* of a message under way */
    const void *from;             /* send, copy; reduce: the left operand */
    void *to;                     /* receive, copy; reduce: the right operand and the result */
    size_t count, to_count;       /* to_count, to_type: of a copy's target */
    ompi_datatype_t *type, *to_type;
    ompi_op_t *op;
    int32_t peer;
    uint32_t waits, left;         /* how many others it waits for: at the start, now */
    int32_t done_edges, start_edges; /* first of its edges, or NBC_NONE */
    uint8_t kind;
    bool spoilt;                  /* what it needs is missing, or it has failed to bring what others need */
} nbc_op_t;

/* `to` waits for the operation in whose list this is. */
typedef struct nbc_edge {
    int32_t to, next;
} nbc_edge_t;

/* What a communicator has for its schedules. */
typedef struct nbc_module {
    pthread_mutex_t lock;         /* with threads: guards the rest */
    uint32_t started, made;       /* non-blocking operations; persistent ones */
    nbc_sched_t *last[NBC_TAGS];  /* the last one started with this tag, unless it is over */
} nbc_module_t;

typedef struct nbc_memory {
    struct nbc_memory *next;
    max_align_t bytes[];
} nbc_memory_t;

struct nbc_sched {
    ompi_request_t super;
    ompi_communicator_t *comm;    /* retained */
    nbc_module_t *module;
    int32_t tag;
    bool ring;                    /* the tag is one of the ring */
    int build_error, run_error;   /* MPI error classes */
    nbc_op_t *ops;
    nbc_edge_t *edges;
    ompi_datatype_t **types;      /* retained */
    ompi_op_t *op;                /* retained, or NULL */
    nbc_memory_t *memory;         /* temporary buffers */
    uint32_t op_count, op_room, edge_count, edge_room, type_count, type_room;
    int32_t gate;                 /* what new operations come after, or NBC_NONE */
    uint32_t fenced;              /* operations before this one are behind a fence */
    /* A run. */
    uint32_t left;                /* operations not done yet */
    nbc_op_t *ready, **ready_end; /* may start, in order */
    nbc_op_t *_Atomic finished;
    nbc_sched_t *next;            /* in the poller's list, or in the cache */
    nbc_sched_t *successor;       /* waits for our tag; under the module's lock */
};

/* ---- Building (nbc_sched.c) ---- */

/* An empty one; NULL: out of memory. */
nbc_sched_t *nbc_sched_new(ompi_communicator_t *comm, nbc_module_t *module);
void nbc_sched_free(nbc_sched_t *s);

/* What the caller handed over lives until the schedule is freed. NULL is let pass. */
void nbc_hold_type(nbc_sched_t *s, ompi_datatype_t *type);
void nbc_hold_op(nbc_sched_t *s, ompi_op_t *op);

int32_t nbc_send(nbc_sched_t *s, const void *buf, size_t count, ompi_datatype_t *type, int peer);
int32_t nbc_recv(nbc_sched_t *s, void *buf, size_t count, ompi_datatype_t *type, int peer);
/* Equal types on both sides, which do not overlap. None if both are the same place. */
int32_t nbc_copy(nbc_sched_t *s, const void *from, void *to, size_t count, ompi_datatype_t *type);
/* A message from ourselves to ourselves. */
int32_t nbc_convert(nbc_sched_t *s, const void *from, size_t count, ompi_datatype_t *type, void *to, size_t to_count,
                    ompi_datatype_t *to_type);
/* right = left op right */
int32_t nbc_reduce(nbc_sched_t *s, const void *left, void *right, size_t count, ompi_datatype_t *type, ompi_op_t *op);

/* `id` starts when `other` is done, or has started. Nothing happens if one of them is NBC_NONE. */
void nbc_after(nbc_sched_t *s, int32_t id, int32_t other);
void nbc_order(nbc_sched_t *s, int32_t id, int32_t other);
/* What is added from now on starts when all that was added before is done. */
void nbc_fence(nbc_sched_t *s);

/* A buffer for `count` elements, to be used like a user's, that lives as long as the schedule. */
void *nbc_temp(nbc_sched_t *s, const ompi_datatype_t *type, size_t count);
/* The same in plain bytes. */
void *nbc_temp_bytes(nbc_sched_t *s, size_t bytes);
/* Place of an element. */
static inline void *nbc_at(const void *buf, size_t element, const ompi_datatype_t *type)
{
    return (void *) ((uintptr_t) buf + element * (uintptr_t) ompi_datatype_extent(type));
}

/* ---- Running (nbc_run.c) ---- */

/* The schedule is complete: start it, or make it a persistent request. NULL: there was no memory for it. Returns what the MPI routine
 * returns; on failure the schedule is gone. */
int nbc_go(nbc_sched_t *s, bool persistent, ompi_request_t **request);

/* The component is closed. */
void nbc_run_close(void);

#endif
