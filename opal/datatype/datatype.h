/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Memory layouts, independent of MPI: what a datatype is, how new ones are made from old ones. */
#ifndef OPAL_DATATYPE_DATATYPE_H
#define OPAL_DATATYPE_DATATYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opal/datatype/arch.h"
#include "opal/datatype/layout.h"
#include "opal/declspec.h"

/*
 * A datatype is a value: a few bounds and a reference to an immutable layout. Every constructor
 * below writes a fresh datatype and leaves its inputs alone; the result holds what it needs, so the
 * inputs may be finalised first. All constructors check for overflow and return OPAL_SUCCESS,
 * OPAL_ERR_OUT_OF_RESOURCE, or OPAL_ERR_VALUE_OUT_OF_BOUNDS if a size or bound does not fit 63 bits
 * or the nesting is deeper than OPAL_LAYOUT_MAX_DEPTH. On failure the output is not touched.
 *
 * Layouts are optimised as they are built; there is no separate commit.
 *
 * Bounds follow MPI: [true_lb, true_lb + true_extent) is the span of the data. Without explicit
 * bounds lb is true_lb and the extent is the true extent rounded up to the alignment of the basic
 * types; once a component was resized, only such explicit bounds count.
 */
enum {
    OPAL_DATATYPE_CONTIGUOUS = 0x1,     /* any count of it is one run of bytes */
    OPAL_DATATYPE_ONE_RUN = 0x2,        /* one of it is one run of bytes */
    OPAL_DATATYPE_EXPLICIT_BOUNDS = 0x4,
    OPAL_DATATYPE_FLAG_MASK = 0xffff    /* the upper half belongs to the layer above */
};

typedef struct opal_datatype {
    size_t size;                /* packed bytes */
    ptrdiff_t extent;
    ptrdiff_t lb;
    ptrdiff_t true_lb;          /* lowest byte of data */
    uint32_t flags;
    uint32_t align;             /* largest alignment of a basic type in it, at least 1 */
    ptrdiff_t true_extent;
    opal_layout_t *layout;
} opal_datatype_t;

OPAL_DECLSPEC int opal_datatype_init_basic(opal_datatype_t *type, opal_basic_t basic);
OPAL_DECLSPEC int opal_datatype_init_empty(opal_datatype_t *type);
OPAL_DECLSPEC void opal_datatype_fini(opal_datatype_t *type);

/* The same layout and bounds once more. */
OPAL_DECLSPEC void opal_datatype_copy_layout(opal_datatype_t *out, const opal_datatype_t *old);
/* `count` copies of `old`, copy i at i * stride bytes. Contiguous: stride == old->extent. */
OPAL_DECLSPEC int opal_datatype_loop(opal_datatype_t *out, const opal_datatype_t *old,
                                     size_t count, ptrdiff_t stride);
/* `count` blocks of `blocklen` elements each; blocks `stride` bytes apart. */
OPAL_DECLSPEC int opal_datatype_hvector(opal_datatype_t *out, const opal_datatype_t *old,
                                        size_t count, size_t blocklen, ptrdiff_t stride);
OPAL_DECLSPEC int opal_datatype_resized(opal_datatype_t *out, const opal_datatype_t *old,
                                        ptrdiff_t lb, ptrdiff_t extent);

/* Anything else is a sequence of blocks, given to a builder in packing order. A builder whose add
 * failed remembers it: only the result of finish needs a look. */
typedef struct opal_datatype_builder opal_datatype_builder_t;

/* `hint`: how many blocks to expect; NULL if out of memory. */
OPAL_DECLSPEC opal_datatype_builder_t *opal_datatype_builder_new(size_t hint);
/* `count` elements of `old`, the first at `disp`. */
OPAL_DECLSPEC int opal_datatype_builder_add(opal_datatype_builder_t *builder,
                                            const opal_datatype_t *old, size_t count,
                                            ptrdiff_t disp);
/* Writes `out` unless something failed, and frees the builder either way. A NULL builder is
 * OPAL_ERR_OUT_OF_RESOURCE. */
OPAL_DECLSPEC int opal_datatype_builder_finish(opal_datatype_builder_t *builder,
                                               opal_datatype_t *out);
/* Frees the builder and makes nothing. NULL is fine. */
OPAL_DECLSPEC void opal_datatype_builder_abandon(opal_datatype_builder_t *builder);

/* ---- Questions ---- */

/* True if `count` elements are one run of bytes, starting at buffer + true_lb. */
static inline bool opal_datatype_is_contiguous(const opal_datatype_t *type, size_t count)
{
    uint32_t either = OPAL_DATATYPE_CONTIGUOUS | (count <= 1 ? OPAL_DATATYPE_ONE_RUN : 0);

    return 0 != (type->flags & either);
}

/* Packed bytes of `count` elements; false if they do not fit 63 bits. */
static inline bool opal_datatype_total(const opal_datatype_t *type, size_t count, size_t *bytes)
{
    return !__builtin_mul_overflow(type->size, count, bytes) && *bytes <= (size_t)PTRDIFF_MAX;
}

/* Bytes of memory between the lowest and the highest byte of `count` elements; *gap is the distance
 * from the buffer argument to the lowest one. A temporary buffer of that many bytes is used as
 * (char *)tmp - gap. */
OPAL_DECLSPEC ptrdiff_t opal_datatype_span(const opal_datatype_t *type, size_t count,
                                           ptrdiff_t *gap);

/* How many basic elements lie entirely in the first `bytes` packed bytes of repeated elements of
 * this type. *rest is what remains of a partial element. */
OPAL_DECLSPEC size_t opal_datatype_elements(const opal_datatype_t *type, size_t bytes,
                                            size_t *rest);
/* The reverse: packed bytes of the first `elements` basic elements. False on overflow. */
OPAL_DECLSPEC bool opal_datatype_elements_size(const opal_datatype_t *type, size_t elements,
                                               size_t *bytes);
/* Basic elements in one element of this type. */
OPAL_DECLSPEC size_t opal_datatype_element_count(const opal_datatype_t *type);

/* Copies `count` elements from one buffer to another that does not overlap it. */
OPAL_DECLSPEC int opal_datatype_copy(const opal_datatype_t *type, size_t count, void *dst,
                                     const void *src);

#endif
