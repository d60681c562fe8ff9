#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# mpirun --timeout: the end of a job that hangs, and what it tells about where it hangs.
. "$top_srcdir/test/system/lib.sh"
stuck=$top_builddir/test/system/stuck

# A debugger may look at a process that is not its child? (Yama, containers)
may_debug() {
    command -v gdb >/dev/null || return 1
    sleep 20 &
    gdb -nx -batch -iex "set debuginfod enabled off" -ex bt -p $! 2>/dev/null | grep -q '^#0'
    answer=$?
    kill $!
    return $answer
}

run --timeout 1 -n 2 "$stuck"
is "the exit code" "$code" 124
is "one message" "$(grep -c 'time limit of 1 s' err) $(wc -l <err)" "1 1"

run --timeout 1 --report-state-on-timeout -n 2 "$stuck"
is "states" "$code $(grep -c 'rank [01] (.*stuck, pid [0-9]* on .*) runs, has not called MPI_Init' err)" "124 2"

if may_debug; then
    run --timeout 1 --get-stack-traces -n 3 "$stuck"
    is "stacks by a debugger" "$code $(grep -c 'stack trace of rank [012] ' err) $(grep -c '#.* stuck_in_here' err)" \
        "124 3 3"
    run --timeout 1 --get-stack-traces -n 1 sh -c "$stuck; true"
    is "of what a script has started as well" "$code $(grep -c 'stack trace of rank 0' err) $(grep -c '#.* stuck_in_here' err)" \
        "124 2 1"
else
    echo "ok $((count = count + 1)) # SKIP there is no gdb that may look at other processes"
fi

mkdir tools
for tool in gdb eu-stack pstack; do
    printf '#!/bin/sh\necho "ptrace: Operation not permitted."\nexit 1\n' >tools/$tool
    chmod +x tools/$tool
done
PATH=$work/tools:$PATH run --timeout 1 --get-stack-traces -n 2 "$stuck"
is "by the kernel where no debugger may" \
    "$code $(grep -c 'stack trace of rank [01] ' err) $(grep -c 'thread [0-9]* (stuck): state S' err)" "124 2 2"
printf '#!/bin/sh\nsleep 1000\n' >tools/gdb
PATH=$work/tools:$PATH run --timeout 1 --get-stack-traces --mca errmgr_base_stack_timeout 300 -n 6 "$stuck"
is "by the kernel where a debugger hangs" "$code $(grep -c 'thread [0-9]* (stuck): state S' err)" "124 6"
ok "nothing is left" wait_for nothing_left
done_testing
