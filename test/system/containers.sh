#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Ranks of one host that live in containers: they share memory where that works, and only there. A
# container is here what unshare makes of it: pids of its own, a /dev/shm of its own, or both.
. "$top_srcdir/test/support/tap.sh"
tap_start 180

mpirun=${MPIRUN:-$top_builddir/orte/mpirun}
probe=$top_builddir/test/system/launch_probe
cd "$tap_dir" || exit 99
contain() { unshare --mount --propagation private --pid --fork --kill-child "$@"; }
contain sh -c 'mount -t proc proc /proc && mount -t tmpfs none /dev/shm' 2>why ||
    tap_skip_all "no pid and mount namespaces: $(head -1 why)"

# Every rank in a container of its own. All have the same pid there, and buffers at the same address, so
# that a rank which takes the peer's pid for one of its own container reads its own memory.
fixed=$(setarch -R true 2>/dev/null && echo setarch -R)
export fixed
cat >pids <<'END'
#!/bin/sh
exec unshare --mount --propagation private --pid --fork --kill-child sh -c 'mount -t proc proc /proc && exec $fixed "$@"' sh "$@"
END
cat >shm <<'END'
#!/bin/sh
exec unshare --mount --propagation private sh -c 'mount -t tmpfs none /dev/shm && exec "$@"' sh "$@"
END
cat >both <<'END'
#!/bin/sh
exec "${0%both}pids" "${0%both}shm" "$@"
END
chmod +x pids shm both

# job BTLS CONTAINER PROGRAM...: 3 ranks; output in out and err, code in $code.
job() {
    btls=$1
    shift
    timeout -k 5 60 "$mpirun" -n 3 --mca btl "$btls" "$@" >out 2>err </dev/null
    code=$?
}
is() { tap_ok "$1" test "$2" = "$3" || :; [ "$2" = "$3" ] || { echo "# got: $2"; sed 's/^/# /' err; }; }
says() { grep -qF -- "$1" "$2" || { cat "$2"; return 1; }; }
works() { # DESCRIPTION BTLS CONTAINER [mpirun's options]
    description=$1
    btls=$2
    container=$3
    shift 3
    job "$btls" "$@" "$tap_dir/$container" "$probe" ring
    is "$description" "$code $(cat out)" "0 3 ranks: all well"
}
fails() {
    job "$2" ${4:-} ${5:-} ${6:-} "$tap_dir/$3" "$probe" ring
    tap_ok "$1" test $code != 0 -a $code != 124
    tap_ok "$1: says so" says "can't be reached" err
}

works "own /dev/shm: shared memory through /proc" shm,self shm
works "own /dev/shm, files in it: other links" shm,tcp,self shm --mca btl_shm_backing file
fails "own /dev/shm, files in it: no shared memory" shm,self shm --mca btl_shm_backing file
works "own pids: other links" shm,tcp,self pids
fails "own pids: no shared memory through /proc" shm,self pids
works "own pids, files in /dev/shm: shared memory, and nobody else's is read" shm,self pids \
    --mca btl_shm_backing file --mca btl_shm_single_copy always
works "own pids and /dev/shm: other links" shm,tcp,self both

# Nothing but this machine: no network, no name service, no ssh.
with_mpirun=$mpirun
mpirun=$tap_dir/lonely
cat >lonely <<END
#!/bin/sh
exec unshare --mount --propagation private --net sh -c 'mount -t tmpfs none /etc/ssh 2>/dev/null
    mount --bind /dev/null /etc/resolv.conf 2>/dev/null; \$up; exec "\$@"' sh "$with_mpirun" "\$@"
END
chmod +x lonely
up='ip link set lo up' && export up
job shm,tcp,self "$probe" ring
is "no network but the loopback interface" "$code $(cat out)" "0 3 ranks: all well"
job tcp,self "$probe" ring
is "... by sockets" "$code $(cat out)" "0 3 ranks: all well"
up=: && export up
job shm,tcp,self "$probe" ring
tap_ok "not even that: an error that says what to do" says "ip link set lo up" err
tap_end
