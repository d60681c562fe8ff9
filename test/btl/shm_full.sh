#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# btl/shm told to use files where /dev/shm has no room, or not enough: a message, and memory from elsewhere.
. "$top_srcdir/test/btl/kit.sh"
if ! unshare -m true 2>/dev/null; then
    echo "1..0 # SKIP needs the right to make a mount namespace"
    exit 0
fi
if [ "${1-}" != inside ]; then
    exec unshare -m "$0" inside
fi
mount -t tmpfs -o size=4k none /dev/shm || exit 1
run() { (conform shm --param btl_shm_backing=file --test "$@" 2>&1); }
run mixed >"$$.out" || { cat "$$.out"; exit 1; }
said=$(grep -c 'btl-shm:file: .*no shared memory in /dev/shm' "$$.out")
mount -t tmpfs -o size=400k none /dev/shm || exit 1
run messages >"$$.out" || { cat "$$.out"; exit 1; }
pool=$(grep -c 'btl-shm:file: .*no shared memory in /dev/shm' "$$.out")
rm -f "$$.out"
echo 1..2
[ "$said" -gt 0 ] && echo "ok 1 - a full /dev/shm is reported" || echo "not ok 1 - a full /dev/shm is reported"
[ "$pool" -gt 0 ] && echo "ok 2 - one too small for bulk memory is reported" \
    || echo "not ok 2 - one too small for bulk memory is reported"
