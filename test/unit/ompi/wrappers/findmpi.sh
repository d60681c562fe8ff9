#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# CMake's FindMPI finds all it needs through the wrappers, and the programs it builds run.
. "$top_srcdir/test/support/tap.sh"
tap_start 180
command -v cmake >/dev/null 2>&1 || tap_skip_all "cmake is not installed"
unset OMPI_CC OMPI_CXX MPICH_CC MPICH_CXX OMPI_CPPFLAGS OMPI_CFLAGS OMPI_LDFLAGS OMPI_LIBS HAWSER_PREFIX
cd "$tap_dir" || exit 99

cat >CMakeLists.txt <<'C'
cmake_minimum_required(VERSION 3.18)
project(probe C CXX)
find_package(MPI REQUIRED COMPONENTS C CXX)
add_executable(probe_c probe.c)
target_link_libraries(probe_c MPI::MPI_C)
add_executable(probe_cxx probe.cc)
target_link_libraries(probe_cxx MPI::MPI_CXX)
message(STATUS "version ${MPI_C_VERSION} libraries ${MPI_C_LIBRARIES}")
C
cat >probe.c <<'C'
#include <mpi.h>
int main(void)
{
    int version, subversion;
    MPI_Get_version(&version, &subversion);
    return version == 5 && subversion == 0 ? 0 : 1;
}
C
cp probe.c probe.cc

tap_ok "CMake finds MPI" cmake -S . -B build -DMPI_C_COMPILER="$top_builddir/ompi/mpicc" \
    -DMPI_CXX_COMPILER="$top_builddir/ompi/mpicxx"
tap_ok "MPI 5.0 in libmpi_abi" sh -c "
    cmake -S . -B build | grep 'version 5.0 libraries .*libmpi_abi.so'"
tap_ok "the programs build" cmake --build build
tap_ok "the C program runs" build/probe_c
tap_ok "the C++ program runs" build/probe_cxx
tap_end
