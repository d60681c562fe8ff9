/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers attached for buffered sends (MPI-5.0 section 3.6): of a communicator, of a session, of the process. A send
 * takes the communicator's; has it none, that of the session it was derived from; has that none, the process's.
 *
 * Blocks lie in the attached memory itself, each behind a head, in order of address; a new one goes into the first
 * gap. MPI_BSEND_OVERHEAD covers head and alignment.
 */
#include "ompi/mca/pml/base/pml_base_bsend.h"

#include <assert.h>
#include <stdalign.h>
#include <stdlib.h>

#include "ompi/mca/pml/base/pml_base_util.h"
#include "ompi/mpi/c/bodies.h"

typedef struct pool {
    opal_list_item_t item;
    const ompi_communicator_t *comm;
    uint64_t session;         /* 0, and no communicator: the process's */
    bool automatic;           /* blocks are malloc'd */
    char *base;
    void *attached;           /* as the user gave it */
    size_t size;
    opal_list_t blocks;
    uint64_t next_number;     /* of blocks, in order of their making */
    opal_list_t flushes;      /* flush_t that wait for older blocks */
} pool_t;

typedef struct block {
    opal_list_item_t item;
    pool_t *pool;
    size_t len;               /* with this head */
    uint64_t number;
    max_align_t data[];
} block_t;

/* The request of MPI_Buffer_iflush: complete when every block that was there at its start has gone. */
typedef struct flush {
    ompi_request_t super;
    opal_list_item_t item;
    uint64_t before;          /* blocks with a smaller number */
} flush_t;

static_assert(sizeof(block_t) + 2 * alignof(max_align_t) <= MPI_BSEND_OVERHEAD, "the head must fit");

static opal_list_t pools = OPAL_LIST_INIT(pools);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static pool_t *pool_of(const ompi_communicator_t *comm, uint64_t session)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &pools) {
        pool_t *pool = OPAL_CONTAINER_OF(i, pool_t, item);
        if (pool->comm == comm && pool->session == session) {
            return pool;
        }
    }
    return NULL;
}

/* The one that a send takes. */
static pool_t *pool_for(const ompi_communicator_t *comm)
{
    uint64_t session = comm->local_group->session;
    pool_t *pool = pool_of(comm, 0);
    pool = pool || session == 0 ? pool : pool_of(NULL, session);
    return pool ? pool : pool_of(NULL, 0);
}

/* ---- Blocks ---- */

static block_t *put_block(pool_t *pool, char *at, size_t len, opal_list_item_t *before)
{
    block_t *block = (block_t *) at;
    block->pool = pool;
    block->len = len;
    block->number = pool->next_number++;
    opal_list_insert_before(before, &block->item);
    return block;
}

static block_t *first_fit(pool_t *pool, size_t len)
{
    char *at = pool->base;
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &pool->blocks) {
        block_t *next = OPAL_CONTAINER_OF(i, block_t, item);
        if ((size_t) ((char *) next - at) >= len) {
            return put_block(pool, at, len, i);
        }
        at = (char *) next + next->len;
    }
    size_t left = pool->size - (size_t) (at - pool->base);
    return left >= len ? put_block(pool, at, len, &pool->blocks.head) : NULL;
}

static block_t *new_block(const ompi_communicator_t *comm, size_t bytes)
{
    size_t align = alignof(max_align_t);
    size_t len = (sizeof(block_t) + bytes + align - 1) / align * align;
    pthread_mutex_lock(&lock);
    pool_t *pool = pool_for(comm);
    block_t *block = NULL;
    if (pool && !pool->automatic) {
        block = first_fit(pool, len);
    } else if (pool) {
        char *memory = malloc(len);
        block = memory ? put_block(pool, memory, len, &pool->blocks.head) : NULL;
    }
    pthread_mutex_unlock(&lock);
    return block;
}

void *mca_pml_base_bsend_alloc(ompi_communicator_t *comm, size_t len)
{
    block_t *block = new_block(comm, len);
    if (!block) { /* earlier sends may just have ended */
        opal_progress();
        block = new_block(comm, len);
    }
    return block ? block->data : NULL;
}

/* Is any block left that a flush waits for? */
static bool flush_waits(const pool_t *pool, uint64_t before)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &pool->blocks) {
        if (OPAL_CONTAINER_OF(i, block_t, item)->number < before) {
            return true;
        }
    }
    return false;
}

/* Flushes that wait for nothing any more move to `done`. Under the lock. */
static void take_flushes(pool_t *pool, opal_list_t *done)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &pool->flushes) {
        if (!flush_waits(pool, OPAL_CONTAINER_OF(i, flush_t, item)->before)) {
            opal_list_remove(i);
            opal_list_append(done, i);
        }
    }
}

void mca_pml_base_bsend_free(void *room)
{
    if (!room) {
        return;
    }
    block_t *block = OPAL_CONTAINER_OF(room, block_t, data);
    opal_list_t done = OPAL_LIST_INIT(done);
    pthread_mutex_lock(&lock);
    opal_list_remove(&block->item);
    bool automatic = block->pool->automatic;
    take_flushes(block->pool, &done);
    pthread_mutex_unlock(&lock);
    if (automatic) {
        free(block);
    }
    opal_list_item_t *i;
    while ((i = opal_list_pop(&done))) {
        ompi_request_complete(&OPAL_CONTAINER_OF(i, flush_t, item)->super);
    }
    opal_progress_completed(); /* what is sent at once is freed by who sends it */
}

/* ---- Attaching ---- */

int mca_pml_base_bsend_attach(const ompi_communicator_t *comm, uint64_t session, void *buffer, MPI_Count size)
{
    bool automatic = buffer == MPI_BUFFER_AUTOMATIC;
    size_t align = alignof(max_align_t), skip = automatic ? 0 : -(uintptr_t) buffer % align;
    if (!automatic && (size < 0 || (!buffer && size > 0))) {
        return MPI_ERR_BUFFER;
    }
    pool_t *pool = calloc(1, sizeof(*pool));
    if (!pool) {
        return MPI_ERR_NO_MEM;
    }
    pool->comm = comm;
    pool->session = session;
    pool->automatic = automatic;
    pool->attached = buffer;
    pool->base = automatic ? NULL : (char *) buffer + skip;
    pool->size = automatic || (size_t) size < skip ? 0 : (size_t) size - skip;
    opal_list_init(&pool->blocks);
    opal_list_init(&pool->flushes);
    pthread_mutex_lock(&lock);
    bool twice = pool_of(comm, session) != NULL;
    if (!twice) {
        opal_list_append(&pools, &pool->item);
    }
    pthread_mutex_unlock(&lock);
    if (twice) {
        free(pool);
        return MPI_ERR_BUFFER;
    }
    return MPI_SUCCESS;
}

/* Who waits for a pool to be empty. Other threads may send meanwhile, or detach it: it is found anew each time. */
typedef struct emptying {
    const ompi_communicator_t *comm;
    uint64_t session;
    bool take;      /* it is not attached any more, once it is empty */
    pool_t *taken;  /* NULL: another thread was faster, or there was none */
} emptying_t;

static bool is_empty(void *context)
{
    emptying_t *e = context;
    pthread_mutex_lock(&lock);
    pool_t *pool = e->taken ? NULL : pool_of(e->comm, e->session);
    bool empty = !pool || opal_list_is_empty(&pool->blocks);
    if (pool && empty && e->take) {
        opal_list_remove(&pool->item);
        e->taken = pool;
    }
    pthread_mutex_unlock(&lock);
    return empty;
}

int mca_pml_base_bsend_flush(const ompi_communicator_t *comm, uint64_t session)
{
    emptying_t e = {comm, session, false, NULL};
    opal_progress_wait_until(is_empty, &e);
    return MPI_SUCCESS;
}

static int flush_cancel(ompi_request_t *request)
{
    (void) request;
    return MPI_SUCCESS; /* like a send's: it has no effect */
}

static void flush_free(ompi_request_t *request)
{
    ompi_handle_fini(&request->base);
    free(OPAL_CONTAINER_OF(request, flush_t, super));
}

static const ompi_request_ops_t flush_ops = {.cancel = flush_cancel, .free = flush_free};

int mca_pml_base_bsend_iflush(const ompi_communicator_t *comm, uint64_t session, ompi_request_t **request)
{
    flush_t *f = calloc(1, sizeof(*f));
    if (!f) {
        return MPI_ERR_NO_MEM;
    }
    ompi_request_init(&f->super, OMPI_REQUEST_COLL, &flush_ops);
    ompi_status_set_empty(&f->super.status);
    opal_list_item_init(&f->item);
    pthread_mutex_lock(&lock);
    pool_t *pool = pool_of(comm, session);
    f->before = pool ? pool->next_number : 0;
    bool waits = pool && flush_waits(pool, f->before);
    if (waits) {
        opal_list_append(&pool->flushes, &f->item);
    }
    pthread_mutex_unlock(&lock);
    if (!waits) {
        ompi_request_complete(&f->super);
    }
    *request = &f->super;
    return MPI_SUCCESS;
}

int mca_pml_base_bsend_detach(const ompi_communicator_t *comm, uint64_t session, void *address, MPI_Count *size)
{
    emptying_t e = {comm, session, true, NULL};
    opal_progress_wait_until(is_empty, &e);
    pool_t *pool = e.taken;
    if (!pool) {
        return MPI_ERR_BUFFER;
    }
    *(void **) address = pool->attached;
    *size = !pool->automatic ? (MPI_Count) (pool->size + (size_t) (pool->base - (char *) pool->attached)) : 0;
    free(pool);
    return MPI_SUCCESS;
}

static void drop(const ompi_communicator_t *comm, uint64_t session)
{
    void *address;
    MPI_Count size;
    mca_pml_base_bsend_detach(comm, session, &address, &size); /* MPI_ERR_BUFFER: there is none */
}

void mca_pml_base_bsend_drop_comm(const ompi_communicator_t *comm)
{
    drop(comm, 0);
}

void mca_pml_base_bsend_drop_session(uint64_t session)
{
    drop(NULL, session);
}

void mca_pml_base_bsend_fini(void)
{
    opal_list_item_t *i;
    while ((i = opal_list_pop(&pools))) {
        free(OPAL_CONTAINER_OF(i, pool_t, item));
    }
}

/* ---- The routines; the session's are in ompi/session ---- */

int ompi_mpi_buffer_attach(void *buffer, MPI_Count size)
{
    return mca_pml_base_bsend_attach(NULL, 0, buffer, size);
}

int ompi_mpi_buffer_detach(void *buffer_addr, MPI_Count *size)
{
    return mca_pml_base_bsend_detach(NULL, 0, buffer_addr, size);
}

int ompi_mpi_buffer_flush(void)
{
    return mca_pml_base_bsend_flush(NULL, 0);
}

int ompi_mpi_buffer_iflush(ompi_request_t **request)
{
    return mca_pml_base_bsend_iflush(NULL, 0, request);
}

int ompi_mpi_comm_iflush_buffer(ompi_communicator_t *comm, ompi_request_t **request)
{
    return mca_pml_base_bsend_iflush(comm, 0, request);
}

int ompi_mpi_comm_attach_buffer(ompi_communicator_t *comm, void *buffer, MPI_Count size)
{
    return mca_pml_base_bsend_attach(comm, 0, buffer, size);
}

int ompi_mpi_comm_detach_buffer(ompi_communicator_t *comm, void *buffer_addr, MPI_Count *size)
{
    return mca_pml_base_bsend_detach(comm, 0, buffer_addr, size);
}

int ompi_mpi_comm_flush_buffer(ompi_communicator_t *comm)
{
    return mca_pml_base_bsend_flush(comm, 0);
}
