/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A communicator's segment: its layout, and how all get it or nobody. */
#include "ompi/mca/coll/shm/coll_shm.h"

#include <stdlib.h>

#include "ompi/errhandler/errhandler.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/runtime/rte.h"
#include "opal/runtime/progress.h"

/* Nodes of a tree over `width` processes. */
static uint32_t count_nodes(uint32_t width)
{
    uint32_t nodes = 0;
    do {
        width = (width + COLL_SHM_FAN - 1) / COLL_SHM_FAN;
        nodes += width;
    } while (width > 1);
    return nodes;
}

/* Sizes that follow from the number of processes and the length of a block; the segment's length. */
static size_t lay_out(coll_shm_module_t *m, uint32_t block)
{
    m->block = block;
    m->nodes = count_nodes((uint32_t) m->size);
    m->slots = (uint32_t) m->size + m->nodes;
    m->cell_size = m->nodes * sizeof(coll_shm_node_t) + m->slots * sizeof(coll_shm_slot_t);
    return sizeof(coll_shm_header_t) + (size_t) m->size * sizeof(coll_shm_member_t) +
           COLL_SHM_CELLS * (m->cell_size + m->slots * m->block);
}

static void find_places(coll_shm_module_t *m)
{
    m->header = m->segment.base;
    m->members = (coll_shm_member_t *) (void *) (m->header + 1);
    m->cells = (unsigned char *) (m->members + m->size);
    m->blocks = m->cells + COLL_SHM_CELLS * m->cell_size;
}

/* Rank 0's answer holds for all. */
static bool by_counters(const coll_shm_module_t *m)
{
    return coll_shm_params.meet == COLL_SHM_AUTO ? m->size > coll_shm_params.direct_max || ompi_rte.oversubscribed
                                                 : coll_shm_params.meet == COLL_SHM_TREE;
}

/* Rank 0's part. */
static bool make_segment(coll_shm_module_t *m)
{
    char why[192];
    size_t size = lay_out(m, (uint32_t) coll_shm_params.block);
    if (opal_shmem_create(OPAL_SHMEM_AUTO, ompi_rte.nspace, size, &m->segment, why, sizeof(why)) != OPAL_SUCCESS) {
        return false;
    }
    if (opal_shmem_back(&m->segment, 0, size) != OPAL_SUCCESS) {
        opal_shmem_detach(&m->segment);
        return false;
    }
    find_places(m);
    m->header->random = m->segment.id.random;
    m->header->size = (uint32_t) m->size;
    m->header->block = (uint32_t) m->block;
    m->header->counted = by_counters(m);
    return true;
}

static bool attach_segment(coll_shm_module_t *m, const opal_shmem_id_t *id)
{
    char why[192];
    if (id->size < sizeof(coll_shm_header_t) ||
        opal_shmem_attach(id, ompi_rte.nspace, &m->segment, why, sizeof(why)) != OPAL_SUCCESS) {
        return false;
    }
    const coll_shm_header_t *h = m->segment.base;
    uint32_t block = h->block;
    if (h->random == id->random && h->size == (uint32_t) m->size && block >= COLL_SHM_MIN_BLOCK &&
        block % COLL_SHM_LINE == 0 && lay_out(m, block) <= m->segment.size) {
        find_places(m);
        return true;
    }
    opal_shmem_detach(&m->segment); /* another process's, met in another pid namespace */
    return false;
}

static bool join_segment(coll_shm_module_t *m)
{
    opal_door_id_t door;
    if (coll_shm_poller_start() != OPAL_SUCCESS || opal_door_open(&door) != OPAL_SUCCESS) {
        return false;
    }
    m->members[m->rank].door = door;
    if (!opal_progress_asymmetric_fence()) {
        atomic_store(&m->header->fence, 1);
    }
    return true;
}

/* ---- Messages down and up a binomial tree from rank 0 ---- */

/* `so_far`: how the data came about. */
static int send_bytes(int so_far, const void *data, size_t len, int to, ompi_communicator_t *comm)
{
    return mca_pml.send_mode(data, len, ompi_datatype_builtin(MPI_BYTE), to, MCA_COLL_TAG_SHM,
                             so_far == MPI_SUCCESS ? MCA_PML_STANDARD : MCA_PML_FAILED, comm);
}

static int recv_bytes(void *data, size_t len, int from, ompi_communicator_t *comm)
{
    return mca_pml.recv(data, len, ompi_datatype_builtin(MPI_BYTE), from, MCA_COLL_TAG_SHM, comm, NULL);
}

/* The bit that leads to the process above; rank 0 has none, and gets one beyond all ranks. */
static int parent_bit(const coll_shm_module_t *m)
{
    int bit = 1;
    while (bit < m->size && !(m->rank & bit)) {
        bit <<= 1;
    }
    return bit;
}

/* An error is that of what came from above. Who fails goes on, so that nobody below waits for ever. */
static int tell_all(coll_shm_module_t *m, void *data, size_t len)
{
    int bit = parent_bit(m), rc = m->rank == 0 ? MPI_SUCCESS : recv_bytes(data, len, m->rank - bit, m->comm);
    for (bit >>= 1; bit > 0; bit >>= 1) {
        if (m->rank + bit < m->size) {
            send_bytes(rc, data, len, m->rank + bit, m->comm); /* whoever is not there is missed later */
        }
    }
    return rc;
}

/* *good: of all below, in the end of all. An error: it is not known what the others think. */
static int agree(coll_shm_module_t *m, uint32_t *good)
{
    int top = parent_bit(m);
    for (int bit = 1; bit < top && m->rank + bit < m->size; bit <<= 1) {
        uint32_t theirs = 0;
        int rc = recv_bytes(&theirs, sizeof(theirs), m->rank + bit, m->comm);
        *good &= rc == MPI_SUCCESS ? theirs : 0;
    }
    if (m->rank > 0) {
        send_bytes(MPI_SUCCESS, good, sizeof(*good), m->rank - top, m->comm);
    }
    return tell_all(m, good, sizeof(*good));
}

/* ---- Start and end ---- */

static void take_over(coll_shm_module_t *m)
{
    m->direct = !m->header->counted;
    m->fence = atomic_load(&m->header->fence) != 0;
    m->spins = opal_progress_is_oversubscribed() ? 1 : (int) coll_shm_params.spins;
    m->state = COLL_SHM_UP;
    opal_shmem_unlink(&m->segment);
    opal_shmem_close_fd(&m->segment);
}

/* All or none have a segment afterwards, unless somebody dies meanwhile: whoever did not hear what was agreed does
 * nothing on the communicator any more. */
static int set_up(coll_shm_module_t *m)
{
    opal_shmem_id_t id = {0};
    bool mine = m->rank == 0 && make_segment(m);
    if (mine) {
        id = m->segment.id;
    }
    int told = tell_all(m, &id, sizeof(id));
    if (m->rank > 0 && told == MPI_SUCCESS && id.size > 0) {
        mine = attach_segment(m, &id);
    }
    uint32_t good = mine && told == MPI_SUCCESS && join_segment(m);
    bool voted = good;
    int rc = agree(m, &good);
    if (rc == MPI_SUCCESS && good) {
        take_over(m);
        return MPI_SUCCESS;
    }
    coll_shm_stop(m);
    m->state = rc == MPI_SUCCESS || !voted ? COLL_SHM_OFF : COLL_SHM_BROKEN;
    return m->state == COLL_SHM_OFF ? MPI_SUCCESS : rc;
}

bool coll_shm_start(coll_shm_module_t *m, int *rc)
{
    if (m->state == COLL_SHM_NEW) {
        if (m->calls == 0) {
            mca_coll_base_below(m->comm, m, &m->below);
        }
        if (m->calls++ >= coll_shm_params.after) {
            *rc = set_up(m);
        }
    } else if (m->state == COLL_SHM_BROKEN) {
        *rc = coll_shm_broken(m);
        *rc = *rc == MPI_SUCCESS ? MPI_ERR_OTHER : *rc;
    }
    return m->state == COLL_SHM_UP;
}

void coll_shm_stop(coll_shm_module_t *m)
{
    if (m->segment.base) {
        opal_shmem_detach(&m->segment);
    }
}
