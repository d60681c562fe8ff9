dnl Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
dnl PMIx: the door between MPI processes and launchers (needed)
AC_DEFUN([HAWSER_CHECK_PMIX], [
    PKG_CHECK_MODULES([PMIX], [pmix >= 4.2],
        [hawser_pmix_found=`$PKG_CONFIG --modversion pmix`
         HAWSER_PMIX_WITHOUT_RPATH],
        [hawser_pmix_found=no
         HAWSER_MISSING([PMIx >= 4.2], [libpmix-dev])])
])

# Debian's pmix.pc names a folder for the loader, although its library stands in the usual one as well:
# without that every start of a process looks through one folder less.
AC_DEFUN([HAWSER_PMIX_WITHOUT_RPATH], [
    hawser_pmix_libs=`AS_ECHO(["$PMIX_LIBS"]) | sed 's/-Wl,-rpath *-Wl,@<:@^ @:>@*//; s/-Wl,-rpath@<:@,=@:>@@<:@^ @:>@*//'`
    AS_IF([test "$hawser_pmix_libs" != "$PMIX_LIBS"], [
        hawser_save_libs=$LIBS
        hawser_save_cflags=$CFLAGS
        LIBS="$hawser_pmix_libs $LIBS"
        CFLAGS="$CFLAGS $PMIX_CFLAGS"
        AC_MSG_CHECKING([whether the loader finds libpmix without being told where])
        AC_RUN_IFELSE([AC_LANG_PROGRAM([[#include <pmix.h>
#include <string.h>]], [[return strstr(PMIx_Get_version(), "$hawser_pmix_found") == NULL;]])],
            [PMIX_LIBS=$hawser_pmix_libs
             AC_MSG_RESULT([yes])],
            [AC_MSG_RESULT([no])],
            [AC_MSG_RESULT([not known when cross-compiling])])
        LIBS=$hawser_save_libs
        CFLAGS=$hawser_save_cflags
    ])
])
