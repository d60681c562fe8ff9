/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages: sending, passing on, putting together, room for streams.
 *
 * Frames are passed on one by one as they come. Since each pair of daemons has one way, and one
 * queue per class on each connection of it, the frames of one sender stay in order, and one
 * unfinished message per sender is all that can be open at a receiver.
 */
#include "orte/oob/internal.h"

#include "orte/util/report.h"

#include <stdlib.h>
#include <string.h>

enum { PART_ROOM_FIRST = 1024 * 1024 };

/* ---- Messages under way ---- */

oob_payload_t *oob_payload_create(uint8_t *data)
{
    oob_payload_t *payload = data == NULL ? NULL : malloc(sizeof(*payload));

    if (payload == NULL) {
        free(data);
        return NULL;
    }
    *payload = (oob_payload_t){.data = data, .refs = 1};
    return payload;
}

void oob_payload_release(oob_payload_t *payload)
{
    if (payload != NULL && --payload->refs == 0) {
        free(payload->data);
        free(payload);
    }
}

oob_out_t *oob_out_create(oob_payload_t *payload, size_t size, const oob_frame_t *frame)
{
    oob_out_t *out = calloc(1, sizeof(*out));

    if (out == NULL) {
        oob_payload_release(payload);
        return NULL;
    }
    opal_list_item_init(&out->item);
    out->payload = payload;
    out->size = size;
    out->frame = *frame;
    return out;
}

void oob_out_destroy(oob_out_t *out)
{
    if (out != NULL) {
        oob_payload_release(out->payload);
        free(out);
    }
}

/* ---- Peers ---- */

static oob_peer_t *peer_get(orte_oob_t *oob, uint32_t index)
{
    oob_peer_t *peer = opal_hash_find(&oob->peers, index);

    if (peer != NULL) {
        return peer;
    }
    peer = calloc(1, sizeof(*peer));
    if (peer == NULL) {
        return NULL;
    }
    peer->index = index;
    opal_list_init(&peer->held);
    opal_list_item_init(&peer->credit_due);
    if (opal_hash_set(&oob->peers, index, peer) != OPAL_SUCCESS) {
        free(peer);
        return NULL;
    }
    return peer;
}

static void part_end(oob_peer_t *peer)
{
    free(peer->part);
    peer->part = NULL;
    peer->part_have = peer->part_room = 0;
}

static void drop_held(orte_oob_t *oob, oob_peer_t *peer)
{
    opal_list_item_t *item;

    while ((item = opal_list_pop(&peer->held)) != NULL) {
        oob_out_destroy(OPAL_CONTAINER_OF(item, oob_out_t, item));
    }
    oob->held_bytes -= peer->held_bytes;
    peer->held_bytes = 0;
}

/* Whoever leaves waits for the last held stream. */
static void kick_leaving(orte_oob_t *oob)
{
    for (uint32_t slot = 0; oob->leave.begun && slot < oob_link_slots(oob); slot++) {
        oob_link_t *link = oob_link_at(oob, slot);
        if (link != NULL) {
            oob_link_kick(link);
        }
    }
}

void oob_peers_forget_lost(orte_oob_t *oob)
{
    size_t cursor = 0;
    uint64_t key;
    void *value;

    while (opal_hash_next(&oob->peers, &cursor, &key, &value)) {
        oob_peer_t *peer = value;
        if (orte_oob_is_lost(oob, peer->index)) {
            part_end(peer);
            drop_held(oob, peer);
            peer->confirmed = peer->sent;
            peer->above = false;
        }
    }
    kick_leaving(oob);
}

void oob_peers_destroy(orte_oob_t *oob)
{
    size_t cursor = 0;
    uint64_t key;
    void *value;

    while (opal_hash_next(&oob->peers, &cursor, &key, &value)) {
        oob_peer_t *peer = value;
        part_end(peer);
        drop_held(oob, peer);
        free(peer);
    }
    opal_hash_free(&oob->peers);
}

/* ---- Sending ---- */

static void soon(orte_oob_t *oob)
{
    event_active(oob->soon, EV_TIMEOUT, 1);
}

/* On its way, or to our own door. A way that was lost swallows it: on_lost tells. */
static void transmit(orte_oob_t *oob, orte_oob_class_t cls, oob_out_t *out)
{
    uint32_t self = oob->config.index, to = out->frame.to;

    if (to == self) {
        opal_list_append(&oob->local, &out->item);
        soon(oob);
        return;
    }
    oob_link_t *link = oob_link_get(oob, orte_oob_tree_next_hop(self, to, oob->config.radix));
    if (link == NULL) {
        oob_out_destroy(out);
    } else {
        oob_link_send(link, cls, out);
    }
}

static size_t in_flight(const oob_peer_t *peer)
{
    return (size_t)(peer->sent - peer->confirmed);
}

/* At least one message may always be under way. */
static bool has_room(const orte_oob_t *oob, const oob_peer_t *peer, size_t size)
{
    return in_flight(peer) == 0 || in_flight(peer) + size <= orte_oob_window(oob);
}

static int send_stream(orte_oob_t *oob, oob_out_t *out)
{
    oob_peer_t *peer = peer_get(oob, out->frame.to);

    if (peer == NULL) {
        oob_out_destroy(out);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    size_t size = out->size;
    if (opal_list_is_empty(&peer->held) && has_room(oob, peer, size)) {
        peer->sent += size;
        transmit(oob, ORTE_OOB_STREAM, out);
    } else {
        opal_list_append(&peer->held, &out->item);
        peer->held_bytes += size;
        oob->held_bytes += size;
    }
    if (in_flight(peer) + peer->held_bytes > orte_oob_window(oob) / 2) {
        peer->above = true;
    }
    return OPAL_SUCCESS;
}

/* To one daemon. Takes over a reference. */
static int send_one(orte_oob_t *oob, orte_oob_class_t cls, const oob_frame_t *frame,
                    oob_payload_t *payload)
{
    if (orte_oob_is_lost(oob, frame->to)) {
        oob_payload_release(payload);
        return OPAL_ERR_UNREACHABLE;
    }
    oob_out_t *out = oob_out_create(payload, (size_t)frame->number, frame);
    if (out == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (cls == ORTE_OOB_STREAM) {
        return send_stream(oob, out);
    }
    transmit(oob, cls, out);
    return OPAL_SUCCESS;
}

static oob_payload_t *share(oob_payload_t *payload)
{
    if (payload != NULL) {
        payload->refs++;
    }
    return payload;
}

/* A stream to everybody is one to each, since each has room of its own. Those below us have
 * indices without gaps on each level of the tree. The first error that is no loss is returned. */
static int stream_to_all(orte_oob_t *oob, oob_frame_t frame, oob_payload_t *payload)
{
    uint64_t radix = oob->config.radix, count = oob->config.count;
    uint64_t low = (uint64_t)oob->config.index * radix + 1, high = low + radix - 1;
    int result = OPAL_SUCCESS;

    for (; low < count; low = low * radix + 1, high = high * radix + radix) {
        for (uint64_t to = low; to <= high && to < count; to++) {
            frame.to = (uint32_t)to;
            int rc = send_one(oob, ORTE_OOB_STREAM, &frame, share(payload));
            if (rc != OPAL_SUCCESS && rc != OPAL_ERR_UNREACHABLE && result == OPAL_SUCCESS) {
                result = rc;
            }
        }
    }
    return result;
}

/* A frame or a message to all children. One that can't get it for lack of memory is given up, since
 * going on without it would be wrong. */
static void to_children(orte_oob_t *oob, const oob_frame_t *frame, oob_payload_t *payload,
                        size_t size, bool relayed)
{
    for (uint32_t i = 0; i < oob->nchildren; i++) {
        oob_link_t *link = oob_link_get(oob, oob->first_child + i);
        oob_out_t *out =
            link == NULL ? NULL : oob_out_create(share(payload), size, frame);
        if (out != NULL) {
            out->relayed = relayed;
            oob_link_send(link, ORTE_OOB_CONTROL, out);
        } else if (link != NULL) {
            link->no_memory = true;
            oob_link_kick(link);
        }
    }
}

/* Checks, the frame's header and the payload of a message. Takes `data`. */
static int make_message(orte_oob_t *oob, uint16_t tag, orte_oob_class_t cls, uint8_t *data,
                        size_t size, oob_frame_t *frame, oob_payload_t **payload)
{
    uint64_t max = cls == ORTE_OOB_STREAM ? ORTE_OOB_STREAM_MAX : orte_oob_params.message_max;

    *payload = NULL;
    *frame = (oob_frame_t){
        .type = OOB_DATA,
        .flags = cls == ORTE_OOB_STREAM ? OOB_FLAG_STREAM : 0,
        .tag = tag,
        .from = oob->config.index,
        .number = size,
    };
    if (tag >= ORTE_OOB_TAGS || size > max || (data == NULL && size > 0)) {
        free(data);
        return OPAL_ERR_BAD_PARAM;
    }
    if (oob->leave.begun || size == 0) {
        free(data);
        return oob->leave.begun ? OPAL_ERR_UNREACHABLE : OPAL_SUCCESS;
    }
    *payload = oob_payload_create(data);
    return *payload == NULL ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

int orte_oob_send(orte_oob_t *oob, uint32_t to, uint16_t tag, orte_oob_class_t cls, uint8_t *data,
                  size_t size)
{
    oob_payload_t *payload;
    oob_frame_t frame;

    if (to >= oob->config.count && to != ORTE_OOB_EVERYBODY) {
        free(data);
        return OPAL_ERR_BAD_PARAM;
    }
    int rc = make_message(oob, tag, cls, data, size, &frame, &payload);
    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    frame.to = to;
    if (to != ORTE_OOB_EVERYBODY) {
        return send_one(oob, cls, &frame, payload);
    }
    if (cls == ORTE_OOB_STREAM) {
        rc = stream_to_all(oob, frame, payload);
    } else {
        to_children(oob, &frame, payload, size, false);
    }
    oob_payload_release(payload);
    return rc;
}

int orte_oob_multicast(orte_oob_t *oob, const uint32_t *to, size_t count, uint16_t tag,
                       orte_oob_class_t cls, uint8_t *data, size_t size)
{
    oob_payload_t *payload;
    oob_frame_t frame;

    for (size_t i = 0; i < count; i++) {
        if (to[i] >= oob->config.count || to[i] == oob->config.index) {
            free(data);
            return OPAL_ERR_BAD_PARAM;
        }
    }
    int rc = make_message(oob, tag, cls, data, size, &frame, &payload);
    for (size_t i = 0; rc == OPAL_SUCCESS && i < count; i++) {
        frame.to = to[i];
        rc = send_one(oob, cls, &frame, share(payload));
        rc = rc == OPAL_ERR_UNREACHABLE ? OPAL_SUCCESS : rc;
    }
    oob_payload_release(payload);
    return rc;
}

int orte_oob_send_pack(orte_oob_t *oob, uint32_t to, uint16_t tag, orte_oob_class_t cls,
                       orte_pack_t *pack)
{
    size_t size;
    uint8_t *data = orte_pack_take(pack, &size);

    return data == NULL ? OPAL_ERR_OUT_OF_RESOURCE
                        : orte_oob_send(oob, to, tag, cls, data, size);
}

static size_t backlog_of(const orte_oob_t *oob, uint32_t to)
{
    const oob_peer_t *peer = opal_hash_find(&oob->peers, to);

    return peer == NULL ? 0 : in_flight(peer) + peer->held_bytes;
}

size_t orte_oob_backlog(const orte_oob_t *oob, uint32_t to, orte_oob_class_t cls)
{
    uint32_t hop = to == ORTE_OOB_EVERYBODY
                       ? to
                       : orte_oob_tree_next_hop(oob->config.index, to, oob->config.radix);
    size_t most = 0, one;

    for (uint32_t slot = 0; cls == ORTE_OOB_CONTROL && slot < oob_link_slots(oob); slot++) {
        const oob_link_t *link = oob_link_at(oob, slot);
        one = link == NULL || (link->index != hop && (hop != ORTE_OOB_EVERYBODY || slot == 0))
                  ? 0
                  : link->queued[cls];
        most = one > most ? one : most;
    }
    if (cls == ORTE_OOB_CONTROL) {
        return most;
    }
    if (to != ORTE_OOB_EVERYBODY) {
        return backlog_of(oob, to);
    }
    size_t cursor = 0;
    uint64_t key;
    void *value;
    while (opal_hash_next(&oob->peers, &cursor, &key, &value)) {
        one = backlog_of(oob, (uint32_t)key);
        most = one > most ? one : most;
    }
    return most;
}

/* ---- Room for streams ---- */

/* Our streams to this peer: so much has been consumed there since the start. */
static bool apply_credit(orte_oob_t *oob, oob_peer_t *peer, uint64_t consumed)
{
    opal_list_item_t *item;

    if (consumed < peer->confirmed || consumed > peer->sent) {
        return false;
    }
    peer->confirmed = consumed;
    while ((item = opal_list_first(&peer->held)) != NULL) {
        oob_out_t *out = OPAL_CONTAINER_OF(item, oob_out_t, item);
        size_t size = out->size;
        if (!has_room(oob, peer, size)) {
            break;
        }
        opal_list_remove(item);
        peer->held_bytes -= size;
        oob->held_bytes -= size;
        peer->sent += size;
        transmit(oob, ORTE_OOB_STREAM, out);
    }
    if (oob->held_bytes == 0) {
        kick_leaving(oob);
    }
    if (peer->above && in_flight(peer) + peer->held_bytes <= orte_oob_window(oob) / 2) {
        peer->above = false;
        if (oob->config.on_drained != NULL && !oob->leave.begun) {
            oob->config.on_drained(oob->config.arg, peer->index);
        }
    }
    return true;
}

/* Room goes back when all is consumed, so that an idle stream's backlog is 0, and by quarters of
 * the window before that. */
void orte_oob_consumed(orte_oob_t *oob, uint32_t from, size_t size)
{
    oob_peer_t *peer = opal_hash_find(&oob->peers, from);

    if (size == 0) {
        return;
    }
    if (peer == NULL || size > peer->delivered - peer->consumed) {
        orte_warn("internal error: more of the streams of daemon %u was consumed than came", from);
        return;
    }
    peer->consumed += size;
    if (peer->consumed != peer->credited &&
        (peer->consumed == peer->delivered ||
         peer->consumed - peer->credited >= orte_oob_window(oob) / 4) &&
        !opal_list_item_is_linked(&peer->credit_due)) {
        opal_list_append(&oob->credit_due, &peer->credit_due);
        soon(oob);
    }
}

static void send_credit(orte_oob_t *oob, oob_peer_t *peer)
{
    oob_frame_t frame = {.type = OOB_CREDIT, .from = oob->config.index, .to = peer->index,
                         .number = peer->consumed};

    if (peer->index == oob->config.index) {
        peer->credited = peer->consumed;
        apply_credit(oob, peer, peer->consumed);
        return;
    }
    if (orte_oob_is_lost(oob, peer->index)) {
        return;
    }
    oob_out_t *out = oob_out_create(NULL, 0, &frame);
    if (out != NULL) { /* if there is no memory, the next one says it all */
        peer->credited = peer->consumed;
        transmit(oob, ORTE_OOB_CONTROL, out);
    }
}

/* ---- Receiving ---- */

/* Takes message->data. */
static void deliver(orte_oob_t *oob, orte_oob_message_t *message)
{
    orte_oob_handler_t handler = oob->handlers[message->tag].handler;
    size_t size = message->size;

    if (handler != NULL) {
        handler(oob->handlers[message->tag].arg, message);
    } else {
        orte_warn("internal error: a message of kind %u from daemon %u that nobody here handles",
                  message->tag, message->from);
        if (message->cls == ORTE_OOB_STREAM) {
            orte_oob_consumed(oob, message->from, size);
        }
    }
    free(message->data);
}

/* Count what is to be consumed. */
static bool count_stream(orte_oob_t *oob, uint32_t from, size_t size)
{
    oob_peer_t *peer = peer_get(oob, from);

    if (peer != NULL) {
        peer->delivered += size;
    }
    return peer != NULL;
}

static bool append_part(oob_peer_t *peer, const uint8_t *bytes, size_t size)
{
    if (peer->part_room - peer->part_have < size) {
        uint64_t room = peer->part_room == 0 ? PART_ROOM_FIRST : 2 * (uint64_t)peer->part_room;
        room = room < peer->part_total ? room : peer->part_total;
        uint8_t *grown = realloc(peer->part, (size_t)room);
        if (grown == NULL) {
            return false;
        }
        peer->part = grown;
        peer->part_room = (size_t)room;
    }
    memcpy(peer->part + peer->part_have, bytes, size);
    peer->part_have += size;
    return true;
}

/* One of several pieces. False: it does not fit, or no memory. */
static bool take_piece(orte_oob_t *oob, const oob_frame_t *frame, const uint8_t *bytes)
{
    oob_peer_t *peer = peer_get(oob, frame->from);

    if (peer == NULL || (peer->part == NULL) != ((frame->flags & OOB_FLAG_FIRST) != 0)) {
        return false;
    }
    if (peer->part == NULL) {
        peer->part_total = frame->number;
        peer->part_tag = frame->tag;
    }
    if (frame->number != peer->part_total || frame->tag != peer->part_tag ||
        frame->len > peer->part_total - peer->part_have ||
        ((frame->flags & OOB_FLAG_LAST) != 0) !=
            (frame->len == peer->part_total - peer->part_have) ||
        !append_part(peer, bytes, frame->len)) {
        return false;
    }
    if (frame->flags & OOB_FLAG_LAST) {
        orte_oob_message_t message = {.from = frame->from, .tag = frame->tag,
                                      .cls = ORTE_OOB_CONTROL, .data = peer->part,
                                      .size = peer->part_have};
        peer->part = NULL;
        part_end(peer);
        deliver(oob, &message);
    }
    return true;
}

static bool take_data(orte_oob_t *oob, const oob_frame_t *frame, const uint8_t *bytes)
{
    orte_oob_message_t message = {
        .from = frame->from,
        .tag = frame->tag,
        .cls = frame->flags & OOB_FLAG_STREAM ? ORTE_OOB_STREAM : ORTE_OOB_CONTROL,
        .size = frame->len,
    };

    if (frame->len != frame->number) {
        return take_piece(oob, frame, bytes);
    }
    if (message.size > 0) {
        message.data = malloc(message.size);
        if (message.data == NULL) {
            return false;
        }
        memcpy(message.data, bytes, message.size);
    }
    if (message.cls == ORTE_OOB_STREAM && !count_stream(oob, message.from, message.size)) {
        free(message.data);
        return false;
    }
    deliver(oob, &message);
    return true;
}

/* Pass on a frame that is not for us, or not for us alone. */
static bool relay(oob_link_t *from, const oob_frame_t *frame, const uint8_t *bytes)
{
    orte_oob_t *oob = from->oob;
    uint8_t *copy = frame->len == 0 ? NULL : malloc(frame->len);
    oob_payload_t *payload = NULL;

    if (frame->len > 0) {
        if (copy != NULL) {
            memcpy(copy, bytes, frame->len);
        }
        payload = oob_payload_create(copy);
        if (payload == NULL) {
            return false;
        }
    }
    if (frame->to == ORTE_OOB_EVERYBODY) {
        to_children(oob, frame, payload, frame->len, true);
        oob_payload_release(payload);
        return true;
    }
    oob_out_t *out = oob_out_create(payload, frame->len, frame);
    if (out == NULL) {
        return false;
    }
    out->relayed = true;
    transmit(oob, frame->flags & OOB_FLAG_STREAM ? ORTE_OOB_STREAM : ORTE_OOB_CONTROL, out);
    return true;
}

/* Can a frame of this origin and for this destination come by this connection? */
static bool is_on_way(const oob_link_t *by, const oob_frame_t *frame)
{
    const orte_oob_t *oob = by->oob;
    uint32_t self = oob->config.index, radix = oob->config.radix;
    bool downward = by == oob->parent;

    if (downward == orte_oob_tree_is_below(frame->from, downward ? self : by->index, radix)) {
        return false;
    }
    if (frame->type == OOB_LOST) {
        return frame->from != by->index;
    }
    if (frame->to == ORTE_OOB_EVERYBODY) {
        return downward;
    }
    return orte_oob_tree_next_hop(self, frame->to, radix) != by->index;
}

static bool receive_credit(orte_oob_t *oob, const oob_frame_t *frame)
{
    oob_peer_t *peer = opal_hash_find(&oob->peers, frame->from);

    return peer != NULL && apply_credit(oob, peer, frame->number);
}

static void receive_lost(oob_link_t *by, const oob_frame_t *frame, const uint8_t *bytes)
{
    char sentence[ORTE_OOB_SENTENCE];

    memcpy(sentence, bytes, frame->len);
    sentence[frame->len] = '\0';
    oob_told_lost(by->oob, by, frame->from, (orte_oob_loss_t)frame->number, sentence);
}

bool oob_receive(oob_link_t *by, const oob_frame_t *frame, const uint8_t *bytes)
{
    orte_oob_t *oob = by->oob;

    if (!is_on_way(by, frame)) {
        return false;
    }
    if (frame->type == OOB_LOST) {
        receive_lost(by, frame, bytes);
        return true;
    }
    if (frame->to != oob->config.index && !relay(by, frame, bytes)) {
        return false;
    }
    if (frame->to != oob->config.index && frame->to != ORTE_OOB_EVERYBODY) {
        return true;
    }
    return frame->type == OOB_CREDIT ? receive_credit(oob, frame) : take_data(oob, frame, bytes);
}

void orte_oob_handle(orte_oob_t *oob, uint16_t tag, orte_oob_handler_t handler, void *arg)
{
    oob->handlers[tag].handler = handler;
    oob->handlers[tag].arg = arg;
}

/* ---- From the loop ---- */

/* A message to ourselves: its bytes are in no other hands. */
static void deliver_local(orte_oob_t *oob, oob_out_t *out)
{
    orte_oob_message_t message = {
        .from = out->frame.from,
        .tag = out->frame.tag,
        .cls = out->frame.flags & OOB_FLAG_STREAM ? ORTE_OOB_STREAM : ORTE_OOB_CONTROL,
        .size = out->size,
    };

    if (out->payload != NULL) {
        message.data = out->payload->data;
        out->payload->data = NULL;
    }
    oob_out_destroy(out);
    if (message.cls == ORTE_OOB_STREAM) {
        count_stream(oob, message.from, message.size); /* its peer exists since it was sent */
    }
    deliver(oob, &message);
}

void oob_soon(evutil_socket_t fd, short what, void *arg)
{
    orte_oob_t *oob = arg;
    opal_list_t now = OPAL_LIST_INIT(now);
    opal_list_item_t *item;

    (void)fd;
    (void)what;
    opal_list_splice(&now, &oob->local); /* what these bring has its turn later */
    while ((item = opal_list_pop(&now)) != NULL) {
        deliver_local(oob, OPAL_CONTAINER_OF(item, oob_out_t, item));
    }
    while ((item = opal_list_pop(&oob->credit_due)) != NULL) {
        send_credit(oob, OPAL_CONTAINER_OF(item, oob_peer_t, credit_due));
    }
    oob_leave_progress(oob);
}
