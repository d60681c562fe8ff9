/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Probing, and receives of messages taken out by matched probes. Part of pml_base_engine.h. */

static inline void engine_probe_status(const mca_pml_message_t *message, MPI_Status *status)
{
    if (status) {
        const mca_pml_hdr_t *hdr = mca_pml_message_hdr(message);
        size_t length = hdr->common.type == MCA_PML_HDR_MATCH ? message->len : le64toh(hdr->rndv.length);
        ompi_status_set(status, message->match.src, message->match.tag, length);
    }
}

static void engine_probe_proc_null(MPI_Status *status)
{
    if (status) {
        ompi_status_set(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    }
}

/* The oldest message for (src, tag); taken out of matching if `take`. */
static mca_pml_message_t *engine_probe_find(ompi_communicator_t *comm, int src, int tag, bool take, MPI_Status *status)
{
    mca_pml_comm_t *pc = comm->pml;
    src = src == MPI_ANY_SOURCE ? MCA_PML_ANY : src;
    tag = tag == MPI_ANY_TAG ? MCA_PML_ANY : tag;
    mca_pml_comm_lock(pc);
    if (mca_pml_match_needs_wild(&pc->match, src, tag) &&
        mca_pml_match_go_wild(&pc->match, src, tag) != OPAL_SUCCESS) {
        mca_pml_base_out_of_memory("the index of unexpected messages");
    }
    mca_pml_key_t *key = mca_pml_match_key_find(&pc->match, src, tag);
    mca_pml_unexpected_t *found = key ? mca_pml_match_find_unexpected(key) : NULL;
    mca_pml_message_t *message = found ? OPAL_CONTAINER_OF(found, mca_pml_message_t, match) : NULL;
    if (message) {
        engine_probe_status(message, status);
        if (take) {
            mca_pml_match_remove_unexpected(&pc->match, found);
            mca_pml_event_message(MCA_PML_EVENT_FETCHED, comm, message);
        }
    }
    mca_pml_comm_unlock(pc);
    return message;
}

/* What a probe that found nothing returns. `lost`: see engine_source_lost(). */
static int engine_probe_nothing(mca_pml_peer_t *lost)
{
    if (!lost) {
        return MPI_SUCCESS;
    }
    mca_pml_base_report_unreachable(lost);
    return MPI_ERR_OTHER;
}

static int engine_iprobe(int src, int tag, ompi_communicator_t *comm, bool *found, MPI_Status *status)
{
    if (src == MPI_PROC_NULL) {
        engine_probe_proc_null(status);
        *found = true;
        return MPI_SUCCESS;
    }
    *found = engine_probe_find(comm, src, tag, false, status) != NULL;
    if (!*found) {
        opal_progress();
        *found = engine_probe_find(comm, src, tag, false, status) != NULL;
    }
    return *found ? MPI_SUCCESS : engine_probe_nothing(engine_source_lost(comm, src));
}

typedef struct engine_probe_wait {
    ompi_communicator_t *comm;
    int src, tag;
    bool take;
    MPI_Status *status;
    mca_pml_message_t *message;
    mca_pml_peer_t *lost;
} engine_probe_wait_t;

static bool engine_probe_check(void *context)
{
    engine_probe_wait_t *w = context;
    if (!w->message) { /* a taken message is taken once */
        w->message = engine_probe_find(w->comm, w->src, w->tag, w->take, w->status);
    }
    if (!w->message && !w->lost) {
        w->lost = engine_source_lost(w->comm, w->src);
    }
    return w->message || w->lost;
}

static int engine_probe(int src, int tag, ompi_communicator_t *comm, MPI_Status *status)
{
    engine_probe_wait_t w = {comm, src, tag, false, status, NULL, NULL};
    if (src == MPI_PROC_NULL) {
        engine_probe_proc_null(status);
        return MPI_SUCCESS;
    }
    opal_progress_wait_until(engine_probe_check, &w);
    return w.message ? MPI_SUCCESS : engine_probe_nothing(w.lost);
}

static ompi_message_t *engine_message_new(ompi_communicator_t *comm, mca_pml_message_t *arrival)
{
    ompi_message_t *message = calloc(1, sizeof(*message));
    if (!message) {
        mca_pml_base_out_of_memory("a probed message");
    }
    ompi_handle_init(&message->base, OMPI_HANDLE_MESSAGE);
    message->comm = comm;
    message->arrival = arrival;
    ompi_comm_retain(comm);
    return message;
}

static int engine_improbe(int src, int tag, ompi_communicator_t *comm, bool *found, ompi_message_t **message,
                          MPI_Status *status)
{
    *found = true;
    if (src == MPI_PROC_NULL) {
        engine_probe_proc_null(status);
        *message = &ompi_message_no_proc;
        return MPI_SUCCESS;
    }
    mca_pml_message_t *arrival = engine_probe_find(comm, src, tag, true, status);
    if (!arrival) {
        opal_progress();
        arrival = engine_probe_find(comm, src, tag, true, status);
    }
    *found = arrival != NULL;
    *message = arrival ? engine_message_new(comm, arrival) : NULL;
    return arrival ? MPI_SUCCESS : engine_probe_nothing(engine_source_lost(comm, src));
}

static int engine_mprobe(int src, int tag, ompi_communicator_t *comm, ompi_message_t **message, MPI_Status *status)
{
    engine_probe_wait_t w = {comm, src, tag, true, status, NULL, NULL};
    if (src == MPI_PROC_NULL) {
        engine_probe_proc_null(status);
        *message = &ompi_message_no_proc;
        return MPI_SUCCESS;
    }
    opal_progress_wait_until(engine_probe_check, &w);
    if (!w.message) {
        return engine_probe_nothing(w.lost);
    }
    *message = engine_message_new(comm, w.message);
    return MPI_SUCCESS;
}

/* The arrival of a message object, which ends here. */
static mca_pml_message_t *engine_message_open(ompi_message_t *message)
{
    mca_pml_message_t *arrival = message->arrival;
    ompi_comm_release(message->comm);
    ompi_handle_fini(&message->base);
    free(message);
    return arrival;
}

static int engine_imrecv(void *buf, size_t count, ompi_datatype_t *type, ompi_message_t *message,
                         ompi_request_t **request)
{
    if (message == &ompi_message_no_proc) {
        *request = &ompi_request_recv_proc_null;
        return MPI_SUCCESS;
    }
    mca_pml_recv_t *recv = engine_recv_new(buf, count, type, MPI_ANY_SOURCE, MPI_ANY_TAG, message->comm, opal_progress_threads);
    if (!recv) {
        return MPI_ERR_NO_MEM;
    }
    ompi_comm_retain(message->comm);
    *request = &recv->super;
    engine_deliver_message(recv, engine_message_open(message));
    return MPI_SUCCESS;
}

static int engine_mrecv(void *buf, size_t count, ompi_datatype_t *type, ompi_message_t *message, MPI_Status *status)
{
    if (message == &ompi_message_no_proc) {
        engine_probe_proc_null(status);
        return MPI_SUCCESS;
    }
    mca_pml_recv_t recv;
    ompi_communicator_t *comm = message->comm;
    engine_recv_init(&recv, buf, count, type, MPI_ANY_SOURCE, MPI_ANY_TAG, comm);
    ompi_comm_retain(comm);
    engine_deliver_message(&recv, engine_message_open(message));
    int rc = engine_recv_finish(&recv, status);
    ompi_comm_release(comm);
    return rc;
}
