#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Jobs that processes ask for (MPI_Comm_spawn) over several hosts: the tests of mpi/spawn.c, where children are put,
# and that nothing is left of them whoever dies. HAWSER_TEST_SOAK=N: N times as many deaths at some moment;
# HAWSER_TEST_SEED chooses them.
. "$top_srcdir/test/system/hosts_lib.sh"
family=$top_builddir/test/mpi/spawn
lab_up 3
MPIRUN=$mpirun
export MPIRUN
seed=${HAWSER_TEST_SEED:-$(date +%s)}
echo "# HAWSER_TEST_SEED=$seed"
draw() { seed=$(((seed * 1103515245 + 12345) & 0x7fffffff)); drawn=$((seed / 65536 % $1)); }
three=h1:2,h2:2,h3:2

families() { # ARGUMENTS...
    MPI_TEST_JUDGE=1 MPIRUN_ARGS="$*" timeout 170 "$family" >said 2>&1 && return 0
    grep -v '^ok' said
    return 1
}
ok "families, parents and children in turn over the hosts" families --host $three --map-by node

told() { grep -v ' speaks$' out; } # by the parent; a child's line may come before it or after
run --host $three -n 1 "$family" tell 3 host=h3
is "on a host that the info names" "$code $(told)" "0 0:h3 1:h3 2:h3"
run --host $three -n 1 "$family" tell 3 map_by=node
is "one on each host" "$code $(told)" "0 0:h1 1:h2 2:h3"
run --host h1:1,h2:2,h3:2 -n 1 "$family" tell 3
is "where slots are free" "$code $(told | tr ' ' '\n' | sort | tr '\n' ' ')" "0 0:h2 1:h2 2:h3 "
run --host h2:1,h3:1 -n 1 --tag-output "$family" tell 1 host=h3
is "output from there" "$code $(sort out | tr '\n' ';')" "0 [1,0]<stdout>: 0:h3;[2,0]<stdout>: child 0 speaks;"
run --host $three -n 1 "$family" tell 1 add-host=h9
is "a host that has no daemon" "$code $(grep -c 'host h9 is not among those that may be used (h1, h2, h3)' err)" "53 1"
printf 'no first line' >nothing
chmod +x nothing
run --host $three -n 1 "$family" tell 1 host=h3 command="$work/nothing"
is "what can't be started there" "$code $(grep -c "can't start rank 0 on h3: .*Exec format error" err)" "53 1"
ok "nothing left" wait_for nothing_on_hosts

is_up() { grep -q 'all are here' out; }
daemon_on() { # HOST: its pid, not that of its reaper
    lab ps "$1" | awk '/orted --orders/ { print $2 }' | while read -r candidate; do
        grep -q reaper "/proc/$candidate/comm" || echo "$candidate"
    done
}
member_on() { # HOST JOB: a process of that job there
    lab ps "$1" | awk '{ print $2 }' | while read -r candidate; do
        { tr '\0' '\n' <"/proc/$candidate/environ"; } 2>/dev/null | grep -q "^PMIX_NAMESPACE=.*\.$2\$" && echo "$candidate"
    done | head -1
}
stay() { # the parents are on h1 and h2, children on all
    start --timeout 60 --host $three --map-by node -n 2 "$family" stay
    wait_for is_up || echo "# the children did not start"
    since=$(date +%s%N)
}
verdict() { # DESCRIPTION CODE SENTENCE
    finish
    is "$1" "$code $(grep -c "$3" err)" "$2 1"
    ok "nothing left" gone_in_time
}
stay
kill -9 "$(member_on h3 2)"
verdict "the death of a child on another host ends all" 137 "rank [0-2] of job 2 (.*on h3) was killed by signal 9"
stay
kill -9 "$(member_on h2 1)"
verdict "and that of a parent" 137 "rank 1 (.*on h2) was killed by signal 9"
stay
kill -9 "$(daemon_on h3)"
verdict "and that of a daemon" 125 "the daemon on host h3 is lost"
stay
kill -9 "$pid"
finish
ok "mpirun killed: nothing left" gone_in_time

# At any moment of a job's start, life and end.
moments=$(for _ in $(seq "${HAWSER_TEST_SOAK:-1}"); do echo mpirun daemon; done)
children_come() { [ -n "$(member_on h2 '[^1]*')" ]; }
for what in $moments; do
    start --timeout 60 --host $three --map-by node -n 2 "$family" forever
    wait_for children_come
    draw 600
    sleep "0.$(printf %03d "$drawn")"
    since=$(date +%s%N)
    if [ $what = mpirun ]; then kill -9 "$pid"; else kill -9 "$(daemon_on h2)"; fi
    finish
    ok "at some moment, $what killed: nothing left" gone_in_time
done
done_testing
