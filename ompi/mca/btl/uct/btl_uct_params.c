/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The component's parameters. */
#include "ompi/mca/btl/uct/btl_uct.h"
#include "ompi/mca/btl/base/btl_base_params.h"

#define COMMON .framework = "btl", .component = "uct", .scope = MCA_VAR_SCOPE_STARTUP
#define AT(field) offsetof(btl_uct_params_t, field)

static const mca_base_var_enum_t when[] = {
    {"auto", BTL_UCT_AUTO}, {"always", BTL_UCT_ALWAYS}, {"never", BTL_UCT_NEVER}, {NULL, 0}};

static const mca_btl_base_param_t table[] = {
    {{COMMON, .level = MCA_VAR_LEVEL_USER, .name = "transports", .type = MCA_VAR_LIST,
      .help = "UCT transports to use as links, each with an optional device, e.g. \"rc_verbs,tcp/eth0\"; after ^ those "
              "not to use (empty: all that carry messages and say when a peer has failed). One that moves memory alone, like cma, "
              "does so for posix and sysv, if they are used"},
     AT(transports)},
    {{COMMON, .level = MCA_VAR_LEVEL_TUNER, .name = "max_frag", .type = MCA_VAR_SIZE, .unit = "bytes",
      .def.size = BTL_UCT_FRAG_MAX, .min = 512, .max = BTL_UCT_FRAG_MAX,
      .help = "Largest fragment, if the transport takes one so long"},
     AT(max_frag)},
    {{COMMON, .level = MCA_VAR_LEVEL_TUNER, .name = "window", .type = MCA_VAR_SIZE, .unit = "bytes",
      .def.size = 1 << 20, .min = 16 << 10, .max = 1 << 30,
      .help = "Bytes kept for one peer until it has confirmed them"},
     AT(window)},
    {{COMMON, .level = MCA_VAR_LEVEL_TUNER, .name = "get_min", .type = MCA_VAR_SIZE, .unit = "bytes",
      .def.size = 32 << 10, .min = 1, .max = UINT64_MAX,
      .help = "Messages from this size on are read out of the sender's memory by the receiver, where the transport can (with "
              "shared memory: where that turns out to be faster)"},
     AT(get_min)},
    {{COMMON, .level = MCA_VAR_LEVEL_TUNER, .name = "trust_reads", .type = MCA_VAR_ENUM, .enums = when,
      .def.i = BTL_UCT_AUTO,
      .help = "They are where nobody checks them, too (pml teg, or dr without checksums), and not sent; auto: unless the adapter "
              "is a program (Soft-RoCE can report as done what it has not read)"},
     AT(trust_reads)},
    {{COMMON, .level = MCA_VAR_LEVEL_TUNER, .name = "bandwidth", .type = MCA_VAR_SIZE, .unit = "bytes/s",
      .def.size = 0, .max = INT64_MAX, .help = "Assumed of every link (0: what UCX says)"},
     AT(bandwidth)},
    {{COMMON, .level = MCA_VAR_LEVEL_TUNER, .name = "retry_first", .type = MCA_VAR_INT, .unit = "ms", .def.i = 100,
      .min = 1, .max = 1 << 30, .help = "Pause before the first attempt to make a failed connection anew"},
     AT(retry_first_ms)},
    {{COMMON, .level = MCA_VAR_LEVEL_TUNER, .name = "retry_max", .type = MCA_VAR_INT, .unit = "ms", .def.i = 10000,
      .min = 1, .max = 1 << 30, .help = "Longest pause between such attempts"},
     AT(retry_max_ms)},
    {{COMMON, .level = MCA_VAR_LEVEL_TUNER, .name = "keepalive", .type = MCA_VAR_INT, .unit = "ms", .def.i = 5000,
      .min = 0, .max = 1 << 30,
      .help = "A connected peer from which nothing has come for so long is asked whether it is there, where UCX can "
              "(0: never)"},
     AT(keepalive_ms)},
    {{COMMON, .level = MCA_VAR_LEVEL_TUNER, .name = "exclusivity", .type = MCA_VAR_INT, .def.i = 80, .min = 0,
      .max = 65535, .help = "Preference among transports; the higher one is preferred"},
     AT(exclusivity)},
};

int btl_uct_register_params(const mca_base_services_t *services)
{
    return mca_btl_base_register(services, table, sizeof(table) / sizeof(table[0]), &mca_btl_uct.params);
}
