/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The table of communicators by context id, and the agreement on new ids. See context.h. */
#include "ompi/communicator/context.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/errhandler/errhandler.h"
#include "ompi/mca/pml/pml.h"

enum {
    CHUNK_BITS = 10,
    CHUNK_SLOTS = 1 << CHUNK_BITS,
    CHUNKS = 1 << (OMPI_CONTEXT_SLOT_BITS - CHUNK_BITS),
};

typedef struct chunk {
    _Atomic(ompi_communicator_t *) comms[CHUNK_SLOTS]; /* read without the lock */
    /* How often a communicator has had the slot. */
    uint32_t uses[CHUNK_SLOTS];
    _Atomic uint32_t last[CHUNK_SLOTS];               /* context of the last one here, + 1; 0: there was none */
    bool taken[CHUNK_SLOTS];                          /* by a communicator or a vote */
} chunk_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(chunk_t *) chunks[CHUNKS];

/* ---- The table ---- */

static chunk_t *chunk_of(uint32_t slot)
{
    return atomic_load_explicit(&chunks[slot >> CHUNK_BITS], memory_order_acquire);
}

/* With the lock held: the chunk, made if need be; NULL: out of memory. */
static chunk_t *chunk_for(uint32_t slot)
{
    chunk_t *chunk = chunk_of(slot);
    if (!chunk) {
        chunk = calloc(1, sizeof *chunk);
        if (chunk) {
            atomic_store_explicit(&chunks[slot >> CHUNK_BITS], chunk, memory_order_release);
        }
    }
    return chunk;
}

ompi_communicator_t *ompi_comm_of_context(uint32_t context)
{
    uint32_t slot = context & OMPI_CONTEXT_SLOT_MASK;
    chunk_t *chunk = chunk_of(slot);
    if (OPAL_UNLIKELY(!chunk)) {
        return NULL;
    }
    ompi_communicator_t *comm =
        atomic_load_explicit(&chunk->comms[slot & (CHUNK_SLOTS - 1)], memory_order_acquire);
    return OPAL_LIKELY(comm && comm->context == context) ? comm : NULL;
}

bool ompi_comm_is_past(uint32_t context)
{
    uint32_t slot = context & OMPI_CONTEXT_SLOT_MASK;
    chunk_t *chunk = chunk_of(slot);
    uint32_t last = chunk ? atomic_load_explicit(&chunk->last[slot & (CHUNK_SLOTS - 1)], memory_order_acquire) : 0;
    return last != 0 && last - 1 - context <= INT32_MAX && !ompi_comm_of_context(context);
}

int ompi_context_bind(uint32_t context, ompi_communicator_t *comm)
{
    uint32_t slot = context & OMPI_CONTEXT_SLOT_MASK;
    pthread_mutex_lock(&lock);
    chunk_t *chunk = chunk_for(slot);
    if (chunk) {
        uint32_t place = slot & (CHUNK_SLOTS - 1);
        chunk->taken[place] = true;
        comm->context = context;
        atomic_store_explicit(&chunk->comms[place], comm, memory_order_release);
        atomic_store_explicit(&chunk->last[place], context + 1, memory_order_release); /* who sees it finds the communicator, or it is past */
    }
    pthread_mutex_unlock(&lock);
    return chunk ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

void ompi_context_release(uint32_t context)
{
    uint32_t slot = context & OMPI_CONTEXT_SLOT_MASK, place = slot & (CHUNK_SLOTS - 1);
    pthread_mutex_lock(&lock);
    chunk_t *chunk = chunk_of(slot);
    atomic_store_explicit(&chunk->comms[place], NULL, memory_order_release);
    chunk->taken[place] = false;
    pthread_mutex_unlock(&lock);
}

ompi_communicator_t *ompi_context_next(uint32_t *slot)
{
    for (; *slot <= OMPI_CONTEXT_SLOT_MASK; (*slot)++) {
        chunk_t *chunk = chunk_of(*slot);
        if (!chunk) {
            *slot |= CHUNK_SLOTS - 1;
            continue;
        }
        ompi_communicator_t *comm = atomic_load(&chunk->comms[*slot & (CHUNK_SLOTS - 1)]);
        if (comm) {
            (*slot)++;
            return comm;
        }
    }
    return NULL;
}

void ompi_context_finalize(void)
{
    for (uint32_t i = 0; i < CHUNKS; i++) {
        free(atomic_exchange(&chunks[i], NULL));
    }
}

/* ---- Votes ---- */

/* Reserves the lowest free slot from `from` on; -1: there is none, or no memory. *uses is how often
 * it was used before. */
static int64_t reserve_from(uint32_t from, uint32_t *uses)
{
    int64_t found = -1;
    pthread_mutex_lock(&lock);
    for (uint32_t slot = from; found < 0 && slot <= OMPI_CONTEXT_SLOT_MASK; slot++) {
        chunk_t *chunk = chunk_for(slot);
        uint32_t place = slot & (CHUNK_SLOTS - 1);
        if (!chunk) {
            break;
        }
        if (!chunk->taken[place]) {
            chunk->taken[place] = true;
            *uses = chunk->uses[place];
            found = slot;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void unreserve(int64_t slot)
{
    if (slot >= 0) {
        pthread_mutex_lock(&lock);
        chunk_of((uint32_t) slot)->taken[slot & (CHUNK_SLOTS - 1)] = false;
        pthread_mutex_unlock(&lock);
    }
}

/* The agreed number of uses, known to all members, so that the next one is higher everywhere. */
static void set_uses(uint32_t slot, uint32_t uses)
{
    pthread_mutex_lock(&lock);
    chunk_of(slot)->uses[slot & (CHUNK_SLOTS - 1)] = uses;
    pthread_mutex_unlock(&lock);
}

/* Where to look after `highest` could not be agreed on. The steps differ from creation to creation,
 * but not from member to member. */
static uint32_t next_start(const ompi_comm_agreement_t *agreement, int64_t highest, int round)
{
    uint32_t spread = round < 3 ? 1 : 1u << (round < 10 ? round - 2 : 8);
    uint32_t mix = (agreement->comm->context * 2654435761u ^ (uint32_t) agreement->tag * 40503u) +
                   (uint32_t) round;
    return (uint32_t) highest + 1 + (mix >> 7) % spread;
}

enum { HIGHEST, LOWEST_NEGATED, USES, FAILURE };

static void fill_in(ompi_comm_vote_t *vote)
{
    vote->values[HIGHEST] = vote->slot >= 0 ? vote->slot : INT64_MIN;
    vote->values[LOWEST_NEGATED] = vote->slot >= 0 ? -vote->slot : INT64_MIN;
    vote->values[USES] = vote->slot >= 0 ? vote->uses : 0;
    vote->values[FAILURE] = vote->failure < 0 ? MPI_ERR_OTHER : vote->failure; /* users' functions return anything */
}

void ompi_comm_vote_start(ompi_comm_vote_t *vote, bool member, int failure)
{
    *vote = (ompi_comm_vote_t) {.member = member, .slot = -1, .failure = failure};
    if (member && failure == MPI_SUCCESS && (vote->slot = reserve_from(0, &vote->uses)) < 0) {
        vote->failure = ompi_error(MPI_ERR_OTHER, "there are no more contexts for communicators");
    }
    fill_in(vote);
}

void ompi_comm_vote_abandon(ompi_comm_vote_t *vote)
{
    unreserve(vote->slot);
    vote->slot = -1;
}

/* Tries for the slot that others hold. */
static void vote_again(const ompi_comm_agreement_t *agreement, ompi_comm_vote_t *vote)
{
    int64_t highest = vote->values[HIGHEST];
    if (vote->slot >= 0 && vote->slot != highest) {
        unreserve(vote->slot);
        vote->slot = reserve_from((uint32_t) highest, &vote->uses);
        if (vote->slot >= 0 && vote->slot != highest) {
            unreserve(vote->slot);
            vote->slot = reserve_from(next_start(agreement, highest, vote->round), &vote->uses);
        }
        if (vote->slot < 0) {
            vote->failure = ompi_error(MPI_ERR_OTHER,
                                       "there are no more contexts for communicators");
        }
    }
    vote->round++;
    fill_in(vote);
}

bool ompi_comm_vote_count(const ompi_comm_agreement_t *agreement, ompi_comm_vote_t *vote, int *rc,
                          uint32_t *context)
{
    if (vote->values[FAILURE] != MPI_SUCCESS) {
        ompi_comm_vote_abandon(vote);
        *rc = vote->failure != MPI_SUCCESS
                  ? vote->failure
                  : ompi_error(MPI_ERR_OTHER,
                               "another process could not create the communicator (error class %d "
                               "there)",
                               (int) vote->values[FAILURE]);
        return true;
    }
    if (vote->values[HIGHEST] != INT64_MIN &&
        vote->values[HIGHEST] != -vote->values[LOWEST_NEGATED]) {
        vote_again(agreement, vote);
        return false;
    }
    if (vote->slot >= 0) { /* else: not a member, or nobody is */
        uint32_t uses = (uint32_t) vote->values[USES] + 1;
        set_uses((uint32_t) vote->slot, uses);
        *context = (uint32_t) vote->slot | uses << OMPI_CONTEXT_SLOT_BITS;
    }
    *rc = MPI_SUCCESS;
    return true;
}

static int agree(const ompi_comm_agreement_t *agreement, bool member, int failure,
                 uint32_t *context)
{
    ompi_comm_vote_t vote;
    int rc;
    ompi_comm_vote_start(&vote, member, failure);
    do {
        rc = ompi_comm_allmax(agreement, vote.values, OMPI_COMM_VALUES);
        if (rc != MPI_SUCCESS) {
            ompi_comm_vote_abandon(&vote);
            return rc;
        }
    } while (!ompi_comm_vote_count(agreement, &vote, &rc, context));
    return rc;
}

int ompi_comm_establish(const ompi_comm_agreement_t *agreement, ompi_communicator_t **newcomm,
                        int failure)
{
    uint32_t context = 0;
    bool member = *newcomm != NULL;
    int rc = agree(agreement, member, failure, &context);
    if (rc == MPI_SUCCESS && member) {
        rc = ompi_comm_enable(*newcomm, context);
    }
    if (rc != MPI_SUCCESS && member) {
        ompi_comm_release(*newcomm);
        *newcomm = NULL;
    }
    return rc;
}

/* ---- Finding the maximum: up a binomial tree to the first process, over the bridge, and down
 * again ---- */

enum { PHASE_UP, PHASE_DOWN, PHASE_TELL };

static void set_step(const ompi_comm_agreement_t *agreement, ompi_comm_step_t *step,
                     ompi_comm_step_kind_t kind, int32_t i)
{
    step->kind = kind;
    step->comm = agreement->comm;
    step->peer = agreement->ranks ? agreement->ranks[i] : i;
    step->tag = agreement->tag;
}

/* Each returns false if it has no (more) step: then the next phase begins. */
static bool step_up(const ompi_comm_agreement_t *agreement, ompi_comm_step_t *step)
{
    step->bit = step->bit ? step->bit << 1 : 1;
    for (; step->bit < agreement->size; step->bit <<= 1) {
        if (agreement->me & step->bit) {
            set_step(agreement, step, OMPI_COMM_STEP_SEND, agreement->me - step->bit);
            step->phase = PHASE_DOWN; /* `bit` is what leads to the one above */
            return true;
        }
        if (agreement->me + step->bit < agreement->size) {
            set_step(agreement, step, OMPI_COMM_STEP_COLLECT, agreement->me + step->bit);
            return true;
        }
    }
    return false;
}

static bool step_bridge(const ompi_comm_agreement_t *agreement, ompi_comm_step_t *step)
{
    step->kind = OMPI_COMM_STEP_SWAP;
    step->comm = agreement->bridge;
    step->peer = agreement->bridge_peer;
    step->tag = agreement->bridge_tag;
    return agreement->bridge != NULL;
}

static bool step_tell(const ompi_comm_agreement_t *agreement, ompi_comm_step_t *step)
{
    for (step->bit >>= 1; step->bit > 0; step->bit >>= 1) {
        if (agreement->me + step->bit < agreement->size) {
            set_step(agreement, step, OMPI_COMM_STEP_SEND, agreement->me + step->bit);
            return true;
        }
    }
    return false;
}

void ompi_comm_next_step(const ompi_comm_agreement_t *agreement, ompi_comm_step_t *step)
{
    if (step->phase == PHASE_UP && step_up(agreement, step)) {
        return;
    }
    if (step->phase == PHASE_UP) { /* only the first process comes here */
        step->phase = PHASE_TELL;
        if (step_bridge(agreement, step)) {
            return;
        }
    }
    if (step->phase == PHASE_DOWN) {
        set_step(agreement, step, OMPI_COMM_STEP_RECEIVE, agreement->me - step->bit);
        step->phase = PHASE_TELL;
        return;
    }
    if (!step_tell(agreement, step)) {
        step->kind = OMPI_COMM_STEP_END;
    }
}

void ompi_comm_take_maxima(int64_t *values, const int64_t *others, int count)
{
    for (int i = 0; i < count; i++) {
        values[i] = others[i] > values[i] ? others[i] : values[i];
    }
}

/* `so_far`: how the values came about. */
static void send_values(int so_far, const int64_t *values, int count, const ompi_comm_step_t *step)
{
    mca_pml.send_mode(values, (size_t) count, ompi_datatype_builtin(MPI_INT64_T), step->peer, step->tag,
                      so_far == MPI_SUCCESS ? MCA_PML_STANDARD : MCA_PML_FAILED, step->comm);
}

static int receive_values(int64_t *values, int count, const ompi_comm_step_t *step)
{
    return mca_pml.recv(values, (size_t) count, ompi_datatype_builtin(MPI_INT64_T), step->peer,
                        step->tag, step->comm, MPI_STATUS_IGNORE);
}

static int swap_values(int so_far, const int64_t *values, int64_t *others, int count,
                       const ompi_comm_step_t *step)
{
    ompi_request_t *request;
    int rc = mca_pml.irecv(others, (size_t) count, ompi_datatype_builtin(MPI_INT64_T), step->peer,
                           step->tag, step->comm, &request);
    send_values(so_far, values, count, step);
    return rc == MPI_SUCCESS ? ompi_request_wait(&request, MPI_STATUS_IGNORE) : rc;
}

static int do_step(int so_far, const ompi_comm_step_t *step, int64_t *values, int count)
{
    int64_t others[OMPI_COMM_VALUES_MAX];
    int rc;
    switch (step->kind) {
    case OMPI_COMM_STEP_SEND:
        send_values(so_far, values, count, step);
        return MPI_SUCCESS;
    case OMPI_COMM_STEP_RECEIVE:
        return receive_values(values, count, step);
    case OMPI_COMM_STEP_COLLECT:
        rc = receive_values(others, count, step);
        break;
    default:
        rc = swap_values(so_far, values, others, count, step);
        break;
    }
    if (rc == MPI_SUCCESS) {
        ompi_comm_take_maxima(values, others, count);
    }
    return rc;
}

int ompi_comm_allmax(const ompi_comm_agreement_t *agreement, int64_t *values, int count)
{
    ompi_comm_step_t step = {.phase = PHASE_UP};
    int rc = MPI_SUCCESS;
    for (ompi_comm_next_step(agreement, &step); step.kind != OMPI_COMM_STEP_END;
         ompi_comm_next_step(agreement, &step)) {
        int one = do_step(rc, &step, values, count);
        rc = rc == MPI_SUCCESS ? one : rc;
    }
    return rc;
}

int ompi_comm_tag_of_group(int tag)
{
    return INT_MIN + 1 + (tag & 0x1fffffff);
}

int ompi_comm_tag_of_bridge(int tag)
{
    return INT_MIN + 1 + 0x20000000 + (tag & 0x1fffffff);
}

int ompi_comm_tag_of_string(int hash)
{
    return INT_MIN + 1 + 0x40000000 + (hash & 0x1fffffff);
}

int ompi_comm_tag_of_idup(uint32_t number)
{
    return INT_MIN + 0x60000000 + (int) (number & 0xffff);
}

int ompi_comm_tag_of_partition(uint32_t number)
{
    return INT_MIN + 0x60100000 + (int) (number & (OMPI_COMM_PARTITION_TAGS - 1));
}

void ompi_comm_agree_some(ompi_comm_agreement_t *agreement, ompi_communicator_t *comm,
                          const int32_t *ranks, int32_t size, int32_t me, int tag)
{
    *agreement = (ompi_comm_agreement_t) {
        .comm = comm, .ranks = ranks, .size = size, .me = me, .tag = tag};
}

void ompi_comm_agree_bridged(ompi_comm_agreement_t *agreement, ompi_communicator_t *local_comm,
                             ompi_communicator_t *bridge, int32_t bridge_peer, int bridge_tag)
{
    ompi_comm_agree_some(agreement, local_comm, NULL, ompi_comm_size(local_comm),
                         local_comm->my_rank, OMPI_COMM_TAG_AGREE);
    agreement->bridge = bridge;
    agreement->bridge_peer = bridge_peer;
    agreement->bridge_tag = bridge_tag;
}

void ompi_comm_agree_all(ompi_comm_agreement_t *agreement, ompi_communicator_t *comm)
{
    if (ompi_comm_is_inter(comm)) {
        ompi_comm_agree_bridged(agreement, comm->local_comm, comm, 0, OMPI_COMM_TAG_BRIDGE);
    } else {
        ompi_comm_agree_some(agreement, comm, NULL, ompi_comm_size(comm), comm->my_rank,
                             OMPI_COMM_TAG_AGREE);
    }
}
