#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# The whole conformance kit over RDMA devices, in the verbs lab: openib, ud, and rc_verbs and ud_verbs of UCX; each for processes of one
# thread and of several. Process 1 is at the other end of the wire. verbs.sh has the rules that say most.
#
#   VERBS_KIT_LINKS  of openib, ud, rc_verbs, ud_verbs
#   VERBS_KIT_WAYS   of single, threads
. "$top_srcdir/test/support/tap.sh"
tap_start 14400
lab=$top_srcdir/test/lab/verbs
reason=$("$lab" can 2>&1) || tap_skip_all "$reason"
top_builddir=$(cd "$top_builddir" && pwd)
UCX_UD_VERBS_ETH_DGID_CHECK=n UCX_RC_VERBS_RETRY_COUNT=6 UCX_UD_VERBS_TIMEOUT=10s # docs/links.md
export UCX_UD_VERBS_ETH_DGID_CHECK UCX_RC_VERBS_RETRY_COUNT UCX_UD_VERBS_TIMEOUT

kit() { # COMPONENT OPTIONS...
    component=$1
    shift
    "$lab" --hosts 2 --timeout 3000 -- "$top_builddir/ompi/hawser-btl-conform" --timeout 600 "$@" \
        "$top_builddir/ompi/mca/btl/$component/.libs/mca_btl_$component.so" >"$tap_dir/log" 2>&1 </dev/null
}
over() { # LINK OPTIONS...
    link=$1
    shift
    case $link in
    openib | ud)
        kit "$link" "$@" --param "btl_${link}_if_include=rxe0" --param "1:btl_${link}_if_include=rxe1" \
            --param "btl_${link}_peer_timeout=10000"
        ;;
    *) kit uct "$@" --param "btl_uct_transports=$link/rxe0:1" --param "1:btl_uct_transports=$link/rxe1:1" ;;
    esac
}
has_passed() {
    tail -1 "$tap_dir/log" | grep -q '^1\.\.[1-9]' && ! grep -A20 '^not ok' "$tap_dir/log" && return
    tail -20 "$tap_dir/log"
    return 1
}
for link in ${VERBS_KIT_LINKS:-openib ud rc_verbs ud_verbs}; do
    for way in ${VERBS_KIT_WAYS:-single threads}; do
        if [ "$way" = threads ]; then over "$link" --threads; else over "$link"; fi
        tap_ok "$(grep '^ok' "$tap_dir/log" | grep -vc '# SKIP') rules of the kit, $way, over $link" has_passed
    done
done
tap_end
