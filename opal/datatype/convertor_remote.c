/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Packing and unpacking in the form of a foreign architecture. Offsets count bytes of that form
 * ("wire bytes"); where its sizes differ from ours, a level is searched node by node. */
#include <string.h>

#include "opal/datatype/walk.h"
#include "opal/constants.h"

/* One walk: what stays the same on the way down. */
typedef struct remote_walk {
    const opal_arch_t *arch;
    bool pack;
} remote_walk_t;

static size_t wire_layout_size(const opal_layout_t *layout, const opal_arch_t *arch)
{
    size_t bytes = 0;

    for (uint32_t i = 0; i < layout->n_basics; i++) {
        bytes += layout->basics[i].count * arch->size[layout->basics[i].basic];
    }
    return bytes;
}

static size_t wire_node_size(const opal_node_t *node, const opal_arch_t *arch)
{
    if (OPAL_NODE_LOOP == node->kind) {
        return node->count * wire_layout_size(node->u.body, arch);
    }
    return node->size / opal_basic_info[node->basic].size * arch->size[node->basic];
}

int opal_remote_size(const opal_layout_t *layout, size_t count, const opal_arch_t *arch,
                     size_t *bytes)
{
    size_t total = 0;

    for (uint32_t i = 0; i < layout->n_basics; i++) {
        size_t elements;

        if (__builtin_mul_overflow(layout->basics[i].count, count, &elements) ||
            __builtin_mul_overflow(elements, arch->size[layout->basics[i].basic], &elements) ||
            __builtin_add_overflow(total, elements, &total)) {
            return OPAL_ERR_VALUE_OUT_OF_BOUNDS;
        }
    }
    *bytes = total;
    return total > (size_t) PTRDIFF_MAX ? OPAL_ERR_VALUE_OUT_OF_BOUNDS : OPAL_SUCCESS;
}

/* Wire bytes [within, within + len) of one element at `mem`. Unpacking a part of an element
 * replaces those bytes in the wire form of what is there, which the other parts complete. */
static void move_part(const remote_walk_t *walk, opal_basic_t basic, char *mem, size_t within,
                      size_t len, char *packed)
{
    char wire[OPAL_BASIC_MAX_SIZE];

    opal_arch_to_remote(walk->arch, basic, wire, mem, 1);
    if (walk->pack) {
        memcpy(packed, wire + within, len);
    } else {
        memcpy(wire + within, packed, len);
        opal_arch_from_remote(walk->arch, basic, mem, wire, 1);
    }
}

/* Wire bytes [within, within + len) of the elements that begin at `mem`. */
static void move_run(const remote_walk_t *walk, opal_basic_t basic, char *mem, size_t within,
                     size_t len, char *packed)
{
    size_t wire_size = walk->arch->size[basic];
    size_t local_size = opal_basic_info[basic].size;
    size_t n;

    mem += within / wire_size * local_size;
    within %= wire_size;
    if (within > 0) {
        size_t part = opal_min_size(wire_size - within, len);

        move_part(walk, basic, mem, within, part, packed);
        mem += local_size;
        packed += part;
        len -= part;
    }
    n = len / wire_size;
    if (walk->pack) {
        opal_arch_to_remote(walk->arch, basic, packed, mem, n);
    } else {
        opal_arch_from_remote(walk->arch, basic, mem, packed, n);
    }
    if (len % wire_size > 0) {
        move_part(walk, basic, mem + n * local_size, 0, len % wire_size, packed + n * wire_size);
    }
}

static void move_leaf(const remote_walk_t *walk, const opal_node_t *node, char *mem, size_t skip,
                      size_t len, char *packed)
{
    opal_basic_t basic = (opal_basic_t) node->basic;
    size_t wire_size = walk->arch->size[basic];
    size_t local_size = opal_basic_info[basic].size;
    opal_leaf_place_t place = opal_leaf_find(node, skip / wire_size * local_size);
    size_t within = place.within / local_size * wire_size + skip % wire_size;

    while (len > 0) {
        size_t block = opal_leaf_block_len(node, place.block) / local_size * wire_size;
        size_t part = opal_min_size(block - within, len);
        uintptr_t disp = (uintptr_t) opal_leaf_block_disp(node, place.block);

        move_run(walk, basic, (char *) ((uintptr_t) mem + disp), within, part, packed);
        place.block++;
        within = 0;
        packed += part;
        len -= part;
    }
}

static void move_layout(const remote_walk_t *walk, const opal_layout_t *layout, char *mem,
                        size_t skip, size_t len, char *packed);

static void move_node(const remote_walk_t *walk, const opal_node_t *node, char *mem, size_t skip,
                      size_t len, char *packed)
{
    size_t body;
    uintptr_t at;

    if (OPAL_NODE_LOOP != node->kind) {
        move_leaf(walk, node, mem, skip, len, packed);
        return;
    }
    body = wire_layout_size(node->u.body, walk->arch);
    at = (uintptr_t) mem + (uintptr_t) node->disp + skip / body * (uintptr_t) node->stride;
    skip %= body;
    while (len > 0) {
        size_t part = opal_min_size(body - skip, len);

        move_layout(walk, node->u.body, (char *) at, skip, part, packed);
        at += (uintptr_t) node->stride;
        skip = 0;
        packed += part;
        len -= part;
    }
}

static void move_layout(const remote_walk_t *walk, const opal_layout_t *layout, char *mem,
                        size_t skip, size_t len, char *packed)
{
    for (const opal_node_t *node = layout->nodes; len > 0; node++) {
        size_t bytes = wire_node_size(node, walk->arch);
        size_t part;

        if (skip >= bytes) {
            skip -= bytes;
            continue;
        }
        part = opal_min_size(bytes - skip, len);
        move_node(walk, node, mem, skip, part, packed);
        skip = 0;
        packed += part;
        len -= part;
    }
}

void opal_remote_move(const opal_convertor_t *conv, size_t offset, char *packed, size_t len,
                      bool pack)
{
    remote_walk_t walk = {.arch = conv->remote, .pack = pack};

    move_node(&walk, &conv->root, conv->base, offset, len, packed);
}

size_t opal_remote_local_size(const opal_convertor_t *conv, size_t bytes)
{
    const opal_layout_t *layout = conv->layout;
    size_t local = 0;

    while (bytes > 0) {
        const opal_node_t *node = layout->nodes;
        size_t wire = wire_layout_size(layout, conv->remote);

        local += bytes / wire * layout->size;
        bytes %= wire;
        for (; bytes > 0 && bytes >= (wire = wire_node_size(node, conv->remote)); node++) {
            bytes -= wire;
            local += node->size;
        }
        if (0 == bytes) {
            break;
        }
        if (OPAL_NODE_LOOP != node->kind) {
            size_t whole = opal_basic_info[node->basic].size;

            wire = conv->remote->size[node->basic];
            local += bytes / wire * whole;
            bytes %= wire;
            return local + opal_min_size(bytes, whole - 1);
        }
        layout = node->u.body;
    }
    return local;
}

size_t opal_remote_align(const opal_convertor_t *conv, size_t offset)
{
    const opal_layout_t *layout = conv->layout;
    size_t within = offset;

    for (;;) {
        const opal_node_t *node = layout->nodes;
        size_t bytes;

        within %= wire_layout_size(layout, conv->remote);
        while (within >= (bytes = wire_node_size(node, conv->remote))) {
            within -= bytes;
            node++;
        }
        if (OPAL_NODE_LOOP != node->kind) {
            return offset - within % conv->remote->size[node->basic];
        }
        layout = node->u.body;
    }
}
