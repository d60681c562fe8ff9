#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# mpirun: signals, and that nothing is left behind whoever dies.
. "$top_srcdir/test/system/lib.sh"

# A rank that tells it runs, has a child, a child of its own session, and a file in /dev/shm.
cat >rank <<'EOF'
#!/bin/sh
trap 'echo usr1 $PMIX_RANK' USR1
trap 'echo usr2 $PMIX_RANK' USR2
: >"/dev/shm/hawser.$PMIX_NAMESPACE.$HAWSER_JOB_MARK.$PMIX_RANK"
sleep 1000 &
setsid sh -c 'sleep 1000 & sleep 1000' &
echo $$ >up.$PMIX_RANK
while :; do sleep 0.05; done
EOF
chmod +x rank
all_up() { [ -s up.0 ] && [ -s up.1 ] && [ -s up.2 ]; }
up() {
    rm -f up.*
    start "$@" -n 3 ./rank
    wait_for all_up || echo "# the ranks did not start"
}
reaper() { cat "/proc/$pid/task/$pid/children" | tr ' ' '\n' | while read -r child; do
    [ "$(cat "/proc/$child/comm" 2>/dev/null)" = mpirun-reaper ] && echo "$child"; done; }
in_time() { # nothing must be left at once for a normal end, and soon after a kill -9
    wait_for nothing_left
}

for signal in TERM HUP; do
    up
    kill -$signal "$pid"
    finish
    number=15
    [ $signal = HUP ] && number=1
    is "SIG$signal ends the job" "$code $(grep -c "signal $number" err)" "$((128 + number)) 1"
    ok "nothing left after SIG$signal" nothing_left
done

# Signals in the middle of what takes long in a large job. The far host is this one.
printf '#!/bin/sh\nshift; exec sh -c "$*"\n' >agent
chmod +x agent
registering() { grep -q 'job 1: register' err; }
heard() { grep -q 'got signal 15' err; }
start --verbose --mca plm_rsh_agent "$work/agent" --host far:30000 -n 30000 true
wait_for registering
kill -TERM "$pid"
since=$(date +%s%N)
wait_for heard
took=$((($(date +%s%N) - since) / 1000000))
finish
is "SIGTERM while a large job is made known to PMIx" "$code $(grep -c 'job 1: launch' err)" "143 0"
# All of that takes 6 s; 200 ms are one call of libpmix (PMIx_generate_ppn).
limit=3000
is_busy && limit=30000
ok "is heard at once ($took ms)" test "$took" -lt $limit
start --verbose --bind-to none --oversubscribe -n 1000 sleep 1000
starting() { grep -q 'rank 0 .*: started' err; }
wait_for starting
kill -TERM "$pid"
finish
ok "SIGTERM while many processes are started: exit code $code" test "$code" = 143
ok "the rest is not started" test "$(grep -c ': started$' err)" -lt 1000
ok "nothing left of them" nothing_left

up
kill -USR1 "$pid"
kill -USR2 "$pid"
all_told() { [ "$(sort out | tr '\n' ,)" = "usr1 0,usr1 1,usr1 2,usr2 0,usr2 1,usr2 2," ]; }
ok "SIGUSR1 and SIGUSR2 reach the ranks" wait_for all_told
state() { sed 's/.*) //' "/proc/$1/stat" | cut -c1; }
stopped() { [ "$(state "$pid")" = T ] && [ "$(state "$(cat up.1)")" = T ]; }
running() { [ "$(state "$pid")" != T ] && [ "$(state "$(cat up.1)")" != T ]; }
kill -TSTP "$pid"
ok "SIGTSTP stops mpirun and ranks" wait_for stopped
kill -CONT "$pid"
ok "SIGCONT continues them" wait_for running
kill -TSTP "$pid"
wait_for stopped
kill -CONT "$pid"
kill -TERM "$pid"
finish
is "the job can then be ended" "$code" 143

# While a daemon is still to come: mpirun waits until that has been told, but does nothing else.
printf '#!/bin/sh\nexec sleep 1000\n' >slow
chmod +x slow
ticks() { sed 's/.*) //' "/proc/$pid/stat" | awk '{ print $12 + $13 }'; }
coming() { grep -q 'starting a daemon on far' err && grep -q 'signal 20' err; }
start --verbose --mca plm_rsh_agent "$work/slow" --host far -n 1 true
wait_for grep -q 'starting a daemon on far' err
kill -TSTP "$pid"
wait_for coming
before=$(ticks)
sleep 1
took=$(($(ticks) - before))
kill -CONT "$pid"
kill -TERM "$pid"
finish
ok "SIGTSTP while a daemon is started keeps no processor busy ($took of 100)" test "$took" -lt 20
is "and a signal ends that, too" "$code" 143

up
kill -9 "$pid"
finish
ok "nothing left after kill -9 of mpirun" in_time
up
kill -9 "$pid" "$(cat up.1)"
finish
ok "nothing left after kill -9 of mpirun and a rank" in_time
up
kill -9 "$(cat up.2)"
finish
is "kill -9 of a rank ends the job" "$code $(wc -l <err)" "137 1"
ok "nothing left after that" nothing_left
up
kill -9 "$(reaper)"
warned() { grep -q 'reaper process died' err; }
ok "the reaper's death is told" wait_for warned
kill -USR1 "$pid"
heard() { grep -q usr1 out; }
ok "the job goes on without it" wait_for heard
kill -TERM "$pid"
finish
is "and ends as always" "$code" 143
ok "nothing left after that, too" nothing_left
up
kill -9 "$(reaper)" "$pid"
finish
run -n 1 true
ok "kill -9 of both: the next mpirun cleans up" in_time
up
kill -STOP "$(cat up.0)"
kill -TERM "$pid"
finish
is "a stopped rank ends as well" "$code" 143
ok "nothing is left of it" nothing_left

# A rank has ended, and its number is somebody else's now.
cat >number <<'EOF'
#!/bin/sh
"$1" -n 1 sh -c 'echo $$ >first.new; mv first.new first' : -n 1 sh -c 'echo $$ >other; exec sleep 1000' 2>err &
pid=$!
until [ -s first ] && [ -s other ] && [ ! -d "/proc/$(cat first)" ]; do kill -0 $pid || exit; done
for _ in 1 2 3 4 5; do
    echo $(($(cat first) - 1)) >/proc/sys/kernel/ns_last_pid || exit
    setsid sh -c 'echo $$ >second.new; mv second.new second; exec sleep 1000' &
    until [ -s second ]; do :; done
    cmp -s first second && break
    rm second
done
cmp -s first second || exit
kill -USR1 $pid
wait $pid
echo "code $?"
kill -0 "$(cat second)" && echo alive
kill "$(cat second)"
EOF
rm -f first second other
if unshare --pid --fork --mount-proc sh -c 'echo $$ >/proc/sys/kernel/ns_last_pid' 2>/dev/null; then
    is "who has the number of a rank that has ended is left alone" \
        "$(timeout 30 unshare --pid --fork --mount-proc sh ./number "$mpirun" 2>&1 | tr '\n' ,)" "code 138,alive,"
else
    ok "who has the number of a rank that has ended # SKIP numbers can't be chosen here" true
fi

cat >stubborn <<'EOF'
#!/bin/sh
trap '' TERM
echo $$ >up.$PMIX_RANK
while :; do sleep 0.05; done
EOF
chmod +x stubborn
rm -f up.*
start --mca odls_base_kill_grace 200 -n 3 ./stubborn
wait_for all_up
kill -TERM "$pid"
finish
is "ranks that ignore SIGTERM are killed after the grace time" "$code" 143
rm -f up.*
start -n 3 ./stubborn
wait_for all_up
kill -TERM "$pid"
ending() { [ -s err ]; }
wait_for ending
before=$(date +%s%N)
kill -TERM "$pid"
finish
ok "a second signal kills at once" test $(($(date +%s%N) - before)) -lt 2500000000

start --timeout 0.5 -n 3 ./rank
finish
is "--timeout" "$code" 124
ok "nothing left after the time limit" nothing_left
start -n 2 sh -c 'setsid sleep 1000 & echo done'
finish
is "a job that leaves processes behind" "$code $(wc -l <out)" "0 2"
ok "they are ended with it" nothing_left
start -n 3 sh -c ': >/dev/shm/hawser.$PMIX_NAMESPACE.'"$mark"'; test $PMIX_RANK = 2 && exit 3; sleep 1000'
finish
is "a failing rank" "$code" 3
ok "leaves nothing either" nothing_left

long=$TMPDIR/$(printf 'x%.0s' $(seq 200))/$(printf 'y%.0s' $(seq 200))
mkdir -p "$long"
TMPDIR=$long run -n 2 "$client" exchange
is "a very long TMPDIR" "$code" 0
rm -rf "${TMPDIR:?}"/x*
TMPDIR=/nowhere run -n 1 true
is "a TMPDIR that is not there" "$code $(wc -l <err)" "1 1"
mkdir "$TMPDIR/hawser-$(id -u)-1-00000000"
touch "$TMPDIR/hawser-$(id -u)-1-00000000/lock"
up
"$top_builddir/orte/orte-clean" -v >clean
is "orte-clean removes dead sessions, not living ones" "$(tail -n 1 clean) $(ls "$TMPDIR" | wc -l)" \
    "0 removed 1"
kill -TERM "$pid"
finish
mkdir "$TMPDIR/hawser-$(id -u)-1-00000000"
touch "$TMPDIR/hawser-$(id -u)-1-00000000/lock"
"$top_builddir/orte/orte-clean" -v >clean
is "orte-clean" "$(tail -n 1 clean)" "1 removed"
# Ranks that sleep at once, as on a busy machine: they are woken when the last message is read. The best of five.
best=9999
for _ in 1 2 3 4 5; do
    run -n 2 --mca btl shm,self --mca opal_progress_spin_us 0 "$top_builddir/test/system/launch_probe" end
    [ "$(cat out)" -ge $best ] || best=$(cat out)
done
ok "MPI_Finalize waits for no timer ($best ms)" test "$best" -lt 150
ok "nothing left at all" nothing_left
done_testing
