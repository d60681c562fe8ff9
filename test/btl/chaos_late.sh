#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/chaos that delays one fragment in ten, and lets a link carry 400 MB/s, breaks no promise of what it stands over.
. "$top_srcdir/test/btl/kit.sh"
conform chaos --threads --component "$top_builddir/ompi/mca/btl/shm/.libs/mca_btl_shm.so" --param btl_chaos_wrap=shm \
    --param btl_chaos_delay=100000 --param btl_chaos_delay_us=200 --param btl_chaos_throttle=400000000
