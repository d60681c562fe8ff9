#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Run by verbs.sh in the verbs lab: two hosts, h0 and h1, with a device each.
. "$top_srcdir/test/support/tap.sh"
TAP_LIMITED=1 # the lab ends it
tap_start 0

tap_ok "two devices, each with an active port" \
    test "$(cat /sys/class/infiniband/rxe[01]/ports/1/state | grep -c ACTIVE)" = 2
tap_ok "a host opens its own device alone" \
    test "$(on 1 sh -c 'cat /sys/class/infiniband_verbs/$(ls /dev/infiniband)/ibdev')" = rxe1
port 1 down
tap_ok "a port goes down with its cable" sh -c 'for n in $(seq 100); do
    grep -q DOWN /sys/class/infiniband/rxe1/ports/1/state && exit; sleep 0.1; done; exit 1'
port 1 up
tap_ok "and up again" sh -c 'for n in $(seq 100); do
    grep -q ACTIVE /sys/class/infiniband/rxe1/ports/1/state && exit; sleep 0.1; done; exit 1'
echo "a word on stderr" >&2
echo "1..$tap_count"
exit 7
