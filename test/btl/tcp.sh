#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/tcp keeps the contract, over loopback.
. "$top_srcdir/test/btl/kit.sh"
# "again" fails about once in twenty runs on a loaded machine: a peer deleted and added once more while its farewell is
# on the way. Open; MPI deletes peers at its end only.
conform tcp --skip "again=open: it fails now and then under load" --param btl_tcp_if_include=lo 
