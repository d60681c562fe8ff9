/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attributes that the user caches on communicators, datatypes and windows. An object has a set,
 * NULL while it is empty, in the order in which attributes were set; they are copied in this order
 * and deleted in the reverse one. The user's callbacks are called without a lock held: they may
 * call MPI.
 */
#ifndef OMPI_ATTRIBUTE_ATTRIBUTE_H
#define OMPI_ATTRIBUTE_ATTRIBUTE_H

#include "ompi/include/ompi/handles.h"

#pragma GCC visibility push(default) /* components use these */

typedef struct ompi_attribute_set ompi_attribute_set_t;

/* `object` is the object whose set it is; its class decides which keys fit. All return MPI error
 * classes, or what a callback returned. */
int ompi_attribute_put(void *object, ompi_attribute_set_t **set, int keyval, void *value);
int ompi_attribute_get(void *object, ompi_attribute_set_t *const *set, int keyval, void **value,
                       int *flag);
int ompi_attribute_delete(void *object, ompi_attribute_set_t **set, int keyval);
/* For a new object `to`: those of `from` whose copy callbacks say so; after an error none. */
int ompi_attribute_copy_all(void *from, ompi_attribute_set_t *const *from_set, void *to,
                            ompi_attribute_set_t **to_set);
/* For an object that goes away. Stops at the first callback that fails; that attribute stays. */
int ompi_attribute_delete_all(void *object, ompi_attribute_set_t **set);
/* For an object with copies that was not made after all: whatever the callbacks return. */
void ompi_attribute_discard_all(void *object, ompi_attribute_set_t **set);
/* Without calling back. */
void ompi_attribute_drop_all(ompi_attribute_set_t **set);

int ompi_attribute_init(void);
/* Keys that the user did not free. */
void ompi_attribute_finalize(void);

#pragma GCC visibility pop

#endif
