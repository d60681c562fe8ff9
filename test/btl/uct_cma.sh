#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/uct keeps the contract, over its shared memory with memory moved by cma.
. "$top_srcdir/test/btl/kit.sh"
conform uct --param btl_uct_transports=posix,cma
