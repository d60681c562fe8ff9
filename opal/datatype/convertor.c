/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Packing and unpacking of any part of a message, for peers of the same architecture. */
#include "opal/datatype/convertor.h"

#include <stdlib.h>

#include "opal/datatype/copy.h"
#include "opal/datatype/walk.h"
#include "opal/constants.h"

/*
 * Copies of a short body are moved by columns: block by block of the body, each through a number of
 * copies at once, so that the inner loop has a constant length. A tile is the number of copies
 * whose memory stays in the first-level cache meanwhile.
 */
enum { TILE_BYTES = 16384, TILE_MIN_COPIES = 4, TILE_MAX_COPIES = 512 };

enum { CACHE_LINE = 64 };

int opal_convertor_init(opal_convertor_t *conv, const opal_datatype_t *type, size_t count,
                        const void *buffer, const opal_arch_t *remote)
{
    int rc;

    conv->base = (char *) (uintptr_t) buffer;
    conv->remote = NULL;
    conv->layout = type->layout;
    if (NULL != remote && !opal_arch_equal(remote, opal_arch_local())) {
        rc = opal_arch_check(remote);
        for (uint32_t i = 0; i < type->layout->n_basics && OPAL_SUCCESS == rc; i++) {
            rc = opal_arch_converts(remote, type->layout->basics[i].basic) ? OPAL_SUCCESS : OPAL_ERR_NOT_SUPPORTED;
        }
        if (OPAL_SUCCESS == rc) {
            rc = opal_layout_root(type->layout, count, type->extent, &conv->root);
        }
        if (OPAL_SUCCESS != rc) {
            return rc;
        }
        conv->remote = remote;
        return opal_remote_size(type->layout, count, remote, &conv->size);
    }
    rc = opal_layout_root(opal_layout_bytes(type->layout), count, type->extent, &conv->root);
    conv->size = conv->root.size;
    return rc;
}

/* ---- Moving data between memory and packed form ---- */

static void move_layout(const opal_layout_t *layout, uintptr_t mem, size_t skip, size_t len,
                        uintptr_t packed, bool pack);

static void move_blocks(const opal_node_t *node, uintptr_t mem, ptrdiff_t mem_stride,
                        size_t n, uintptr_t packed, bool pack)
{
    ptrdiff_t len = (ptrdiff_t) node->blocklen;

    if (1 == n) {
        opal_copy_move(mem, packed, node->blocklen, pack);
    } else if (pack) {
        opal_copy_strided(packed, len, mem, mem_stride, n, node->blocklen);
    } else {
        opal_copy_strided(mem, mem_stride, packed, len, n, node->blocklen);
    }
}

/* A table from `block` on. */
static opal_copy_table_t table_at(const opal_block_table_t *table, size_t block)
{
    const size_t skip = block * (table->narrow ? sizeof(int32_t) : sizeof(ptrdiff_t));

    return (opal_copy_table_t) {
        .disp = (const char *) table->disp + skip,
        .offset = NULL == table->offset ? NULL : (const char *) table->offset + skip,
        .narrow = table->narrow,
    };
}

/* Whole blocks, from `block` on. */
static void move_whole_blocks(const opal_node_t *node, uintptr_t mem, size_t block, size_t n,
                              uintptr_t packed, bool pack)
{
    mem += (uintptr_t) node->disp;
    switch (node->kind) {
    case OPAL_NODE_VECTOR:
        mem += (uintptr_t) block * (uintptr_t) node->stride;
        move_blocks(node, mem, node->stride, n, packed, pack);
        break;
    case OPAL_NODE_DISPS:
        opal_copy_table(mem, table_at(node->u.table, block), packed, n, node->blocklen, pack);
        break;
    default:
        opal_copy_uneven(mem, table_at(node->u.table, block), n, packed, pack);
    }
}

/* Packed bytes [skip, skip + len) of a leaf. */
static void move_leaf(const opal_node_t *node, uintptr_t mem, size_t skip, size_t len,
                      uintptr_t packed, bool pack)
{
    opal_leaf_place_t first;
    opal_leaf_place_t last;

    if (len == node->size) {
        move_whole_blocks(node, mem, 0, node->count, packed, pack);
        return;
    }
    first = opal_leaf_find(node, skip);
    if (first.within > 0) {
        size_t rest = opal_leaf_block_len(node, first.block) - first.within;
        size_t part = opal_min_size(rest, len);
        uintptr_t disp = (uintptr_t) opal_leaf_block_disp(node, first.block) + first.within;

        opal_copy_move(mem + disp, packed, part, pack);
        skip += part;
        len -= part;
        packed += part;
        first.block++;
    }
    if (0 == len) {
        return;
    }
    last = opal_leaf_find(node, skip + len);
    if (last.block > first.block) {
        move_whole_blocks(node, mem, first.block, last.block - first.block, packed, pack);
    }
    if (last.within > 0 && last.block < node->count) {
        opal_copy_move(mem + (uintptr_t) opal_leaf_block_disp(node, last.block),
                       packed + len - last.within, last.within, pack);
    }
}

/* `n` copies of a short body, a tile at a time. */
static void move_tiles(const opal_layout_t *body, uintptr_t mem, ptrdiff_t stride, size_t n,
                       uintptr_t packed, bool pack)
{
    size_t reach = stride < 0 ? (size_t) 0 - (size_t) stride : (size_t) stride;
    size_t tile = TILE_BYTES / (reach > body->size ? reach : body->size);
    ptrdiff_t packed_stride = (ptrdiff_t) body->size;

    tile = tile < TILE_MIN_COPIES ? TILE_MIN_COPIES : opal_min_size(tile, TILE_MAX_COPIES);
    while (n > 0) {
        size_t now = opal_min_size(n, tile);

        for (const opal_node_t *node = body->nodes; node < body->nodes + body->n_nodes; node++) {
            uintptr_t m = mem + (uintptr_t) node->disp;
            uintptr_t p = packed + node->offset;

            for (size_t b = 0; b < node->count; b++) {
                opal_copy_strided(pack ? p : m, pack ? packed_stride : stride, pack ? m : p,
                                  pack ? stride : packed_stride, now, node->blocklen);
                m += (uintptr_t) node->stride;
                p += node->blocklen;
            }
        }
        n -= now;
        mem += (uintptr_t) now * (uintptr_t) stride;
        packed += now * body->size;
    }
}

/* Neighbouring copies lie in one cache line, the blocks of each in many: columns of a matrix. */
static bool are_columns(const opal_layout_t *body, ptrdiff_t stride, size_t n)
{
    const opal_node_t *node = body->nodes;

    return n > 1 && 1 == body->n_nodes && OPAL_NODE_VECTOR == node->kind && llabs(stride) < CACHE_LINE &&
           llabs(node->stride) >= CACHE_LINE;
}

static void move_columns(const opal_layout_t *body, uintptr_t mem, ptrdiff_t stride, size_t n, uintptr_t packed,
                         bool pack)
{
    const opal_node_t *node = body->nodes;
    const opal_copy_columns_t shape = {node->stride, stride, node->count, n, node->blocklen};

    opal_copy_columns(mem + (uintptr_t) node->disp, &shape, packed, pack);
}

/* Whole copies of the body of a loop. */
static void move_copies(const opal_layout_t *body, uintptr_t mem, ptrdiff_t stride, size_t n,
                        uintptr_t packed, bool pack)
{
    if (0 != body->tile_blocks && n >= TILE_MIN_COPIES) {
        move_tiles(body, mem, stride, n, packed, pack);
        return;
    }
    if (are_columns(body, stride, n)) {
        move_columns(body, mem, stride, n, packed, pack);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        move_layout(body, mem, 0, body->size, packed, pack);
        mem += (uintptr_t) stride;
        packed += body->size;
    }
}

static void move_loop(const opal_node_t *node, uintptr_t mem, size_t skip, size_t len,
                      uintptr_t packed, bool pack)
{
    const opal_layout_t *body = node->u.body;
    size_t copy = skip / body->size;
    size_t within = skip % body->size;
    size_t whole;

    mem += (uintptr_t) node->disp + (uintptr_t) copy * (uintptr_t) node->stride;
    if (within > 0) {
        size_t part = opal_min_size(body->size - within, len);

        move_layout(body, mem, within, part, packed, pack);
        mem += (uintptr_t) node->stride;
        packed += part;
        len -= part;
    }
    whole = len / body->size;
    move_copies(body, mem, node->stride, whole, packed, pack);
    packed += whole * body->size;
    len -= whole * body->size;
    if (len > 0) {
        move_layout(body, mem + (uintptr_t) whole * (uintptr_t) node->stride, 0, len, packed,
                    pack);
    }
}

static void move_node(const opal_node_t *node, uintptr_t mem, size_t skip, size_t len,
                      uintptr_t packed, bool pack)
{
    if (OPAL_NODE_LOOP == node->kind) {
        move_loop(node, mem, skip, len, packed, pack);
    } else {
        move_leaf(node, mem, skip, len, packed, pack);
    }
}

/* Packed bytes [skip, skip + len) of a layout; len > 0. */
static void move_layout(const opal_layout_t *layout, uintptr_t mem, size_t skip, size_t len,
                        uintptr_t packed, bool pack)
{
    const opal_node_t *node = 0 == skip ? layout->nodes : opal_layout_find(layout, skip);

    skip -= node->offset;
    for (; len > 0; node++) {
        size_t part = opal_min_size(node->size - skip, len);

        move_node(node, mem, skip, part, packed, pack);
        skip = 0;
        packed += part;
        len -= part;
    }
}

static size_t move(const opal_convertor_t *conv, size_t offset, char *packed, size_t len,
                   bool pack)
{
    if (offset >= conv->size || 0 == len) {
        return 0;
    }
    len = opal_min_size(len, conv->size - offset);
    if (NULL != conv->remote) {
        opal_remote_move(conv, offset, packed, len, pack);
    } else {
        move_node(&conv->root, (uintptr_t) conv->base, offset, len, (uintptr_t) packed, pack);
    }
    return len;
}

size_t opal_convertor_pack_at(const opal_convertor_t *conv, size_t offset, void *dst, size_t max)
{
    return move(conv, offset, dst, max, true);
}

size_t opal_convertor_unpack_at(const opal_convertor_t *conv, size_t offset, const void *src,
                                size_t len)
{
    return move(conv, offset, (char *) (uintptr_t) src, len, false);
}

/* ---- With a checksum ---- */

/* Packing goes through a message by columns, a checksum byte after byte: they meet in pieces that the first-level cache
 * holds beside the memory they come from. */
enum { SUM_PIECE = 8192 };

size_t opal_convertor_pack_sum_at(const opal_convertor_t *conv, size_t offset, void *dst, size_t max,
                                  opal_checksum_kind_t kind, uint64_t *state)
{
    char *packed = dst;
    size_t done = 0, n;

    do {
        n = move(conv, offset + done, packed + done, opal_min_size(max - done, SUM_PIECE), true);
        *state = opal_checksum_update(kind, *state, packed + done, n);
        done += n;
    } while (SUM_PIECE == n);
    return done;
}

size_t opal_convertor_unpack_sum_at(const opal_convertor_t *conv, size_t offset, const void *src, size_t len,
                                    opal_checksum_kind_t kind, uint64_t *state)
{
    char *packed = (char *) (uintptr_t) src;
    size_t done = 0, n;

    len = offset < conv->size ? opal_min_size(len, conv->size - offset) : 0;
    while (done < len) {
        n = opal_min_size(len - done, SUM_PIECE);
        *state = opal_checksum_update(kind, *state, packed + done, n);
        move(conv, offset + done, packed + done, n, false);
        done += n;
    }
    return done;
}

/* ---- Describing data in place ---- */

typedef struct raw {
    struct iovec *iov;
    size_t n;
    size_t max;
    size_t bytes;
} raw_t;

/* False if there is no room for the piece. */
static bool raw_piece(raw_t *raw, uintptr_t mem, size_t len)
{
    struct iovec *last = raw->n > 0 ? &raw->iov[raw->n - 1] : NULL;

    if (NULL != last && (uintptr_t) last->iov_base + last->iov_len == mem) {
        last->iov_len += len;
    } else if (raw->n == raw->max) {
        return false;
    } else {
        raw->iov[raw->n++] = (struct iovec) {(void *) mem, len};
    }
    raw->bytes += len;
    return true;
}

static bool raw_leaf(raw_t *raw, const opal_node_t *node, uintptr_t mem, size_t skip, size_t len)
{
    opal_leaf_place_t place = opal_leaf_find(node, skip);

    while (len > 0) {
        size_t part = opal_min_size(opal_leaf_block_len(node, place.block) - place.within, len);
        uintptr_t disp = (uintptr_t) opal_leaf_block_disp(node, place.block) + place.within;

        if (!raw_piece(raw, mem + disp, part)) {
            return false;
        }
        place.block++;
        place.within = 0;
        len -= part;
    }
    return true;
}

static bool raw_node(raw_t *raw, const opal_node_t *node, uintptr_t mem, size_t skip, size_t len);

static bool raw_layout(raw_t *raw, const opal_layout_t *layout, uintptr_t mem, size_t skip,
                       size_t len)
{
    const opal_node_t *node = opal_layout_find(layout, skip);

    skip -= node->offset;
    for (; len > 0; node++) {
        size_t part = opal_min_size(node->size - skip, len);

        if (!raw_node(raw, node, mem, skip, part)) {
            return false;
        }
        skip = 0;
        len -= part;
    }
    return true;
}

static bool raw_node(raw_t *raw, const opal_node_t *node, uintptr_t mem, size_t skip, size_t len)
{
    const opal_layout_t *body = node->u.body;
    size_t copy;

    if (OPAL_NODE_LOOP != node->kind) {
        return raw_leaf(raw, node, mem, skip, len);
    }
    copy = skip / body->size;
    skip %= body->size;
    mem += (uintptr_t) node->disp + (uintptr_t) copy * (uintptr_t) node->stride;
    while (len > 0) {
        size_t part = opal_min_size(body->size - skip, len);

        if (!raw_layout(raw, body, mem, skip, part)) {
            return false;
        }
        skip = 0;
        len -= part;
        mem += (uintptr_t) node->stride;
    }
    return true;
}

size_t opal_convertor_raw_at(const opal_convertor_t *conv, size_t offset, struct iovec *iov,
                             size_t *n, size_t max)
{
    raw_t raw = {.iov = iov, .max = *n};

    if (NULL == conv->remote && offset < conv->size && max > 0) {
        raw_node(&raw, &conv->root, (uintptr_t) conv->base, offset,
                 opal_min_size(max, conv->size - offset));
    }
    *n = raw.n;
    return raw.bytes;
}

/* ---- Borders of elements ---- */

size_t opal_convertor_local_size(const opal_convertor_t *conv, size_t bytes)
{
    bytes = opal_min_size(bytes, conv->size);
    return NULL == conv->remote ? bytes : opal_remote_local_size(conv, bytes);
}

size_t opal_convertor_align(const opal_convertor_t *conv, size_t offset)
{
    const opal_layout_t *layout = conv->layout;
    const opal_node_t *node;
    size_t within;

    if (offset >= conv->size) {
        return conv->size;
    }
    if (NULL != conv->remote) {
        return opal_remote_align(conv, offset);
    }
    for (within = offset;; layout = node->u.body) {
        within %= layout->size;
        node = opal_layout_find(layout, within);
        within -= node->offset;
        if (OPAL_NODE_LOOP != node->kind) {
            return offset - within % opal_basic_info[node->basic].size;
        }
    }
}

/* ---- From one buffer to another of the same layout ---- */

static void copy_layout(const opal_layout_t *layout, uintptr_t dst, uintptr_t src);

static void copy_node(const opal_node_t *node, uintptr_t dst, uintptr_t src)
{
    if (OPAL_NODE_VECTOR == node->kind) {
        opal_copy_strided(dst + (uintptr_t) node->disp, node->stride,
                          src + (uintptr_t) node->disp, node->stride, node->count,
                          node->blocklen);
        return;
    }
    for (size_t i = 0; i < node->count; i++) {
        if (OPAL_NODE_LOOP == node->kind) {
            uintptr_t disp = (uintptr_t) node->disp + (uintptr_t) i * (uintptr_t) node->stride;

            copy_layout(node->u.body, dst + disp, src + disp);
        } else {
            uintptr_t disp = (uintptr_t) opal_leaf_block_disp(node, i);

            opal_copy_bytes(dst + disp, src + disp, opal_leaf_block_len(node, i));
        }
    }
}

static void copy_layout(const opal_layout_t *layout, uintptr_t dst, uintptr_t src)
{
    for (size_t i = 0; i < layout->n_nodes; i++) {
        copy_node(&layout->nodes[i], dst, src);
    }
}

int opal_datatype_copy(const opal_datatype_t *type, size_t count, void *dst, const void *src)
{
    opal_node_t root;
    int rc = opal_layout_root(opal_layout_bytes(type->layout), count, type->extent, &root);

    if (OPAL_SUCCESS == rc && root.size > 0 && dst != src) {
        copy_node(&root, (uintptr_t) dst, (uintptr_t) src);
    }
    return rc;
}
