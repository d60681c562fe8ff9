#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Jobs started by PRRTE's prterun: on this host, and on three hosts of the lab.
. "$top_srcdir/test/support/tap.sh"
. "$top_srcdir/test/support/openmpi.sh"
tap_start 200

lab=$top_srcdir/test/lab/lab
probe=$top_builddir/test/system/launch_probe
HAWSER_LAB=prterun-$$
PRTE_ALLOW_RUN_AS_ROOT=1
PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export HAWSER_LAB PRTE_ALLOW_RUN_AS_ROOT PRTE_ALLOW_RUN_AS_ROOT_CONFIRM
prefix=$(openmpi_prefix 2>"$tap_dir/why") || tap_skip_all "$(cat "$tap_dir/why")"
trap '"$lab" down; rm -rf "$tap_dir"' EXIT
cd "$tap_dir" || exit 99

# A command with a time limit: output in out and err, code in $code.
run() {
    timeout -k 5 60 "$@" >out 2>err </dev/null
    code=$?
}
is() { tap_ok "$1" test "$2" = "$3" || :; [ "$2" = "$3" ] || { echo "# got: $2"; sed 's/^/# /' err; }; }
says() { grep -qF -- "$1" "$2" || { cat "$2"; return 1; }; }
# Nothing of ours; prterun itself complains about the older libpmix of its clients.
quiet() { ! grep -q '^hawser:' err || { cat err; return 1; }; }

here="$prefix/bin/prterun --map-by :OVERSUBSCRIBE"
run $here -n 4 "$probe" where
h=$(uname -n):4
is "prterun on one host" "$code $(cat out)" "0 4 ranks: $h $h $h $h"
tap_ok "without complaint of ours" quiet
OMPI_MCA_btl=shm,self run $here -n 4 "$probe" where
is "joined by shared memory" $code 0
run $here -n 1 "$probe" where
is "one rank" $code 0
run $here -n 3 "$probe" code 5
is "the exit code of a rank" $code 5
run $here -n 3 "$probe" abort 9
is "MPI_Abort: its code" $code 9
tap_ok "MPI_Abort: who called it" says "MPI_Abort was called with code 9 by rank 2" err
run $here -n 3 "$probe" kill
is "a rank killed: the job ends" $code 137

# Jobs that start jobs.
family=$top_builddir/test/mpi/spawn
for kind in one three grandchildren multiple often errors; do
    run $here -n 2 "$family" $kind
    tap_ok "MPI_Comm_spawn: $kind: without complaint of ours" quiet
    [ $kind = errors ] || is "MPI_Comm_spawn: $kind" $code 0
done

if reason=$("$lab" can 2>&1); then
    tap_ok "three hosts" "$lab" up 3 1 --owner $$
    there="$lab exec h1 $prefix/bin/prterun --prtemca prte_launch_agent $prefix/bin/prted"
    run $there --prtemca plm_ssh_agent "$lab agent" --map-by node --host h1:2,h2:2,h3:2 -n 6 "$probe" where
    is "prterun on three hosts" "$code $(cat out)" "0 6 ranks: h1:2 h2:2 h3:2 h1:2 h2:2 h3:2"
    tap_ok "three hosts: without complaint of ours" quiet
    run $there --prtemca plm_ssh_agent "$lab agent" --host h1:1,h2:1,h3:1 -n 3 "$probe" abort 9
    is "three hosts: MPI_Abort" $code 9
    gone() { for _ in $(seq 100); do "$lab" ps | grep -q launch_probe || return 0; sleep 0.05; done; return 1; }
    tap_ok "three hosts: nothing runs on" gone
else
    tap_skip "prterun on three hosts" "$reason"
fi
tap_end
