/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What files and the environment say about parameters, whoever registers them later. Private to the
 * parameter system. */
#ifndef OPAL_MCA_BASE_VAR_SOURCE_H
#define OPAL_MCA_BASE_VAR_SOURCE_H

#include "opal/mca/base/var.h"

/* The strongest setting of one name. */
typedef struct mca_base_var_setting {
    char *name;
    char *value;
    char *source_text;
    mca_base_var_source_t source;
    bool optional;              /* written ?name: nobody need know it */
} mca_base_var_setting_t;

typedef enum { MCA_BASE_CHECK_ERROR, MCA_BASE_CHECK_WARN, MCA_BASE_CHECK_IGNORE } mca_base_check_t;

/* Read everything. Errors in files are reported; OPAL_ERR_PARSE if there were any and strictness is
 * "error". */
int mca_base_var_source_read(void);
void mca_base_var_source_free(void);

/* The strongest setting of exactly this name; NULL if there is none. Valid until free. */
const mca_base_var_setting_t *mca_base_var_source_find(const char *name);

/* Settings in no particular order. */
size_t mca_base_var_source_count(void);
const mca_base_var_setting_t *mca_base_var_source_get(size_t index);

/* The strictness that the sources ask for. */
mca_base_check_t mca_base_var_source_strictness(void);

/* mca_base_param_files, "~" expanded: the site and the user file by default. */
const char *mca_base_var_source_files(void);

extern const mca_base_var_enum_t mca_base_check_names[];

/* Has a registration met a value that does not parse, where that is an error? */
bool mca_base_var_met_bad_value(void);

#endif
