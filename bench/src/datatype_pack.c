/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Pack and MPI_Unpack of typical layouts, in GB/s of packed data: medians over batches, beside
   the loop that a program without datatypes would contain. One rank.

   With --turns it measures when it is told to, so that several of it, each with a library of its own,
   can take turns: for each layout it says "ready", and for each line "pack", "unpack" or "loop" that it
   reads it prints "turn us=N", processor time of one time, the average over --ms; "next": the next layout. */
#include <stddef.h>

#include "mpi_support.h"

typedef struct options {
    bench_sizes_t sizes;    /* packed bytes */
    double ms;              /* time per figure */
    const char *only;       /* layout; NULL: all */
    int turns;
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
        } else if (NULL != (value = bench_option(argc, argv, &i, "--only"))) {
            o.only = value;
        } else if (0 == strcmp(argv[i], "--turns")) {
            o.turns = 1;
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

/* ---- Halos and exchanges of applications, after DDTBench (Schneider, Gerstenberger, Hoefler:
 * "Application-oriented ping-pong benchmarking", 2014) ---- */

/* Loops of the form: n planes of m runs of `run` bytes. */
static void copy_runs(const char *from, char *to, int n, size_t plane, int m, size_t row, size_t run)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < m; j++, to += run) {
            memcpy(to, from + (size_t) i * plane + (size_t) j * row, run);
        }
    }
}

enum { WRF_FIELDS = 4, WRF_HALO = 3, WRF_LEVELS = 32 };

static void loop_wrf(const layout_t *l, const char *from, char *to)
{
    const size_t row = (size_t) l->n * sizeof(float), plane = row * WRF_LEVELS;
    const size_t part = (size_t) l->n * WRF_LEVELS * WRF_HALO * sizeof(float);

    for (int f = 0; f < WRF_FIELDS; f++) {
        copy_runs(from + (size_t) f * plane * (size_t) l->n, to + (size_t) f * part, l->n, plane,
                  WRF_LEVELS, row, WRF_HALO * sizeof(float));
    }
}

/* WRF: the halo of a weather model in x, three floats deep, of four fields (subarrays in a struct). */
static void make_wrf(layout_t *l, size_t bytes)
{
    int sizes[3], part[3], start[3] = { 0, 0, 0 }, lens[WRF_FIELDS];
    MPI_Datatype types[WRF_FIELDS], field;
    MPI_Aint at[WRF_FIELDS];

    l->n = (int) (bytes / (WRF_FIELDS * WRF_HALO * WRF_LEVELS * sizeof(float)));
    sizes[0] = part[0] = sizes[2] = l->n;
    sizes[1] = part[1] = WRF_LEVELS;
    part[2] = WRF_HALO;
    MPI_Type_create_subarray(3, sizes, part, start, MPI_ORDER_C, MPI_FLOAT, &field);
    l->memory = WRF_FIELDS * (size_t) l->n * (size_t) l->n * WRF_LEVELS * sizeof(float);
    for (int f = 0; f < WRF_FIELDS; f++) {
        lens[f] = 1;
        types[f] = field;
        at[f] = (MPI_Aint) (l->memory / WRF_FIELDS) * f;
    }
    MPI_Type_create_struct(WRF_FIELDS, lens, at, types, &l->type);
    MPI_Type_free(&field);
    l->loop = loop_wrf;
}

enum { MILC_VECTOR = 6 * sizeof(float), MILC_L = 8 };

static void loop_milc(const layout_t *l, const char *from, char *to)
{
    const size_t time = (size_t) MILC_L * MILC_L * MILC_L * MILC_VECTOR;

    copy_runs(from, to, l->n, time, MILC_L, (size_t) MILC_L * MILC_L * MILC_VECTOR / 2,
              (size_t) MILC_L * MILC_L / 2 * MILC_VECTOR / 2);
}

/* MILC: su3 vectors of one slice of a lattice in four dimensions (a vector of vectors). */
static void make_milc(layout_t *l, size_t bytes)
{
    MPI_Datatype su3, slice;
    const int run = MILC_L * MILC_L / 4;

    MPI_Type_contiguous(6, MPI_FLOAT, &su3);
    MPI_Type_vector(MILC_L, run, MILC_L * MILC_L / 2, su3, &slice);
    l->n = (int) (bytes / (MILC_L * (size_t) run * MILC_VECTOR));
    MPI_Type_create_hvector(l->n, 1, (MPI_Aint) MILC_L * MILC_L * MILC_L * MILC_VECTOR, slice,
                            &l->type);
    MPI_Type_free(&slice);
    MPI_Type_free(&su3);
    l->memory = (size_t) l->n * MILC_L * MILC_L * MILC_L * MILC_VECTOR;
    l->loop = loop_milc;
}

static void loop_nas_lu(const layout_t *l, const char *from, char *to)
{
    copy_runs(from, to, 1, 0, l->n, 64 * 40, 40);
}

/* NAS LU in y: five doubles of every 64th point. */
static void make_nas_lu(layout_t *l, size_t bytes)
{
    MPI_Datatype point;

    MPI_Type_contiguous(5, MPI_DOUBLE, &point);
    l->n = (int) (bytes / 40);
    l->memory = (size_t) l->n * 64 * 40;
    l->loop = loop_nas_lu;
    MPI_Type_vector(l->n, 1, 64, point, &l->type);
    MPI_Type_free(&point);
}

static void loop_nas_mg(const layout_t *l, const char *from, char *to)
{
    const double *a = (const double *) from;
    double *b = (double *) to;
    const size_t n = (size_t) l->n;

    for (size_t k = 0; k < n; k++) {
        for (size_t j = 0; j < n; j++) {
            *b++ = a[(k * n + j) * n];
        }
    }
}

/* NAS MG in x: one double of each row of a cube (a vector of vectors). */
static void make_nas_mg(layout_t *l, size_t bytes)
{
    MPI_Datatype plane;

    l->n = 8;
    while ((size_t) l->n * (size_t) l->n * sizeof(double) < bytes && l->n < 512) {
        l->n++;
    }
    l->memory = (size_t) l->n * (size_t) l->n * (size_t) l->n * sizeof(double);
    l->loop = loop_nas_mg;
    MPI_Type_vector(l->n, 1, l->n, MPI_DOUBLE, &plane);
    MPI_Type_create_hvector(l->n, 1, (MPI_Aint) l->n * l->n * (MPI_Aint) sizeof(double), plane,
                            &l->type);
    MPI_Type_free(&plane);
}

enum { LAMMPS_BYTES = 3 * 8 + 3 * 4 + 8 }; /* position; tag, type, mask; charge */

static void loop_lammps(const layout_t *l, const char *from, char *to)
{
    const size_t atoms = l->memory / LAMMPS_BYTES;
    const char *x = from, *ids = from + atoms * 24, *q = from + atoms * 36;
    char *to_ids = to + 24 * (size_t) l->n, *to_q = to + 36 * (size_t) l->n;

    for (int i = 0; i < l->n; i++) {
        memcpy(to + 24 * (size_t) i, x + 24 * (size_t) l->index[i], 24);
    }
    for (int i = 0; i < 3 * l->n; i++) {
        size_t array = (size_t) (i / l->n) * atoms * 4;

        memcpy(to_ids + 4 * (size_t) i, ids + array + 4 * (size_t) l->index[i % l->n], 4);
    }
    for (int i = 0; i < l->n; i++) {
        memcpy(to_q + 8 * (size_t) i, q + 8 * (size_t) l->index[i], 8);
    }
}

/* LAMMPS: some atoms of arrays of positions, numbers and charges (indexed types in a struct). */
static void make_lammps(layout_t *l, size_t bytes)
{
    int lens[5] = { 1, 1, 1, 1, 1 };
    MPI_Datatype x, types[5];
    MPI_Aint at[5];
    size_t atoms;

    l->n = (int) (bytes / LAMMPS_BYTES);
    l->index = malloc(((size_t) l->n + 1) * sizeof(int));
    for (int i = 0, next = 0; i < l->n; i++) {
        next += 1 + (i * 7 + i / 5) % 3 + i % 2;
        l->index[i] = next;
    }
    atoms = ((size_t) l->index[l->n - 1] + 2) & ~(size_t) 1;
    l->memory = atoms * LAMMPS_BYTES;
    MPI_Type_contiguous(3, MPI_DOUBLE, &x);
    MPI_Type_create_indexed_block(l->n, 1, l->index, x, &types[0]);
    for (int k = 1; k < 4; k++) {
        MPI_Type_create_indexed_block(l->n, 1, l->index, MPI_INT, &types[k]);
    }
    MPI_Type_create_indexed_block(l->n, 1, l->index, MPI_DOUBLE, &types[4]);
    at[0] = 0;
    for (int k = 1; k < 5; k++) {
        at[k] = (MPI_Aint) (atoms * (size_t) (24 + 4 * (k - 1)));
    }
    MPI_Type_create_struct(5, lens, at, types, &l->type);
    MPI_Type_free(&x);
    for (int k = 0; k < 5; k++) {
        MPI_Type_free(&types[k]);
    }
    l->loop = loop_lammps;
}

static void loop_specfem(const layout_t *l, const char *from, char *to)
{
    for (int i = 0; i < l->n; i++) {
        memcpy(to + 12 * (size_t) i, from + 4 * (size_t) l->index[i], 12);
    }
}

/* SPECFEM3D: three floats of each point of an irregular border. */
static void make_specfem(layout_t *l, size_t bytes)
{
    l->n = (int) (bytes / 12);
    l->index = malloc(((size_t) l->n + 1) * sizeof(int));
    for (int i = 0, next = 0; i < l->n; i++) {
        next += 3 * (1 + (i * 5 + i / 7) % 4);
        l->index[i] = next;
    }
    l->memory = ((size_t) l->index[l->n - 1] + 3) * sizeof(float);
    l->loop = loop_specfem;
    MPI_Type_create_indexed_block(l->n, 3, l->index, MPI_FLOAT, &l->type);
}

static void loop_fft(const layout_t *l, const char *from, char *to)
{
    const size_t n = (size_t) l->n;

    for (size_t c = 0; c < COLUMNS; c++) {
        for (size_t i = 0; i < n; i++, to += 16) {
            memcpy(to, from + 16 * (i * COLUMNS + c), 16);
        }
    }
}

/* A transpose, as of a two-dimensional FFT: columns of complex numbers one after the other. */
static void make_fft(layout_t *l, size_t bytes)
{
    MPI_Datatype column;

    l->n = (int) (bytes / (16 * COLUMNS));
    l->memory = (size_t) l->n * 16 * COLUMNS;
    l->count = COLUMNS;
    l->loop = loop_fft;
    MPI_Type_vector(l->n, 1, COLUMNS, MPI_C_DOUBLE_COMPLEX, &column);
    MPI_Type_create_resized(column, 0, 16, &l->type);
    MPI_Type_free(&column);
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
    { "indexed", make_indexed },       { "uneven", make_uneven },   { "wrf", make_wrf },
    { "milc", make_milc },             { "nas_lu", make_nas_lu },   { "nas_mg", make_nas_mg },
    { "lammps", make_lammps },         { "specfem", make_specfem }, { "fft", make_fft },
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

/* The loop must do what MPI_Pack does, or the comparison means nothing. */
static void check_loop(const char *name, const layout_t *l, char *memory, char *packed)
{
    char *other = bench_buffer(l->packed);

    for (size_t i = 0; i < l->memory; i++) {
        memory[i] = (char) (i * 31 + i / 251);
    }
    act(PACK, l, memory, packed);
    act(LOOP, l, memory, other);
    if (memcmp(packed, other, l->packed) != 0) {
        fprintf(stderr, "datatype_pack: %s: the loop packs something else\n", name);
        exit(1);
    }
    free(other);
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

static double cpu_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double) ts.tv_sec + 1e-9 * (double) ts.tv_nsec;
}

/* One turn: seconds of the processor for one time. */
static double turn(action_t action, const layout_t *l, char *memory, char *packed, double ms)
{
    double t0 = cpu_now(), t1 = t0;
    long n = 0;

    do {
        batch(action, l, memory, packed, 1);
        n++;
        t1 = cpu_now();
    } while (t1 - t0 < ms * 1e-3);
    return (t1 - t0) / (double) n;
}

static void take_turns(const char *name, const layout_t *l, char *memory, char *packed, double ms)
{
    char line[16];

    printf("ready layout=%s bytes=%zu\n", name, l->packed);
    fflush(stdout);
    while (NULL != fgets(line, sizeof(line), stdin) && 0 != strcmp(line, "next\n")) {
        action_t action = 'p' == line[0] ? PACK : 'u' == line[0] ? UNPACK : LOOP;

        turn(action, l, memory, packed, 0.0); /* others have been in the caches meanwhile */
        printf("turn us=%.4f\n", 1e6 * turn(action, l, memory, packed, ms));
        fflush(stdout);
    }
}

static void run(const char *name, make_t make, size_t bytes, const options_t *o)
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
    check_loop(name, &l, memory, packed);
    if (o->turns) {
        take_turns(name, &l, memory, packed, o->ms);
    } else {
        printf("pack layout=%s bytes=%zu", name, l.packed);
        printf(" pack_gbs=%.2f", measure(PACK, &l, memory, packed, o->ms));
        printf(" unpack_gbs=%.2f", measure(UNPACK, &l, memory, packed, o->ms));
        printf(" loop_gbs=%.2f\n", measure(LOOP, &l, memory, packed, o->ms));
    }
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
            if (NULL == o.only || strcmp(o.only, layouts[i].name) == 0) {
                run(layouts[i].name, layouts[i].make, o.sizes.value[s], &o);
            }
        }
    }
    return bench_end(&world);
}
