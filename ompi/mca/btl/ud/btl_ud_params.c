/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The component's parameters. */
#include "ompi/mca/btl/ud/btl_ud.h"

#define TUNER .framework = "btl", .component = "ud", .scope = MCA_VAR_SCOPE_STARTUP, .level = MCA_VAR_LEVEL_TUNER

#define AT(field) offsetof(btl_ud_params_t, field)

static const mca_btl_base_param_t table[] = {
    COMMON_VERBS_PARAMS("ud", AT(ports)),
    {{TUNER, .name = "qps", .type = MCA_VAR_INT, .def.i = 4, .min = 1, .max = BTL_UD_QPS_MAX,
      .help = "Queue pairs of a port that are used in turn for sending"},
     AT(qps)},
    {{TUNER, .name = "send_depth", .type = MCA_VAR_INT, .def.i = 64, .min = 8, .max = 4096,
      .help = "Datagrams that each of them may hold"},
     AT(send_depth)},
    {{TUNER, .name = "recv_num", .type = MCA_VAR_INT, .def.i = 256, .min = COMMON_VERBS_CHUNK, .max = 32768,
      .help = "Receive buffers of a port, for all peers, in quiet times"},
     AT(recv_num)},
    {{TUNER, .name = "recv_max", .type = MCA_VAR_INT, .def.i = 4096, .min = COMMON_VERBS_CHUNK, .max = 32768,
      .help = "Receive buffers of a port at most, where many send at once"},
     AT(recv_max)},
    {{TUNER, .name = "window", .type = MCA_VAR_INT, .def.i = 96, .min = 4, .max = BTL_UD_ROOM_MAX,
      .help = "Datagrams that a peer may have under way to us, if there are buffers enough"},
     AT(window)},
    {{TUNER, .name = "inline", .type = MCA_VAR_INT, .unit = "bytes", .def.i = 192, .min = 0, .max = 1024,
      .help = "Datagrams up to this length, header of 48 bytes included, are copied into the work request, if the "
              "adapter can"},
     AT(inline_max)},
    {{TUNER, .name = "max_frag", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 0, .max = 4096,
      .help = "Largest fragment (0: what fits the port's MTU)"},
     AT(max_frag)},
    {{TUNER, .name = "probe", .type = MCA_VAR_INT, .unit = "us", .def.i = 5000, .min = 100, .max = 1 << 30,
      .help = "A sender without room that hears nothing for so long asks its peer again; then after twice the time, up "
              "to half a second"},
     AT(probe_us)},
    {{TUNER, .name = "silence", .type = MCA_VAR_INT, .unit = "ms", .def.i = 1000, .min = 1, .max = 1 << 30,
      .help = "To a peer silent for so long one fragment goes with each probe although there is no room; after ten "
              "times that, what was sent counts as lost when links are drained"},
     AT(silence_ms)},
    {{TUNER, .name = "peer_timeout", .type = MCA_VAR_INT, .unit = "ms", .def.i = 0, .min = 0, .max = 1 << 30,
      .help = "A peer from which an answer is awaited for so long is taken for gone, and the link to it for down, though it "
              "may be computing (0: never)"},
     AT(peer_timeout_ms)},
    {{TUNER, .name = "retry_max", .type = MCA_VAR_INT, .unit = "ms", .def.i = 10000, .min = 1, .max = 1 << 30,
      .help = "Longest pause between attempts to reach a peer whose link is down"},
     AT(retry_max_ms)},
    {{TUNER, .name = "latency", .type = MCA_VAR_INT, .unit = "ns", .def.i = 3000, .min = 1, .max = INT32_MAX,
      .help = "Assumed half round trip of a small message"},
     AT(latency_ns)},
    {{TUNER, .name = "exclusivity", .type = MCA_VAR_INT, .def.i = 900, .min = 0, .max = 65535,
      .help = "Preference among transports; the higher one is preferred"},
     AT(exclusivity)},
};

int btl_ud_register_params(const mca_base_services_t *services)
{
    const opal_net_params_t *shared;
    int rc = opal_net_params(services, &shared);
    return rc == OPAL_SUCCESS ? mca_btl_base_register(services, table, sizeof(table) / sizeof(table[0]), &mca_btl_ud.params)
                              : rc;
}
