# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# BTLs under the conformance kit.
btl_conform_scripts = btl/self.sh btl/self_threads.sh btl/shm.sh btl/shm_threads.sh btl/shm_lanes.sh btl/shm_single_copy.sh btl/shm_share.sh btl/shm_wide.sh btl/shm_round.sh btl/shm_past.sh \
    btl/shm_forbidden.sh btl/shm_tiny.sh btl/shm_many.sh btl/shm_file.sh btl/shm_forked.sh btl/shm_full.sh btl/out_of_tree.sh \
    btl/tcp.sh btl/tcp_ipv6.sh btl/tcp_links.sh btl/tcp_tiny.sh btl/tcp_threads.sh \
    btl/tcp_short.sh btl/tcp_queued.sh btl/chaos_shm.sh btl/chaos_tcp.sh btl/chaos_late.sh \
    btl/udp.sh btl/udp_segments.sh btl/udp_plain.sh btl/udp_tiny.sh \
    btl/uct_tcp.sh btl/uct_posix.sh btl/uct_cma.sh btl/uct_threads.sh
check_SCRIPTS += $(btl_conform_scripts)
# One for each component: test/run runs them with sanitizers, too.
btl_sanitize_scripts = btl/self_threads.sh btl/shm_wide.sh btl/shm_past.sh btl/shm_single_copy.sh btl/shm_share.sh btl/tcp_short.sh btl/chaos_shm.sh btl/udp.sh \
    btl/uct_tcp.sh btl/uct_cma.sh
EXTRA_DIST += $(btl_conform_scripts) btl/kit.sh
