/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What happens to a fragment, from random numbers; and how often it did. */
#include "ompi/mca/btl/chaos/btl_chaos.h"

#include <inttypes.h>
#include <stdio.h>

/* One in so many damaged fragments is damaged in its first bytes, where headers stand. */
enum { HEADERS_SHARE = 4, HEADERS_LEN = 64 };

static _Atomic uint64_t counts[CHAOS_COUNTS];

/* ---- Random numbers: splitmix64 (Steele, Lea, Flood 2014) ---- */

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t mca_btl_chaos_draw(uint64_t *state, uint64_t below)
{
    return next(state) % below;
}

/* Ranks only, not the whole names: these hold a hash of the job, which is another in each run. */
uint64_t mca_btl_chaos_seed(uint64_t peer, const char *link)
{
    uint64_t state = (uint64_t) mca_btl_chaos_params.seed;
    state = next(&state) ^ (uint32_t) mca_btl_chaos_services->job->self;
    state = next(&state) ^ (uint32_t) peer;
    for (; *link; link++) {
        state = next(&state) ^ (unsigned char) *link;
    }
    return state;
}

/* ---- Fates ---- */

static int64_t rate_of(const chaos_module_t *m, int fault)
{
    int64_t by_script = atomic_load_explicit(&m->rate[fault], memory_order_relaxed);
    bool promised = fault != CHAOS_DELAY && (m->super.limits.caps & MCA_BTL_CAP_RELIABLE);
    return promised ? 0 : by_script >= 0 ? by_script : mca_btl_chaos_params.rate[fault];
}

chaos_fault_t mca_btl_chaos_fate(mca_btl_endpoint_t *ep)
{
    uint64_t dice = mca_btl_chaos_draw(&ep->random, CHAOS_MILLION), sum = 0;
    for (int fault = 0; ep->module->touched && fault < CHAOS_FAULTS; fault++) {
        sum += (uint64_t) rate_of(ep->module, fault);
        if (dice < sum) {
            return (chaos_fault_t) fault;
        }
    }
    return CHAOS_NONE;
}

uint64_t mca_btl_chaos_throttle(const chaos_module_t *m)
{
    int64_t by_script = atomic_load_explicit(&m->throttle, memory_order_relaxed);
    return !m->touched ? 0 : by_script >= 0 ? (uint64_t) by_script : mca_btl_chaos_params.throttle;
}

uint64_t mca_btl_chaos_bit(mca_btl_endpoint_t *ep, size_t len)
{
    bool at_start = mca_btl_chaos_draw(&ep->random, HEADERS_SHARE) == 0;
    return mca_btl_chaos_draw(&ep->random, 8 * (at_start && len > HEADERS_LEN ? HEADERS_LEN : len));
}

void mca_btl_chaos_turn(struct iovec *iov, size_t count, uint64_t bit)
{
    for (size_t i = 0; i < count; i++) {
        if (bit < 8 * iov[i].iov_len) {
            ((unsigned char *) iov[i].iov_base)[bit / 8] ^= (unsigned char) (1u << bit % 8);
            return;
        }
        bit -= 8 * iov[i].iov_len;
    }
}

/* ---- Counts ---- */

static const struct {
    const char *name, *help, *word;
} texts[CHAOS_COUNTS] = {
    [CHAOS_LOSS] = {"lost", "Fragments and fetches that btl/chaos lost", "lost"},
    [CHAOS_DAMAGE] = {"damaged", "Fragments and fetches in which btl/chaos turned a bit", "damaged"},
    [CHAOS_DUPLICATE] = {"duplicated", "Fragments that btl/chaos sent twice", "duplicated"},
    [CHAOS_REORDER] = {"reordered", "Fragments that btl/chaos held back so that others overtook them", "reordered"},
    [CHAOS_DELAY] = {"delayed", "Fragments that btl/chaos delayed", "delayed"},
    [CHAOS_DEATHS] = {"deaths", "How often btl/chaos let a link die", "deaths of links"},
    [CHAOS_RETURNS] = {"returns", "How often btl/chaos let a link come back", "returns"},
    [CHAOS_FRAGMENTS] = {"fragments", "Fragments and fetches that went to btl/chaos", "fragments"},
};

void mca_btl_chaos_count(int what)
{
    atomic_fetch_add_explicit(&counts[what], 1, memory_order_relaxed);
}

void mca_btl_chaos_count_back(int what)
{
    atomic_fetch_sub_explicit(&counts[what], 1, memory_order_relaxed);
}

uint64_t mca_btl_chaos_counted(int what)
{
    return atomic_load_explicit(&counts[what], memory_order_relaxed);
}

static uint64_t read_count(void *context)
{
    return mca_btl_chaos_counted((int) (intptr_t) context);
}

int mca_btl_chaos_offer_counts(void)
{
    int rc = MCA_SUCCESS;
    for (intptr_t i = 0; rc == MCA_SUCCESS && i < CHAOS_COUNTS; i++) {
        atomic_store(&counts[i], 0);
        rc = mca_btl_chaos_services->counter("chaos", texts[i].name, texts[i].help, read_count, (void *) i);
    }
    return rc;
}

void mca_btl_chaos_print_counts(void)
{
    char line[512];
    int at = snprintf(line, sizeof(line), "chaos: rank %u: %" PRIu64 " fragments",
                      (unsigned) (uint32_t) mca_btl_chaos_services->job->self,
                      mca_btl_chaos_counted(CHAOS_FRAGMENTS));
    for (int i = 0; i < CHAOS_FRAGMENTS && at > 0 && (size_t) at < sizeof(line); i++) {
        at += snprintf(line + at, sizeof(line) - (size_t) at, ", %" PRIu64 " %s", mca_btl_chaos_counted(i),
                       texts[i].word);
    }
    fprintf(stderr, "%s\n", line);
}
