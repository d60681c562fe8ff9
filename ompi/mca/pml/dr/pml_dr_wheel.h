/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * A timer wheel: when is the next of very many timers due? Setting, moving and cancelling cost O(1), a tick the
 * timers of its slot. A timer stands in the slot of its time modulo the wheel; one that is more than a turn away is
 * passed over until its turn comes. It fires up to one tick late, never early.
 */
#ifndef MCA_PML_DR_WHEEL_H
#define MCA_PML_DR_WHEEL_H

#include <stdbool.h>
#include <stdint.h>
#include "opal/class/list.h"

enum { DR_WHEEL_SLOTS = 256 };

typedef struct dr_timer {
    opal_list_item_t item;
    uint64_t at;      /* ticks; 0: not set */
} dr_timer_t;

typedef struct dr_wheel {
    uint64_t tick_ns;
    uint64_t now;     /* ticks: timers up to here have fired */
    uint32_t count;   /* timers that are set */
    opal_list_t slots[DR_WHEEL_SLOTS];
    opal_list_t due;  /* their time has come; still set */
} dr_wheel_t;

void dr_wheel_init(dr_wheel_t *wheel, uint64_t tick_ns, uint64_t now_ns);
static inline void dr_timer_init(dr_timer_t *timer)
{
    opal_list_item_init(&timer->item);
    timer->at = 0;
}
/* Set, or move. */
void dr_wheel_set(dr_wheel_t *wheel, dr_timer_t *timer, uint64_t at_ns);
void dr_wheel_cancel(dr_wheel_t *wheel, dr_timer_t *timer);
/* The time goes on; then one after the other that is due, no longer set; NULL: no more. */
void dr_wheel_advance(dr_wheel_t *wheel, uint64_t now_ns);
dr_timer_t *dr_wheel_pop(dr_wheel_t *wheel);
/* When to look again (ns): the next slot in which a timer stands. 0: no timer is set. */
uint64_t dr_wheel_next(const dr_wheel_t *wheel);

#endif
