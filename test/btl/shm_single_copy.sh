#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/shm where single copy is wanted.
. "$top_srcdir/test/btl/kit.sh"
conform shm --param btl_shm_single_copy=always --seed 4
