#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Interfaces that are of no use, or of doubtful use, beside good ones: the job runs, messages arrive whole, and the
# link report says of each why it was not used.
. "$top_srcdir/test/support/tap.sh"
tap_start 120
. "$top_srcdir/test/system/links_lib.sh"
build mix test/system/links_mix.c
build pairs test/system/links_pairs.c
lab_up 2 2

job() {
    lab exec h1 "$mpirun" --host h1,h2 --map-by node -n 2 --mca btl tcp,self --report-links "$@" \
        "$tap_dir/mix" --seconds 2 >"$tap_dir/out" 2>"$tap_dir/err" </dev/null
}
is_whole() {
    [ "$(grep -c ' wrong 0$' "$tap_dir/out")" = 2 ] && return
    tail "$tap_dir/out" "$tap_dir/err"
    return 1
}
says() { grep -q "$1" "$tap_dir/err" || { cat "$tap_dir/err"; false; }; }

for kind in docker down unroutable stray twin; do
    lab extra all $kind
done
job
tap_ok "beside interfaces that lead nowhere everything arrives" is_whole
tap_ok "docker0: a bridge of its own" says 'not used:.*tcp:docker0: a bridge'
tap_ok "down" says 'not used:.*tcp:eth9: down'
tap_ok "an address without a way to it" says 'h1 to h2, tcp:ib0: '
tap_ok "a wire that leads nowhere" says 'h1 to h2, tcp:eth1x: '
# Which of the two the kernel answers for is its choice; what is not used has its reason.
tap_ok "two devices in one subnet: both used, or said why" \
    awk '($1 == "h1" && $3 == "tcp:eth1b" && $4 > 0) || /h1 to h2, tcp:eth1b: / { n++ } END { exit !n }' "$tap_dir/err"

# What two processes of a host have not used, others of it may have.
lab down
lab_up 2 2 --rate 200mbit,200mbit
lab exec h1 "$mpirun" --host h1:2,h2:2 -n 4 --mca btl tcp,shm,self --report-links "$tap_dir/pairs" >"$tap_dir/out" 2>"$tap_dir/err" </dev/null
tap_ok "both links have carried a message" \
    awk '$1 == "h1" && $2 == "h2" && $3 ~ /^tcp:eth[12]$/ && $4 > 1000000 { n++ } END { exit n != 2 }' "$tap_dir/err"
doubtful() { ! grep 'h1 to h2, tcp:eth[12]: ' "$tap_dir/err"; }
tap_ok "... and none is said to have carried nothing, as between two others of their hosts" doubtful
tap_ok "what stands by between processes of a host is said to" says 'h1 to h1, tcp:lo: in reserve; '

# A firewall on h2 that lets mpirun's daemon call home, and nothing in: h2 reaches h1 instead.
lab down
lab_up 2 2
lab firewall h2 none
job
tap_ok "a firewall before one host: everything arrives" is_whole
lab firewall h1 none
lab firewall h2 none
if job; then
    tap_ok "a firewall before both hosts" is_whole
else
    tap_ok "firewalls before both hosts: the end comes with a reason" says 'h[12]'
fi
tap_end
