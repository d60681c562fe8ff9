#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# configure refuses what can't be built, with a sentence, before it writes a Makefile.
. "$top_srcdir/test/support/tap.sh"
tap_start 300
top=$(cd "$top_srcdir" && pwd) || exit 99
[ ! -e "$top/config.status" ] || tap_skip_all "the source is itself configured, so that nothing else can be"
unset CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CONFIG_SITE
mkdir "$tap_dir/build" "$tap_dir/a blank" && cd "$tap_dir/build" || exit 99

# refuses WANTED OPTION...: fails, and the error is this
refuses() {
    wanted=$1; shift
    "$top/configure" --cache-file="$tap_dir/cache" "$@" >out 2>&1 && { cat out; return 1; }
    tail -n 5 out
    grep -q "^configure: error: $wanted" out && [ ! -e Makefile ]
}

tap_ok "a blank in the prefix" refuses ".*a blank in the path .*: \"/tmp/a b\"" --prefix="/tmp/a b"
tap_ok "a blank in the folder of the build" sh -c '
    cd "$1" && ! "$2/configure" >out 2>&1 && grep "error: .*a blank in the path" out' - "$tap_dir/a blank" "$top"
tap_ok "--program-prefix" refuses "--program-prefix, " --program-prefix=hw-
tap_ok "--disable-shared" refuses "--disable-shared: " --disable-shared
tap_ok "sanitizers that there are not" refuses "--enable-sanitizers=adress: " --enable-sanitizers=adress
tap_ok "--with-ucx takes no folder" refuses "--with-ucx=/opt: " --with-ucx=/opt
tap_ok "libraries that are insisted on and not there" env PKG_CONFIG_LIBDIR=/nowhere PKG_CONFIG_PATH= sh -c '
    ! "$1/configure" --with-ucx --with-verbs >out 2>&1 && grep "^ *UCX (Debian package" out &&
    grep "^ *libibverbs (Debian package" out' - "$top"
tap_ok "a component that there is not, not to be built" \
    refuses '--enable-mca-no-build: there is no "btl-nonsense"' --enable-mca-no-build=btl-udp,btl-nonsense
tap_ok "a component that there is not, to be static" \
    refuses '--enable-mca-static: there is no "nonsense"' --enable-mca-static=pml,btl-self,nonsense
tap_end
