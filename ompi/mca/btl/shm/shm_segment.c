/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A process's segment: its layout, and whether another's is what it claims to be. */
#include <stdio.h>
#include "ompi/mca/btl/shm/shm.h"

/* Largest power of two that is not above `x`; x > 0. */
static uint64_t shm_floor2(uint64_t x)
{
    return 1ull << (63 - __builtin_clzll(x));
}

static uint64_t shm_round_up(uint64_t x)
{
    return (x + 4095) & ~4095ull;
}

/* Of so many that may take `budget` bytes together. */
static uint64_t shm_ring_size(uint64_t budget, uint64_t rings)
{
    const shm_params_t *p = &mca_btl_shm_params;
    uint64_t ring = shm_floor2(budget / rings + 1);
    ring = ring < SHM_MIN_RING ? SHM_MIN_RING : ring;
    return ring > p->ring_max ? shm_floor2(p->ring_max) : ring;
}

static shm_layout_t shm_layout_rings(uint32_t local_size, uint64_t ring)
{
    shm_layout_t l = {.local_size = local_size, .ring_lines = (uint32_t)(ring / SHM_LINE)};
    l.slots = shm_round_up(sizeof(shm_header_t));
    l.rings = shm_round_up(l.slots + local_size * sizeof(shm_slot_t));
    l.states = shm_round_up(l.rings + local_size * ring);
    l.chunks = l.size = l.states;
    return l;
}

/* A process's lanes, together. */
static uint64_t shm_lanes_budget(uint32_t local_size)
{
    return mca_btl_shm_params.memory / local_size / 4;
}

shm_layout_t mca_btl_shm_layout_lane(uint32_t local_size, uint32_t lanes)
{
    return shm_layout_rings(local_size, shm_ring_size(shm_lanes_budget(local_size), (uint64_t)local_size * lanes));
}

/* The node's budget is shared out evenly: a quarter of a process's part is for its lanes, if there are some, half of the rest for the
 * rings of those who send to it, and what remains for its chunks, both up to sizes beyond which more does not help. */
shm_layout_t mca_btl_shm_layout(uint32_t local_size, uint32_t lanes)
{
    const shm_params_t *p = &mca_btl_shm_params;
    uint64_t budget = p->memory / local_size - (lanes > 0 ? shm_lanes_budget(local_size) : 0);
    shm_layout_t l = shm_layout_rings(local_size, shm_ring_size(budget / 2, local_size));
    uint64_t used = l.states + SHM_MAX_CHUNKS * sizeof(shm_chunk_state_t) / 8;
    uint64_t pool = budget > used ? budget - used : 0;
    pool = pool > p->pool_max ? p->pool_max : pool;
    uint64_t chunk = shm_round_up(p->chunk);
    while (chunk > SHM_MIN_CHUNK && pool / chunk < (chunk > SHM_LARGE_CHUNK ? SHM_MANY_CHUNKS : SHM_FEW_CHUNKS)) {
        chunk = shm_round_up(chunk / 2);
    }
    l.chunk_size = (uint32_t)chunk + (chunk >= SHM_LARGE_CHUNK ? SHM_LARGE_SLACK : MCA_BTL_HEADER_MAX); /* a whole `chunk` of payload */
    pool /= l.chunk_size;
    l.chunk_count = (uint32_t)(pool < SHM_MAX_CHUNKS ? pool : SHM_MAX_CHUNKS);
    l.chunks = shm_round_up(l.states + l.chunk_count * sizeof(shm_chunk_state_t));
    l.size = l.chunks + (uint64_t)l.chunk_count * l.chunk_size;
    return l;
}

/* Does everything that the layout places lie inside `size` bytes, in order and aligned? */
static bool shm_layout_fits(const shm_layout_t *l, uint64_t size)
{
    const uint64_t limit = 1ull << 40; /* keeps the sums below from overflowing */
    if (l->size != size || size > limit || l->local_size == 0 || l->local_size > 1u << 20
        || l->ring_lines < SHM_MIN_RING / SHM_LINE || l->ring_lines > 1u << 22
        || (l->ring_lines & (l->ring_lines - 1)) != 0
        || l->chunk_count > SHM_MAX_CHUNKS || (l->chunk_count > 0 && l->chunk_size < SHM_MIN_CHUNK) || l->slots > limit || l->rings > limit || l->states > limit
        || l->chunks > limit || (l->slots | l->rings | l->states | l->chunks) % SHM_LINE) {
        return false;
    }
    return l->slots >= sizeof(shm_header_t)
           && l->rings >= l->slots + (uint64_t)l->local_size * sizeof(shm_slot_t)
           && l->states >= l->rings + (uint64_t)l->local_size * l->ring_lines * SHM_LINE
           && l->chunks >= l->states + (uint64_t)l->chunk_count * sizeof(shm_chunk_state_t)
           && size >= l->chunks + (uint64_t)l->chunk_count * l->chunk_size;
}

/* ---- The token: SipHash-2-4 (Aumasson, Bernstein 2012) of name and segment under the job's
 * secret ---- */

static inline uint64_t shm_rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static void shm_sip_round(uint64_t v[4])
{
    v[0] += v[1]; v[1] = shm_rotate(v[1], 13); v[1] ^= v[0]; v[0] = shm_rotate(v[0], 32);
    v[2] += v[3]; v[3] = shm_rotate(v[3], 16); v[3] ^= v[2];
    v[0] += v[3]; v[3] = shm_rotate(v[3], 21); v[3] ^= v[0];
    v[2] += v[1]; v[1] = shm_rotate(v[1], 17); v[1] ^= v[2]; v[2] = shm_rotate(v[2], 32);
}

static uint64_t shm_sip_hash(const uint8_t key[16], const uint64_t *words, int count)
{
    uint64_t k[2];
    memcpy(k, key, sizeof(k));
    uint64_t v[4] = {k[0] ^ 0x736f6d6570736575ull, k[1] ^ 0x646f72616e646f6dull,
                     k[0] ^ 0x6c7967656e657261ull, k[1] ^ 0x7465646279746573ull};
    for (int i = 0; i <= count; i++) {
        uint64_t word = i < count ? words[i] : (uint64_t)count * 8 << 56;
        v[3] ^= word;
        shm_sip_round(v);
        shm_sip_round(v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++) {
        shm_sip_round(v);
    }
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static void shm_token(const shm_module_t *m, mca_btl_name_t name, uint64_t random, uint64_t token[2])
{
    const uint8_t *secret = m->services->job->secret;
    const uint64_t words[2] = {name, random};
    token[0] = shm_sip_hash(secret, words, 2);
    token[1] = shm_sip_hash(secret + 16, words, 2);
}

/* ---- Creation and attachment ---- */

static int shm_create(shm_module_t *m, opal_shmem_backing_t backing, char *why, size_t why_size)
{
    int rc = opal_shmem_create(backing, m->services->job->job_id, m->layout.size, &m->segment, why, why_size);
    /* All but the rings, which their writers back when they come. */
    if (rc == OPAL_SUCCESS
        && (opal_shmem_back(&m->segment, 0, m->layout.rings) != OPAL_SUCCESS
            || opal_shmem_back(&m->segment, m->layout.states, m->segment.size - m->layout.states)
                   != OPAL_SUCCESS)) {
        snprintf(why, why_size, "/dev/shm is full");
        opal_shmem_detach(&m->segment);
        rc = OPAL_ERR_OUT_OF_RESOURCE;
    }
    return rc;
}

int mca_btl_shm_segment_create(shm_module_t *m)
{
    const mca_btl_job_t *job = m->services->job;
    opal_shmem_backing_t backing = (opal_shmem_backing_t)mca_btl_shm_params.backing;
    char why[192];
    if (m->super.lane == 0) {
        opal_shmem_sweep();
    }
    int rc = shm_create(m, backing, why, sizeof(why));
    if (rc != OPAL_SUCCESS && m->super.lane > 0) { /* it can be done without */
        SHM_LOG(m, MCA_LOG_INFO, "no shared memory for lane %u (%s)", m->super.lane, why);
        return MCA_ERR_NOT_AVAILABLE;
    }
    if (rc != OPAL_SUCCESS && backing == OPAL_SHMEM_FILE) {
        m->services->base->report("btl-shm:file", "btl/shm on %s: no shared memory in /dev/shm (%s); using "
            "anonymous memory (btl_shm_backing=memfd) instead", job->host, why);
        rc = shm_create(m, OPAL_SHMEM_MEMFD, why, sizeof(why));
    }
    if (rc != OPAL_SUCCESS) {
        m->services->base->report("btl-shm:segment", "btl/shm on %s: no shared memory (%s); processes of "
            "this node use other links", job->host, why);
        return MCA_ERR_NOT_AVAILABLE;
    }
    shm_header_t *h = m->header = shm_header_of(&m->segment);
    h->version = SHM_VERSION;
    h->local_rank = job->local_rank;
    h->name = job->self;
    h->layout = m->layout;
    h->layout.size = m->segment.size; /* rounded up to pages */
    h->fence = !m->services->asymmetric_fence;
    shm_token(m, job->self, m->segment.id.random, h->token);
    h->token_address = (uint64_t)(uintptr_t)h->token;
    h->pid_space = mca_btl_shm_pid_space();
    atomic_store_explicit(&h->magic, SHM_MAGIC, memory_order_release);
    return MCA_SUCCESS;
}

/* What is wrong with an attached segment's header; NULL: nothing. `layout` becomes a copy that can't
 * change. */
static const char *shm_distrust(shm_module_t *m, const mca_btl_endpoint_t *ep, const shm_header_t *h,
                                shm_layout_t *layout)
{
    uint64_t token[2];
    shm_token(m, ep->name, ep->segment.id.random, token);
    if (atomic_load_explicit(&h->magic, memory_order_acquire) != SHM_MAGIC || h->version != SHM_VERSION) {
        return "its shared memory is of another version of Hawser";
    }
    *layout = h->layout;
    if (h->name != ep->name || h->local_rank != ep->local_rank || h->token[0] != token[0]
        || h->token[1] != token[1]) {
        return "what was found is another process's shared memory (different pid namespaces?)";
    }
    if (!shm_layout_fits(layout, ep->segment.size) || layout->local_size <= m->services->job->local_rank) {
        return "its shared memory is laid out in a way that can't be";
    }
    return NULL;
}

int mca_btl_shm_segment_attach(shm_module_t *m, mca_btl_endpoint_t *ep, const opal_shmem_id_t *id,
                               char *why, size_t why_size)
{
    if (id->size < sizeof(shm_header_t)) {
        snprintf(why, why_size, "its description of shared memory makes no sense");
        return MCA_ERR_UNREACHABLE;
    }
    if (opal_shmem_attach(id, m->services->job->job_id, &ep->segment, why, why_size) != OPAL_SUCCESS) {
        return MCA_ERR_UNREACHABLE;
    }
    shm_header_t *h = shm_header_of(&ep->segment);
    shm_layout_t layout;
    const char *wrong = shm_distrust(m, ep, h, &layout);
    if (!wrong) {
        /* Room for what I will send it; a fragment of the pool is its owner's to back. */
        uint64_t ring = (uint64_t)layout.ring_lines * SHM_LINE;
        uint64_t at = layout.rings + m->services->job->local_rank * ring;
        if (opal_shmem_back(&ep->segment, at, ring) != OPAL_SUCCESS) {
            wrong = "/dev/shm is full";
        }
    }
    if (wrong) {
        snprintf(why, why_size, "%s", wrong);
        opal_shmem_detach(&ep->segment);
        return MCA_ERR_UNREACHABLE;
    }
    opal_shmem_close_fd(&ep->segment);
    ep->layout = layout;
    ep->header = h;
    return MCA_SUCCESS;
}
