#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/uct keeps the contract, with several threads, over both.
. "$top_srcdir/test/btl/kit.sh"
conform uct --threads --param btl_uct_transports=tcp/lo,sysv,cma
