#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Jobs started by Slurm's srun, on four hosts of the lab.
. "$top_srcdir/test/support/tap.sh"
tap_start 180

tools=$top_srcdir/test/lab
probe=$top_builddir/test/system/launch_probe
HAWSER_LAB=slurm-$$
export HAWSER_LAB
reason=$("$tools/slurm" can 2>&1) || tap_skip_all "$reason"
trap '"$tools/lab" down; rm -rf "$tap_dir"' EXIT
cd "$tap_dir" || exit 99
unset PMIX_NAMESPACE

# srun with a time limit: output in out and err, code in $code.
run() {
    timeout -k 5 60 "$tools/slurm" exec srun "$@" >out 2>err </dev/null
    code=$?
}
is() { tap_ok "$1" test "$2" = "$3" || :; [ "$2" = "$3" ] || { echo "# got: $2"; sed 's/^/# /' err; }; }
says() { grep -qF -- "$1" "$2" || { cat "$2"; return 1; }; }
probes() { "$tools/lab" ps | grep -c launch_probe; }
# What a killed step leaves is gone when slurmstepd has seen to it.
gone() { for _ in $(seq 100); do [ "$(probes)" != 0 ] || return 0; sleep 0.05; done; return 1; }
only_hosts() { "$tools/lab" ps >left && cat left && [ "$(wc -l <left)" = 4 ]; }

tap_ok "four hosts" "$tools/lab" up 4 1 --owner $$
tap_ok "with Slurm" "$tools/slurm" up

run --mpi=pmix -N 4 --ntasks-per-node=2 -m cyclic "$probe" where
is "srun --mpi=pmix" "$code $(cat out)" "0 8 ranks: h1:2 h2:2 h3:2 h4:2 h1:2 h2:2 h3:2 h4:2"
is "nothing else is said" "$(cat err)" ""
OMPI_MCA_btl=shm,self run --mpi=pmix -w h1 -n 2 "$probe" where
is "shared memory inside a host" "$code $(cat out)" "0 2 ranks: h1:2 h1:2"
OMPI_MCA_btl=shm,self run --mpi=pmix -K -N 2 -n 2 "$probe" where
tap_ok "no shared memory between hosts, though pids and boot id are the same" says "can't be reached" err
run --mpi=pmix -w h1 -n 1 "$probe" where
is "one rank" "$code $(cat out)" "0 1 ranks: h1:1"

# The test programs of MPI behaviour start themselves with `mpirun -n N PROGRAM`. A job that has to wait for the last one's end is no fault (-Q).
cat >mpirun <<END
#!/bin/sh
shift
exec "$tools/slurm" exec srun -Q --mpi=pmix -K -N 1-4 -m cyclic -n "\$@"
END
chmod +x mpirun
p2p() { MPI_TEST_JUDGE=1 MPIRUN=$tap_dir/mpirun "$top_builddir/test/mpi/p2p" "$1"; }
tap_ok "messages of all sizes in a ring of 5" p2p all-sizes-in-a-ring
tap_ok "a storm of messages" p2p storm

run --mpi=pmix -N 2 -n 4 "$probe" code 5
is "the exit code of a rank" $code 5
run --mpi=pmix -N 2 -n 4 "$probe" abort 9
is "MPI_Abort: its code" $code 9
tap_ok "MPI_Abort: who called it" says "MPI_Abort was called with code 9 by rank 3" err
tap_ok "MPI_Abort: nothing runs on" gone
run --mpi=pmix -K -N 2 -n 4 "$probe" kill
tap_ok "srun -K, a rank killed: the job ends" test $code != 0 -a $code != 124
tap_ok "srun -K, a rank killed: nothing runs on" gone

OMPI_MCA_pml_base_path_timeout=2 run --mpi=pmix -N 3 -n 3 "$probe" awaited
tap_ok "without -K, who only receives from the killed rank: the job ends" test $code != 0 -a $code != 124
tap_ok "... and a message says whom it waited for" says "Rank 2 on host h3 can't be reached any more" err

for mpi in none pmi2; do
    run --mpi=$mpi -N 2 -n 4 "$probe" where
    tap_ok "srun --mpi=$mpi: an error" test $code != 0
    is "srun --mpi=$mpi: said once, with the remedy" "$(grep -c 'Use srun --mpi=pmix' err)" 1
done
OMPI_MCA_rte_allow_singletons=1 run --mpi=none -N 2 -n 4 "$probe" where
is "worlds of one for those who mean it" "$code $(sort out | uniq -c | xargs)" "0 3 1 ranks: h1:1 1 1 ranks: h2:1"

tap_ok "down" "$tools/slurm" down
tap_ok "nothing of Slurm runs on" only_hosts
tap_end
