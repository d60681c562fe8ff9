/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * One path of a stream: its round trips (RFC 6298), and its window. What acknowledgments (pml_dr_stream.c) and time (pml_dr_stream_time.c) do
 * to it. The caller serialises the use of a stream.
 */
#ifndef PML_DR_PATH_H
#define PML_DR_PATH_H

#include "ompi/mca/pml/dr/pml_dr_stream.h"

static inline dr_record_t *dr_record_of(opal_list_item_t *item)
{
    return OPAL_CONTAINER_OF(item, dr_record_t, item);
}

static inline void dr_path_note_rtt(dr_path_t *p, uint64_t rtt)
{
    if (p->srtt == 0) {
        p->srtt = rtt;
        p->rttvar = rtt / 2;
        return;
    }
    uint64_t off = rtt > p->srtt ? rtt - p->srtt : p->srtt - rtt;
    p->rttvar += off / 4 - p->rttvar / 4;
    p->srtt += rtt / 8 - p->srtt / 8;
}

/* The retransmission time without back-off. */
static inline uint64_t dr_path_first_rto(const dr_stream_t *s, const dr_path_t *p)
{
    uint64_t late = s->params->ack_delay + 2 * s->params->tick; /* it runs from one tick, and is over at another */
    uint64_t rto = p->srtt > 0 ? p->srtt + 4 * p->rttvar + late : s->params->rto_initial;
    uint64_t least = p->reliable ? s->params->rto_reliable : s->params->rto_min;
    return rto < least ? least : rto;
}

static inline void dr_path_works(dr_path_t *p, uint64_t now)
{
    p->vain = 0;
    p->since = now;
    p->asked = p->missed = 0;
    p->delivered = true;
    if (p->state == DR_PATH_SUSPECT) {
        p->state = DR_PATH_UP;
    }
}

/* The path seems to be too full: a smaller window, once for what was under way. Not so small that too few fragments are
 * under way for a loss to be noticed by what passes it: the timer takes a hundred times as long. */
static inline void dr_path_congested(dr_path_t *p)
{
    uint64_t least = p->cwnd_max / 16, enough = 2 * (DR_PASSED_BY + 1) * (p->flight > 0 ? p->flight_bytes / p->flight : 0);
    enough = enough < p->cwnd_max / 2 ? enough : p->cwnd_max / 2;
    least = least > enough ? least : enough;
    if (!p->reliable && (int32_t) (p->passed - p->recover) >= 0) {
        p->cwnd = p->cwnd / 2 > least ? p->cwnd / 2 : least;
        p->recover = p->number;
    }
}

/* The window is made smaller because this record is taken for lost. */
static inline void dr_path_doubt(dr_path_t *p, const dr_record_t *r, uint64_t cwnd, bool passing)
{
    p->lost_first = p->lost_last = r->seq;
    p->cwnd_was = cwnd;
    p->doubts = 1;
    p->passing = passing;
}

#endif
