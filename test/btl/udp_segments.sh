#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/udp keeps the contract with Ethernet's datagrams, cut and joined by the kernel.
. "$top_srcdir/test/btl/kit.sh"
conform udp --param btl_udp_if_include=lo --param btl_udp_mtu=1500
