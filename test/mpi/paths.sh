#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# What tools read of each link to each process (paths.c), over good links and such as do wrong.
. "$top_srcdir/test/support/combinations.sh"
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
printf '%s\n' '300ms down link=shm' '2s up link=shm' '4s repeat' >"$folder/dead"
chaos="--mca btl chaos,self --mca btl_chaos_wrap shm,tcp --mca btl_shm_single_copy never --mca pml_base_stripe all"
faults="--mca btl_chaos_loss 10000 --mca btl_chaos_damage 20000 --mca btl_chaos_duplicate 10000 --mca btl_chaos_reorder 50000"
dead="--mca btl_chaos_fade 0 --mca btl_chaos_script $folder/dead"
# The test lets it lose everything; the other process can't know, unless it asks.
silent="--mca btl_chaos_links shm --mca btl_chaos_loss 1 --mca pml_dr_probe_first 20"
combinations <<LIST
paths:sums
paths:sums --mca btl tcp,self
paths:sums --mca pml dr --mca btl udp,shm,self
paths:sums --mca pml dr $chaos $faults
paths:damage --mca pml dr $chaos $faults
paths:damage -x PATHS_CLEAN=tcp --mca pml dr $chaos $faults --mca btl_chaos_links shm
paths:states -x PATHS_STATE=suspect --mca pml dr --mca pml_dr_down_after 200 $chaos $silent
paths:states -x PATHS_STATE=probed --mca pml dr --mca pml_dr_down_after 2 $chaos $silent
# When short messages avoid it, nothing but its probes tells that it is of no use.
paths:states -x PATHS_STATE=probed -x PATHS_SHORT=1 --mca pml dr --mca pml_dr_rto_max 200 $chaos $silent
paths:states -x PATHS_STATE=down --mca pml dr $chaos $dead
paths:states -x PATHS_STATE=down $chaos $dead
LIST
