#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# mpirun: standard input, output and error.
. "$top_srcdir/test/system/lib.sh"

sum() { cksum <"$1" | tr -d '\n'; }

# Standard input, byte exact
head -c 67108864 /dev/urandom >in
want=$(sum in)
run -n 2 cat <in
is "64 MiB from a file to rank 0 and back" "$(sum out)" "$want"
cat in | timeout 30 "$mpirun" -n 2 cat >out 2>err
is "64 MiB from a pipe" "$(sum out)" "$want"
run --stdin all -n 3 sh -c 'echo "$(cksum)"' <in
is "to all ranks" "$(sort -u out) $(wc -l <out)" "$want 3"
run --stdin 1 -n 3 sh -c 'echo "$PMIX_RANK $(wc -c)"' <in
is "to rank 1 only" "$(sort out | tr '\n' ,)" "0 0,1 67108864,2 0,"
run --stdin none -n 2 sh -c 'echo "$PMIX_RANK $(wc -c)"' <in
is "to none" "$(sort out | tr '\n' ,)" "0 0,1 0,"
run --stdin all -n 2 sh -c 'if [ $PMIX_RANK = 1 ]; then sleep 0.3; fi; wc -c' <in
is "a slow reader" "$(sort -u out)" 67108864
yes | timeout 20 "$mpirun" -n 2 head -n 1 >out 2>err
is "a rank that reads one line of endless input" "$?" 0
run -n 2 cat </dev/null
is "empty input" "$code$(cat out)" 0
run -n 2 true <&-
is "closed input" "$code" 0
mkfifo fifo
(sleep 0.2; echo late) >fifo &
run -n 1 cat <fifo
is "input that comes late" "$(cat out)" late

# Output
run -n 4 sh -c 'head -c 3000000 /dev/zero; echo problem >&2'
is "all output arrives" "$(wc -c <out) $(wc -l <err)" "12000000 4"
timeout 20 "$mpirun" -n 2 yes 2>err | head -n 3 >out
is "output without a reader ends the job, quietly" "$(wc -l <out)$(cat err)" 3
slow() { timeout 30 "$mpirun" -n 2 head -c 5000000 /dev/zero | (sleep 0.5; wc -c); }
is "a slow reader gets all" "$(slow)" 10000000
run --tag-output -n 3 sh -c 'i=0; while [ $i -lt 2000 ]; do printf line; printf " $i of $PMIX_RANK"; echo; i=$((i+1)); done'
is "tagged lines stay whole" "$(grep -c '^\[1,\([0-2]\)\]<stdout>: line [0-9]* of \1$' out) $(wc -l <out)" "6000 6000"
run --tag-output -n 1 sh -c 'printf "no end"; printf err >&2'
is "a last line without its end gets one" "$(cat out err)" "[1,0]<stdout>: no end
[1,0]<stderr>: err"
run -prepend-rank -n 1 echo x
is "-prepend-rank" "$(cat out)" "[0] x"
run --timestamp-output -n 1 echo x
ok "--timestamp-output" grep -Eq '^20[0-9-]*T[0-9:]*\.[0-9]{6} x$' out
run --merge-stderr-to-stdout -n 1 sh -c 'echo a; echo b >&2; echo c'
is "--merge-stderr-to-stdout keeps the order" "$(tr '\n' , <out)$(cat err)" "a,b,c,"
run --output-filename logs/deep -n 11 sh -c 'echo out $PMIX_RANK; echo err $PMIX_RANK >&2'
is "--output-filename, and a copy to us" "$(wc -l <out) $(cat logs/deep/1/rank.07/stdout logs/deep/1/rank.10/stderr | tr '\n' ,)" "11 out 7,err 10,"
run --output-filename only:nocopy -n 2 echo hi
is "--output-filename DIR:nocopy" "$(cat only/1/rank.1/stdout)$(cat out)" hi
run --output tag,dir=both -n 1 echo hi
is "--output tag,dir=DIR" "$(cat out)$(cat both/1/rank.0/stdout)" "[1,0]<stdout>: hi[1,0]<stdout>: hi"
run -outfile-pattern "o/%r.%h" -errfile-pattern "$work/o/e%r" -n 2 sh -c 'echo out $PMIX_RANK; echo err >&2'
is "-outfile-pattern, -errfile-pattern" \
    "$code $(cat out err "o/0.$(hostname)" "o/1.$(hostname)" o/e0 o/e1 | tr '\n' ,)" "0 out 0,out 1,err,err,"
run -outfile-pattern o/both.%r -errfile-pattern o/both.%r -n 1 sh -c 'echo 1; echo 2 >&2; echo 3'
is "one file for both streams has all of them" "$code $(sort o/both.0 | tr -d '\n')" "0 123"
run -q -x NO_SUCH_VARIABLE true
quiet="$code $(wc -l <err)"
run -x NO_SUCH_VARIABLE true
is "-q silences what -x warns of" "$quiet $(grep -c NO_SUCH_VARIABLE err)" "0 0 1"
run --output-filename plain/x -n 1 true
touch file
run --output-filename file/x -n 1 true
is "a file where a directory should be" "$code $(wc -l <err)" "1 1"
run -n 3 sh -c 'printf "\036\037hawser-help\037topic\037hawser: once\n\036" >&2'
is "users' messages are shown once" "$(grep -c '^hawser: once$' err) $(grep -c '2 more processes' err)" "1 1"
# say TEXT: a message of a process for the user, of one topic.
cat >say <<'END'
printf '\036\037hawser-help\037topic\037hawser: h rank %d: %s\n\036' $PMIX_RANK "$*" >&2
END
run -n 3 sh -c 'sh ./say "rank $PMIX_RANK of 3 fails"'
is "numbers apart" "$(grep -c 'fails$' err) $(grep -c '2 more .* said what is said above about topic, some with other numbers$' err)" "1 1"
run -n 4 sh -c '[ $PMIX_RANK = 2 ] && exec sh ./say "no such directory"; sh ./say "fails"'
is "another one of the same topic is shown, too" \
    "$(grep -c 'rank 2: no such directory$' err) $(grep -c ' fails$' err) $(grep -c '2 more .* about topic$' err)" "1 1 1"
run -n 12 sh -c 'sh ./say "host $(echo $PMIX_RANK | tr 0-9 a-j) is missed"'
is "but not of each process" "$(grep -c 'is missed$' err) $(grep -c 'something else about topic$' err)" "8 1"
run -n 1 true >&-
is "closed output" "$code" 0
if [ -w /dev/full ]; then
    timeout 20 "$mpirun" -n 1 echo hi >/dev/full 2>err
    is "a full disk is told, and is a failure" "$? $(grep -c 'standard output, output is lost' err)" "1 1"
    timeout 20 "$mpirun" -n 2 yes >/dev/full 2>err
    is "the same failure where the process has more to say" "$? $(grep -c 'standard output, output is lost' err) $(wc -l <err)" "1 1 1"
fi
( ulimit -f 16; timeout 20 "$mpirun" -n 2 yes >beyond 2>err )
is "a limit on the size of files is told, too" "$? $(grep -c 'standard output, output is lost.*File too large' err) $(wc -l <err) $(wc -c <beyond)" "1 1 1 8192"
( ulimit -f 16; timeout 20 "$mpirun" -n 1 sh -c 'exec yes >beyond' 2>err )
is "and ends processes as it does anywhere" "$? $(grep -c 'rank 0 .* killed by signal 25' err)" "153 1"
# Standard error that nobody reads: no room is made of it by who reads standard output.
mkfifo unread read
exec 9<>unread
"$mpirun" -x HAWSER_JOB_MARK="$mark" -n 4 sh -c 'yes >&2 & exec yes' >read 2>unread 9>&- &
pid=$!
for _ in $(seq 400); do dd of=/dev/null bs=1M count=1 iflag=fullblock 2>/dev/null; done <read
peak=$(awk '/^VmHWM/ { print $2 }' "/proc/$pid/status")
ok "what is not read takes no memory without bound ($peak kB)" test "${peak:-999999}" -lt 65536
exec 9>&-
kill -TERM "$pid"
finish
rm -f up.0
exec 9<>unread
"$mpirun" -x HAWSER_JOB_MARK="$mark" -n 1 sh -c 'echo $$ >up.0; exec yes >&2' 2>unread 9>&- &
pid=$!
is_stuck() { [ -s up.0 ] && grep -q pipe "/proc/$(cat up.0)/wchan"; }
rank_gone() { [ ! -d "/proc/$(cat up.0)" ]; }
wait_for is_stuck
kill -TERM "$pid"
ok "nor keeps it a signal from ending the job" wait_for rank_gone
kill -TERM "$pid"
ended() { ! kill -0 "$pid" 2>/dev/null; }
wait_for ended || kill -9 "$pid"
finish
is "and mpirun" "$code" 143
exec 9>&-
if command -v script >/dev/null 2>&1; then
    on_terminal() { timeout 20 script -qec "$mpirun $*" /dev/null </dev/null | tr -d '\r'; }
    is "on a terminal, standard output is one" "$(on_terminal "-n 2 sh -c 'test -t 1 && echo tty'")" "tty
tty"
    is "its bytes are not changed" "$(on_terminal "-n 1 printf 'a\\tb\\n'" | od -c | head -n 1)" \
        "$(printf 'a\tb\n' | od -c | head -n 1)"
    is "unless that is not wanted" "$(on_terminal "--mca iof_base_terminal 0 -n 1 sh -c 'test -t 1 || echo pipe'")" pipe
    is "nor where ours is none" "$(timeout 20 "$mpirun" -n 1 sh -c 'test -t 1 || echo pipe')" pipe
fi
# In a shell whose fg sends no SIGCONT to a job that runs: each line is typed when its mark has been seen.
typed() {
    python3 - "$mpirun" <<'END'
import os, pty, select, sys, time
pid, terminal = pty.fork()
if pid == 0:
    os.execvp("bash", ["bash", "--norc", "--noediting", "-i"])
seen, end = b"", time.time() + 25
def type_when(mark, line):
    global seen
    while mark not in seen and time.time() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            seen += os.read(terminal, 4096)
    seen = b""
    os.write(terminal, line + b"\n")
quiet = b"stty -echo; PS1=; echo rea'dy'"
type_when(b"", quiet)
type_when(b"ready", sys.argv[1].encode() + b" -n 1 sh -c 'sleep 0.5; echo runs; exec sed -u s,^,got-,' &")
type_when(b"runs", b"fg")
type_when(b"sh -c", b"first")
type_when(b"got-first", b"second")
type_when(b"got-second", b"\x04")
print("heard" if time.time() < end else "not heard")
os.kill(pid, 9)
END
}
if command -v python3 >/dev/null 2>&1 && command -v bash >/dev/null 2>&1; then
    is "a job that fg puts in the foreground reads what is typed" "$(typed)" heard
fi
ok "nothing left" nothing_left
done_testing
