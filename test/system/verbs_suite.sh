#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# The tests of MPI's behaviour over RDMA devices, in the verbs lab: teg and dr over openib, dr over ud, dr over ud and tcp together.
# Here each program runs over one set of links, the next one over the next.
#
#   VERBS_SUITE_ALL       any: whole programs, each over every set; a boot for each program
#   VERBS_SUITE_PROGRAMS  which, of test/mpi
#   VERBS_SUITE_SETS      of teg-openib, dr-openib, dr-ud, dr-ud-tcp
#   VERBS_SUITE_LOSS      per cent of the devices' frames that are lost (0)
. "$top_srcdir/test/support/tap.sh"
all=${VERBS_SUITE_ALL:-}
tap_start ${all:+4}1260
lab=$top_srcdir/test/lab/verbs
reason=$("$lab" can 2>&1) || tap_skip_all "$reason"
top_srcdir=$(cd "$top_srcdir" && pwd)
top_builddir=$(cd "$top_builddir" && pwd)
for component in openib ud; do
    [ -f "$top_builddir/ompi/mca/btl/$component/.libs/mca_btl_$component.so" ] ||
        tap_skip_all "btl/$component is not built as a loadable object"
done
brief="p2p:storm coll:moves-5 datatype:window nbc:many-5 neighbor:neighbours-5 coll:reductions-4 comm:split coll_requests:moves-3
    p2p:beside p2p:beside p2p:beside"
whole="p2p coll coll_requests nbc neighbor comm intercomm topo partitioned port session threads datatype attributes errors init"
programs=${VERBS_SUITE_PROGRAMS:-$brief}
[ -z "$all" ] || programs=${VERBS_SUITE_PROGRAMS:-$whole}
VERBS_SUITE_SETS=${VERBS_SUITE_SETS:-teg-openib dr-openib dr-ud dr-ud-tcp}
MPI_TEST_SLOWNESS=5 # of an emulated machine
VERBS_SUITE_TURN=0
TMPDIR=$tap_dir
export TMPDIR top_srcdir top_builddir VERBS_SUITE_PROGRAMS VERBS_SUITE_SETS VERBS_SUITE_TURN MPI_TEST_SLOWNESS

# PROGRAM... in one boot
boot() {
    VERBS_SUITE_PROGRAMS=$*
    "$lab" --hosts 2 --timeout ${all:+3}1200 -- on 0 sh "$top_srcdir/test/system/verbs_suite_inside.sh" >"$tap_dir/inside" 2>"$tap_dir/err"
    code=$?
    # A machine without the network cannot fetch the kernel: that says nothing of us.
    if [ $code = 125 ] && grep -q 'could not be fetched' "$tap_dir/err"; then
        tap_skip_all "$(tail -1 "$tap_dir/err")"
    fi
    sed -n "s/^\\(not \\)\\{0,1\\}ok [0-9]* - /\\1/p" "$tap_dir/inside" >"$tap_dir/points"
    grep -v '^1\.\.\|^ok ' "$tap_dir/inside" | sed 's/^not ok/# not ok/'
    while read -r point; do
        tap_ok "${point#not }" test "$point" = "${point#not }"
    done <"$tap_dir/points"
    [ "$(sed -n 's/^1\.\.//p' "$tap_dir/inside")" = "$(wc -l <"$tap_dir/points")" ] && return
    tap_ok "all of $* came to an end" false
    tail -20 "$tap_dir/err" | sed 's/^/# /'
}
# shellcheck disable=SC2086
if [ -n "$all" ]; then
    for program in $programs; do
        boot "$program"
    done
else
    boot $programs
fi
tap_end
