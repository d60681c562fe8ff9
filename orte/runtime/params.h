/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The parameters of the runtime. */
#ifndef ORTE_RUNTIME_PARAMS_H
#define ORTE_RUNTIME_PARAMS_H

#include "opal/constants.h"

/* Register all of them, those of installed components included. Returns an OPAL_ code. */
ORTE_DECLSPEC int orte_register_params(void);

#endif
