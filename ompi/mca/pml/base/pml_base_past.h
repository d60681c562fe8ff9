/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages longer than the caches are good for. What is written into their receive's memory has left the caches before the program comes to read
 * it, and takes with it what else is there; besides each line is fetched from memory before it is overwritten. So it is written
 * past the caches (OPAL_COPY_AWAY).
 *
 * From which length on depends on who else uses a cache: other processes, and other virtual machines, of whom the system tells nothing.
 * So between a length that the caches surely hold and one that they can't it is measured, apart for each power of two: of a receive's memory
 * a sixteenth is always written past the caches and a sixteenth never, by its address, so that each finds its lines where it
 * has left them. What costs less is done with the rest.
 */
#ifndef MCA_PML_BASE_PAST_H
#define MCA_PML_BASE_PAST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opal/util/copy.h"

#pragma GCC visibility push(default)
/* For shorter messages that is no question; bytes. */
extern size_t mca_pml_base_past_least;

int mca_pml_base_past_register(void);

/* A message of that length, or longer, that is copied in one piece: is it? Any thread. */
bool mca_pml_base_is_past(size_t bytes);

/* What the two ways cost, ns for 64 KiB, mean of the last ones (0: not known), and which is better. Several threads may note costs
 * at once: one of them may get lost. */
typedef struct mca_pml_past_choice_t {
    _Atomic uint32_t cost[2], noted[2]; /* [1]: past the caches */
    _Atomic uint32_t pieces;            /* of such messages so far */
    _Atomic bool past;
} mca_pml_past_choice_t;

/* Does the next piece, to this address, go past the caches? `timed`: what it costs is to be noted. */
bool mca_pml_base_past_choose(mca_pml_past_choice_t *choice, const void *to, bool *timed);
void mca_pml_base_past_note(mca_pml_past_choice_t *choice, bool past, uint64_t ns, size_t bytes);

/* One copy of a piece. */
typedef struct mca_pml_past_copy_t {
    opal_copy_how_t how;
    mca_pml_past_choice_t *timed; /* not NULL: its time is wanted */
    uint64_t began;               /* ns */
} mca_pml_past_copy_t;

/* A piece of `len` bytes of a message of mca_pml_base_past_least bytes or more goes to this address: how, if it would otherwise go like `how`?
 * Once it is there, mca_pml_base_past_end() follows if it is timed. Any thread. */
mca_pml_past_copy_t mca_pml_base_past_begin(size_t message, const void *to, size_t len, opal_copy_how_t how);
void mca_pml_base_past_end(const mca_pml_past_copy_t *copy, size_t len);
#pragma GCC visibility pop

#endif
