/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What plm's source files share. */
#ifndef ORTE_MCA_PLM_BASE_BASE_H
#define ORTE_MCA_PLM_BASE_BASE_H

#include "orte/mca/plm/plm.h"

int orte_plm_base_register_agent_params(void);

#endif
