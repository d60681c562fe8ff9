/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages to oneself whose receive waits: from the one buffer to the other within the send, without a link. They have no number
 * in the order of messages: such a message goes only when none of the communicator's to oneself is under way.
 *
 * Part of pml_base_engine.h.
 */

/* The receive that is to have such a message, out of matching; NULL: none waits, or it is not its turn. Whom the completion of a
 * receive is told may hold locks while it sends: a receive that is watched is left to the link. */
static mca_pml_recv_t *engine_self_match(mca_pml_comm_peer_t *cp, int32_t src, int32_t tag)
{
    mca_pml_comm_t *pc = cp->comm;
    mca_pml_recv_t *recv = NULL;
    mca_pml_comm_lock(pc);
    mca_pml_posted_t *posted =
        engine_send_seq(cp) == cp->recv_seq ? mca_pml_match_find_posted(&pc->match, src, tag) : NULL;
    if (posted) {
        recv = OPAL_CONTAINER_OF(posted, mca_pml_recv_t, posted);
        if (atomic_load_explicit(&recv->super.complete, memory_order_relaxed) & OMPI_REQUEST_WATCHED) {
            recv = NULL;
        } else {
            engine_unpost(pc, recv);
        }
    }
    mca_pml_comm_unlock(pc);
    return recv;
}

/* False: send it as any other. */
static bool engine_send_to_self(const void *buf, size_t count, ompi_datatype_t *type, int dst, int tag, mca_pml_mode_t mode,
                                ompi_communicator_t *comm)
{
    if (OPAL_LIKELY(dst != comm->my_rank) || ompi_comm_is_inter(comm) || mode == MCA_PML_FAILED || !POLICY_PASS_SELF) {
        return false;
    }
    mca_pml_comm_peer_t *cp = engine_comm_peer(comm, dst);
    size_t bytes = type->opal.size * count;
    const void *ptr = opal_convertor_contiguous_ptr(&type->opal, count, buf);
    if (!cp || (!ptr && bytes > 0) ||
        atomic_load_explicit(&cp->peer->state, memory_order_acquire) != MCA_PML_PEER_READY) {
        return false;
    }
    mca_pml_recv_t *recv = engine_self_match(cp, dst, tag);
    if (!recv) {
        return false;
    }
    engine_recv_copy_in(recv, 0, ptr, bytes, engine_copying(bytes, OPAL_COPY_ANY));
    engine_set_status(recv, dst, tag, bytes);
    engine_recv_done(recv);
    opal_progress_completed();
    return true;
}
