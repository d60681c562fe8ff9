/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launcher's name service: data that processes of one launcher leave for each other under
 * names, by PMIx publish, look-up and unpublish. Thread-safe. All calls wait for the launcher's
 * answer and drive progress meanwhile. A process that nobody started has no such service.
 *
 * Return codes: OPAL_SUCCESS; OPAL_ERR_EXISTS and OPAL_ERR_NOT_FOUND as said below;
 * OPAL_ERR_NOT_SUPPORTED: the launcher has no name service; OPAL_ERR_BAD_PARAM: the name is longer
 * than PMIx allows (511 characters); OPAL_ERR_OUT_OF_RESOURCE; OPAL_ERROR: PMIx says something
 * else, ompi_names_why() tells what. Nothing is reported to the user.
 */
#ifndef OMPI_RUNTIME_NAMES_H
#define OMPI_RUNTIME_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* OPAL_ERR_EXISTS: somebody has published under this name. */
int ompi_names_publish(const char *name, const void *data, size_t len);

/* Look-ups of names that nobody has published yet (deadline_ns; else: of opal_now_ns()). */
enum { OMPI_NAMES_DONT_WAIT = 0 };
#define OMPI_NAMES_FOREVER UINT64_MAX

/* *data: a copy, to be freed, with a zero behind it. OPAL_ERR_NOT_FOUND: not there, and not to be
 * waited for; OPAL_ERR_TIMEOUT: not there until the deadline. */
int ompi_names_lookup(const char *name, uint64_t deadline_ns, char **data, size_t *len);

/* By the process that has published it alone; OPAL_ERR_NOT_FOUND. */
int ompi_names_unpublish(const char *name);

/* PMIx's words for the last OPAL_ERROR of this thread. */
const char *ompi_names_why(void);

/* Frees look-ups whose answer never came; after PMIx has been finalized. */
void ompi_names_finalize(void);

#endif
