#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# One message over two real links of two hosts, and through the loss of one: a checked stream while a
# link of the lab is slowed down, cut in several ways and mended. LINKS_CUTS=50 cuts so often, at
# random moments. How fast that goes bench/src/stream.c shows; here nothing may be lost.
. "$top_srcdir/test/support/tap.sh"
cuts=${LINKS_CUTS:-4}
tap_start $((120 + cuts * 20))

lab_script=$top_srcdir/test/lab/lab
slurm_script=$top_srcdir/test/lab/slurm
HAWSER_LAB=links-test-$$
export HAWSER_LAB
reason=$("$slurm_script" can 2>&1) || tap_skip_all "$reason"
trap 'lab down; rm -rf "$tap_dir"' EXIT

lab() { "$lab_script" "$@"; }

stream=$tap_dir/stream
${CC:-cc} -O2 -I"$top_srcdir/bench/src" -I"$top_builddir/ompi/include" -I"$top_srcdir/ompi/include" \
    -o "$stream" "$top_srcdir/bench/src/stream.c" -L"$top_builddir/ompi/.libs" -lmpi_abi \
    -Wl,-rpath,"$(cd "$top_builddir" && pwd)/ompi/.libs" -Wl,-rpath,"$(cd "$top_builddir" && pwd)/opal/.libs" \
    >"$tap_dir/cc" 2>&1 || tap_skip_all "the stream program can't be built here"

lab up 2 2 --rate 1gbit,1gbit >/dev/null || tap_skip_all "no lab"
"$slurm_script" up 4 >/dev/null || tap_skip_all "no Slurm in the lab"

# Run a stream of SECONDS in the background; output in $tap_dir/out, the report in $tap_dir/err.
start() {
    OMPI_MCA_btl=tcp,self OMPI_MCA_pml_base_report_links=text OMPI_MCA_btl_tcp_stall_timeout=1000 \
        "$slurm_script" exec srun --mpi=pmix -N 2 -n 2 "$stream" --check --seconds "$@" \
        >"$tap_dir/out" 2>"$tap_dir/err" &
    job=$!
}

# Wait until so many lines of output are there: what follows happens in mid-stream.
in_stream() {
    for _ in $(seq 600); do
        [ "$(wc -l <"$tap_dir/out")" -ge "$1" ] && return 0
        kill -0 "$job" 2>/dev/null || return 1
        sleep 0.05
    done
    return 1
}

is_whole() {
    wait "$job" && grep 'total .* wrong 0$' "$tap_dir/out" && return
    tail -3 "$tap_dir/out" "$tap_dir/err"
    return 1
}
column() { awk -v l="$1" -v c="$2" '$1 == "h1" && $3 == l { print $c }' "$tap_dir/err"; }

start 2
tap_ok "a stream over two links arrives whole" is_whole
tap_ok "both links carried a good part" \
    test "$(column tcp:eth1 4)" -gt 10000000 -a "$(column tcp:eth2 4)" -gt 10000000
tap_ok "the report says which links are used" grep -q 'another host: tcp:eth1 (50 %), tcp:eth2 (50 %)' "$tap_dir/err"

start 3
in_stream 5
lab rate h1 2 100mbit
tap_ok "a link that becomes slower" is_whole
lab rate h1 2 1gbit

n=0
for how in drop carrier down drop-in drop-out reset; do
    [ $n -ge "$cuts" ] && break
    n=$((n + 1))
    start 4 --bytes $((1 + n % 3))000000
    in_stream $((3 + n))
    lab cut h1 2 $how
    in_stream $((8 + n))
    lab mend h1 2
    tap_ok "cut in mid-stream ($how) and mended: nothing is lost" is_whole
done
while [ $n -lt "$cuts" ]; do # the rest at random
    n=$((n + 1))
    how=$(shuf -n 1 -e drop carrier down drop-in drop-out reset)
    start 4 --bytes "$(shuf -n 1 -e 64 1000 60000 70000 300000 4000000)"
    in_stream "$(shuf -n 1 -i 2-9)"
    lab cut h1 "$(shuf -n 1 -i 1-2)" "$how"
    in_stream "$(shuf -n 1 -i 10-14)"
    lab mend h1
    tap_ok "cut $n ($how): nothing is lost" is_whole
done
tap_end
