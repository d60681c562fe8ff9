/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reliability between two processes: what one of them knows of the fragments that it sends to the other, and of those
 * that come from there. Knows nothing of MPI, of links, of memory or of the time: the caller moves fragments, says
 * what became of them, and passes the time (ns, from any clock; 0: not known).
 *
 * Sending. Every fragment takes a range of a 64-bit sequence, in the order of first transmission, and is a *record* of
 * the caller's until it is acknowledged:
 *
 *       acked                                                    next
 *     ----|-- FLIGHT -- ACKED -- FLIGHT -- LOST -- FLIGHT -- ... --|
 *
 *   FRESH   as FLIGHT, and went with what dr_stream_grant() granted beforehand: only `next` and the grant know of it yet.
 *           Whatever looks at records enters them first; most are acknowledged before that, and cost nothing else
 *   FLIGHT  a path (a link, for whoever is above) has it, or has lost it: nobody knows
 *   LOST    to be sent again: damaged (said by a negative acknowledgment), passed by others on its path
 *           (see dr_path_t.spread), its path's timer ran out, or its path gave it back
 *   ACKED   verified and delivered; handed out in `done`, and forgotten
 *
 * A retransmission keeps its range: whichever copy comes first counts. A range may become void (the caller sends its
 * bytes under another range, cut otherwise): then the record goes as DR_VOID until that is acknowledged.
 *
 * What is under way is bounded: by `window` bytes of memory kept for retransmission, by `cwnd` bytes on a path that may
 * lose, and by DR_REACH of the sequence.
 *
 * Timers. One per path, judged by dr_stream_tick(): if nothing that the path has in flight is acknowledged for a
 * retransmission time (RFC 6298: smoothed round trip + 4 deviations, here also the delay of acknowledgments; doubled
 * after each vain attempt up to a limit, with jitter) the oldest record *alone* is lost: so a receiver that computes
 * is not flooded, it finds one repeat per path and back-off step. What is really lost is learnt from the answer.
 *
 * Late. A timer that ran out makes `cwnd` smaller, as a loss does that is shown by what passed it. What was repeated for
 * that and has come twice had only been read late, or come another way through the network: acknowledgments tell repeats,
 * as TCP's do (RFC 2883), and the path has its window back (RFC 3708). Where fragments are passed by others without being
 * lost the path is *spread*, as over several cables of a trunk: there one is lost that is still missing a round trip after
 * it was passed; until a timer runs out, for then much may be lost, and what passes finds it soonest.
 *
 * What is no round trip is no measure of one: repeats (Karn); what others passed, for it may have come long before an
 * acknowledgment had room to tell; what was under way when a timer ran out, or while the caller was not there to take
 * acknowledgments in (dr_stream_away()); and a probe's echo that comes later than an acknowledgment would have been
 * waited for. Such an echo still proves that the path works, unless the path was UP meanwhile.
 *
 * Stale. An acknowledgment that rides on a fragment is the lower half of a number, and a link may hold it for any time: 4 GiB later it
 * would be taken for a later one. So it counts only if it was sent later than all that counted before, and then it is no lower. That
 * is known, as fragments take their numbers in the order in which they first go: one that is NEW follows all that came in order before it, and
 * `told_at` is where the other end was when it sent the latest of what came out of order, acknowledgments by themselves among that. Fragments
 * that go again are out of order, and carry none; what rode on one that was lost is told anew.
 *
 * Receiving. `rx` holds what is verified and delivered, `held` what came with a good header and is being put in place,
 * not yet verified. A range is judged before anything is done with it: NEW, REPEAT (answer with an acknowledgment:
 * the last one was lost), BUSY or BEYOND (ignored: it will be sent again). The number of gaps is bounded.
 *
 * Paths. UP, or SUSPECT after `suspect_after` vain attempts: avoided while another is up, and probed; or DOWN after
 * `down_after`, if meanwhile another path delivered (else it is the peer that is away, not the link): its records are
 * lost at once, and nothing goes there but probes, ever rarer, until one is echoed. On a SUSPECT path from which all has
 * moved to others probes are the attempts: one is vain if it has no echo a retransmission time after another path
 * delivered, which shows that the peer is there to answer.
 */
#ifndef MCA_PML_DR_STREAM_H
#define MCA_PML_DR_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "ompi/mca/pml/base/pml_base_ranges.h"
#include "ompi/mca/pml/dr/pml_dr_wire.h"
#include "opal/class/list.h"

enum {
    DR_PATHS_MAX = 8,
    DR_REACH = 1 << 30,     /* sequence numbers under way at most */
    DR_GAPS_MAX = 1024,     /* in what a receiver has; 16 bytes each */
    DR_HELD_MAX = DR_PATHS_MAX,
    DR_PASSED_BY = 3,       /* later transmissions on its path arrived: it is lost, unless the path is spread */
    DR_CAREFUL = 256,       /* acknowledgments after one that told of a loss for which the next loss counts as likely */
    DR_DOUBTS = 4,          /* times that a window is made smaller for losses, before it can no longer be had back for the first */
};

typedef struct dr_stream_params {
    uint64_t rto_initial, rto_max; /* ns */
    uint64_t rto_min, rto_reliable; /* ns: least time on a path that may lose, on one that does not while it is up */
    uint64_t ack_delay;            /* ns that an acknowledgment waits for a fragment to ride on */
    uint64_t ack_bytes;            /* ... at most so many delivered bytes */
    uint64_t tick;                 /* ns between the calls of dr_stream_tick() while something is under way */
    uint64_t window;               /* bytes kept for retransmission */
    uint64_t probe_first, probe_max; /* ns between probes */
    uint64_t silence_max;          /* ns without any sign of the peer, while something is unacknowledged */
    unsigned suspect_after, down_after; /* vain attempts */
} dr_stream_params_t;

/* ---- Sending ---- */

typedef enum { DR_FLIGHT, DR_LOST, DR_ACKED, DR_FRESH } dr_record_state_t;

/* Part of what the caller keeps of a fragment. */
typedef struct dr_record {
    opal_list_item_t item;      /* in `unacked` by sequence, then in a list `done` */
    opal_list_item_t lost_item; /* in `lost`; linked in state LOST only */
    uint64_t seq;
    uint32_t span;              /* sequence numbers */
    uint32_t cost;              /* bytes kept */
    uint64_t sent;              /* ns, last transmission; 0: not known */
    uint32_t number;            /* of that transmission, on its path */
    uint16_t tries;             /* transmissions */
    uint8_t path;
    uint8_t state;              /* dr_record_state_t */
} dr_record_t;

typedef enum { DR_PATH_UP, DR_PATH_SUSPECT, DR_PATH_DOWN } dr_path_state_t;

typedef struct dr_path {
    uint8_t state;              /* dr_path_state_t */
    bool reliable;              /* loses nothing while it is up: nothing is inferred from the order of arrivals */
    bool probe_due;             /* set by tick; the caller sends a probe and clears it */
    bool delivered;             /* something arrived since the last tick, as far as is known */
    uint8_t vain;               /* attempts in a row without an answer */
    bool passing;               /* `lost_first` and `lost_last` were passed by others, else the timer found one */
    uint8_t doubts;             /* times that the window was made smaller since `cwnd_was` */
    bool spread;                /* transmissions come in another order and are not lost for that */
    uint32_t flight;            /* records */
    uint32_t number;            /* transmissions so far */
    uint32_t passed;            /* highest transmission that is known to have arrived */
    uint32_t round, round_from; /* a round trip of it is over when `round` has arrived; `passed` when it began */
    uint32_t overdue;           /* up to this one all have had a round trip longer to arrive than one that passed them */
    uint32_t recover;           /* losses up to this transmission have been answered by a smaller cwnd */
    uint32_t stale;             /* up to this one they are no measure of a round trip */
    uint32_t unasked;           /* the caller's: bytes since it asked for an acknowledgment */
    uint64_t flight_bytes, cwnd, cwnd_max;
    uint64_t cwnd_was;          /* before it was made smaller for the records between these two; 0: nothing is to be had back */
    uint64_t lost_first, lost_last; /* sequence numbers */
    uint64_t since;             /* ns: the timer runs from here; 0: from the next tick */
    uint64_t progress;          /* ns: the last tick at which `delivered` was set */
    uint64_t srtt, rttvar;      /* ns; srtt 0: not measured */
    uint64_t probe_next, probe_wait; /* ns */
    uint64_t doubted;           /* ns: since when it is SUSPECT, or DOWN */
    uint64_t asked;             /* ns: the first probe that is neither echoed nor counted; 0: none */
    uint64_t missed;            /* ns: since when its echo is due, for another path delivers; 0: it is not */
} dr_path_t;

typedef enum { DR_ACK_NONE, DR_ACK_LATER, DR_ACK_URGENT } dr_ack_need_t;

typedef struct dr_stream {
    const dr_stream_params_t *params;
    uint64_t next, acked;       /* what follows goes at `next`; all below `acked` is acknowledged */
    uint64_t kept;              /* bytes: sum of `cost` */
    opal_list_t unacked, lost;
    uint32_t random;
    uint32_t told_at;           /* lower half of the other end's `next`, see above; if told_ahead */
    /* Receiving. */
    mca_pml_ranges_t rx;
    uint32_t unacked_bytes;     /* delivered since the last acknowledgment; less than DR_REACH */
    uint32_t quick;             /* sending: bytes of cost and span that may go over quick_path with nothing else to look at */
    uint64_t ack_at;            /* ns: when DR_ACK_LATER is over; 0: from the next tick */
    uint8_t need;               /* dr_ack_need_t */
    uint8_t held_count, nack_count, path_count;
    bool heard;                 /* something valid came since the last tick */
    bool dead;                  /* silence_max is over; found by tick */
    uint8_t quick_path;
    uint8_t ack_turn;           /* acknowledgments sent: which of many blocks the next one tells */
    uint32_t timed;             /* records in flight with a time: what is acknowledged needs one, too */
    uint32_t rtt_was;           /* ns: the longest of the paths that dr_stream_rest() gave up; 0: not known */
    uint64_t heard_at;          /* ns; when this step of the silence began; 0: nothing was expected at the last tick */
    uint32_t repeat;            /* dr_repeat_of() a fragment that came again since the last acknowledgment; 0: none did */
    uint16_t careful;           /* acknowledgments until losses are no longer likely */
    uint8_t silences;           /* steps of silence_max that are over */
    bool told_ahead;            /* `told_at` was beyond rx.next when that was looked at last */
    dr_range_t *held;           /* DR_HELD_MAX of them, then DR_ACK_NACKS that came damaged; NULL until needed */
    dr_path_t *paths;           /* path_count of them; NULL until something is to be sent, and at rest */
} dr_stream_t;

/* How acknowledgments call a fragment that came again; 0, which is none, also once in 2^32. */
static inline uint32_t dr_repeat_of(uint64_t seq)
{
    return (uint32_t) (seq + 1);
}

/* `params` stay the caller's. */
void dr_stream_init(dr_stream_t *stream, const dr_stream_params_t *params, uint64_t seed);
/* Before anything is sent. False: out of memory. */
bool dr_stream_add_paths(dr_stream_t *stream, unsigned count);
/* `window`: bytes that the path takes at once. */
void dr_stream_init_path(dr_stream_t *stream, unsigned path, bool reliable, uint64_t window);
/* Nothing has happened for long: give back what is needed only while something does, if all paths are up and nothing is
 * under way in either direction. Then `paths` is NULL. */
void dr_stream_rest(dr_stream_t *stream);
/* All records are gone already (dr_stream_abandon()). */
void dr_stream_fini(dr_stream_t *stream);

/* May a new fragment for which `cost` bytes are kept go over the path? A stream that holds nothing takes anything. */
bool dr_stream_has_room(dr_stream_t *stream, unsigned path, size_t cost, size_t span);

/* More short fragments are likely: grant some room to the path, if there is enough. Until anything else takes room, or is lost, no
 * other question need be asked for them. */
void dr_stream_grant(dr_stream_t *stream, unsigned path);
static OPAL_ALWAYS_INLINE bool dr_stream_is_granted(const dr_stream_t *s, unsigned path, size_t cost, size_t span)
{
    return cost + span <= s->quick && path == s->quick_path;
}

/* Enter what is FRESH. */
void dr_stream_enter(dr_stream_t *stream);

static inline void dr_stream_on_path(dr_stream_t *s, dr_record_t *r, unsigned path, uint64_t now)
{
    dr_path_t *p = &s->paths[path];
    r->path = (uint8_t) path;
    r->state = DR_FLIGHT;
    r->number = ++p->number;
    r->sent = now;
    s->timed += now > 0;
    if (p->flight++ == 0) {
        p->since = now;
    }
    p->flight_bytes += r->span;
}

/* The range of the next fragment is given out: the record is in flight from now on. If the path then does not take
 * it, dr_stream_undo() before anything else. */
static inline void dr_stream_send(dr_stream_t *s, dr_record_t *r, unsigned path, uint32_t span, uint32_t cost,
                                  uint64_t now)
{
    dr_stream_enter(s);
    r->seq = s->next;
    r->span = span;
    r->cost = cost;
    r->tries = 1;
    s->next += span;
    s->kept += cost;
    opal_list_append(&s->unacked, &r->item);
    dr_stream_on_path(s, r, path, now);
}

void dr_stream_undo(dr_stream_t *stream, dr_record_t *record);

/* The same of one for which dr_stream_is_granted(); there is nothing to undo. */
static OPAL_ALWAYS_INLINE void dr_stream_send_granted(dr_stream_t *s, dr_record_t *r, unsigned path, uint32_t span,
                                                      uint32_t cost)
{
    r->seq = s->next;
    r->span = span;
    r->cost = cost;
    r->sent = 0;
    r->tries = 1;
    r->path = (uint8_t) path;
    r->state = DR_FRESH;
    s->next += span;
    s->quick -= cost + span;
    opal_list_append(&s->unacked, &r->item);
}

/* The first record to be sent again; NULL: none. */
static inline dr_record_t *dr_stream_first_lost(const dr_stream_t *s)
{
    opal_list_item_t *i = opal_list_first(&s->lost);
    return i ? OPAL_CONTAINER_OF(i, dr_record_t, lost_item) : NULL;
}

/* A lost record is about to go again, over this path, with DR_FLAG_AGAIN; dr_stream_lose() if the path does not take it. */
void dr_stream_resend(dr_stream_t *stream, dr_record_t *record, unsigned path, uint64_t now);
/* It did not arrive, as far as its path knows. No harm if it is lost or acknowledged already. */
void dr_stream_lose(dr_stream_t *stream, dr_record_t *record);
/* Another piece of memory becomes the record. */
void dr_stream_move(dr_record_t *record, dr_record_t *to);
/* The memory kept for a record changed. */
void dr_stream_recost(dr_stream_t *stream, dr_record_t *record, uint32_t cost);
/* The record of a number; NULL: acknowledged, or never sent. */
dr_record_t *dr_stream_find(dr_stream_t *stream, uint64_t seq);

void dr_stream_take_cumulative(dr_stream_t *stream, uint64_t delivered, uint64_t now, opal_list_t *done);
/* The piggybacked half, of a fragment of which dr_stream_tells() is true; what it acknowledges goes to the end of `done`. */
static inline void dr_stream_take_prefix(dr_stream_t *s, uint32_t ack, uint64_t now, opal_list_t *done)
{
    if (ack != (uint32_t) s->acked) {
        dr_stream_take_cumulative(s, dr_wire_widen(ack, s->next), now, done);
    }
}
/* A whole acknowledgment; dr_stream_told() before it. */
void dr_stream_take_ack(dr_stream_t *stream, const dr_ack_t *ack, uint64_t now, opal_list_t *done);

/* Move all records to `done`: nobody waits for them any more. */
void dr_stream_abandon(dr_stream_t *stream, opal_list_t *done);

/* ---- Receiving ---- */

typedef enum {
    DR_NEW,
    DR_REPEAT,  /* all of it has been delivered */
    DR_BUSY,    /* another copy is being put in place */
    DR_BEYOND,  /* can't be noted: too far ahead, or too many gaps */
} dr_verdict_t;

dr_verdict_t dr_stream_judge_slow(dr_stream_t *stream, uint64_t seq, uint32_t span);

/* Is it the one that is expected, in the usual case that nothing is missing, nothing is being put in place, and what rides on it tells
 * something? */
static OPAL_ALWAYS_INLINE bool dr_stream_is_next(const dr_stream_t *s, uint64_t seq)
{
    return seq == s->rx.next && s->rx.count == 0 && s->held_count == 0 && !s->told_ahead;
}

/* What is to be done with a fragment whose header is good? */
static inline dr_verdict_t dr_stream_judge(dr_stream_t *s, uint64_t seq, uint32_t span)
{
    if (OPAL_LIKELY(dr_stream_is_next(s, seq))) {
        return DR_NEW;
    }
    return dr_stream_judge_slow(s, seq, span);
}

/* Does what rides on a fragment without DR_FLAG_AGAIN, just judged NEW, count? */
static inline bool dr_stream_tells(const dr_stream_t *s, uint64_t seq)
{
    return !s->told_ahead || (int32_t) ((uint32_t) seq - s->told_at) >= 0;
}
/* What counts now was sent when the other end's `next` was `at`. */
void dr_stream_told(dr_stream_t *stream, uint64_t at);

/* An acknowledgment is due: at once, or after a while. */
static inline void dr_stream_want_ack(dr_stream_t *s, bool at_once)
{
    if (at_once) {
        s->need = DR_ACK_URGENT;
    } else if (s->need == DR_ACK_NONE) {
        s->need = DR_ACK_LATER;
        s->ack_at = 0;
    }
}

/* That one, as dr_stream_is_next() says, is verified. */
static OPAL_ALWAYS_INLINE void dr_stream_deliver_next(dr_stream_t *s, uint32_t span, bool ack_now)
{
    s->rx.next += span;
    s->unacked_bytes += span;
    dr_stream_want_ack(s, ack_now || s->unacked_bytes >= s->params->ack_bytes);
}

/* A NEW fragment is verified. False: out of memory, nothing is noted and it must not be handed up. */
static inline bool dr_stream_deliver(dr_stream_t *s, uint64_t seq, uint32_t span, bool ack_now)
{
    uint64_t fresh;
    if (!mca_pml_ranges_add(&s->rx, seq, seq + span, &fresh)) {
        return false;
    }
    s->unacked_bytes += span;
    dr_stream_want_ack(s, ack_now || s->rx.count > 0 || s->unacked_bytes >= s->params->ack_bytes);
    return true;
}

/* A NEW fragment proved damaged. */
void dr_stream_damaged(dr_stream_t *stream, uint64_t seq, uint32_t span);
/* A NEW fragment is being put in place (received, not verified), and no longer. False: no more of them now. */
bool dr_stream_hold(dr_stream_t *stream, uint64_t seq, uint32_t span);
void dr_stream_unhold(dr_stream_t *stream, uint64_t seq, uint32_t span);

/* What a fragment that goes for the first time carries; it does the service of an acknowledgment unless there are gaps: then one is urgent. */
static inline uint32_t dr_stream_ride(dr_stream_t *s)
{
    if (s->need == DR_ACK_LATER || (s->need == DR_ACK_URGENT && s->rx.count == 0 && s->nack_count == 0 && s->repeat == 0)) {
        s->need = DR_ACK_NONE;
        s->unacked_bytes = 0;
    }
    return (uint32_t) s->rx.next;
}

/* Write an acknowledgment. dr_stream_ack_sent() once it is out. */
void dr_stream_fill_ack(const dr_stream_t *stream, dr_ack_t *ack);
void dr_stream_ack_sent(dr_stream_t *stream);

/* ---- Time and paths ---- */

/* Judge all timers. What is lost is in `lost` then, `need` and `probe_due` are up to date. Returns when it is to be
 * called again (ns; by the next tick, if that is over); 0: never, unless something happens. `now` > 0. */
uint64_t dr_stream_tick(dr_stream_t *stream, uint64_t now);

/* A probe that went at `sent` came back over the path. */
void dr_stream_echoed(dr_stream_t *stream, unsigned path, uint64_t sent, uint64_t now);
/* Acknowledgments may have been waiting for the caller, who has been away: how long they took says nothing. */
void dr_stream_away(dr_stream_t *stream);
/* The link says itself that it is down, or up again. */
void dr_stream_set_down(dr_stream_t *stream, unsigned path, uint64_t now);
void dr_stream_set_up(dr_stream_t *stream, unsigned path, uint64_t now);
/* The retransmission time of a path, back-off included, jitter not. */
uint64_t dr_stream_rto(const dr_stream_t *stream, const dr_path_t *path);

#endif
