#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# The lab of hosts does what it says: every fault is seen by plain sockets, and nothing outlives it.
. "$top_srcdir/test/support/tap.sh"
tap_start 240

lab_script=$top_srcdir/test/lab/lab
traffic=$top_srcdir/test/lab/traffic
HAWSER_LAB=lab-test-$$
export HAWSER_LAB
reason=$("$lab_script" can 2>&1) || tap_skip_all "$reason"
trap 'lab down; lab -n "$HAWSER_LAB-2" down; rm -rf "$tap_dir"' EXIT
mkfifo "$tap_dir/ready"

lab() { "$lab_script" "$@"; }
on() { lab exec "$@"; }

# listen HOST KIND ADDRESS PORT [options]: in the background, output in $tap_dir/sink; returns when it
# listens. $sink is its own pid, as everything on the way to it execs.
listen() {
    host=$1
    shift
    (exec "$lab_script" exec "$host" "$traffic" "$@" --ready "$tap_dir/ready") >"$tap_dir/sink" 2>&1 &
    sink=$!
    read -r _ <"$tap_dir/ready"
}

# stream SECONDS: from h1 to h2 over link 1; sets $bytes, $wrong, $end as the receiver saw it.
stream() {
    listen h2 sink 10.91.1.2 5000 --timeout 2
    on h1 "$traffic" source 10.91.1.2 5000 --seconds "$1" >"$tap_dir/source" 2>&1
    wait "$sink"
    read -r bytes seconds wrong end <"$tap_dir/sink"
}

# connection HOST ADDRESS [SECONDS]: how a connection from there to h2 goes, which listens. One that
# shall not come is given up soon.
connection() {
    listen h2 sink "$2" 5001
    on "$1" "$traffic" connect "$2" 5001 --timeout "${3:-0.4}"
    kill "$sink" 2>/dev/null
    wait "$sink" 2>/dev/null
}

# connects HOST ADDRESS: it comes; the seconds are those of a busy machine.
connects() { same "$(connection "$1" "$2" 5)" connected; }

between() { [ "$2" -ge "$1" ] && [ "$2" -le "$3" ] || { echo "$2 is not in $1..$3"; return 1; }; }
same() { [ "$1" = "$2" ] || { echo "got \"$1\", not \"$2\""; return 1; }; }
says() { grep -qF -- "$1" "$2" || { cat "$2"; return 1; }; }

# ---- Hosts ----
tap_ok "up" lab up 3 2
tap_ok "a second lab of the same name is refused" sh -c '! "$0" up 1' "$lab_script"
tap_ok "another one stands beside it" lab -n "$HAWSER_LAB-2" up 2 1
tap_ok "a host has its name" same "$(on h2 hostname)" h2
tap_ok "devices in /sys are the host's" same "$(on h3 ls -x /sys/class/net | xargs)" "eth1 eth2 lo"
on h1 sh -c 'echo 1 >/dev/shm/only-h1'
tap_ok "/dev/shm is the host's" on h2 test ! -e /dev/shm/only-h1
tap_ok "folders are shared" on h2 test -e "$tap_dir/ready"
tap_ok "exit codes pass" sh -c '"$0" exec h1 sh -c "exit 7"; test $? = 7' "$lab_script"
tap_ok "the folder is kept" same "$(cd "$tap_dir" && on h1 pwd)" "$tap_dir"
tap_ok "names lead to link 1" same "$(on h1 getent ahostsv4 h2 | awk 'NR == 1 { print $1 }')" 10.91.1.2
tap_ok "h2-2 is the second link" same "$(on h1 getent ahostsv4 h2-2 | awk 'NR == 1 { print $1 }')" 10.91.2.2
tap_ok "an unknown host is an error" sh -c '! "$0" exec h9 true 2>/dev/null' "$lab_script"

# ---- Links ----
tap_ok "hosts reach each other" connects h1 10.91.2.2
tap_ok "by IPv6" connects h1 fd91:0:0:2::2
tap_ok "but not the other lab's, or this machine's network" same \
    "$(on h1 "$traffic" connect 127.0.0.1 5001)" ECONNREFUSED

lab rate h1 1 100mbit
stream 1
tap_ok "rate: 100 Mbit/s pass ($bytes bytes)" between 8000000 "$bytes" 15500000
lab rate h1 1 20mbit in
stream 0.5
tap_ok "rate: one direction does not hold the other" between 4000000 "$bytes" 9500000
lab rate h1 1 max
stream 0.3
tap_ok "rate: max takes the limit away" test "$bytes" -gt 15000000

listen h2 count 10.91.1.2 5002 --timeout 3
lab loss h1 1 20
on h1 "$traffic" datagrams 10.91.1.2 5002 --count 1000
wait "$sink"
tap_ok "loss: of 1000 datagrams 20 % are lost" between 720 "$(cut -d' ' -f1 "$tap_dir/sink")" 880
lab loss h1 1 0

lab damage h1 1 50
stream 0.2
tap_ok "damage: wrong bytes arrive" test "$wrong" -gt 0
lab mend h1 1
stream 0.1
tap_ok "mend: no more" same "$wrong $end" "0 end"

# ---- Cuts ----
for how in carrier drop drop-in drop-out; do
    lab cut h1 1 $how
    tap_ok "cut $how: no connection" same "$(connection h1 10.91.1.2)" timeout
    tap_ok "cut $how: the other link works" connects h1 10.91.2.2
    tap_ok "cut $how: other hosts are not concerned" connects h3 10.91.1.2
    lab mend h1 1
    tap_ok "cut $how: mended" connects h1 10.91.1.2
done
lab cut h1 1 carrier
tap_ok "cut carrier: the device shows it" same "$(on h1 cat /sys/class/net/eth1/carrier)" 0
lab mend h1 1
lab cut h1 1 down
tap_ok "cut down: unreachable at once" same "$(connection h1 10.91.1.2)" ENETUNREACH
lab mend h1 1
tap_ok "cut down: mended, IPv6 too" connects h1 fd91:0:0:1::2

# A stream that is cut: silence, a reset, and a reset that a new connection survives.
cut_stream() { # COMMAND OF THE LAB...
    listen h2 sink 10.91.1.2 5000 --timeout 1
    on h1 "$traffic" source 10.91.1.2 5000 --seconds 4 --timeout 1 >"$tap_dir/source" 2>&1 &
    source=$!
    until on h2 ss -Htn state established 'sport = 5000' | grep -q 5000; do :; done
    lab "$@"
    wait "$sink" "$source"
    read -r bytes seconds wrong end <"$tap_dir/sink"
}
cut_stream cut h1 1 drop
tap_ok "cut drop: a stream stalls without a word" same "$end $(cut -d' ' -f2 "$tap_dir/source")" "timeout timeout"
lab mend h1 1
cut_stream cut h1 1 reset
tap_ok "cut reset: both ends hear of it" says ECONNRESET "$tap_dir/source"
tap_ok "cut reset: connections are refused" same "$(connection h1 10.91.1.2)" ECONNREFUSED
lab mend h1 1
cut_stream reset h1 1
tap_ok "reset: the other end hears of it" same "$end" ECONNRESET
tap_ok "reset: a new connection works" connects h1 10.91.1.2

# ---- Firewall and doubtful interfaces ----
lab firewall h2 5100-5110
tap_ok "firewall: silence outside the range" same "$(connection h1 10.91.1.2)" timeout
lab firewall h2 5000-5010 reject
tap_ok "firewall: inside the range" connects h1 10.91.1.2
lab firewall h2 none reject
tap_ok "firewall: or rejected" same "$(connection h1 10.91.1.2)" EHOSTUNREACH
lab firewall h2 off
tap_ok "firewall: off" connects h1 10.91.1.2

for kind in docker twin stray unroutable down; do
    tap_ok "extra $kind" lab extra all $kind
done
tap_ok "docker0's address is one's own" same "$(on h1 "$traffic" connect 172.17.0.1 5001)" ECONNREFUSED
tap_ok "the twin reaches" connects h1 10.91.1.102
tap_ok "nobody is behind an unroutable one" same "$(connection h1 192.0.2.2)" ENETUNREACH
tap_ok "eth9 is down" same "$(on h1 cat /sys/class/net/eth9/operstate)" down

# ---- The agent ----
agent() { lab agent "$@" >"$tap_dir/out" 2>"$tap_dir/err" </dev/null; echo $?; }
tap_ok "agent: words are joined, the exit code passes" same "$(agent -x -o Opt=1 root@h2 'hostname;' exit 3)" 3
tap_ok "agent: on the host" same "$(cat "$tap_dir/out")" h2
tap_ok "agent: addresses and aliases" same "$(agent 10.91.2.3 hostname; cat "$tap_dir/out"; agent h3-2 true)" "0
h3
0"
secret=7 agent h2 'echo ${secret:-bare} $PATH' >/dev/null
tap_ok "agent: a bare environment" says "bare /usr/local/bin:" "$tap_dir/out"
tap_ok "agent: from a host to the next" same \
    "$(lab agent h2 "HAWSER_LAB=$HAWSER_LAB '$lab_script' agent h3 hostname")" h3
for mode in "refused|Connection refused" "unknown|Could not resolve hostname h2" \
    "denied|Permission denied" "timeout|Connection timed out"; do
    lab agent-mode h2 "${mode%|*}" 0.2
    tap_ok "agent ${mode%|*}: fails" same "$(agent h2 true)" 255
    tap_ok "agent ${mode%|*}: says why" says "${mode#*|}" "$tap_dir/err"
done
lab agent-mode h2 noisy
tap_ok "agent noisy: prints" same "$(agent h2 echo answer; cat "$tap_dir/out")" "0
Welcome to h2
answer"
lab agent-mode h2 dies 0.5
tap_ok "agent dies: 255" same "$(agent h2 "echo started; exec sleep 60")" 255
tap_ok "agent dies: had started" says started "$tap_dir/out"
tap_ok "agent dies: the command goes on" sh -c '"$0" ps h2 | grep -q "sleep 60"' "$lab_script"
lab agent-mode h2 ok
tap_ok "agent ok" same "$(agent h2 true)" 0
tap_ok "agent: a host that is none" same "$(agent h7 true)" 255

if command -v ssh >/dev/null && [ -x /usr/sbin/sshd ]; then
    ssh=$(lab sshd)
    tap_ok "sshd: a command on another host" same "$(on h1 "$ssh" h3 'hostname; exit 4' 2>&1; echo $?)" "h3
4"
    on h1 "$ssh" h2 'echo to you; cat' <"$lab_script" >"$tap_dir/out" 2>"$tap_dir/err"
    tap_ok "sshd: its input and output" test "$(sed 1d "$tap_dir/out" | cksum)" = "$(cksum <"$lab_script")"
    lab cut h1 1 drop
    on h1 "$ssh" -o ConnectTimeout=1 h2 true 2>"$tap_dir/err"
    tap_ok "sshd: it goes over the links" says "timed out" "$tap_dir/err"
    lab mend h1 1
else
    tap_skip "sshd" "needs openssh-server and openssh-client"
fi

# ---- The end ----
lab crash h2
tap_ok "crash: nothing runs there" same "$(lab ps h2 | wc -l)" 1
tap_ok "crash: silence" same "$(on h1 "$traffic" connect 10.91.1.2 5001 --timeout 0.3)" timeout
tap_ok "check finds the lab" sh -c '! "$0" check' "$lab_script"
setsid "$lab_script" exec h1 sleep 61 &
until lab ps h1 | grep -q "sleep 61"; do :; done
kill -9 $(lab ps h1 | awk '/hawser-lab/ { print $2 }')
tap_ok "down after kill -9 of a host's keeper" lab down
tap_ok "nothing is left of it" lab check
tap_ok "down again is no error" lab down
tap_ok "the other lab is not concerned" same "$(lab -n "$HAWSER_LAB-2" exec h1 hostname)" h1
lab -n "$HAWSER_LAB-2" down

# Killed at various points of its way up.
left=0
for delay in 0.01 0.03 0.06 0.1 0.15 0.25; do
    setsid "$lab_script" up 8 2 >/dev/null 2>&1 &
    up=$!
    sleep $delay
    kill -9 -$up 2>/dev/null
    wait $up 2>/dev/null
    lab down
    lab check || left=$((left + 1))
done
tap_ok "down after kill -9 of up" test $left = 0
sleep 100 &
owner=$!
tap_ok "up --owner" lab up 1 1 --owner $owner
kill $owner
gone() { for _ in $(seq 100); do lab check >/dev/null && return; sleep 0.1; done; return 1; }
tap_ok "the lab goes with its owner" gone
sleep 100 &
owner=$!
lab up 1 1 --owner $owner >/dev/null
lab down
guards() { grep -lszxF "hawser-lab $HAWSER_LAB guard" /proc/[0-9]*/cmdline; }
unwatched() { for _ in $(seq 50); do guards || return 0; sleep 0.1; done; return 1; }
tap_ok "nobody waits for the owner of a lab that is down" unwatched
kill $owner

# Others take theirs away meanwhile, and with the last one the folder of all labs.
root=$tap_dir/labs
sh -c 'while mkdir -p "$0"; rmdir "$0"; [ -e "$1" ]; do :; done' "$root" "$tap_dir" 2>/dev/null &
others=$!
up_and_down() {
    for _ in $(seq 8); do
        HAWSER_LAB_ROOT=$root lab up 1 1
        up=$?
        HAWSER_LAB_ROOT=$root lab down && [ $up = 0 ] || return 1
    done
}
tap_ok "up while others go" up_and_down
kill $others
wait $others
tap_end
