# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# For shell tests that compare with MPICH, the other implementation of the ABI: mpich_prefix prints the
# folder of an unpacked MPICH (include/mpi_abi.h, lib/libmpi_abi.so.1), or fails with the reason on
# standard error. The folder is $MPICH_PREFIX, or one that pip fills once below the build tree.

. "$top_srcdir/test/support/wheel.sh"
mpich_version=5.0.2

mpich_prefix() {
    if [ -n "${MPICH_PREFIX:-}" ]; then
        [ -f "$MPICH_PREFIX/include/mpi_abi.h" ] && { echo "$MPICH_PREFIX"; return 0; }
        echo "no include/mpi_abi.h in MPICH_PREFIX=$MPICH_PREFIX" >&2
        return 1
    fi
    _dir=$top_builddir/test/mpich-$mpich_version
    wheel_fetch mpich $mpich_version "$_dir" include/mpi_abi.h && echo "$_dir"
}
