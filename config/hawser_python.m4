dnl Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
dnl Python 3 regenerates the MPI bindings; a dist tarball carries them and does without.
AC_DEFUN([HAWSER_CHECK_PYTHON], [
    AC_ARG_VAR([PYTHON], [Python 3 interpreter, needed only to build from a git checkout])
    AC_CHECK_PROGS([PYTHON], [python3], [])
    hawser_python_found=${PYTHON:-no}
    AS_IF([test -z "$PYTHON" && test ! -f "$srcdir/ompi/include/mpi.h"],
        [HAWSER_MISSING([Python 3 (to build from a checkout)], [python3])])
    # A tarball carries what is generated; a checkout generates it into the build tree.
    AM_CONDITIONAL([OMPI_GENERATE], [test ! -f "$srcdir/ompi/include/mpi.h"])
    AM_CONDITIONAL([HAWSER_HAVE_PYTHON], [test -n "$PYTHON"])
])
