#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# A gigabyte through standard input arrives unchanged, at the pace of its reader, without growing mpirun.
. "$top_srcdir/test/system/lib.sh"

# The same gigabyte each time: no two blocks of it are equal.
gigabyte() { awk 'BEGIN { for (i = 0; i < 16384; i++) { printf "%-65535d\n", i * 2654435761 } }'; }
want=$(gigabyte | cksum)

# Peak memory of the mpirun with this pid, in kB.
peak() { awk '/^VmHWM/ { print $2 }' "/proc/$1/status"; }

mkfifo in
mkfifo go
gigabyte >in &
"$mpirun" -n 2 sh -c 'if [ "$PMIX_RANK" = 0 ]; then sleep 2; cksum; cat go >/dev/null; fi' <in >out 2>err &
pid=$!
printed() { [ -s out ]; }
for _ in 1 2 3 4 5 6; do wait_for printed && break; done
is "1 GiB to rank 0, which begins to read late" "$(cat out)" "$want"
memory=$(peak $pid)
ok "mpirun needed ${memory:-?} kB" test "${memory:-999999}" -lt 100000
echo >go
finish
is "the end" "$code$(cat err)" 0
done_testing
