/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The sending half of an endpoint: queueing frames, writing them, popping what the peer confirmed.
 */
#include "ompi/mca/btl/tcp/btl_tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum {
    SEND_PIECES = 64,     /* of one sendmsg() */
    SEND_BYTES = 1 << 20, /* of one sendmsg(), about */
    /* What is long enough for the receiver to copy while we copy goes in two parts, if that pays for the second system
     * call on every machine seen (docs/performance.md). */
    SPLIT_MIN = 384 * 1024,
    SPLIT_MAX = (1 << 20) + 4096,
    SPLIT_FIRST = 32 * 1024,
    KEEP_AFTER_MIN = 4096, /* so much is worth the pieces of a sendmsg() */
    ROOM_MIN = BTL_TCP_CHUNK_BYTES - (int) sizeof(btl_tcp_entry_t), /* what one chunk can lend */
};

/* ---- The queue ---- */

/* Sending is not possible now; why, and what follows. */
static OPAL_COLD int not_up(mca_btl_endpoint_t *ep)
{
    if (ep->told_down || ep->deleted || ep->state == BTL_TCP_DOWN || ep->module->closed) {
        return MCA_ERR_UNREACHABLE;
    }
    if (ep->state == BTL_TCP_IDLE) {
        btl_tcp_kick(ep, BTL_TCP_KICK_CONNECT);
    }
    ep->want_writable = true;
    return MCA_ERR_AGAIN;
}

/* A chunk with room for `size` bytes at its end becomes the current one. */
static OPAL_COLD bool chunk_renew(mca_btl_endpoint_t *ep, size_t size)
{
    btl_tcp_chunk_t *fresh = btl_tcp_chunk_get(size);
    if (!fresh) {
        return false;
    }
    if (ep->chunk && ep->chunk->live == 0) {
        btl_tcp_chunk_put(ep->chunk);
    }
    ep->chunk = fresh; /* the old one goes with the last entry in it */
    return true;
}

/* Room for an entry with `bytes` behind its header at the end of the current chunk, not yet taken.
 */
static inline btl_tcp_entry_t *entry_room(mca_btl_endpoint_t *ep, size_t bytes)
{
    size_t size = btl_tcp_entry_size(bytes);
    if (OPAL_UNLIKELY(ep->kept > 0 && ep->kept + size > mca_btl_tcp.params.keep_limit)) {
        return NULL;
    }
    if (OPAL_UNLIKELY(!ep->chunk || ep->chunk->size - ep->chunk->fill < size)) {
        if (!chunk_renew(ep, size)) {
            return NULL;
        }
    }
    return (btl_tcp_entry_t *) (void *) (ep->chunk->data + ep->chunk->fill);
}

static inline void append(mca_btl_endpoint_t *ep, btl_tcp_entry_t *entry)
{
    entry->next = NULL;
    if (ep->tail) {
        ep->tail->next = entry;
    } else {
        ep->head = entry;
    }
    ep->tail = entry;
    if (!ep->cursor) {
        ep->cursor = entry;
        ep->cursor_sent = 0;
    }
    ep->frames_out++;
}

/* Should this frame ask for a confirmation? Often enough that the peer's answer comes before we
 * must stop. */
static inline uint8_t frame_flags(mca_btl_endpoint_t *ep, size_t size, bool descriptor)
{
    ep->unasked += size;
    if (descriptor || ep->unasked >= mca_btl_tcp.params.keep_limit / 8) {
        ep->unasked = 0;
        return BTL_TCP_FLAG_CONFIRM;
    }
    return 0;
}

/* Take the room of entry_room() and queue a frame of `bytes` bytes that stand in it. */
static inline void entry_queue(mca_btl_endpoint_t *ep, btl_tcp_entry_t *entry, size_t bytes)
{
    size_t size = btl_tcp_entry_size(bytes);
    btl_tcp_frame_t frame = {.len = (uint32_t) bytes, .type = BTL_TCP_DATA};
    frame.flags = frame_flags(ep, size, false);
    btl_tcp_frame_write(entry->wire, &frame);
    memset(entry->wire + BTL_TCP_FRAME_HEADER + bytes, 0, btl_tcp_padding(bytes));
    entry->len = (uint32_t) btl_tcp_frame_size(bytes);
    entry->kind = BTL_TCP_ENTRY_KEPT;
    entry->chunk = ep->chunk;
    ep->chunk->fill += (uint32_t) size;
    ep->chunk->live++;
    ep->kept += size;
    append(ep, entry);
}

/* Give a chunk's entry back. One made for a longer frame goes with it: each peer would hold one. */
static inline void entry_free(mca_btl_endpoint_t *ep, btl_tcp_entry_t *entry)
{
    btl_tcp_chunk_t *chunk = entry->chunk;
    if (--chunk->live > 0) {
        return;
    }
    if (OPAL_LIKELY(chunk == ep->chunk && chunk->size == BTL_TCP_CHUNK_BYTES)) {
        chunk->fill = 0;
        return;
    }
    if (chunk == ep->chunk) {
        ep->chunk = NULL;
    }
    btl_tcp_chunk_put(chunk);
}

/* ---- Writing ---- */

/* The pieces of an entry's frame from byte `skip` on. */
static unsigned entry_pieces(btl_tcp_entry_t *entry, size_t skip, struct iovec *iov)
{
    static uint8_t zeros[8];
    if (entry->kind != BTL_TCP_ENTRY_DESC) {
        iov[0] = (struct iovec){entry->wire + skip, entry->len - skip};
        return 1;
    }
    mca_btl_descriptor_t *desc = entry->desc;
    struct iovec all[MCA_BTL_IOV_MAX + 3];
    unsigned count = 0, used = 0;
    size_t padding = btl_tcp_padding(opal_le_get32(entry->wire));
    all[count++] = (struct iovec){entry->wire, BTL_TCP_FRAME_HEADER};
    all[count++] = (struct iovec){(void *) (uintptr_t) desc->header, desc->header_len};
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        all[count++] = desc->iov[i];
    }
    all[count++] = (struct iovec){zeros, padding};
    for (unsigned i = 0; i < count; i++) {
        if (skip >= all[i].iov_len) {
            skip -= all[i].iov_len;
            continue;
        }
        iov[used++] = (struct iovec){(char *) all[i].iov_base + skip, all[i].iov_len - skip};
        skip = 0;
    }
    return used;
}

/* A frame without bytes that has to go out: into ep->ctl. Only between two frames of data. */
static void ctl_prepare(mca_btl_endpoint_t *ep)
{
    btl_tcp_frame_t frame = {.type = BTL_TCP_CONFIRM};
    frame.confirmed = atomic_load_explicit(&ep->handed, memory_order_relaxed);
    if (ep->ctl_want & BTL_TCP_WANT_GOODBYE) {
        frame.type = BTL_TCP_GOODBYE;
        ep->ctl_want = 0;
    } else {
        frame.flags = ep->ctl_want & BTL_TCP_WANT_ASK ? BTL_TCP_FLAG_CONFIRM : 0;
        ep->ctl_want = 0;
    }
    btl_tcp_frame_write(ep->ctl, &frame);
    ep->ctl_left = BTL_TCP_FRAME_HEADER;
    ep->told = frame.confirmed;
}

/* What to write next; `total` its bytes. Confirmations are stamped into frames that begin. */
static unsigned gather(mca_btl_endpoint_t *ep, struct iovec *iov, size_t *total)
{
    unsigned count = 0;
    size_t skip = ep->cursor_sent, sum = 0;
    if (ep->ctl_want == BTL_TCP_WANT_CONFIRM && ep->cursor && skip == 0 && ep->ctl_left == 0) {
        ep->ctl_want = 0; /* the next frame carries it */
    }
    if (ep->ctl_left == 0 && ep->ctl_want && skip == 0) {
        ctl_prepare(ep);
    }
    if (ep->ctl_left) {
        iov[count++] = (struct iovec){ep->ctl + BTL_TCP_FRAME_HEADER - ep->ctl_left, ep->ctl_left};
        sum = ep->ctl_left;
    }
    uint64_t handed = atomic_load_explicit(&ep->handed, memory_order_relaxed);
    for (btl_tcp_entry_t *e = ep->cursor; e && count + MCA_BTL_IOV_MAX + 3 <= SEND_PIECES &&
                                          sum < SEND_BYTES; e = e->next) {
        if (skip == 0) {
            btl_tcp_frame_stamp(e->wire, handed);
        }
        count += entry_pieces(e, skip, iov + count);
        sum += e->len - skip;
        skip = 0;
        if (ep->ctl_want && ep->ctl_left == 0) {
            break; /* end this frame first, then control goes out before the next */
        }
    }
    *total = sum;
    return count;
}

/* `n` bytes of what gather() collected are out. */
static void advance(mca_btl_endpoint_t *ep, size_t n)
{
    ep->bytes_out += n;
    if (ep->ctl_left) {
        unsigned part = n < ep->ctl_left ? (unsigned) n : ep->ctl_left;
        ep->ctl_left -= part;
        n -= part;
    }
    while (n > 0) {
        size_t left = ep->cursor->len - ep->cursor_sent;
        if (ep->cursor_sent == 0) {
            ep->told = opal_le_get64(ep->cursor->wire + 8);
        }
        if (n < left) {
            ep->cursor_sent += n;
            return;
        }
        n -= left;
        ep->cursor = ep->cursor->next;
        ep->cursor_sent = 0;
    }
}

/* Only the first `len` bytes of the pieces; how many pieces that are. */
static OPAL_COLD unsigned cut_pieces(struct iovec *iov, size_t len)
{
    unsigned count = 0;
    while (len > iov[count].iov_len) {
        len -= iov[count++].iov_len;
    }
    iov[count].iov_len = len;
    return count + 1;
}

static OPAL_COLD void write_failed(mca_btl_endpoint_t *ep, int error)
{
    ep->send_errno = error;
    ep->blocked = true; /* nothing more is tried on this connection */
    btl_tcp_kick(ep, BTL_TCP_KICK_FAILED);
}

/* Should the bytes at the cursor go in two parts? Not in a stream, which keeps both sides busy as it is. */
static inline bool in_two_parts(const mca_btl_endpoint_t *ep, size_t total)
{
    return total > SPLIT_MIN && total <= SPLIT_MAX && ep->head == ep->cursor;
}

/* One write. False: no more now, the socket is full or has failed. */
static inline bool write_out(mca_btl_endpoint_t *ep, struct iovec *iov, unsigned count, size_t total)
{
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = count};
    ssize_t n;
    do {
        n = count == 1 ? send(ep->fd, iov[0].iov_base, iov[0].iov_len, MSG_NOSIGNAL | MSG_DONTWAIT)
                       : sendmsg(ep->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (OPAL_UNLIKELY(n < 0 && errno == EINTR));
    if (OPAL_UNLIKELY(n < 0)) {
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS && errno != ENOMEM) {
            write_failed(ep, errno);
            return false;
        }
        n = 0;
    }
    advance(ep, (size_t) n);
    if (OPAL_UNLIKELY((size_t) n < total)) {
        ep->blocked = true;
        btl_tcp_kick(ep, BTL_TCP_KICK_BLOCKED);
        return false;
    }
    return true;
}

void btl_tcp_flush(mca_btl_endpoint_t *ep)
{
    struct iovec iov[SEND_PIECES];
    bool first = true;
    ep->blocked = false;
    while (ep->cursor || ep->ctl_left || ep->ctl_want) {
        size_t total;
        unsigned count = gather(ep, iov, &total);
        if (OPAL_UNLIKELY(first && in_two_parts(ep, total))) {
            count = cut_pieces(iov, SPLIT_FIRST);
            total = SPLIT_FIRST;
        }
        first = false;
        if (!write_out(ep, iov, count, total)) {
            return;
        }
    }
}

/* An answer will come. */
static inline void stay_hot(mca_btl_endpoint_t *ep)
{
    if (OPAL_UNLIKELY(!atomic_load_explicit(&ep->hot, memory_order_relaxed))) {
        btl_tcp_kick(ep, BTL_TCP_KICK_HOT);
    }
}

/* Write, unless the socket is known to be full. The usual case is one frame in an empty queue. */
static inline void push(mca_btl_endpoint_t *ep)
{
    if (OPAL_LIKELY(!ep->blocked)) {
        btl_tcp_flush(ep);
    }
    stay_hot(ep);
}

/* Write an entry alone in the queue whose payload does not stand in the chunk yet, from where the user has it. What is kept
 * is copied afterwards, while the receiver is at work. */
static void push_from(mca_btl_endpoint_t *ep, btl_tcp_entry_t *entry, size_t header_len, const void *payload,
                      size_t len)
{
    size_t head = BTL_TCP_FRAME_HEADER + header_len, padding = entry->len - head - len;
    uint8_t *data = (uint8_t *) (uintptr_t) payload, *kept = entry->wire + head;
    size_t first = in_two_parts(ep, entry->len) ? SPLIT_FIRST : len, rest = len - first;
    struct iovec begin[] = {{entry->wire, head}, {data, first}, {kept + len, padding}};
    struct iovec end[] = {{data + first, rest}, {kept + len, padding}};
    btl_tcp_frame_stamp(entry->wire, atomic_load_explicit(&ep->handed, memory_order_relaxed));
    if (rest == 0) {
        write_out(ep, begin, 3, entry->len);
    } else if (write_out(ep, begin, 2, head + first)) {
        write_out(ep, end, 2, rest + padding);
    }
    memcpy(kept, payload, len);
    stay_hot(ep);
}

/* What waits to be confirmed, and was sent without asking for it, is asked for. */
static OPAL_COLD void ask(mca_btl_endpoint_t *ep)
{
    if (ep->unasked == 0) {
        return;
    }
    ep->unasked = 0;
    if (ep->cursor && (ep->cursor != ep->tail || ep->cursor_sent == 0)) {
        btl_tcp_frame_ask(ep->tail->wire); /* a frame of its own would overtake what is queued */
    } else {
        ep->ctl_want |= BTL_TCP_WANT_ASK;
        push(ep);
    }
}

/* No room until the peer confirms something. */
static OPAL_COLD int refuse(mca_btl_endpoint_t *ep)
{
    ep->want_writable = true;
    ask(ep);
    return MCA_ERR_AGAIN;
}

/* Is the socket full, and a frame more waiting here? What is not taken another link may carry, should this one become
 * slow. Short messages, which are sent and forgotten, are taken all the same. */
static inline bool is_full(const mca_btl_endpoint_t *ep)
{
    return ep->blocked && ep->cursor && ep->cursor != ep->tail;
}

/* ---- The module's operations ---- */

int btl_tcp_send_short(mca_btl_endpoint_t *ep, const void *header, size_t header_len,
                       const void *payload, size_t len)
{
    int rc = MCA_SUCCESS;
    if (OPAL_UNLIKELY(header_len + len == 0 ||
                      header_len + len > ep->module->super.limits.short_max)) {
        return MCA_ERR_BAD_PARAM;
    }
    btl_tcp_lock(&ep->lock);
    if (OPAL_UNLIKELY(ep->state != BTL_TCP_UP)) {
        rc = not_up(ep);
        goto out;
    }
    btl_tcp_entry_t *entry = entry_room(ep, header_len + len);
    if (OPAL_UNLIKELY(!entry)) {
        rc = refuse(ep);
        goto out;
    }
    memcpy(entry->wire + BTL_TCP_FRAME_HEADER, header, header_len);
    bool direct = len >= KEEP_AFTER_MIN && !ep->cursor && !ep->blocked && !ep->ctl_left && !ep->ctl_want;
    if (!direct && len > 0) {
        memcpy(entry->wire + BTL_TCP_FRAME_HEADER + header_len, payload, len);
    }
    entry_queue(ep, entry, header_len + len);
    if (direct) {
        push_from(ep, entry, header_len, payload, len);
    } else {
        push(ep);
    }
out:
    btl_tcp_unlock(&ep->lock);
    return rc;
}

int btl_tcp_reserve(mca_btl_endpoint_t *ep, size_t min, size_t want, mca_btl_room_t *room)
{
    int rc;
    if (OPAL_UNLIKELY(min == 0 || min > want || min > ep->module->super.limits.max_frag)) {
        return MCA_ERR_BAD_PARAM;
    }
    btl_tcp_lock(&ep->lock);
    if (OPAL_UNLIKELY(ep->state != BTL_TCP_UP)) {
        rc = not_up(ep);
        goto fail;
    }
    size_t most = min > (size_t) ROOM_MIN ? min : (size_t) ROOM_MIN;
    size_t len = want < most ? want : most;
    bool full = is_full(ep);
    btl_tcp_entry_t *entry = full ? NULL : entry_room(ep, len);
    if (!entry && !full && len > min) {
        len = min;
        entry = entry_room(ep, len);
    }
    if (!entry) {
        rc = refuse(ep);
        goto fail;
    }
    room->ptr = entry->wire + BTL_TCP_FRAME_HEADER;
    room->len = len;
    room->token[0] = (uintptr_t) entry;
    return MCA_SUCCESS; /* the lock stays until commit */
fail:
    btl_tcp_unlock(&ep->lock);
    return rc;
}

void btl_tcp_commit(mca_btl_endpoint_t *ep, mca_btl_room_t *room, size_t len)
{
    btl_tcp_entry_t *entry = (btl_tcp_entry_t *) (uintptr_t) room->token[0];
    if (len > 0) {
        entry_queue(ep, entry, len);
        push(ep);
    }
    btl_tcp_unlock(&ep->lock);
}

int btl_tcp_send(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc)
{
    int rc = 0;
    btl_tcp_entry_t *entry = (btl_tcp_entry_t *) (void *) desc->btl_private;
    size_t len = desc->header_len;
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        len += desc->iov[i].iov_len;
    }
    if (OPAL_UNLIKELY(len == 0 || len > ep->module->super.limits.max_frag)) {
        return MCA_ERR_BAD_PARAM;
    }
    btl_tcp_lock(&ep->lock);
    if (OPAL_UNLIKELY(ep->state != BTL_TCP_UP)) {
        rc = not_up(ep);
        goto out;
    }
    if (OPAL_UNLIKELY(is_full(ep) ||
                      (ep->lent > 0 && ep->lent + len > BTL_TCP_LENT_WINDOWS * mca_btl_tcp.params.window))) {
        rc = refuse(ep);
        goto out;
    }
    btl_tcp_frame_t frame = {.len = (uint32_t) len, .type = BTL_TCP_DATA};
    frame.flags = frame_flags(ep, len, true);
    ep->lent += len;
    btl_tcp_frame_write(entry->wire, &frame);
    entry->len = (uint32_t) btl_tcp_frame_size(len);
    entry->kind = BTL_TCP_ENTRY_DESC;
    entry->desc = desc;
    append(ep, entry);
    push(ep);
out:
    btl_tcp_unlock(&ep->lock);
    return rc;
}

bool btl_tcp_idle(mca_btl_module_t *module, mca_btl_endpoint_t *ep)
{
    (void) module;
    btl_tcp_lock(&ep->lock);
    bool idle = !ep->head;
    if (!idle && ep->state == BTL_TCP_UP) {
        ask(ep);
    }
    btl_tcp_unlock(&ep->lock);
    return idle;
}

/* ---- Confirmation and failure ---- */

/* Pop entries of which the peer says that it has them; those of descriptors are returned. NULL and
 * false in *valid if it can't have them. */
static btl_tcp_entry_t *pop_confirmed(mca_btl_endpoint_t *ep, uint64_t count, bool *valid)
{
    btl_tcp_entry_t *done = NULL, **end = &done;
    *valid = count - ep->confirmed <= ep->frames_out - ep->confirmed;
    if (!*valid) {
        return NULL;
    }
    while (ep->confirmed != count) {
        btl_tcp_entry_t *entry = ep->head;
        if (!entry || entry == ep->cursor) {
            *valid = false;
            break;
        }
        ep->head = entry->next;
        ep->confirmed++;
        if (entry->kind == BTL_TCP_ENTRY_DESC) {
            ep->lent -= opal_le_get32(entry->wire);
            *end = entry;
            end = &entry->next;
        } else {
            ep->kept -= btl_tcp_entry_size(opal_le_get32(entry->wire));
            entry_free(ep, entry);
        }
    }
    *end = NULL;
    if (!ep->head) {
        ep->tail = NULL;
    }
    return done;
}

void btl_tcp_rewind(mca_btl_endpoint_t *ep)
{
    ep->blocked = false;
    ep->cursor = ep->head;
    ep->cursor_sent = 0;
    ep->ctl_want = ep->ctl_left = 0;
    ep->unasked = ep->kept; /* which of them asked is not known any more */
}

bool btl_tcp_is_writable(mca_btl_endpoint_t *ep)
{
    const btl_tcp_params_t *p = &mca_btl_tcp.params;
    if (OPAL_LIKELY(!ep->want_writable) || is_full(ep) || ep->kept > p->keep_limit / 2 ||
        ep->lent > BTL_TCP_LENT_WINDOWS / 2 * p->window) {
        return false;
    }
    ep->want_writable = false;
    return true;
}

bool btl_tcp_confirmed(mca_btl_endpoint_t *ep, uint64_t count)
{
    if (OPAL_LIKELY(count == ep->confirmed)) {
        return true;
    }
    bool valid;
    btl_tcp_lock(&ep->lock);
    btl_tcp_entry_t *done = pop_confirmed(ep, count, &valid);
    bool writable = btl_tcp_is_writable(ep);
    btl_tcp_unlock(&ep->lock);
    for (btl_tcp_entry_t *next; done; done = next) {
        next = done->next;
        done->desc->event(done->desc, MCA_BTL_CONFIRMED, MCA_SUCCESS);
    }
    if (writable && !ep->deleted) {
        ep->module->super.upcalls->writable(ep->cookie, ep);
    }
    return valid;
}

void btl_tcp_hand_back(mca_btl_endpoint_t *ep, btl_tcp_entry_t *list, int status)
{
    for (btl_tcp_entry_t *entry = list, *next; entry; entry = next) {
        next = entry->next;
        if (entry->kind == BTL_TCP_ENTRY_DESC) {
            entry->desc->event(entry->desc, MCA_BTL_UNCONFIRMED, status);
            continue;
        }
        if (entry->kind == BTL_TCP_ENTRY_KEPT && !ep->deleted) {
            ep->module->super.upcalls->returned(ep->cookie, ep, entry->wire + BTL_TCP_FRAME_HEADER,
                                                opal_le_get32(entry->wire), status);
        }
        btl_tcp_chunk_t *chunk = entry->chunk;
        if (--chunk->live == 0) {
            btl_tcp_chunk_put(chunk);
        }
    }
}
