/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The cache of fragments' memory. */
#include "ompi/mca/pml/dr/pml_dr_frag.h"

struct dr_spare dr_spare = {.lock = PTHREAD_MUTEX_INITIALIZER};

void dr_frag_free_spares(void)
{
    while (dr_spare.first) {
        dr_frag_t *f = dr_spare.first;
        dr_spare.first = (dr_frag_t *) f->user;
        free(f);
    }
    dr_spare.count = 0;
}
