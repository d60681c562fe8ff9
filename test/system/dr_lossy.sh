#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# pml/dr over UDP between two hosts whose network really loses packets: a random mix of messages arrives whole and in
# order; so it does when one of two links is cut, whatever it had, and when that is mended.
#
#   DR_SECONDS   of each mix (3)          DR_LOSS   per cent that the network loses (1)
#   DR_SEED      of the messages (printed; random)
. "$top_srcdir/test/support/tap.sh"
seconds=${DR_SECONDS:-3}
loss=${DR_LOSS:-1}
tap_start $((120 + seconds * 8))
seed=${DR_SEED:-$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')}

lab_script=$top_srcdir/test/lab/lab
HAWSER_LAB=dr-$$
OMPI_MCA_plm_rsh_agent="$lab_script agent"
OMPI_MCA_rmaps_base_binding_policy=none # see links_lib.sh
OMPI_MCA_pml=dr
TMPDIR=$tap_dir
export HAWSER_LAB OMPI_MCA_plm_rsh_agent OMPI_MCA_rmaps_base_binding_policy OMPI_MCA_pml TMPDIR
lab() { "$lab_script" "$@"; }
reason=$(lab can 2>&1) || tap_skip_all "$reason"
trap 'lab down; rm -rf "$tap_dir"' EXIT

root=$(cd "$top_builddir" && pwd)
${CC:-cc} -O2 -I"$top_builddir/ompi/include" -I"$top_srcdir/ompi/include" -o "$tap_dir/mix" \
    "$top_srcdir/test/system/links_mix.c" -L"$top_builddir/ompi/.libs" -lmpi_abi -Wl,-rpath,"$root/ompi/.libs" \
    -Wl,-rpath,"$root/opal/.libs" >"$tap_dir/cc" 2>&1 ||
    tap_skip_all "the program can't be built here: $(head -1 "$tap_dir/cc")"
lab up 2 3 --owner $$ >/dev/null || tap_skip_all "no lab"
echo "# seed $seed"

start() { # BTLs INTERFACES SECONDS
    lab exec h1 "$root/orte/mpirun" --host h1,h2 --map-by node -n 2 --mca btl "$1" --mca net_include "$2" \
        --report-links "$tap_dir/mix" --seconds "$3" --seed "$seed" >"$tap_dir/out" 2>"$tap_dir/err" </dev/null &
    job=$!
}
is_whole() {
    wait "$job" && [ "$(grep -c ' wrong 0$' "$tap_dir/out")" = 2 ] && return
    tail -3 "$tap_dir/out"
    tail "$tap_dir/err"
    return 1
}
retries() { awk '$1 == "h1" && $3 ~ /^udp/ { print "# " $0 }' "$tap_dir/err"; }

for link in 2 3; do
    lab loss h1 $link "$loss" && lab loss h2 $link "$loss"
done
start udp,self lo,eth1,eth2 "$seconds"
tap_ok "udp, $loss % of the packets lost" is_whole
retries
start udp,self lo,eth1,eth2,eth3 "$seconds"
tap_ok "udp over two links, $loss % of the packets lost" is_whole
start udp,tcp,self lo,eth1,eth2,eth3 "$seconds"
tap_ok "udp and tcp, $loss % of the packets lost" is_whole
start udp,self lo,eth1,eth2,eth3 $((seconds + 4))
sleep 2 # in mid-stream, not to wait for anything
lab cut h1 3 drop
sleep 2
lab mend h1 3
tap_ok "one of two links is cut, and mended" is_whole
retries
tap_end
