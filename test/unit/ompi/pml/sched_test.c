/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scheduler against pretended links on a pretended clock: each link is a queue that drains at a
 * rate of its own, which may change, jitter, or drop to nothing for a while.
 */
#include "ompi/mca/pml/base/pml_base_sched.h"

#include <stdlib.h>
#include <string.h>

#include "support/tap.h"

enum { LINKS_MAX = 4, MESSAGES_MAX = 8, PIECES_MAX = 4096, STEP_NS = 20000 };

static const uint64_t MS = 1000000;

typedef struct message {
    size_t left, unconfirmed, part[MCA_PML_FLOWS_MAX];
} message_t;

typedef struct piece {
    size_t len, left;
    message_t *message;
    uint64_t done; /* when it has been carried */
} piece_t;

typedef struct link {
    mca_btl_limits_t limits;
    mca_pml_flow_t flow;
    double rate;      /* bytes per ns, now */
    double jitter;    /* the rate of each step is off by up to this part */
    double credit;    /* bytes that were carried beyond whole ones */
    piece_t pieces[PIECES_MAX];
    unsigned head, here, tail; /* [head, here) carried and not confirmed, [here, tail) not carried */
    uint64_t delay;   /* ns from being carried to the confirmation */
    size_t holds;     /* it takes no piece while it has so many bytes to carry; 0: it takes any */
    uint64_t carried; /* bytes confirmed */
    uint64_t handed;
} link_t;

typedef struct world {
    link_t links[LINKS_MAX];
    mca_pml_flow_t *flow[LINKS_MAX];
    int count;
    uint64_t now;
    uint64_t poll_ns;  /* the peer looks for arrivals so often; 0: always */
    message_t messages[MESSAGES_MAX];
    int messages_open;
} world_t;

static uint64_t state = 88172645463325252u;

static uint32_t draw(uint32_t below)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t) ((state * 0x2545f4914f6cdd1du) >> 33) % below;
}

static void open_world(world_t *w, int count, const double *gbit, bool fixed)
{
    memset(w, 0, sizeof(*w));
    w->count = count;
    w->now = 1000 * MS;
    for (int i = 0; i < count; i++) {
        link_t *l = &w->links[i];
        l->rate = gbit[i] / 8;
        l->limits = (mca_btl_limits_t){.min_frag = 32 << 10, .max_frag = (1 << 20) + 24,
                                       .window = 2 << 20,
                                       .bandwidth = (uint64_t) (gbit[i] * 125e6)};
        mca_pml_flow_init(&l->flow, &l->limits, 24, fixed, 1);
        w->flow[i] = &l->flow;
    }
}

static bool is_full(const link_t *l)
{
    size_t waiting = 0;
    for (unsigned i = l->here; l->holds > 0 && i != l->tail; i++) {
        waiting += l->pieces[i % PIECES_MAX].left;
    }
    return waiting > 0 && waiting >= l->holds;
}

/* Hand over pieces as long as a link takes one. */
static void send_pieces(world_t *w)
{
    for (int m = 0; m < MESSAGES_MAX; m++) {
        message_t *msg = &w->messages[m];
        if (msg->left == 0) {
            continue;
        }
        mca_pml_sched_divide(w->flow, w->count, msg->left, msg->part, w->now);
        for (bool moved = true; moved;) {
            moved = false;
            for (int i = 0; i < w->count; i++) {
                link_t *l = &w->links[i];
                size_t len = is_full(l) ? 0 : mca_pml_flow_piece(&l->flow, msg->part[i]);
                if (len > 0) {
                    l->pieces[l->tail++ % PIECES_MAX] = (piece_t){len, len, msg, 0};
                    msg->unconfirmed += len;
                    l->handed += len;
                    l->flow.queued -= len;
                    msg->part[i] -= len;
                    msg->left -= len;
                    mca_pml_flow_handed(&l->flow, len, w->now);
                    moved = true;
                }
            }
        }
    }
}

static void run_link(world_t *w, link_t *l)
{
    double off = l->jitter * ((double) draw(2001) / 1000 - 1);
    l->credit += l->rate * (1 + off) * STEP_NS;
    while (l->here != l->tail) {
        piece_t *p = &l->pieces[l->here % PIECES_MAX];
        if (l->credit < (double) p->left) {
            p->left -= (size_t) l->credit;
            l->credit -= (double) (size_t) l->credit;
            break;
        }
        l->credit -= (double) p->left;
        p->done = w->now;
        l->here++;
    }
    l->credit = l->here == l->tail ? 0 : l->credit; /* idle: nothing is saved up */
    while (l->head != l->here) {
        piece_t *p = &l->pieces[l->head % PIECES_MAX];
        if (p->done + l->delay > w->now || (w->poll_ns > 0 && w->now % w->poll_ns != 0)) {
            break;
        }
        l->carried += p->len;
        p->message->unconfirmed -= p->len;
        l->head++;
        mca_pml_flow_confirmed(&l->flow, p->len, w->now);
    }
}

static bool is_idle(const world_t *w)
{
    for (int i = 0; i < w->count; i++) {
        if (w->links[i].head != w->links[i].tail) {
            return false;
        }
    }
    return true;
}

static void step(world_t *w)
{
    send_pieces(w);
    w->now += STEP_NS;
    for (int i = 0; i < w->count; i++) {
        run_link(w, &w->links[i]);
    }
}

/* One message on idle links; how long it took, in ns. */
static uint64_t one_message(world_t *w, size_t bytes)
{
    uint64_t start = w->now;
    w->messages[0].left = bytes;
    do {
        step(w);
    } while (w->messages[0].left > 0 || !is_idle(w));
    return w->now - start;
}

/* Messages one after the other, `open` at a time, for `ms`; bytes per ns. */
static double stream(world_t *w, size_t bytes, int open, uint64_t ms)
{
    uint64_t carried = 0, start = w->now;
    for (int i = 0; i < w->count; i++) {
        carried -= w->links[i].carried;
    }
    while (w->now < start + ms * MS) {
        for (int m = 0; m < open; m++) {
            if (w->messages[m].left == 0 && w->messages[m].unconfirmed == 0) {
                w->messages[m].left = bytes;
            }
        }
        step(w);
    }
    for (int i = 0; i < w->count; i++) {
        carried += w->links[i].carried;
    }
    return (double) carried / (double) (w->now - start);
}

static double sum_rates(const world_t *w)
{
    double sum = 0;
    for (int i = 0; i < w->count; i++) {
        sum += w->links[i].rate;
    }
    return sum;
}

/* ---- The division itself ---- */

/* Largest remainder in whole numbers; ties go to the first. */
static void split_exactly(const uint64_t *rate, int n, uint64_t total, uint64_t *part)
{
    unsigned __int128 sum = 0, remainder[LINKS_MAX];
    uint64_t given = 0;
    for (int i = 0; i < n; i++) {
        sum += rate[i];
    }
    for (int i = 0; i < n; i++) {
        part[i] = (uint64_t) ((unsigned __int128) total * rate[i] / sum);
        remainder[i] = (unsigned __int128) total * rate[i] % sum;
        given += part[i];
    }
    for (; given < total; given++) {
        int most = 0;
        for (int i = 1; i < n; i++) {
            most = remainder[i] > remainder[most] ? i : most;
        }
        part[most]++;
        remainder[most] = 0;
    }
}

/* Messages of random lengths over idle links with random constant rates: each link carries exactly
 * its share of each. */
static void test_constant(bool fixed)
{
    static world_t w;
    int wrong = 0, rounds = 0;
    for (int r = 0; r < 60; r++) {
        int n = 1 + (int) draw(LINKS_MAX);
        double gbit[LINKS_MAX];
        uint64_t rate[LINKS_MAX], part[LINKS_MAX];
        for (int i = 0; i < n; i++) {
            gbit[i] = 1 + draw(1000) * 0.00937; /* no ties */
        }
        open_world(&w, n, gbit, fixed);
        for (int m = 0; m < 4; m++) {
            uint64_t total = (1u << 20) + draw(64u << 20);
            for (int i = 0; i < n; i++) {
                rate[i] = w.links[i].limits.bandwidth;
                w.links[i].handed = 0;
            }
            split_exactly(rate, n, total, part);
            if (!fixed && m > 0) {
                break; /* the clock's steps show in what was measured */
            }
            one_message(&w, total);
            for (int i = 0; i < n; i++) {
                wrong += w.links[i].handed != part[i];
            }
            rounds++;
        }
    }
    TAP_OK(wrong == 0, "constant rates, %s: all parts of %d messages are exact (%d are not)",
       fixed ? "fixed" : "measured", rounds, wrong);
}

/* The same for the bare division, with many more cases. */
static void test_division(void)
{
    int wrong = 0;
    for (int r = 0; r < 100000; r++) {
        int n = 1 + (int) draw(LINKS_MAX);
        mca_pml_flow_t flows[LINKS_MAX], *flow[LINKS_MAX];
        uint64_t rate[LINKS_MAX], exact[LINKS_MAX];
        size_t part[MCA_PML_FLOWS_MAX] = {0};
        uint64_t total = 1u << 20 | draw(1u << 30);
        for (int i = 0; i < n; i++) {
            mca_btl_limits_t limits = {.min_frag = 1, .max_frag = 1 << 20, .window = 1 << 20,
                                       .bandwidth = rate[i] = 1000000 + draw(1 << 30)};
            mca_pml_flow_init(&flows[i], &limits, 0, true, 1);
            flow[i] = &flows[i];
        }
        split_exactly(rate, n, total, exact);
        mca_pml_sched_divide(flow, n, total, part, 1);
        for (int i = 0; i < n; i++) {
            wrong += part[i] != exact[i] || flows[i].queued != part[i];
        }
    }
    TAP_OK(wrong == 0, "100000 divisions are the largest-remainder split (%d parts are not)", wrong);
}

static void test_small(void)
{
    static world_t w;
    const double gbit[] = {1, 2, 4};
    size_t part[MCA_PML_FLOWS_MAX] = {0};
    open_world(&w, 3, gbit, false);
    mca_pml_sched_divide(w.flow, 3, 20000, part, w.now);
    TAP_OK(part[0] == 0 && part[1] == 0 && part[2] == 20000, "what is no fragment goes undivided");
    w.links[2].flow.queued = 1 << 20;
    memset(part, 0, sizeof(part));
    mca_pml_sched_divide(w.flow, 3, 20000, part, w.now);
    TAP_OK(part[1] == 20000, "to the link that is done with it first");
    open_world(&w, 3, gbit, false);
    memset(part, 0, sizeof(part));
    mca_pml_sched_divide(w.flow, 3, 100 << 10, part, w.now);
    TAP_OK(part[0] == 0 && part[1] >= 32 << 10 && part[2] >= 32 << 10 &&
           part[1] + part[2] == 100 << 10, "no part is below a link's least fragment");
    mca_pml_flow_t *gone = w.flow[2];
    w.flow[2] = NULL;
    mca_pml_sched_divide(w.flow, 3, 100 << 10, part, w.now);
    TAP_OK(part[2] == 0 && part[0] + part[1] == 100 << 10 && part[0] >= 32 << 10,
       "the part of a link that is gone goes to the others");
    w.flow[0] = w.flow[1] = NULL;
    size_t before = part[1];
    mca_pml_sched_divide(w.flow, 3, 100 << 10, part, w.now);
    TAP_OK(part[1] == before, "nothing changes while there is no link");
    w.flow[2] = gone;
    mca_pml_sched_divide(w.flow, 3, 100 << 10, part, w.now);
    TAP_OK(part[2] == 100 << 10 && part[0] + part[1] == 0, "one that is there takes all");
    mca_pml_flow_t *f = w.flow[2];
    int bad = 0;
    for (size_t p = 1; p < 4u << 20; p += 997) {
        f->outstanding = 0;
        for (size_t left = p, len; left > 0; left -= len, f->outstanding = 0) {
            len = mca_pml_flow_piece(f, left);
            bad += len == 0 || len > f->max_frag || (p >= f->min_frag && len < f->min_frag / 2);
        }
    }
    TAP_OK(bad == 0, "pieces of all parts keep the limits, and leave no crumbs");
}

/* ---- Adapting ---- */

static void test_sums(void)
{
    static const double sets[][LINKS_MAX] = {{1, 1}, {2, 1}, {1, 2, 5, 10}, {10, 1}};
    static const int counts[] = {2, 2, 4, 2};
    static world_t w;
    for (int s = 0; s < 4; s++) {
        for (int jitter = 0; jitter < 2; jitter++) {
            open_world(&w, counts[s], sets[s], false);
            for (int i = 0; i < w.count; i++) {
                w.links[i].jitter = jitter * 0.8;
            }
            stream(&w, 4 << 20, 2, 200);
            double part = stream(&w, 4 << 20, 2, 1000) / sum_rates(&w);
            TAP_OK(part >= 0.97, "%d links, %g:%g%s, jitter %d %%: %.1f %% of the sum", w.count,
               sets[s][0], sets[s][1], w.count > 2 ? ":.." : "", jitter * 80, 100 * part);
        }
    }
}

/* A peer that answers late makes the links look slow: they must not be made slower for it. */
static void test_late_answers(void)
{
    static world_t w;
    const double gbit[] = {1, 1};
    open_world(&w, 2, gbit, false);
    w.links[0].delay = w.links[1].delay = 20 * MS;
    stream(&w, 4 << 20, 8, 2000);
    double part = stream(&w, 4 << 20, 8, 1000) / sum_rates(&w);
    TAP_OK(part >= 0.4, "answers 20 ms late: %.1f %% of the sum", 100 * part);
    w.links[0].delay = w.links[1].delay = 0;
    stream(&w, 4 << 20, 8, 100);
    part = stream(&w, 4 << 20, 8, 300) / sum_rates(&w);
    TAP_OK(part >= 0.97, "in time again: %.1f %% of the sum", 100 * part);
}

/* A peer that looks now and then confirms in bursts. */
static void test_bursts(void)
{
    static world_t w;
    const double gbit[] = {2, 1};
    for (uint64_t ms = 1; ms <= 8; ms *= 2) {
        double low = 1, high = 0, sum = 0;
        open_world(&w, 2, gbit, false);
        w.poll_ns = ms * MS;
        stream(&w, 4 << 20, 4, 300);
        for (int i = 0; i < 100; i++) {
            sum += stream(&w, 4 << 20, 4, 10) / sum_rates(&w) / 100;
            double share = w.links[0].flow.rate / (w.links[0].flow.rate + w.links[1].flow.rate);
            low = share < low ? share : low;
            high = share > high ? share : high;
        }
        TAP_OK(low > 0.5 && high < 0.8, "confirmed every %d ms: the weight stays in %.2f .. %.2f", (int) ms, low, high);
        TAP_OK(sum > (ms < 8 ? 0.95 : 0.6), "%.1f %% of the sum", 100 * sum);
    }
}

/* The interface lies about its speed. */
static void test_wrong_start(void)
{
    static world_t w;
    const double gbit[] = {1, 1};
    open_world(&w, 2, gbit, false);
    w.links[1].rate = 10.0 / 8;
    stream(&w, 4 << 20, 2, 100);
    double part = stream(&w, 4 << 20, 2, 300) / sum_rates(&w);
    TAP_OK(part >= 0.95, "a link ten times as fast as it says: %.1f %% of the sum after 100 ms",
       100 * part);
}

/* `least`: part of the new sum. One message of 4 MiB at a time takes 30 ms, and the slow link's last piece 3 of them. */
static void test_throttle(int open, size_t bytes, double least)
{
    static world_t w;
    const double gbit[] = {1, 1};
    open_world(&w, 2, gbit, false);
    stream(&w, bytes, open, 300);
    w.links[0].rate /= 10;
    stream(&w, bytes, open, 100);
    double part = stream(&w, bytes, open, 200) / sum_rates(&w);
    TAP_OK(part >= least, "throttled to a tenth: after 100 ms %.1f %% of the new sum (%d x %zu KiB)",
       100 * part, open, bytes >> 10);
    double share = w.links[0].flow.rate / (w.links[0].flow.rate + w.links[1].flow.rate);
    TAP_OK(share < 0.15, "its weight is %.3f", share);
    stream(&w, bytes, open, 500);
    w.links[0].rate *= 10;
    stream(&w, bytes, open, 100);
    part = stream(&w, bytes, open, 200) / sum_rates(&w);
    TAP_OK(part >= 0.9, "restored: after 100 ms %.1f %% of the old sum", 100 * part);
}

/* Messages in a row, MESSAGES_MAX under way, each begun when the oldest has arrived, as a program waits for them: what
 * part of the links' sum arrives as whole messages in so many ms. */
static double arriving(world_t *w, size_t bytes, uint64_t ms)
{
    static int oldest;
    uint64_t arrived = 0, start = w->now;
    for (; w->now < start + ms * MS; step(w)) {
        for (message_t *m; m = &w->messages[oldest], m->left == 0 && m->unconfirmed == 0;
             oldest = (oldest + 1) % MESSAGES_MAX) {
            m->left = bytes;
            arrived += bytes;
        }
    }
    return (double) arrived / (double) (w->now - start) / sum_rates(w);
}

/* Slow links that say they are fast, as those behind a switch do, one of them throttled to a tenth: what it holds takes ten
 * times as long from then on. A link that takes little more than keeps it busy, as tcp's, has little of it. */
static void test_throttle_far(void)
{
    static world_t w;
    const double gbit[] = {10, 10};
    const size_t bytes = 512 << 10;
    open_world(&w, 2, gbit, false);
    for (int i = 0; i < 2; i++) {
        w.links[i].rate = 0.2 / 8;
        w.links[i].holds = 192 << 10;
    }
    arriving(&w, bytes, 1000);
    w.links[0].rate /= 10;
    double first = arriving(&w, bytes, 500), later = arriving(&w, bytes, 2000);
    TAP_OK(first >= 0.7, "throttled to a tenth: %.1f %% of the new sum as whole messages in the first 0.5 s", 100 * first);
    TAP_OK(later >= 0.95, "%.1f %% from then on", 100 * later);
    w.links[0].rate *= 10;
    first = arriving(&w, bytes, 500), later = arriving(&w, bytes, 2000);
    TAP_OK(first >= 0.7, "restored: %.1f %% of the old sum in the first 0.5 s", 100 * first);
    TAP_OK(later >= 0.95, "%.1f %% from then on", 100 * later);
}

/* With fixed weights the throttled link keeps its share: that is what the parameter is for. */
static void test_fixed(void)
{
    static world_t w;
    const double gbit[] = {1, 1};
    open_world(&w, 2, gbit, true);
    w.links[0].rate /= 10;
    for (int i = 0; i < 3; i++) {
        one_message(&w, 4 << 20);
    }
    double part = (double) w.links[0].handed / (double) (w.links[0].handed + w.links[1].handed);
    TAP_OK(part == 0.5, "fixed weights: the throttled link still gets %.3f", part);
}

/* A link that stops in mid-message keeps only what it was handed. */
static void test_stall(void)
{
    static world_t w;
    const double gbit[] = {1, 1};
    size_t bytes = 64 << 20;
    open_world(&w, 2, gbit, false);
    stream(&w, 4 << 20, 1, 200);
    while (!is_idle(&w)) {
        step(&w);
    }
    w.messages[0].left = bytes;
    uint64_t start = w.now, handed = w.links[0].handed;
    for (int i = 0; i < 1000; i++) {
        step(&w); /* 20 ms */
    }
    w.links[0].rate = 0;
    while (w.messages[0].left > 0 || w.links[1].head != w.links[1].tail) {
        step(&w);
    }
    double ideal = ((double) bytes - 0.125 * 20 * (double) MS) / 0.125 / (double) MS;
    double took = (double) (w.now - start) / (double) MS;
    TAP_OK(took < ideal * 1.02, "a stalled link: all but what it has is sent in %.0f ms (ideal %.0f)",
       took, ideal);
    TAP_OK(w.links[0].handed - handed < (20 + 12) * MS / 8, "it holds %zu KiB",
       w.links[0].flow.outstanding >> 10);
    TAP_OK(mca_pml_flow_is_stalled(&w.links[0].flow, w.now, 8) &&
           !mca_pml_flow_is_stalled(&w.links[1].flow, w.now, 8), "and is known to be stalled");
    w.links[0].rate = 0.125;
    stream(&w, 4 << 20, 1, 200);
    double part = stream(&w, 4 << 20, 1, 300) / sum_rates(&w);
    TAP_OK(part > 0.95, "going again, %.1f %% of the sum", 100 * part);
}

/* A link that goes on at a twentieth of its rate: what it holds is better sent another way, unless the others are busy for
 * longer anyway. */
static void test_slow(void)
{
    static world_t w;
    const double gbit[] = {1, 1};
    open_world(&w, 2, gbit, false);
    stream(&w, 4 << 20, 4, 300);
    mca_pml_flow_t *slow = &w.links[0].flow, *other = &w.links[1].flow;
    TAP_OK(!mca_pml_flow_is_slow(slow, other, w.now, 4) && !mca_pml_flow_is_slow(other, slow, w.now, 4),
           "of two alike links neither is slow");
    w.links[0].rate /= 20;
    stream(&w, 1 << 20, 1, 300);
    mca_pml_flow_handed(slow, 1 << 20, w.now); /* 160 ms; the other one would take 8 */
    TAP_OK(mca_pml_flow_is_slow(slow, other, w.now, 4) && !mca_pml_flow_is_slow(other, slow, w.now, 4),
           "one that has become slow is");
    other->queued += 8 << 20;
    TAP_OK(!mca_pml_flow_is_slow(slow, other, w.now, 4), "... not if the other one has more to do");
    other->queued -= 8 << 20;
    mca_pml_flow_returned(slow, (1 << 20) - (64 << 10));
    TAP_OK(!mca_pml_flow_is_slow(slow, other, w.now, 4), "... nor if what it holds is not worth it");
}

/* A link left out because it was bad is tried again now and then. */
static void test_probe(void)
{
    static world_t w;
    const double gbit[] = {10, 1};
    open_world(&w, 2, gbit, false);
    w.links[1].rate = 0.00002; /* 20 KB/s */
    stream(&w, 1 << 20, 2, 400);
    w.links[1].rate = 0.125;
    stream(&w, 1 << 20, 2, 3000);
    double part = stream(&w, 1 << 20, 2, 500) / sum_rates(&w);
    TAP_OK(part > 0.95, "a link that was hopeless is found again: %.1f %% of the sum", 100 * part);
}

/* A link that says 10 Gbit/s and has 50 Mbit/s: what it is handed goes over another one first, and is taken back. */
static void test_recalled(void)
{
    static world_t w;
    const double gbit[] = {10, 10};
    const size_t piece = 480 << 10;
    open_world(&w, 2, gbit, false);
    mca_pml_flow_t *flow = w.flow[0];
    uint64_t now = 1000 * MS;
    double before = flow->rate;
    mca_pml_flow_handed(flow, piece, now);
    mca_pml_flow_recalled(flow, piece, now + MS / 10);
    TAP_OK(flow->rate == before, "a piece that is taken back early says nothing");
    for (int i = 0; i < 8; i++) {
        now += MS;
        mca_pml_flow_handed(flow, piece, now);
        mca_pml_flow_handed(flow, piece, now);
        mca_pml_flow_recalled(flow, piece, now += 40 * MS);
        mca_pml_flow_recalled(flow, piece, now += 20 * MS);
    }
    TAP_OK(flow->rate < 0.025 && flow->rate > 0.012, "after 16 pieces of which none was confirmed: %.1f MB/s", 1000 * flow->rate);
    TAP_OK(flow->frag < 64 << 10, "the next ones have %zu KiB and are done in time", flow->frag >> 10);
    for (int i = 0; i < 20; i++) {
        mca_pml_flow_handed(flow, 32 << 10, now);
        mca_pml_flow_confirmed(flow, 32 << 10, now += 5 * MS);
    }
    TAP_OK(flow->rate < 0.0072 && flow->rate > 0.0061, "and say more: %.2f MB/s", 1000 * flow->rate);
}

int main(void)
{
    tap_start(60);
    test_recalled();
    test_division();
    test_constant(true);
    test_constant(false);
    test_small();
    test_sums();
    test_late_answers();
    test_bursts();
    test_wrong_start();
    test_throttle(1, 4 << 20, 0.85);
    test_throttle(4, 4 << 20, 0.9);
    test_throttle(4, 256 << 10, 0.9);
    test_throttle(1, 64 << 20, 0.9);
    test_throttle_far();
    test_fixed();
    test_stall();
    test_slow();
    test_probe();
    return tap_end();
}
