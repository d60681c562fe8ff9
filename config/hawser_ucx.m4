dnl Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
dnl UCX: UCT transports (optional)
AC_DEFUN([HAWSER_CHECK_UCX], [
    PKG_CHECK_MODULES([UCX], [ucx-uct],
        [hawser_ucx_found=`$PKG_CONFIG --modversion ucx-uct`],
        [hawser_ucx_found=no
         :])
])
