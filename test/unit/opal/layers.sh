#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# The arrows between the layers point down only: who includes whom, file by file.
. "$top_srcdir/test/support/tap.sh"
tap_start 60
cd "$top_srcdir" || exit 99

# Every include of a quoted name, as "file:name".
find opal orte ompi -name '*.[ch]' | sort | xargs grep -H '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' |
    sed 's/^\([^:]*\):[^"]*"\([^"]*\)".*/\1:\2/' >"$tap_dir/includes"
edges=$tap_dir/includes

# none FROM TO [EXCEPT]: no file whose path matches FROM includes a name that matches TO.
none() {
    grep -E "^($1)[^:]*:($2)" "$edges" | grep -vE "^${3:-there is no such line}" >"$tap_dir/found"
    cat "$tap_dir/found"
    [ ! -s "$tap_dir/found" ]
}

# A component includes nothing of another one; a framework's base names none of its components (their table stands
# in a file beside it, written or generated). What components of one kind share is in "common".
foreign_components() {
    awk -F: '
        function component(path, parts) {
            return split(path, parts, "/") > 4 && parts[2] == "mca" && parts[3] != "common" && parts[4] != "base" \
                ? parts[1] "/" parts[3] "/" parts[4] : ""
        }
        function is_table(path, parts) { return split(path, parts, "/") == 4 && parts[2] == "mca" }
        { theirs = component($2)
          if (theirs != "" && theirs != component($1) && !is_table($1)) { print; bad = 1 } }
        END { exit bad }' "$edges"
}

# Quoted names start at the top of the tree.
rooted() {
    ! grep -vE ':(opal|orte|ompi)/' "$edges" | grep -vE ':hawser/|:mpi\.h$|:hawser_config\.h$'
}

tap_ok "the includes were found" test "$(wc -l <"$edges")" -gt 100
tap_ok "opal includes neither orte nor ompi" none 'opal/' '(orte|ompi)/'
tap_ok "orte does not include ompi" none 'orte/' '(ompi/|mpi\.h)'
tap_ok "ompi does not include orte" none 'ompi/' 'orte/'
tap_ok "components keep to themselves" foreign_components
tap_ok "includes are rooted at the top" rooted
tap_ok "public headers are self-contained" none '(opal|ompi)/include/hawser/' '(opal|orte|ompi)/'
tap_ok "BTLs know nothing of MPI" none 'ompi/mca/btl/' \
    'ompi/(mpi|communicator|group|datatype|op|request|attribute|info|errhandler|win|file|session|mca/(pml|coll|osc|io|topo))/|mpi\.h'
tap_ok "the PML knows nothing of collectives, windows, files" none 'ompi/mca/pml/' 'ompi/(mca/(coll|osc|io|topo)|win|file)/'
tap_ok "collectives go through the PML, not to BTLs" none 'ompi/mca/(coll|osc|io|topo)/' '(ompi/mca/btl|hawser/btl)'
tap_ok "objects know no bindings but the prototypes of their bodies" \
    none 'ompi/(communicator|group|datatype|op|request|attribute|info|errhandler|win|file|session)/' \
    'ompi/mpi/(c|fortran)/' '[^:]*:ompi/mpi/c/(bodies|counts|state)\.h'
tap_end
