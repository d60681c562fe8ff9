#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# The tests of MPI's behaviour over tcp between 8 hosts with 4 slots each, ranks in turn over the hosts.
. "$top_srcdir/test/system/hosts_lib.sh"
lab_up 8
for host in $hosts; do echo "$host slots=4"; done >hostfile
here=$top_builddir/test/mpi
MPIRUN=$mpirun
OMPI_MCA_rmaps_base_binding_policy=none # see links_lib.sh
export MPIRUN OMPI_MCA_rmaps_base_binding_policy
run --hostfile hostfile --mca btl tcp,self "$top_builddir/test/system/launch_probe"
is "a rank on each of 32 slots" "$code" 0
for what in start alone again; do
    run --hostfile hostfile --map-by node -n 9 -x ABSENT_LAST=8 --timeout 100 "$top_builddir/test/system/absent" $what
    is "not every process takes part in MPI: $what" "$code $(cat out)" "0 done"
done
while read -r program args; do
    count=$((count + 1))
    output=$(MPIRUN_ARGS="--hostfile $work/hostfile $args" timeout 900 "$here/$program" </dev/null 2>&1)
    if [ $? -eq 0 ]; then
        echo "ok $count - $program $args"
    else
        failed=$((failed + 1))
        echo "not ok $count - $program $args"
        printf '%s\n' "$output" | grep -v '^ok' | sed 's/^/# /' | head -40
    fi
done <<LIST
p2p --map-by node --mca btl tcp,self
coll --map-by node --mca btl tcp,self
datatype --map-by node --mca btl tcp,self
intercomm --map-by node --mca btl tcp,self
session --map-by node --mca btl tcp,self
comm --map-by slot --mca btl shm,tcp,self
LIST
ok "nothing left" wait_for nothing_on_hosts
done_testing
