#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Jobs that processes ask for (MPI_Comm_spawn): their output, what the user is told of them, and their end. What they
# do among each other is in mpi/spawn.c. HAWSER_TEST_SOAK=N: N times as many ends at some moment;
# HAWSER_TEST_SEED chooses them.
. "$top_srcdir/test/system/lib.sh"
family=$top_builddir/test/mpi/spawn
h=$(uname -n)
seed=${HAWSER_TEST_SEED:-$(date +%s)}
echo "# HAWSER_TEST_SEED=$seed"
draw() { seed=$(((seed * 1103515245 + 12345) & 0x7fffffff)); drawn=$((seed / 65536 % $1)); }

run -n 1 "$family" tell 2
is "two children" "$code $(sort out | tr '\n' ';')$(cat err)" "0 0:$h 1:$h;child 0 speaks;child 1 speaks;"
run -n 1 --tag-output "$family" tell 1
is "their lines have their job's number" "$code $(sort out | tr '\n' ';')" \
    "0 [1,0]<stdout>: 0:$h;[2,0]<stdout>: child 0 speaks;"
run -n 1 --output-filename files "$family" tell 1
is "and their files" "$code $(cat files/1/rank.0/stdout) $(cat files/2/rank.0/stdout)" "0 0:$h child 0 speaks"
run -n 1 -outfile-pattern of.%r "$family" tell 1
is "which do not overwrite the first job's" "$code $(cat of.0) $(cat of.0.2)" "0 0:$h child 0 speaks"

# What can't be: one sentence, and nothing else comes of it.
refused() { # DESCRIPTION SENTENCE ARGUMENTS...
    description=$1
    sentence=$2
    shift 2
    run "$@"
    is "$description" "$code $(grep -c "$sentence" err) $(wc -l <out)" "53 1 0"
}
refused "no such program" "program not found: /no/such" -n 1 "$family" tell 2 command=/no/such
refused "no such program in PATH" "program not found: no_such_program (in none" -n 1 "$family" tell 2 command=no_such_program
refused "not a program" "program can't be executed: /etc/passwd" -n 1 "$family" tell 2 command=/etc/passwd
printf 'no first line' >nothing
chmod +x nothing
refused "not understood by the kernel" "can't start rank 0 on $h: .*nothing: Exec format error" -n 1 "$family" tell 2 command=./nothing
refused "no such directory" "working directory /no/where: No such file" -n 1 "$family" tell 1 wdir=/no/where
refused "no such host" "host nobody is not among those that may be used" -n 1 "$family" tell 1 host=nobody
refused "no such policy" "unknown policy 'fish'" -n 1 "$family" tell 1 map_by=fish
refused "not enough slots" "there is room for 1 only" --host "$h:2" --nooversubscribe -n 1 "$family" tell 2
# Whichever of them is the first to say so.
for _ in 1 2 3; do
    refused "no such directory, for four callers" "working directory /no/where: No such file" -n 4 "$family" tell 1 wdir=/no/where
done
run --host "$h:2" --nooversubscribe -n 1 "$family" tell 1
is "just enough slots" "$code $(grep -c "0:$h" out)" "0 1"

# Ports: names that only this mpirun's jobs can look up.
run -n 2 "$family" connect hawser-port:mpirun-1-00000000.1.0.0
is "a port of another mpirun" "$(grep -c '0.1.0.0" belongs to another mpirun' err)" 1
run -n 2 sh -c "exec '$family' connect hawser-port:\${PMIX_NAMESPACE}.0.0"
is "one that is not open" "$(grep -c '.1.0.0" is not open' err)" 1

since=$(date +%s)
run -n 1 "$family" left
is "a child that has ended is named" "$(grep -c "Rank 0 of job 2 on host $h has ended: messages" err)" 1
ok "soon" [ $(($(date +%s) - since)) -lt 15 ]

is_up() { grep -q 'all are here' out; }
child_of() { # NUMBER: pid of a process of that job
    for file in $(marked); do
        { tr '\0' '\n' <"$file"; } 2>/dev/null | grep -q "^PMIX_NAMESPACE=.*\.$1\$" && echo "$file" | cut -d/ -f3
    done | head -1
}
stay() { start -n 2 "$@" "$family" stay; ok "they are up" wait_for is_up; }
verdict() { # DESCRIPTION CODE SENTENCE
    finish
    is "$1" "$code $(grep -c "$3" err)" "$2 1"
    ok "nothing left" wait_for nothing_left
}

stay
kill -TERM "$pid"
verdict "a signal to mpirun ends both jobs" 143 "got signal 15"
stay
kill -9 "$(child_of 2)"
verdict "so does the death of a child" 137 "rank [0-2] of job 2 (.* was killed by signal 9"
stay
kill -9 "$(child_of 1)"
verdict "and that of a parent" 137 "rank [01] (.* was killed by signal 9"
stay --timeout 2 --report-state-on-timeout
verdict "and the time limit, with a word on each process" 124 "rank 2 of job 2 (.*runs, between MPI_Init and MPI_Finalize"
stay
kill -9 "$pid"
finish
ok "mpirun killed: nothing left" wait_for nothing_left

# Asked for while the asker's job is being ended, between the failure and the end's first step.
aborts() { run -n 4 "$client" spawn 5 sleep 1000; echo "$code"; }
is "jobs that are asked for while a rank aborts end as well" "$(for _ in 1 2 3 4 5 6; do aborts; done | sort -u)" 7
ok "nothing left" wait_for nothing_left

# A job is over though what it left behind, in a session of its own, writes on as long as another job runs.
"$mpirun" -x HAWSER_JOB_MARK="$mark" --tag-output -n 1 "$client" spawn 1 sh -c \
    "for i in 1 2; do setsid '$client' flood '$work/full' & done; until [ -e '$work/full' ]; do :; done; echo \$\$ >'$work/child'" >/dev/null 2>err &
pid=$!
child_is_over() { [ -s child ] && [ ! -d "/proc/$(cat child)" ]; }
ended() { ! kill -0 "$pid" 2>/dev/null; }
wait_for child_is_over
kill -TERM "$pid"
ok "a job's end waits for no output of what has left it" wait_for ended
kill -9 "$pid" 2>/dev/null
finish
is "nor a signal" "$code" 143
ok "nothing left" wait_for nothing_left

# At any moment of a job's start, life and end.
moments=$(for _ in $(seq "${HAWSER_TEST_SOAK:-1}"); do echo child mpirun signal; done)
for what in $moments; do
    start -n 2 "$family" forever
    wait_for child_of 2 >/dev/null
    draw 600
    sleep "0.$(printf %03d "$drawn")"
    case $what in
    child)
        victim=''
        while [ -z "$victim" ]; do victim=$(child_of '[^1]*' || :); done
        kill -9 "$victim" 2>/dev/null
        ;;
    mpirun) kill -9 "$pid" ;;
    signal) kill -TERM "$pid" ;;
    esac
    [ $what = child ] && ! wait_for eval '! kill -0 $pid 2>/dev/null' && kill -TERM "$pid"
    finish
    ok "at some moment, $what: nothing left" wait_for nothing_left
done
done_testing
