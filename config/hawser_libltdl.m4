dnl Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
dnl libltdl: loads components (needed; it has no pkg-config file)
AC_DEFUN([HAWSER_CHECK_LIBLTDL], [
    hawser_libltdl_found=no
    LTDL_LIBS=
    AC_CHECK_HEADER([ltdl.h],
        [AC_CHECK_LIB([ltdl], [lt_dladvise_init],
            [hawser_libltdl_found=yes; LTDL_LIBS=-lltdl])])
    AS_IF([test "$hawser_libltdl_found" = no], [HAWSER_MISSING([libltdl], [libltdl-dev])])
    AC_SUBST([LTDL_LIBS])
])
