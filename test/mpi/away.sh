#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Processes that compute while others connect to them, or between two steps of connecting (away.c).
. "$top_srcdir/test/support/combinations.sh"
tcp="--mca btl tcp,self --mca btl_tcp_handshake_timeout 500 --mca pml_base_path_timeout 1"
combinations <<LIST
away --mca pml teg $tcp
away --mca pml dr $tcp
away --mca pml teg $tcp --mca btl_tcp_links 2
LIST
