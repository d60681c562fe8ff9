#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/udp keeps the contract, over loopback: large datagrams, each read to its place.
. "$top_srcdir/test/btl/kit.sh"
conform udp --param btl_udp_if_include=lo
