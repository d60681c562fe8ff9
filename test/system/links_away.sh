#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# The only link of two processes dies and comes back, while both compute for longer than pml_base_path_timeout: neither gives the other
# up for the time in which it did not look.
. "$top_srcdir/test/support/tap.sh"
tap_start 60
. "$top_srcdir/test/system/links_lib.sh"
build away test/system/links_away.c
lab_up 2 1

# ARGUMENTS OF MPIRUN
returns() {
    : >"$tap_dir/out"
    timeout 40 "$lab_script" exec h1 "$mpirun" --host h1,h2 --map-by node -n 2 --mca net_include lo,eth1 \
        --mca pml_base_path_timeout 3 "$@" "$tap_dir/away" 6 >"$tap_dir/out" 2>"$tap_dir/err" </dev/null &
    job=$!
    while ! grep -q cut "$tap_dir/out" && kill -0 $job 2>/dev/null; do
        sleep 0.05
    done
    lab cut h1 1 down
    sleep 2.5 # how long it is dead
    lab mend h1 1
    wait $job && grep -qx "got 43" "$tap_dir/out" && return
    cat "$tap_dir/err"
    return 1
}
tap_ok "a link that was dead meanwhile" returns --mca pml dr --mca btl udp,self
tap_end
