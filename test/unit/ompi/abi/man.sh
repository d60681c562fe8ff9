#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Every MPI routine that the library exports or mpi.h defines has a manual page that is well-formed.
. "$top_srcdir/test/support/tap.sh"
tap_start 120
pages=$top_builddir/ompi/mpi/man
[ -d "$pages" ] || pages=$top_srcdir/ompi/mpi/man
{
    nm -D --defined-only "$top_builddir/ompi/.libs/libmpi_abi.so" | awk '$3 ~ /^MPI_/ { print $3 }'
    sed -n 's/^static inline .*\(MPI_[A-Za-z0-9_]*\)(.*/\1/p' "$top_builddir/ompi/include/mpi.h"
} | sort -u >"$tap_dir/names"
while read -r name; do [ -s "$pages/$name.3" ] || echo "$name"; done <"$tap_dir/names" >"$tap_dir/missing"
tap_ok "the library has routines" test "$(wc -l <"$tap_dir/names")" -gt 600
tap_ok "a page for each of them" diff /dev/null "$tap_dir/missing"
for text in 'MPI_Gatherv, MPI_Gatherv_c' 'recvcounts' 'MPI_ERR_ROOT' 'MPI_Igatherv(3)' 'MPI_Gatherv_init(3)'; do
    tap_ok "MPI_Gatherv(3) has $text" grep -qF "$text" "$pages/MPI_Gatherv.3"
done
if man --version >/dev/null 2>&1; then
    for page in "$pages"/*.3; do
        head -n 1 "$page" | grep -q '^\.so' || echo "$page"
    done | awk 'NR % 20 == 1' | while read -r page; do man --warnings -l "$page" 2>&1 >/dev/null; done >"$tap_dir/warnings"
    tap_ok "man has nothing to say against one in twenty" diff /dev/null "$tap_dir/warnings"
else
    tap_skip "man has nothing to say against one in twenty" "no man"
fi
tap_end
