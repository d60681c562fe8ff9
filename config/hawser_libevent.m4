dnl Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
dnl libevent: events, timers, signals (needed)
AC_DEFUN([HAWSER_CHECK_LIBEVENT], [
    PKG_CHECK_MODULES([LIBEVENT], [libevent_core >= 2.1 libevent_pthreads >= 2.1],
        [hawser_libevent_found=`$PKG_CONFIG --modversion libevent_core`],
        [hawser_libevent_found=no
         HAWSER_MISSING([libevent >= 2.1], [libevent-dev])])
])
