#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# A program started by nobody, or by somebody who gives no PMIx.
. "$top_srcdir/test/support/tap.sh"
tap_start 120

probe=$top_builddir/test/system/launch_probe
cd "$tap_dir" || exit 99
for name in $(env | sed -nE 's/^((PMIX|SLURM|PMI|OMPI_COMM|PALS|ALPS|FLUX|JSM|MV2)_[A-Za-z0-9_]*)=.*/\1/p'); do
    unset "$name"
done

# run [NAME=VALUE ...] PROGRAM...: output in out and err, code in $code.
run() {
    timeout -k 5 30 env "$@" >out 2>err </dev/null
    code=$?
}
is() { tap_ok "$1" test "$2" = "$3" || :; [ "$2" = "$3" ] || { echo "# got: $2"; sed 's/^/# /' err; }; }
says() { grep -qF -- "$1" "$2" || { cat "$2"; return 1; }; }
host=$(uname -n)

run "$probe" where
is "alone" "$code $(cat out err)" "0 1 ranks: $host:1"
run "$probe" code 3
is "its exit code" $code 3
run "$probe" abort 4
is "MPI_Abort" $code 4

refused() { # DESCRIPTION SAYS NAME=VALUE...
    description=$1
    sentence=$2
    shift 2
    run "$@" "$probe" where
    tap_ok "$description: refused" test $code != 0
    tap_ok "$description: says who" says "$sentence" err
}
refused "srun without PMIx" "srun has started (SLURM_STEP_NUM_TASKS=4)" SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0
refused "PMI" "speaks PMI-1 or PMI-2 has started (PMI_SIZE=2)" PMI_SIZE=2 PMI_RANK=0
refused "Open MPI's mpirun" "Open MPI's mpirun has started" OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0
refused "PALS" "PALS has started (PALS_LOCAL_SIZE=8)" PALS_LOCAL_SIZE=8 PALS_RANKID=0
refused "PALS, a rank per node" "PALS has started (PALS_RANKID=1)" PALS_LOCAL_SIZE=1 PALS_RANKID=1
refused "ALPS" "ALPS has started (ALPS_APP_PE=3)" ALPS_APP_PE=3
run SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=2 "$probe" where
is "of several ranks only the first one tells" "$(cat err)" ""
tap_ok "but all fail" test $code != 0
run OMPI_MCA_rte_allow_singletons=1 PMI_SIZE=2 PMI_RANK=1 "$probe" where
is "unless it is wanted" "$code $(cat out err)" "0 1 ranks: $host:1"

accepted() { # DESCRIPTION NAME=VALUE...
    description=$1
    shift
    run "$@" "$probe" where
    is "$description is no job of several" "$code $(cat out err)" "0 1 ranks: $host:1"
}
accepted "one task of srun" SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0
accepted "a batch script of Slurm's" SLURM_NTASKS=4 SLURM_JOB_ID=7 SLURM_PROCID=0
accepted "one process of another mpirun" OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 PMI_SIZE=1 PMI_RANK=0

run PMIX_NAMESPACE=gone PMIX_RANK=0 "$probe" where
tap_ok "a PMIx server that is not there: an error" test $code != 0
tap_ok "a PMIx server that is not there: says so" says "The PMIx server of the launcher of job gone can't be used" err
tap_end
