#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/shm among 24 processes that all talk to each other.
. "$top_srcdir/test/btl/kit.sh"
conform shm --test many --processes 24 --seed 7
