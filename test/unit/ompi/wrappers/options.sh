#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# mpicc and mpicxx: what they print, what they run, and that the program finds the library.
. "$top_srcdir/test/support/tap.sh"
tap_start 120
mpicc=$top_builddir/ompi/mpicc
mpicxx=$top_builddir/ompi/mpicxx
unset OMPI_CC OMPI_CXX MPICH_CC MPICH_CXX OMPI_CPPFLAGS OMPI_CFLAGS OMPI_LDFLAGS OMPI_LIBS HAWSER_PREFIX
cd "$tap_dir" || exit 99

cat >version.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(text, &length);
    puts(text);
    return length > 0 ? 0 : 1;
}
C
cp version.c version.cc

# says WANTED COMMAND...: the output has these words in it
says() { wanted=$1; shift; "$@" >out 2>&1; cat out; grep -qe "$wanted" out; }
lacks() { unwanted=$1; shift; "$@" >out 2>&1 && cat out && ! grep -qe "$unwanted" out; }
status() { wanted=$1; shift; "$@" >out 2>&1; got=$?; cat out; [ "$got" = "$wanted" ]; }
same() { "$1" "$2" >a && "$1" "$3" >b && diff a b && [ -s a ]; }

tap_ok "-E behind -Xlinker is the linker's" says '-lmpi_abi' $mpicc -show foo.c -Xlinker -E
tap_ok "-show is the whole command" says '-I.* foo.c .*-L.* -Wl,-rpath,.* -lmpi_abi' $mpicc -show foo.c
tap_ok "-show -c has no link flags" lacks 'mpi_abi' $mpicc -show -c foo.c
tap_ok "-show quotes for the shell" says "'a b.c'" $mpicc -show 'a b.c'
tap_ok "-showme is -show" same $mpicc -show -showme
tap_ok "--showme is -show" same $mpicc -show --showme
for item in compile link incdirs libdirs libs version command help; do
    tap_ok "-showme:$item is --showme:$item" same $mpicc -showme:$item --showme:$item
done
tap_ok "--showme:compile has flags only" says '^-I' $mpicc --showme:compile
tap_ok "--showme:link has flags only" says '^-L.*-lmpi_abi' $mpicc --showme:link
tap_ok "--showme:incdirs" says '^/.*include' $mpicc --showme:incdirs
tap_ok "--showme:libdirs" says '^/' $mpicc --showme:libdirs
tap_ok "--showme:libs" says '^mpi_abi$' $mpicc --showme:libs
tap_ok "--showme:version" says "Hawser $(cat "$top_srcdir/VERSION")" $mpicc --showme:version
tap_ok "--showme:nonsense fails" status 1 $mpicc --showme:nonsense
tap_ok "-compile-info" says '-I' $mpicc -compile-info
tap_ok "-link-info" says '-lmpi_abi' $mpicc -link-info
tap_ok "-compile_info is the same" test "$($mpicc -compile_info)" = "$($mpicc -compile-info)"
tap_ok "-link_info is the same" test "$($mpicc -link_info)" = "$($mpicc -link-info)"
tap_ok "no arguments: usage" status 1 $mpicc
tap_ok "--version is the compiler's" lacks 'mpi_abi\|Hawser' $mpicc --version
tap_ok "OMPI_CC is honoured" env OMPI_CC="echo ours" sh -c "$mpicc -c x.c | grep -q '^ours .*x.c'"
tap_ok "MPICH_CC is honoured" env MPICH_CC=echo sh -c "$mpicc -c x.c | grep -q 'x.c'"
tap_ok "OMPI_CXX is for mpicxx" env OMPI_CXX=echo OMPI_CC=false sh -c "$mpicxx -c x.cc | grep -q 'x.cc'"
tap_ok "a compiler that is not there" env OMPI_CC=no-such-compiler sh -c "
    $mpicc -c x.c 2>err; [ \$? = 127 ] && grep -q no-such-compiler err && grep -q OMPI_CC err"
tap_ok "the compiler's exit code" status 1 $mpicc -c not-there.c

tap_ok "a C program compiles and links" $mpicc -Wall -Werror version.c -o version
tap_ok "and runs" says Hawser ./version
tap_ok "in two steps" sh -c "$mpicc -c version.c -o v.o && $mpicc v.o -o v && ./v"
tap_ok "a C++ program compiles, links and runs" sh -c "$mpicxx -Wall -Werror version.cc -o vxx && ./vxx"
tap_ok "it has a RUNPATH, which LD_LIBRARY_PATH beats" sh -c "
    readelf -d version | grep -q RUNPATH && ! readelf -d version | grep -q '(RPATH)'"
tap_ok "it needs libmpi_abi.so.1 and no private library" sh -c "
    readelf -d version | grep -q 'NEEDED.*libmpi_abi.so.1' &&
    ! readelf -d version | grep -q 'NEEDED.*libhawser'"
tap_ok "a moved installation" env HAWSER_PREFIX=/moved sh -c "
    $mpicc --showme:compile | grep -q -e '-I/moved/' && $mpicc --showme:link | grep -q -e '-L/moved/'"
# full COMMAND...: with a full disk under its standard output it fails, and says so
full() { "$@" 2>err >/dev/full; [ $? = 1 ] && cat err && grep -q 'standard output: No space' err; }
for words in -show --showme:compile --showme:version --showme:help -link-info; do
    [ -w /dev/full ] || break
    tap_ok "a full disk: $words" full $mpicc $words
done
tap_end
