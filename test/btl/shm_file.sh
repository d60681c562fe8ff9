#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/shm with files in /dev/shm, which holds 64 MiB where that can be arranged. Nothing may stay there.
. "$top_srcdir/test/btl/kit.sh"
if [ "${1-}" != inside ] && unshare -m true 2>/dev/null; then
    exec unshare -m "$0" inside
fi
if [ "${1-}" = inside ]; then
    mount -t tmpfs -o size=64m none /dev/shm || exit 1
fi
(conform shm --param btl_shm_backing=file --param btl_shm_part=5001 --processes 16 --seed 8)
status=$?
left=$(ls /dev/shm | grep '^hawser\.conform-' || :)
if [ "${1-}" = inside ] && [ -n "$left" ]; then
    echo "Bail out! left in /dev/shm: $left"
    exit 1
fi
exit $status
