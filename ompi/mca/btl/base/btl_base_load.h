/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A library that a component loads only when it has use for it, as a table of functions: a process without the hardware
 * doesn't carry the library. The library is never unloaded: it may have threads and handlers. */
#ifndef OMPI_MCA_BTL_BASE_LOAD_H
#define OMPI_MCA_BTL_BASE_LOAD_H

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* Where a function's address goes: bytes from the table's start. */
typedef struct mca_btl_load_entry {
    const char *name;
    size_t at;
} mca_btl_load_entry_t;

/* Fills the table. NULL, or why that can't be: the linker's words, valid until its next call. */
static inline const char *mca_btl_load(const char *name, const mca_btl_load_entry_t *entries, size_t count, void *table)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        return dlerror();
    }
    for (size_t i = 0; i < count; i++) {
        void *function = dlsym(library, entries[i].name);
        if (!function) {
            return dlerror();
        }
        memcpy((char *) table + entries[i].at, &function, sizeof(function));
    }
    return NULL;
}

#endif
