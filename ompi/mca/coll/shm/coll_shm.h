/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll/shm: collectives of a communicator whose processes all live on one node, through memory that they share.
 *
 * The segment. The first coll_shm_after collectives of a communicator go down to the components that bid less
 * (mca_coll_base_below). Then its rank 0 makes a segment, tells the others over point-to-point messages where it is, and all
 * agree whether everybody has it: if one has not, all go on below for ever. Nobody owns it further: each process maps it
 * until it frees the communicator, and the descriptor is closed once all have attached, so that nothing can be left over.
 *
 *     header | members: a line for each process | cells | blocks
 *
 * An operation has a number, counted by each process for itself, and works in the cell `number % CELLS`:
 *
 *     cell: nodes (a counter each) | slots: one for each process, one for each node
 *
 * A slot is a line: the number of the operation whose data it holds, and the data if there are few bytes of them; more stand
 * in the slot's block. A cell is used again CELLS operations later, when every process has said that it has
 * left the former one (member.left). Whoever was in a barrier or an allreduce knows of all the others that they have left what
 * came before, so that nobody looks at those lines but in rows of broadcasts and reductions. Long
 * vectors are a row of operations of one block each, of which some are under way at once.
 *
 * Few processes (coll_shm_direct_max), each with a processor: everybody publishes its slot and waits for those of the others. A
 * message between two caches is all it takes.
 *
 * Otherwise: the counters form a tree of fan-in FAN over the ranks. Who comes last to a node combines what its
 * children brought, in the order of ranks, into the node's slot and goes on to the node above; who comes
 * last to the root publishes the root's slot, for which all the others wait. So nobody ever waits for a certain process,
 * and each waits once: where processes outnumber processors, a barrier costs each one turn on its processor. The shape of
 * the tree is fixed, so that results do not depend on who comes when.
 *
 * Waiting is the progress engine's (opal/runtime/progress.h): messages are served meanwhile. Before the engine
 * sleeps, the component's poller says so in the member's line (`sleeps`) and in the header (`asleep`); who publishes looks at
 * the header, after the sleeper's fence, and rings the doorbells of those who sleep (opal/runtime/door.h).
 *
 * A member that has been lost (ompi_procs_lost) ends every wait on the communicator with MPI_ERR_OTHER, now and ever after.
 * What is too long for the segment still goes down, whatever has been lost: others may not know of it yet, and wait.
 *
 * What is read from the segment is data and numbers to compare with, never a length or a place: a wild process can do no
 * more than spoil messages of its own job.
 */
#ifndef MCA_COLL_SHM_H
#define MCA_COLL_SHM_H

#include <stdatomic.h>
#include <string.h>

#include "ompi/mca/coll/coll.h"
#include "opal/mca/shmem/shmem.h"
#include "opal/runtime/door.h"
#include "opal/util/copy.h"

enum {
    COLL_SHM_LINE = 64,
    COLL_SHM_CELLS = 8,
    COLL_SHM_FAN = 8,
    COLL_SHM_INLINE = 48,   /* bytes in a slot; they are aligned to 16 */
    COLL_SHM_AHEAD = 4,     /* operations of a long vector under way: half of the cells, as who is ahead may be as far behind */
    COLL_SHM_MIN_BLOCK = 256,
    COLL_SHM_CHOICE_MIN = 2048, /* bytes from which on it is measured whether messages are quicker; see coll_shm_choice.c */
    COLL_SHM_CHOICES = 10,      /* classes of lengths from there, each to twice that of the one before */
};

typedef enum { COLL_SHM_AUTO, COLL_SHM_DIRECT, COLL_SHM_TREE } coll_shm_meet_t;

typedef struct coll_shm_params {
    int64_t priority, after, direct_max, spins;
    int64_t meet;                   /* coll_shm_meet_t */
    uint64_t block, bcast_max, reduce_max;
    bool measure;
} coll_shm_params_t;

extern coll_shm_params_t coll_shm_params;

/* ---- What stands in the segment ---- */

typedef struct coll_shm_header {
    uint64_t random;                /* of its id: is it the segment that was meant? */
    uint32_t size, block;           /* processes; bytes of a block */
    uint32_t counted;               /* by the tree of counters */
    _Atomic uint32_t fence;         /* a process can't fence for the others: who publishes must */
    _Alignas(COLL_SHM_LINE) _Atomic uint32_t asleep; /* those who wait for a slot */
    _Atomic uint32_t want_room;                      /* those who wait for others to leave */
} coll_shm_header_t;

typedef struct coll_shm_member {
    _Alignas(COLL_SHM_LINE) _Atomic uint64_t left; /* operations up to here */
    _Atomic uint32_t sleeps;
    opal_door_id_t door;
} coll_shm_member_t;

typedef struct coll_shm_node {
    _Alignas(COLL_SHM_LINE) _Atomic uint32_t arrived;
} coll_shm_node_t;

typedef struct coll_shm_slot {
    _Alignas(COLL_SHM_LINE) _Atomic uint64_t number;
    uint64_t total;                 /* of a broadcast: bytes of the whole */
    unsigned char data[COLL_SHM_INLINE];
} coll_shm_slot_t;
_Static_assert(sizeof(coll_shm_slot_t) == COLL_SHM_LINE, "one line");

/* ---- A communicator ---- */

typedef enum { COLL_SHM_NEW, COLL_SHM_UP, COLL_SHM_OFF, COLL_SHM_BROKEN } coll_shm_state_t;

/* Kinds of operations for which that is measured. */
typedef enum { COLL_SHM_BCAST, COLL_SHM_ALLREDUCE, COLL_SHM_KINDS } coll_shm_kind_t;

/* Whether operations of a class go below. The same in all members, but for `least`. */
typedef struct coll_shm_choice {
    uint32_t least[2];              /* ns of a call through the segment, below, in the trial under way */
    uint32_t until;                 /* calls until the next trial */
    uint32_t gap;
    uint8_t step;                   /* of the trial; 0: none is under way */
    bool below;
} coll_shm_choice_t;

typedef struct coll_shm_module {
    ompi_communicator_t *comm;
    coll_shm_state_t state;
    int64_t calls;                  /* before it was up */
    int32_t size, rank;
    bool direct;                    /* everybody looks at everybody */
    bool fence;
    int spins;
    uint32_t nodes, slots;
    size_t block;
    size_t cell_size;
    unsigned char *cells, *blocks;
    coll_shm_header_t *header;
    coll_shm_member_t *members;
    uint64_t number;                /* of the last operation begun */
    uint64_t known;                 /* all have left the operations up to here */
    _Atomic uint32_t losses;        /* ompi_procs_lost when it was last looked at */
    opal_shmem_segment_t segment;
    mca_coll_table_t below;
    coll_shm_choice_t choices[COLL_SHM_KINDS][COLL_SHM_CHOICES];
} coll_shm_module_t;

/* ---- Places in the segment ---- */

static OPAL_ALWAYS_INLINE unsigned char *coll_shm_cell(const coll_shm_module_t *m, uint64_t number)
{
    return m->cells + number % COLL_SHM_CELLS * m->cell_size;
}

static OPAL_ALWAYS_INLINE coll_shm_node_t *coll_shm_node_at(const coll_shm_module_t *m, uint64_t number, uint32_t i)
{
    return (coll_shm_node_t *) (void *) coll_shm_cell(m, number) + i;
}

static OPAL_ALWAYS_INLINE coll_shm_slot_t *coll_shm_slot_at(const coll_shm_module_t *m, uint64_t number, uint32_t i)
{
    return (coll_shm_slot_t *) (void *) (coll_shm_cell(m, number) + m->nodes * sizeof(coll_shm_node_t)) + i;
}

/* The root node's: what all wait for. */
static OPAL_ALWAYS_INLINE coll_shm_slot_t *coll_shm_result(const coll_shm_module_t *m, uint64_t number)
{
    return coll_shm_slot_at(m, number, m->slots - 1);
}

/* Where `len` bytes of a slot's data stand. */
static OPAL_ALWAYS_INLINE void *coll_shm_data(const coll_shm_module_t *m, uint64_t number, uint32_t slot, size_t len)
{
    return len <= COLL_SHM_INLINE
               ? coll_shm_slot_at(m, number, slot)->data
               : m->blocks + (number % COLL_SHM_CELLS * m->slots + slot) * m->block;
}

/* ---- The segment's life (coll_shm_segment.c) ---- */

/* Count a call on a communicator whose segment is not up; true: now it is. Else the call goes below, or, if it would not
 * be too long for the segment, *rc may be an error. */
bool coll_shm_start(coll_shm_module_t *m, int *rc);
void coll_shm_stop(coll_shm_module_t *m);

/* ---- Waiting and waking (coll_shm_wait.c) ---- */

int coll_shm_poller_start(void);
void coll_shm_poller_stop(void);
/* Until *word has reached `value`; MPI_ERR_OTHER: a process was lost. `room`: it is a `left` of another one. */
int coll_shm_wait(coll_shm_module_t *m, const _Atomic uint64_t *word, uint64_t value, bool room);
void coll_shm_wake(coll_shm_module_t *m);
/* Until all have left the operation that used the cell before. */
int coll_shm_wait_room(coll_shm_module_t *m, uint64_t number);
/* What a communicator with a lost process answers. */
int coll_shm_broken(const coll_shm_module_t *m);

static OPAL_ALWAYS_INLINE int coll_shm_await(coll_shm_module_t *m, const _Atomic uint64_t *word, uint64_t value)
{
    for (int i = m->spins; i > 0; i--) {
        if (atomic_load_explicit(word, memory_order_acquire) == value) {
            return MPI_SUCCESS;
        }
    }
    return coll_shm_wait(m, word, value, false);
}

/* Not inline: gcc's ThreadSanitizer refuses fences in inline functions. */
void coll_shm_fence(void);

/* After something was published. */
static OPAL_ALWAYS_INLINE void coll_shm_published(coll_shm_module_t *m, const _Atomic uint32_t *sleepers)
{
    atomic_signal_fence(memory_order_seq_cst); /* the sleeper's fence orders what the processor does, not the compiler */
    if (OPAL_UNLIKELY(m->fence)) {
        coll_shm_fence();
    }
    if (OPAL_UNLIKELY(atomic_load_explicit(sleepers, memory_order_relaxed))) {
        coll_shm_wake(m);
    }
}

static OPAL_ALWAYS_INLINE void coll_shm_publish(coll_shm_module_t *m, coll_shm_slot_t *slot, uint64_t number)
{
    atomic_store_explicit(&slot->number, number, memory_order_release);
    coll_shm_published(m, &m->header->asleep);
}

/* ---- Operations ---- */

/* Is the segment for this call, which is `short_enough`? false: *rc, or the call goes below if that is MPI_SUCCESS. */
static OPAL_ALWAYS_INLINE bool coll_shm_is_up(coll_shm_module_t *m, bool short_enough, int *rc)
{
    *rc = MPI_SUCCESS;
    if (OPAL_LIKELY(m->state == COLL_SHM_UP) || coll_shm_start(m, rc)) {
        return short_enough;
    }
    *rc = short_enough ? *rc : MPI_SUCCESS;
    return false;
}

/* Begin the next operation, in which this process writes: its cell is free. */
static OPAL_ALWAYS_INLINE int coll_shm_begin(coll_shm_module_t *m)
{
    uint64_t number = ++m->number;
    return OPAL_LIKELY(number - m->known <= COLL_SHM_CELLS) ? MPI_SUCCESS : coll_shm_wait_room(m, number);
}

/* We read nothing of operation `number`, nor of those before it, any more. */
static OPAL_ALWAYS_INLINE void coll_shm_leave(coll_shm_module_t *m, uint64_t number)
{
    atomic_store_explicit(&m->members[m->rank].left, number, memory_order_release);
    coll_shm_published(m, &m->header->want_room);
}

/* All have come to operation `number`, each having left the one `ahead` before it. */
static OPAL_ALWAYS_INLINE void coll_shm_all_came(coll_shm_module_t *m, uint64_t number, uint64_t ahead)
{
    if (number > m->known + ahead) {
        m->known = number - ahead;
    }
}

/* Has the buffer at most so many bytes? */
static OPAL_ALWAYS_INLINE bool coll_shm_up_to(size_t max, size_t count, const ompi_datatype_t *type)
{
    size_t bytes;
    return opal_datatype_total(&type->opal, count, &bytes) && bytes <= max;
}

/* A few numbers, each added up over all members. */
int coll_shm_sum(coll_shm_module_t *m, const uint64_t *mine, uint64_t *all, size_t count);

/* ---- Through the segment or below (coll_shm_choice.c) ---- */

/* Where an operation goes, and what is to be noted when it is over. */
typedef struct coll_shm_way {
    bool below;
    uint32_t *timed; /* NULL: nothing */
    uint64_t since;
} coll_shm_way_t;

/* The way of an operation of so many bytes. An error is one of the segment. */
int coll_shm_choose(coll_shm_module_t *m, coll_shm_kind_t kind, size_t bytes, coll_shm_way_t *way);
/* It is over. */
void coll_shm_chosen(const coll_shm_way_t *way);

int coll_shm_barrier(MCA_COLL_ARGS);
int coll_shm_bcast(void *buf, size_t count, ompi_datatype_t *type, int root, MCA_COLL_ARGS);
int coll_shm_reduce(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op, int root,
                    MCA_COLL_ARGS);
int coll_shm_allreduce(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                       MCA_COLL_ARGS);

/* Combine `len` bytes of slot `from` into what is at `to`: from op to. */
typedef struct coll_shm_combine {
    ompi_op_t *op;
    ompi_datatype_t *type;
    size_t count, len;
} coll_shm_combine_t;

/* Up the tree of counters. `combine`: what to do with the children's data; NULL: there are none. True in the process that came
 * last of all: it has to publish the root's slot. */
bool coll_shm_climb(coll_shm_module_t *m, uint64_t number, const coll_shm_combine_t *combine);

#endif
