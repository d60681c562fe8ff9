dnl Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
dnl hwloc: topology and binding (needed)
AC_DEFUN([HAWSER_CHECK_HWLOC], [
    PKG_CHECK_MODULES([HWLOC], [hwloc >= 2.0],
        [hawser_hwloc_found=`$PKG_CONFIG --modversion hwloc`],
        [hawser_hwloc_found=no
         HAWSER_MISSING([hwloc >= 2.0], [libhwloc-dev])])
])
