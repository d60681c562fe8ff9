/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Where the layout engine ends: sizes and bounds of 63 bits, nesting that would explode if it were
 * expanded, offsets of terabytes, displacements beyond 32 bits, many threads on one message; and what folding must achieve. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "opal/constants.h"
#include "opal/datatype/convertor.h"
#include "opal/datatype/datatype.h"
#include "support/tap.h"

static opal_datatype_t basic_of(opal_basic_t basic)
{
    opal_datatype_t type;

    if (OPAL_SUCCESS != opal_datatype_init_basic(&type, basic)) {
        abort();
    }
    return type;
}

static void test_overflow(void)
{
    opal_datatype_t d = basic_of(OPAL_BASIC_FLOAT64);
    opal_datatype_t big;
    opal_datatype_t out;
    opal_convertor_t conv;
    opal_datatype_builder_t *builder;
    size_t bytes;

    TAP_OK(OPAL_ERR_VALUE_OUT_OF_BOUNDS == opal_datatype_loop(&out, &d, SIZE_MAX / 8, 8),
           "size beyond 63 bits");
    TAP_OK(OPAL_ERR_VALUE_OUT_OF_BOUNDS == opal_datatype_loop(&out, &d, 3, PTRDIFF_MAX / 2),
           "upper bound beyond 63 bits");
    TAP_OK(OPAL_ERR_VALUE_OUT_OF_BOUNDS == opal_datatype_loop(&out, &d, 3, PTRDIFF_MIN / 2 - 1),
           "lower bound beyond 63 bits");
    TAP_OK(OPAL_ERR_VALUE_OUT_OF_BOUNDS ==
               opal_datatype_resized(&out, &d, PTRDIFF_MAX, PTRDIFF_MAX), "resized beyond");
    builder = opal_datatype_builder_new(2);
    (void) opal_datatype_builder_add(builder, &d, 1, PTRDIFF_MAX - 10);
    (void) opal_datatype_builder_add(builder, &d, 1, PTRDIFF_MIN);
    TAP_OK(OPAL_ERR_VALUE_OUT_OF_BOUNDS == opal_datatype_builder_finish(builder, &out),
           "true extent beyond 63 bits");
    TAP_REQUIRE(OPAL_SUCCESS == opal_datatype_loop(&big, &d, (size_t) 1 << 58, 8), "2^61 bytes");
    TAP_OK(OPAL_ERR_VALUE_OUT_OF_BOUNDS == opal_convertor_init(&conv, &big, 8, NULL, NULL),
           "message beyond 63 bits");
    TAP_OK(!opal_datatype_total(&big, 8, &bytes) && opal_datatype_total(&big, 3, &bytes),
           "total says so");
    TAP_OK(OPAL_ERR_VALUE_OUT_OF_BOUNDS ==
               opal_convertor_init(&conv, &big, 5, NULL, opal_arch_external32()),
           "also in a foreign form");
    opal_datatype_fini(&big);
    opal_datatype_fini(&d);
}

/* struct {T; gap; T} of itself, 40 times: 2^40 pieces from 40 small layouts. */
static void test_explosion(void)
{
    opal_datatype_t type = basic_of(OPAL_BASIC_INT);
    opal_convertor_t conv;
    struct iovec iov;
    size_t n = 1;
    bool ok = true;

    for (int level = 0; ok && level < 40; level++) {
        opal_datatype_builder_t *builder = opal_datatype_builder_new(2);
        opal_datatype_t twice;

        (void) opal_datatype_builder_add(builder, &type, 1, 0);
        (void) opal_datatype_builder_add(builder, &type, 1, type.extent + 4);
        ok = OPAL_SUCCESS == opal_datatype_builder_finish(builder, &twice);
        if (ok) {
            opal_datatype_fini(&type);
            type = twice;
        }
    }
    TAP_OK(ok && (size_t) 1 << 42 == type.size, "40 levels of doubling");
    TAP_REQUIRE(OPAL_SUCCESS == opal_convertor_init(&conv, &type, 1, (void *) 4096, NULL),
                "message");
    (void) opal_convertor_raw_at(&conv, type.size - 4, &iov, &n, 4);
    TAP_OK(1 == n && (uintptr_t) iov.iov_base == 4096 + (uintptr_t) type.true_extent - 4,
           "its last piece is found at once");
    opal_datatype_fini(&type);
}

/* struct {T; int} of itself until it is refused; the deepest one must still work. */
static void test_depth(void)
{
    opal_datatype_t one = basic_of(OPAL_BASIC_INT);
    opal_datatype_t type = basic_of(OPAL_BASIC_INT);
    opal_convertor_t conv;
    int rc = OPAL_SUCCESS;
    char *memory;
    char *packed;

    while (OPAL_SUCCESS == rc && type.size < (size_t) 1 << 20) {
        opal_datatype_builder_t *builder = opal_datatype_builder_new(2);
        opal_datatype_t next;

        (void) opal_datatype_builder_add(builder, &type, 1, 0);
        (void) opal_datatype_builder_add(builder, &one, 1,
                                         type.extent + 4 * (ptrdiff_t) (1 + type.size % 7));
        rc = opal_datatype_builder_finish(builder, &next);
        if (OPAL_SUCCESS == rc) {
            opal_datatype_fini(&type);
            type = next;
        }
    }
    TAP_OK(OPAL_ERR_VALUE_OUT_OF_BOUNDS == rc && OPAL_LAYOUT_MAX_DEPTH == type.layout->depth,
           "nesting ends at %u levels after folding, %zu before", type.layout->depth,
           type.size / 4);
    memory = malloc((size_t) type.true_extent);
    packed = calloc(1, type.size);
    TAP_REQUIRE(NULL != memory && NULL != packed, "memory");
    memset(memory, 7, (size_t) type.true_extent);
    (void) opal_convertor_init(&conv, &type, 1, memory, NULL);
    TAP_OK(type.size == opal_convertor_pack_at(&conv, 0, packed, type.size) &&
               7 == packed[0] && 7 == packed[type.size - 1], "which is packed");
    free(memory);
    free(packed);
    opal_datatype_fini(&type);
    opal_datatype_fini(&one);
}

/* Wrapping one element over and over costs nothing. */
static void test_folding(void)
{
    opal_datatype_t type = basic_of(OPAL_BASIC_FLOAT64);
    opal_datatype_t next;

    for (int i = 0; i < 5000; i++) {
        if (OPAL_SUCCESS != opal_datatype_loop(&next, &type, 1, 8)) {
            break;
        }
        opal_datatype_fini(&type);
        type = next;
    }
    TAP_OK(1 == type.layout->depth && 0 != (type.flags & OPAL_DATATYPE_CONTIGUOUS),
           "contiguous(1) 5000 times is a double");
    (void) opal_datatype_hvector(&next, &type, 10, 3, 24);
    TAP_OK(240 == next.size && 0 != (next.flags & OPAL_DATATYPE_CONTIGUOUS),
           "a vector without gaps is one run");
    opal_datatype_fini(&next);
    opal_datatype_fini(&type);
}

/* Neighbours of different basic types are one run for packing, two types for counting. */
static void test_merging(void)
{
    opal_datatype_t i = basic_of(OPAL_BASIC_INT);
    opal_datatype_t f = basic_of(OPAL_BASIC_FLOAT32);
    opal_datatype_builder_t *builder = opal_datatype_builder_new(2);
    opal_datatype_t both;
    opal_convertor_t conv;

    (void) opal_datatype_builder_add(builder, &i, 1, 0);
    (void) opal_datatype_builder_add(builder, &f, 1, 4);
    TAP_REQUIRE(OPAL_SUCCESS == opal_datatype_builder_finish(builder, &both), "struct");
    TAP_OK(0 != (both.flags & OPAL_DATATYPE_CONTIGUOUS) && 2 == opal_datatype_element_count(&both),
           "int and float are 8 bytes and 2 elements");
    (void) opal_convertor_init(&conv, &both, 1000, NULL, NULL);
    TAP_OK(OPAL_NODE_VECTOR == conv.root.kind && 1 == conv.root.count, "1000 of them are one run");
    opal_datatype_fini(&both);
    opal_datatype_fini(&i);
    opal_datatype_fini(&f);
}

/* Terabytes that do not exist: the place of each offset by arithmetic. */
static void test_far_offsets(void)
{
    const size_t rows = (size_t) 1 << 21;
    const size_t planes = (size_t) 1 << 20;
    opal_datatype_t d = basic_of(OPAL_BASIC_FLOAT64);
    opal_datatype_t plane;
    opal_datatype_t cube;
    opal_convertor_t conv;
    bool ok = true;

    (void) opal_datatype_hvector(&plane, &d, rows, 2, 40);
    (void) opal_datatype_loop(&cube, &plane, planes, 40 * (ptrdiff_t) rows + 8);
    TAP_REQUIRE(OPAL_SUCCESS == opal_convertor_init(&conv, &cube, 1, NULL, NULL), "32 TiB");
    for (uint64_t i = 0; i < 10000; i++) {
        size_t offset = (size_t) (i * UINT64_C(0x9e3779b97f4a7c15)) % conv.size;
        size_t block = offset / 16;
        uintptr_t expected = block / rows * (40 * rows + 8) + block % rows * 40 + offset % 16;
        struct iovec iov;
        size_t n = 1;

        (void) opal_convertor_raw_at(&conv, offset, &iov, &n, 1);
        ok = ok && 1 == n && (uintptr_t) iov.iov_base == expected;
    }
    TAP_OK(ok && (size_t) 1 << 45 == conv.size, "10000 offsets in 32 TiB");
    opal_datatype_fini(&cube);
    opal_datatype_fini(&plane);
    opal_datatype_fini(&d);
}

enum { BLOCKS = 41, MOST = 5 * 4, GUARD = 4 };

/* Irregular blocks of floats: where they lie, and how long they are. */
typedef struct blocks {
    ptrdiff_t disp[BLOCKS];
    size_t len[BLOCKS];
    size_t size;
} blocks_t;

/* Blocks of three floats, or of one to five; those of the second half lie `far` bytes further, or the last one ends at `end`. */
static blocks_t some_blocks(bool uneven, ptrdiff_t far, ptrdiff_t end)
{
    blocks_t b = {.size = 0};
    ptrdiff_t at = 0;

    for (int k = 0; k < BLOCKS; k++) {
        b.len[k] = 4 * (size_t) (uneven ? 1 + k % 5 : 3);
        b.disp[k] = at;
        b.size += b.len[k];
        at += (ptrdiff_t) b.len[k] + 2 * GUARD + 4 * ((k * 7 + k / 5) % 3);
    }
    if (0 != end) {
        far = end - b.disp[BLOCKS - 1] - (ptrdiff_t) b.len[BLOCKS - 1];
    }
    for (int k = BLOCKS / 2; k < BLOCKS; k++) {
        b.disp[k] += far;
    }
    return b;
}

/* Packs, and unpacks in pieces of `piece` bytes; nothing beside the blocks may change. */
static bool moves_right(const opal_datatype_t *type, const blocks_t *b, char *origin, size_t piece)
{
    char packed[BLOCKS * MOST], message[BLOCKS * MOST];
    opal_convertor_t conv;
    size_t at = 0;
    bool ok = OPAL_SUCCESS == opal_convertor_init(&conv, type, 1, origin, NULL) && b->size == conv.size;

    for (int k = 0; k < BLOCKS && ok; k++) {
        memset(origin + b->disp[k] - GUARD, 0x55, b->len[k] + 2 * GUARD);
        for (size_t i = 0; i < b->len[k]; i++, at++) {
            origin[b->disp[k] + (ptrdiff_t) i] = (char) (at * 5 + 1);
            message[at] = (char) (at * 3 + 2);
        }
    }
    for (at = 0; at < b->size && ok; at += piece) {
        ok = opal_convertor_pack_at(&conv, at, packed + at, piece) == (b->size - at < piece ? b->size - at : piece);
    }
    for (size_t i = 0; i < b->size; i++) {
        ok = ok && packed[i] == (char) (i * 5 + 1);
    }
    for (at = 0; at < b->size && ok; at += piece) {
        (void) opal_convertor_unpack_at(&conv, at, message + at, b->size - at < piece ? b->size - at : piece);
    }
    at = 0;
    for (int k = 0; k < BLOCKS && ok; k++) {
        const char *block = origin + b->disp[k];

        ok = 0 == memcmp(block, message + at, b->len[k]) && 0 == memcmp(block - GUARD, "UUUU", GUARD) &&
             0 == memcmp(block + b->len[k], "UUUU", GUARD);
        at += b->len[k];
    }
    return ok;
}

static void test_table(const char *name, char *origin, blocks_t b, bool narrow)
{
    opal_datatype_t f = basic_of(OPAL_BASIC_FLOAT32);
    opal_datatype_builder_t *builder = opal_datatype_builder_new(BLOCKS);
    opal_datatype_t type;

    for (int k = 0; k < BLOCKS; k++) {
        (void) opal_datatype_builder_add(builder, &f, b.len[k] / 4, b.disp[k]);
    }
    TAP_REQUIRE(OPAL_SUCCESS == opal_datatype_builder_finish(builder, &type), "%s: type", name);
    TAP_OK(1 == type.layout->n_nodes && OPAL_NODE_VECTOR != type.layout->nodes[0].kind &&
               narrow == type.layout->nodes[0].u.table->narrow, "%s: a table of %d bits", name, narrow ? 32 : 64);
    TAP_OK(moves_right(&type, &b, origin, sizeof(b)) && moves_right(&type, &b, origin, 7) &&
               moves_right(&type, &b, origin, 61), "%s: whole and in pieces", name);
    opal_datatype_fini(&type);
    opal_datatype_fini(&f);
}

/* Tables of 32 bits, and of 64 where a displacement from the first block, or the end of a block, does not fit. */
static void test_tables(void)
{
    const size_t reach = (size_t) 5 << 30;
    char *memory = mmap(NULL, reach, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *origin = memory + reach / 2;

    if (MAP_FAILED == (void *) memory) {
        TAP_SKIP("no 5 GiB of addresses");
        return;
    }
    for (int uneven = 0; uneven < 2; uneven++) {
        test_table(uneven ? "uneven" : "even", origin, some_blocks(uneven, 0, 0), true);
        test_table(uneven ? "uneven, far on" : "even, far on", origin, some_blocks(uneven, 0, INT32_MAX), true);
        test_table(uneven ? "uneven, too far on" : "even, too far on", origin,
                   some_blocks(uneven, 0, (ptrdiff_t) INT32_MAX + 1), false);
        test_table(uneven ? "uneven, back" : "even, back", origin, some_blocks(uneven, -((ptrdiff_t) 1 << 31), 0), true);
        test_table(uneven ? "uneven, too far back" : "even, too far back", origin,
                   some_blocks(uneven, -((ptrdiff_t) 1 << 31) - 4096, 0), false);
    }
    munmap(memory, reach);
}

enum { THREADS = 4, ROWS = 4096, FRAGMENT = 1001 };

typedef struct job {
    const opal_convertor_t *conv;
    const char *packed;
    size_t first;
} job_t;

/* Every THREADS-th fragment. */
static void *unpack_some(void *arg)
{
    const job_t *job = arg;

    for (size_t at = job->first; at < job->conv->size; at += THREADS * FRAGMENT) {
        size_t left = job->conv->size - at;

        (void) opal_convertor_unpack_at(job->conv, at, job->packed + at,
                                        left < FRAGMENT ? left : FRAGMENT);
    }
    return NULL;
}

static void test_threads(void)
{
    static double matrix[ROWS][4];
    static double column[ROWS];
    opal_datatype_t d = basic_of(OPAL_BASIC_FLOAT64);
    opal_datatype_t type;
    opal_convertor_t conv;
    pthread_t threads[THREADS];
    job_t jobs[THREADS];
    bool ok = true;

    for (int i = 0; i < ROWS; i++) {
        column[i] = i + 0.5;
    }
    (void) opal_datatype_loop(&type, &d, ROWS, sizeof(matrix[0]));
    (void) opal_convertor_init(&conv, &type, 1, &matrix[0][1], NULL);
    for (size_t t = 0; t < THREADS; t++) {
        jobs[t] = (job_t) {&conv, (const char *) column, t * FRAGMENT};
        TAP_REQUIRE(0 == pthread_create(&threads[t], NULL, unpack_some, &jobs[t]), "thread");
    }
    for (size_t t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
    }
    for (int i = 0; i < ROWS; i++) {
        ok = ok && matrix[i][1] == i + 0.5 && 0 == matrix[i][0] && 0 == matrix[i][2];
    }
    TAP_OK(ok, "threads unpack fragments of one message, elements shared at the borders");
    opal_datatype_fini(&type);
    opal_datatype_fini(&d);
}

/* What a peer sends about itself is checked before it is used. */
static void test_foreign(void)
{
    opal_arch_t arch = *opal_arch_local();

    TAP_OK(OPAL_SUCCESS == opal_arch_check(&arch) &&
               OPAL_SUCCESS == opal_arch_check(opal_arch_external32()), "known architectures");
    arch.size[OPAL_BASIC_LONG] = 0;
    TAP_OK(OPAL_ERR_NOT_SUPPORTED == opal_arch_check(&arch), "long of no bytes");
    arch.size[OPAL_BASIC_LONG] = 200;
    TAP_OK(OPAL_ERR_NOT_SUPPORTED == opal_arch_check(&arch), "long of 200 bytes");
    arch = *opal_arch_local();
    arch.size[OPAL_BASIC_FLOAT64] = 7;
    TAP_OK(OPAL_ERR_NOT_SUPPORTED == opal_arch_check(&arch), "double of 7 bytes");
    arch = *opal_arch_local();
    arch.long_double = 77;
    TAP_OK(OPAL_ERR_NOT_SUPPORTED == opal_arch_check(&arch), "unknown long double");
}

int main(void)
{
    tap_start(60);
    test_overflow();
    test_explosion();
    test_depth();
    test_folding();
    test_merging();
    test_far_offsets();
    test_tables();
    test_threads();
    test_foreign();
    return tap_end();
}
