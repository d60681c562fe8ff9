/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Barrier and broadcast. */
#include "ompi/mca/coll/shm/coll_shm.h"

#include "ompi/errhandler/errhandler.h"

/* ---- Barrier ---- */

static int direct_barrier(coll_shm_module_t *m, uint64_t number)
{
    int rc = MPI_SUCCESS;
    coll_shm_publish(m, coll_shm_slot_at(m, number, (uint32_t) m->rank), number);
    for (int32_t r = 0; r < m->size && rc == MPI_SUCCESS; r++) {
        if (r != m->rank) {
            rc = coll_shm_await(m, &coll_shm_slot_at(m, number, (uint32_t) r)->number, number);
        }
    }
    return rc;
}

static int counted_barrier(coll_shm_module_t *m, uint64_t number)
{
    coll_shm_slot_t *result = coll_shm_result(m, number);
    if (coll_shm_climb(m, number, NULL)) {
        coll_shm_publish(m, result, number);
        return MPI_SUCCESS;
    }
    return coll_shm_await(m, &result->number, number);
}

int coll_shm_barrier(MCA_COLL_ARGS)
{
    coll_shm_module_t *m = module;
    int rc;
    if (!coll_shm_is_up(m, true, &rc)) {
        return rc != MPI_SUCCESS ? rc : m->below.barrier.fn(comm, m->below.barrier.module);
    }
    rc = coll_shm_begin(m);
    if (OPAL_LIKELY(rc == MPI_SUCCESS)) {
        uint64_t number = m->number;
        rc = m->direct ? direct_barrier(m, number) : counted_barrier(m, number);
        coll_shm_all_came(m, number, 1);
        coll_shm_leave(m, number);
    }
    return rc;
}

/* ---- Broadcast: a row of operations, one for each block ---- */

/* A buffer as a stream of bytes. */
typedef struct stream {
    unsigned char *flat; /* NULL: through the convertor */
    opal_convertor_t convertor;
    size_t size;
} stream_t;

static int stream_init(stream_t *s, const void *buf, size_t count, const ompi_datatype_t *type)
{
    s->size = count * ompi_datatype_size(type);
    s->flat = opal_convertor_contiguous_ptr(&type->opal, count, buf);
    if (s->flat || s->size == 0) {
        return MPI_SUCCESS;
    }
    return opal_convertor_init(&s->convertor, &type->opal, count, buf, NULL) == OPAL_SUCCESS ? MPI_SUCCESS : MPI_ERR_TYPE;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static int send_stream(coll_shm_module_t *m, const stream_t *s)
{
    size_t at = 0;
    do {
        int rc = coll_shm_begin(m);
        if (OPAL_UNLIKELY(rc != MPI_SUCCESS)) {
            return rc;
        }
        uint64_t number = m->number;
        size_t len = least(s->size - at, m->block);
        coll_shm_slot_t *slot = coll_shm_slot_at(m, number, (uint32_t) m->rank);
        void *data = coll_shm_data(m, number, (uint32_t) m->rank, len);
        slot->total = s->size;
        if (OPAL_LIKELY(s->flat)) {
            opal_copy(data, s->flat + at, len);
        } else if (len > 0) {
            opal_convertor_pack_at(&s->convertor, at, data, len);
        }
        coll_shm_publish(m, slot, number);
        coll_shm_leave(m, number);
        at += len;
    } while (at < s->size);
    return MPI_SUCCESS;
}

static void take_piece(const stream_t *s, size_t at, const void *data, size_t len)
{
    if (at >= s->size) {
        return;
    }
    len = least(len, s->size - at);
    if (OPAL_LIKELY(s->flat)) {
        opal_copy(s->flat + at, data, len);
    } else {
        opal_convertor_unpack_at(&s->convertor, at, data, len);
    }
}

/* The root says how long it is. */
static int receive_stream(coll_shm_module_t *m, const stream_t *s, int root)
{
    size_t at = 0, total;
    do {
        uint64_t number = ++m->number;
        coll_shm_slot_t *slot = coll_shm_slot_at(m, number, (uint32_t) root);
        int rc = coll_shm_await(m, &slot->number, number);
        if (OPAL_UNLIKELY(rc != MPI_SUCCESS)) {
            return rc;
        }
        total = slot->total;
        size_t len = least(total - at, m->block);
        take_piece(s, at, coll_shm_data(m, number, (uint32_t) root, len), len);
        coll_shm_leave(m, number);
        at += len;
    } while (at < total);
    return total > s->size ? ompi_error(MPI_ERR_TRUNCATE, "the root broadcasts %zu bytes, and there is room for %zu here", total,
                                        s->size)
                           : MPI_SUCCESS;
}

static int bcast_below(coll_shm_module_t *m, void *buf, size_t count, ompi_datatype_t *type, int root, ompi_communicator_t *comm)
{
    return m->below.bcast.fn(buf, count, type, root, comm, m->below.bcast.module);
}

static int bcast_here(coll_shm_module_t *m, void *buf, size_t count, const ompi_datatype_t *type, int root)
{
    stream_t stream;
    int rc = stream_init(&stream, buf, count, type);
    if (OPAL_UNLIKELY(rc != MPI_SUCCESS)) {
        return rc;
    }
    return m->rank == root ? send_stream(m, &stream) : receive_stream(m, &stream, root);
}

int coll_shm_bcast(void *buf, size_t count, ompi_datatype_t *type, int root, MCA_COLL_ARGS)
{
    coll_shm_module_t *m = module;
    coll_shm_way_t way;
    int rc;
    if (!coll_shm_is_up(m, coll_shm_up_to(coll_shm_params.bcast_max, count, type), &rc)) {
        return rc != MPI_SUCCESS ? rc : bcast_below(m, buf, count, type, root, comm);
    }
    rc = coll_shm_choose(m, COLL_SHM_BCAST, count * ompi_datatype_size(type), &way);
    if (OPAL_LIKELY(rc == MPI_SUCCESS)) {
        rc = way.below ? bcast_below(m, buf, count, type, root, comm) : bcast_here(m, buf, count, type, root);
        coll_shm_chosen(&way);
    }
    return rc;
}
