dnl Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
AC_DEFUN([HAWSER_ompi_btl_uct_CONFIG], [
    AS_IF([test "$hawser_ucx_found" != no], [$1],
        [hawser_component_why=$hawser_ucx_why
         $2])
])
