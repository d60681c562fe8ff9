/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The component's parameters. */
#include "ompi/mca/btl/tcp/btl_tcp.h"
#include "ompi/mca/btl/base/btl_base_params.h"

#define COMMON .framework = "btl", .component = "tcp", .scope = MCA_VAR_SCOPE_STARTUP
#define USER COMMON, .level = MCA_VAR_LEVEL_USER
#define TUNER COMMON, .level = MCA_VAR_LEVEL_TUNER
#define DEVELOPER COMMON, .level = MCA_VAR_LEVEL_DEVELOPER

static const mca_base_var_enum_t families[] = {{"any", 0}, {"ipv4", 4}, {"ipv6", 6}, {NULL, 0}};

static btl_tcp_params_t *const p = &mca_btl_tcp.params;

#define AT(field) offsetof(btl_tcp_params_t, field)

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
      .help = "Address families to use"},
     AT(family)},
    {{TUNER, .name = "links", .type = MCA_VAR_INT, .def.i = 1, .min = 1, .max = OPAL_NET_CARD_LINKS_MAX,
      .help = "Connections per interface and peer; each is a link of its own to the scheduler"},
     AT(links)},
    {{USER, .name = "port_min", .type = MCA_VAR_INT, .def.i = 0, .min = 0, .max = 65535,
      .help = "Lowest port to listen on (0: net_ports, or else any)"},
     AT(port_min)},
    {{USER, .name = "port_range", .type = MCA_VAR_INT, .def.i = 0, .min = 0, .max = 65535,
      .help = "Number of ports from port_min on that may be listened on (0: all above)"},
     AT(port_range)},
    {{TUNER, .name = "sndbuf", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 0, .max = 1 << 30,
      .help = "Size of the kernel's send buffer (0: the kernel adjusts it)"},
     AT(sndbuf)},
    {{TUNER, .name = "rcvbuf", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 0, .max = 1 << 30,
      .help = "Size of the kernel's receive buffer (0: the kernel adjusts it)"},
     AT(rcvbuf)},
    {{TUNER, .name = "unsent", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 128 << 10, .max = 1 << 30,
      .help = "Bytes of a connection that the kernel may hold before it is their turn to be sent; what it has "
              "no other link can carry (TCP_NOTSENT_LOWAT; 0: as many as fit its buffer)"},
     AT(unsent)},
    {{TUNER, .name = "nodelay", .type = MCA_VAR_BOOL, .def.b = true,
      .help = "Send small messages at once (TCP_NODELAY)"},
     AT(nodelay)},
    {{TUNER, .name = "congestion", .type = MCA_VAR_STRING,
      .help = "Congestion control of all connections (empty: reno on loopback, elsewhere the "
              "system's)"},
     AT(congestion)},
    {{TUNER, .name = "keepalive", .type = MCA_VAR_INT, .unit = "s", .def.i = 30, .min = 0,
      .max = 32767,
      .help = "Idle time after which a connection's peer is probed, and over which probing fails "
              "(0: never)"},
     AT(keepalive_s)},
    {{TUNER, .name = "user_timeout", .type = MCA_VAR_INT, .unit = "ms", .def.i = 0, .min = 0,
      .max = 1 << 30,
      .help = "TCP_USER_TIMEOUT (0: not set; it also ends connections to a peer that computes for "
              "so long)"},
     AT(user_timeout_ms)},
    {{TUNER, .name = "stall_timeout", .type = MCA_VAR_INT, .unit = "ms", .def.i = 5000, .min = 0,
      .max = 1 << 30,
      .help = "A connection is lost when its peer's kernel acknowledges nothing for so long, looked "
              "at twice a second (0: never)"},
     AT(stall_timeout_ms)},
    {{TUNER, .name = "silence_timeout", .type = MCA_VAR_INT, .unit = "ms", .def.i = 250, .min = 0,
      .max = 1 << 30,
      .help = "A connection over which nothing was acknowledged for so long and two round trips, "
              "though something waits for it, is given up if other links lead to the peer (0: wait "
              "for stall_timeout)"},
     AT(silence_timeout_ms)},
    {{TUNER, .name = "connect_timeout", .type = MCA_VAR_INT, .unit = "ms", .def.i = 4000, .min = 10,
      .max = 1 << 30, .help = "Time for reaching one address of a peer, then the next is tried"},
     AT(connect_timeout_ms)},
    {{TUNER, .name = "handshake_timeout", .type = MCA_VAR_INT, .unit = "ms", .def.i = 10000,
      .min = 10, .max = 1 << 30,
      .help = "Time for a new connection to say who it is, and for its other end to answer before other addresses are tried"},
     AT(handshake_timeout_ms)},
    {{TUNER, .name = "resume_timeout", .type = MCA_VAR_INT, .unit = "ms", .def.i = 2000, .min = 0,
      .max = 1 << 30,
      .help = "A lost connection is made again, and goes on where it was, within this time; else the "
              "link is down and others take over; each absence of this process from MPI counts for an eighth of it at most (0: at once)"},
     AT(resume_timeout_ms)},
    {{TUNER, .name = "reconnect_attempts", .type = MCA_VAR_INT, .def.i = 1000, .min = 0,
      .max = 1 << 30, .help = "Attempts in succession to bring a failed link up again"},
     AT(reconnect_attempts)},
    {{TUNER, .name = "reconnect_max", .type = MCA_VAR_INT, .unit = "ms", .def.i = 10000, .min = 1,
      .max = 1 << 30,
      .help = "Longest pause between such attempts (the first is 50 ms, then it doubles)"},
     AT(reconnect_max_ms)},
    {{TUNER, .name = "eager_limit", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 64 << 10,
      .min = 256, .max = 4 << 20, .help = "Message size up to which nobody waits for the receiver"},
     AT(eager_limit)},
    {{TUNER, .name = "alone_limit", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 256 << 10, .min = 0, .max = 4 << 20,
      .help = "The same of a message that is not one of a stream, if there is no other link to the peer; at most an eighth of "
              "btl_tcp_keep_limit, and btl_tcp_max_frag (less than btl_tcp_eager_limit: that)"},
     AT(alone_limit)},
    {{TUNER, .name = "max_frag", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 1 << 20,
      .min = 4096, .max = BTL_TCP_FRAME_LEN_MAX - MCA_BTL_HEADER_MAX,
      .help =
          "Largest fragment of a long message (less where it would occupy the link for over 2 ms)"},
     AT(max_frag)},
    {{TUNER, .name = "min_frag", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 32 << 10,
      .min = 256, .max = BTL_TCP_FRAME_LEN_MAX,
      .help = "Smallest fragment worth sending of a long message"},
     AT(min_frag)},
    {{DEVELOPER, .name = "send_min", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 64 << 10,
      .help = "Payload from which on sending from the user's memory is better than copying"},
     AT(send_min)},
    {{TUNER, .name = "window", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 2 << 20,
      .min = 64 << 10, .max = 1 << 30,
      .help = "Unconfirmed bytes at which the scheduler prefers other links"},
     AT(window)},
    {{TUNER, .name = "keep_limit", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 2 << 20,
      .min = 64 << 10, .max = 1 << 30,
      .help = "Bytes of small messages that are kept per peer until it confirms them"},
     AT(keep_limit)},
    {{TUNER, .name = "bandwidth", .type = MCA_VAR_SIZE, .unit = "bytes/s", .def.size = 1250000000,
      .min = 1, .max = INT64_MAX, .help = "Assumed of an interface that does not tell its speed"},
     AT(bandwidth)},
    {{TUNER, .name = "loopback_bandwidth", .type = MCA_VAR_SIZE, .unit = "bytes/s",
      .def.size = 10000000000, .min = 1, .max = INT64_MAX,
      .help = "Assumed of the loopback interface"},
     AT(loopback_bandwidth)},
    {{TUNER, .name = "latency", .type = MCA_VAR_INT, .unit = "ns", .def.i = 20000, .min = 1,
      .max = INT32_MAX, .help = "Assumed half round trip of an interface other than loopback"},
     AT(latency_ns)},
    {{TUNER, .name = "exclusivity", .type = MCA_VAR_INT, .def.i = 100, .min = 0, .max = 65535,
      .help = "Preference among transports; the higher one is preferred"},
     AT(exclusivity)},
};

int btl_tcp_register_params(const mca_base_services_t *services)
{
    const opal_net_params_t *shared;
    int rc = opal_net_params(services, &shared);
    return rc == OPAL_SUCCESS ? mca_btl_base_register(services, table, sizeof(table) / sizeof(table[0]), p)
                              : rc;
}
