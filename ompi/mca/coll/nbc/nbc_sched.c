/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Building schedules. Freed ones are kept for the next operations, with the arrays that they have grown. */
#include "ompi/mca/coll/nbc/nbc_sched.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/mca/coll/nbc/coll_nbc.h"

/* ---- The cache ---- */

enum {
    CACHED_MAX = 32,
    CACHED_OPS_MAX = 256, /* what has grown larger goes back to the system */
};

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static nbc_sched_t *cache;
static int cached;

static nbc_sched_t *cache_take(void)
{
    pthread_mutex_lock(&cache_lock);
    nbc_sched_t *s = cache;
    if (s) {
        cache = s->next;
        cached--;
    }
    pthread_mutex_unlock(&cache_lock);
    return s ? s : calloc(1, sizeof(*s));
}

static void destroy(nbc_sched_t *s)
{
    free(s->ops);
    free(s->edges);
    free(s->types);
    free(s);
}

static void cache_put(nbc_sched_t *s)
{
    pthread_mutex_lock(&cache_lock);
    bool keep = cached < CACHED_MAX && s->op_room <= CACHED_OPS_MAX && s->edge_room <= 4 * CACHED_OPS_MAX;
    if (keep) {
        s->next = cache;
        cache = s;
        cached++;
    }
    pthread_mutex_unlock(&cache_lock);
    if (!keep) {
        destroy(s);
    }
}

void nbc_cache_close(void)
{
    while (cache) {
        nbc_sched_t *s = cache;
        cache = s->next;
        destroy(s);
    }
    cached = 0;
}

/* ---- Life ---- */

nbc_sched_t *nbc_sched_new(ompi_communicator_t *comm, nbc_module_t *module)
{
    nbc_sched_t *s = cache_take();
    if (s) {
        s->comm = comm;
        s->module = module;
        s->build_error = MPI_SUCCESS;
        s->op = NULL;
        s->memory = NULL;
        s->op_count = s->edge_count = s->type_count = s->fenced = 0;
        s->gate = NBC_NONE;
        s->successor = NULL;
        ompi_comm_retain(comm);
    }
    return s;
}

void nbc_sched_free(nbc_sched_t *s)
{
    for (uint32_t i = 0; i < s->type_count; i++) {
        ompi_datatype_release(s->types[i]);
    }
    if (s->op) {
        ompi_op_release(s->op);
    }
    while (s->memory) {
        nbc_memory_t *next = s->memory->next;
        free(s->memory);
        s->memory = next;
    }
    ompi_comm_release(s->comm);
    cache_put(s);
}

/* Room for one more item in an array; false, and the error noted: there is none. */
static bool grow(nbc_sched_t *s, void **array, uint32_t count, uint32_t *room, size_t size)
{
    if (OPAL_LIKELY(count < *room)) {
        return true;
    }
    uint32_t more = *room ? *room * 2 : 16;
    void *moved = count < INT32_MAX / 2 ? realloc(*array, more * size) : NULL;
    if (!moved) {
        s->build_error = MPI_ERR_NO_MEM;
        return false;
    }
    *array = moved;
    *room = more;
    return true;
}

void nbc_hold_type(nbc_sched_t *s, ompi_datatype_t *type)
{
    if (type && !ompi_datatype_is_predefined(type) &&
        grow(s, (void **) &s->types, s->type_count, &s->type_room, sizeof(*s->types))) {
        s->types[s->type_count++] = type;
        ompi_datatype_retain(type);
    }
}

void nbc_hold_op(nbc_sched_t *s, ompi_op_t *op)
{
    s->op = op;
    ompi_op_retain(op);
}

void *nbc_temp_bytes(nbc_sched_t *s, size_t bytes)
{
    nbc_memory_t *memory = bytes < SIZE_MAX - sizeof(*memory) ? malloc(sizeof(*memory) + bytes) : NULL;
    if (!memory) {
        s->build_error = MPI_ERR_NO_MEM;
        return NULL;
    }
    memory->next = s->memory;
    s->memory = memory;
    return memory->bytes;
}

void *nbc_temp(nbc_sched_t *s, const ompi_datatype_t *type, size_t count)
{
    ptrdiff_t gap;
    ptrdiff_t span = ompi_datatype_span(type, count, &gap);
    char *memory = nbc_temp_bytes(s, span > 0 ? (size_t) span : 0);
    return (void *) ((uintptr_t) memory - (uintptr_t) gap);
}

/* ---- Operations and their order ---- */

static int32_t add(nbc_sched_t *s, const nbc_op_t *what)
{
    if (!grow(s, (void **) &s->ops, s->op_count, &s->op_room, sizeof(*s->ops))) {
        return NBC_NONE;
    }
    int32_t id = (int32_t) s->op_count++;
    nbc_op_t *op = &s->ops[id];
    *op = *what;
    op->sched = s;
    op->done_edges = op->start_edges = NBC_NONE;
    nbc_after(s, id, s->gate);
    return id;
}

int32_t nbc_send(nbc_sched_t *s, const void *buf, size_t count, ompi_datatype_t *type, int peer)
{
    return add(s, &(nbc_op_t){.kind = NBC_SEND, .from = buf, .count = count, .type = type, .peer = peer});
}

int32_t nbc_recv(nbc_sched_t *s, void *buf, size_t count, ompi_datatype_t *type, int peer)
{
    return add(s, &(nbc_op_t){.kind = NBC_RECV, .to = buf, .count = count, .type = type, .peer = peer});
}

int32_t nbc_copy(nbc_sched_t *s, const void *from, void *to, size_t count, ompi_datatype_t *type)
{
    return from == to ? NBC_NONE : nbc_convert(s, from, count, type, to, count, type);
}

int32_t nbc_convert(nbc_sched_t *s, const void *from, size_t count, ompi_datatype_t *type, void *to, size_t to_count,
                    ompi_datatype_t *to_type)
{
    type = type ? type : nbc_byte(); /* an empty block has none: of 0 elements, whatever the other side has */
    to_type = to_type ? to_type : nbc_byte();
    return add(s, &(nbc_op_t){.kind = NBC_COPY, .from = from, .count = count, .type = type, .to = to,
                              .to_count = to_count, .to_type = to_type});
}

int32_t nbc_reduce(nbc_sched_t *s, const void *left, void *right, size_t count, ompi_datatype_t *type, ompi_op_t *op)
{
    return add(s, &(nbc_op_t){.kind = NBC_REDUCE, .from = left, .to = right, .count = count, .type = type, .op = op});
}

static void add_edge(nbc_sched_t *s, int32_t *list, int32_t to)
{
    if (grow(s, (void **) &s->edges, s->edge_count, &s->edge_room, sizeof(*s->edges))) {
        s->edges[s->edge_count] = (nbc_edge_t){.to = to, .next = *list};
        *list = (int32_t) s->edge_count++;
        s->ops[to].waits++;
    }
}

void nbc_after(nbc_sched_t *s, int32_t id, int32_t other)
{
    if (id != NBC_NONE && other != NBC_NONE) {
        add_edge(s, &s->ops[other].done_edges, id);
    }
}

void nbc_order(nbc_sched_t *s, int32_t id, int32_t other)
{
    if (id != NBC_NONE && other != NBC_NONE) {
        add_edge(s, &s->ops[other].start_edges, id);
    }
}

/* All that came since the last fence leads to one operation, which all that follows waits for. */
void nbc_fence(nbc_sched_t *s)
{
    uint32_t first = s->fenced, end = s->op_count;
    if (first == end) {
        return;
    }
    if (end - first == 1) {
        s->gate = (int32_t) first;
    } else {
        int32_t gate = add(s, &(nbc_op_t){.kind = NBC_NOTHING});
        for (uint32_t i = first; i < end; i++) {
            nbc_after(s, gate, (int32_t) i);
        }
        s->gate = gate;
    }
    s->fenced = s->op_count;
}
