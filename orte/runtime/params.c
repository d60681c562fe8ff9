/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The parameters of the runtime, for its tools and for those that look at all of an
 * installation's parameters (opal/mca/base/framework.h: mca_base_register_installed()). */
#include "orte/runtime/params.h"

#include "orte/mca/errmgr/errmgr.h"
#include "orte/mca/iof/iof.h"
#include "orte/mca/odls/odls.h"
#include "orte/mca/plm/plm.h"
#include "orte/mca/ras/ras.h"
#include "orte/mca/rmaps/rmaps.h"
#include "orte/mca/schizo/schizo.h"
#include "orte/oob/oob.h"

int orte_register_params(void)
{
    int rc = orte_odls_register_params();

    if (rc == OPAL_SUCCESS) {
        rc = orte_errmgr_register_params();
    }
    if (rc == OPAL_SUCCESS) {
        rc = orte_iof_register_params();
    }
    if (rc == OPAL_SUCCESS) {
        rc = orte_schizo_register_params();
    }
    if (rc == OPAL_SUCCESS) {
        rc = orte_oob_register_params();
    }
    if (rc == OPAL_SUCCESS) {
        rc = orte_plm_register_params();
    }
    if (rc == OPAL_SUCCESS) {
        rc = orte_ras_register_params();
    }
    return rc == OPAL_SUCCESS ? orte_rmaps_register_params() : rc;
}
