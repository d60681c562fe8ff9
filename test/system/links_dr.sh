#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# links.sh over pml/dr.
LINKS_PML=dr LINKS_CUTS=${LINKS_CUTS:-2}
. "$top_srcdir/test/system/links.sh"
