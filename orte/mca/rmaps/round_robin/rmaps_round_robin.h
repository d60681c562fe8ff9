/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The rmaps component round_robin. */
#ifndef ORTE_MCA_RMAPS_ROUND_ROBIN_H
#define ORTE_MCA_RMAPS_ROUND_ROBIN_H

#include "opal/declspec.h"
#include "orte/mca/rmaps/rmaps.h"

ORTE_DECLSPEC extern const orte_rmaps_module_t orte_rmaps_round_robin;

#endif
