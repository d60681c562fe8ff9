# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Read by the tests of links between hosts of the lab, after tap_start: a lab of the test's own, which ends with it; programs
# built for it; and $root, the build folder, and $mpirun in it.
lab_script=$(cd "$top_srcdir" && pwd)/test/lab/lab
root=$(cd "$top_builddir" && pwd)
mpirun=$root/orte/mpirun
HAWSER_LAB=links-$$
OMPI_MCA_plm_rsh_agent="$lab_script agent"
# The hosts are one machine: each would bind its first rank to the same processor, and messages would wait for its turns.
OMPI_MCA_rmaps_base_binding_policy=none
TMPDIR=$tap_dir
export HAWSER_LAB OMPI_MCA_plm_rsh_agent OMPI_MCA_rmaps_base_binding_policy TMPDIR

lab() { "$lab_script" "$@"; }

lab_up() { # ARGUMENTS of lab up
    lab up "$@" --owner $$ >/dev/null || tap_skip_all "no lab"
}

build() { # NAME SOURCE: $tap_dir/NAME
    ${CC:-cc} -O2 -I"$top_srcdir/bench/src" -I"$top_builddir/ompi/include" -I"$top_srcdir/ompi/include" \
        -o "$tap_dir/$1" "$top_srcdir/$2" -L"$top_builddir/ompi/.libs" -lmpi_abi \
        -Wl,-rpath,"$root/ompi/.libs" -Wl,-rpath,"$root/opal/.libs" >"$tap_dir/cc" 2>&1 ||
        tap_skip_all "$2 can't be built here: $(head -1 "$tap_dir/cc")"
}

lab_reason=$(lab can 2>&1) || tap_skip_all "$lab_reason"
trap 'lab down; rm -rf "$tap_dir"' EXIT
