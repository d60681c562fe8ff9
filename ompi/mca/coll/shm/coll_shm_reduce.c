/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The tree of counters; reduce and allreduce. */
#include "ompi/mca/coll/shm/coll_shm.h"

/* ompi_op_reduce() and datatypes speak of buffers whose data starts at true_lb. */
static void *as_buffer(const ompi_datatype_t *type, void *data)
{
    return (void *) ((uintptr_t) data - (uintptr_t) type->opal.true_lb);
}

/* The slots [first, first + count), in order, into the memory at `to`, as a user's buffer. */
static void combine_slots(coll_shm_module_t *m, uint64_t number, uint32_t first, uint32_t count, void *to,
                          const coll_shm_combine_t *c)
{
    uint32_t i = first + count - 1;
    opal_copy((void *) ((uintptr_t) to + (uintptr_t) c->type->opal.true_lb), coll_shm_data(m, number, i, c->len), c->len);
    while (i-- > first) {
        ompi_op_reduce(c->op, as_buffer(c->type, coll_shm_data(m, number, i, c->len)), to, c->count, c->type);
    }
}

bool coll_shm_climb(coll_shm_module_t *m, uint64_t number, const coll_shm_combine_t *combine)
{
    uint32_t width = (uint32_t) m->size, index = (uint32_t) m->rank, first_slot = 0, first_node = 0;
    do {
        uint32_t node = index / COLL_SHM_FAN, begin = node * COLL_SHM_FAN;
        uint32_t members = width - begin < COLL_SHM_FAN ? width - begin : COLL_SHM_FAN;
        _Atomic uint32_t *arrived = &coll_shm_node_at(m, number, first_node + node)->arrived;
        if (atomic_fetch_add_explicit(arrived, 1, memory_order_acq_rel) + 1 != members) {
            return false;
        }
        atomic_store_explicit(arrived, 0, memory_order_relaxed); /* for the cell's next operation */
        if (combine) {
            uint32_t to = (uint32_t) m->size + first_node + node;
            combine_slots(m, number, first_slot + begin, members,
                          as_buffer(combine->type, coll_shm_data(m, number, to, combine->len)), combine);
        }
        first_slot = (uint32_t) m->size + first_node;
        width = (width + COLL_SHM_FAN - 1) / COLL_SHM_FAN;
        first_node += width;
        index = node;
    } while (width > 1);
    return true;
}

/* ---- One operation: a piece of the vectors ---- */

/* Bring ours. `own` is where the piece stands in the user's memory. */
static void bring(coll_shm_module_t *m, uint64_t number, const void *own, const coll_shm_combine_t *c)
{
    uint32_t me = (uint32_t) m->rank;
    opal_copy(coll_shm_data(m, number, me, c->len), own, c->len);
    if (m->direct) {
        coll_shm_publish(m, coll_shm_slot_at(m, number, me), number);
    } else if (coll_shm_climb(m, number, c)) {
        coll_shm_publish(m, coll_shm_result(m, number), number);
    }
}

/* Get the result to `to`. */
static int fetch(coll_shm_module_t *m, uint64_t number, void *to, const coll_shm_combine_t *c)
{
    int rc = MPI_SUCCESS;
    if (!m->direct) {
        rc = coll_shm_await(m, &coll_shm_result(m, number)->number, number);
        if (OPAL_LIKELY(rc == MPI_SUCCESS)) {
            opal_copy(to, coll_shm_data(m, number, m->slots - 1, c->len), c->len);
        }
        return rc;
    }
    for (int32_t r = 0; r < m->size && rc == MPI_SUCCESS; r++) {
        if (r != m->rank) {
            rc = coll_shm_await(m, &coll_shm_slot_at(m, number, (uint32_t) r)->number, number);
        }
    }
    if (OPAL_LIKELY(rc == MPI_SUCCESS)) {
        combine_slots(m, number, 0, (uint32_t) m->size, as_buffer(c->type, to), c);
    }
    return rc;
}

/* ---- Vectors of any length: a row of operations ---- */

typedef struct vector {
    const unsigned char *own;
    unsigned char *result; /* NULL: not for us */
    size_t count, per;     /* elements, and how many of them in a piece */
    ompi_op_t *op;
    ompi_datatype_t *type;
} vector_t;

static coll_shm_combine_t piece_of(const vector_t *v, size_t piece)
{
    size_t done = piece * v->per, count = v->count - done < v->per ? v->count - done : v->per;
    return (coll_shm_combine_t) {.op = v->op, .type = v->type, .count = count,
                                 .len = count * ompi_datatype_size(v->type)};
}

static int fetch_piece(coll_shm_module_t *m, const vector_t *v, size_t piece, uint64_t number)
{
    int rc = MPI_SUCCESS;
    if (v->result) {
        coll_shm_combine_t c = piece_of(v, piece);
        rc = fetch(m, number, v->result + piece * v->per * ompi_datatype_size(v->type), &c);
        coll_shm_all_came(m, number, COLL_SHM_AHEAD);
    }
    coll_shm_leave(m, number);
    return rc;
}

/* In place, own and result are one: each piece is brought before its result is fetched. */
static int reduce_pieces(coll_shm_module_t *m, const vector_t *v)
{
    size_t pieces = (v->count + v->per - 1) / v->per;
    uint64_t first = m->number + 1;
    int rc = MPI_SUCCESS;
    for (size_t i = 0; i < pieces + COLL_SHM_AHEAD && rc == MPI_SUCCESS; i++) {
        if (i >= COLL_SHM_AHEAD && i - COLL_SHM_AHEAD < pieces) {
            rc = fetch_piece(m, v, i - COLL_SHM_AHEAD, first + i - COLL_SHM_AHEAD);
        }
        if (i < pieces && rc == MPI_SUCCESS) {
            coll_shm_combine_t c = piece_of(v, i);
            rc = coll_shm_begin(m);
            if (rc == MPI_SUCCESS) {
                bring(m, m->number, v->own + i * v->per * ompi_datatype_size(v->type), &c);
            }
        }
    }
    return rc;
}

/* The usual case, in which there is one piece. */
static OPAL_ALWAYS_INLINE int reduce_one(coll_shm_module_t *m, const vector_t *v)
{
    int rc = coll_shm_begin(m);
    if (OPAL_UNLIKELY(rc != MPI_SUCCESS)) {
        return rc;
    }
    uint64_t number = m->number;
    coll_shm_combine_t c = {.op = v->op, .type = v->type, .count = v->count,
                            .len = v->count * ompi_datatype_size(v->type)};
    bring(m, number, v->own, &c);
    if (v->result) {
        rc = fetch(m, number, v->result, &c);
        coll_shm_all_came(m, number, 1);
    }
    coll_shm_leave(m, number);
    return rc;
}

/* `wanted`: the result is for us. It may belong at MPI_BOTTOM, which is NULL. */
static int reduce_vector(coll_shm_module_t *m, const void *own, void *result, bool wanted, size_t count, ompi_datatype_t *type,
                         ompi_op_t *op)
{
    uintptr_t start = (uintptr_t) type->opal.true_lb;
    vector_t v = {.own = (const unsigned char *) ((uintptr_t) own + start),
                  .result = wanted ? (unsigned char *) ((uintptr_t) result + start) : NULL,
                  .count = count, .per = m->block / ompi_datatype_size(type), .op = op, .type = type};
    return count <= v.per ? reduce_one(m, &v) : reduce_pieces(m, &v);
}

int coll_shm_sum(coll_shm_module_t *m, const uint64_t *mine, uint64_t *all, size_t count)
{
    return reduce_vector(m, mine, all, true, count, ompi_datatype_builtin(MPI_UINT64_T), ompi_op_builtin(MPI_SUM));
}

/* The same answer in all processes: their count, type and operator are the same. */
static OPAL_ALWAYS_INLINE bool fits(const coll_shm_module_t *m, size_t count, const ompi_datatype_t *type)
{
    size_t size = ompi_datatype_size(type);
    return count > 0 && size > 0 && size <= m->block && opal_datatype_is_contiguous(&type->opal, 2) &&
           coll_shm_up_to(coll_shm_params.reduce_max, count, type);
}

int coll_shm_reduce(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op, int root,
                    MCA_COLL_ARGS)
{
    coll_shm_module_t *m = module;
    int rc;
    if (!coll_shm_is_up(m, fits(m, count, type), &rc)) {
        return rc != MPI_SUCCESS
                   ? rc
                   : m->below.reduce.fn(sbuf, rbuf, count, type, op, root, comm, m->below.reduce.module);
    }
    return reduce_vector(m, sbuf == MPI_IN_PLACE ? rbuf : sbuf, rbuf, m->rank == root, count, type, op);
}

static int allreduce_below(coll_shm_module_t *m, const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                           ompi_communicator_t *comm)
{
    return m->below.allreduce.fn(sbuf, rbuf, count, type, op, comm, m->below.allreduce.module);
}

int coll_shm_allreduce(const void *sbuf, void *rbuf, size_t count, ompi_datatype_t *type, ompi_op_t *op,
                       MCA_COLL_ARGS)
{
    coll_shm_module_t *m = module;
    coll_shm_way_t way = {.below = false};
    int rc;
    if (!coll_shm_is_up(m, fits(m, count, type), &rc)) {
        return rc != MPI_SUCCESS ? rc : allreduce_below(m, sbuf, rbuf, count, type, op, comm);
    }
    if (m->size == 2) { /* of more processes' data the sum depends on the way */
        rc = coll_shm_choose(m, COLL_SHM_ALLREDUCE, count * ompi_datatype_size(type), &way);
        if (OPAL_UNLIKELY(rc != MPI_SUCCESS)) {
            return rc;
        }
    }
    rc = way.below ? allreduce_below(m, sbuf, rbuf, count, type, op, comm)
                   : reduce_vector(m, sbuf == MPI_IN_PLACE ? rbuf : sbuf, rbuf, true, count, type, op);
    coll_shm_chosen(&way);
    return rc;
}
