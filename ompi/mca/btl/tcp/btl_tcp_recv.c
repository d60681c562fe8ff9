/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiving half of an endpoint: few large reads into a shared buffer, frames handed up from
 * there; payload that has a place is read straight into it.
 */
#include "ompi/mca/btl/tcp/btl_tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "ompi/mca/btl/base/btl_base_keep.h"
#include "ompi/mca/btl/base/btl_base_place.h"

enum {
    READS_PER_VISIT = 4,          /* then others have their turn */
    PLACED_MOST = 128 * 1024,     /* bytes of payload in one read, if somebody looks at them afterwards: they are in the cache then */
    RBUF_ROOM_MIN = 16 * 1024,    /* a shared buffer with less at its end is not continued */
};

typedef enum {
    PARSE_MORE,
    PARSE_PAUSE, /* what is to be read has no place yet, and may soon have one */
    PARSE_END,   /* of the connection */
} parse_t;

/* ---- Buffers ---- */

/* The endpoint holds a buffer, with room for at least `need` bytes from rpos on. */
static bool rbuf_ensure(mca_btl_endpoint_t *ep, size_t need)
{
    btl_tcp_component_t *c = &mca_btl_tcp;
    if (!ep->rbuf) {
        ep->rbuf = c->spare ? c->spare : btl_tcp_rbuf_get(BTL_TCP_RBUF_BYTES);
        c->spare = NULL;
        if (!ep->rbuf) {
            return false;
        }
        ep->rpos = ep->rend = ep->rbuf->fill;
    }
    if (OPAL_LIKELY(ep->rpos + need <= ep->rbuf->size)) {
        return true;
    }
    size_t have = ep->rend - ep->rpos, at = ep->rpos & 7; /* the alignment of frames stays */
    if (at + need <= ep->rbuf->size &&
        atomic_load_explicit(&ep->rbuf->refs, memory_order_acquire) == 1) {
        memmove(ep->rbuf->data + at, ep->rbuf->data + ep->rpos, have);
    } else {
        btl_tcp_rbuf_t *fresh = btl_tcp_rbuf_get(at + need);
        if (!fresh) {
            return false;
        }
        memcpy(fresh->data + at, ep->rbuf->data + ep->rpos, have);
        btl_tcp_rbuf_unref(ep->rbuf);
        ep->rbuf = fresh;
    }
    ep->rpos = at;
    ep->rend = at + have;
    return true;
}

/* All that was read is parsed: the buffer can serve the next reader. */
static void rbuf_return(mca_btl_endpoint_t *ep)
{
    btl_tcp_component_t *c = &mca_btl_tcp;
    btl_tcp_rbuf_t *rbuf = ep->rbuf;
    ep->rbuf = NULL;
    bool sole = atomic_load_explicit(&rbuf->refs, memory_order_acquire) == 1;
    rbuf->fill = sole ? 0 : (ep->rend + 7) & ~(size_t) 7;
    if (!c->spare && rbuf->size == BTL_TCP_RBUF_BYTES && rbuf->fill + RBUF_ROOM_MIN <= rbuf->size) {
        c->spare = rbuf;
    } else {
        btl_tcp_rbuf_unref(rbuf);
    }
}

void btl_tcp_receive_reset(mca_btl_endpoint_t *ep)
{
    if (ep->rbuf) {
        ep->rend = ep->rpos;
        rbuf_return(ep);
    }
    ep->rpos = ep->rend = ep->rskip = ep->need = 0;
    ep->place_refused = ep->place_put_off = false;
    ep->read_size = BTL_TCP_RBUF_BYTES;
    ep->owe_confirm = false;
    if (ep->placing.active) {
        ep->placing.active = false;
        if (!ep->deleted && !ep->placing.displaced) {
            ep->module->super.upcalls->place_cancel(ep->cookie, ep->placing.token);
        }
    }
}

int btl_tcp_keep(mca_btl_arrival_t *arrival)
{
    btl_tcp_rbuf_t *rbuf = (btl_tcp_rbuf_t *) (uintptr_t) arrival->token[0];
    uint32_t total = atomic_load_explicit(&mca_btl_tcp.rbuf_total, memory_order_relaxed);
    bool held = rbuf && total <= BTL_TCP_RBUF_PINNED_MAX;
    return mca_btl_base_keep(arrival, held ? &rbuf->refs : NULL);
}

void btl_tcp_release(mca_btl_arrival_t *arrival)
{
    if (!mca_btl_base_release(arrival)) {
        btl_tcp_rbuf_unref((btl_tcp_rbuf_t *) (uintptr_t) arrival->token[0]);
    }
}

/* ---- Frames ---- */

/* Count a frame as handed up before it is: what is sent from the upcall already confirms it. */
static inline void count_handed(mca_btl_endpoint_t *ep, uint8_t flags)
{
    uint64_t handed = atomic_load_explicit(&ep->handed, memory_order_relaxed);
    atomic_store_explicit(&ep->handed, handed + 1, memory_order_relaxed);
    ep->owe_confirm |= (flags & BTL_TCP_FLAG_CONFIRM) != 0;
}

static inline void hand_up(mca_btl_endpoint_t *ep, const btl_tcp_frame_t *frame)
{
    mca_btl_arrival_t arrival = {
        .data = ep->rbuf->data + ep->rpos + BTL_TCP_FRAME_HEADER,
        .len = frame->len,
        .module = &ep->module->super,
        .endpoint = ep,
        .token = {(uintptr_t) ep->rbuf, 0},
    };
    count_handed(ep, frame->flags);
    ep->module->super.upcalls->arrive(ep->cookie, &arrival);
}

static void hand_up_placed(mca_btl_endpoint_t *ep)
{
    btl_tcp_placing_t *placing = &ep->placing;
    mca_btl_arrival_t arrival = {
        .data = placing->header,
        .len = placing->header_len,
        .place_token = placing->token,
        .placed_len = placing->payload,
        .module = &ep->module->super,
        .endpoint = ep,
    };
    placing->active = false;
    ep->place_put_off = false;
    ep->read_size = BTL_TCP_READ_AHEAD; /* more of the kind is likely: copy little of it */
    count_handed(ep, placing->flags);
    if (OPAL_LIKELY(!placing->displaced)) {
        ep->module->super.upcalls->arrive(ep->cookie, &arrival);
    }
}

/* `n` bytes of payload are in place; the iov then describes what is missing. */
static void placing_advance(btl_tcp_placing_t *placing, size_t n)
{
    placing->left -= n;
    if (OPAL_UNLIKELY(placing->displaced)) {
        return;
    }
    while (placing->next < placing->count && n >= placing->iov[placing->next].iov_len) {
        n -= placing->iov[placing->next++].iov_len;
    }
    if (n > 0) {
        struct iovec *piece = &placing->iov[placing->next];
        piece->iov_base = (char *) piece->iov_base + n;
        piece->iov_len -= n;
    }
}

static void copy_to_place(btl_tcp_placing_t *placing, const uint8_t *data, size_t len)
{
    while (len > 0) {
        struct iovec *piece = &placing->iov[placing->next];
        size_t n = len < piece->iov_len ? len : piece->iov_len;
        memcpy(piece->iov_base, data, n);
        data += n;
        len -= n;
        placing_advance(placing, n);
    }
}

static inline bool wants_placed(const mca_btl_endpoint_t *ep)
{
    const mca_btl_upcalls_t *up = ep->module->super.upcalls;
    return up->struct_size > offsetof(mca_btl_upcalls_t, placed) && up->placed;
}

/* More payload is in place. */
static void tell_placed(mca_btl_endpoint_t *ep)
{
    btl_tcp_placing_t *placing = &ep->placing;
    size_t at = placing->told, here = placing->payload - placing->left;
    if (!placing->displaced && here > at && wants_placed(ep)) {
        placing->told = here;
        ep->module->super.upcalls->placed(ep->cookie, placing->token, at, here - at);
    }
}

/* The frame at rpos is not complete. Ask where its payload should go, and move there what we have.
 */
static bool try_place(mca_btl_endpoint_t *ep, const btl_tcp_frame_t *frame)
{
    const uint8_t *head = ep->rbuf->data + ep->rpos + BTL_TCP_FRAME_HEADER;
    size_t have = ep->rend - ep->rpos - BTL_TCP_FRAME_HEADER;
    size_t head_len = have < frame->len ? have : frame->len;
    btl_tcp_placing_t *placing = &ep->placing;
    mca_btl_place_t place;
    if (!ep->module->super.upcalls->place(ep->cookie, head, head_len, frame->len, &place)) {
        return false;
    }
    if (!mca_btl_base_place_is_sane(&place, head_len, frame->len)) {
        ep->module->super.upcalls->place_cancel(ep->cookie, place.token);
        return false;
    }
    memcpy(placing->iov, place.iov, place.iov_count * sizeof(place.iov[0]));
    memcpy(placing->header, head, place.header_len);
    placing->header_len = (uint32_t) place.header_len;
    placing->count = place.iov_count;
    placing->next = 0;
    placing->token = place.token;
    placing->displaced = false;
    placing->flags = frame->flags;
    placing->told = 0;
    placing->payload = placing->left = frame->len - place.header_len;
    copy_to_place(placing, head + place.header_len, head_len - place.header_len);
    placing->active = true;
    tell_placed(ep);
    return true;
}

unsigned btl_tcp_displace(mca_btl_endpoint_t *ep, void *token)
{
    btl_tcp_placing_t *placing = &ep->placing;
    if (!placing->active || placing->displaced || placing->token != token) {
        return 0;
    }
    placing->displaced = true;
    return 1;
}

/* From here on the buffer takes what follows the payload: its padding first, so that the next frame
 * is aligned. */
static void placing_begin(mca_btl_endpoint_t *ep, const btl_tcp_frame_t *frame)
{
    size_t padding = btl_tcp_padding(frame->len);
    ep->rskip = padding;
    if (atomic_load_explicit(&ep->rbuf->refs, memory_order_acquire) == 1) {
        ep->rpos = 0;
    } else {
        ep->rpos = (ep->rend + 7) & ~(size_t) 7;
    }
    ep->rpos += -padding & 7;
    ep->rend = ep->rpos;
}

static inline bool skip_padding(mca_btl_endpoint_t *ep)
{
    if (ep->rskip > 0) {
        size_t n = ep->rend - ep->rpos < ep->rskip ? ep->rend - ep->rpos : ep->rskip;
        ep->rpos += n;
        ep->rskip -= n;
    }
    return ep->rskip == 0;
}

/* A frame that is not complete: what to do with it. *need: bytes from rpos on that must be had to
 * go on. */
static parse_t parse_partial(mca_btl_endpoint_t *ep, const btl_tcp_frame_t *frame, size_t *need)
{
    size_t have = ep->rend - ep->rpos;
    size_t head = frame->len < MCA_BTL_HEADER_MAX ? frame->len : MCA_BTL_HEADER_MAX;
    bool may_place = frame->len >= BTL_TCP_PLACE_MIN && !ep->place_refused &&
                     have < BTL_TCP_FRAME_HEADER + (size_t) frame->len;
    if (may_place && have < BTL_TCP_FRAME_HEADER + head) {
        *need = BTL_TCP_FRAME_HEADER + head;
        return PARSE_MORE;
    }
    if (may_place && try_place(ep, frame)) {
        placing_begin(ep, frame);
        return PARSE_MORE;
    }
    /* Who sends and then receives is often just about to: the first time, let it. */
    bool pause = may_place && !ep->place_put_off;
    ep->place_put_off |= may_place;
    ep->place_refused = true;
    *need = btl_tcp_frame_size(frame->len);
    return pause ? PARSE_PAUSE : PARSE_MORE;
}

/* Hand up what stands complete in the buffer. The padding is part of a frame: what has been handed
 * up is confirmed, and the sender can't let go of a frame of which bytes are still to be sent. */
static parse_t parse(mca_btl_endpoint_t *ep, int *frames, size_t *need)
{
    btl_tcp_frame_t frame;
    *need = BTL_TCP_FRAME_HEADER;
    while (skip_padding(ep) && ep->rend - ep->rpos >= BTL_TCP_FRAME_HEADER) {
        if (OPAL_UNLIKELY(!btl_tcp_frame_read(ep->rbuf->data + ep->rpos, &frame))) {
            btl_tcp_endpoint_fail(ep, "the peer sent what is no frame");
            return PARSE_END;
        }
        if (OPAL_UNLIKELY(!btl_tcp_confirmed(ep, frame.confirmed))) {
            btl_tcp_endpoint_fail(ep, "the peer confirms what it was not sent");
            return PARSE_END;
        }
        if (OPAL_UNLIKELY(frame.type != BTL_TCP_DATA)) {
            ep->rpos += BTL_TCP_FRAME_HEADER;
            ep->owe_confirm |= (frame.flags & BTL_TCP_FLAG_CONFIRM) != 0;
            if (frame.type == BTL_TCP_GOODBYE) {
                btl_tcp_endpoint_closed(ep);
                return PARSE_END;
            }
            continue;
        }
        size_t size = btl_tcp_frame_size(frame.len);
        if (ep->rend - ep->rpos < size) {
            return parse_partial(ep, &frame, need);
        }
        hand_up(ep, &frame);
        ++*frames;
        ep->place_refused = ep->place_put_off = false;
        ep->rpos += size;
    }
    return PARSE_MORE;
}

/* ---- Reading ---- */

/* Payload whose place is gone: into the buffer's unused part, over and over. */
static ssize_t read_displaced(mca_btl_endpoint_t *ep, size_t room)
{
    size_t left = ep->placing.left;
    return recv(ep->fd, ep->rbuf->data + ep->rend, left > 0 && left < room ? left : room,
                MSG_DONTWAIT);
}

/* One read: the rest of a placed payload first, or some of it, then the buffer. *most: bytes that it may bring. */
static ssize_t read_socket(mca_btl_endpoint_t *ep, size_t room, size_t *most)
{
    btl_tcp_placing_t *placing = &ep->placing;
    *most = room;
    if (OPAL_LIKELY(!placing->active)) {
        return recv(ep->fd, ep->rbuf->data + ep->rend, room, MSG_DONTWAIT);
    }
    if (OPAL_UNLIKELY(placing->displaced)) {
        return read_displaced(ep, room);
    }
    if (placing->left > PLACED_MOST && wants_placed(ep)) {
        const struct iovec *piece = &placing->iov[placing->next];
        *most = piece->iov_len < PLACED_MOST ? piece->iov_len : PLACED_MOST;
        return recv(ep->fd, piece->iov_base, *most, MSG_DONTWAIT);
    }
    *most += placing->left;
    struct iovec iov[MCA_BTL_IOV_MAX + 1];
    unsigned count = placing->count - placing->next;
    memcpy(iov, placing->iov + placing->next, count * sizeof(iov[0]));
    iov[count] = (struct iovec){ep->rbuf->data + ep->rend, room};
    return readv(ep->fd, iov, (int) count + 1);
}

static OPAL_COLD void read_failed(mca_btl_endpoint_t *ep, ssize_t n, int error)
{
    if (n == 0) {
        btl_tcp_endpoint_lost(ep, "the peer closed the connection without a farewell");
    } else {
        btl_tcp_endpoint_lost(ep, strerror(error));
    }
}

/* Sort `n` bytes that were read. */
static void take(mca_btl_endpoint_t *ep, size_t n, int *frames)
{
    btl_tcp_placing_t *placing = &ep->placing;
    if (OPAL_LIKELY(!placing->active)) {
        ep->rend += n;
        return;
    }
    size_t placed = n < placing->left ? n : placing->left;
    placing_advance(placing, placed);
    ep->rend += n - placed;
    tell_placed(ep);
    if (placing->left == 0 && skip_padding(ep)) {
        hand_up_placed(ep);
        ++*frames;
    }
}

/* What was asked for, if any, is confirmed at once: nothing we sent meanwhile has done it. */
static void confirm(mca_btl_endpoint_t *ep)
{
    ep->owe_confirm = false;
    btl_tcp_lock(&ep->lock);
    if (ep->state == BTL_TCP_UP &&
        ep->told < atomic_load_explicit(&ep->handed, memory_order_relaxed)) {
        ep->ctl_want |= BTL_TCP_WANT_CONFIRM;
        if (!ep->blocked) {
            btl_tcp_flush(ep);
        }
    }
    btl_tcp_unlock(&ep->lock);
}

/* One read and what follows from it; counts what was done: frames handed up, and the read, which
 * may have brought confirmations alone. False: no use to read on now. */
static bool visit(mca_btl_endpoint_t *ep, size_t *need, int *done)
{
    size_t have = ep->rbuf ? ep->rend - ep->rpos : 0;
    bool placing = ep->placing.active && !ep->placing.displaced;
    size_t room = placing ? BTL_TCP_READ_AHEAD : ep->read_size;
    if (*need > have && room < *need - have) {
        room = *need - have;
    }
    if (!rbuf_ensure(ep, *need)) {
        mca_btl_no_memory(&ep->module->super);
        btl_tcp_endpoint_lost(ep, "out of memory for receiving");
        return false;
    }
    if (room > ep->rbuf->size - ep->rend) {
        room = ep->rbuf->size - ep->rend;
    }
    size_t most;
    ssize_t n = read_socket(ep, room, &most);
    if (OPAL_UNLIKELY(n <= 0)) {
        int error = n < 0 ? errno : 0;
        if (error != EAGAIN && error != EWOULDBLOCK && error != EINTR) {
            read_failed(ep, n, error);
        }
        return error == EINTR;
    }
    if ((size_t) n == room && !ep->placing.active && ep->read_size < BTL_TCP_RBUF_BYTES) {
        ep->read_size *= 4;
    }
    ++*done;
    take(ep, (size_t) n, done);
    return parse(ep, done, need) == PARSE_MORE && (size_t) n == most;
}

/* What was put off may have a place by now: that is asked before the rest is read, which would go into the buffer. False: no use to read. */
static bool ask_again(mca_btl_endpoint_t *ep, size_t *need, int *done)
{
    return !ep->place_put_off || ep->placing.active || parse(ep, done, need) == PARSE_MORE;
}

int btl_tcp_receive(mca_btl_endpoint_t *ep)
{
    int done = 0, reads = 0;
    size_t need = ep->need ? ep->need : BTL_TCP_FRAME_HEADER;
    uint64_t generation = ep->generation;
    ep->place_refused = false; /* what was not waited for may be by now */
    while ((reads > 0 || ask_again(ep, &need, &done)) && visit(ep, &need, &done) && ++reads < READS_PER_VISIT) {
    }
    if (ep->generation != generation || ep->state != BTL_TCP_UP) {
        return done + 1; /* the connection has ended */
    }
    ep->need = need;
    if (ep->owe_confirm) {
        confirm(ep);
    }
    if (ep->rbuf && ep->rpos == ep->rend && ep->rskip == 0 && !ep->placing.active) {
        rbuf_return(ep);
    }
    return done;
}
