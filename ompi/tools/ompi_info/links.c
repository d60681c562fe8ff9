/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The links of this host, as a process finds them that starts MPI with the present settings. */
#include <inttypes.h>
#include <stdio.h>

#include "ompi/mca/btl/base/btl_base.h"
#include "ompi/runtime/rte.h"
#include "ompi/tools/ompi_info/ompi_info.h"
#include "opal/runtime/progress.h"

static void print_used(const info_options_t *options, const mca_btl_module_t *m)
{
    const mca_btl_limits_t *l = &m->limits;
    info_line(options, "Link", "link:used", "%s (%" PRIu64 " MB/s, %.1f us, fragments of up to %zu bytes, exclusivity %d)",
              m->name, l->bandwidth / 1000000, l->latency_ns / 1e3, l->max_frag, (int) l->exclusivity);
}

static void print_rejected(const info_options_t *options)
{
    size_t count;
    const mca_btl_base_rejection_t *r = mca_btl_base_rejections(&count);
    for (size_t i = 0; i < count; i++) {
        info_line(options, "Not used", "link:unused", "%s: %s", r[i].link, r[i].why);
    }
}

bool info_print_links(const info_options_t *options)
{
    mca_btl_base_modules_t modules = {.count = 0};
    if (OPAL_SUCCESS != ompi_rte_init()) {
        return false; /* it has said why */
    }
    bool ok = OPAL_SUCCESS == opal_progress_init(false, false) &&
              OPAL_SUCCESS == mca_btl_base_open("", false, false, &modules);
    for (size_t i = 0; i < modules.count; i++) {
        print_used(options, modules.modules[i]);
    }
    print_rejected(options);
    mca_btl_base_close();
    opal_progress_finalize();
    ompi_rte_finalize();
    return ok;
}
