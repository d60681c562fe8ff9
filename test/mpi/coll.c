/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every blocking collective against values computed locally. A buffer carries what it must hold at the end beside
 * what it holds; holes, neighbours and send buffers are compared too. Each collective runs with every root, in place
 * and not, with equal and different datatypes on both sides, in the int and the MPI_Count form.
 */
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "mpi/mix.h"
#include "support/mpi_test.h"

enum { PROCS = 16, GUARD = 0x5a5a5a5a };

/* Threads have calls of their own. */
static __thread int rank, size;
static __thread MPI_Comm comm;

/* ---- Buffers ---- */

/* A datatype whose elements are `per` ints, int p of element e at e * stride + at[p]. */
typedef struct kind {
    const char *name;
    int per, stride, at[2];
    MPI_Datatype type;
} kind_t;

enum { INTS, PAIRS, HOLES, BELOW, KINDS };
static kind_t kinds[KINDS] = {
    [INTS] = {.name = "ints", .per = 1, .stride = 1, .at = {0, 0}},
    [PAIRS] = {.name = "pairs", .per = 2, .stride = 2, .at = {0, 1}},
    [HOLES] = {.name = "pairs with holes", .per = 2, .stride = 5, .at = {3, 1}}, /* backwards, too */
    [BELOW] = {.name = "pairs from below", .per = 2, .stride = 4, .at = {-1, 1}},
};

typedef struct buf {
    const kind_t *kind;
    size_t elements;
    int *mem, *want; /* an element of guards before and behind */
} buf_t;

/* What the present calls are made with; for messages. */
static __thread const kind_t *out_kind, *in_kind;
static __thread int count;
static __thread bool wide;

static void make_kinds(void)
{
    kinds[INTS].type = MPI_INT;
    kinds[PAIRS].type = MPI_2INT;
    for (int k = HOLES; k < KINDS; k++) {
        MPI_Datatype parts;
        int lengths[2] = {1, 1};
        MPI_Type_indexed(2, lengths, kinds[k].at, MPI_INT, &parts);
        MPI_Type_create_resized(parts, 0, kinds[k].stride * (MPI_Aint) sizeof(int), &kinds[k].type);
        MPI_Type_commit(&kinds[k].type);
        MPI_Type_free(&parts);
    }
}

static void free_kinds(void)
{
    for (int k = HOLES; k < KINDS; k++) {
        MPI_Type_free(&kinds[k].type);
    }
}

static size_t buf_ints(const buf_t *b)
{
    return (b->elements + 2) * (size_t) b->kind->stride;
}

static buf_t buf_new(const kind_t *kind, int elements)
{
    buf_t b = {.kind = kind, .elements = (size_t) elements};
    size_t n = buf_ints(&b);
    b.mem = malloc(n * sizeof(int));
    b.want = malloc(n * sizeof(int));
    for (size_t i = 0; i < n; i++) {
        b.mem[i] = GUARD;
    }
    memcpy(b.want, b.mem, n * sizeof(int));
    return b;
}

static void *at(const buf_t *b, int element)
{
    return b->mem + (element + 1) * b->kind->stride;
}

/* Index of int p of an element. */
static size_t cell(const buf_t *b, int element, int p)
{
    return (size_t) ((element + 1) * b->kind->stride + b->kind->at[p]);
}

/* Int i of what `from` has for `to`; small enough that sums do not overflow. Nearly all of the tests' time is spent here: one multiplication,
 * which differs in its upper bits for all i of a pair and from pair to pair. */
static inline int value(int from, int to, int i)
{
    return (int) (((uint32_t) (from * PROCS + to + 1) * 1000003U + (uint32_t) i) * 0x9e3779b1U >> 12);
}

enum { ALL = PROCS - 1 }; /* `to` of what is for everybody */

static void expect(buf_t *b, int offset, int elements, int from, int to)
{
    const int per = b->kind->per, stride = b->kind->stride;
    for (int p = 0; p < per; p++) {
        int *want = b->want + cell(b, offset, p);
        for (int e = 0; e < elements; e++) {
            want[e * stride] = value(from, to, e * per + p);
        }
    }
}

/* What is expected of these elements is what they are. */
static void set_as_wanted(buf_t *b, int offset, int elements)
{
    const int stride = b->kind->stride;
    for (int p = 0; p < b->kind->per; p++) {
        size_t first = cell(b, offset, p);
        for (int e = 0; e < elements; e++) {
            b->mem[first + (size_t) (e * stride)] = b->want[first + (size_t) (e * stride)];
        }
    }
}

static void put(buf_t *b, int offset, int elements, int from, int to)
{
    expect(b, offset, elements, from, to);
    set_as_wanted(b, offset, elements);
}

/* Compares and frees. */
static void done(buf_t *b, const char *what, int root)
{
    size_t n = buf_ints(b), i = memcmp(b->mem, b->want, n * sizeof(int)) == 0 ? n : 0;
    while (i < n && b->mem[i] == b->want[i]) {
        i++;
    }
    if (!MPI_CHECK(i == n)) {
        fprintf(stderr, "%s: rank %d of %d, root %d, count %d, %s to %s, %s form: int %ld is %#x, not %#x\n",
                what, rank, size, root, count, out_kind->name, in_kind->name, wide ? "wide" : "int",
                (long) i - b->kind->stride, (unsigned) b->mem[i], (unsigned) b->want[i]);
    }
    free(b->mem);
    free(b->want);
}

/* Counts and displacements in both forms. */
typedef struct vector {
    int n[PROCS], d[PROCS], total;
    MPI_Count wn[PROCS];
    MPI_Aint wd[PROCS];
} vector_t;

static void vector_set(vector_t *v, int i, int n, int d)
{
    v->n[i] = n;
    v->d[i] = d;
    v->wn[i] = n;
    v->wd[i] = d;
    v->total += n;
}

/* How much goes from one process to another in the v and w forms: uneven, nothing for some. */
static int uneven(int from, int to)
{
    return (from * 2 + to) % 3 == 1 ? 0 : count + (from + to) % 4;
}

/* Blocks in descending order, with a gap before each. */
static vector_t vector_blocks(int n, int from, int to, int scale)
{
    vector_t v = {.total = 0};
    int d = 0;
    for (int i = n - 1; i >= 0; i--) {
        int elements = uneven(from < 0 ? i : from, to < 0 ? i : to);
        d += 1;
        vector_set(&v, i, elements, d * scale);
        d += elements;
    }
    return v;
}

static int vector_room(int n)
{
    return n * (count + 5);
}

/* ---- Moving data ---- */

static void check_bcast(int root)
{
    buf_t b = buf_new(rank == root ? out_kind : in_kind, count);
    if (rank == root) {
        put(&b, 0, count, root, ALL);
    } else {
        expect(&b, 0, count, root, ALL);
    }
    int rc = wide ? MPI_Bcast_c(at(&b, 0), count, b.kind->type, root, comm)
                  : MPI_Bcast(at(&b, 0), count, b.kind->type, root, comm);
    MPI_CHECK(rc == MPI_SUCCESS);
    done(&b, "bcast", root);
}

static void check_gather(int root, bool in_place)
{
    buf_t out = buf_new(out_kind, count), in = buf_new(in_kind, rank == root ? count * size : 0);
    void *from = at(&out, 0);
    put(&out, 0, count, rank, root);
    for (int r = 0; rank == root && r < size; r++) {
        expect(&in, r * count, count, r, root);
    }
    if (in_place && rank == root) {
        put(&in, rank * count, count, rank, root);
        from = MPI_IN_PLACE;
    }
    if (wide) {
        MPI_Gather_c(from, count, out_kind->type, at(&in, 0), count, in_kind->type, root, comm);
    } else {
        MPI_Gather(from, count, out_kind->type, at(&in, 0), count, in_kind->type, root, comm);
    }
    done(&out, "gather, send buffer", root);
    done(&in, "gather", root);
}

static void check_gatherv(int root, bool in_place)
{
    int mine = uneven(rank, root);
    vector_t v = vector_blocks(size, -1, root, 1);
    buf_t out = buf_new(out_kind, mine), in = buf_new(in_kind, rank == root ? vector_room(size) : 0);
    void *from = at(&out, 0);
    put(&out, 0, mine, rank, root);
    for (int r = 0; rank == root && r < size; r++) {
        expect(&in, v.d[r], v.n[r], r, root);
    }
    if (in_place && rank == root) {
        put(&in, v.d[rank], mine, rank, root);
        from = MPI_IN_PLACE;
    }
    if (wide) {
        MPI_Gatherv_c(from, mine, out_kind->type, at(&in, 0), v.wn, v.wd, in_kind->type, root, comm);
    } else {
        MPI_Gatherv(from, mine, out_kind->type, at(&in, 0), v.n, v.d, in_kind->type, root, comm);
    }
    done(&out, "gatherv, send buffer", root);
    done(&in, "gatherv", root);
}

static void check_scatter(int root, bool in_place)
{
    buf_t out = buf_new(out_kind, rank == root ? count * size : 0), in = buf_new(in_kind, count);
    void *to = at(&in, 0);
    for (int r = 0; rank == root && r < size; r++) {
        put(&out, r * count, count, root, r);
    }
    if (in_place && rank == root) {
        to = MPI_IN_PLACE;
    } else {
        expect(&in, 0, count, root, rank);
    }
    if (wide) {
        MPI_Scatter_c(at(&out, 0), count, out_kind->type, to, count, in_kind->type, root, comm);
    } else {
        MPI_Scatter(at(&out, 0), count, out_kind->type, to, count, in_kind->type, root, comm);
    }
    done(&out, "scatter, send buffer", root);
    done(&in, "scatter", root);
}

static void check_scatterv(int root, bool in_place)
{
    int mine = uneven(root, rank);
    vector_t v = vector_blocks(size, root, -1, 1);
    buf_t out = buf_new(out_kind, rank == root ? vector_room(size) : 0), in = buf_new(in_kind, mine);
    void *to = at(&in, 0);
    for (int r = 0; rank == root && r < size; r++) {
        put(&out, v.d[r], v.n[r], root, r);
    }
    if (in_place && rank == root) {
        to = MPI_IN_PLACE;
    } else {
        expect(&in, 0, mine, root, rank);
    }
    if (wide) {
        MPI_Scatterv_c(at(&out, 0), v.wn, v.wd, out_kind->type, to, mine, in_kind->type, root, comm);
    } else {
        MPI_Scatterv(at(&out, 0), v.n, v.d, out_kind->type, to, mine, in_kind->type, root, comm);
    }
    done(&out, "scatterv, send buffer", root);
    done(&in, "scatterv", root);
}

static void check_allgather(bool in_place)
{
    buf_t out = buf_new(out_kind, count), in = buf_new(in_kind, count * size);
    void *from = in_place ? MPI_IN_PLACE : at(&out, 0);
    put(&out, 0, count, rank, ALL);
    if (in_place) {
        put(&in, rank * count, count, rank, ALL);
    }
    for (int r = 0; r < size; r++) {
        expect(&in, r * count, count, r, ALL);
    }
    if (wide) {
        MPI_Allgather_c(from, count, out_kind->type, at(&in, 0), count, in_kind->type, comm);
    } else {
        MPI_Allgather(from, count, out_kind->type, at(&in, 0), count, in_kind->type, comm);
    }
    done(&out, "allgather, send buffer", -1);
    done(&in, "allgather", -1);
}

static void check_allgatherv(bool in_place)
{
    int mine = uneven(rank, 0);
    vector_t v = vector_blocks(size, -1, 0, 1);
    buf_t out = buf_new(out_kind, mine), in = buf_new(in_kind, vector_room(size));
    void *from = in_place ? MPI_IN_PLACE : at(&out, 0);
    put(&out, 0, mine, rank, ALL);
    if (in_place) {
        put(&in, v.d[rank], mine, rank, ALL);
    }
    for (int r = 0; r < size; r++) {
        expect(&in, v.d[r], v.n[r], r, ALL);
    }
    if (wide) {
        MPI_Allgatherv_c(from, mine, out_kind->type, at(&in, 0), v.wn, v.wd, in_kind->type, comm);
    } else {
        MPI_Allgatherv(from, mine, out_kind->type, at(&in, 0), v.n, v.d, in_kind->type, comm);
    }
    done(&out, "allgatherv, send buffer", -1);
    done(&in, "allgatherv", -1);
}

static void check_alltoall(bool in_place)
{
    buf_t out = buf_new(out_kind, count * size), in = buf_new(in_kind, count * size);
    void *from = in_place ? MPI_IN_PLACE : at(&out, 0);
    for (int r = 0; r < size; r++) {
        put(in_place ? &in : &out, r * count, count, rank, r);
        expect(&in, r * count, count, r, rank);
    }
    if (wide) {
        MPI_Alltoall_c(from, count, out_kind->type, at(&in, 0), count, in_kind->type, comm);
    } else {
        MPI_Alltoall(from, count, out_kind->type, at(&in, 0), count, in_kind->type, comm);
    }
    done(&out, "alltoall, send buffer", -1);
    done(&in, "alltoall", -1);
}

/* In place, what goes to a process must be as much as what comes from it. */
static vector_t in_place_blocks(int scale)
{
    vector_t v = {.total = 0};
    for (int r = 0, d = 1; r < size; r++) {
        int elements = uneven(rank < r ? rank : r, rank < r ? r : rank);
        vector_set(&v, r, elements, d * scale);
        d += elements + 1;
    }
    return v;
}

static void fill_alltoallv(buf_t *out, buf_t *in, const vector_t *sv, const vector_t *rv, bool in_place, int oscale,
                           int iscale)
{
    for (int r = 0; r < size; r++) {
        if (in_place) {
            put(in, rv->d[r] / iscale, rv->n[r], rank, r);
        } else {
            put(out, sv->d[r] / oscale, sv->n[r], rank, r);
        }
        expect(in, rv->d[r] / iscale, rv->n[r], r, rank);
    }
}

static void check_alltoallv(bool in_place)
{
    vector_t sv = vector_blocks(size, rank, -1, 1);
    vector_t rv = in_place ? in_place_blocks(1) : vector_blocks(size, -1, rank, 1);
    buf_t out = buf_new(out_kind, vector_room(size)), in = buf_new(in_kind, vector_room(size));
    void *from = in_place ? MPI_IN_PLACE : at(&out, 0);
    MPI_Datatype stype = out_kind->type, rtype = in_kind->type;
    fill_alltoallv(&out, &in, &sv, &rv, in_place, 1, 1);
    if (wide) {
        MPI_Alltoallv_c(from, sv.wn, sv.wd, stype, at(&in, 0), rv.wn, rv.wd, rtype, comm);
    } else {
        MPI_Alltoallv(from, sv.n, sv.d, stype, at(&in, 0), rv.n, rv.d, rtype, comm);
    }
    done(&out, "alltoallv, send buffer", -1);
    done(&in, "alltoallv", -1);
}

static void check_alltoallw(bool in_place)
{
    int oscale = out_kind->stride * (int) sizeof(int), iscale = in_kind->stride * (int) sizeof(int);
    vector_t sv = vector_blocks(size, rank, -1, oscale);
    vector_t rv = in_place ? in_place_blocks(iscale) : vector_blocks(size, -1, rank, iscale);
    buf_t out = buf_new(out_kind, vector_room(size)), in = buf_new(in_kind, vector_room(size));
    void *from = in_place ? MPI_IN_PLACE : at(&out, 0);
    MPI_Datatype stypes[PROCS], rtypes[PROCS];
    fill_alltoallv(&out, &in, &sv, &rv, in_place, oscale, iscale);
    for (int r = 0; r < size; r++) {
        stypes[r] = out_kind->type;
        rtypes[r] = in_kind->type;
    }
    if (wide) {
        MPI_Alltoallw_c(from, sv.wn, sv.wd, stypes, at(&in, 0), rv.wn, rv.wd, rtypes, comm);
    } else {
        MPI_Alltoallw(from, sv.n, sv.d, stypes, at(&in, 0), rv.n, rv.d, rtypes, comm);
    }
    done(&out, "alltoallw, send buffer", -1);
    done(&in, "alltoallw", -1);
}

/* The present case, with these roots. */
static void check_moves(int first_root, int roots)
{
    for (int root = first_root; root < first_root + roots; root++) {
        check_bcast(root);
        for (int in_place = 0; in_place < 2; in_place++) {
            check_gather(root, in_place);
            check_gatherv(root, in_place);
            check_scatter(root, in_place);
            check_scatterv(root, in_place);
        }
    }
    for (int in_place = 0; in_place < 2; in_place++) {
        check_allgather(in_place);
        check_allgatherv(in_place);
        check_alltoall(in_place);
        check_alltoallv(in_place);
        check_alltoallw(in_place);
    }
}

/* ---- Reductions ---- */

/* Of `n` ints, which are elements or, of pairs, halves of them. */
typedef void combine_t(const int *in, int *inout, int n);

static void add(const int *in, int *inout, int n)
{
    for (int i = 0; i < n; i++) {
        inout[i] += in[i];
    }
}

static void largest(const int *in, int *inout, int n)
{
    for (int i = 0; i < n; i++) {
        inout[i] = in[i] > inout[i] ? in[i] : inout[i];
    }
}

static void exclusive_or(const int *in, int *inout, int n)
{
    for (int i = 0; i < n; i++) {
        inout[i] ^= in[i];
    }
}

static void least_where(const int *in, int *inout, int n)
{
    for (int i = 0; i < n; i += 2) {
        if (in[i] < inout[i] || (in[i] == inout[i] && in[i + 1] < inout[i + 1])) {
            inout[i] = in[i];
            inout[i + 1] = in[i + 1];
        }
    }
}

/* (a, b) stands for x -> a x + b: in after inout. Associative, not commutative. Modulo 2^32. */
static void compose(const int *in, int *inout, int n)
{
    for (int i = 0; i < n; i += 2) {
        uint32_t a = (uint32_t) in[i], b = (uint32_t) in[i + 1];
        uint32_t a2 = (uint32_t) inout[i], b2 = (uint32_t) inout[i + 1];
        inout[i] = (int) (a * a2);
        inout[i + 1] = (int) (a * b2 + b);
    }
}

static void user(combine_t *combine, const int *in, int *inout, MPI_Count n, MPI_Datatype type)
{
    const kind_t *k = kinds;
    while (k < kinds + KINDS && k->type != type) {
        k++;
    }
    if (!MPI_CHECK(k < kinds + KINDS)) {
        return;
    }
    for (MPI_Count e = 0; e < n; e++) {
        int left[2] = {0}, right[2] = {0};
        for (int p = 0; p < k->per; p++) {
            left[p] = in[e * k->stride + k->at[p]];
            right[p] = inout[e * k->stride + k->at[p]];
        }
        combine(left, right, k->per);
        for (int p = 0; p < k->per; p++) {
            inout[e * k->stride + k->at[p]] = right[p];
        }
    }
}

static void user_add(void *in, void *inout, int *n, MPI_Datatype *type)
{
    user(add, in, inout, *n, *type);
}

static void user_compose(void *in, void *inout, int *n, MPI_Datatype *type)
{
    user(compose, in, inout, *n, *type);
}

static void user_compose_c(void *in, void *inout, MPI_Count *n, MPI_Datatype *type)
{
    user(compose, in, inout, *n, *type);
}

static __thread MPI_Op op;
static __thread combine_t *combine;

/* The reduction of `elements` elements of the ranks' vectors, from `first` on, to b at 0. A block at a time, which stays in the cache. */
static void expect_reduced(buf_t *b, int first, int elements, const int *from, int ranks)
{
    enum { BLOCK = 2048 };
    const int per = b->kind->per, ints = elements * per;
    for (int done = 0; done < ints; done += BLOCK) {
        int sum[BLOCK], next[BLOCK], n = ints - done < BLOCK ? ints - done : BLOCK;
        for (int r = ranks - 1; r >= 0; r--) {
            int *to = r == ranks - 1 ? sum : next;
            for (int i = 0; i < n; i++) {
                to[i] = value(from[r], ALL, first * per + done + i);
            }
            if (to == next) {
                combine(next, sum, n);
            }
        }
        for (int i = 0; i < n; i++) {
            b->want[cell(b, (done + i) / per, (done + i) % per)] = sum[i];
        }
    }
}

/* In-place forms say nothing of what is behind their result. */
static void ignore(buf_t *b, int offset, int elements)
{
    set_as_wanted(b, offset, elements);
}

static const int everybody[PROCS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* Our vector of so many elements, to be reduced: in `in` if it is in place. Returns what to pass as send buffer. */
static void *contribute(buf_t *out, buf_t *in, int elements, bool in_place)
{
    put(in_place ? in : out, 0, elements, rank, ALL);
    return in_place ? MPI_IN_PLACE : at(out, 0);
}

static void check_reduce(int root, bool in_place)
{
    buf_t out = buf_new(out_kind, count), in = buf_new(out_kind, rank == root ? count : 0);
    void *from = contribute(&out, &in, count, in_place && rank == root);
    if (rank == root) {
        expect_reduced(&in, 0, count, everybody, size);
    }
    if (wide) {
        MPI_Reduce_c(from, at(&in, 0), count, out_kind->type, op, root, comm);
    } else {
        MPI_Reduce(from, at(&in, 0), count, out_kind->type, op, root, comm);
    }
    done(&out, "reduce, send buffer", root);
    done(&in, "reduce", root);
}

static void check_allreduce(bool in_place)
{
    buf_t out = buf_new(out_kind, count), in = buf_new(out_kind, count);
    void *from = contribute(&out, &in, count, in_place);
    expect_reduced(&in, 0, count, everybody, size);
    if (wide) {
        MPI_Allreduce_c(from, at(&in, 0), count, out_kind->type, op, comm);
    } else {
        MPI_Allreduce(from, at(&in, 0), count, out_kind->type, op, comm);
    }
    done(&out, "allreduce, send buffer", -1);
    done(&in, "allreduce", -1);
}

static void check_scan(bool in_place)
{
    buf_t out = buf_new(out_kind, count), in = buf_new(out_kind, count);
    void *from = contribute(&out, &in, count, in_place);
    expect_reduced(&in, 0, count, everybody, rank + 1);
    if (wide) {
        MPI_Scan_c(from, at(&in, 0), count, out_kind->type, op, comm);
    } else {
        MPI_Scan(from, at(&in, 0), count, out_kind->type, op, comm);
    }
    done(&out, "scan, send buffer", -1);
    done(&in, "scan", -1);
}

/* Rank 0 receives nothing: its buffer stays as it is. */
static void check_exscan(bool in_place)
{
    buf_t out = buf_new(out_kind, count), in = buf_new(out_kind, count);
    void *from = contribute(&out, &in, count, in_place);
    if (rank > 0) {
        expect_reduced(&in, 0, count, everybody, rank);
    }
    if (wide) {
        MPI_Exscan_c(from, at(&in, 0), count, out_kind->type, op, comm);
    } else {
        MPI_Exscan(from, at(&in, 0), count, out_kind->type, op, comm);
    }
    done(&out, "exscan, send buffer", -1);
    done(&in, "exscan", -1);
}

static void check_reduce_scatter_block(bool in_place)
{
    int total = count * size;
    buf_t out = buf_new(out_kind, total), in = buf_new(out_kind, in_place ? total : count);
    void *from = contribute(&out, &in, total, in_place);
    expect_reduced(&in, rank * count, count, everybody, size);
    if (wide) {
        MPI_Reduce_scatter_block_c(from, at(&in, 0), count, out_kind->type, op, comm);
    } else {
        MPI_Reduce_scatter_block(from, at(&in, 0), count, out_kind->type, op, comm);
    }
    ignore(&in, count, in_place ? total - count : 0);
    done(&out, "reduce_scatter_block, send buffer", -1);
    done(&in, "reduce_scatter_block", -1);
}

static void check_reduce_scatter(bool in_place)
{
    vector_t v = {.total = 0};
    for (int r = 0; r < size; r++) {
        vector_set(&v, r, uneven(r, 0), v.total);
    }
    buf_t out = buf_new(out_kind, v.total), in = buf_new(out_kind, in_place ? v.total : v.n[rank]);
    void *from = contribute(&out, &in, v.total, in_place);
    expect_reduced(&in, v.d[rank], v.n[rank], everybody, size);
    if (wide) {
        MPI_Reduce_scatter_c(from, at(&in, 0), v.wn, out_kind->type, op, comm);
    } else {
        MPI_Reduce_scatter(from, at(&in, 0), v.n, out_kind->type, op, comm);
    }
    ignore(&in, v.n[rank], in_place ? v.total - v.n[rank] : 0);
    done(&out, "reduce_scatter, send buffer", -1);
    done(&in, "reduce_scatter", -1);
}

static void check_reductions(int first_root, int roots)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        for (int root = first_root; root < first_root + roots; root++) {
            check_reduce(root, in_place);
        }
        check_allreduce(in_place);
        check_scan(in_place);
        check_exscan(in_place);
        check_reduce_scatter_block(in_place);
        check_reduce_scatter(in_place);
    }
}

/* ---- The cases ---- */

static void start(void)
{
    mallopt(M_MMAP_THRESHOLD, 64 << 20); /* the same pages for all: to have them made new took as long as all the rest */
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    MPI_Init(NULL, NULL);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    make_kinds();
}

/* The wide forms run over a communicator with the ranks in another order. */
static void set_form(bool is_wide)
{
    int world_rank;
    wide = is_wide;
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_split(MPI_COMM_WORLD, 0, is_wide ? -world_rank : world_rank, &comm);
    MPI_Comm_rank(comm, &rank);
}

static void finish(void)
{
    free_kinds();
    MPI_Finalize();
}

/* About 1 MiB in the largest. */
static const int counts[] = {0, 1, 7, 1500, 262144};
enum { COUNTS = sizeof(counts) / sizeof(counts[0]), LARGE = 262144 };

/* Sets `count`. Returns how many roots to use, from *first on: all for the few elements of a `thorough` case. */
static int choose(int c, bool thorough, int *first)
{
    static int turn;
    bool is_large = counts[c] == LARGE, all = thorough && counts[c] < 10;
    count = is_large ? LARGE / out_kind->per / size : counts[c];
    *first = all ? 0 : turn++ % size;
    return all ? size : 1;
}

static void moves(void)
{
    static const int pairs[][2] = {{INTS, INTS}, {PAIRS, HOLES}, {BELOW, PAIRS}, {HOLES, BELOW}};
    start();
    for (int form = 0; form < 2; form++) {
        set_form(form);
        for (int p = 0; p < (int) (sizeof(pairs) / sizeof(pairs[0])); p++) {
            out_kind = &kinds[pairs[p][0]];
            in_kind = &kinds[pairs[p][1]];
            for (int c = 0; c < COUNTS; c++) {
                int first, roots = choose(c, p == 1, &first);
                check_moves(first, roots);
            }
        }
        MPI_Comm_free(&comm);
    }
    finish();
}

static void check_op(MPI_Op with, combine_t *local, int kind)
{
    op = with;
    combine = local;
    out_kind = in_kind = &kinds[kind];
    for (int c = 0; c < COUNTS; c++) {
        int first, roots = choose(c, with == MPI_SUM || kind == HOLES, &first);
        check_reductions(first, roots);
    }
}

static void reductions(void)
{
    start();
    for (int form = 0; form < 2; form++) {
        MPI_Op commuting, ordered;
        set_form(form);
        MPI_Op_create(user_add, 1, &commuting);
        if (wide) {
            MPI_Op_create_c(user_compose_c, 0, &ordered);
        } else {
            MPI_Op_create(user_compose, 0, &ordered);
        }
        check_op(MPI_SUM, add, INTS);
        check_op(MPI_MAX, largest, INTS);
        check_op(MPI_BXOR, exclusive_or, INTS);
        check_op(MPI_MINLOC, least_where, PAIRS);
        check_op(commuting, add, BELOW);
        check_op(ordered, compose, PAIRS);
        check_op(ordered, compose, HOLES);
        MPI_Op_free(&commuting);
        MPI_Op_free(&ordered);
        MPI_Comm_free(&comm);
    }
    finish();
}

/* 1 MiB for every pair of processes: nothing of it fits into any transport's buffers. */
static void large(void)
{
    start();
    set_form(false);
    count = LARGE;
    out_kind = in_kind = &kinds[INTS];
    check_moves(size - 1, 1);
    op = MPI_SUM;
    combine = add;
    check_reduce(size - 1, false);
    check_allreduce(true);
    check_reduce_scatter_block(false);
    MPI_Comm_free(&comm);
    finish();
}

/* ---- Places beyond 2^31 ---- */

/* Blocks of one int far apart in a mapping of which only those pages are ever touched. */
static void far_apart(void)
{
    static const size_t step = (size_t) 1 << 30;
    MPI_Datatype far;
    MPI_Count ones[PROCS];
    MPI_Aint displs[PROCS];
    start();
    size_t length = step * (size_t) size + 4096;
    char *map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    MPI_CHECK(map != MAP_FAILED);
    MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint) step, &far);
    MPI_Type_commit(&far);
    for (int r = 0; r < size; r++) {
        ones[r] = 1;
        displs[r] = (MPI_Aint) (step / sizeof(int)) * (size - 1 - r);
    }
    int mine = value(rank, ALL, 0), good = 0;
    MPI_Gather(&mine, 1, MPI_INT, map, 1, far, 1, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++) {
        good += rank != 1 || *(int *) (map + step * (size_t) r) == value(r, ALL, 0);
    }
    MPI_CHECK(good == size);
    MPI_Allgatherv_c(&mine, 1, MPI_INT, map, ones, displs, MPI_INT, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++) {
        good -= *(int *) (map + step * (size_t) (size - 1 - r)) == value(r, ALL, 0);
    }
    MPI_CHECK(good == 0);
    mine = 0;
    MPI_Scatterv_c(map, ones, displs, MPI_INT, &mine, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_CHECK(mine == value(rank, ALL, 0));
    MPI_Type_free(&far);
    munmap(map, length);
    finish();
}

/* ---- Barriers ---- */

/* A counter that all processes of the node see. */
/* Who came how often, by rank in the world: single bytes, as the processes' integers may not look alike. */
typedef struct counter {
    _Atomic unsigned char times[64];
} counter_t;

static void arrive(counter_t *counter)
{
    int self;
    MPI_Comm_rank(MPI_COMM_WORLD, &self);
    counter->times[self]++;
}

static int arrivals(counter_t *counter)
{
    int sum = 0;
    for (int i = 0; i < 64; i++) {
        sum += counter->times[i];
    }
    return sum;
}

static counter_t *shared_counters(void)
{
    char name[64] = "";
    int fd = -1;
    if (rank == 0) {
        snprintf(name, sizeof name, "/tmp/hawser-test-coll-XXXXXX");
        fd = mkstemp(name);
        MPI_CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
    }
    for (int r = 1; rank == 0 && r < size; r++) {
        MPI_Sendrecv(name, sizeof name, MPI_CHAR, r, 0, NULL, 0, MPI_CHAR, r, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
    if (rank > 0) {
        MPI_Recv(name, sizeof name, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        fd = open(name, O_RDWR | O_CLOEXEC);
        MPI_Send(NULL, 0, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    } else {
        unlink(name);
    }
    void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    MPI_CHECK(map != MAP_FAILED);
    close(fd);
    return map;
}

/*
 * One process comes late to each round: when all others have come it still lets them run for a while, so that who
 * can get through, does. It looks into MPI meanwhile: the others may need what it sent before, and progress outside MPI
 * is not promised.
 */
static void come_late(counter_t *here, int others)
{
    int found;
    for (int after = 0; after < 200; after += arrivals(here) >= others) {
        sched_yield();
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
    }
}

static void barrier(void)
{
    start();
    counter_t *here = shared_counters();
    set_form(size % 2);
    for (int round = 0; round < 40; round++) {
        if (rank == round % size) {
            come_late(here, round * size + size - 1);
        }
        arrive(here);
        MPI_Barrier(comm);
        MPI_CHECK(arrivals(here) >= (round + 1) * size);
        MPI_Barrier(comm);
    }
    MPI_Comm_free(&comm);
    munmap((void *) here, 4096);
    finish();
}

/* ---- Intercommunicators: 3 and 2 processes. rank and size are those of the own group. ---- */

static int remote, side, sizes[2];

/* The number in the world of a process. */
static int who(int of_side, int r)
{
    return of_side * sizes[0] + r;
}

static void start_inter(void)
{
    MPI_Comm half;
    start();
    sizes[0] = (size + 1) / 2;
    sizes[1] = size / 2;
    side = rank >= sizes[0];
    MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, side ? 0 : sizes[0], 1, &comm);
    MPI_Comm_free(&half);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Comm_remote_size(comm, &remote);
    out_kind = &kinds[PAIRS];
    in_kind = &kinds[HOLES];
}

/* The root argument if process `root` of side `root_side` is the root. */
static int root_argument(int root_side, int root)
{
    return side != root_side ? root : rank == root ? MPI_ROOT : MPI_PROC_NULL;
}

static void inter_bcast(int root_side, int root)
{
    int arg = root_argument(root_side, root);
    buf_t b = buf_new(arg == MPI_ROOT ? out_kind : in_kind, count);
    if (arg == MPI_ROOT) {
        put(&b, 0, count, who(root_side, root), ALL);
    } else if (side != root_side) {
        expect(&b, 0, count, who(root_side, root), ALL);
    }
    if (wide) {
        MPI_Bcast_c(at(&b, 0), count, b.kind->type, arg, comm);
    } else {
        MPI_Bcast(at(&b, 0), count, b.kind->type, arg, comm);
    }
    done(&b, "bcast between groups", root);
}

/* gather, or with v gatherv */
static void inter_gather(int root_side, int root, bool v)
{
    int arg = root_argument(root_side, root), far = who(root_side, root), me = who(side, rank);
    int mine = v ? uneven(rank, root) : count;
    vector_t blocks = vector_blocks(remote, -1, root, 1);
    buf_t out = buf_new(out_kind, mine), in = buf_new(in_kind, arg == MPI_ROOT ? vector_room(remote) : 0);
    put(&out, 0, mine, me, far);
    for (int r = 0; arg == MPI_ROOT && r < remote; r++) {
        expect(&in, v ? blocks.d[r] : r * count, v ? blocks.n[r] : count, who(!side, r), far);
    }
    MPI_Datatype stype = out_kind->type, rtype = in_kind->type;
    if (v && wide) {
        MPI_Gatherv_c(at(&out, 0), mine, stype, at(&in, 0), blocks.wn, blocks.wd, rtype, arg, comm);
    } else if (v) {
        MPI_Gatherv(at(&out, 0), mine, stype, at(&in, 0), blocks.n, blocks.d, rtype, arg, comm);
    } else if (wide) {
        MPI_Gather_c(at(&out, 0), count, stype, at(&in, 0), count, rtype, arg, comm);
    } else {
        MPI_Gather(at(&out, 0), count, stype, at(&in, 0), count, rtype, arg, comm);
    }
    done(&out, "gather between groups, send buffer", root);
    done(&in, v ? "gatherv between groups" : "gather between groups", root);
}

/* scatter, or with v scatterv */
static void inter_scatter(int root_side, int root, bool v)
{
    int arg = root_argument(root_side, root), far = who(root_side, root), me = who(side, rank);
    int mine = side == root_side ? 0 : v ? uneven(root, rank) : count;
    vector_t blocks = vector_blocks(remote, root, -1, 1);
    buf_t out = buf_new(out_kind, arg == MPI_ROOT ? vector_room(remote) : 0), in = buf_new(in_kind, mine);
    for (int r = 0; arg == MPI_ROOT && r < remote; r++) {
        put(&out, v ? blocks.d[r] : r * count, v ? blocks.n[r] : count, far, who(!side, r));
    }
    expect(&in, 0, mine, far, me);
    MPI_Datatype stype = out_kind->type, rtype = in_kind->type;
    if (v && wide) {
        MPI_Scatterv_c(at(&out, 0), blocks.wn, blocks.wd, stype, at(&in, 0), mine, rtype, arg, comm);
    } else if (v) {
        MPI_Scatterv(at(&out, 0), blocks.n, blocks.d, stype, at(&in, 0), mine, rtype, arg, comm);
    } else if (wide) {
        MPI_Scatter_c(at(&out, 0), count, stype, at(&in, 0), mine, rtype, arg, comm);
    } else {
        MPI_Scatter(at(&out, 0), count, stype, at(&in, 0), mine, rtype, arg, comm);
    }
    done(&out, "scatter between groups, send buffer", root);
    done(&in, v ? "scatterv between groups" : "scatter between groups", root);
}

static void inter_allgather(bool v)
{
    int mine = v ? uneven(rank, 0) : count;
    vector_t blocks = vector_blocks(remote, -1, 0, 1);
    buf_t out = buf_new(out_kind, mine), in = buf_new(in_kind, vector_room(remote));
    put(&out, 0, mine, who(side, rank), ALL);
    for (int r = 0; r < remote; r++) {
        expect(&in, v ? blocks.d[r] : r * count, v ? blocks.n[r] : count, who(!side, r), ALL);
    }
    MPI_Datatype stype = out_kind->type, rtype = in_kind->type;
    if (v && wide) {
        MPI_Allgatherv_c(at(&out, 0), mine, stype, at(&in, 0), blocks.wn, blocks.wd, rtype, comm);
    } else if (v) {
        MPI_Allgatherv(at(&out, 0), mine, stype, at(&in, 0), blocks.n, blocks.d, rtype, comm);
    } else if (wide) {
        MPI_Allgather_c(at(&out, 0), count, stype, at(&in, 0), count, rtype, comm);
    } else {
        MPI_Allgather(at(&out, 0), count, stype, at(&in, 0), count, rtype, comm);
    }
    done(&out, "allgather between groups, send buffer", -1);
    done(&in, v ? "allgatherv between groups" : "allgather between groups", -1);
}

static void inter_alltoall(void)
{
    buf_t out = buf_new(out_kind, count * remote), in = buf_new(in_kind, count * remote);
    for (int r = 0; r < remote; r++) {
        put(&out, r * count, count, who(side, rank), who(!side, r));
        expect(&in, r * count, count, who(!side, r), who(side, rank));
    }
    if (wide) {
        MPI_Alltoall_c(at(&out, 0), count, out_kind->type, at(&in, 0), count, in_kind->type, comm);
    } else {
        MPI_Alltoall(at(&out, 0), count, out_kind->type, at(&in, 0), count, in_kind->type, comm);
    }
    done(&out, "alltoall between groups, send buffer", -1);
    done(&in, "alltoall between groups", -1);
}

/* alltoallv, or with w alltoallw */
static void inter_alltoallv(bool w)
{
    int oscale = w ? out_kind->stride * (int) sizeof(int) : 1, iscale = w ? in_kind->stride * (int) sizeof(int) : 1;
    vector_t sv = vector_blocks(remote, rank, -1, oscale), rv = vector_blocks(remote, -1, rank, iscale);
    buf_t out = buf_new(out_kind, vector_room(remote)), in = buf_new(in_kind, vector_room(remote));
    MPI_Datatype stypes[PROCS], rtypes[PROCS];
    for (int r = 0; r < remote; r++) {
        put(&out, sv.d[r] / oscale, sv.n[r], who(side, rank), who(!side, r));
        expect(&in, rv.d[r] / iscale, rv.n[r], who(!side, r), who(side, rank));
        stypes[r] = out_kind->type;
        rtypes[r] = in_kind->type;
    }
    if (w && wide) {
        MPI_Alltoallw_c(at(&out, 0), sv.wn, sv.wd, stypes, at(&in, 0), rv.wn, rv.wd, rtypes, comm);
    } else if (w) {
        MPI_Alltoallw(at(&out, 0), sv.n, sv.d, stypes, at(&in, 0), rv.n, rv.d, rtypes, comm);
    } else if (wide) {
        MPI_Alltoallv_c(at(&out, 0), sv.wn, sv.wd, *stypes, at(&in, 0), rv.wn, rv.wd, *rtypes, comm);
    } else {
        MPI_Alltoallv(at(&out, 0), sv.n, sv.d, *stypes, at(&in, 0), rv.n, rv.d, *rtypes, comm);
    }
    done(&out, "alltoallv between groups, send buffer", -1);
    done(&in, w ? "alltoallw between groups" : "alltoallv between groups", -1);
}

static void inter_moves(void)
{
    for (int root_side = 0; root_side < 2; root_side++) {
        for (int root = 0; root < sizes[root_side]; root++) {
            inter_bcast(root_side, root);
            for (int v = 0; v < 2; v++) {
                inter_gather(root_side, root, v);
                inter_scatter(root_side, root, v);
            }
        }
    }
    for (int v = 0; v < 2; v++) {
        inter_allgather(v);
        inter_alltoallv(v);
    }
    inter_alltoall();
}

static void inter_reduce(int root_side, int root, const int *others)
{
    int arg = root_argument(root_side, root);
    buf_t out = buf_new(out_kind, count), in = buf_new(out_kind, arg == MPI_ROOT ? count : 0);
    put(&out, 0, count, who(side, rank), ALL);
    if (arg == MPI_ROOT) {
        expect_reduced(&in, 0, count, others, remote);
    }
    if (wide) {
        MPI_Reduce_c(at(&out, 0), at(&in, 0), count, out_kind->type, op, arg, comm);
    } else {
        MPI_Reduce(at(&out, 0), at(&in, 0), count, out_kind->type, op, arg, comm);
    }
    done(&out, "reduce between groups, send buffer", root);
    done(&in, "reduce between groups", root);
}

static void inter_allreduce(const int *others)
{
    buf_t out = buf_new(out_kind, count), in = buf_new(out_kind, count);
    put(&out, 0, count, who(side, rank), ALL);
    expect_reduced(&in, 0, count, others, remote);
    if (wide) {
        MPI_Allreduce_c(at(&out, 0), at(&in, 0), count, out_kind->type, op, comm);
    } else {
        MPI_Allreduce(at(&out, 0), at(&in, 0), count, out_kind->type, op, comm);
    }
    done(&out, "allreduce between groups, send buffer", -1);
    done(&in, "allreduce between groups", -1);
}

/* Both sides contribute and receive the same number of elements. */
static void inter_reduce_scatter(bool block, const int *others)
{
    vector_t v = {.total = 0};
    int total = count * sizes[0] * sizes[1], equal = total / size;
    for (int r = 0; r < size; r++) { /* the first gives one to the second */
        int shift = block || total == 0 || size < 2 ? 0 : (r == 1) - (r == 0);
        vector_set(&v, r, equal + shift, v.total);
    }
    buf_t out = buf_new(out_kind, total), in = buf_new(out_kind, v.n[rank]);
    put(&out, 0, total, who(side, rank), ALL);
    expect_reduced(&in, v.d[rank], v.n[rank], others, remote);
    if (block && wide) {
        MPI_Reduce_scatter_block_c(at(&out, 0), at(&in, 0), equal, out_kind->type, op, comm);
    } else if (block) {
        MPI_Reduce_scatter_block(at(&out, 0), at(&in, 0), equal, out_kind->type, op, comm);
    } else if (wide) {
        MPI_Reduce_scatter_c(at(&out, 0), at(&in, 0), v.wn, out_kind->type, op, comm);
    } else {
        MPI_Reduce_scatter(at(&out, 0), at(&in, 0), v.n, out_kind->type, op, comm);
    }
    done(&out, "reduce_scatter between groups, send buffer", -1);
    done(&in, block ? "reduce_scatter_block between groups" : "reduce_scatter between groups", -1);
}

static void inter_reductions(void)
{
    int others[PROCS];
    for (int r = 0; r < remote; r++) {
        others[r] = who(!side, r);
    }
    for (int root_side = 0; root_side < 2; root_side++) {
        for (int root = 0; root < sizes[root_side]; root++) {
            inter_reduce(root_side, root, others);
        }
    }
    inter_allreduce(others);
    inter_reduce_scatter(true, others);
    inter_reduce_scatter(false, others);
}

static void inter(void)
{
    start_inter();
    for (int form = 0; form < 2; form++) {
        MPI_Op ordered;
        wide = form;
        MPI_Op_create(user_compose, 0, &ordered);
        for (int c = 0; c < COUNTS; c++) {
            count = counts[c] == LARGE ? LARGE / 8 : counts[c];
            out_kind = &kinds[PAIRS];
            inter_moves();
            op = ordered;
            combine = compose;
            inter_reductions();
            out_kind = &kinds[INTS];
            op = MPI_SUM;
            combine = add;
            inter_reductions();
        }
        MPI_Op_free(&ordered);
    }
    MPI_Comm_free(&comm);
    finish();
}

/* Who leaves knows that everybody of the other side has come. */
static void inter_barrier(void)
{
    start();
    counter_t *here = shared_counters();
    MPI_Comm half;
    side = rank % 2;
    MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !side, 1, &comm);
    MPI_Comm_remote_size(comm, &remote);
    for (int round = 0; round < 40; round++) {
        if (rank == round % size) {
            come_late(&here[2], round * size + size - 1);
        }
        arrive(&here[side]);
        arrive(&here[2]);
        MPI_Barrier(comm);
        MPI_CHECK(arrivals(&here[!side]) >= (round + 1) * remote);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Comm_free(&half);
    MPI_Comm_free(&comm);
    munmap((void *) here, 4096);
    finish();
}

/* ---- Beside other things ---- */

/* A receive from anybody with any tag takes no message of a collective. */
static void apart(void)
{
    MPI_Request request;
    MPI_Status status;
    int got = -1, mine;
    start();
    set_form(false);
    out_kind = in_kind = &kinds[INTS];
    op = MPI_SUM;
    combine = add;
    for (int round = 0; round < 20; round++) {
        int next = (rank + 1) % size, previous = (rank + size - 1) % size;
        MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &request);
        count = round;
        check_moves(round % size, 1);
        check_reductions(round % size, 1);
        mine = rank * 100 + round;
        MPI_Send(&mine, 1, MPI_INT, next, round, comm);
        MPI_Wait(&request, &status);
        MPI_CHECK(got == previous * 100 + round && status.MPI_SOURCE == previous && status.MPI_TAG == round);
        MPI_Barrier(comm); /* nobody sends to a receive of the next round */
    }
    MPI_Comm_free(&comm);
    finish();
}

/* One int, wherever the buffer seems to be; elements follow each other. */
static MPI_Datatype type_at(const int *where)
{
    MPI_Datatype at, type;
    MPI_Aint address;
    MPI_Get_address(where, &address);
    MPI_Type_create_hindexed(1, (int[]) {1}, &address, MPI_INT, &at);
    MPI_Type_create_resized(at, address, sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&at);
    return type;
}

/* Both buffers are MPI_BOTTOM, and yet not the same. */
static void bottom(void)
{
    int mine, all[PROCS];
    start();
    set_form(false);
    MPI_Datatype here = type_at(&mine), there = type_at(all);
    for (int root = 0; root < size; root++) {
        mine = 1000 * root + rank;
        memset(all, 0, sizeof all);
        MPI_CHECK(MPI_Gather(MPI_BOTTOM, 1, here, MPI_BOTTOM, 1, there, root, comm) == MPI_SUCCESS);
        for (int i = 0; i < size; i++) {
            MPI_CHECK(all[i] == (rank == root ? 1000 * root + i : 0));
            all[i] = 5000 + i;
        }
        MPI_CHECK(MPI_Scatter(MPI_BOTTOM, 1, there, MPI_BOTTOM, 1, here, root, comm) == MPI_SUCCESS);
        MPI_CHECK(mine == 5000 + rank);
        MPI_CHECK(MPI_Allgather(MPI_BOTTOM, 1, here, MPI_BOTTOM, 1, there, comm) == MPI_SUCCESS);
        for (int i = 0; i < size; i++) {
            MPI_CHECK(all[i] == 5000 + i);
        }
    }
    MPI_Type_free(&here);
    MPI_Type_free(&there);
    MPI_Comm_free(&comm);
    finish();
}

static void add_four(void *in, void *inout, int *n, MPI_Datatype *type)
{
    MPI_Aint lb, extent;
    MPI_Type_get_true_extent(*type, &lb, &extent);
    const int *a = (const int *) ((uintptr_t) in + (uintptr_t) lb);
    int *b = (int *) ((uintptr_t) inout + (uintptr_t) lb);
    for (int i = 0; i < 4 * *n; i++) {
        b[i] += a[i];
    }
}

/* More calls than go as messages (coll_shm_after). */
enum { MANY_CALLS = 12 };

static void bottom_reductions(void)
{
    int values[4], length = 4;
    MPI_Aint address;
    MPI_Datatype type;
    MPI_Op sum;
    start();
    MPI_Get_address(values, &address);
    MPI_Type_create_hindexed(1, &length, &address, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Op_create(add_four, 1, &sum);
    for (int call = 0; call < MANY_CALLS; call++) {
        for (int i = 0; i < 4; i++) {
            values[i] = rank + 1;
        }
        MPI_CHECK(MPI_Allreduce(MPI_IN_PLACE, MPI_BOTTOM, 1, type, sum, MPI_COMM_WORLD) == MPI_SUCCESS);
        MPI_CHECK(values[0] == size * (size + 1) / 2 && values[3] == values[0]);
        const int root = call % size;
        for (int i = 0; i < 4; i++) {
            values[i] = rank + 1;
        }
        MPI_CHECK(MPI_Reduce(rank == root ? MPI_IN_PLACE : MPI_BOTTOM, MPI_BOTTOM, 1, type, sum, root, MPI_COMM_WORLD) == MPI_SUCCESS);
        MPI_CHECK(values[0] == (rank == root ? size * (size + 1) / 2 : rank + 1));
    }
    MPI_Op_free(&sum);
    MPI_Type_free(&type);
    finish();
}

/* Operands that the operator does not quite commute for: still all have the same. */
static void same_in_all(void)
{
    start();
    for (int call = 0; call < MANY_CALLS; call++) {
        double one = rank == call % size ? NAN : rank == (call + 1) % size ? -0.0 : 0.0, many[300], all[PROCS];
        for (int i = 0; i < 300; i++) {
            many[i] = i % size == rank ? NAN : -(double) rank;
        }
        MPI_CHECK(MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_DOUBLE, call % 2 ? MPI_MAX : MPI_MIN, MPI_COMM_WORLD) == MPI_SUCCESS);
        MPI_CHECK(MPI_Allreduce(MPI_IN_PLACE, many, 300, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD) == MPI_SUCCESS);
        for (int i = -1; i < 300; i++) {
            MPI_Allgather(i < 0 ? &one : &many[i], 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, MPI_COMM_WORLD);
            for (int r = 1; r < size; r++) {
                MPI_CHECK(memcmp(&all[r], &all[0], sizeof all[0]) == 0);
            }
        }
    }
    finish();
}

/* A block to oneself that is longer than what is received: an error, as from others. */
static void too_long_for_oneself(void)
{
    int out = 1, in = 2, one = 1, none = 0;
    MPI_Datatype ints = MPI_INT;
    start();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_CHECK(MPI_Allgather(&out, 1, MPI_INT, &in, 0, MPI_INT, MPI_COMM_SELF) == MPI_ERR_TRUNCATE);
    MPI_CHECK(MPI_Gather(&out, 1, MPI_INT, &in, 0, MPI_INT, 0, MPI_COMM_SELF) == MPI_ERR_TRUNCATE);
    MPI_CHECK(MPI_Scatter(&out, 1, MPI_INT, &in, 0, MPI_INT, 0, MPI_COMM_SELF) == MPI_ERR_TRUNCATE);
    MPI_CHECK(MPI_Alltoall(&out, 1, MPI_INT, &in, 0, MPI_INT, MPI_COMM_SELF) == MPI_ERR_TRUNCATE);
    MPI_CHECK(MPI_Gatherv(&out, 1, MPI_INT, &in, &none, &none, MPI_INT, 0, MPI_COMM_SELF) == MPI_ERR_TRUNCATE);
    MPI_CHECK(MPI_Allgatherv(&out, 1, MPI_INT, &in, &none, &none, MPI_INT, MPI_COMM_SELF) == MPI_ERR_TRUNCATE);
    MPI_CHECK(MPI_Alltoallw(&out, &one, &none, &ints, &in, &none, &none, &ints, MPI_COMM_SELF) == MPI_ERR_TRUNCATE);
    MPI_CHECK(in == 2);
    finish();
}

/* A Fortran binding whose .TRUE. has all bits set. */
static void fortran_logical(void)
{
    int yes = -1, no = 0;
    start();
    MPI_CHECK(MPI_Abi_set_fortran_booleans(sizeof yes, &yes, &no) == MPI_SUCCESS);
    for (int call = 0; call < MANY_CALLS; call++) {
        int in[2] = {yes, rank == 0 ? yes : no}, out[2];
        MPI_CHECK(MPI_Allreduce(in, out, 2, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD) == MPI_SUCCESS);
        MPI_CHECK(out[0] == yes && out[1] == (size > 1 ? no : yes));
        MPI_CHECK(MPI_Allreduce(in, out, 2, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD) == MPI_SUCCESS);
        MPI_CHECK(out[0] == yes && out[1] == yes);
        MPI_CHECK(MPI_Allreduce(in, out, 2, MPI_LOGICAL, MPI_LXOR, MPI_COMM_WORLD) == MPI_SUCCESS);
        MPI_CHECK(out[0] == (size % 2 ? yes : no) && out[1] == yes);
        _Bool flag = rank == 0, any;
        MPI_CHECK(MPI_Allreduce(&flag, &any, 1, MPI_C_BOOL, MPI_LOR, MPI_COMM_WORLD) == MPI_SUCCESS);
        MPI_CHECK(any == 1);
    }
    finish();
}

enum { THREADS = 8, THREAD_ROUNDS = 2 };

static MPI_Comm own_comms[THREADS], rings[THREADS];
static MPI_Op shared_op;

/* Everything at once: collectives on communicators of each thread's own, messages of all threads on one. */
static void *thread(void *arg)
{
    static const int some[] = {1, 1500, 7, 40};
    const int me = (int) (intptr_t) arg;
    comm = own_comms[me];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    op = shared_op;
    combine = compose;
    for (int round = 0; round < THREAD_ROUNDS; round++) {
        count = some[(me + round) % 4];
        wide = (me + round) % 2;
        out_kind = &kinds[PAIRS];
        in_kind = &kinds[HOLES];
        check_moves((me + round) % size, 1);
        mix_messages(MPI_COMM_WORLD, me, rank, size, round == 0 && me == 0 ? MIX_MOST : 5 + count);
        check_reductions((me + round) % size, 1);
        mix_neighbours(rings[me], rank, size);
        MPI_Barrier(comm);
    }
    return NULL;
}

static void threads(void)
{
    const int periodic = 1;
    pthread_t ids[THREADS];
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    make_kinds();
    MPI_Op_create(user_compose, 0, &shared_op);
    MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
    for (int i = 0; i < THREADS; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &own_comms[i]);
        MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &rings[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        MPI_CHECK(pthread_create(&ids[i], NULL, thread, (void *) (intptr_t) i) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        MPI_Comm_free(&own_comms[i]);
        MPI_Comm_free(&rings[i]);
    }
    void *buffer;
    int bytes;
    MPI_Buffer_detach(&buffer, &bytes);
    MPI_Op_free(&shared_op);
    finish();
}

static const mpi_test_t tests[] = {
    {.name = "moves-1", .np = 1, .fn = moves},           {.name = "moves-2", .np = 2, .fn = moves},
    {.name = "moves-3", .np = 3, .fn = moves},           {.name = "moves-4", .np = 4, .fn = moves},
    {.name = "moves-5", .np = 5, .fn = moves},           {.name = "moves-8", .np = 8, .fn = moves},
    {.name = "reductions-1", .np = 1, .fn = reductions}, {.name = "reductions-2", .np = 2, .fn = reductions},
    {.name = "reductions-3", .np = 3, .fn = reductions}, {.name = "reductions-4", .np = 4, .fn = reductions},
    {.name = "reductions-5", .np = 5, .fn = reductions}, {.name = "reductions-8", .np = 8, .fn = reductions},
    {.name = "large-2", .np = 2, .fn = large},           {.name = "large-5", .np = 5, .fn = large},
    {.name = "barrier-1", .np = 1, .fn = barrier},       {.name = "barrier-2", .np = 2, .fn = barrier},
    {.name = "barrier-3", .np = 3, .fn = barrier},       {.name = "barrier-4", .np = 4, .fn = barrier},
    {.name = "barrier-5", .np = 5, .fn = barrier},       {.name = "barrier-8", .np = 8, .fn = barrier},
    {.name = "inter-2", .np = 2, .fn = inter},           {.name = "inter-5", .np = 5, .fn = inter},
    {.name = "inter-barrier", .np = 5, .fn = inter_barrier},
    {.name = "far-apart", .np = 5, .fn = far_apart},     {.name = "apart", .np = 4, .fn = apart},
    {.name = "bottom-3", .np = 3, .fn = bottom},         {.name = "bottom-5", .np = 5, .fn = bottom},
    {.name = "bottom-reductions", .np = 3, .fn = bottom_reductions},
    {.name = "same-in-all-2", .np = 2, .fn = same_in_all}, {.name = "same-in-all-5", .np = 5, .fn = same_in_all},
    {.name = "too-long-for-oneself", .np = 1, .fn = too_long_for_oneself},
    {.name = "fortran-logical", .np = 2, .fn = fortran_logical},
    {.name = "threads", .np = 4, .fn = threads, .seconds = 240},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
