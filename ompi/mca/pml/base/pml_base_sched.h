/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scheduler of long messages: which link carries how much, in pieces of what size.
 *
 * Each link of a peer is a *flow*: a queue that drains at some rate. The bytes of a message are
 * divided so that all flows are done at the same time, with what they already have to do counted
 * in: at constant rates and with idle links the parts are the largest-remainder split of the
 * message by rate. A part is a number of bytes, no fixed region of the message: pieces are cut from
 * the message's front as links have room, so that what is not yet handed over can change hands.
 *
 *     message  [ handed over ......... | left = part[0] + part[1] + ...            ]
 *     flow i   [ outstanding | queued = its parts of all messages ] -> drained at `rate`
 *
 * The rate starts as what the BTL reports and follows the confirmations: bytes confirmed over the
 * time in which the link had something to do. A sample counts by the time it took, or by the time
 * that the link was expected to take if that is longer: so a link that became slow is noticed
 * as fast as one that became fast again and is hardly used. A link that confirms nothing at all is
 * taken for slower the longer that lasts, before any sample says so. Nothing here reads a
 * clock: `now` is in nanoseconds, from whatever clock the caller has, real or pretended; 0 says
 * that nothing is to be measured.
 */
#ifndef MCA_PML_BASE_SCHED_H
#define MCA_PML_BASE_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hawser/btl.h"

enum {
    MCA_PML_FLOWS_MAX = 8,
    MCA_PML_FLOW_PROBE_NS = 100 * 1000 * 1000, /* an unused link gets a piece after so long */
};

typedef struct mca_pml_flow {
    size_t min_frag, max_frag; /* payload of a piece */
    size_t max_window;
    bool fixed;                /* the rate is not measured */
    bool alone;                /* no other link takes part: only the link's own limits count */
    double start;              /* the reported rate, bytes per ns */
    double rate;               /* as measured */
    size_t frag, window;       /* payload and unconfirmed bytes that suit the rate */
    size_t queued;             /* bytes given to it, not yet handed over */
    size_t outstanding;        /* handed over, not yet confirmed */
    uint64_t since;            /* when the present sample began */
    bool from_idle;            /* ... with the first work after a pause */
    uint64_t last;             /* last confirmation, or beginning of work */
    size_t delivered;          /* since `since` */
    size_t recalled;           /* since `last` */
} mca_pml_flow_t;

#pragma GCC visibility push(default)

/* Start, or start anew at `rate_part` of the reported bandwidth. `room`: bytes of max_frag that are
 * not payload. `fixed`: never measure. */
void mca_pml_flow_init(mca_pml_flow_t *flow, const mca_btl_limits_t *limits, size_t room,
                       bool fixed, double rate_part);

/* Is there no other link to share with? */
void mca_pml_flow_alone(mca_pml_flow_t *flow, bool alone);

/* `len` bytes were handed over and will be confirmed, are confirmed, or came back unconfirmed. */
void mca_pml_flow_handed(mca_pml_flow_t *flow, size_t len, uint64_t now);
void mca_pml_flow_confirmed(mca_pml_flow_t *flow, size_t len, uint64_t now);
void mca_pml_flow_returned(mca_pml_flow_t *flow, size_t len);
/* They came back as another link was quicker, which is a sample, too: pieces that are too long for a link that reports too
 * much of itself would all end so, and none would ever be confirmed. */
void mca_pml_flow_recalled(mca_pml_flow_t *flow, size_t len, uint64_t now);
/* The link took `len` bytes in `ns` and confirmed them at once: one sample. */
void mca_pml_flow_took(mca_pml_flow_t *flow, size_t len, uint64_t ns);

/* The rate as far as it can be known at this moment. */
double mca_pml_flow_rate(const mca_pml_flow_t *flow, uint64_t now);
/* Has it been silent for `times` as long as all that it was handed should take? */
bool mca_pml_flow_is_stalled(const mca_pml_flow_t *flow, uint64_t now, double times);
/* It goes on, but will need `times` as long for what it was handed as the other one for all that this one has to do, and
 * that too: it has become slow since. */
bool mca_pml_flow_is_slow(const mca_pml_flow_t *flow, const mca_pml_flow_t *other, uint64_t now, double times);

/*
 * Divide the `left` bytes of a message that are not yet handed over among n flows (NULL: takes no
 * part). part[] is what they have of it now; bytes of no flow, or of one that no longer takes
 * part, are given out, and what is given already moves if all would then be done earlier, by
 * more than the time of a piece. At least one flow must take part, or nothing changes. Parts are at least
 * the flow's min_frag, or everything. Updates `queued`.
 */
void mca_pml_sched_divide(mca_pml_flow_t *const flow[], int n, size_t left, size_t part[],
                          uint64_t now);

#pragma GCC visibility pop

/* Size of the next piece of a part; 0: nothing, or the link has enough to do. */
static inline size_t mca_pml_flow_piece(const mca_pml_flow_t *flow, size_t part)
{
    if (part == 0 || flow->outstanding >= flow->window) {
        return 0;
    }
    if (part <= flow->frag) {
        return part;
    }
    /* No crumb at the end. */
    return part - flow->frag >= flow->min_frag ? flow->frag : part - part / 2;
}

#endif
