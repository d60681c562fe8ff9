#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Everything that needs RDMA devices, in one boot of the verbs lab: test/system/verbs_inside.sh. What the lab
# itself promises (exit codes, output, the end after a time) is checked here.
. "$top_srcdir/test/support/tap.sh"
tap_start 1240
lab=$top_srcdir/test/lab/verbs
reason=$("$lab" can 2>&1) || tap_skip_all "$reason"
TMPDIR=$tap_dir
top_srcdir=$(cd "$top_srcdir" && pwd)
top_builddir=$(cd "$top_builddir" && pwd)
export TMPDIR top_srcdir top_builddir

"$lab" --hosts 2 --timeout 1200 -- sh "$top_srcdir/test/system/verbs_inside.sh" >"$tap_dir/inside" 2>"$tap_dir/err"
code=$?
# A machine without the network cannot fetch the kernel: that says nothing of us.
if [ $code = 125 ] && grep -q 'could not be fetched' "$tap_dir/err"; then
    tap_skip_all "$(tail -1 "$tap_dir/err")"
fi
grep -v '^1\.\.' "$tap_dir/inside"
points=$(grep -cE '^(not )?ok ' "$tap_dir/inside")
tap_count=$points
tap_failed=$(grep -c '^not ok ' "$tap_dir/inside")
plan=$(sed -n 's/^1\.\.//p' "$tap_dir/inside")
ended_well() {
    [ "$code" = 7 ] && [ "${plan:-none}" = "$points" ] && return
    echo "exit code $code, plan ${plan:-none}"
    tail -20 "$tap_dir/err"
    return 1
}
tap_ok "the lab's command ended, and its exit code came out" ended_well
tap_ok "what it said on stderr came out there" grep -q '^a word on stderr$' "$tap_dir/err"
tap_ok "nothing of the lab is left" test -z "$(find "$tap_dir" -name 'hwverbs.*')"
tap_end
