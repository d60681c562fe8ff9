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
    uint32_t uses[CHUNK_SLOTS];                       /* how often a communicator has had the slot */
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

/* Reserves the lowest free slot from `from` on; -1: there is none, or no memory. *uses is how often it was used before. */
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

/* Where to look after `highest` could not be agreed on. The steps differ from creation to creation, but not
 * from member to member. */
static uint32_t next_start(const ompi_comm_agreement_t *agreement, int64_t highest, int round)
{
    uint32_t spread = round < 3 ? 1 : 1u << (round < 10 ? round - 2 : 8);
    uint32_t mix = (agreement->comm->context * 2654435761u ^ (uint32_t) agreement->tag * 40503u) + (uint32_t) round;
    return (uint32_t) highest + 1 + (mix >> 7) % spread;
}

enum { HIGHEST, LOWEST_NEGATED, USES, FAILURE, VALUES };

/* One round of votes: mine in *slot (-1: none, as no member), its uses in *uses. */
static int vote(const ompi_comm_agreement_t *agreement, int64_t slot, uint32_t uses, int failure,
                int64_t values[VALUES])
{
    values[HIGHEST] = slot >= 0 ? slot : INT64_MIN;
    values[LOWEST_NEGATED] = slot >= 0 ? -slot : INT64_MIN;
    values[USES] = slot >= 0 ? uses : 0;
    values[FAILURE] = failure;
    return agreement->allmax(agreement, values, VALUES);
}

/* The verdict on a round whose messages all went well. */
static int verdict(const int64_t values[VALUES], int failure)
{
    if (failure != MPI_SUCCESS || values[FAILURE] == MPI_SUCCESS) {
        return failure;
    }
    return ompi_error(MPI_ERR_OTHER, "another process could not create the communicator (error class %d there)",
                      (int) values[FAILURE]);
}

/* Agrees on a context; *context is set in members only. */
static int agree(const ompi_comm_agreement_t *agreement, bool member, int failure, uint32_t *context)
{
    int64_t values[VALUES];
    uint32_t uses = 0;
    int64_t slot = -1;
    if (member && failure == MPI_SUCCESS && (slot = reserve_from(0, &uses)) < 0) {
        failure = ompi_error(MPI_ERR_OTHER, "there are no more contexts for communicators");
    }
    for (int round = 0;; round++) {
        int rc = vote(agreement, slot, uses, failure, values);
        if (rc == MPI_SUCCESS) {
            rc = verdict(values, failure);
        }
        if (rc != MPI_SUCCESS) {
            unreserve(slot);
            return rc;
        }
        int64_t highest = values[HIGHEST];
        if (highest == INT64_MIN || highest == -values[LOWEST_NEGATED]) {
            break; /* nobody is a member, or all voted for the same */
        }
        if (slot >= 0 && slot != highest) {
            unreserve(slot);
            slot = reserve_from((uint32_t) highest, &uses);
            if (slot >= 0 && slot != highest) {
                unreserve(slot);
                slot = reserve_from(next_start(agreement, highest, round), &uses);
            }
            failure = slot >= 0 ? MPI_SUCCESS : ompi_error(MPI_ERR_OTHER, "there are no more contexts");
        }
    }
    if (slot >= 0) {
        uint32_t agreed = (uint32_t) values[USES] + 1;
        set_uses((uint32_t) slot, agreed);
        *context = (uint32_t) slot | agreed << OMPI_CONTEXT_SLOT_BITS;
    }
    return MPI_SUCCESS;
}

int ompi_comm_establish(const ompi_comm_agreement_t *agreement, ompi_communicator_t **newcomm, int failure)
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

/* ---- Finding the maximum ---- */

static int send_values(int64_t *values, int count, ompi_communicator_t *comm, int32_t to, int tag)
{
    return mca_pml.send(values, (size_t) count, ompi_datatype_builtin(MPI_INT64_T), to, tag, MCA_PML_STANDARD, comm);
}

static int recv_values(int64_t *values, int count, ompi_communicator_t *comm, int32_t from, int tag)
{
    return mca_pml.recv(values, (size_t) count, ompi_datatype_builtin(MPI_INT64_T), from, tag, comm,
                        MPI_STATUS_IGNORE);
}

static void take_maxima(int64_t *values, const int64_t *others, int count)
{
    for (int i = 0; i < count; i++) {
        values[i] = others[i] > values[i] ? others[i] : values[i];
    }
}

static int32_t rank_in_comm(const ompi_comm_agreement_t *agreement, int32_t i)
{
    return agreement->ranks ? agreement->ranks[i] : i;
}

/* Up a binomial tree to the first process. */
static int reduce(const ompi_comm_agreement_t *agreement, int64_t *values, int count)
{
    int64_t others[VALUES];
    for (int32_t bit = 1; bit < agreement->size; bit <<= 1) {
        int rc;
        if (agreement->me & bit) {
            return send_values(values, count, agreement->comm, rank_in_comm(agreement, agreement->me - bit),
                               agreement->tag);
        }
        if (agreement->me + bit >= agreement->size) {
            continue;
        }
        rc = recv_values(others, count, agreement->comm, rank_in_comm(agreement, agreement->me + bit),
                         agreement->tag);
        if (rc != MPI_SUCCESS) {
            return rc;
        }
        take_maxima(values, others, count);
    }
    return MPI_SUCCESS;
}

/* And down again. */
static int broadcast(const ompi_comm_agreement_t *agreement, int64_t *values, int count)
{
    int32_t bit = 1;
    int rc = MPI_SUCCESS;
    while (bit < agreement->size && !(agreement->me & bit)) {
        bit <<= 1;
    }
    if (agreement->me != 0) {
        rc = recv_values(values, count, agreement->comm, rank_in_comm(agreement, agreement->me - bit),
                         agreement->tag);
    }
    for (bit >>= 1; rc == MPI_SUCCESS && bit > 0; bit >>= 1) {
        if (agreement->me + bit < agreement->size) {
            rc = send_values(values, count, agreement->comm, rank_in_comm(agreement, agreement->me + bit),
                             agreement->tag);
        }
    }
    return rc;
}

static int allmax_tree(const ompi_comm_agreement_t *agreement, int64_t *values, int count)
{
    int rc = reduce(agreement, values, count);
    return rc == MPI_SUCCESS ? broadcast(agreement, values, count) : rc;
}

static int exchange(const ompi_comm_agreement_t *agreement, int64_t *values, int count)
{
    int64_t others[VALUES];
    ompi_request_t *request;
    int rc = mca_pml.irecv(others, (size_t) count, ompi_datatype_builtin(MPI_INT64_T), agreement->bridge_peer,
                           agreement->bridge_tag, agreement->bridge, &request);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    rc = send_values(values, count, agreement->bridge, agreement->bridge_peer, agreement->bridge_tag);
    int rc2 = ompi_request_wait(&request, MPI_STATUS_IGNORE);
    if (rc == MPI_SUCCESS && (rc = rc2) == MPI_SUCCESS) {
        take_maxima(values, others, count);
    }
    return rc;
}

static int allmax_bridged(const ompi_comm_agreement_t *agreement, int64_t *values, int count)
{
    int rc = reduce(agreement, values, count);
    if (rc == MPI_SUCCESS && agreement->me == 0) {
        rc = exchange(agreement, values, count);
    }
    return rc == MPI_SUCCESS ? broadcast(agreement, values, count) : rc;
}

/* Internal tags; INT_MIN itself is the matching's wildcard. */
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

void ompi_comm_agree_some(ompi_comm_agreement_t *agreement, ompi_communicator_t *comm, const int32_t *ranks,
                          int32_t size, int32_t me, int tag)
{
    *agreement = (ompi_comm_agreement_t) {
        .allmax = allmax_tree, .comm = comm, .ranks = ranks, .size = size, .me = me, .tag = tag};
}

void ompi_comm_agree_bridged(ompi_comm_agreement_t *agreement, ompi_communicator_t *local_comm,
                             ompi_communicator_t *bridge, int32_t bridge_peer, int bridge_tag)
{
    ompi_comm_agree_some(agreement, local_comm, NULL, ompi_comm_size(local_comm), local_comm->my_rank,
                         OMPI_COMM_TAG_AGREE);
    agreement->allmax = allmax_bridged;
    agreement->bridge = bridge;
    agreement->bridge_peer = bridge_peer;
    agreement->bridge_tag = bridge_tag;
}

void ompi_comm_agree_all(ompi_comm_agreement_t *agreement, ompi_communicator_t *comm)
{
    if (ompi_comm_is_inter(comm)) {
        ompi_comm_agree_bridged(agreement, comm->local_comm, comm, 0, OMPI_COMM_TAG_BRIDGE);
    } else {
        ompi_comm_agree_some(agreement, comm, NULL, ompi_comm_size(comm), comm->my_rank, OMPI_COMM_TAG_AGREE);
    }
}
