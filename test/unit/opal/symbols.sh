#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# What our libraries and components export begins with one of our prefixes; and their thread-local storage is small, as a program that
# loads them while it runs has some 1600 bytes for all that need theirs at a fixed place.
. "$top_srcdir/test/support/tap.sh"
tap_start 60
nm=${NM:-nm}
command -v "$nm" >/dev/null || tap_skip_all "there is no nm"

# exports FILE PATTERN: it exports something, and nothing that doesn't match.
exports() {
    "$nm" -D --defined-only "$1" | awk '{ print $3 }' | sed 's/@.*//' |
        grep -vE '^(_init|_fini|__bss_start|_edata|_end|__(asan|ubsan|odr|start|stop|sanitizer)_.*)$' \
        >"$tap_dir/symbols"
    grep -vE "$2" "$tap_dir/symbols" >"$tap_dir/strange"
    cat "$tap_dir/strange"
    [ -s "$tap_dir/symbols" ] && [ ! -s "$tap_dir/strange" ]
}

# little_tls FILE: 64 bytes at most.
little_tls() {
    bytes=$("$readelf" -lW "$1" | awk '$1 == "TLS" { print $6 }')
    echo "$1: ${bytes:-none}"
    [ $((${bytes:-0})) -le 64 ]
}

cd "$top_builddir" || exit 99
tap_ok "libhawser-opal" exports opal/.libs/libhawser-opal.so '^(opal|mca_base)_'
tap_ok "libhawser-orte" exports orte/.libs/libhawser-orte.so '^orte_'
tap_ok "libmpi_abi" exports ompi/.libs/libmpi_abi.so '^(P?MPI_|ompi_|mca_(pml|btl|coll|osc|io|topo)(_|$))'
for object in */mca/*/*/.libs/mca_*.so; do
    [ -f "$object" ] || continue
    name=${object##*/}
    tap_ok "${name%.so}" exports "$object" "^${name%.so}_component\$"
done
readelf=$(command -v readelf)
for object in opal/.libs/libhawser-opal.so orte/.libs/libhawser-orte.so ompi/.libs/libmpi_abi.so */mca/*/*/.libs/mca_*.so; do
    [ -n "$readelf" ] && [ -f "$object" ] || continue
    tap_ok "little thread-local storage: ${object##*/}" little_tls "$object"
done
tap_end
