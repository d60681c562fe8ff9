/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which of the process's memory is being unmapped, so that no registration outlives its mapping. UCX's libucm sees every
 * way in which the C library gives memory back (munmap, mremap, brk, madvise, shmdt, a mapping over another), and tells
 * before it happens, in the thread that does it. That thread may hold locks of the allocator: it only notes the range,
 * takes no memory, and waits for nobody. Whoever is about to use a registration takes the notes first.
 *
 * Memory that is unmapped by system calls that do not go through the C library is not noticed.
 */
#ifndef COMMON_VERBS_UNMAP_H
#define COMMON_VERBS_UNMAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { COMMON_VERBS_UNMAP_NOTES = 64 }; /* beyond that, notes become one */

typedef struct common_verbs_range {
    uintptr_t start, end;
} common_verbs_range_t;

/* All zero: nothing is followed yet. Its address stays the same while it follows. */
typedef struct common_verbs_unmap {
    bool follows;
    _Atomic bool some;            /* there are notes */
    _Atomic bool everything;      /* some could not be made */
    atomic_flag busy;             /* the notes are being written or taken */
    unsigned count;
    common_verbs_range_t note[COMMON_VERBS_UNMAP_NOTES];
    _Atomic uintptr_t low, high;  /* what is of interest */
} common_verbs_unmap_t;

/* NULL, or why nothing can be followed. */
const char *common_verbs_unmap_follow(common_verbs_unmap_t *unmap);
void common_verbs_unmap_end(common_verbs_unmap_t *unmap);
/* From now on this range is of interest, too. */
void common_verbs_unmap_watch(common_verbs_unmap_t *unmap, uintptr_t start, uintptr_t end);
/* It is about to be unmapped; any thread. */
void common_verbs_unmap_note(common_verbs_unmap_t *unmap, uintptr_t start, uintptr_t end);
/* The notes since the last call. */
unsigned common_verbs_unmap_take(common_verbs_unmap_t *unmap, common_verbs_range_t out[COMMON_VERBS_UNMAP_NOTES]);

static inline bool common_verbs_unmap_has(common_verbs_unmap_t *unmap)
{
    return atomic_load_explicit(&unmap->some, memory_order_acquire);
}

#endif
