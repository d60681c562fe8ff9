/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The smallest byte transfer layer outside Hawser's tree: a process's messages to itself, in a circle of
 * fixed slots. It needs hawser/btl.h and no library. It can do what the contract asks for and no more: no put
 * and get, one thread.
 */
#include <stdlib.h>
#include <string.h>
#include <hawser/btl.h>

enum { LOOP_SLOTS = 64, LOOP_FRAG = 16384 };

typedef struct loop_slot {
    size_t len; /* 0: abandoned */
    _Alignas(16) unsigned char data[LOOP_FRAG];
} loop_slot_t;

struct mca_btl_endpoint {
    void *cookie;
};

typedef struct loop_module {
    mca_btl_module_t super;
    const mca_btl_services_t *services;
    void *poller;
    mca_btl_endpoint_t endpoint;
    loop_slot_t *slots;
    unsigned head, tail; /* running counts: [head, tail) is full */
    bool refused;        /* a send found no slot: writable() is owed */
} loop_module_t;

static loop_module_t loop;
static int64_t loop_exclusivity;

/* ---- Sending ---- */

static int loop_reserve(mca_btl_endpoint_t *ep, size_t min, size_t want, mca_btl_room_t *room)
{
    (void)ep;
    if (min > LOOP_FRAG) {
        return MCA_ERR_BAD_PARAM;
    }
    if (loop.tail - loop.head == LOOP_SLOTS) {
        loop.refused = true;
        return MCA_ERR_AGAIN;
    }
    want = want < min ? min : want;
    room->ptr = loop.slots[loop.tail % LOOP_SLOTS].data;
    room->len = want < LOOP_FRAG ? want : LOOP_FRAG;
    return MCA_SUCCESS;
}

static void loop_commit(mca_btl_endpoint_t *ep, mca_btl_room_t *room, size_t len)
{
    (void)ep, (void)room;
    if (len > 0) {
        loop.slots[loop.tail++ % LOOP_SLOTS].len = len;
    }
}

static int loop_send_short(mca_btl_endpoint_t *ep, const void *header, size_t header_len,
                           const void *payload, size_t len)
{
    mca_btl_room_t room;
    int rc = loop_reserve(ep, header_len + len, header_len + len, &room);
    if (rc == MCA_SUCCESS) {
        memcpy(room.ptr, header, header_len);
        if (len > 0) {
            memcpy((unsigned char *)room.ptr + header_len, payload, len);
        }
        loop_commit(ep, &room, header_len + len);
    }
    return rc;
}

/* Copied at once: 1, done and confirmed, no event. */
static int loop_send(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc)
{
    mca_btl_room_t room;
    size_t len = desc->header_len;
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        len += desc->iov[i].iov_len;
    }
    int rc = loop_reserve(ep, len, len, &room);
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
    loop_commit(ep, &room, len);
    return 1;
}

static int loop_no_remote(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote,
                          const void *key)
{
    (void)ep, (void)desc, (void)remote, (void)key;
    return MCA_ERR_NOT_SUPPORTED;
}

static int loop_register_mem(mca_btl_module_t *module, void *addr, size_t len,
                             uint8_t key[MCA_BTL_KEY_MAX], size_t *key_len,
                             mca_btl_registration_t **registration)
{
    (void)module, (void)addr, (void)len, (void)key, (void)key_len, (void)registration;
    return MCA_ERR_NOT_SUPPORTED;
}

static void loop_deregister_mem(mca_btl_module_t *module, mca_btl_registration_t *registration)
{
    (void)module, (void)registration;
}

/* ---- Arrivals: from the poller only, never from inside a send ---- */

static int loop_poll(void *context)
{
    (void)context;
    int count = 0;
    for (unsigned end = loop.tail; loop.head != end; count++) {
        loop_slot_t *slot = &loop.slots[loop.head % LOOP_SLOTS];
        mca_btl_arrival_t arrival = {
            .data = slot->data, .len = slot->len, .module = &loop.super, .endpoint = &loop.endpoint};
        loop.super.upcalls->arrive(loop.endpoint.cookie, &arrival);
        loop.head++;
    }
    if (loop.refused) {
        loop.refused = false;
        loop.super.upcalls->writable(loop.endpoint.cookie, &loop.endpoint);
    }
    return count;
}

static int loop_keep(mca_btl_arrival_t *arrival)
{
    void *copy = malloc(arrival->len);
    if (!copy) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    arrival->data = memcpy(copy, arrival->data, arrival->len);
    arrival->token[0] = (uintptr_t)copy;
    return MCA_SUCCESS;
}

static void loop_release(mca_btl_arrival_t *arrival)
{
    free((void *)(uintptr_t)arrival->token[0]);
}

/* ---- Life ---- */

static int loop_add_peer(mca_btl_module_t *module, const mca_btl_peer_t *peer, void *cookie,
                         mca_btl_endpoint_t **endpoint, const char **why)
{
    (void)module;
    if (peer->name != loop.services->job->self) {
        *why = "it reaches the process itself only";
        return MCA_ERR_UNREACHABLE;
    }
    loop.endpoint.cookie = cookie;
    *endpoint = &loop.endpoint;
    return MCA_SUCCESS;
}

static void loop_del_peer(mca_btl_module_t *module, mca_btl_endpoint_t *ep)
{
    (void)module, (void)ep;
    loop.head = loop.tail;
    loop.refused = false;
}

static bool loop_idle(mca_btl_module_t *module, mca_btl_endpoint_t *ep)
{
    (void)module, (void)ep;
    return loop.head == loop.tail;
}

static void loop_finalize(mca_btl_module_t *module)
{
    (void)module;
    loop.services->poller_del(loop.poller);
    free(loop.slots);
}

static const mca_btl_module_ops_t loop_ops = {
    .add_peer = loop_add_peer, .del_peer = loop_del_peer, .idle = loop_idle, .finalize = loop_finalize,
    .send_short = loop_send_short, .reserve = loop_reserve, .commit = loop_commit, .send = loop_send,
    .put = loop_no_remote, .get = loop_no_remote,
    .register_mem = loop_register_mem, .deregister_mem = loop_deregister_mem,
    .keep = loop_keep, .release = loop_release,
};

extern MCA_EXPORT const mca_base_component_t mca_btl_loop_component;

static int loop_init(const mca_btl_services_t *services, mca_btl_module_t ***modules, size_t *count)
{
    static const mca_btl_poller_t poller = {.poll = loop_poll};
    static mca_btl_module_t *list[] = {&loop.super};
    if (services->threads) {
        services->base->log("btl", "loop", MCA_LOG_INFO, "not made for several threads");
        return MCA_ERR_NOT_AVAILABLE;
    }
    memset(&loop, 0, sizeof(loop));
    loop.services = services;
    loop.super = (mca_btl_module_t){
        .struct_size = sizeof(mca_btl_module_t), .ops = &loop_ops,
        .component = &mca_btl_loop_component, .name = "loop",
        .limits = {
            .short_max = 4096, .eager_limit = LOOP_FRAG, .min_frag = 4096, .max_frag = LOOP_FRAG,
            .send_min = SIZE_MAX, .window = LOOP_SLOTS * LOOP_FRAG, .get_min = SIZE_MAX,
            .get_try = SIZE_MAX, .bandwidth = 5000000000u, .latency_ns = 100,
            .exclusivity = (int32_t)loop_exclusivity,
            .caps = MCA_BTL_CAP_RELIABLE | MCA_BTL_CAP_ORDERED | MCA_BTL_CAP_LOCAL | MCA_BTL_CAP_SELF,
        },
    };
    loop.slots = calloc(LOOP_SLOTS, sizeof(*loop.slots));
    if (!loop.slots) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    int rc = services->poller_add(&poller, &loop, &loop.poller);
    if (rc != MCA_SUCCESS) {
        free(loop.slots);
        return rc;
    }
    *modules = list;
    *count = 1;
    return MCA_SUCCESS;
}

static int loop_register_params(const mca_base_services_t *services)
{
    static const mca_base_var_desc_t exclusivity = {
        .framework = "btl", .component = "loop", .name = "exclusivity",
        .help = "Preference over other links to the process itself",
        .type = MCA_VAR_INT, .level = MCA_VAR_LEVEL_DEVELOPER, .scope = MCA_VAR_SCOPE_STARTUP,
        .def.i = 2000, .min = 0, .max = 65536,
    };
    return services->var_register(&exclusivity, &loop_exclusivity);
}

static const mca_btl_component_ops_t loop_component_ops = {
    .struct_size = sizeof(mca_btl_component_ops_t),
    .init = loop_init,
};

const mca_base_component_t mca_btl_loop_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "btl",
    .contract_major = MCA_BTL_CONTRACT_MAJOR,
    .contract_minor = MCA_BTL_CONTRACT_MINOR,
    .name = "loop",
    .version = {1, 0, 0},
    .register_params = loop_register_params,
    .ops = &loop_component_ops,
};
