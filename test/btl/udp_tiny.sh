#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/udp keeps the contract when buffers are asked for in which no fragment of so many datagrams would have room.
. "$top_srcdir/test/btl/kit.sh"
conform udp --param btl_udp_if_include=lo --param btl_udp_family=ipv4 --param btl_udp_mtu=1500 --param btl_udp_segments=64 \
    --param btl_udp_gro=0 --param btl_udp_rcvbuf=1 --param btl_udp_sndbuf=1
