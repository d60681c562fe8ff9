dnl Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
dnl libibverbs: InfiniBand and RoCE; librdmacm: another way to make their connections (both optional)
AC_DEFUN([HAWSER_CHECK_IBVERBS], [
    PKG_CHECK_MODULES([IBVERBS], [libibverbs],
        [hawser_ibverbs_found=`$PKG_CONFIG --modversion libibverbs`],
        [hawser_ibverbs_found=no
         :])
    AS_IF([test "$hawser_ibverbs_found" != no],
        [AC_CHECK_HEADER([rdma/rdma_cma.h], [AC_DEFINE([HAWSER_HAVE_RDMACM], [1], [librdmacm can be loaded])])])
    AM_CONDITIONAL([HAWSER_IBVERBS], [test "$hawser_ibverbs_found" != no])
])
