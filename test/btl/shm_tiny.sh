#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/shm with rings and chunks as small as among 128 processes: they run full all the time.
. "$top_srcdir/test/btl/kit.sh"
conform shm --param btl_shm_ring=2k --param btl_shm_pool=64k --param btl_shm_chunk=4k --seed 6
