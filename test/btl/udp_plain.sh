#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/udp keeps the contract among threads, with small buffers, where the kernel neither cuts nor joins datagrams.
. "$top_srcdir/test/btl/kit.sh"
conform udp --threads --param btl_udp_if_include=lo --param btl_udp_family=ipv6 --param btl_udp_mtu=9000 --param btl_udp_gso=0 \
    --param btl_udp_gro=0 --param btl_udp_rcvbuf=256k --param btl_udp_sndbuf=128k --param btl_udp_window=64k --processes 8
