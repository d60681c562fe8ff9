#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Runs the message tests over every point-to-point layer and set of links. A failed point names its combination.
. "$top_srcdir/test/support/combinations.sh"
faults="--mca btl_chaos_loss 10000 --mca btl_chaos_damage 10000 --mca btl_chaos_duplicate 10000 --mca btl_chaos_reorder 50000"
combinations <<LIST
to_self --mca btl shm,self
to_self --mca pml chaos --mca btl shm,self
to_self --mca pml dr --mca btl shm,self
windows --mca btl shm,self
windows --mca btl shm,self --mca btl_shm_single_copy never --mca btl_shm_ring 16k --mca btl_shm_pool 128k
windows --mca btl shm,self --mca opal_progress_thread 1
windows --mca btl tcp,self
windows --mca pml chaos --mca btl shm,self
windows --mca pml dr --mca btl shm,self
windows --mca pml dr --mca btl shm,self --mca pml_dr_checksum none
p2p --mca btl shm,self
p2p --mca btl shm,self --mca btl_shm_backing file
p2p --mca btl shm,self --mca btl_shm_single_copy never
p2p --mca btl shm,self --mca btl_shm_single_copy always --mca btl_shm_share_min 8k
p2p --mca btl tcp,self
p2p --mca btl shm,tcp,self --mca pml_base_stripe all
p2p --mca btl shm,self --mca opal_progress_thread 1
p2p --mca pml chaos --mca btl shm,self
p2p --mca pml chaos --mca btl tcp,self --mca pml_chaos_seed 2
p2p --mca pml chaos --mca btl shm,tcp,self --mca pml_base_stripe all --mca pml_chaos_seed 3
p2p --mca pml dr --mca btl shm,self
p2p --mca pml dr --mca btl shm,self --mca pml_dr_checksum none
p2p --mca pml dr --mca btl shm,self --mca pml_dr_checksum none --mca btl_shm_single_copy never --mca opal_progress_thread 1
p2p --mca pml dr --mca btl shm,self --mca pml_dr_checksum none --mca pml_dr_bare 0
p2p --mca pml dr --mca btl shm,tcp,self --mca pml_base_stripe all --mca pml_dr_checksum none
p2p --mca pml dr --mca btl tcp,self
p2p --mca pml dr --mca btl shm,tcp,self --mca pml_base_stripe all
p2p --mca pml dr --mca btl udp,self
p2p --mca pml dr --mca btl udp,shm,tcp,self --mca pml_base_stripe all
p2p --mca pml dr --mca btl chaos,self --mca btl_chaos_wrap shm,tcp --mca btl_chaos_life 500 --mca btl_chaos_dead 500 --mca btl_chaos_loss 5000 --mca pml_base_stripe all
comm --mca pml dr --mca btl chaos,self --mca btl_chaos_wrap shm $faults
coll --mca btl shm,self
coll --mca btl tcp,self
coll --mca pml chaos --mca btl shm,tcp,self --mca pml_base_stripe all --mca pml_chaos_seed 4 --mca opal_progress_thread 1
coll --mca pml dr --mca btl shm,tcp,self
coll --mca pml dr --mca btl shm,self --mca pml_dr_checksum none --mca coll ^shm
coll --mca coll ^shm
coll --mca coll_shm_after 0 --mca coll_shm_meet direct
coll --mca coll_shm_after 0 --mca coll_shm_block 256 --mca coll_shm_reduce_max 1g --mca coll_shm_bcast_max 1g
coll_shm --mca coll_shm_after 0 --mca coll_shm_meet direct
coll_shm --mca coll_shm_after 0 --mca coll_shm_meet tree --mca coll_shm_reduce_max 1g --mca btl tcp,self
coll_shm:chosen-5 --mca coll_shm_after 0 --mca coll_shm_block 256
coll_shm:mixed-5 --mca coll ^shm
coll_shm:threads-2 --mca coll_shm_after 0 --mca opal_progress_thread 1
coll_requests:moves-5 --mca btl tcp,self
coll_requests:reductions-5 --mca btl tcp,self
coll_requests:inter-5 --mca btl tcp,self
nbc --mca btl tcp,self
nbc --mca btl shm,tcp,self --mca pml_base_stripe all --mca opal_progress_thread 1
nbc --mca pml chaos --mca btl shm,tcp,self --mca pml_base_stripe all --mca pml_chaos_seed 7
nbc --mca pml dr --mca btl shm,tcp,self
neighbor:neighbours-5 --mca btl tcp,self
neighbor:long-blocks --mca btl tcp,self
neighbor:neighbours-5 --mca pml chaos --mca btl shm,self --mca pml_chaos_seed 8
datatype --mca btl tcp,self
huge:elements --mca btl tcp,self
datatype --mca pml dr --mca btl tcp,self --mca pml_dr_checksum additive32
datatype --mca pml dr --mca btl shm,self --mca pml_dr_checksum none
datatype --mca pml chaos --mca btl shm,self --mca pml_chaos_seed 5
comm --mca pml chaos --mca btl shm,self --mca pml_chaos_seed 6
intercomm --mca btl tcp,self
topo --mca btl tcp,self
lost --mca btl tcp,self
lost --mca pml dr
lost --mca pml dr --mca pml_dr_checksum none
foreign --mca btl tcp,self
events:unexpected --mca btl tcp,self
events:dropped --mca btl tcp,self
events:handles --mca pml dr --mca btl shm,tcp,self
bind --mca pml dr --mca btl shm,tcp,self
bind --mca btl shm,tcp,self --mca pml_base_stripe all --mca opal_progress_thread 1
# chaos holds the last words of the killed process, which die with it.
lost:strangers --mca pml chaos --mca btl shm,self --mca pml_chaos_seed 7
partitioned --mca btl tcp,self
partitioned:shapes --mca pml chaos --mca btl shm,self --mca opal_progress_thread 1 --mca pml_chaos_seed 7
partitioned:matching --mca pml chaos --mca btl shm,self --mca opal_progress_thread 1 --mca pml_chaos_seed 7
LIST
