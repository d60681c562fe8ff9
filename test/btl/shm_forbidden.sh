#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/shm where process_vm_readv is not permitted and the kernel has no membarrier.
. "$top_srcdir/test/btl/kit.sh"
conform shm --forbid-cma --no-membarrier --param btl_shm_single_copy=always --seed 5
