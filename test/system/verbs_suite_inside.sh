#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Run by verbs_suite.sh in the verbs lab: test programs of test/mpi, their processes spread over the lab's two hosts, in turn, so
# that neighbours are on different ones. All messages cross a device, also those between processes of one host.
. "$top_srcdir/test/support/combinations.sh"
hosts="--host h0:8,h1:8 --map-by node --bind-to none --mca plm_rsh_agent agent"
set_of() { # NAME
    case $1 in
    teg-openib) echo "--mca pml teg --mca btl openib,self" ;;
    dr-openib) echo "--mca pml dr --mca btl openib,self" ;;
    dr-ud) echo "--mca pml dr --mca btl ud,self" ;;
    dr-ud-tcp) echo "--mca pml dr --mca btl ud,tcp,self --mca pml_base_stripe all" ;;
    *) echo "no set of links $1" >&2; return 1 ;;
    esac
}
points() {
    turn=$VERBS_SUITE_TURN
    for program in $VERBS_SUITE_PROGRAMS; do
        # shellcheck disable=SC2086
        set -- $VERBS_SUITE_SETS
        [ -n "${VERBS_SUITE_ALL:-}" ] || { shift $((turn % $#)); set -- "$1"; }
        for links; do
            echo "$program $hosts $(set_of "$links")"
        done
        turn=$((turn + 1))
    done
}
[ "${VERBS_SUITE_LOSS:-0}" = 0 ] || loss "$VERBS_SUITE_LOSS"
combinations <<LIST
$(points)
LIST
