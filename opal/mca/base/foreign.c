/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Names of Open MPI's, which reads the same environment. Module files and container images set them
 * for all who come; many are like names of ours, and yet no slip of the pen. */
#include "opal/mca/base/foreign.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* Patterns of fnmatch(3), sorted. Where a component of ours bears the name of one of Open MPI's, each
 * parameter is named by itself: a mistyped name of ours is no name of theirs. */
static const char *const params[] = {
    "accelerator*", "allocator*", "backtrace*", "bml*", "btl_base_exclude", "btl_base_include",
    "btl_base_thread_multiple_override", "btl_base_warn_component_unused", "btl_ofi_*",
    "btl_openib_allow_ib", "btl_openib_apm_*", "btl_openib_buffer_alignment",
    "btl_openib_connect_*", "btl_openib_cpc_*", "btl_openib_cq_size", "btl_openib_cuda_*",
    "btl_openib_device_param_files", "btl_openib_eager_limit", "btl_openib_eager_rdma_num",
    "btl_openib_eager_rdma_threshold", "btl_openib_enable_*", "btl_openib_flags",
    "btl_openib_free_list_*", "btl_openib_have_*", "btl_openib_hp_cq_poll_per_progress",
    "btl_openib_ib_*", "btl_openib_ignore_locality", "btl_openib_max_btls",
    "btl_openib_max_eager_rdma", "btl_openib_max_inline_data", "btl_openib_max_lmc",
    "btl_openib_max_send_size", "btl_openib_max_srq_*", "btl_openib_memory_registration_verbose",
    "btl_openib_min_rdma_pipeline_size", "btl_openib_mtu", "btl_openib_pkey",
    "btl_openib_poll_cq_batch", "btl_openib_rdma_num", "btl_openib_rdma_pipeline_*",
    "btl_openib_receive_queues", "btl_openib_rndv_eager_limit", "btl_openib_rroce_enable",
    "btl_openib_srq_*", "btl_openib_use_*", "btl_openib_verbose", "btl_openib_want_*",
    "btl_openib_warn_*", "btl_portals4_*", "btl_self_eager_limit", "btl_self_flags",
    "btl_self_free_list_*", "btl_self_max_send_size", "btl_self_rdma_*",
    "btl_self_rndv_eager_limit", "btl_sm_*", "btl_smcuda_*", "btl_tcp_disable_family",
    "btl_tcp_endpoint_cache", "btl_tcp_flags", "btl_tcp_free_list_*", "btl_tcp_get_*",
    "btl_tcp_if_seq", "btl_tcp_max_send_size", "btl_tcp_min_rdma_pipeline_size",
    "btl_tcp_not_use_nodelay", "btl_tcp_port_min_v[46]", "btl_tcp_port_range_v[46]",
    "btl_tcp_progress_thread", "btl_tcp_put_*", "btl_tcp_rdma_pipeline_*",
    "btl_tcp_rndv_eager_limit", "btl_tcp_use_nagle", "btl_tcp_warn_all_unfound_interfaces",
    "btl_uct_bind_threads_to_contexts", "btl_uct_memory_domains", "btl_uct_num_contexts_per_module",
    "btl_uct_transports", "btl_ugni_*", "btl_usnic_*", "btl_vader_*", "carto*",
    "coll_accelerator_*", "coll_acoll_*", "coll_adapt_*", "coll_basic_crossover", "coll_cuda_*",
    "coll_demo_*", "coll_fca_*", "coll_ftagree_*", "coll_han_*", "coll_hcoll_*", "coll_inter_*",
    "coll_libnbc_*", "coll_ml_*", "coll_monitoring_*", "coll_portals4_*", "coll_self_*",
    "coll_sm_*", "coll_sync_*", "coll_tuned_*", "coll_ucc_*", "coll_xhc_*", "compress*", "crcp*",
    "crs*", "dfs*", "dl", "dl_*", "dpm*", "errmgr", "errmgr_base_verbose", "errmgr_default_*",
    "ess", "ess_*", "event*", "fbtl*", "fcoll*", "filem*", "fs", "fs_*", "grpcomm*", "hook*",
    "hwloc*", "if", "if_*", "installdirs*", "io", "io_*", "iof", "iof_base_verbose",
    "mca_base_component_disable_dlopen", "mca_base_component_show_load_errors",
    "mca_base_component_track_load_errors", "mca_base_env_*", "mca_base_envar_*",
    "mca_base_override_param_file", "mca_base_param_file_*", "mca_base_suppress_override_warning",
    "mca_base_var_*", "mca_base_verbose", "memchecker*", "memcpy*", "memory*", "mpi_abort_*",
    "mpi_add_procs_cutoff", "mpi_built_with_*", "mpi_common_*", "mpi_cuda_support", "mpi_ddt_*",
    "mpi_dynamics_enabled", "mpi_event_tick_rate", "mpi_ft_*", "mpi_have_*", "mpi_keep_*",
    "mpi_leave_pinned*", "mpi_no_free_handles", "mpi_oversubscribe", "mpi_paffinity_alone",
    "mpi_preconnect_*", "mpi_show_*", "mpi_spc_*", "mpi_warn_on_fork", "mpi_yield_when_idle",
    "mpool*", "mtl", "mtl_*", "notifier*", "odls", "odls_base_sigkill_timeout", "odls_base_verbose",
    "odls_default_*", "ompi_*", "oob", "oob_base_*", "oob_tcp_*", "oob_ud_*", "op", "op_*",
    "opal_abort_*", "opal_base_*", "opal_built_*", "opal_common_*", "opal_cuda_*", "opal_ddt_*",
    "opal_event_*", "opal_leave_pinned*", "opal_max_thread_in_progress", "opal_net_private_ipv4",
    "opal_set_max_sys_limits", "opal_signal", "opal_stacktrace_output", "opal_warn_*", "orte_*",
    "osc", "osc_*", "paffinity*", "part", "part_*", "patcher*", "plm_alps_*",
    "plm_base_node_regex_threshold", "plm_lsf_*", "plm_rsh_args", "plm_rsh_assume_same_shell",
    "plm_rsh_chdir", "plm_rsh_daemonize_qrsh", "plm_rsh_delay", "plm_rsh_disable_llspawn",
    "plm_rsh_disable_qrsh", "plm_rsh_force_rsh", "plm_rsh_no_tree_spawn", "plm_rsh_pass_*",
    "plm_rsh_prefix", "plm_rsh_priority", "plm_ssh_*", "plm_tm_*", "pmix*",
    "pml_base_bsend_allocator", "pml_base_warn_dep_cancel_send", "pml_bfo_*", "pml_cm_*",
    "pml_monitoring_*", "pml_ob1_*", "pml_ucx_*", "pml_v_*", "pml_yalla_*", "prte_*", "prteplm_*",
    "pstat*", "ptl*", "pubsub*", "ras_base_display_alloc", "ras_base_launch_orted_on_hn",
    "ras_base_multiplier", "rcache*", "reachable*", "rmaps_base_bycore", "rmaps_base_bynode",
    "rmaps_base_byslot", "rmaps_base_cpus_per_*", "rmaps_base_display_*", "rmaps_base_inherit",
    "rmaps_base_n_perboard", "rmaps_base_n_pernode", "rmaps_base_n_persocket",
    "rmaps_base_no_oversubscribe", "rmaps_base_no_schedule_local", "rmaps_base_pattern",
    "rmaps_base_pernode", "rmaps_base_schedule_*", "rmaps_base_slot_list", "rml*", "routed*",
    "rtc*", "schizo", "schizo_base_verbose", "sec", "sec_*", "sharedfp*", "shmem", "shmem_*",
    "smsc*", "snapc*", "sstore*", "state*", "threads*", "timer*", "topo", "topo_*", "vprotocol*",
};

/* "FRAMEWORK/COMPONENT", sorted. */
static const char *const components[] = {
    "btl/ofi", "btl/openib", "btl/portals4", "btl/scif", "btl/sctp", "btl/sm", "btl/smcuda",
    "btl/template", "btl/uct", "btl/ugni", "btl/usnic", "btl/vader", "coll/accelerator",
    "coll/acoll", "coll/adapt", "coll/cuda", "coll/demo", "coll/fca", "coll/ftagree", "coll/han",
    "coll/hcoll", "coll/inter", "coll/libnbc", "coll/ml", "coll/monitoring", "coll/portals4",
    "coll/self", "coll/sm", "coll/sync", "coll/tuned", "coll/ucc", "coll/xhc", "plm/alps",
    "plm/isolated", "plm/lsf", "plm/ssh", "plm/tm", "pml/bfo", "pml/cm", "pml/crcpw",
    "pml/monitoring", "pml/ob1", "pml/ucx", "pml/v", "pml/yalla", "ras/alps", "ras/loadleveler",
    "ras/pbs", "rmaps/lama", "rmaps/mindist", "rmaps/resilient", "rmaps/staged",
};

bool mca_base_foreign_param(const char *name)
{
    for (size_t i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
        if (0 == fnmatch(params[i], name, 0)) {
            return true;
        }
    }
    return false;
}

bool mca_base_foreign_component(const char *framework, const char *name)
{
    const size_t len = strlen(framework);
    for (size_t i = 0; i < sizeof(components) / sizeof(components[0]); i++) {
        if (0 == strncmp(components[i], framework, len) && '/' == components[i][len]
            && 0 == strcmp(components[i] + len + 1, name)) {
            return true;
        }
    }
    return false;
}

bool mca_base_foreign_told_by_other(void)
{
    const char *rank = getenv("PMIX_RANK");
    return rank && 0 != strcmp(rank, "0");
}
