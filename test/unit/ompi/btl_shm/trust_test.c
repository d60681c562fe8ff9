/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* When long fragments go in parts: always while they do well, ever more rarely while they do not. */
#include "ompi/mca/btl/shm/shm_trust.h"

#include "support/tap.h"

static shm_trust_t trust;
static uint32_t early;

/* Questions until one is answered by yes. */
static uint32_t questions(void)
{
    uint32_t n = 0;
    while (n < 10 * SHM_TRUST_MOST && !shm_trust_ask(&trust, early)) {
        n++;
    }
    return n;
}

static void does_well(void)
{
    bool all = true;
    trust = (shm_trust_t){0};
    for (int i = 0; i < 1000; i++) {
        all = shm_trust_ask(&trust, early) && all;
        shm_trust_sent(&trust, false);
    }
    TAP_OK(all, "all go in parts while none comes early or crosses another one");
}

static void does_badly(const char *how, bool crosses)
{
    bool doubled = true;
    trust = (shm_trust_t){.early = early};
    for (uint32_t gap = SHM_TRUST_REST; gap <= SHM_TRUST_MOST; gap *= 2) {
        early += !crosses;
        doubled = doubled && (crosses || !shm_trust_ask(&trust, early));
        shm_trust_sent(&trust, crosses);
        doubled = doubled && questions() + !crosses == gap;
    }
    TAP_OK(doubled, "twice as many do not after each that %s", how);
    early += !crosses;
    shm_trust_sent(&trust, crosses);
    TAP_OK(questions() == SHM_TRUST_MOST, "... up to a limit");
    for (int i = 0; i < SHM_TRUST_GOOD; i++) {
        shm_trust_sent(&trust, false);
    }
    shm_trust_sent(&trust, true);
    TAP_OK(questions() == SHM_TRUST_REST, "... and few again when some have done well");
}

/* One that came early is heard of later, when others have been sent. */
static void hears_late(void)
{
    trust = (shm_trust_t){.early = UINT32_MAX};
    early = UINT32_MAX;
    TAP_OK(shm_trust_ask(&trust, early), "a count that has not changed says nothing");
    shm_trust_sent(&trust, false);
    early++; /* goes round */
    TAP_OK(questions() == SHM_TRUST_REST, "one that has gone round does");
}

int main(void)
{
    tap_start(60);
    does_well();
    does_badly("crosses another one", true);
    does_badly("comes early", false);
    hears_late();
    return tap_end();
}
