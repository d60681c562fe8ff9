/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Which process gets which place in a grid: fewer edges between nodes than before, counted one by
 * one; or nobody moves. The file is included, as what it decides by cannot be had on one host. */
#include "ompi/mca/topo/base/topo_base_place.c"

#include "support/tap.h"

enum { MOST = 512 };

/* Edges between processes of different nodes; place[] says who is where. */
static int count_cut(int ndims, const int *dims, const int *periods, int n, const int *nodes,
                     const int *order)
{
    int cut = 0;
    for (int at = 0; at < n; at++) {
        for (int i = ndims - 1, stride = 1; i >= 0; stride *= dims[i--]) {
            int coordinate = at / stride % dims[i];
            int next = coordinate + 1 < dims[i] ? at + stride : at - coordinate * stride;
            if (next != at && (coordinate + 1 < dims[i] || periods[i])) {
                cut += nodes[order ? order[at] : at] != nodes[order ? order[next] : next];
            }
        }
    }
    return cut;
}

/* The cut after placing, or -1: nobody moved, or -2: it is no permutation. */
static int placed(int ndims, const int *dims, const int *periods, int n, const int *nodes)
{
    int order[MOST], seen[MOST] = {0}, best[4], shape[4], found[MOST] = {0}, count = 0;
    plan_t plan = {.ndims = ndims, .dims = dims, .periods = periods, .best = best, .shape = shape};
    for (int i = 0; i < n; i++) {
        count = nodes[i] >= count ? nodes[i] + 1 : count;
    }
    if (!place(&plan, nodes, n, count, seen, order)) {
        return -1;
    }
    for (int i = 0; i < n; i++) {
        if (order[i] < 0 || order[i] >= n || found[order[i]]++) {
            return -2;
        }
    }
    return count_cut(ndims, dims, periods, n, nodes, order);
}

static void fill(int *nodes, int n, int count, bool in_turn)
{
    for (int i = 0; i < n; i++) {
        nodes[i] = in_turn ? i % count : i / (n / count);
    }
}

int main(void)
{
    int nodes[MOST];
    const int flat[3] = {0, 0, 0}, round[3] = {1, 1, 1};

    tap_start(30);
    fill(nodes, 64, 4, false);
    TAP_OK(count_cut(2, (int[]) {8, 8}, flat, 64, nodes, NULL) == 24 &&
               placed(2, (int[]) {8, 8}, flat, 64, nodes) == 16, "slabs of 2 x 8 become blocks of 4 x 4");
    TAP_OK(placed(2, (int[]) {8, 8}, round, 64, nodes) == -1, "periodic, that gains nothing: nobody moves");
    fill(nodes, 64, 4, true);
    TAP_OK(placed(2, (int[]) {8, 8}, round, 64, nodes) == 32, "ranks dealt out in turn: blocks or slabs");
    fill(nodes, 512, 64, false);
    int before = count_cut(3, (int[]) {8, 8, 8}, round, 512, nodes, NULL);
    int after = placed(3, (int[]) {8, 8, 8}, round, 512, nodes);
    TAP_OK(before == 1024 && after == 768, "cubes of 2 x 2 x 2 instead of rows (%d, %d)", before, after);
    fill(nodes, 12, 3, false);
    nodes[11] = 0;
    TAP_OK(placed(2, (int[]) {4, 3}, flat, 12, nodes) == -1, "nodes with unlike numbers: nobody moves");
    fill(nodes, 12, 1, false);
    TAP_OK(placed(2, (int[]) {4, 3}, flat, 12, nodes) == -1, "one node");
    fill(nodes, 12, 12, false);
    TAP_OK(placed(2, (int[]) {4, 3}, flat, 12, nodes) == -1, "one process on each");
    fill(nodes, 14, 2, false);
    TAP_OK(placed(2, (int[]) {7, 2}, flat, 14, nodes) == -1, "7 x 2 on two nodes: columns would be worse");
    return tap_end();
}
