/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The BTL framework: opens the components, gives them their services, keeps the modules, and composes the
 * process's business card from what they publish.
 *
 * The card, published under the PMIx key "hawser.card": magic, version, name of the PML, then per component
 * {u8 name length, name, u32 length, bytes}. Little-endian. The part without a name is what must be alike in all processes
 * (ompi/runtime/alike.h).
 */
#ifndef MCA_BTL_BASE_H
#define MCA_BTL_BASE_H

#include <stddef.h>
#include "hawser/btl.h"
#include "opal/mca/base/framework.h"

#pragma GCC visibility push(default)

extern mca_base_framework_t mca_btl_base_framework;

typedef struct mca_btl_base_modules {
    mca_btl_module_t **modules;
    size_t count;
    mca_btl_module_t *lanes[MCA_BTL_LANES_MAX + 1]; /* by their number, those of the first component that has some; NULL: none */
    uint32_t lane_max;                              /* the highest number */
} mca_btl_base_modules_t;

/* Which lane a module is; 0: none. */
static inline uint32_t mca_btl_base_lane(const mca_btl_module_t *module)
{
    return module->struct_size > offsetof(mca_btl_module_t, lane) ? module->lane : 0;
}

/* Open the components (selection parameter "btl"), call their init. The modules stay this framework's. `pml` goes into the
 * card. `threads`: several threads may call. `lanes`: modules that are lanes are wanted, too. Reports why if no module is left. */
int mca_btl_base_open(const char *pml, bool threads, bool lanes, mca_btl_base_modules_t *modules);
/* Finalize all modules and close the components. */
void mca_btl_base_close(void);

/* Links that were found and not used, and why. */
typedef struct mca_btl_base_rejection {
    char link[32], why[160];
} mca_btl_base_rejection_t;

const mca_btl_base_rejection_t *mca_btl_base_rejections(size_t *count);

/* The process's own card; valid until something is added to it, or close. */
const void *mca_btl_base_card(size_t *len);
/* Add to it what is no component's, under a name that none can have. */
int mca_btl_base_card_common(const void *data, size_t len);

#define MCA_BTL_BASE_CARD_KEY "hawser.card"
#define MCA_BTL_BASE_CARD_COMMON ""

/* A card from elsewhere: OPAL_ERR_PARSE if it is damaged. *pml points to `pml_len` characters inside the card. */
int mca_btl_base_card_check(const void *card, size_t len, const char **pml, size_t *pml_len);
/* A component's part of a checked card; NULL: it published nothing. */
const void *mca_btl_base_card_find(const void *card, size_t len, const char *component, size_t *part_len);

#pragma GCC visibility pop

#endif
