#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# One message over two real links of two hosts, and through the loss of one: a stream while a link is slowed
# down; then checked messages of all lengths both ways while a link is cut, in each of six ways in turn, at a
# random moment, and mended. Nothing may be lost, repeated, damaged or overtaken, the other link must be carrying
# soon after the cut, and the mended one its share again. How fast the streams go bench/run --suite links shows.
#
#   LINKS_CUTS   how many (6); every other six are under messages whose MPI_Send has returned, for the rest
#                there are long ones among them
#   LINKS_SEED   of links, moments and messages (printed; random)
#   LINKS_LIMIT  ms from the cut until the other link carries (3000, which tells a link given up in time from one that
#                waits for the kernel, on any machine; an idle one keeps 400)
#   LINKS_PML    the point-to-point layer (teg)
. "$top_srcdir/test/support/tap.sh"
cuts=${LINKS_CUTS:-6}
limit=${LINKS_LIMIT:-3000}
tap_start $((120 + cuts * 25))
LINKS_SEED=${LINKS_SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}

lab_script=$top_srcdir/test/lab/lab
HAWSER_LAB=links-$$
OMPI_MCA_plm_rsh_agent="$lab_script agent"
OMPI_MCA_pml=${LINKS_PML:-teg}
TMPDIR=$tap_dir
export HAWSER_LAB OMPI_MCA_plm_rsh_agent OMPI_MCA_pml TMPDIR
lab() { "$lab_script" "$@"; }
reason=$(lab can 2>&1) || tap_skip_all "$reason"
trap 'lab down; rm -rf "$tap_dir"' EXIT

build() { # NAME SOURCE
    root=$(cd "$top_builddir" && pwd)
    ${CC:-cc} -O2 -I"$top_srcdir/bench/src" -I"$top_builddir/ompi/include" -I"$top_srcdir/ompi/include" \
        -o "$tap_dir/$1" "$top_srcdir/$2" -L"$top_builddir/ompi/.libs" -lmpi_abi \
        -Wl,-rpath,"$root/ompi/.libs" -Wl,-rpath,"$root/opal/.libs" >"$tap_dir/cc" 2>&1
}
build stream bench/src/stream.c && build mix test/system/links_mix.c ||
    tap_skip_all "the programs can't be built here: $(head -1 "$tap_dir/cc")"
mpirun=$(cd "$top_builddir" && pwd)/orte/mpirun

rate=25 # MB/s of a link; the first one is mpirun's alone
lab up 2 3 --rate max,200mbit,200mbit --owner $$ >/dev/null || tap_skip_all "no lab"

# Run PROGRAM in the background on both hosts; output in $tap_dir/out, the report in $tap_dir/err.
start() {
    : >"$tap_dir/out"
    program=$tap_dir/$1
    shift
    lab exec h1 "$mpirun" --host h1,h2 --map-by node -n 2 --mca btl tcp,self --mca btl_tcp_if_include eth2,eth3 \
        --report-links \
        "$program" "$@" >"$tap_dir/out" 2>"$tap_dir/err" </dev/null &
    job=$!
}

# Wait until so many more lines of output are there: what follows happens in mid-stream.
in_stream() {
    want=$(($(wc -l <"$tap_dir/out") + $1))
    for _ in $(seq 600); do
        [ "$(wc -l <"$tap_dir/out")" -ge "$want" ] && return 0
        kill -0 "$job" 2>/dev/null || return 1
        sleep 0.05
    done
    return 1
}

is_whole() { # HOW MANY "wrong 0" there must be
    wait "$job" && [ "$(grep -c ' wrong 0$' "$tap_dir/out")" = "$1" ] && return
    tail -3 "$tap_dir/out"
    tail "$tap_dir/err"
    return 1
}
column() { awk -v l="$1" -v c="$2" '$1 == "h1" && $3 == l { print $c }' "$tap_dir/err"; }

# ---- A stream ----

start stream --check --seconds 2
tap_ok "a stream over two links arrives whole" is_whole 1
tap_ok "both links carried a good part" \
    test "$(column tcp:eth2 4)" -gt 5000000 -a "$(column tcp:eth3 4)" -gt 5000000
tap_ok "the report says which links are used" grep -q 'another host: tcp:eth2 (50 %), tcp:eth3 (50 %)' "$tap_dir/err"

start stream --check --seconds 3
in_stream 5
lab rate h1 2 20mbit
tap_ok "a link that becomes slower" is_whole 1
lab rate h1 2 200mbit

# ---- Cuts ----

# random FROM TO: the next of the seed, in $drawn.
random() {
    LINKS_SEED=$(((LINKS_SEED * 1103515245 + 12345) & 0x7fffffff))
    drawn=$(($1 + LINKS_SEED / 65536 % ($2 - $1 + 1)))
}
ms() { date +%s%3N; }
nap() { sleep "$(awk -v ms="$1" 'BEGIN { print ms / 1000 }')"; }

# Milliseconds from $1 until the flow over link $2 is at least $3 MB/s for 150 ms; nothing if it is not yet.
flow_since() {
    awk -v since="$1" -v link="tcp:eth$2" -v least="$3" '
        $1 >= since && NF >= 3 {
            for (i = 3; i <= NF; i++) if (split($i, part, "=") == 2 && part[1] == link) bytes[n] = part[2]
            at[n] = $1
            for (; from < n && at[n] - at[from] >= 150; from++)
                if ((bytes[n] - bytes[from]) / (at[n] - at[from]) >= 1000 * least) { print at[from] - since; exit }
            n++
        }' n=0 from=0 "$tap_dir/out"
}

flows_within() { # MS, then as flow_since
    for _ in $(seq 400); do
        took=$(flow_since "$2" "$3" "$4")
        [ -n "$took" ] && break
        kill -0 "$job" 2>/dev/null || break
        sleep 0.05
    done
    echo "after ${took:-an endless} ms; $1 are allowed"
    [ "${took:-999999}" -le "$1" ]
}

cut_and_mend() { # NUMBER, KIND, MB/s that the other link must reach, and both
    random 2 3
    link=$drawn
    random 0 700
    nap "$drawn"
    at=$(ms)
    lab cut h1 "$link" "$2"
    at=$(((at + $(ms)) / 2))
    tap_ok "cut $1 ($2, link $link): the other link carries" flows_within "$limit" "$at" $((5 - link)) "$3"
    echo "# $(cat "$tap_dir/tap.out")"
    random 0 700
    nap "$drawn"
    lab mend h1 "$link"
    at=$(ms)
    tap_ok "mended: link $link has its share again" flows_within 20000 "$at" "$link" "$4"
}

# Six cuts are three under each kind of messages, so that a short run has both; a long one changes every six.
block=6
[ "$cuts" -gt 6 ] || block=3
n=0
while [ "$n" -lt "$cuts" ]; do
    rm -f "$tap_dir/until"
    if [ $((n / block % 2)) = 0 ]; then
        what="messages of all lengths" mode="" other=$((rate / 4)) share=$((rate / 4))
    else
        what="messages whose MPI_Send has returned" mode=--short other=2 share=1
    fi
    echo "# $what, seed $LINKS_SEED"
    start mix --until "$tap_dir/until" --seconds 1000 --seed "$LINKS_SEED" $mode
    in_stream 10
    for _ in $(seq $block); do
        [ "$n" -lt "$cuts" ] || break
        n=$((n + 1))
        cut_and_mend "$n" "$(echo ${LINKS_KINDS:-drop carrier down drop-in drop-out reset} | cut -d ' ' -f $(((n - 1) % 6 + 1)))" \
            "$other" "$share"
    done
    touch "$tap_dir/until"
    tap_ok "$what: none is lost, repeated, damaged or overtaken" is_whole 2
done
tap_end
