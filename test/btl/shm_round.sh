#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/shm where all that goes through chunks takes the way "round", whatever is measured.
. "$top_srcdir/test/btl/kit.sh"
conform shm --param btl_shm_way=round --param btl_shm_single_copy=never --seed 8
