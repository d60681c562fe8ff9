#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# ompi_info: all its forms, for people and for programs, on good and bad settings.
. "$top_srcdir/test/support/tap.sh"
tap_start 180
info=$top_builddir/ompi/ompi_info
for name in $(env | sed -n 's/^\(OMPI_MCA_[^=]*\)=.*/\1/p'); do unset "$name"; done
unset HAWSER_PREFIX OPAL_PREFIX
HOME=$tap_dir; export HOME
mkdir "$tap_dir/.hawser"

# says WANTED COMMAND...: succeeds, and a line of the output is this (an extended regular expression)
says() { wanted=$1; shift; "$@" >"$tap_dir/out" 2>&1 && cat "$tap_dir/out" && grep -qE -e "$wanted" "$tap_dir/out"; }
lacks() { unwanted=$1; shift; "$@" >"$tap_dir/out" 2>&1 && cat "$tap_dir/out" && ! grep -qE -e "$unwanted" "$tap_dir/out"; }
# fails STATUS WANTED COMMAND...: ends with this status and says this
fails() {
    status=$1 wanted=$2; shift 2
    "$@" >"$tap_dir/out" 2>&1; got=$?
    cat "$tap_dir/out"; echo "status $got"
    [ "$got" = "$status" ] && grep -qE -e "$wanted" "$tap_dir/out"
}

version=$(cat "$top_srcdir/VERSION")
tap_ok "overview: version" says "^ +Hawser: $version\$" $info
tap_ok "overview: components" says '^ +MCA btl: self \(MCA v1\.0, API v[0-9.]+, Component v[0-9.]+\)$' $info
tap_ok "overview: nothing fails to load" lacks 'failed to load' $info
tap_ok "overview has no parameters" lacks 'parameter "' $info
tap_ok "--version" says "^hawser:version:$version\$" $info --version --parsable
tap_ok "--path prefix" says '^ +Prefix: /' $info --path prefix
tap_ok "--path all --parsable" says '^path:sysconfdir:/' $info --path all --parsable
tap_ok "--path of an unknown kind" fails 1 'no folder called "nonsense"' $info --path nonsense
tap_ok "--config" says '^compiler:c:command:' $info --config --parsable
tap_ok "--config: no Fortran, whatever compilers there are" says '^ +Fortran bindings: no$' $info --config
tap_ok "--links: one that is used" says '^ +Link: self \(' env OMPI_MCA_btl=shm,self $info --links
tap_ok "--links: one that is not, and why" says '^link:unused:"?tcp:lo: in the exclude list' \
    env OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_exclude=lo $info --links --parsable
tap_ok "--links: a layer that can't be used" fails 1 'nosuch' env OMPI_MCA_btl=nosuch,self $info --links
tap_ok "--help" says '^  --param FRAMEWORK COMPONENT' $info --help
tap_ok "an unknown option" fails 2 'Did you mean --parsable' $info --parsble
tap_ok "an unknown option of one letter" fails 2 'Did you mean -V\?' $info -v
tap_ok "a bad level" fails 2 'a number from 1 to 9' $info --all --level 10

tap_ok "a parameter of level 1" says \
    '^ +MCA mca base: parameter "mca_base_param_check" \(current value: "error", data source: default, level: 1 user/basic, type: enum\)$' \
    $info --param mca base
tap_ok "with its values" says 'Valid values: 0:"error", 1:"warn", 2:"ignore"' $info --param mca base
tap_ok "not one of level 4" lacks 'mca_base_component_path' $info --param mca base
tap_ok "one of level 4 with --level 4" says '"mca_base_component_path"' $info --param mca base --level 4
tap_ok "everything with --all" says '"opal_progress_event_us"' $info --all
tap_ok "parsable" says '^mca:mca:base:param:mca_base_param_check:value:error$' $info --all --parsable
tap_ok "colons are quoted" says '^mca:mca:base:param:mca_base_param_files:value:".*:.*"$' $info --all --parsable
tap_ok "an unknown framework" fails 1 'no framework "blt". Did you mean btl\?' $info --param blt all
tap_ok "an unknown component" fails 1 'no component "slef" in framework btl' $info --param btl slef
tap_ok "a component without parameters of this level" lacks . $info --param btl self --level 1

echo 'opal_progress_yields = 7' >"$tap_dir/.hawser/mca-params.conf"
tap_ok "a value from a file, with its line" says \
    '"opal_progress_yields" \(current value: "7", data source: file \(.*/mca-params\.conf:1\)' $info --all
tap_ok "the environment" says 'yields:source:environment$' env OMPI_MCA_opal_progress_yields=8 $info --all --parsable
tap_ok "the command line" says 'yields:source:command line$' env OMPI_MCA_opal_progress_yields=8 \
    HAWSER_MCA_SOURCE_opal_progress_yields='command line' $info --all --parsable
tap_ok "a bad value is reported and shown as its default" says \
    'yields: the value "x" \(from: environment\) is not an integer' env OMPI_MCA_opal_progress_yields=x $info --all
tap_ok "an unknown name is reported" says 'opal_progress_yeilds \(from: environment\) is not known. Did you mean' \
    env OMPI_MCA_opal_progress_yeilds=1 $info
echo 'nonsense' >"$tap_dir/.hawser/mca-params.conf"
tap_ok "a malformed line is reported" says 'mca-params.conf:1: this line is no parameter setting' $info
rm "$tap_dir/.hawser/mca-params.conf"

tap_ok "--selected-only" lacks 'MCA btl: self' env OMPI_MCA_btl=^self $info --selected-only
for selection in slef,tcp '^slef'; do
    tap_ok "--selected-only: btl=$selection names what is not there" fails 1 'framework btl has no component "slef".* Did you mean self\?' \
        env OMPI_MCA_btl=$selection $info --selected-only
done
tap_ok "which is of no interest otherwise" lacks 'has no component' env OMPI_MCA_btl=slef,tcp $info
tap_ok "--selected-only: a list that is none" fails 1 'is no list of components' env OMPI_MCA_btl=tcp,^self $info --selected-only
tap_ok "--selected-only: Open MPI's component" says 'there is no component "vader" here' env OMPI_MCA_btl=^vader $info --selected-only
echo "no object" >"$tap_dir/mca_btl_broken.so"
tap_ok "a component that can't be loaded" says '^ +MCA btl: broken \(failed to load: .*/mca_btl_broken\.so: ' \
    env OMPI_MCA_mca_base_component_path="$tap_dir" $info
tap_ok "--failed --parsable" says '^mca:btl:broken:failed:"it can.t be loaded' \
    env OMPI_MCA_mca_base_component_path="$tap_dir" $info --failed --parsable
head -c 3000 "$top_builddir/ompi/.libs/libmpi_abi.so" >"$tap_dir/mca_btl_cut.so"
tap_ok "a component whose file is not complete" says '^ +MCA btl: cut \(failed to load: .* not complete' \
    env OMPI_MCA_mca_base_component_path="$tap_dir" $info --failed
rm "$tap_dir/mca_btl_cut.so"
# full COMMAND...: with a full disk under its standard output it fails, and says so
full() { "$@" 2>"$tap_dir/out" >/dev/full; [ $? = 1 ] && cat "$tap_dir/out" && grep -q 'standard output: No space' "$tap_dir/out"; }
for words in "" --all --links --version --help; do
    [ -w /dev/full ] || break
    # shellcheck disable=SC2086
    tap_ok "a full disk: ${words:-no options}" full $info $words
done
tap_end
