#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/chaos that does nothing is as good as what it stands over: shared memory.
. "$top_srcdir/test/btl/kit.sh"
conform chaos --component "$top_builddir/ompi/mca/btl/shm/.libs/mca_btl_shm.so" --param btl_chaos_wrap=shm
