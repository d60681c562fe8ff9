dnl Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
dnl Compiler flags, build switches, the list of missing packages and the closing table.

# Optimised with debug information unless the user says otherwise; set before AC_PROG_CC does. These come
# after HAWSER_CFLAGS, so that they decide.
AC_DEFUN([HAWSER_DEFAULT_CFLAGS], [
    AS_IF([test "$enable_debug" = yes], [hawser_default_cflags="-O0 -g3"], [hawser_default_cflags="-O2 -g"])
    : ${CFLAGS=$hawser_default_cflags}
    : ${CXXFLAGS=$hawser_default_cflags}
])

# HAWSER_MISSING(WHAT, DEBIAN-PACKAGE): note a needed thing that is not there.
AC_DEFUN([HAWSER_MISSING], [
    hawser_missing="$hawser_missing
    $1 (Debian package: $2)"
    hawser_missing_packages="$hawser_missing_packages $2"
])

# HAWSER_WITH(NAME, WHAT, FOR): --with-NAME, for something that is optional: with_NAME is yes, no or auto.
AC_DEFUN([HAWSER_WITH], [
    AC_ARG_WITH([$1],
        [AS_HELP_STRING([--with-$1], [require $2, for $3 (default: used if it is found)])],
        [], [with_$1=auto])
    AS_CASE([$with_$1], [yes | no | auto], [],
        [AC_MSG_ERROR([--with-$1=$with_$1: yes, no or auto; where $2 is, pkg-config says (PKG_CONFIG_PATH)])])
])

# Stop with one message that names everything that is missing.
AC_DEFUN([HAWSER_REQUIRE_ALL], [
    AS_IF([test -n "$hawser_missing"],
        [AC_MSG_ERROR([needed to build Hawser, but not found:$hawser_missing
  On Debian: apt-get install$hawser_missing_packages])])
])

# HAWSER_TRY_CFLAG(FLAG): add FLAG to HAWSER_CFLAGS if the compiler takes it.
AC_DEFUN([HAWSER_TRY_CFLAG], [
    AC_MSG_CHECKING([whether $CC accepts $1])
    hawser_save_cflags=$CFLAGS
    CFLAGS="$CFLAGS -Werror $1"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
        [AC_MSG_RESULT([yes]); HAWSER_CFLAGS="$HAWSER_CFLAGS $1"],
        [AC_MSG_RESULT([no])])
    CFLAGS=$hawser_save_cflags
])

AC_DEFUN([HAWSER_OPTIONS], [
    HAWSER_CFLAGS="-std=gnu11 -Wall -Wextra"
    HAWSER_TRY_CFLAG([-fvisibility=hidden])
    HAWSER_TRY_CFLAG([-fno-semantic-interposition])
    HAWSER_TRY_CFLAG([-fno-plt])
    HAWSER_TRY_CFLAG([-fno-math-errno])
    HAWSER_TRY_CFLAG([-Wmissing-prototypes])
    HAWSER_TRY_CFLAG([-Wstrict-prototypes])

    AC_ARG_ENABLE([debug],
        [AS_HELP_STRING([--enable-debug], [assertions and internal checks, no optimisation])],
        [], [enable_debug=no])
    AS_IF([test "$enable_debug" = yes],
        [HAWSER_CFLAGS="$HAWSER_CFLAGS -O0 -g3"
         AC_DEFINE([OPAL_ENABLE_DEBUG], [1], [internal checks])],
        [HAWSER_CPPFLAGS="-DNDEBUG"
         AC_DEFINE([OPAL_ENABLE_DEBUG], [0], [internal checks])])

    AC_ARG_ENABLE([werror],
        [AS_HELP_STRING([--enable-werror], [treat compiler warnings as errors])],
        [], [enable_werror=no])
    AS_IF([test "$enable_werror" = yes], [HAWSER_CFLAGS="$HAWSER_CFLAGS -Werror"])

    AC_ARG_ENABLE([sanitizers],
        [AS_HELP_STRING([--enable-sanitizers=LIST],
            [build with compiler sanitizers: address,undefined or thread])],
        [], [enable_sanitizers=no])
    AS_CASE([$enable_sanitizers],
        [no], [],
        [yes], [enable_sanitizers=address,undefined])
    AS_IF([test "$enable_sanitizers" != no],
        [AC_MSG_CHECKING([whether $CC can build with -fsanitize=$enable_sanitizers])
         hawser_save_cflags=$CFLAGS
         CFLAGS="$CFLAGS -fsanitize=$enable_sanitizers"
         AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
             [AC_MSG_RESULT([yes])],
             [AC_MSG_RESULT([no])
              AC_MSG_ERROR([--enable-sanitizers=$enable_sanitizers: $CC has no such sanitizers, lacks their libraries, or can't combine them])])
         CFLAGS=$hawser_save_cflags
         HAWSER_CFLAGS="$HAWSER_CFLAGS -fsanitize=$enable_sanitizers -fno-omit-frame-pointer -fno-sanitize-recover=undefined"
         HAWSER_LDFLAGS="$HAWSER_LDFLAGS -fsanitize=$enable_sanitizers"
         AC_DEFINE([OPAL_ENABLE_SANITIZERS], [1], [compiler sanitizers are on])])
    AC_SUBST([enable_sanitizers])
    HAWSER_RELOCATABLE

    AC_SUBST([HAWSER_CFLAGS])
    AC_SUBST([HAWSER_CPPFLAGS])
    AC_SUBST([HAWSER_LDFLAGS])
])

# Programs find the libraries, and libraries each other, by their own place, so that a moved
# installation works: programs from bindir, libraries side by side, components from below libdir. Each
# has the one folder that it needs: the loader looks into some 16 places below every folder that it
# has not met yet. What the wrapper compilers hand to MPI programs is without this.
AC_DEFUN([HAWSER_RELOCATABLE], [
    HAWSER_PROGRAM_LDFLAGS="$HAWSER_LDFLAGS -Wl,-rpath,'\$\$ORIGIN/../lib'"
    HAWSER_LIBRARY_LDFLAGS="$HAWSER_LDFLAGS -Wl,-rpath,'\$\$ORIGIN'"
    HAWSER_COMPONENT_LDFLAGS="$HAWSER_LDFLAGS -Wl,-rpath,'\$\$ORIGIN/..'"
    AC_SUBST([HAWSER_PROGRAM_LDFLAGS])
    AC_SUBST([HAWSER_LIBRARY_LDFLAGS])
    AC_SUBST([HAWSER_COMPONENT_LDFLAGS])
    hawser_prefix=$prefix
    test "$hawser_prefix" = NONE && hawser_prefix=$ac_default_prefix
    hawser_bindir=`(prefix=$hawser_prefix; exec_prefix=$prefix; eval eval echo "$bindir")`
    hawser_libdir=`(prefix=$hawser_prefix; exec_prefix=$prefix; eval eval echo "$libdir")`
    AS_CASE([$hawser_bindir:$hawser_libdir],
        ["$hawser_prefix"/*:"$hawser_prefix"/*],
        [hawser_up=`echo "$hawser_bindir" | sed "s|^$hawser_prefix/*||; s|[[^/]][[^/]]*|..|g"`
         hawser_down=`echo "$hawser_libdir" | sed "s|^$hawser_prefix/*||"`
         HAWSER_PROGRAM_LDFLAGS="$HAWSER_LDFLAGS -Wl,-rpath,'\$\$ORIGIN/$hawser_up/$hawser_down'"])
    # libtool puts its own -rpath, the folder configured, before these when it links a library: a moved
    # installation would take the libraries of another one that stands where it stood.
    archive_cmds=`AS_ECHO(["$archive_cmds"]) |
        sed 's/ \$compiler_flags//; s/ \$libobjs/ $compiler_flags $libobjs/'`
])

AC_DEFUN([HAWSER_SUMMARY], [
    cat <<HAWSER_EOT

Hawser $PACKAGE_VERSION
  --------------------------------------------------------------------
  prefix            $prefix
  compiler          $CC $CFLAGS
  debug             $enable_debug
  sanitizers        $enable_sanitizers
  --------------------------------------------------------------------
  libltdl           $hawser_libltdl_found
  libevent          $hawser_libevent_found
  hwloc             $hawser_hwloc_found
  PMIx              $hawser_pmix_found
  libibverbs        $hawser_ibverbs_found
  UCX               $hawser_ucx_found
  Fortran           $hawser_fortran_found
  Python            $hawser_python_found
  --------------------------------------------------------------------
$hawser_component_table
  --------------------------------------------------------------------
HAWSER_EOT
])
