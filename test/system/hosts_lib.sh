# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Shared by the tests of mpirun over several hosts of a lab: lab_up N before anything else, then run, start and
# finish as in lib.sh, with mpirun on h1 and the lab's agent in place of ssh.
. "$top_srcdir/test/system/lib.sh"

lab_script=$top_srcdir/test/lab/lab
HAWSER_LAB=hosts-$$
OMPI_MCA_plm_rsh_agent="$lab_script agent"
export HAWSER_LAB OMPI_MCA_plm_rsh_agent
real_mpirun=$mpirun

lab() { "$lab_script" "$@"; }

# lab_up N: hosts h1 .. hN; skips the test where that can't be.
lab_up() {
    reason=$(lab can 2>&1) || { echo "1..0 # SKIP $reason"; exit 0; }
    trap 'lab down; rm -rf "$work" "$TMPDIR"' EXIT
    lab up "$1" --owner $$ >/dev/null || { echo "Bail out! no lab"; exit 99; }
    hosts=$(lab hosts)
}

# mpirun on h1, as a command of one word.
cat >"$work/mpirun" <<END
#!/bin/sh
exec "$lab_script" exec h1 "$real_mpirun" "\$@"
END
chmod +x "$work/mpirun"
mpirun=$work/mpirun

# Processes on the hosts but the lab's own keepers; "HOST PID COMMAND".
running() { lab ps | awk '$3 != "hawser-lab"'; }
nothing_on_hosts() {
    [ -z "$(running)" ] && [ -z "$(ls -A "$TMPDIR")" ] && for host in $hosts; do
        [ -z "$(lab exec "$host" find /dev/shm -name 'hawser.*')" ] || return 1
    done
}
# Within ten seconds of $since (from date +%s%N), which is how long a user has to wait at most. On a machine that
# has much more to do than it can (others' tests), the looking alone takes longer than that.
gone_in_time() {
    limit=10
    is_busy && limit=60
    wait_for nothing_on_hosts && [ $(($(date +%s%N) - since)) -lt ${limit}000000000 ] && return 0
    echo "# left $((($(date +%s%N) - since) / 1000000)) ms after:"
    running | sed 's/^/# /' | head -20
    ls -A "$TMPDIR" | sed 's/^/# /'
    return 1
}
