#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/tcp keeps the contract, over loopback.
. "$top_srcdir/test/btl/kit.sh"
conform tcp --param btl_tcp_if_include=lo
