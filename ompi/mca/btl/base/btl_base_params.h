/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A component's parameters as a table: what each is, and where in a structure its value goes. */
#ifndef OMPI_MCA_BTL_BASE_PARAMS_H
#define OMPI_MCA_BTL_BASE_PARAMS_H

#include <stddef.h>
#include "hawser/component.h"

typedef struct mca_btl_base_param {
    mca_base_var_desc_t desc;
    size_t at; /* bytes from the structure's start */
} mca_btl_base_param_t;

static inline int mca_btl_base_register(const mca_base_services_t *services, const mca_btl_base_param_t *table,
                                        size_t count, void *params)
{
    int rc = MCA_SUCCESS;
    for (size_t i = 0; rc == MCA_SUCCESS && i < count; i++) {
        rc = services->var_register(&table[i].desc, (char *) params + table[i].at);
    }
    return rc;
}

#endif
