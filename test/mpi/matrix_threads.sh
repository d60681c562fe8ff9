#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# What runs several threads, over the links and layers, with and without the progress thread: the phase "threads" of test/run
# runs this under ThreadSanitizer.
. "$top_srcdir/test/support/combinations.sh"
traces=$(mktemp -d) && trap 'rm -rf "$traces"' EXIT
combinations <<LIST
threads --mca btl shm,self
threads --mca btl tcp,self
threads --mca btl shm,self --mca btl_shm_lanes 2
LANES=1 lanes --bind-to none --mca btl shm,self --mca btl_shm_lanes 3
LANES=1 lanes --mca btl shm,tcp,self --mca btl_shm_lanes 1 --mca opal_progress_thread 1
LANES=1 lanes --bind-to none --mca btl shm,self --mca btl_shm_lanes 2 --mca btl_shm_backing file --mca btl_shm_ring 2k --mca pml_base_eager_window 8k
lanes --bind-to none --mca btl shm,self --mca btl_shm_lanes 3 --mca pml_base_trace_links $traces/%r
lanes --mca btl shm,self --mca btl_shm_lanes 0
lanes --mca pml dr --mca btl shm,self --mca btl_shm_lanes 3
threads --mca btl shm,tcp,self --mca pml_base_stripe all --mca opal_progress_thread 1
threads --mca pml chaos --mca btl shm,tcp,self --mca pml_base_stripe all --mca pml_chaos_seed 1 --mca opal_progress_thread 1
threads:requests --mca pml dr --mca btl chaos,self --mca btl_chaos_wrap tcp --mca opal_progress_thread 1
threads:joined --mca pml dr --mca btl shm,self
threads:meeting --mca pml dr --mca btl shm,self
p2p:threads --mca btl shm,self
p2p:threads --mca btl shm,self --mca btl_shm_single_copy never
p2p:threads --mca btl tcp,self
p2p:threads --mca btl shm,tcp,self --mca pml_base_stripe all --mca opal_progress_thread 1
p2p:threads --mca pml chaos --mca btl shm,tcp,self --mca pml_base_stripe all --mca pml_chaos_seed 2 --mca opal_progress_thread 1
p2p:storm --mca btl shm,self --mca opal_progress_thread 1
p2p:threads --mca btl shm,self --mca btl_shm_lanes 3
p2p:cancelling --mca btl shm,self --mca opal_progress_thread 1
lost:from-any --mca btl shm,tcp,self --mca opal_progress_thread 1
lost:probe-any --mca btl shm,self --mca opal_progress_thread 1
init:threads-talk --mca btl shm,self
init:signals --mca opal_progress_thread 1
init:threads-talk --mca btl tcp,self
comm:threads --mca btl shm,self
comm:threads --mca btl shm,self --mca btl_shm_lanes 3
comm:threads-and-sequence --mca btl tcp,self --mca opal_progress_thread 1
comm:free-pending --mca btl shm,self --mca opal_progress_thread 1
windows:single --mca btl shm,self --mca opal_progress_thread 1
events --mca btl shm,self
events --mca btl shm,tcp,self --mca opal_progress_thread 1
partitioned:threads --mca btl shm,self
partitioned:threads --mca btl shm,self --mca btl_shm_lanes 3
partitioned:threads --mca pml chaos --mca btl shm,tcp,self --mca pml_chaos_seed 4 --mca opal_progress_thread 1
coll:threads --mca btl shm,self
coll:threads --mca btl shm,self --mca btl_shm_lanes 3
coll:threads --mca btl tcp,self
coll_requests:threads --mca btl shm,self
coll_requests:threads --mca btl shm,self --mca btl_shm_lanes 3
coll_requests:threads --mca btl shm,tcp,self --mca pml_base_stripe all --mca opal_progress_thread 1
nbc:threads --mca btl shm,self
nbc:threads --mca btl shm,self --mca btl_shm_lanes 3
nbc:threads --mca btl tcp,self --mca opal_progress_thread 1
nbc:many-3 --mca btl shm,self --mca opal_progress_thread 1
nbc:threads --mca pml chaos --mca btl shm,tcp,self --mca pml_base_stripe all --mca pml_chaos_seed 4 --mca opal_progress_thread 1
coll:threads --mca pml chaos --mca btl shm,self --mca pml_chaos_seed 3 --mca opal_progress_thread 1
LIST
