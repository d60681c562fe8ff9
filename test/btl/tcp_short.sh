#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/tcp keeps the contract when sockets take parts of frames, down to some of their padding.
. "$top_srcdir/test/btl/kit.sh"
conform tcp --short-writes --param btl_tcp_if_include=lo --param btl_tcp_max_frag=32768 --param btl_tcp_eager_limit=4096 --param btl_tcp_send_min=2048
