#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Finds every framework and component by folder, writes what configure needs to know of them into
# config/autogen_components.m4, and runs the Autotools. A component is a folder
# PROJECT/mca/FRAMEWORK/COMPONENT with a Makefile.am; "base" is never a component,
# "common" no framework.
set -eu
cd "$(dirname "$0")"

for tool in autoconf automake libtoolize m4; do
    command -v "$tool" >/dev/null 2>&1 || {
        echo "autogen.sh: $tool is not installed; on Debian: apt-get install autoconf automake libtool m4" >&2
        exit 1
    }
done

out=config/autogen_components.m4
tmp=$out.tmp
calls=$tmp.calls
files=$tmp.files
: >"$calls"; : >"$files"
{
    echo "dnl Written by autogen.sh: the components found in the tree."
    for project in opal orte ompi; do
        frameworks=
        for header in "$project"/mca/*/*/Makefile.am; do
            [ -f "$header" ] || continue
            dir=${header%/Makefile.am}
            component=${dir##*/}
            [ "$component" = base ] && continue
            framework=${dir%/*}; framework=${framework##*/}
            [ "$framework" = common ] && continue # what components of one kind share
            case " $frameworks " in *" $framework "*) ;; *) frameworks="$frameworks $framework" ;; esac
            [ -f "$dir/configure.m4" ] && echo "m4_include([$dir/configure.m4])"
            echo "    HAWSER_COMPONENT([$project], [$framework], [$component])" >>"$calls"
            echo "    AC_CONFIG_FILES([$dir/Makefile])" >>"$files"
        done
        for framework in $frameworks; do
            echo "    HAWSER_FRAMEWORK([$project], [$framework])" >>"$calls"
        done
    done
    echo "AC_DEFUN([HAWSER_ALL_COMPONENTS], ["
    cat "$calls" "$files"
    echo "])"
} >"$tmp"
rm -f "$calls" "$files"
if cmp -s "$tmp" "$out"; then rm -f "$tmp"; else mv "$tmp" "$out"; fi

mkdir -p config/aux config/m4
exec autoreconf --install --warnings=no-obsolete
