#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/uct keeps the contract, over its shared memory; a peer's death is seen though nothing is sent to it.
. "$top_srcdir/test/btl/kit.sh"
conform uct --keepalive --param btl_uct_transports=posix
