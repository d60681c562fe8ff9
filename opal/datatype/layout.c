/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Layout graphs: making them from nodes, folding copies of them into one node, freeing them. */
#include "opal/datatype/layout.h"

#include <stdlib.h>
#include <string.h>

#include "opal/datatype/sequence.h"
#include "opal/constants.h"

/* Nodes are copied rather than shared up to this many, so that neighbours can be merged. */
enum { INLINE_NODES = 16 };
/* Fewer irregular runs than this stay single nodes: cheaper to walk, and fit for tiles. */
enum { MIN_TABLE = 17 };
/* An arithmetic progression this long is worth breaking a table for. */
enum { MIN_PROGRESSION = 8 };
/* What opal_layout_t.tile_blocks covers; see the tile loop in convertor.c. */
enum { TILE_MAX_BLOCKS = 32, TILE_MAX_BYTES = 1024 };

/* ---- References ---- */

static void table_release(opal_block_table_t *table)
{
    if (1 == atomic_fetch_sub_explicit(&table->refs, 1, memory_order_acq_rel)) {
        free(table);
    }
}

static void node_retain(const opal_node_t *node)
{
    if (OPAL_NODE_LOOP == node->kind) {
        opal_layout_retain(node->u.body);
    } else if (OPAL_NODE_VECTOR != node->kind) {
        atomic_fetch_add_explicit(&node->u.table->refs, 1, memory_order_relaxed);
    }
}

static void node_release(const opal_node_t *node)
{
    if (OPAL_NODE_LOOP == node->kind) {
        opal_layout_release(node->u.body);
    } else if (OPAL_NODE_VECTOR != node->kind) {
        table_release(node->u.table);
    }
}

opal_layout_t *opal_layout_retain(opal_layout_t *layout)
{
    atomic_fetch_add_explicit(&layout->refs, 1, memory_order_relaxed);
    return layout;
}

void opal_layout_release(opal_layout_t *layout)
{
    if (NULL == layout ||
        1 != atomic_fetch_sub_explicit(&layout->refs, 1, memory_order_acq_rel)) {
        return;
    }
    for (size_t i = 0; i < layout->n_nodes; i++) {
        node_release(&layout->nodes[i]);
    }
    opal_layout_release(layout->bytes);
    free(layout);
}

/* ---- Search ---- */

const opal_node_t *opal_layout_find(const opal_layout_t *layout, size_t offset)
{
    size_t low = 0;
    size_t high = layout->n_nodes;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (layout->nodes[middle].offset <= offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &layout->nodes[low];
}

/* ---- Folding ---- */

static void make_run(opal_node_t *node, ptrdiff_t disp, size_t len, uint8_t basic)
{
    *node = (opal_node_t) {
        .kind = OPAL_NODE_VECTOR,
        .basic = basic,
        .count = 1,
        .blocklen = len,
        .stride = (ptrdiff_t) len,
        .disp = disp,
        .size = len,
    };
}

/* True if copies of `node`, `stride` apart, continue its own progression. */
static bool continues(const opal_node_t *node, ptrdiff_t stride)
{
    ptrdiff_t span;

    return !__builtin_mul_overflow((ptrdiff_t) node->count, node->stride, &span) &&
           span == stride;
}

/* `count` copies of a single VECTOR or LOOP node as one node of the same kind, if they are one. */
static bool fold_single(const opal_node_t *inner, size_t count, ptrdiff_t stride, size_t size,
                        opal_node_t *node)
{
    bool run = OPAL_NODE_VECTOR == inner->kind && 1 == inner->count;

    if (OPAL_NODE_VECTOR != inner->kind && OPAL_NODE_LOOP != inner->kind) {
        return false;
    }
    if (run && stride == (ptrdiff_t) inner->blocklen) {
        make_run(node, inner->disp, size, inner->basic);
        return true;
    }
    if (1 != inner->count && !continues(inner, stride)) {
        return false;
    }
    *node = *inner;
    node->stride = 1 == inner->count ? stride : inner->stride;
    node->count = inner->count * count;     /* at most size */
    node->size = size;
    return true;
}

int opal_layout_root(const opal_layout_t *layout, size_t count, ptrdiff_t stride,
                     opal_node_t *node)
{
    size_t size;

    if (0 == layout->size || 0 == count) {
        make_run(node, 0, 0, OPAL_BASIC_BYTE);
        node->count = 0;
        return OPAL_SUCCESS;
    }
    if (__builtin_mul_overflow(layout->size, count, &size) || size > (size_t) PTRDIFF_MAX) {
        return OPAL_ERR_VALUE_OUT_OF_BOUNDS;
    }
    if (1 == layout->n_nodes) {
        if (1 == count) {
            *node = layout->nodes[0];
            return OPAL_SUCCESS;
        }
        if (fold_single(&layout->nodes[0], count, stride, size, node)) {
            node->offset = 0;
            return OPAL_SUCCESS;
        }
    }
    *node = (opal_node_t) {
        .kind = OPAL_NODE_LOOP,
        .count = count,
        .blocklen = layout->size,
        .stride = stride,
        .size = size,
        .u.body = (opal_layout_t *) (uintptr_t) layout,
    };
    return OPAL_SUCCESS;
}

/* ---- From nodes to a layout ---- */

static size_t saturating_add(size_t a, size_t b)
{
    return a + b < a ? SIZE_MAX : a + b;
}

static size_t saturating_mul(size_t a, size_t b)
{
    size_t product;

    return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

/* Adds the elements of a node to `counts`, which has an entry for every basic type. */
static void count_elements(const opal_node_t *node, size_t *counts)
{
    if (OPAL_NODE_LOOP != node->kind) {
        counts[node->basic] += node->size / opal_basic_info[node->basic].size;
        return;
    }
    for (uint32_t i = 0; i < node->u.body->n_basics; i++) {
        counts[node->u.body->basics[i].basic] += node->u.body->basics[i].count * node->count;
    }
}

static uint8_t tile_blocks(const opal_layout_t *layout)
{
    size_t blocks = 0;

    if (layout->size > TILE_MAX_BYTES) {
        return 0;
    }
    for (size_t i = 0; i < layout->n_nodes; i++) {
        if (OPAL_NODE_VECTOR != layout->nodes[i].kind) {
            return 0;
        }
        blocks += layout->nodes[i].count;   /* bounded by the size */
    }
    return blocks <= TILE_MAX_BLOCKS ? (uint8_t) blocks : 0;
}

/* Fills what follows from the nodes. */
static int summarise(opal_layout_t *layout, const size_t *counts)
{
    uint32_t b = 0;

    layout->depth = 1;
    for (size_t i = 0; i < layout->n_nodes; i++) {
        opal_node_t *node = &layout->nodes[i];

        node->offset = layout->size;
        if (__builtin_add_overflow(layout->size, node->size, &layout->size) ||
            layout->size > (size_t) PTRDIFF_MAX) {
            return OPAL_ERR_VALUE_OUT_OF_BOUNDS;
        }
        if (OPAL_NODE_LOOP == node->kind) {
            const opal_layout_t *body = node->u.body;

            layout->depth = layout->depth > body->depth ? layout->depth : body->depth + 1;
            layout->runs = saturating_add(layout->runs, saturating_mul(body->runs, node->count));
        } else {
            layout->runs = saturating_add(layout->runs, node->count);
        }
    }
    for (int basic = 0; basic < OPAL_BASIC_COUNT; basic++) {
        if (0 != counts[basic]) {
            layout->basics[b++] = (opal_basic_count_t) {(opal_basic_t) basic, counts[basic]};
        }
    }
    layout->tile_blocks = tile_blocks(layout);
    return layout->depth > OPAL_LAYOUT_MAX_DEPTH ? OPAL_ERR_VALUE_OUT_OF_BOUNDS : OPAL_SUCCESS;
}

/* Adds the merged form of one node of a layout with several basic types. */
static void add_erased(opal_sequence_t *seq, const opal_node_t *node)
{
    opal_layout_t *body;

    if (OPAL_NODE_VECTOR == node->kind && node->count < MIN_PROGRESSION) {
        for (size_t i = 0; i < node->count; i++) {
            opal_sequence_add_run(seq, node->disp + (ptrdiff_t) i * node->stride, node->blocklen,
                                  OPAL_BASIC_BYTE);
        }
    } else if (OPAL_NODE_LOOP == node->kind) {
        body = node->u.body;
        opal_sequence_add(seq, NULL == body->bytes ? body : body->bytes, node->count,
                          node->stride, node->disp);
    } else {
        opal_sequence_add_node(seq, node, 0);
    }
}

static int make_bytes_twin(opal_layout_t *layout)
{
    opal_sequence_t seq;
    int rc;

    opal_sequence_init(&seq, true, layout->n_nodes);
    for (size_t i = 0; i < layout->n_nodes; i++) {
        add_erased(&seq, &layout->nodes[i]);
    }
    rc = opal_sequence_finish(&seq, &layout->bytes);
    if (OPAL_SUCCESS == rc) {
        layout->runs = layout->bytes->runs;
    }
    return rc;
}

/* Takes over the references of the nodes, also on failure. */
static int layout_create(const opal_node_t *nodes, size_t n, bool erase, opal_layout_t **result)
{
    size_t counts[OPAL_BASIC_COUNT] = {0};
    uint32_t n_basics = 0;
    opal_layout_t *layout;
    size_t bytes = sizeof(*layout) + n * sizeof(nodes[0]);
    int rc;

    for (size_t i = 0; i < n && !erase; i++) {
        count_elements(&nodes[i], counts);
    }
    for (int basic = 0; basic < OPAL_BASIC_COUNT; basic++) {
        n_basics += 0 != counts[basic];
    }
    layout = calloc(1, bytes + n_basics * sizeof(opal_basic_count_t));
    if (NULL == layout) {
        for (size_t i = 0; i < n; i++) {
            node_release(&nodes[i]);
        }
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    atomic_init(&layout->refs, 1);
    layout->n_nodes = n;
    layout->n_basics = n_basics;
    layout->basics = (opal_basic_count_t *) &layout->nodes[n];
    if (n > 0) {
        memcpy(layout->nodes, nodes, n * sizeof(nodes[0]));
    }
    rc = summarise(layout, counts);
    if (OPAL_SUCCESS == rc && n_basics > 1) {
        rc = make_bytes_twin(layout);
    }
    if (OPAL_SUCCESS != rc) {
        opal_layout_release(layout);
        return rc;
    }
    *result = layout;
    return OPAL_SUCCESS;
}

/* ---- Sequences ---- */

/* Makes room for one more element in a growing array. */
static bool grow(opal_sequence_t *seq, void **array, size_t n, size_t *cap, size_t element)
{
    size_t wanted = n < 8 ? 8 : 2 * n;
    void *bigger;

    if (n < *cap) {
        return true;
    }
    bigger = wanted > SIZE_MAX / 2 / element ? NULL : realloc(*array, wanted * element);
    if (NULL == bigger) {
        seq->status = OPAL_ERR_OUT_OF_RESOURCE;
        return false;
    }
    *array = bigger;
    *cap = wanted;
    return true;
}

void opal_sequence_init(opal_sequence_t *seq, bool erase, size_t hint)
{
    *seq = (opal_sequence_t) {.erase = erase, .status = OPAL_SUCCESS};
    if (hint > 8 && hint < SIZE_MAX / 2 / sizeof(opal_run_t)) {
        seq->runs = malloc(hint * sizeof(opal_run_t));     /* only a hint: may fail */
        seq->cap_runs = NULL == seq->runs ? 0 : hint;
    }
}

void opal_sequence_add_run(opal_sequence_t *seq, ptrdiff_t disp, size_t len, uint8_t basic)
{
    if (OPAL_SUCCESS != seq->status || 0 == len) {
        return;
    }
    if (seq->erase) {
        basic = OPAL_BASIC_BYTE;
    }
    if (seq->n_runs > 0) {
        opal_run_t *last = &seq->runs[seq->n_runs - 1];

        if (last->basic == basic && last->disp + (ptrdiff_t) last->len == disp) {
            last->len += len;
            return;
        }
    }
    if (grow(seq, (void **) &seq->runs, seq->n_runs, &seq->cap_runs, sizeof(opal_run_t))) {
        seq->runs[seq->n_runs++] = (opal_run_t) {disp, len, basic};
    }
}

/* Appends a node, whose reference the sequence takes over. */
static void push_node(opal_sequence_t *seq, const opal_node_t *node)
{
    if (OPAL_SUCCESS == seq->status &&
        grow(seq, (void **) &seq->nodes, seq->n_nodes, &seq->cap_nodes, sizeof(opal_node_t))) {
        seq->nodes[seq->n_nodes++] = *node;
    } else {
        node_release(node);
    }
}

/* How many of the runs from `run` on are equal blocks at equal distances; at least 1. */
static size_t progression(const opal_run_t *run, size_t n, size_t limit)
{
    size_t k = 1;
    ptrdiff_t stride;

    if (n < 2 || __builtin_sub_overflow(run[1].disp, run[0].disp, &stride)) {
        return 1;
    }
    while (k < n && k < limit && run[k].len == run[0].len && run[k].basic == run[0].basic &&
           run[k].disp - run[k - 1].disp == stride) {
        k++;
    }
    return k;
}

static void push_vector(opal_sequence_t *seq, const opal_run_t *run, size_t count)
{
    opal_node_t node;

    make_run(&node, run->disp, run->len, run->basic);
    if (count > 1) {
        node.count = count;
        node.stride = run[1].disp - run[0].disp;
        if (__builtin_mul_overflow(count, run->len, &node.size)) {     /* blocks may overlap */
            seq->status = OPAL_ERR_VALUE_OUT_OF_BOUNDS;
            return;
        }
    }
    push_node(seq, &node);
}

/* The packed bytes of runs, which may overlap: their sum may not fit though their bounds do. */
static bool total_length(const opal_run_t *run, size_t n, size_t *size)
{
    *size = 0;
    for (size_t i = 0; i < n; i++) {
        if (__builtin_add_overflow(*size, run[i].len, size)) {
            return false;
        }
    }
    return true;
}

/* Blocks of one length are copied faster than uneven ones: where a few blocks have grown together
 * with their neighbours, and cutting them makes at most half as many again, they are cut. Returns the
 * length of all blocks then, or 0. `size`: of all runs. */
static size_t even_length(const opal_run_t *run, size_t n, size_t size)
{
    size_t unit = 0;

    for (size_t i = 0; i < n; i++) {
        size_t a = run[i].len;

        while (a > 0) { /* Euclid */
            size_t rest = unit % a;

            unit = a;
            a = rest;
        }
    }
    return size / unit <= n + n / 2 ? unit : 0;
}

/* Whether displacements from the first one on, and offsets, fit in 32 bits. */
static bool fits_narrow(const opal_run_t *run, size_t n, size_t size)
{
    if (size > UINT32_MAX) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        ptrdiff_t disp, end;

        if (__builtin_sub_overflow(run[i].disp, run[0].disp, &disp) || disp < INT32_MIN ||
            __builtin_add_overflow(disp, (ptrdiff_t) run[i].len, &end) || end > INT32_MAX) {
            return false;
        }
    }
    return true;
}

/* A table of `count` blocks, to be filled; NULL if there is no memory for it. */
static opal_block_table_t *table_create(size_t count, bool has_offsets, bool narrow)
{
    const size_t disps = count * (narrow ? sizeof(int32_t) : sizeof(ptrdiff_t));
    const size_t offsets = has_offsets ? (count + 1) * (narrow ? sizeof(uint32_t) : sizeof(size_t)) : 0;
    opal_block_table_t *table = malloc(sizeof(*table) + disps + offsets);

    if (NULL != table) {
        atomic_init(&table->refs, 1);
        table->narrow = narrow;
        table->disp = table->memory;
        table->offset = has_offsets ? (char *) table->memory + disps : NULL;
    }
    return table;
}

static void table_set_disp(opal_block_table_t *table, size_t i, ptrdiff_t disp)
{
    if (table->narrow) {
        ((int32_t *) table->disp)[i] = (int32_t) disp;
    } else {
        ((ptrdiff_t *) table->disp)[i] = disp;
    }
}

static void table_set_offset(opal_block_table_t *table, size_t i, size_t offset)
{
    if (table->narrow) {
        ((uint32_t *) table->offset)[i] = (uint32_t) offset;
    } else {
        ((size_t *) table->offset)[i] = offset;
    }
}

/* The entries of runs, cut into blocks of `unit` bytes if that is not 0. */
static void table_fill(opal_block_table_t *table, const opal_run_t *run, size_t n, ptrdiff_t base, size_t unit)
{
    size_t k = 0, offset = 0;

    for (size_t i = 0; i < n; i++) {
        for (size_t at = 0; at < run[i].len; at += unit > 0 ? unit : run[i].len) {
            table_set_disp(table, k, run[i].disp - base + (ptrdiff_t) at);
            if (NULL != table->offset) {
                table_set_offset(table, k, offset);
            }
            k++;
        }
        offset += run[i].len;
    }
    if (NULL != table->offset) {
        table_set_offset(table, k, offset);
    }
}

/* Runs of one basic type as a DISPS or BLOCKS node. */
static void push_table(opal_sequence_t *seq, const opal_run_t *run, size_t n)
{
    opal_node_t node = {.kind = OPAL_NODE_BLOCKS, .basic = run->basic, .count = n,
                        .blocklen = run->len};

    if (!total_length(run, n, &node.size)) {
        seq->status = OPAL_ERR_VALUE_OUT_OF_BOUNDS;
        return;
    }
    const size_t unit = even_length(run, n, node.size);
    const bool narrow = fits_narrow(run, n, node.size);

    if (unit > 0) {
        node.kind = OPAL_NODE_DISPS;
        node.count = node.size / unit;
        node.blocklen = unit;
    }
    node.disp = narrow ? run->disp : 0;
    node.u.table = table_create(node.count, 0 == unit, narrow);
    if (NULL == node.u.table) {
        seq->status = OPAL_ERR_OUT_OF_RESOURCE;
        return;
    }
    table_fill(node.u.table, run, n, node.disp, unit);
    push_node(seq, &node);
}

/* Runs without a pattern: tables where there are many of one basic type, else single nodes. */
static void push_irregular(opal_sequence_t *seq, const opal_run_t *run, size_t n)
{
    for (size_t i = 0, same; i < n; i += same) {
        for (same = 1; i + same < n && run[i + same].basic == run[i].basic; same++) {
        }
        if (same >= MIN_TABLE) {
            push_table(seq, &run[i], same);
            continue;
        }
        for (size_t k = 0; k < same; k++) {
            push_vector(seq, &run[i + k], 1);
        }
    }
}

/* Turns the pending runs into nodes. */
static void flush(opal_sequence_t *seq)
{
    const opal_run_t *run = seq->runs;
    size_t n = seq->n_runs;
    size_t first = 0;       /* of the irregular runs not yet pushed */
    size_t i = 0;

    while (i < n && OPAL_SUCCESS == seq->status) {
        size_t k = progression(&run[i], n - i, MIN_PROGRESSION);

        if (k < MIN_PROGRESSION && (k < n || k < 2)) {
            i++;
            continue;
        }
        k = progression(&run[i], n - i, n);
        push_irregular(seq, &run[first], i - first);
        push_vector(seq, &run[i], k);
        i += k;
        first = i;
    }
    push_irregular(seq, &run[first], n - first);
    seq->n_runs = 0;
}

void opal_sequence_add_node(opal_sequence_t *seq, const opal_node_t *node, ptrdiff_t disp)
{
    opal_node_t moved = *node;

    moved.disp += disp;
    if (OPAL_NODE_VECTOR == node->kind && 1 == node->count) {
        opal_sequence_add_run(seq, moved.disp, node->blocklen, node->basic);
        return;
    }
    flush(seq);
    node_retain(node);
    push_node(seq, &moved);
}

void opal_sequence_add(opal_sequence_t *seq, opal_layout_t *layout, size_t count,
                       ptrdiff_t stride, ptrdiff_t disp)
{
    opal_node_t node;
    int rc;

    if (OPAL_SUCCESS != seq->status || 0 == count || 0 == layout->size) {
        return;
    }
    if (layout->n_nodes > 1 && count <= INLINE_NODES &&
        count * layout->n_nodes <= INLINE_NODES) {
        for (size_t c = 0; c < count; c++) {
            for (size_t i = 0; i < layout->n_nodes; i++) {
                opal_sequence_add_node(seq, &layout->nodes[i], disp + (ptrdiff_t) c * stride);
            }
        }
        return;
    }
    rc = opal_layout_root(layout, count, stride, &node);
    if (OPAL_SUCCESS != rc) {
        seq->status = rc;
        return;
    }
    opal_sequence_add_node(seq, &node, disp);
}

/* The layout that a single LOOP node of one copy at 0 stands for: no need to wrap it. */
static opal_layout_t *sole_body(const opal_sequence_t *seq)
{
    const opal_node_t *node = seq->nodes;

    if (1 == seq->n_nodes && OPAL_NODE_LOOP == node->kind && 1 == node->count &&
        0 == node->disp) {
        return node->u.body;
    }
    return NULL;
}

int opal_sequence_finish(opal_sequence_t *seq, opal_layout_t **layout)
{
    int rc;

    if (seq->n_runs > 0) {
        flush(seq);
    }
    rc = seq->status;
    if (OPAL_SUCCESS != rc) {
        for (size_t i = 0; i < seq->n_nodes; i++) {
            node_release(&seq->nodes[i]);
        }
    } else if (NULL != sole_body(seq)) {
        *layout = sole_body(seq);       /* with the node's reference */
    } else {
        rc = layout_create(seq->nodes, seq->n_nodes, seq->erase, layout);
    }
    free(seq->nodes);
    free(seq->runs);
    return rc;
}
