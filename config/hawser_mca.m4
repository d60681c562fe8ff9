dnl Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
dnl Which components are built, and how: as loadable objects, or into their project's library.
dnl A component's optional configure.m4 defines HAWSER_<project>_<framework>_<component>_CONFIG([if-yes], [if-no]).

AC_DEFUN([HAWSER_MCA_INIT], [
    AC_ARG_ENABLE([mca-static],
        [AS_HELP_STRING([--enable-mca-static=LIST],
            [components to link into the libraries: "all", frameworks, or framework-component,
             separated by commas (default: none)])],
        [], [enable_mca_static=])
    AC_ARG_ENABLE([mca-no-build],
        [AS_HELP_STRING([--enable-mca-no-build=LIST],
            [components not to build: framework-component, separated by commas])],
        [], [enable_mca_no_build=])
    AS_CASE([$enable_mca_static], [no], [enable_mca_static=])
    AS_CASE([$enable_mca_no_build], [no], [enable_mca_no_build=])
    hawser_component_table=
    hawser_known_frameworks=
    hawser_known_components=
    mkdir -p opal/mca orte/mca ompi/mca
])

# HAWSER_COMPONENT(PROJECT, FRAMEWORK, COMPONENT)
AC_DEFUN([HAWSER_COMPONENT], [
    AC_MSG_CHECKING([component $2/$3])
    hawser_known_components="$hawser_known_components $2-$3"
    AS_CASE([" $hawser_known_frameworks "], [*" $2 "*], [],
        [hawser_known_frameworks="$hawser_known_frameworks $2"])
    hawser_component_ok=yes
    hawser_component_why=
    AS_CASE([",$enable_mca_no_build,"],
        [*,$2-$3,*], [hawser_component_ok=no; hawser_component_why="--enable-mca-no-build"],
        [m4_ifdef([HAWSER_$1_$2_$3_CONFIG],
            [HAWSER_$1_$2_$3_CONFIG([],
                [hawser_component_ok=no
                 : ${hawser_component_why:="its dependency was not found"}])], [:])])
    hawser_component_static=no
    AS_CASE([",$enable_mca_static,"],
        [*,all,* | *,$2,* | *,$2-$3,*], [hawser_component_static=yes])
    $1_ALL_COMPONENT_DIRS="$$1_ALL_COMPONENT_DIRS mca/$2/$3"
    AS_IF([test "$hawser_component_ok" = no],
            [AC_MSG_RESULT([no ($hawser_component_why)])
             hawser_component_how="not built: $hawser_component_why"],
          [test "$hawser_component_static" = yes],
            [AC_MSG_RESULT([yes, static])
             hawser_component_how=static
             $1_STATIC_COMPONENT_DIRS="$$1_STATIC_COMPONENT_DIRS mca/$2/$3"
             $1_STATIC_COMPONENT_LIBS="$$1_STATIC_COMPONENT_LIBS mca/$2/$3/libmca_$2_$3.la"
             $1_$2_STATIC="$$1_$2_STATIC $3"],
          [AC_MSG_RESULT([yes])
           hawser_component_how=loadable
           $1_DSO_COMPONENT_DIRS="$$1_DSO_COMPONENT_DIRS mca/$2/$3"])
    AM_CONDITIONAL([HAWSER_BUILD_$2_$3], [test "$hawser_component_ok" = yes])
    AM_CONDITIONAL([HAWSER_STATIC_$2_$3], [test "$hawser_component_static" = yes])
    hawser_component_line=`printf '  %-17s %s' "$2/$3" "$hawser_component_how"`
    hawser_component_table="$hawser_component_table${hawser_component_table:+
}$hawser_component_line"
])

# HAWSER_FRAMEWORK(PROJECT, FRAMEWORK): the table of its static components, included by its base.
AC_DEFUN([HAWSER_FRAMEWORK], [
    AC_CONFIG_COMMANDS([$1/mca/$2/static-components.h], [
        mkdir -p $1/mca/$2
        {
            echo "/* Written by configure: static components of framework $2. */"
            for c in $hawser_static_list_$1_$2; do
                echo "extern const mca_base_component_t mca_$2_${c}_component;"
            done
            echo "static const mca_base_component_t *const mca_$2_static_components[[]] = {"
            for c in $hawser_static_list_$1_$2; do
                echo "    &mca_$2_${c}_component,"
            done
            echo "    NULL"
            echo "};"
        } >$1/mca/$2/static-components.h.tmp
        if cmp -s $1/mca/$2/static-components.h.tmp $1/mca/$2/static-components.h; then
            rm -f $1/mca/$2/static-components.h.tmp
        else
            mv $1/mca/$2/static-components.h.tmp $1/mca/$2/static-components.h
        fi
    ], [hawser_static_list_$1_$2="$$1_$2_STATIC"])
])

# HAWSER_MCA_LIST(OPTION, LIST, KNOWN): each word of the list is one of those known.
AC_DEFUN([HAWSER_MCA_LIST], [
    for hawser_word in `AS_ECHO(["$2"]) | tr , ' '`; do
        AS_CASE([" $3 "], [*" $hawser_word "*], [],
            [AC_MSG_ERROR([$1: there is no "$hawser_word" (known:$3)])])
    done
])

AC_DEFUN([HAWSER_MCA_FINISH], [
    HAWSER_MCA_LIST([--enable-mca-no-build], [$enable_mca_no_build], [$hawser_known_components])
    HAWSER_MCA_LIST([--enable-mca-static], [$enable_mca_static],
        [ all$hawser_known_frameworks$hawser_known_components])
    # What the components over libibverbs share is in the library once, however many of them are.
    AS_CASE([$ompi_STATIC_COMPONENT_LIBS],
        [*mca/btl/openib/* | *mca/btl/ud/*],
        [ompi_STATIC_COMPONENT_LIBS="$ompi_STATIC_COMPONENT_LIBS mca/common/verbs/libcommon_verbs.la"])
    m4_foreach([hawser_project], [[opal], [orte], [ompi]], [
        AC_SUBST(hawser_project[_ALL_COMPONENT_DIRS])
        AC_SUBST(hawser_project[_DSO_COMPONENT_DIRS])
        AC_SUBST(hawser_project[_STATIC_COMPONENT_DIRS])
        AC_SUBST(hawser_project[_STATIC_COMPONENT_LIBS])
    ])
])
