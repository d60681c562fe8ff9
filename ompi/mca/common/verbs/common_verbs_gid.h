/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Which of a port's addresses (GIDs) is used, and which subnet that is in. For common_verbs_open(). */
#ifndef COMMON_VERBS_GID_H
#define COMMON_VERBS_GID_H

#include "ompi/mca/common/verbs/common_verbs.h"

/* What the user wants of addresses: the blocks in the component's own lists, or else net_include and net_exclude.
 * MCA_ERR_BAD_PARAM: it can't be read, which has been reported. */
int common_verbs_gids_begin(common_verbs_gids_t *gids, const mca_btl_services_t *services, const char *component,
                            const common_verbs_params_t *wanted);
void common_verbs_gids_end(common_verbs_gids_t *gids);
/* `index` -1: choose. NULL, with the port's address filled in, or why it has none (a static clause). */
const char *common_verbs_gid_choose(const common_verbs_gids_t *gids, common_verbs_port_t *port, int index);

/* The index of the port's address now; -1: it has gone. */
int common_verbs_gid_find(const common_verbs_port_t *port);

#endif
