/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * UCX's functions, from libraries that are loaded when btl/uct starts. Every process opens every component, but few use
 * this one; and UCX's libraries, once loaded, catch signals and keep memory of their own.
 */
#ifndef BTL_UCT_UCX_H
#define BTL_UCT_UCX_H

#include <ucs/async/async_fwd.h>
#include <ucs/config/global_opts.h>
#include <uct/api/uct.h>

#define BTL_UCT_UCX_FUNCTIONS(F) \
    F(ucs_async_context_create) F(ucs_async_context_destroy) F(ucs_global_opts_set_value) \
    F(ucs_status_string) F(uct_component_query) F(uct_config_release) F(uct_ep_check) F(uct_ep_connect_to_ep) \
    F(uct_ep_create) F(uct_ep_destroy) F(uct_ep_get_address) F(uct_iface_close) F(uct_iface_event_arm) \
    F(uct_iface_event_fd_get) F(uct_iface_get_address) F(uct_iface_get_device_address) \
    F(uct_iface_is_reachable) F(uct_iface_open) F(uct_iface_query) F(uct_iface_set_am_handler) \
    F(uct_md_close) F(uct_md_config_read) F(uct_md_iface_config_read) F(uct_md_mem_dereg) F(uct_md_mem_reg) \
    F(uct_md_mkey_pack) F(uct_md_open) F(uct_md_query) F(uct_md_query_tl_resources) F(uct_query_components) \
    F(uct_release_component_list) F(uct_release_tl_resource_list) F(uct_rkey_release) F(uct_rkey_unpack) \
    F(uct_worker_create) F(uct_worker_destroy)

typedef struct btl_uct_ucx {
#define MEMBER(name) __typeof__(name) *name;
    BTL_UCT_UCX_FUNCTIONS(MEMBER)
#undef MEMBER
} btl_uct_ucx_t;

extern btl_uct_ucx_t btl_uct_ucx;

/* NULL: the table is filled, and stays so to the process's end; else why not. */
const char *btl_uct_ucx_load(void);

#endif
