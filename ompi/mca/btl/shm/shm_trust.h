/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Are long fragments to one peer worth sending in parts (shm_parts.c)?
 *
 * One that its receiver waits for is read while it is written. But one that comes before its receive is copied once more, and of two that
 * cross each other neither is read before both are written, as each side writes first. That costs long ones more than the answer for
 * which an announced message waits. Whether somebody will wait is not known beforehand; it is taken to be as it was last. After a fragment
 * that did badly some are not sent in parts, twice as many each time, until several in a row have done well.
 *
 * The caller serialises the use of an object; all zero at first.
 */
#ifndef MCA_BTL_SHM_TRUST_H
#define MCA_BTL_SHM_TRUST_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SHM_TRUST_REST = 64,   /* questions answered by no after a fragment that did badly, at first; the engine asks up to twice for a message */
    SHM_TRUST_MOST = 4096, /* ... at most */
    SHM_TRUST_GOOD = 8,    /* fragments that did well, after which it is as at first */
};

typedef struct shm_trust {
    uint32_t early;        /* fragments that came before their receives, as the receiver counts them, when last heard of */
    uint32_t rest;         /* questions still to be answered by no */
    uint32_t gap;          /* what `rest` was last set to */
    uint32_t good;         /* fragments since then that crossed none */
} shm_trust_t;

static inline void shm_trust_lose(shm_trust_t *trust)
{
    bool first = trust->gap == 0 || trust->good >= SHM_TRUST_GOOD;
    trust->gap = first ? SHM_TRUST_REST : trust->gap < SHM_TRUST_MOST ? 2 * trust->gap : trust->gap;
    trust->rest = trust->gap;
    trust->good = 0;
}

/* Shall the next one be sent in parts? `early`: the receiver's count, which goes round. */
static inline bool shm_trust_ask(shm_trust_t *trust, uint32_t early)
{
    if (early != trust->early) {
        trust->early = early;
        shm_trust_lose(trust);
    }
    if (trust->rest > 0) {
        trust->rest--;
        return false;
    }
    return true;
}

/* It was. `crossed`: one of the peer's had come when it was written. */
static inline void shm_trust_sent(shm_trust_t *trust, bool crossed)
{
    if (crossed) {
        shm_trust_lose(trust);
    } else {
        trust->good += trust->good < SHM_TRUST_GOOD;
    }
}

#endif
