/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The processor's caches. */
#ifndef OPAL_UTIL_CACHE_H
#define OPAL_UTIL_CACHE_H

#include <stddef.h>
#include "opal/include/opal/declspec.h"

/* Bytes of the largest cache that the processor has (of the first one, and as the system tells, which on a virtual machine may be more than its
 * share of one); 0: not known. The first call reads some small files of the system's. Any thread. */
OPAL_DECLSPEC size_t opal_cache_largest(void);

/* What such a file holds, "32768K": bytes; 0: nothing that makes sense. */
OPAL_DECLSPEC size_t opal_cache_parse(const char *text);

#endif
