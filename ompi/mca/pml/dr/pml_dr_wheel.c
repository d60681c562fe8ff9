/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The timer wheel. */
#include "ompi/mca/pml/dr/pml_dr_wheel.h"

void dr_wheel_init(dr_wheel_t *wheel, uint64_t tick_ns, uint64_t now_ns)
{
    wheel->tick_ns = tick_ns;
    wheel->now = now_ns / tick_ns;
    wheel->count = 0;
    opal_list_init(&wheel->due);
    for (int i = 0; i < DR_WHEEL_SLOTS; i++) {
        opal_list_init(&wheel->slots[i]);
    }
}

void dr_wheel_cancel(dr_wheel_t *wheel, dr_timer_t *timer)
{
    if (timer->at > 0) {
        opal_list_remove(&timer->item);
        timer->at = 0;
        wheel->count--;
    }
}

void dr_wheel_set(dr_wheel_t *wheel, dr_timer_t *timer, uint64_t at_ns)
{
    uint64_t at = (at_ns + wheel->tick_ns - 1) / wheel->tick_ns;
    at = at > wheel->now ? at : wheel->now + 1;
    if (timer->at == at) {
        return;
    }
    dr_wheel_cancel(wheel, timer);
    timer->at = at;
    opal_list_append(&wheel->slots[at % DR_WHEEL_SLOTS], &timer->item);
    wheel->count++;
}

static void empty_slot(dr_wheel_t *wheel, uint64_t slot, uint64_t now)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &wheel->slots[slot]) {
        if (OPAL_CONTAINER_OF(i, dr_timer_t, item)->at <= now) {
            opal_list_remove(i);
            opal_list_append(&wheel->due, i);
        }
    }
}

void dr_wheel_advance(dr_wheel_t *wheel, uint64_t now_ns)
{
    uint64_t now = now_ns / wheel->tick_ns;
    if (now <= wheel->now) {
        return;
    }
    uint64_t slots = now - wheel->now < DR_WHEEL_SLOTS ? now - wheel->now : DR_WHEEL_SLOTS;
    for (uint64_t i = 0; i < slots && wheel->count > 0; i++) {
        empty_slot(wheel, (now - i) % DR_WHEEL_SLOTS, now);
    }
    wheel->now = now;
}

dr_timer_t *dr_wheel_pop(dr_wheel_t *wheel)
{
    opal_list_item_t *i = opal_list_first(&wheel->due);
    if (!i) {
        return NULL;
    }
    dr_timer_t *timer = OPAL_CONTAINER_OF(i, dr_timer_t, item);
    dr_wheel_cancel(wheel, timer);
    return timer;
}

uint64_t dr_wheel_next(const dr_wheel_t *wheel)
{
    if (wheel->count == 0) {
        return 0;
    }
    uint64_t at = wheel->now + 1;
    while (at < wheel->now + DR_WHEEL_SLOTS && opal_list_is_empty(&wheel->slots[at % DR_WHEEL_SLOTS])) {
        at++;
    }
    return at * wheel->tick_ns;
}
