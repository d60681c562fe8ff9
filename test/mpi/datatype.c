/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Derived datatypes in messages: random layouts of all lengths, on either side, freed while in use,
 * received in part. */
#include "support/mpi_test.h"

enum { TAG = 5, ROUNDS = 120, LARGE = 3 << 20, WINDOW = 8 };

static int rank, size;
static unsigned long long state;

static void start(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static int random_below(int n)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (int) ((state >> 33) % (unsigned) n);
}

/* ---- Random types without overlaps; every process makes the same from the same state ---- */

static MPI_Datatype make_struct(void)
{
    int lens[] = {1 + random_below(3), 1, 2};
    MPI_Aint disps[] = {0, 24 + 8 * random_below(3), 48 + 8 * random_below(3)};
    MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT, MPI_CHAR}, type;
    MPI_Type_create_struct(3, lens, disps, types, &type);
    return type;
}

static MPI_Datatype make_indexed(MPI_Datatype old)
{
    int lens[40], disps[40], n = 1 + random_below(40), at = 0;
    MPI_Datatype type;
    for (int i = 0; i < n; i++) {
        disps[i] = at;
        lens[i] = random_below(4);
        at += lens[i] + random_below(3);
    }
    MPI_Type_indexed(n, lens, disps, old, &type);
    return type;
}

/* A type made of `old`, which is freed. */
static MPI_Datatype make_layer(MPI_Datatype old)
{
    MPI_Datatype type;
    MPI_Aint lb, extent;
    int block = 1 + random_below(4);
    switch (random_below(3)) {
    case 0:
        MPI_Type_vector(1 + random_below(20), block, block + random_below(3), old, &type);
        break;
    case 1:
        type = make_indexed(old);
        break;
    default:
        MPI_Type_get_extent(old, &lb, &extent);
        MPI_Type_create_resized(old, lb, extent + 8 * random_below(4), &type);
    }
    MPI_Type_free(&old);
    return type;
}

static MPI_Datatype make_type(void)
{
    MPI_Datatype type;
    if (random_below(2) == 0) {
        type = make_struct();
    } else {
        MPI_Type_contiguous(1 + random_below(3), random_below(2) ? MPI_SHORT : MPI_DOUBLE, &type);
    }
    for (int layers = random_below(4); layers > 0; layers--) {
        type = make_layer(type);
    }
    MPI_Type_commit(&type);
    return type;
}

/* ---- Messages ---- */

typedef struct message {
    MPI_Datatype type;
    int count;
    size_t span;
    MPI_Aint gap;      /* from the buffer argument to the lowest byte */
    int packed_size;
    char *memory;
    char *buffer;      /* argument of the MPI routines */
    char *packed;
} message_t;

/* As many elements as make about `bytes` of data, memory filled from `seed`. */
static message_t message_new(MPI_Datatype type, int bytes, unsigned seed)
{
    message_t m = {.type = type};
    MPI_Aint lb, extent, true_extent;
    int each, position = 0;
    MPI_Type_size(type, &each);
    MPI_Type_get_extent(type, &lb, &extent);
    MPI_Type_get_true_extent(type, &m.gap, &true_extent);
    m.count = each > 0 ? bytes / each + 1 : 3;
    m.span = (size_t) (true_extent + (m.count - 1) * extent);
    m.packed_size = m.count * each;
    m.memory = malloc(m.span + 1);
    m.packed = malloc((size_t) m.packed_size + 1);
    for (size_t i = 0; i < m.span; i++) {
        m.memory[i] = (char) ((i + seed) * 2654435761u >> 13);
    }
    m.buffer = m.memory - m.gap;
    MPI_Pack(m.buffer, m.count, type, m.packed, m.packed_size, &position, MPI_COMM_WORLD);
    return m;
}

static void message_free(message_t *m)
{
    free(m->memory);
    free(m->packed);
}

/* What `m` becomes when `from` is received into it: gaps stay as they are. */
static char *expected_memory(const message_t *m, const message_t *from)
{
    char *expected = malloc(m->span + 1);
    int position = 0;
    memcpy(expected, m->memory, m->span);
    MPI_Unpack(from->packed, from->packed_size, &position, expected - m->gap, m->count, m->type,
               MPI_COMM_WORLD);
    return expected;
}

static int random_length(void)
{
    static const int lengths[] = {1, 60, 500, 4000, 30000, 100000, 600000, LARGE};
    return lengths[random_below(8)];
}

/* Rank 0 sends, rank 1 receives with the same type, then packed. */
static void one_way(unsigned round)
{
    state = round;
    MPI_Datatype type = make_type();
    int bytes = random_length(), count;
    message_t source = message_new(type, bytes, 1), target = message_new(type, bytes, 2);
    MPI_Status status;
    if (rank == 0) {
        MPI_Send(source.buffer, source.count, type, 1, TAG, MPI_COMM_WORLD);
        MPI_Send(source.buffer, source.count, type, 1, TAG, MPI_COMM_WORLD);
    } else {
        char *expected = expected_memory(&target, &source);
        MPI_Recv(target.buffer, target.count, type, 0, TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, type, &count);
        MPI_CHECK(count == target.count || target.packed_size == 0);
        MPI_CHECK(memcmp(expected, target.memory, target.span) == 0);
        free(expected);
        memset(target.packed, 0, (size_t) target.packed_size);
        MPI_Recv(target.packed, target.packed_size, MPI_PACKED, 0, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        MPI_CHECK(memcmp(target.packed, source.packed, (size_t) source.packed_size) == 0);
    }
    message_free(&source);
    message_free(&target);
    MPI_Type_free(&type);
}

static void test_one_way(void)
{
    start();
    for (unsigned round = 0; round < ROUNDS; round++) {
        one_way(round);
    }
    MPI_Finalize();
}

/* Both ways at once, several messages under way, each type freed once its operations are started. */
static void window(unsigned round)
{
    message_t out[WINDOW], in[WINDOW];
    MPI_Request requests[2 * WINDOW];
    char *expected[WINDOW];
    state = 1000 + round;
    for (int i = 0; i < WINDOW; i++) {
        MPI_Datatype type = make_type();
        int bytes = random_length() / 4;
        message_t peer = message_new(type, bytes, (unsigned) (i + 1 - rank));
        out[i] = message_new(type, bytes, (unsigned) (i + rank));
        in[i] = message_new(type, bytes, 77);
        expected[i] = expected_memory(&in[i], &peer);
        MPI_Irecv(in[i].buffer, in[i].count, type, 1 - rank, i, MPI_COMM_WORLD, &requests[i]);
        MPI_Isend(out[i].buffer, out[i].count, type, 1 - rank, i, MPI_COMM_WORLD,
                  &requests[WINDOW + i]);
        message_free(&peer);
        MPI_Type_free(&type);
    }
    MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < WINDOW; i++) {
        MPI_CHECK(memcmp(expected[i], in[i].memory, in[i].span) == 0);
        message_free(&out[i]);
        message_free(&in[i]);
        free(expected[i]);
    }
}

static void test_window(void)
{
    start();
    for (unsigned round = 0; round < 12; round++) {
        window(round);
    }
    MPI_Finalize();
}

/* A column of a matrix arrives as a row: types that differ but for their signature. */
static void test_transpose(void)
{
    enum { N = 300 };
    static double matrix[N][N];
    MPI_Datatype column, transposed;
    start();
    MPI_Type_vector(N, 1, N, MPI_DOUBLE, &column);
    MPI_Type_create_hvector(N, 1, sizeof(double), column, &transposed);
    MPI_Type_commit(&transposed);
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < N; k++) {
            matrix[i][k] = rank == 0 ? i * N + k : -1;
        }
    }
    if (rank == 0) {
        MPI_Send(matrix, N * N, MPI_DOUBLE, 1, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(matrix, 1, transposed, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++) {
            for (int k = 0; k < N; k++) {
                MPI_CHECK(matrix[i][k] == k * N + i);
            }
        }
    }
    MPI_Type_free(&column);
    MPI_Type_free(&transposed);
    MPI_Finalize();
}

/* Whether blocks of `len` bytes, a stride of twice that apart, are packed and unpacked as they should be, and nothing else. */
static bool blocks_right(int n, int len, char *memory, char *back, char *packed)
{
    const int span = 2 * n * len;
    bool right = true;
    int position = 0;
    MPI_Datatype type;
    MPI_Type_vector(n, len, 2 * len, MPI_CHAR, &type);
    MPI_Type_commit(&type);
    memset(packed, 0, (size_t) (n * len) + 1);
    memset(back, 0, (size_t) span);
    MPI_Pack(memory, 1, type, packed, n * len, &position, MPI_COMM_SELF);
    right = position == n * len && packed[n * len] == 0;
    position = 0;
    MPI_Unpack(packed, n * len, &position, back, 1, type, MPI_COMM_SELF);
    for (int i = 0; i < span; i++) {
        const bool in = i / len % 2 == 0;
        right = right && back[i] == (in ? memory[i] : 0) && (!in || packed[i / len / 2 * len + i % len] == memory[i]);
    }
    MPI_Type_free(&type);
    return right;
}

/* Blocks of each length that is copied in a way of its own, in numbers about those where the way changes. */
static void test_blocks(void)
{
    static const int numbers[] = {1, 2, 3, 4, 5, 7, 4095, 4096, 4097, 4098, 4099, 4100, 4103};
    enum { LONGEST = 70, NUMBERS = sizeof numbers / sizeof *numbers, MOST = 4103 };
    const size_t room = (size_t) 2 * LONGEST * MOST;
    start();
    char *memory = malloc(room), *back = malloc(room), *packed = malloc(room / 2 + 1);
    for (size_t i = 0; i < room; i++) {
        memory[i] = (char) (1 + random_below(127));
    }
    for (int len = 1; len <= LONGEST; len++) {
        for (int i = 0; i < NUMBERS; i++) {
            MPI_CHECK(blocks_right(numbers[i], len, memory, back, packed));
        }
    }
    free(memory);
    free(back);
    free(packed);
    MPI_Finalize();
}

/* Fewer elements than there is room for, ending inside one; more than there is room for. */
static void partial(int pairs)
{
    MPI_Datatype pair;
    MPI_Status status;
    int count, elements, rc;
    double *data = calloc((size_t) pairs * 4 + 4, sizeof(double));
    MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &pair);
    MPI_Type_commit(&pair);
    if (rank == 0) {
        data[0] = 1;
        MPI_Send(data, 2 * pairs - 1, MPI_DOUBLE, 1, TAG, MPI_COMM_WORLD);
        MPI_Send(data, 2 * pairs, MPI_DOUBLE, 1, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(data, pairs, pair, 0, TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, pair, &count);
        MPI_Get_elements(&status, pair, &elements);
        MPI_CHECK(count == MPI_UNDEFINED && elements == 2 * pairs - 1 && data[0] == 1);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        data[3 * pairs] = -7;
        rc = MPI_Recv(data, pairs - 1, pair, 0, TAG, MPI_COMM_WORLD, &status);
        MPI_Error_class(rc, &rc);
        MPI_CHECK(rc == MPI_ERR_TRUNCATE && data[3 * pairs] == -7);
    }
    MPI_Type_free(&pair);
    free(data);
}

static void test_partial(void)
{
    start();
    partial(5);
    partial(100000);
    MPI_Finalize();
}

/* Addresses from MPI_Get_address, relative to MPI_BOTTOM. */
static void test_bottom(void)
{
    static int here[3];
    int *there = calloc(100000, sizeof(int));
    int lens[] = {3, 100000};
    MPI_Aint disps[2];
    MPI_Datatype type;
    start();
    MPI_Get_address(here, &disps[0]);
    MPI_Get_address(there, &disps[1]);
    MPI_Type_create_hindexed(2, lens, disps, MPI_INT, &type);
    MPI_Type_commit(&type);
    here[2] = rank == 0 ? 22 : 0;
    there[99999] = rank == 0 ? 33 : 0;
    if (rank == 0) {
        MPI_Send(MPI_BOTTOM, 1, type, 1, TAG, MPI_COMM_WORLD);
    } else {
        MPI_Recv(MPI_BOTTOM, 1, type, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_CHECK(here[2] == 22 && there[99999] == 33);
    }
    MPI_Type_free(&type);
    free(there);
    MPI_Finalize();
}

/* The maps x -> f x + g, one after the other: associative, but the order matters. */
static void compose(void *in, void *inout, int *len, MPI_Datatype *type)
{
    MPI_Aint lb, extent;
    MPI_Type_get_extent(*type, &lb, &extent);
    for (int i = 0; i < *len; i++) {
        unsigned *first = (unsigned *) ((char *) in + i * extent);
        unsigned *then = (unsigned *) ((char *) inout + i * extent);
        then[2] = then[1] * first[2] + then[2];
        then[1] *= first[1];
    }
}

/* A user's operator, which does not commute, on a derived type with gaps. */
static void test_user_operator(void)
{
    enum { COUNT = 700 };
    static unsigned mine[COUNT][5], result[COUNT][5];
    unsigned f = 1, g = 0;
    MPI_Datatype two, type;
    MPI_Aint disp = sizeof(unsigned);
    MPI_Op op;
    start();
    MPI_Type_create_hindexed_block(1, 2, &disp, MPI_UNSIGNED, &two);
    MPI_Type_create_resized(two, 0, sizeof(mine[0]), &type);
    MPI_Type_commit(&type);
    MPI_Op_create(compose, 0, &op);
    for (int i = 0; i < COUNT; i++) {
        mine[i][1] = (unsigned) rank + 2;
        mine[i][2] = (unsigned) rank + 5;
        result[i][0] = 99;
    }
    for (unsigned r = 0; r < (unsigned) size; r++) {
        f *= r + 2;
        g = (r + 2) * g + r + 5;
    }
    MPI_Allreduce(mine, result, COUNT, type, op, MPI_COMM_WORLD);
    for (int i = 0; i < COUNT; i++) {
        MPI_CHECK(result[i][1] == f && result[i][2] == g);
        MPI_CHECK(result[i][0] == 99 && result[i][3] == 0);
    }
    MPI_Op_free(&op);
    MPI_Type_free(&two);
    MPI_Type_free(&type);
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "one-way", .np = 2, .fn = test_one_way},
    {.name = "window", .np = 2, .fn = test_window},
    {.name = "transpose", .np = 2, .fn = test_transpose},
    {.name = "blocks", .np = 1, .fn = test_blocks},
    {.name = "partial", .np = 2, .fn = test_partial},
    {.name = "bottom", .np = 2, .fn = test_bottom},
    {.name = "user-operator", .np = 2, .fn = test_user_operator},
    {.name = "user-operator-of-five", .np = 5, .fn = test_user_operator},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
