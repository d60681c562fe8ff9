/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * btl/self: a process's messages to itself. What is sent is copied into one bounded queue and
 * handed up by the poller, never from inside the send call. Long messages go by get, a plain copy
 * here.
 *
 * The queue is a circle of records, each a 16-byte head and data, 16-byte aligned and never split
 * at the end: a record that does not fit there leaves a filler and starts at the front. `tail`
 * moves under `lock` (if there are several threads), `head` by the poller alone.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "hawser/btl.h"

enum {
    SELF_ALIGN = 16,
    SELF_SHORT_MAX = 4096,
    SELF_EAGER_LIMIT = 16384,
    SELF_MAX_FRAG = 65536,
    SELF_QUIET_ROUNDS = 64, /* empty polls after which the poller calls itself idle */
};

typedef struct self_record {
    uint32_t size;   /* of the whole record, head included */
    uint32_t len;    /* of the data; meaningless in a filler */
    uint32_t filler; /* nothing here: the next record starts at the front of the queue */
    uint32_t unused;
} self_record_t;
_Static_assert(sizeof(self_record_t) == SELF_ALIGN, "records stay aligned");

struct mca_btl_endpoint {
    struct self_module *module;
    void *cookie;
};

typedef struct self_module {
    mca_btl_module_t super;
    const mca_btl_services_t *services;
    mca_btl_endpoint_t endpoint;
    void *poller;
    pthread_mutex_t lock;          /* serialises senders if services->threads */
    unsigned char *queue;
    uint64_t size;                 /* bytes of the queue; multiple of SELF_ALIGN */
    _Atomic uint64_t head, tail;   /* running byte counts */
    atomic_bool starved;           /* a sender was refused: call writable() */
    atomic_bool armed;             /* the progress engine sleeps */
    atomic_bool active;            /* what the progress engine was told */
    unsigned quiet;                /* polls without an arrival */
} self_module_t;

static uint64_t self_queue_size;

/* ---- The queue ---- */

static uint64_t self_record_size(size_t len)
{
    return (sizeof(self_record_t) + len + SELF_ALIGN - 1) & ~(uint64_t)(SELF_ALIGN - 1);
}

static self_record_t *self_record_at(const self_module_t *m, uint64_t position)
{
    return (self_record_t *)(m->queue + position % m->size);
}

/* Room for a record of `len` bytes behind the tail, or NULL. The filler that it may need is
 * written, and takes effect with the tail set by self_publish(). */
static self_record_t *self_room(self_module_t *m, size_t len, uint64_t *position)
{
    uint64_t tail = atomic_load_explicit(&m->tail, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&m->head, memory_order_acquire);
    uint64_t need = self_record_size(len), at_end = m->size - tail % m->size;
    uint64_t skip = need > at_end ? at_end : 0;
    if (tail + skip + need - head > m->size) {
        atomic_store(&m->starved, true);
        return NULL;
    }
    if (skip) {
        self_record_t *filler = self_record_at(m, tail);
        filler->size = (uint32_t)skip;
        filler->filler = 1;
    }
    *position = tail + skip;
    return self_record_at(m, *position);
}

static void self_publish(self_module_t *m, self_record_t *record, uint64_t position, size_t len)
{
    record->size = (uint32_t)self_record_size(len);
    record->len = (uint32_t)len;
    record->filler = 0;
    atomic_store_explicit(&m->tail, position + record->size, memory_order_release);
    if (m->services->threads) { /* another thread may poll, or sleep */
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load_explicit(&m->armed, memory_order_relaxed)) {
            m->services->wake();
        }
    }
    if (!atomic_load_explicit(&m->active, memory_order_relaxed)) {
        atomic_store(&m->active, true);
        m->services->poller_active(m->poller, true);
    }
}

static void self_lock(self_module_t *m)
{
    if (m->services->threads) {
        pthread_mutex_lock(&m->lock);
    }
}

static void self_unlock(self_module_t *m)
{
    if (m->services->threads) {
        pthread_mutex_unlock(&m->lock);
    }
}

/* ---- Sending ---- */

static int self_send_short(mca_btl_endpoint_t *endpoint, const void *header, size_t header_len,
                           const void *payload, size_t len)
{
    self_module_t *m = endpoint->module;
    uint64_t position;
    if (header_len + len > SELF_MAX_FRAG) {
        return MCA_ERR_BAD_PARAM;
    }
    self_lock(m);
    self_record_t *record = self_room(m, header_len + len, &position);
    if (record) {
        unsigned char *data = (unsigned char *)(record + 1);
        memcpy(data, header, header_len);
        if (len > 0) {
            memcpy(data + header_len, payload, len);
        }
        self_publish(m, record, position, header_len + len);
    }
    self_unlock(m);
    return record ? MCA_SUCCESS : MCA_ERR_AGAIN;
}

/* The lock is held until commit. */
static int self_reserve(mca_btl_endpoint_t *endpoint, size_t min, size_t want, mca_btl_room_t *room)
{
    self_module_t *m = endpoint->module;
    uint64_t position;
    size_t len = want < SELF_MAX_FRAG ? want : SELF_MAX_FRAG;
    if (min > SELF_MAX_FRAG) {
        return MCA_ERR_BAD_PARAM;
    }
    self_lock(m);
    self_record_t *record = self_room(m, len < min ? min : len, &position);
    if (!record) {
        self_unlock(m);
        return MCA_ERR_AGAIN;
    }
    room->ptr = record + 1;
    room->len = len < min ? min : len;
    room->token[0] = position;
    return MCA_SUCCESS;
}

static void self_commit(mca_btl_endpoint_t *endpoint, mca_btl_room_t *room, size_t len)
{
    self_module_t *m = endpoint->module;
    if (len > 0) { /* else abandoned: the tail has not moved */
        self_publish(m, (self_record_t *)room->ptr - 1, room->token[0], len);
    }
    self_unlock(m);
}

static int self_send(mca_btl_endpoint_t *endpoint, mca_btl_descriptor_t *desc)
{
    size_t len = desc->header_len;
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        len += desc->iov[i].iov_len;
    }
    mca_btl_room_t room;
    int rc = self_reserve(endpoint, len, len, &room);
    if (rc != MCA_SUCCESS) {
        return rc;
    }
    unsigned char *to = room.ptr;
    memcpy(to, desc->header, desc->header_len);
    to += desc->header_len;
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        if (desc->iov[i].iov_len > 0) {
            memcpy(to, desc->iov[i].iov_base, desc->iov[i].iov_len);
            to += desc->iov[i].iov_len;
        }
    }
    self_commit(endpoint, &room, len);
    return 1;
}

static int self_put(mca_btl_endpoint_t *endpoint, mca_btl_descriptor_t *desc, uint64_t remote,
                    const void *key)
{
    (void)endpoint, (void)key;
    unsigned char *to = (unsigned char *)(uintptr_t)remote;
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        if (desc->iov[i].iov_len > 0) {
            memmove(to, desc->iov[i].iov_base, desc->iov[i].iov_len);
            to += desc->iov[i].iov_len;
        }
    }
    return 1;
}

static int self_get(mca_btl_endpoint_t *endpoint, mca_btl_descriptor_t *desc, uint64_t remote,
                    const void *key)
{
    (void)endpoint, (void)key;
    const unsigned char *from = (const unsigned char *)(uintptr_t)remote;
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        if (desc->iov[i].iov_len > 0) {
            memmove(desc->iov[i].iov_base, from, desc->iov[i].iov_len);
            from += desc->iov[i].iov_len;
        }
    }
    return 1;
}

/* SINGLE_COPY: nothing needs registering. */
static int self_register_mem(mca_btl_module_t *module, void *addr, size_t len,
                             uint8_t key[MCA_BTL_KEY_MAX], size_t *key_len,
                             mca_btl_registration_t **registration)
{
    (void)module, (void)addr, (void)len, (void)key, (void)key_len, (void)registration;
    return MCA_ERR_NOT_SUPPORTED;
}

static void self_deregister_mem(mca_btl_module_t *module, mca_btl_registration_t *registration)
{
    (void)module, (void)registration;
}

/* ---- Arrivals ---- */

static int self_keep(mca_btl_arrival_t *arrival)
{
    void *copy = malloc(arrival->len > 0 ? arrival->len : 1);
    if (!copy) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    memcpy(copy, arrival->data, arrival->len);
    arrival->data = copy;
    arrival->token[0] = (uintptr_t)copy;
    return MCA_SUCCESS;
}

static void self_release(mca_btl_arrival_t *arrival)
{
    free((void *)(uintptr_t)arrival->token[0]);
    arrival->token[0] = 0;
}

static void self_tell_writable(self_module_t *m)
{
    if (atomic_load_explicit(&m->starved, memory_order_relaxed)
        && atomic_exchange(&m->starved, false)) {
        m->super.upcalls->writable(m->endpoint.cookie, &m->endpoint);
    }
}

static void self_note_quiet(self_module_t *m)
{
    if (++m->quiet != SELF_QUIET_ROUNDS) {
        return;
    }
    m->services->poller_active(m->poller, false);
    atomic_store(&m->active, false);
    if (atomic_load(&m->tail) != atomic_load(&m->head)) { /* a sender read `active` just before */
        atomic_store(&m->active, true);
        m->services->poller_active(m->poller, true);
    }
}

/* Hands up what stood in the queue at entry: what the upcalls send waits for the next round. */
static int self_poll(void *context)
{
    self_module_t *m = context;
    uint64_t head = atomic_load_explicit(&m->head, memory_order_relaxed);
    uint64_t end = atomic_load_explicit(&m->tail, memory_order_acquire);
    int count = 0;
    if (head == end) {
        self_tell_writable(m);
        self_note_quiet(m);
        return 0;
    }
    m->quiet = 0;
    while (head != end) {
        const self_record_t *record = self_record_at(m, head);
        uint32_t size = record->size;
        if (!record->filler) {
            mca_btl_arrival_t arrival = {
                .data = record + 1, .len = record->len,
                .module = &m->super, .endpoint = &m->endpoint,
            };
            m->super.upcalls->arrive(m->endpoint.cookie, &arrival);
            count++;
        }
        head += size;
        atomic_store_explicit(&m->head, head, memory_order_release);
    }
    self_tell_writable(m);
    return count;
}

static void self_arm(void *context)
{
    self_module_t *m = context;
    atomic_store(&m->armed, true);
}

static void self_disarm(void *context)
{
    self_module_t *m = context;
    atomic_store(&m->armed, false);
}

/* ---- Life ---- */

static int self_add_peer(mca_btl_module_t *module, const mca_btl_peer_t *peer, void *cookie,
                         mca_btl_endpoint_t **endpoint, const char **why)
{
    self_module_t *m = (self_module_t *)module;
    if (peer->name != m->services->job->self) {
        *why = "it reaches the process itself only";
        return MCA_ERR_UNREACHABLE;
    }
    m->endpoint = (mca_btl_endpoint_t){.module = m, .cookie = cookie};
    *endpoint = &m->endpoint;
    return MCA_SUCCESS;
}

/* What is still queued was confirmed when it was taken, and is dropped with its receiver. */
static void self_del_peer(mca_btl_module_t *module, mca_btl_endpoint_t *endpoint)
{
    self_module_t *m = (self_module_t *)module;
    (void)endpoint;
    atomic_store(&m->head, atomic_load(&m->tail));
    atomic_store(&m->starved, false);
}

static bool self_idle(mca_btl_module_t *module, mca_btl_endpoint_t *endpoint)
{
    self_module_t *m = (self_module_t *)module;
    (void)endpoint;
    return atomic_load(&m->head) == atomic_load(&m->tail);
}

static void self_finalize(mca_btl_module_t *module)
{
    self_module_t *m = (self_module_t *)module;
    m->services->poller_del(m->poller);
    pthread_mutex_destroy(&m->lock);
    free(m->queue);
    free(m);
}

static const mca_btl_module_ops_t self_ops = {
    .add_peer = self_add_peer,
    .del_peer = self_del_peer,
    .idle = self_idle,
    .finalize = self_finalize,
    .send_short = self_send_short,
    .reserve = self_reserve,
    .commit = self_commit,
    .send = self_send,
    .put = self_put,
    .get = self_get,
    .register_mem = self_register_mem,
    .deregister_mem = self_deregister_mem,
    .keep = self_keep,
    .release = self_release,
};

extern MCA_EXPORT const mca_base_component_t mca_btl_self_component;

static int self_init(const mca_btl_services_t *services, mca_btl_module_t ***modules, size_t *count)
{
    static const mca_btl_poller_t poller = {
        .poll = self_poll, .arm = self_arm, .disarm = self_disarm,
    };
    static mca_btl_module_t *list[1];
    self_module_t *m = calloc(1, sizeof(*m));
    if (!m) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    m->super = (mca_btl_module_t){
        .struct_size = sizeof(mca_btl_module_t),
        .ops = &self_ops,
        .component = &mca_btl_self_component,
        .name = "self",
        .limits = {
            .short_max = SELF_SHORT_MAX,
            .eager_limit = SELF_EAGER_LIMIT,
            .min_frag = SELF_SHORT_MAX,
            .max_frag = SELF_MAX_FRAG,
            .send_min = SIZE_MAX,
            .window = SELF_MAX_FRAG,
            .get_min = SELF_EAGER_LIMIT,
            .get_try = SIZE_MAX,
            .bandwidth = 20000000000u,
            .latency_ns = 50,
            .exclusivity = 1000,
            .caps = MCA_BTL_CAP_RELIABLE | MCA_BTL_CAP_ORDERED | MCA_BTL_CAP_CHECKSUMMED
                    | MCA_BTL_CAP_PUT | MCA_BTL_CAP_GET | MCA_BTL_CAP_SINGLE_COPY
                    | MCA_BTL_CAP_LOCAL | MCA_BTL_CAP_SELF,
        },
    };
    m->services = services;
    m->size = self_queue_size & ~(uint64_t)(SELF_ALIGN - 1);
    m->queue = aligned_alloc(64, (m->size + 63) & ~(uint64_t)63);
    if (!m->queue || pthread_mutex_init(&m->lock, NULL) != 0) {
        free(m->queue);
        free(m);
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    int rc = services->poller_add(&poller, m, &m->poller);
    if (rc != MCA_SUCCESS) {
        pthread_mutex_destroy(&m->lock);
        free(m->queue);
        free(m);
        return rc;
    }
    atomic_store(&m->active, true);
    list[0] = &m->super;
    *modules = list;
    *count = 1;
    return MCA_SUCCESS;
}

static int self_register_params(const mca_base_services_t *services)
{
    /* A filler may waste nearly a whole fragment: at least three must fit. */
    static const mca_base_var_desc_t queue = {
        .framework = "btl", .component = "self", .name = "queue",
        .help = "Bytes of messages to itself that a process may have under way",
        .unit = "bytes", .type = MCA_VAR_SIZE, .level = MCA_VAR_LEVEL_DEVELOPER,
        .scope = MCA_VAR_SCOPE_STARTUP, .def.size = 512 * 1024,
        .min = 4 * SELF_MAX_FRAG, .max = 1 << 30,
    };
    return services->var_register(&queue, &self_queue_size);
}

static const mca_btl_component_ops_t self_component_ops = {
    .struct_size = sizeof(mca_btl_component_ops_t),
    .init = self_init,
};

const mca_base_component_t mca_btl_self_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "btl",
    .contract_major = MCA_BTL_CONTRACT_MAJOR,
    .contract_minor = MCA_BTL_CONTRACT_MINOR,
    .name = "self",
    .version = {1, 0, 0},
    .register_params = self_register_params,
    .ops = &self_component_ops,
};
