#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/chaos that does nothing is as good as what it stands over: TCP over loopback.
. "$top_srcdir/test/btl/kit.sh"
conform chaos --component "$top_builddir/ompi/mca/btl/tcp/.libs/mca_btl_tcp.so" --param btl_chaos_wrap=tcp --param btl_tcp_if_include=lo
