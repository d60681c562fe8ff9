/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving: pieces of matched messages, and payload that links bring to its place themselves.
 *
 * Part of pml_base_engine.h.
 */

/* ---- Pieces of matched messages ---- */

/*
 * Where a policy verifies, what a link writes into a receive's buffer is not yet part of the message. So that nothing
 * damaged stands where good bytes are known to be, and nothing is written to a buffer that the user has back:
 *   - nothing is placed over bytes that are here, or that another link is writing (place() says no: it is verified first);
 *   - when such bytes come another way meanwhile, the link that writes them lets go of the place before they are copied;
 *   - a placement keeps its receive from completing, as any does.
 */

/* A link does not write there any more. The receive may end. */
static void engine_unplace(mca_pml_peer_t *peer, mca_pml_placing_t *placing, size_t good)
{
    mca_pml_recv_t *recv = placing->recv;
    size_t offset = placing->offset;
    bool gone = placing->gone;
    if (!gone) {
        opal_list_remove(&placing->item);
        policy_unplace(peer, placing);
    }
    free(placing);
    if (!gone) {
        engine_recv_leave(recv, offset, good);
    }
}

/* Have whichever link it is let go of the place. One that can't writes there by the policy only, which will take no more. */
static OPAL_COLD void engine_take_place(mca_pml_peer_t *peer, mca_pml_placing_t *placing)
{
    for (int i = 0; i < peer->link_count; i++) {
        const mca_pml_link_t *link = &peer->links[i];
        if ((link->module->limits.caps & MCA_BTL_CAP_LET_GO) &&
            link->module->ops->displace(link->endpoint, placing) > 0) {
            engine_unplace(peer, placing, 0);
            return;
        }
    }
    opal_list_remove(&placing->item);
    policy_unplace(peer, placing);
    placing->gone = true;
    engine_recv_leave(placing->recv, placing->offset, 0);
}

static mca_pml_placing_t *engine_placing_at(const mca_pml_peer_t *peer, const mca_pml_recv_t *recv, size_t offset,
                                            size_t len)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &peer->placing) {
        mca_pml_placing_t *p = OPAL_CONTAINER_OF(i, mca_pml_placing_t, item);
        if (p->recv == recv && p->offset < offset + len && offset < p->offset + p->len) {
            return p;
        }
    }
    return NULL;
}

/* A fragment that is being written somewhere is here whole by another way: [seq, seq + span). */
static inline void engine_overtaken(mca_pml_peer_t *peer, uint64_t seq, uint32_t span)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &peer->placing) {
        mca_pml_placing_t *p = OPAL_CONTAINER_OF(i, mca_pml_placing_t, item);
        if (p->seq < seq + span && seq < p->seq + p->span) {
            engine_take_place(peer, p);
        }
    }
}

/* False: it has no receive, nothing is done. */
static bool engine_on_frag(mca_pml_peer_t *peer, const mca_pml_hdr_frag_t *hdr, const void *payload, size_t len, opal_copy_how_t how)
{
    mca_pml_recv_t *recv = engine_recv_join(peer, hdr, len);
    if (recv) {
        mca_pml_placing_t *other;
        while (POLICY_VERIFIES && (other = engine_placing_at(peer, recv, le64toh(hdr->offset), len))) {
            engine_take_place(peer, other);
        }
        size_t offset = le64toh(hdr->offset);
        mca_pml_past_copy_t copy = engine_copying_piece(recv, offset, len, how);
        engine_recv_copy_in(recv, offset, payload, len, copy.how);
        engine_copied(&copy, len);
        engine_recv_leave(recv, offset, len);
    }
    return recv != NULL;
}

/* ---- Links in doubt ---- */

static void engine_heard(mca_pml_peer_t *peer, const mca_btl_endpoint_t *endpoint)
{
    mca_pml_link_t *link = mca_pml_base_link_of(peer, endpoint);
    mca_pml_peer_lock(peer);
    if (link && link->suspect) {
        link->suspect = false;
        mca_pml_base_peer_relist(peer);
    }
    mca_pml_peer_unlock(peer);
}

/* The peer says that a link is silent. It may be any but the one that said so: answers keep off them until they are heard
 * from. What is sent over them now lets the link itself find out, if it is silent in this direction too. */
static void engine_on_doubt(mca_pml_peer_t *peer, const mca_btl_endpoint_t *endpoint)
{
    mca_pml_hdr_common_t hdr;
    mca_pml_peer_lock(peer);
    for (int i = 0; i < peer->link_count; i++) {
        mca_pml_link_t *link = &peer->links[i];
        if (link->endpoint != endpoint && link->up && !link->suspect &&
            (link->module->limits.caps & MCA_BTL_CAP_CAN_FAIL)) {
            link->suspect = true;
            engine_fill_common(peer, &hdr, MCA_PML_HDR_CREDIT);
            if (policy_short(peer, link, &hdr, sizeof(hdr), NULL, 0) == MCA_SUCCESS) {
                engine_count(link, sizeof(hdr));
            }
        }
    }
    mca_pml_base_peer_relist(peer);
    mca_pml_peer_unlock(peer);
}

/* ---- Payload that links bring to its place ---- */

/* Where the payload of a fragment of the receive goes; false: in too many pieces. */
static inline bool engine_place_at(mca_pml_recv_t *recv, size_t offset, size_t payload, mca_btl_place_t *place)
{
    size_t pieces = MCA_BTL_IOV_MAX;
    if (recv->ptr) {
        place->iov[0] = (struct iovec){recv->ptr + offset, payload};
        pieces = 1;
    } else if (opal_convertor_raw_at(&recv->conv, offset, place->iov, &pieces, payload) != payload) {
        return false;
    }
    place->iov_count = (uint32_t) pieces;
    place->token = recv;
    return true;
}

/* The receive for a message whose header is here, if it is the message's turn and the payload has a place there (`gaps`: of any shape); it is
 * taken.
 * Whatever is not as usual waits until all is here. */
static mca_pml_recv_t *engine_match_header(mca_pml_peer_t *peer, const mca_pml_hdr_match_t *hdr, size_t payload, bool gaps,
                                           mca_btl_place_t *place)
{
    uint32_t src = le32toh(hdr->src);
    ompi_communicator_t *comm = ompi_comm_of_context(le32toh(hdr->context));
    mca_pml_comm_t *pc = comm ? comm->pml : NULL;
    mca_pml_comm_peer_t *cp = pc && src < pc->size ? engine_comm_peer(comm, (int) src) : NULL;
    if (!cp || cp->peer != peer || hdr->common.arch != ENGINE_ARCH) {
        return NULL;
    }
    mca_pml_recv_t *recv = NULL;
    mca_pml_comm_lock(pc);
    if (le32toh(hdr->seq) == cp->recv_seq && opal_list_is_empty(&cp->parked)) {
        mca_pml_posted_t *posted =
            mca_pml_match_find_posted(&pc->match, (int32_t) src, (int32_t) le32toh((uint32_t) hdr->tag));
        recv = posted ? OPAL_CONTAINER_OF(posted, mca_pml_recv_t, posted) : NULL;
    }
    if (recv && payload <= recv->capacity && (gaps || recv->ptr) && engine_place_at(recv, 0, payload, place)) {
        cp->recv_seq++;
        engine_unpost(pc, recv);
    } else {
        recv = NULL;
    }
    mca_pml_comm_unlock(pc);
    return recv;
}

/* A whole message comes unasked. The link over which it could have been fetched, if its time is to be noted for that choice; else NULL. */
static mca_pml_link_t *engine_times(mca_pml_peer_t *peer, size_t payload)
{
    mca_pml_peer_lock(peer);
    mca_pml_link_t *link = peer->bandwidth_count == 1 ? peer->bandwidth[0] : NULL;
    bool times = link && sizeof(mca_pml_hdr_match_t) + payload > peer->eager_max && payload >= link->module->limits.get_try &&
                 engine_gets(link) && mca_pml_base_link_pace(link) && mca_pml_pace_wants_parts(link->pace, payload);
    mca_pml_peer_unlock(peer);
    return times ? link : NULL;
}

/* One begins, of which the parts may take their time. */
static void engine_time_parts(mca_pml_recv_t *recv, mca_pml_peer_t *peer, size_t payload)
{
    recv->timed = engine_times(peer, payload);
    if (recv->timed) {
        recv->in_parts = true;
        recv->started = engine_pace_now(peer);
    }
}

/* The payload of a first fragment is about to be read. A message that is matched by its header is a long one of which the
 * first bytes are missing: should they get stuck, the sender's repeat brings them (engine_on_repeat). Its acknowledgment does
 * not wait for them. */
static mca_pml_recv_t *engine_place_first(mca_pml_peer_t *peer, const mca_pml_hdr_t *hdr, size_t payload, bool gaps,
                                          mca_btl_place_t *place)
{
    bool whole = hdr->common.type == MCA_PML_HDR_MATCH;
    uint64_t length = whole ? payload : le64toh(hdr->rndv.length);
    mca_pml_recv_t *recv = length >= payload ? engine_match_header(peer, &hdr->match, payload, gaps, place) : NULL;
    if (!recv) {
        return NULL;
    }
    engine_meet(recv, peer, &hdr->match, length);
    recv->peer = peer;
    recv->expected = length < recv->capacity ? length : recv->capacity;
    recv->received = 0;
    recv->placements = 1; /* the link */
    recv->first = payload;
    recv->first_seq = le32toh(hdr->match.seq);
    recv->timed = NULL;
    if (whole) {
        engine_time_parts(recv, peer, payload);
    }
    recv->fetch = NULL;
    recv->unasked = false;
    mca_pml_ranges_init(&recv->ranges, 0);
    recv->id = mca_pml_base_id_new(recv, peer);
    if (!recv->id) {
        mca_pml_base_out_of_memory("the request of a long message");
    }
    if (!whole) {
        engine_send_ack(peer, hdr->rndv.sreq, recv->id, payload, recv->expected > payload ? recv->expected : payload);
    }
    engine_consumed(peer, payload, false); /* none of it is ever in memory of ours */
    return recv;
}

/* What links write can be taken away from them. */
static bool engine_can_displace(const mca_pml_peer_t *peer)
{
    for (int i = 0; i < peer->link_count; i++) {
        uint32_t caps = peer->links[i].module->limits.caps;
        if ((caps & MCA_BTL_CAP_PLACE) && !(caps & MCA_BTL_CAP_LET_GO)) {
            return false;
        }
    }
    return true;
}

/* Note that [offset, offset + len) of a receive, which has been joined, is written before it is verified. NULL: it must not. */
static mca_pml_placing_t *engine_placing_new(mca_pml_peer_t *peer, mca_pml_recv_t *recv, size_t offset, size_t len)
{
    mca_pml_peer_lock(peer);
    bool here = mca_pml_ranges_touch(&recv->ranges, offset, offset + len);
    mca_pml_peer_unlock(peer);
    if (here || !recv->ptr || offset + len > recv->capacity || !engine_can_displace(peer) || engine_placing_at(peer, recv, offset, len)) {
        return NULL;
    }
    mca_pml_placing_t *placing = malloc(sizeof(*placing));
    if (placing) {
        *placing = (mca_pml_placing_t){.recv = recv, .offset = offset, .len = len};
        opal_list_append(&peer->placing, &placing->item);
    }
    return placing;
}

/* The same for a policy that verifies what it has in place: pieces only, in memory without gaps. The header is good. */
static mca_pml_placing_t *engine_place_here(mca_pml_peer_t *peer, const void *head, size_t len, mca_btl_place_t *place)
{
    enum { HEAD = POLICY_ROOM + sizeof(mca_pml_hdr_frag_t) };
    const mca_pml_hdr_frag_t *hdr = (const void *) ((const char *) head + POLICY_ROOM);
    if (len <= HEAD || hdr->common.type != MCA_PML_HDR_FRAG) {
        return NULL;
    }
    size_t offset = le64toh(hdr->offset);
    mca_pml_recv_t *recv = engine_recv_join(peer, hdr, len - HEAD);
    mca_pml_placing_t *placing = recv ? engine_placing_new(peer, recv, offset, len - HEAD) : NULL;
    if (placing) {
        engine_place_at(recv, offset, len - HEAD, place);
        place->header_len = HEAD;
        place->token = placing;
    } else if (recv) {
        engine_recv_leave(recv, 0, 0);
    }
    return placing;
}

/* Of a whole message: its header, which is good, decides where it belongs; should the payload not be, a repeat brings it (engine_on_repeat). */
static mca_pml_placing_t *engine_place_whole(mca_pml_peer_t *peer, const void *head, size_t len, mca_btl_place_t *place)
{
    enum { HEAD = POLICY_ROOM + sizeof(mca_pml_hdr_match_t) };
    const mca_pml_hdr_t *hdr = (const void *) ((const char *) head + POLICY_ROOM);
    mca_pml_recv_t *recv = len > HEAD && engine_can_displace(peer) ? engine_place_first(peer, hdr, len - HEAD, false, place) : NULL;
    if (!recv) {
        return NULL;
    }
    mca_pml_placing_t *placing = engine_placing_new(peer, recv, 0, len - HEAD);
    if (!placing) {
        mca_pml_base_out_of_memory("the place of a long message");
    }
    place->header_len = HEAD;
    place->token = placing;
    return placing;
}

/* ... that a link is about to read. */
static bool engine_place_unverified(mca_pml_peer_t *peer, const void *head, size_t head_len, size_t len,
                                    mca_btl_place_t *place)
{
    static_assert(sizeof(mca_pml_hdr_match_t) == sizeof(mca_pml_hdr_frag_t), "the policy looks at both alike");
    const mca_pml_hdr_common_t *common = (const void *) ((const char *) head + POLICY_ROOM);
    mca_pml_placing_t noted = {0};
    if (head_len < POLICY_ROOM + sizeof(mca_pml_hdr_frag_t) || (common->type != MCA_PML_HDR_FRAG && common->type != MCA_PML_HDR_MATCH) ||
        !policy_place(peer, head, head_len, len, &noted)) {
        return false;
    }
    mca_pml_placing_t *placing = common->type == MCA_PML_HDR_FRAG ? engine_place_here(peer, head, len - noted.behind, place)
                                                                  : engine_place_whole(peer, head, len - noted.behind, place);
    if (!placing) {
        policy_unplace(peer, &noted);
        return false;
    }
    placing->seq = noted.seq;
    placing->span = noted.span;
    placing->behind = noted.behind;
    if (noted.behind > 0) {
        place->iov[place->iov_count++] = (struct iovec){placing->tail, noted.behind};
    }
    return true;
}

/* What a link is told of a place: the receive, or where the policy verifies a mca_pml_placing_t; of what it trusts there the receive, marked. */
static inline void *engine_token_of(mca_pml_recv_t *recv)
{
    return (char *) recv + (POLICY_VERIFIES ? 1 : 0);
}

/* NULL: it is a mca_pml_placing_t. */
static inline mca_pml_recv_t *engine_trusted(void *token)
{
    return !POLICY_VERIFIES ? token : (uintptr_t) token & 1 ? (void *) ((char *) token - 1) : NULL;
}

/* Upcall: where does the payload of a fragment go that a link is about to read? */
static bool engine_place(void *cookie, const void *head, size_t head_len, size_t len, mca_btl_place_t *place)
{
    const mca_pml_hdr_t *hdr = (const void *) ((const char *) head + POLICY_ROOM);
    if (POLICY_VERIFIES && !policy_trusts(head, head_len)) {
        return engine_place_unverified(cookie, head, head_len, len, place);
    }
    size_t hdr_len = head_len > POLICY_ROOM ? mca_pml_hdr_length(hdr, head_len - POLICY_ROOM) : 0;
    if (hdr_len == 0 || len <= POLICY_ROOM + hdr_len) {
        return false;
    }
    size_t payload = len - POLICY_ROOM - hdr_len;
    mca_pml_recv_t *recv = NULL;
    if (hdr->common.type == MCA_PML_HDR_MATCH || hdr->common.type == MCA_PML_HDR_RNDV) {
        recv = engine_place_first(cookie, hdr, payload, true, place);
    } else if (hdr->common.type == MCA_PML_HDR_FRAG) {
        recv = engine_recv_join(cookie, &hdr->frag, payload);
        if (recv && !engine_place_at(recv, le64toh(hdr->frag.offset), payload, place)) {
            engine_recv_leave(recv, 0, 0);
            recv = NULL;
        }
    }
    if (recv) {
        place->header_len = POLICY_ROOM + hdr_len;
        place->token = engine_token_of(recv);
    }
    return recv != NULL;
}

/* A fragment of which the link has put the payload in place. */
static void engine_arrive_placed(mca_pml_peer_t *peer, const mca_btl_arrival_t *arrival)
{
    const mca_pml_hdr_t *hdr = (const void *) ((const char *) arrival->data + POLICY_ROOM);
    engine_take_credit(peer, &hdr->common);
    if (OPAL_UNLIKELY(peer->any_suspect)) {
        engine_heard(peer, arrival->endpoint);
    }
    mca_pml_recv_t *recv = engine_trusted(arrival->place_token);
    if (!recv) {
        engine_unplace(peer, arrival->place_token, arrival->placed_len);
        return;
    }
    engine_recv_leave(recv, hdr->common.type == MCA_PML_HDR_FRAG ? le64toh(hdr->frag.offset) : 0,
                      arrival->placed_len);
}

static void engine_place_cancel(void *cookie, void *token)
{
    mca_pml_recv_t *recv = engine_trusted(token);
    if (recv) {
        engine_recv_leave(recv, 0, 0);
    } else {
        engine_unplace(cookie, token, 0);
    }
}
