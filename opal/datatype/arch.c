/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Representation of basic types here and elsewhere, and conversion between the two. */
#include "opal/datatype/arch.h"

#include <complex.h>
#include <float.h>
#include <pthread.h>
#include <string.h>
#include <wchar.h>

#include "opal/constants.h"

#define BASIC(type) {#type, sizeof(type), _Alignof(type)}
#define BASIC_COMPLEX(type) {#type " complex", sizeof(type _Complex), _Alignof(type)}

const opal_basic_info_t opal_basic_info[OPAL_BASIC_COUNT] = {
    [OPAL_BASIC_BYTE] = {"byte", 1, 1},
    [OPAL_BASIC_BOOL] = BASIC(_Bool),
    [OPAL_BASIC_INT8] = BASIC(int8_t),
    [OPAL_BASIC_UINT8] = BASIC(uint8_t),
    [OPAL_BASIC_INT16] = BASIC(int16_t),
    [OPAL_BASIC_UINT16] = BASIC(uint16_t),
    [OPAL_BASIC_INT32] = BASIC(int32_t),
    [OPAL_BASIC_UINT32] = BASIC(uint32_t),
    [OPAL_BASIC_INT64] = BASIC(int64_t),
    [OPAL_BASIC_UINT64] = BASIC(uint64_t),
    [OPAL_BASIC_INT128] = {"int128_t", 16, 16},
    [OPAL_BASIC_SHORT] = BASIC(short),
    [OPAL_BASIC_USHORT] = BASIC(unsigned short),
    [OPAL_BASIC_INT] = BASIC(int),
    [OPAL_BASIC_UINT] = BASIC(unsigned),
    [OPAL_BASIC_LONG] = BASIC(long),
    [OPAL_BASIC_ULONG] = BASIC(unsigned long),
    [OPAL_BASIC_LLONG] = BASIC(long long),
    [OPAL_BASIC_ULLONG] = BASIC(unsigned long long),
    [OPAL_BASIC_WCHAR] = BASIC(wchar_t),
    [OPAL_BASIC_ADDRESS] = BASIC(intptr_t),
    [OPAL_BASIC_LOGICAL1] = {"logical1", 1, 1},
    [OPAL_BASIC_LOGICAL2] = {"logical2", 2, 2},
    [OPAL_BASIC_LOGICAL4] = {"logical4", 4, 4},
    [OPAL_BASIC_LOGICAL8] = {"logical8", 8, 8},
    [OPAL_BASIC_LOGICAL16] = {"logical16", 16, 16},
    [OPAL_BASIC_FLOAT16] = {"float16", 2, 2},
    [OPAL_BASIC_FLOAT32] = BASIC(float),
    [OPAL_BASIC_FLOAT64] = BASIC(double),
    [OPAL_BASIC_FLOAT128] = {"float128", 16, 16},
    [OPAL_BASIC_LONG_DOUBLE] = BASIC(long double),
    [OPAL_BASIC_COMPLEX32] = {"float16 complex", 4, 2},
    [OPAL_BASIC_COMPLEX64] = BASIC_COMPLEX(float),
    [OPAL_BASIC_COMPLEX128] = BASIC_COMPLEX(double),
    [OPAL_BASIC_COMPLEX256] = {"float128 complex", 32, 16},
    [OPAL_BASIC_LONG_DOUBLE_COMPLEX] = BASIC_COMPLEX(long double),
};

#if LDBL_MANT_DIG == 64
#define LOCAL_LONG_DOUBLE OPAL_LONG_DOUBLE_X87
#elif LDBL_MANT_DIG == 113
#define LOCAL_LONG_DOUBLE OPAL_LONG_DOUBLE_IEEE128
#elif LDBL_MANT_DIG == 53
#define LOCAL_LONG_DOUBLE OPAL_LONG_DOUBLE_IEEE64
#else
#error "unknown format of long double"
#endif

enum { LOCAL_BIG_ENDIAN = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ };

#define SIZE(name, type) [OPAL_BASIC_##name] = sizeof(type)

/* Sizes that no architecture varies, and what external32 makes of the others (MPI-5.0, table of
 * the external32 sizes: long has 4 bytes, wchar_t has 2, long double is IEEE binary128). */
static const opal_arch_t external32 = {
    .big_endian = 1,
    .long_double = OPAL_LONG_DOUBLE_IEEE128,
    .size = {
        [OPAL_BASIC_BYTE] = 1, [OPAL_BASIC_BOOL] = 1, [OPAL_BASIC_INT8] = 1,
        [OPAL_BASIC_UINT8] = 1, [OPAL_BASIC_INT16] = 2, [OPAL_BASIC_UINT16] = 2,
        [OPAL_BASIC_INT32] = 4, [OPAL_BASIC_UINT32] = 4, [OPAL_BASIC_INT64] = 8,
        [OPAL_BASIC_UINT64] = 8, [OPAL_BASIC_INT128] = 16, [OPAL_BASIC_SHORT] = 2,
        [OPAL_BASIC_USHORT] = 2, [OPAL_BASIC_INT] = 4, [OPAL_BASIC_UINT] = 4,
        [OPAL_BASIC_LONG] = 4, [OPAL_BASIC_ULONG] = 4, [OPAL_BASIC_LLONG] = 8,
        [OPAL_BASIC_ULLONG] = 8, [OPAL_BASIC_WCHAR] = 2, [OPAL_BASIC_ADDRESS] = 8,
        [OPAL_BASIC_LOGICAL1] = 1, [OPAL_BASIC_LOGICAL2] = 2, [OPAL_BASIC_LOGICAL4] = 4,
        [OPAL_BASIC_LOGICAL8] = 8, [OPAL_BASIC_LOGICAL16] = 16, [OPAL_BASIC_FLOAT16] = 2,
        [OPAL_BASIC_FLOAT32] = 4, [OPAL_BASIC_FLOAT64] = 8, [OPAL_BASIC_FLOAT128] = 16,
        [OPAL_BASIC_LONG_DOUBLE] = 16, [OPAL_BASIC_COMPLEX32] = 4, [OPAL_BASIC_COMPLEX64] = 8,
        [OPAL_BASIC_COMPLEX128] = 16, [OPAL_BASIC_COMPLEX256] = 32,
        [OPAL_BASIC_LONG_DOUBLE_COMPLEX] = 32,
    },
};

static const opal_arch_t local_arch = {
    .big_endian = LOCAL_BIG_ENDIAN,
    .long_double = LOCAL_LONG_DOUBLE,
    .size = {
        [OPAL_BASIC_BYTE] = 1, SIZE(BOOL, _Bool), SIZE(INT8, int8_t), SIZE(UINT8, uint8_t),
        SIZE(INT16, int16_t), SIZE(UINT16, uint16_t), SIZE(INT32, int32_t),
        SIZE(UINT32, uint32_t), SIZE(INT64, int64_t), SIZE(UINT64, uint64_t),
        [OPAL_BASIC_INT128] = 16, SIZE(SHORT, short), SIZE(USHORT, unsigned short),
        SIZE(INT, int), SIZE(UINT, unsigned), SIZE(LONG, long), SIZE(ULONG, unsigned long),
        SIZE(LLONG, long long), SIZE(ULLONG, unsigned long long), SIZE(WCHAR, wchar_t),
        SIZE(ADDRESS, intptr_t), [OPAL_BASIC_LOGICAL1] = 1, [OPAL_BASIC_LOGICAL2] = 2,
        [OPAL_BASIC_LOGICAL4] = 4, [OPAL_BASIC_LOGICAL8] = 8, [OPAL_BASIC_LOGICAL16] = 16,
        [OPAL_BASIC_FLOAT16] = 2, SIZE(FLOAT32, float), SIZE(FLOAT64, double),
        [OPAL_BASIC_FLOAT128] = 16, SIZE(LONG_DOUBLE, long double),
        [OPAL_BASIC_COMPLEX32] = 4, SIZE(COMPLEX64, float _Complex),
        SIZE(COMPLEX128, double _Complex), [OPAL_BASIC_COMPLEX256] = 32,
        SIZE(LONG_DOUBLE_COMPLEX, long double _Complex),
    },
};

const opal_arch_t *opal_arch_local(void)
{
    return &local_arch;
}

const opal_arch_t *opal_arch_external32(void)
{
    return &external32;
}

bool opal_arch_equal(const opal_arch_t *a, const opal_arch_t *b)
{
    return 0 == memcmp(a, b, sizeof(*a));
}

uint16_t opal_arch_id(const opal_arch_t *arch)
{
    return (uint16_t) ((arch->big_endian ? OPAL_ARCH_BIG_ENDIAN : 0) |
                       (OPAL_LONG_DOUBLE_IEEE128 == arch->long_double ? OPAL_ARCH_IEEE128 : 0) |
                       (OPAL_LONG_DOUBLE_IEEE64 == arch->long_double ? OPAL_ARCH_IEEE64 : 0) |
                       (4 == arch->size[OPAL_BASIC_LONG] ? OPAL_ARCH_LONG32 : 0) |
                       (4 == arch->size[OPAL_BASIC_ADDRESS] ? OPAL_ARCH_ADDRESS32 : 0) |
                       (2 == arch->size[OPAL_BASIC_WCHAR] ? OPAL_ARCH_WCHAR16 : 0));
}

static opal_arch_t known[OPAL_ARCH_IDS]; /* by id */

/* What external32 has in common with all, and what the id says. */
static void describe_all(void)
{
    for (unsigned id = 0; id < OPAL_ARCH_IDS; id++) {
        opal_arch_t *arch = &known[id];
        bool is_short = !(id & OPAL_ARCH_IEEE128) && (id & OPAL_ARCH_ADDRESS32); /* as on i386 */
        uint8_t long_double = id & OPAL_ARCH_IEEE64 ? 8 : is_short ? 12 : 16;

        *arch = external32;
        arch->big_endian = (id & OPAL_ARCH_BIG_ENDIAN) != 0;
        arch->long_double = id & OPAL_ARCH_IEEE64    ? OPAL_LONG_DOUBLE_IEEE64
                            : id & OPAL_ARCH_IEEE128 ? OPAL_LONG_DOUBLE_IEEE128
                                                     : OPAL_LONG_DOUBLE_X87;
        arch->size[OPAL_BASIC_LONG] = arch->size[OPAL_BASIC_ULONG] = id & OPAL_ARCH_LONG32 ? 4 : 8;
        arch->size[OPAL_BASIC_ADDRESS] = id & OPAL_ARCH_ADDRESS32 ? 4 : 8;
        arch->size[OPAL_BASIC_WCHAR] = id & OPAL_ARCH_WCHAR16 ? 2 : 4;
        arch->size[OPAL_BASIC_LONG_DOUBLE] = long_double;
        arch->size[OPAL_BASIC_LONG_DOUBLE_COMPLEX] = (uint8_t) (2 * long_double);
    }
}

const opal_arch_t *opal_arch_of_id(uint16_t id)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, describe_all);
    if (id >= OPAL_ARCH_IDS || ((id & OPAL_ARCH_IEEE128) && (id & OPAL_ARCH_IEEE64))) {
        return NULL;
    }
    return id == opal_arch_id(&local_arch) ? &local_arch : &known[id];
}

/* What a conversion has to know about a basic type. */
enum basic_kind { KIND_UNSIGNED, KIND_SIGNED, KIND_OPAQUE, KIND_FLOAT, KIND_LONG_DOUBLE };

/* Logicals, wchar_t and the unsigned integers are what is not named. */
static const uint8_t kinds[OPAL_BASIC_COUNT] = {
    [OPAL_BASIC_BYTE] = KIND_OPAQUE,
    [OPAL_BASIC_INT8] = KIND_SIGNED,
    [OPAL_BASIC_INT16] = KIND_SIGNED,
    [OPAL_BASIC_INT32] = KIND_SIGNED,
    [OPAL_BASIC_INT64] = KIND_SIGNED,
    [OPAL_BASIC_INT128] = KIND_SIGNED,
    [OPAL_BASIC_SHORT] = KIND_SIGNED,
    [OPAL_BASIC_INT] = KIND_SIGNED,
    [OPAL_BASIC_LONG] = KIND_SIGNED,
    [OPAL_BASIC_LLONG] = KIND_SIGNED,
    [OPAL_BASIC_ADDRESS] = KIND_SIGNED,
    [OPAL_BASIC_FLOAT16] = KIND_FLOAT,
    [OPAL_BASIC_FLOAT32] = KIND_FLOAT,
    [OPAL_BASIC_FLOAT64] = KIND_FLOAT,
    [OPAL_BASIC_FLOAT128] = KIND_FLOAT,
    [OPAL_BASIC_COMPLEX32] = KIND_FLOAT,
    [OPAL_BASIC_COMPLEX64] = KIND_FLOAT,
    [OPAL_BASIC_COMPLEX128] = KIND_FLOAT,
    [OPAL_BASIC_COMPLEX256] = KIND_FLOAT,
    [OPAL_BASIC_LONG_DOUBLE] = KIND_LONG_DOUBLE,
    [OPAL_BASIC_LONG_DOUBLE_COMPLEX] = KIND_LONG_DOUBLE,
};

/* A complex number is converted as two reals. */
static bool is_complex(opal_basic_t basic)
{
    return basic >= OPAL_BASIC_COMPLEX32 && basic <= OPAL_BASIC_LONG_DOUBLE_COMPLEX;
}

static bool long_double_known(const opal_arch_t *remote)
{
    const uint8_t size = remote->size[OPAL_BASIC_LONG_DOUBLE];

    if (remote->long_double == LOCAL_LONG_DOUBLE) {
        /* x87 numbers are padded to 12 bytes on i386, which only the end of them shows. */
        return size == sizeof(long double) ||
               (OPAL_LONG_DOUBLE_X87 == LOCAL_LONG_DOUBLE && 0 == remote->big_endian && (12 == size || 16 == size));
    }
    return (OPAL_LONG_DOUBLE_IEEE64 == remote->long_double && 8 == size) ||
           (OPAL_LONG_DOUBLE_X87 == LOCAL_LONG_DOUBLE &&
            OPAL_LONG_DOUBLE_IEEE128 == remote->long_double && 16 == size && 16 == sizeof(long double)) ||
           (OPAL_LONG_DOUBLE_IEEE128 == LOCAL_LONG_DOUBLE &&
            OPAL_LONG_DOUBLE_X87 == remote->long_double && 0 == remote->big_endian && 16 == size);
}

bool opal_arch_converts(const opal_arch_t *remote, opal_basic_t basic)
{
    return KIND_LONG_DOUBLE != kinds[basic] || long_double_known(remote);
}

int opal_arch_check(const opal_arch_t *remote)
{
    if (remote->big_endian > 1 || remote->long_double < OPAL_LONG_DOUBLE_IEEE64 ||
        remote->long_double > OPAL_LONG_DOUBLE_IEEE128 ||
        remote->size[OPAL_BASIC_LONG_DOUBLE_COMPLEX] !=
            2 * remote->size[OPAL_BASIC_LONG_DOUBLE]) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    for (int basic = 0; basic < OPAL_BASIC_COUNT; basic++) {
        uint8_t size = remote->size[basic];
        uint8_t kind = kinds[basic];

        if (0 == size || size > OPAL_BASIC_MAX_SIZE ||
            ((KIND_FLOAT == kind || KIND_OPAQUE == kind) && size != opal_basic_info[basic].size)) {
            return OPAL_ERR_NOT_SUPPORTED;
        }
    }
    return OPAL_SUCCESS;
}

static void reverse_bytes(uint8_t *dst, const uint8_t *src, size_t size, size_t n)
{
    for (size_t i = 0; i < n; i++, dst += size, src += size) {
        for (size_t b = 0; b < size; b++) {
            dst[b] = src[size - 1 - b];
        }
    }
}

static void swap16(uint8_t *restrict dst, const uint8_t *restrict src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t v;
        memcpy(&v, src + 2 * i, sizeof(v));
        v = __builtin_bswap16(v);
        memcpy(dst + 2 * i, &v, sizeof(v));
    }
}

static void swap32(uint8_t *restrict dst, const uint8_t *restrict src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t v;
        memcpy(&v, src + 4 * i, sizeof(v));
        v = __builtin_bswap32(v);
        memcpy(dst + 4 * i, &v, sizeof(v));
    }
}

static void swap64(uint8_t *restrict dst, const uint8_t *restrict src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t v;
        memcpy(&v, src + 8 * i, sizeof(v));
        v = __builtin_bswap64(v);
        memcpy(dst + 8 * i, &v, sizeof(v));
    }
}

static void swap_elements(uint8_t *dst, const uint8_t *src, size_t size, size_t n)
{
    switch (size) {
    case 1:
        memcpy(dst, src, n);
        break;
    case 2:
        swap16(dst, src, n);
        break;
    case 4:
        swap32(dst, src, n);
        break;
    case 8:
        swap64(dst, src, n);
        break;
    default:
        reverse_bytes(dst, src, size, n);
    }
}

/* Position of the byte of weight 256^i in a number of `size` bytes. */
static size_t byte_at(size_t i, size_t size, bool big_endian)
{
    return big_endian ? size - 1 - i : i;
}

/* Integers of different size: the low bytes, then zeros or the sign. */
static void resize_integer(uint8_t *dst, size_t dst_size, bool dst_big, const uint8_t *src,
                           size_t src_size, bool src_big, bool is_signed)
{
    uint8_t top = src[byte_at(src_size - 1, src_size, src_big)];
    uint8_t fill = is_signed && 0 != (top & 0x80) ? 0xff : 0;

    for (size_t i = 0; i < dst_size; i++) {
        dst[byte_at(i, dst_size, dst_big)] =
            i < src_size ? src[byte_at(i, src_size, src_big)] : fill;
    }
}

/*
 * x87 extended and IEEE binary128 share sign, 15-bit exponent and bias; x87 writes the integer bit
 * of the significand, which binary128 implies:
 *
 *   x87        sign 1 | exponent 15 | integer 1 | fraction 63
 *   binary128  sign 1 | exponent 15 |           | fraction 112
 *
 * Both functions work on little-endian bytes.
 */
static void x87_to_binary128(uint8_t out[16], const uint8_t in[10])
{
    uint64_t sign_exponent = (uint64_t) in[8] | (uint64_t) in[9] << 8;
    uint64_t fraction = 0;
    uint64_t low;
    uint64_t high;

    for (int i = 0; i < 8; i++) {
        fraction |= (uint64_t) in[i] << (8 * i);
    }
    fraction &= ~(UINT64_C(1) << 63);
    high = sign_exponent << 48 | fraction >> 15;
    low = fraction << 49;
    for (int i = 0; i < 8; i++) {
        out[i] = (uint8_t) (low >> (8 * i));
        out[8 + i] = (uint8_t) (high >> (8 * i));
    }
}

/* Rounds to nearest, ties to even; a NaN stays one. */
static void binary128_to_x87(uint8_t out[10], const uint8_t in[16])
{
    uint64_t low = 0;
    uint64_t high = 0;
    uint64_t fraction;
    uint64_t rest;
    uint16_t sign_exponent;
    uint16_t exponent;

    for (int i = 0; i < 8; i++) {
        low |= (uint64_t) in[i] << (8 * i);
        high |= (uint64_t) in[8 + i] << (8 * i);
    }
    sign_exponent = (uint16_t) (high >> 48);
    exponent = sign_exponent & 0x7fff;
    fraction = (high & UINT64_C(0xffffffffffff)) << 15 | low >> 49;
    rest = low & UINT64_C(0x1ffffffffffff);
    if (0x7fff == exponent) {
        if (0 == fraction && 0 != rest) {
            fraction = UINT64_C(1) << 62;
        }
    } else if (rest > UINT64_C(1) << 48 || (rest == UINT64_C(1) << 48 && 0 != (fraction & 1))) {
        fraction++;
        if (0 != fraction >> 63) {      /* carried into the exponent */
            fraction = 0;
            exponent++;
            sign_exponent++;
        }
    }
    if (0 != exponent) {
        fraction |= UINT64_C(1) << 63;
    }
    for (int i = 0; i < 8; i++) {
        out[i] = (uint8_t) (fraction >> (8 * i));
    }
    out[8] = (uint8_t) sign_exponent;
    out[9] = (uint8_t) (sign_exponent >> 8);
}

/* To and from a machine whose long double is a double: C converts between ours and that. */
static void convert_double(uint8_t *dst, const uint8_t *src, const opal_arch_t *remote, bool to_remote, size_t n)
{
    const bool swap = remote->big_endian != LOCAL_BIG_ENDIAN;

    for (size_t i = 0; i < n; i++) {
        uint8_t wire[sizeof(double)];
        long double wide;
        double number;

        if (to_remote) {
            memcpy(&wide, src + i * sizeof(wide), sizeof(wide));
            number = (double) wide;
            memcpy(wire, &number, sizeof(wire));
            swap_elements(dst + i * sizeof(wire), wire, swap ? sizeof(wire) : 1, swap ? 1 : sizeof(wire));
        } else {
            swap_elements(wire, src + i * sizeof(wire), swap ? sizeof(wire) : 1, swap ? 1 : sizeof(wire));
            memcpy(&number, wire, sizeof(wire));
            wide = number;
            memcpy(dst + i * sizeof(wide), &wide, sizeof(wide));
        }
    }
}

/* Long doubles of 16 bytes; opal_arch_converts has left only x87 <-> binary128. */
static void convert_long_double(uint8_t *dst, bool dst_big, const uint8_t *src, bool src_big,
                                bool to_binary128, size_t n)
{
    for (size_t i = 0; i < n; i++, dst += 16, src += 16) {
        uint8_t in[16];
        uint8_t out[16] = {0};

        memcpy(in, src, sizeof(in));
        if (src_big) {
            reverse_bytes(in, src, sizeof(in), 1);
        }
        if (to_binary128) {
            x87_to_binary128(out, in);
        } else {
            binary128_to_x87(out, in);
        }
        memcpy(dst, out, sizeof(out));
        if (dst_big) {
            reverse_bytes(dst, out, sizeof(out), 1);
        }
    }
}

static void convert(const opal_arch_t *to, uint8_t *dst, const opal_arch_t *from,
                    const uint8_t *src, opal_basic_t basic, size_t n)
{
    uint8_t kind = kinds[basic];
    size_t dst_size = to->size[basic];
    size_t src_size = from->size[basic];

    if (is_complex(basic)) {
        dst_size /= 2;
        src_size /= 2;
        n *= 2;
    }
    if (KIND_LONG_DOUBLE == kind && to->long_double != from->long_double &&
        (OPAL_LONG_DOUBLE_IEEE64 == to->long_double || OPAL_LONG_DOUBLE_IEEE64 == from->long_double)) {
        convert_double(dst, src, &local_arch == from ? to : from, &local_arch == from, n);
    } else if (KIND_LONG_DOUBLE == kind && to->long_double != from->long_double) {
        convert_long_double(dst, to->big_endian, src, from->big_endian,
                            OPAL_LONG_DOUBLE_IEEE128 == to->long_double, n);
    } else if (dst_size != src_size) {
        for (size_t i = 0; i < n; i++, dst += dst_size, src += src_size) {
            resize_integer(dst, dst_size, to->big_endian, src, src_size, from->big_endian,
                           KIND_SIGNED == kind);
        }
    } else if (KIND_OPAQUE == kind || to->big_endian == from->big_endian) {
        memcpy(dst, src, n * dst_size);
    } else {
        swap_elements(dst, src, dst_size, n);
    }
}

void opal_arch_to_remote(const opal_arch_t *remote, opal_basic_t basic, void *wire,
                         const void *local, size_t n)
{
    convert(remote, wire, &local_arch, local, basic, n);
}

void opal_arch_from_remote(const opal_arch_t *remote, opal_basic_t basic, void *local,
                           const void *wire, size_t n)
{
    convert(&local_arch, local, remote, wire, basic, n);
}
