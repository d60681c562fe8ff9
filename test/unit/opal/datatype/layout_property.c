/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Random nested layouts against a naive reference: a list of (basic type, displacement). Every
 * operation of the engine is compared, with fragments of random size in random order. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "opal/constants.h"
#include "opal/datatype/convertor.h"
#include "opal/datatype/datatype.h"
#include "support/tap.h"

enum { MAX_ELEMENTS = 3000, ROUNDS = 4000, MAX_FRAGMENTS = 40 };

typedef struct element {
    opal_basic_t basic;
    ptrdiff_t disp;
} element_t;

typedef struct reference {
    size_t n;
    element_t *elements;
    bool has_explicit;
    ptrdiff_t lb;
    ptrdiff_t ub;
    ptrdiff_t align;
} reference_t;

typedef struct pair {
    opal_datatype_t type;
    reference_t ref;
} pair_t;

static uint64_t random_state;

static uint64_t random_next(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static size_t random_below(size_t n)
{
    return (size_t) (random_next() >> 16) % n;
}

/* ---- The reference ---- */

static size_t ref_size(const reference_t *ref)
{
    size_t bytes = 0;

    for (size_t i = 0; i < ref->n; i++) {
        bytes += opal_basic_info[ref->elements[i].basic].size;
    }
    return bytes;
}

static void ref_true_bounds(const reference_t *ref, ptrdiff_t *lb, ptrdiff_t *ub)
{
    *lb = *ub = 0;
    for (size_t i = 0; i < ref->n; i++) {
        ptrdiff_t end = ref->elements[i].disp + opal_basic_info[ref->elements[i].basic].size;

        *lb = 0 == i || ref->elements[i].disp < *lb ? ref->elements[i].disp : *lb;
        *ub = 0 == i || end > *ub ? end : *ub;
    }
}

static void ref_bounds(const reference_t *ref, ptrdiff_t *lb, ptrdiff_t *extent)
{
    ptrdiff_t ub;

    if (ref->has_explicit) {
        *lb = ref->lb;
        *extent = ref->ub - ref->lb;
        return;
    }
    ref_true_bounds(ref, lb, &ub);
    *extent = ub - *lb;
    while (ref->align > 0 && *extent % ref->align != 0) {
        ++*extent;
    }
}

static void ref_append(reference_t *out, const reference_t *old, ptrdiff_t disp)
{
    out->elements = realloc(out->elements, (out->n + old->n + 1) * sizeof(element_t));
    if (NULL == out->elements) {
        abort();
    }
    for (size_t i = 0; i < old->n; i++) {
        out->elements[out->n++] =
            (element_t) {old->elements[i].basic, old->elements[i].disp + disp};
    }
    if (old->has_explicit) {
        out->lb = !out->has_explicit || old->lb + disp < out->lb ? old->lb + disp : out->lb;
        out->ub = !out->has_explicit || old->ub + disp > out->ub ? old->ub + disp : out->ub;
        out->has_explicit = true;
    }
    out->align = out->align > old->align ? out->align : old->align;
}

static void ref_repeat(reference_t *out, const reference_t *old, size_t count, ptrdiff_t stride,
                       ptrdiff_t disp)
{
    for (size_t i = 0; i < count; i++) {
        ref_append(out, old, disp + (ptrdiff_t) i * stride);
    }
}

/* ---- Random types ---- */

static const opal_basic_t some_basics[] = {
    OPAL_BASIC_BYTE, OPAL_BASIC_INT16, OPAL_BASIC_INT, OPAL_BASIC_LONG, OPAL_BASIC_FLOAT64,
    OPAL_BASIC_WCHAR, OPAL_BASIC_COMPLEX64, OPAL_BASIC_COMPLEX128, OPAL_BASIC_FLOAT32,
};

static void pair_free(pair_t *pair)
{
    opal_datatype_fini(&pair->type);
    free(pair->ref.elements);
}

static pair_t make_basic(void)
{
    opal_basic_t basic = some_basics[random_below(sizeof(some_basics) / sizeof(some_basics[0]))];
    pair_t p = {.ref = {.n = 1, .align = opal_basic_info[basic].align}};

    p.ref.elements = malloc(sizeof(element_t));
    p.ref.elements[0] = (element_t) {basic, 0};
    if (OPAL_SUCCESS != opal_datatype_init_basic(&p.type, basic)) {
        abort();
    }
    return p;
}

static pair_t make_any(int depth);

static size_t room_for(const reference_t *old, size_t wanted)
{
    size_t room = MAX_ELEMENTS / (old->n + 1);

    return wanted < room ? wanted : room;
}

static pair_t make_vector(int depth)
{
    pair_t old = make_any(depth - 1);
    pair_t p = {0};
    reference_t block = {0};
    ptrdiff_t lb;
    ptrdiff_t extent;
    size_t blocklen = 1 + random_below(4);
    size_t count = room_for(&old.ref, random_below(random_below(8) ? 12 : 300)) / blocklen;
    ptrdiff_t stride;

    ref_bounds(&old.ref, &lb, &extent);
    stride = (ptrdiff_t) (blocklen + random_below(3)) * extent * (random_below(5) ? 1 : -1) +
             (ptrdiff_t) (random_below(4) ? 0 : random_below(32));
    ref_repeat(&block, &old.ref, blocklen, extent, 0);
    ref_repeat(&p.ref, &block, count, stride, 0);
    if (OPAL_SUCCESS != opal_datatype_hvector(&p.type, &old.type, count, blocklen, stride)) {
        abort();
    }
    free(block.elements);
    pair_free(&old);
    return p;
}

/* Blocks of one old type (indexed) or of two (struct) at growing, random or equal distances. */
static pair_t make_blocks(int depth)
{
    pair_t old[2] = {make_any(depth - 1), make_any(depth - 1)};
    pair_t p = {0};
    size_t which = random_below(3);
    size_t n = random_below(random_below(6) ? 10 : 80);
    size_t most = 1 + random_below(3);
    bool regular = 0 == random_below(4);
    ptrdiff_t disp = (ptrdiff_t) random_below(64) - 32;
    opal_datatype_builder_t *builder = opal_datatype_builder_new(n);

    for (size_t i = 0; i < n; i++) {
        const pair_t *o = &old[which < 2 ? which : i % 2];
        size_t count = regular ? most : random_below(most + 1);
        ptrdiff_t lb;
        ptrdiff_t extent;

        if (p.ref.n + count * o->ref.n > MAX_ELEMENTS) {
            break;
        }
        ref_bounds(&o->ref, &lb, &extent);
        ref_repeat(&p.ref, &o->ref, count, extent, disp);
        opal_datatype_builder_add(builder, &o->type, count, disp);
        disp += (ptrdiff_t) count * extent;
        disp += regular ? 8 : (ptrdiff_t) (random_below(2) ? random_below(24) : 0);
    }
    if (OPAL_SUCCESS != opal_datatype_builder_finish(builder, &p.type)) {
        abort();
    }
    pair_free(&old[0]);
    pair_free(&old[1]);
    return p;
}

/* Columns of a matrix one after the other, alone or moved: blocks apart by a long stride, repeated at a short one. */
static pair_t make_columns(void)
{
    pair_t old = make_basic();
    pair_t p = {0};
    reference_t block = {0};
    reference_t column = {0};
    const size_t size = opal_basic_info[old.ref.elements[0].basic].size;
    const size_t blocklen = 1 + random_below(3);
    const ptrdiff_t step = (ptrdiff_t) (size * blocklen + random_below(9));
    const size_t columns = 2 + random_below(24);
    const size_t rows = 2 + random_below(MAX_ELEMENTS / (blocklen * columns) - 1);
    const ptrdiff_t row = ((ptrdiff_t) columns * step + (ptrdiff_t) random_below(100)) * (random_below(5) ? 1 : -1);
    opal_datatype_t one;

    ref_repeat(&block, &old.ref, blocklen, (ptrdiff_t) size, 0);
    ref_repeat(&column, &block, rows, row, 0);
    ref_repeat(&p.ref, &column, columns, step, 0);
    if (OPAL_SUCCESS != opal_datatype_hvector(&one, &old.type, rows, blocklen, row) ||
        OPAL_SUCCESS != opal_datatype_hvector(&p.type, &one, columns, 1, step)) {
        abort();
    }
    opal_datatype_fini(&one);
    free(block.elements);
    free(column.elements);
    pair_free(&old);
    return p;
}

static pair_t make_resized(int depth)
{
    pair_t old = make_any(depth - 1);
    pair_t p = {0};
    ptrdiff_t lb = (ptrdiff_t) random_below(32) - 16;
    ptrdiff_t extent;

    ref_bounds(&old.ref, &extent, &extent);
    extent += (ptrdiff_t) random_below(40) - 8;
    ref_append(&p.ref, &old.ref, 0);
    p.ref.has_explicit = true;
    p.ref.lb = lb;
    p.ref.ub = lb + extent;
    if (OPAL_SUCCESS != opal_datatype_resized(&p.type, &old.type, lb, extent)) {
        abort();
    }
    pair_free(&old);
    return p;
}

static pair_t make_any(int depth)
{
    if (depth <= 0) {
        return make_basic();
    }
    switch (random_below(9)) {
    case 0:
        return make_basic();
    case 1:
        return make_resized(depth);
    case 8:
        return make_columns();
    case 2:
    case 3:
    case 4:
        return make_vector(depth);
    default:
        return make_blocks(depth);
    }
}

/* ---- One message ---- */

typedef struct message {
    const pair_t *pair;
    reference_t all;            /* the elements of the whole message */
    bool overlaps;
    ptrdiff_t gap;
    size_t span;
    unsigned char *memory;      /* source, random bytes */
    unsigned char *target;
    unsigned char *expected;    /* what target must become */
    size_t size;
    unsigned char *packed;      /* by the reference */
    unsigned char *out;
    opal_convertor_t conv;
} message_t;

static unsigned char *bytes_new(size_t n)
{
    unsigned char *p = malloc(n + 1);

    if (NULL == p) {
        abort();
    }
    for (size_t i = 0; i < n; i++) {
        p[i] = (unsigned char) random_next();
    }
    return p;
}

/* Reference forms; `remote` NULL: local. */
static void ref_pack(message_t *m, const opal_arch_t *remote)
{
    size_t at = 0;

    for (size_t i = 0; i < m->all.n; i++) {
        const element_t *e = &m->all.elements[i];
        const unsigned char *from = m->memory - m->gap + e->disp;

        if (NULL == remote) {
            memcpy(m->packed + at, from, opal_basic_info[e->basic].size);
            at += opal_basic_info[e->basic].size;
        } else {
            opal_arch_to_remote(remote, e->basic, m->packed + at, from, 1);
            at += remote->size[e->basic];
        }
    }
    m->size = at;
}

static void ref_unpack(message_t *m, const opal_arch_t *remote)
{
    size_t at = 0;

    for (size_t i = 0; i < m->all.n; i++) {
        const element_t *e = &m->all.elements[i];
        unsigned char *to = m->expected - m->gap + e->disp;

        if (NULL == remote) {
            memcpy(to, m->packed + at, opal_basic_info[e->basic].size);
            at += opal_basic_info[e->basic].size;
        } else {
            opal_arch_from_remote(remote, e->basic, to, m->packed + at, 1);
            at += remote->size[e->basic];
        }
    }
}

static bool find_overlap(const message_t *m)
{
    unsigned char *seen = calloc(m->span + 1, 1);
    bool found = false;

    for (size_t i = 0; i < m->all.n; i++) {
        for (size_t b = 0; b < opal_basic_info[m->all.elements[i].basic].size; b++) {
            ptrdiff_t at = m->all.elements[i].disp - m->gap + (ptrdiff_t) b;

            found = found || seen[at];
            seen[at] = 1;
        }
    }
    free(seen);
    return found;
}

static bool message_init(message_t *m, const pair_t *pair, size_t count, const opal_arch_t *remote)
{
    ptrdiff_t lb;
    ptrdiff_t ub;
    ptrdiff_t extent;
    ptrdiff_t gap;
    bool ok;

    *m = (message_t) {.pair = pair};
    ref_bounds(&pair->ref, &lb, &extent);
    ref_repeat(&m->all, &pair->ref, count, extent, 0);
    ref_true_bounds(&m->all, &lb, &ub);
    m->gap = lb;
    m->span = (size_t) (ub - lb);
    ok = opal_datatype_span(&pair->type, count, &gap) == ub - lb && gap == lb;
    m->memory = bytes_new(m->span);
    m->target = bytes_new(m->span);
    m->expected = bytes_new(m->span);
    memcpy(m->expected, m->target, m->span);
    m->packed = bytes_new(m->all.n * OPAL_BASIC_MAX_SIZE);
    m->out = bytes_new(m->all.n * OPAL_BASIC_MAX_SIZE);
    m->overlaps = find_overlap(m);
    ref_pack(m, remote);
    ref_unpack(m, remote);
    return ok && OPAL_SUCCESS == opal_convertor_init(&m->conv, &pair->type, count,
                                                     m->memory - m->gap, remote) &&
           m->conv.size == m->size;
}

static void message_free(message_t *m)
{
    free(m->all.elements);
    free(m->memory);
    free(m->target);
    free(m->expected);
    free(m->packed);
    free(m->out);
}

/* Cuts [0, size) into fragments in random order; returns their number. */
static size_t make_fragments(size_t size, size_t *begin, size_t *end)
{
    size_t n = 1 + random_below(MAX_FRAGMENTS);
    size_t count = 0;

    for (size_t at = 0; at < size;) {
        size_t len = count + 1 == MAX_FRAGMENTS ? size - at : 1 + random_below(2 * size / n + 1);

        len = len < size - at ? len : size - at;
        begin[count] = at;
        end[count++] = at + len;
        at += len;
    }
    for (size_t i = count; i > 1; i--) {
        size_t k = random_below(i);
        size_t b = begin[i - 1];
        size_t e = end[i - 1];

        begin[i - 1] = begin[k];
        end[i - 1] = end[k];
        begin[k] = b;
        end[k] = e;
    }
    return count;
}

static bool check_pack(message_t *m)
{
    size_t begin[MAX_FRAGMENTS];
    size_t end[MAX_FRAGMENTS];
    size_t n = make_fragments(m->size, begin, end);
    bool ok = opal_convertor_pack_at(&m->conv, 0, m->out, m->size + 7) == m->size &&
              0 == memcmp(m->out, m->packed, m->size) &&
              0 == opal_convertor_pack_at(&m->conv, m->size, m->out, 1);

    memset(m->out, 0xa5, m->size);
    for (size_t i = 0; i < n; i++) {
        size_t len = end[i] - begin[i];

        ok = ok && opal_convertor_pack_at(&m->conv, begin[i], m->out + begin[i], len) == len;
    }
    return ok && 0 == memcmp(m->out, m->packed, m->size);
}

static bool check_unpack(message_t *m)
{
    size_t begin[MAX_FRAGMENTS];
    size_t end[MAX_FRAGMENTS];
    size_t n = make_fragments(m->size, begin, end);
    opal_convertor_t conv = m->conv;
    bool ok = true;

    if (m->overlaps) {
        return true;
    }
    conv.base = (char *) m->target - m->gap;
    for (size_t i = 0; i < n; i++) {
        size_t len = end[i] - begin[i];

        ok = ok && opal_convertor_unpack_at(&conv, begin[i], m->packed + begin[i], len) == len;
    }
    return ok && 0 == memcmp(m->target, m->expected, m->span);
}

static bool check_raw(message_t *m)
{
    struct iovec iov[7];
    opal_convertor_cursor_t cursor;
    size_t at = 0;

    opal_convertor_cursor_init(&cursor, &m->conv);
    while (opal_convertor_remaining(&cursor) > 0) {
        size_t n = 1 + random_below(7);
        size_t max = 1 + random_below(m->size);
        size_t bytes = opal_convertor_raw(&cursor, iov, &n, max);

        if (0 == bytes || bytes > max) {
            return false;
        }
        for (size_t i = 0; i < n; i++) {
            if (0 != memcmp(m->packed + at, iov[i].iov_base, iov[i].iov_len)) {
                return false;
            }
            at += iov[i].iov_len;
        }
        if (at != cursor.position) {
            return false;
        }
    }
    return at == m->size;
}

static bool check_copy(message_t *m, size_t count)
{
    ptrdiff_t gap = m->gap;

    if (m->overlaps) {
        return true;
    }
    memcpy(m->target, m->expected, m->span);
    for (size_t i = 0; i < m->all.n; i++) {
        memset(m->target - gap + m->all.elements[i].disp, 0,
               opal_basic_info[m->all.elements[i].basic].size);
    }
    return OPAL_SUCCESS == opal_datatype_copy(&m->pair->type, count, m->target - gap,
                                              m->memory - gap) &&
           0 == memcmp(m->target, m->expected, m->span);
}

/* Element counts and borders, at a random offset. */
static bool check_elements(message_t *m, const opal_arch_t *remote)
{
    size_t offset = random_below(m->size + 1);
    size_t at = 0;
    size_t n = 0;
    size_t rest;
    size_t back;

    while (n < m->all.n) {
        opal_basic_t basic = m->all.elements[n].basic;
        size_t len = NULL == remote ? opal_basic_info[basic].size : remote->size[basic];

        if (at + len > offset) {
            break;
        }
        at += len;
        n++;
    }
    if (opal_convertor_align(&m->conv, offset) != at) {
        return false;
    }
    return NULL != remote ||
           (opal_datatype_elements(&m->pair->type, offset, &rest) == n && rest == offset - at &&
            opal_datatype_elements_size(&m->pair->type, n, &back) && back == at);
}

static bool check_bounds(const pair_t *p)
{
    ptrdiff_t lb;
    ptrdiff_t ub;
    ptrdiff_t extent;
    bool ok;

    ref_true_bounds(&p->ref, &lb, &ub);
    ok = p->type.true_lb == lb && p->type.true_extent == ub - lb;
    ref_bounds(&p->ref, &lb, &extent);
    return ok && p->type.lb == lb && p->type.extent == extent &&
           p->type.size == ref_size(&p->ref) &&
           opal_datatype_element_count(&p->type) == p->ref.n;
}

/* Contiguous must mean what it says. */
static bool check_contiguous(message_t *m, size_t count)
{
    const char *start = opal_convertor_contiguous_ptr(&m->pair->type, count, m->memory - m->gap);

    return NULL == start || 0 == m->size || 0 == memcmp(start, m->packed, m->size);
}

static opal_arch_t swapped_arch(void)
{
    opal_arch_t arch = *opal_arch_local();

    arch.big_endian = !arch.big_endian;
    return arch;
}

static const char *check_one(const pair_t *p, size_t count, const opal_arch_t *remote)
{
    const char *failed = NULL;
    message_t m;

    if (!check_bounds(p)) {
        return "bounds";
    }
    if (!message_init(&m, p, count, remote)) {
        failed = "size or span";
    } else if (!check_pack(&m)) {
        failed = "pack";
    } else if (!check_unpack(&m)) {
        failed = "unpack";
    } else if (!check_elements(&m, remote)) {
        failed = "elements";
    } else if (NULL == remote && !check_raw(&m)) {
        failed = "raw";
    } else if (NULL == remote && !check_contiguous(&m, count)) {
        failed = "contiguous";
    } else if (NULL == remote && !check_copy(&m, count)) {
        failed = "copy";
    }
    message_free(&m);
    return failed;
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    opal_arch_t swapped = swapped_arch();
    int rounds = argc > 2 ? atoi(argv[2]) : ROUNDS;

    tap_start(300);
    for (int round = 0; round < rounds; round++) {
        const char *failed;
        pair_t p;
        size_t count;

        random_state = (seed + (uint64_t) round) * UINT64_C(0x9e3779b97f4a7c15) | 1;
        p = make_any(1 + (int) random_below(5));
        count = room_for(&p.ref, random_below(6));
        failed = check_one(&p, count, NULL);
        if (NULL == failed) {
            failed = check_one(&p, count, &swapped);
        }
        if (NULL == failed) {
            failed = check_one(&p, count, opal_arch_external32());
        }
        if (NULL != failed) {
            TAP_OK(false, "seed %llu: %s", (unsigned long long) seed + (unsigned) round, failed);
        }
        pair_free(&p);
    }
    TAP_OK(0 == tap_failed, "%d random layouts from seed %llu", rounds, (unsigned long long) seed);
    return tap_end();
}
