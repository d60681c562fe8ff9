/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading: datagrams are authenticated, sorted to their endpoints and handed up. The short channel
 * is read in batches. In the long one large datagrams are peeked at, so that their payload is read
 * to its place by the kernel; small ones come joined to large reads, and are copied from there.
 */
#include "ompi/mca/btl/udp/btl_udp.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include "ompi/mca/btl/base/btl_base_keep.h"
#include "ompi/mca/btl/base/btl_base_place.h"
#include "opal/util/socket_call.h"

enum {
    READS_PER_VISIT = 8,         /* of the long channel; then others have their turn */
    DRAIN_READS = 256,           /* of the long channel when a peer wants to know how far we are */
    ERRORS_PER_VISIT = 64,
    HEAD = BTL_UDP_HEADER + MCA_BTL_HEADER_MAX, /* what is peeked at */
    ROUND_NS = 20 * 1000 * 1000, /* of counting who sends */
    ROOM_MIN_KIB = 4,
};

_Static_assert((int) MCA_BTL_HEADER_MAX <= (int) BTL_UDP_CODED_DATA, "what users call a header is authentic");

/* ---- keep and release ---- */

int btl_udp_keep(mca_btl_arrival_t *arrival)
{
    btl_udp_rbuf_t *rbuf = (btl_udp_rbuf_t *) (uintptr_t) arrival->token[0];
    uint32_t total = atomic_load_explicit(&mca_btl_udp.rbuf_total, memory_order_relaxed);
    bool held =
        rbuf && arrival->len >= BTL_UDP_KEEP_COPY && total <= BTL_UDP_PINNED_MAX;
    return mca_btl_base_keep(arrival, held ? &rbuf->refs : NULL);
}

void btl_udp_release(mca_btl_arrival_t *arrival)
{
    if (!mca_btl_base_release(arrival)) {
        btl_udp_rbuf_unref((btl_udp_rbuf_t *) (uintptr_t) arrival->token[0]);
    }
}

/* ---- Who sends, and how much each may ---- */

void btl_udp_grant(btl_udp_module_t *m, btl_udp_channel_id_t id, unsigned senders)
{
    uint64_t kib = (m->socket[id].budget / (senders > 0 ? senders : 1)) >> 10;
    uint64_t most = mca_btl_udp.params.window >> 10;
    kib = kib < most ? kib : most;
    kib = kib > ROOM_MIN_KIB ? kib : ROOM_MIN_KIB;
    atomic_store_explicit(&m->room[id], (uint16_t) kib, memory_order_relaxed);
}

static inline void count_sender(mca_btl_endpoint_t *ep)
{
    if (ep->round != ep->module->round) {
        ep->round = ep->module->round;
        ep->module->senders++;
    }
}

static void report(mca_btl_endpoint_t *ep)
{
    btl_udp_module_t *m = ep->module;
    uint64_t now = mca_btl_udp.services->now_ns();
    if (now - m->round_ns > ROUND_NS || m->senders > m->senders_before) {
        unsigned senders = m->senders > m->senders_before ? m->senders : m->senders_before;
        for (int id = 0; id < BTL_UDP_CHANNELS; id++) {
            btl_udp_grant(m, (btl_udp_channel_id_t) id, senders);
        }
    }
    if (now - m->round_ns > ROUND_NS) {
        m->round_ns = now;
        m->senders_before = m->senders;
        m->senders = 0;
        m->round++;
    }
    btl_udp_control(ep, BTL_UDP_REPORT);
}

/* ---- Authenticity ---- */

/* Where a datagram stands, and where it came from. */
typedef struct datagram {
    const uint8_t *bytes;
    size_t len;
    btl_udp_channel_id_t channel;
    const struct sockaddr_storage *from;
    socklen_t from_len;
    btl_udp_rbuf_t *rbuf;        /* in which `bytes` are; NULL: in memory that is used again */
} datagram_t;

static OPAL_COLD mca_btl_endpoint_t *stranger(btl_udp_module_t *m)
{
    atomic_fetch_add_explicit(&m->strangers, 1, memory_order_relaxed);
    return NULL;
}

/* The first word from a process: it must know the secret before anything is made for it. */
static OPAL_COLD mca_btl_endpoint_t *newcomer(btl_udp_module_t *m, const btl_udp_header_t *h,
                                              const datagram_t *d)
{
    const mca_btl_job_t *job = mca_btl_udp.services->job;
    bool ours = h->from >> 32 == job->self >> 32;
    opal_siphash_key_t key;
    if (h->from == job->self || (ours && (uint32_t) h->from >= job->size) ||
        (h->type != BTL_UDP_DATA && h->type != BTL_UDP_PROBE)) {
        return stranger(m);
    }
    btl_udp_key(job->secret, h->from, h->nif, job->self, m->nif, &key);
    if (btl_udp_code(&key, d->bytes, d->len - BTL_UDP_HEADER) != opal_le_get64(d->bytes)) {
        return stranger(m);
    }
    return btl_udp_endpoint_incoming(m, h->from, h->nif);
}

/* Whose datagram it is, if it is authentic; NULL: nobody's. At least HEAD bytes of it, or all, stand
 * at d->bytes. */
static inline mca_btl_endpoint_t *authenticate(btl_udp_module_t *m, const datagram_t *d,
                                               btl_udp_header_t *h)
{
    if (OPAL_UNLIKELY(!btl_udp_header_read(d->bytes, d->len, h) ||
                      (d->channel == BTL_UDP_LONG) != !!(h->flags & BTL_UDP_FLAG_LONG))) {
        return stranger(m);
    }
    mca_btl_endpoint_t *ep = btl_udp_endpoint_find(m, h->from);
    if (OPAL_UNLIKELY(!ep)) {
        return newcomer(m, h, d);
    }
    if (OPAL_UNLIKELY(ep->peer_if != h->nif ||
                      btl_udp_code(&ep->key_in, d->bytes, d->len - BTL_UDP_HEADER) !=
                          opal_le_get64(d->bytes))) {
        return stranger(m);
    }
    return ep;
}

/* ---- Sorting ---- */

/* The peer's endpoint is another one than before. */
static OPAL_COLD void new_epoch(mca_btl_endpoint_t *ep, uint32_t epoch)
{
    btl_udp_parts_expire(ep, UINT64_MAX);
    for (int id = 0; id < BTL_UDP_CHANNELS; id++) {
        btl_udp_channel_t *ch = &ep->channel[id];
        ch->started = false;
        atomic_store_explicit(&ch->in, 0, memory_order_relaxed);
        atomic_store_explicit(&ch->told, 0, memory_order_relaxed);
    }
    atomic_store_explicit(&ep->peer_epoch, epoch, memory_order_relaxed);
}

static OPAL_COLD void learn_address(mca_btl_endpoint_t *ep, const datagram_t *d)
{
    btl_udp_lock(&ep->lock);
    if (ep->addr_len[d->channel] == 0) {
        memcpy(&ep->addr[d->channel], d->from, d->from_len);
        ep->addr_len[d->channel] = d->from_len;
    }
    btl_udp_unlock(&ep->lock);
}

/* What every authentic datagram tells. False: it is of an endpoint that the peer has no more. */
static inline bool greet(mca_btl_endpoint_t *ep, const btl_udp_header_t *h, const datagram_t *d)
{
    uint32_t epoch = atomic_load_explicit(&ep->peer_epoch, memory_order_relaxed);
    if (OPAL_UNLIKELY(epoch != h->epoch)) {
        if (epoch != 0 && btl_udp_before(h->epoch, epoch)) {
            return false;
        }
        new_epoch(ep, h->epoch);
    }
    if (OPAL_UNLIKELY(ep->addr_len[d->channel] == 0)) {
        learn_address(ep, d);
    }
    btl_udp_heard(ep);
    btl_udp_seen(ep, h);
    return true;
}

static inline void read_to(btl_udp_channel_t *ch, uint32_t at)
{
    if (OPAL_UNLIKELY(!ch->started) ||
        btl_udp_before(atomic_load_explicit(&ch->in, memory_order_relaxed), at)) {
        atomic_store_explicit(&ch->in, at, memory_order_relaxed);
    }
}

/* Count a datagram with data; true: its fragment is new. Before it is handed up: what is sent from
 * the upcall already tells that it was read. */
static inline bool count(mca_btl_endpoint_t *ep, const btl_udp_header_t *h,
                         btl_udp_channel_id_t channel)
{
    btl_udp_channel_t *ch = &ep->channel[channel];
    read_to(ch, h->at);
    if (OPAL_UNLIKELY(!ch->started)) {
        ch->started = true;
        memset(&ch->numbers, 0, sizeof(ch->numbers));
        ch->numbers.next = h->number;
    }
    count_sender(ep);
    ep->owe_report |= (h->flags & BTL_UDP_FLAG_ASK) != 0;
    return btl_udp_segments(h->len, h->seg) > 1 || btl_udp_seen_add(&ch->numbers, h->number);
}

/* Not at once: most often what follows from an arrival is sent in this round, and tells it. */
static inline void owe_report(mca_btl_endpoint_t *ep)
{
    if (OPAL_UNLIKELY(ep->owe_report) && !opal_list_item_is_linked(&ep->owe_item)) {
        opal_list_append(&mca_btl_udp.owing, &ep->owe_item);
    }
}

void btl_udp_reports_pay(void)
{
    opal_list_item_t *item;
    while ((item = opal_list_pop(&mca_btl_udp.owing))) {
        mca_btl_endpoint_t *ep = OPAL_CONTAINER_OF(item, mca_btl_endpoint_t, owe_item);
        bool untold = false;
        for (int id = 0; id < BTL_UDP_CHANNELS; id++) {
            btl_udp_channel_t *ch = &ep->channel[id];
            untold |= atomic_load_explicit(&ch->told, memory_order_relaxed) !=
                      atomic_load_explicit(&ch->in, memory_order_relaxed);
        }
        ep->owe_report = false;
        if (untold && !ep->deleted) {
            report(ep);
        }
    }
}

/* The peer wants to know how far we are: as far as it says, once the long channel is empty. */
static OPAL_COLD void probed(mca_btl_endpoint_t *ep, const btl_udp_header_t *h)
{
    btl_udp_module_t *m = ep->module;
    int reads = 0;
    while (btl_udp_receive_long(m) > 0 && ++reads < DRAIN_READS) {
    }
    read_to(&ep->channel[BTL_UDP_SHORT], h->at);
    if (reads < DRAIN_READS) {
        read_to(&ep->channel[BTL_UDP_LONG], h->number);
    }
    if (!ep->deleted) {
        report(ep);
    }
}

static OPAL_COLD void control_arrived(mca_btl_endpoint_t *ep, const btl_udp_header_t *h)
{
    if (h->type == BTL_UDP_PROBE) {
        probed(ep, h);
    } else if (h->type == BTL_UDP_BYE) {
        atomic_store_explicit(&ep->farewell, true, memory_order_relaxed);
    }
}

static inline void hand_up(mca_btl_endpoint_t *ep, const datagram_t *d)
{
    mca_btl_arrival_t arrival = {
        .data = d->bytes + BTL_UDP_HEADER,
        .len = d->len - BTL_UDP_HEADER,
        .module = &ep->module->super,
        .endpoint = ep,
        .token = {(uintptr_t) d->rbuf, 0},
    };
    ep->module->super.upcalls->arrive(ep->cookie, &arrival);
}

/* A whole datagram in memory of ours. */
static inline void sort(btl_udp_module_t *m, const datagram_t *d)
{
    btl_udp_header_t h;
    mca_btl_endpoint_t *ep = authenticate(m, d, &h);
    if (OPAL_UNLIKELY(!ep || !greet(ep, &h, d) || ep->deleted)) {
        return;
    }
    if (OPAL_UNLIKELY(h.type != BTL_UDP_DATA)) {
        control_arrived(ep, &h);
        return;
    }
    if (OPAL_LIKELY(count(ep, &h, d->channel))) {
        if (btl_udp_segments(h.len, h.seg) == 1) {
            hand_up(ep, d);
        } else {
            btl_udp_assemble(ep, &h, d->bytes + BTL_UDP_HEADER);
        }
    }
    owe_report(ep);
}

/* ---- The paths' errors ---- */

static mca_btl_endpoint_t *find_by_address(btl_udp_module_t *m, const struct sockaddr_storage *to,
                                           socklen_t len)
{
    mca_btl_endpoint_t *found = NULL;
    btl_udp_lock(&m->lock);
    for (unsigned b = 0; b < BTL_UDP_PEER_BUCKETS && !found; b++) {
        for (mca_btl_endpoint_t *ep = m->peers[b]; ep && !found; ep = ep->chain) {
            btl_udp_lock(&ep->lock);
            for (int id = 0; id < BTL_UDP_CHANNELS; id++) {
                const struct sockaddr_in *a = (const void *) &ep->addr[id], *b4 = (const void *) to;
                const struct sockaddr_in6 *a6 = (const void *) a, *b6 = (const void *) to;
                bool same = ep->addr_len[id] == len && a->sin_port == b4->sin_port &&
                            (a->sin_family == AF_INET
                                 ? a->sin_addr.s_addr == b4->sin_addr.s_addr
                                 : memcmp(&a6->sin6_addr, &b6->sin6_addr, 16) == 0);
                found = same ? ep : found;
            }
            btl_udp_unlock(&ep->lock);
        }
    }
    btl_udp_unlock(&m->lock);
    return found;
}

static const struct sock_extended_err *extended_error(struct msghdr *msg)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
            (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR)) {
            return (const void *) CMSG_DATA(c);
        }
    }
    return NULL;
}

void btl_udp_errors(btl_udp_socket_t *s)
{
    union {
        struct cmsghdr align;
        char bytes[512];
    } control;
    struct sockaddr_storage to;
    uint8_t scrap[64];
    for (int i = 0; i < ERRORS_PER_VISIT; i++) {
        struct iovec iov = {scrap, sizeof(scrap)};
        struct msghdr msg = {.msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = &iov,
                             .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
        if (recvmsg(s->fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
            return;
        }
        const struct sock_extended_err *error = extended_error(&msg);
        mca_btl_endpoint_t *ep = error ? find_by_address(s->module, &to, msg.msg_namelen) : NULL;
        if (ep && error->ee_errno == EMSGSIZE) {
            btl_udp_lock(&ep->lock);
            btl_udp_shrink(ep);
            btl_udp_unlock(&ep->lock);
        } else if (ep && error->ee_origin != SO_EE_ORIGIN_TIMESTAMPING) {
            btl_udp_complain(ep, (int) error->ee_errno);
        }
    }
}

/* After a call failed: is it of no use to read on? */
static inline bool read_failed(btl_udp_socket_t *s)
{
    if (OPAL_LIKELY(errno == EAGAIN || errno == EWOULDBLOCK)) {
        return true;
    }
    btl_udp_errors(s); /* the error is one of a path; the next read goes on */
    return errno == EBADF || errno == ENOMEM;
}

/* ---- The short channel ---- */

static int receive_one(btl_udp_module_t *m, btl_udp_socket_t *s, uint8_t *slot)
{
    struct sockaddr_storage from;
    socklen_t from_len = sizeof(from);
    ssize_t n = opal_recvfrom(s->fd, slot, BTL_UDP_SLOT, MSG_DONTWAIT | MSG_TRUNC,
                              (struct sockaddr *) &from, &from_len);
    if (n < 0) {
        read_failed(s);
        return 0;
    }
    const datagram_t d = {.bytes = slot, .len = (size_t) n, .channel = BTL_UDP_SHORT,
                          .from = &from, .from_len = from_len};
    if (OPAL_LIKELY(n <= BTL_UDP_SLOT)) { /* else it is longer, and none of ours */
        sort(m, &d);
    }
    s->burst = 2; /* more may stand behind it */
    return 1;
}

static int receive_batch(btl_udp_module_t *m, btl_udp_socket_t *s, uint8_t *slots)
{
    struct sockaddr_storage from[BTL_UDP_BATCH];
    struct iovec iov[BTL_UDP_BATCH];
    struct mmsghdr list[BTL_UDP_BATCH];
    unsigned burst = s->burst;
    for (unsigned i = 0; i < burst; i++) {
        iov[i] = (struct iovec){slots + i * BTL_UDP_SLOT, BTL_UDP_SLOT};
        list[i].msg_hdr = (struct msghdr){.msg_name = &from[i], .msg_namelen = sizeof(from[i]),
                                          .msg_iov = &iov[i], .msg_iovlen = 1};
    }
    int n = recvmmsg(s->fd, list, burst, MSG_DONTWAIT, NULL);
    if (n <= 0) {
        s->burst = 1;
        read_failed(s);
        return 0;
    }
    s->burst = (unsigned) n < burst ? 1 : burst * 2 < BTL_UDP_BATCH ? burst * 2 : BTL_UDP_BATCH;
    for (int i = 0; i < n; i++) {
        const datagram_t d = {.bytes = iov[i].iov_base, .len = list[i].msg_len,
                              .channel = BTL_UDP_SHORT, .from = &from[i],
                              .from_len = list[i].msg_hdr.msg_namelen};
        if (OPAL_LIKELY(!(list[i].msg_hdr.msg_flags & MSG_TRUNC))) {
            sort(m, &d);
        }
    }
    return n;
}

int btl_udp_receive_short(btl_udp_module_t *m)
{
    btl_udp_socket_t *s = &m->socket[BTL_UDP_SHORT];
    uint8_t *slots = mca_btl_udp.slots;
    return s->burst == 1 ? receive_one(m, s, slots) : receive_batch(m, s, slots);
}

/* ---- The long channel ---- */

/* A buffer that nobody else holds. */
static btl_udp_rbuf_t *reading_buffer(void)
{
    btl_udp_component_t *c = &mca_btl_udp;
    if (c->reading && atomic_load_explicit(&c->reading->refs, memory_order_acquire) > 1) {
        btl_udp_rbuf_unref(c->reading);
        c->reading = NULL;
    }
    if (!c->reading) {
        c->reading = btl_udp_rbuf_get();
    }
    return c->reading;
}

/* Size of the datagrams that the kernel has joined. */
static size_t joined_size(struct msghdr *msg, size_t len)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            int size;
            memcpy(&size, CMSG_DATA(c), sizeof(size));
            return size > 0 ? (size_t) size : len;
        }
    }
    return len;
}

/* One read, of one datagram or many. */
static int receive_joined(btl_udp_module_t *m)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct sockaddr_storage from;
    btl_udp_socket_t *s = &m->socket[BTL_UDP_LONG];
    btl_udp_rbuf_t *rbuf = reading_buffer();
    if (!rbuf) {
        return 0;
    }
    struct iovec iov = {rbuf->data, sizeof(rbuf->data)};
    struct msghdr msg = {.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov,
                         .msg_iovlen = 1, .msg_control = m->gro ? control.bytes : NULL,
                         .msg_controllen = m->gro ? sizeof(control.bytes) : 0};
    ssize_t n = opal_recvmsg(s->fd, &msg, MSG_DONTWAIT);
    if (n < 0) {
        read_failed(s);
        return 0;
    }
    size_t size = joined_size(&msg, (size_t) n);
    for (size_t at = 0; at < (size_t) n; at += size) {
        size_t left = (size_t) n - at;
        const datagram_t d = {.bytes = rbuf->data + at, .len = left < size ? left : size,
                              .channel = BTL_UDP_LONG, .from = &from,
                              .from_len = msg.msg_namelen, .rbuf = rbuf};
        sort(m, &d);
    }
    return 1;
}

/* Read the datagram whose head is at `head` to its place. */
static void receive_placed(mca_btl_endpoint_t *ep, const btl_udp_header_t *h, const uint8_t *head,
                           const mca_btl_place_t *place)
{
    const mca_btl_upcalls_t *up = ep->module->super.upcalls;
    uint64_t again[(HEAD + 7) / 8];
    uint8_t *bytes = (uint8_t *) again;
    size_t first = BTL_UDP_HEADER + place->header_len, whole = BTL_UDP_HEADER + h->len;
    struct iovec iov[MCA_BTL_IOV_MAX + 1] = {{bytes, first}};
    memcpy(iov + 1, place->iov, place->iov_count * sizeof(iov[0]));
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = place->iov_count + 1};
    ssize_t n = opal_recvmsg(ep->module->socket[BTL_UDP_LONG].fd, &msg, MSG_DONTWAIT);
    if (n != (ssize_t) whole || memcmp(bytes, head, first) != 0) {
        up->place_cancel(ep->cookie, place->token); /* the kernel has dropped what it had shown */
        return;
    }
    mca_btl_arrival_t arrival = {
        .data = bytes + BTL_UDP_HEADER,
        .len = place->header_len,
        .place_token = place->token,
        .placed_len = h->len - place->header_len,
        .module = &ep->module->super,
        .endpoint = ep,
    };
    up->arrive(ep->cookie, &arrival);
}

/* Read what has been looked at, to nowhere special; `ep` NULL: drop it. */
static void receive_plain(mca_btl_endpoint_t *ep, datagram_t *d, int fd)
{
    btl_udp_rbuf_t *rbuf = ep ? reading_buffer() : NULL;
    uint8_t scrap[8];
    ssize_t n = opal_recvfrom(fd, rbuf ? rbuf->data : scrap,
                              rbuf ? sizeof(rbuf->data) : sizeof(scrap),
                              MSG_DONTWAIT | MSG_TRUNC, NULL, NULL);
    if (rbuf && n == (ssize_t) d->len && memcmp(rbuf->data, d->bytes, HEAD) == 0) {
        d->bytes = rbuf->data;
        d->rbuf = rbuf;
        hand_up(ep, d);
    }
}

/* Look at a datagram, then read it to where it belongs. */
static int receive_peeked(btl_udp_module_t *m)
{
    btl_udp_socket_t *s = &m->socket[BTL_UDP_LONG];
    struct sockaddr_storage from;
    socklen_t from_len = sizeof(from);
    uint64_t head[(HEAD + 7) / 8];
    ssize_t n = opal_recvfrom(s->fd, head, HEAD, MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC,
                              (struct sockaddr *) &from, &from_len);
    if (n < 0) {
        read_failed(s);
        return 0;
    }
    if (n < HEAD) {
        return receive_joined(m);
    }
    datagram_t d = {.bytes = (const uint8_t *) head, .len = (size_t) n, .channel = BTL_UDP_LONG,
                    .from = &from, .from_len = from_len};
    btl_udp_header_t h;
    mca_btl_place_t place;
    mca_btl_endpoint_t *ep = authenticate(m, &d, &h);
    if (ep && btl_udp_segments(h.len, h.seg) > 1) {
        return receive_joined(m);
    }
    bool fresh = ep && greet(ep, &h, &d) && !ep->deleted && count(ep, &h, BTL_UDP_LONG);
    const mca_btl_upcalls_t *up = m->super.upcalls;
    if (!fresh || !up->place(ep->cookie, d.bytes + BTL_UDP_HEADER, MCA_BTL_HEADER_MAX, h.len,
                             &place)) {
        receive_plain(fresh ? ep : NULL, &d, s->fd);
    } else if (!mca_btl_base_place_is_sane(&place, MCA_BTL_HEADER_MAX, h.len)) {
        up->place_cancel(ep->cookie, place.token);
        receive_plain(ep, &d, s->fd);
    } else {
        receive_placed(ep, &h, d.bytes, &place);
    }
    if (fresh) {
        owe_report(ep);
    }
    return 1;
}

int btl_udp_receive_long(btl_udp_module_t *m)
{
    int done = 0;
    for (int i = 0; i < READS_PER_VISIT; i++) {
        int n = m->peek ? receive_peeked(m) : receive_joined(m);
        if (n == 0) {
            break;
        }
        done += n;
    }
    return done;
}
