/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Attribute keys. The callbacks of all three classes of objects have one shape but for the type of
 * the handle, which is a pointer in the ABI. */
#ifndef OMPI_ATTRIBUTE_KEYVAL_H
#define OMPI_ATTRIBUTE_KEYVAL_H

#include "ompi/include/ompi/handles.h"

typedef int (*ompi_copy_attr_fn_t)(void *old, int keyval, void *extra_state, void *value_in,
                                   void *value_out, int *flag);
typedef int (*ompi_delete_attr_fn_t)(void *object, int keyval, void *value, void *extra_state);

/* MPI_COMM_DUP_FN and its siblings; the null functions are null pointers. */
#define OMPI_ATTRIBUTE_DUP_FN ((ompi_copy_attr_fn_t) MPI_COMM_DUP_FN)

int ompi_keyval_create(uint32_t object_kind, ompi_copy_attr_fn_t copy, ompi_delete_attr_fn_t delete,
                       void *extra_state, int *number);
int ompi_keyval_free(uint32_t object_kind, int number);

#endif
