# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# For shell tests that compare with MPICH, the other implementation of the ABI: mpich_prefix prints the
# folder of an unpacked MPICH (include/mpi_abi.h, lib/libmpi_abi.so.1), or fails with the reason on
# standard error. The folder is $MPICH_PREFIX, or one that pip fills once below the build tree.

mpich_version=5.0.2

mpich_prefix() {
    if [ -n "${MPICH_PREFIX:-}" ]; then
        [ -f "$MPICH_PREFIX/include/mpi_abi.h" ] && { echo "$MPICH_PREFIX"; return 0; }
        echo "no include/mpi_abi.h in MPICH_PREFIX=$MPICH_PREFIX" >&2
        return 1
    fi
    _dir=$top_builddir/test/mpich-$mpich_version
    if [ ! -f "$_dir/include/mpi_abi.h" ]; then
        mpich_fetch "$_dir" || return 1
    fi
    echo "$_dir"
}

# The wheel is a zip file; everything below its data folder is what would be installed. Made aside
# and moved, so that tests running side by side see it whole or not at all.
mpich_fetch() {
    _tmp=$1.$$
    mkdir -p "$_tmp"
    if ! timeout 120 python3 -m pip --quiet download --no-deps --only-binary :all: \
            --dest "$_tmp" "mpich==$mpich_version" >"$_tmp/log" 2>&1; then
        rm -rf "$_tmp"
        echo "pip cannot download mpich==$mpich_version (no network, or no pip)" >&2
        return 1
    fi
    python3 -m zipfile -e "$_tmp"/*.whl "$_tmp" && mv "$_tmp"/mpich-*.data/data "$1" 2>/dev/null
    rm -rf "$_tmp"
    if [ ! -f "$1/include/mpi_abi.h" ]; then
        echo "no mpi_abi.h in the wheel of mpich==$mpich_version" >&2
        return 1
    fi
}
