/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * dr: the policy that loses nothing. Every fragment of the engine gets a prefix (pml_dr_wire.h) and is kept, or stays in
 * the user's memory, until the receiver has acknowledged it; pml_dr_stream.h says when it goes again, and what is a
 * repeat. This file moves bytes, and tells the engine of links that fall silent.
 *
 * What is kept. A short message, and whatever else the engine would let go of when a link took it, is copied: so a
 * send is local, as under teg. A piece of a long message in the user's memory stays there; the engine hears of it
 * (CONFIRMED) when it is acknowledged and no link holds it any more.
 *
 * A lost fragment goes again over whichever link works. If it is longer than that one takes, the engine gets it back
 * (unconfirmed) and cuts it anew, under new numbers, and its own numbers are made void.
 *
 * What is due is done in two places. The poller sends, in the same round, acknowledgments that are urgent and what
 * was found lost. One timer for the process, behind a wheel with one timer for each peer, does the rest; it runs
 * while there is something to wait for. After a long time outside MPI it judges nothing before all links have been
 * looked at once.
 *
 * Locks: a peer's is held where its stream is touched; `due_lock` (the wheel, the list of urgent peers) is taken inside it.
 * Upcalls to the engine are collected in a dr_out_t and made by dr_leave(), without any.
 */
#include "ompi/mca/pml/base/pml_base_request.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/mca/pml/dr/pml_dr_params.h"
#include "ompi/mca/pml/dr/pml_dr_stream.h"
#include "ompi/mca/pml/dr/pml_dr_wheel.h"
#include "ompi/mca/pml/dr/pml_dr_wire.h"
#include "ompi/runtime/pvar.h"
#include "opal/util/copy.h"

/* ---- The policy, as the engine calls it ---- */

enum { POLICY_ROOM = sizeof(dr_prefix_t), POLICY_IN_PLACE = 1, POLICY_FETCH = 1, POLICY_FETCH_PIECE = 256 << 10,
       POLICY_LOSSY = 1, POLICY_VERIFIES = 1 };

static inline int policy_short(mca_pml_peer_t *peer, mca_pml_link_t *link, const void *hdr, size_t hdr_len,
                               const void *data, size_t len);
static int policy_reserve(mca_pml_peer_t *peer, mca_pml_link_t *link, size_t min, size_t want, mca_btl_room_t *room);
static void policy_commit(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_btl_room_t *room, size_t len);
static int policy_send(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_btl_descriptor_t *desc);
static int policy_recall(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_btl_descriptor_t *desc);
static inline bool policy_arrive(mca_pml_peer_t *peer, mca_btl_arrival_t *arrival);
static bool policy_place(mca_pml_peer_t *peer, const void *head, size_t head_len, size_t len,
                         mca_pml_placing_t *placing);
static void policy_unplace(mca_pml_peer_t *peer, const mca_pml_placing_t *placing);
static bool policy_is_idle(void);
static inline bool policy_checks(void);
static uint32_t policy_sum(const mca_pml_peer_t *peer, bool incoming, const void *data, size_t len);
static void policy_spoilt(mca_pml_peer_t *peer, const mca_pml_link_t *link, size_t len);
static bool policy_returned(mca_pml_peer_t *peer, const void *data, size_t len);
static void policy_link(mca_pml_peer_t *peer, mca_pml_link_t *link, bool up);
static void policy_writable(mca_pml_peer_t *peer, mca_pml_link_t *link);
static void policy_fail(mca_pml_peer_t *peer);

#include "ompi/mca/pml/base/pml_base_engine.h"

/* ---- What there is of each peer, and of each fragment ---- */

enum {
    DR_SMALL = 192,         /* bytes of a fragment whose memory is cached */
    DR_SPARE_MAX = 4096,    /* cached ones */
    DR_SAMPLE = 64,         /* on a reliable link each so many-th fragment is timed */
    DR_AWAY_NS = 20000000,  /* a timer so late: this process was not in MPI */
    DR_RETRY_TICKS = 10,    /* when to look again at what no link took */
};

typedef struct dr_peer {
    dr_stream_t stream;
    mca_pml_peer_t *peer;
    dr_seal_t out, in;
    dr_timer_t timer;
    opal_list_item_t urgent_item; /* in `urgent` */
    bool quiet;                   /* the timer is not set, or set for later than the next tick */
    bool active;                  /* something was sent or came since the last tick */
    bool refused;                 /* the engine waits for room */
    bool any_recalled;            /* the engine wants fragments back that no link holds */
    uint8_t full;                 /* links by number: they said "try again" */
    uint8_t btl_down, suspects;   /* ... are down by their own word; are suspect by ours */
    uint8_t sample;
    uint32_t damaged;             /* headers that nothing can be said of */
} dr_peer_t;

typedef enum {
    DR_KEPT,     /* header and payload stand in `bytes` */
    DR_IN_PLACE, /* only the header; the payload is where the engine's descriptor says */
    DR_EMPTY,    /* its numbers carry nothing any more */
} dr_what_t;

typedef struct dr_frag {
    dr_record_t record;
    dr_peer_t *owner;
    mca_btl_descriptor_t *user; /* IN_PLACE: the engine's, which waits for an event; its btl_private[1] leads here */
    struct dr_desc *descs;      /* what links hold of it; it must not change meanwhile */
    uint32_t payload_len, payload_sum;
    uint8_t what, header_len;
    bool small, summed;
    bool recalled;              /* the engine wants its descriptor back */
    bool over;                  /* acknowledged, or given up: waits for the links only */
    bool failed;                /* given up */
    _Alignas(8) unsigned char bytes[]; /* prefix, header, payload */
} dr_frag_t;

/* A fragment in a link's hands. */
typedef struct dr_desc {
    mca_btl_descriptor_t desc;
    dr_frag_t *frag;
    struct dr_desc *next;
    uint32_t number;  /* transmission */
    uint8_t path;
} dr_desc_t;

/* Upcalls that are due once the lock is released. */
typedef struct dr_out {
    mca_btl_descriptor_t *confirmed, *returned; /* lists through btl_private[0] */
    bool flush;
} dr_out_t;

static pthread_mutex_t due_lock = PTHREAD_MUTEX_INITIALIZER;
static dr_wheel_t wheel;
static opal_event_t *tick_timer;
static uint64_t tick_at;       /* ns: when it is to fire */
static bool was_away;          /* the last tick judged nothing */
static opal_list_t urgent = OPAL_LIST_INIT(urgent); /* dr_peer_t with something to send in this round */
static _Atomic uint32_t urgent_count;
static opal_poller_t *poller;

static inline void lock_due(void)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        pthread_mutex_lock(&due_lock);
    }
}

static inline void unlock_due(void)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        pthread_mutex_unlock(&due_lock);
    }
}

/* ---- Memory of fragments ---- */

static dr_frag_t *spare;  /* chained through `user` */
static unsigned spare_count;
static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;

static inline void lock_spare(void)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        pthread_mutex_lock(&spare_lock);
    }
}

static inline void unlock_spare(void)
{
    if (OPAL_UNLIKELY(opal_progress_threads)) {
        pthread_mutex_unlock(&spare_lock);
    }
}

/* `len`: of `bytes`. NULL: out of memory. */
static inline dr_frag_t *frag_new(dr_peer_t *d, dr_what_t what, size_t len)
{
    dr_frag_t *f = NULL;
    bool small = len <= DR_SMALL;
    if (OPAL_LIKELY(small)) {
        lock_spare();
        if (OPAL_LIKELY(spare != NULL)) {
            f = spare;
            spare = (dr_frag_t *) f->user;
            spare_count--;
        }
        unlock_spare();
    }
    f = OPAL_LIKELY(f != NULL) ? f : malloc(sizeof(*f) + (small ? DR_SMALL : len));
    if (OPAL_LIKELY(f != NULL)) {
        f->owner = d;
        f->user = NULL;
        f->what = (uint8_t) what;
        f->descs = NULL;
        f->small = small;
        f->summed = f->recalled = f->over = f->failed = false;
    }
    return f;
}

static inline void frag_free(dr_frag_t *f)
{
    bool keep = false;
    if (OPAL_LIKELY(f->small)) {
        lock_spare();
        keep = spare_count < DR_SPARE_MAX;
        if (keep) {
            f->user = (mca_btl_descriptor_t *) spare;
            spare = f;
            spare_count++;
        }
        unlock_spare();
    }
    if (!keep) {
        free(f);
    }
}

static uint32_t frag_cost(const dr_frag_t *f)
{
    return (uint32_t) sizeof(*f) + (uint32_t) sizeof(dr_prefix_t) + f->header_len +
           (f->what == DR_KEPT ? f->payload_len : 0);
}

/* ---- Peers ---- */

static OPAL_COLD dr_peer_t *dr_peer_new(mca_pml_peer_t *peer)
{
    dr_peer_t *d = calloc(1, sizeof(*d));
    if (!d) {
        mca_pml_base_out_of_memory("the state of a peer");
    }
    uint64_t self = ompi_rte.self, other = peer->proc->name;
    d->peer = peer;
    d->out = (dr_seal_t){dr_params.checksum, dr_wire_key(self, other)};
    d->in = (dr_seal_t){dr_params.checksum, dr_wire_key(other, self)};
    d->quiet = true;
    dr_timer_init(&d->timer);
    opal_list_item_init(&d->urgent_item);
    dr_stream_init(&d->stream, &dr_params.stream, self * 0x9e3779b97f4a7c15u ^ other);
    peer->policy = d;
    return d;
}

/* The caller holds the peer's lock. */
static inline dr_peer_t *dr_of(mca_pml_peer_t *peer)
{
    return OPAL_LIKELY(peer->policy != NULL) ? peer->policy : dr_peer_new(peer);
}

static OPAL_COLD void dr_add_paths(dr_peer_t *d)
{
    const mca_pml_peer_t *peer = d->peer;
    if (!dr_stream_add_paths(&d->stream, peer->link_count)) {
        mca_pml_base_out_of_memory("the state of a peer");
    }
    for (unsigned i = 0; i < peer->link_count; i++) {
        const mca_btl_limits_t *limits = &peer->links[i].module->limits;
        bool reliable = limits->caps & MCA_BTL_CAP_RELIABLE;
        dr_stream_init_path(&d->stream, i, reliable, limits->window,
                            reliable ? dr_params.rto_reliable : dr_params.rto_min);
    }
}

static inline unsigned path_of(const dr_peer_t *d, const mca_pml_link_t *link)
{
    return (unsigned) (link - d->peer->links);
}

/* The time, where it is wanted: a clock costs as much as all the rest. */
static inline uint64_t send_time(dr_peer_t *d, unsigned path)
{
    bool wanted = !d->stream.paths[path].reliable || ++d->sample % DR_SAMPLE == 0;
    return OPAL_UNLIKELY(wanted) ? opal_now_ns() : 0;
}

static inline uint64_t ack_time(const dr_peer_t *d)
{
    return OPAL_UNLIKELY(d->stream.timed > 0) ? opal_now_ns() : 0;
}

/* ---- What is due ---- */

static void on_tick(void *context);

/* Have the process's timer fire at `at` or earlier. Under due_lock. */
static void tick_by(uint64_t at, uint64_t now)
{
    if (tick_timer && tick_at <= at) {
        return;
    }
    if (tick_timer) {
        opal_timer_del(tick_timer);
        tick_timer = NULL;
    }
    tick_at = at;
    if (opal_timer_add(at > now ? (at - now) / 1000 + 1 : 1, on_tick, NULL, &tick_timer) != OPAL_SUCCESS) {
        mca_pml_base_out_of_memory("a timer");
    }
}

static OPAL_COLD void dr_arm(dr_peer_t *d)
{
    uint64_t now = opal_now_ns(), at = now + dr_params.tick;
    lock_due();
    if (wheel.count == 0) {
        dr_wheel_advance(&wheel, now);
    }
    dr_wheel_set(&wheel, &d->timer, at);
    tick_by(at, now);
    unlock_due();
    d->quiet = false;
}

/* Something was sent, or came. */
static inline void dr_active(dr_peer_t *d)
{
    d->active = true;
    if (OPAL_UNLIKELY(d->quiet)) {
        dr_arm(d);
    }
}

static OPAL_COLD void dr_urgent(dr_peer_t *d)
{
    lock_due();
    if (!opal_list_item_is_linked(&d->urgent_item)) {
        opal_list_append(&urgent, &d->urgent_item);
        atomic_fetch_add_explicit(&urgent_count, 1, memory_order_relaxed);
    }
    unlock_due();
    if (opal_progress_threads) {
        opal_progress_wake();
    }
}

/* ---- Handing to links ---- */

static inline size_t head_length(const dr_frag_t *f)
{
    return sizeof(dr_prefix_t) + f->header_len;
}

static void sum_payload(dr_peer_t *d, dr_frag_t *f)
{
    uint64_t sum = dr_wire_begin(&d->out);
    if (f->what == DR_IN_PLACE) {
        for (uint32_t i = 0; i < f->user->iov_count; i++) {
            const struct iovec *v = &f->user->iov[i];
            sum = opal_checksum_update(d->out.kind, sum, v->iov_base, v->iov_len);
        }
    } else {
        sum = opal_checksum_update(d->out.kind, sum, f->bytes + head_length(f), f->payload_len);
    }
    f->payload_sum = opal_checksum_finish(d->out.kind, sum);
    f->summed = true;
}

/* Fill in the prefix; the payload's sum is known. While a link holds the fragment it stays as it was, which is right. */
static inline void seal_frag(dr_peer_t *d, dr_frag_t *f)
{
    if (OPAL_UNLIKELY(f->descs != NULL)) {
        return;
    }
    bool now = f->what == DR_IN_PLACE || f->record.tries > 1 || d->stream.kept > d->stream.params->window / 2;
    dr_wire_write(&d->out, (dr_prefix_t *) f->bytes, f->what == DR_EMPTY ? DR_VOID : DR_DATA,
                  now ? DR_FLAG_ACK_NOW : 0, f->header_len, f->record.seq, dr_stream_ride(&d->stream), f->payload_sum,
                  head_length(f) + f->payload_len);
}

/* Into room that the link lends; the first time the payload is summed on the way. */
static int put_room(dr_peer_t *d, mca_pml_link_t *link, dr_frag_t *f)
{
    size_t head = head_length(f), len = head + f->payload_len;
    mca_btl_room_t room;
    int rc = link->module->ops->reserve(link->endpoint, len, len, &room);
    if (rc != MCA_SUCCESS) {
        return rc;
    }
    const opal_checksum_kind_t kind = f->summed ? OPAL_CHECKSUM_NONE : d->out.kind;
    char *to = (char *) room.ptr + head;
    uint64_t sum = dr_wire_begin(&d->out);
    struct iovec kept = {f->bytes + head, f->payload_len};
    const struct iovec *iov = f->what == DR_IN_PLACE ? f->user->iov : &kept;
    uint32_t count = f->what == DR_IN_PLACE ? f->user->iov_count : 1;
    for (uint32_t i = 0; i < count; i++) {
        sum = opal_checksum_copy(kind, sum, to, iov[i].iov_base, iov[i].iov_len);
        to += iov[i].iov_len;
    }
    if (!f->summed) {
        f->payload_sum = opal_checksum_finish(kind, sum);
        f->summed = true;
    }
    seal_frag(d, f);
    memcpy(room.ptr, f->bytes, head);
    link->module->ops->commit(link->endpoint, &room, len);
    return MCA_SUCCESS;
}

static void on_desc(mca_btl_descriptor_t *desc, mca_btl_event_t event, int status);

/* From where it lies. */
static int put_desc(dr_peer_t *d, mca_pml_link_t *link, dr_frag_t *f)
{
    dr_desc_t *own = malloc(sizeof(*own));
    if (!own) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    if (!f->summed) {
        sum_payload(d, f);
    }
    seal_frag(d, f);
    *own = (dr_desc_t){.desc = {.header = f->bytes, .header_len = (uint32_t) head_length(f), .event = on_desc},
                       .frag = f, .next = f->descs, .number = f->record.number, .path = f->record.path};
    if (f->what == DR_IN_PLACE) {
        own->desc.iov_count = f->user->iov_count;
        memcpy(own->desc.iov, f->user->iov, f->user->iov_count * sizeof(struct iovec));
    } else {
        own->desc.iov_count = 1;
        own->desc.iov[0] = (struct iovec){f->bytes + head_length(f), f->payload_len};
    }
    int rc = link->module->ops->send(link->endpoint, &own->desc);
    if (rc == 0) {
        f->descs = own;
    } else {
        free(own);
    }
    return rc == 1 ? MCA_SUCCESS : rc;
}

static inline int note_full(dr_peer_t *d, const mca_pml_link_t *link, int rc)
{
    if (OPAL_UNLIKELY(rc == MCA_ERR_AGAIN)) {
        d->full |= (uint8_t) (1u << path_of(d, link));
    }
    return rc;
}

static inline bool is_full(const dr_peer_t *d, const mca_pml_link_t *link)
{
    return d->full & 1u << path_of(d, link);
}

/* The prefix is the link's header: as long as a header of the engine's, for which links have their shortest way. */
static inline int send_kept(mca_pml_link_t *link, const dr_frag_t *f)
{
    return link->send_short(link->endpoint, f->bytes, sizeof(dr_prefix_t), f->bytes + sizeof(dr_prefix_t),
                            (size_t) f->header_len + f->payload_len);
}

/* Hand a fragment, of which the stream knows that it is on its way, to a link. */
static int put_frag(dr_peer_t *d, mca_pml_link_t *link, dr_frag_t *f)
{
    const mca_btl_limits_t *limits = &link->module->limits;
    size_t head = head_length(f);
    int rc;
    if (f->what != DR_IN_PLACE && head + f->payload_len <= limits->short_max) {
        if (!f->summed) {
            sum_payload(d, f);
        }
        seal_frag(d, f);
        rc = send_kept(link, f);
    } else {
        rc = f->payload_len >= limits->send_min ? put_desc(d, link, f) : put_room(d, link, f);
    }
    return note_full(d, link, rc);
}

/* The engine has to wait; dr_leave() calls it back. */
static OPAL_COLD int refuse(dr_peer_t *d)
{
    d->refused = true;
    return MCA_ERR_AGAIN;
}

/* A link did not take what was about to go. */
static OPAL_COLD int unsend(dr_peer_t *d, dr_frag_t *f, int rc)
{
    dr_stream_undo(&d->stream, &f->record);
    frag_free(f);
    if (d->stream.rx.next > 0) {
        dr_stream_want_ack(&d->stream, false); /* one may have been riding on it */
    }
    dr_active(d);
    return rc;
}

static inline int policy_short(mca_pml_peer_t *peer, mca_pml_link_t *link, const void *hdr, size_t hdr_len,
                               const void *data, size_t len)
{
    dr_peer_t *d = dr_of(peer);
    size_t span = hdr_len + len, cost = sizeof(dr_frag_t) + sizeof(dr_prefix_t) + span;
    if (OPAL_UNLIKELY(!d->stream.paths)) {
        dr_add_paths(d);
    }
    unsigned path = path_of(d, link);
    if (OPAL_UNLIKELY(!dr_stream_has_room(&d->stream, path, cost, span))) {
        return refuse(d);
    }
    dr_frag_t *f = frag_new(d, DR_KEPT, sizeof(dr_prefix_t) + span);
    if (OPAL_UNLIKELY(!f)) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    f->header_len = (uint8_t) hdr_len;
    f->payload_len = (uint32_t) len;
    f->summed = true;
    unsigned char *payload = f->bytes + sizeof(dr_prefix_t) + hdr_len;
    if (OPAL_LIKELY(hdr_len == sizeof(mca_pml_hdr_match_t))) {
        opal_copy_words3(f->bytes + sizeof(dr_prefix_t), hdr);
    } else {
        memcpy(f->bytes + sizeof(dr_prefix_t), hdr, hdr_len);
    }
    f->payload_sum = opal_checksum_finish(
        d->out.kind, opal_checksum_copy(d->out.kind, dr_wire_begin(&d->out), payload, data, len));
    dr_stream_send(&d->stream, &f->record, path, (uint32_t) span, (uint32_t) cost, send_time(d, path));
    seal_frag(d, f);
    int rc = send_kept(link, f);
    if (OPAL_UNLIKELY(rc != MCA_SUCCESS)) {
        return unsend(d, f, note_full(d, link, rc));
    }
    dr_active(d);
    return MCA_SUCCESS;
}

/* Lend a fragment's own memory: it will be kept. */
static int policy_reserve(mca_pml_peer_t *peer, mca_pml_link_t *link, size_t min, size_t want, mca_btl_room_t *room)
{
    dr_peer_t *d = dr_of(peer);
    size_t max = link->module->limits.max_frag - sizeof(dr_prefix_t);
    size_t len = want < max ? want : max;
    if (!d->stream.paths) {
        dr_add_paths(d);
    }
    if (len < min) {
        return MCA_ERR_BAD_PARAM;
    }
    size_t cost = sizeof(dr_frag_t) + sizeof(dr_prefix_t) + len;
    if (is_full(d, link)) {
        return MCA_ERR_AGAIN;
    }
    if (!dr_stream_has_room(&d->stream, path_of(d, link), cost, len)) {
        return refuse(d);
    }
    dr_frag_t *f = frag_new(d, DR_KEPT, sizeof(dr_prefix_t) + len);
    if (!f) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    *room = (mca_btl_room_t){.ptr = f->bytes + sizeof(dr_prefix_t), .len = len, .token = {(uintptr_t) f}};
    return MCA_SUCCESS;
}

/* Committed is committed: what the link does not take now counts as lost, and goes soon. */
static void policy_commit(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_btl_room_t *room, size_t len)
{
    dr_peer_t *d = peer->policy;
    dr_frag_t *f = (dr_frag_t *) (uintptr_t) room->token[0];
    if (len == 0) {
        frag_free(f);
        return;
    }
    unsigned path = path_of(d, link);
    f->header_len = (uint8_t) mca_pml_hdr_length(room->ptr, len);
    f->payload_len = (uint32_t) len - f->header_len;
    dr_stream_send(&d->stream, &f->record, path, (uint32_t) len, frag_cost(f), send_time(d, path));
    int rc = put_frag(d, link, f);
    if (rc != MCA_SUCCESS) {
        link->blocked |= rc == MCA_ERR_AGAIN;
        dr_stream_lose(&d->stream, &f->record);
        dr_urgent(d);
    }
    dr_active(d);
}

static int policy_send(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_btl_descriptor_t *desc)
{
    dr_peer_t *d = dr_of(peer);
    if (!d->stream.paths) {
        dr_add_paths(d);
    }
    size_t payload = 0;
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        payload += desc->iov[i].iov_len;
    }
    size_t span = desc->header_len + payload, cost = sizeof(dr_frag_t) + sizeof(dr_prefix_t) + desc->header_len;
    unsigned path = path_of(d, link);
    if (!dr_stream_has_room(&d->stream, path, cost, span)) {
        return refuse(d);
    }
    dr_frag_t *f = frag_new(d, DR_IN_PLACE, sizeof(dr_prefix_t) + desc->header_len);
    if (!f) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    f->user = desc;
    desc->btl_private[1] = f;
    f->header_len = (uint8_t) desc->header_len;
    f->payload_len = (uint32_t) payload;
    memcpy(f->bytes + sizeof(dr_prefix_t), desc->header, desc->header_len);
    dr_stream_send(&d->stream, &f->record, path, (uint32_t) span, (uint32_t) cost, send_time(d, path));
    int rc = put_frag(d, link, f);
    if (rc != MCA_SUCCESS) {
        return unsend(d, f, rc);
    }
    dr_active(d);
    return 0;
}

/* ---- What is over ---- */

static void chain(mca_btl_descriptor_t **list, mca_btl_descriptor_t *desc)
{
    desc->btl_private[0] = *list;
    *list = desc;
}

static inline void end_frag(dr_frag_t *f, dr_out_t *out)
{
    if (f->user) {
        chain(f->failed ? &out->returned : &out->confirmed, f->user);
    }
    frag_free(f);
}

/* Have a fragment back from the links that can let go of it; `stuck`: from those that may not work only. */
static OPAL_COLD int recall(dr_peer_t *d, const dr_frag_t *f, bool stuck)
{
    for (dr_desc_t *own = f->descs; own; own = own->next) {
        const mca_pml_link_t *link = &d->peer->links[own->path];
        if ((link->module->limits.caps & MCA_BTL_CAP_LET_GO) && (!stuck || link->suspect || !link->up)) {
            int rc = link->module->ops->recall(link->endpoint, &own->desc);
            if (rc != MCA_SUCCESS) {
                return rc;
            }
        }
    }
    return MCA_SUCCESS;
}

static inline void end_frags(dr_peer_t *d, opal_list_t *done, dr_out_t *out, bool failed)
{
    opal_list_item_t *i;
    while ((i = opal_list_pop(done))) {
        dr_frag_t *f = OPAL_CONTAINER_OF(i, dr_frag_t, record.item);
        f->over = true;
        f->failed = failed;
        if (OPAL_LIKELY(!f->descs)) {
            end_frag(f, out);
        } else {
            recall(d, f, true);
        }
    }
}

static OPAL_COLD void run_events(mca_btl_descriptor_t *list, mca_btl_event_t event, int status)
{
    while (list) {
        mca_btl_descriptor_t *next = list->btl_private[0];
        list->event(list, event, status);
        list = next;
    }
}

/* There may be room again for what was refused. */
static void reopen(dr_peer_t *d, dr_out_t *out)
{
    if (d->refused && opal_list_is_empty(&d->stream.lost)) {
        d->refused = false;
        out->flush = true;
        for (int i = 0; i < d->peer->link_count; i++) {
            d->peer->links[i].blocked = false;
        }
    }
}

/* Release the lock, and do what could not be done under it. */
static inline void dr_leave(dr_peer_t *d, dr_out_t *out)
{
    if (OPAL_UNLIKELY(d->refused)) {
        reopen(d, out);
    }
    mca_pml_peer_unlock(d->peer);
    if (OPAL_UNLIKELY(out->confirmed || out->returned)) {
        run_events(out->confirmed, MCA_BTL_CONFIRMED, MCA_SUCCESS);
        run_events(out->returned, MCA_BTL_UNCONFIRMED, MCA_ERR_UNREACHABLE);
    }
    if (OPAL_UNLIKELY(out->flush)) {
        engine_flush(d->peer);
    }
}

/* The engine has its descriptor back, its bytes go under other numbers, and these become void. */
static void make_empty(dr_peer_t *d, dr_frag_t *f, dr_out_t *out)
{
    if (f->user) {
        chain(&out->returned, f->user);
        f->user = NULL;
    }
    dr_wire_void_t body = {.span = htole32(f->record.span)};
    memcpy(f->bytes + sizeof(dr_prefix_t), &body, sizeof(body));
    f->what = DR_EMPTY;
    f->header_len = sizeof(body);
    f->payload_len = 0;
    f->summed = true;
    dr_stream_recost(&d->stream, &f->record, frag_cost(f));
    dr_stream_lose(&d->stream, &f->record);
}

/* The engine wants it back: its bytes have arrived another way. */
static int policy_recall(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_btl_descriptor_t *desc)
{
    (void) link;
    dr_frag_t *f = desc->btl_private[1];
    dr_peer_t *d = peer->policy;
    int rc = recall(d, f, false);
    if (rc == MCA_SUCCESS && !f->over) {
        f->recalled = d->any_recalled = true; /* the event comes from progress */
        dr_urgent(d);
    }
    return rc;
}

static OPAL_COLD void end_recalled(dr_peer_t *d, dr_out_t *out)
{
    opal_list_item_t *i, *tmp;
    d->any_recalled = false;
    OPAL_LIST_FOREACH (i, tmp, &d->stream.unacked) {
        dr_frag_t *f = OPAL_CONTAINER_OF(i, dr_frag_t, record.item);
        if (f->recalled && f->what == DR_IN_PLACE) {
            if (f->descs) {
                d->any_recalled = true;
            } else {
                make_empty(d, f, out);
            }
        }
    }
}

static void forget_desc(dr_desc_t *own)
{
    dr_desc_t **at = &own->frag->descs;
    while (*at != own) {
        at = &(*at)->next;
    }
    *at = own->next;
}

/* A link says what became of a fragment that it held. */
static void on_desc(mca_btl_descriptor_t *desc, mca_btl_event_t event, int status)
{
    (void) status;
    if (event == MCA_BTL_REUSABLE) {
        return;
    }
    dr_desc_t *own = OPAL_CONTAINER_OF(desc, dr_desc_t, desc);
    dr_frag_t *f = own->frag;
    dr_peer_t *d = f->owner;
    dr_out_t out = {0};
    mca_pml_peer_lock(d->peer);
    forget_desc(own);
    if (f->over) {
        if (!f->descs) {
            end_frag(f, &out);
        }
    } else if (event == MCA_BTL_UNCONFIRMED && f->record.path == own->path && f->record.number == own->number) {
        dr_stream_lose(&d->stream, &f->record);
    }
    if (!opal_list_is_empty(&d->stream.lost) || d->any_recalled) { /* one that is lost may have waited for the link to let go of it */
        dr_urgent(d);
    }
    dr_leave(d, &out);
    free(own);
}

/* ---- Sending again ---- */

/* How good a link is for a fragment of `len` bytes that failed on `bad` (-1: on none); 0: not at all. */
static unsigned fitness(const dr_peer_t *d, const mca_pml_link_t *link, size_t len, int bad)
{
    int path = (int) path_of(d, link);
    const dr_path_t *p = d->stream.paths ? &d->stream.paths[path] : NULL;
    if (!link->up || len > link->module->limits.max_frag || (p && p->state == DR_PATH_DOWN)) {
        return 0;
    }
    bool good = !p || (p->state == DR_PATH_UP && (path != bad || p->vain == 0));
    return 1u + (good ? 4 : 0) + (is_full(d, link) ? 0 : 2) + (path != bad);
}

static mca_pml_link_t *choose_link(dr_peer_t *d, size_t len, int bad)
{
    mca_pml_link_t *best = NULL;
    unsigned most = 0;
    for (int i = 0; i < d->peer->link_count; i++) {
        mca_pml_link_t *link = &d->peer->links[i];
        unsigned fit = fitness(d, link, len, bad);
        if (fit > most || (fit > 0 && fit == most &&
                           link->module->limits.latency_ns < best->module->limits.latency_ns)) {
            best = link;
            most = fit;
        }
    }
    return best;
}

/* No link that is left takes so long a fragment: the engine has it back, its numbers become void. Only pieces of
 * matched messages can be so long. */
static bool recut(dr_peer_t *d, dr_frag_t *f, dr_out_t *out)
{
    unsigned char *header = f->bytes + sizeof(dr_prefix_t);
    if (f->descs || !choose_link(d, 0, -1) || header[0] != MCA_PML_HDR_FRAG || f->what == DR_EMPTY) {
        return false;
    }
    if (f->what == DR_KEPT) {
        engine_queue_raw(d->peer, header, f->header_len, header + f->header_len, f->payload_len, true);
    }
    make_empty(d, f, out);
    out->flush = true;
    return true;
}

static bool resend(dr_peer_t *d, dr_frag_t *f, dr_out_t *out)
{
    size_t len = head_length(f) + f->payload_len;
    mca_pml_link_t *link = choose_link(d, len, f->record.path);
    if (!link && recut(d, f, out)) {
        len = head_length(f);
        link = choose_link(d, len, f->record.path);
    }
    if (!link || is_full(d, link)) {
        return false;
    }
    unsigned path = path_of(d, link);
    dr_stream_resend(&d->stream, &f->record, path, d->stream.paths[path].reliable ? 0 : opal_now_ns());
    int rc = put_frag(d, link, f);
    if (rc != MCA_SUCCESS) {
        dr_stream_lose(&d->stream, &f->record);
        return false;
    }
    link->retries++;
    engine_count(link, len);
    dr_active(d); /* or nobody would look whether this copy arrives, if it is all that is under way */
    return true;
}

/* Something of dr's own. */
static int send_bare(dr_peer_t *d, const mca_btl_module_t *module, mca_btl_endpoint_t *endpoint, dr_kind_t kind,
                     uint64_t token, const void *header, size_t len)
{
    struct {
        dr_prefix_t prefix;
        unsigned char header[sizeof(dr_wire_ack_t)];
    } bytes;
    if (len > 0) {
        memcpy(bytes.header, header, len);
    }
    dr_wire_write(&d->out, &bytes.prefix, kind, 0, len, token, (uint32_t) d->stream.rx.next, 0,
                  sizeof(bytes.prefix) + len);
    return module->ops->send_short(endpoint, &bytes.prefix, sizeof(bytes.prefix), bytes.header, len);
}

static void send_ack(dr_peer_t *d)
{
    mca_pml_link_t *link = choose_link(d, sizeof(dr_prefix_t) + sizeof(dr_wire_ack_t), -1);
    if (!link) {
        return;
    }
    dr_ack_t ack;
    dr_wire_ack_t wire;
    dr_stream_fill_ack(&d->stream, &ack);
    int rc = send_bare(d, link->module, link->endpoint, DR_ACK, 0, &wire, dr_wire_write_ack(&wire, &ack));
    if (rc == MCA_SUCCESS) {
        dr_stream_ack_sent(&d->stream);
        engine_count(link, sizeof(dr_prefix_t));
    } else {
        note_full(d, link, rc);
    }
}

/* Send what is lost, and an acknowledgment if one is urgent. The caller holds the lock. */
static void dr_service(dr_peer_t *d, dr_out_t *out)
{
    dr_record_t *r;
    if (atomic_load_explicit(&d->peer->state, memory_order_acquire) != MCA_PML_PEER_READY) {
        return;
    }
    if (OPAL_UNLIKELY(d->any_recalled)) {
        end_recalled(d, out);
    }
    while ((r = dr_stream_first_lost(&d->stream)) && resend(d, OPAL_CONTAINER_OF(r, dr_frag_t, record), out)) {
    }
    if (d->stream.need == DR_ACK_URGENT) {
        send_ack(d);
    }
}

static dr_peer_t *pop_urgent(void)
{
    lock_due();
    opal_list_item_t *i = opal_list_pop(&urgent);
    if (i) {
        atomic_fetch_sub_explicit(&urgent_count, 1, memory_order_relaxed);
    }
    unlock_due();
    return i ? OPAL_CONTAINER_OF(i, dr_peer_t, urgent_item) : NULL;
}

static int dr_poll(void *context)
{
    (void) context;
    uint32_t n = atomic_load_explicit(&urgent_count, memory_order_relaxed);
    if (OPAL_LIKELY(n == 0)) {
        return 0;
    }
    dr_peer_t *d;
    for (uint32_t i = 0; i < n && (d = pop_urgent()); i++) {
        dr_out_t out = {0};
        mca_pml_peer_lock(d->peer);
        dr_service(d, &out);
        dr_leave(d, &out);
    }
    return (int) n;
}

/* ---- Arrivals ---- */

/* Fragments that came with damage, wherever it was. */
static _Atomic uint64_t damaged;

static void read_damaged(void *context, void *values, size_t count)
{
    (void) context;
    if (count > 0) {
        *(uint64_t *) values = atomic_load_explicit(&damaged, memory_order_relaxed);
    }
}

static OPAL_COLD void on_damaged_header(dr_peer_t *d, const mca_btl_arrival_t *arrival)
{
    d->damaged++;
    atomic_fetch_add_explicit(&damaged, 1, memory_order_relaxed);
    mca_base_log("pml", "dr", MCA_LOG_DEBUG, "rank %u: %zu bytes over %s with a damaged header", d->peer->proc->rank,
                 arrival->len, arrival->module->name);
}

static OPAL_COLD void on_damaged_payload(dr_peer_t *d, const mca_btl_arrival_t *arrival, uint64_t seq, uint32_t span)
{
    atomic_fetch_add_explicit(&damaged, 1, memory_order_relaxed);
    mca_base_log("pml", "dr", MCA_LOG_DEBUG, "rank %u: [%" PRIu64 ", +%u) came damaged over %s", d->peer->proc->rank,
                 seq, span, arrival->module->name);
    mca_pml_peer_lock(d->peer);
    dr_stream_damaged(&d->stream, seq, span);
    mca_pml_peer_unlock(d->peer);
    dr_urgent(d);
}

/* An echo: its link works in both directions. */
static void on_echo(dr_peer_t *d, const mca_btl_arrival_t *arrival, uint64_t token, dr_out_t *out)
{
    uint64_t now = opal_now_ns();
    mca_pml_link_t *link = mca_pml_base_link_of(d->peer, arrival->endpoint);
    if (!link || !d->stream.paths || token > now) {
        return;
    }
    dr_stream_proven(&d->stream, path_of(d, link), now - token, now);
    out->flush = true;
}

static void sync_paths(dr_peer_t *d, dr_out_t *out);

/* All but DATA. */
static OPAL_COLD void on_control(dr_peer_t *d, mca_btl_arrival_t *arrival, const dr_prefix_t *prefix)
{
    const unsigned char *header = (const unsigned char *) (prefix + 1);
    dr_out_t out = {0};
    opal_list_t done = OPAL_LIST_INIT(done);
    mca_pml_peer_lock(d->peer);
    uint64_t now = ack_time(d), token = le64toh(prefix->seq);
    dr_stream_take_prefix(&d->stream, le32toh(prefix->ack), now, &done);
    dr_ack_t ack;
    dr_wire_void_t body;
    switch (prefix->kind) {
    case DR_VOID:
        if (prefix->header_len == sizeof(body)) {
            memcpy(&body, header, sizeof(body));
            if (dr_stream_judge(&d->stream, token, le32toh(body.span)) == DR_NEW) {
                dr_stream_deliver(&d->stream, token, le32toh(body.span), true);
            }
        }
        break;
    case DR_ACK:
        if (dr_wire_read_ack(header, prefix->header_len, &ack)) {
            dr_stream_take_ack(&d->stream, &ack, now, &done);
        }
        break;
    case DR_PROBE:
        send_bare(d, arrival->module, arrival->endpoint, DR_ECHO, token, NULL, 0);
        break;
    default:
        on_echo(d, arrival, token, &out);
        sync_paths(d, &out);
        break;
    }
    end_frags(d, &done, &out, false);
    if (d->stream.need == DR_ACK_URGENT || !opal_list_is_empty(&d->stream.lost)) {
        dr_urgent(d);
    }
    dr_active(d);
    dr_leave(d, &out);
}

/* Verified: note it. False: it must not be handed up. */
static inline bool note_delivered(dr_peer_t *d, const dr_prefix_t *prefix, uint64_t seq, uint32_t span)
{
    mca_pml_peer_lock(d->peer);
    bool noted = dr_stream_deliver(&d->stream, seq, span, prefix->flags & DR_FLAG_ACK_NOW);
    bool is_urgent = d->stream.need == DR_ACK_URGENT;
    dr_active(d);
    mca_pml_peer_unlock(d->peer);
    if (OPAL_UNLIKELY(is_urgent)) {
        dr_urgent(d);
    }
    return noted;
}

/* Behind the header, or where the link has put it. */
static inline bool payload_is_good(dr_peer_t *d, const mca_btl_arrival_t *arrival, const dr_prefix_t *prefix, size_t len)
{
    const mca_pml_placing_t *placing = arrival->place_token;
    const void *payload = OPAL_UNLIKELY(placing != NULL) ? (const void *) (placing->recv->ptr + placing->offset)
                                                         : (const char *) (prefix + 1) + prefix->header_len;
    return dr_wire_payload_is_good(&d->in, prefix, payload, len);
}

/* A link is still writing what is here whole, maybe for ever: this copy goes on in its stead. */
static OPAL_COLD dr_verdict_t overtake(dr_peer_t *d, uint64_t seq, uint32_t span)
{
    engine_overtaken(d->peer, seq, span);
    mca_pml_peer_lock(d->peer);
    dr_verdict_t verdict = dr_stream_judge(&d->stream, seq, span);
    mca_pml_peer_unlock(d->peer);
    return verdict;
}

static inline bool policy_arrive(mca_pml_peer_t *peer, mca_btl_arrival_t *arrival)
{
    const dr_prefix_t *prefix = arrival->data;
    if (OPAL_UNLIKELY(!peer->policy)) {
        mca_pml_peer_lock(peer);
        dr_of(peer);
        mca_pml_peer_unlock(peer);
    }
    dr_peer_t *d = peer->policy;
    size_t len = arrival->len + arrival->placed_len;
    if (OPAL_UNLIKELY(!dr_wire_open(&d->in, prefix, len))) {
        on_damaged_header(d, arrival);
        return false;
    }
    if (OPAL_UNLIKELY(prefix->kind != DR_DATA)) {
        on_control(d, arrival, prefix);
        return false;
    }
    dr_out_t out = {0};
    opal_list_t done = OPAL_LIST_INIT(done);
    uint64_t seq = le64toh(prefix->seq);
    uint32_t span = (uint32_t) (len - sizeof(*prefix));
    mca_pml_peer_lock(peer);
    dr_stream_take_prefix(&d->stream, le32toh(prefix->ack), ack_time(d), &done);
    end_frags(d, &done, &out, false);
    if (OPAL_UNLIKELY(arrival->place_token != NULL)) {
        dr_stream_unhold(&d->stream, seq, span); /* it was nobody else's to deliver */
    }
    dr_verdict_t verdict = dr_stream_judge(&d->stream, seq, span);
    dr_leave(d, &out);
    if (OPAL_UNLIKELY(verdict == DR_BUSY)) {
        verdict = overtake(d, seq, span);
    }
    bool good = payload_is_good(d, arrival, prefix, span - prefix->header_len);
    if (OPAL_UNLIKELY(verdict != DR_NEW)) {
        if (verdict == DR_REPEAT) {
            dr_urgent(d);
        }
        atomic_fetch_add_explicit(&damaged, !good, memory_order_relaxed); /* nobody misses it; it counts */
        return false;
    }
    if (OPAL_UNLIKELY(!good)) {
        on_damaged_payload(d, arrival, seq, span);
        return false;
    }
    return note_delivered(d, prefix, seq, span);
}

/* ---- What links write into receives before it is verified ---- */

/* The fragment's numbers are held: a copy that comes meanwhile is known to be one. */
static bool policy_place(mca_pml_peer_t *peer, const void *head, size_t head_len, size_t len,
                         mca_pml_placing_t *placing)
{
    dr_peer_t *d = peer->policy;
    dr_prefix_t prefix;
    if (!d || head_len < sizeof(prefix) + sizeof(mca_pml_hdr_frag_t)) {
        return false;
    }
    memcpy(&prefix, head, sizeof(prefix));
    if (prefix.kind != DR_DATA || prefix.header_len != sizeof(mca_pml_hdr_frag_t) ||
        !dr_wire_open(&d->in, head, len)) {
        return false;
    }
    placing->seq = le64toh(prefix.seq);
    placing->span = (uint32_t) (len - sizeof(prefix));
    mca_pml_peer_lock(peer);
    bool held = dr_stream_judge(&d->stream, placing->seq, placing->span) == DR_NEW &&
                dr_stream_hold(&d->stream, placing->seq, placing->span);
    mca_pml_peer_unlock(peer);
    return held;
}

static void policy_unplace(mca_pml_peer_t *peer, const mca_pml_placing_t *placing)
{
    dr_peer_t *d = peer->policy;
    mca_pml_peer_lock(peer);
    dr_stream_unhold(&d->stream, placing->seq, placing->span);
    mca_pml_peer_unlock(peer);
}

/* ---- What a link fetches by itself ---- */

static inline bool policy_checks(void)
{
    return dr_params.checksum != OPAL_CHECKSUM_NONE;
}

/* Fetches are announced, so the state is there. */
static uint32_t policy_sum(const mca_pml_peer_t *peer, bool incoming, const void *data, size_t len)
{
    const dr_peer_t *d = peer->policy;
    return dr_wire_payload_sum(incoming ? &d->in : &d->out, data, len);
}

static OPAL_COLD void policy_spoilt(mca_pml_peer_t *peer, const mca_pml_link_t *link, size_t len)
{
    atomic_fetch_add_explicit(&damaged, 1, memory_order_relaxed);
    mca_base_log("pml", "dr", MCA_LOG_DEBUG, "rank %u: %zu bytes fetched over %s are not what was sent",
                 peer->proc->rank, len, link->module->name);
}

/* ---- Links ---- */

/* A fragment that a link kept comes back: it counts as lost, unless that is known already. */
static bool policy_returned(mca_pml_peer_t *peer, const void *data, size_t len)
{
    dr_peer_t *d = peer->policy;
    const dr_prefix_t *prefix = data;
    if (!d || !dr_wire_open(&d->out, data, len) || (prefix->kind != DR_DATA && prefix->kind != DR_VOID)) {
        return true;
    }
    mca_pml_peer_lock(peer);
    dr_record_t *r = dr_stream_find(&d->stream, le64toh(prefix->seq));
    if (r && r->state == DR_FLIGHT && r->tries == 1) { /* else it may be on its way over another link */
        dr_stream_lose(&d->stream, r);
    }
    mca_pml_peer_unlock(peer);
    dr_urgent(d);
    return true;
}

/* The link says so itself; the engine sees to its own part. */
static void policy_link(mca_pml_peer_t *peer, mca_pml_link_t *link, bool up)
{
    dr_peer_t *d = peer->policy;
    if (!d) {
        return;
    }
    unsigned path = path_of(d, link);
    d->full &= (uint8_t) ~(1u << path);
    d->btl_down = (uint8_t) (up ? d->btl_down & ~(1u << path) : d->btl_down | 1u << path);
    if (!d->stream.paths) {
        return;
    }
    if (up) {
        dr_stream_set_up(&d->stream, path, opal_now_ns());
    } else {
        dr_stream_set_down(&d->stream, path, opal_now_ns());
    }
    dr_urgent(d);
    dr_active(d);
}

/* What waits here goes before the engine sends more. */
static void policy_writable(mca_pml_peer_t *peer, mca_pml_link_t *link)
{
    dr_peer_t *d = peer->policy;
    dr_out_t out = {0};
    if (d) {
        mca_pml_peer_lock(peer);
        d->full &= (uint8_t) ~(1u << path_of(d, link));
        dr_service(d, &out);
        dr_leave(d, &out);
    }
}

/* Tell the engine what became of links that do not speak for themselves. The caller holds the lock. */
static void sync_paths(dr_peer_t *d, dr_out_t *out)
{
    for (unsigned i = 0; i < d->stream.path_count; i++) {
        mca_pml_link_t *link = &d->peer->links[i];
        const dr_path_t *p = &d->stream.paths[i];
        uint8_t bit = (uint8_t) (1u << i);
        if (d->btl_down & bit) {
            continue;
        }
        if (p->state == DR_PATH_DOWN && link->up) {
            engine_link_lost(d->peer, link, "nothing that is sent over it is acknowledged");
            out->flush = true;
        } else if (p->state != DR_PATH_DOWN && !link->up) {
            engine_link_back(d->peer, link);
            out->flush = true;
        }
        bool suspect = p->state == DR_PATH_SUSPECT;
        if (suspect != !!(d->suspects & bit)) {
            d->suspects ^= bit;
            link->suspect = suspect && link->up;
            mca_pml_base_peer_relist(d->peer);
        }
    }
}

static void send_probes(dr_peer_t *d, uint64_t now)
{
    for (unsigned i = 0; i < d->stream.path_count; i++) {
        dr_path_t *p = &d->stream.paths[i];
        if (p->probe_due) {
            p->probe_due = false;
            if (!(d->btl_down & 1u << i)) {
                send_bare(d, d->peer->links[i].module, d->peer->links[i].endpoint, DR_PROBE, now, NULL, 0);
            }
        }
    }
}

static void policy_fail(mca_pml_peer_t *peer)
{
    dr_peer_t *d = peer->policy;
    if (!d) {
        return;
    }
    dr_out_t out = {0};
    opal_list_t done = OPAL_LIST_INIT(done);
    mca_pml_peer_lock(peer);
    dr_stream_abandon(&d->stream, &done);
    end_frags(d, &done, &out, true);
    d->refused = false;
    d->stream.need = DR_ACK_NONE;
    dr_leave(d, &out);
}

/* ---- Time ---- */

/* Not a sign of life for pml_dr_path_timeout. */
static OPAL_COLD void give_up(mca_pml_peer_t *peer)
{
    mca_pml_peer_lock(peer);
    for (int i = 0; i < peer->link_count; i++) {
        if (peer->links[i].up) {
            mca_pml_base_link_down(peer, &peer->links[i], "no answer for longer than pml_dr_path_timeout");
        }
    }
    mca_pml_peer_unlock(peer);
    engine_path_timeout(peer); /* no link is up any more */
}

/* When is this peer to be looked at again? 0: not before something happens. */
static uint64_t next_look(dr_peer_t *d, uint64_t next, uint64_t now)
{
    bool waits = !opal_list_is_empty(&d->stream.lost) || d->stream.need == DR_ACK_URGENT;
    uint64_t soon = d->active ? now + dr_params.tick : waits ? now + DR_RETRY_TICKS * dr_params.tick : 0;
    return soon > 0 && (next == 0 || soon < next) ? soon : next;
}

static void judge(dr_peer_t *d, uint64_t now)
{
    dr_out_t out = {0};
    mca_pml_peer_lock(d->peer);
    if (atomic_load_explicit(&d->peer->state, memory_order_acquire) == MCA_PML_PEER_FAILED) {
        d->quiet = true;
        mca_pml_peer_unlock(d->peer);
        return;
    }
    uint64_t next = dr_stream_tick(&d->stream, now);
    bool dead = d->stream.dead;
    sync_paths(d, &out);
    send_probes(d, now);
    dr_service(d, &out);
    next = next_look(d, next, now);
    d->active = false;
    d->quiet = next == 0 || next > now + 2 * dr_params.tick;
    if (next > 0) {
        lock_due();
        dr_wheel_set(&wheel, &d->timer, next);
        unlock_due();
    }
    dr_leave(d, &out);
    if (OPAL_UNLIKELY(dead)) {
        give_up(d->peer);
    }
}

static dr_peer_t *pop_due(void)
{
    lock_due();
    dr_timer_t *timer = dr_wheel_pop(&wheel);
    unlock_due();
    return timer ? OPAL_CONTAINER_OF(timer, dr_peer_t, timer) : NULL;
}

static void on_tick(void *context)
{
    (void) context;
    uint64_t now = opal_now_ns();
    lock_due();
    opal_timer_del(tick_timer);
    tick_timer = NULL;
    bool away = now > tick_at + DR_AWAY_NS && !was_away;
    was_away = away;
    if (away) { /* first see what has come meanwhile */
        tick_by(now + dr_params.tick, now);
        unlock_due();
        return;
    }
    dr_wheel_advance(&wheel, now);
    unlock_due();
    dr_peer_t *d;
    while ((d = pop_due())) {
        judge(d, now);
    }
    lock_due();
    uint64_t next = dr_wheel_next(&wheel);
    if (next > 0) {
        tick_by(next, now);
    }
    unlock_due();
}

/* ---- The end ---- */

static bool is_idle(mca_pml_peer_t *peer)
{
    dr_peer_t *d = peer->policy;
    if (!d || atomic_load_explicit(&peer->state, memory_order_acquire) == MCA_PML_PEER_FAILED) {
        return true;
    }
    mca_pml_peer_lock(peer);
    bool idle = opal_list_is_empty(&d->stream.unacked) && d->stream.need == DR_ACK_NONE;
    mca_pml_peer_unlock(peer);
    return idle;
}

/* All is acknowledged, and we owe no acknowledgment: before the fence at the end. Behind it nobody needs us any more. */
static bool policy_is_idle(void)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &mca_pml_base_peers) {
        if (!is_idle(OPAL_CONTAINER_OF(i, mca_pml_peer_t, all_item))) {
            return false;
        }
    }
    return true;
}

static void free_peers(opal_list_t *states)
{
    opal_list_item_t *i;
    while ((i = opal_list_pop(states))) {
        dr_peer_t *d = OPAL_CONTAINER_OF(i, dr_peer_t, urgent_item);
        dr_stream_fini(&d->stream);
        free(d);
    }
    while (spare) {
        dr_frag_t *f = spare;
        spare = (dr_frag_t *) f->user;
        free(f);
    }
    spare_count = 0;
}

/* ---- The component ---- */

static const opal_poller_ops_t poller_ops = {.poll = dr_poll};

static int dr_query(int *out)
{
    *out = (int) dr_params.priority;
    return MCA_SUCCESS;
}

static int dr_init(mca_pml_t *pml)
{
    dr_params_derive();
    dr_wheel_init(&wheel, dr_params.tick, opal_now_ns());
    static const ompi_pvar_desc_t pvar = {
        .framework = "pml", .component = "dr", .name = "damaged", .level = MCA_VAR_LEVEL_USER,
        .help = "Fragments that came damaged", .var_class = MPI_T_PVAR_CLASS_COUNTER, .read = read_damaged};
    atomic_store(&damaged, 0);
    int rc = ompi_pvar_register(&pvar);
    rc = rc == OPAL_SUCCESS ? opal_progress_poller_add(&poller_ops, NULL, &poller) : rc;
    return rc == OPAL_SUCCESS ? engine_init(dr_params_name(), pml) : rc;
}

static void dr_finalize(void)
{
    opal_list_t states = OPAL_LIST_INIT(states);
    opal_list_item_t *i, *tmp;
    ompi_pvar_unregister("pml", "dr");
    opal_progress_poller_del(poller);
    opal_timer_del(tick_timer);
    tick_timer = NULL;
    while (opal_list_pop(&urgent)) {
    }
    atomic_store_explicit(&urgent_count, 0, memory_order_relaxed);
    OPAL_LIST_FOREACH (i, tmp, &mca_pml_base_peers) {
        mca_pml_peer_t *peer = OPAL_CONTAINER_OF(i, mca_pml_peer_t, all_item);
        dr_peer_t *d = peer->policy;
        if (d) {
            policy_fail(peer); /* only of peers that failed is anything left */
            opal_list_append(&states, &d->urgent_item);
        }
    }
    mca_pml_base_peers_fini(); /* links may still let go of fragments here */
    free_peers(&states);
}

static const mca_pml_component_ops_t dr_ops = {
    .struct_size = sizeof(mca_pml_component_ops_t),
    .query = dr_query,
    .init = dr_init,
    .finalize = dr_finalize,
};

MCA_EXPORT extern const mca_base_component_t mca_pml_dr_component;
const mca_base_component_t mca_pml_dr_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "pml",
    .contract_major = MCA_PML_CONTRACT_MAJOR,
    .contract_minor = MCA_PML_CONTRACT_MINOR,
    .name = "dr",
    .version = {1, 0, 0},
    .register_params = dr_params_register,
    .ops = &dr_ops,
};
