dnl Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
dnl libibverbs: InfiniBand and RoCE (optional)
AC_DEFUN([HAWSER_CHECK_IBVERBS], [
    PKG_CHECK_MODULES([IBVERBS], [libibverbs],
        [hawser_ibverbs_found=`$PKG_CONFIG --modversion libibverbs`],
        [hawser_ibverbs_found=no
         :])
    AM_CONDITIONAL([HAWSER_IBVERBS], [test "$hawser_ibverbs_found" != no])
])
