#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/tcp keeps the contract with small buffers in the kernel and here.
. "$top_srcdir/test/btl/kit.sh"
conform tcp --param btl_tcp_if_include=lo --param btl_tcp_sndbuf=16384 --param btl_tcp_keep_limit=65536 --param btl_tcp_window=65536 \
    --param btl_tcp_max_frag=65536 --param btl_tcp_eager_limit=4096 \
    --skip messages='64 MiB wait for delayed acknowledgments of segments longer than the buffer; see tcp_short.sh'
