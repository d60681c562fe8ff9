/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Basic types (the leaves of every layout), how an architecture represents them, and the conversion
 * of runs of them between two architectures. external32 is one such architecture. */
#ifndef OPAL_DATATYPE_ARCH_H
#define OPAL_DATATYPE_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opal/declspec.h"

/* One entry per representation that may differ between architectures or between an architecture and
 * external32 (MPI_INT and MPI_INT32_T differ in neither, but long and int64 differ in external32).
 * The values travel in opal_arch_t and in type signatures: append only. */
typedef enum opal_basic {
    OPAL_BASIC_BYTE,        /* never converted: MPI_BYTE, MPI_PACKED, character types */
    OPAL_BASIC_BOOL,        /* C _Bool */
    OPAL_BASIC_INT8,
    OPAL_BASIC_UINT8,
    OPAL_BASIC_INT16,
    OPAL_BASIC_UINT16,
    OPAL_BASIC_INT32,
    OPAL_BASIC_UINT32,
    OPAL_BASIC_INT64,
    OPAL_BASIC_UINT64,
    OPAL_BASIC_INT128,
    OPAL_BASIC_SHORT,
    OPAL_BASIC_USHORT,
    OPAL_BASIC_INT,
    OPAL_BASIC_UINT,
    OPAL_BASIC_LONG,
    OPAL_BASIC_ULONG,
    OPAL_BASIC_LLONG,
    OPAL_BASIC_ULLONG,
    OPAL_BASIC_WCHAR,
    OPAL_BASIC_ADDRESS,     /* intptr_t: MPI_AINT */
    OPAL_BASIC_LOGICAL1,    /* Fortran LOGICAL of n bytes */
    OPAL_BASIC_LOGICAL2,
    OPAL_BASIC_LOGICAL4,
    OPAL_BASIC_LOGICAL8,
    OPAL_BASIC_LOGICAL16,
    OPAL_BASIC_FLOAT16,     /* IEEE binary16 */
    OPAL_BASIC_FLOAT32,
    OPAL_BASIC_FLOAT64,
    OPAL_BASIC_FLOAT128,    /* IEEE binary128 */
    OPAL_BASIC_LONG_DOUBLE,
    OPAL_BASIC_COMPLEX32,   /* two FLOAT16; the number is the total of bits */
    OPAL_BASIC_COMPLEX64,
    OPAL_BASIC_COMPLEX128,
    OPAL_BASIC_COMPLEX256,
    OPAL_BASIC_LONG_DOUBLE_COMPLEX,
    OPAL_BASIC_COUNT
} opal_basic_t;

/* Widest wire or memory form of one basic element, in bytes. */
enum { OPAL_BASIC_MAX_SIZE = 32 };

typedef struct opal_basic_info {
    const char *name;
    uint8_t size;       /* sizeof here */
    uint8_t align;      /* alignment here, as a member of a C struct */
} opal_basic_info_t;

OPAL_DECLSPEC extern const opal_basic_info_t opal_basic_info[OPAL_BASIC_COUNT];

typedef enum opal_long_double_format {
    OPAL_LONG_DOUBLE_IEEE64 = 1,
    OPAL_LONG_DOUBLE_X87 = 2,       /* 80 bits, then padding */
    OPAL_LONG_DOUBLE_IEEE128 = 3
} opal_long_double_format_t;

/* How an architecture represents each basic type. Plain bytes without padding, so that it can be
 * sent to a peer as it stands. */
typedef struct opal_arch {
    uint8_t big_endian;
    uint8_t long_double;                /* opal_long_double_format_t */
    uint8_t reserved[2];                /* zero */
    uint8_t size[OPAL_BASIC_COUNT];
} opal_arch_t;

OPAL_DECLSPEC const opal_arch_t *opal_arch_local(void);
OPAL_DECLSPEC const opal_arch_t *opal_arch_external32(void);
/* True if memory of one can be read by the other as it stands. */
OPAL_DECLSPEC bool opal_arch_equal(const opal_arch_t *a, const opal_arch_t *b);
/* An architecture in few bits, for messages: 0 is a 64-bit little-endian machine with the 80-bit long double (x86-64). */
enum {
    OPAL_ARCH_BIG_ENDIAN = 1 << 0,
    OPAL_ARCH_IEEE128 = 1 << 1,   /* long double */
    OPAL_ARCH_IEEE64 = 1 << 2,    /* long double */
    OPAL_ARCH_LONG32 = 1 << 3,    /* long has 4 bytes */
    OPAL_ARCH_ADDRESS32 = 1 << 4, /* addresses have 4 bytes */
    OPAL_ARCH_WCHAR16 = 1 << 5,   /* wchar_t has 2 bytes */
    OPAL_ARCH_IDS = 1 << 6
};
OPAL_DECLSPEC uint16_t opal_arch_id(const opal_arch_t *arch);
/* The reverse; valid for ever. NULL: no architecture has this id. Thread-safe. */
OPAL_DECLSPEC const opal_arch_t *opal_arch_of_id(uint16_t id);
/* OPAL_SUCCESS, or OPAL_ERR_NOT_SUPPORTED if this process cannot convert to and from it (also for
 * bytes that no architecture would send: the argument may come from the wire). */
OPAL_DECLSPEC int opal_arch_check(const opal_arch_t *remote);
/* Whether elements of this type can be converted, too: not all formats of long double can. */
OPAL_DECLSPEC bool opal_arch_converts(const opal_arch_t *remote, opal_basic_t basic);

/* Converts `n` elements between local memory (elements one after the other) and the form of
 * `remote`. The buffers need no alignment and do not overlap. Integers that do not fit the smaller
 * form lose their high bytes. */
OPAL_DECLSPEC void opal_arch_to_remote(const opal_arch_t *remote, opal_basic_t basic,
                                       void *wire, const void *local, size_t n);
OPAL_DECLSPEC void opal_arch_from_remote(const opal_arch_t *remote, opal_basic_t basic,
                                         void *local, const void *wire, size_t n);

#endif
