#!/bin/sh
# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# A random mix of messages over links that die and come back as a seed says, under teg, chaos and dr.
# The links are a BTL built here, against the two public headers alone. STRANDS_SEEDS="7 8 9" runs
# other seeds.
here=${top_builddir:-..}/test/mpi
top=${top_srcdir:-../..}
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
trap 'exit 143' TERM INT HUP
mkdir -p "$dir/include/hawser"
cp "$top/ompi/include/hawser/btl.h" "$top/opal/include/hawser/component.h" "$dir/include/hawser"
${CC:-cc} -std=c11 -D_DEFAULT_SOURCE -O2 -g -Wall -Wextra -Werror -fPIC -shared -fvisibility=hidden \
    -I"$dir/include" -o "$dir/mca_btl_strand.so" "$top/test/btl/strand.c" || exit 1
count=0
failed=0
while read -r program test args; do
    case $program in '' | '#'*) continue ;; esac
    for seed in ${STRANDS_SEEDS:-1}; do
        count=$((count + 1))
        unset STRANDS_FAILURES
        case $args in *life*) ;; *) STRANDS_FAILURES=1 && export STRANDS_FAILURES ;; esac
        output=$(MPI_TEST_JUDGE=1 STRANDS_SEED=$seed OMPI_MCA_mca_base_component_path="$dir" \
            MPIRUN_ARGS="--mca btl strand,self --mca btl_strand_seed $seed $args" \
            "$here/$program" "$test" 2>&1 </dev/null)
        if [ $? -eq 0 ]; then
            echo "ok $count - $program $test $args, seed $seed"
        else
            failed=1
            echo "not ok $count - $program $test $args, seed $seed"
            printf '%s\n' "$output" | grep -v '^ok' | sed 's/^/# /' | head -40
        fi
    done
done <<LIST
strands mix --mca btl_strand_life 0
strands mix
strands pair
strands mix --mca btl_strand_links 2 --mca btl_strand_fade 100
strands mix --mca btl_strand_links 1
strands pair --mca btl_strand_links 1 --mca btl_strand_get 1
strands pair --mca btl_strand_links 1 --mca btl_strand_get 2
strands mix --mca btl_strand_links 1 --mca btl_strand_get 2
strands mix --mca btl_strand_links 2 --mca btl_strand_get 2 --mca pml_base_stripe best
strands mix --mca pml dr --mca btl_strand_links 1 --mca btl_strand_get 2
strands pair --mca btl_strand_links 4 --mca btl_strand_rate 200000000
strands mix --mca pml chaos --mca btl_strand_links 2
strands mix --mca pml dr --mca btl_strand_links 2
strands pair --mca pml dr --mca btl_strand_links 1
# Pieces that are still on their way to their place when another link brings them again.
strands mix --mca pml dr --mca btl_strand_slow 2 --mca btl_strand_life 40
strands no-way-back --mca btl_strand_life 0 --mca btl_strand_links 1 --mca btl_strand_early 1 --mca pml_base_path_timeout 1
strands cut-off --mca btl_strand_links 2 --mca btl_strand_final 1 --mca pml_base_path_timeout 1
LIST
echo "1..$count"
exit $failed
