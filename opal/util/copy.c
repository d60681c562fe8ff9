/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Which copies the processor is quick at. */
#include "opal/util/copy.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

bool opal_copy_has_rep;

/* Fast short REP MOVSB (Intel SDM, CPUID leaf 7, EDX bit 4; AMD APM volume 3 the same). */
void opal_copy_init(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    opal_copy_has_rep = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & 1u << 4) != 0;
#endif
}
