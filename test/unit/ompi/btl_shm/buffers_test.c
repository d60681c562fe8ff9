/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Memory of kept arrivals: it is used again, within bounds, and goes when it is told to. */
#include "ompi/mca/btl/shm/shm.h"

#include "support/tap.h"

enum { COUNT = 300 };

static const mca_btl_services_t services;
static shm_module_t module = {.services = &services};

static void reused(void)
{
    static const size_t lens[] = {0, 1, 100, 2048, 4096, 5000, 65536, 65537, 4 << 20, 5 << 20};
    bool aligned = true, again = true;
    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        unsigned char *first = mca_btl_shm_buffer_get(&module, lens[i]);
        TAP_REQUIRE(first != NULL, "%zu bytes", lens[i]);
        memset(first, 1, lens[i]);
        aligned = aligned && (uintptr_t)first % SHM_LINE == 0;
        mca_btl_shm_buffer_put(&module, first);
        bool spare = lens[i] >= 2048 && lens[i] <= 4 << 20;
        if (spare) {
            unsigned char *second = mca_btl_shm_buffer_get(&module, lens[i]);
            memset(second, 2, lens[i]);
            again = again && second == first;
            mca_btl_shm_buffer_put(&module, second);
        }
        again = again && (module.spare_bytes > 0) == (i >= 3);
    }
    TAP_OK(aligned, "all begin with a cache line");
    TAP_OK(again, "those of some KiB to 4 MiB are used again");
}

static void bounded(void)
{
    static void *held[COUNT];
    for (int i = 0; i < COUNT; i++) {
        held[i] = mca_btl_shm_buffer_get(&module, 100000);
    }
    for (int i = 0; i < COUNT; i++) {
        mca_btl_shm_buffer_put(&module, held[i]);
    }
    TAP_OK(module.spare_bytes <= 8 << 20, "no more than 8 MiB are kept for later");
    mca_btl_shm_buffers_release(&module);
    bool empty = module.spare_bytes == 0;
    for (int i = 0; i < SHM_BUFFER_CLASSES; i++) {
        empty = empty && !module.spare[i];
    }
    TAP_OK(empty, "nothing is kept after release");
    mca_btl_shm_buffer_put(&module, NULL);
    TAP_OK(module.spare_bytes == 0, "nothing can be given back");
}

int main(void)
{
    tap_start(60);
    mca_btl_shm_params.spare = 8 << 20;
    reused();
    bounded();
    return tap_end();
}
