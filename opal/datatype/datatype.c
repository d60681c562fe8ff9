/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Constructors of layouts with their bounds, and questions about them. */
#include "opal/datatype/datatype.h"

#include <stdlib.h>

#include "opal/datatype/sequence.h"
#include "opal/constants.h"

/* ---- Bounds ---- */

/* The bounds of what was added so far. Upper bounds are exclusive. */
typedef struct bounds {
    bool has_data;
    bool has_explicit;
    ptrdiff_t data_lb;
    ptrdiff_t data_ub;
    ptrdiff_t lb;               /* explicit ones */
    ptrdiff_t ub;
    uint32_t align;
} bounds_t;

/* [*lb, *ub) of `count` copies of [lb, ub), `stride` apart, the first moved by `disp`. */
static bool repeat_range(ptrdiff_t *lb, ptrdiff_t *ub, size_t count, ptrdiff_t stride,
                         ptrdiff_t disp)
{
    ptrdiff_t reach = 0;

    if (count > 1 && (count - 1 > (size_t) PTRDIFF_MAX ||
                      __builtin_mul_overflow((ptrdiff_t) (count - 1), stride, &reach))) {
        return false;
    }
    return !__builtin_add_overflow(*lb, disp, lb) && !__builtin_add_overflow(*ub, disp, ub) &&
           !__builtin_add_overflow(*lb, reach < 0 ? reach : 0, lb) &&
           !__builtin_add_overflow(*ub, reach > 0 ? reach : 0, ub);
}

static void include_range(bool *has, ptrdiff_t *lb, ptrdiff_t *ub, ptrdiff_t more_lb,
                          ptrdiff_t more_ub)
{
    if (!*has || more_lb < *lb) {
        *lb = more_lb;
    }
    if (!*has || more_ub > *ub) {
        *ub = more_ub;
    }
    *has = true;
}

/* Adds the bounds of `count` copies of `old`. */
static int bounds_add(bounds_t *bounds, const opal_datatype_t *old, size_t count,
                      ptrdiff_t stride, ptrdiff_t disp)
{
    if (old->size > 0) {
        ptrdiff_t lb = old->true_lb;
        ptrdiff_t ub = old->true_lb + old->true_extent;

        if (!repeat_range(&lb, &ub, count, stride, disp)) {
            return OPAL_ERR_VALUE_OUT_OF_BOUNDS;
        }
        include_range(&bounds->has_data, &bounds->data_lb, &bounds->data_ub, lb, ub);
    }
    if (0 != (old->flags & OPAL_DATATYPE_EXPLICIT_BOUNDS)) {
        ptrdiff_t lb = old->lb;
        ptrdiff_t ub = old->lb + old->extent;

        if (!repeat_range(&lb, &ub, count, stride, disp)) {
            return OPAL_ERR_VALUE_OUT_OF_BOUNDS;
        }
        include_range(&bounds->has_explicit, &bounds->lb, &bounds->ub, lb, ub);
    }
    bounds->align = bounds->align > old->align ? bounds->align : old->align;
    return OPAL_SUCCESS;
}

/* Fills the bounds of `type`. */
static int bounds_apply(const bounds_t *bounds, opal_datatype_t *type)
{
    ptrdiff_t align = bounds->align > 0 ? (ptrdiff_t) bounds->align : 1;
    ptrdiff_t rest;

    type->align = (uint32_t) align;
    type->true_lb = bounds->has_data ? bounds->data_lb : 0;
    type->true_extent = 0;
    if (bounds->has_data &&
        __builtin_sub_overflow(bounds->data_ub, bounds->data_lb, &type->true_extent)) {
        return OPAL_ERR_VALUE_OUT_OF_BOUNDS;
    }
    if (bounds->has_explicit) {
        type->flags |= OPAL_DATATYPE_EXPLICIT_BOUNDS;
        type->lb = bounds->lb;
        return __builtin_sub_overflow(bounds->ub, bounds->lb, &type->extent)
                   ? OPAL_ERR_VALUE_OUT_OF_BOUNDS
                   : OPAL_SUCCESS;
    }
    type->lb = type->true_lb;
    rest = type->true_extent % align;
    if (__builtin_add_overflow(type->true_extent, 0 == rest ? 0 : align - rest, &type->extent) ||
        __builtin_add_overflow(type->lb, type->extent, &rest)) {
        return OPAL_ERR_VALUE_OUT_OF_BOUNDS;
    }
    return OPAL_SUCCESS;
}

/* ---- From a layout and bounds to a datatype ---- */

static void set_contiguity(opal_datatype_t *type)
{
    const opal_layout_t *layout = opal_layout_bytes(type->layout);
    const opal_node_t *node = layout->nodes;

    type->flags &= ~(uint32_t) (OPAL_DATATYPE_CONTIGUOUS | OPAL_DATATYPE_ONE_RUN);
    if (0 == layout->size) {
        type->flags |= OPAL_DATATYPE_CONTIGUOUS | OPAL_DATATYPE_ONE_RUN;
    } else if (1 == layout->n_nodes && OPAL_NODE_VECTOR == node->kind && 1 == node->count) {
        type->flags |= OPAL_DATATYPE_ONE_RUN;
        if (type->extent == (ptrdiff_t) type->size) {
            type->flags |= OPAL_DATATYPE_CONTIGUOUS;
        }
    }
}

/* Takes over the reference to `layout`; writes *out last. */
static int datatype_make(opal_datatype_t *out, opal_layout_t *layout, const bounds_t *bounds)
{
    opal_datatype_t type = {.size = layout->size, .layout = layout};
    int rc = bounds_apply(bounds, &type);

    if (OPAL_SUCCESS != rc) {
        opal_layout_release(layout);
        return rc;
    }
    set_contiguity(&type);
    *out = type;
    return OPAL_SUCCESS;
}

int opal_datatype_init_basic(opal_datatype_t *type, opal_basic_t basic)
{
    const opal_basic_info_t *info = &opal_basic_info[basic];
    bounds_t bounds = {.has_data = true, .data_ub = info->size, .align = info->align};
    opal_sequence_t seq;
    opal_layout_t *layout;
    int rc;

    opal_sequence_init(&seq, false, 1);
    opal_sequence_add_run(&seq, 0, info->size, (uint8_t) basic);
    rc = opal_sequence_finish(&seq, &layout);
    return OPAL_SUCCESS == rc ? datatype_make(type, layout, &bounds) : rc;
}

int opal_datatype_init_empty(opal_datatype_t *type)
{
    bounds_t bounds = {0};
    opal_sequence_t seq;
    opal_layout_t *layout;
    int rc;

    opal_sequence_init(&seq, false, 0);
    rc = opal_sequence_finish(&seq, &layout);
    return OPAL_SUCCESS == rc ? datatype_make(type, layout, &bounds) : rc;
}

void opal_datatype_fini(opal_datatype_t *type)
{
    opal_layout_release(type->layout);
    type->layout = NULL;
}

void opal_datatype_copy_layout(opal_datatype_t *out, const opal_datatype_t *old)
{
    opal_layout_retain(old->layout);
    *out = *old;
    out->flags &= OPAL_DATATYPE_FLAG_MASK;
}

int opal_datatype_loop(opal_datatype_t *out, const opal_datatype_t *old, size_t count,
                       ptrdiff_t stride)
{
    bounds_t bounds = {0};
    opal_sequence_t seq;
    opal_layout_t *layout;
    int rc;

    if (0 == count) {
        return opal_datatype_init_empty(out);
    }
    rc = bounds_add(&bounds, old, count, stride, 0);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    opal_sequence_init(&seq, false, 1);
    opal_sequence_add(&seq, old->layout, count, stride, 0);
    rc = opal_sequence_finish(&seq, &layout);
    return OPAL_SUCCESS == rc ? datatype_make(out, layout, &bounds) : rc;
}

int opal_datatype_hvector(opal_datatype_t *out, const opal_datatype_t *old, size_t count,
                          size_t blocklen, ptrdiff_t stride)
{
    opal_datatype_t block;
    int rc;

    if (0 == count || 0 == blocklen) {
        return opal_datatype_init_empty(out);
    }
    rc = opal_datatype_loop(&block, old, blocklen, old->extent);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    rc = opal_datatype_loop(out, &block, count, stride);
    opal_datatype_fini(&block);
    return rc;
}

int opal_datatype_resized(opal_datatype_t *out, const opal_datatype_t *old, ptrdiff_t lb,
                          ptrdiff_t extent)
{
    ptrdiff_t ub;

    if (__builtin_add_overflow(lb, extent, &ub)) {
        return OPAL_ERR_VALUE_OUT_OF_BOUNDS;
    }
    opal_datatype_copy_layout(out, old);
    out->flags |= OPAL_DATATYPE_EXPLICIT_BOUNDS;
    out->lb = lb;
    out->extent = extent;
    set_contiguity(out);
    return OPAL_SUCCESS;
}

/* ---- Builder ---- */

struct opal_datatype_builder {
    opal_sequence_t seq;
    bounds_t bounds;
};

opal_datatype_builder_t *opal_datatype_builder_new(size_t hint)
{
    opal_datatype_builder_t *builder = calloc(1, sizeof(*builder));

    if (NULL != builder) {
        opal_sequence_init(&builder->seq, false, hint);
    }
    return builder;
}

int opal_datatype_builder_add(opal_datatype_builder_t *builder, const opal_datatype_t *old,
                              size_t count, ptrdiff_t disp)
{
    int rc;

    if (OPAL_SUCCESS != builder->seq.status || 0 == count) {
        return builder->seq.status;
    }
    rc = bounds_add(&builder->bounds, old, count, old->extent, disp);
    if (OPAL_SUCCESS != rc) {
        builder->seq.status = rc;
        return rc;
    }
    opal_sequence_add(&builder->seq, old->layout, count, old->extent, disp);
    return builder->seq.status;
}

int opal_datatype_builder_finish(opal_datatype_builder_t *builder, opal_datatype_t *out)
{
    opal_layout_t *layout;
    int rc;

    if (NULL == builder) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    rc = opal_sequence_finish(&builder->seq, &layout);
    if (OPAL_SUCCESS == rc) {
        rc = datatype_make(out, layout, &builder->bounds);
    }
    free(builder);
    return rc;
}

void opal_datatype_builder_abandon(opal_datatype_builder_t *builder)
{
    opal_datatype_t ignored;

    if (NULL != builder && OPAL_SUCCESS == opal_datatype_builder_finish(builder, &ignored)) {
        opal_datatype_fini(&ignored);
    }
}

/* ---- Questions ---- */

ptrdiff_t opal_datatype_span(const opal_datatype_t *type, size_t count, ptrdiff_t *gap)
{
    ptrdiff_t reach;

    *gap = 0;
    if (0 == count || 0 == type->size) {
        return 0;
    }
    reach = (ptrdiff_t) (count - 1) * type->extent;
    *gap = type->true_lb + (reach < 0 ? reach : 0);
    return type->true_extent + (reach < 0 ? -reach : reach);
}

static size_t layout_elements(const opal_layout_t *layout)
{
    size_t total = 0;

    for (uint32_t i = 0; i < layout->n_basics; i++) {
        total += layout->basics[i].count;
    }
    return total;
}

size_t opal_datatype_element_count(const opal_datatype_t *type)
{
    return layout_elements(type->layout);
}

static size_t node_elements(const opal_node_t *node)
{
    return OPAL_NODE_LOOP == node->kind ? node->count * layout_elements(node->u.body)
                                        : node->size / opal_basic_info[node->basic].size;
}

size_t opal_datatype_elements(const opal_datatype_t *type, size_t bytes, size_t *rest)
{
    const opal_layout_t *layout = type->layout;
    size_t elements;

    *rest = 0;
    if (0 == type->size) {
        return 0;
    }
    elements = bytes / type->size * opal_datatype_element_count(type);
    bytes %= type->size;
    while (bytes > 0) {
        const opal_node_t *found = opal_layout_find(layout, bytes);

        for (const opal_node_t *node = layout->nodes; node < found; node++) {
            elements += node_elements(node);
        }
        bytes -= found->offset;
        if (OPAL_NODE_LOOP != found->kind) {
            elements += bytes / opal_basic_info[found->basic].size;
            *rest = bytes % opal_basic_info[found->basic].size;
            break;
        }
        layout = found->u.body;
        elements += bytes / layout->size * layout_elements(layout);
        bytes %= layout->size;
    }
    return elements;
}

bool opal_datatype_elements_size(const opal_datatype_t *type, size_t elements, size_t *bytes)
{
    const opal_layout_t *layout = type->layout;
    size_t each = opal_datatype_element_count(type);

    *bytes = 0;
    if (0 == elements) {
        return true;
    }
    if (0 == each || !opal_datatype_total(type, elements / each, bytes)) {
        return false;
    }
    elements %= each;
    while (elements > 0) {
        const opal_node_t *node = layout->nodes;

        for (; elements >= node_elements(node); node++) {
            elements -= node_elements(node);
            *bytes += node->size;
            if (0 == elements) {
                return *bytes <= (size_t) PTRDIFF_MAX;
            }
        }
        if (OPAL_NODE_LOOP != node->kind) {
            *bytes += elements * opal_basic_info[node->basic].size;
            break;
        }
        layout = node->u.body;
        each = layout_elements(layout);
        *bytes += elements / each * layout->size;
        elements %= each;
    }
    return *bytes <= (size_t) PTRDIFF_MAX;
}
