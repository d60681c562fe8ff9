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

kit() { # COMPONENT TEST PARAMETERS...: its conformance; process 1 is at the other end of the wire
    component=$1 name=$2
    shift 2
    "$top_builddir/ompi/hawser-btl-conform" --param "btl_${component}_if_include=rxe0" --param "1:btl_${component}_if_include=rxe1" \
        --param "btl_${component}_peer_timeout=10000" "$@" --test "$name" \
        "$top_builddir/ompi/mca/btl/$component/.libs/mca_btl_$component.so"
}
kit_uct() { # TRANSPORT TEST OPTIONS...
    transport=$1 name=$2
    shift 2
    "$top_builddir/ompi/hawser-btl-conform" --param "btl_uct_transports=$transport/rxe0:1" \
        --param "1:btl_uct_transports=$transport/rxe1:1" "$@" --test "$name" \
        "$top_builddir/ompi/mca/btl/uct/.libs/mca_btl_uct.so"
}
probe() { # ARGUMENTS OF MPIRUN...: over one host; what it says in $tap_dir/said
    "$top_builddir/orte/mpirun" -n 2 --mca pml dr --report-links "$@" "$top_builddir/test/system/launch_probe" ring \
        >"$tap_dir/said" 2>&1 </dev/null
}
variables= # performance variables that rank 0 is to tell
# PML LINKS ARGUMENTS OF MPIRUN...: messages up to 1 MiB between two hosts. Each host takes the processors for its own: bound, both
# processes would have the same one.
ring() {
    pml=$1 links=$2
    shift 2
    on 0 "$top_builddir/orte/mpirun" -n 2 --host h0,h1 --map-by node --bind-to none --mca plm_rsh_agent agent --mca pml "$pml" \
        --mca btl "$links" "$@" "$top_builddir/test/system/launch_probe" ring $variables >"$tap_dir/said" 2>&1 </dev/null
    says '^2 ranks: all well'
}
in_partition() { # PML LINK KEY: ring, with a service level and a traffic class, too
    ring "$1" "$2,self" --mca "btl_$2_pkey" "$3" --mca "btl_$2_service_level" 3 --mca "btl_$2_traffic_class" 0x68
}
moved() { # LINK: bytes that rank 0 has handed to it so far
    sed -n "s/.* $1=\\([0-9]*\\).*/\\1/p" "$tap_dir/said" | tail -1
}
grows() { # LINK: something more is handed to it
    before=$(moved "$1")
    for n in $(seq 600); do
        [ "$(moved "$1")" -gt "${before:-0}" ] 2>/dev/null && return
        kill -0 $job 2>/dev/null || break
        sleep 0.1
    done
    echo "$1 carries nothing"
    return 1
}
becomes() { # STATE: of the port of rxe1
    until grep -q "$1" /sys/class/infiniband/rxe1/ports/1/state; do sleep 0.1; done
}
# PML: messages over openib and tcp (links_mix counts on its short ones being sent at once), while the port of one side goes down and comes back.
comes_back() {
    rm -f "$tap_dir/end"
    on 0 "$top_builddir/orte/mpirun" -n 2 --host h0,h1 --map-by node --bind-to none --mca plm_rsh_agent agent --mca pml "$1" \
        --mca btl openib,tcp,self --mca btl_openib_max_frag 64k --mca pml_base_stripe all \
        "$top_builddir/test/system/links_mix" --interval 200 --seconds 200 --until "$tap_dir/end" \
        >"$tap_dir/said" 2>&1 </dev/null &
    job=$!
    grows openib:rxe0 && grows tcp:net0 && port 1 down && becomes DOWN && grows tcp:net0 && grows tcp:net0 &&
        port 1 up && becomes ACTIVE && grows openib:rxe0 && grows openib:rxe0
    code=$?
    port 1 up
    touch "$tap_dir/end"
    wait $job && [ $code = 0 ] && [ "$(grep -c 'rank [01]: .*wrong 0$' "$tap_dir/said")" = 2 ] && return
    tail -5 "$tap_dir/said"
    return 1
}
frames() { sw cat /sys/class/net/sw1/statistics/tx_packets; }
says() { grep -q "$1" "$tap_dir/said" || { cat "$tap_dir/said"; false; }; }

if [ -f "$top_builddir/ompi/mca/btl/openib/.libs/mca_btl_openib.so" ]; then
    for name in contract sizes descriptors keep putget pressure sleep again leak recall fail get_fail death; do
        tap_ok "btl/openib keeps the contract: $name" kit openib $name
    done
    # A request that Soft-RoCE sends again, as on a busy machine, is answered anew, even when the first answer has been taken
    # and the memory is not registered any more: then the connection fails. So nothing is to be sent again here.
    tap_ok "btl/openib keeps the contract: remap" kit openib remap --param btl_openib_timeout=20
    for name in mixed pressure sleep fail; do
        tap_ok "with fragments written straight into memory, too: $name" kit openib $name \
            --param btl_openib_eager_rdma=always --param btl_openib_eager_rdma_after=2
    done
    for name in again fail; do
        if grep -q '^#define HAWSER_HAVE_RDMACM' "$top_builddir/opal/include/hawser_config.h"; then
            tap_ok "with connections by rdma_cm, too: $name" kit openib $name --param btl_openib_connect=rdmacm
        else
            tap_skip "with connections by rdma_cm, too: $name" "built without librdmacm"
        fi
    done
    before=$(frames)
    variables="btl_openib_registration_misses btl_openib_registration_bytes"
    tap_ok "teg over openib on two hosts" ring teg openib,self
    tap_ok "it does not have an adapter read that is a program" says '^btl_openib_registration_misses 0$'
    tap_ok "it crossed the switch" test $(($(frames) - before)) -gt 100
    tap_ok "teg over openib, reads trusted" ring teg openib,self --mca btl_openib_trust_reads always
    tap_ok "and tools can read how much memory was registered for it" says '^btl_openib_registration_misses [1-9]'
    tap_ok "dr over openib on two hosts" ring dr openib,self
    tap_ok "it checks, and so has it read" says '^btl_openib_registration_misses [1-9]'
    variables=
    tap_ok "teg over openib in a named partition, with a class of traffic" in_partition teg openib 0xffff
    unlike_frags() { # the second process has receive buffers of its own length
        on 0 timeout -k 5 60 "$top_builddir/orte/mpirun" --host h0,h1 --map-by node --bind-to none --mca plm_rsh_agent agent \
            --mca btl openib,self -n 1 "$top_builddir/test/system/launch_probe" ring : -n 1 -x OMPI_MCA_btl_openib_max_frag=32k \
            "$top_builddir/test/system/launch_probe" ring >"$tap_dir/said" 2>&1 </dev/null
        code=$?
        [ $code != 0 ] && [ $code != 124 ] && says 'another length (btl_openib_max_frag)'
    }
    tap_ok "fragments of two lengths are refused" unlike_frags
    loss 2
    tap_ok "teg over openib, 2 % of the frames lost" ring teg openib,self
    tap_ok "and dr over openib" ring dr openib,self
    loss 0
    for pml in teg dr; do
        tap_ok "$pml over openib and tcp: a port goes down and comes back, nothing is lost" comes_back $pml
    done
fi
if [ -f "$top_builddir/ompi/mca/btl/ud/.libs/mca_btl_ud.so" ]; then
    for name in contract sizes mixed descriptors keep group sleep sleep_sender leak fail death; do
        tap_ok "btl/ud keeps the contract: $name" kit ud $name
    done
    before=$(frames)
    tap_ok "dr over ud on two hosts" ring dr ud,self
    tap_ok "it crossed the switch" test $(($(frames) - before)) -gt 100
    tap_ok "dr over ud in a named partition, with a class of traffic" in_partition dr ud 0x7fff
    no_partition() {
        in_partition dr ud 0x8003
        code=$?
        [ $code != 0 ] && says 'The byte transfer layer "ud" was asked for by name'
    }
    tap_ok "where no port is in it, MPI says so and does not start" no_partition
    loss 2
    tap_ok "dr over ud, 2 % of the frames lost" ring dr ud,self
    loss 0
    tap_ok "dr over ud and tcp together" ring dr ud,tcp,self --mca pml_base_stripe all
    probe --mca btl ud,self --mca btl_ud_if_exclude rxe1
    tap_ok "the link report says why a port is not used" says 'ud:rxe1: in if_exclude'
    port 1 down
    becomes DOWN
    probe --mca btl ud,self
    tap_ok "and that it is down" says 'ud:rxe1: its port is down'
    OMPI_MCA_btl=ud,self "$top_builddir/ompi/ompi_info" --links >"$tap_dir/said" 2>&1
    tap_ok "and so does ompi_info" says '^ *Not used: ud:rxe1: its port is down$'
    tap_ok "and it says which is used" says '^ *Link: ud:rxe0 ('
    port 1 up
fi
if [ -f "$top_builddir/ompi/mca/btl/uct/.libs/mca_btl_uct.so" ]; then
    export UCX_UD_VERBS_ETH_DGID_CHECK=n UCX_RC_VERBS_RETRY_COUNT=6 # docs/links.md
    export UCX_UD_VERBS_TIMEOUT=10s                                 # of a peer that acknowledges nothing; else 30 s
    for transport in rc_verbs ud_verbs; do
        for name in sleep_sender fail; do
            tap_ok "btl/uct over $transport keeps the contract: $name" kit_uct $transport $name
        done
        tap_ok "btl/uct over $transport: the death of a peer to which nothing is sent" \
            kit_uct $transport death --keepalive --param btl_uct_keepalive=1000
        before=$(frames)
        tap_ok "teg over $transport of UCX on two hosts" ring teg uct,self --mca btl_uct_transports $transport
        tap_ok "it crossed the switch" test $(($(frames) - before)) -gt 100
    done
    for name in putget remap get_fail; do
        tap_ok "btl/uct over rc_verbs keeps the contract: $name" kit_uct rc_verbs $name
    done
    variables=btl_uct_gets
    tap_ok "teg over rc_verbs of UCX" ring teg uct,self --mca btl_uct_transports rc_verbs
    tap_ok "it does not have an adapter read that is a program" says '^btl_uct_gets 0$'
    tap_ok "teg over rc_verbs of UCX, reads trusted" ring teg uct,self --mca btl_uct_transports rc_verbs --mca btl_uct_trust_reads always
    tap_ok "it has" says '^btl_uct_gets [1-9]'
    tap_ok "dr over rc_verbs of UCX" ring dr uct,self --mca btl_uct_transports rc_verbs
    tap_ok "it checks, and so has it read" says '^btl_uct_gets [1-9]'
    variables=
    tap_ok "btl/uct over rc_verbs: the death of one to which much is under way" kit_uct rc_verbs death
    tap_ok "dr over rc_verbs of UCX and ud" ring dr uct,ud,self --mca btl_uct_transports rc_verbs --mca pml_base_stripe all
fi

echo "a word on stderr" >&2
echo "1..$tap_count"
exit 7
