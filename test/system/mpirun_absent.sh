#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# mpirun: who goes on waits for none that has ended in order.
. "$top_srcdir/test/system/lib.sh"

absent() { # COUNT ARGUMENTS
    ranks=$1
    shift
    run -n "$ranks" -x "ABSENT_LAST=$((ranks - 1))" --timeout 60 "$top_builddir/test/system/absent" "$@"
}
for links in "" tcp,self; do
    [ -z "$links" ] || export OMPI_MCA_btl=$links
    for arguments in "2 start" "3 start" "3 start 1500" "2 alone" "3 again"; do
        # shellcheck disable=SC2086 # several words
        absent $arguments
        is "$arguments${links:+ over $links}" "$code $(cat out)" "0 done"
    done
    absent 3 call
    is "who calls one that has ended without MPI_Init is told so${links:+, over $links}" \
        "$code $(grep -c 'Rank 2 on host .* has ended, or was killed, without MPI_Finalize' err)" "16 1"
done
ok "nothing left" nothing_left
done_testing
