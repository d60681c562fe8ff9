#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# MPI over pml/dr and btl/udp where the network loses 1 % of all packets. Where the kernel cuts fragments before
# they are lost, it is single packets of a fragment that are missing, not whole ones: that is what CI runs.
#
#   UDP_LOSS_MILLE   packets lost of a thousand (10)
#   UDP_LOSS_LONG    any: with the network's offloads and with large packets, too, and the collective tests
. "$top_srcdir/test/support/tap.sh"
tap_start ${UDP_LOSS_LONG:+1}250
mille=${UDP_LOSS_MILLE:-10}
name=hawser-udp-$$

enter() { ip netns exec "$name" "$@"; }
up() { # MTU OFFLOADS
    ip netns add "$name" && ip -n "$name" link set lo mtu "$1" up || return 1
    [ "$2" = on ] || enter ethtool -K lo tx-udp-segmentation off gso off gro off || return 1
    enter nft -f - <<RULES
table inet loss {
    chain in {
        type filter hook input priority 0
        meta l4proto udp numgen random mod 1000 < $mille counter drop
    }
}
RULES
}
down() { ip netns del "$name" 2>/dev/null; }
[ "$(id -u)" = 0 ] || tap_skip_all "needs root for a network namespace"
up 1500 off >"$tap_dir/up" 2>&1 || {
    down
    tap_skip_all "no network that loses packets can be made here: $(head -1 "$tap_dir/up")"
}
down
trap 'down; rm -rf "$tap_dir"' EXIT

lost() { enter nft list chain inet loss in | sed -n 's/.*counter packets \([0-9]*\).*/\1/p'; }
run() { # PROGRAM [TEST]
    program=$1
    shift
    MPI_TEST_JUDGE=1 MPIRUN_ARGS="--mca pml dr --mca btl udp,self" enter "$top_builddir/test/mpi/$program" "$@" \
        </dev/null
}

through() { # MTU OFFLOADS PROGRAM...
    at="packets of $1 bytes, offloads $2"
    tap_ok "a network with $at" up "$1" "$2"
    shift 2
    for what; do
        tap_ok "$what, $at" run "$what"
    done
    tap_ok "packets were lost ($(lost))" test "$(lost)" -gt 10
    down
}
through 1500 off p2p ${UDP_LOSS_LONG:+coll}
if [ -n "${UDP_LOSS_LONG:-}" ]; then
    through 1500 on p2p coll
    through 65536 on p2p coll
fi
tap_end
