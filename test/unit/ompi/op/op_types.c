/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Every predefined operator on every predefined type: legal where the standard says so, and there
 * equal to a naive computation element by element, on data of any alignment. */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/tap.h"

enum { N = 67, MAX_ELEMENT = 32 };

typedef enum kind { SIGNED, UNSIGNED, HALF, FLOAT, DOUBLE, LONG_DOUBLE, QUAD } kind_t;

/* The groups of types in MPI-5.0 section 6.9.2. */
typedef enum group { OTHER, C_INT, F_INT, REALS, LOGICAL, COMPLEXES, BYTES, MULTI, PAIRS } group_t;

typedef struct type {
    MPI_Datatype type;
    const char *name;
    group_t group;
    kind_t kind;                /* of an element or of its parts */
    size_t size;                /* of a part */
    kind_t index_kind;          /* pairs only */
    size_t index_size;
} type_t;

#define T(type, group, kind, size) {type, #type, group, kind, size, SIGNED, 0}
#define P(type, kind, size, index, index_size) {type, #type, PAIRS, kind, size, index, index_size}

static const type_t types[] = {
    T(MPI_CHAR, OTHER, SIGNED, 1), T(MPI_WCHAR, OTHER, SIGNED, 4), T(MPI_PACKED, OTHER, SIGNED, 1),
    T(MPI_CHARACTER, OTHER, SIGNED, 1), T(MPI_BYTE, BYTES, UNSIGNED, 1),
    T(MPI_SIGNED_CHAR, C_INT, SIGNED, 1), T(MPI_UNSIGNED_CHAR, C_INT, UNSIGNED, 1),
    T(MPI_SHORT, C_INT, SIGNED, sizeof(short)),
    T(MPI_UNSIGNED_SHORT, C_INT, UNSIGNED, sizeof(short)),
    T(MPI_INT, C_INT, SIGNED, sizeof(int)), T(MPI_UNSIGNED, C_INT, UNSIGNED, sizeof(int)),
    T(MPI_LONG, C_INT, SIGNED, sizeof(long)), T(MPI_UNSIGNED_LONG, C_INT, UNSIGNED, sizeof(long)),
    T(MPI_LONG_LONG, C_INT, SIGNED, 8), T(MPI_UNSIGNED_LONG_LONG, C_INT, UNSIGNED, 8),
    T(MPI_INT8_T, C_INT, SIGNED, 1), T(MPI_UINT8_T, C_INT, UNSIGNED, 1),
    T(MPI_INT16_T, C_INT, SIGNED, 2), T(MPI_UINT16_T, C_INT, UNSIGNED, 2),
    T(MPI_INT32_T, C_INT, SIGNED, 4), T(MPI_UINT32_T, C_INT, UNSIGNED, 4),
    T(MPI_INT64_T, C_INT, SIGNED, 8), T(MPI_UINT64_T, C_INT, UNSIGNED, 8),
    T(MPI_INTEGER, F_INT, SIGNED, 4), T(MPI_INTEGER1, F_INT, SIGNED, 1),
    T(MPI_INTEGER2, F_INT, SIGNED, 2), T(MPI_INTEGER4, F_INT, SIGNED, 4),
    T(MPI_INTEGER8, F_INT, SIGNED, 8), T(MPI_INTEGER16, F_INT, SIGNED, 16),
    T(MPI_AINT, MULTI, SIGNED, sizeof(MPI_Aint)), T(MPI_OFFSET, MULTI, SIGNED, 8),
    T(MPI_COUNT, MULTI, SIGNED, 8), T(MPI_FLOAT, REALS, FLOAT, 4), T(MPI_DOUBLE, REALS, DOUBLE, 8),
    T(MPI_LONG_DOUBLE, REALS, LONG_DOUBLE, sizeof(long double)), T(MPI_REAL, REALS, FLOAT, 4),
    T(MPI_DOUBLE_PRECISION, REALS, DOUBLE, 8), T(MPI_REAL2, REALS, HALF, 2),
    T(MPI_REAL4, REALS, FLOAT, 4), T(MPI_REAL8, REALS, DOUBLE, 8), T(MPI_REAL16, REALS, QUAD, 16),
    T(MPI_C_BOOL, LOGICAL, UNSIGNED, 1), T(MPI_CXX_BOOL, LOGICAL, UNSIGNED, 1),
    T(MPI_LOGICAL, LOGICAL, UNSIGNED, 4), T(MPI_LOGICAL1, LOGICAL, UNSIGNED, 1),
    T(MPI_LOGICAL2, LOGICAL, UNSIGNED, 2), T(MPI_LOGICAL4, LOGICAL, UNSIGNED, 4),
    T(MPI_LOGICAL8, LOGICAL, UNSIGNED, 8), T(MPI_LOGICAL16, LOGICAL, UNSIGNED, 16),
    T(MPI_C_FLOAT_COMPLEX, COMPLEXES, FLOAT, 4), T(MPI_C_DOUBLE_COMPLEX, COMPLEXES, DOUBLE, 8),
    T(MPI_C_LONG_DOUBLE_COMPLEX, COMPLEXES, LONG_DOUBLE, sizeof(long double)),
    T(MPI_CXX_FLOAT_COMPLEX, COMPLEXES, FLOAT, 4),
    T(MPI_CXX_DOUBLE_COMPLEX, COMPLEXES, DOUBLE, 8),
    T(MPI_CXX_LONG_DOUBLE_COMPLEX, COMPLEXES, LONG_DOUBLE, sizeof(long double)),
    T(MPI_COMPLEX, COMPLEXES, FLOAT, 4), T(MPI_DOUBLE_COMPLEX, COMPLEXES, DOUBLE, 8),
    T(MPI_COMPLEX4, COMPLEXES, HALF, 2), T(MPI_COMPLEX8, COMPLEXES, FLOAT, 4),
    T(MPI_COMPLEX16, COMPLEXES, DOUBLE, 8), T(MPI_COMPLEX32, COMPLEXES, QUAD, 16),
    P(MPI_FLOAT_INT, FLOAT, 4, SIGNED, 4), P(MPI_DOUBLE_INT, DOUBLE, 8, SIGNED, 4),
    P(MPI_LONG_INT, SIGNED, sizeof(long), SIGNED, 4), P(MPI_2INT, SIGNED, 4, SIGNED, 4),
    P(MPI_SHORT_INT, SIGNED, 2, SIGNED, 4),
    P(MPI_LONG_DOUBLE_INT, LONG_DOUBLE, sizeof(long double), SIGNED, 4),
    P(MPI_2REAL, FLOAT, 4, FLOAT, 4), P(MPI_2DOUBLE_PRECISION, DOUBLE, 8, DOUBLE, 8),
    P(MPI_2INTEGER, SIGNED, 4, SIGNED, 4),
};

/* ---- Values: small integers, exact in every format ---- */

#if __LDBL_MANT_DIG__ == 113
typedef long double binary128_t;
#else
typedef __float128 binary128_t;
#endif

/* Only integers of magnitude up to 2048. */
static uint16_t half_of(int value)
{
    unsigned magnitude = (unsigned) abs(value);
    unsigned exponent = 0;

    if (0 == value) {
        return 0;
    }
    while (magnitude >> (exponent + 1) != 0) {
        exponent++;
    }
    return (uint16_t) ((value < 0 ? 0x8000u : 0) | (exponent + 15) << 10 |
                       ((magnitude << 10 >> exponent) & 0x3ff));
}

static void put(char *at, kind_t kind, size_t size, int value)
{
    float f = (float) value;
    double d = value;
    long double l = value;
    binary128_t q = value;
    uint16_t h;

    switch (kind) {
    case FLOAT:
        memcpy(at, &f, sizeof(f));
        break;
    case DOUBLE:
        memcpy(at, &d, sizeof(d));
        break;
    case LONG_DOUBLE:
        memset(at, 0, size);
        memcpy(at, &l, 10);
        break;
    case QUAD:
        memcpy(at, &q, sizeof(q));
        break;
    case HALF:
        h = half_of(value);
        memcpy(at, &h, sizeof(h));
        break;
    default:
        memset(at, value < 0 ? 0xff : 0, size);
        memcpy(at, &value, size < sizeof(value) ? size : sizeof(value));
    }
}

/* ---- Operators ---- */

typedef struct op {
    MPI_Op op;
    const char *name;
    unsigned groups;
} op_t;

enum {
    ORDERED = 1 << C_INT | 1 << F_INT | 1 << REALS | 1 << MULTI,
    NUMBERS = ORDERED | 1 << COMPLEXES,
    TRUTHS = 1 << C_INT | 1 << LOGICAL,
    BITS = 1 << C_INT | 1 << F_INT | 1 << BYTES | 1 << MULTI
};

static const op_t ops[] = {
    {MPI_MAX, "MPI_MAX", ORDERED},    {MPI_MIN, "MPI_MIN", ORDERED},
    {MPI_SUM, "MPI_SUM", NUMBERS},    {MPI_PROD, "MPI_PROD", NUMBERS},
    {MPI_LAND, "MPI_LAND", TRUTHS},   {MPI_LOR, "MPI_LOR", TRUTHS},
    {MPI_LXOR, "MPI_LXOR", TRUTHS},   {MPI_BAND, "MPI_BAND", BITS},
    {MPI_BOR, "MPI_BOR", BITS},       {MPI_BXOR, "MPI_BXOR", BITS},
    {MPI_MAXLOC, "MPI_MAXLOC", 1 << PAIRS}, {MPI_MINLOC, "MPI_MINLOC", 1 << PAIRS},
    {MPI_REPLACE, "MPI_REPLACE", 0},  {MPI_NO_OP, "MPI_NO_OP", 0},
};

/* a op b on numbers that every type holds. */
static int scalar(MPI_Op op, int a, int b)
{
    if (MPI_MAX == op) {
        return a > b ? a : b;
    } else if (MPI_MIN == op) {
        return a < b ? a : b;
    } else if (MPI_SUM == op) {
        return a + b;
    } else if (MPI_PROD == op) {
        return a * b;
    } else if (MPI_LAND == op) {
        return a && b;
    } else if (MPI_LOR == op) {
        return a || b;
    } else if (MPI_LXOR == op) {
        return !a != !b;
    } else if (MPI_BAND == op) {
        return a & b;
    } else if (MPI_BOR == op) {
        return a | b;
    }
    return a ^ b;
}

static bool is_two(const type_t *t)
{
    return COMPLEXES == t->group || PAIRS == t->group;
}

/* One element whose parts are x and y. */
static void put_element(const type_t *t, char *at, int x, int y)
{
    size_t align = PAIRS == t->group ? (t->index_size < 16 ? t->index_size : 16) : t->size;
    size_t second = (t->size + align - 1) / align * align;

    put(at, t->kind, t->size, x);
    if (COMPLEXES == t->group) {
        put(at + t->size, t->kind, t->size, y);
    } else if (PAIRS == t->group) {
        put(at + second, t->index_kind, t->index_size, y);
    }
}

static void combine(const type_t *t, MPI_Op op, const int a[2], const int b[2], int out[2])
{
    if (PAIRS == t->group) {
        bool first = MPI_MAXLOC == op ? a[0] > b[0] : a[0] < b[0];

        out[0] = first ? a[0] : b[0];
        out[1] = a[0] == b[0] ? (a[1] < b[1] ? a[1] : b[1]) : first ? a[1] : b[1];
    } else if (COMPLEXES == t->group && MPI_PROD == op) {
        out[0] = a[0] * b[0] - a[1] * b[1];
        out[1] = a[0] * b[1] + a[1] * b[0];
    } else {
        out[0] = scalar(op, a[0], b[0]);
        out[1] = scalar(op, a[1], b[1]);
    }
}

static int random_value(const type_t *t)
{
    int value = rand() % 21 - 10;

    if (LOGICAL == t->group) {
        return rand() % 2;
    }
    if (t->kind >= HALF && 0 == value) {
        return 11;                      /* no zero, whose product may be -0 */
    }
    return UNSIGNED == t->kind ? abs(value) : value;
}

static bool computes(const type_t *t, MPI_Op op, size_t shift)
{
    static char in[N * MAX_ELEMENT * 2];
    static char inout[N * MAX_ELEMENT * 2];
    static char expected[N * MAX_ELEMENT * 2];
    MPI_Aint lb;
    MPI_Aint extent;

    MPI_Type_get_extent(t->type, &lb, &extent);
    memset(in, 0, sizeof(in));
    memset(inout, 0, sizeof(inout));
    memset(expected, 0, sizeof(expected));
    for (int i = 0; i < N; i++) {
        int a[2] = {random_value(t), random_value(t)};
        int b[2] = {random_value(t), random_value(t)};
        int out[2];

        combine(t, op, a, b, out);
        put_element(t, in + shift + i * extent, a[0], a[1]);
        put_element(t, inout + shift + i * extent, b[0], b[1]);
        put_element(t, expected + shift + i * extent, out[0], out[1]);
    }
    if (MPI_SUCCESS != MPI_Reduce_local(in + shift, inout + shift, N, t->type, op)) {
        return false;
    }
    if (LONG_DOUBLE != t->kind || __LDBL_MANT_DIG__ != 64) {
        return 0 == memcmp(inout, expected, sizeof(inout));
    }
    for (int i = 0; i < N; i++) {       /* padding may be anything */
        const char *x = inout + shift + i * extent;
        const char *y = expected + shift + i * extent;

        if (0 != memcmp(x, y, 10) ||
            (is_two(t) && 0 != memcmp(x + t->size, y + t->size, PAIRS == t->group ? 4 : 10))) {
            return false;
        }
    }
    return true;
}

static void test_all(void)
{
    for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++) {
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
            const type_t *t = &types[i];

            if (0 != (ops[o].groups & 1u << t->group)) {
                TAP_OK(computes(t, ops[o].op, 0) && computes(t, ops[o].op, 1), "%s on %s",
                       ops[o].name, t->name);
            } else {
                char in[MAX_ELEMENT] = {0};
                char inout[MAX_ELEMENT] = {0};
                int class;

                MPI_Error_class(MPI_Reduce_local(in, inout, 1, t->type, ops[o].op), &class);
                TAP_OK(MPI_ERR_OP == class, "%s is refused on %s", ops[o].name, t->name);
            }
        }
    }
}

/* All 65536 values of binary16: x + 0 and x * 1 leave x as it is. */
static void test_half(void)
{
    uint16_t zero = 0;
    uint16_t one = 0x3c00;
    uint16_t small[] = {0x3c00, 0x3c01};            /* 1, 1 + 2^-10 */
    uint16_t tiny[] = {0x1000, 0x1000};             /* 2^-11: halfway to the next number */
    uint16_t big[] = {0x7bff};                      /* 65504 */
    bool ok = true;

    for (unsigned x = 0; x < 65536; x++) {
        uint16_t sum = (uint16_t) x;
        uint16_t product = (uint16_t) x;
        bool nan = (x & 0x7fff) > 0x7c00;

        MPI_Reduce_local(&zero, &sum, 1, MPI_REAL2, MPI_SUM);
        MPI_Reduce_local(&one, &product, 1, MPI_REAL2, MPI_PROD);
        ok = ok && (nan ? (product & 0x7fff) > 0x7c00 && (sum & 0x7fff) > 0x7c00
                        : product == x && (sum == x || 0x8000 == x));
    }
    TAP_OK(ok, "binary16: x + 0 and x * 1 for all x");
    MPI_Reduce_local(tiny, small, 2, MPI_REAL2, MPI_SUM);
    TAP_OK(0x3c00 == small[0] && 0x3c02 == small[1], "binary16: ties to even");
    MPI_Reduce_local(big, big, 0, MPI_REAL2, MPI_SUM);
    MPI_Reduce_local(&big[0], &one, 1, MPI_REAL2, MPI_PROD);
    MPI_Reduce_local(&big[0], &one, 1, MPI_REAL2, MPI_SUM);
    TAP_OK(0x7c00 == one, "binary16: overflow is infinity");
}

/* ---- Operators of users ---- */

static MPI_Datatype seen_type;
static long long seen_calls;

static void user_small(void *in, void *inout, int *len, MPI_Datatype *type)
{
    seen_type = *type;
    seen_calls++;
    for (int i = 0; i < *len; i++) {
        ((int *) inout)[i] = ((int *) in)[i] - ((int *) inout)[i];
    }
}

static void user_large(void *in, void *inout, MPI_Count *len, MPI_Datatype *type)
{
    user_small(in, inout, &(int) {(int) *len}, type);
}

static void test_user(void)
{
    int in[] = {5, 6};
    int inout[] = {1, 2};
    MPI_Op predefined = MPI_SUM;
    MPI_Op op;
    int commutes;
    int class;

    MPI_Op_create(user_small, 0, &op);
    MPI_Op_commutative(op, &commutes);
    MPI_Reduce_local(in, inout, 2, MPI_INT, op);
    TAP_OK(0 == commutes && 4 == inout[0] && 4 == inout[1] && MPI_INT == seen_type &&
               1 == seen_calls, "operator of a user");
    MPI_Op_free(&op);
    TAP_OK(MPI_OP_NULL == op, "freed");
    MPI_Op_create_c(user_large, 1, &op);
    MPI_Op_commutative(op, &commutes);
    MPI_Reduce_local_c(in, inout, 2, MPI_INT, op);
    TAP_OK(1 == commutes && 1 == inout[0] && 2 == inout[1], "large-count operator of a user");
    MPI_Op_free(&op);
    MPI_Error_class(MPI_Op_free(&predefined), &class);
    TAP_OK(MPI_ERR_OP == class, "predefined operators are not freed");
    MPI_Op_commutative(MPI_SUM, &commutes);
    TAP_OK(1 == commutes, "MPI_SUM commutes");
    MPI_Error_class(MPI_Allreduce(in, inout, 1, MPI_CHAR, MPI_SUM, MPI_COMM_SELF), &class);
    TAP_OK(MPI_ERR_OP == class, "collectives refuse what the operator is not defined on");
}

int main(int argc, char **argv)
{
    tap_start(60);
    srand(1);
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    test_all();
    test_half();
    test_user();
    MPI_Finalize();
    return tap_end();
}
