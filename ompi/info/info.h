/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Info objects: ordered lists of (key, value) strings. Thread-safe. */
#ifndef OMPI_INFO_INFO_H
#define OMPI_INFO_INFO_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "ompi/include/ompi/handles.h"

#pragma GCC visibility push(default) /* components use these */

typedef struct ompi_info_entry {
    char *key, *value;
} ompi_info_entry_t;

struct ompi_info_t {
    ompi_handle_base_t base;
    bool read_only; /* MPI_INFO_ENV */
    pthread_mutex_t lock;
    size_t count, room;
    ompi_info_entry_t *entries; /* in the order in which the keys were first set */
};

extern ompi_info_t ompi_info_env;

/* NULL: out of memory. */
ompi_info_t *ompi_info_new(void);
ompi_info_t *ompi_info_copy(ompi_info_t *info);
void ompi_info_free(ompi_info_t *info);
void ompi_info_clear(ompi_info_t *info);
/* MPI_SUCCESS or MPI_ERR_NO_MEM. */
int ompi_info_put(ompi_info_t *info, const char *key, const char *value);
/* A copy of the value, to be freed; NULL: no such key (or out of memory). `info` may be NULL. */
char *ompi_info_value(ompi_info_t *info, const char *key);

/* "true" and "false" in any case, and non-zero numbers; `otherwise` for anything else or no such
 * key. */
bool ompi_info_bool(ompi_info_t *info, const char *key, bool otherwise);

/* What MPI_INFO_ENV says, once the process knows who it is. */
int ompi_info_init(void);
void ompi_info_finalize(void);

#pragma GCC visibility pop

#endif
