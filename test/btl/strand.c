/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * A byte transfer layer for tests: several links between processes of one host that fail and come
 * back as a seed says. Needs the two public headers and no library.
 *
 * A link is a Unix datagram socket of its own in each process; a datagram is a frame with one
 * fragment or a confirmation. Each endpoint lives through a random life:
 *
 *     UP --- dies ---> FADING --- notices ---> DOWN --- returns ---> UP ...
 *
 * FADING is a cable that was cut: what is sent is lost, confirmations too, and nobody knows. Then
 * the endpoint says that it is down and hands back what is not confirmed, of which a part has
 * arrived. Both directions fail on their own. Each return starts a new generation with counts of
 * its own. A link may be throttled, to a rate that another seeded choice changes as it goes.
 *
 * Parameters: btl_strand_links, _seed, _life and _fade (ms; 0: never dies), _rate (bytes/s; 0: no
 * limit), _last (links from this one on never die), _get (1: offer single
 * copy; 2: get with keys, which takes its time), _final (who dies stays dead), _early (the first link
 * dies in who is contacted over it before having looked the other up), _slow (ms; 0: no: a long
 * fragment that has a place is taken there in eight parts so far from each other, and the link can't
 * let go of it, while others bring the same bytes).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>
#include <hawser/btl.h>

enum {
    LINKS_MAX = 8, FRAG_MAX = 48 << 10, KEPT_MAX = 512 << 10, BUCKETS = 64, TICK_US = 1000,
    FRAMES_PER_POLL = 64,
};

typedef enum { UP, FADING, DOWN } life_t;

typedef struct frame {
    uint32_t rank;       /* the sender's */
    uint32_t confirm;    /* a confirmation, not a fragment */
    uint32_t generation; /* of the connection from the fragments' sender */
    uint32_t unused;
    uint64_t count;      /* fragments of this generation before this one, or handed up */
} frame_t;

/* What is not yet confirmed: a copy, or a descriptor. */
typedef struct entry {
    struct entry *next;
    mca_btl_descriptor_t *desc;
    size_t len;
    uint64_t number;
    _Alignas(16) unsigned char data[];
} entry_t;

typedef struct strand_module strand_module_t;

/* A fragment that is being taken to its place. */
typedef struct slow {
    mca_btl_endpoint_t *ep; /* NULL: none is */
    frame_t frame;
    mca_btl_place_t place;
    size_t len, at;         /* of the payload */
    uint64_t next_ns;
    _Alignas(16) unsigned char data[FRAG_MAX + MCA_BTL_HEADER_MAX];
} slow_t;

struct mca_btl_endpoint {
    strand_module_t *module;
    mca_btl_endpoint_t *next;
    void *cookie;
    mca_btl_name_t name;
    int pid;
    life_t life;
    uint64_t change_ns;                  /* next change of life */
    uint32_t generation;
    uint64_t queued, confirmed;          /* fragments of this generation */
    entry_t *head, **tail, *unsent;
    size_t kept;
    bool refused;
    entry_t *room;                       /* lent by reserve() */
    uint32_t peer_generation;
    uint64_t handed;                     /* fragments of the peer's generation */
    bool owe;                            /* a confirmation */
    double tokens;
    uint64_t token_ns;
};

struct strand_module {
    mca_btl_module_t super;
    unsigned index;
    int fd;
    void *event, *poller;
    double rate; /* bytes per ns; 0: no limit */
    uint64_t rate_ns;
    mca_btl_endpoint_t *endpoints[BUCKETS];
    slow_t slow;
};

static const mca_btl_services_t *services;
static strand_module_t modules[LINKS_MAX];
static mca_btl_module_t *module_list[LINKS_MAX];
static int64_t links, seed, life_ms, fade_ms, rate, last;
static int64_t get, slow_ms;
static bool final, early;
static uint64_t state;
static void *timer;
static _Alignas(16) unsigned char input[sizeof(frame_t) + FRAG_MAX + MCA_BTL_HEADER_MAX];

static uint32_t draw(uint32_t below)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t) ((state * 0x2545f4914f6cdd1du) >> 33) % below;
}

static uint64_t after_ms(int64_t ms)
{
    return services->now_ns() + (uint64_t) (ms / 4 + draw((uint32_t) (2 * ms) + 1)) * 1000000;
}

static socklen_t address(struct sockaddr_un *un, uint32_t rank, unsigned index)
{
    memset(un, 0, sizeof(*un));
    un->sun_family = AF_UNIX;
    int n = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "hawser-strand-%s-%u-%u",
                     services->job->job_id, rank, index);
    return (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) n);
}

/* ---- Sending ---- */

static bool transmit(mca_btl_endpoint_t *ep, const frame_t *frame, const entry_t *e)
{
    struct sockaddr_un to;
    struct iovec iov[MCA_BTL_IOV_MAX + 2] = {{(void *) (uintptr_t) frame, sizeof(*frame)}};
    struct msghdr msg = {.msg_name = &to, .msg_iov = iov, .msg_iovlen = 1};
    if (ep->life == FADING) {
        return true; /* into the void */
    }
    msg.msg_namelen = address(&to, (uint32_t) ep->name, ep->module->index);
    if (e && e->desc) {
        iov[msg.msg_iovlen++] = (struct iovec){(void *) (uintptr_t) e->desc->header,
                                               e->desc->header_len};
        for (uint32_t i = 0; i < e->desc->iov_count; i++) {
            iov[msg.msg_iovlen++] = e->desc->iov[i];
        }
    } else if (e) {
        iov[msg.msg_iovlen++] = (struct iovec){(void *) (uintptr_t) e->data, e->len};
    }
    /* Gone or not yet there is like lost: the counts find out. */
    return sendmsg(ep->module->fd, &msg, MSG_DONTWAIT) >= 0 ||
           (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM);
}

static bool may_send(mca_btl_endpoint_t *ep, size_t len)
{
    if (ep->module->rate == 0) {
        return true;
    }
    uint64_t now = services->now_ns();
    ep->tokens += (double) (now - ep->token_ns) * ep->module->rate;
    ep->token_ns = now;
    if (ep->tokens > 4 * FRAG_MAX) {
        ep->tokens = 4 * FRAG_MAX;
    }
    if (ep->tokens < (double) len) {
        return false;
    }
    ep->tokens -= (double) len;
    return true;
}

static int flush(mca_btl_endpoint_t *ep)
{
    int done = 0;
    while (ep->life != DOWN && ep->unsent && may_send(ep, ep->unsent->len)) {
        frame_t frame = {.rank = (uint32_t) services->job->self, .generation = ep->generation,
                         .count = ep->unsent->number};
        if (!transmit(ep, &frame, ep->unsent)) {
            break;
        }
        ep->unsent = ep->unsent->next;
        done++;
    }
    return done;
}

static void queue(mca_btl_endpoint_t *ep, entry_t *e)
{
    e->next = NULL;
    e->number = ep->queued++;
    *ep->tail = e;
    ep->tail = &e->next;
    ep->unsent = ep->unsent ? ep->unsent : e;
    ep->kept += e->len;
    flush(ep);
}

/* Room for an entry; *rc says why not. */
static entry_t *entry_new(mca_btl_endpoint_t *ep, size_t len, size_t bytes, int *rc)
{
    *rc = ep->life == DOWN ? MCA_ERR_UNREACHABLE : MCA_ERR_AGAIN;
    if (len == 0 || len > ep->module->super.limits.max_frag) {
        *rc = MCA_ERR_BAD_PARAM;
        return NULL;
    }
    entry_t *e = ep->life != DOWN && ep->kept + len <= KEPT_MAX ? malloc(sizeof(*e) + bytes) : NULL;
    if (!e) {
        ep->refused |= *rc == MCA_ERR_AGAIN;
        return NULL;
    }
    e->desc = NULL;
    e->len = len;
    return e;
}

static int send_short(mca_btl_endpoint_t *ep, const void *header, size_t header_len,
                      const void *payload, size_t len)
{
    int rc;
    entry_t *e = entry_new(ep, header_len + len, header_len + len, &rc);
    if (!e) {
        return rc;
    }
    memcpy(e->data, header, header_len);
    if (len > 0) {
        memcpy(e->data + header_len, payload, len);
    }
    queue(ep, e);
    return MCA_SUCCESS;
}

static int reserve(mca_btl_endpoint_t *ep, size_t min, size_t want, mca_btl_room_t *room)
{
    int rc;
    size_t max = ep->module->super.limits.max_frag;
    size_t len = want < min ? min : want < max ? want : max;
    ep->room = entry_new(ep, len, len, &rc);
    if (!ep->room) {
        return rc;
    }
    room->ptr = ep->room->data;
    room->len = len;
    return MCA_SUCCESS;
}

static void commit(mca_btl_endpoint_t *ep, mca_btl_room_t *room, size_t len)
{
    (void) room;
    entry_t *e = ep->room;
    ep->room = NULL;
    if (len == 0) {
        free(e);
        return;
    }
    e->len = len;
    queue(ep, e);
}

static int send_desc(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc)
{
    int rc;
    size_t len = desc->header_len;
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        len += desc->iov[i].iov_len;
    }
    entry_t *e = entry_new(ep, len, 0, &rc);
    if (!e) {
        return rc;
    }
    e->desc = desc;
    queue(ep, e);
    return 0;
}

static int no_put(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote,
                  const void *key)
{
    (void) ep, (void) desc, (void) remote, (void) key;
    return MCA_ERR_NOT_SUPPORTED;
}

/* Memory that a peer may get from; its address is the key. */
struct mca_btl_registration {
    uint64_t good;
    const char *from, *to;
};

typedef struct pending {
    struct pending *next;
    mca_btl_endpoint_t *ep;
    mca_btl_descriptor_t *desc;
    uint64_t remote;
    mca_btl_registration_t *registration; /* in the peer */
} pending_t;

static pending_t *pendings;
static unsigned registrations;
static const uint64_t GOOD = 0x5ead5ead5ead5ead;

static bool read_peer(const mca_btl_endpoint_t *ep, uint64_t remote, const struct iovec *to)
{
    struct iovec from = {(void *) (uintptr_t) remote, to->iov_len};
    return process_vm_readv(ep->pid, to, 1, &from, 1, 0) == (ssize_t) from.iov_len;
}

static int get_later(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key)
{
    pending_t *p = calloc(1, sizeof(*p));
    if (!p) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    p->ep = ep;
    p->desc = desc;
    p->remote = remote;
    memcpy(&p->registration, key, sizeof(p->registration));
    p->next = pendings;
    pendings = p;
    return 0;
}

/* The peer's memory must be registered as long as it is read; but of a peer that has failed it need not be. */
static void get_now(const pending_t *p)
{
    mca_btl_registration_t theirs;
    const char *at = (const char *) (uintptr_t) p->remote;
    bool read = p->ep->life != DOWN &&
                read_peer(p->ep, (uintptr_t) p->registration, &(struct iovec){&theirs, sizeof(theirs)});
    if (read && (theirs.good != GOOD || at < theirs.from || at + p->desc->iov[0].iov_len > theirs.to)) {
        fprintf(stderr, "strand: memory is fetched that is not registered\n");
        abort();
    }
    read = read && read_peer(p->ep, p->remote, &p->desc->iov[0]);
    p->desc->event(p->desc, read ? MCA_BTL_CONFIRMED : MCA_BTL_UNCONFIRMED, read ? MCA_SUCCESS : MCA_ERR_UNREACHABLE);
}

static void get_all(void)
{
    pending_t *p = pendings;
    pendings = NULL;
    while (p) {
        pending_t *next = p->next;
        get_now(p);
        free(p);
        p = next;
    }
}

static int do_get(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote,
                  const void *key)
{
    if (ep->life == DOWN || ep->pid == 0) {
        return ep->pid == 0 ? MCA_ERR_NOT_AVAILABLE : MCA_ERR_UNREACHABLE;
    }
    if ((get == 2) != (key != NULL)) {
        return MCA_ERR_BAD_PARAM;
    }
    return key ? get_later(ep, desc, remote, key)
               : read_peer(ep, remote, &desc->iov[0]) ? 1 : MCA_ERR_NOT_AVAILABLE;
}

static int do_register(mca_btl_module_t *module, void *addr, size_t len,
                       uint8_t key[MCA_BTL_KEY_MAX], size_t *key_len,
                       mca_btl_registration_t **registration)
{
    (void) module;
    mca_btl_registration_t *r = malloc(sizeof(*r));
    if (!r) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    *r = (mca_btl_registration_t){GOOD, addr, (char *) addr + len};
    memcpy(key, &r, sizeof(r));
    *key_len = sizeof(r);
    *registration = r;
    registrations++;
    return MCA_SUCCESS;
}

static void do_deregister(mca_btl_module_t *module, mca_btl_registration_t *registration)
{
    (void) module;
    *(volatile uint64_t *) &registration->good = 0;
    free(registration);
    registrations--;
}

/* ---- Lives ---- */

static void end_entry(mca_btl_endpoint_t *ep, entry_t *e, int status)
{
    if (e->desc) {
        e->desc->event(e->desc, status == MCA_SUCCESS ? MCA_BTL_CONFIRMED : MCA_BTL_UNCONFIRMED,
                       status);
    } else if (status != MCA_SUCCESS) {
        ep->module->super.upcalls->returned(ep->cookie, ep, e->data, e->len, status);
    }
    free(e);
}

static void die(mca_btl_endpoint_t *ep)
{
    entry_t *e = ep->head, *next;
    ep->life = DOWN;
    ep->change_ns = after_ms(life_ms / 4 + 1);
    ep->head = ep->unsent = NULL;
    ep->tail = &ep->head;
    ep->kept = 0;
    ep->refused = false;
    ep->module->super.upcalls->state(ep->cookie, ep, MCA_BTL_STATE_DOWN, "the script says so");
    for (; e; e = next) {
        next = e->next;
        end_entry(ep, e, MCA_ERR_UNREACHABLE);
    }
}

static void revive(mca_btl_endpoint_t *ep)
{
    ep->life = UP;
    ep->change_ns = after_ms(life_ms);
    ep->generation++;
    ep->queued = ep->confirmed = 0;
    ep->module->super.upcalls->state(ep->cookie, ep, MCA_BTL_STATE_UP, "the script says so");
}

static void live(mca_btl_endpoint_t *ep, uint64_t now)
{
    if (life_ms == 0 || now < ep->change_ns || (last >= 0 && ep->module->index >= (unsigned) last)) {
        return;
    }
    if (ep->life == UP) {
        ep->life = FADING;
        ep->change_ns = after_ms(fade_ms);
    } else if (ep->life == FADING) {
        die(ep);
    } else if (!final) {
        revive(ep);
    }
    ep->owe = ep->peer_generation > 0; /* the last one may have been lost */
}

/* ---- Arrivals ---- */

static void confirmed(mca_btl_endpoint_t *ep, const frame_t *frame)
{
    if (frame->generation != ep->generation || ep->life == DOWN) {
        return;
    }
    while (ep->head && ep->confirmed < frame->count && ep->head != ep->unsent) {
        entry_t *e = ep->head;
        ep->head = e->next;
        ep->tail = ep->head ? ep->tail : &ep->head;
        ep->kept -= e->len;
        ep->confirmed++;
        end_entry(ep, e, MCA_SUCCESS);
    }
    if (ep->refused && ep->kept < KEPT_MAX / 2) {
        ep->refused = false;
        ep->module->super.upcalls->writable(ep->cookie, ep);
    }
}

static mca_btl_endpoint_t *find(strand_module_t *m, mca_btl_name_t name)
{
    mca_btl_endpoint_t *ep = m->endpoints[name % BUCKETS];
    while (ep && ep->name != name) {
        ep = ep->next;
    }
    return ep;
}

static mca_btl_endpoint_t *endpoint_new(strand_module_t *m, mca_btl_name_t name, void *cookie)
{
    mca_btl_endpoint_t *ep = calloc(1, sizeof(*ep));
    if (ep) {
        ep->module = m;
        ep->name = name;
        ep->cookie = cookie;
        ep->tail = &ep->head;
        ep->generation = 1;
        ep->change_ns = after_ms(life_ms);
        ep->token_ns = services->now_ns();
        ep->next = m->endpoints[name % BUCKETS];
        m->endpoints[name % BUCKETS] = ep;
    }
    return ep;
}

static void handed_up(mca_btl_endpoint_t *ep, const frame_t *frame)
{
    if (frame->generation == ep->peer_generation) {
        ep->handed++;
        ep->owe = true;
    }
}

/* Has the fragment a place that its user takes it to? */
static bool slow_begin(mca_btl_endpoint_t *ep, const frame_t *frame, const void *data, size_t len)
{
    enum { LONG = 4 << 10 };
    const mca_btl_upcalls_t *up = ep->module->super.upcalls;
    slow_t *s = &ep->module->slow;
    bool may = slow_ms > 0 && len >= LONG && len <= sizeof(s->data) && up->struct_size > offsetof(mca_btl_upcalls_t, take) && up->take;
    if (!may || !up->place(ep->cookie, data, MCA_BTL_HEADER_MAX, len, &s->place)) {
        return false;
    }
    memcpy(s->data, data, len);
    s->ep = ep;
    s->frame = *frame;
    s->len = len - s->place.header_len;
    s->at = 0;
    s->next_ns = 0;
    return true;
}

/* The next part, when it is due; the last one ends in its arrival. */
static void slow_go_on(strand_module_t *m)
{
    slow_t *s = &m->slow;
    uint64_t now = services->now_ns();
    if (now < s->next_ns) {
        return;
    }
    mca_btl_endpoint_t *ep = s->ep;
    const mca_btl_upcalls_t *up = m->super.upcalls;
    size_t part = s->len / 8 + 1, left = s->len - s->at;
    part = part < left ? part : left;
    if (!up->take(ep->cookie, s->place.token, s->at, s->data + s->place.header_len + s->at, part, MCA_BTL_COPY_ANY)) {
        fprintf(stderr, "strand: a place that its user does not take anything to\n");
        abort();
    }
    s->at += part;
    s->next_ns = now + (uint64_t) slow_ms * 1000000;
    if (s->at == s->len) {
        mca_btl_arrival_t arrival = {.data = s->data, .len = s->place.header_len, .place_token = s->place.token,
                                     .placed_len = s->len, .module = &m->super, .endpoint = ep};
        s->ep = NULL;
        handed_up(ep, &s->frame);
        up->arrive(ep->cookie, &arrival);
    }
}

static void fragment(mca_btl_endpoint_t *ep, const frame_t *frame, const void *data, size_t len)
{
    /* Of an earlier generation: it has been handed back to its sender, and arrives all the same. */
    if (frame->generation > ep->peer_generation) {
        ep->peer_generation = frame->generation;
        ep->handed = 0;
    }
    if (frame->generation == ep->peer_generation) {
        if (frame->count != ep->handed) {
            return; /* one before it was lost in fading: nothing after it counts */
        }
    }
    if (slow_begin(ep, frame, data, len)) {
        return;
    }
    handed_up(ep, frame);
    mca_btl_arrival_t arrival = {.data = data, .len = len, .module = &ep->module->super,
                                 .endpoint = ep};
    ep->module->super.upcalls->arrive(ep->cookie, &arrival);
}

static int receive(strand_module_t *m)
{
    int done = 0;
    ssize_t n;
    if (m->slow.ep) {
        slow_go_on(m);
    }
    while (done < FRAMES_PER_POLL && !m->slow.ep && (n = recv(m->fd, input, sizeof(input), MSG_DONTWAIT)) >= 0) {
        frame_t frame;
        done++;
        if ((size_t) n < sizeof(frame)) {
            continue;
        }
        memcpy(&frame, input, sizeof(frame));
        mca_btl_name_t name = services->job->self >> 32 << 32 | frame.rank;
        mca_btl_endpoint_t *ep = find(m, name);
        if (!ep) {
            void *cookie = m->super.upcalls->incoming(&m->super, name);
            ep = find(m, name);
            if (!ep && cookie) {
                ep = endpoint_new(m, name, cookie);
                if (ep && early && m->index == 0) {
                    die(ep);
                }
            }
        }
        if (ep && frame.confirm) {
            confirmed(ep, &frame);
        } else if (ep) {
            fragment(ep, &frame, input + sizeof(frame), (size_t) n - sizeof(frame));
        }
    }
    return done;
}

static int poll_module(void *context)
{
    strand_module_t *m = context;
    uint64_t now = services->now_ns();
    int done = receive(m);
    if (rate > 0 && now >= m->rate_ns) { /* full speed, a half, or a tenth */
        static const double parts[] = {1, 1, 0.5, 0.1};
        m->rate = (double) rate * 1e-9 * parts[draw(4)];
        m->rate_ns = after_ms(200);
    }
    for (int b = 0; b < BUCKETS; b++) {
        for (mca_btl_endpoint_t *ep = m->endpoints[b]; ep; ep = ep->next) {
            live(ep, now);
            done += flush(ep);
            if (ep->owe) {
                frame_t frame = {.rank = (uint32_t) services->job->self, .confirm = 1,
                                 .generation = ep->peer_generation, .count = ep->handed};
                ep->owe = !transmit(ep, &frame, NULL);
            }
        }
    }
    return done;
}

static void readable(int fd, unsigned what, void *context)
{
    (void) fd, (void) what;
    poll_module(context);
}

/* Lives go on, and full sockets are tried again, in a process that sleeps. */
static void tick(void *context)
{
    (void) context;
    services->timer_del(timer);
    timer = NULL;
    for (int64_t i = 0; i < links; i++) {
        poll_module(&modules[i]);
    }
    get_all();
    services->timer_add(TICK_US, tick, NULL, &timer);
}

static int keep(mca_btl_arrival_t *arrival)
{
    void *copy = malloc(arrival->len);
    if (!copy) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    arrival->data = memcpy(copy, arrival->data, arrival->len);
    arrival->token[0] = (uintptr_t) copy;
    return MCA_SUCCESS;
}

static void release(mca_btl_arrival_t *arrival)
{
    free((void *) (uintptr_t) arrival->token[0]);
}

/* ---- Peers ---- */

static int add_peer(mca_btl_module_t *module, const mca_btl_peer_t *peer, void *cookie,
                    mca_btl_endpoint_t **endpoint, const char **why)
{
    strand_module_t *m = (strand_module_t *) module;
    if (!peer->card || peer->card_len != sizeof(int)) {
        *why = "the other process does not use it";
        return MCA_ERR_UNREACHABLE;
    }
    mca_btl_endpoint_t *ep = find(m, peer->name);
    *endpoint = ep = ep ? ep : endpoint_new(m, peer->name, cookie);
    if (!ep) {
        *why = "out of memory";
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    memcpy(&ep->pid, peer->card, sizeof(ep->pid));
    return MCA_SUCCESS;
}

static void del_peer(mca_btl_module_t *module, mca_btl_endpoint_t *endpoint)
{
    strand_module_t *m = (strand_module_t *) module;
    mca_btl_endpoint_t **at = &m->endpoints[endpoint->name % BUCKETS];
    while (*at != endpoint) {
        at = &(*at)->next;
    }
    *at = endpoint->next;
    if (m->slow.ep == endpoint) {
        m->slow.ep = NULL;
        m->super.upcalls->place_cancel(endpoint->cookie, m->slow.place.token);
    }
    while (endpoint->head) {
        entry_t *e = endpoint->head;
        endpoint->head = e->next;
        free(e);
    }
    free(endpoint);
}

static bool idle(mca_btl_module_t *module, mca_btl_endpoint_t *endpoint)
{
    (void) module;
    return !endpoint->head;
}

static void finalize(mca_btl_module_t *module)
{
    strand_module_t *m = (strand_module_t *) module;
    if (registrations > 0) {
        fprintf(stderr, "strand: %u registrations are left at the end\n", registrations);
        abort();
    }
    services->timer_del(timer);
    timer = NULL;
    services->event_del(m->event);
    services->poller_del(m->poller);
    close(m->fd);
}

static const mca_btl_module_ops_t ops = {
    .add_peer = add_peer, .del_peer = del_peer, .idle = idle, .finalize = finalize,
    .send_short = send_short, .reserve = reserve, .commit = commit, .send = send_desc,
    .put = no_put, .get = do_get, .register_mem = do_register, .deregister_mem = do_deregister,
    .keep = keep, .release = release,
};

extern MCA_EXPORT const mca_base_component_t mca_btl_strand_component;

static int module_init(strand_module_t *m, unsigned index)
{
    static const mca_btl_poller_t poller = {.poll = poll_module};
    struct sockaddr_un un;
    socklen_t len = address(&un, (uint32_t) services->job->self, index);
    m->super = (mca_btl_module_t){
        .struct_size = sizeof(m->super), .ops = &ops, .component = &mca_btl_strand_component,
        .limits = {.short_max = 4096, .eager_limit = 16 << 10, .min_frag = 4 << 10,
                   /* Links of one kind need not take equally long fragments. */
                   .max_frag = index % 2 ? FRAG_MAX : FRAG_MAX / 2, .send_min = 8 << 10,
                   .window = 256 << 10, .get_min = get ? 32 << 10 : SIZE_MAX, .get_try = SIZE_MAX,
                   .bandwidth = rate > 0 ? (uint64_t) rate : 1000000000, .latency_ns = 10000,
                   .exclusivity = 100,
                   .caps = MCA_BTL_CAP_RELIABLE | MCA_BTL_CAP_CAN_FAIL | MCA_BTL_CAP_LOCAL |
                           (get ? MCA_BTL_CAP_GET : 0) | (get == 1 ? MCA_BTL_CAP_SINGLE_COPY : 0)},
    };
    snprintf(m->super.name, sizeof(m->super.name), "strand:%u", index);
    m->index = index;
    m->rate = (double) rate * 1e-9;
    m->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int size = 1 << 20;
    if (m->fd < 0 || setsockopt(m->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) != 0 ||
        bind(m->fd, (struct sockaddr *) &un, len) != 0) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    int rc = services->poller_add(&poller, m, &m->poller);
    return rc == MCA_SUCCESS
               ? services->event_add(m->fd, MCA_BTL_EVENT_READ, readable, m, &m->event) : rc;
}

static int init(const mca_btl_services_t *given, mca_btl_module_t ***list, size_t *count)
{
    services = given;
    if (services->threads) {
        return MCA_ERR_NOT_AVAILABLE; /* no locks here */
    }
    state = ((uint64_t) seed << 20 ^ (uint32_t) services->job->self) * 0x9e3779b97f4a7c15u | 1;
    for (unsigned i = 0; i < (unsigned) links; i++) {
        int rc = module_init(&modules[i], i);
        if (rc != MCA_SUCCESS) {
            return rc;
        }
        module_list[i] = &modules[i].super;
    }
    *list = module_list;
    *count = (size_t) links;
    int pid = (int) getpid();
    int rc = services->publish("strand", &pid, sizeof(pid));
    return rc == MCA_SUCCESS ? services->timer_add(TICK_US, tick, NULL, &timer) : rc;
}

static int register_params(const mca_base_services_t *base)
{
    static const struct {
        const char *name;
        int64_t def, min, max, *storage;
    } list[] = {
        {"links", 3, 1, LINKS_MAX, &links},      {"seed", 1, 0, INT32_MAX, &seed},
        {"life", 100, 0, INT32_MAX, &life_ms},   {"fade", 10, 0, INT32_MAX, &fade_ms},
        {"rate", 0, 0, INT64_MAX, &rate},        {"last", -1, -1, LINKS_MAX, &last},
        {"get", 0, 0, 2, &get},                  {"slow", 0, 0, 1000, &slow_ms},
    };
    enum { NUMBERS = sizeof(list) / sizeof(list[0]) };
    static mca_base_var_desc_t descs[NUMBERS + 2];
    for (size_t i = 0; i < NUMBERS; i++) {
        descs[i] = (mca_base_var_desc_t){
            .framework = "btl", .component = "strand", .name = list[i].name, .help = "See the source",
            .type = MCA_VAR_INT, .def.i = list[i].def, .min = list[i].min, .max = list[i].max,
            .level = MCA_VAR_LEVEL_DEVELOPER, .scope = MCA_VAR_SCOPE_STARTUP};
        int rc = base->var_register(&descs[i], list[i].storage);
        if (rc != MCA_SUCCESS) {
            return rc;
        }
    }
    mca_base_var_desc_t *flags = &descs[NUMBERS];
    flags[0] = descs[0];
    flags[0].name = "final";
    flags[0].type = MCA_VAR_BOOL;
    flags[0].min = flags[0].max = 0;
    flags[0].def.b = false;
    flags[1] = flags[0];
    flags[1].name = "early";
    int rc = base->var_register(&flags[0], &final);
    return rc == MCA_SUCCESS ? base->var_register(&flags[1], &early) : rc;
}

static const mca_btl_component_ops_t component_ops = {
    .struct_size = sizeof(component_ops), .init = init};

MCA_EXPORT const mca_base_component_t mca_btl_strand_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC, .struct_size = sizeof(mca_base_component_t),
    .framework = "btl", .contract_major = MCA_BTL_CONTRACT_MAJOR,
    .contract_minor = MCA_BTL_CONTRACT_MINOR, .name = "strand", .version = {1, 0, 0},
    .register_params = register_params, .ops = &component_ops,
};
