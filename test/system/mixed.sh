#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Two hosts of a lab that differ in byte order and long double: library, daemon and test programs built for s390x run under
# qemu-user on h2, this build on h1. A long test (test/soak): it builds everything for s390x, once, in MIXED_WORK. Each test of
# each program is a point of its own; combinations.sh tells how to choose among them.
TEST_SECONDS=${TEST_SECONDS:-28800}
. "$top_srcdir/test/system/lib.sh"
. "$top_srcdir/test/support/combinations.sh"
skip() { echo "1..0 # SKIP $*"; exit 0; }
for tool in qemu-s390x-static s390x-linux-gnu-gcc dpkg apt-get; do
    command -v $tool >/dev/null || skip "no $tool"
done
lab_script=$top_srcdir/test/lab/lab
reason=$("$lab_script" can 2>&1) || skip "$reason"
store=${MIXED_WORK:-$top_builddir/mixed}
mkdir -p "$store" && store=$(cd "$store" && pwd) || exit 99
root=$store/sysroot libs=$store/sysroot/usr/lib/s390x-linux-gnu foreign=$store/build
programs="p2p coll datatype nbc coll_requests neighbor intercomm comm topo partitioned"

# The libraries of s390x, unpacked in a folder: the machine's own packages stay as they are.
fetch() {
    mkdir -p "$store/state/lists/partial" "$store/cache/archives/partial" && : >"$store/status"
    cat >"$store/apt.conf" <<END
APT::Architecture "s390x";
APT::Architectures { "s390x"; };
Dir::State "$store/state";
Dir::State::status "$store/status";
Dir::Cache "$store/cache";
END
    APT_CONFIG=$store/apt.conf apt-get -q update && APT_CONFIG=$store/apt.conf apt-get -q install -y \
        --no-install-recommends --download-only libpmix-dev libc6-dev libevent-dev libhwloc-dev libltdl-dev || return 1
    mkdir -p "$root" && for package in "$store"/cache/archives/*.deb; do dpkg -x "$package" "$root" || return 1; done
}
build() {
    mkdir -p "$foreign" && cd "$foreign" || return 1
    # make may configure again: it needs them, too.
    export PKG_CONFIG_LIBDIR="$libs/pkgconfig:$root/usr/share/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root"
    [ -f Makefile ] || "$top_srcdir/configure" --host=s390x-linux-gnu CC="s390x-linux-gnu-gcc --sysroot=$root" CXX=no \
        LDFLAGS="-Wl,-rpath-link,$foreign/opal/.libs" --prefix="$store/inst" || return 1
    make -j"$(nproc)" && make install && make -C test $(for p in $programs; do echo mpi/$p; done)
}
if [ ! -f "$store/fetched" ]; then
    fetch >"$store/fetch.log" 2>&1 || skip "the libraries of s390x can't be fetched: $(tail -n 1 "$store/fetch.log")"
    : >"$store/fetched"
fi
if ! (build) >"$store/build.log" 2>&1; then
    tail -n 20 "$store/build.log" | sed 's/^/# /'
    echo "Bail out! no build for s390x; see $store/build.log"
    exit 99
fi

HAWSER_LAB=mixed-$$
export HAWSER_LAB
trap '"$lab_script" down; rm -rf "$work" "$TMPDIR"' EXIT
"$lab_script" up 2 --owner $$ >/dev/null || { echo "Bail out! no lab"; exit 99; }
# The scripts have names that are the same in each run, as they are part of the points.
bin=$store/bin
mkdir -p "$bin"
# The agent starts the daemon of h2 under qemu; its processes are started by `choose`, a script to the kernel.
cat >"$bin/agent" <<END
#!/bin/sh
case \$1 in h2) ;; *) exec "$lab_script" agent "\$@" ;; esac
shift
exec "$lab_script" agent h2 "\$(echo "\$*" | sed 's,[^ ]*/orted ,$bin/orted ,')"
END
cat >"$bin/orted" <<END
#!/bin/sh
exec qemu-s390x-static -L "$root" "$store/inst/bin/orted" "\$@"
END
cat >"$bin/choose" <<END
#!/bin/sh
case \$(uname -n) in h2*) ;; *) exec "\$@" ;; esac
program=\${1##*/}
shift
exec qemu-s390x-static -L "$root" "$foreign/test/mpi/.libs/\${program#lt-}" "\$@"
END
cat >"$bin/mpirun" <<END
#!/bin/sh
exec "$lab_script" exec h1 "$mpirun" "\$@"
END
chmod +x "$bin/agent" "$bin/orted" "$bin/choose" "$bin/mpirun"
OMPI_MCA_plm_rsh_agent=$bin/agent MPIRUN=$bin/mpirun
MPI_TEST_SLOWNESS=10 # of what qemu emulates: start, compile as it runs, wait for the other side
export OMPI_MCA_plm_rsh_agent MPIRUN MPI_TEST_SLOWNESS

at="--host h1:8,h2:8 --map-by node --mca btl tcp,self"
points() {
    echo "p2p:modes $at --mca pml dr $bin/choose"
    echo "p2p:storm $at --mca pml dr $bin/choose"
    for program in $programs; do
        "$top_builddir/test/mpi/$program" --list | while read -r test; do
            # The rest of datatype compares bytes with what this machine would have sent.
            case $program:$test in
            datatype:transpose | datatype:partial | datatype:user-operator*) ;;
            datatype:*) continue ;;
            esac
            echo "$program:$test $at $bin/choose"
        done
    done
}
combinations <<LIST
$(points)
LIST
