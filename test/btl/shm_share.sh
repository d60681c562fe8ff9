#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/shm where sender and receiver copy together whatever they can.
. "$top_srcdir/test/btl/kit.sh"
conform shm --param btl_shm_single_copy=always --param btl_shm_share_min=8192 --seed 5
