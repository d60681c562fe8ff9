/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Moves the data of (buffer, count, datatype) to and from its packed form, any part at any time. */
#ifndef OPAL_DATATYPE_CONVERTOR_H
#define OPAL_DATATYPE_CONVERTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "opal/checksum/checksum.h"
#include "opal/datatype/arch.h"
#include "opal/datatype/datatype.h"
#include "opal/declspec.h"

/*
 * Life of a message:
 *
 *   void *p = opal_convertor_contiguous_ptr(type, count, buffer);
 *   if (p != NULL) { ... the message is type->size * count bytes at p; no convertor is needed ... }
 *   else { opal_convertor_t conv; opal_convertor_init(&conv, type, count, buffer, NULL); ... }
 *
 * A convertor is a constant description once initialised. It owns nothing (no fini, may be copied
 * or dropped) and holds no position: pack, unpack and raw take the offset in the packed stream, and
 * any number of threads may work on different or equal parts of one message at once. Finding an
 * offset costs O(depth * log(nodes per level)) per call. The caller keeps datatype and buffer
 * alive.
 *
 * Fragment borders may fall on any byte, also inside a basic element, and fragments may come in any
 * order. With a foreign architecture (`remote`) offsets count bytes of the remote form; there a
 * border inside an element costs a read-modify-write on unpack, and is exact unless the element is
 * a long double of another format: opal_convertor_align() gives the nearest border without either.
 */
typedef struct opal_convertor {
    opal_node_t root;           /* the whole message as one node */
    char *base;
    size_t size;                /* bytes of the packed stream */
    const opal_arch_t *remote;  /* NULL: same as here */
    const opal_layout_t *layout;/* of one element, with its basic types */
} opal_convertor_t;

/* The start of the data if `count` elements are one run of bytes (also if they are none), else
 * NULL. A NULL buffer with absolute displacements is fine; a message of no bytes returns `buffer`
 * plus true_lb, which may be NULL, so test the size first where empty messages are legal. */
static inline void *opal_convertor_contiguous_ptr(const opal_datatype_t *type, size_t count,
                                                  const void *buffer)
{
    if (__builtin_expect(opal_datatype_is_contiguous(type, count), 1)) {
        return (void *) ((uintptr_t) buffer + (uintptr_t) type->true_lb);
    }
    return NULL;
}

/* `remote`: architecture at the other end; NULL if it equals ours. Must outlive the convertor.
 * OPAL_ERR_VALUE_OUT_OF_BOUNDS if the size does not fit, OPAL_ERR_NOT_SUPPORTED for an
 * architecture we cannot convert. */
OPAL_DECLSPEC int opal_convertor_init(opal_convertor_t *conv, const opal_datatype_t *type,
                                      size_t count, const void *buffer,
                                      const opal_arch_t *remote);

/* Copies the packed bytes [offset, offset + max), or what there is of them, to `dst`; returns how
 * many. 0: offset is the end. */
OPAL_DECLSPEC size_t opal_convertor_pack_at(const opal_convertor_t *conv, size_t offset, void *dst,
                                            size_t max);
/* Puts `len` packed bytes that belong at `offset` in place; returns how many were taken (fewer than
 * len only at the end of the message). */
OPAL_DECLSPEC size_t opal_convertor_unpack_at(const opal_convertor_t *conv, size_t offset,
                                              const void *src, size_t len);
/* The same, and the checksum in *state (opal/checksum/checksum.h) goes on over the packed bytes, which are
 * summed while they are in the first-level cache. */
OPAL_DECLSPEC size_t opal_convertor_pack_sum_at(const opal_convertor_t *conv, size_t offset, void *dst, size_t max,
                                                opal_checksum_kind_t kind, uint64_t *state);
OPAL_DECLSPEC size_t opal_convertor_unpack_sum_at(const opal_convertor_t *conv, size_t offset, const void *src,
                                                  size_t len, opal_checksum_kind_t kind, uint64_t *state);
/* Describes the packed bytes [offset, offset + max) as up to *n pieces of memory; returns the bytes
 * described and sets *n to the pieces used. Neighbouring pieces are merged. Fewer than max bytes
 * are described if the pieces or the message run out. 0 with a foreign architecture. */
OPAL_DECLSPEC size_t opal_convertor_raw_at(const opal_convertor_t *conv, size_t offset,
                                           struct iovec *iov, size_t *n, size_t max);
/* What the first `bytes` of the stream hold, in packed bytes of this architecture. A part of an element stays one. */
OPAL_DECLSPEC size_t opal_convertor_local_size(const opal_convertor_t *conv, size_t bytes);
/* The greatest border between basic elements that is not above `offset`. */
OPAL_DECLSPEC size_t opal_convertor_align(const opal_convertor_t *conv, size_t offset);

/* A position on a convertor, for those who go through a message in order. Independent cursors may
 * work on one convertor. */
typedef struct opal_convertor_cursor {
    const opal_convertor_t *conv;
    size_t position;
} opal_convertor_cursor_t;

static inline void opal_convertor_cursor_init(opal_convertor_cursor_t *cursor,
                                              const opal_convertor_t *conv)
{
    cursor->conv = conv;
    cursor->position = 0;
}

static inline void opal_convertor_set_position(opal_convertor_cursor_t *cursor, size_t offset)
{
    cursor->position = offset < cursor->conv->size ? offset : cursor->conv->size;
}

static inline size_t opal_convertor_remaining(const opal_convertor_cursor_t *cursor)
{
    return cursor->conv->size - cursor->position;
}

static inline size_t opal_convertor_pack(opal_convertor_cursor_t *cursor, void *dst, size_t max)
{
    size_t n = opal_convertor_pack_at(cursor->conv, cursor->position, dst, max);
    cursor->position += n;
    return n;
}

static inline size_t opal_convertor_unpack(opal_convertor_cursor_t *cursor, const void *src,
                                           size_t len)
{
    size_t n = opal_convertor_unpack_at(cursor->conv, cursor->position, src, len);
    cursor->position += n;
    return n;
}

static inline size_t opal_convertor_raw(opal_convertor_cursor_t *cursor, struct iovec *iov,
                                        size_t *n, size_t max)
{
    size_t bytes = opal_convertor_raw_at(cursor->conv, cursor->position, iov, n, max);
    cursor->position += bytes;
    return bytes;
}

#endif
