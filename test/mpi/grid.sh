#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# mpi/grid over {1 to 5 ranks} x {point-to-point layers} x {sets of links}. A few points of the product, drawn from GRID_SEED,
# with a few cases each; GRID_POINTS=all and GRID_CASES=all take all of them, and send more than 2 GiB over each. That takes
# hours: GRID_PARTS=n makes n points of each, each with a part of the cases, the first part of all before the second of any
# (combinations.sh tells how to leave off and go on).
. "$top_srcdir/test/support/combinations.sh"
GRID_SEED=${GRID_SEED:-$(date +%j)} # another one each day
GRID_CASES=${GRID_CASES:-150}
GRID_POINTS=${GRID_POINTS:-8}
export GRID_SEED GRID_CASES
parts=${GRID_PARTS:-1}

# Links that lose data go with dr alone.
points() { # PART
    for pml in teg chaos dr; do
        for links in shm tcp shm,tcp udp shm,udp tcp,udp shm,tcp,udp; do
            case $pml:$links in dr:* | *:shm | *:tcp | *:shm,tcp) ;; *) continue ;; esac
            where="--mca pml $pml --mca btl $links,self --mca pml_base_stripe all --mca pml_chaos_seed $GRID_SEED"
            for ranks in 1 2 3 4 5; do
                echo "GRID_PART=$1/$parts grid:ranks-$ranks $where"
            done
            [ "$GRID_POINTS" != all ] || [ "$1" != 1 ] || echo "huge $where"
        done
    done
}
parts_of_points() {
    for part in $(seq "$parts"); do
        points "$part"
    done
}
echo "# seed $GRID_SEED, $GRID_CASES cases"
drawn() {
    awk -v seed="$GRID_SEED" 'BEGIN { srand(seed) } { print rand() "\t" $0 }' | sort -n | cut -f 2- | head -n "$GRID_POINTS"
}
if [ "$GRID_POINTS" = all ]; then
    parts_of_points
else
    parts_of_points | drawn
fi | combinations
