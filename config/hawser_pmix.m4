dnl Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
dnl PMIx: the door between MPI processes and launchers (needed)
AC_DEFUN([HAWSER_CHECK_PMIX], [
    PKG_CHECK_MODULES([PMIX], [pmix >= 4.2],
        [hawser_pmix_found=`$PKG_CONFIG --modversion pmix`],
        [hawser_pmix_found=no
         HAWSER_MISSING([PMIx >= 4.2], [libpmix-dev])])
])
