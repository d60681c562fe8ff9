#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# The message tests over transports of UCX, alone and beside our own links. A failed point names its combination.
. "$top_srcdir/test/support/combinations.sh"
if [ ! -f "$top_builddir/ompi/mca/btl/uct/.libs/mca_btl_uct.so" ]; then
    echo "1..0 # SKIP btl/uct is not built as a loadable object"
    exit 0
fi
combinations <<LIST
p2p --mca btl uct,self --mca btl_uct_transports tcp/lo
p2p --mca btl uct,tcp,self --mca btl_uct_transports posix --mca pml_base_stripe all
p2p --mca btl uct,self --mca btl_uct_transports sysv,cma
p2p --mca pml dr --mca btl uct,self --mca btl_uct_transports posix,cma
coll --mca btl uct,shm,self --mca btl_uct_transports tcp/lo --mca pml_base_stripe all
# Not "friends": what is said to a process that was not met before waits for its answer, and dies with the killed one.
lost:strangers --mca btl uct,self --mca btl_uct_transports tcp/lo
lost:fatal --mca btl uct,self --mca btl_uct_transports tcp/lo
LIST
