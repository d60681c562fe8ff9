/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibverbs' functions, from a library that is loaded where a device is there: every process opens every component, but
 * few machines have one. What verbs.h defines inline (posting, polling) calls the device's driver and needs nothing of this.
 */
#ifndef COMMON_VERBS_LIB_H
#define COMMON_VERBS_LIB_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#define COMMON_VERBS_FUNCTIONS(F) \
    F(ack_async_event) F(ack_cq_events) F(alloc_pd) F(attach_mcast) F(close_device) F(create_ah) F(create_comp_channel) F(create_cq) \
    F(create_qp) F(create_srq) F(dealloc_pd) F(dereg_mr) F(destroy_ah) F(destroy_comp_channel) F(destroy_cq) \
    F(destroy_qp) F(destroy_srq) F(detach_mcast) F(fork_init) F(free_device_list) F(get_async_event) F(get_cq_event) F(get_device_list) \
    F(get_device_name) F(modify_qp) F(modify_srq) F(open_device) F(query_device) F(query_pkey) F(query_port) F(reg_mr) F(resize_cq) \
    F(wc_status_str)

typedef struct common_verbs_lib {
#define MEMBER(name) __typeof__(ibv_##name) *name;
    COMMON_VERBS_FUNCTIONS(MEMBER)
#undef MEMBER
    __typeof__(_ibv_query_gid_ex) *query_gid_ex;
} common_verbs_lib_t;

extern common_verbs_lib_t common_verbs_lib;

/* Has this machine a device at all? */
bool common_verbs_lib_wanted(void);
/* NULL: the table is filled, as it is once for all; else why not. */
const char *common_verbs_lib_load(void);

#endif
