/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Lists of components: "a,b,c" (only these, in this order) or "^a,b" (all but these). Private to
 * opal/mca/base. */
#ifndef OPAL_MCA_BASE_SELECTION_H
#define OPAL_MCA_BASE_SELECTION_H

#include <stdbool.h>
#include <stddef.h>

typedef struct mca_base_selection {
    bool include;   /* only those in `names`; else: all but those */
    size_t count;
    char **names;   /* without repetitions */
} mca_base_selection_t;

/* Take a list apart; NULL and "" exclude nothing. OPAL_SUCCESS, OPAL_ERR_OUT_OF_RESOURCE, or
 * OPAL_ERR_BAD_PARAM with an English clause in *wrong (static). */
int mca_base_selection_parse(const char *text, mca_base_selection_t *selection, const char **wrong);
void mca_base_selection_free(mca_base_selection_t *selection);

bool mca_base_selection_has(const mca_base_selection_t *selection, const char *name);

/* May this component be used? */
static inline bool mca_base_selection_allows(const mca_base_selection_t *selection,
                                             const char *name)
{
    return mca_base_selection_has(selection, name) == selection->include;
}

#endif
