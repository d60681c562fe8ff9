/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Pack and MPI_Unpack of typical layouts, in GB/s of packed data: medians over batches, beside
   the loop that a program without datatypes would contain. One rank. */
#include <stddef.h>

#include "mpi_support.h"

typedef struct options {
    bench_sizes_t sizes;    /* packed bytes */
    double ms;              /* time per figure */
} options_t;

typedef struct particle {
    double position[3];
    int id;
    char kind;              /* not sent */
    float charge;
} particle_t;

/* A layout with as many elements as a message of the wanted size has. */
typedef struct layout {
    MPI_Datatype type;
    int count;
    size_t packed;
    size_t memory;
    void (*loop)(const struct layout *layout, const char *from, char *to);
    int n;                  /* parameters of the loop */
    int *index;
} layout_t;

typedef void (*make_t)(layout_t *layout, size_t bytes);

enum { COLUMNS = 64, FIELD_EDGE = 4 };

static options_t parse(int argc, char **argv)
{
    options_t o = { .ms = 30.0 };
    const char *value;

    bench_parse_sizes("64k,4m", &o.sizes);
    for (int i = 1; i < argc; i++) {
        if (NULL != (value = bench_option(argc, argv, &i, "--sizes"))) {
            bench_parse_sizes(value, &o.sizes);
        } else if (NULL != (value = bench_option(argc, argv, &i, "--ms"))) {
            o.ms = atof(value);
        } else {
            bench_usage_error(argv[0], argv[i]);
        }
    }
    return o;
}

/* ---- Layouts and their loops ---- */

static void loop_stride2(const layout_t *l, const char *from, char *to)
{
    const double *a = (const double *) from;
    double *b = (double *) to;

    for (int i = 0; i < l->n; i++) {
        b[i] = a[2 * (size_t) i];
    }
}

/* Every other double. */
static void make_stride2(layout_t *l, size_t bytes)
{
    l->n = (int) (bytes / sizeof(double));
    l->memory = 2 * bytes;
    l->loop = loop_stride2;
    MPI_Type_vector(l->n, 1, 2, MPI_DOUBLE, &l->type);
}

static void loop_column(const layout_t *l, const char *from, char *to)
{
    const double *a = (const double *) from;
    double *b = (double *) to;

    for (int i = 0; i < l->n; i++) {
        b[i] = a[COLUMNS * (size_t) i];
    }
}

/* A column of a matrix with rows of 512 bytes. */
static void make_column(layout_t *l, size_t bytes)
{
    l->n = (int) (bytes / sizeof(double));
    l->memory = bytes * COLUMNS;
    l->loop = loop_column;
    MPI_Type_vector(l->n, 1, COLUMNS, MPI_DOUBLE, &l->type);
}

static void loop_blocks(const layout_t *l, const char *from, char *to)
{
    for (int i = 0; i < l->n; i++) {
        memcpy(to + 64 * (size_t) i, from + 96 * (size_t) i, 64);
    }
}

/* Blocks of 8 doubles, 12 apart. */
static void make_blocks(layout_t *l, size_t bytes)
{
    l->n = (int) (bytes / 64);
    l->memory = (size_t) l->n * 96;
    l->loop = loop_blocks;
    MPI_Type_vector(l->n, 8, 12, MPI_DOUBLE, &l->type);
}

static void loop_particles(const layout_t *l, const char *from, char *to)
{
    const particle_t *p = (const particle_t *) from;

    for (int i = 0; i < l->n; i++, to += 32) {
        memcpy(to, p[i].position, 24);
        memcpy(to + 24, &p[i].id, 4);
        memcpy(to + 28, &p[i].charge, 4);
    }
}

/* An array of structures of which one member is left out. */
static void make_particles(layout_t *l, size_t bytes)
{
    int lens[] = { 3, 1, 1 };
    MPI_Aint disps[] = { offsetof(particle_t, position), offsetof(particle_t, id),
                         offsetof(particle_t, charge) };
    MPI_Datatype types[] = { MPI_DOUBLE, MPI_INT, MPI_FLOAT };
    MPI_Datatype bare;

    MPI_Type_create_struct(3, lens, disps, types, &bare);
    MPI_Type_create_resized(bare, 0, sizeof(particle_t), &l->type);
    MPI_Type_free(&bare);
    l->n = l->count = (int) (bytes / 32);
    l->memory = (size_t) l->n * sizeof(particle_t);
    l->loop = loop_particles;
}

static void loop_indexed(const layout_t *l, const char *from, char *to)
{
    const double *a = (const double *) from;
    double *b = (double *) to;

    for (int i = 0; i < l->n; i++) {
        b[i] = a[l->index[i]];
    }
}

/* Single doubles at growing irregular places. */
static void make_indexed(layout_t *l, size_t bytes)
{
    int at = 0;

    l->n = (int) (bytes / sizeof(double));
    l->index = malloc(((size_t) l->n + 1) * sizeof(int));
    for (int i = 0; i < l->n; i++) {
        at += 1 + (i * 7 + i / 5) % 3 + i % 2;
        l->index[i] = at;
    }
    l->memory = ((size_t) at + 1) * sizeof(double);
    l->loop = loop_indexed;
    MPI_Type_create_indexed_block(l->n, 1, l->index, MPI_DOUBLE, &l->type);
}

static void loop_uneven(const layout_t *l, const char *from, char *to)
{
    const double *a = (const double *) from;
    double *b = (double *) to;

    for (int i = 0; i < l->n; i++) {
        int len = 1 + i % 5;

        memcpy(b, a + l->index[i], (size_t) len * sizeof(double));
        b += len;
    }
}

/* Blocks of 1 to 5 doubles at irregular places. */
static void make_uneven(layout_t *l, size_t bytes)
{
    int *lens;
    int at = 0;

    l->n = (int) (bytes / (3 * sizeof(double)));
    l->index = malloc(((size_t) l->n + 1) * sizeof(int));
    lens = malloc(((size_t) l->n + 1) * sizeof(int));
    for (int i = 0; i < l->n; i++) {
        lens[i] = 1 + i % 5;
        l->index[i] = at;
        at += lens[i] + 1 + (i * 7 + i / 5) % 3;
    }
    l->memory = ((size_t) at + 1) * sizeof(double);
    l->loop = loop_uneven;
    MPI_Type_indexed(l->n, lens, l->index, MPI_DOUBLE, &l->type);
    free(lens);
}

static void loop_face(const layout_t *l, const char *from, char *to)
{
    const double *a = (const double *) from;
    double *b = (double *) to;

    for (int i = 0; i < l->n * l->n; i++) {
        memcpy(b + FIELD_EDGE * (size_t) i, a + (size_t) i * (size_t) l->n,
               FIELD_EDGE * sizeof(double));
    }
}

/* Four layers at the side of a cube of doubles where they are narrow: blocks of 32 bytes. */
static void make_face(layout_t *l, size_t bytes)
{
    int sizes[3], part[3], start[3] = { 0, 0, 0 };

    l->n = 8;
    while ((size_t) l->n * (size_t) l->n * FIELD_EDGE * sizeof(double) < bytes) {
        l->n++;
    }
    sizes[0] = sizes[1] = sizes[2] = part[0] = part[1] = l->n;
    part[2] = FIELD_EDGE;
    l->memory = (size_t) l->n * (size_t) l->n * (size_t) l->n * sizeof(double);
    l->loop = loop_face;
    MPI_Type_create_subarray(3, sizes, part, start, MPI_ORDER_C, MPI_DOUBLE, &l->type);
}

static void loop_contiguous(const layout_t *l, const char *from, char *to)
{
    memcpy(to, from, l->packed);
}

static void make_contiguous(layout_t *l, size_t bytes)
{
    l->memory = bytes;
    l->loop = loop_contiguous;
    MPI_Type_contiguous((int) (bytes / sizeof(double)), MPI_DOUBLE, &l->type);
}

static const struct {
    const char *name;
    make_t make;
} layouts[] = {
    { "contiguous", make_contiguous }, { "stride2", make_stride2 }, { "column", make_column },
    { "blocks", make_blocks },         { "face", make_face },       { "particles", make_particles },
    { "indexed", make_indexed },       { "uneven", make_uneven },
};

/* ---- Measuring ---- */

typedef enum action { PACK, UNPACK, LOOP } action_t;

static void act(action_t action, const layout_t *l, char *memory, char *packed)
{
    int position = 0;

    if (PACK == action) {
        MPI_Pack(memory, l->count, l->type, packed, (int) l->packed, &position, MPI_COMM_SELF);
    } else if (UNPACK == action) {
        MPI_Unpack(packed, (int) l->packed, &position, memory, l->count, l->type, MPI_COMM_SELF);
    } else {
        l->loop(l, memory, packed);
    }
}

static double batch(action_t action, const layout_t *l, char *memory, char *packed, long n)
{
    double t0 = bench_now();

    for (long i = 0; i < n; i++) {
        act(action, l, memory, packed);
        __asm__ volatile("" : : : "memory");
    }
    return (bench_now() - t0) / (double) n;
}

static double measure(action_t action, const layout_t *l, char *memory, char *packed, double ms)
{
    double times[BENCH_BATCHES];
    long n = bench_iterations(batch(action, l, memory, packed, 2), ms);

    for (int b = 0; b < BENCH_BATCHES; b++) {
        times[b] = batch(action, l, memory, packed, n);
    }
    return 1e-9 * (double) l->packed / bench_median(times, BENCH_BATCHES);
}

static void run(const char *name, make_t make, size_t bytes, double ms)
{
    layout_t l = { .count = 1 };
    char *memory, *packed;
    int size;

    make(&l, bytes);
    MPI_Type_commit(&l.type);
    MPI_Type_size(l.type, &size);
    l.packed = (size_t) size * (size_t) l.count;
    memory = bench_buffer(l.memory);
    packed = bench_buffer(l.packed);
    printf("pack layout=%s bytes=%zu", name, l.packed);
    printf(" pack_gbs=%.2f", measure(PACK, &l, memory, packed, ms));
    printf(" unpack_gbs=%.2f", measure(UNPACK, &l, memory, packed, ms));
    printf(" loop_gbs=%.2f\n", measure(LOOP, &l, memory, packed, ms));
    MPI_Type_free(&l.type);
    free(l.index);
    free(memory);
    free(packed);
}

int main(int argc, char **argv)
{
    options_t o = parse(argc, argv);
    bench_world_t world = bench_start(&argc, &argv, 1);

    for (int s = 0; s < o.sizes.count && 0 == world.rank; s++) {
        for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
            run(layouts[i].name, layouts[i].make, o.sizes.value[s], o.ms);
        }
    }
    return bench_end(&world);
}
