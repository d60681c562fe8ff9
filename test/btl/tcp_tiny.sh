#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/tcp keeps the contract with small buffers in the kernel and here.
# Not run unless HAWSER_TEST_OPEN=1: on a loaded machine about one run in three fails in one of "mixed", "again" and
# "sleep_sender", without a message. Open: it has found something.
. "$top_srcdir/test/btl/kit.sh"
if [ "${HAWSER_TEST_OPEN:-0}" != 1 ]; then
    echo "1..0 # SKIP open: one run in three fails on a loaded machine; HAWSER_TEST_OPEN=1 runs it"
    exit 0
fi
conform tcp --param btl_tcp_if_include=lo --param btl_tcp_sndbuf=16384 --param btl_tcp_keep_limit=65536 --param btl_tcp_window=65536 \
    --param btl_tcp_max_frag=65536 --param btl_tcp_eager_limit=4096
