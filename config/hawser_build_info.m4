dnl Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
dnl How this installation was configured, for ompi_info.

# HAWSER_DEFINE_TEXT(NAME, SHELL-WORD): a C string with any characters in it.
AC_DEFUN([HAWSER_DEFINE_TEXT], [
    hawser_text=`AS_ECHO([$2]) | sed 's/[[\\\\"]]/\\\\&/g'`
    AC_DEFINE_UNQUOTED([$1], ["$hawser_text"], [for ompi_info])
])

AC_DEFUN([HAWSER_BUILD_INFO], [
    HAWSER_DEFINE_TEXT([HAWSER_BUILD_ARGS], ["$ac_configure_args"])
    HAWSER_DEFINE_TEXT([HAWSER_BUILD_HOST], ["$host"])
    HAWSER_DEFINE_TEXT([HAWSER_BUILD_CC], ["$CC"])
    HAWSER_DEFINE_TEXT([HAWSER_BUILD_CXX], ["$CXX"])
    HAWSER_DEFINE_TEXT([HAWSER_BUILD_CFLAGS], ["$CFLAGS"])
    HAWSER_DEFINE_TEXT([HAWSER_BUILD_LDFLAGS], ["$LDFLAGS"])
    HAWSER_DEFINE_TEXT([HAWSER_BUILD_DEBUG], ["$enable_debug"])
    HAWSER_DEFINE_TEXT([HAWSER_BUILD_SANITIZERS], ["$enable_sanitizers"])
    HAWSER_DEFINE_TEXT([HAWSER_BUILD_LIBEVENT], ["$hawser_libevent_found"])
    HAWSER_DEFINE_TEXT([HAWSER_BUILD_HWLOC], ["$hawser_hwloc_found"])
    HAWSER_DEFINE_TEXT([HAWSER_BUILD_PMIX], ["$hawser_pmix_found"])
    HAWSER_DEFINE_TEXT([HAWSER_BUILD_IBVERBS], ["$hawser_ibverbs_found"])
    HAWSER_DEFINE_TEXT([HAWSER_BUILD_UCX], ["$hawser_ucx_found"])
    HAWSER_DEFINE_TEXT([HAWSER_BUILD_FORTRAN], ["$hawser_fortran_found"])
])
