#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Compares mpi.h and the library with MPICH's mpi_abi.h: every constant, type and prototype, and the
# exported symbols.
. "$top_srcdir/test/support/tap.sh"
. "$top_srcdir/test/support/mpich.sh"
tap_start 240

prefix=$(mpich_prefix 2>"$tap_dir/why") || tap_skip_all "$(cat "$tap_dir/why")"
oracle=$prefix/include/mpi_abi.h
library=$top_builddir/ompi/.libs/libmpi_abi.so
compile="${CC:-cc} -std=gnu11 -Wall -Wextra -Werror -I$top_builddir/ompi/include -I$top_srcdir/ompi/include"
cd "$tap_dir" || exit 99

# The names in the oracle. Constants are in capitals; MPI_SOURCE and so on are members of a status.
grep -oE '\bMPI_[A-Z][A-Z0-9_]+\b' "$oracle" | sort -u |
    grep -vxE 'MPI_(SOURCE|TAG|ERROR|H_ABI|T_)' >constants
grep -oE '\bP?MPI_[A-Za-z_0-9]+\(' "$oracle" | tr -d '(' | sort -u | grep -E 'MPI_([A-Z]|T_)[a-z0-9]' >functions
sed -nE '/^(int|double|MPI_[A-Za-z]+) P?MPI_[A-Za-z_0-9]+\(.*\);/{s|/\*.*||;p;}' "$oracle" >prototypes
sed -nE '/^typedef [^{]*;/{/MPIX/d;/^typedef MPI_ABI_/d;s|/\*.*||;p;}' "$oracle" >typedefs

# Prints name, value and type of every constant, then sizes and offsets.
probe() {
    cat <<'C'
#define TYPE(x) _Generic((x), int: "int", MPI_Offset: "MPI_Offset", void *: "void*", \
    char **: "char**", char ***: "char***", int *: "int*", MPI_Status *: "MPI_Status*", \
    MPI_Comm: "MPI_Comm", MPI_Group: "MPI_Group", MPI_Datatype: "MPI_Datatype", MPI_Op: "MPI_Op", \
    MPI_Request: "MPI_Request", MPI_Message: "MPI_Message", MPI_Info: "MPI_Info", \
    MPI_Errhandler: "MPI_Errhandler", MPI_Win: "MPI_Win", MPI_File: "MPI_File", \
    MPI_Session: "MPI_Session", MPI_T_enum: "MPI_T_enum", \
    MPI_T_cvar_handle: "MPI_T_cvar_handle", MPI_T_pvar_handle: "MPI_T_pvar_handle", \
    MPI_T_pvar_session: "MPI_T_pvar_session", MPI_Comm_copy_attr_function *: "comm copy", \
    MPI_Comm_delete_attr_function *: "comm delete", MPI_Type_copy_attr_function *: "type copy", \
    MPI_Type_delete_attr_function *: "type delete", MPI_Win_copy_attr_function *: "win copy", \
    MPI_Win_delete_attr_function *: "win delete", \
    MPI_Datarep_conversion_function *: "conversion", \
    MPI_Datarep_conversion_function_c *: "large conversion")
#define SHOW(x) printf("%s %lld %s\n", #x, (long long) (intptr_t) (x), TYPE(x));
#define SIZE(t) printf("%s %zu %zu\n", #t, sizeof(t), _Alignof(t));
#define MEMBER(m) printf("%s %zu %zu\n", #m, offsetof(MPI_Status, m), sizeof(((MPI_Status *) 0)->m));
int main(void)
{
    SIZE(MPI_Aint) SIZE(MPI_Offset) SIZE(MPI_Count) SIZE(MPI_Status) SIZE(MPI_Comm)
    SIZE(MPI_T_cb_safety) SIZE(MPI_T_source_order)
    MEMBER(MPI_SOURCE) MEMBER(MPI_TAG) MEMBER(MPI_ERROR) MEMBER(MPI_internal)
    printf("signs %d %d %d\n", (MPI_Aint) -1 < 0, (MPI_Offset) -1 < 0, (MPI_Count) -1 < 0);
C
    sed 's/.*/    SHOW(&)/' constants
    echo '    return 0;'
    echo '}'
}

{ printf '#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n'; } >head
{ cat head; echo '#include "mpi.h"'; probe; } >ours.c
{ cat head; echo "#include \"$oracle\""; probe; } >theirs.c
# Repeated declarations must agree: the compiler compares every type.
{ cat head; echo '#include "mpi.h"'; cat typedefs prototypes; echo 'int main(void) { return 0; }'; } >both.c

enough() { [ "$(wc -l <"$1")" -ge "$2" ] || { echo "only $(wc -l <"$1") found in $1"; false; }; }
same_constants() { $compile ours.c -o ours && $compile theirs.c -o theirs && ./ours >o && ./theirs >t && diff t o; }
exported() {
    nm -D --defined-only "$library" | sed 's/@.*//' | awk '{ print $2, $3 }' >symbols
    while read -r f; do
        case $f in PMPI_*) want=T ;; *) want=W ;; esac
        grep -qx "$want $f" symbols || { echo "not there as $want: $f"; missing=1; }
    done <functions
    [ -z "${missing:-}" ]
}
nothing_else() {
    awk '{ print $2 }' symbols | grep -E '^P?MPI' | sort >have
    comm -13 functions have >more
    cat more
    [ ! -s more ]
}
# What mpi.h has besides is what the ABI leaves out and programs use, and no constant of any other name.
more_constants() {
    grep -hoE '\bMPI_[A-Z][A-Z0-9_]+\b' "$top_builddir/ompi/include/mpi.h" | sort -u >ours.constants
    { cat constants; printf 'MPI_%s\n' SOURCE TAG ERROR T_; } | sort -u >known
    comm -23 ours.constants known >more
    cat more
    [ ! -s more ]
}
soname() { readelf -d "$library" | grep -q 'SONAME.*\[libmpi_abi.so.1\]'; }

tap_ok "the oracle has constants" enough constants 350
tap_ok "the oracle has functions" enough functions 1300
tap_ok "the oracle has prototypes" enough prototypes 1300
tap_ok "the oracle has types" enough typedefs 25
tap_ok "constants, sizes and offsets are the same" same_constants
tap_ok "no other constants are defined" more_constants
tap_ok "types and prototypes are the same" $compile -fsyntax-only both.c
tap_ok "every function is exported, MPI_ weak and PMPI_ strong" exported
tap_ok "no other MPI names are exported" nothing_else
tap_ok "the library's name is libmpi_abi.so.1" soname
tap_end
