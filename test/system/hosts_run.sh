#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# mpirun over several hosts: start, PMIx, input and output, exit codes, and what can be wrong with a host.
. "$top_srcdir/test/system/hosts_lib.sh"
lab_up 8
all=h1:2,h2:2,h3:2,h4:2,h5:2,h6:2,h7:2,h8:2

for wanted in 2 4 8; do
    some=$(echo "$hosts" | head -n $wanted | paste -sd, -)
    run --host "$some" hostname
    is "a process on each of $wanted hosts" "$code $(sort out | paste -sd, -)" "0 $some"
done
run --host $all "$client" exchange
is "ranks on 8 hosts exchange data" "$code $(sort -n out | tr '\n' ' ')" \
    "0 $(seq 0 15 | sed 's/$/ of 16/' | tr '\n' ' ')"
run --host h5:2,h6:1 "$client" exchange
is "none of them on mpirun's own host" "$code $(sort -n out | tr '\n' ' ')" "0 0 of 3 1 of 3 2 of 3 "
run --mca oob_radix 2 --host $all "$client" exchange
is "daemons started by daemons" "$code $(wc -l <out)" "0 16"
run --mca plm_rsh_num_concurrent 1 --host $all "$client" exchange
is "one start at a time" "$code $(wc -l <out)" "0 16"
run --host h1:2,h2:1,h3:2 "$client" publish
is "names published from one host to others" "$code $(wc -l <out)" "0 5"
run --host h1:2,h3:3 sh -c 'echo $OMPI_COMM_WORLD_RANK $OMPI_COMM_WORLD_LOCAL_RANK $OMPI_COMM_WORLD_LOCAL_SIZE $(hostname)'
is "local ranks" "$(sort out | tr '\n' ,)" "0 0 2 h1,1 1 2 h1,2 0 3 h3,3 1 3 h3,4 2 3 h3,"
printf '# hosts\nh2 slots=2\nh4 # as many as cores\n' >hostfile
run --hostfile hostfile hostname
is "--hostfile" "$code $(sort out | uniq -c | awk '{ print $2 }' | paste -sd, -) $(grep -c h2 out)" "0 h2,h4 2"
run --host h1,h2,h3 --report-bindings true
is "bindings on all hosts are known" "$code $(grep -c '^\[h[123]\] rank [012] bound to' err)" "0 3"

# What travels
mkdir here && cd here || exit 99
run --host h1,h2 -x V='two  words' sh -c 'echo "$V|$(pwd)"'
is "-x, and the directory" "$(sort -u out)" "two  words|$work/here"
HOSTNAME=h1 run --host h2 sh -c 'echo "${HOSTNAME-none}"'
is "but not what belongs to mpirun's host" "$(cat out)" none
run --host h1,h2 --wdir / pwd
is "--wdir" "$(sort -u out)" /
cd "$work" || exit 99
run --host h2 --mca odls_base_kill_grace 1234 sh -c 'echo $OMPI_MCA_odls_base_kill_grace'
is "--mca" "$(cat out)" 1234

# Input and output
head -c 30000000 /dev/urandom >in
run --host h2,h3 cat <in
ok "30 MB through another host" cmp -s in out
run --stdin all --host h1,h2:2,h3 cksum <in
is "to all hosts" "$(sort -u out) $(wc -l <out)" "$(cksum <in) 4"
run --stdin all --host h1,h2 sh -c 'test $PMIX_RANK = 0 || sleep 0.5; wc -c' <in
is "a slow reader elsewhere" "$(sort -u out)" 30000000
yes | timeout 20 "$mpirun" --host h2 head -n 1 >out 2>err
is "a rank elsewhere that reads one line of endless input" "$? $(cat out)" "0 y"
run --host h1,h2,h3,h4 sh -c 'head -c 3000000 /dev/zero; echo problem >&2'
is "all output arrives" "$(wc -c <out) $(wc -l <err)" "12000000 4"
timeout 20 "$mpirun" --host h2,h3 yes 2>err | head -n 3 >out
is "output without a reader ends the job, quietly" "$(wc -l <out)$(cat err)" 3
slow() { timeout 30 "$mpirun" --host h2,h3 head -c 5000000 /dev/zero | (sleep 0.5; wc -c); }
is "a slow reader gets all" "$(slow)" 10000000
run --tag-output --host h1,h2,h3 sh -c 'i=0; while [ $i -lt 500 ]; do printf line; printf " $i of $PMIX_RANK"; echo; i=$((i+1)); done'
is "tagged lines stay whole" "$(grep -c '^\[1,\([0-2]\)\]<stdout>: line [0-9]* of \1$' out) $(wc -l <out)" "1500 1500"
run --output-filename logs --host h1,h2 sh -c 'test $PMIX_RANK = 0 || echo out $PMIX_RANK'
is "--output-filename" "$(ls logs/1 | paste -sd, -) $(cat logs/1/rank.1/stdout)" "rank.0,rank.1 out 1"
run --host h1,h2:2,h3 sh -c 'printf "\036\037hawser-help\037topic\037hawser: once\n\036" >&2'
is "users' messages are shown once" "$(grep -c '^hawser: once$' err) $(grep -c '3 more processes' err)" "1 1"

# Exit codes
run --host h1,h2,h3 sh -c 'test "$PMIX_RANK" = 2 && exit 7; sleep 20'
is "code of the failed rank" "$code $(wc -l <err)" "7 1"
ok "names rank, host and code" grep -q "rank 2 .*pid [0-9]* on h3.* code 7" err
run --host h1,h2 sh -c 'test "$PMIX_RANK" = 1 && kill -SEGV $$; sleep 20'
is "128 + signal" "$code $(grep -c 'rank 1 .* on h2) was killed by signal 11' err)" "139 1"
run --host h1,h2,h3 "$client" abort 9
is "code of an abort" "$code $(wc -l <err) $(grep -c 'rank 1 .* on h2) aborted .* code 9: this is the reason' err)" "9 1 1"
run --host h1,h2 "$client" no-finalize
is "leaving without finalize" "$code $(wc -l <err)" "1 1"
run --timeout 0.7 --host h1,h2 sleep 20
is "--timeout" "$code $(grep -c 'time limit' err)" "124 1"
run --timeout 3 --report-state-on-timeout --host h1,h2,h3 sleep 20 # they have been started by then
is "states on all hosts" "$code $(grep -c 'rank [012] (sleep, pid [0-9]* on h[123]) runs, has not called MPI_Init' err)" "124 3"
run --timeout 3 --get-stack-traces --host h1,h2 sleep 20
is "stacks on all hosts" "$code $(grep -c 'stack trace of rank [01] (sleep, pid [0-9]* on h[12])' err)" "124 2"
run --continuous --host h1,h2 sh -c 'test "$PMIX_RANK" = 1 && exit 5; sleep 0.3; echo survived'
is "--continuous" "$code $(cat out)" "5 survived"

# What can be wrong: one sentence with host, cause and remedy
wrong() { # DESCRIPTION CODE TEXT
    is "$1" "$code $(wc -l <err) $(grep -c "$3" err)" "$2 1 1"
    ok "nothing left then" wait_for nothing_on_hosts
}
run --host h1,nowhere true
wrong "unknown host" 1 "host nowhere .*Could not resolve hostname .*name right"
lab agent-mode h3 refused
run --host h1,h2,h3 true
wrong "ssh refused" 1 "host h3 .*Connection refused.*without being asked"
lab agent-mode h3 denied
run --host h3,h4 true
wrong "no permission" 1 "host h3 .*Permission denied"
lab agent-mode h3 timeout 20
run --mca plm_base_start_timeout 1 --host h1,h3 true
wrong "no answer" 1 "host h3: no daemon has called back within 1 s"
lab agent-mode h3 ok
run --prefix /nowhere --host h1,h2 true
wrong "missing orted" 1 "host h2: /nowhere/bin/orted is not there.*--prefix"
mkdir -p other/bin
printf '#!/bin/sh\necho "orted: this is Hawser 9.9, but mpirun is of Hawser 0" >&2\nexit 3\n' >other/bin/orted
chmod +x other/bin/orted
run --prefix "$work/other" --host h1,h2 true
wrong "another version" 1 "host h2: .*Hawser 9.9"
run --prefix /nowhere --launch-agent "$(dirname "$real_mpirun")/orted" --host h1,h2 sh -c 'echo started'
is "--launch-agent names the daemon" "$code $(grep -c started out)" "0 2"
printf 'hawser-orted 9.9\n' | lab exec h1 "$(dirname "$real_mpirun")/orted" --orders - 2>err
code=$?
wrong "orted refuses an mpirun of another version" 3 "mpirun is of Hawser 9.9: install the same version"
"$(dirname "$real_mpirun")/orted" --orders - </dev/null 2>err
code=$?
wrong "orted without orders" 3 "started by mpirun"
run --mca plm_rsh_agent "nossh -q : norsh" --host h1,h2 true
wrong "no agent" 1 "none of the commands.*nossh -q : norsh.*install ssh"
lab firewall h1 none
run --mca oob_connect_timeout 1000 --host h1,h2 true
wrong "a firewall on mpirun's host" 1 "host h2: .*can't connect to mpirun.*firewalls"
lab firewall h1 off
printf 'h1\nh2 slots=none\n' >badhosts
run --hostfile badhosts true
wrong "a bad line in a host file" 1 "badhosts:2: "
daemon_up() { lab ps h2 | grep -q 'orted --orders'; }
start --mca oob_port_range 4711-4711 --host h1,h2 sleep 1000
wait_for daemon_up
timeout -k 5 30 "$mpirun" --mca oob_port_range 4711-4711 --host h1,h2 true >out 2>err2
code2=$?
kill -TERM "$pid"
finish
mv err2 err
code=$code2
wrong "no port of the range is free" 1 "no port from 4711 to 4711 is free on host h1.*oob_port_range a wider range"
printf '#!/bin/sh\nexit 0\n' >"$work/prog" && chmod +x "$work/prog"
run --host h1,h2 sh -c 'exit 0'
is "and all is well again" "$code" 0
run --host h1,h2 sh -c 'test $PMIX_RANK = 1 && exec ./nothing; sleep 20'
is "a command not found by a shell elsewhere" "$code" 127
lab agent-mode h2 noisy
run --host h1,h2 hostname
is "a talkative login shell" "$code $(sort out | paste -sd, -)" "0 h1,h2"
lab agent-mode h2 ok
ok "nothing left" wait_for nothing_on_hosts
done_testing
