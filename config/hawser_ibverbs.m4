dnl Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
dnl libibverbs: InfiniBand and RoCE; librdmacm: another way to make their connections (both optional)
AC_DEFUN([HAWSER_CHECK_IBVERBS], [
    HAWSER_WITH([verbs], [libibverbs], [btl/openib and btl/ud])
    hawser_ibverbs_found=no
    hawser_ibverbs_why=
    AS_IF([test "$with_verbs" = no], [hawser_ibverbs_why=--without-verbs],
        [PKG_CHECK_MODULES([IBVERBS], [libibverbs],
            [hawser_ibverbs_found=`$PKG_CONFIG --modversion libibverbs`],
            [AS_IF([test "$with_verbs" = yes], [HAWSER_MISSING([libibverbs], [libibverbs-dev])])])])
    AS_IF([test "$hawser_ibverbs_found" != no],
        [AC_CHECK_HEADER([rdma/rdma_cma.h], [AC_DEFINE([HAWSER_HAVE_RDMACM], [1], [librdmacm can be loaded])])])
    AM_CONDITIONAL([HAWSER_IBVERBS], [test "$hawser_ibverbs_found" != no])
])
