/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cases drawn from the product of {operations} x {forms} x {layouts} x {counts}, each checked byte by byte, the gaps of the
 * receiving layout and what lies around it included. grid.sh runs this over {ranks} x {layers} x {links}.
 *
 *   GRID_SEED=n    where the random numbers start (default 1): the same seed draws the same cases
 *   GRID_CASES=n   how many are drawn; "all": the whole product (default 100)
 *   GRID_PART=k/n  the k-th of n parts of them (default 1/1): each case is in one part
 *   GRID_ONLY=n    the n-th of them alone
 *
 * Counts are 0, 1, some, what makes a message one element shorter than, as long as, and one element longer than each limit
 * that the library has for lengths, lengths about these limits (headers take room, too), and, of elements without size, more
 * than 2^31. What a message holds follows from who sends it to whom in which case.
 */
#include <malloc.h>
#include <stdint.h>

#include "support/mpi_test.h"

enum { SHAPES_MAX = 24, EDGES_MAX = 24, MARGIN = 64, EDGE_MOST = 2 << 20, BLOCK_MOST = 4 << 20, TAG = 17 };

typedef struct shape {
    const char *name;
    MPI_Datatype type;
    MPI_Count size, extent, true_lb, true_extent;
} shape_t;

typedef enum { BLOCKING, NONBLOCKING, PERSISTENT, FORMS } form_t;

typedef struct case_ {
    int number;
    const shape_t *shape;
    MPI_Count count;
    form_t form;
    bool large;      /* the _c routine */
} case_t;

/* Room for elements of a shape. `at` is what MPI is given. */
typedef struct area {
    char *memory, *at;
    size_t bytes;
} area_t;

static int rank, size, failures_shown;
static unsigned long long state;
static shape_t shapes[SHAPES_MAX];
static int shape_count;
static MPI_Count edges[EDGES_MAX];
static int edge_count;
static int part = 1, parts = 1, only = -1; /* of the cases */
static int cases_run;

static int random_below(int n)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (int) ((state >> 33) % (unsigned) n);
}

/* ---- Layouts ---- */

static void add_shape(const char *name, MPI_Datatype type)
{
    MPI_Count lb;
    shape_t *s = &shapes[shape_count++];
    *s = (shape_t) {.name = name, .type = type};
    MPI_Type_commit(&s->type);
    MPI_Type_size_c(type, &s->size);
    MPI_Type_get_extent_c(type, &lb, &s->extent);
    MPI_Type_get_true_extent_c(type, &s->true_lb, &s->true_extent);
}

static MPI_Datatype random_layer(MPI_Datatype old)
{
    MPI_Datatype type;
    MPI_Aint lb, extent;
    int block = 1 + random_below(4), lengths[6], displacements[6], at = 0;
    switch (random_below(4)) {
    case 0: MPI_Type_vector(1 + random_below(20), block, block + random_below(3), old, &type); break;
    case 1:
        for (int i = 0; i < 6; i++) {
            displacements[i] = at;
            lengths[i] = random_below(4) + (i == 0);
            at += lengths[i] + random_below(3);
        }
        MPI_Type_indexed(6, lengths, displacements, old, &type);
        break;
    case 2: MPI_Type_contiguous(1 + random_below(5), old, &type); break;
    default:
        MPI_Type_get_extent(old, &lb, &extent);
        MPI_Type_create_resized(old, lb, extent + 8 * random_below(4), &type);
    }
    return type;
}

static void make_shapes(void)
{
    MPI_Datatype t, u;
    const int sizes[2] = {6, 5}, subsizes[2] = {3, 2}, starts[2] = {2, 1};
    const int lengths[3] = {1, 2, 1};
    const MPI_Aint displacements[3] = {0, 8, 21};
    const MPI_Datatype types[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR};
    add_shape("byte", MPI_BYTE);
    add_shape("int", MPI_INT);
    add_shape("double", MPI_DOUBLE);
    add_shape("double and int", MPI_DOUBLE_INT);
    MPI_Type_contiguous(3, MPI_SHORT, &t);
    add_shape("contiguous", t);
    MPI_Type_vector(4, 2, 5, MPI_FLOAT, &t);
    add_shape("vector", t);
    MPI_Type_create_struct(3, lengths, displacements, types, &t);
    MPI_Type_create_resized(t, 0, 40, &u);
    add_shape("unaligned struct", u);
    MPI_Type_create_resized(MPI_INT, -4, 12, &t);
    add_shape("negative lower bound", t);
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &t);
    add_shape("subarray", t);
    MPI_Type_contiguous(0, MPI_INT, &t);
    add_shape("without size", t);
    for (int i = 0; i < 6; i++) {
        t = i % 2 ? shapes[6].type : MPI_SHORT;
        for (int layers = 1 + i / 2; layers > 0; layers--) {
            t = random_layer(t);
        }
        add_shape("random", t);
    }
}

/* ---- Counts ---- */

/* Each limit once: several parameters have the same value. */
static void add_edge(MPI_Count edge)
{
    for (int i = 0; i < edge_count; i++) {
        if (edges[i] == edge) {
            return;
        }
    }
    if (edge > 0 && edge <= EDGE_MOST && edge_count < EDGES_MAX) {
        edges[edge_count++] = edge;
    }
}

/* Limits of lengths, from the library's own parameters. */
static void find_edges(void)
{
    static const char *const endings[] = {"_first_frag", "_whole_max", "_eager_limit", "_share_min", "_frag_max",
                                          "_short_max", "_max_frag"};
    int provided, count;
    add_edge(64); /* a line of the cache */
    add_edge(4096);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_cvar_get_num(&count);
    for (int i = 0; i < count; i++) {
        char name[128];
        int room = sizeof name, scope, bind, elements;
        MPI_Datatype type;
        MPI_T_cvar_handle handle;
        MPI_Count value = 0;
        MPI_T_cvar_get_info(i, name, &room, NULL, &type, NULL, NULL, NULL, &bind, &scope);
        for (size_t e = 0; e < sizeof endings / sizeof *endings; e++) {
            size_t length = strlen(name), tail = strlen(endings[e]);
            if (length > tail && strcmp(name + length - tail, endings[e]) == 0 &&
                MPI_T_cvar_handle_alloc(i, NULL, &handle, &elements) == MPI_SUCCESS) {
                MPI_T_cvar_read(handle, &value);
                MPI_T_cvar_handle_free(&handle);
                add_edge(value);
            }
        }
    }
    MPI_T_finalize();
}

static int count_classes(void)
{
    return 4 + 4 * edge_count;
}

/* The count of a class for a shape; negative: there is no such case. */
static MPI_Count count_of(int class, const shape_t *shape, bool large)
{
    if (class < 3) {
        return class < 2 ? class : 2 + random_below(40);
    }
    if (shape->size == 0 || class == 3) { /* no byte moves, but the number does */
        return class == 3 && shape->size == 0 && large ? ((MPI_Count) 1 << 31) + 3 : -1;
    }
    MPI_Count edge = edges[(class - 4) / 4];
    int delta = (class - 4) % 4;
    if (delta == 3) {
        edge += random_below(112) - 96;
        delta = 1;
    }
    return edge / shape->size + delta - 1;
}

/* ---- Memory ---- */

/* Byte i of a message is made of base + i * CONTENT_STEP. */
static const uint32_t CONTENT_STEP = 2654435761u;

static uint32_t content_base(int from, int to, int number)
{
    return (uint32_t) from * 40503u + (uint32_t) to * 977u + (uint32_t) number * 131u;
}

/* The bytes of a message, laid out from `at` on. */
static void write_message(const case_t *c, char *at, MPI_Count count, int from, int to)
{
    MPI_Count bytes = count * c->shape->size, position = 0;
    char *packed = malloc((size_t) bytes + 1);
    uint32_t value = content_base(from, to, c->number);
    for (MPI_Count i = 0; i < bytes; i++, value += CONTENT_STEP) {
        packed[i] = (char) (value >> 7);
    }
    MPI_Unpack_c(packed, bytes, &position, at, count, c->shape->type, MPI_COMM_SELF);
    free(packed);
}

/* Room for so many elements, filled with what is no message. */
static area_t new_area(const case_t *c, MPI_Count count)
{
    const shape_t *s = c->shape;
    area_t a = {.bytes = 2 * MARGIN};
    if (count > 0 && s->size > 0) {
        a.bytes += (size_t) (s->true_extent + (count - 1) * s->extent);
    }
    a.memory = malloc(a.bytes);
    memset(a.memory, 0xa5, a.bytes);
    a.at = a.memory + MARGIN - s->true_lb;
    return a;
}

static void free_area(area_t *a)
{
    free(a->memory);
}

static char *block_of(const case_t *c, const area_t *a, MPI_Count elements)
{
    return a->at + (c->shape->size > 0 ? elements * c->shape->extent : 0);
}

static void check(const case_t *c, const char *operation, const area_t *got, const area_t *wanted)
{
    size_t i = memcmp(got->memory, wanted->memory, got->bytes) == 0 ? got->bytes : 0;
    while (i < got->bytes && got->memory[i] == wanted->memory[i]) {
        i++;
    }
    if (i < got->bytes && failures_shown++ < 3) {
        fprintf(stderr, "rank %d of %d, case %d: %s, form %d%s, %lld of %s (%lld bytes each): wrong from byte %lld of %zu on\n",
                rank, size, c->number, operation, c->form, c->large ? " _c" : "", (long long) c->count, c->shape->name,
                (long long) c->shape->size, (long long) i - MARGIN, got->bytes - 2 * MARGIN);
    }
    MPI_CHECK(i == got->bytes);
}

static void good(const case_t *c, const char *operation, int rc)
{
    if (rc != MPI_SUCCESS && failures_shown++ < 3) {
        fprintf(stderr, "rank %d of %d, case %d: %s: error %d\n", rank, size, c->number, operation, rc);
    }
    MPI_CHECK(rc == MPI_SUCCESS);
}

/* ---- Calls in all forms: the list for int counts, the one for MPI_Count ---- */

#define OPEN(...) __VA_ARGS__

#define CALL(c, NAME, small, big) ((c)->large ? MPI_##NAME##_c(OPEN big) : MPI_##NAME(OPEN small))

static int finish(form_t form, MPI_Request *request)
{
    int rc = form == PERSISTENT ? MPI_Start(request) : MPI_SUCCESS;
    rc = rc == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : rc;
    if (form == PERSISTENT && rc == MPI_SUCCESS) { /* once more: it is persistent */
        rc = MPI_Start(request);
        rc = rc == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : rc;
        MPI_Request_free(request);
    }
    return rc;
}

#define COLLECTIVE(c, NAME, INAME, small, big)                                                                       \
    do {                                                                                                             \
        MPI_Request request_ = MPI_REQUEST_NULL;                                                                     \
        int rc_;                                                                                                     \
        if ((c)->form == BLOCKING) {                                                                                 \
            rc_ = (c)->large ? MPI_##NAME##_c(OPEN big) : MPI_##NAME(OPEN small);                                    \
        } else if ((c)->form == NONBLOCKING) {                                                                       \
            rc_ = (c)->large ? MPI_##INAME##_c(OPEN big, &request_) : MPI_##INAME(OPEN small, &request_);            \
        } else {                                                                                                     \
            rc_ = (c)->large ? MPI_##NAME##_init_c(OPEN big, MPI_INFO_NULL, &request_)                               \
                             : MPI_##NAME##_init(OPEN small, MPI_INFO_NULL, &request_);                              \
        }                                                                                                            \
        rc_ = rc_ == MPI_SUCCESS && (c)->form != BLOCKING ? finish((c)->form, &request_) : rc_;                      \
        good(c, #NAME, rc_);                                                                                         \
    } while (0)

/* ---- Messages: round the ring, or from a process to itself ---- */

enum { ISEND, ISSEND, IBSEND, SEND, SSEND, BSEND, RSEND, IRSEND, SEND_INIT, SSEND_INIT, BSEND_INIT, RSEND_INIT, PSEND_INIT,
       SENDRECV, ISENDRECV, SENDS };
enum { IRECV, RECV_INIT, RECV, MPROBE, IMPROBE, RECVS };

static const char *const sends[SENDS] = {"Isend", "Issend", "Ibsend", "Send", "Ssend", "Bsend", "Rsend", "Irsend", "Send_init",
                                         "Ssend_init", "Bsend_init", "Rsend_init", "Psend_init", "Sendrecv", "Isendrecv"};

#define SEND_ARGUMENTS(n) a, n, c->shape->type, to, TAG, MPI_COMM_WORLD

/* Begin, or do, the send. */
static int start_send(const case_t *c, int kind, const void *a, int to, MPI_Request *r)
{
    const int n = (int) c->count;
    const MPI_Count m = c->count;
    *r = MPI_REQUEST_NULL;
    switch (kind) {
    case ISEND: return CALL(c, Isend, (SEND_ARGUMENTS(n), r), (SEND_ARGUMENTS(m), r));
    case ISSEND: return CALL(c, Issend, (SEND_ARGUMENTS(n), r), (SEND_ARGUMENTS(m), r));
    case IBSEND: return CALL(c, Ibsend, (SEND_ARGUMENTS(n), r), (SEND_ARGUMENTS(m), r));
    case SEND: return CALL(c, Send, (SEND_ARGUMENTS(n)), (SEND_ARGUMENTS(m)));
    case SSEND: return CALL(c, Ssend, (SEND_ARGUMENTS(n)), (SEND_ARGUMENTS(m)));
    case BSEND: return CALL(c, Bsend, (SEND_ARGUMENTS(n)), (SEND_ARGUMENTS(m)));
    case RSEND: return CALL(c, Rsend, (SEND_ARGUMENTS(n)), (SEND_ARGUMENTS(m)));
    case IRSEND: return CALL(c, Irsend, (SEND_ARGUMENTS(n), r), (SEND_ARGUMENTS(m), r));
    case SEND_INIT: return CALL(c, Send_init, (SEND_ARGUMENTS(n), r), (SEND_ARGUMENTS(m), r));
    case SSEND_INIT: return CALL(c, Ssend_init, (SEND_ARGUMENTS(n), r), (SEND_ARGUMENTS(m), r));
    case BSEND_INIT: return CALL(c, Bsend_init, (SEND_ARGUMENTS(n), r), (SEND_ARGUMENTS(m), r));
    default: return CALL(c, Rsend_init, (SEND_ARGUMENTS(n), r), (SEND_ARGUMENTS(m), r));
    }
}

static bool is_persistent(int kind)
{
    return kind >= SEND_INIT && kind <= RSEND_INIT;
}

static int start_receive(const case_t *c, int kind, void *a, int from, MPI_Request *r)
{
    const int n = (int) c->count;
    const MPI_Count m = c->count;
    int rc;
    if (kind == IRECV) {
        return CALL(c, Irecv, (a, n, c->shape->type, from, TAG, MPI_COMM_WORLD, r),
                    (a, m, c->shape->type, from, TAG, MPI_COMM_WORLD, r));
    }
    rc = CALL(c, Recv_init, (a, n, c->shape->type, from, TAG, MPI_COMM_WORLD, r),
              (a, m, c->shape->type, from, TAG, MPI_COMM_WORLD, r));
    return rc == MPI_SUCCESS ? MPI_Start(r) : rc;
}

/* A receive that begins when the message may be here. */
static int receive_late(const case_t *c, int kind, void *a, int from)
{
    const int n = (int) c->count;
    const MPI_Count m = c->count;
    MPI_Status status;
    MPI_Message message;
    MPI_Request r;
    MPI_Count got = -1;
    int rc, flag = 0;
    if (kind == RECV) {
        rc = CALL(c, Recv, (a, n, c->shape->type, from, TAG, MPI_COMM_WORLD, &status),
                  (a, m, c->shape->type, from, TAG, MPI_COMM_WORLD, &status));
    } else if (kind == MPROBE) {
        MPI_Mprobe(from, TAG, MPI_COMM_WORLD, &message, &status);
        rc = CALL(c, Mrecv, (a, n, c->shape->type, &message, MPI_STATUS_IGNORE),
                  (a, m, c->shape->type, &message, MPI_STATUS_IGNORE));
    } else {
        while (!flag) {
            MPI_Improbe(from, TAG, MPI_COMM_WORLD, &flag, &message, &status);
        }
        rc = CALL(c, Imrecv, (a, n, c->shape->type, &message, &r), (a, m, c->shape->type, &message, &r));
        rc = rc == MPI_SUCCESS ? MPI_Wait(&r, MPI_STATUS_IGNORE) : rc;
    }
    MPI_Get_count_c(&status, c->shape->type, &got);
    MPI_CHECK(got == (c->shape->size > 0 ? c->count : 0));
    return rc;
}

static int partitioned(const case_t *c, const void *a, void *b, int to, int from)
{
    const int parts = c->count % 4 == 0 ? 4 : 1;
    MPI_Request r[2];
    int rc = MPI_Psend_init(a, parts, c->count / parts, c->shape->type, to, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]);
    rc = rc ? rc : MPI_Precv_init(b, parts, c->count / parts, c->shape->type, from, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]);
    rc = rc ? rc : MPI_Startall(2, r);
    for (int i = parts - 1; i >= 0 && rc == MPI_SUCCESS; i--) {
        rc = MPI_Pready(i, r[0]);
    }
    rc = rc ? rc : MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
    return rc;
}

#define BOTH_WAYS(n) a->at, n, c->shape->type, to, TAG, b->at, n, c->shape->type, from, TAG, MPI_COMM_WORLD

static int exchange(const case_t *c, int kind, const area_t *a, const area_t *b, int to, int from)
{
    const int n = (int) c->count;
    const MPI_Count m = c->count;
    MPI_Request r;
    if (kind == SENDRECV) {
        return CALL(c, Sendrecv, (BOTH_WAYS(n), MPI_STATUS_IGNORE), (BOTH_WAYS(m), MPI_STATUS_IGNORE));
    }
    int rc = CALL(c, Isendrecv, (BOTH_WAYS(n), &r), (BOTH_WAYS(m), &r));
    return rc == MPI_SUCCESS ? MPI_Wait(&r, MPI_STATUS_IGNORE) : rc;
}

/* One message to the right, one from the left, by a pair of routines. */
static int pass_on(const case_t *c, int send, int receive, const area_t *a, const area_t *b, int to, int from)
{
    MPI_Request r[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int rc = receive <= RECV_INIT ? start_receive(c, receive, b->at, from, &r[1]) : MPI_SUCCESS;
    if (send == RSEND || send == IRSEND || send == RSEND_INIT) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    rc = rc ? rc : start_send(c, send, a->at, to, &r[0]);
    rc = rc == MPI_SUCCESS && is_persistent(send) ? MPI_Start(&r[0]) : rc;
    rc = rc == MPI_SUCCESS && receive > RECV_INIT ? receive_late(c, receive, b->at, from) : rc;
    rc = rc ? rc : MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++) {
        if (r[i] != MPI_REQUEST_NULL) {
            MPI_Request_free(&r[i]);
        }
    }
    return rc;
}

/* `kind`: a send and a receive. Ready sends, and those that block, need a receive that is posted. */
static void message(const case_t *c, int kind)
{
    const int send = kind % SENDS, to = (rank + 1) % size, from = (rank + size - 1) % size;
    const bool early = send == SEND || send == SSEND || send == BSEND || send == RSEND || send == IRSEND || send == RSEND_INIT;
    const int receive = early ? kind / SENDS % (RECV_INIT + 1) : kind / SENDS;
    area_t a = new_area(c, c->count), b = new_area(c, c->count), wanted = new_area(c, c->count);
    int rc;
    write_message(c, a.at, c->count, rank, to);
    write_message(c, wanted.at, c->count, from, rank);
    if (send == PSEND_INIT) {
        rc = partitioned(c, a.at, b.at, to, from);
    } else if (send >= SENDRECV) {
        rc = exchange(c, send, &a, &b, to, from);
    } else {
        rc = pass_on(c, send, receive, &a, &b, to, from);
    }
    good(c, sends[send], rc);
    check(c, sends[send], &b, &wanted);
    free_area(&a);
    free_area(&b);
    free_area(&wanted);
}

/* ---- Collective operations ---- */

/* Blocks of processes, of one length or of several, with room between them. */
typedef struct blocks {
    int counts[64], displacements[64];
    MPI_Count large_counts[64];
    MPI_Aint large_displacements[64];
    MPI_Count total;
} blocks_t;

/* v: process i has a little less than the one before, and there is a gap after it. */
static blocks_t make_blocks(const case_t *c, bool v)
{
    blocks_t b = {.total = 0};
    for (int i = 0; i < size; i++) {
        MPI_Count n = v && c->count > i && c->shape->size > 0 ? c->count - i : c->count;
        b.large_counts[i] = n;
        b.counts[i] = (int) n;
        b.large_displacements[i] = (MPI_Aint) (c->shape->size > 0 ? b.total : 0);
        b.displacements[i] = (int) b.large_displacements[i];
        b.total += n + (v && c->shape->size > 0);
    }
    return b;
}

static void bcast(const case_t *c, const char *name)
{
    const int root = c->number % size;
    area_t a = new_area(c, c->count), wanted = new_area(c, c->count);
    write_message(c, wanted.at, c->count, root, 0);
    if (rank == root) {
        write_message(c, a.at, c->count, root, 0);
    }
    COLLECTIVE(c, Bcast, Ibcast, (a.at, (int) c->count, c->shape->type, root, MPI_COMM_WORLD),
               (a.at, c->count, c->shape->type, root, MPI_COMM_WORLD));
    check(c, name, &a, &wanted);
    free_area(&a);
    free_area(&wanted);
}

#define TYPE c->shape->type
#define OWN(b) (b).at, b##_count, TYPE

static void gather(const case_t *c, const char *name)
{
    const int root = c->number % size;
    const blocks_t k = make_blocks(c, true);
    area_t a = new_area(c, c->count), b = new_area(c, k.total), wanted = new_area(c, k.total);
    write_message(c, a.at, k.large_counts[rank], rank, root);
    for (int i = 0; i < size && rank == root; i++) {
        write_message(c, block_of(c, &wanted, k.large_displacements[i]), k.large_counts[i], i, root);
    }
    COLLECTIVE(c, Gatherv, Igatherv,
               (a.at, k.counts[rank], TYPE, b.at, k.counts, k.displacements, TYPE, root, MPI_COMM_WORLD),
               (a.at, k.large_counts[rank], TYPE, b.at, k.large_counts, k.large_displacements, TYPE, root, MPI_COMM_WORLD));
    check(c, name, &b, &wanted);
    free_area(&a);
    free_area(&b);
    free_area(&wanted);
}

static void gather_alike(const case_t *c, const char *name)
{
    const int root = c->number % size;
    const blocks_t k = make_blocks(c, false);
    area_t a = new_area(c, c->count), b = new_area(c, k.total), wanted = new_area(c, k.total);
    write_message(c, a.at, c->count, rank, root);
    for (int i = 0; i < size && rank == root; i++) {
        write_message(c, block_of(c, &wanted, k.large_displacements[i]), c->count, i, root);
    }
    COLLECTIVE(c, Gather, Igather, (a.at, (int) c->count, TYPE, b.at, (int) c->count, TYPE, root, MPI_COMM_WORLD),
               (a.at, c->count, TYPE, b.at, c->count, TYPE, root, MPI_COMM_WORLD));
    check(c, name, &b, &wanted);
    free_area(&a);
    free_area(&b);
    free_area(&wanted);
}

static void scatter(const case_t *c, const char *name)
{
    const int root = c->number % size;
    const bool v = c->number % 2;
    const blocks_t k = make_blocks(c, v);
    area_t a = new_area(c, k.total), b = new_area(c, c->count), wanted = new_area(c, c->count);
    for (int i = 0; i < size && rank == root; i++) {
        write_message(c, block_of(c, &a, k.large_displacements[i]), k.large_counts[i], root, i);
    }
    write_message(c, wanted.at, k.large_counts[rank], root, rank);
    if (v) {
        COLLECTIVE(c, Scatterv, Iscatterv,
                   (a.at, k.counts, k.displacements, TYPE, b.at, k.counts[rank], TYPE, root, MPI_COMM_WORLD),
                   (a.at, k.large_counts, k.large_displacements, TYPE, b.at, k.large_counts[rank], TYPE, root,
                    MPI_COMM_WORLD));
    } else {
        COLLECTIVE(c, Scatter, Iscatter, (a.at, (int) c->count, TYPE, b.at, (int) c->count, TYPE, root, MPI_COMM_WORLD),
                   (a.at, c->count, TYPE, b.at, c->count, TYPE, root, MPI_COMM_WORLD));
    }
    check(c, name, &b, &wanted);
    free_area(&a);
    free_area(&b);
    free_area(&wanted);
}

static void allgather(const case_t *c, const char *name)
{
    const bool v = c->number % 2, in_place = c->number % 3 == 0;
    const blocks_t k = make_blocks(c, v);
    area_t a = new_area(c, c->count), b = new_area(c, k.total), wanted = new_area(c, k.total);
    write_message(c, a.at, k.large_counts[rank], rank, 0);
    for (int i = 0; i < size; i++) {
        write_message(c, block_of(c, &wanted, k.large_displacements[i]), k.large_counts[i], i, 0);
    }
    if (in_place) {
        write_message(c, block_of(c, &b, k.large_displacements[rank]), k.large_counts[rank], rank, 0);
    }
    const void *from = in_place ? MPI_IN_PLACE : a.at;
    if (v) {
        COLLECTIVE(c, Allgatherv, Iallgatherv,
                   (from, k.counts[rank], TYPE, b.at, k.counts, k.displacements, TYPE, MPI_COMM_WORLD),
                   (from, k.large_counts[rank], TYPE, b.at, k.large_counts, k.large_displacements, TYPE, MPI_COMM_WORLD));
    } else {
        COLLECTIVE(c, Allgather, Iallgather, (from, (int) c->count, TYPE, b.at, (int) c->count, TYPE, MPI_COMM_WORLD),
                   (from, c->count, TYPE, b.at, c->count, TYPE, MPI_COMM_WORLD));
    }
    check(c, name, &b, &wanted);
    free_area(&a);
    free_area(&b);
    free_area(&wanted);
}

/* Each block is as long as its number says, on both sides. */
static void alltoall(const case_t *c, const char *name)
{
    const bool v = c->number % 2;
    const blocks_t out = make_blocks(c, v);
    blocks_t in = out;
    for (int i = 0; i < size && v; i++) { /* from all the same: what we are sent is as long as our own number says */
        in.large_counts[i] = out.large_counts[rank];
        in.counts[i] = out.counts[rank];
        in.displacements[i] = (int) (c->shape->size > 0 ? i * (c->count + 1) : 0);
        in.large_displacements[i] = in.displacements[i];
        in.total = size * (c->count + 1);
    }
    area_t a = new_area(c, out.total), b = new_area(c, in.total), wanted = new_area(c, in.total);
    for (int i = 0; i < size; i++) {
        write_message(c, block_of(c, &a, out.large_displacements[i]), out.large_counts[i], rank, i);
        write_message(c, block_of(c, &wanted, in.large_displacements[i]), in.large_counts[i], i, rank);
    }
    if (v) {
        COLLECTIVE(c, Alltoallv, Ialltoallv,
                   (a.at, out.counts, out.displacements, TYPE, b.at, in.counts, in.displacements, TYPE, MPI_COMM_WORLD),
                   (a.at, out.large_counts, out.large_displacements, TYPE, b.at, in.large_counts, in.large_displacements, TYPE,
                    MPI_COMM_WORLD));
    } else {
        COLLECTIVE(c, Alltoall, Ialltoall, (a.at, (int) c->count, TYPE, b.at, (int) c->count, TYPE, MPI_COMM_WORLD),
                   (a.at, c->count, TYPE, b.at, c->count, TYPE, MPI_COMM_WORLD));
    }
    check(c, name, &b, &wanted);
    free_area(&a);
    free_area(&b);
    free_area(&wanted);
}

/* Sums of what fits exactly, of two types, whatever the shape: its count alone is used. */
static void reduce(const case_t *c, int kind)
{
    enum { MOST = 300000 };
    const int n = (int) (c->shape->size == 0 || c->count > MOST ? c->count % MOST : c->count), root = c->number % size;
    const MPI_Count m = n;
    const int first = kind == 3 ? 0 : 0, last = kind == 3 ? rank : kind == 4 ? rank - 1 : size - 1;
    int64_t *a = malloc((size_t) n * size * sizeof *a + 1), *b = malloc((size_t) n * size * sizeof *b + 1);
    for (int i = 0; i < n * (kind == 2 ? size : 1); i++) {
        a[i] = (int64_t) (rank + 1) * (i % 1000 + 1);
        b[i] = -1;
    }
    switch (kind) {
    case 0:
        COLLECTIVE(c, Reduce, Ireduce, (a, b, n, MPI_INT64_T, MPI_SUM, root, MPI_COMM_WORLD),
                   (a, b, m, MPI_INT64_T, MPI_SUM, root, MPI_COMM_WORLD));
        break;
    case 1:
        COLLECTIVE(c, Allreduce, Iallreduce, (a, b, n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD),
                   (a, b, m, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
        break;
    case 2:
        COLLECTIVE(c, Reduce_scatter_block, Ireduce_scatter_block, (a, b, n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD),
                   (a, b, m, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
        break;
    case 3:
        COLLECTIVE(c, Scan, Iscan, (a, b, n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD),
                   (a, b, m, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
        break;
    default:
        COLLECTIVE(c, Exscan, Iexscan, (a, b, n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD),
                   (a, b, m, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    }
    int64_t ranks = 0;
    for (int i = first; i <= last; i++) {
        ranks += i + 1;
    }
    bool right = true;
    const bool has = kind == 0 ? rank == root : kind == 4 ? rank > 0 : true;
    for (int i = 0; i < n && has; i++) {
        right &= b[i] == ranks * ((kind == 2 ? rank * n + i : i) % 1000 + 1);
    }
    MPI_CHECK(right);
    free(a);
    free(b);
}

typedef struct operation {
    const char *name;
    void (*run)(const case_t *c, const char *name);
} operation_t;

static void run_reduce(const case_t *c, const char *name)
{
    static const char *const names[] = {"Reduce", "Allreduce", "Reduce_scatter_block", "Scan", "Exscan"};
    for (int i = 0; i < 5; i++) {
        if (strcmp(name, names[i]) == 0) {
            reduce(c, i);
        }
    }
}

static const operation_t operations[] = {
    {"Bcast", bcast}, {"Gatherv", gather}, {"Gather", gather_alike}, {"Scatter", scatter}, {"Allgather", allgather},
    {"Alltoall", alltoall}, {"Reduce", run_reduce}, {"Allreduce", run_reduce}, {"Reduce_scatter_block", run_reduce},
    {"Scan", run_reduce}, {"Exscan", run_reduce},
};

enum { OPERATIONS = sizeof operations / sizeof *operations, MESSAGES = SENDS * RECVS };

/* ---- The product ---- */

static bool is_wanted(int number)
{
    return only >= 0 ? only == number : number % parts == part - 1;
}

static void run_case(int number, int operation, int shape, int class, form_t form, bool large)
{
    case_t c = {.number = number, .shape = &shapes[shape], .form = form, .large = large};
    c.count = count_of(class, c.shape, large);
    if (c.count < 0 || (c.shape->size > 0 && (c.count + 1) * c.shape->extent * size > BLOCK_MOST * 8)) {
        return;
    }
    cases_run++;
    if (operation < MESSAGES) {
        message(&c, operation);
    } else {
        operations[operation - MESSAGES].run(&c, operations[operation - MESSAGES].name);
    }
}

/* Half the draws are messages, half collective operations. */
static void run_some(int cases)
{
    for (int i = 0; i < cases; i++) {
        int operation = random_below(2) ? random_below(MESSAGES) : MESSAGES + random_below(OPERATIONS);
        int shape = random_below(shape_count), class = random_below(count_classes());
        form_t form = (form_t) random_below(FORMS);
        bool large = random_below(2);
        unsigned long long kept = state; /* so that cases do not depend on each other */
        if (is_wanted(i)) {
            run_case(i, operation, shape, class, form, large);
        }
        state = kept;
    }
}

static void run_all(void)
{
    const unsigned long long seed = state;
    int number = 0;
    for (int operation = 0; operation < MESSAGES + OPERATIONS; operation++) {
        for (int shape = 0; shape < shape_count; shape++) {
            for (int class = 0; class < count_classes(); class++) {
                for (int form = 0; form < (operation < MESSAGES ? 1 : FORMS); form++, number++) {
                    if (is_wanted(number)) {
                        state = seed + (unsigned long long) number; /* whatever else is run */
                        run_case(number, operation, shape, class, (form_t) form, number % 2);
                        run_case(number, operation, shape, class, (form_t) form, !(number % 2));
                    }
                }
            }
        }
    }
}

static void read_wishes(void)
{
    const char *text = getenv("GRID_PART");
    only = getenv("GRID_ONLY") ? atoi(getenv("GRID_ONLY")) : -1;
    if (text) {
        MPI_CHECK(sscanf(text, "%d/%d", &part, &parts) == 2 && part >= 1 && part <= parts);
    }
    if (mpi_test_failures) { /* nothing is asked for that there is */
        part = parts = 1;
        only = INT_MAX;
    }
}

static void grid(void)
{
    enum { BUFFER = 8 << 20 };
    const char *cases = getenv("GRID_CASES"), *seed = getenv("GRID_SEED");
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    state = strtoull(seed ? seed : "1", NULL, 10);
    read_wishes();
    MPI_Buffer_attach(malloc(BUFFER), BUFFER);
    find_edges();
    make_shapes();
    if (cases && strcmp(cases, "all") == 0) {
        run_all();
    } else {
        run_some(cases ? atoi(cases) : 100);
    }
    MPI_CHECK(cases_run > 0);
    void *buffer;
    int room;
    MPI_Buffer_detach(&buffer, &room);
    free(buffer);
    for (int i = 4; i < shape_count; i++) {
        MPI_Type_free(&shapes[i].type);
    }
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "ranks-1", .np = 1, .fn = grid, .seconds = 1800}, {.name = "ranks-2", .np = 2, .fn = grid, .seconds = 1800},
    {.name = "ranks-3", .np = 3, .fn = grid, .seconds = 1800}, {.name = "ranks-4", .np = 4, .fn = grid, .seconds = 1800},
    {.name = "ranks-5", .np = 5, .fn = grid, .seconds = 1800},
};

int main(int argc, char **argv)
{
    mallopt(M_MMAP_THRESHOLD, INT_MAX); /* the pages of one case serve the next */
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
