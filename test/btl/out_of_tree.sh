#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# The example of a BTL outside the tree builds against the two public headers alone, and keeps the contract.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/include/hawser"
cp "$top_srcdir/ompi/include/hawser/btl.h" "$top_srcdir/opal/include/hawser/component.h" "$dir/include/hawser"
${CC:-cc} -std=c11 -D_DEFAULT_SOURCE -O2 -Wall -Wextra -Werror -fPIC -shared -fvisibility=hidden \
    -I"$dir/include" -o "$dir/mca_btl_loop.so" "$top_srcdir/examples/btl_loop/btl_loop.c" || exit 1
"$top_builddir/ompi/hawser-btl-conform" "$dir/mca_btl_loop.so"
