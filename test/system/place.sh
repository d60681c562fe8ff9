#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Where ranks really run: four hosts of the lab, and what Slurm really says of an allocation. The rules
# are tested without hosts in unit/orte/ras_test and rmaps_hosts_test.
. "$top_srcdir/test/support/tap.sh"
tap_start 240

tools=$top_srcdir/test/lab
HAWSER_LAB=place-$$
export HAWSER_LAB
reason=$("$tools/lab" can 2>&1) || tap_skip_all "$reason"
trap '"$tools/lab" down; rm -rf "$tap_dir"' EXIT
cd "$tap_dir" || exit 99
mpirun=${MPIRUN:-$top_builddir/orte/mpirun}
agent="$tools/lab agent"
unset OMP_NUM_THREADS

# mpirun on h1 with a time limit: output in out and err, code in $code.
run() {
    timeout -k 5 60 "$tools/lab" exec h1 "$mpirun" --mca plm_rsh_agent "$agent" "$@" >out 2>err </dev/null
    code=$?
}
is() { tap_ok "$1" test "$2" = "$3" || :; [ "$2" = "$3" ] || { echo "# got: $2"; sed 's/^/# /' err; }; }
# "0:h1 1:h2": the hosts of ranks, as the ranks themselves say.
where() {
    # shellcheck disable=SC2016
    run "$@" sh -c 'echo $PMIX_RANK:$(hostname)'
    echo "$code $(sort -n out | tr '\n' ' ')"
}

tap_ok "four hosts" "$tools/lab" up 4 1 --owner $$
is "a slot for each mention" "$(where --host h1,h2:2,h1)" "0 0:h1 1:h1 2:h2 3:h2 "
is "in turn over hosts" "$(where --map-by node --host h2:2,h4:2)" "0 0:h2 1:h4 2:h2 3:h4 "
is "a range, and not one of it" "$(where --host 'h[1-4],^h3')" "0 0:h1 1:h2 2:h4 "
is "more than slots" "$(where -n 5 --host h1,h3)" "0 0:h1 1:h1 2:h1 3:h3 4:h3 "
printf 'h4 slots=2\nh2 slots=1 max_slots=1\n# end\n' >hosts
is "a host file" "$(where --hostfile hosts)" "0 0:h4 1:h4 2:h2 "
is "max_slots" "$(where -n 5 --hostfile hosts)" "0 0:h4 1:h4 2:h4 3:h4 4:h2 "
is "a part of the host file" "$(where --hostfile hosts --host +n1)" "0 0:h2 "
is "a process for each line" "$(where --map-by seq --host h3,h1,h3)" "0 0:h3 1:h1 2:h3 "
is "N on each host" "$(where -N 2 --host h1,h4)" "0 0:h1 1:h1 2:h4 3:h4 "
is "not here" "$(where --nolocal --host h1,h2 -n 2)" "0 0:h2 1:h2 "
run --host h1 -n 1 hostname : --host h3,h2 -n 2 hostname
is "hosts of programs" "$code $(sort out | tr '\n' ' ')" "0 h1 h2 h3 "
run --host h1,h2 -outfile-pattern "$tap_dir/%h.%r" sh -c 'echo here'
is "files of ranks elsewhere" "$code $(cat h1.0 h2.1 out | tr '\n' ' ')" "0 here here "

# What another host withholds: its daemon is started with a mask of one cpu.
first=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
printf '#!/bin/sh\nexec taskset -c %s %s "$@"\n' "$first" "$agent" >masked && chmod +x masked
agent=$tap_dir/masked
printf 'h2\n' >one
run --hostfile one --display map,allocation sh -c 'taskset -cp $$'
is "an affinity mask there: slots" "$code $(grep -c 'h2: 1 slot, 1 cpu may be used' out)" "0 1"
is "and cpus" "$(sed -n 's/.*list: //p' out)" "$first"
agent="$tools/lab agent"

run --host h1,nosuch true
is "a host that is not there: one line" "$code $(wc -l <err)" "1 1"
tap_ok "with its name" grep -q 'host nosuch can.t be reached' err

reason=$("$tools/slurm" can 2>&1) || {
    tap_skip "hosts that Slurm gives" "$reason"
    tap_end
}
tap_ok "with Slurm" "$tools/slurm" up 8
"$tools/slurm" exec salloc -Q -N 3 --ntasks-per-node=2 -t 5 "$mpirun" --host '^h2' \
    --display allocation,map --do-not-launch true >out 2>err
is "an allocation of Slurm's" "$? $(sed -n 's/^  \(h.: . slots\),.*may be used/\1/p' out | tr '\n' ' ')" \
    "0 h1: 2 slots h3: 2 slots "
"$tools/slurm" exec salloc -Q -N 2 -n 3 -t 5 "$mpirun" --host h4 true >out 2>err
tap_ok "a host that Slurm did not give" grep -q 'h4 is not among.*Slurm job' err
tap_end
