#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# mpi4py's own tests of messages and collectives over RDMA devices, in the verbs lab: over openib, and dr over ud. mpi4py is built
# outside of it. Needs an installed Hawser, HAWSER_PREFIX.
#
#   MPI4PY_RANKS     (3)
#   MPI4PY_MODULES   (those of realworld/mpi4py-tests.list that exchange messages)
#   REALWORLD_WORK   folder where mpi4py is kept once it is built (one that goes away again)
. "$top_srcdir/test/support/tap.sh"
tap_start 14400
lab=$top_srcdir/test/lab/verbs
reason=$("$lab" can 2>&1) || tap_skip_all "$reason"
[ -x "${HAWSER_PREFIX:-}/bin/mpirun" ] || tap_skip_all "HAWSER_PREFIX names no installed Hawser"
work=${REALWORLD_WORK:-$tap_dir/work}
ranks=${MPI4PY_RANKS:-3}
each=$(((ranks + 1) / 2))
list=$top_srcdir/test/system/realworld/mpi4py-tests.list
modules=${MPI4PY_MODULES:-$(grep -oE '^(test_p2p|test_msg|test_cco|test_util_pkl5)[a-z0-9_]*' "$list")}

suite() { # ARGUMENTS OF mpi4py_suite.py
    python3 "$top_srcdir/test/system/realworld/mpi4py_suite.py" --prefix "$HAWSER_PREFIX" --work "$work" "$@"
}
inside() { # LINK=ARGUMENTS
    # shellcheck disable=SC2086
    "$lab" --hosts 2 --timeout 7000 -- python3 "$top_srcdir/test/system/realworld/mpi4py_suite.py" --prefix "$HAWSER_PREFIX" \
        --work "$work" --ranks "$ranks" --seconds 900 --mpiexec "/run/lab/bin/on 0 $HAWSER_PREFIX/bin/mpirun" \
        --link "$1 --host h0:$each,h1:$each --map-by node --bind-to none --mca plm_rsh_agent agent" $modules \
        >"$tap_dir/log" 2>&1 </dev/null
}
has_passed() {
    tail -1 "$tap_dir/log" | grep -q '^1\.\.[1-9]' && ! grep -A60 '^not ok' "$tap_dir/log"
}
suite --ranks 1 --link "shm=--mca btl self" test_package >"$tap_dir/log" 2>&1 </dev/null
grep -q '^1\.\.0 # SKIP' "$tap_dir/log" && tap_skip_all "$(sed -n 's/^1\.\.0 # SKIP //p' "$tap_dir/log")"
tap_ok "mpi4py is built" has_passed
for link in "openib=--mca pml teg --mca btl openib,self" "ud=--mca pml dr --mca btl ud,self"; do
    inside "$link"
    tap_ok "$(grep -c '^ok' "$tap_dir/log") of mpi4py's modules over ${link%%=*}" has_passed
done
tap_end
