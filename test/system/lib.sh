# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Shared by the shell tests of mpirun: TAP output, time limits, and a look for whatever was left behind.
# A test has a TMPDIR of its own, and its processes carry a mark, so tests may run at the same time.

# After $TEST_SECONDS (600) the script and all that it runs are ended. Behind timeout no signal is ignored, as SIGHUP is behind nohup.
if [ -z "${TEST_LIMITED:-}" ]; then
    TEST_LIMITED=1 exec timeout --kill-after=5 "${TEST_SECONDS:-600}" sh "$0"
fi

mpirun=${MPIRUN:-$top_builddir/orte/mpirun}
client=${PMIX_CLIENT:-$top_builddir/test/system/pmix_client}
count=0
failed=0
mark=hawser-test-$$

TMPDIR=$(mktemp -d "${TMPDIR:-/tmp}/hawser-test.XXXXXX")
work=$(mktemp -d "${TMPDIR}.work.XXXXXX")
export TMPDIR HAWSER_TEST_MARK="$mark"
unset OMP_NUM_THREADS
cd "$work" || exit 99
trap 'rm -rf "$work" "$TMPDIR"' EXIT
trap 'exit 143' TERM INT HUP

# ok DESCRIPTION COMMAND...: the command must succeed.
ok() {
    count=$((count + 1))
    description=$1
    shift
    if "$@"; then
        echo "ok $count - $description"
    else
        failed=$((failed + 1))
        echo "not ok $count - $description"
        [ -f err ] && sed 's/^/# stderr: /' err | head -5
    fi
}

is() { # DESCRIPTION ACTUAL EXPECTED
    ok "$1" test "$2" = "$3"
    [ "$2" = "$3" ] || printf '# got:      %s\n# expected: %s\n' "$2" "$3"
}

# run ARGUMENTS...: mpirun with a time limit; standard output to `out`, error to `err`, code in $code.
run() {
    timeout -k 5 30 "$mpirun" "$@" >out 2>err
    code=$?
}

# wait_for COMMAND...: until it succeeds; limits how long a failure takes, nothing else.
wait_for() {
    for _ in $(seq 400); do
        "$@" && return 0
        sleep 0.05
    done
    return 1
}

# Has this machine much more to do than it can (others' tests)? Then everything takes longer.
is_busy() { awk -v cpus="$(nproc)" '{ exit $1 < 4 * cpus }' /proc/loadavg; }

# Files in /proc of the processes that carry the mark of start().
marked() {
    grep -lsz "^HAWSER_JOB_MARK=$mark\$" /proc/[0-9]*/environ
}

# Start mpirun in the background, its processes marked; its pid in $pid.
start() {
    "$mpirun" -x HAWSER_JOB_MARK="$mark" "$@" >out 2>err &
    pid=$!
}

# The code with which the started mpirun ends, in $code.
finish() {
    wait "$pid" 2>/dev/null
    code=$?
}

nothing_left() {
    [ -z "$(marked)" ] && [ -z "$(ls -A "$TMPDIR")" ] &&
        ! ls /dev/shm | grep -q "^hawser\.mpirun-.*$mark"
}

done_testing() {
    echo "1..$count"
    [ "$failed" = 0 ]
    exit
}
