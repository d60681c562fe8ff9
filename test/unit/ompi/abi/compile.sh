#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# mpi.h compiles without a warning in every dialect of C and C++ that a program may be written in.
. "$top_srcdir/test/support/tap.sh"
tap_start 120
include="-I$top_builddir/ompi/include -I$top_srcdir/ompi/include"
warn="-Wall -Wextra -pedantic -Wshadow -Wundef -Werror -fsyntax-only"
cd "$tap_dir" || exit 99

cat >use.c <<'C'
#include <mpi.h>
#ifdef MPI_SUCCESS
int use(MPI_Status *status, int *value)
#endif
{
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Fint number = MPI_Comm_c2f(comm), words[MPI_F_STATUS_SIZE];
    MPI_Datatype types[2] = { MPI_INT, MPI_DOUBLE };
    if (MPI_Comm_f2c(number) != comm || types[0] == types[1] || MPI_Status_c2f(status, words) != 0)
        return MPI_ERR_OTHER;
    return MPI_Bcast(value, 1, types[0], 0, comm);
}
C
cp use.c use.cc

for compiler in "${CC:-cc}" gcc clang; do # CC may be several words
    command -v "${compiler%% *}" >/dev/null 2>&1 || { tap_skip "$compiler" "not installed"; continue; }
    for std in c89 gnu89 c99 c11 gnu17; do
        tap_ok "$compiler -std=$std" $compiler -std=$std $warn -Wstrict-prototypes $include use.c
    done
done
for compiler in ${CXX:-c++} g++ clang++; do
    command -v "$compiler" >/dev/null 2>&1 || { tap_skip "$compiler" "not installed"; continue; }
    for std in c++98 c++11 c++17 c++20; do
        tap_ok "$compiler -std=$std" "$compiler" -std=$std $warn $include use.cc
    done
done

# A routine that MPI-3.0 removed: the error names its successor, and only who calls it gets it.
cat >old.c <<'C'
#include <mpi.h>
int old(int *where, MPI_Aint *address)
{
    return MPI_Address(where, address);
}
C
told() { ! $1 $include -c old.c 2>said && { grep -q 'call MPI_Get_address' said || { cat said; false; }; }; }
for compiler in "${CC:-cc}" gcc clang; do
    if printf '#if !__has_attribute(__error__)\n#error\n#endif\n' | $compiler -x c -fsyntax-only - 2>/dev/null; then
        tap_ok "$compiler: a removed routine" told "$compiler"
    else
        tap_skip "$compiler: a removed routine" "not installed, or without that attribute"
    fi
done
tap_end
