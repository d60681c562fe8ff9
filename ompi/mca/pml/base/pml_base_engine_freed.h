/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends whose handle is freed before they are over. That all has arrived the program may learn by an answer (MPI-5.0, 3.7.3), and unmap its
 * memory, before the links have confirmed it: what one of them holds, or the policy keeps, may still have to go again, be it in vain. So the message
 * is copied, and what would be read again is read there. One that is only announced is copied when its pieces are asked for: nobody can
 * know of its end before, and who fetches it instead has done so when the receive ends.
 *
 * Part of pml_base_engine.h.
 */

/* Is there nothing that reads a message again? */
static bool engine_reads_once(const mca_pml_peer_t *peer)
{
    return POLICY_STANDING && peer->link_count == 1 && !(peer->links[0].module->limits.caps & MCA_BTL_CAP_CAN_FAIL);
}

/* The same bytes of the message, elsewhere. */
static void engine_freed_move(mca_btl_descriptor_t *desc, char *to)
{
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        desc->iov[i].iov_base = to;
        to += desc->iov[i].iov_len;
    }
    policy_moved(desc);
}

/* The caller holds the peer's lock. Without memory for a copy the message is read where it is, as if it were waited for. */
static OPAL_COLD void engine_freed_copy(mca_pml_peer_t *peer, mca_pml_send_t *send)
{
    char *copy = send->copy || engine_reads_once(peer) ? NULL : malloc(send->bytes);
    if (!copy) {
        return;
    }
    engine_send_copy_out(send, 0, copy, send->bytes, MCA_BTL_COPY_ANY);
    send->copy = copy;
    send->ptr = copy;
    for (int l = 0; l < peer->link_count; l++) {
        opal_list_item_t *i, *tmp;
        OPAL_LIST_FOREACH (i, tmp, &peer->links[l].flight) {
            mca_pml_frag_t *frag = OPAL_CONTAINER_OF(i, mca_pml_frag_t, item);
            if (frag->send == send) {
                engine_freed_move(&frag->desc, copy + le64toh(frag->hdr.offset));
            }
        }
    }
    if (send->whole && send->state == MCA_PML_SEND_WAITING) {
        engine_freed_move(&send->desc, copy);
    }
}

/* ompi_request_ops_t.detach. */
static OPAL_COLD void engine_send_freed(ompi_request_t *request)
{
    mca_pml_send_t *send = (mca_pml_send_t *) request;
    if (!send->cp || send->bytes == 0) {
        return;
    }
    mca_pml_peer_t *peer = send->cp->peer;
    mca_pml_peer_lock(peer);
    send->detach = true;
    if (send->state != MCA_PML_SEND_DONE && (send->whole || send->state != MCA_PML_SEND_WAITING)) {
        engine_freed_copy(peer, send);
    }
    mca_pml_peer_unlock(peer);
}
