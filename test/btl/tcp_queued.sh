#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/tcp under pressure when much more is queued than the kernel takes: what was asked for while it was queued is
# confirmed all the same.
. "$top_srcdir/test/btl/kit.sh"
conform tcp --test pressure --param btl_tcp_if_include=lo --param btl_tcp_sndbuf=16384 --param btl_tcp_rcvbuf=8192 \
    --param btl_tcp_keep_limit=300k --param btl_tcp_window=65536 --param btl_tcp_max_frag=65536 --param btl_tcp_eager_limit=4096
