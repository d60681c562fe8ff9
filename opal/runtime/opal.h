/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Start and end of the portable base. Calls are counted; the last finalize frees everything. */
#ifndef OPAL_RUNTIME_OPAL_H
#define OPAL_RUNTIME_OPAL_H

#include "opal/constants.h"

/* Installation directories, parameters, message output. Not the progress engine. */
OPAL_DECLSPEC int opal_init(void);
OPAL_DECLSPEC void opal_finalize(void);

#endif
