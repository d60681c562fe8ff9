dnl Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
dnl Makefiles and generated files outside components, one a line.
AC_CONFIG_FILES([Makefile])
AC_CONFIG_FILES([opal/Makefile])
AC_CONFIG_FILES([orte/Makefile])
AC_CONFIG_FILES([ompi/Makefile])
AC_CONFIG_FILES([test/Makefile])
AC_CONFIG_FILES([ompi/mca/common/verbs/Makefile])
dnl In a build tree of a tarball, mpi.h lies where it does in one of a checkout: mpicc points there.
AC_CONFIG_COMMANDS([mpi-header], [
    AS_IF([test -f "$srcdir/ompi/include/mpi.h" && test ! -f ompi/include/mpi.h],
        [AS_MKDIR_P([ompi/include]); cp "$srcdir/ompi/include/mpi.h" ompi/include/mpi.h])
])
