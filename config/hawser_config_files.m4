dnl Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
dnl Makefiles and generated files outside components, one a line.
AC_CONFIG_FILES([Makefile])
AC_CONFIG_FILES([opal/Makefile])
AC_CONFIG_FILES([orte/Makefile])
AC_CONFIG_FILES([ompi/Makefile])
AC_CONFIG_FILES([test/Makefile])
