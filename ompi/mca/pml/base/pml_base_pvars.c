/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Performance variables of the engine: what was handed to each link, one value per BTL module. */
#include "ompi/mca/btl/base/btl_base.h"
#include "ompi/mca/pml/base/pml_base_peer.h"
#include "ompi/runtime/pvar.h"

static const mca_btl_base_modules_t *links;

static size_t count_links(void *context)
{
    (void) context;
    return links->count;
}

static const char *link_name(void *context, size_t i)
{
    (void) context;
    return links->modules[i]->name;
}

static void read_messages(void *context, void *values, size_t count)
{
    (void) context;
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes;
        mca_pml_base_link_totals(links->modules[i], (uint64_t *) values + i, &bytes);
    }
}

static void read_bytes(void *context, void *values, size_t count)
{
    (void) context;
    for (size_t i = 0; i < count; i++) {
        uint64_t messages;
        mca_pml_base_link_totals(links->modules[i], &messages, (uint64_t *) values + i);
    }
}

int mca_pml_base_pvars_open(const mca_btl_base_modules_t *btls)
{
    const ompi_pvar_desc_t messages = {
        .framework = "pml", .component = "base", .name = "link_messages",
        .help = "Fragments handed to each link, and fetches over it", .level = MCA_VAR_LEVEL_USER,
        .var_class = MPI_T_PVAR_CLASS_COUNTER, .count = count_links, .value_name = link_name,
        .read = read_messages,
    };
    const ompi_pvar_desc_t bytes = {
        .framework = "pml", .component = "base", .name = "link_bytes",
        .help = "Bytes handed to each link or fetched over it, headers included",
        .level = MCA_VAR_LEVEL_USER,
        .var_class = MPI_T_PVAR_CLASS_COUNTER, .count = count_links, .value_name = link_name,
        .read = read_bytes,
    };
    links = btls;
    const int rc = ompi_pvar_register(&messages);
    return rc == OPAL_SUCCESS ? ompi_pvar_register(&bytes) : rc;
}

void mca_pml_base_pvars_close(void)
{
    ompi_pvar_unregister("pml", "base");
}
