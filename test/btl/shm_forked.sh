#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/shm notices the death of a process whose child, which has its doorbell, goes on.
. "$top_srcdir/test/btl/kit.sh"
conform shm --test death --forked
