#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Every routine that mpi.h declares has a twin of the profiling interface, and a program that takes the address of each of
# them links; but for those that are declared only to say what to call instead.
. "$top_srcdir/test/support/tap.sh"
tap_start 120
header=$top_builddir/ompi/include/mpi.h
cd "$tap_dir" || exit 99

sed '/^\/\* Removed by/,/HAWSER_MPI_REMOVED$/d' "$header" | grep -oE '\bP?MPI_(T_)?[A-Z]?[a-z0-9][A-Za-z0-9_]*\(' | tr -d '(' | sort -u >names
sed -n 's/^PMPI/MPI/p' names | sort >profiled
grep '^MPI' names | sort >plain
{
    printf '#include <stdio.h>\n#include <mpi.h>\ntypedef void (*any_t)(void);\n'
    echo 'static const any_t all[] = {'
    sed 's/.*/    (any_t) &,/' names
    printf '};\nint main(void)\n{\n    int count = 0;\n'
    echo '    for (size_t i = 0; i < sizeof all / sizeof *all; i++) { count += all[i] != NULL; }'
    printf '    printf("%%d\\n", count);\n    return 0;\n}\n'
} >all.c

enough() { [ "$(wc -l <names)" -gt 1300 ] || { wc -l names; false; }; }
twins() { diff plain profiled; }
links() {
    "$top_builddir/libtool" --silent --mode=link --tag=CC ${CC:-cc} -std=c11 -Wall -Wno-cast-function-type \
        -Wno-deprecated-declarations -I"$top_builddir/ompi/include" -I"$top_srcdir/ompi/include" all.c \
        "$top_builddir/ompi/libmpi_abi.la" -o all &&
        [ "$(./all)" = "$(wc -l <names)" ]
}
tap_ok "mpi.h declares them all" enough
tap_ok "each has its twin" twins
tap_ok "a program that uses each links" links
tap_end
