/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages longer than the caches are good for. What is written into their receive's memory has left the caches before the program comes to read
 * it, and takes with it what else is there; besides each line is fetched from memory before it is overwritten. So it is written
 * past the caches (OPAL_COPY_AWAY).
 */
#ifndef MCA_PML_BASE_PAST_H
#define MCA_PML_BASE_PAST_H

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(default)
/* For shorter messages that is no question; bytes. */
extern size_t mca_pml_base_past_least;

int mca_pml_base_past_register(void);
/* A message of that length, or longer: is it? Any thread. */
bool mca_pml_base_is_past(size_t bytes);
#pragma GCC visibility pop

#endif
