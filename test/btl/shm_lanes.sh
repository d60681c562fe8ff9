#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# A lane of btl/shm keeps the contract.
. "$top_srcdir/test/btl/kit.sh"
conform shm --lanes --param btl_shm_lanes=2 --module shm:lane2 --seed 4
