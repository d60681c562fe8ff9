#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# The tests of MPI's behaviour over pml/dr and each set of links, good and bad. A failed point names its combination.
# Here each program runs over one set, the next one over the next (messages: matrix.sh and rehearsal.sh).
#
#   DR_SUITE_ALL    any: every program over every set
#   DR_SUITE_SEED   of the faults (1); says where the turn of the sets begins, too
. "$top_srcdir/test/support/combinations.sh"
seed=${DR_SUITE_SEED:-1}
chaos="chaos,self --mca btl_chaos_wrap shm,tcp --mca btl_chaos_seed $seed"
rates="--mca btl_chaos_loss 10000 --mca btl_chaos_damage 10000 --mca btl_chaos_duplicate 10000 --mca btl_chaos_reorder 50000"
links() { # NUMBER
    case $(($1 % 5)) in
    0) echo udp,self ;;
    1) echo "$chaos $rates" ;;
    2) echo "$chaos --mca btl_chaos_links shm --mca btl_chaos_life 500 --mca btl_chaos_dead 500 --mca pml_base_stripe all" ;;
    3) echo tcp,self ;;
    4) echo shm,self ;;
    esac
}

# foreign is none of them: it is pml/chaos that forges a foreign process.
brief="coll:moves-5 coll:reductions-4 coll:inter-5 coll:large-2 coll:apart nbc:many-5 nbc:persistent-3
    coll_requests:reductions-3 coll_requests:moves-3 neighbor:neighbours-5 neighbor:long-blocks comm intercomm topo partitioned
    spawn port session threads lost datatype attributes errors init"
whole="p2p coll coll_requests nbc neighbor comm intercomm topo partitioned spawn port session threads lost datatype
    attributes errors init tools"

programs=$brief
[ -n "${DR_SUITE_ALL:-}" ] && programs=$whole

points() {
    turn=$seed
    for program in $programs; do
        set=0
        while [ "$set" -lt 5 ]; do
            if [ "$program" = spawn ] && [ "$set" = 4 ]; then
                : # shared memory does not join jobs
            elif [ "$program-$set" = spawn-1 ] || [ "$program-$set" = lost-1 ] || [ "$program-$set" = lost-2 ]; then
                # nobody else sends again while parents rest, and victims wait for their death, outside of MPI
                echo "$program --mca pml dr --mca opal_progress_thread 1 --mca btl $(links "$set")"
            elif [ -n "${DR_SUITE_ALL:-}" ] || [ "$set" = $((turn % 5)) ]; then
                echo "$program --mca pml dr --mca btl $(links "$set")"
            fi
            set=$((set + 1))
        done
        turn=$((turn + 1))
    done
}
combinations <<LIST
$(points)
LIST
