# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Read by the scripts of this folder: `conform NAME OPTIONS...` becomes the conformance kit on mca_btl_NAME.so
# of this build. A component that was not built is skipped.
conform() {
    name=$1
    shift
    plugin=$top_builddir/ompi/mca/btl/$name/.libs/mca_btl_$name.so
    if [ ! -f "$plugin" ]; then
        echo "1..0 # SKIP btl/$name is not built as a loadable object"
        exit 0
    fi
    exec "$top_builddir/ompi/hawser-btl-conform" "$@" "$plugin"
}
