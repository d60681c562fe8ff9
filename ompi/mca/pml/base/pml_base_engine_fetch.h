/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fetching: the receiver has a link copy the message out of the sender's memory (get), and tells it (FIN).
 *
 * Under a policy that checks, this is done piece by piece: the receiver asks for the sum of each (CHECK) when it begins
 * with the one before, so that the sender sums while the receiver copies, and sums what it has itself. A piece
 * is good when both agree (SUM); else it is fetched again, and after ENGINE_FETCH_TRIES the rest comes in fragments. The
 * message is not complete, nor the sender told, before all pieces are good. The sender keeps no state for that.
 *
 *   sender   RGET                sum of 0         sum of 1              done
 *   receiver      CHECK 0, get 0, CHECK 1, sum of 0, get 1, sum of 1, FIN
 *
 * A fetch belongs to whoever works on it: the thread that matched, then the owner of progress. Between "a piece is here"
 * and "its sum is here" it belongs to nobody; the later of both, decided under the peer's lock, goes on with it.
 *
 * Part of pml_base_engine.h.
 */

static mca_pml_pace_at_t engine_pace_now(const mca_pml_peer_t *peer)
{
    return (mca_pml_pace_at_t){.ns = opal_now_ns(), .whole = atomic_load_explicit(&peer->consumed, memory_order_relaxed),
                               .both = atomic_load_explicit(&peer->announced, memory_order_relaxed) > 0};
}

static void engine_note_frags(const mca_pml_recv_t *recv)
{
    mca_pml_pace_at_t now = engine_pace_now(recv->peer);
    if (recv->in_parts) {
        mca_pml_pace_note_parts(recv->timed->pace, recv->expected, recv->peer->parts.first, now.ns - recv->started.ns);
    } else {
        mca_pml_pace_note(recv->timed->pace, recv->expected, false, recv->started, now);
    }
}

/* Fetch, or have it sent in pieces? Where the link does not know (limits.get_try), by measurement, or the sender has chosen. */
static bool engine_prefers_fetch(mca_pml_link_t *link, size_t bytes, bool chosen, bool both)
{
    if (bytes >= link->module->limits.get_min) {
        return true;
    }
    return mca_pml_base_link_pace(link) && (chosen || mca_pml_pace_choose(link->pace, bytes, both));
}

/* Can the link get from the sender's memory, with the key that the sender gave? */
static bool engine_can_get(const mca_pml_link_t *link, const mca_pml_hdr_rget_t *hdr)
{
    uint32_t caps = link->module->limits.caps, key_len = le32toh(hdr->key_len);
    return engine_gets(link) && ((caps & MCA_BTL_CAP_SINGLE_COPY) || (key_len > 0 && key_len <= MCA_BTL_KEY_MAX));
}

/* The sender could have sent it in parts, which are measured one way and both ways alike. */
static bool engine_chose_fetch(const mca_pml_hdr_rget_t *hdr)
{
    return hdr->rndv.match.common.flags & MCA_PML_FLAG_FETCH;
}

/* The link over which the message is to be fetched from the sender's memory; NULL: fragments must come. */
static mca_pml_link_t *engine_choose_fetch(mca_pml_recv_t *recv, mca_pml_peer_t *peer, const mca_pml_hdr_rget_t *hdr)
{
    mca_pml_peer_lock(peer);
    mca_pml_link_t *link = peer->bandwidth_count == 1 ? peer->bandwidth[0] : NULL;
    if (link && (!recv->ptr || recv->expected == 0 || !engine_can_get(link, hdr))) {
        link = NULL;
    }
    recv->started = link ? engine_pace_now(peer) : (mca_pml_pace_at_t){0};
    if (link && !engine_prefers_fetch(link, recv->expected, engine_chose_fetch(hdr), recv->started.both)) {
        recv->timed = link->pace ? link : NULL;
        recv->in_parts = false;
        link = NULL;
    }
    mca_pml_peer_unlock(peer);
    return link;
}

/* ---- One piece after the other ---- */

enum { ENGINE_FETCH_TRIES = 8, ENGINE_FETCH_MOST = 1 << 30 /* every link gets that much at once */ };

static inline size_t engine_fetch_piece(const mca_pml_fetch_t *fetch, size_t offset)
{
    size_t left = fetch->len - offset, most = fetch->checked ? POLICY_FETCH_PIECE : ENGINE_FETCH_MOST;
    return left > most ? most : left;
}

/* Ask for the sum of the piece at `offset`, if there is one. */
static void engine_fetch_ask(mca_pml_fetch_t *fetch, size_t offset)
{
    mca_pml_peer_t *peer = fetch->recv->peer;
    size_t len = engine_fetch_piece(fetch, offset);
    if (fetch->checked && len > 0) {
        mca_pml_hdr_ack_t check = {.sreq = fetch->sreq, .rreq = htole64(fetch->recv->id), .from = htole64(offset),
                                   .to = htole64(offset + len)};
        mca_pml_peer_lock(peer);
        engine_send_control(peer, &check, sizeof(check), MCA_PML_HDR_CHECK);
        mca_pml_peer_unlock(peer);
    }
}

/* The fetch is over; `received` bytes are in place and good. The receive is still being worked on. */
static void engine_fetch_free(mca_pml_fetch_t *fetch, size_t received)
{
    mca_pml_recv_t *recv = fetch->recv;
    mca_pml_peer_lock(recv->peer); /* under which its sums are looked for */
    recv->fetch = NULL;
    recv->received = fetch->failed ? recv->expected : received;
    mca_pml_peer_unlock(recv->peer);
    free(fetch);
}

/* Whether the sender of such a message should have it fetched, if it has the choice; flags of FIN. */
static uint8_t engine_fetch_advice(const mca_pml_fetch_t *fetch)
{
    int way = fetch->link->pace ? mca_pml_pace_advice(fetch->link->pace, fetch->len) : MCA_PML_PACE_FRAGS;
    return way == MCA_PML_PACE_FETCH ? MCA_PML_FLAG_FETCH : way == MCA_PML_PACE_PARTS ? MCA_PML_FLAG_PARTS : 0;
}

static void engine_fetched(mca_pml_fetch_t *fetch)
{
    mca_pml_recv_t *recv = fetch->recv;
    mca_pml_peer_t *peer = recv->peer;
    mca_pml_hdr_fin_t fin = {.sreq = fetch->sreq, .bytes = htole64(fetch->len)};
    mca_pml_peer_lock(peer);
    if (fetch->link->pace) {
        if (fetch->checked) { /* other fetches go on while this one waits for sums */
            mca_pml_pace_note_turns(fetch->link->pace, fetch->len, fetch->started, engine_pace_now(peer), fetch->work_ns);
        } else {
            mca_pml_pace_note(fetch->link->pace, fetch->len, true, fetch->started, engine_pace_now(peer));
        }
    }
    if (OPAL_UNLIKELY(mca_pml_base_trace_on)) {
        mca_pml_base_trace(peer, fetch->link, "fetched", fetch->started.ns, opal_now_ns(), fetch->len, 0);
    }
    engine_fill_common(peer, &fin.common, MCA_PML_HDR_FIN);
    fin.common.flags = engine_fetch_advice(fetch);
    engine_put_control(peer, &fin, sizeof(fin));
    mca_pml_peer_unlock(peer);
    engine_fetch_free(fetch, fetch->len);
    engine_recv_leave(recv, 0, 0);
}

/* What is not here and good comes in fragments. */
static void engine_fetch_give_up(mca_pml_fetch_t *fetch)
{
    mca_pml_recv_t *recv = fetch->recv;
    size_t good = fetch->offset;
    uint64_t sreq = fetch->sreq;
    bool failed = fetch->failed;
    engine_fetch_free(fetch, good);
    if (!failed) {
        engine_recv_rest(recv, recv->peer, sreq, good);
    }
    engine_recv_leave(recv, 0, 0);
}

/* Have the link get the present piece; as get(), and errors mean that it does not work with this peer. */
static int engine_fetch_get(mca_pml_fetch_t *fetch)
{
    mca_pml_link_t *link = fetch->link;
    mca_pml_peer_t *peer = fetch->recv->peer;
    size_t len = engine_fetch_piece(fetch, fetch->offset);
    fetch->desc.iov[0] = (struct iovec){fetch->recv->ptr + fetch->offset, len};
    fetch->began_ns = fetch->checked ? opal_now_ns() : 0;
    bool keyed = !(link->module->limits.caps & MCA_BTL_CAP_SINGLE_COPY), again = fetch->tries > 0; /* it may be over within get() */
    int rc = link->module->ops->get(link->endpoint, &fetch->desc, fetch->address + fetch->offset, keyed ? fetch->key : NULL);
    mca_pml_peer_lock(peer);
    if (rc >= 0) {
        engine_count(link, len);
        link->retries += again;
    } else if (link->pace) {
        mca_pml_pace_failed(link->pace, fetch->len);
    }
    mca_pml_peer_unlock(peer);
    return rc;
}

typedef enum {
    ENGINE_FETCH_WAITS, /* it is nobody's, until the sum comes */
    ENGINE_FETCH_MORE,  /* the present piece is to be fetched */
    ENGINE_FETCH_ALL,
    ENGINE_FETCH_BAD,
} engine_fetched_t;

/* Both sums of the present piece are known. The caller holds the peer's lock, and goes on to the next piece, or to the same. */
static engine_fetched_t engine_fetch_judge(mca_pml_fetch_t *fetch)
{
    size_t len = engine_fetch_piece(fetch, fetch->offset);
    fetch->here = false;
    if (fetch->sum != fetch->want[0]) {
        policy_spoilt(fetch->recv->peer, fetch->link, len);
        return ++fetch->tries < ENGINE_FETCH_TRIES ? ENGINE_FETCH_MORE : ENGINE_FETCH_BAD;
    }
    fetch->offset += len;
    fetch->tries = 0;
    fetch->want[0] = fetch->want[1];
    fetch->known[0] = fetch->known[1];
    fetch->known[1] = false;
    return fetch->offset < fetch->len ? ENGINE_FETCH_MORE : ENGINE_FETCH_ALL;
}

/* False: the fetch is over, or no longer the caller's. */
static bool engine_fetch_goes_on(mca_pml_fetch_t *fetch, engine_fetched_t what)
{
    if (what == ENGINE_FETCH_ALL) {
        engine_fetched(fetch);
    } else if (what == ENGINE_FETCH_BAD) {
        engine_fetch_give_up(fetch);
    }
    return what == ENGINE_FETCH_MORE;
}

/* The present piece is in place. False: the fetch is no longer the caller's. */
static bool engine_fetch_placed(mca_pml_fetch_t *fetch)
{
    mca_pml_peer_t *peer = fetch->recv->peer;
    size_t len = engine_fetch_piece(fetch, fetch->offset);
    if (!fetch->checked) {
        mca_pml_peer_lock(peer);
        fetch->offset += len;
        engine_fetched_t next = fetch->failed ? ENGINE_FETCH_BAD
                                : fetch->offset < fetch->len ? ENGINE_FETCH_MORE : ENGINE_FETCH_ALL;
        mca_pml_peer_unlock(peer);
        return engine_fetch_goes_on(fetch, next);
    }
    if (fetch->tries == 0) {
        engine_fetch_ask(fetch, fetch->offset + len);
    }
    uint32_t sum = policy_sum(peer, true, fetch->recv->ptr + fetch->offset, len);
    fetch->work_ns += opal_now_ns() - fetch->began_ns;
    mca_pml_peer_lock(peer);
    fetch->sum = sum;
    fetch->here = true;
    engine_fetched_t what = fetch->failed ? ENGINE_FETCH_BAD
                            : fetch->known[0] ? engine_fetch_judge(fetch) : ENGINE_FETCH_WAITS;
    mca_pml_peer_unlock(peer);
    return engine_fetch_goes_on(fetch, what);
}

/* Go on with the present piece, as far as that goes at once. The fetch is the caller's, and is not afterwards. */
static void engine_fetch_run(mca_pml_fetch_t *fetch)
{
    int rc;
    do {
        rc = engine_fetch_get(fetch);
    } while (rc == 1 && engine_fetch_placed(fetch));
    if (rc < 0) {
        engine_fetch_give_up(fetch);
    }
}

static void engine_fetch_event(mca_btl_descriptor_t *desc, mca_btl_event_t event, int status)
{
    (void) status;
    mca_pml_fetch_t *fetch = OPAL_CONTAINER_OF(desc, mca_pml_fetch_t, desc);
    if (event == MCA_BTL_CONFIRMED) {
        if (engine_fetch_placed(fetch)) {
            engine_fetch_run(fetch);
        }
    } else if (event == MCA_BTL_UNCONFIRMED) {
        mca_pml_peer_t *peer = fetch->recv->peer;
        mca_pml_peer_lock(peer);
        fetch->link->retries++; /* the piece was counted when the link took it, and is sent now: it goes twice */
        mca_pml_peer_unlock(peer);
        engine_fetch_give_up(fetch);
    }
}

/* The sender says what the sum of a piece is. */
static void engine_on_sum(mca_pml_peer_t *peer, const mca_pml_hdr_sum_t *hdr)
{
    uint64_t offset = le64toh(hdr->offset);
    engine_fetched_t what = ENGINE_FETCH_WAITS;
    mca_pml_peer_lock(peer);
    mca_pml_recv_t *recv = mca_pml_base_id_find(le64toh(hdr->rreq));
    mca_pml_fetch_t *fetch =
        recv && recv->super.type == OMPI_REQUEST_RECV && recv->peer == peer ? recv->fetch : NULL;
    int which = !fetch || fetch->failed ? -1 : offset == fetch->offset ? 0
                : offset == fetch->offset + engine_fetch_piece(fetch, fetch->offset) ? 1 : -1;
    bool judged = which == 0 && !fetch->known[0] && fetch->here;
    if (which >= 0 && !fetch->known[which]) {
        fetch->want[which] = le32toh(hdr->sum);
        fetch->known[which] = true;
    } /* else a repeat, or nonsense */
    if (judged) {
        what = engine_fetch_judge(fetch);
    }
    mca_pml_peer_unlock(peer);
    if (judged && engine_fetch_goes_on(fetch, what)) {
        engine_fetch_run(fetch);
    }
}

/* The receiver wants the sum of a piece that it is fetching, or soon will. */
static void engine_on_check(mca_pml_peer_t *peer, const mca_pml_hdr_ack_t *hdr)
{
    mca_pml_send_t *send = engine_send_of(peer, le64toh(hdr->sreq));
    uint64_t from = le64toh(hdr->from), to = le64toh(hdr->to);
    if (!send || !send->ptr || send->state != MCA_PML_SEND_WAITING || from >= to || to > send->bytes ||
        to - from > POLICY_FETCH_PIECE) {
        return;
    }
    mca_pml_hdr_sum_t sum = {.rreq = hdr->rreq, .offset = hdr->from,
                             .sum = htole32(policy_sum(peer, false, send->ptr + from, to - from))};
    mca_pml_peer_lock(peer);
    engine_send_control(peer, &sum, sizeof(sum), MCA_PML_HDR_SUM);
    mca_pml_peer_unlock(peer);
}

/* Nothing will come of it any more. True: it was nobody's, and is gone; its placement is the caller's. Under the peer's lock. */
static bool engine_fetch_fail(mca_pml_recv_t *recv)
{
    mca_pml_fetch_t *fetch = recv->fetch;
    if (!fetch) {
        return false;
    }
    fetch->failed = true; /* if a link is at work on it, its event ends it */
    if (!fetch->here) {
        return false;
    }
    recv->fetch = NULL;
    free(fetch);
    return true;
}

/* Fetch the message from the sender's memory. False: not possible, fragments must come. */
static bool engine_try_fetch(mca_pml_recv_t *recv, mca_pml_peer_t *peer, const mca_pml_hdr_rget_t *hdr)
{
    mca_pml_link_t *link = engine_choose_fetch(recv, peer, hdr);
    mca_pml_fetch_t *fetch = link ? malloc(sizeof(*fetch)) : NULL;
    if (!fetch) {
        return false;
    }
    *fetch = (mca_pml_fetch_t){
        .desc = {.iov_count = 1, .event = engine_fetch_event}, .recv = recv, .link = link, .sreq = hdr->rndv.sreq,
        .len = recv->expected, .address = le64toh(hdr->address), .checked = policy_checks(), .started = recv->started};
    fetch->desc.flags = fetch->started.both ? MCA_BTL_DESC_ALONE : 0;
    fetch->started.both &= !engine_chose_fetch(hdr);
    memcpy(fetch->key, hdr->key, sizeof(fetch->key));
    if (fetch->checked || !(link->module->limits.caps & MCA_BTL_CAP_SINGLE_COPY)) {
        engine_recv_name(recv, peer, 0); /* sums come for it, and the rest if a fetch fails; or the peer is lost first */
        recv->fetch = fetch;
    }
    if (fetch->checked) {
        fetch->desc.flags |= MCA_BTL_DESC_READ;
        engine_fetch_ask(fetch, 0);
    }
    engine_fetch_run(fetch);
    return true;
}
