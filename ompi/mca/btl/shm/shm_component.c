/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* btl/shm: parameters, the module's start and end. */
#include <stdio.h>
#include <stdlib.h>
#include "ompi/mca/btl/shm/shm.h"
#include "ompi/mca/btl/shm/shm_ring.h"

shm_params_t mca_btl_shm_params;

static const mca_base_var_enum_t backings[] = {
    {"auto", OPAL_SHMEM_AUTO}, {"memfd", OPAL_SHMEM_MEMFD}, {"file", OPAL_SHMEM_FILE}, {NULL, 0}};
static const mca_base_var_enum_t copies[] = {
    {"auto", SHM_COPY_AUTO}, {"always", SHM_COPY_ALWAYS}, {"never", SHM_COPY_NEVER}, {NULL, 0}};

static const mca_base_var_enum_t ways[] = {
    {"auto", SHM_WAY_AUTO}, {"near", SHM_WAY_NEAR}, {"wide", SHM_WAY_WIDE}, {"round", SHM_WAY_ROUND}, {"past", SHM_WAY_PAST}, {NULL, 0}};

static const struct {
    mca_base_var_desc_t desc;
    void *storage;
} params[] = {
    {{.name = "backing", .type = MCA_VAR_ENUM, .level = MCA_VAR_LEVEL_TUNER, .enums = backings,
      .help = "Where shared memory lies: memfd (anonymous), file (in /dev/shm), auto (memfd if it works)"},
     &mca_btl_shm_params.backing},
    {{.name = "single_copy", .type = MCA_VAR_ENUM, .level = MCA_VAR_LEVEL_TUNER, .enums = copies,
      .help = "Copy messages longer than btl_shm_eager_limit once, by the kernel, where that is found to be faster (auto), always, or never"},
     &mca_btl_shm_params.single_copy},
    {{.name = "share_min", .type = MCA_VAR_SIZE, .level = MCA_VAR_LEVEL_TUNER, .unit = "bytes",
      .help = "From this size on a message that is copied once is copied by its receiver and its sender together",
      .def.size = 64 << 10, .min = 8 << 10, .max = INT64_MAX},
     &mca_btl_shm_params.share_min},
    {{.name = "memory", .type = MCA_VAR_SIZE, .level = MCA_VAR_LEVEL_TUNER, .unit = "bytes",
      .help = "Shared memory of all processes of a node together at most",
      .def.size = 60 << 20, .min = 1 << 20, .max = INT64_MAX},
     &mca_btl_shm_params.memory},
    {{.name = "ring", .type = MCA_VAR_SIZE, .level = MCA_VAR_LEVEL_DEVELOPER, .unit = "bytes",
      .help = "Size of the ring from one process to another at most",
      .def.size = 256 << 10, .min = SHM_MIN_RING, .max = 64 << 20},
     &mca_btl_shm_params.ring_max},
    {{.name = "pool", .type = MCA_VAR_SIZE, .level = MCA_VAR_LEVEL_DEVELOPER, .unit = "bytes",
      .help = "Room of a process for fragments of long messages under way at most",
      .def.size = 4 << 20, .min = 1 << 16, .max = 1 << 30},
     &mca_btl_shm_params.pool_max},
    {{.name = "chunk", .type = MCA_VAR_SIZE, .level = MCA_VAR_LEVEL_DEVELOPER, .unit = "bytes",
      .help = "Size of a fragment of a long message at most, where there is room for 32 of them; else 64 KiB, or an eighth of the room",
      .def.size = 128 << 10, .min = SHM_MIN_CHUNK, .max = 8 << 20},
     &mca_btl_shm_params.chunk},
    {{.name = "eager_limit", .type = MCA_VAR_SIZE, .level = MCA_VAR_LEVEL_TUNER, .unit = "bytes",
      .help = "Longest message sent before its receiver is known, header included",
      .def.size = (32 << 10) + MCA_BTL_HEADER_MAX, .min = 256, .max = 8 << 20},
     &mca_btl_shm_params.eager_limit},
    {{.name = "behind_eager_limit", .type = MCA_VAR_SIZE, .level = MCA_VAR_LEVEL_TUNER, .unit = "bytes",
      .help = "Longest message, header included, sent before its receiver is known to a process that still has messages of this one "
              "to take, unless to copy it once is found to be faster (btl_shm_chunk at most)",
      .def.size = (64 << 10) + MCA_BTL_HEADER_MAX, .min = 0, .max = 8 << 20},
     &mca_btl_shm_params.behind_eager_limit},
    {{.name = "behind_chunk_min", .type = MCA_VAR_SIZE, .level = MCA_VAR_LEVEL_DEVELOPER, .unit = "bytes",
      .help = "Shortest message of a stream, header included, that goes through a fragment of the pool instead of the ring",
      .def.size = 512, .min = 256, .max = 8 << 20},
     &mca_btl_shm_params.behind_chunk_min},
    {{.name = "parts_min", .type = MCA_VAR_SIZE, .level = MCA_VAR_LEVEL_DEVELOPER, .unit = "bytes",
      .help = "From this length on, header included, a message is sent in parts before its receiver is known",
      .def.size = 16 << 10, .min = MCA_BTL_HEADER_MAX, .max = 1 << 30},
     &mca_btl_shm_params.parts_min},
    {{.name = "parts_max", .type = MCA_VAR_SIZE, .level = MCA_VAR_LEVEL_TUNER, .unit = "bytes",
      .help = "Longest message, header included, sent in parts before its receiver is known (five eighths of btl_shm_pool at "
              "most; longer ones than 512 KiB only while those before were waited for; 0: none)",
      .def.size = (2 << 20) + MCA_BTL_HEADER_MAX, .min = 0, .max = 1 << 30},
     &mca_btl_shm_params.parts_max},
    {{.name = "part", .type = MCA_VAR_SIZE, .level = MCA_VAR_LEVEL_DEVELOPER, .unit = "bytes",
      .help = "Size of a part of such a message, if its receiver is waiting; of short messages half of that at least, of long ones a 16th of their "
              "length, up to 64 KiB",
      .def.size = 12 << 10, .min = 1 << 10, .max = 8 << 20},
     &mca_btl_shm_params.part},
    {{.name = "way", .type = MCA_VAR_ENUM, .level = MCA_VAR_LEVEL_TUNER, .enums = ways, .def.i = SHM_WAY_AUTO,
      .help = "How fragments of 2 KiB and more are copied: near (through the chunk used last, in the caches), wide (through all of the "
              "pool in turn, for a cache that the processors share behind their own, by vectors), round (the same by the processor's "
              "instruction for copies), past (written past the caches), or whichever is measured to be quickest (auto)"},
     &mca_btl_shm_params.way},
    {{.name = "warm", .type = MCA_VAR_INT, .level = MCA_VAR_LEVEL_TUNER, .unit = "chunks", .def.i = SHM_WARM_MAX, .min = 0,
      .max = SHM_WARM_MAX,
      .help = "Chunks of a peer kept for the answer at most, whose lines are in this process's caches (of all of its chunks five "
              "eighths are shared out among its peers)"},
     &mca_btl_shm_params.warm},
    {{.name = "warm_min", .type = MCA_VAR_SIZE, .level = MCA_VAR_LEVEL_DEVELOPER, .unit = "bytes", .def.size = 768, .min = 256,
      .max = 8 << 20, .help = "Shortest message, header included, not of a stream, that goes through such a chunk instead of the ring"},
     &mca_btl_shm_params.warm_min},
    {{.name = "warm_run", .type = MCA_VAR_INT, .level = MCA_VAR_LEVEL_DEVELOPER, .unit = "messages", .def.i = 8, .min = 1,
      .max = INT32_MAX,
      .help = "More messages one behind the other, without one from the peer, are a stream, for which no chunks are kept unless "
              "the peer sends as much"},
     &mca_btl_shm_params.warm_run},
    {{.name = "hold", .type = MCA_VAR_SIZE, .level = MCA_VAR_LEVEL_TUNER, .unit = "bytes", .def.size = 1 << 20, .max = 1 << 30,
      .help = "Of a stream of long messages so much is written before the peer is shown it (a quarter of btl_shm_pool at most; 0: none), "
              "where the way is wide: about what a processor's own caches hold"},
     &mca_btl_shm_params.hold},
    {{.name = "spare", .type = MCA_VAR_SIZE, .level = MCA_VAR_LEVEL_TUNER, .unit = "bytes", .def.size = 8 << 20, .max = 1 << 30,
      .help = "Memory of unexpected messages kept for the next ones at most, until the process sleeps"},
     &mca_btl_shm_params.spare},
    {{.name = "lanes", .type = MCA_VAR_INT, .level = MCA_VAR_LEVEL_TUNER, .def.i = -1, .min = -1, .max = MCA_BTL_LANES_MAX,
      .help = "With MPI_THREAD_MULTIPLE so many ways more lead to each process of the node, each for small messages of the "
              "communicators that fall to it: threads that have a communicator each do not wait for each other (-1: as many as "
              "the process's share of the processors, up to 16, if that is more than one)"},
     &mca_btl_shm_params.lanes},
    {{.name = "exclusivity", .type = MCA_VAR_INT, .level = MCA_VAR_LEVEL_DEVELOPER,
      .help = "Preference over other links to the same peer", .def.i = 500, .min = 0, .max = 65536},
     &mca_btl_shm_params.exclusivity},
};

static int shm_register_params(const mca_base_services_t *services)
{
    static mca_base_var_desc_t descs[sizeof(params) / sizeof(params[0])];
    for (size_t i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
        descs[i] = params[i].desc;
        descs[i].framework = "btl";
        descs[i].component = "shm";
        descs[i].scope = MCA_VAR_SCOPE_STARTUP;
        int rc = services->var_register(&descs[i], params[i].storage);
        if (rc != MCA_SUCCESS) {
            return rc;
        }
    }
    return MCA_SUCCESS;
}

/* Everything taken stands in the peer's memory or in chunks that the peer has mapped; `handed up`
 * is what its reader has said. */
static bool shm_idle(mca_btl_module_t *module, mca_btl_endpoint_t *ep)
{
    shm_module_t *m = (shm_module_t *)module;
    shm_lock(ep);
    bool idle = ep->special & (SHM_SPECIAL_NEW | SHM_SPECIAL_DOWN)
                || atomic_load_explicit(&ep->slot->consumed, memory_order_acquire) == ep->number;
    shm_unlock(ep);
    if (!idle && !ep->watched) {
        ep->watched = true;
        atomic_store_explicit(&m->watch_wanted, true, memory_order_relaxed);
    }
    return idle;
}

static void shm_finalize(mca_btl_module_t *module)
{
    shm_module_t *m = (shm_module_t *)module;
    const mca_btl_services_t *services = m->services;
    if (m->poller) {
        services->poller_del(m->poller);
    }
    if (m->watch_timer) {
        services->timer_del(m->watch_timer);
    }
    mca_btl_shm_door_close(m);
    mca_btl_shm_free_peers(m);
    mca_btl_shm_pool_free(m);
    mca_btl_shm_buffers_release(m);
    opal_shmem_detach(&m->segment);
    pthread_mutex_destroy(&m->lock);
    free(m->rx);
    free(m->slot_seen);
    free(m);
}

static void shm_behind(mca_btl_endpoint_t *ep, mca_btl_behind_t *limits)
{
    limits->eager_limit = mca_btl_shm_params.behind_eager_limit;
    limits->reserve_min = mca_btl_shm_params.behind_chunk_min;
    limits->reserve_from = &ep->reserve_from;
}

static const mca_btl_module_ops_t shm_ops = {
    .add_peer = mca_btl_shm_add_peer,
    .del_peer = mca_btl_shm_del_peer,
    .idle = shm_idle,
    .finalize = shm_finalize,
    .send_short = mca_btl_shm_send_short,
    .reserve = mca_btl_shm_reserve,
    .commit = mca_btl_shm_commit,
    .send = mca_btl_shm_send,
    .put = mca_btl_shm_put,
    .get = mca_btl_shm_get,
    .register_mem = mca_btl_shm_register_mem,
    .deregister_mem = mca_btl_shm_deregister_mem,
    .keep = mca_btl_shm_keep,
    .release = mca_btl_shm_release,
    .next_store = mca_btl_shm_next_store,
    .standing = mca_btl_shm_standing,
    .publish = mca_btl_shm_publish,
    .publish_more = mca_btl_shm_publish_more,
    .behind = shm_behind,
    .ahead = mca_btl_shm_ahead,
    .parts = mca_btl_shm_parts_limits,
    .send_parts = mca_btl_shm_send_parts,
    .send_filled = mca_btl_shm_send_filled,
};

static mca_btl_limits_t shm_limits(const shm_layout_t *l, bool lane)
{
    const shm_params_t *p = &mca_btl_shm_params;
    size_t in_ring = shm_in_ring(l);
    size_t frag = l->chunk_count > 0 && shm_chunk_room(l) > in_ring ? shm_chunk_room(l) : in_ring;
    uint32_t copy = p->single_copy == SHM_COPY_NEVER || lane ? 0
                    : MCA_BTL_CAP_PUT | MCA_BTL_CAP_GET | MCA_BTL_CAP_SINGLE_COPY;
    return (mca_btl_limits_t){
        .short_max = in_ring < SHM_SHORT_MAX ? in_ring : SHM_SHORT_MAX,
        .eager_limit = p->eager_limit < frag ? p->eager_limit : frag,
        .min_frag = in_ring < SHM_MIN_CHUNK ? in_ring : SHM_MIN_CHUNK,
        .max_frag = frag,
        .send_min = SIZE_MAX,
        .window = frag * (l->chunk_count > 1 ? l->chunk_count : 1),
        .get_min = SIZE_MAX,
        .get_try = SIZE_MAX,
        .bandwidth = 40000000000u,
        .latency_ns = 80,
        .exclusivity = (int32_t)p->exclusivity,
        .caps = MCA_BTL_CAP_RELIABLE | MCA_BTL_CAP_ORDERED | MCA_BTL_CAP_LOCAL | copy,
    };
}

/* Memory, segment and doorbell; a process alone on its node needs none. */
static int shm_start(shm_module_t *m)
{
    uint32_t n = m->layout.local_size;
    m->peers = calloc(n, sizeof(*m->peers));
    m->rx = calloc(n, sizeof(*m->rx));
    m->slot_seen = calloc(n, sizeof(*m->slot_seen));
    if (!m->peers || !m->rx || !m->slot_seen) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    if (n < 2) {
        return MCA_SUCCESS;
    }
    int rc = mca_btl_shm_segment_create(m);
    if (rc != MCA_SUCCESS) {
        return rc;
    }
    static const mca_btl_poller_t poller = {
        .poll = mca_btl_shm_poll, .arm = mca_btl_shm_arm, .disarm = mca_btl_shm_disarm};
    if ((rc = mca_btl_shm_door_open(m)) != MCA_SUCCESS
        || (rc = m->services->poller_add(m->super.lane > 0 ? &mca_btl_shm_lane_poller : &poller, m, &m->poller)) != MCA_SUCCESS) {
        return rc;
    }
    if (m->super.lane > 0) {
        m->services->poller_lane(m->poller, m->super.lane);
    }
    return MCA_SUCCESS;
}

/* The module, or one of so many lanes. */
static int shm_make(const mca_btl_services_t *services, uint32_t lane, uint32_t lanes, mca_btl_module_t **module)
{
    const mca_btl_job_t *job = services->job;
    shm_module_t *m = calloc(1, sizeof(*m));
    if (!m || pthread_mutex_init(&m->lock, NULL) != 0) {
        free(m);
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    static const bool not_told = false;
    m->services = services;
    m->polled_on = services->waiting ? services->waiting : &not_told;
    m->layout = lane > 0 ? mca_btl_shm_layout_lane(job->local_size, lanes) : mca_btl_shm_layout(job->local_size, lanes);
    m->tell_lines = shm_tell_lines(m->layout.ring_lines);
    m->tell_soon = m->tell_lines < SHM_TELL_SOON ? m->tell_lines : SHM_TELL_SOON;
    m->segment.fd = m->door = -1;
    m->look_every = services->oversubscribed ? SHM_CROWDED_INTERVAL : SHM_SLOW_INTERVAL;
    m->polls = 1;
    m->super = (mca_btl_module_t){
        .struct_size = sizeof(mca_btl_module_t),
        .ops = &shm_ops,
        .component = &mca_btl_shm_component,
        .name = "shm",
        .limits = shm_limits(&m->layout, lane > 0),
        .lane = lane,
    };
    if (lane > 0) {
        snprintf(m->super.name, sizeof(m->super.name), "shm:lane%u", lane);
    }
    mca_btl_shm_know_upcalls(m);
    int rc = shm_start(m);
    if (rc != MCA_SUCCESS) {
        shm_finalize(&m->super);
        return rc;
    }
    *module = &m->super;
    return MCA_SUCCESS;
}

static shm_card_t shm_card_of(const mca_btl_module_t *module)
{
    const shm_module_t *m = (const shm_module_t *)module;
    return (shm_card_t){.magic = SHM_MAGIC, .version = SHM_VERSION, .local_rank = m->services->job->local_rank, .id = m->segment.id};
}

static int shm_init(const mca_btl_services_t *services, mca_btl_module_t ***modules, size_t *count)
{
    static mca_btl_module_t *list[1 + MCA_BTL_LANES_MAX];
    shm_card_t cards[1 + MCA_BTL_LANES_MAX];
    const mca_btl_job_t *job = services->job;
    if (job->local_size == 0 || job->local_rank >= job->local_size) {
        services->base->log("btl", "shm", MCA_LOG_ERROR, "local rank %u of %u", job->local_rank,
                            job->local_size);
        return MCA_ERR_BAD_PARAM;
    }
    uint32_t lanes = mca_btl_shm_lane_count(services), made = 0;
    for (uint32_t lane = 0; lane <= lanes; lane++) {
        int rc = shm_make(services, lane, lanes, &list[made]);
        if (rc != MCA_SUCCESS && lane == 0) {
            return rc;
        }
        if (rc != MCA_SUCCESS) {
            services->base->log("btl", "shm", MCA_LOG_INFO, "%u lanes instead of %u", lane - 1, lanes);
            break;
        }
        cards[made] = shm_card_of(list[made]);
        made++;
    }
    *modules = list;
    *count = made;
    return job->local_size < 2 ? MCA_SUCCESS : services->publish("shm", cards, made * sizeof(cards[0]));
}

static const mca_btl_component_ops_t shm_component_ops = {
    .struct_size = sizeof(mca_btl_component_ops_t),
    .init = shm_init,
};

const mca_base_component_t mca_btl_shm_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "btl",
    .contract_major = MCA_BTL_CONTRACT_MAJOR,
    .contract_minor = MCA_BTL_CONTRACT_MINOR,
    .name = "shm",
    .version = {1, 0, 0},
    .register_params = shm_register_params,
    .ops = &shm_component_ops,
};
