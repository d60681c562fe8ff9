/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The component's parameters. */
#include "ompi/mca/btl/udp/btl_udp.h"
#include "ompi/mca/btl/base/btl_base_params.h"

#define COMMON .framework = "btl", .component = "udp", .scope = MCA_VAR_SCOPE_STARTUP
#define USER COMMON, .level = MCA_VAR_LEVEL_USER
#define TUNER COMMON, .level = MCA_VAR_LEVEL_TUNER
#define DEVELOPER COMMON, .level = MCA_VAR_LEVEL_DEVELOPER

static const mca_base_var_enum_t families[] = {{"any", 0}, {"ipv4", 4}, {"ipv6", 6}, {NULL, 0}};

#define AT(field) offsetof(btl_udp_params_t, field)

static const mca_btl_base_param_t table[] = {
    {{USER, .name = "if_include", .type = MCA_VAR_LIST,
      .help = "Interfaces to use: names or CIDR blocks, e.g. \"eth0,10.1.0.0/16\" (empty: "
              "net_include)"},
     AT(if_include)},
    {{USER, .name = "if_exclude", .type = MCA_VAR_LIST,
      .help = "Interfaces not to use: names or CIDR blocks; not together with if_include (empty: "
              "net_exclude)"},
     AT(if_exclude)},
    {{USER, .name = "family", .type = MCA_VAR_ENUM, .enums = families, .def.i = 0,
      .help = "Address family to use (any: IPv4 where an interface has both)"},
     AT(family)},
    {{USER, .name = "port_min", .type = MCA_VAR_INT, .def.i = 0, .min = 0, .max = 65535,
      .help = "Lowest port to receive on (0: net_ports, or else any); each interface takes two"},
     AT(port_min)},
    {{USER, .name = "port_range", .type = MCA_VAR_INT, .def.i = 0, .min = 0, .max = 65535,
      .help = "Number of ports from port_min on that may be received on (0: all above)"},
     AT(port_range)},
    {{TUNER, .name = "mtu", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 0,
      .max = BTL_UDP_FRAG_MAX,
      .help = "Largest packet of an interface, at least 576 (0: what the interface says)"},
     AT(mtu)},
    {{TUNER, .name = "gso", .type = MCA_VAR_BOOL, .def.b = true,
      .help = "Let the kernel or the network card cut fragments into datagrams (UDP_SEGMENT)"},
     AT(gso)},
    {{TUNER, .name = "gro", .type = MCA_VAR_BOOL, .def.b = true,
      .help = "Let the kernel or the network card join arriving datagrams (UDP_GRO)"},
     AT(gro)},
    {{TUNER, .name = "sndbuf", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 1 << 20,
      .max = 1 << 30, .help = "Size of the kernel's send buffer (0: the system's)"},
     AT(sndbuf)},
    {{TUNER, .name = "rcvbuf", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 4 << 20,
      .max = 1 << 30,
      .help = "Size of the kernel's receive buffer, shared by all peers, at least 128 KiB, which one fragment may "
              "need; net.core.rmem_max limits it without privilege (0: the system's)"},
     AT(rcvbuf)},
    {{TUNER, .name = "window", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 512 << 10,
      .min = 16 << 10, .max = 32 << 20,
      .help = "Bytes that a peer may have under way to us in each of the two channels, if the "
              "receive buffer allows"},
     AT(window)},
    {{TUNER, .name = "segments", .type = MCA_VAR_INT, .def.i = 12, .min = 1,
      .max = BTL_UDP_SEGMENTS_MAX,
      .help = "Datagrams of a fragment at most: when one of them is lost, the fragment is"},
     AT(segments)},
    {{TUNER, .name = "eager_limit", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 64 << 10,
      .min = 256, .max = BTL_UDP_FRAG_MAX,
      .help = "Message size up to which nobody waits for the receiver, if a fragment can be so long"},
     AT(eager_limit)},
    {{TUNER, .name = "max_frag", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = BTL_UDP_FRAG_MAX,
      .min = 512, .max = BTL_UDP_FRAG_MAX, .help = "Largest fragment, if its datagrams allow"},
     AT(max_frag)},
    {{TUNER, .name = "min_frag", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 8 << 10,
      .min = 256, .max = BTL_UDP_FRAG_MAX,
      .help = "Smallest fragment worth sending of a long message"},
     AT(min_frag)},
    {{TUNER, .name = "probe", .type = MCA_VAR_INT, .unit = "us", .def.i = 5000, .min = 100,
      .max = 1 << 30,
      .help = "A sender without room that hears nothing for so long asks its peer again; then after "
              "twice the time, up to half a second"},
     AT(probe_us)},
    {{TUNER, .name = "silence", .type = MCA_VAR_INT, .unit = "ms", .def.i = 1000, .min = 1,
      .max = 1 << 30,
      .help = "To a peer silent for so long one fragment goes with each probe although there is no "
              "room; after ten times that, what was sent counts as lost when links are drained"},
     AT(silence_ms)},
    {{TUNER, .name = "part_timeout", .type = MCA_VAR_INT, .unit = "ms", .def.i = 100, .min = 1,
      .max = 1 << 30,
      .help = "A fragment of which datagrams are missing is given up after this time"},
     AT(part_ms)},
    {{TUNER, .name = "retry_max", .type = MCA_VAR_INT, .unit = "ms", .def.i = 10000, .min = 1,
      .max = 1 << 30, .help = "Longest pause between attempts to reach a peer whose link is down"},
     AT(retry_max_ms)},
    {{TUNER, .name = "bandwidth", .type = MCA_VAR_SIZE, .unit = "bytes/s", .def.size = 1250000000,
      .min = 1, .max = INT64_MAX, .help = "Assumed of an interface that does not tell its speed"},
     AT(bandwidth)},
    {{TUNER, .name = "loopback_bandwidth", .type = MCA_VAR_SIZE, .unit = "bytes/s",
      .def.size = 5000000000, .min = 1, .max = INT64_MAX,
      .help = "Assumed of the loopback interface"},
     AT(loopback_bandwidth)},
    {{TUNER, .name = "latency", .type = MCA_VAR_INT, .unit = "ns", .def.i = 20000, .min = 1,
      .max = INT32_MAX, .help = "Assumed half round trip of an interface other than loopback"},
     AT(latency_ns)},
    {{TUNER, .name = "exclusivity", .type = MCA_VAR_INT, .def.i = 90, .min = 0, .max = 65535,
      .help = "Preference among transports; the higher one is preferred"},
     AT(exclusivity)},
};

int btl_udp_register_params(const mca_base_services_t *services)
{
    const opal_net_params_t *shared;
    int rc = opal_net_params(services, &shared);
    return rc == OPAL_SUCCESS ? mca_btl_base_register(services, table, sizeof(table) / sizeof(table[0]), &mca_btl_udp.params)
                              : rc;
}
