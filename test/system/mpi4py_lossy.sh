#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# mpi4py's own tests over pml/dr and btl/udp between two hosts whose network loses packets: one packet is one datagram,
# or the network cuts them itself and loses up to 64 KiB at once. Needs an installed Hawser, HAWSER_PREFIX.
#
#   MPI4PY_LOSS      per cent that the network loses (1)
#   MPI4PY_RANKS     (4)
#   MPI4PY_SECONDS   limit of time for a module (1200): all ranks share the processors of one machine
#   MPI4PY_MODULES   only these (all of realworld/mpi4py-tests.list)
#   REALWORLD_WORK   folder where mpi4py is kept once it is built (one that goes away again)
. "$top_srcdir/test/support/tap.sh"
loss=${MPI4PY_LOSS:-1}
ranks=${MPI4PY_RANKS:-4}
seconds=${MPI4PY_SECONDS:-1200}
tap_start 28800

lab_script=$top_srcdir/test/lab/lab
HAWSER_LAB=mpi4py-$$
OMPI_MCA_plm_rsh_agent="$lab_script agent"
OMPI_MCA_rmaps_base_binding_policy=none # see links_lib.sh
export HAWSER_LAB OMPI_MCA_plm_rsh_agent OMPI_MCA_rmaps_base_binding_policy
lab() { "$lab_script" "$@"; }
reason=$(lab can 2>&1) || tap_skip_all "$reason"
[ -x "${HAWSER_PREFIX:-}/bin/mpirun" ] || tap_skip_all "HAWSER_PREFIX names no installed Hawser"
work=${REALWORLD_WORK:-$tap_dir/work}
trap 'lab down; rm -rf "$tap_dir"' EXIT

suite() { # ARGUMENTS OF mpi4py_suite.py
    python3 "$top_srcdir/test/system/realworld/mpi4py_suite.py" --prefix "$HAWSER_PREFIX" --work "$work" "$@" \
        >"$tap_dir/log" 2>&1 </dev/null
}
has_passed() {
    tail -1 "$tap_dir/log" | grep -q '^1\.\.[1-9]' && ! grep -A60 '^not ok' "$tap_dir/log"
}
# Without a lab: on its hosts nothing can be downloaded.
suite --ranks 1 --link "shm=--mca btl self" test_package
grep -q '^1\.\.0 # SKIP' "$tap_dir/log" && tap_skip_all "$(sed -n 's/^1\.\.0 # SKIP //p' "$tap_dir/log")"
tap_ok "mpi4py is built" has_passed

# Joining processes wait in accept(), outside MPI, where only a progress thread sends again what was lost.
waiting=test_dynproc
modules=${MPI4PY_MODULES:-$(sed 's/[ #].*//; /^$/d' "$top_srcdir/test/system/realworld/mpi4py-tests.list")}

passes() { # ARGUMENTS OF MPIRUN in a word, MODULES
    arguments=$1
    shift
    [ $# -gt 0 ] || return 0
    suite --ranks "$ranks" --seconds "$seconds" --mpiexec "$lab_script exec h1 $HAWSER_PREFIX/bin/mpirun --oversubscribe" \
        --link "udp=--host h1:$ranks,h2:$ranks --map-by node --mca pml dr --mca btl udp,self --mca net_include lo,eth1 $arguments" "$@"
    has_passed
}
for offload in "" --no-offload; do
    lab up 2 1 $offload --owner $$ >"$tap_dir/up" 2>&1 || tap_skip_all "no lab: $(head -1 "$tap_dir/up")"
    lab loss h1 1 "$loss"
    # shellcheck disable=SC2046 # one argument a module
    tap_ok "mpi4py's modules, $loss % of the packets lost ${offload:-with offload}" \
        passes "" $(printf '%s\n' $modules | grep -vx $waiting)
    # shellcheck disable=SC2046
    tap_ok "$waiting, with progress threads" \
        passes "--mca opal_progress_thread 1" $(printf '%s\n' $modules | grep -x $waiting)
    lab down
done
tap_end
