#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Writes a pkg-config file: make-pc.sh TEMPLATE PREFIX PKGCONFIGDIR LIBDIR INCLUDEDIR HAWSERLIBDIR VERSION
# Directories below the prefix are written relative to the file's own place, so that a moved
# installation works; others as they are.
set -eu
template=$1 prefix=$2 pkgconfigdir=$3 libdir=$4 includedir=$5 hawserlibdir=$6 version=$7

below() {
    case $1 in
        "$prefix"/*) printf '${prefix}%s' "${1#"$prefix"}" ;;
        *) printf '%s' "$1" ;;
    esac
}

case $pkgconfigdir in
    "$prefix"/*) from='${pcfiledir}'$(printf '%s' "${pkgconfigdir#"$prefix"}" | sed 's|//*[^/]*|/..|g') ;;
    *) from=$prefix ;;
esac

sed -e "s|@prefix@|$from|" -e "s|@libdir@|$(below "$libdir")|" \
    -e "s|@includedir@|$(below "$includedir")|" -e "s|@hawserlibdir@|$(below "$hawserlibdir")|" \
    -e "s|@VERSION@|$version|" "$template"
