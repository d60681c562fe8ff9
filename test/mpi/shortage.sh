#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# No memory for what has come (shortage.c).
. "$top_srcdir/test/support/combinations.sh"
combinations <<LIST
shortage --mca btl shm,self
shortage --mca btl tcp,self
shortage --mca btl chaos,self --mca btl_chaos_wrap shm
shortage --mca pml dr --mca btl tcp,self --mca pml_base_path_timeout 2
LIST
