/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Predefined types: sizes, extents, names, external32 form; types by size or precision; element
 * counts of received data. */
#include <complex.h>
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

#include "support/tap.h"

typedef struct named {
    MPI_Datatype type;
    const char *name;
    size_t size;
    size_t extent;
    int external;               /* bytes in external32 */
} named_t;

struct float_int { float v; int i; };
struct double_int { double v; int i; };
struct long_int { long v; int i; };
struct short_int { short v; int i; };
struct long_double_int { long double v; int i; };

#define NAMED(mpi, c, external) {mpi, #mpi, sizeof(c), sizeof(c), external}
#define SIZED(mpi, bytes) {mpi, #mpi, bytes, bytes, bytes}
#define PAIR(mpi, data, c, external) {mpi, #mpi, data, sizeof(c), external}

static const named_t all[] = {
    NAMED(MPI_AINT, MPI_Aint, 8), NAMED(MPI_COUNT, MPI_Count, 8), NAMED(MPI_OFFSET, MPI_Offset, 8),
    NAMED(MPI_PACKED, char, 1), NAMED(MPI_BYTE, char, 1), NAMED(MPI_CHAR, char, 1),
    NAMED(MPI_SIGNED_CHAR, char, 1), NAMED(MPI_UNSIGNED_CHAR, char, 1),
    NAMED(MPI_SHORT, short, 2), NAMED(MPI_UNSIGNED_SHORT, short, 2), NAMED(MPI_INT, int, 4),
    NAMED(MPI_UNSIGNED, int, 4), NAMED(MPI_LONG, long, 4), NAMED(MPI_UNSIGNED_LONG, long, 4),
    NAMED(MPI_LONG_LONG_INT, long long, 8), NAMED(MPI_UNSIGNED_LONG_LONG, long long, 8),
    NAMED(MPI_FLOAT, float, 4), NAMED(MPI_DOUBLE, double, 8),
    NAMED(MPI_LONG_DOUBLE, long double, 16), NAMED(MPI_C_COMPLEX, float complex, 8),
    NAMED(MPI_C_DOUBLE_COMPLEX, double complex, 16),
    NAMED(MPI_C_LONG_DOUBLE_COMPLEX, long double complex, 32),
    NAMED(MPI_CXX_FLOAT_COMPLEX, float complex, 8),
    NAMED(MPI_CXX_DOUBLE_COMPLEX, double complex, 16),
    NAMED(MPI_CXX_LONG_DOUBLE_COMPLEX, long double complex, 32), NAMED(MPI_C_BOOL, _Bool, 1),
    NAMED(MPI_CXX_BOOL, _Bool, 1), NAMED(MPI_WCHAR, wchar_t, 2), SIZED(MPI_INT8_T, 1),
    SIZED(MPI_UINT8_T, 1), SIZED(MPI_INT16_T, 2), SIZED(MPI_UINT16_T, 2), SIZED(MPI_INT32_T, 4),
    SIZED(MPI_UINT32_T, 4), SIZED(MPI_INT64_T, 8), SIZED(MPI_UINT64_T, 8), SIZED(MPI_LOGICAL, 4),
    SIZED(MPI_INTEGER, 4), SIZED(MPI_REAL, 4), SIZED(MPI_DOUBLE_PRECISION, 8),
    SIZED(MPI_COMPLEX, 8), SIZED(MPI_DOUBLE_COMPLEX, 16), SIZED(MPI_CHARACTER, 1),
    SIZED(MPI_LOGICAL1, 1), SIZED(MPI_LOGICAL2, 2), SIZED(MPI_LOGICAL4, 4),
    SIZED(MPI_LOGICAL8, 8), SIZED(MPI_LOGICAL16, 16), SIZED(MPI_INTEGER1, 1),
    SIZED(MPI_INTEGER2, 2), SIZED(MPI_INTEGER4, 4), SIZED(MPI_INTEGER8, 8),
    SIZED(MPI_INTEGER16, 16), SIZED(MPI_REAL2, 2), SIZED(MPI_REAL4, 4), SIZED(MPI_REAL8, 8),
    SIZED(MPI_REAL16, 16), SIZED(MPI_COMPLEX4, 4), SIZED(MPI_COMPLEX8, 8),
    SIZED(MPI_COMPLEX16, 16), SIZED(MPI_COMPLEX32, 32),
    PAIR(MPI_FLOAT_INT, 8, struct float_int, 8), PAIR(MPI_DOUBLE_INT, 12, struct double_int, 12),
    PAIR(MPI_LONG_INT, sizeof(long) + 4, struct long_int, 8), PAIR(MPI_2INT, 8, int[2], 8),
    PAIR(MPI_SHORT_INT, 6, struct short_int, 6),
    PAIR(MPI_LONG_DOUBLE_INT, sizeof(long double) + 4, struct long_double_int, 20),
    SIZED(MPI_2REAL, 8), SIZED(MPI_2DOUBLE_PRECISION, 16), SIZED(MPI_2INTEGER, 8),
};

static void test_named(const named_t *n)
{
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Aint external;
    MPI_Aint lb;
    MPI_Aint extent;
    int size;
    int length;
    int n_int;
    int combiner;

    MPI_Type_size(n->type, &size);
    MPI_Type_get_extent(n->type, &lb, &extent);
    MPI_Type_get_name(n->type, name, &length);
    MPI_Type_get_envelope(n->type, &n_int, &n_int, &n_int, &combiner);
    MPI_Pack_external_size("external32", 1, n->type, &external);
    TAP_OK((size_t) size == n->size && 0 == lb && (size_t) extent == n->extent &&
               0 == strcmp(name, n->name) && (size_t) length == strlen(name) &&
               MPI_COMBINER_NAMED == combiner && external == n->external,
           "%s: size %d, extent %ld, external32 %ld", n->name, size, (long) extent,
           (long) external);
}

/* Packs into external32, compares with the bytes that the standard prescribes, and unpacks. */
static void golden(const char *what, MPI_Datatype type, int count, const void *data,
                   size_t data_size, const char *expected, size_t length)
{
    char packed[256];
    char back[256] = {0};
    MPI_Aint position = 0;
    bool ok;

    ok = MPI_SUCCESS == MPI_Pack_external("external32", data, count, type, packed, sizeof(packed),
                                          &position) &&
         (size_t) position == length && 0 == memcmp(packed, expected, length);
    position = 0;
    ok = ok &&
         MPI_SUCCESS == MPI_Unpack_external("external32", packed, (MPI_Aint) length, &position,
                                            back, count, type) &&
         (size_t) position == length && 0 == memcmp(back, data, data_size);
    TAP_OK(ok, "external32 of %s", what);
}

#define GOLDEN(what, type, data, size, expected)                                \
    golden(what, type, sizeof(data) / sizeof((data)[0]), data, size, expected, \
           sizeof(expected) - 1)

static void test_external32(void)
{
    int ints[] = {1, -2, 0x12345678};
    short shorts[] = {-2, 258};
    long longs[] = {-3, 7};
    int64_t wides[] = {INT64_C(0x0102030405060708)};
    double doubles[] = {1.0, -2.5};
    float floats[] = {1.0f, -0.5f};
    wchar_t wide_chars[] = {L'A', 0x20AC};
    struct double_int pairs[] = {{1.5, 42}};
    double complex complexes[] = {1.0 - 2.0 * I};
    char bytes[] = {'a', 'b', 'c'};
    long double long_doubles[] = {1.0L, -1.5L};
    int ld_bytes = 10;          /* what x87 uses of 16 */

    memset(&pairs[0], 0, sizeof(pairs));
    pairs[0].v = 1.5;
    pairs[0].i = 42;
    GOLDEN("int", MPI_INT, ints, sizeof(ints), "\0\0\0\1\xff\xff\xff\xfe\x12\x34\x56\x78");
    GOLDEN("short", MPI_SHORT, shorts, sizeof(shorts), "\xff\xfe\1\2");
    GOLDEN("long, 4 bytes", MPI_LONG, longs, sizeof(longs), "\xff\xff\xff\xfd\0\0\0\7");
    GOLDEN("int64_t", MPI_INT64_T, wides, sizeof(wides), "\1\2\3\4\5\6\7\10");
    GOLDEN("double", MPI_DOUBLE, doubles, sizeof(doubles),
           "\x3f\xf0\0\0\0\0\0\0\xc0\4\0\0\0\0\0\0");
    GOLDEN("float", MPI_FLOAT, floats, sizeof(floats), "\x3f\x80\0\0\xbf\0\0\0");
    GOLDEN("wchar_t, 2 bytes", MPI_WCHAR, wide_chars, sizeof(wide_chars), "\0A\x20\xac");
    GOLDEN("double and int", MPI_DOUBLE_INT, pairs, 12, "\x3f\xf8\0\0\0\0\0\0\0\0\0\x2a");
    GOLDEN("complex", MPI_C_DOUBLE_COMPLEX, complexes, sizeof(complexes),
           "\x3f\xf0\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0");
    GOLDEN("bytes", MPI_BYTE, bytes, sizeof(bytes), "abc");
    GOLDEN("long double, IEEE binary128", MPI_LONG_DOUBLE, long_doubles,
           (size_t) (sizeof(long double) < 16 ? (int) sizeof(long double) : ld_bytes),
           "\x3f\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
           "\xbf\xff\x80\0\0\0\0\0\0\0\0\0\0\0\0\0");
}

/* Values that exercise exponent and rounding of the long double conversion. */
static void test_long_double(void)
{
    long double values[] = {0.0L, -0.0L, 0x1p-16400L, 0x1.fffffffffffffffep16383L,
                            3.14159265358979323846L, -1.0L / 3.0L, __builtin_infl(),
                            -__builtin_infl()};
    char packed[256];

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        long double back = 99;
        MPI_Aint position = 0;

        MPI_Pack_external("external32", &values[i], 1, MPI_LONG_DOUBLE, packed, 256, &position);
        position = 0;
        MPI_Unpack_external("external32", packed, 256, &position, &back, 1, MPI_LONG_DOUBLE);
        TAP_OK(back == values[i] && __builtin_signbitl(back) == __builtin_signbitl(values[i]),
               "long double %Lg there and back", values[i]);
    }
}

static int class_of(int rc)
{
    int class;

    MPI_Error_class(rc, &class);
    return class;
}

static void test_pack_errors(void)
{
    char buffer[16];
    int data[4] = {0};
    int position = 1;
    MPI_Aint where = 0;

    TAP_OK(class_of(MPI_Pack(data, 4, MPI_INT, buffer, 16, &position, MPI_COMM_SELF)) ==
               MPI_ERR_TRUNCATE && 1 == position, "MPI_Pack beyond the buffer");
    TAP_OK(class_of(MPI_Unpack(buffer, 16, &position, data, 4, MPI_INT, MPI_COMM_SELF)) ==
               MPI_ERR_TRUNCATE, "MPI_Unpack beyond the buffer");
    TAP_OK(class_of(MPI_Pack_external("internal", data, 1, MPI_INT, buffer, 16, &where)) !=
               MPI_SUCCESS, "unknown data representation");
}

static void test_by_size(void)
{
    MPI_Datatype t;
    MPI_Datatype same;
    int args[2];
    int n_int;
    int n_addr;
    int n_type;
    int combiner;
    int size;

    TAP_OK(MPI_SUCCESS == MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 8, &t) && MPI_INTEGER8 == t,
           "integer of 8 bytes");
    TAP_OK(MPI_SUCCESS == MPI_Type_match_size(MPI_TYPECLASS_REAL, 4, &t) && MPI_REAL4 == t,
           "real of 4 bytes");
    TAP_OK(MPI_SUCCESS == MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 16, &t) &&
               MPI_COMPLEX16 == t, "complex of 16 bytes");
    TAP_OK(class_of(MPI_Type_match_size(MPI_TYPECLASS_REAL, 5, &t)) == MPI_ERR_ARG,
           "no real of 5 bytes");

    MPI_Type_create_f90_real(15, 200, &t);
    MPI_Type_create_f90_real(15, 200, &same);
    MPI_Type_get_envelope(t, &n_int, &n_addr, &n_type, &combiner);
    MPI_Type_get_contents(t, 2, 0, 0, args, NULL, NULL);
    MPI_Type_size(t, &size);
    TAP_OK(t == same && 8 == size && MPI_COMBINER_F90_REAL == combiner && 2 == n_int &&
               15 == args[0] && 200 == args[1], "real(15, 200): one handle, its arguments");
    TAP_OK(class_of(MPI_Type_free(&t)) == MPI_ERR_TYPE, "which may not be freed");
    MPI_Type_create_f90_complex(6, MPI_UNDEFINED, &t);
    MPI_Type_size(t, &size);
    TAP_OK(8 == size, "complex(6): single precision");
    MPI_Type_create_f90_integer(10, &t);
    MPI_Type_size(t, &size);
    TAP_OK(8 == size, "integer(10): 8 bytes");
    TAP_OK(class_of(MPI_Type_create_f90_real(99, 10, &t)) == MPI_ERR_ARG, "real(99): none");

    MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &t);
    TAP_OK(MPI_DOUBLE_INT == t, "value and index of a named pair");
    MPI_Type_get_value_index(MPI_CHAR, MPI_DOUBLE, &t);
    TAP_OK(MPI_DATATYPE_NULL == t, "no such pair");
}

static void test_names(void)
{
    MPI_Datatype t;
    char name[MPI_MAX_OBJECT_NAME];
    int length;

    MPI_Type_contiguous(2, MPI_INT, &t);
    MPI_Type_get_name(t, name, &length);
    TAP_OK(0 == length && '\0' == name[0], "a derived type has no name");
    MPI_Type_set_name(t, "two");
    MPI_Type_get_name(t, name, &length);
    TAP_OK(3 == length && 0 == strcmp(name, "two"), "until it gets one");
    MPI_Type_free(&t);
}

static void test_elements(void)
{
    MPI_Status status;
    MPI_Datatype t;
    MPI_Datatype two;
    MPI_Count large;
    int count;

    memset(&status, 0, sizeof(status));
    MPI_Type_contiguous(2, MPI_DOUBLE_INT, &t);
    MPI_Type_commit(&t);
    MPI_Status_set_elements(&status, t, 7);
    MPI_Get_elements(&status, t, &count);
    TAP_OK(7 == count, "7 basic elements of a type of 4");
    MPI_Get_count(&status, t, &count);
    TAP_OK(MPI_UNDEFINED == count, "which are no whole number of elements");
    MPI_Status_set_elements(&status, t, 8);
    MPI_Get_count(&status, t, &count);
    TAP_OK(2 == count, "8 basic elements are 2");
    MPI_Status_set_elements_c(&status, t, INT64_C(1) << 40);
    MPI_Get_elements(&status, t, &count);
    MPI_Get_elements_c(&status, t, &large);
    TAP_OK(MPI_UNDEFINED == count && INT64_C(1) << 40 == large, "more than int holds");
    MPI_Type_contiguous(0, MPI_INT, &two);
    MPI_Status_set_elements(&status, MPI_INT, 0);
    MPI_Get_count(&status, two, &count);
    TAP_OK(0 == count, "no bytes are 0 elements of an empty type");
    MPI_Type_free(&two);
    MPI_Type_free(&t);
}

int main(int argc, char **argv)
{
    tap_start(60);
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        test_named(&all[i]);
    }
    test_external32();
    test_long_double();
    test_pack_errors();
    test_by_size();
    test_names();
    test_elements();
    MPI_Finalize();
    return tap_end();
}
