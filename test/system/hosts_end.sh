#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# mpirun over several hosts: whoever dies, at a random moment, within ten seconds nothing is left on any host, the
# exit code is right and one message says what died where. HAWSER_TEST_SOAK=N: so many deaths in place of a few
# (test/soak); HAWSER_TEST_SEED chooses them.
TEST_SECONDS=$((600 + 60 * ${HAWSER_TEST_SOAK:-0}))
. "$top_srcdir/test/system/hosts_lib.sh"
lab_up 4
victims=h1:2,h2:2,h3:2,h4:2
seed=${HAWSER_TEST_SEED:-$(date +%s)}
echo "# HAWSER_TEST_SEED=$seed"
draw() { seed=$(((seed * 1103515245 + 12345) & 0x7fffffff)); drawn=$((seed / 65536 % $1)); }

# A rank with a child, one of a session of its own, a file in /dev/shm, and output all the time.
cat >rank <<'END'
#!/bin/sh
: >"/dev/shm/hawser.$PMIX_NAMESPACE.$PMIX_RANK"
sleep 1000 &
setsid sh -c 'sleep 1000 & sleep 1000' &
: >up.$PMIX_RANK
while :; do echo "$PMIX_RANK is here"; sleep 0.05; done
END
# One that sends MPI messages all the time.
cat >talker <<END
#!/bin/sh
: >"/dev/shm/hawser.\$PMIX_NAMESPACE.\$PMIX_RANK"
sleep 1000 &
exec "$top_builddir/test/system/launch_probe" talk
END
chmod +x rank talker
job=./rank
lonely='' # the host whose agent ends while its daemon goes on
agent_gone() { ! lab ps h1 | grep -q "lab agent $lonely"; }
all_up() { for i in 0 1 2 3 4 5 6 7; do [ -e up.$i ] || return 1; done; }
up() { # a job that runs for a random while
    rm -f up.*
    since=$(date +%s%N)
    start --timeout 60 "$@" --host $victims $job
    wait_for all_up || echo "# the ranks did not start"
    [ -z "$lonely" ] || wait_for agent_gone
    draw 500
    sleep "0.$(printf %03d "$drawn")"
    since=$(date +%s%N)
}
verdict() { # DESCRIPTION CODE TEXT
    finish
    is "$1" "$code $(wc -l <err) $(grep -c "$3" err)" "$2 1 1"
    ok "nothing left" gone_in_time
}
daemon_on() { # HOST: its pid, not that of its reaper
    lab ps "$1" | awk '/orted --orders/ { print $2 }' | while read -r candidate; do
        grep -q reaper "/proc/$candidate/comm" || echo "$candidate"
    done
}

kill_rank() { # HOST
    up
    kill -9 "$(lab ps "$1" | awk '$3 == "/bin/sh" && $4 ~ /\/rank$/ || $4 == "talk" { print $2; exit }')"
    verdict "kill -9 of a rank on $1" 137 "rank [0-9] .*on $1) was killed by signal 9"
}
kill_daemon() {
    up
    kill -9 "$(daemon_on "$1")"
    verdict "kill -9 of the daemon on $1" 125 "the daemon on host $1 is lost"
}
kill_mpirun() {
    up
    kill -9 "$pid"
    finish
    ok "nothing left after kill -9 of mpirun" gone_in_time
}
cut_host() {
    up
    lab cut "$1" 1 drop
    verdict "$1 is cut off" 125 "the daemon on host $1 is lost"
    lab mend "$1" 1
}
crash_host() {
    up
    lab crash "$1" >/dev/null
    finish
    is "power failure of $1" "$code $(grep -c ^mpirun: err) $(grep -c "the daemon on host $1 is lost" err)" "125 1 1"
    lab mend "$1" 1
    # There nobody was left who could remove files.
    lab exec "$1" "$top_builddir/orte/orte-clean"
    ok "nothing left" gone_in_time
}
end_mpirun() {
    up
    kill -TERM "$pid"
    verdict "SIGTERM" 143 "got signal 15"
}
# As with a real ssh, whose end does not end what it started: daemons notice by themselves.
apart() { # HOW HOST
    lab agent-mode "$2" dies 5
    lonely=$2
    "$1" "$2"
    lonely=''
    lab agent-mode "$2" ok
}
random_host() { draw 3; host=h$((drawn + 2)); }

if [ -n "${HAWSER_TEST_SOAK:-}" ]; then
    for i in $(seq "$HAWSER_TEST_SOAK"); do
        draw 2
        [ "$drawn" = 0 ] && job=./rank || job=./talker
        random_host
        draw 6
        case $drawn in
        0) kill_rank "$host" ;;
        1) kill_daemon "$host" ;;
        2) kill_mpirun ;;
        3) cut_host "$host" ;;
        4) crash_host "$host" ;;
        5) apart cut_host "$host" ;;
        esac
    done
else
    end_mpirun
    kill_rank h1
    random_host
    kill_rank "$host"
    random_host
    kill_daemon "$host"
    apart kill_daemon h3
    kill_mpirun
    job=./talker
    random_host
    kill_rank "$host"
    random_host
    apart cut_host "$host"
    job=./rank
fi

# One that says nothing any more, on a host that lives.
up --verbose
kill -STOP "$(daemon_on h2)"
stopped=$(daemon_on h2)
signals() { [ "$(grep -c '\] signal 15$' err)" = "$1" ]; }
over_here() { [ -z "$(lab ps h1 | awk '$3 == "/bin/sh"')" ]; }
for time in 1 2 3; do
    kill -TERM "$pid"
    wait_for signals $time
    [ $time = 1 ] || wait_for over_here
done
mpirun_gone() { ! kill -0 "$pid" 2>/dev/null; }
wait_for mpirun_gone || kill -9 "$pid"
finish
is "a daemon that is stopped is not waited for when asked for the third time" \
    "$code $(grep -c 'host h2 does not say that the processes there have ended' err)" "143 1"
since=$(date +%s%N)
kill -CONT "$stopped" 2>/dev/null
ok "when it goes on, nothing is left" gone_in_time

up
kill -USR1 "$pid"
finish
is "SIGUSR1 reaches the ranks" "$code" 138
ok "nothing left" gone_in_time
up --mca oob_radix 1
kill -9 "$(daemon_on h2)"
verdict "a daemon between mpirun and others" 125 "the daemon on host h2 is lost"
done_testing
