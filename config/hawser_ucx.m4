dnl Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
dnl UCX: UCT transports, and word of what is unmapped (optional)
AC_DEFUN([HAWSER_CHECK_UCX], [
    HAWSER_WITH([ucx], [UCX], [btl/uct])
    hawser_ucx_found=no
    hawser_ucx_why=
    AS_IF([test "$with_ucx" = no], [hawser_ucx_why=--without-ucx],
        [PKG_CHECK_MODULES([UCX], [ucx-uct],
            [hawser_ucx_found=`$PKG_CONFIG --modversion ucx-uct`],
            [AS_IF([test "$with_ucx" = yes], [HAWSER_MISSING([UCX], [libucx-dev])])])])
    AS_IF([test "$hawser_ucx_found" != no],
        [hawser_save_CPPFLAGS=$CPPFLAGS
         CPPFLAGS="$CPPFLAGS $UCX_CFLAGS"
         AC_CHECK_HEADER([ucm/api/ucm.h],
             [AC_DEFINE([HAWSER_HAVE_UCM], [1], [UCX tells what memory is unmapped])])
         CPPFLAGS=$hawser_save_CPPFLAGS])
])
