/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The sending half of an endpoint: room, datagrams, and what the peer says it has read. */
#include "ompi/mca/btl/udp/btl_udp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "opal/util/socket_call.h"

enum {
    START = BTL_UDP_HEADER + BTL_UDP_CODED_DATA, /* what is copied of each datagram */
    SMALL = 2048,               /* data of a datagram that is copied whole: so much is faster copied
                                   than described to the kernel as a second piece */
    TRIES = 4,                  /* of a call that fails for something that befell another datagram */
    WIRE_MAX = 65507 - BTL_UDP_HEADER, /* bytes that one call with UDP_SEGMENT takes */
    PIECES_MAX = MCA_BTL_IOV_MAX + 1,
    IOV_MAX_GROUP = 2 * BTL_UDP_SEGMENTS_MAX + PIECES_MAX,
};

/* ---- What is sent: pieces of the user's memory ---- */

typedef struct source {
    struct iovec iov[PIECES_MAX];
    unsigned count, next;
    size_t len;
} source_t;

static inline void source_add(source_t *source, const void *data, size_t len)
{
    if (len > 0) {
        source->iov[source->count++] = (struct iovec){(void *) (uintptr_t) data, len};
        source->len += len;
    }
}

static inline struct iovec source_take(source_t *source, size_t len)
{
    struct iovec *piece = &source->iov[source->next];
    struct iovec part = {piece->iov_base, len < piece->iov_len ? len : piece->iov_len};
    piece->iov_base = (char *) piece->iov_base + part.iov_len;
    piece->iov_len -= part.iov_len;
    source->next += piece->iov_len == 0;
    return part;
}

static inline void source_copy(source_t *source, uint8_t *to, size_t len)
{
    while (len > 0) {
        struct iovec part = source_take(source, len);
        memcpy(to, part.iov_base, part.iov_len);
        to += part.iov_len;
        len -= part.iov_len;
    }
}

/* ---- Datagrams ---- */

/* The fields that do not depend on what is sent; they say how far we have read. */
static inline void header_fill(mca_btl_endpoint_t *ep, btl_udp_header_t *h)
{
    const btl_udp_module_t *m = ep->module;
    h->from = mca_btl_udp.services->job->self;
    h->epoch = ep->epoch;
    h->peer_epoch = atomic_load_explicit(&ep->peer_epoch, memory_order_relaxed);
    h->nif = (uint8_t) m->nif;
    for (int id = 0; id < BTL_UDP_CHANNELS; id++) {
        btl_udp_channel_t *ch = &ep->channel[id];
        uint32_t in = atomic_load_explicit(&ch->in, memory_order_relaxed);
        h->seen[id] = in;
        h->room[id] = atomic_load_explicit(&m->room[id], memory_order_relaxed);
        atomic_store_explicit(&ch->told, in, memory_order_relaxed);
    }
}

/* One datagram of `len` bytes from the source: its header and first bytes, `most` of these, at
 * `start`, then pieces. Its number of pieces. */
static inline unsigned datagram_build(mca_btl_endpoint_t *ep, const btl_udp_header_t *h,
                                      source_t *source, size_t len, size_t most, uint8_t *start,
                                      struct iovec *iov)
{
    unsigned count = 1;
    size_t copied = len < most ? len : most;
    btl_udp_header_write(start, h);
    source_copy(source, start + BTL_UDP_HEADER, copied);
    opal_le_put64(start, btl_udp_code(&ep->key_out, start, len));
    iov[0] = (struct iovec){start, BTL_UDP_HEADER + copied};
    for (size_t left = len - copied; left > 0; left -= iov[count++].iov_len) {
        iov[count] = source_take(source, left);
    }
    return count;
}

typedef enum { PUT_DONE, PUT_FULL, PUT_TOO_LARGE, PUT_NO_OFFLOAD, PUT_NO_WAY } put_t;

static put_t put_failed(mca_btl_endpoint_t *ep, int error)
{
    switch (error) {
    case EAGAIN:
    case ENOBUFS:
    case ENOMEM:
        return PUT_FULL;
    case EPERM: /* a packet filter dropped it: lost on the way, if a short one */
        return PUT_DONE;
    case EMSGSIZE:
    case EINVAL: /* with UDP_SEGMENT: datagrams larger than the path's */
        return PUT_TOO_LARGE;
    case EIO:
        return PUT_NO_OFFLOAD;
    default:
        ep->error = error;
        return PUT_NO_WAY;
    }
}

/* A call was told of a datagram before: the socket has the rest of it, and what came after it. */
static inline void note_error(mca_btl_endpoint_t *ep)
{
    atomic_store_explicit(&ep->module->erred, true, memory_order_relaxed);
}

static inline put_t put(mca_btl_endpoint_t *ep, int fd, const struct msghdr *msg)
{
    for (int i = 1;; i++) {
        if (OPAL_LIKELY(opal_sendmsg(fd, msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)) {
            return PUT_DONE;
        }
        put_t result = put_failed(ep, errno);
        if (result != PUT_NO_WAY || i == TRIES) {
            return result;
        }
        note_error(ep);
    }
}

/* The same for a datagram in one piece. */
static inline put_t put_piece(mca_btl_endpoint_t *ep, btl_udp_channel_id_t id, void *data,
                              size_t len)
{
    const struct sockaddr *to = (const struct sockaddr *) &ep->addr[id];
    int fd = ep->module->socket[id].fd;
    if (OPAL_LIKELY(opal_sendto(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL, to,
                                ep->addr_len[id]) >= 0)) {
        return PUT_DONE;
    }
    if (put_failed(ep, errno) == PUT_NO_WAY) {
        note_error(ep);
    }
    struct iovec iov = {data, len};
    const struct msghdr msg = {.msg_name = &ep->addr[id], .msg_namelen = ep->addr_len[id],
                               .msg_iov = &iov, .msg_iovlen = 1};
    return put(ep, fd, &msg);
}

/* ---- The path's datagrams ---- */

/* The MTU of the path to the peer as the kernel knows it; 0: it does not say. */
static uint32_t path_mtu(const mca_btl_endpoint_t *ep)
{
    const struct sockaddr *to = (const struct sockaddr *) &ep->addr[BTL_UDP_LONG];
    bool ipv6 = to->sa_family == AF_INET6;
    int mtu = 0, fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t len = sizeof(mtu);
    if (fd >= 0 && (connect(fd, to, ep->addr_len[BTL_UDP_LONG]) != 0 ||
                    getsockopt(fd, ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, ipv6 ? IPV6_MTU : IP_MTU, &mtu,
                               &len) != 0)) {
        mtu = 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    return mtu > BTL_UDP_MTU_MIN ? (uint32_t) mtu : 0;
}

bool btl_udp_shrink(mca_btl_endpoint_t *ep)
{
    bool ipv6 = ep->addr[BTL_UDP_LONG].ss_family == AF_INET6;
    uint32_t mtu = path_mtu(ep), seg = 0;
    size_t max_frag = ep->module->super.limits.max_frag;
    if (mtu > 0) {
        seg = btl_udp_segment_of(btl_udp_datagram_of(mtu, ipv6));
    }
    if (seg == 0 || seg >= ep->seg || btl_udp_segments((uint32_t) max_frag, seg) >
                                          BTL_UDP_SEGMENTS_MAX) {
        return false;
    }
    BTL_UDP_LOG(MCA_LOG_DEBUG, "%s: packets to rank %u are at most %u bytes",
                ep->module->super.name, (uint32_t) ep->name, mtu);
    ep->seg = seg;
    return true;
}

/* ---- Room ---- */

static inline uint32_t charge(uint32_t len, unsigned datagrams)
{
    return len + datagrams * (BTL_UDP_HEADER + BTL_UDP_CHARGE);
}

bool btl_udp_outstanding(const mca_btl_endpoint_t *ep)
{
    return ep->channel[BTL_UDP_SHORT].sent != ep->channel[BTL_UDP_SHORT].seen ||
           ep->channel[BTL_UDP_LONG].sent != ep->channel[BTL_UDP_LONG].seen;
}

/* A datagram without data; under the lock. Losing it is no harm. */
static void control(mca_btl_endpoint_t *ep, btl_udp_type_t type)
{
    uint8_t out[BTL_UDP_HEADER];
    btl_udp_header_t h = {.type = (uint8_t) type};
    if (ep->addr_len[BTL_UDP_SHORT] == 0) {
        return;
    }
    header_fill(ep, &h);
    h.at = ep->channel[BTL_UDP_SHORT].sent;
    h.number = ep->channel[BTL_UDP_LONG].sent;
    btl_udp_header_write(out, &h);
    opal_le_put64(out, btl_udp_code(&ep->key_out, out, 0));
    if (put_piece(ep, BTL_UDP_SHORT, out, sizeof(out)) == PUT_NO_WAY) {
        btl_udp_kick(ep, BTL_UDP_KICK_ERROR);
    }
}

void btl_udp_control(mca_btl_endpoint_t *ep, btl_udp_type_t type)
{
    btl_udp_lock(&ep->lock);
    control(ep, type);
    btl_udp_unlock(&ep->lock);
}

void btl_udp_ask(mca_btl_endpoint_t *ep)
{
    btl_udp_channel_t *s = &ep->channel[BTL_UDP_SHORT], *l = &ep->channel[BTL_UDP_LONG];
    if (s->asked != s->sent || l->asked != l->sent) {
        s->asked = s->sent;
        l->asked = l->sent;
        control(ep, BTL_UDP_PROBE);
    }
    btl_udp_kick(ep, BTL_UDP_KICK_CARE);
}

static OPAL_COLD int refuse(mca_btl_endpoint_t *ep)
{
    ep->want_writable = true;
    btl_udp_ask(ep);
    return MCA_ERR_AGAIN;
}

static OPAL_COLD int refuse_full(mca_btl_endpoint_t *ep)
{
    ep->want_writable = ep->full = true;
    btl_udp_kick(ep, BTL_UDP_KICK_FULL);
    return MCA_ERR_AGAIN;
}

/* The channel of a fragment that must be no longer than `max` for the short one. What was copied here is copied there, too, most likely: the
 * long channel's question for its place would be in vain. */
static inline btl_udp_channel_id_t channel_of(const mca_btl_endpoint_t *ep, size_t len, size_t max)
{
    return len <= max && len <= ep->seg ? BTL_UDP_SHORT : BTL_UDP_LONG;
}

/* May `len` bytes go now? MCA_SUCCESS, or why not. */
static inline int admit(mca_btl_endpoint_t *ep, size_t len, btl_udp_channel_id_t id)
{
    btl_udp_channel_t *ch = &ep->channel[id];
    if (OPAL_UNLIKELY(ep->down || ep->deleted || ep->module->closed)) {
        return MCA_ERR_UNREACHABLE;
    }
    if (OPAL_UNLIKELY(ep->full || ep->addr_len[id] == 0)) {
        ep->want_writable = true;
        btl_udp_kick(ep, BTL_UDP_KICK_CARE);
        return MCA_ERR_AGAIN;
    }
    uint32_t under_way = ch->sent - ch->seen;
    uint32_t cost = charge((uint32_t) len, btl_udp_segments((uint32_t) len, ep->seg));
    if (OPAL_UNLIKELY(under_way > 0 && under_way + cost > ch->room)) {
        if (!ep->one_more) {
            return refuse(ep);
        }
        ep->one_more = false;
    }
    return MCA_SUCCESS;
}

/* ---- Fragments ---- */

/* The position behind a datagram; does it ask for a report? Often enough that the answer comes
 * before we must stop. */
static inline void advance(btl_udp_channel_t *ch, btl_udp_header_t *h, uint32_t len, bool last)
{
    ch->sent += charge(len, 1);
    h->at = ch->sent;
    if (last && ch->sent - ch->asked >= ch->room / 3) {
        ch->asked = ch->sent;
        h->flags |= BTL_UDP_FLAG_ASK;
    }
}

static inline put_t send_single(mca_btl_endpoint_t *ep, btl_udp_channel_id_t id, source_t *source)
{
    uint8_t start[BTL_UDP_HEADER + SMALL];
    struct iovec iov[PIECES_MAX + 1];
    btl_udp_channel_t *ch = &ep->channel[id];
    btl_udp_header_t h = {.type = BTL_UDP_DATA, .len = (uint32_t) source->len,
                          .seg = (uint16_t) ep->seg, .number = ch->number++,
                          .flags = id == BTL_UDP_LONG ? BTL_UDP_FLAG_LONG : 0};
    advance(ch, &h, h.len, true);
    header_fill(ep, &h);
    size_t copied = source->len <= SMALL ? SMALL : BTL_UDP_CODED_DATA;
    unsigned count = datagram_build(ep, &h, source, source->len, copied, start, iov);
    if (OPAL_LIKELY(count == 1)) {
        return put_piece(ep, id, start, iov[0].iov_len);
    }
    const struct msghdr msg = {.msg_name = &ep->addr[id], .msg_namelen = ep->addr_len[id],
                               .msg_iov = iov, .msg_iovlen = count};
    return put(ep, ep->module->socket[id].fd, &msg);
}

/* Datagrams built for one call, or one after the other. */
typedef struct group {
    uint8_t start[BTL_UDP_SEGMENTS_MAX][START];
    struct iovec iov[IOV_MAX_GROUP];
    unsigned first[BTL_UDP_SEGMENTS_MAX + 1]; /* piece of each datagram */
    unsigned datagrams;
} group_t;

/* The kernel cuts. */
static put_t group_put_whole(mca_btl_endpoint_t *ep, const group_t *g, uint16_t size)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(uint16_t))];
    } control = {0};
    struct msghdr msg = {.msg_name = &ep->addr[BTL_UDP_LONG],
                         .msg_namelen = ep->addr_len[BTL_UDP_LONG],
                         .msg_iov = (struct iovec *) (uintptr_t) g->iov,
                         .msg_iovlen = g->first[g->datagrams],
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof(control.bytes)};
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
    cmsg->cmsg_level = IPPROTO_UDP;
    cmsg->cmsg_type = UDP_SEGMENT;
    cmsg->cmsg_len = CMSG_LEN(sizeof(size));
    memcpy(CMSG_DATA(cmsg), &size, sizeof(size));
    return put(ep, ep->module->socket[BTL_UDP_LONG].fd, &msg);
}

/* We cut. The socket may be full after some of them: then the rest is tried as often as something
 * goes, and what has gone is lost. */
static put_t group_put_each(mca_btl_endpoint_t *ep, group_t *g)
{
    struct mmsghdr list[BTL_UDP_SEGMENTS_MAX] = {0};
    int fd = ep->module->socket[BTL_UDP_LONG].fd;
    for (unsigned i = 0; i < g->datagrams; i++) {
        list[i].msg_hdr = (struct msghdr){.msg_name = &ep->addr[BTL_UDP_LONG],
                                          .msg_namelen = ep->addr_len[BTL_UDP_LONG],
                                          .msg_iov = &g->iov[g->first[i]],
                                          .msg_iovlen = g->first[i + 1] - g->first[i]};
    }
    for (unsigned at = 0; at < g->datagrams;) {
        int n = sendmmsg(fd, list + at, g->datagrams - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n <= 0) {
            put_t result = put(ep, fd, &list[at].msg_hdr);
            if (result != PUT_DONE) {
                return result;
            }
            n = 1;
        }
        at += (unsigned) n;
    }
    return PUT_DONE;
}

static put_t send_segmented(mca_btl_endpoint_t *ep, source_t *source)
{
    group_t g;
    btl_udp_channel_t *ch = &ep->channel[BTL_UDP_LONG];
    unsigned count = btl_udp_segments((uint32_t) source->len, ep->seg);
    unsigned size = BTL_UDP_HEADER + ep->seg, at_once = WIRE_MAX / size;
    btl_udp_header_t h = {.type = BTL_UDP_DATA, .flags = BTL_UDP_FLAG_LONG, .number = ch->number++,
                          .len = (uint32_t) source->len, .seg = (uint16_t) ep->seg};
    put_t result = PUT_DONE;
    header_fill(ep, &h);
    for (unsigned i = 0; i < count && result == PUT_DONE;) {
        g.first[0] = g.datagrams = 0;
        for (; i < count && g.datagrams < at_once; i++) {
            uint32_t len = btl_udp_segment_len(h.len, h.seg, i);
            h.index = (uint16_t) i;
            advance(ch, &h, len, i + 1 == count);
            unsigned piece = g.first[g.datagrams];
            piece += datagram_build(ep, &h, source, len, BTL_UDP_CODED_DATA,
                                    g.start[g.datagrams], g.iov + piece);
            g.first[++g.datagrams] = piece;
        }
        result = atomic_load_explicit(&ep->module->gso, memory_order_relaxed) && g.datagrams > 1
                     ? group_put_whole(ep, &g, (uint16_t) size)
                     : group_put_each(ep, &g);
    }
    return result;
}

/* A fragment, for which there is room. MCA_ERR_AGAIN: not gone, and told when it may be tried. */
static inline int transmit(mca_btl_endpoint_t *ep, btl_udp_channel_id_t id, const source_t *source)
{
    atomic_store_explicit(&ep->farewell, false, memory_order_relaxed);
    atomic_store_explicit(&ep->given_up, false, memory_order_relaxed);
    for (;;) {
        source_t copy = *source;
        put_t result = copy.len <= ep->seg ? send_single(ep, id, &copy) : send_segmented(ep, &copy);
        if (OPAL_LIKELY(result == PUT_DONE)) {
            btl_udp_heat(ep->module);
            return MCA_SUCCESS;
        }
        bool again = false;
        if (result == PUT_TOO_LARGE) {
            again = btl_udp_shrink(ep);
            id = BTL_UDP_LONG;
        } else if (result == PUT_NO_OFFLOAD) {
            again = atomic_exchange(&ep->module->gso, false);
        } else if (result == PUT_FULL) {
            return refuse_full(ep);
        }
        if (!again) {
            ep->error = result == PUT_NO_WAY ? ep->error : EMSGSIZE;
            btl_udp_kick(ep, BTL_UDP_KICK_ERROR);
            ep->want_writable = true;
            return MCA_ERR_AGAIN;
        }
    }
}

/* ---- The module's operations ---- */

int btl_udp_send_short(mca_btl_endpoint_t *ep, const void *header, size_t header_len,
                       const void *payload, size_t len)
{
    source_t source = {.count = 0};
    if (OPAL_UNLIKELY(header_len + len == 0 ||
                      header_len + len > ep->module->super.limits.short_max)) {
        return MCA_ERR_BAD_PARAM;
    }
    source_add(&source, header, header_len);
    source_add(&source, payload, len);
    btl_udp_lock(&ep->lock);
    btl_udp_channel_id_t id = channel_of(ep, source.len, BTL_UDP_FRAG_MAX);
    int rc = admit(ep, source.len, id);
    if (OPAL_LIKELY(rc == MCA_SUCCESS)) {
        rc = transmit(ep, id, &source);
    }
    btl_udp_unlock(&ep->lock);
    return rc;
}

int btl_udp_send(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc)
{
    source_t source = {.count = 0};
    source_add(&source, desc->header, desc->header_len);
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        source_add(&source, desc->iov[i].iov_base, desc->iov[i].iov_len);
    }
    if (OPAL_UNLIKELY(source.len == 0 || source.len > ep->module->super.limits.max_frag)) {
        return MCA_ERR_BAD_PARAM;
    }
    btl_udp_lock(&ep->lock);
    btl_udp_channel_id_t id = channel_of(ep, source.len, BTL_UDP_SHORT_BYTES);
    int rc = admit(ep, source.len, id);
    if (OPAL_LIKELY(rc == MCA_SUCCESS)) {
        rc = transmit(ep, id, &source);
    }
    btl_udp_unlock(&ep->lock);
    return rc == MCA_SUCCESS ? 1 : rc; /* the kernel has it all */
}

int btl_udp_reserve(mca_btl_endpoint_t *ep, size_t min, size_t want, mca_btl_room_t *room)
{
    size_t max = ep->module->super.limits.max_frag;
    if (OPAL_UNLIKELY(min == 0 || min > want || min > max)) {
        return MCA_ERR_BAD_PARAM;
    }
    btl_udp_lock(&ep->lock);
    size_t len = want < max ? want : max;
    bool wanted = ep->want_writable;
    int rc = admit(ep, len, channel_of(ep, len, BTL_UDP_FRAG_MAX));
    if (rc == MCA_ERR_AGAIN && !ep->full && len > min) {
        len = min;
        rc = admit(ep, len, channel_of(ep, len, BTL_UDP_FRAG_MAX));
        ep->want_writable = wanted || rc == MCA_ERR_AGAIN;
    }
    if (rc == MCA_SUCCESS) {
        ep->lent = btl_udp_rbuf_get();
        rc = ep->lent ? MCA_SUCCESS : MCA_ERR_OUT_OF_RESOURCE;
    }
    if (rc != MCA_SUCCESS) {
        btl_udp_unlock(&ep->lock);
        return rc;
    }
    *room = (mca_btl_room_t){.ptr = ep->lent->data, .len = len};
    return MCA_SUCCESS; /* the lock stays until commit */
}

static int transmit_room(mca_btl_endpoint_t *ep, const btl_udp_rbuf_t *rbuf, size_t len)
{
    source_t source = {.count = 0};
    source_add(&source, rbuf->data, len);
    return transmit(ep, channel_of(ep, len, BTL_UDP_FRAG_MAX), &source);
}

void btl_udp_commit(mca_btl_endpoint_t *ep, mca_btl_room_t *room, size_t len)
{
    (void) room;
    if (len > 0 && (ep->addr_len[BTL_UDP_SHORT] == 0 || ep->addr_len[BTL_UDP_LONG] == 0 ||
                    transmit_room(ep, ep->lent, len) != MCA_SUCCESS)) {
        ep->pending = ep->lent; /* taken all the same; nothing more is until it has gone */
        ep->pending_len = len;
        refuse_full(ep);
    } else {
        btl_udp_rbuf_unref(ep->lent);
    }
    ep->lent = NULL;
    btl_udp_unlock(&ep->lock);
}

bool btl_udp_retry(mca_btl_endpoint_t *ep)
{
    bool gone = true;
    btl_udp_lock(&ep->lock);
    ep->full = false;
    if (ep->pending) {
        gone = ep->addr_len[BTL_UDP_LONG] > 0 &&
               transmit_room(ep, ep->pending, ep->pending_len) == MCA_SUCCESS;
    } else {
        struct pollfd fds[BTL_UDP_CHANNELS] = {
            {ep->module->socket[BTL_UDP_SHORT].fd, POLLOUT, 0},
            {ep->module->socket[BTL_UDP_LONG].fd, POLLOUT, 0}};
        gone = poll(fds, BTL_UDP_CHANNELS, 0) == BTL_UDP_CHANNELS;
    }
    if (gone && ep->pending) {
        btl_udp_rbuf_unref(ep->pending);
        ep->pending = NULL;
    }
    ep->full = !gone;
    btl_udp_unlock(&ep->lock);
    return gone;
}

/* ---- The peer's reports ---- */

/* Did somebody wait for room, and is there enough now? Under the lock. */
static inline bool is_writable(const mca_btl_endpoint_t *ep)
{
    for (int id = 0; id < BTL_UDP_CHANNELS; id++) {
        const btl_udp_channel_t *ch = &ep->channel[id];
        uint32_t under_way = ch->sent - ch->seen;
        if (under_way > ch->room / 2) {
            return false;
        }
    }
    return !ep->full;
}

void btl_udp_seen(mca_btl_endpoint_t *ep, const btl_udp_header_t *h)
{
    bool writable = false;
    if (h->peer_epoch != ep->epoch) {
        return; /* it speaks of an earlier endpoint, or of none */
    }
    btl_udp_lock(&ep->lock);
    for (int id = 0; id < BTL_UDP_CHANNELS; id++) {
        btl_udp_channel_t *ch = &ep->channel[id];
        if (h->seen[id] - ch->seen <= ch->sent - ch->seen) { /* else it is an old one */
            ch->seen = h->seen[id];
            ch->room = (uint32_t) h->room[id] << 10;
        }
    }
    if (OPAL_UNLIKELY(ep->want_writable) && is_writable(ep)) {
        ep->want_writable = ep->one_more = false;
        writable = true;
    }
    btl_udp_unlock(&ep->lock);
    if (writable && !ep->deleted) {
        ep->module->super.upcalls->writable(ep->cookie, ep);
    }
}
