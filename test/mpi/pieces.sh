#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# How long messages that are copied on both sides are cut (pieces.c): one that is alone has small pieces at both ends, so that the copies
# overlap; of several at once none needs that. And which of 1 MiB are sent in parts, before their receive is known, and which are announced and
# sent in pieces: those that came early, or crossed one another, did badly.
. "$top_srcdir/test/support/tap.sh"
tap_start 240
command -v python3 >/dev/null || tap_skip_all "no python3"

# judge PYTHON: of `alone` and `crowd`, lists of messages, which are lists of the lengths of their pieces behind the first 16 KiB.
judge() {
    python3 - "$tap_dir/trace-0.json" "$1" <<'END'
import json, sys
with open(sys.argv[1]) as file:
    lengths = [x["args"]["bytes"] for x in json.load(file)["traceEvents"] if x.get("name") == "copied piece"]
messages = [[]]
for length in lengths:
    if sum(messages[-1]) == (1 << 20) - (16 << 10):
        messages.append([])
    messages[-1].append(length)
alone, crowd = messages[:4], messages[4:]
assert len(messages) == 12, messages
assert eval(sys.argv[2]), messages
END
}

# in_pieces LEAST MOST: so many messages of MiB of rank 0 went in pieces.
in_pieces() {
    python3 - "$tap_dir/trace-0.json" "$1" "$2" <<'END'
import json, sys
with open(sys.argv[1]) as file:
    total = sum(x["args"]["bytes"] for x in json.load(file)["traceEvents"] if x.get("name") == "copied piece")
count = total / ((1 << 20) - (16 << 10))
print("# in pieces:", count)
assert int(sys.argv[2]) <= count <= int(sys.argv[3]), count
END
}

export MPI_TEST_JUDGE=1
args="--mca btl shm,self --mca btl_shm_single_copy never --mca pml_base_trace_links $tap_dir/trace-%r.json"
MPIRUN_ARGS="$args --mca btl_shm_parts_max 512k" \
    tap_ok "long messages arrive, one by one and several at once" "$top_builddir/test/mpi/pieces" pieces
tap_ok "one that is alone begins with small pieces, each twice as long as the one before" \
    judge 'all(m[:4] == [16384, 32768, 65536, 131072] for m in alone)'
tap_ok "... and ends with small ones" judge 'all(m[-1] <= 16384 and m[-2] <= 16384 and m[-3] <= 32768 for m in alone)'
tap_ok "of several at once all are long but the last" judge 'all(min(m[:-1]) == 131072 for m in crowd[:-1])'
MPIRUN_ARGS="$args --mca btl_shm_parts_max 0" tap_ok "8 of 256 KiB at once arrive" "$top_builddir/test/mpi/pieces" middle
few() { count=$(grep -o '"copied piece"' "$tap_dir/trace-0.json" | wc -l); [ "$count" -ge 24 ] && [ "$count" -le 40 ]; }
tap_ok "... in 64 KiB and what is left" few
export MPIRUN_ARGS="$args"
tap_ok "48 messages of two MiB arrive by turns" "$top_builddir/test/mpi/pieces" turns
tap_ok "... nearly all in parts" in_pieces 0 8
unnamed() {
    ! MPIRUN_ARGS="--mca pml_base_trace_links $tap_dir/trace.json" "$top_builddir/test/mpi/pieces" turns >"$tap_dir/out" 2>&1 &&
        grep -q 'must have %r' "$tap_dir/out" && [ ! -e "$tap_dir/trace.json" ]
}
tap_ok "one trace for all processes is refused" unnamed
# fetched RANK LEAST MOST: so many messages have come so to a rank.
fetched() { count=$(grep -o '"name": "fetched",' "$tap_dir/trace-$1.json" | wc -l); echo "# fetched: $count"; [ "$count" -ge "$2" ] && [ "$count" -le "$3" ]; }
# reads TEST RANK ARGUMENTS LEAST MOST
reads() { MPIRUN_ARGS="$3 --mca pml_base_trace_links $tap_dir/trace-%r.json" "$top_builddir/test/mpi/pieces" "$1" && fetched "$2" "$4" "$5"; }
if reads turns 0 "--mca btl shm,self --mca btl_shm_single_copy always --mca btl_shm_parts_max 0" 1 48 >/dev/null 2>&1; then
    tap_ok "where single copies are always wanted all are fetched" reads turns 0 "--mca btl shm,self --mca btl_shm_single_copy always" 48 48
    tap_ok "... also what would go whole to a receiver that is behind" reads behind 1 "--mca btl shm,self --mca btl_shm_single_copy always" 128 128
    tap_ok "where they are measured, at least those that begin the first trial" reads turns 0 "--mca btl shm,self" 4 16
    tap_ok "... of these as well" reads behind 1 "--mca btl shm,self --mca btl_shm_parts_max 0" 20 96
else
    tap_skip "fetching instead of parts" "a process may not read another's memory here"
fi
export PIECES_WORDS="$tap_dir/words"
head -c 8 /dev/zero >"$PIECES_WORDS"
tap_ok "48 that cross 48 others arrive" "$top_builddir/test/mpi/pieces" crossing
tap_ok "... nearly all in pieces" in_pieces 40 48
tap_ok "48 that come before their receives arrive" "$top_builddir/test/mpi/pieces" early
tap_ok "... nearly all in pieces" in_pieces 40 48

head -c 8 /dev/zero >"$PIECES_WORDS"
MPIRUN_ARGS="--mca btl shm,self --mca btl_shm_warm 4" \
    tap_ok "of streams both ways what is sent goes out, though the sender then computes" "$top_builddir/test/mpi/pieces" computing
for pml in teg dr; do
    head -c 8 /dev/zero >"$PIECES_WORDS"
    MPIRUN_ARGS="--mca pml $pml --mca btl shm,self --mca btl_shm_single_copy never" \
        tap_ok "$pml: who waits for the first of many does not wait for the copies of all" "$top_builddir/test/mpi/pieces" first_of_many
    head -c 8 /dev/zero >"$PIECES_WORDS"
    MPIRUN_ARGS="--mca pml $pml --mca btl tcp,self" \
        tap_ok "$pml over tcp alone: to send 200 KiB does not wait for the receiver's program" "$top_builddir/test/mpi/pieces" sent
    MPIRUN_ARGS="--mca pml $pml --mca btl shm,self --mca btl_shm_single_copy never --mca btl_shm_parts_max 0 --mca pml_base_past_min 1" \
        tap_ok "$pml: all arrive that are written past the caches" "$top_builddir/test/mpi/pieces" turns
    MPIRUN_ARGS="--mca pml $pml --mca btl shm,self --mca btl_shm_single_copy never --mca btl_shm_parts_max 0 --mca pml_base_past_measured_min 1" \
        tap_ok "$pml: ... where that is measured" "$top_builddir/test/mpi/pieces" turns
done
tap_end
