/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Parameters that each BTL over libibverbs has, under its own name: which ports it uses, and how. */
#ifndef COMMON_VERBS_PARAMS_H
#define COMMON_VERBS_PARAMS_H

#include <stdint.h>
#include "ompi/mca/btl/base/btl_base_params.h"

typedef struct common_verbs_params {
    char *if_include, *if_exclude; /* devices or ports, "mlx5_0,mlx5_1:2", and blocks of RoCE addresses; may be NULL */
    int64_t gid_index;             /* -1: choose */
    int64_t pkey;                  /* 0: the first one of a port */
    int64_t service_level, traffic_class;
} common_verbs_params_t;

/* What Open MPI calls one of them, or did. */
#define COMMON_VERBS_ALSO(owner, name) ((const char *const[]){"btl_" owner "_" name, NULL})

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
        .help = "Index of the address (GID) to use of a port (-1: RoCE v2 over IPv4 if there is one, else over IPv6)"), \
    COMMON_VERBS_PARAM(owner, params, pkey, .level = MCA_VAR_LEVEL_USER, .type = MCA_VAR_INT, .min = 0, .max = 0xffff, \
        .synonyms = COMMON_VERBS_ALSO(owner, "ib_pkey_val"), \
        .help = "Key of the InfiniBand partition to use, e.g. 0x8003 or, without the bit of full membership, 0x3; ports that are not " \
                "in it are not used (0: the first partition of each port)"), \
    COMMON_VERBS_PARAM(owner, params, service_level, .level = MCA_VAR_LEVEL_USER, .type = MCA_VAR_INT, .min = 0, .max = 15, \
        .synonyms = COMMON_VERBS_ALSO(owner, "ib_service_level"), \
        .help = "Service level (SL) of all that is sent, on RoCE its priority, 0 to 7; all processes alike"), \
    COMMON_VERBS_PARAM(owner, params, traffic_class, .level = MCA_VAR_LEVEL_USER, .type = MCA_VAR_INT, .min = 0, .max = 255, \
        .help = "Traffic class of all that is sent over RoCE, or into another InfiniBand subnet: of RoCE v2 the IP header's, i.e. " \
                "4 times the DSCP; all processes alike")

#endif
