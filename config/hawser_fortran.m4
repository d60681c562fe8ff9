dnl Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
dnl Fortran compiler (optional): only looked for here, to size the Fortran datatypes.
AC_DEFUN([HAWSER_CHECK_FORTRAN], [
    AC_ARG_VAR([FC], [Fortran compiler])
    AC_CHECK_PROGS([FC], [gfortran flang ifx ifort], [])
    hawser_fortran_found=${FC:-no}
])
