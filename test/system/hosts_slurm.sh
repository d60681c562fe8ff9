#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# mpirun inside an allocation of a real Slurm: daemons are started by srun, without any ssh.
. "$top_srcdir/test/system/hosts_lib.sh"
slurm() { "$top_srcdir/test/lab/slurm" "$@"; }
reason=$(slurm can 2>&1) || { echo "1..0 # SKIP $reason"; exit 0; }
lab_up 4
slurm up 4 >/dev/null || { echo "Bail out! no Slurm"; exit 99; }
OMPI_MCA_plm_rsh_agent=/bin/false
export OMPI_MCA_plm_rsh_agent

# allocated NODES RANKS ARGUMENTS: mpirun in an allocation
allocated() {
    nodes=$1 ranks=$2
    shift 2
    slurm exec timeout -k 5 60 salloc -Q -N "$nodes" -n "$ranks" "$real_mpirun" "$@" >out 2>err
    code=$?
}
ranks_left() { lab ps | grep -q 'sleep 1000\|orted --orders'; }
gone() { ! ranks_left; }

allocated 4 8 "$client" exchange
is "ranks on all hosts of the allocation" "$code $(sort -n out | tr '\n' ' ')" \
    "0 $(seq 0 7 | sed 's/$/ of 8/' | tr '\n' ' ')"
allocated 3 3 hostname
is "one on each" "$code $(sort -u out | wc -l)" "0 3"
allocated 4 8 --mca oob_radix 1 "$client" exchange
is "daemons that start others" "$code $(sort -n out | tr '\n' ' ')" "0 $(seq 0 7 | sed 's/$/ of 8/' | tr '\n' ' ')"
ok "none of them stays" wait_for gone
head -c 3000000 /dev/urandom >in
allocated 2 2 --map-by node --stdin all cksum <in
is "standard input" "$(sort -u out)" "$(cksum <in)"
allocated 2 2 --map-by node sh -c 'test $PMIX_RANK = 1 && exit 7; sleep 1000'
is "exit code of a rank" "$code $(grep -c 'rank 1 .* exited with code 7' err)" "7 1"
ok "nothing left" wait_for gone
up() { [ -e up.0 ] && [ -e up.1 ] && [ -e up.2 ]; }
# The daemon of h2 dies; arguments are mpirun's.
kill_daemon() {
    rm -f up.*
    slurm exec salloc -Q -N 3 -n 3 "$real_mpirun" --map-by node "$@" sh -c ': >up.$PMIX_RANK; sleep 1000' >out 2>err &
    pid=$!
    wait_for up
    kill -9 "$(lab ps h2 | awk '/orted --orders/ && !/srun/ { print $2 }' | while read -r candidate; do
        grep -q reaper "/proc/$candidate/comm" || echo "$candidate"; done | tail -n 1)"
    finish
}
kill_daemon
is "kill -9 of a daemon" "$code $(grep -c 'daemon on host h2 is lost' err)" "125 1"
ok "nothing left of that" wait_for gone
kill_daemon --mca oob_radix 1
is "kill -9 of one that has started another" "$code $(grep -c 'daemon on host h2 is lost' err)" "125 1"
ok "nothing left of that, either" wait_for gone
allocated 2 2 --prefix /nowhere true
is "a missing orted" "$code $(grep -c '/nowhere/bin/orted' err)" "1 1"
printf '#!/bin/sh\necho "orted: this is Hawser 9.9, but mpirun is of Hawser 0" >&2\nexit 3\n' >other
chmod +x other
allocated 2 2 --launch-agent "$work/other" true
is "an orted that refuses says why" "$code $(grep -c 'mpirun: .*: orted: this is Hawser 9.9, but' err)" "1 1"
SLURM_STDINMODE=none allocated 2 2 hostname
is "settings for the user's own srun: orders arrive" "$code $(wc -l <out)" "0 2"
# One of three daemons can't be started: the others have called back by then, and srun lives on.
printf '#!/bin/sh\n[ "$SLURMD_NODENAME" != h3 ] || exec /nowhere/orted\nexec "%s" "$@"\n' "$(dirname "$real_mpirun")/orted" >some
chmod +x some
since=$(date +%s)
allocated 3 3 --launch-agent "$work/some" true
is "an orted that is missing on one host" "$code $(grep -c 'srun could not start the job.s daemons: .*' err)" "1 1"
took=$(($(date +%s) - since))
ok "which is noticed at once ($took s)" test "$took" -lt 30
ok "nothing left of the others" wait_for gone
slurm down >/dev/null
ok "nothing left at all" wait_for nothing_on_hosts
done_testing
