/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Start and end of the portable base. Calls are counted; the last finalize frees everything. */
#ifndef OPAL_RUNTIME_OPAL_H
#define OPAL_RUNTIME_OPAL_H

#include "opal/constants.h"

/* Installation directories, parameters, message output. Not the progress engine. What went wrong
 * has been reported. */
OPAL_DECLSPEC int opal_init(void);
OPAL_DECLSPEC void opal_finalize(void);

/* Parameters net_include and net_exclude: names of interfaces and CIDR blocks, separated by commas;
 * NULL: not set. They hold for whatever uses the network and has no parameter of its own set. Valid
 * between opal_init() and opal_finalize(). */
OPAL_DECLSPEC extern char *opal_net_include, *opal_net_exclude;

#endif
