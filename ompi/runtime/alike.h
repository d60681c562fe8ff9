/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * What must be the same in two processes that talk to each other: the version, which components of coll are open, and their
 * parameters, by which each process chooses algorithms for itself. Where they differ, messages are sent that nobody receives.
 *
 * As text, a line for each: "version=0.1", "coll=basic,nbc,shm" (by name), and "coll_nbc_window=64" for each parameter of these
 * components that is not at its default and has the scope STARTUP. It travels in the business card.
 */
#ifndef OMPI_RUNTIME_ALIKE_H
#define OMPI_RUNTIME_ALIKE_H

#include <stddef.h>

/* This process's, to be freed; NULL: out of memory. Once coll is open. */
char *ompi_alike_text(void);
/* In what `theirs`, which need not end with a zero byte, differs from `ours`, and what to do: a clause for the user, to be freed.
 * NULL: in nothing. */
char *ompi_alike_difference(const char *ours, const char *theirs, size_t len);

#endif
