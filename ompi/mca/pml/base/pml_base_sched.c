/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Rates of links, and the division of messages among them. */
#include "ompi/mca/pml/base/pml_base_sched.h"

/* Times in ns, rates in bytes per ns. */
static const double MEMORY = 20e6;        /* over which the rate is averaged */
static const double SAMPLE = 2e6;         /* a sample spans at least this, or all of the work */
static const double SAMPLE_COUNTS = 50e6; /* at most: the peer may just have been away */
static const double PIECE = 2e6;          /* that a piece occupies its link for */
static const double WINDOW = 10e6;        /* worth of unconfirmed bytes: outlasts a busy peer */
static const double SILENCE = 2e6;        /* that is no sign of anything */
static const double SLOW = 50e6;          /* for what is handed over: less is not worth repeating it */
static const double LEAP = 8;             /* that one sample may raise the rate by */
static const double RATE_MIN = 1e-6;      /* 1 KB/s: keeps divisions finite */

static double clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

static void set_rate(mca_pml_flow_t *flow, double rate)
{
    flow->rate = rate > RATE_MIN ? rate : RATE_MIN;
    if (flow->alone) {
        flow->frag = flow->max_frag;
        flow->window = flow->max_window;
        return;
    }
    /* What is measured may be slow for want of bytes under way, when the peer answers late: a window
     * that shrank with the rate would make it slower still, down to nothing. */
    double best = flow->rate > flow->start ? flow->rate : flow->start;
    flow->frag = (size_t) clamp(flow->rate * PIECE, (double) flow->min_frag,
                                (double) flow->max_frag);
    double two = (double) (2 * flow->frag);
    double least = two < (double) flow->max_window ? two : (double) flow->max_window;
    flow->window = (size_t) clamp(best * WINDOW, least, (double) flow->max_window);
}

void mca_pml_flow_init(mca_pml_flow_t *flow, const mca_btl_limits_t *limits, size_t room,
                       bool fixed, double rate_part)
{
    *flow = (mca_pml_flow_t){.max_frag = limits->max_frag - room, .max_window = limits->window,
                             .fixed = fixed};
    flow->min_frag = limits->min_frag < flow->max_frag ? limits->min_frag : flow->max_frag;
    flow->min_frag = flow->min_frag > 0 ? flow->min_frag : 1;
    flow->start = (double) limits->bandwidth * 1e-9;
    set_rate(flow, flow->start * rate_part);
}

void mca_pml_flow_alone(mca_pml_flow_t *flow, bool alone)
{
    flow->alone = alone;
    set_rate(flow, flow->rate);
}

void mca_pml_flow_took(mca_pml_flow_t *flow, size_t len, uint64_t ns)
{
    if (flow->fixed || len == 0 || ns == 0) {
        return;
    }
    double took = clamp((double) ns, 1, SAMPLE_COUNTS), expected = (double) len / flow->rate;
    double weight = (took > expected ? took : expected) / MEMORY;
    double seen = clamp((double) len / (double) ns, 0, LEAP * flow->rate);
    set_rate(flow, flow->rate + (seen - flow->rate) * weight / (1 + weight));
}

void mca_pml_flow_handed(mca_pml_flow_t *flow, size_t len, uint64_t now)
{
    if (flow->outstanding == 0) {
        flow->since = flow->last = now;
        flow->delivered = flow->recalled = 0;
        flow->from_idle = true;
    }
    flow->outstanding += len;
}

void mca_pml_flow_returned(mca_pml_flow_t *flow, size_t len)
{
    flow->outstanding -= len;
}

/* From its last sign of life on the link had all of this to carry, and has not: it carries less. */
void mca_pml_flow_recalled(mca_pml_flow_t *flow, size_t len, uint64_t now)
{
    flow->recalled += len;
    flow->outstanding -= len;
    size_t most = flow->outstanding + flow->recalled;
    if (flow->last > 0 && now > flow->last && (double) most < flow->rate * (double) (now - flow->last)) {
        mca_pml_flow_took(flow, most, now - flow->last);
    }
}

void mca_pml_flow_confirmed(mca_pml_flow_t *flow, size_t len, uint64_t now)
{
    flow->outstanding -= len;
    flow->recalled = 0;
    flow->last = now;
    if (flow->since == 0 || now == 0) { /* the work began, or ends, unmeasured */
        flow->since = now;
        flow->delivered = 0;
        return;
    }
    flow->delivered += len;
    /* Confirmations come in bursts: what is left of one after a sample's end says nothing. */
    bool long_enough = (double) (now - flow->since) >= SAMPLE;
    if (long_enough || flow->outstanding == 0) {
        if (long_enough || flow->from_idle) {
            mca_pml_flow_took(flow, flow->delivered, now - flow->since);
        }
        flow->since = now;
        flow->delivered = 0;
        flow->from_idle = false;
    }
}

/* How much longer than usual the link has been silent, in ns; 0: not at all. */
static double lateness(const mca_pml_flow_t *flow, uint64_t now)
{
    if (flow->outstanding == 0 || flow->last == 0 || now <= flow->last) {
        return 0;
    }
    double late = (double) (now - flow->last) - SILENCE - 4 * (double) flow->frag / flow->rate;
    return late > 0 ? late : 0;
}

double mca_pml_flow_rate(const mca_pml_flow_t *flow, uint64_t now)
{
    return flow->fixed ? flow->rate : flow->rate * MEMORY / (MEMORY + lateness(flow, now));
}

bool mca_pml_flow_is_stalled(const mca_pml_flow_t *flow, uint64_t now, double times)
{
    return flow->outstanding > 0 && flow->last > 0 && now > flow->last &&
           (double) (now - flow->last) > SILENCE + times * (double) flow->outstanding / flow->rate;
}

bool mca_pml_flow_is_slow(const mca_pml_flow_t *flow, const mca_pml_flow_t *other, uint64_t now, double times)
{
    double wait = (double) flow->outstanding / mca_pml_flow_rate(flow, now);
    double instead = (double) (other->outstanding + other->queued + flow->outstanding) / mca_pml_flow_rate(other, now);
    return !flow->fixed && wait > SLOW && wait > times * instead;
}

/* ---- Division ---- */

typedef struct division {
    int n;
    size_t left;
    double rate[MCA_PML_FLOWS_MAX];    /* 0: takes no part */
    double backlog[MCA_PML_FLOWS_MAX]; /* bytes to be carried before this message's */
    double exact[MCA_PML_FLOWS_MAX];
    size_t part[MCA_PML_FLOWS_MAX];
} division_t;

/* All are done at the same time, but those that are busy for longer anyway: they drop out. */
static void level(division_t *d)
{
    for (bool again = true; again;) {
        double rates = 0, bytes = (double) d->left;
        again = false;
        for (int i = 0; i < d->n; i++) {
            rates += d->rate[i];
            bytes += d->rate[i] > 0 ? d->backlog[i] : 0;
        }
        for (int i = 0; i < d->n; i++) {
            d->exact[i] = d->rate[i] > 0 ? d->rate[i] * (bytes / rates) - d->backlog[i] : 0;
        }
        for (int i = 0; i < d->n; i++) {
            if (d->rate[i] > 0 && d->exact[i] < 0) {
                d->rate[i] = 0;
                again = true;
            }
        }
    }
}

/* Whole bytes by largest remainder. */
static void round_off(division_t *d)
{
    size_t rest = d->left;
    for (int i = 0; i < d->n; i++) {
        size_t whole = (size_t) d->exact[i];
        d->part[i] = whole < rest ? whole : rest;
        d->exact[i] -= (double) d->part[i];
        rest -= d->part[i];
    }
    while (rest > 0) { /* fewer bytes than flows, but for what doubles can't tell apart */
        int most = -1;
        for (int i = 0; i < d->n; i++) {
            if (d->rate[i] > 0 && (most < 0 || d->exact[i] > d->exact[most])) {
                most = i;
            }
        }
        size_t give = rest > (size_t) d->n ? rest : 1;
        d->part[most] += give;
        d->exact[most] -= (double) give;
        rest -= give;
    }
}

/* The flow whose part is furthest below what is worth a fragment; -1: none, or it is the last. */
static int least_worth(const division_t *d, mca_pml_flow_t *const flow[])
{
    int least = -1, count = 0;
    double worst = 1;
    for (int i = 0; i < d->n; i++) {
        if (d->rate[i] > 0) {
            double worth = (double) d->part[i] / (double) flow[i]->min_frag;
            count++;
            if (worth < worst) {
                worst = worth;
                least = i;
            }
        }
    }
    return count > 1 ? least : -1;
}

/* A link that got nothing for long may be better than was last seen: one piece shows. */
static void probe(division_t *d, mca_pml_flow_t *const flow[], uint64_t now)
{
    int most = 0;
    for (int i = 1; i < d->n; i++) {
        most = d->part[i] > d->part[most] ? i : most;
    }
    for (int i = 0; i < d->n; i++) {
        const mca_pml_flow_t *f = flow[i];
        if (f && !f->fixed && d->part[i] == 0 && f->queued + f->outstanding == 0 &&
            now - f->last >= MCA_PML_FLOW_PROBE_NS && d->part[most] >= 4 * f->min_frag) {
            d->part[i] = f->min_frag;
            d->part[most] -= f->min_frag;
        }
    }
}

static void divide(division_t *d, mca_pml_flow_t *const flow[], uint64_t now)
{
    int out;
    do {
        level(d);
        round_off(d);
        out = least_worth(d, flow);
        if (out >= 0) {
            d->rate[out] = 0;
        }
    } while (out >= 0);
    probe(d, flow, now);
}

/* When the last link would be done, in ns. */
static double last_end(const division_t *d, mca_pml_flow_t *const flow[], const size_t part[], uint64_t now)
{
    double last = 0;
    for (int i = 0; i < d->n; i++) {
        if (flow[i] && part[i] > 0) {
            double end = (d->backlog[i] + (double) part[i]) / mca_pml_flow_rate(flow[i], now);
            last = end > last ? end : last;
        }
    }
    return last;
}

/* Is the new division enough better? What is outstanding is known to a piece only: less than the time of a piece says
 * nothing, and would only make crumbs. */
static bool is_better(const division_t *d, mca_pml_flow_t *const flow[], const size_t part[], uint64_t now)
{
    for (int i = 0; i < d->n; i++) {
        if (flow[i] && flow[i]->fixed) {
            return false;
        }
    }
    return last_end(d, flow, part, now) - last_end(d, flow, d->part, now) > PIECE * 1.001;
}

/* All to the only link: there is nothing to compare. */
static void give_all(mca_pml_flow_t *const flow[], int n, size_t left, size_t part[])
{
    for (int i = 0; i < n; i++) {
        if (flow[i]) {
            flow[i]->queued += left - part[i];
        }
        part[i] = flow[i] ? left : 0;
    }
}

void mca_pml_sched_divide(mca_pml_flow_t *const flow[], int n, size_t left, size_t part[],
                          uint64_t now)
{
    size_t given = 0;
    int count = 0;
    for (int i = 0; i < n; i++) {
        given += flow[i] ? part[i] : 0;
        count += flow[i] != NULL;
    }
    if (count == 0 || left == 0 || (given == left && count == 1)) {
        return;
    }
    if (count == 1) {
        give_all(flow, n, left, part);
        return;
    }
    division_t d = {.n = n, .left = left};
    for (int i = 0; i < n; i++) {
        if (flow[i]) {
            d.rate[i] = mca_pml_flow_rate(flow[i], now);
            d.backlog[i] = (double) (flow[i]->outstanding + flow[i]->queued - part[i]);
        }
    }
    divide(&d, flow, now);
    if (given == left && !is_better(&d, flow, part, now)) {
        return;
    }
    for (int i = 0; i < n; i++) {
        if (flow[i]) {
            flow[i]->queued += d.part[i] - part[i];
        }
        part[i] = flow[i] ? d.part[i] : 0;
    }
}
