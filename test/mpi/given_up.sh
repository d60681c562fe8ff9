#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# A link that fails at one end first: that process has given the other one up when it comes back (given_up.c).
. "$top_srcdir/test/support/combinations.sh"
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
printf '%s\n' '1000 down rank=0' '2500 down rank=1' '3900 up' >"$folder/apart"
apart="--mca btl chaos,self --mca btl_chaos_wrap tcp --mca btl_chaos_script $folder/apart --mca pml_base_path_timeout 2"
combinations <<LIST
given_up --mca pml teg $apart
given_up --mca pml dr $apart --mca pml_dr_path_timeout 2
LIST
