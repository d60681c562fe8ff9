/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Communicators, links that come and go, start and end. Part of pml_base_engine.h. */

/* ---- Communicators ---- */

/* All of them: receives from a peer that can't be reached any more are looked for here. */
static opal_list_t engine_comms = OPAL_LIST_INIT(engine_comms);
static pthread_mutex_t engine_comms_lock = PTHREAD_MUTEX_INITIALIZER;

static int engine_add_comm(ompi_communicator_t *comm)
{
    size_t n = (size_t) comm->remote_size;
    mca_pml_comm_t *pc = calloc(1, sizeof(*pc) + n * sizeof(pc->peers[0]));
    if (!pc) {
        return MPI_ERR_NO_MEM;
    }
    if (mca_pml_match_init(&pc->match) != OPAL_SUCCESS) {
        free(pc);
        return MPI_ERR_NO_MEM;
    }
    pc->size = (uint32_t) n;
    pc->comm = comm;
    comm->pml = pc;
    mca_pml_base_comm_promises(comm);
    pthread_mutex_lock(&engine_comms_lock);
    opal_list_append(&engine_comms, &pc->item);
    pthread_mutex_unlock(&engine_comms_lock);
    return MPI_SUCCESS;
}

/* It has its context now. */
static void engine_comm_visible(ompi_communicator_t *comm)
{
    comm->lane = POLICY_STANDING ? (int32_t) mca_pml_base_lane_of(comm->context) : 0;
    engine_adopt_orphans(comm);
}

/* What waits in a communicator; its lock is held. */
static void engine_count_waiting(const mca_pml_comm_t *pc, mca_pml_queues_t *queues)
{
    opal_list_item_t *i, *tmp;
    for (uint32_t b = 0; b <= pc->match.bucket_mask; b++) {
        for (mca_pml_key_t *key = pc->match.buckets[b]; key; key = key->next) {
            OPAL_LIST_FOREACH (i, tmp, &key->posted) {
                queues->posted++;
            }
        }
    }
    OPAL_LIST_FOREACH (i, tmp, &pc->match.messages) {
        queues->unexpected++;
        queues->unexpected_bytes += OPAL_CONTAINER_OF(i, mca_pml_message_t, match.age_link)->len;
    }
    for (uint32_t r = 0; r < pc->size; r++) {
        mca_pml_comm_peer_t *cp = atomic_load(&pc->peers[r]);
        if (cp) {
            OPAL_LIST_FOREACH (i, tmp, &cp->parked) {
                queues->early++;
            }
        }
    }
}

static void engine_queues(mca_pml_queues_t *queues)
{
    opal_list_item_t *i, *tmp;
    memset(queues, 0, sizeof(*queues));
    pthread_mutex_lock(&engine_comms_lock);
    OPAL_LIST_FOREACH (i, tmp, &engine_comms) {
        mca_pml_comm_t *pc = OPAL_CONTAINER_OF(i, mca_pml_comm_t, item);
        mca_pml_comm_lock(pc);
        engine_count_waiting(pc, queues);
        mca_pml_comm_unlock(pc);
    }
    pthread_mutex_unlock(&engine_comms_lock);
    queues->unexpected_bytes += mca_pml_base_stray_bytes();
    queues->unsent = mca_pml_base_unsent();
}

/* The same for what came last by its lanes. */
static void engine_lanes_forget(mca_pml_comm_peer_t *cp)
{
    uint32_t at = 0;
    mca_pml_peer_t *lane;
    while ((lane = mca_pml_base_lane_next(cp->peer, &at))) {
        mca_pml_comm_peer_t *last = cp;
        atomic_compare_exchange_strong(&lane->last, &last, &mca_pml_base_nobody);
    }
}

static void engine_del_comm(ompi_communicator_t *comm)
{
    mca_pml_comm_t *pc = comm->pml;
    if (!pc) {
        return;
    }
    pthread_mutex_lock(&engine_comms_lock);
    opal_list_remove(&pc->item);
    pthread_mutex_unlock(&engine_comms_lock);
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &pc->match.messages) { /* never received */
        mca_pml_message_t *message = OPAL_CONTAINER_OF(i, mca_pml_message_t, match.age_link);
        mca_pml_match_remove_unexpected(&pc->match, &message->match);
        engine_leave(message->peer, mca_pml_message_hdr(message));
        engine_forget_strays(message);
        engine_message_free(message);
    }
    mca_pml_match_fini(&pc->match);
    for (uint32_t r = 0; r < pc->size; r++) {
        mca_pml_comm_peer_t *cp = atomic_load(&pc->peers[r]);
        mca_pml_comm_peer_t *last = cp;
        if (cp) { /* unless the peer's last message was another's */
            atomic_compare_exchange_strong(&cp->peer->last, &last, &mca_pml_base_nobody);
            engine_lanes_forget(cp);
        }
        while (cp && (i = opal_list_pop(&cp->parked))) {
            mca_pml_message_t *message = OPAL_CONTAINER_OF(i, mca_pml_message_t, match.age_link);
            engine_leave(message->peer, mca_pml_message_hdr(message));
            engine_message_free(message);
        }
        free(cp);
    }
    free(pc);
    comm->pml = NULL;
}

/* ---- Links ---- */

static void engine_fail_recvs(mca_pml_peer_t *peer)
{
    opal_list_t failed = OPAL_LIST_INIT(failed);
    opal_list_item_t *i, *tmp;
    pthread_mutex_lock(&engine_comms_lock);
    OPAL_LIST_FOREACH (i, tmp, &engine_comms) {
        engine_unpost_from(OPAL_CONTAINER_OF(i, mca_pml_comm_t, item)->comm, peer, &failed);
    }
    pthread_mutex_unlock(&engine_comms_lock);
    if (!opal_list_is_empty(&failed)) {
        mca_pml_base_report_unreachable(peer);
    }
    while ((i = opal_list_pop(&failed))) {
        engine_recv_unserved(OPAL_CONTAINER_OF(i, mca_pml_recv_t, posted.item));
    }
}

/* A long message under way, either direction: a send goes to `failed`, a receive is returned. */
static mca_pml_recv_t *engine_fail_request(ompi_request_t *request, opal_list_t *failed)
{
    if (request->type == OMPI_REQUEST_RECV) {
        mca_pml_recv_t *recv = (mca_pml_recv_t *) request;
        recv->super.status.MPI_ERROR = MPI_ERR_OTHER;
        recv->expected = recv->received; /* the last who works on it completes it */
        recv->placements += !engine_fetch_fail(recv);
        return recv;
    }
    mca_pml_send_t *send = (mca_pml_send_t *) request;
    if (send->state == MCA_PML_SEND_WAITING || (send->state == MCA_PML_SEND_BULK && send->unconfirmed == 0)) {
        send->state = MCA_PML_SEND_DONE;
        opal_list_remove(&send->item);
        opal_list_append(failed, &send->item);
    }
    return NULL;
}

static void engine_fail_matched(mca_pml_peer_t *peer, opal_list_t *failed)
{
    uint32_t at = 0;
    bool more, reported = false;
    do {
        mca_pml_peer_lock(peer); /* ids of the peer's receives end under it */
        ompi_request_t *request = mca_pml_base_id_next(peer, &at);
        mca_pml_recv_t *recv = request ? engine_fail_request(request, failed) : NULL;
        mca_pml_peer_unlock(peer);
        more = request != NULL;
        if (recv) {
            if (!reported) {
                reported = true;
                mca_pml_base_report_unreachable(peer); /* before who waits for it hears of it */
            }
            engine_recv_leave(recv, 0, 0);
        }
    } while (more);
}

/* Nothing leads to the peer any more: what waits for it fails. */
static void engine_fail_peer(mca_pml_peer_t *peer)
{
    policy_fail(peer);
    opal_list_t failed = OPAL_LIST_INIT(failed);
    opal_list_item_t *i, *tmp;
    mca_pml_peer_lock(peer);
    OPAL_LIST_FOREACH (i, tmp, &peer->pending) {
        OPAL_CONTAINER_OF(i, mca_pml_send_t, item)->state = MCA_PML_SEND_DONE;
    }
    opal_list_splice(&failed, &peer->pending);
    mca_pml_peer_set_pending(peer, false);
    while ((i = opal_list_pop(&peer->again))) {
        mca_pml_frag_t *frag = OPAL_CONTAINER_OF(i, mca_pml_frag_t, item);
        frag->send->unconfirmed -= frag->len;
        free(frag);
    }
    while ((i = opal_list_pop(&peer->control))) {
        free(OPAL_CONTAINER_OF(i, mca_pml_raw_t, item));
    }
    mca_pml_peer_unlock(peer);
    engine_fail_matched(peer, &failed);
    if (!opal_list_is_empty(&failed)) {
        mca_pml_base_report_unreachable(peer);
    }
    engine_complete_sends(&failed, MPI_ERR_OTHER);
    engine_fail_recvs(peer);
}

static void engine_writable(void *cookie, mca_btl_endpoint_t *endpoint)
{
    mca_pml_peer_t *peer = cookie;
    mca_pml_link_t *link = mca_pml_base_link_of(peer, endpoint);
    if (link) {
        /* Under the lock: another thread may just be about to note that the link refused it. */
        mca_pml_peer_lock(peer);
        link->blocked = false;
        mca_pml_peer_unlock(peer);
        policy_writable(peer, link);
        engine_flush(peer);
    }
}

/* A fragment that a link (or the policy) could not deliver, or does not know to be delivered. */
static void engine_returned(void *cookie, mca_btl_endpoint_t *endpoint, const void *data, size_t len, int status)
{
    (void) endpoint;
    (void) status;
    mca_pml_peer_t *peer = cookie;
    size_t hdr_len = mca_pml_hdr_length(data, len);
    if (hdr_len == 0) {
        return;
    }
    mca_pml_peer_lock(peer);
    engine_queue_raw(peer, data, hdr_len, (const char *) data + hdr_len, len - hdr_len, true);
    mca_pml_peer_unlock(peer);
    engine_flush(peer);
}

static void engine_on_returned(void *cookie, mca_btl_endpoint_t *endpoint, const void *data, size_t len, int status)
{
    if (!policy_returned(cookie, data, len)) {
        engine_returned(cookie, endpoint, data, len, status);
    }
}

enum { ENGINE_FAILED_US = 1000000 }; /* what is posted for a peer that has failed, fails after this time */

/* Nothing more goes by them. */
static void engine_lanes_fail(mca_pml_peer_t *peer)
{
    uint32_t at = 0;
    mca_pml_peer_t *lane;
    while ((lane = mca_pml_base_lane_next(peer, &at))) {
        mca_pml_peer_lock(lane);
        mca_pml_peer_set_state(lane, MCA_PML_PEER_FAILED);
        mca_pml_peer_unlock(lane);
    }
}

/* A link may be there, or back: the peer would wait for good for what it will not get. Who acknowledges everything need not say so: nothing
 * of the peer's is acknowledged any more. */
static void engine_tell_given_up(mca_pml_peer_t *peer)
{
    mca_pml_hdr_common_t hdr;
    mca_pml_peer_lock(peer);
    if (!POLICY_VERIFIES && !peer->told && !peer->given_up && !peer->gone && peer->latency_count > 0) {
        engine_fill_common(peer, &hdr, MCA_PML_HDR_CREDIT);
        hdr.flags = MCA_PML_FLAG_GIVEN_UP;
        engine_put_control(peer, &hdr, sizeof(hdr));
        peer->told = opal_list_is_empty(&peer->control); /* else it goes with what is let go of next time */
    }
    mca_pml_peer_unlock(peer);
}

/* The time in which a link might have come back is over, or a step of it. */
static void engine_path_timeout(void *context)
{
    mca_pml_peer_t *peer = context;
    mca_pml_peer_lock(peer);
    opal_timer_del(peer->path_timer);
    peer->path_timer = NULL;
    if (mca_pml_base_path_step(peer, engine_path_timeout)) {
        mca_pml_peer_unlock(peer);
        return;
    }
    /* Messages were given up: those after them would never have their turn, so this is for good. */
    bool lost = peer->latency_count == 0 || peer->gone || peer->severed ||
                atomic_load_explicit(&peer->state, memory_order_relaxed) == MCA_PML_PEER_FAILED;
    if (lost) {
        bool first = peer->loss == 0 && !atomic_load(&peer->proc->over); /* who has ended as it should is nobody's loss */
        if (first) {
            peer->loss = atomic_load_explicit(&engine_losses, memory_order_relaxed) + 1;
            mca_pml_base_event_of_link(MCA_PML_EVENT_PEER_LOST, peer, NULL);
        }
        mca_pml_peer_set_state(peer, MCA_PML_PEER_FAILED);
        if (first) {
            atomic_store_explicit(&engine_losses, peer->loss, memory_order_release);
        }
        mca_pml_base_path_watch(peer, ENGINE_FAILED_US, engine_path_timeout);
    }
    mca_pml_peer_unlock(peer);
    if (lost) {
        engine_lanes_fail(peer);
        engine_fail_peer(peer);
        engine_tell_given_up(peer);
    }
}

/* What a link that went down was to be handed goes to the others. The caller holds the peer's lock. */
static void engine_divide_all(mca_pml_peer_t *peer, mca_pml_link_t *down)
{
    opal_list_item_t *i, *tmp;
    uint64_t now = engine_flow_now(peer);
    OPAL_LIST_FOREACH (i, tmp, &peer->bulk) {
        mca_pml_send_t *send = OPAL_CONTAINER_OF(i, mca_pml_send_t, item);
        if (down) {
            send->part[down - peer->links] = 0;
        }
        engine_divide(peer, send, now);
    }
}

/* Messages sent from now on take the links that `bind` chooses, which the communicator keeps; NULL: any. What waits
 * in a peer's queues is handed over under the new choice, too. */
static void engine_bind_comm(ompi_communicator_t *comm, mca_pml_bind_t *bind)
{
    mca_pml_comm_t *pc = comm->pml;
    mca_pml_comm_lock(pc);
    pc->bind = bind;
    mca_pml_comm_unlock(pc);
    for (uint32_t r = 0; r < pc->size; r++) {
        mca_pml_comm_peer_t *cp = atomic_load(&pc->peers[r]);
        if (cp) {
            mca_pml_peer_lock(cp->peer);
            mca_pml_peer_t *lane = engine_hold_numbers(cp);
            cp->bind = bind;
            engine_let_numbers(lane);
            atomic_store_explicit(&cp->direct, bind ? &mca_pml_base_nowhere : cp->peer, memory_order_relaxed);
            mca_pml_base_peer_relist(cp->peer);
            engine_divide_all(cp->peer, NULL);
            mca_pml_peer_unlock(cp->peer);
        }
    }
}

static void engine_link_lost(mca_pml_peer_t *peer, mca_pml_link_t *link, const char *why)
{
    mca_pml_base_link_down(peer, link, why);
    peer->told = false;
    engine_divide_all(peer, link);
    engine_send_doubt(peer);
    if (peer->latency_count == 0 && !peer->path_timer) { /* sends wait: a link may come back */
        mca_pml_base_path_wait(peer, engine_path_timeout);
    }
}

static void engine_link_back(mca_pml_peer_t *peer, mca_pml_link_t *link)
{
    bool was_cut_off = peer->latency_count == 0;
    mca_pml_base_link_up(peer, link);
    engine_divide_all(peer, NULL);
    if (peer->gone || peer->severed || atomic_load_explicit(&peer->state, memory_order_relaxed) == MCA_PML_PEER_FAILED) {
        return;
    }
    opal_timer_del(peer->path_timer);
    peer->path_timer = NULL;
    if (was_cut_off) { /* there was nobody to tell what became free meanwhile */
        mca_pml_hdr_common_t hdr;
        engine_send_control(peer, &hdr, sizeof(hdr), MCA_PML_HDR_CREDIT);
    }
}

/* Nothing gets through. With another link to go on with, what it holds is wanted back now; without, it is waited for. The other one may be
 * suspect, for having been slow: then nothing goes over it, and nothing would show that it works, as long as the silent one is kept. */
static void engine_link_silent(mca_pml_peer_t *peer, mca_pml_link_t *link, const char *why)
{
    bool other = false;
    for (int i = 0; i < peer->link_count; i++) {
        other |= &peer->links[i] != link && peer->links[i].up && !peer->links[i].failing;
    }
    if (other && link->up && !link->failing && (link->module->limits.caps & MCA_BTL_CAP_LET_GO)) {
        link->failing = true;
        link->module->ops->fail(link->endpoint, why);
    }
}

/* A lane never comes back, and nobody knows what of it has arrived. */
static OPAL_COLD void engine_lane_state(mca_pml_peer_t *lane, mca_pml_link_t *link, mca_btl_state_t state, const char *why)
{
    mca_pml_peer_t *peer = lane->main;
    if (state != MCA_BTL_STATE_DOWN || !link) {
        return;
    }
    mca_pml_peer_lock(lane);
    mca_pml_base_link_down(lane, link, why);
    mca_pml_peer_unlock(lane);
    mca_base_log("pml", "base", MCA_LOG_DEBUG, "rank %u: lane %u is down: %s", peer->proc->rank, lane->lane, why ? why : "no reason given");
    mca_pml_peer_lock(peer);
    peer->severed = true;
    if (!peer->path_timer) {
        mca_pml_base_path_wait(peer, engine_path_timeout);
    }
    mca_pml_peer_unlock(peer);
}

static void engine_state(void *cookie, mca_btl_endpoint_t *endpoint, mca_btl_state_t state, const char *why)
{
    static const char *const names[] = {[MCA_BTL_STATE_UP] = "up", [MCA_BTL_STATE_DOWN] = "down",
                                        [MCA_BTL_STATE_SILENT] = "silent", [MCA_BTL_STATE_RESUMED] = "resumed"};
    mca_pml_peer_t *peer = cookie;
    mca_pml_link_t *link = mca_pml_base_link_of(peer, endpoint);
    if (OPAL_UNLIKELY(peer->lane > 0)) {
        engine_lane_state(peer, link, state, why);
        return;
    }
    mca_pml_peer_lock(peer);
    if (!link) {
        if (state == MCA_BTL_STATE_UP || state == MCA_BTL_STATE_DOWN) {
            mca_pml_base_early_note(peer, endpoint, state == MCA_BTL_STATE_DOWN, why);
        }
        mca_pml_peer_unlock(peer);
        return;
    }
    if (state == MCA_BTL_STATE_UP) {
        policy_link(peer, link, true);
        engine_link_back(peer, link);
    } else if (state == MCA_BTL_STATE_SILENT) {
        engine_link_silent(peer, link, why);
    } else if (state == MCA_BTL_STATE_RESUMED) {
        link->resumes++;
    } else {
        engine_link_lost(peer, link, why); /* the peer hears of it before what is sent again: its answers take the others then */
        policy_link(peer, link, false);
    }
    bool any = peer->latency_count > 0;
    mca_pml_peer_unlock(peer);
    mca_base_log("pml", "base", MCA_LOG_DEBUG, "rank %u: link %s is %s: %s", peer->proc->rank, link->module->name,
                 names[state], why ? why : "no reason given");
    if (any) {
        engine_flush(peer);
    }
}

/* What arrived while there was no link to answer by may have used up the peer's credit, here and in the lanes: nothing else may come by
 * them that would have it told. */
static void engine_return_early_credit(mca_pml_peer_t *peer)
{
    uint32_t at = 0;
    mca_pml_peer_t *lane;
    engine_return_credit(peer);
    while ((lane = mca_pml_base_lane_next(peer, &at))) {
        engine_return_credit(lane);
    }
}

/* The peer left LOOKUP. What its links told before they were there comes first. */
static void engine_peer_ready(mca_pml_peer_t *peer)
{
    mca_pml_early_t *early;
    while ((early = mca_pml_base_early_take(peer))) {
        engine_state(peer, early->endpoint, MCA_BTL_STATE_DOWN, early->why);
        free(early);
    }
    if (atomic_load_explicit(&peer->state, memory_order_acquire) == MCA_PML_PEER_FAILED) {
        engine_fail_peer(peer);
    } else {
        engine_flush(peer);
        engine_return_early_credit(peer);
    }
}

/* ---- Processes that are lost ---- */

/* What the process sent before it ended is still taken, for a moment. */
static void engine_lost(ompi_proc_t *proc)
{
    mca_pml_peer_t *peer = mca_pml_base_peer_gone(proc);
    if (!peer) {
        mca_pml_base_out_of_memory("a process that is lost");
        return;
    }
    mca_pml_peer_lock(peer);
    mca_pml_base_path_watch(peer, ENGINE_FAILED_US, engine_path_timeout);
    mca_pml_peer_unlock(peer);
}

/* Add a process that a receive waits for; the room doubles at powers of two. */
static void engine_awaited_add(ompi_proc_t ***procs, size_t *count, ompi_proc_t *proc)
{
    if ((*count & (*count - 1)) == 0) {
        ompi_proc_t **more = realloc(*procs, (*count ? 2 * *count : 1) * sizeof(**procs));
        if (!more) {
            return; /* next time */
        }
        *procs = more;
    }
    (*procs)[(*count)++] = proc;
}

/* Those that a communicator's receives have waited for since the last look; for one from any source, those that have
 * been talked to. */
static void engine_awaited_in(ompi_communicator_t *comm, ompi_proc_t ***procs, size_t *count)
{
    mca_pml_comm_t *pc = comm->pml;
    bool any = false;
    mca_pml_comm_lock(pc);
    for (uint32_t b = 0; b <= pc->match.bucket_mask; b++) {
        for (mca_pml_key_t *key = pc->match.buckets[b]; key; key = key->next) {
            opal_list_item_t *first = opal_list_first(&key->posted);
            if (first && OPAL_CONTAINER_OF(first, mca_pml_posted_t, item)->age < pc->watched_age) {
                any |= key->src < 0;
                if (key->src >= 0) {
                    engine_awaited_add(procs, count, ompi_comm_peer(comm, key->src));
                }
            }
        }
    }
    for (uint32_t r = 0; any && r < pc->size; r++) {
        if (atomic_load(&pc->peers[r])) {
            engine_awaited_add(procs, count, ompi_comm_peer(comm, (int32_t) r));
        }
    }
    pc->watched_age = pc->match.next_age;
    mca_pml_comm_unlock(pc);
}

/* Send something, unless there is something to confirm anyway: what the peer does not take comes to light. */
static void engine_ask(mca_pml_peer_t *peer)
{
    mca_pml_hdr_common_t hdr;
    bool ready = atomic_load_explicit(&peer->state, memory_order_acquire) == MCA_PML_PEER_READY;
    if (peer->proc == ompi_proc_self() || (ready && !mca_pml_base_peer_idle(peer))) {
        return;
    }
    mca_pml_peer_lock(peer);
    mca_pml_link_t *link = engine_latency_link(peer);
    bool useful = link || !ready;
    if (useful && !peer->gone && opal_list_is_empty(&peer->control)) {
        engine_send_control(peer, &hdr, sizeof(hdr), MCA_PML_HDR_CREDIT);
    }
    mca_pml_peer_unlock(peer);
}

/* Who only receives would never learn that the sender is gone: a connection that was not made can't break, one whose
 * other end has vanished does not tell. So whoever waits long makes contact. */
static void engine_look_after_awaited(void)
{
    ompi_proc_t **procs = NULL;
    size_t count = 0;
    opal_list_item_t *i, *tmp;
    pthread_mutex_lock(&engine_comms_lock);
    OPAL_LIST_FOREACH (i, tmp, &engine_comms) {
        engine_awaited_in(OPAL_CONTAINER_OF(i, mca_pml_comm_t, item)->comm, &procs, &count);
    }
    pthread_mutex_unlock(&engine_comms_lock);
    for (size_t n = 0; n < count; n++) {
        mca_pml_peer_t *peer = procs[n] ? mca_pml_base_peer(procs[n]) : NULL;
        if (peer) {
            engine_ask(peer);
        }
    }
    free(procs);
}

static void *engine_incoming(mca_btl_module_t *module, mca_btl_name_t name)
{
    ompi_proc_t *proc = ompi_proc_of_name(name);
    mca_pml_peer_t *peer = proc ? mca_pml_base_peer(proc) : NULL;
    uint32_t lane = mca_btl_base_lane(module);
    return peer && OPAL_UNLIKELY(lane > 0) ? mca_pml_base_lane(peer, lane) : peer;
}

static mca_btl_upcalls_t engine_upcalls = {
    .struct_size = sizeof(mca_btl_upcalls_t),
    .arrive = engine_arrive,
    .place = engine_place,
    .place_cancel = engine_place_cancel,
    .writable = engine_writable,
    .returned = engine_on_returned,
    .state = engine_state,
    .incoming = engine_incoming,
    .usual_header = POLICY_ROOM + sizeof(mca_pml_hdr_match_t), /* as long as that of a piece */
};

/* ---- Draining ---- */

static bool engine_peer_is_drained(mca_pml_peer_t *peer)
{
    mca_pml_peer_lock(peer);
    bool drained = opal_list_is_empty(&peer->control) && opal_list_is_empty(&peer->pending) &&
                   opal_list_is_empty(&peer->bulk) && opal_list_is_empty(&peer->handed) && opal_list_is_empty(&peer->again);
    mca_pml_peer_unlock(peer);
    int state = atomic_load_explicit(&peer->state, memory_order_acquire);
    return state == MCA_PML_PEER_FAILED ||
           (drained && (state == MCA_PML_PEER_LOOKUP || mca_pml_base_peer_idle(peer)));
}

static bool engine_lanes_are_drained(const mca_pml_peer_t *peer)
{
    uint32_t at = 0;
    mca_pml_peer_t *lane;
    bool drained = true;
    while (drained && (lane = mca_pml_base_lane_next(peer, &at))) {
        drained = engine_peer_is_drained(lane);
    }
    return drained;
}

static bool engine_comm_is_drained(const ompi_communicator_t *comm)
{
    for (int32_t r = 0; r < comm->remote_size; r++) {
        ompi_proc_t *proc = ompi_comm_peer(comm, r);
        mca_pml_peer_t *peer = proc != NULL ? atomic_load_explicit(&proc->pml, memory_order_acquire) : NULL;
        if (peer != NULL && !(engine_peer_is_drained(peer) && engine_lanes_are_drained(peer))) {
            return false;
        }
    }
    return policy_is_idle();
}

static bool engine_is_drained(void *context)
{
    if (context != NULL) {
        return engine_comm_is_drained(context);
    }
    for (mca_pml_peer_t *peer = NULL; (peer = mca_pml_base_peer_next(peer));) {
        if (!engine_peer_is_drained(peer)) {
            return false;
        }
    }
    return policy_is_idle();
}

static int engine_drain(ompi_communicator_t *comm)
{
    opal_progress_wait_until(engine_is_drained, comm);
    return comm != NULL || mca_pml_base_report_end() == OPAL_SUCCESS ? MPI_SUCCESS : MPI_ERR_OTHER;
}

/* ---- Start ---- */

/* `name`: the policy's, which all processes must share. */
static int engine_init(const char *name, mca_pml_t *pml)
{
    *pml = (mca_pml_t){
        .name = name,
        .add_comm = engine_add_comm,
        .comm_visible = engine_comm_visible,
        .bind_comm = engine_bind_comm,
        .del_comm = engine_del_comm,
        .send = POLICY_STANDING && opal_progress_threads ? engine_send_threads : engine_send,
        .send_user = POLICY_STANDING && opal_progress_threads ? engine_send_user_threads : engine_send_user,
        .send_mode = engine_send_mode,
        .isend = POLICY_STANDING && opal_progress_threads ? engine_isend_threads : engine_isend,
        .send_init = engine_send_init,
        .recv = engine_recv,
        .irecv = opal_progress_threads ? engine_irecv_threads : engine_irecv,
        .recv_init = engine_recv_init_persistent,
        .iprobe = engine_iprobe,
        .probe = engine_probe,
        .improbe = engine_improbe,
        .mprobe = engine_mprobe,
        .imrecv = engine_imrecv,
        .mrecv = engine_mrecv,
        .lost = engine_lost,
        .drain = engine_drain,
        .confirms = POLICY_VERIFIES,
    };
    pml->isend_user = opal_progress_threads ? pml->isend : POLICY_KEEPS ? engine_isend_user : engine_isend_pushing;
    if (POLICY_ROOM == 0 && !POLICY_VERIFIES) {
        engine_upcalls.arrive_brief = opal_progress_threads ? engine_arrive_brief_threads : engine_arrive_brief;
        engine_upcalls.arrive_brief_how = opal_progress_threads ? engine_arrive_brief_how_threads : engine_arrive_brief_how;
    }
    engine_upcalls.no_memory = POLICY_VERIFIES ? mca_pml_base_no_memory_yet : mca_pml_base_no_memory;
    mca_pml_base_peer_ready = engine_peer_ready;
    mca_pml_base_queues = engine_queues;
    mca_pml_base_frag_room = sizeof(mca_pml_hdr_frag_t) + POLICY_ROOM;
    int64_t wait_s = mca_pml_base_params.path_timeout > 0 ? mca_pml_base_params.path_timeout : 1;
    int rc = mca_pml_base_watch((uint64_t) wait_s * 1000000, engine_look_after_awaited);
    return rc ? rc : mca_pml_base_peers_init(name, &engine_upcalls, POLICY_LOSSY, POLICY_STANDING && opal_progress_threads);
}
