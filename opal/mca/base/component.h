/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Where component objects lie, and loading one. Private to opal/mca/base. */
#ifndef OPAL_MCA_BASE_COMPONENT_H
#define OPAL_MCA_BASE_COMPONENT_H

#include "opal/mca/base/framework.h"

/* A loadable object found in one of the folders. */
typedef struct mca_base_object {
    char *framework, *name, *path;
} mca_base_object_t;

/* The objects of all frameworks, sorted by framework and name, the first of each name only. The
 * folders are read once per process, at the first call. */
int mca_base_objects(const mca_base_object_t **objects, size_t *count);
void mca_base_objects_free(void);

/* Check what a component says about itself; NULL, or why it can't be used (to be freed). */
char *mca_base_component_refusal(const mca_base_framework_t *framework, const char *name,
                                 const mca_base_component_t *component);

/* Load and check an object. On failure *reason is why (to be freed), and the result is NULL;
 * *misbuilt then tells an object that is not meant for this installation from one that this machine
 * can't load. */
mca_base_component_item_t *mca_base_component_load(const mca_base_framework_t *framework,
                                                   const mca_base_object_t *object, char **reason,
                                                   bool *misbuilt);
/* Unload, and free the item, which is in no list. */
void mca_base_component_unload(mca_base_component_item_t *item);

/* A copy of a printf result; never NULL but when memory is out. */
char *mca_base_reason(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
