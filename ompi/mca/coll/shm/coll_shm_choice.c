/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations through the segment or below, as messages: whichever is measured to be quicker, by kind and class of lengths. Which one that
 * is depends on where the processors' caches are (btl/shm measures the same for messages).
 *
 * All members must come to the same answer. They count the operations of a class alike, so that trials are at the same calls in all of
 * them: a few calls each way, timed, and then the sum over all members of the least that each way took. Messages that are not hopeless
 * then have some more calls to find their own best way. Of reductions those of two processes only are chosen so: the results of others
 * would depend on it.
 */
#include "ompi/mca/coll/shm/coll_shm.h"

#include "opal/runtime/progress.h"

enum {
    TRIAL = 8,             /* calls each way, of which the first is not counted */
    WARM = 128,            /* calls below, after which TRIAL of them are timed again */
    GAP_MIN = 1024,        /* calls from one trial to the next at first; twice as many when nothing has changed */
    GAP_MAX = 16384,
    BETTER_PERCENT = 90,   /* of what the way in use takes, below which the other one takes its place */
    HOPELESS = 2,          /* times what the way in use takes */
    FIRST_END = 2 * TRIAL, /* steps of a trial: each way, then messages again */
    SECOND_END = FIRST_END + WARM + TRIAL,
};

static coll_shm_choice_t *choice_of(coll_shm_module_t *m, coll_shm_kind_t kind, size_t bytes)
{
    unsigned i = 0;
    while (i + 1 < COLL_SHM_CHOICES && bytes >= (size_t) COLL_SHM_CHOICE_MIN << (i + 1)) {
        i++;
    }
    return &m->choices[kind][i];
}

/* At the end of the trial's first or second part. */
static int agree(coll_shm_module_t *m, coll_shm_choice_t *c)
{
    uint64_t mine[2] = {c->least[0], c->least[1]}, all[2];
    int rc = coll_shm_sum(m, mine, all, 2);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    bool before = c->below, other = !before;
    bool better = all[other] * 100 < all[before] * BETTER_PERCENT;
    if (c->step == FIRST_END && !better && !before && all[1] / HOPELESS < all[0]) {
        c->step++;
        return MPI_SUCCESS;
    }
    c->below = better ? other : before;
    c->gap = better || c->gap == 0 ? GAP_MIN : c->gap < GAP_MAX / 2 ? 2 * c->gap : GAP_MAX;
    c->until = c->gap;
    c->step = 0;
    return MPI_SUCCESS;
}

int coll_shm_choose(coll_shm_module_t *m, coll_shm_kind_t kind, size_t bytes, coll_shm_way_t *way)
{
    *way = (coll_shm_way_t) {.below = false};
    if (bytes < COLL_SHM_CHOICE_MIN || !coll_shm_params.measure) {
        return MPI_SUCCESS;
    }
    coll_shm_choice_t *c = choice_of(m, kind, bytes);
    way->below = c->below;
    if (c->step == 0 && c->until > 0) {
        c->until--;
        return MPI_SUCCESS;
    }
    if (c->step == FIRST_END || c->step == SECOND_END) {
        int rc = agree(m, c);
        way->below = c->step > 0 || c->below;
        return rc;
    }
    if (c->step == 0) {
        c->least[0] = c->least[1] = UINT32_MAX;
    }
    way->below = c->step >= TRIAL;
    if (c->step < FIRST_END ? c->step % TRIAL > 0 : c->step > SECOND_END - TRIAL) {
        way->timed = &c->least[way->below];
        way->since = opal_now_ns();
    }
    c->step++;
    return MPI_SUCCESS;
}

void coll_shm_chosen(const coll_shm_way_t *way)
{
    if (way->timed) {
        uint64_t ns = opal_now_ns() - way->since;
        *way->timed = ns < *way->timed ? (uint32_t) ns : *way->timed;
    }
}
