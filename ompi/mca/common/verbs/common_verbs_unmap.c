/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Notes of unmapped memory. See common_verbs_unmap.h. */
#include "ompi/mca/common/verbs/common_verbs_unmap.h"

enum { TRIES = 1000 }; /* to get at the notes; who had them may be gone, in a child of fork() */

static bool may_write(common_verbs_unmap_t *u)
{
    for (unsigned i = 0; i < TRIES; i++) {
        if (!atomic_flag_test_and_set_explicit(&u->busy, memory_order_acquire)) {
            return true;
        }
    }
    return false;
}

static void add(common_verbs_unmap_t *u, uintptr_t start, uintptr_t end)
{
    unsigned last = u->count - 1;
    if (u->count < COMMON_VERBS_UNMAP_NOTES) {
        u->note[u->count++] = (common_verbs_range_t){start, end};
        return;
    }
    u->note[last].start = start < u->note[last].start ? start : u->note[last].start;
    u->note[last].end = end > u->note[last].end ? end : u->note[last].end;
}

void common_verbs_unmap_note(common_verbs_unmap_t *u, uintptr_t start, uintptr_t end)
{
    if (end <= atomic_load_explicit(&u->low, memory_order_relaxed) ||
        start >= atomic_load_explicit(&u->high, memory_order_relaxed)) {
        return;
    }
    if (may_write(u)) {
        add(u, start, end);
        atomic_flag_clear_explicit(&u->busy, memory_order_release);
    } else {
        atomic_store_explicit(&u->everything, true, memory_order_relaxed);
    }
    atomic_store_explicit(&u->some, true, memory_order_release);
}

unsigned common_verbs_unmap_take(common_verbs_unmap_t *u, common_verbs_range_t out[COMMON_VERBS_UNMAP_NOTES])
{
    atomic_store_explicit(&u->some, false, memory_order_relaxed);
    while (atomic_flag_test_and_set_explicit(&u->busy, memory_order_acquire)) {
    }
    unsigned count = u->count;
    for (unsigned i = 0; i < count; i++) {
        out[i] = u->note[i];
    }
    u->count = 0;
    atomic_flag_clear_explicit(&u->busy, memory_order_release);
    if (atomic_exchange_explicit(&u->everything, false, memory_order_acq_rel)) {
        out[0] = (common_verbs_range_t){0, UINTPTR_MAX};
        count = 1;
    }
    return count;
}

void common_verbs_unmap_watch(common_verbs_unmap_t *u, uintptr_t start, uintptr_t end)
{
    if (start < atomic_load_explicit(&u->low, memory_order_relaxed)) {
        atomic_store_explicit(&u->low, start, memory_order_relaxed);
    }
    if (end > atomic_load_explicit(&u->high, memory_order_relaxed)) {
        atomic_store_explicit(&u->high, end, memory_order_relaxed);
    }
}

/* ---- libucm ---- */

#ifdef HAWSER_HAVE_UCM

#include <ucm/api/ucm.h>
#include "ompi/mca/btl/base/btl_base_load.h"

static struct {
    __typeof__(ucm_set_event_handler) *set_event_handler;
    __typeof__(ucm_unset_event_handler) *unset_event_handler;
    __typeof__(ucm_test_events) *test_events;
} ucm;

static const mca_btl_load_entry_t table[] = {{"ucm_set_event_handler", offsetof(__typeof__(ucm), set_event_handler)},
                                             {"ucm_unset_event_handler", offsetof(__typeof__(ucm), unset_event_handler)},
                                             {"ucm_test_events", offsetof(__typeof__(ucm), test_events)}};

static void unmapped(ucm_event_type_t type, ucm_event_t *event, void *context)
{
    uintptr_t start = (uintptr_t) event->vm_unmapped.address;
    (void) type;
    common_verbs_unmap_note(context, start, start + event->vm_unmapped.size);
}

const char *common_verbs_unmap_follow(common_verbs_unmap_t *u)
{
    /* libucm needs libucs, which brings it. */
    const char *why = mca_btl_load("libucs.so.0", table, sizeof(table) / sizeof(table[0]), &ucm);
    u->low = UINTPTR_MAX;
    if (why) {
        return why;
    }
    if (ucm.set_event_handler(UCM_EVENT_VM_UNMAPPED, 0, unmapped, u) != UCS_OK) {
        return "libucm takes no handler";
    }
    u->follows = true;
    if (ucm.test_events(UCM_EVENT_VM_UNMAPPED) != UCS_OK) {
        common_verbs_unmap_end(u);
        return "libucm does not see what is unmapped";
    }
    return NULL;
}

void common_verbs_unmap_end(common_verbs_unmap_t *u)
{
    if (u->follows) {
        ucm.unset_event_handler(UCM_EVENT_VM_UNMAPPED, unmapped, u);
        u->follows = false;
    }
}

#else

const char *common_verbs_unmap_follow(common_verbs_unmap_t *u)
{
    u->low = UINTPTR_MAX;
    return "this build has no UCX";
}

void common_verbs_unmap_end(common_verbs_unmap_t *u)
{
    (void) u;
}

#endif
