/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Single copy by two: the receiver of a long message reads it out of the sender's memory, and the sender, if it happens to
 * look at its rings, writes parts of it into the receiver's. One processor moves about half of what two can.
 *
 * The receiver describes the copy in a job in its own segment, tells the sender (SHM_KIND_HELP) without waking it, and begins.
 * Both take chunk after chunk by moving job.claim on; what the sender has taken it counts in job.done when it is written.
 * The copy is complete when all chunks are claimed and the sender's are done: nothing is written to the receiver's buffer
 * later. A sender that comes late finds the claim closed, or of another generation, and leaves.
 */
#include <sys/uio.h>
#include "ompi/mca/btl/shm/shm.h"
#include "ompi/mca/btl/shm/shm_ring.h"
#include "opal/runtime/progress.h"

enum {
    SHARE_CHUNK_MIN = 32 << 10,
    SHARE_CHUNK_MAX = 256 << 10,
    SHARE_CHUNKS = 8,          /* of a message of middle length */
    SHARE_WAIT_NS = 50000,     /* for the sender's last chunk, before others get their turn */
};
#define SHARE_CLOSED UINT32_MAX

static uint64_t share_claim(uint32_t generation, uint32_t next)
{
    return (uint64_t)generation << 32 | next;
}

/* Take the next chunk of a job that the caller knows as `generation`; -1: none is left, or the job is over. */
static int64_t share_take(shm_job_t *job, uint32_t generation)
{
    uint64_t claim = atomic_load_explicit(&job->claim, memory_order_acquire);
    do {
        if (claim >> 32 != generation || (uint32_t)claim >= job->count) {
            return -1;
        }
    } while (!atomic_compare_exchange_weak_explicit(&job->claim, &claim, claim + 1, memory_order_acq_rel,
                                                    memory_order_acquire));
    return (uint32_t)claim;
}

static uint64_t share_len(uint64_t length, uint32_t chunk, int64_t i)
{
    uint64_t left = length - (uint64_t)i * chunk;
    return left < chunk ? left : chunk;
}

/* ---- The sender ---- */

void mca_btl_shm_share_help(mca_btl_endpoint_t *ep, uint32_t index, uint32_t generation)
{
    if (index >= SHM_JOBS || !ep->segment.base || mca_btl_shm_cma_ready(ep) != MCA_SUCCESS) {
        return;
    }
    shm_job_t *job = &shm_header_of(&ep->segment)->jobs[index];
    int64_t i;
    /* Another thread may have written the message: before it announced it, in this lock. The peer's asking orders the two; so does
     * the lock, within a process: ThreadSanitizer sees no other. */
    shm_lock(ep);
    shm_unlock(ep);
    while ((i = share_take(job, generation)) >= 0) { /* from here on the job stays until it is counted as done */
        uint64_t length = job->length, at = (uint64_t)i * job->chunk;
        if (at >= length || !mca_btl_shm_cma_move(ep, process_vm_writev, job->from + at, job->to + at,
                                                  share_len(length, job->chunk, i))) {
            atomic_store_explicit(&job->failed, 1, memory_order_relaxed);
        }
        atomic_fetch_add_explicit(&job->done, 1, memory_order_release);
        shm_published(ep); /* the receiver may sleep by now */
    }
}

/* ---- The receiver ---- */

/* A job of this process that is free, or NULL. */
static shm_share_t *share_find(shm_module_t *m)
{
    for (int i = 0; i < SHM_JOBS; i++) {
        if (!atomic_exchange_explicit(&m->shares[i].busy, true, memory_order_acquire)) {
            return &m->shares[i];
        }
    }
    return NULL;
}

static shm_job_t *share_job(shm_module_t *m, const shm_share_t *share)
{
    return &m->header->jobs[share - m->shares];
}

static uint32_t share_open(shm_job_t *job, uint64_t from, uint64_t to, uint64_t length)
{
    uint64_t chunk = (length / SHARE_CHUNKS + 4095) & ~4095ull;
    chunk = chunk < SHARE_CHUNK_MIN ? SHARE_CHUNK_MIN : chunk > SHARE_CHUNK_MAX ? SHARE_CHUNK_MAX : chunk;
    uint32_t generation = (uint32_t)(atomic_load_explicit(&job->claim, memory_order_relaxed) >> 32) + 1;
    job->from = from;
    job->to = to;
    job->length = length;
    job->chunk = (uint32_t)chunk;
    job->count = (uint32_t)((length + chunk - 1) / chunk);
    atomic_store_explicit(&job->done, 0, memory_order_relaxed);
    atomic_store_explicit(&job->failed, 0, memory_order_relaxed);
    atomic_store_explicit(&job->claim, share_claim(generation, 0), memory_order_release);
    return generation;
}

/* Nobody takes a chunk any more; how many were taken. */
static uint32_t share_close(shm_job_t *job, uint32_t generation)
{
    return (uint32_t)atomic_exchange_explicit(&job->claim, share_claim(generation, SHARE_CLOSED), memory_order_acq_rel);
}

/* Has the sender written all that it took? */
static bool share_is_done(shm_module_t *m, const shm_share_t *share)
{
    return atomic_load_explicit(&share_job(m, share)->done, memory_order_acquire) >= share->theirs;
}

/* All is in place, or nothing will come any more: MCA_SUCCESS or why not. The job is free afterwards. */
static int share_end(shm_module_t *m, shm_share_t *share)
{
    shm_job_t *job = share_job(m, share);
    int rc = MCA_SUCCESS;
    if (!share_is_done(m, share)) {
        rc = MCA_ERR_UNREACHABLE; /* it died */
    } else if (atomic_load_explicit(&job->failed, memory_order_relaxed)) {
        share->ep->no_share = true;
        rc = mca_btl_shm_cma_move(share->ep, process_vm_readv, job->to, job->from, job->length)
                 ? MCA_SUCCESS : MCA_ERR_NOT_AVAILABLE;
    }
    atomic_store_explicit(&share->busy, false, memory_order_release);
    return rc;
}

/* Queue the end: it is told from the poller. */
static void share_defer(shm_module_t *m, shm_share_t *share, mca_btl_descriptor_t *desc)
{
    share->desc = desc;
    share->ep->watched = true;
    atomic_store_explicit(&m->watch_wanted, true, memory_order_relaxed);
    atomic_store_explicit(&share->waits, true, memory_order_release);
    atomic_fetch_add(&m->shares_waiting, 1);
    if (m->services->threads && atomic_load(&m->armed)) { /* or the poll behind arm() sees the count */
        m->services->wake();
    }
}

int mca_btl_shm_share_poll(shm_module_t *m)
{
    int count = 0;
    for (int i = 0; i < SHM_JOBS; i++) {
        shm_share_t *share = &m->shares[i];
        if (!atomic_load_explicit(&share->waits, memory_order_acquire)) {
            continue;
        }
        if (share_is_done(m, share) || share->ep->special & SHM_SPECIAL_DOWN) {
            mca_btl_descriptor_t *desc = share->desc;
            atomic_store_explicit(&share->waits, false, memory_order_relaxed);
            atomic_fetch_sub_explicit(&m->shares_waiting, 1, memory_order_relaxed);
            int rc = share_end(m, share);
            desc->event(desc, rc == MCA_SUCCESS ? MCA_BTL_CONFIRMED : MCA_BTL_UNCONFIRMED, rc);
            count++;
        } else {
            share->ep->watched = true; /* until then */
            atomic_store_explicit(&m->watch_wanted, true, memory_order_relaxed);
        }
    }
    return count;
}

/* Ask the sender, unless it sleeps or its ring is full. */
static bool share_ask(mca_btl_endpoint_t *ep, uint32_t index, uint32_t generation)
{
    const uint32_t what[2] = {index, generation};
    shm_lock(ep);
    bool sent = !(ep->special & (SHM_SPECIAL_NEW | SHM_SPECIAL_DOWN)) && ep->room > 0 &&
                !atomic_load_explicit(ep->sleeping, memory_order_relaxed);
    if (sent) {
        shm_ring_clear_next(ep, 1);
        memcpy(ep->line + SHM_WORD, what, sizeof(what));
        shm_ring_publish(ep, 1, shm_word(ep->number, sizeof(what), SHM_KIND_HELP));
    }
    shm_unlock(ep);
    return sent;
}

int mca_btl_shm_share_get(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote)
{
    shm_module_t *m = ep->module;
    uint64_t local = (uint64_t)(uintptr_t)desc->iov[0].iov_base, length = desc->iov[0].iov_len;
    shm_share_t *share = ep->no_share ? NULL : share_find(m);
    if (!share) {
        return MCA_ERR_AGAIN;
    }
    shm_job_t *job = share_job(m, share);
    uint32_t generation = share_open(job, remote, local, length), mine = 0;
    share->ep = ep;
    bool failed = !share_ask(ep, (uint32_t)(share - m->shares), generation);
    for (int64_t i; !failed && (i = share_take(job, generation)) >= 0; mine++) {
        uint64_t at = (uint64_t)i * job->chunk;
        failed = !mca_btl_shm_cma_move(ep, process_vm_readv, local + at, remote + at,
                                       share_len(length, job->chunk, i));
    }
    uint32_t taken = share_close(job, generation);
    share->theirs = taken - mine;
    if (failed) { /* not asked, or not allowed to read: the caller does it alone, and says why it can't */
        atomic_store_explicit(&job->failed, 1, memory_order_relaxed);
    }
    for (uint64_t start = opal_now_ns(); !share_is_done(m, share);) {
        if (opal_now_ns() - start > SHARE_WAIT_NS) {
            share_defer(m, share, desc);
            return 0;
        }
    }
    if (failed) {
        atomic_store_explicit(&share->busy, false, memory_order_release);
        return MCA_ERR_AGAIN;
    }
    return share_end(m, share) == MCA_SUCCESS ? 1 : MCA_ERR_NOT_AVAILABLE;
}
