/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Loading UCX. See btl_uct_ucx.h. */
#include "ompi/mca/btl/uct/btl_uct_ucx.h"

#include <stddef.h>

#include "ompi/mca/btl/base/btl_base_load.h"

btl_uct_ucx_t btl_uct_ucx;

static const mca_btl_load_entry_t table[] = {
#define ENTRY(name) {#name, offsetof(btl_uct_ucx_t, name)},
    BTL_UCT_UCX_FUNCTIONS(ENTRY)
#undef ENTRY
};

const char *btl_uct_ucx_load(void)
{
    /* libucs is found through it. */
    return mca_btl_load("libuct.so.0", table, sizeof(table) / sizeof(table[0]), &btl_uct_ucx);
}
