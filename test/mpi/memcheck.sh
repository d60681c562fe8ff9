#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Programs and library under valgrind's memcheck: nothing that was never written decides anything, and nothing is read or written outside.
# The sanitizers of test/run see the latter only.
. "$top_srcdir/test/support/tap.sh"
tap_start 400
command -v valgrind >/dev/null || tap_skip_all "no valgrind"

# memcheck PROGRAM CASE PML BTL: two processes, slow ones.
memcheck() {
    tap_ok "$1 $2, $3 over $4: memcheck finds nothing" env MPI_TEST_SLOWNESS=4 "${MPIRUN:-$top_builddir/orte/mpirun}" -n 2 --bind-to none --mca pml "$3" --mca btl "$4,self" \
        "$top_builddir/libtool" --mode=execute valgrind -q --error-exitcode=9 "$top_builddir/test/mpi/$1" "$2"
}

for links in "teg shm" "teg tcp" "dr shm" "dr tcp" "dr udp"; do
    memcheck p2p modes ${links}
done
memcheck p2p truncation teg shm
memcheck p2p truncation dr udp
for link in tcp udp; do
    memcheck unasked posted dr $link
done
tap_end
