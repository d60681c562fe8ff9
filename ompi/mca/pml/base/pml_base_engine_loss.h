/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving: who is told that a process is lost. A receive or probe that names it always is, be it posted before or after. Of those from any
 * source, which others may serve, the ones are that wait on the communicator when it is first told of the loss, or else the first that is
 * posted afterwards and finds no message that has been read; from then on they are for the others. Who has ended as it should, with its job, is
 * no such loss: from any source others are meant.
 *
 * Losses are numbered as they happen; a communicator knows up to which it has been told.
 *
 * Part of pml_base_engine.h.
 */

/* So many processes have been lost; written by the owner of progress, when all of them are FAILED. */
static _Atomic uint32_t engine_losses;

static mca_pml_peer_t *engine_peer_of(const ompi_communicator_t *comm, int src)
{
    ompi_proc_t *proc = src >= 0 ? ompi_comm_peer(comm, src) : NULL;
    return proc ? atomic_load_explicit(&proc->pml, memory_order_acquire) : NULL;
}

static bool engine_peer_failed(const mca_pml_peer_t *peer)
{
    return peer && atomic_load_explicit(&peer->state, memory_order_acquire) == MCA_PML_PEER_FAILED;
}

/* The last loss up to this one of which the communicator has not been told; NULL: there is none. The communicator's lock is held. */
static OPAL_COLD mca_pml_peer_t *engine_untold(const ompi_communicator_t *comm, uint32_t losses)
{
    const mca_pml_comm_t *pc = comm->pml;
    mca_pml_peer_t *last = NULL;
    for (uint32_t r = 0; r < pc->size; r++) {
        mca_pml_peer_t *peer = engine_peer_of(comm, (int) r);
        if (engine_peer_failed(peer) && peer->loss > pc->losses_told && peer->loss <= losses && (!last || peer->loss > last->loss)) {
            last = peer;
        }
    }
    return last;
}

/* Who asks for a message from any source, and finds none, hears of this loss; nobody else will. NULL: there is none, or somebody else
 * waits, who is about to hear of it. `recv`: the receive that asks, which is posted, and will not be any more; NULL: it is a probe. */
static OPAL_COLD mca_pml_peer_t *engine_tell_any(const ompi_communicator_t *comm, mca_pml_recv_t *recv)
{
    mca_pml_comm_t *pc = comm->pml;
    mca_pml_peer_t *peer = NULL;
    uint32_t losses = atomic_load_explicit(&engine_losses, memory_order_acquire);
    mca_pml_comm_lock(pc);
    bool still = !recv || recv->is_posted;
    if (still && pc->losses_told < losses && pc->match.any_posted == (recv != NULL)) {
        peer = engine_untold(comm, losses);
        pc->losses_told = losses;
    }
    if (peer && recv) {
        engine_unpost(pc, recv);
    }
    mca_pml_comm_unlock(pc);
    return peer;
}

/* The process of which a probe that finds nothing is to tell; NULL: none. */
static inline mca_pml_peer_t *engine_source_lost(const ompi_communicator_t *comm, int src)
{
    if (OPAL_LIKELY(!atomic_load_explicit(&mca_pml_base_any_failed, memory_order_acquire))) {
        return NULL;
    }
    mca_pml_peer_t *peer = src == MPI_ANY_SOURCE ? engine_tell_any(comm, NULL) : engine_peer_of(comm, src);
    return engine_peer_failed(peer) ? peer : NULL;
}

/* Take a receive out of matching; false: it is not there any more. */
static bool engine_withdraw(mca_pml_recv_t *recv)
{
    mca_pml_comm_t *pc = recv->super.comm->pml;
    mca_pml_comm_lock(pc);
    bool posted = recv->is_posted;
    if (posted) {
        engine_unpost(pc, recv);
    }
    mca_pml_comm_unlock(pc);
    return posted;
}

/* A receive that nobody will serve has ended. */
static void engine_recv_unserved(mca_pml_recv_t *recv)
{
    ompi_status_set(&recv->super.status, recv->src == MCA_PML_ANY ? MPI_ANY_SOURCE : recv->src,
                    recv->tag == MCA_PML_ANY ? MPI_ANY_TAG : recv->tag, 0);
    recv->super.status.MPI_ERROR = MPI_ERR_OTHER;
    engine_recv_done(recv);
}

/* The communicator's user learns of a loss from a receive that names the peer: those from any source need not tell of it any more. That
 * says so of all losses before it, too, so it is not noted before they are told of. Under the communicator's lock. */
static inline void engine_loss_told(mca_pml_comm_t *pc, const mca_pml_peer_t *peer)
{
    pc->losses_told += peer->loss == pc->losses_told + 1;
}

/* The receive names its source: the peer, if that has failed, and the receive is not posted any more; else NULL. */
static OPAL_COLD mca_pml_peer_t *engine_tell_named(const ompi_communicator_t *comm, mca_pml_recv_t *recv)
{
    mca_pml_comm_t *pc = comm->pml;
    mca_pml_peer_t *peer = engine_peer_of(comm, recv->src);
    if (!engine_peer_failed(peer) || !engine_withdraw(recv)) {
        return NULL;
    }
    mca_pml_comm_lock(pc);
    if (pc->match.any_posted == 0) { /* else another thread's may be about to be told */
        engine_loss_told(pc, peer);
    }
    mca_pml_comm_unlock(pc);
    return peer;
}

/* Peers have failed before the receive was posted: is it to end? Who fails later looks for it among those posted. */
static OPAL_COLD void engine_recv_refuse(mca_pml_recv_t *recv)
{
    ompi_communicator_t *comm = recv->super.comm;
    mca_pml_peer_t *peer = NULL;
    if (recv->src != MCA_PML_ANY) {
        peer = engine_tell_named(comm, recv);
    } else if (mca_pml_match_is_any(recv->src, recv->tag)) {
        peer = engine_tell_any(comm, recv);
    }
    if (peer) {
        mca_pml_base_report_unreachable(peer);
        engine_recv_unserved(recv);
    }
}

static bool engine_comm_has(const ompi_communicator_t *comm, const ompi_proc_t *proc)
{
    for (uint32_t r = 0; r < comm->pml->size; r++) {
        if (ompi_comm_peer(comm, (int32_t) r) == proc) {
            return true;
        }
    }
    return false;
}

/* Take the posted receives that need the peer out of matching: those that name it, and of those from any source the
 * ones that are there when the communicator is first told of the loss. */
static void engine_unpost_from(ompi_communicator_t *comm, const mca_pml_peer_t *peer, opal_list_t *failed)
{
    mca_pml_comm_t *pc = comm->pml;
    mca_pml_comm_lock(pc);
    bool any = pc->match.any_posted > 0 && peer->loss > pc->losses_told && engine_comm_has(comm, peer->proc);
    for (uint32_t b = 0; b <= pc->match.bucket_mask; b++) {
        for (mca_pml_key_t *key = pc->match.buckets[b]; key; key = key->next) {
            bool concerned = key->src == MCA_PML_ANY ? any && mca_pml_match_is_any(key->src, key->tag)
                             : key->src >= 0 && !opal_list_is_empty(&key->posted) && engine_peer_of(comm, key->src) == peer;
            opal_list_item_t *i;
            while (concerned && (i = opal_list_first(&key->posted))) {
                if (key->src == MCA_PML_ANY) {
                    pc->losses_told = peer->loss;
                } else {
                    engine_loss_told(pc, peer);
                }
                engine_unpost(pc, OPAL_CONTAINER_OF(i, mca_pml_recv_t, posted.item));
                opal_list_append(failed, i);
            }
        }
    }
    mca_pml_comm_unlock(pc);
}
