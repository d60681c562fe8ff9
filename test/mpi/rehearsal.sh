#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Messages over links that do wrong (btl/chaos, rehearsal.c), and MPI's message tests. REHEARSAL_SEED starts the random
# numbers elsewhere; with REHEARSAL_MESSAGES only the first point is run, so long.
. "$top_srcdir/test/support/combinations.sh"
seed=${REHEARSAL_SEED:-1}
chaos="--mca btl chaos,self --mca btl_chaos_seed $seed --mca btl_chaos_wrap"
faults="--mca btl_chaos_loss 10000 --mca btl_chaos_damage 10000 --mca btl_chaos_duplicate 10000 --mca btl_chaos_reorder 50000"
dying="--mca btl_chaos_life 1000 --mca btl_chaos_dead 1000"
if [ "${REHEARSAL_MESSAGES:-}" ]; then
    combinations <<LIST
rehearsal:all --mca pml dr $chaos shm $faults
LIST
fi
combinations <<LIST
rehearsal --mca pml dr $chaos shm $faults
# Long messages in fragments, which are summed while they are copied to their place.
rehearsal --mca pml dr $chaos shm --mca btl_shm_single_copy never $faults
rehearsal --mca pml dr $chaos tcp $faults
rehearsal:pair --mca pml dr $chaos shm,tcp --mca pml_base_stripe all $faults
# The other ways to check: damage of one bit is noticed by either; without any, loss is made good all the same.
rehearsal:pair --mca pml dr $chaos shm $faults --mca pml_dr_checksum additive32
rehearsal:pair --mca pml dr $chaos tcp --mca btl_chaos_loss 10000 --mca btl_chaos_reorder 50000 --mca pml_dr_checksum none
rehearsal:pair --mca pml dr $chaos shm --mca btl_chaos_loss 10000 --mca btl_chaos_reorder 50000 --mca pml_dr_checksum none
# Links that refuse what is too much, acknowledgments like data.
rehearsal:pair --mca pml dr $chaos shm $faults --mca btl_chaos_throttle 20m --mca btl_chaos_hold 65536
# Two links, of which one dies and comes back; then both, and what still goes wrong.
rehearsal:pair --mca pml dr $chaos shm,tcp --mca pml_base_stripe all $dying --mca btl_chaos_links shm
rehearsal:all --mca pml dr $chaos shm,tcp $dying $faults
# The link in use dies soon, for good: another kind takes over, unasked.
rehearsal:pair --mca pml dr $chaos shm,tcp --mca btl_chaos_links shm --mca btl_chaos_life 20 --mca btl_chaos_dead 1000000
# What breaks no promise suits teg.
rehearsal:all $chaos shm,tcp --mca pml_base_stripe all $dying
rehearsal:pair $chaos shm --mca btl_chaos_delay 100000 --mca btl_chaos_throttle 100m
p2p --mca pml dr $chaos shm $faults
LIST
