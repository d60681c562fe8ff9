/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The rmaps component ppr. */
#ifndef ORTE_MCA_RMAPS_PPR_H
#define ORTE_MCA_RMAPS_PPR_H

#include "opal/declspec.h"
#include "orte/mca/rmaps/rmaps.h"

ORTE_DECLSPEC extern const orte_rmaps_module_t orte_rmaps_ppr;

#endif
