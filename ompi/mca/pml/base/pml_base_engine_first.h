/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending: the first fragment of a request, with all of the message, or what announces it.
 *
 * Part of pml_base_engine.h.
 */

static inline size_t engine_send_copy_out(const mca_pml_send_t *send, size_t offset, void *dst, size_t len, mca_btl_copy_t how)
{
    if (send->ptr) {
        opal_copy_into(dst, send->ptr + offset, len, (opal_copy_how_t) how);
        return len;
    }
    return opal_convertor_pack_at(&send->conv, offset, dst, len);
}

/* Can the receiver fetch the message itself? */
static inline bool engine_can_fetch(const mca_pml_link_t *link, const mca_pml_send_t *send)
{
    const mca_btl_limits_t *limits = &link->module->limits;
    return POLICY_FETCH && send->ptr && engine_gets(link) && send->bytes > 0 &&
           (send->bytes >= limits->get_min || send->bytes >= limits->get_try);
}

/* May pieces of the message use the link? */
static inline bool engine_may_use(const mca_pml_peer_t *peer, const mca_pml_send_t *send, const mca_pml_link_t *link)
{
    const mca_pml_bind_t *bind = send->cp->bind;
    return OPAL_LIKELY(!bind) || (mca_pml_base_bind_links(bind, peer) & 1u << (link - peer->links)) != 0;
}

/* The link that should serve a fetch of this message: the fastest of the bandwidth list, if it can. */
static inline mca_pml_link_t *engine_fetch_link(mca_pml_peer_t *peer, const mca_pml_send_t *send)
{
    mca_pml_link_t *link = peer->bandwidth_count == 1 ? peer->bandwidth[0] : NULL;
    return link && engine_can_fetch(link, send) && engine_may_use(peer, send, link) ? link : NULL;
}

/* What the receiver needs to fetch the message over the link. False: it can't. */
static bool engine_offer(mca_pml_link_t *link, mca_pml_send_t *send, mca_pml_hdr_rget_t *hdr)
{
    mca_btl_module_t *module = link->module;
    size_t key_len = 0;
    if (!(module->limits.caps & MCA_BTL_CAP_SINGLE_COPY)) {
        if (module->ops->register_mem(module, (void *) (uintptr_t) send->ptr, send->bytes, hdr->key, &key_len,
                                      &send->registration) != MCA_SUCCESS) {
            return false;
        }
        send->registrar = module;
    }
    hdr->address = htole64((uint64_t) (uintptr_t) send->ptr);
    hdr->key_len = htole32((uint32_t) key_len);
    return true;
}

/* How much of a message goes with its announcement, where there is room for so much. What is hardly longer than that leaves little behind. */
static inline size_t engine_first_payload(size_t bytes, size_t room)
{
    const size_t usual = mca_pml_base_params.first_frag;
    const size_t most = bytes > room && bytes - room <= room / 8 && usual > 0 ? room : usual;
    const size_t fits = bytes < room ? bytes : room;
    return fits < most ? fits : most;
}

static int engine_first_rndv(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_pml_send_t *send)
{
    union {
        mca_pml_hdr_rndv_t rndv;
        mca_pml_hdr_rget_t rget;
    } hdr;
    memset(&hdr, 0, sizeof(hdr));
    bool fetch = engine_fetch_link(peer, send) == link && engine_offer(link, send, &hdr.rget);
    size_t hdr_len = fetch ? sizeof(hdr.rget) : sizeof(hdr.rndv);
    size_t room = engine_eager_max(peer, send->cp, link) - hdr_len - POLICY_ROOM;
    size_t len = fetch ? 0 : engine_first_payload(send->bytes, room);
    if (!engine_has_credit(peer, engine_cost(len))) {
        len = 0; /* the announcement alone */
    }
    engine_fill_first(peer, &hdr.rndv.match, fetch ? MCA_PML_HDR_RGET : MCA_PML_HDR_RNDV, send);
    hdr.rndv.length = htole64(send->bytes);
    hdr.rndv.sreq = htole64(send->id);
    size_t whole = sizeof(mca_pml_hdr_match_t) + send->bytes; /* it could go unasked */
    bool unasked = engine_may_whole(peer, whole) || (engine_in_parts(peer, whole) && engine_parts_suit(peer, send->cp, whole));
    bool chosen = fetch && unasked && engine_rather_fetched(peer, send->bytes);
    hdr.rndv.match.common.flags |= chosen ? MCA_PML_FLAG_FETCH : 0;
    uint32_t charge = len > 0 ? engine_cost(len) : 0;
    mca_btl_room_t lent = {.how = MCA_BTL_COPY_ANY};
    int rc;
    if ((len == 0 || send->ptr) && hdr_len + len + POLICY_ROOM <= engine_short_max(peer, send->cp, link)) {
        engine_charge(peer, charge);
        rc = policy_short(peer, link, &hdr, hdr_len, send->ptr, len);
        if (rc != MCA_SUCCESS) {
            engine_charge(peer, -charge);
        }
    } else if ((rc = policy_reserve(peer, link, hdr_len + len, hdr_len + len, &lent)) == MCA_SUCCESS) {
        memcpy(lent.ptr, &hdr, hdr_len);
        engine_send_copy_out(send, 0, (char *) lent.ptr + hdr_len, len, lent.how);
        engine_charge(peer, charge);
        policy_commit(peer, link, &lent, hdr_len + len);
    }
    if (rc == MCA_SUCCESS) {
        engine_count(link, hdr_len + len);
        send->first = (uint32_t) len;
        opal_refs_add(&peer->announced, send->announced ? 0 : 1);
        send->announced = true;
        send->chosen = chosen;
        if (chosen) {
            mca_pml_ways_sent(&peer->ways, send->bytes, true);
        }
    } else {
        engine_unregister(send);
    }
    return rc;
}

static int engine_first_match(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_pml_send_t *send)
{
    mca_pml_hdr_match_t hdr;
    uint32_t cost = engine_cost(send->bytes);
    int rc;
    engine_charge(peer, cost);
    if ((send->ptr || send->bytes == 0) && sizeof(hdr) + send->bytes + POLICY_ROOM <= link->module->limits.short_max) {
        engine_fill_first(peer, &hdr, MCA_PML_HDR_MATCH, send);
        rc = policy_short(peer, link, &hdr, sizeof(hdr), send->ptr, send->bytes);
    } else if (POLICY_KEEPS && send->ptr) {
        engine_fill_first(peer, &hdr, MCA_PML_HDR_MATCH, send);
        rc = policy_whole(peer, link, &hdr, sizeof(hdr), send->ptr, send->bytes);
    } else {
        mca_btl_room_t room;
        rc = engine_reserve_match(peer, link, send->ptr, &send->conv, send->bytes, &room);
        if (rc == MCA_SUCCESS) {
            engine_fill_first(peer, room.ptr, MCA_PML_HDR_MATCH, send);
            policy_commit(peer, link, &room, sizeof(hdr) + send->bytes);
        }
    }
    if (rc != MCA_SUCCESS) {
        engine_charge(peer, -cost);
        return rc;
    }
    engine_count(link, sizeof(hdr) + send->bytes);
    return MCA_SUCCESS;
}

/* A link is done with a whole message. One that it may not have delivered goes again, as the same message: the receiver may
 * have it. */
static void engine_whole_event(mca_btl_descriptor_t *desc, mca_btl_event_t event, int status)
{
    (void) status;
    if (event == MCA_BTL_REUSABLE) {
        return;
    }
    mca_pml_send_t *send = OPAL_CONTAINER_OF(desc, mca_pml_send_t, desc);
    mca_pml_peer_t *peer = desc->user;
    bool arrived = event == MCA_BTL_CONFIRMED;
    mca_pml_peer_lock(peer); /* the thread that sends it may still hold it */
    send->lent = false;
    send->state = arrived ? MCA_PML_SEND_DONE : MCA_PML_SEND_FIRST;
    if (!arrived) {
        opal_list_prepend(&peer->pending, &send->item);
        mca_pml_peer_set_pending(peer, true);
    }
    mca_pml_peer_unlock(peer);
    if (arrived) {
        engine_send_done(send, MPI_SUCCESS);
    } else {
        engine_flush(peer);
    }
}

/* May the message go whole, though it is long, and nobody knows whether it is waited for? If it has done so already, it must. */
static inline bool engine_goes_whole(const mca_pml_peer_t *peer, const mca_pml_send_t *send)
{
    return send->whole || (!send->cp->bind && send->bytes <= peer->whole_max && send->ptr && send->mode != MCA_PML_SYNCHRONOUS &&
                           engine_has_credit(peer, engine_cost(send->bytes)));
}

/* `lent`: it may have to be copied later; see pml_base_engine_lend.h. */
static int engine_first_whole(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_pml_send_t *send, bool lent, bool *done)
{
    mca_btl_descriptor_t *desc = &send->desc;
    engine_fill_first(peer, &send->hdr, MCA_PML_HDR_MATCH, send);
    desc->header = &send->hdr;
    desc->header_len = sizeof(send->hdr);
    desc->iov_count = 1;
    desc->iov[0] = (struct iovec){(void *) (uintptr_t) send->ptr, send->bytes};
    desc->event = engine_whole_event;
    desc->user = peer;
    bool again = send->whole;
    uint32_t cost = again ? 0 : engine_cost(send->bytes);
    send->state = MCA_PML_SEND_WAITING; /* the link may be done with it as soon as it is out */
    send->whole = true;
    send->lent = lent;
    engine_charge(peer, cost);
    int rc = policy_send(peer, link, desc);
    if (rc < 0) {
        engine_charge(peer, -cost);
        send->whole = again;
        send->lent = false;
        return rc;
    }
    *done = rc == 1;
    link->retries += again;
    engine_count(link, sizeof(mca_pml_hdr_match_t) + send->bytes);
    return MCA_SUCCESS;
}

/* Had all of a request's message better go before its receiver has answered? */
static bool engine_better_unasked(const mca_pml_peer_t *peer, const mca_pml_send_t *send)
{
    const size_t len = sizeof(mca_pml_hdr_match_t) + send->bytes;
    return engine_in_parts(peer, len) && !engine_rather_fetched(peer, send->bytes) && send->mode != MCA_PML_SYNCHRONOUS && !send->whole &&
           send->ptr && !send->cp->bind && (!POLICY_KEEPS || engine_plain(peer) || engine_parts_suit(peer, send->cp, len));
}

/* A request's message in parts; MCA_ERR_NOT_AVAILABLE as above. */
static int engine_first_parts(mca_pml_peer_t *peer, mca_pml_link_t *link, const mca_pml_send_t *send)
{
    mca_pml_hdr_match_t hdr;
    if (engine_follows(link) || !engine_better_unasked(peer, send)) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    engine_fill_first(peer, &hdr, MCA_PML_HDR_MATCH, send);
    return engine_send_parts(peer, link, &hdr, send->ptr, send->bytes);
}

/* May the pieces of a message follow its announcement without an answer? */
static bool engine_may_follow(const mca_pml_peer_t *peer, const mca_pml_link_t *link, const mca_pml_send_t *send)
{
    return engine_follows(link) && engine_better_unasked(peer, send) && !send->cancel && engine_has_credit(peer, engine_cost(send->bytes));
}

/* They go with the peer's next flush; see pml_base_engine_unasked.h. The request has an id only to be found if the peer is lost. */
static int engine_first_followed(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_pml_send_t *send)
{
    mca_pml_hdr_rndv_t hdr = {.length = htole64(send->bytes), .sreq = htole64(peer->unasked_last + 1)};
    const uint32_t cost = engine_cost(send->bytes);
    engine_fill_first(peer, &hdr.match, MCA_PML_HDR_RNDV, send);
    hdr.match.common.flags |= MCA_PML_FLAG_UNASKED;
    engine_charge(peer, cost);
    int rc = policy_short(peer, link, &hdr, sizeof(hdr), NULL, 0);
    if (rc != MCA_SUCCESS) {
        engine_charge(peer, -cost);
        return rc;
    }
    engine_count(link, sizeof(hdr));
    opal_refs_add(&peer->announced, send->announced ? 0 : 1);
    send->announced = send->unasked = true;
    engine_bulk_begin(peer, send, ++peer->unasked_last, 0, send->bytes);
    mca_pml_ways_sent(&peer->ways, send->bytes, false);
    return rc;
}

/* Longest fragment that goes without asking. Who is sent a stream is behind (engine_is_behind()). */
static inline size_t engine_lends_up_to(const mca_pml_peer_t *peer)
{
    return peer->lend_max > peer->eager_max ? peer->lend_max : peer->eager_max;
}

/* Does this link take such a message from the user's memory? Not if it would rather send from there itself, and hold it. */
static inline bool engine_lends_over(const mca_pml_peer_t *peer, const mca_pml_link_t *link, const mca_pml_send_t *send)
{
    const size_t len = sizeof(mca_pml_hdr_match_t) + send->bytes + POLICY_ROOM;
    return len <= engine_lends_up_to(peer) && len <= link->module->limits.max_frag && len < link->module->limits.send_min;
}

/* Is a message that is to be lent still best lent, now that its turn has come? */
static inline bool engine_first_lends(const mca_pml_peer_t *peer, const mca_pml_link_t *link, const mca_pml_send_t *send)
{
    return POLICY_KEEPS && OPAL_UNLIKELY(send->lends) && !send->whole && !send->cancel && engine_lends_over(peer, link, send) &&
           engine_has_credit(peer, engine_cost(send->bytes));
}

/* Try to get a request's first fragment out over this link. *eager: it was the whole message, and is done with. */
static int engine_send_first_over(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_pml_send_t *send, bool *eager)
{
    size_t len = sizeof(mca_pml_hdr_match_t) + send->bytes + POLICY_ROOM;
    bool fits = len <= engine_eager_max(peer, send->cp, link), whole = !fits && !send->cp->bind && engine_whole_behind(peer, len);
    *eager = send->mode != MCA_PML_SYNCHRONOUS && !send->whole && (fits || whole) &&
             engine_has_credit(peer, engine_cost(send->bytes));
    bool lends = engine_first_lends(peer, link, send);
    int rc = lends ? engine_first_whole(peer, link, send, true, eager) : engine_first_parts(peer, link, send);
    if (lends) {
        /* the request ends when it has arrived */
    } else if (rc != MCA_ERR_NOT_AVAILABLE) {
        *eager = rc == MCA_SUCCESS;
    } else if (*eager) {
        rc = engine_first_match(peer, link, send);
        if (whole && rc == MCA_SUCCESS) {
            mca_pml_ways_sent(&peer->ways, send->bytes, false);
        }
    } else if (engine_goes_whole(peer, send)) {
        rc = engine_first_whole(peer, link, send, false, eager);
    } else {
        if (!send->id && !(send->id = mca_pml_base_id_new(send, peer))) {
            return MCA_ERR_OUT_OF_RESOURCE;
        }
        send->state = MCA_PML_SEND_WAITING; /* the answer may come as soon as it is out */
        if (engine_may_follow(peer, link, send)) {
            rc = engine_first_followed(peer, link, send);
        } else {
            mca_pml_link_t *fetch = engine_fetch_link(peer, send);
            link = fetch ? fetch : link;
            rc = engine_first_rndv(peer, link, send);
        }
        if (rc == MCA_SUCCESS && OPAL_UNLIKELY(send->cancel)) {
            engine_send_recall(peer, send);
        }
    }
    if (rc != MCA_SUCCESS) {
        send->state = MCA_PML_SEND_FIRST;
        engine_send_unname(send); /* only what is announced is found by it, and fails with its peer: what goes whole is the link's */
        link->blocked |= rc == MCA_ERR_AGAIN;
    }
    return rc;
}

/* ... over any link of the latency list that takes it. The caller holds the peer's lock. */
static int engine_send_first(mca_pml_peer_t *peer, mca_pml_send_t *send, bool *eager)
{
    int rc = MCA_ERR_UNREACHABLE;
    for (int tries = 0; tries < peer->latency_count; tries++) {
        /* What has gone whole fits on the links of the latency list. */
        mca_pml_link_t *link = send->whole ? engine_latency_link(peer) : engine_first_link(peer, send->cp);
        rc = link->blocked && tries > 0 ? MCA_ERR_AGAIN : engine_send_first_over(peer, link, send, eager);
        if (rc != MCA_ERR_AGAIN) {
            break;
        }
    }
    return rc;
}

/* Give a request its place in the order of messages, and try to send. Called without locks. */
static void engine_send_begin(mca_pml_send_t *send)
{
    mca_pml_peer_t *peer = send->cp->peer;
    bool eager = false, done = false, failed = false, more = false;
    mca_pml_peer_lock(peer);
    int state = atomic_load_explicit(&peer->state, memory_order_acquire);
    if (state == MCA_PML_PEER_FAILED) {
        failed = true;
    } else {
        mca_pml_peer_t *lane = engine_hold_numbers(send->cp);
        send->seq = engine_send_seq(send->cp);
        engine_next_seq(send->cp);
        engine_let_numbers(lane);
        if (state == MCA_PML_PEER_READY && !peer->pending_any &&
            engine_send_first(peer, send, &eager) == MCA_SUCCESS) {
            done = eager;
            more = send->unasked;
        } else {
            opal_list_append(&peer->pending, &send->item);
            mca_pml_peer_set_pending(peer, true);
        }
    }
    mca_pml_peer_unlock(peer);
    if (failed) {
        mca_pml_base_report_unreachable(peer);
        engine_send_done(send, MPI_ERR_OTHER);
    } else if (done) {
        engine_send_done(send, MPI_SUCCESS);
    } else if (more) {
        engine_flush(peer);
    }
}
