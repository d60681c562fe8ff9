#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Messages in pieces that nobody has asked for (unasked.c), over links that carry datagrams, streams, and with faults, where the first fragment
# may come behind its pieces, and through shared memory (single copies left out: that way is tried, too, and chosen where it is faster). Under
# teg the same messages go another way.
. "$top_srcdir/test/support/combinations.sh"
each() { # VARIABLE ARGUMENTS
    for test in posted early probed strided; do
        echo "$1 unasked:$test $2"
    done
}
faults="--mca btl_chaos_loss 30000 --mca btl_chaos_damage 30000 --mca btl_chaos_duplicate 20000 --mca btl_chaos_reorder 100000"
combinations <<LIST
$(each UNASKED=1 "--mca pml dr --mca btl udp,self")
$(each UNASKED=0 "--mca pml dr --mca btl tcp,self")
$(each UNASKED=0 "--mca pml dr --mca btl udp,self --mca btl_udp_mtu 1500")
$(each UNASKED=0 "--mca pml dr --mca btl chaos,self --mca btl_chaos_wrap udp --mca btl_chaos_seed 11 $faults")
$(each UNASKED=0 "--mca pml dr --mca btl chaos,self --mca btl_chaos_wrap tcp --mca btl_chaos_seed 12 $faults")
$(each UNASKED=0 "--mca pml dr --mca btl udp,self --mca pml_dr_pieces_max 0")
$(each UNASKED=1 "--mca pml dr --mca btl shm,self --mca btl_shm_single_copy never")
$(each UNASKED=0 "--mca pml dr --mca btl shm,self")
$(each UNASKED=0 "--mca pml dr --mca btl shm,self --mca pml_dr_checksum none --mca btl_shm_single_copy never")
$(each UNASKED=0 "--mca pml dr --mca btl chaos,self --mca btl_chaos_wrap shm --mca btl_chaos_seed 13 $faults")
$(each UNASKED=0 "--mca pml teg --mca btl tcp,self")
UNASKED=1 unasked:answered --mca pml dr --mca btl udp,self --mca btl_udp_window 256k --mca pml_dr_rto_min 4000000
UNASKED=0 unasked:answered --mca pml dr --mca btl tcp,self
UNASKED=1 unasked:answered --mca pml dr --mca btl shm,self --mca btl_shm_single_copy never
UNASKED=1 unasked:forgotten --mca pml dr --mca btl udp,self
UNASKED=0 unasked:forgotten --mca pml dr --mca btl tcp,self
UNASKED=1 unasked:forgotten --mca pml dr --mca btl shm,self --mca btl_shm_single_copy never
unasked:abandoned --mca pml dr --mca btl shm,self --mca btl_shm_single_copy never --mca pml_dr_path_timeout 2
unasked:others --mca pml dr --mca btl udp,self
unasked:others --mca pml dr --mca btl tcp,self
unasked:others --mca pml dr --mca btl shm,self --mca btl_shm_single_copy never
unasked:probed --mca pml dr --mca btl udp,self --mca opal_progress_thread 1
LIST
