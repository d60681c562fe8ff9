/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Values of parameters: from text, to text, into the storage. Private to the parameter system. */
#ifndef OPAL_MCA_BASE_VAR_VALUE_H
#define OPAL_MCA_BASE_VAR_VALUE_H

#include "opal/mca/base/var.h"

/* A clause that completes "the value ... " when it does not parse. */
enum { MCA_BASE_VAR_WHY_MAX = 512 };

/* Parse text as desc's type and check its limits: OPAL_SUCCESS, OPAL_ERR_OUT_OF_RESOURCE, or
 * OPAL_ERR_BAD_PARAM with the reason in `why`. A string in *value is to be freed. */
int mca_base_var_value_parse(const mca_base_var_desc_t *desc, const char *text,
                             mca_base_var_value_t *value,
                             char why[MCA_BASE_VAR_WHY_MAX]);

int mca_base_var_value_default(const mca_base_var_desc_t *desc, mca_base_var_value_t *value);

/* To be freed; NULL: out of memory. */
char *mca_base_var_value_format(const mca_base_var_desc_t *desc, const mca_base_var_value_t *value);

/* Between values and typed memory; strings are not copied. */
void mca_base_var_value_store(mca_base_var_type_t type, const mca_base_var_value_t *value,
                              void *storage);
void mca_base_var_value_load(mca_base_var_type_t type, const void *storage,
                             mca_base_var_value_t *value);

static inline bool mca_base_var_type_is_string(mca_base_var_type_t type)
{
    return MCA_VAR_STRING == type || MCA_VAR_LIST == type;
}

#endif
