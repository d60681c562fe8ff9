/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* When two processes count as sending each other about as much. */
#include "ompi/mca/btl/shm/shm_even.h"

#include "support/tap.h"

static shm_even_t even;

/* So many fragments are sent, then so many come; was it ever on, was it ever off behind the first two samples? */
static void by_turns(uint32_t sent, uint32_t got, bool *once, bool *always)
{
    even = (shm_even_t){0};
    *once = false;
    *always = true;
    for (uint32_t n = 0; n < 50 * SHM_EVEN_SAMPLE; n += sent + got) {
        for (uint32_t i = 0; i < sent; i++) {
            shm_even_sent(&even);
        }
        *once = *once || even.on;
        for (uint32_t i = 0; i < got; i++) {
            shm_even_got(&even);
        }
        *once = *once || even.on;
        *always = *always && (even.on || n < 2 * SHM_EVEN_SAMPLE);
    }
}

static void kinds(void)
{
    bool once, always;
    by_turns(1, 1, &once, &always);
    TAP_OK(always, "who sends one by turns with the peer is even with it");
    by_turns(64, 64, &once, &always);
    TAP_OK(always, "... and who sends 64 by turns");
    by_turns(2, 1, &once, &always);
    TAP_OK(always, "... and who sends twice as much");
    by_turns(1, 2, &once, &always);
    TAP_OK(always, "... or half as much");
    by_turns(5, 1, &once, &always);
    TAP_OK(!once, "who sends five times as much is not");
    by_turns(1, 5, &once, &always);
    TAP_OK(!once, "... nor who sends a fifth");
    by_turns(1, 0, &once, &always);
    TAP_OK(!once, "... nor who sends alone");
}

/* Fragments of one side after which it changes. */
static uint32_t until(bool on, bool sends)
{
    uint32_t n = 0;
    while (even.on != on && n < 100 * SHM_EVEN_SAMPLE) {
        sends ? shm_even_sent(&even) : shm_even_got(&even);
        n++;
    }
    return n;
}

static void changes(void)
{
    bool once, always;
    by_turns(16, 16, &once, &always);
    TAP_OK(until(false, true) <= 4 * SHM_EVEN_SAMPLE, "it is noticed when the peer sends no more");
    uint32_t n = until(true, false);
    TAP_OK(n > 0 && n <= 4 * SHM_EVEN_SAMPLE, "... and when it sends again");
    for (int i = 0; i < 1000; i++) {
        shm_even_got(&even);
    }
    TAP_OK(!even.on, "... alone");
    even = (shm_even_t){.never = true};
    for (int i = 0; i < 1000; i++) {
        shm_even_got(&even);
        shm_even_sent(&even);
    }
    TAP_OK(!even.on, "where it does not matter nobody is even");
}

static uint64_t clock_ns;

static uint64_t now(void)
{
    return clock_ns;
}

/* So many fragments, by vectors in 1000 ns each and otherwise in `plain_ns`; how many of them went otherwise. */
static int stream(shm_even_t *even, int fragments, size_t len, uint64_t plain_ns)
{
    int plain = 0;
    for (int i = 0; i < fragments; i++) {
        shm_even_choose(even, len, now);
        clock_ns += even->plain ? plain_ns : 1000;
        plain += even->plain;
    }
    return plain;
}

static void copies(void)
{
    enum { MANY = 100 * SHM_EVEN_ROW };
    shm_even_t even = {.on = true};
    int plain = stream(&even, MANY, 64 << 10, 800);
    TAP_OK(plain > MANY / 2 && even.contests[2].way == 1, "long ones go by what is quicker (%d of %d)", plain, MANY);
    plain = stream(&even, MANY, 4 << 10, 1200);
    TAP_OK(plain < MANY / 4 && even.contests[0].way == 0, "short ones by vectors, where those are (%d of %d)", plain, MANY);
    even.plain = true;
    even.sent = 100;
    even.got = 1;
    shm_even_judge(&even);
    TAP_OK(!even.on && !even.plain, "who sends more than comes reads as he is told");
}

int main(void)
{
    tap_start(60);
    kinds();
    changes();
    copies();
    return tap_end();
}
