/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The component's parameters. */
#include "ompi/mca/btl/openib/btl_openib.h"

#define TUNER .framework = "btl", .component = "openib", .scope = MCA_VAR_SCOPE_STARTUP, .level = MCA_VAR_LEVEL_TUNER

#define AT(field) offsetof(btl_openib_params_t, field)

static const mca_base_var_enum_t when[] = {
    {"auto", BTL_OPENIB_AUTO}, {"always", BTL_OPENIB_ALWAYS}, {"never", BTL_OPENIB_NEVER}, {NULL, 0}};

static const mca_base_var_enum_t queues[] = {
    {"shared", BTL_OPENIB_QUEUE_SHARED}, {"peer", BTL_OPENIB_QUEUE_PEER}, {NULL, 0}};

static const mca_base_var_enum_t ways[] = {
    {"ud", BTL_OPENIB_BY_DATAGRAMS}, {"rdmacm", BTL_OPENIB_BY_RDMACM}, {NULL, 0}};

static const mca_btl_base_param_t table[] = {
    COMMON_VERBS_PARAMS("openib", AT(ports)),
    {{TUNER, .name = "connect", .type = MCA_VAR_ENUM, .enums = ways, .def.i = BTL_OPENIB_BY_DATAGRAMS,
      .help = "How peers introduce themselves: by datagrams of their own (ud), or by librdmacm (rdmacm; RoCE); all processes alike"},
     AT(connect)},
    {{TUNER, .name = "receive_queue", .type = MCA_VAR_ENUM, .enums = queues, .def.i = BTL_OPENIB_QUEUE_SHARED,
      .help = "One queue of receives for all peers of a port (shared), or one for each (peer), of at least 64 buffers"},
     AT(receive_queue)},
    {{TUNER, .name = "recv_num", .type = MCA_VAR_INT, .def.i = 128, .min = COMMON_VERBS_CHUNK, .max = 32768,
      .help = "Receive buffers of a port, for all peers, in quiet times"},
     AT(recv_num)},
    {{TUNER, .name = "recv_max", .type = MCA_VAR_INT, .def.i = 4096, .min = COMMON_VERBS_CHUNK, .max = 32768,
      .help = "Receive buffers of a port at most, where many send at once"},
     AT(recv_max)},
    {{TUNER, .name = "send_max", .type = MCA_VAR_INT, .def.i = 4096, .min = COMMON_VERBS_CHUNK, .max = 1 << 20,
      .help = "Fragments of a port, short ones, and as many others, that may wait for their peers' confirmation, beside 4 for each peer"},
     AT(send_max)},
    {{TUNER, .name = "window", .type = MCA_VAR_INT, .def.i = 32, .min = 4, .max = 1024,
      .help = "Fragments that may wait for one peer's confirmation, and that a peer may have under way to us"},
     AT(window)},
    {{TUNER, .name = "inline", .type = MCA_VAR_INT, .unit = "bytes", .def.i = 192, .min = 8, .max = 1024,
      .help = "Fragments up to this length, with 8 bytes before them, are copied into the work request, if the adapter can"},
     AT(inline_max)},
    {{TUNER, .name = "eager_rdma", .type = MCA_VAR_ENUM, .enums = when, .def.i = BTL_OPENIB_AUTO,
      .help = "Busy peers write short fragments straight into our memory; auto: where the adapter is no program (one may "
              "write the last byte before the others)"},
     AT(eager_rdma)},
    {{TUNER, .name = "eager_rdma_peers", .type = MCA_VAR_INT, .def.i = 16, .min = 0, .max = 1024,
      .help = "How many peers at once, for each port"},
     AT(eager_rdma_peers)},
    {{TUNER, .name = "eager_rdma_slots", .type = MCA_VAR_INT, .def.i = 16, .min = 1, .max = BTL_OPENIB_SLOTS_MAX,
      .help = "Fragments that such a peer may write before the first is confirmed, 256 bytes for each"},
     AT(eager_rdma_slots)},
    {{TUNER, .name = "eager_rdma_after", .type = MCA_VAR_INT, .def.i = 16, .min = 1, .max = 1 << 20,
      .help = "Short fragments after which a peer counts as busy; twice as many each time that we slept or it paused"},
     AT(eager_rdma_after)},
    {{TUNER, .name = "max_frag", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 8 << 10, .min = 1024, .max = 1 << 20,
      .help = "Largest fragment; each receive buffer is so long; all processes alike"},
     AT(max_frag)},
    {{TUNER, .name = "get_min", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 32 << 10, .min = 1, .max = UINT64_MAX,
      .help = "Messages from this size on are read out of the sender's memory by the receiver's adapter"},
     AT(get_min)},
    {{TUNER, .name = "trust_reads", .type = MCA_VAR_ENUM, .enums = when, .def.i = BTL_OPENIB_AUTO,
      .help = "Long messages are read by the adapter where nobody checks them, too (pml teg, or dr without checksums), and not sent; "
              "auto: unless the adapter is a program (Soft-RoCE can report as done what it has not read)"},
     AT(trust_reads)},
    {{TUNER, .name = "cache_bytes", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 1 << 30, .max = UINT64_MAX,
      .help = "The user's memory that stays registered for the next transfer, for each port (0: none)"},
     AT(cache_bytes)},
    {{TUNER, .name = "cache_count", .type = MCA_VAR_INT, .def.i = 1024, .min = 0, .max = 1 << 20,
      .help = "Such registrations, for each port (0: none)"},
     AT(cache_count)},
    {{TUNER, .name = "timeout", .type = MCA_VAR_INT, .def.i = 14, .min = 1, .max = 31,
      .help = "The adapter repeats what is not acknowledged after 4.096 us x 2^this"},
     AT(timeout)},
    {{TUNER, .name = "retry_count", .type = MCA_VAR_INT, .def.i = 6, .min = 0, .max = 7,
      .help = "How often, before the link counts as failed (Soft-RoCE takes 7 for: for ever)"},
     AT(retry_count)},
    {{TUNER, .name = "silence", .type = MCA_VAR_INT, .unit = "ms", .def.i = 1000, .min = 0, .max = 1 << 30,
      .help = "A peer that has not answered for so long when it is to be connected is called silent: what waits for it may go "
              "over other links as well (0: never)"},
     AT(silence_ms)},
    {{TUNER, .name = "peer_timeout", .type = MCA_VAR_INT, .unit = "ms", .def.i = 0, .min = 0, .max = 1 << 30,
      .help = "After so long without an answer its link counts as failed, though it may be computing (0: never)"},
     AT(peer_timeout_ms)},
    {{TUNER, .name = "retry_first", .type = MCA_VAR_INT, .unit = "ms", .def.i = 100, .min = 1, .max = 1 << 30,
      .help = "Pause before a failed connection is made anew; then twice as long"},
     AT(retry_first_ms)},
    {{TUNER, .name = "retry_max", .type = MCA_VAR_INT, .unit = "ms", .def.i = 10000, .min = 1, .max = 1 << 30,
      .help = "Longest pause between attempts to reach a peer whose link is down"},
     AT(retry_max_ms)},
    {{TUNER, .name = "latency", .type = MCA_VAR_INT, .unit = "ns", .def.i = 1500, .min = 1, .max = INT32_MAX,
      .help = "Assumed half round trip of a small message"},
     AT(latency_ns)},
    {{TUNER, .name = "exclusivity", .type = MCA_VAR_INT, .def.i = 1024, .min = 0, .max = 65535,
      .help = "Preference among transports; the higher one is preferred"},
     AT(exclusivity)},
};

int btl_openib_register_params(const mca_base_services_t *services)
{
    const opal_net_params_t *shared;
    int rc = opal_net_params(services, &shared);
    return rc == OPAL_SUCCESS ? mca_btl_base_register(services, table, sizeof(table) / sizeof(table[0]), &mca_btl_openib.params)
                              : rc;
}
