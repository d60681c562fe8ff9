/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Every datatype constructor, in both forms, against a naive list of displacements; envelope and
 * contents by rebuilding the type from them; bad arguments and overflow. */
#include <limits.h>
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/tap.h"

enum { MAX_UNITS = 20000, BUFFER = 1 << 16 };

/* The expected typemap: byte displacements of ints, in packing order. */
typedef struct map {
    int n;
    MPI_Aint disp[MAX_UNITS];
} map_t;

static char memory[BUFFER];

static void map_add(map_t *map, MPI_Aint disp)
{
    if (map->n < MAX_UNITS) {
        map->disp[map->n++] = disp;
    }
}

/* Packs one element whose origin is in the middle of `memory`, compares with the map. */
static bool matches(MPI_Datatype type, const map_t *map)
{
    static char packed[MAX_UNITS * 4];
    const char *origin = memory + BUFFER / 2;
    int position = 0;
    int size;

    MPI_Type_size(type, &size);
    if (size != 4 * map->n) {
        return false;
    }
    MPI_Type_commit(&type);
    if (MPI_SUCCESS != MPI_Pack(origin, 1, type, packed, sizeof(packed), &position,
                                MPI_COMM_SELF) || position != size) {
        return false;
    }
    for (int i = 0; i < map->n; i++) {
        if (0 != memcmp(packed + 4 * i, origin + map->disp[i], 4)) {
            return false;
        }
    }
    return true;
}

/* ---- Rebuilding a type from its contents ---- */

static MPI_Datatype rebuild(MPI_Datatype type);

typedef struct contents {
    MPI_Count n_int;
    MPI_Count n_addr;
    MPI_Count n_large;
    MPI_Count n_type;
    int combiner;
    int *i;
    MPI_Aint *a;
    MPI_Count *l;
    MPI_Datatype *t;
} contents_t;

static MPI_Datatype rebuild_small(const contents_t *c)
{
    MPI_Datatype out = MPI_DATATYPE_NULL;
    int *i = c->i;

    switch (c->combiner) {
    case MPI_COMBINER_DUP:
        MPI_Type_dup(c->t[0], &out);
        break;
    case MPI_COMBINER_CONTIGUOUS:
        MPI_Type_contiguous(i[0], c->t[0], &out);
        break;
    case MPI_COMBINER_VECTOR:
        MPI_Type_vector(i[0], i[1], i[2], c->t[0], &out);
        break;
    case MPI_COMBINER_HVECTOR:
        MPI_Type_create_hvector(i[0], i[1], c->a[0], c->t[0], &out);
        break;
    case MPI_COMBINER_INDEXED:
        MPI_Type_indexed(i[0], i + 1, i + 1 + i[0], c->t[0], &out);
        break;
    case MPI_COMBINER_HINDEXED:
        MPI_Type_create_hindexed(i[0], i + 1, c->a, c->t[0], &out);
        break;
    case MPI_COMBINER_INDEXED_BLOCK:
        MPI_Type_create_indexed_block(i[0], i[1], i + 2, c->t[0], &out);
        break;
    case MPI_COMBINER_HINDEXED_BLOCK:
        MPI_Type_create_hindexed_block(i[0], i[1], c->a, c->t[0], &out);
        break;
    case MPI_COMBINER_STRUCT:
        MPI_Type_create_struct(i[0], i + 1, c->a, c->t, &out);
        break;
    case MPI_COMBINER_SUBARRAY:
        MPI_Type_create_subarray(i[0], i + 1, i + 1 + i[0], i + 1 + 2 * i[0], i[1 + 3 * i[0]],
                                 c->t[0], &out);
        break;
    case MPI_COMBINER_DARRAY:
        MPI_Type_create_darray(i[0], i[1], i[2], i + 3, i + 3 + i[2], i + 3 + 2 * i[2],
                               i + 3 + 3 * i[2], i[3 + 4 * i[2]], c->t[0], &out);
        break;
    case MPI_COMBINER_RESIZED:
        MPI_Type_create_resized(c->t[0], c->a[0], c->a[1], &out);
        break;
    }
    return out;
}

static MPI_Datatype rebuild_large(const contents_t *c)
{
    MPI_Datatype out = MPI_DATATYPE_NULL;
    MPI_Count *l = c->l;
    int *i = c->i;

    switch (c->combiner) {
    case MPI_COMBINER_CONTIGUOUS:
        MPI_Type_contiguous_c(l[0], c->t[0], &out);
        break;
    case MPI_COMBINER_VECTOR:
        MPI_Type_vector_c(l[0], l[1], l[2], c->t[0], &out);
        break;
    case MPI_COMBINER_HVECTOR:
        MPI_Type_create_hvector_c(l[0], l[1], l[2], c->t[0], &out);
        break;
    case MPI_COMBINER_INDEXED:
        MPI_Type_indexed_c(l[0], l + 1, l + 1 + l[0], c->t[0], &out);
        break;
    case MPI_COMBINER_HINDEXED:
        MPI_Type_create_hindexed_c(l[0], l + 1, l + 1 + l[0], c->t[0], &out);
        break;
    case MPI_COMBINER_INDEXED_BLOCK:
        MPI_Type_create_indexed_block_c(l[0], l[1], l + 2, c->t[0], &out);
        break;
    case MPI_COMBINER_HINDEXED_BLOCK:
        MPI_Type_create_hindexed_block_c(l[0], l[1], l + 2, c->t[0], &out);
        break;
    case MPI_COMBINER_STRUCT:
        MPI_Type_create_struct_c(l[0], l + 1, l + 1 + l[0], c->t, &out);
        break;
    case MPI_COMBINER_SUBARRAY:
        MPI_Type_create_subarray_c(i[0], l, l + i[0], l + 2 * i[0], i[1], c->t[0], &out);
        break;
    case MPI_COMBINER_DARRAY:
        MPI_Type_create_darray_c(i[0], i[1], i[2], l, i + 3, i + 3 + i[2], i + 3 + 2 * i[2],
                                 i[3 + 3 * i[2]], c->t[0], &out);
        break;
    case MPI_COMBINER_RESIZED:
        MPI_Type_create_resized_c(c->t[0], l[0], l[1], &out);
        break;
    }
    return out;
}

static bool is_named(MPI_Datatype type)
{
    int n_int;
    int n_addr;
    int n_type;
    int combiner;

    MPI_Type_get_envelope(type, &n_int, &n_addr, &n_type, &combiner);
    return MPI_COMBINER_NAMED == combiner;
}

static MPI_Datatype rebuild(MPI_Datatype type)
{
    MPI_Datatype out;
    contents_t c;

    MPI_Type_get_envelope_c(type, &c.n_int, &c.n_addr, &c.n_large, &c.n_type, &c.combiner);
    if (MPI_COMBINER_NAMED == c.combiner) {
        return type;
    }
    c.i = malloc(((size_t) c.n_int + 1) * sizeof(int));
    c.a = malloc(((size_t) c.n_addr + 1) * sizeof(MPI_Aint));
    c.l = malloc(((size_t) c.n_large + 1) * sizeof(MPI_Count));
    c.t = malloc(((size_t) c.n_type + 1) * sizeof(MPI_Datatype));
    MPI_Type_get_contents_c(type, c.n_int, c.n_addr, c.n_large, c.n_type, c.i, c.a, c.l, c.t);
    for (int k = 0; k < c.n_type; k++) {
        MPI_Datatype inner = rebuild(c.t[k]);

        if (!is_named(c.t[k])) {
            MPI_Type_free(&c.t[k]);
        }
        c.t[k] = inner;
    }
    out = c.n_large > 0 ? rebuild_large(&c) : rebuild_small(&c);
    for (int k = 0; k < c.n_type; k++) {
        if (!is_named(c.t[k])) {
            MPI_Type_free(&c.t[k]);
        }
    }
    free(c.i);
    free(c.a);
    free(c.l);
    free(c.t);
    return out;
}

static bool same_bounds(MPI_Datatype a, MPI_Datatype b)
{
    MPI_Count lb[4];
    MPI_Count extent[4];

    MPI_Type_get_extent_c(a, &lb[0], &extent[0]);
    MPI_Type_get_extent_c(b, &lb[1], &extent[1]);
    MPI_Type_get_true_extent_c(a, &lb[2], &extent[2]);
    MPI_Type_get_true_extent_c(b, &lb[3], &extent[3]);
    return lb[0] == lb[1] && extent[0] == extent[1] && lb[2] == lb[3] && extent[2] == extent[3];
}

/* The type is as the map says, and so is what its contents make; frees the type. */
static void check(const char *what, MPI_Datatype type, const map_t *map)
{
    MPI_Datatype again = rebuild(type);

    TAP_OK(matches(type, map), "%s: typemap", what);
    TAP_OK(MPI_DATATYPE_NULL != again && again != type && same_bounds(type, again) &&
               matches(again, map),
           "%s: rebuilt from its contents", what);
    MPI_Type_free(&again);
    MPI_Type_free(&type);
    TAP_OK(MPI_DATATYPE_NULL == type, "%s: freed", what);
}

/* ---- One function per constructor ---- */

/* {int, gap of 4}: extent 8, so that nothing merges by accident. */
static MPI_Datatype gappy_int(void)
{
    MPI_Datatype type;

    MPI_Type_create_resized(MPI_INT, 0, 8, &type);
    return type;
}

static void test_vectors(void)
{
    static map_t map;
    MPI_Datatype old = gappy_int();
    MPI_Datatype seven;
    MPI_Datatype t;

    map.n = 0;
    for (int i = 0; i < 7; i++) {
        map_add(&map, 8 * i);
    }
    MPI_Type_contiguous(7, old, &t);
    check("contiguous", t, &map);
    MPI_Type_contiguous_c(7, old, &t);
    check("contiguous_c", t, &map);
    MPI_Type_contiguous(7, old, &seven);
    MPI_Type_dup(seven, &t);
    MPI_Type_free(&seven);
    check("dup", t, &map);

    map.n = 0;
    for (int i = 0; i < 5 * 3; i++) {
        map_add(&map, 8 * (-4 * (i / 3) + i % 3));
    }
    MPI_Type_vector(5, 3, -4, old, &t);
    check("vector", t, &map);
    MPI_Type_vector_c(5, 3, -4, old, &t);
    check("vector_c", t, &map);

    map.n = 0;
    for (int i = 0; i < 5 * 3; i++) {
        map_add(&map, 52 * (i / 3) + 8 * (i % 3));
    }
    MPI_Type_create_hvector(5, 3, 52, old, &t);
    check("hvector", t, &map);
    MPI_Type_create_hvector_c(5, 3, 52, old, &t);
    check("hvector_c", t, &map);
    MPI_Type_free(&old);
}

static const int lens[] = {2, 0, 1, 3, 1, 2};
static const int disps[] = {5, 90, -7, 10, 20, 30};
enum { N_BLOCKS = sizeof(lens) / sizeof(lens[0]) };

static void map_blocks(map_t *map, bool equal, int unit)
{
    map->n = 0;
    for (int b = 0; b < N_BLOCKS; b++) {
        for (int i = 0; i < (equal ? 2 : lens[b]); i++) {
            map_add(map, (MPI_Aint) disps[b] * unit + 8 * i);
        }
    }
}

static void test_indexed(void)
{
    static map_t map;
    MPI_Datatype old = gappy_int();
    MPI_Aint bytes[N_BLOCKS];
    MPI_Count lens_c[N_BLOCKS];
    MPI_Count disps_c[N_BLOCKS];
    MPI_Count bytes_c[N_BLOCKS];
    MPI_Datatype t;

    for (int b = 0; b < N_BLOCKS; b++) {
        bytes[b] = bytes_c[b] = 12 * disps[b];
        lens_c[b] = lens[b];
        disps_c[b] = disps[b];
    }
    map_blocks(&map, false, 8);
    MPI_Type_indexed(N_BLOCKS, lens, disps, old, &t);
    check("indexed", t, &map);
    MPI_Type_indexed_c(N_BLOCKS, lens_c, disps_c, old, &t);
    check("indexed_c", t, &map);
    map_blocks(&map, false, 12);
    MPI_Type_create_hindexed(N_BLOCKS, lens, bytes, old, &t);
    check("hindexed", t, &map);
    MPI_Type_create_hindexed_c(N_BLOCKS, lens_c, bytes_c, old, &t);
    check("hindexed_c", t, &map);
    map_blocks(&map, true, 8);
    MPI_Type_create_indexed_block(N_BLOCKS, 2, disps, old, &t);
    check("indexed_block", t, &map);
    MPI_Type_create_indexed_block_c(N_BLOCKS, 2, disps_c, old, &t);
    check("indexed_block_c", t, &map);
    map_blocks(&map, true, 12);
    MPI_Type_create_hindexed_block(N_BLOCKS, 2, bytes, old, &t);
    check("hindexed_block", t, &map);
    MPI_Type_create_hindexed_block_c(N_BLOCKS, 2, bytes_c, old, &t);
    check("hindexed_block_c", t, &map);
    MPI_Type_free(&old);
}

static void test_struct(void)
{
    static map_t map;
    int len[] = {2, 1, 3};
    MPI_Count len_c[] = {2, 1, 3};
    MPI_Aint disp[] = {0, 100, -40};
    MPI_Count disp_c[] = {0, 100, -40};
    MPI_Datatype types[] = {gappy_int(), MPI_FLOAT, MPI_INT};
    MPI_Datatype t;

    map.n = 0;
    map_add(&map, 0);
    map_add(&map, 8);
    map_add(&map, 100);
    map_add(&map, -40);
    map_add(&map, -36);
    map_add(&map, -32);
    MPI_Type_create_struct(3, len, disp, types, &t);
    check("struct", t, &map);
    MPI_Type_create_struct_c(3, len_c, disp_c, types, &t);
    check("struct_c", t, &map);
    MPI_Type_free(&types[0]);

    map.n = 0;
    map_add(&map, 0);
    MPI_Type_create_resized(MPI_INT, -3, 17, &t);
    check("resized", t, &map);
    MPI_Type_create_resized_c(MPI_INT, -3, 17, &t);
    check("resized_c", t, &map);
}

static void test_subarray(int order)
{
    static map_t map;
    int sizes[] = {5, 6, 7};
    int subsizes[] = {2, 3, 4};
    int starts[] = {3, 1, 2};
    MPI_Count sizes_c[] = {5, 6, 7};
    MPI_Count subsizes_c[] = {2, 3, 4};
    MPI_Count starts_c[] = {3, 1, 2};
    MPI_Datatype old = gappy_int();
    MPI_Datatype t;
    MPI_Aint lb;
    MPI_Aint extent;
    int slow = MPI_ORDER_C == order ? 0 : 2;
    int fast = 2 - slow;

    map.n = 0;
    for (int i = 0; i < subsizes[slow]; i++) {
        for (int j = 0; j < subsizes[1]; j++) {
            for (int k = 0; k < subsizes[fast]; k++) {
                map_add(&map, 8 * (((starts[slow] + i) * sizes[1] + starts[1] + j) * sizes[fast] +
                                   starts[fast] + k));
            }
        }
    }
    MPI_Type_create_subarray(3, sizes, subsizes, starts, order, old, &t);
    MPI_Type_get_extent(t, &lb, &extent);
    TAP_OK(0 == lb && 5 * 6 * 7 * 8 == extent, "subarray: extent of the whole array");
    check(MPI_ORDER_C == order ? "subarray in C order" : "subarray in Fortran order", t, &map);
    MPI_Type_create_subarray_c(3, sizes_c, subsizes_c, starts_c, order, old, &t);
    check("subarray_c", t, &map);
    MPI_Type_free(&old);
}

/* Which coordinate owns index g, by the definition of the distributions. */
static int owner(int g, int gsize, int distrib, int darg, int psize)
{
    int block = darg;

    if (MPI_DISTRIBUTE_NONE == distrib) {
        return 0;
    }
    if (MPI_DISTRIBUTE_DFLT_DARG == darg) {
        block = MPI_DISTRIBUTE_CYCLIC == distrib ? 1 : (gsize + psize - 1) / psize;
    }
    return g / block % psize;
}

static void test_darray(int order, const int distribs[2], const int dargs[2])
{
    static map_t map;
    int gsizes[] = {7, 11};
    MPI_Count gsizes_c[] = {7, 11};
    int psizes[] = {MPI_DISTRIBUTE_NONE == distribs[0] ? 1 : 2, 3};
    int size = psizes[0] * psizes[1];
    int slow = MPI_ORDER_C == order ? 0 : 1;
    MPI_Datatype old = gappy_int();
    MPI_Datatype t;

    for (int rank = 0; rank < size; rank++) {
        int coordinates[] = {rank / psizes[1], rank % psizes[1]};

        map.n = 0;
        for (int i = 0; i < gsizes[slow]; i++) {
            for (int j = 0; j < gsizes[1 - slow]; j++) {
                int g[2] = {0 == slow ? i : j, 0 == slow ? j : i};

                if (owner(g[0], 7, distribs[0], dargs[0], psizes[0]) == coordinates[0] &&
                    owner(g[1], 11, distribs[1], dargs[1], psizes[1]) == coordinates[1]) {
                    map_add(&map, 8 * (i * gsizes[1 - slow] + j));
                }
            }
        }
        MPI_Type_create_darray(size, rank, 2, gsizes, distribs, dargs, psizes, order, old, &t);
        check("darray", t, &map);
        MPI_Type_create_darray_c(size, rank, 2, gsizes_c, distribs, dargs, psizes, order, old, &t);
        check("darray_c", t, &map);
    }
    MPI_Type_free(&old);
}

static void test_darrays(void)
{
    static const int distribs[][2] = {
        {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK},
        {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC},
        {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_CYCLIC},
        {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK},
    };
    static const int dargs[][2] = {
        {MPI_DISTRIBUTE_DFLT_DARG, 5},
        {2, 3},
        {0, MPI_DISTRIBUTE_DFLT_DARG}, /* ignored where nothing is distributed, as in the example of MPI-5.0 section 5.1.4 */
        {4, MPI_DISTRIBUTE_DFLT_DARG},
    };

    for (int i = 0; i < 4; i++) {
        test_darray(MPI_ORDER_C, distribs[i], dargs[i]);
        test_darray(MPI_ORDER_FORTRAN, distribs[i], dargs[i]);
    }
}

static void test_lifetime(void)
{
    static map_t map;
    MPI_Datatype inner = gappy_int();
    MPI_Datatype outer;

    MPI_Type_contiguous(3, inner, &outer);
    MPI_Type_free(&inner);
    map.n = 0;
    for (int i = 0; i < 3; i++) {
        map_add(&map, 8 * i);
    }
    check("type whose old type was freed", outer, &map);
}

static int class_of(int rc)
{
    int class;

    MPI_Error_class(rc, &class);
    return class;
}

static void test_errors(void)
{
    MPI_Datatype t = MPI_INT;
    MPI_Datatype null = MPI_DATATYPE_NULL;
    int negative[] = {-1};
    int zero[] = {0};
    int one[] = {1};
    int n;

    TAP_OK(class_of(MPI_Type_contiguous(-1, MPI_INT, &t)) == MPI_ERR_COUNT, "negative count");
    TAP_OK(class_of(MPI_Type_contiguous(1, null, &t)) == MPI_ERR_TYPE, "null old type");
    TAP_OK(class_of(MPI_Type_indexed(1, negative, zero, MPI_INT, &t)) == MPI_ERR_ARG,
           "negative block length");
    TAP_OK(class_of(MPI_Type_create_subarray(1, one, one, one, MPI_ORDER_C, MPI_INT, &t)) ==
               MPI_ERR_ARG, "subarray that sticks out");
    TAP_OK(class_of(MPI_Type_create_subarray(1, one, one, zero, 99, MPI_INT, &t)) == MPI_ERR_ARG,
           "unknown order");
    t = MPI_INT;
    TAP_OK(class_of(MPI_Type_free(&t)) == MPI_ERR_TYPE && MPI_INT == t, "free of a named type");
    TAP_OK(class_of(MPI_Type_get_contents(MPI_INT, 0, 0, 0, &n, NULL, NULL)) == MPI_ERR_TYPE,
           "contents of a named type");
}

static void test_overflow(void)
{
    MPI_Count huge = INT64_C(1) << 61;
    MPI_Count two[] = {2, 2};
    MPI_Count far[] = {0, INT64_MAX - 3};
    MPI_Datatype t;
    MPI_Datatype big;
    MPI_Count size;
    int small;

    TAP_OK(class_of(MPI_Type_contiguous_c(huge, MPI_DOUBLE, &t)) == MPI_ERR_VALUE_TOO_LARGE,
           "size beyond 63 bits");
    TAP_OK(class_of(MPI_Type_vector_c(2, 1, huge, MPI_DOUBLE, &t)) == MPI_ERR_VALUE_TOO_LARGE,
           "stride beyond 63 bits");
    TAP_OK(class_of(MPI_Type_create_hindexed_c(2, two, far, MPI_INT, &t)) ==
               MPI_ERR_VALUE_TOO_LARGE, "displacement beyond 63 bits");
    MPI_Type_contiguous_c(huge, MPI_BYTE, &big);
    TAP_OK(class_of(MPI_Type_contiguous_c(huge, big, &t)) == MPI_ERR_VALUE_TOO_LARGE,
           "nested size beyond 63 bits");
    MPI_Type_size_c(big, &size);
    MPI_Type_size(big, &small);
    TAP_OK(huge == size && MPI_UNDEFINED == small, "a size that int does not hold");
    MPI_Type_free(&big);
    small = 0;
    TAP_OK(MPI_SUCCESS == MPI_Pack_size(INT_MAX, MPI_DOUBLE, MPI_COMM_WORLD, &small) && MPI_UNDEFINED == small,
           "a packed size that int does not hold");
    size = 0;
    TAP_OK(MPI_SUCCESS == MPI_Pack_size_c(huge, MPI_DOUBLE, MPI_COMM_WORLD, &size) && MPI_UNDEFINED == size,
           "... and one that MPI_Count does not hold");
}

/* Blocks that overlap: their bounds are near, their sum is not. */
static void test_overlapping(void)
{
    enum { BLOCKS = 32 };
    MPI_Count lengths[BLOCKS];
    MPI_Count even[BLOCKS];
    MPI_Count uneven[BLOCKS];
    MPI_Datatype t;

    for (int i = 0; i < BLOCKS; i++) {
        lengths[i] = INT64_C(1) << 59;
        even[i] = 3 * i;
        uneven[i] = 3 * i * i;
    }
    TAP_OK(class_of(MPI_Type_create_hindexed_c(BLOCKS, lengths, even, MPI_BYTE, &t)) == MPI_ERR_VALUE_TOO_LARGE,
           "blocks at equal distances of 2^64 bytes together");
    TAP_OK(class_of(MPI_Type_create_hindexed_c(BLOCKS, lengths, uneven, MPI_BYTE, &t)) == MPI_ERR_VALUE_TOO_LARGE,
           "blocks at any distances of 2^64 bytes together");
    TAP_OK(class_of(MPI_Type_create_hindexed_c(BLOCKS / 2 - 1, lengths, uneven, MPI_BYTE, &t)) == MPI_SUCCESS,
           "... and such that fit");
    MPI_Type_free(&t);
}

static int deleted;

static int on_delete(MPI_Datatype type, int key, void *value, void *state)
{
    (void) type;
    (void) key;
    (void) value;
    (void) state;
    deleted++;
    return MPI_SUCCESS;
}

/* What MPI_Type_get_contents returns is the user's to free, and does not touch what the type was made of (MPI-5.0 section 5.1.13). */
static void test_contents_apart(void)
{
    int key, there, length;
    int integers[1];
    MPI_Aint addresses[1];
    void *value;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Datatype inner, outer, got, again;

    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, on_delete, &key, NULL);
    MPI_Type_contiguous(3, MPI_INT, &inner);
    MPI_Type_commit(&inner);
    MPI_Type_set_attr(inner, key, &key);
    MPI_Type_set_name(inner, "mine");
    MPI_Type_contiguous(2, inner, &outer);
    MPI_Type_get_contents(outer, 1, 0, 1, integers, addresses, &got);
    MPI_Type_set_name(got, "other");
    MPI_Type_get_contents(got, 1, 0, 1, integers, addresses, &again);
    TAP_OK(3 == integers[0] && MPI_INT == again, "what was got has contents, too");
    TAP_OK(MPI_SUCCESS == MPI_Send(name, 0, got, MPI_PROC_NULL, 0, MPI_COMM_SELF), "... and is committed, as the type is");
    MPI_Type_free(&got);
    MPI_Type_get_attr(inner, key, &value, &there);
    MPI_Type_get_name(inner, name, &length);
    TAP_OK(there && 0 == deleted && 0 == strcmp(name, "mine"), "its end leaves the type as it was");
    MPI_Type_free(&inner);
    TAP_OK(1 == deleted, "whose attributes go with it");
    MPI_Type_get_contents(outer, 1, 0, 1, integers, addresses, &got);
    MPI_Type_free(&outer);
    MPI_Type_size(got, &length);
    TAP_OK(12 == length, "the contents outlive the type");
    MPI_Type_free(&got);
    MPI_Type_free_keyval(&key);
}

int main(int argc, char **argv)
{
    tap_start(60);
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < BUFFER; i++) {
        memory[i] = (char) (i * 167 + i / 251);
    }
    test_vectors();
    test_indexed();
    test_struct();
    test_subarray(MPI_ORDER_C);
    test_subarray(MPI_ORDER_FORTRAN);
    test_darrays();
    test_lifetime();
    test_errors();
    test_overflow();
    test_overlapping();
    test_contents_apart();
    MPI_Finalize();
    return tap_end();
}
