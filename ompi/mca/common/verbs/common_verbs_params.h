/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Parameters that each BTL over libibverbs has, under its own name: which ports it uses, and how. */
#ifndef COMMON_VERBS_PARAMS_H
#define COMMON_VERBS_PARAMS_H

#include <stdint.h>
#include "ompi/mca/btl/base/btl_base_params.h"

typedef struct common_verbs_params {
    char *if_include, *if_exclude; /* devices or ports, "mlx5_0,mlx5_1:2", and blocks of RoCE addresses; may be NULL */
    int64_t gid_index;             /* -1: choose */
} common_verbs_params_t;

#define COMMON_VERBS_PARAM(owner, params, called, ...) \
    {{.framework = "btl", .component = owner, .name = #called, .scope = MCA_VAR_SCOPE_STARTUP, __VA_ARGS__}, \
     (params) + offsetof(common_verbs_params_t, called)}

/* Entries of the table of a component: its name, and where in its own structure these parameters are. */
#define COMMON_VERBS_PARAMS(owner, params) \
    COMMON_VERBS_PARAM(owner, params, if_include, .level = MCA_VAR_LEVEL_USER, .type = MCA_VAR_LIST, \
        .help = "Devices or ports to use, e.g. \"mlx5_0,mlx5_1:2\", and blocks that RoCE addresses must be in, e.g. " \
                "\"10.1.0.0/16\" (empty: net_include, or else all)"), \
    COMMON_VERBS_PARAM(owner, params, if_exclude, .level = MCA_VAR_LEVEL_USER, .type = MCA_VAR_LIST, \
        .help = "Devices, ports and blocks of RoCE addresses not to use (empty: net_exclude)"), \
    COMMON_VERBS_PARAM(owner, params, gid_index, .level = MCA_VAR_LEVEL_TUNER, .type = MCA_VAR_INT, .def.i = -1, .min = -1, \
        .max = 255, \
        .help = "Index of the address (GID) to use of a port (-1: RoCE v2 over IPv4 if there is one, else over IPv6)")

#endif
