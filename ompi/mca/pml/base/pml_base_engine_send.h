/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending: what all sends have. Small messages go out inside the call and leave nothing behind (_eager.h). Everything else is a request:
 * its first fragment, MATCH or RNDV, goes at once or waits in the peer's pending list (_first.h); after the acknowledgment the rest is
 * cut into pieces for all links of the bandwidth list (_pieces.h, _flush.h, _silent.h, _answers.h). _isend.h has the functions of the PML.
 *
 * Part of pml_base_engine.h.
 */

static inline void engine_send_drop_copy(mca_pml_send_t *send)
{
    if (OPAL_UNLIKELY(send->copy != NULL)) {
        if (send->mode == MCA_PML_BUFFERED) {
            mca_pml_base_bsend_free(send->copy);
        } else {
            free(send->copy);
        }
        send->copy = NULL;
    }
}

static void engine_send_free(ompi_request_t *request)
{
    mca_pml_send_t *send = (mca_pml_send_t *) request;
    ompi_request_fini(request);
    ompi_datatype_release(send->type);
    ompi_comm_release(send->super.comm);
    engine_send_drop_copy(send);
    mca_pml_base_send_free(send);
}

/* Ask the receiver to forget a message that waits to be matched. The caller holds the peer's lock. */
static void engine_send_recall(mca_pml_peer_t *peer, const mca_pml_send_t *send);
static int engine_send_cancel(ompi_request_t *request);

static int engine_send_start(ompi_request_t *request);

static void engine_send_settle(ompi_request_t *request, bool waits);
static void engine_send_freed(ompi_request_t *request);

static const ompi_request_ops_t engine_send_ops = {
    .start = engine_send_start,
    .cancel = engine_send_cancel,
    .free = engine_send_free,
    .settle = POLICY_KEEPS ? engine_send_settle : NULL,
    .detach = engine_send_freed,
};

/* Nobody fetches the message any more. */
static void engine_unregister(mca_pml_send_t *send)
{
    if (send->registration) {
        send->registrar->ops->deregister_mem(send->registrar, send->registration);
        send->registration = NULL;
    }
}

/* A request's id means nothing any more. */
static void engine_send_unname(mca_pml_send_t *send)
{
    if (send->id) {
        mca_pml_base_id_free(send->id);
        send->id = 0;
    }
}

static void engine_send_done(mca_pml_send_t *send, int error)
{
    engine_unregister(send);
    send->state = MCA_PML_SEND_DONE;
    engine_send_unname(send);
    if (send->announced) {
        send->announced = false;
        opal_refs_add(&send->cp->peer->announced, -1);
    }
    engine_send_drop_copy(send);
    ompi_status_set_empty(&send->super.status);
    ompi_status_set_cancelled(&send->super.status, send->cancelled);
    send->super.status.MPI_ERROR = error;
    ompi_request_complete(&send->super);
}

/* The header as three whole words: BTLs copy it from the store buffer, see opal_copy_words3(). */
static inline void engine_fill_match(mca_pml_peer_t *peer, mca_pml_hdr_match_t *hdr, uint8_t type,
                                     const mca_pml_comm_peer_t *cp, int tag, uint32_t seq)
{
    uint32_t consumed = engine_tell_consumed(peer, true);
    uint64_t words[3] = {htole64((uint64_t) consumed << 32 | ENGINE_ARCH_HOST << 16 | type), cp->origin,
                         htole64((uint64_t) seq << 32 | (uint32_t) tag)};
    opal_copy_words3(hdr, words);
}

/* The same of a request's first fragment. */
static void engine_fill_first(mca_pml_peer_t *peer, mca_pml_hdr_match_t *hdr, uint8_t type, const mca_pml_send_t *send)
{
    engine_fill_match(peer, hdr, type, send->cp, send->tag, send->seq);
    if (OPAL_UNLIKELY(send->mode == MCA_PML_FAILED)) {
        hdr->common.arch |= htole16(MCA_PML_ARCH_FAILED);
    }
}
