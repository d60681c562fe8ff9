#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# hawser-btl-conform: what it is asked wrongly it says, and tests nothing.
. "$top_srcdir/test/support/tap.sh"
tap_start 120
kit=$top_builddir/ompi/hawser-btl-conform
udp=$top_builddir/ompi/mca/btl/udp/.libs/mca_btl_udp.so
cd "$tap_dir" || exit 99
[ -f "$udp" ] || tap_skip_all "btl/udp is not built as a loadable object"
${CC:-cc} -std=gnu11 -fPIC -shared -fvisibility=hidden -I"$top_srcdir/ompi/include" -I"$top_srcdir/opal/include" \
    -o mca_btl_loop.so "$top_srcdir/examples/btl_loop/btl_loop.c" || exit 99

# fails STATUS WANTED ARGUMENTS...: ends with this status, says this, and no test has run
fails() {
    status=$1 wanted=$2; shift 2
    "$kit" "$@" >out 2>&1; got=$?
    cat out; echo "status $got"
    [ "$got" = "$status" ] && grep -qE -e "$wanted" out && ! grep -q '^ok' out
}
passes() { "$kit" "$@" && "$kit" "$@" | grep -q '^ok 1'; }

tap_ok "a test" passes --test contract --param btl_udp_if_include=lo "$udp"
tap_ok "a parameter that there is not" fails 1 'there is no parameter btl_udp_if_inclde$' --test contract --param btl_udp_if_inclde=lo "$udp"
tap_ok "the same of one process" fails 1 'there is no parameter 1:btl_udp_if_inclde$' --test contract --param 1:btl_udp_if_inclde=lo "$udp"
tap_ok "one of another plug-in" fails 1 'there is no parameter btl_tcp_links$' --test contract --param btl_tcp_links=2 "$udp"
tap_ok "one for another process" passes --test contract --param btl_udp_if_include=lo --param 1:btl_udp_gso=0 "$udp"
tap_ok "a parameter without a value" fails 2 "no '=' in it" --test contract --param btl_udp_gso "$udp"
for value in yes On TRUE 1 no off False 0; do
    tap_ok "a switch is $value" passes --test contract --param btl_udp_if_include=lo --param btl_udp_gso=$value "$udp"
done
tap_ok "a switch that is neither" fails 1 'btl_udp_gso=perhaps does not parse' --test contract --param btl_udp_gso=perhaps "$udp"
for option in "--seed x" "--seed -1" "--seed 1x" "--processes 1" "--processes 1000" "--processes two" "--timeout 0" "--timeout s"; do
    # shellcheck disable=SC2086
    tap_ok "$option" fails 2 "${option}: expected a whole number from" --test contract $option "$udp"
done
tap_ok "a test is left out for a reason" fails 2 "no '=' in it" --skip contract "$udp"
tap_ok "a test that there is not" fails 2 'no test of that name' --test contrakt --param btl_udp_if_include=lo "$udp"
tap_ok "no plug-in" fails 2 '^usage' --test contract
tap_ok "a file that there is not" fails 1 'No such file' ./mca_btl_none.so
tap_ok "a link that threads can't use says so" fails 1 "loop.so can't be used: the link does not work among threads" --threads ./mca_btl_loop.so
for words in --list --help "--test contract --param btl_udp_if_include=lo $udp"; do
    [ -w /dev/full ] || break
    # shellcheck disable=SC2086
    "$kit" $words >/dev/full 2>err; code=$?
    tap_ok "a full disk: ${words%% *}" sh -c "cat err; [ $code = 1 ] && grep -q 'standard output: No space' err"
done
tap_end
