#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# A program compiled for this library runs with MPICH's libmpi_abi.so.1, and one compiled with MPICH's
# header with ours. Each in a world of one: launchers are not exchanged.
. "$top_srcdir/test/support/tap.sh"
. "$top_srcdir/test/support/mpich.sh"
tap_start 240
mpich=$(mpich_prefix 2>"$tap_dir/why") || tap_skip_all "$(cat "$tap_dir/why")"
unset OMPI_CC MPICH_CC OMPI_CPPFLAGS OMPI_CFLAGS OMPI_LDFLAGS OMPI_LIBS HAWSER_PREFIX LD_LIBRARY_PATH
mpicc=$top_builddir/ompi/mpicc
program=$top_srcdir/test/unit/ompi/abi/exchange.c
cd "$tap_dir" || exit 99
mkdir theirs && cp "$mpich/include/mpi_abi.h" theirs/mpi.h
# MPICH's header leaves the Fortran conversions to others.
cat >>theirs/mpi.h <<'C'
#define MPI_Comm_c2f MPI_Comm_toint
#define MPI_Comm_f2c MPI_Comm_fromint
C

runs() { wanted=$1; shift; "$@" >out 2>&1; rc=$?; cat out; [ $rc = 0 ] && grep -q "$wanted" out; }

tap_ok "compiled with our mpicc" $mpicc -Wall -Wextra -Werror "$program" -o ours
tap_ok "runs with our library" runs Hawser ./ours
tap_ok "runs with MPICH's library" runs MPICH env LD_LIBRARY_PATH="$mpich/lib" ./ours
tap_ok "compiled with MPICH's header" ${CC:-cc} -Itheirs "$program" -o other \
    -L"$mpich/lib" -lmpi_abi -Wl,--unresolved-symbols=ignore-in-shared-libs
tap_ok "runs with MPICH's library" runs MPICH env LD_LIBRARY_PATH="$mpich/lib" ./other
tap_ok "runs with our library" runs Hawser env LD_LIBRARY_PATH="$top_builddir/ompi/.libs" ./other
tap_end
