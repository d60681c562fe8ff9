/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Every second of a row of 8-byte elements, as the real parts of complex numbers are, by vectors where the processor has them. */
#ifndef OPAL_DATATYPE_COPY_SECOND_H
#define OPAL_DATATYPE_COPY_SECOND_H

#include <stddef.h>
#include <stdint.h>

/* Of `n` elements, 16 bytes apart at `src` and neighbours at `dst`, the first ones are copied; how many, less than n if n > 0. What lies between
 * two of the n is read, and not used. */
size_t opal_copy_gather_second(uintptr_t dst, uintptr_t src, size_t n);

/* The other way: from neighbours to places 16 bytes apart. What lies between those is not touched. */
size_t opal_copy_scatter_second(uintptr_t dst, uintptr_t src, size_t n);

#endif
