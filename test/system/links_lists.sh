#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Which links carry what, as their user sees it: equal ones share small messages in turn, unequal ones long messages by what
# was measured, or, without measuring, by what was reported; links of a host; and the end of the last one. Two hosts, two links.
. "$top_srcdir/test/support/tap.sh"
tap_start 240
. "$top_srcdir/test/system/links_lib.sh"
build stream bench/src/stream.c
lab_up 2 3 --rate max,200mbit,200mbit

# stream HOSTS BTL ARGUMENTS...: a stream from the first to the second process; the report in $tap_dir/err.
options=--report-links
stream() {
    hosts=$1 btl=$2
    shift 2
    lab exec h1 "$mpirun" --host "$hosts" --map-by node -n 2 --mca btl "$btl" --mca btl_tcp_if_include eth2,eth3 \
        $options "$tap_dir/stream" "$@" >"$tap_dir/out" 2>"$tap_dir/err" </dev/null
}
column() { awk -v l="$1" -v c="$2" '$1 == "h1" && $3 == l { print $c; exit }' "$tap_dir/err"; }

# between LOW HIGH COLUMN: percent of all that tcp:eth2 has of it.
between() {
    percent=$(awk -v a="$(column tcp:eth2 "$3")" -v b="$(column tcp:eth3 "$3")" 'BEGIN { printf "%d", 100 * a / (a + b) }')
    echo "tcp:eth2 has $percent %; $1 to $2 are expected"
    [ "$percent" -ge "$1" ] && [ "$percent" -le "$2" ]
}
BYTES=4 FRAGMENTS=7 WEIGHT=12

tap_ok "small messages over two equal links" stream h1,h2 tcp,self --bytes 100 --window 16 --seconds 1 --check
# On a busy machine a link may seem stuck for a moment, and is left out then.
tap_ok "go over both in turn" between 25 75 $FRAGMENTS

# weight OPERATOR: of the slower link against the faster one.
weight() {
    echo "weights $(column tcp:eth2 $WEIGHT) and $(column tcp:eth3 $WEIGHT)"
    [ "$(column tcp:eth2 $WEIGHT)" "$1" "$(column tcp:eth3 $WEIGHT)" ]
}
lab rate h1 2 50mbit
tap_ok "long messages over links of 50 and 200 Mbit/s, which say 10 Gbit/s of themselves" \
    stream h1,h2 tcp,self --bytes 1000000 --seconds 3 --check
tap_ok "share by what the links can carry" between 10 32 $BYTES
tap_ok "weights follow what is measured" weight -lt
options="--mca pml_base_adapt 0 --report-links"
tap_ok "the same with pml_base_adapt=0" stream h1,h2 tcp,self --bytes 1000000 --seconds 2 --check
tap_ok "weights stay what the links say" weight -eq
lab rate h1 2 200mbit

options="--mca pml_base_stripe all --report-links"
tap_ok "shared memory and tcp together" stream h1:2 shm,tcp,self --bytes 4000000 --seconds 1 --check
both_carry() { # least bytes
    echo "shm $(column shm 4), tcp $(column tcp:eth2 4) and $(column tcp:eth3 4)"
    [ "$(column shm 4)" -gt "$1" ] && [ "$(column tcp:eth2 4)" -gt "$1" ]
}
tap_ok "both carry parts of long messages" both_carry 1000000
options=
OMPI_MCA_pml_base_report_links=text
export OMPI_MCA_pml_base_report_links
tap_ok "the same without pml_base_stripe, the report asked for by its parameter" \
    stream h1:2 shm,tcp,self --bytes 4000000 --seconds 1 --check
tap_ok "the report comes" test -n "$(column shm 4)"
tap_ok "and says what is used between processes of one host" grep -q 'the same host: shm' "$tap_dir/err"
alone() { ! both_carry 1000000; }
tap_ok "shared memory alone carries long messages then" alone
unset OMPI_MCA_pml_base_report_links

# The control connection goes over the first link; messages have the other two.
options="--mca pml_base_path_timeout 2"
lab exec h1 "$mpirun" --host h1,h2 --map-by node -n 2 --mca btl tcp,self --mca btl_tcp_if_include eth2,eth3 \
    $options "$tap_dir/stream" --seconds 60 --interval 0.05 >"$tap_dir/out" 2>"$tap_dir/err" </dev/null &
job=$!
for _ in $(seq 600); do
    [ "$(wc -l <"$tap_dir/out")" -lt 5 ] && kill -0 "$job" 2>/dev/null || break
    sleep 0.05
done
lab cut h1 2 drop
lab cut h1 3 drop
fails() { ! wait "$job"; }
tap_ok "the last link to a peer is gone: the job ends" fails
says_why() {
    cat "$tap_dir/err"
    grep -q 'tcp:eth2' "$tap_dir/err" && grep -q 'tcp:eth3' "$tap_dir/err" && grep -q 'h[12]' "$tap_dir/err"
}
tap_ok "and says which peer, and what became of each link" says_why
tap_end
