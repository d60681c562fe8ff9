/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Links die and come back: at random, or as the script says. All of it from progress. */
#include "ompi/mca/btl/chaos/btl_chaos.h"

/* Fragments that still arrive while a link fades, at most. */
enum { FADING_MAX = 16 };

/* Between a half and three halves of the mean. */
static uint64_t after_ms(chaos_module_t *m, uint64_t now, int64_t mean)
{
    uint64_t ns = (uint64_t) mean * 1000000;
    return now + ns / 2 + mca_btl_chaos_draw(&m->random, ns + 1) + 1;
}

void mca_btl_chaos_change(chaos_module_t *m, chaos_life_t life, uint64_t now)
{
    const chaos_params_t *p = &mca_btl_chaos_params;
    m->change_ns = life == CHAOS_FADING ? now + (uint64_t) p->fade_ms * 1000000 + 1
                   : p->life_ms == 0    ? 0
                                        : after_ms(m, now, life == CHAOS_UP ? p->life_ms : p->dead_ms);
    atomic_store(&m->life, life);
    if (life != CHAOS_FADING) {
        mca_btl_chaos_count(life == CHAOS_UP ? CHAOS_RETURNS : CHAOS_DEATHS);
    }
    for (mca_btl_endpoint_t *ep = atomic_load(&m->all); ep; ep = ep->next) {
        chaos_lock(ep);
        if (life == CHAOS_FADING) {
            ep->fading = (uint32_t) mca_btl_chaos_draw(&m->random, FADING_MAX);
        }
        ep->give_back |= life == CHAOS_DOWN;
        chaos_unlock(ep);
        mca_btl_chaos_wake(ep);
    }
}

void mca_btl_chaos_live_start(chaos_module_t *m, uint64_t now)
{
    m->script_ns = now;
    if (m->touched && mca_btl_chaos_params.life_ms > 0) {
        m->change_ns = after_ms(m, now, mca_btl_chaos_params.life_ms);
    }
}

void mca_btl_chaos_live(chaos_module_t *m, uint64_t now)
{
    if (!m->touched) {
        return;
    }
    mca_btl_chaos_script_play(m, now);
    if (m->change_ns > 0 && m->change_ns <= now) {
        int life = atomic_load(&m->life);
        mca_btl_chaos_change(m, life == CHAOS_UP ? CHAOS_FADING : life == CHAOS_FADING ? CHAOS_DOWN : CHAOS_UP, now);
    }
}

uint64_t mca_btl_chaos_live_next(const chaos_module_t *m)
{
    uint64_t script = m->touched ? mca_btl_chaos_script_next(m) : UINT64_MAX;
    return m->change_ns > 0 && m->change_ns < script ? m->change_ns : script;
}
