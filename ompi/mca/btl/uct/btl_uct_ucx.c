/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Loading UCX. See btl_uct_ucx.h. */
#include "ompi/mca/btl/uct/btl_uct_ucx.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

btl_uct_ucx_t btl_uct_ucx;

/* Where a function's address goes. */
typedef struct entry {
    const char *name;
    size_t at;
} entry_t;

static const entry_t table[] = {
#define ENTRY(name) {#name, offsetof(btl_uct_ucx_t, name)},
    BTL_UCT_UCX_FUNCTIONS(ENTRY)
#undef ENTRY
};

const char *btl_uct_ucx_load(void)
{
    /* libucs is found through it. Never unloaded: it has a thread and handlers. */
    void *library = dlopen("libuct.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        return dlerror();
    }
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        void *function = dlsym(library, table[i].name);
        if (!function) {
            return dlerror();
        }
        memcpy((char *) &btl_uct_ucx + table[i].at, &function, sizeof(function));
    }
    return NULL;
}
