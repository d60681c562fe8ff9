#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Wrong parameters and components in a job: one clear message for the whole job, nothing started in vain, the right
# exit code.
. "$top_srcdir/test/support/tap.sh"
tap_start 180
mpirun=$top_builddir/orte/mpirun
for name in $(env | sed -n 's/^\(OMPI_MCA_[^=]*\)=.*/\1/p'); do unset "$name"; done
unset HAWSER_PREFIX OPAL_PREFIX
HOME=$tap_dir; export HOME
mkdir "$tap_dir/.hawser"
site=$tap_dir/.hawser/mca-params.conf
program=$top_builddir/test/system/params_hello

# refused WANTED ARGUMENTS: mpirun fails before it starts anything, saying this exactly once
refused() {
    wanted=$1; shift
    "$mpirun" -n 4 "$@" sh -c 'echo started' >"$tap_dir/out" 2>"$tap_dir/err"; code=$?
    cat "$tap_dir/out" "$tap_dir/err"; echo "exit code $code"
    [ "$code" != 0 ] && [ ! -s "$tap_dir/out" ] && [ "$(grep -cE -e "$wanted" "$tap_dir/err")" = 1 ]
}
# broken WANTED ARGUMENTS: the job's processes can't start MPI, and say why exactly once
broken() {
    wanted=$1; shift
    "$mpirun" -n 4 "$@" "$program" >"$tap_dir/out" 2>"$tap_dir/err"; code=$?
    cat "$tap_dir/out" "$tap_dir/err"; echo "exit code $code"
    [ "$code" != 0 ] && [ ! -s "$tap_dir/out" ] && [ "$(grep -cE -e "$wanted" "$tap_dir/err")" = 1 ]
}
# works OUTPUT ARGUMENTS: four processes, and this on standard error ("": nothing)
works() {
    wanted=$1; shift
    "$mpirun" -n 4 "$@" "$program" >"$tap_dir/out" 2>"$tap_dir/err"; code=$?
    cat "$tap_dir/out" "$tap_dir/err"; echo "exit code $code"
    [ "$code" = 0 ] && [ "$(grep -c '^fine$' "$tap_dir/out")" = 4 ] &&
        if [ -n "$wanted" ]; then [ "$(grep -cE -e "$wanted" "$tap_dir/err")" = 1 ]; else [ ! -s "$tap_dir/err" ]; fi
}
# The same with one process
works_alone() {
    wanted=$1; shift
    "$mpirun" -n 1 "$@" "$program" >"$tap_dir/out" 2>"$tap_dir/err"; code=$?
    cat "$tap_dir/out" "$tap_dir/err"; echo "exit code $code"
    [ "$code" = 0 ] && [ "$(cat "$tap_dir/out")" = fine ] && [ "$(grep -cE -e "$wanted" "$tap_dir/err")" = 1 ] && [ "$(wc -l <"$tap_dir/err")" = 1 ]
}
# The same with a variable of the environment, the second argument
env_works() { (export "$2"; wanted=$1; shift 2; works "$wanted" "$@"); }
env_refused() { (export "$2"; wanted=$1; shift 2; refused "$wanted" "$@"); }
env_broken() { (export "$2"; wanted=$1; shift 2; broken "$wanted" "$@"); }

tap_ok "parameters of the MPI library are known to mpirun" works '' --mca btl_base_verbose 0 --mca pml teg
tap_ok "an unknown name" refused 'blt \(from: command line\) is not known. Did you mean btl\?' --mca blt tcp
tap_ok "an unknown name of a component" refused 'Did you mean btl_tcp_if_include\?' --mca btl_tcp_if_inculde lo
tap_ok "a name that is like none of ours" refused 'osc_rdma_limit \(from: command line\) is not known\.$' --mca osc_rdma_limit 1
export OMPI_MCA_btl_vader_single_copy_mechanism=none
tap_ok "one in the environment, where Open MPI reads" works 'btl_vader_single_copy_mechanism \(from: environment\) is not known'
unset OMPI_MCA_btl_vader_single_copy_mechanism
# What module files set for Open MPI, like as it may be to names of ours
for setting in mtl=^psm2 oob_tcp_if_include=eth0 btl_tcp_port_min_v4=1024 btl_openib_receive_queues=P,65536 \
    pml_ob1_verbose=1 odls_base_verbose=1; do
    tap_ok "Open MPI's ${setting%%=*} in the environment" \
        env_works "parameter ${setting%%=*} \(from: environment\) is not known\.$" "OMPI_MCA_$setting"
    tap_ok "but not on the command line" refused "parameter ${setting%%=*} \(from: command line\) is not known" \
        --mca "${setting%%=*}" "${setting#*=}"
done
tap_ok "a mistyped name of ours in the environment" env_refused 'Did you mean btl_tcp_eager_limit\?' OMPI_MCA_btl_tcp_eager_limt=3
for setting in pml=^ucx btl=^vader coll=^hcoll pml=ucx btl=self,shm,vader; do
    tap_ok "Open MPI's component in $setting in the environment" \
        env_works "parameter ${setting%%=*} \(from: environment\): there is no component" "OMPI_MCA_$setting"
    tap_ok "but not on the command line" broken "framework ${setting%%=*} has no component" --mca "${setting%%=*}" "${setting#*=}"
done
tap_ok "who excludes does not ask for it" broken 'which the parameter btl excludes\.' --mca btl ^vader
tap_ok "a mistyped component of ours in the environment" env_broken 'Did you mean shm\?' OMPI_MCA_btl=^shmm
# param_is VALUE ARGUMENTS: what processes take the parameter opal_progress_yields to be, and from where
param_is() {
    wanted=$1; shift
    "$mpirun" -n 1 "$@" "$top_builddir/ompi/ompi_info" --all --parsable 2>&1 | grep 'opal_progress_yields:\(value\|source\)' |
        sed 's/.*://' | paste -sd' ' | tee "$tap_dir/out"
    [ "$(cat "$tap_dir/out")" = "$wanted" ]
}
# wrapped WANTED SETTING: what a script sets under mpirun is checked by the processes
wrapped() {
    "$mpirun" -n 2 sh -c "$2 exec \"$program\"" >"$tap_dir/out" 2>"$tap_dir/err"; code=$?
    cat "$tap_dir/out" "$tap_dir/err"; echo "exit code $code"
    [ "$code" != 0 ] && [ ! -s "$tap_dir/out" ] && [ "$(grep -cE -e "$1" "$tap_dir/err")" = 1 ]
}
tap_ok "a mistyped name set by a script" wrapped 'Did you mean btl_tcp_eager_limit\?' OMPI_MCA_btl_tcp_eager_limt=3
echo 'opal_progress_yields = 8' >"$tap_dir/tune"
tap_ok "-x sets a parameter as the environment does" param_is '9 environment' -x OMPI_MCA_opal_progress_yields=9
tap_ok "--mca beats -x" param_is '7 command line' --mca opal_progress_yields 7 -x OMPI_MCA_opal_progress_yields=9
tap_ok "and so does -genv" param_is '7 command line' -genv OMPI_MCA_opal_progress_yields 9 --mca opal_progress_yields 7
tap_ok "--tune beats -x" param_is "8 1)\"" -x OMPI_MCA_opal_progress_yields=9 --tune "$tap_dir/tune"
tap_ok "a value that does not parse" refused 'opal_progress_yields: the value "many"' --mca opal_progress_yields many
tap_ok "a report of links where nothing was sent: a sentence" works_alone 'nothing travelled over any link' --report-links
tap_ok "an optional name" works '' --mca '?btl_nonsense_x' 1
tap_ok "unknown names tolerated" works 'blt \(from: command line\) is not known' --mca mca_base_param_check warn \
    --mca blt tcp
tap_ok "unknown names ignored" works '' --mca mca_base_param_check ignore --mca blt tcp
echo 'btl_tcp_if_exclude lo' >"$site"
tap_ok "a malformed line of a file" refused 'mca-params.conf:1: this line is no parameter setting' 
seq -f 'line %g' 100 >"$site"
tap_ok "a file that is something else: a few lines are named" refused '95 more lines of parameter files'
printf '# mine\nbtl = slef\n' >"$site"
tap_ok "a missing component" broken 'framework btl has no component "slef", .* Did you mean self\?'
echo 'pml = teg' >"$site"
tap_ok "a good file" works ''
rm "$site"
echo nothing >"$tap_dir/mca_btl_broken.so"
tap_ok "a component that can't be loaded" broken 'component broken of framework btl .* can.t be used: it can.t be loaded' \
    --mca mca_base_component_path "$tap_dir" --mca btl self,shm,broken
mkdir "$tap_dir/openmpi"
tap_ok "Open MPI's OPAL_PREFIX" env_works '' "OPAL_PREFIX=$tap_dir/openmpi"
tap_ok "which is named if all is told" env_works "OPAL_PREFIX in the environment .*: $tap_dir/openmpi" \
    "OPAL_PREFIX=$tap_dir/openmpi" --verbose
tap_ok "HAWSER_PREFIX without a Hawser" env_refused "HAWSER_PREFIX in the environment is $tap_dir/openmpi, and no Hawser" \
    "HAWSER_PREFIX=$tap_dir/openmpi"
# unlike WANTED SETTING: the last of three processes has a setting of its own; the job says so, naming both processes, and ends
unlike() {
    timeout -k 5 60 "$mpirun" -n 2 "$program" : -n 1 -x "OMPI_MCA_$2" "$program" >"$tap_dir/out" 2>"$tap_dir/err"; code=$?
    cat "$tap_dir/out" "$tap_dir/err"; echo "exit code $code"
    [ "$code" != 0 ] && [ "$code" != 124 ] && [ ! -s "$tap_dir/out" ] && grep -qE -e "$1" "$tap_dir/err" && grep -q 'rank [0-2]: Rank [0-2] on host .* is not set up as this process is' "$tap_dir/err"
}
unlike_works() {
    timeout -k 5 60 "$mpirun" -n 2 "$program" : -n 2 -x "OMPI_MCA_$1" "$program" >"$tap_dir/out" 2>"$tap_dir/err"; code=$?
    cat "$tap_dir/out" "$tap_dir/err"; echo "exit code $code"
    [ "$code" = 0 ] && [ "$(grep -c '^fine$' "$tap_dir/out")" = 4 ] && [ ! -s "$tap_dir/err" ]
}
tap_ok "one process without coll/shm" unlike 'has the components .* for collective operations, this process .*; set --mca coll alike' coll=^shm
tap_ok "one process with another component first" unlike 'its parameter coll_.*_priority is .*, that of this process .*; set it alike' \
    coll_basic_priority=50
tap_ok "another threshold of an algorithm" unlike 'its parameter coll_nbc_reduce_long is (1024|the default), that of this process' \
    coll_nbc_reduce_long=1k
tap_ok "collectives through memory from the first on, in one process" unlike 'coll_shm_after is' coll_shm_after=0
tap_ok "another point-to-point layer" unlike 'uses the point-to-point layer "(dr|teg).*; set --mca pml alike' pml=dr
tap_ok "the same components in another order" unlike_works coll=shm,nbc,basic
tap_ok "the same threshold, said in one process only" unlike_works coll_nbc_reduce_long=16k
tap_ok "what each process has to itself" unlike_works coll_shm_spins=7
chaos="--mca pml dr --mca btl chaos,self --mca btl_chaos_wrap"
tap_ok "a rehearsal with a link that is not there" works 'btl_chaos_links names "tcp:eth9"' $chaos shm \
    --mca btl_chaos_links shm,tcp:eth9 --mca btl_chaos_loss 10000
tap_ok "or of nothing" works 'btl_chaos_wrap names no byte transfer layer' --mca btl_chaos_loss 10000
printf '0s loss 10000 link=shm\n0s loss 10000 link=chaos:shm rank=3\n' >"$tap_dir/script"
tap_ok "a script with links and ranks that are there" works '' $chaos shm --mca btl_chaos_script "$tap_dir/script"
echo '1s down link=tcp:eth9 rank=2' >>"$tap_dir/script"
tap_ok "with a link that is not" works 'events for the link "tcp:eth9"' $chaos shm --mca btl_chaos_script "$tap_dir/script"
echo '2s down rank=4' >"$tap_dir/script"
tap_ok "with a rank that is not" works 'events for rank 4, ' $chaos shm --mca btl_chaos_script "$tap_dir/script"
tap_end
