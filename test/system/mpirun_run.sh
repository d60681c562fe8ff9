#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# mpirun: the command line, programs, environment, exit codes, PMIx data.
. "$top_srcdir/test/system/lib.sh"

run -n 3 "$client" exchange
is "three ranks exchange data" "$code $(sort out | tr '\n' ' ')" "0 0 of 3 1 of 3 2 of 3 "
run -n 64 "$client" exchange
is "64 ranks exchange data" "$code $(wc -l <out)" "0 64"
run -n 2 "$client" keys : -n 1 "$client" keys
univ=$(nproc)
[ "$univ" -gt 3 ] || univ=3
is "PMIx keys" "$(sed "s/univ=$univ/univ=U/" out | sort | tr '\n' ';')" "\
0 size=3 univ=U apps=2 appnum=0 local=0 node=0 secret=64 jobid=0 locality=1;\
1 size=3 univ=U apps=2 appnum=0 local=1 node=1 secret=64 jobid=0 locality=1;\
2 size=3 univ=U apps=2 appnum=1 local=2 node=2 secret=64 jobid=0 locality=1;"
run -n 3 "$client" publish
is "publish, lookup, unpublish" "$code $(wc -l <out)" "0 3"
run -np 2 hostname
is "a program without PMIx" "$code $(sort -u out)" "0 $(hostname)"
run hostname
is "without -n: one rank per usable cpu" "$(wc -l <out)" "$(nproc)"

# Exit codes
run -n 2 sh -c 'exit 0'
is "success" "$code$(cat err)" 0
run -n 3 sh -c 'test "$PMIX_RANK" = 1 && exit 7; sleep 20'
is "code of the failed rank" "$code" 7
is "one message" "$(wc -l <err)" 1
ok "names rank, host and code" grep -q "rank 1 .*pid [0-9]* on $(hostname).* code 7" err
run -n 2 sh -c 'test "$PMIX_RANK" = 1 && kill -SEGV $$; sleep 20'
is "128 + signal" "$code" 139
ok "names the signal" grep -q "rank 1 .* signal 11" err
run -n 3 "$client" abort 9
is "code of an abort" "$code" 9
ok "says why and who" grep -q "rank 1 .* code 9: this is the reason" err
is "one message for an abort" "$(wc -l <err)" 1
# What libpmix has to say of processes that ended before its answer reached them is no news.
for _ in $(seq 12); do
    run -n 4 "$top_builddir/test/system/params_hello" fail
    grep -v "^hawser: \|^    " err
done >said
is "one for an error of all processes, and others'" "$(grep -c 'mpirun: rank .* aborted the job' said) $(grep -cv '^mpirun: ' said)" "12 0"
run -n 2 "$client" abort 256
is "an abort's code is never 0" "$code" 1
run -n 3 "$client" no-finalize
is "leaving without finalize ends the job" "$code $(wc -l <err)" "1 1"
run --continuous -n 2 sh -c 'test "$PMIX_RANK" = 1 && exit 5; sleep 0.3; echo survived'
is "--continuous" "$code $(cat out)" "5 survived"
run --continuous -n 3 sh -c 'test "$PMIX_RANK" = 0 && exit 0; sleep 0.$((PMIX_RANK * 2)); exit $((PMIX_RANK + 4))'
is "--continuous: names each that fails" "$code $(sed 's/^mpirun: \(rank .\) .* exited/\1/' err | tr '\n' ';')" \
   "5 rank 1 with code 5;rank 2 with code 6;"
run --quiet -n 1 sh -c 'exit 4'
is "--quiet" "$code$(cat err)" 4
run --timeout 0.3 -n 2 sleep 20
is "--timeout" "$code $(grep -c 'time limit' err)" "124 1"
MPIEXEC_TIMEOUT=1 run sleep 20
is "MPIEXEC_TIMEOUT" "$code $(grep -c '(MPIEXEC_TIMEOUT)' err)" "124 1"
for bad in abc -5 10s 0; do
    MPIEXEC_TIMEOUT=$bad run true
    is "MPIEXEC_TIMEOUT=$bad" "$code $(grep -c "^mpirun: MPIEXEC_TIMEOUT $bad: expected" err) $(wc -l <err)" "1 1 1"
done
MPIEXEC_TIMEOUT=abc run --timeout 20 true
is "--timeout beats it" "$code" 0

# Bad input: one clear line, nothing started
run no-such-program
is "program not found" "$code $(wc -l <err)" "127 1"
run --host -n 2 true
is "an option without its argument" "$code $(wc -l <err) $(grep -c 'program not found: 2 .*; was the argument of an option' err)" "127 1 1"
run ./no-such-program
is "path not found" "$code $(wc -l <err)" "127 1"
touch plain
run ./plain
is "not executable" "$code $(wc -l <err)" "126 1"
run "$work"
is "a directory" "$code $(wc -l <err)" "126 1"

# Too few open files: said before anything starts, not found out by waiting
limited() { # LIMIT ARGUMENTS...
    (ulimit -n "$1" && shift && timeout -k 5 30 "$mpirun" "$@" >out 2>err)
    code=$?
}
limited 20 -n 2 hostname
is "20 open files" "$code $(wc -l <err) $(grep -c 'limit on open files is 20' err)" "1 1 1"
limited 64 -n 40 hostname
is "open files for some of the processes" "$code $(grep -c '^mpirun: no more than .* the limit is 64' err)" "1 1"
limited 64 -n 2 "$client" exchange
is "64 open files are enough for two" "$code $(wc -l <out)" "0 2"

# More processes than any host has, or memory: said before they are made
small() { # KILOBYTES ARGUMENTS...
    (ulimit -v "$1" && shift && timeout -k 5 30 "$mpirun" "$@" >out 2>err)
    code=$?
}
for many in "-n 100000000" "--host $(hostname):999999999" "--map-by ppr:999999999:node"; do
    # shellcheck disable=SC2086
    small 4000000 $many hostname
    is "no host for so many: $many" \
        "$code $(grep -c "^mpirun: no more than [0-9]* processes can run on $(hostname)" err) $(wc -l <err) $(wc -c <out)" "1 1 1 0"
done
small 500000 --do-not-launch -n 4000000 hostname
is "no memory for so many" "$code $(grep -c '^mpirun: no memory for [0-9]* processes or more' err) $(wc -l <err)" "1 1 1"
printf 'no interpreter' >script && chmod +x script
run -n 2 ./script
is "not a program" "$code $(wc -l <err)" "126 1"
printf '#!/bin/sh\r\n' >script
run -n 2 ./script
is "a script whose interpreter is not there" "$code $(wc -l <err) $(grep -c 'the interpreter in its first line' err)" "127 1 1"
run --wdir /nowhere true
is "no such working directory" "$code $(wc -l <err)" "1 1"
run --mapby-core true
is "unknown option" "$code $(wc -l <err)" "1 1"
run --report-binding true
ok "nearest option" grep -q "did you mean --report-bindings" err
for bad in "-n 0 true" "-n -3 true" "-n two true" "-n" "" "-n 2" "--map-by heap true" \
    "--bind-to heap true" "--rank-by heap true" "--map-by ppr:0:core true" "--map-by core:PE=0 true" \
    "--stdin 7 -n 2 true" "--stdin x true" "--timeout x true" "--timeout -1 true" "--tune nofile true" \
    "--app nofile" "--hostfile nofile true" "--host elsewhere true" "--host localhost:0 true" \
    "--cpu-set x true" "--cpu-set 9999 true" "--display x true" "--mca =x y true" "true :" \
    "--quiet=yes true" "--map-by ppr:1:package -n 4096 true" "-n 4096 --nooversubscribe true"; do
    # shellcheck disable=SC2086
    run $bad
    is "refused: mpirun $bad" "$code $(wc -l <err) $(wc -c <out)" "1 1 0"
done

for empty in "-n 2" "hostname : -n 1"; do
    # shellcheck disable=SC2086
    run $empty ""
    is "refused: mpirun $empty ''" "$code $(grep -c '^mpirun: no program given' err) $(wc -l <err) $(wc -c <out)" "1 1 1 0"
done

# Programs, directories, environment
run -n 1 echo a : -n 2 echo b : -n 1 echo c
is "several programs" "$(sort out | tr -d '\n')" "abbc"
printf '# programs\n-n 2 echo "x  y"\n\n-n 1 -x V=5 sh -c '"'"'echo $V'"'"'\n' >apps
run --app apps
is "--app" "$(sort out | tr '\n' ,)" "5,x  y,x  y,"
mkdir sub && printf '#!/bin/sh\npwd\n' >sub/prog && chmod +x sub/prog
run -n 1 --wdir sub ./prog
is "--wdir, program found there" "$(cat out)" "$work/sub"
run -wdir=/ -n 1 "$work/sub/prog"
is "-wdir=DIR" "$(cat out)" "/"
run --path "$work/sub" -n 1 prog
is "--path" "$code" 0
run -n 1 -x A=1 -x B='two words' sh -c 'echo "$A $B"'
is "-x VAR=value" "$(cat out)" "1 two words"
KEEP_A=1 KEEP_B=2 OTHER=3 run -genvnone -x 'KEEP_*' -n 1 /usr/bin/env
is "-genvnone -x PREFIX*" "$(grep -c '^KEEP_' out) $(grep -c '^OTHER' out)" "2 0"
run -n 1 -genv G 1 sh -c 'echo $G' : -n 1 -env H 2 sh -c 'echo $G$H'
is "-genv, -env" "$(sort out | tr '\n' ,)" "1,12,"
run -n 2 sh -c 'echo $OMPI_COMM_WORLD_RANK $OMPI_COMM_WORLD_SIZE $OMPI_COMM_WORLD_LOCAL_RANK $OMPI_COMM_WORLD_LOCAL_SIZE'
is "Open MPI's variables" "$(sort out | tr '\n' ,)" "0 2 0 2,1 2 1 2,"
PMIX_SERVER_URI4=stale PMI_RANK=7 OMPI_COMM_WORLD_RANK=9 run -n 1 sh -c 'echo $PMIX_SERVER_URI4 $PMI_RANK $OMPI_COMM_WORLD_RANK'
ok "an outer launcher's variables are gone" grep -qv stale out
is "those set anew are ours" "$(sed 's/.* //' out)" 0
run -n 1 "$mpirun" -n 2 "$client" exchange
is "mpirun within mpirun" "$code $(wc -l <out)" "0 2"

# Parameters
printf 'one = from file\n--mca two fromfile -x T=5\n# comment\nthree=from file\n' >tune
OMPI_MCA_one=env OMPI_MCA_four=env run --mca mca_base_param_check ignore --mca two cmdline --tune tune --mca two last -n 1 sh -c \
    'echo "$OMPI_MCA_one|$OMPI_MCA_two|$OMPI_MCA_three|$OMPI_MCA_four|$T|$HAWSER_MCA_SOURCE_two|$HAWSER_MCA_SOURCE_one"'
is "--mca beats --tune beats the environment" "$(cat out)" \
    "from file|last|from file|env|5|command line|tune tune:1"
printf 'fine = 1\nthis is not\n' >tune
run --tune tune true
ok "a bad line is named" grep -q 'tune:2:' err

# Placement on this machine; the rules are tested offline
run -n 1 --report-bindings true
ok "--report-bindings" grep -q 'rank 0 bound to' err
run -n 4096 --display map --do-not-launch true
is "more ranks than cores are not bound" "$(grep -c 'not bound' out)" 4096
run -n 1 --bind-to none --report-bindings true
ok "--bind-to none" grep -q 'not bound' err
first=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
timeout 20 taskset -c "$first" "$mpirun" -n 2 sh -c 'taskset -cp $$' >out 2>err
is "an affinity mask is kept" "$(sed 's/.*: //' out | sort -u)" "$first"
run --host localhost:3 hostname
is "--host NAME:N" "$(wc -l <out)" 3
printf '# ours\nlocalhost slots=2\n' >hosts
run --hostfile hosts hostname
is "--hostfile" "$(wc -l <out)" 2
mkfifo once
from_pipe() { # ARGUMENTS...
    cat hosts >once &
    run "$@"
    kill $! 2>/dev/null
}
from_pipe --hostfile once hostname
is "--hostfile, which can be read but once" "$code $(wc -l <out)" "0 2"
from_pipe -n 1 --hostfile once hostname : -n 2 --hostfile once hostname
is "named twice" "$code $(wc -l <out)" "0 3"
from_pipe --map-by seq --hostfile once hostname
is "line by line" "$code $(wc -l <out)" "0 1"
cat hosts | timeout -k 5 30 "$mpirun" --hostfile /dev/stdin hostname >out 2>err
is "--hostfile /dev/stdin" "$? $(wc -l <out)" "0 2"
run --hostfile hosts --mca ras_base_default_hostfile none --host elsewhere hostname
ok "a host that is not in the file" grep -q "host elsewhere is not among" err

# Placement on hosts that are not there
run --host 'n[1-2]:2,localhost' --display map,allocation --do-not-launch true
is "a rehearsal" "$code $(grep -c '^    rank' out) $(grep -c 'slots, 2 processes' out)" "0 5 2"
run --mca ras_simulator_hosts 'n[1-2]:2' --mca ras_simulator_topology 'pack:2 core:4 pu:2' \
    --map-by ppr:1:package --display map,topo --do-not-launch true
is "a rehearsal on machines that are not there" "$code $(grep -c 'package\[1\]\[core:4-7\]' out)" "0 2"
run --mca ras_simulator_hosts 'n[1-3]:2' --mca ras_simulator_topology 'pack:1 core:4 pu:1' --display map --do-not-launch \
    -n 1 --host n1 true : -n 5 --host n2 true : -n 4 --host n3 true
is "which node has more processes than cpus" "$(sed -n 's/^  \(n.\): .*process[es]*/\1/p' out | tr '\n' ';')" "n1;n2, oversubscribed;n3;"
printf '#!/bin/sh\necho "$@" >agent.args\nexit 255\n' >agent
chmod +x agent
run --mca plm_rsh_agent "nossh -J x:1:$work/agent -J gate:2222,b:23 -o P=%r@%h:%p : ssh" --host nowhere true
is "ports in the options of an agent" "$code $(sed 's/ nowhere .*/ nowhere/' agent.args)" "1 -J gate:2222,b:23 -o P=%r@%h:%p nowhere"
run -launcher fork --host nowhere,localhost true
is "-launcher fork: on no other host" "$code $(grep -c 'needs host nowhere, and -launcher fork' err) $(wc -l <err)" "1 1 1"
run -launcher fork -n 2 true
is "-launcher fork" "$code$(cat err)" 0
SLURM_JOB_ID=1 SLURM_JOB_NODELIST='n[1-3]' SLURM_TASKS_PER_NODE='2(x2),1' \
    run --display map --do-not-launch -n 7 true
is "more than Slurm's slots: one warning" "$code $(grep -c '^    rank' out) $(grep -c 'Slurm job 1' err)" "0 7 1"
sim="--mca ras_simulator_hosts n[1-2]:2 --do-not-launch --report-bindings"
# shellcheck disable=SC2086
OMPI_MCA_rmaps_default_mapping_policy=ppr:1:package:PE=2 run $sim true
is "parameters for what --map-by is by default" "$(grep -c 'core:0-1\|core:8-9' err)" 4
# The cpus of PE=N, on 2 hosts of 2 packages with 8 cores each
for case in '8 numa:PE=4 0' '9 numa:PE=4 share' '40 numa:PE=4 not' '9 core:PE=4:OVERSUBSCRIBE 0' '3 ppr:3:package:PE=4 share'; do
    # shellcheck disable=SC2086
    set -- $case
    # shellcheck disable=SC2086
    run $sim -n "$1" --map-by "$2" true
    case $3 in
    share) told="1 1 0" ;;
    not) told="1 0 1" ;;
    *) told="0 0 0" ;;
    esac
    is "-n $1 --map-by $2 on too few cpus: $3" "$code $(grep -c 'warning.*PE=4' err) $(grep -c 'some share theirs' err) $(grep -c 'none is bound' err)" "0 $told"
done
# shellcheck disable=SC2086
OMPI_MCA_rmaps_base_mapping_policy=ppr:1:package OMPI_MCA_hwloc_base_binding_policy=none run $sim --map-by node true
is "the command line beats them; binding" "$(grep -c 'not bound' err)" 4
# shellcheck disable=SC2086
OMPI_MCA_rmaps_base_oversubscribe=0 run $sim -n 5 true
is "and oversubscribing" "$code $(grep -c NOOVERSUBSCRIBE err)" "1 1"
run --mca rmaps_base_mapping_policy heap true
ok "a policy that is none" grep -q "parameter rmaps_base_mapping_policy: unknown policy 'heap'" err
run --npernode 1 --mca schizo_base_note_old_spellings 1 true
ok "old spellings are told on request" grep -q -- '--npernode (now -N)' err

run --help
ok "--help" grep -q -- --report-bindings out
ok "--help [TOPIC]: as it is written" grep -q -- '^  --help, -h \[TOPIC\]' out
ok "--report-links[=HOW] too" grep -q -- '^  --report-links\[=HOW\]' out
run --help options
untested=$(sed 's/^-*//' out | while read -r option; do
    grep -q -- "-$option[ =\"]" "$top_srcdir/test/unit/orte/schizo_test.c" || echo "$option"; done)
is "each spelling has a row in the test of the command line" "$untested" ""
run --help mapping
ok "--help mapping" grep -q -- --rankfile out
is "--help of an option" "$($mpirun --help host | wc -l) $($mpirun --help nonsense 2>&1 | wc -l)" "4 1"
run --version
ok "--version" grep -q Hawser out
for words in --help --version "--display map --do-not-launch true" "--display map true"; do
    [ -w /dev/full ] || break
    # shellcheck disable=SC2086
    timeout 20 "$mpirun" $words >/dev/full 2>err
    is "a full disk: $words" "$? $(grep -c 'standard output' err) $(wc -l <err)" "1 1 1"
done
for word in --help -v; do
    [ -w /dev/full ] || break
    "$top_builddir/orte/orte-clean" "$word" >/dev/full 2>err
    is "a full disk: orte-clean $word" "$? $(grep -c 'standard output: No space' err) $(wc -l <err)" "1 1 1"
done
# What is to be tried by hand is what was tried: with the options of the command, the login name and the port.
printf '#!/bin/sh\necho "no way there" >&2\nexit 255\n' >far_shell && chmod +x far_shell
echo 'me@far port=2222' >far_hosts
run --mca plm_rsh_agent "$PWD/far_shell -F conf" --hostfile far_hosts -n 1 true
is "a host that can't be reached" "$code $(cat err)" "1 mpirun: host far can't be reached with $PWD/far_shell: no way there; is the\
 name right, and does \"$PWD/far_shell -F conf -p 2222 -l me far true\" work without being asked anything?"
ok "nothing left" nothing_left
done_testing
