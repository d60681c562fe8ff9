/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * dr's parts: what it reads from the wire, the timer wheel, round trips and back-off. The faults that Open MPI's DR had, and
 * where they are tested:
 *
 *   a damaged fragment taken for received, its repeat for a duplicate     test_damaged; order: mpi/rehearsal.c
 *   ... acknowledged when it comes last, or noticed by a timer only       test_damaged, test_nack
 *   a fragment sent twice never retires                                   test_retries; dr_sim.c
 *   a receive posted late is taken for a dead link                        mpi/dr.c "late"
 *   so is a receiver that computes, or one behind a full socket           test_busy_receiver, test_read_late; mpi/dr.c "computing", "stopped"
 *   a failure takes the link from all peers, for ever                     test_paths; mpi/dr.c "silent"; system/dr_lossy.sh
 *   the last link's failure aborts the job                                mpi/dr.c "silent"
 *   no way over to another kind of link unless asked for                  mpi/rehearsal.sh, the pair without stripes
 *   acknowledgments go over some links only                               mpi/matrix.sh, each link alone
 *   pointers and lengths from the wire are believed                       test_seal, test_ack_wire, test_strange_acks
 *   memory without bound                                                  test_receiver_limits; dr_sim.c
 *   memory for peers that nothing is said to                              test_rest
 *   an injector of faults that nobody builds                              mpi/rehearsal.sh
 *   no spawned processes, cancelling, matched probes, threads             mpi/dr_suite.sh; mpi/matrix.sh
 */
#include <malloc.h>
#include <string.h>

#include "ompi/mca/pml/dr/pml_dr_stream.h"
#include "ompi/mca/pml/dr/pml_dr_wheel.h"
#include "support/tap.h"

static const uint64_t MS = 1000000;

static dr_stream_params_t params;

static void make(dr_stream_t *s, unsigned paths, bool reliable)
{
    params = (dr_stream_params_t){
        .rto_initial = 100 * MS, .rto_min = 2 * MS, .rto_reliable = 2 * MS, .rto_max = 1000 * MS, .ack_delay = MS, .ack_bytes = 1000, .window = 10000,
        .probe_first = 10 * MS, .probe_max = 100 * MS, .silence_max = 60000 * MS, .suspect_after = 2, .down_after = 4};
    dr_stream_init(s, &params, 1);
    if (!dr_stream_add_paths(s, paths)) {
        TAP_REQUIRE(false, "memory");
    }
    for (unsigned i = 0; i < paths; i++) {
        dr_stream_init_path(s, i, reliable, 1000000);
    }
}

/* ---- Wire ---- */

static void test_seal(void)
{
    dr_seal_t seal = {OPAL_CHECKSUM_CRC32C, dr_wire_key(1, 2)}, other = {OPAL_CHECKSUM_CRC32C, dr_wire_key(2, 1)};
    struct {
        dr_prefix_t prefix;
        unsigned char rest[40];
    } f = {.rest = {1, 2, 3}};
    dr_wire_write(&seal, &f.prefix, DR_DATA, DR_FLAG_ACK_NOW, 24, 7, 5, dr_wire_payload_sum(&seal, f.rest + 24, 16),
                  sizeof(f));
    TAP_OK(f.prefix.kind == DR_DATA && f.prefix.flags == DR_FLAG_ACK_NOW && f.prefix.header_len == 24 &&
               f.prefix.seq == htole64(7) && f.prefix.ack == htole32(5), "a prefix is laid out as described");
    TAP_OK(dr_wire_open(&seal, &f, sizeof(f)) && dr_wire_payload_is_good(&seal, le32toh(f.prefix.payload_check), f.rest + 24, 16),
           "what was sealed is good");
    TAP_OK(!dr_wire_open(&other, &f, sizeof(f)), "... but not in the other direction");
    bool all = true;
    for (size_t len = 0; len < sizeof(f); len++) {
        all &= !dr_wire_open(&seal, &f, len);
    }
    TAP_OK(all, "... nor cut short");
    all = true;
    for (size_t bit = 0; bit < sizeof(f) * 8; bit++) {
        unsigned char *byte = (unsigned char *) &f + bit / 8;
        *byte ^= (unsigned char) (1u << bit % 8);
        all &= !dr_wire_open(&seal, &f, sizeof(f)) || !dr_wire_payload_is_good(&seal, le32toh(f.prefix.payload_check), f.rest + 24, 16);
        *byte ^= (unsigned char) (1u << bit % 8);
    }
    TAP_OK(all, "... nor with any bit of it changed");
}

/* Short messages are written and read by code of their own: the same bytes, and what it does not know is left to the other. */
static void test_usual(opal_checksum_kind_t kind)
{
    enum { LEN = 13 };
    static const unsigned char header[DR_USUAL_HEADER] = {1, 2, 3}, data[LEN] = {9, 8, 7, 6};
    dr_seal_t seal = {kind, dr_wire_key(1, 2)}, other = {kind, dr_wire_key(2, 1)};
    const bool sums = kind != OPAL_CHECKSUM_NONE;
    unsigned char f[DR_USUAL_HEAD + LEN], g[sizeof(f)];
    uint32_t sum = dr_wire_write_usual(&seal, sums, f, 7, 5, header, data, LEN);
    memcpy(g + sizeof(dr_prefix_t), header, sizeof(header));
    memcpy(g + DR_USUAL_HEAD, data, LEN);
    dr_wire_write(&seal, (dr_prefix_t *) g, DR_DATA, 0, sizeof(header), 7, 5, dr_wire_payload_sum(&seal, data, LEN), sizeof(g));
    TAP_OK(!memcmp(f, g, sizeof(f)) && sum == dr_wire_payload_sum(&seal, data, LEN), "short: the same bytes, kind %d", kind);
    bool good = dr_wire_is_usual(&seal, sums, f, sizeof(f)), bad = false;
    for (size_t len = 0; len < sizeof(f) && sums; len++) {
        bad |= dr_wire_is_usual(&seal, sums, f, len);
    }
    bad |= sums && dr_wire_is_usual(&other, sums, f, sizeof(f));
    for (size_t bit = 0; bit < (sums ? sizeof(f) : sizeof(uint64_t)) * 8; bit++) {
        f[bit / 8] ^= (unsigned char) (1u << bit % 8);
        bad |= dr_wire_is_usual(&seal, sums, f, sizeof(f)) && (sums || bit != 40); /* DR_FLAG_ACK_NOW may be set */
        f[bit / 8] ^= (unsigned char) (1u << bit % 8);
    }
    dr_wire_write(&seal, (dr_prefix_t *) g, DR_DATA, DR_FLAG_ACK_NOW, sizeof(header), 7, 5, sum, sizeof(g));
    good &= dr_wire_is_usual(&seal, sums, g, sizeof(g));
    dr_wire_write(&seal, (dr_prefix_t *) g, DR_VOID, 0, sizeof(header), 7, 5, sum, sizeof(g));
    bad |= dr_wire_is_usual(&seal, sums, g, sizeof(g));
    TAP_OK(good && !bad, "... read if they are intact, and no others");
}

/* What goes past the stream is never taken for a part of it, nor the reverse. */
static void test_bare(opal_checksum_kind_t kind)
{
    dr_seal_t seal = {kind, dr_wire_key(1, 2)};
    unsigned char f[DR_USUAL_HEAD + 8] = {0}, g[sizeof(f)] = {0};
    dr_wire_write_bare(f, DR_USUAL_HEADER);
    const dr_prefix_t *prefix = (const void *) f;
    TAP_OK(prefix->header_len == DR_USUAL_HEADER && prefix->seq == 0 && prefix->ack == 0 && dr_wire_is_bare(f, sizeof(f)) &&
               !dr_wire_is_bare(f, sizeof(*prefix) - 1), "bare, kind %d: a prefix without numbers", kind);
    dr_wire_write(&seal, (dr_prefix_t *) g, DR_DATA, DR_FLAG_ACK_NOW, DR_USUAL_HEADER, 7, 5, 0, sizeof(g));
    TAP_OK(!dr_wire_open(&seal, f, sizeof(f)) && !dr_wire_is_usual(&seal, kind != OPAL_CHECKSUM_NONE, f, sizeof(f)) &&
               !dr_wire_is_bare(g, sizeof(g)), "... which the stream does not take, as bare takes none of the stream's");
}

static void test_ack_wire(void)
{
    dr_ack_t ack = {.delivered = (uint64_t) 5 << 32, .blocks = 2, .nacks = 1}, got;
    ack.received = ack.delivered + 10;
    ack.horizon = ack.delivered + 90;
    ack.repeat = 0x87654321;
    ack.block[0] = (dr_range_t){ack.delivered + 20, ack.delivered + 30};
    ack.block[1] = (dr_range_t){ack.delivered + 50, ack.delivered + 90};
    ack.block[2] = (dr_range_t){ack.delivered + 1, ack.delivered + 4};
    dr_wire_ack_t wire;
    size_t len = dr_wire_write_ack(&wire, &ack);
    TAP_OK(dr_wire_read_ack(&wire, len, &got) && got.delivered == ack.delivered && got.received == ack.received &&
               got.horizon == ack.horizon && got.repeat == ack.repeat && got.blocks == 2 && got.nacks == 1 && got.block[1].to == ack.block[1].to &&
               got.block[2].from == ack.block[2].from,
           "an acknowledgment is read as it was written");
    TAP_OK(!dr_wire_read_ack(&wire, len - 1, &got) && !dr_wire_read_ack(&wire, 3, &got), "... not when it is cut short");
    dr_wire_ack_t bad = wire;
    bad.block[1].from = htole32(25);
    TAP_OK(!dr_wire_read_ack(&bad, len, &got), "... not with blocks that overlap");
    bad = wire;
    bad.blocks = DR_ACK_BLOCKS + 1;
    TAP_OK(!dr_wire_read_ack(&bad, len, &got), "... not with more blocks than there is room for");
    TAP_OK(dr_wire_widen(0xfffffff0u, 0x500000010u) == 0x4fffffff0u && dr_wire_widen(5, 0x500000005u) == 0x500000005u,
           "the upper half of a number follows from what was sent");
}

/* ---- Wheel ---- */

static void test_wheel(void)
{
    enum { N = 1000 };
    static dr_timer_t timers[N];
    static uint64_t at[N];
    dr_wheel_t wheel;
    dr_wheel_init(&wheel, MS, 12345 * MS);
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < N; i++) {
        dr_timer_init(&timers[i]);
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        at[i] = 12345 * MS + state % (2000 * MS);
        dr_wheel_set(&wheel, &timers[i], at[i] / 2);
        dr_wheel_set(&wheel, &timers[i], at[i]);
    }
    dr_wheel_cancel(&wheel, &timers[7]);
    bool early = false, late = false;
    int fired = 0;
    uint64_t now = 12345 * MS;
    while (wheel.count > 0 && now < 20000 * MS) {
        uint64_t next = dr_wheel_next(&wheel);
        late |= next <= now;
        now = next;
        dr_wheel_advance(&wheel, now);
        dr_timer_t *t;
        while ((t = dr_wheel_pop(&wheel))) {
            early |= now < at[t - timers];
            late |= now > at[t - timers] + MS;
            fired++;
        }
    }
    TAP_OK(fired == N - 1 && !early && !late, "%d timers fired, each within a tick, the cancelled one did not", fired);
    TAP_OK(dr_wheel_next(&wheel) == 0, "then none is set");
    dr_wheel_set(&wheel, &timers[0], now + 1000 * MS);
    dr_wheel_advance(&wheel, now + 100000 * MS);
    TAP_OK(dr_wheel_pop(&wheel) == &timers[0] && !dr_wheel_pop(&wheel), "one is found after a long absence");
}

/* ---- The stream ---- */

/* Is what the stream counts what there is? */
static bool adds_up(const dr_stream_t *s, unsigned path)
{
    uint64_t kept = 0, flight_bytes = 0;
    uint32_t flight = 0, timed = 0;
    unsigned lost = 0;
    for (opal_list_item_t *i = opal_list_first(&s->unacked); i; i = opal_list_next(&s->unacked, i)) {
        const dr_record_t *r = OPAL_CONTAINER_OF(i, dr_record_t, item);
        bool flies = r->state == DR_FLIGHT && r->path == path;
        kept += r->cost;
        flight += flies;
        flight_bytes += flies ? r->span : 0;
        timed += r->state == DR_FLIGHT && r->sent > 0;
        lost += r->state == DR_LOST;
    }
    return s->kept == kept && s->timed == timed && s->paths[path].flight == flight &&
           s->paths[path].flight_bytes == flight_bytes && opal_list_length(&s->lost) == lost && s->acked <= s->next;
}

static void test_round_trips(void)
{
    dr_stream_t s;
    dr_record_t r[20];
    opal_list_t done = OPAL_LIST_INIT(done);
    make(&s, 1, false);
    uint64_t now = 1;
    for (int i = 0; i < 20; i++) {
        dr_stream_send(&s, &r[i], 0, 10, 100, now);
        now += 50000;
        dr_stream_take_cumulative(&s, s.next, now, &done);
    }
    uint64_t rto = dr_stream_rto(&s, &s.paths[0]);
    TAP_OK(s.paths[0].srtt > 45000 && s.paths[0].srtt < 55000 && rto >= 2 * MS && rto < 3 * MS,
           "round trips of 50 us: a retransmission time of the least that is allowed");
    dr_record_t late;
    dr_stream_send(&s, &late, 0, 10, 100, now);
    uint64_t last = now, gap = 0;
    bool doubles = true;
    for (int i = 0; i < 9; i++) {
        while (opal_list_is_empty(&s.lost)) {
            now += MS / 4;
            dr_stream_tick(&s, now);
        }
        doubles &= gap == 0 || (now - last >= gap * 3 / 2 && now - last <= gap * 3) || gap > 700 * MS;
        gap = now - last;
        last = now;
        dr_stream_resend(&s, &late, 0, now);
    }
    TAP_OK(doubles && gap <= 1200 * MS, "vain attempts come at doubling times, up to a limit");
    now += 40 * MS;
    dr_stream_take_cumulative(&s, s.next, now, &done);
    TAP_OK(s.paths[0].srtt < 55000, "a repeated fragment says nothing of round trips (Karn)");
    TAP_OK(s.kept == 0 && opal_list_length(&done) == 21, "all are done");
    dr_stream_fini(&s);
}

/* What was granted is entered before anybody looks, and what is acknowledged before leaves nothing behind. */
static void test_granted(void)
{
    dr_stream_t s;
    dr_record_t r[8], whole;
    opal_list_t done = OPAL_LIST_INIT(done);
    make(&s, 2, true);
    TAP_OK(!dr_stream_is_granted(&s, 0, 100, 10), "nothing is granted at first");
    dr_stream_grant(&s, 1);
    int sent = 0;
    for (; sent < 4 && dr_stream_is_granted(&s, 1, 100, 10); sent++) {
        dr_stream_send_granted(&s, &r[sent], 1, 10, 100);
    }
    bool other = dr_stream_is_granted(&s, 0, 100, 10), too_much = dr_stream_is_granted(&s, 1, params.window / 2, 10);
    dr_stream_take_cumulative(&s, 20, 0, &done);
    TAP_OK(sent == 4 && !other && !too_much && opal_list_length(&done) == 2 && s.kept == 0 && s.paths[1].flight == 0 &&
               s.paths[1].delivered, "to one path, up to half of the window; two are acknowledged");
    dr_stream_send(&s, &whole, 0, 10, 100, 1);
    TAP_OK(adds_up(&s, 1) && s.paths[1].flight == 2 && s.kept == 300 && !dr_stream_is_granted(&s, 1, 1, 1) &&
               OPAL_CONTAINER_OF(opal_list_first(&s.unacked), dr_record_t, item) == &r[2],
           "another fragment enters the rest before itself, and ends the grant");
    dr_stream_lose(&s, &r[3]);
    dr_stream_grant(&s, 1);
    TAP_OK(!dr_stream_is_granted(&s, 1, 1, 1), "nothing is granted while anything is lost");
    dr_stream_resend(&s, &r[3], 0, 1);
    dr_stream_grant(&s, 1);
    dr_stream_send_granted(&s, &r[4], 1, 10, 100);
    dr_stream_lose(&s, &r[4]);
    TAP_OK(adds_up(&s, 1) && s.kept == 400 && r[4].state == DR_LOST && !dr_stream_is_granted(&s, 1, 1, 1), "it may be lost");
    dr_stream_resend(&s, &r[4], 1, 1);
    dr_stream_grant(&s, 1);
    dr_stream_send_granted(&s, &r[5], 1, 10, 100);
    dr_stream_tick(&s, 5 * MS);
    TAP_OK(adds_up(&s, 1) && s.kept == 500 && s.paths[1].flight + s.paths[0].flight == 5, "timers run for it");
    dr_stream_take_cumulative(&s, s.next, 6 * MS, &done);
    TAP_OK(s.kept == 0 && s.timed == 0 && opal_list_length(&done) == 7 && adds_up(&s, 1), "all are done");
    dr_stream_fini(&s);
}

/* A record may get other memory at any time: under way, and lost. */
static void test_move(void)
{
    dr_stream_t s;
    dr_record_t r[4], moved[3];
    opal_list_t done = OPAL_LIST_INIT(done);
    make(&s, 1, true);
    for (int i = 0; i < 4; i++) {
        dr_stream_send(&s, &r[i], 0, 10, 100, 1);
    }
    for (int i = 0; i < 3; i++) {
        dr_stream_lose(&s, &r[i]);
    }
    dr_stream_resend(&s, &r[0], 0, 2);
    dr_stream_move(&r[0], &moved[0]);
    dr_stream_move(&r[1], &moved[1]);
    dr_stream_move(&r[2], &moved[2]);
    memset(r, 0xff, 3 * sizeof(r[0]));
    bool found = dr_stream_find(&s, 0) == &moved[0] && dr_stream_find(&s, 10) == &moved[1] && dr_stream_find(&s, 20) == &moved[2];
    TAP_OK(found && adds_up(&s, 0) && opal_list_length(&s.unacked) == 4 && dr_stream_first_lost(&s) == &moved[1],
           "records get other memory, and are found there in their order");
    dr_stream_resend(&s, &moved[1], 0, 2);
    dr_stream_take_cumulative(&s, s.next, 3, &done);
    TAP_OK(opal_list_length(&done) == 4 && opal_list_first(&done) == &moved[0].item && !dr_stream_first_lost(&s) && adds_up(&s, 0),
           "and acknowledged, the one that is still lost, too");
    dr_stream_fini(&s);
}

/* Of six fragments, of which nothing was heard before the timer sent the first one again. */
enum { LATE = 6, LATE_SPAN = 10, LATE_WINDOW = 1000000 };
typedef struct late {
    dr_stream_t from, to;
    dr_record_t r[LATE];
    opal_list_t done;
} late_t;

static void late_start(late_t *l, bool resend)
{
    opal_list_init(&l->done);
    make(&l->from, 1, false);
    make(&l->to, 1, false);
    for (int i = 0; i < LATE; i++) {
        dr_stream_send(&l->from, &l->r[i], 0, LATE_SPAN, 100, 1);
    }
    dr_stream_tick(&l->from, 2);
    dr_stream_tick(&l->from, 200 * MS);
    TAP_REQUIRE(dr_stream_first_lost(&l->from) == &l->r[0] && l->from.paths[0].cwnd == LATE_WINDOW / 2,
                "the first one is to go again, the window is smaller");
    if (resend) {
        dr_stream_resend(&l->from, &l->r[0], 0, 200 * MS);
    }
}

/* These come, and those from `repeat` to before `end` once more. */
static void late_come(late_t *l, int from, int to, int repeat, int end)
{
    bool again = true;
    for (int i = from; i < to; i++) {
        dr_stream_deliver(&l->to, l->r[i].seq, LATE_SPAN, true);
    }
    for (int i = repeat; i < end; i++) {
        again = again && dr_stream_judge(&l->to, l->r[i].seq, LATE_SPAN) == DR_REPEAT;
    }
    TAP_REQUIRE(again, "what came comes again");
}

/* Acknowledge all that has come. */
static void answer(dr_stream_t *from, dr_stream_t *to, uint64_t now, opal_list_t *done)
{
    dr_ack_t ack;
    dr_stream_fill_ack(to, &ack);
    dr_stream_ack_sent(to);
    dr_stream_take_ack(from, &ack, now, done);
}

static void late_answer(late_t *l)
{
    dr_ack_t ack;
    answer(&l->from, &l->to, 201 * MS, &l->done);
    dr_stream_fill_ack(&l->to, &ack);
    TAP_REQUIRE(ack.repeat == 0, "a repeat is told once");
}

static uint64_t late_end(late_t *l)
{
    uint64_t window = l->from.paths[0].cwnd;
    dr_stream_abandon(&l->from, &l->done);
    dr_stream_fini(&l->from);
    dr_stream_fini(&l->to);
    return window;
}

/* Who reads late has lost nothing: the window that the timer made smaller is as it was. Not if anything was lost. */
static void test_read_late(void)
{
    static late_t l;
    const uint64_t less = LATE_WINDOW * 3 / 4;
    late_start(&l, true);
    late_come(&l, 0, LATE, 0, 1);
    TAP_OK((uint32_t) dr_stream_ride(&l.to) == l.to.rx.next && l.to.need == DR_ACK_URGENT, "riding does not tell of a repeat");
    late_answer(&l);
    TAP_OK(!l.from.paths[0].spread && late_end(&l) == LATE_WINDOW, "what was read late, and came twice, has its window back");

    late_start(&l, false);
    late_come(&l, 0, LATE, 0, 0);
    late_answer(&l);
    TAP_OK(late_end(&l) == LATE_WINDOW, "... or came before it went twice");

    late_start(&l, true);
    late_come(&l, 0, LATE, 0, 0);
    late_answer(&l);
    TAP_OK(late_end(&l) < less, "... not if it was lost");

    late_start(&l, true);
    late_come(&l, 0, LATE, 1, 2);
    late_answer(&l);
    TAP_OK(late_end(&l) < less, "... and another one came twice");

    late_start(&l, true);
    late_come(&l, 2, LATE - 1, 0, 0); /* which were sent before the timer ran out */
    late_answer(&l);
    TAP_OK(dr_stream_first_lost(&l.from) == &l.r[1], "... one is seen to be lost");
    late_come(&l, 0, 1, 0, 1);
    late_answer(&l);
    TAP_OK(late_end(&l) < less, "... nor then");
}

/* All but the first of these come, and are acknowledged. */
static void pass(dr_stream_t *from, dr_stream_t *to, dr_record_t *r, int n, uint64_t now, opal_list_t *done)
{
    for (int i = 0; i < n; i++) {
        dr_stream_send(from, &r[i], 0, LATE_SPAN, 100, now);
    }
    for (int i = 1; i < n; i++) {
        dr_stream_deliver(to, r[i].seq, LATE_SPAN, true);
    }
    answer(from, to, now + MS, done);
}

/* Where fragments go ways of different length, what others passed is not lost for that; until a timer has to find what is. */
static void test_passed(void)
{
    enum { MANY = 40 };
    static dr_record_t r[DR_PASSED_BY + 1], more[MANY], single[4];
    dr_stream_t from, to;
    opal_list_t done = OPAL_LIST_INIT(done);
    make(&from, 1, false);
    make(&to, 1, false);
    pass(&from, &to, r, DR_PASSED_BY + 1, 1, &done);
    TAP_OK(dr_stream_first_lost(&from) == r && from.paths[0].cwnd < LATE_WINDOW * 3 / 4, "what %d passed is lost", DR_PASSED_BY);
    dr_stream_resend(&from, r, 0, 2 * MS);
    dr_stream_deliver(&to, r->seq, LATE_SPAN, true);
    TAP_REQUIRE(dr_stream_judge(&to, r->seq, LATE_SPAN) == DR_REPEAT, "it comes, and its repeat");
    answer(&from, &to, 4 * MS, &done);
    TAP_OK(from.paths[0].cwnd == LATE_WINDOW && opal_list_is_empty(&from.unacked), "which makes no window smaller");

    pass(&from, &to, more, MANY, 5 * MS, &done);
    TAP_OK(!dr_stream_first_lost(&from), "... and %d that pass say nothing the next time", MANY - 1);
    int round = 0;
    for (; round < 4 && !dr_stream_first_lost(&from); round++) {
        dr_stream_send(&from, &single[round], 0, LATE_SPAN, 100, 10 * MS);
        dr_stream_deliver(&to, single[round].seq, LATE_SPAN, true);
        answer(&from, &to, 11 * MS, &done);
    }
    TAP_OK(round >= 1 && round <= 3 && dr_stream_first_lost(&from) == more, "... but round trips: %d", round);
    dr_stream_resend(&from, more, 0, 20 * MS);
    dr_stream_tick(&from, 21 * MS);
    dr_stream_tick(&from, 1000 * MS);
    TAP_OK(!from.paths[0].spread, "... until a timer runs out");
    dr_stream_abandon(&from, &done);
    dr_stream_fini(&from);
    dr_stream_fini(&to);
}

/* What is told after one that went later says nothing of round trips: acknowledgments have not room for all that has come. */
static void test_told_late(void)
{
    dr_stream_t s;
    dr_record_t r[2];
    opal_list_t done = OPAL_LIST_INIT(done);
    make(&s, 1, false);
    dr_stream_send(&s, &r[0], 0, 10, 100, 1);
    dr_stream_send(&s, &r[1], 0, 10, 100, 1);
    dr_ack_t ack = {.horizon = 20, .blocks = 1, .block = {{10, 20}}};
    dr_stream_take_ack(&s, &ack, 1 + MS, &done);
    TAP_OK(s.paths[0].srtt == MS, "a round trip is known");
    dr_stream_take_cumulative(&s, 20, 400 * MS, &done);
    TAP_OK(s.paths[0].srtt == MS && opal_list_length(&done) == 2, "... what is told later than what followed it changes nothing");
    dr_stream_fini(&s);
}

/* One of two is lost, and so is the answer to the other: the news of both comes with the repeat, long after. */
static void test_stale_round_trip(void)
{
    dr_stream_t s;
    dr_record_t r[3];
    opal_list_t done = OPAL_LIST_INIT(done);
    make(&s, 1, false);
    uint64_t now = 1;
    dr_stream_send(&s, &r[0], 0, 10, 100, now);
    now += MS;
    dr_stream_take_cumulative(&s, s.next, now, &done);
    dr_stream_send(&s, &r[1], 0, 10, 100, now);
    dr_stream_send(&s, &r[2], 0, 10, 100, now);
    while (opal_list_is_empty(&s.lost)) {
        now += MS;
        dr_stream_tick(&s, now);
    }
    dr_stream_resend(&s, &r[1], 0, now);
    uint64_t rto = dr_stream_rto(&s, &s.paths[0]);
    dr_stream_take_cumulative(&s, s.next, now + MS, &done);
    TAP_OK(s.paths[0].srtt == MS && dr_stream_rto(&s, &s.paths[0]) < rto,
           "an answer that came with that to a repeat says nothing of round trips");
    dr_stream_fini(&s);
}

/* A receiver that computes: the sender's timers must not flood it. */
static void test_busy_receiver(void)
{
    dr_stream_t s;
    static dr_record_t r[64];
    opal_list_t done = OPAL_LIST_INIT(done);
    make(&s, 1, false);
    uint64_t now = 1, sent = 0;
    for (int i = 0; i < 64; i++) {
        dr_stream_send(&s, &r[i], 0, 10, 100, now);
    }
    for (; now < 60000 * MS; now += MS) {
        dr_stream_tick(&s, now);
        dr_record_t *lost;
        while ((lost = dr_stream_first_lost(&s))) {
            dr_stream_resend(&s, lost, 0, now);
            sent++;
        }
    }
    TAP_OK(sent > 10 && sent < 80, "64 fragments for a process that is away for a minute: %d repeats, not thousands",
           (int) sent);
    TAP_OK(s.paths[0].state == DR_PATH_SUSPECT, "... and its only link is not given up");
    dr_stream_take_cumulative(&s, s.next, now, &done);
    dr_record_t again;
    dr_stream_send(&s, &again, 0, 10, 100, now);
    dr_stream_take_cumulative(&s, s.next, now + MS, &done);
    TAP_OK(s.paths[0].state == DR_PATH_UP && s.paths[0].vain == 0, "... it is back at the first answer");
    dr_stream_fini(&s);
}

static void test_silence(void)
{
    dr_stream_t s;
    dr_record_t r;
    opal_list_t done = OPAL_LIST_INIT(done);
    make(&s, 1, true);
    uint64_t now = 1;
    for (; now < 200000 * MS; now += 1000 * MS) {
        dr_stream_tick(&s, now);
    }
    TAP_OK(!s.dead, "who owes nothing may be silent for ever");
    dr_stream_send(&s, &r, 0, 10, 100, 0);
    dr_stream_tick(&s, now + MS);
    dr_stream_take_cumulative(&s, s.next, now + 2 * MS, &done);
    dr_stream_tick(&s, now + 3 * MS);
    now += 200000 * MS; /* nobody ticks meanwhile */
    dr_stream_send(&s, &r, 0, 10, 100, 0);
    dr_stream_tick(&s, now);
    TAP_OK(!s.dead, "... that time does not count when something is sent again");
    uint64_t start = now;
    while (!s.dead && now < start + 200000 * MS) {
        now += 100 * MS;
        dr_stream_tick(&s, now);
    }
    TAP_OK(now - start >= 59000 * MS && now - start < 62000 * MS, "who owes an answer is given up in the set time");
    dr_stream_abandon(&s, &done);
    dr_stream_fini(&s);
}

/* A slow link has many fragments under way, and a fast one delivers those between: acknowledgments have not room for all, and
 * yet what the fast link brought is acknowledged at once, or, where one was lost, soon. */
static void test_many_gaps(bool lossy)
{
    enum { PAIRS = 200, SPAN = 10 };
    static dr_record_t r[2 * PAIRS];
    opal_list_t done = OPAL_LIST_INIT(done);
    dr_stream_t from, to;
    dr_wire_ack_t wire;
    dr_ack_t ack;
    bool at_once = true, truth = true;
    int later = 0;
    make(&from, 2, true);
    make(&to, 2, true);
    params.window = 1 << 20;
    for (unsigned i = 0; i < 2 * PAIRS; i++) {
        dr_stream_send(&from, &r[i], i % 2, SPAN, 1, 1 + i);
    }
    for (unsigned i = 1; i < 2 * PAIRS || (from.paths[1].flight > 0 && later < PAIRS); i += 2) {
        if (i < 2 * PAIRS) {
            dr_stream_deliver(&to, r[i].seq, SPAN, true);
        } else {
            later++;
        }
        dr_stream_fill_ack(&to, &ack);
        dr_stream_ack_sent(&to);
        truth = truth && ack.horizon <= r[2 * DR_ACK_BLOCKS].seq;
        if (lossy && i < 2 * PAIRS) {
            continue;
        }
        truth = truth && dr_wire_read_ack(&wire, dr_wire_write_ack(&wire, &ack), &ack);
        dr_stream_take_ack(&from, &ack, 1000 + i, &done);
        at_once = at_once && (from.paths[1].flight == PAIRS - (i + 1) / 2 || i >= 2 * PAIRS);
    }
    TAP_OK(truth && from.paths[0].flight == PAIRS, "many gaps: nothing is said of what has not come");
    if (lossy) {
        TAP_OK(from.paths[1].flight == 0 && later < PAIRS, "... what lost acknowledgments told is told again, by %d more", later);
    } else {
        TAP_OK(at_once, "... what comes above them is acknowledged at once");
    }
    dr_stream_abandon(&from, &done);
    dr_stream_fini(&from);
    dr_stream_fini(&to);
}

static void test_paths(void)
{
    dr_stream_t s;
    static dr_record_t r[4000];
    opal_list_t done = OPAL_LIST_INIT(done);
    make(&s, 2, false);
    params.window = 1 << 20;
    uint64_t now = 1;
    int n = 0;
    dr_ack_t ack = {0};
    for (; s.paths[0].state != DR_PATH_DOWN && n < 3990; now += MS) { /* link 1 answers, link 0 never does */
        for (unsigned p = 0; p < 2; p++, n++) {
            dr_stream_send(&s, &r[n], p, 10, 10, now);
        }
        ack = (dr_ack_t){.horizon = s.next, .blocks = 1, .block = {{s.next - 10, s.next}}};
        dr_stream_take_ack(&s, &ack, now + MS / 2, &done);
        dr_stream_tick(&s, now + MS / 2);
        dr_record_t *lost;
        while (s.paths[0].state != DR_PATH_DOWN && (lost = dr_stream_first_lost(&s))) {
            dr_stream_resend(&s, lost, 0, now);
        }
    }
    TAP_OK(s.paths[0].state == DR_PATH_DOWN && s.paths[1].state == DR_PATH_UP, "a link that swallows everything while "
           "another works is taken out, after %d ms", (int) (now / MS));
    TAP_OK(s.paths[0].flight == 0 && !opal_list_is_empty(&s.lost), "... what it had is to be sent again");
    int probes = 0;
    uint64_t start = now, last = now, longest = 0;
    for (; now < start + 10000 * MS; now += MS) {
        dr_stream_tick(&s, now);
        if (s.paths[0].probe_due) {
            s.paths[0].probe_due = false;
            probes++;
            longest = now - last > longest ? now - last : longest;
            last = now;
        }
    }
    TAP_OK(probes > 80 && probes < 150 && longest <= 120 * MS, "... it is probed, ever more rarely (%d times in 10 s)",
           probes);
    dr_stream_echoed(&s, 0, start - 2 * MS, now);
    TAP_OK(s.paths[0].state == DR_PATH_DOWN, "... a probe that went before that proves nothing");
    dr_stream_echoed(&s, 0, now - 50000, now);
    TAP_OK(s.paths[0].state == DR_PATH_UP, "... and back when a probe is echoed");
    dr_stream_abandon(&s, &done);
    dr_stream_fini(&s);
}

/* What comes very late says nothing of how long it takes, nor of what the path is now. */
static void test_late(void)
{
    dr_stream_t s;
    dr_record_t r[20];
    opal_list_t done = OPAL_LIST_INIT(done);
    uint64_t now = 1;
    make(&s, 1, false);
    for (int n = 0; n < 8; n++, now += MS) { /* 1 ms each */
        dr_stream_send(&s, &r[n], 0, 10, 10, now);
        dr_stream_take_cumulative(&s, s.next, now + MS, &done);
        dr_stream_tick(&s, now + MS);
    }
    dr_path_t *p = &s.paths[0];
    uint64_t rto = dr_stream_rto(&s, p), srtt = p->srtt;
    TAP_OK(rto < 10 * MS, "a path of 1 ms: %d ms are waited", (int) (rto / MS));
    dr_stream_send(&s, &r[8], 0, 10, 10, now); /* we compute for 3 s, and find the acknowledgment then */
    now += 3000 * MS;
    dr_stream_away(&s);
    dr_stream_take_cumulative(&s, s.next, now, &done);
    TAP_OK(p->srtt == srtt && dr_stream_rto(&s, p) == rto, "... no longer when we have been away");
    dr_stream_send(&s, &r[9], 0, 10, 10, now);
    uint64_t asked = 0, end = now + 2000 * MS;
    for (; now < end; now += MS) { /* the peer is away */
        dr_record_t *lost;
        dr_stream_tick(&s, now);
        asked = asked == 0 && p->probe_due ? now : asked;
        p->probe_due = false;
        while ((lost = dr_stream_first_lost(&s))) {
            dr_stream_resend(&s, lost, 0, now);
        }
    }
    TAP_OK(p->state == DR_PATH_SUSPECT && asked > 0, "... the peer is away: the path is suspect, and probed");
    dr_stream_echoed(&s, 0, asked, now);
    TAP_OK(p->state == DR_PATH_UP && p->srtt == srtt && dr_stream_rto(&s, p) == rto,
           "... an echo two seconds later proves the path, and measures nothing");
    p->vain = 1;
    p->since = 77;
    dr_stream_echoed(&s, 0, asked, now);
    TAP_OK(p->vain == 1 && p->since == 77, "... its repeat does not even that");
    dr_stream_take_cumulative(&s, s.next, now, &done);
    dr_stream_tick(&s, now);
    dr_stream_rest(&s);
    TAP_OK(!s.paths && opal_list_length(&done) == 10, "all is acknowledged, and at rest");
    dr_stream_echoed(&s, 0, asked, now);
    dr_ack_t late = {.delivered = 40, .horizon = 60, .blocks = 1, .nacks = 1, .block = {{50, 60}, {40, 50}}};
    dr_stream_take_ack(&s, &late, now, &done);
    TAP_OK(!s.paths && opal_list_length(&done) == 10 && opal_list_is_empty(&s.lost) && s.acked == 100 && s.kept == 0,
           "... acknowledgments of long ago wake nothing");
    dr_stream_fini(&s);
}

enum { SHORTS_ANSWER = 6 * 1000000 }; /* ns */

/* A short message now and then over paths that are up, by turns; from `from` to `to` what goes over path 0 is swallowed, and
 * from `away` to `back` the peer is not there to answer anything. Lost ones go over path 1, and 20 ms after it is back the
 * peer answers probes. Until path 0 is down, or ms `end`; returns when, in ms. */
static unsigned shorts(unsigned swallowed_at, unsigned away, unsigned back, unsigned end)
{
    enum { EVERY = 2, LATER = 20, RECORDS = 8000 };
    static dr_record_t r[RECORDS];
    dr_stream_t s;
    opal_list_t done = OPAL_LIST_INIT(done);
    unsigned ms = 1, n = 0;
    make(&s, 2, false);
    params.window = 1 << 20;
    params.down_after = 3;
    for (; ms < end && s.paths[0].state != DR_PATH_DOWN; ms++) {
        uint64_t now = ms * MS;
        bool is_away = ms >= away && ms < back;
        if (ms % EVERY == 0 && n < RECORDS && !is_away) {
            unsigned path = s.paths[0].state == DR_PATH_UP ? n % 2 : 1;
            dr_stream_send(&s, &r[n++], path, 10, 10, now);
        }
        dr_record_t *lost;
        while ((lost = dr_stream_first_lost(&s))) {
            dr_stream_resend(&s, lost, 1, now);
        }
        dr_ack_t ack = {.delivered = s.acked};
        opal_list_item_t *i, *tmp;
        OPAL_LIST_FOREACH (i, tmp, &s.unacked) { /* what is there after 6 ms, without a gap */
            dr_record_t *record = OPAL_CONTAINER_OF(i, dr_record_t, item);
            if (now - record->sent < SHORTS_ANSWER || (record->path == 0 && ms >= swallowed_at)) {
                break;
            }
            ack.delivered = record->seq + record->span;
        }
        ack.horizon = ack.delivered;
        if (!is_away && ack.delivered > s.acked) {
            dr_stream_take_ack(&s, &ack, now, &done);
        }
        dr_stream_tick(&s, now);
        s.paths[0].probe_due = false;
        if (ms == back + LATER) {
            dr_stream_echoed(&s, 0, now - MS, now);
        }
    }
    dr_stream_abandon(&s, &done);
    dr_stream_fini(&s);
    return ms;
}

static void test_shorts(void)
{
    unsigned at = shorts(100, UINT32_MAX, UINT32_MAX, 15000);
    TAP_OK(at > 130 && at < 5000, "a link that swallows short messages, which all go another way then, is taken out after %u ms", at);
    at = shorts(UINT32_MAX, 100, 10000, 14000);
    TAP_OK(at == 14000, "... none is while the peer is away, nor when it comes back (%u ms)", at);
}

/* What the receiver may be told by anybody. */
static void test_receiver_limits(void)
{
    dr_stream_t s;
    make(&s, 1, false);
    TAP_OK(dr_stream_judge(&s, (uint64_t) DR_REACH + 5, 10) == DR_BEYOND, "too far ahead");
    TAP_OK(dr_stream_judge(&s, UINT64_MAX - 3, 10) == DR_BEYOND, "a range over the end of all numbers");
    TAP_OK(dr_stream_judge(&s, 100, 0) == DR_BEYOND, "an empty range");
    uint64_t seq = 10;
    int taken = 0;
    while (taken < 100000 && dr_stream_judge(&s, seq, 5) == DR_NEW && dr_stream_deliver(&s, seq, 5, false)) {
        seq += 10;
        taken++;
    }
    TAP_OK(taken == DR_GAPS_MAX, "no more than %d gaps are noted", taken);
    TAP_OK(dr_stream_judge(&s, 15, 5) == DR_NEW && dr_stream_judge(&s, 10, 5) == DR_REPEAT, "... what closes one still is");
    dr_stream_damaged(&s, 0, 10);
    dr_ack_t ack;
    dr_stream_fill_ack(&s, &ack);
    TAP_OK(ack.delivered == 0 && ack.blocks == DR_ACK_BLOCKS && ack.nacks == 1 && ack.block[ack.blocks].to == 10,
           "an acknowledgment tells the lowest of them, and what came damaged");
    dr_stream_fini(&s);
}

static void test_hold(void)
{
    dr_stream_t s;
    make(&s, 1, false);
    TAP_OK(dr_stream_judge(&s, 0, 100) == DR_NEW && dr_stream_hold(&s, 0, 100), "a fragment is being put in place");
    TAP_OK(dr_stream_judge(&s, 0, 100) == DR_BUSY, "... meanwhile its repeat is not, a damaged one could overwrite it");
    dr_ack_t ack;
    dr_stream_fill_ack(&s, &ack);
    TAP_OK(ack.delivered == 0 && ack.received == 100, "... it is received, not delivered");
    dr_stream_unhold(&s, 0, 100);
    TAP_OK(dr_stream_judge(&s, 0, 100) == DR_NEW, "... after that it is");
    dr_stream_fini(&s);
}

/* A damaged fragment is sent again at once, before any timer, on a reliable link too; its peers are not. */
static void test_nack(void)
{
    dr_stream_t s;
    dr_record_t r[3];
    opal_list_t done = OPAL_LIST_INIT(done);
    make(&s, 1, true);
    for (int i = 0; i < 3; i++) {
        dr_stream_send(&s, &r[i], 0, 10, 100, 0);
    }
    dr_ack_t ack = {.delivered = 10, .received = 20, .horizon = 30, .blocks = 1, .nacks = 1,
                    .block = {{20, 30}, {10, 20}}};
    dr_stream_take_ack(&s, &ack, 0, &done);
    TAP_OK(dr_stream_first_lost(&s) == &r[1] && opal_list_length(&s.lost) == 1 && opal_list_length(&done) == 2,
           "a damaged fragment alone goes again");
    dr_stream_abandon(&s, &done);
    dr_stream_fini(&s);
}

/* The last fragment comes damaged: that is said at once; it is not received, and its repeat is none. */
static void test_damaged(void)
{
    dr_stream_t s;
    dr_ack_t ack;
    make(&s, 1, false);
    TAP_REQUIRE(dr_stream_judge(&s, 0, 10) == DR_NEW && dr_stream_deliver(&s, 0, 10, false), "a good fragment");
    TAP_REQUIRE(dr_stream_judge(&s, 10, 10) == DR_NEW, "the next one");
    dr_stream_damaged(&s, 10, 10);
    dr_stream_fill_ack(&s, &ack);
    TAP_OK(s.need == DR_ACK_URGENT && ack.nacks == 1 && ack.block[ack.blocks].from == 10, "... damaged: told at once");
    TAP_OK(ack.delivered == 10 && ack.received == 10 && ack.blocks == 0, "... it counts as nothing");
    TAP_OK((uint32_t) dr_stream_ride(&s) == 10 && s.need == DR_ACK_URGENT, "... and riding does not tell enough");
    dr_stream_ack_sent(&s);
    TAP_OK(dr_stream_judge(&s, 10, 10) == DR_NEW && dr_stream_deliver(&s, 10, 10, false) && s.rx.next == 20,
           "... its repeat is taken");
    TAP_OK(dr_stream_judge(&s, 10, 10) == DR_REPEAT, "... once");
    dr_stream_fini(&s);
}

/* What went often retires like what went once, and an old acknowledgment does nothing. */
static void test_retries(void)
{
    dr_stream_t s;
    dr_record_t r[2];
    opal_list_t done = OPAL_LIST_INIT(done);
    make(&s, 1, false);
    bool good = true;
    for (int i = 0; i < 2; i++) {
        dr_stream_send(&s, &r[i], 0, 10, 100, 1);
    }
    for (uint64_t i = 0; i < 5; i++) {
        dr_stream_lose(&s, &r[0]);
        dr_stream_lose(&s, &r[0]);
        good &= adds_up(&s, 0);
        dr_stream_resend(&s, &r[0], 0, 2 + i);
        good &= adds_up(&s, 0);
    }
    dr_stream_lose(&s, &r[1]);
    dr_stream_take_cumulative(&s, 20, 10, &done); /* one in flight, one lost: it had arrived after all */
    dr_stream_take_cumulative(&s, 10, 11, &done);
    TAP_OK(good && adds_up(&s, 0) && s.kept == 0 && opal_list_length(&done) == 2, "repeats retire once");
    dr_stream_fini(&s);
}

/* Numbers of transmissions are 32 bits, and what is compared with them may be of any time. */
static void test_many_transmissions(void)
{
    static dr_record_t r[DR_PASSED_BY + 1];
    dr_stream_t from, to;
    opal_list_t done = OPAL_LIST_INIT(done);
    uint64_t now = 1;
    make(&from, 1, false);
    make(&to, 1, false);
    for (int i = 0; i < 5; i++) { /* 2^31 and more of them, without a loss */
        from.paths[0].number += 1u << 29;
        from.paths[0].passed = from.paths[0].number;
        now += MS;
        dr_stream_tick(&from, now);
    }
    pass(&from, &to, r, DR_PASSED_BY + 1, now, &done);
    TAP_OK(from.paths[0].srtt == MS, "after very many transmissions round trips are measured on");
    TAP_OK(dr_stream_first_lost(&from) == r && from.paths[0].cwnd < LATE_WINDOW * 3 / 4, "... and a loss makes the window smaller");
    dr_stream_abandon(&from, &done);
    dr_stream_fini(&from);
    dr_stream_fini(&to);
}

/* ---- Acknowledgments that ride, and are held by a link ---- */

/* Two ends: `a` sends pieces so long that a few of them are 4 GiB, `b` short fragments. */
enum { STUCK_PIECES = 20, STUCK_ONE = 1 << 28, STUCK_OLD = 15, STUCK_SPAN = 10, STUCK_FRAGS = 8 };
typedef struct stuck {
    dr_stream_t a, b;
    dr_record_t pieces[STUCK_PIECES], frags[STUCK_FRAGS];
    int sent, come, said;
    opal_list_t done;
} stuck_t;

/* A fragment of b's, and what rides on it. */
typedef struct rider {
    uint64_t seq;
    uint32_t ack;
} rider_t;

static void stuck_start(stuck_t *t)
{
    *t = (stuck_t){0};
    opal_list_init(&t->done);
    make(&t->a, 1, true);
    make(&t->b, 1, true);
}

static void stuck_end(stuck_t *t)
{
    dr_stream_abandon(&t->a, &t->done);
    dr_stream_abandon(&t->b, &t->done);
    dr_stream_fini(&t->a);
    dr_stream_fini(&t->b);
}

static void stuck_pieces(stuck_t *t, int count)
{
    for (int i = 0; i < count; i++) {
        dr_stream_send(&t->a, &t->pieces[t->sent++], 0, STUCK_ONE, 10, 0);
    }
}

static void stuck_come(stuck_t *t)
{
    const dr_record_t *piece = &t->pieces[t->come++];
    bool taken = dr_stream_judge(&t->b, piece->seq, STUCK_ONE) == DR_NEW && dr_stream_deliver(&t->b, piece->seq, STUCK_ONE, true);
    TAP_REQUIRE(taken, "a piece comes");
}

static rider_t stuck_say(stuck_t *t)
{
    dr_record_t *r = &t->frags[t->said++];
    dr_stream_send(&t->b, r, 0, STUCK_SPAN, 10, 0);
    return (rider_t){r->seq, dr_stream_ride(&t->b)};
}

/* A fragment of b's comes; as in pml_dr_receive.h. */
static dr_verdict_t stuck_hear(stuck_t *t, rider_t f, bool again)
{
    dr_verdict_t verdict = dr_stream_judge(&t->a, f.seq, STUCK_SPAN);
    if (verdict == DR_NEW && !again && dr_stream_tells(&t->a, f.seq)) {
        dr_stream_told(&t->a, f.seq);
        dr_stream_take_prefix(&t->a, f.ack, 0, &t->done);
    }
    TAP_REQUIRE(verdict != DR_NEW || dr_stream_deliver(&t->a, f.seq, STUCK_SPAN, false), "a fragment comes");
    return verdict;
}

/* Nearly 4 GiB come, and are acknowledged: each piece for itself, or three by what rides on a fragment. Two more are under way then, the
 * first of which what is 4 GiB old seems to acknowledge. */
static void stuck_flow(stuck_t *t, bool rides)
{
    for (int i = 1; i <= STUCK_OLD; i++) {
        stuck_pieces(t, 1);
        stuck_come(t);
        if (!rides) {
            dr_stream_told(&t->a, t->b.next);
            answer(&t->a, &t->b, 0, &t->done);
        } else if (i % 3 == 0) {
            stuck_hear(t, stuck_say(t), false);
        }
    }
    stuck_pieces(t, 2);
    TAP_REQUIRE(t->a.acked == (uint64_t) STUCK_OLD * STUCK_ONE && dr_wire_widen(0, t->a.next) > t->a.acked, "0 is old, and looks new");
}

static bool stuck_is_right(const stuck_t *t)
{
    return t->a.acked == (uint64_t) STUCK_OLD * STUCK_ONE && t->b.rx.next == t->a.acked;
}

static void test_stuck(void)
{
    static stuck_t t;
    stuck_start(&t);
    rider_t held = stuck_say(&t);
    stuck_flow(&t, false);
    TAP_OK(stuck_hear(&t, held, false) == DR_NEW && stuck_is_right(&t), "what rode on a fragment does not count after an acknowledgment "
           "that went later");
    stuck_come(&t);
    stuck_hear(&t, stuck_say(&t), false);
    TAP_OK(t.a.acked == t.b.rx.next && !stuck_is_right(&t), "... what rides on the next one does");
    stuck_end(&t);

    stuck_start(&t);
    held = stuck_say(&t);
    stuck_flow(&t, true);
    TAP_OK(stuck_hear(&t, held, false) == DR_NEW && stuck_is_right(&t), "... nor after what rode on later ones");
    stuck_end(&t);

    stuck_start(&t);
    held = stuck_say(&t);
    stuck_hear(&t, held, true); /* it has gone again, another way */
    stuck_flow(&t, false);
    TAP_OK(stuck_hear(&t, held, false) == DR_REPEAT && stuck_is_right(&t), "... nor on a repeat");
    stuck_end(&t);
}

/* Where the other end was when it sent what counts, is compared as 32 bits; and nobody need believe it. */
static void test_told(void)
{
    dr_stream_t s;
    make(&s, 1, true);
    dr_stream_told(&s, (uint64_t) DR_REACH + 1);
    TAP_OK(!s.told_ahead && dr_stream_tells(&s, 0), "an acknowledgment from farther ahead than anything goes is none that counts");
    dr_stream_told(&s, 7);
    dr_stream_told(&s, 5);
    bool right = !dr_stream_tells(&s, 6) && dr_stream_tells(&s, 7);
    for (uint64_t seq = 0; seq < (uint64_t) 9 << 30 && right; seq += STUCK_ONE) {
        right = dr_stream_judge(&s, seq, STUCK_ONE) == DR_NEW && dr_stream_tells(&s, seq) == (seq > 0) &&
                dr_stream_deliver(&s, seq, STUCK_ONE, false);
    }
    TAP_OK(right && !s.told_ahead, "... one from near tells of what was sent before it, and of nothing after");
    dr_stream_fini(&s);
}

/* What rode on a fragment that is lost is told anew; once. */
static void test_told_again(void)
{
    static stuck_t t;
    stuck_start(&t);
    stuck_say(&t);
    dr_stream_lose(&t.b, &t.frags[0]);
    dr_stream_resend(&t.b, &t.frags[0], 0, 0);
    TAP_OK(t.b.need == DR_ACK_NONE, "who has received nothing has nothing to tell again");
    stuck_pieces(&t, 1);
    stuck_come(&t);
    stuck_say(&t);
    TAP_REQUIRE(t.b.need == DR_ACK_NONE, "it rides");
    dr_stream_lose(&t.b, &t.frags[1]);
    dr_stream_resend(&t.b, &t.frags[1], 0, 0);
    TAP_OK(t.b.need == DR_ACK_LATER, "what rode on a fragment that is sent again is told soon");
    dr_stream_ack_sent(&t.b);
    dr_stream_lose(&t.b, &t.frags[1]);
    dr_stream_resend(&t.b, &t.frags[1], 0, 0);
    TAP_OK(t.b.need == DR_ACK_NONE, "... once: on its repeats nothing rides");
    stuck_end(&t);
}

static uint64_t draw_state = 1;

static uint32_t below(uint32_t n)
{
    draw_state ^= draw_state << 13;
    draw_state ^= draw_state >> 7;
    draw_state ^= draw_state << 17;
    return (uint32_t) (draw_state >> 11) % n;
}

/* One whose sums are right and whose contents are anything, near what makes sense. */
static void take_strange_ack(dr_stream_t *s, uint64_t now, opal_list_t *done)
{
    dr_ack_t ack = {.blocks = below(DR_ACK_BLOCKS + 1), .nacks = below(DR_ACK_NACKS + 1)}, got;
    dr_wire_ack_t wire;
    uint64_t at = ack.delivered = s->acked + below(8) * 5 - (s->acked >= 20 ? 20 : 0);
    ack.received = ack.delivered + below(50);
    ack.horizon = ack.delivered + below(200);
    for (unsigned i = 0; i < ack.blocks + ack.nacks; i++) {
        at += below(i == ack.blocks ? 5 : 3) * 5;
        ack.block[i].from = at;
        at += below(40) ? 5 * (1 + below(3)) : 0;
        ack.block[i].to = at;
    }
    size_t len = dr_wire_write_ack(&wire, &ack);
    unsigned char *bytes = (unsigned char *) &wire;
    if (below(4) == 0) {
        bytes[below((uint32_t) len)] = (unsigned char) below(256);
    }
    if (dr_wire_read_ack(&wire, len, &got)) {
        dr_stream_take_ack(s, &got, now, done);
    }
}

static void test_strange_acks(void)
{
    enum { ROUNDS = 100000, MOST = 64 };
    dr_stream_t s;
    dr_record_t records[MOST], *lost;
    opal_list_t done = OPAL_LIST_INIT(done), free_ones = OPAL_LIST_INIT(free_ones);
    make(&s, 1, false);
    for (int i = 0; i < MOST; i++) {
        opal_list_item_init(&records[i].item);
        opal_list_append(&free_ones, &records[i].item);
    }
    bool good = true;
    unsigned over = 0;
    uint64_t now = 1;
    for (int i = 0; i < ROUNDS && good; i++, now += MS / 4) {
        opal_list_item_t *item = below(2) ? opal_list_pop(&free_ones) : NULL;
        if (item) {
            dr_stream_send(&s, OPAL_CONTAINER_OF(item, dr_record_t, item), 0, 5 * (1 + below(3)), 1 + below(100), now);
        }
        if (below(8) == 0) {
            take_strange_ack(&s, now, &done);
        }
        dr_stream_tick(&s, now);
        while ((lost = dr_stream_first_lost(&s))) {
            dr_stream_resend(&s, lost, 0, now);
        }
        while ((item = opal_list_pop(&done))) {
            opal_list_append(&free_ones, item);
            over++;
        }
        good = adds_up(&s, 0);
    }
    TAP_OK(good && over > ROUNDS / 50, "acknowledgments that say anything upset no count (%u records)", over);
    dr_stream_abandon(&s, &done);
    dr_stream_fini(&s);
}

/* A fragment to the peer, and two from it of which the first comes damaged: all that memory is needed for. False: it was
 * given back too early. */
static bool talk(dr_stream_t *s)
{
    dr_record_t r;
    opal_list_t done = OPAL_LIST_INIT(done);
    dr_stream_send(s, &r, 1, 10, 100, 1000);
    dr_stream_rest(s);
    bool kept = s->paths != NULL; /* something is under way */
    dr_stream_take_cumulative(s, 10, 6000, &done);
    kept &= dr_stream_deliver(s, 10, 10, true) && dr_stream_hold(s, 0, 5);
    dr_stream_unhold(s, 0, 5);
    dr_stream_damaged(s, 0, 10);
    dr_stream_ack_sent(s);
    dr_stream_rest(s);
    kept &= s->paths && s->rx.count == 1; /* there is a gap */
    kept &= dr_stream_deliver(s, 0, 10, false);
    dr_stream_rest(s);
    kept &= s->paths != NULL; /* an acknowledgment is owed */
    dr_stream_ack_sent(s);
    return kept;
}

/* A peer with which nothing happens costs what its stream is, whatever happened before; and goes on where it was. */
static void test_rest(void)
{
    enum { PEERS = 100 };
    static dr_stream_t s[PEERS];
    size_t before = mallinfo2().uordblks;
    bool kept = true;
    for (int i = 0; i < PEERS; i++) {
        make(&s[i], 2, false);
        kept &= talk(&s[i]);
        dr_stream_rest(&s[i]);
    }
    size_t each = (mallinfo2().uordblks - before) / PEERS + sizeof(dr_stream_t);
    TAP_OK(kept, "what is still needed is not given back");
    TAP_OK(each < sizeof(dr_stream_t) + 24, "a peer at rest takes no memory besides the %zu bytes that pml_dr_peer.c bounds",
           sizeof(dr_stream_t)); /* malloc() gives no less for each */
    dr_verdict_t last = dr_stream_judge(&s[0], 10, 10), next = dr_stream_judge(&s[0], 20, 10);
    TAP_OK(!s[0].paths && s[0].next == 10 && last == DR_REPEAT && next == DR_NEW, "its numbers go on");
    TAP_REQUIRE(dr_stream_add_paths(&s[0], 2), "paths");
    dr_stream_init_path(&s[0], 0, false, 1000000);
    TAP_OK(s[0].paths[0].srtt == 5000, "... with the round trip that it had measured");
    dr_stream_set_down(&s[0], 1, 7000);
    s[0].need = DR_ACK_NONE;
    dr_stream_rest(&s[0]);
    TAP_OK(s[0].paths, "a link that is down is probed on");
    for (int i = 0; i < PEERS; i++) {
        dr_stream_fini(&s[i]);
    }
}

int main(void)
{
    tap_start(30);
    test_seal();
    test_usual(OPAL_CHECKSUM_NONE);
    test_bare(OPAL_CHECKSUM_NONE);
#if OPAL_CRC32C_INLINE
    if (atomic_load(&opal_crc32c_instruction)) {
        test_usual(OPAL_CHECKSUM_CRC32C);
        test_bare(OPAL_CHECKSUM_CRC32C);
    }
#endif
    test_ack_wire();
    test_wheel();
    test_round_trips();
    test_granted();
    test_move();
    test_stale_round_trip();
    test_told_late();
    test_busy_receiver();
    test_read_late();
    test_passed();
    test_silence();
    test_many_gaps(false);
    test_many_gaps(true);
    test_paths();
    test_late();
    test_shorts();
    test_receiver_limits();
    test_hold();
    test_rest();
    test_nack();
    test_damaged();
    test_retries();
    test_many_transmissions();
    test_stuck();
    test_told();
    test_told_again();
    test_strange_acks();
    return tap_end();
}
