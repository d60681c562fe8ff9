/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives as requests: many under way on one communicator, started and waited for in any order; persistent ones started
 * again and again, in an order of its own in each process; objects freed under them; errors. What single operations
 * compute is the matter of coll.c and coll_requests.c.
 */
#include <mpi.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "support/hash.h"
#include "support/mpi_test.h"

enum { PROCS = 16, GUARD = 0x5a5a5a5a };

static int rank, size;

/* ---- One operation with its buffers ---- */

enum { BARRIER, BCAST, GATHER, SCATTER, ALLGATHER, ALLTOALL, REDUCE, ALLREDUCE, SCAN, EXSCAN, REDUCE_SCATTER, KINDS };

typedef struct job {
    MPI_Comm comm;
    int kind, count, root; /* count: pairs of ints */
    uint32_t salt;
    uint32_t *out, *in, *want;
    MPI_Request request;
} job_t;

/* Pairs (a, b) stand for x -> a x + b; joining them does not commute. */
static void compose(void *left, void *right, int *n, MPI_Datatype *type)
{
    const uint32_t *l = left;
    uint32_t *r = right;
    (void) type;
    for (int i = 0; i < *n; i++, l += 2, r += 2) {
        r[1] = l[0] * r[1] + l[1];
        r[0] = l[0] * r[0];
    }
}

static uint32_t value(const job_t *j, int from, int to, int i)
{
    return test_hash(j->salt * 2654435761U + (uint32_t) (from * PROCS + to) * 40503U + (uint32_t) i) | 1;
}

static void fill(const job_t *j, uint32_t *at, int from, int to, int first)
{
    for (int i = 0; i < 2 * j->count; i++) {
        at[i] = value(j, from, to, 2 * first + i);
    }
}

/* The join of what ranks 0 to last have from pair `first` on. */
static void reduced(const job_t *j, uint32_t *at, int last, int first)
{
    uint32_t *left = malloc(((size_t) j->count * 2 + 1) * sizeof *left);
    fill(j, at, last, 0, first);
    for (int r = last - 1; r >= 0; r--) {
        int n = j->count;
        fill(j, left, r, 0, first);
        compose(left, at, &n, NULL);
    }
    free(left);
}

static void job_new(job_t *j, MPI_Comm comm, int kind, int count, int root)
{
    size_t room = ((size_t) count * 2 + 1) * (size_t) size;
    *j = (job_t) {.comm = comm, .kind = kind, .count = count, .root = root};
    j->out = malloc(room * sizeof(int));
    j->in = malloc(room * sizeof(int));
    j->want = malloc(room * sizeof(int));
}

static void job_free(job_t *j)
{
    free(j->out);
    free(j->in);
    free(j->want);
}

static void want_blocks(job_t *j)
{
    for (int r = 0; r < size; r++) {
        size_t at = (size_t) (2 * j->count) * (size_t) r;
        bool rooted = j->kind == GATHER || j->kind == SCATTER;
        if (j->kind == SCATTER || j->kind == ALLTOALL) {
            fill(j, j->out + at, rank, r, 0);
        }
        if (j->kind == ALLTOALL || j->kind == ALLGATHER || (rooted && rank == j->root && j->kind == GATHER)) {
            fill(j, j->want + at, r, j->kind == ALLTOALL ? rank : 0, 0);
        }
    }
    if (j->kind == GATHER || j->kind == ALLGATHER) {
        fill(j, j->out, rank, 0, 0);
    }
    if (j->kind == SCATTER) {
        fill(j, j->want, j->root, rank, 0);
    }
}

static void want_reduced(job_t *j)
{
    int parts = j->kind == REDUCE_SCATTER ? size : 1;
    for (int p = 0; p < parts; p++) {
        fill(j, j->out + 2 * j->count * p, rank, 0, j->count * p);
    }
    if (j->kind == SCAN || (j->kind == EXSCAN && rank > 0)) {
        reduced(j, j->want, j->kind == SCAN ? rank : rank - 1, 0);
    } else if (j->kind == ALLREDUCE || (j->kind == REDUCE && rank == j->root)) {
        reduced(j, j->want, size - 1, 0);
    } else if (j->kind == REDUCE_SCATTER) {
        reduced(j, j->want, size - 1, j->count * rank);
    }
}

/* New contents, by which the next run is known. */
static void prepare(job_t *j, uint32_t salt)
{
    size_t room = ((size_t) j->count * 2 + 1) * (size_t) size;
    j->salt = salt;
    for (size_t i = 0; i < room; i++) {
        j->out[i] = j->in[i] = j->want[i] = GUARD;
    }
    if (j->kind == BCAST) {
        fill(j, j->want, j->root, 0, 0);
        if (rank == j->root) {
            fill(j, j->in, j->root, 0, 0);
        }
    } else if (j->kind >= REDUCE) {
        want_reduced(j);
    } else if (j->kind != BARRIER) {
        want_blocks(j);
    }
}

static void check(const job_t *j)
{
    size_t room = ((size_t) j->count * 2 + 1) * (size_t) size;
    if (!MPI_CHECK(memcmp(j->in, j->want, room * sizeof(int)) == 0)) {
        size_t i = 0;
        while (j->in[i] == j->want[i]) {
            i++;
        }
        fprintf(stderr, "rank %d of %d, kind %d, count %d, root %d: int %zu is %#x, not %#x\n", rank, size, j->kind,
                j->count, j->root, i, j->in[i], j->want[i]);
    }
}

static void begin(job_t *j, MPI_Datatype pair, MPI_Op op)
{
    MPI_Request *r = &j->request;
    MPI_Comm c = j->comm;
    int n = j->count, root = j->root;
    switch (j->kind) {
    case BARRIER: MPI_Ibarrier(c, r); break;
    case BCAST: MPI_Ibcast(j->in, n, pair, root, c, r); break;
    case GATHER: MPI_Igather(j->out, n, pair, j->in, n, pair, root, c, r); break;
    case SCATTER: MPI_Iscatter(j->out, n, pair, j->in, n, pair, root, c, r); break;
    case ALLGATHER: MPI_Iallgather(j->out, n, pair, j->in, n, pair, c, r); break;
    case ALLTOALL: MPI_Ialltoall(j->out, n, pair, j->in, n, pair, c, r); break;
    case REDUCE: MPI_Ireduce(j->out, j->in, n, pair, op, root, c, r); break;
    case ALLREDUCE: MPI_Iallreduce(j->out, j->in, n, pair, op, c, r); break;
    case SCAN: MPI_Iscan(j->out, j->in, n, pair, op, c, r); break;
    case EXSCAN: MPI_Iexscan(j->out, j->in, n, pair, op, c, r); break;
    case REDUCE_SCATTER: MPI_Ireduce_scatter_block(j->out, j->in, n, pair, op, c, r); break;
    }
}

static void init(job_t *j, MPI_Datatype pair, MPI_Op op)
{
    MPI_Request *r = &j->request;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Comm c = j->comm;
    int n = j->count, root = j->root;
    switch (j->kind) {
    case BARRIER: MPI_Barrier_init(c, info, r); break;
    case BCAST: MPI_Bcast_init(j->in, n, pair, root, c, info, r); break;
    case GATHER: MPI_Gather_init(j->out, n, pair, j->in, n, pair, root, c, info, r); break;
    case SCATTER: MPI_Scatter_init(j->out, n, pair, j->in, n, pair, root, c, info, r); break;
    case ALLGATHER: MPI_Allgather_init(j->out, n, pair, j->in, n, pair, c, info, r); break;
    case ALLTOALL: MPI_Alltoall_init(j->out, n, pair, j->in, n, pair, c, info, r); break;
    case REDUCE: MPI_Reduce_init(j->out, j->in, n, pair, op, root, c, info, r); break;
    case ALLREDUCE: MPI_Allreduce_init(j->out, j->in, n, pair, op, c, info, r); break;
    case SCAN: MPI_Scan_init(j->out, j->in, n, pair, op, c, info, r); break;
    case EXSCAN: MPI_Exscan_init(j->out, j->in, n, pair, op, c, info, r); break;
    case REDUCE_SCATTER: MPI_Reduce_scatter_block_init(j->out, j->in, n, pair, op, c, info, r); break;
    }
}

/* ---- Many at once ---- */

static uint32_t own_dice, common_dice; /* ours alone; the same in all processes */

static int roll(uint32_t *dice, int sides)
{
    *dice = test_hash(*dice + 0x9e3779b9U);
    return (int) (*dice % (uint32_t) sides);
}

static void start(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    common_dice = 1;
    own_dice = (uint32_t) rank + 17;
}

static void make_objects(MPI_Datatype *pair, MPI_Op *op)
{
    MPI_Type_contiguous(2, MPI_INT, pair);
    MPI_Type_commit(pair);
    MPI_Op_create(compose, 0, op);
}

static void shuffle(int *order, int n)
{
    for (int i = 0; i < n; i++) {
        int k = roll(&own_dice, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
}

/* Short ones, some that need several rounds, some long ones. */
static int any_count(void)
{
    static const int counts[] = {0, 1, 1, 5, 40, 300, 3000, 20000};
    return counts[roll(&common_dice, 8)];
}

/* Waits for all, in an order of our own, in one of the ways there are. */
static void wait_for(job_t *jobs, int n)
{
    int order[256], index;
    MPI_Request requests[256];
    shuffle(order, n);
    for (int i = 0; i < n; i++) {
        requests[i] = jobs[order[i]].request;
    }
    switch (roll(&own_dice, 3)) {
    case 0:
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
        break;
    case 1:
        for (int i = 0; i < n; i++) {
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        }
        break;
    default:
        for (int i = 0; i < n; i++) {
            MPI_Waitany(n, requests, &index, MPI_STATUS_IGNORE);
        }
        break;
    }
    for (int i = 0; i < n; i++) {
        jobs[order[i]].request = requests[i];
    }
}

enum { MANY = 200, ROUNDS = 4 };

/* More than there are tags for, while other messages go to and fro. Datatype and operator are freed under them. */
static void many(void)
{
    static job_t jobs[MANY];
    start();
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Datatype pair;
        MPI_Op op;
        MPI_Request any;
        int got = -1, next = (rank + 1) % size;
        make_objects(&pair, &op);
        MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &any);
        for (int i = 0; i < MANY; i++) {
            int count = any_count() / (i % 10 == 0 ? 1 : 20);
            int kind = roll(&common_dice, KINDS), root = roll(&common_dice, size);
            job_new(&jobs[i], MPI_COMM_WORLD, kind, count, root);
            prepare(&jobs[i], (uint32_t) (round * MANY + i));
            begin(&jobs[i], pair, op);
        }
        MPI_Type_free(&pair);
        MPI_Op_free(&op);
        MPI_Send(&round, 1, MPI_INT, next, round, MPI_COMM_WORLD);
        wait_for(jobs, MANY);
        for (int i = 0; i < MANY; i++) {
            MPI_CHECK(jobs[i].request == MPI_REQUEST_NULL);
            check(&jobs[i]);
            job_free(&jobs[i]);
        }
        MPI_Wait(&any, MPI_STATUS_IGNORE);
        MPI_CHECK(got == round);
        MPI_Barrier(MPI_COMM_WORLD); /* nobody sends to a receive of the next round */
    }
    MPI_Finalize();
}

enum { PERSISTENT = 33 };

/* Started in an order of its own in each process, among them non-blocking ones. */
static void persistent(void)
{
    static job_t jobs[PERSISTENT];
    int order[PERSISTENT];
    MPI_Datatype pair;
    MPI_Op op;
    start();
    make_objects(&pair, &op);
    for (int i = 0; i < PERSISTENT; i++) {
        int count = any_count(), root = roll(&common_dice, size);
        job_new(&jobs[i], MPI_COMM_WORLD, i % KINDS, count, root);
        init(&jobs[i], pair, op);
    }
    for (int round = 0; round < 8; round++) {
        job_t beside;
        shuffle(order, PERSISTENT);
        job_new(&beside, MPI_COMM_WORLD, round % KINDS, 7, round % size);
        prepare(&beside, (uint32_t) round);
        begin(&beside, pair, op);
        for (int i = 0; i < PERSISTENT; i++) {
            prepare(&jobs[order[i]], (uint32_t) (round * 1000 + order[i]));
            MPI_Start(&jobs[order[i]].request);
        }
        wait_for(jobs, PERSISTENT);
        MPI_Wait(&beside.request, MPI_STATUS_IGNORE);
        check(&beside);
        job_free(&beside);
        for (int i = 0; i < PERSISTENT; i++) {
            MPI_CHECK(jobs[i].request != MPI_REQUEST_NULL);
            check(&jobs[i]);
        }
    }
    MPI_Type_free(&pair);
    MPI_Op_free(&op);
    for (int i = 0; i < PERSISTENT; i++) {
        MPI_Request_free(&jobs[i].request);
        job_free(&jobs[i]);
    }
    MPI_Finalize();
}

/* ---- What is freed under way ---- */

enum { FREED_ROUNDS = 12 };

/* Start one of each kind; all that they need is freed at once, the communicator too unless `parts`. */
static void start_and_free(job_t *jobs, int round, MPI_Comm *comm, bool parts)
{
    MPI_Datatype pair;
    MPI_Op op;
    job_t last;
    make_objects(&pair, &op);
    for (int i = 0; i < KINDS; i++) {
        job_new(&jobs[i], *comm, i, i % 3 == 0 ? 30000 : 10, i % size);
        prepare(&jobs[i], (uint32_t) (round * 100 + i));
        init(&jobs[i], pair, op);
        MPI_Start(&jobs[i].request);
    }
    job_new(&last, *comm, ALLREDUCE, 100, 0);
    prepare(&last, (uint32_t) round);
    begin(&last, pair, op);
    MPI_Type_free(&pair);
    MPI_Op_free(&op);
    if (!parts) {
        MPI_Comm_free(comm);
    }
    for (int i = 0; i < KINDS; i++) {
        MPI_Request_free(&jobs[i].request); /* goes on to its end */
        MPI_CHECK(jobs[i].request == MPI_REQUEST_NULL);
    }
    MPI_Wait(&last.request, MPI_STATUS_IGNORE);
    check(&last);
    job_free(&last);
}

/* All data comes, as one sees in memory. That is no end: what a link still holds, or nobody has found good yet, may be read or
 * written again. The end is MPI_Comm_disconnect, which waits for all that is under way on its communicator; of a communicator
 * that was freed nothing tells it before MPI_Finalize. */
static void freed(void)
{
    static job_t all[FREED_ROUNDS][KINDS];
    start();
    for (int round = 0; round < FREED_ROUNDS; round++) {
        job_t *jobs = all[round];
        bool parts = round % 2;
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        start_and_free(jobs, round, &comm, parts);
        if (parts) {
            MPI_Comm_disconnect(&comm);
        }
        for (int i = 0; i < KINDS; i++) {
            size_t ints = ((size_t) jobs[i].count * 2 + 1) * (size_t) size;
            bool here;
            while (!(here = memcmp(jobs[i].in, jobs[i].want, ints * sizeof(int)) == 0) && !parts) {
                int flag;
                MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
            }
            MPI_CHECK(here);
            if (parts) {
                job_free(&jobs[i]);
            }
        }
    }
    MPI_Finalize();
    for (int round = 0; round < FREED_ROUNDS; round += 2) {
        for (int i = 0; i < KINDS; i++) {
            job_free(&all[round][i]);
        }
    }
}

static long resident_kb(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f) {
        MPI_CHECK(fscanf(f, "%*d %ld", &pages) == 1);
        fclose(f);
    }
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

#if OPAL_ENABLE_SANITIZERS
enum { LIMIT_KB = 32768 };
#else
enum { LIMIT_KB = 512 };
#endif

/* Each persistent operation has a tag of its own; what is over leaves nothing behind. (AddressSanitizer keeps freed memory.) */
static void bounded(void)
{
    long before = 0;
    start();
    for (int i = 0; i < 22000; i++) {
        MPI_Request request;
        int mine = rank + i, sum = 0;
        if (i == 2000) {
            before = resident_kb();
        }
        MPI_Allreduce_init(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
        MPI_CHECK(sum == size * (size - 1) / 2 + size * i);
    }
    long grown = resident_kb() - before;
    if (!MPI_CHECK(grown < LIMIT_KB)) {
        fprintf(stderr, "grown by %ld KiB\n", grown);
    }
    MPI_Finalize();
}

/* ---- Errors ---- */

static int error_class(int code)
{
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

static void check_truncation(MPI_Comm comm)
{
    int buf[8] = {0};
    MPI_Request request;
    MPI_Status status;
    MPI_Ibcast(buf, rank == 0 ? 8 : 4, MPI_INT, 0, comm, &request);
    int rc = MPI_Waitall(1, &request, &status);
    MPI_CHECK(rank == 0 ? rc == MPI_SUCCESS
                        : error_class(rc) == MPI_ERR_IN_STATUS && error_class(status.MPI_ERROR) == MPI_ERR_TRUNCATE);
    MPI_Ibcast(buf, 4, MPI_INT, 0, comm, &request); /* the communicator is as good as before */
    MPI_CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

static void check_requests(MPI_Comm comm)
{
    int flag;
    MPI_Request request;
    MPI_Barrier_init(comm, MPI_INFO_NULL, &request);
    MPI_CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS); /* at rest */
    MPI_CHECK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag);
    MPI_CHECK(MPI_Start(&request) == MPI_SUCCESS);
    MPI_CHECK(error_class(MPI_Start(&request)) == MPI_ERR_REQUEST);
    MPI_CHECK(error_class(MPI_Cancel(&request)) == MPI_ERR_REQUEST);
    MPI_CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_CHECK(MPI_Request_free(&request) == MPI_SUCCESS);
}

static void errors(void)
{
    MPI_Comm comm, half, inter;
    MPI_Request request = MPI_REQUEST_NULL;
    int one = 1, sum[PROCS];
    start();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    check_truncation(comm);
    check_requests(comm);
    MPI_CHECK(error_class(MPI_Ibcast(&one, -1, MPI_INT, 0, comm, &request)) == MPI_ERR_COUNT);
    MPI_CHECK(error_class(MPI_Ibcast(&one, 1, MPI_INT, size, comm, &request)) == MPI_ERR_ROOT);
    MPI_CHECK(error_class(MPI_Iallreduce(&one, &one, 1, MPI_INT, MPI_SUM, comm, &request)) == MPI_ERR_BUFFER);
    MPI_CHECK(error_class(MPI_Ineighbor_allgather(&one, 1, MPI_INT, sum, 1, MPI_INT, comm, &request)) ==
              MPI_ERR_TOPOLOGY);
    MPI_CHECK(error_class(MPI_Neighbor_alltoall(sum, 1, MPI_INT, sum, 1, MPI_INT, comm)) == MPI_ERR_TOPOLOGY);
    MPI_CHECK(request == MPI_REQUEST_NULL);
    MPI_Comm_split(comm, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, comm, 1 - rank % 2, 1, &inter);
    MPI_CHECK(error_class(MPI_Iscan(&one, sum, 1, MPI_INT, MPI_SUM, inter, &request)) == MPI_ERR_COMM);
    MPI_CHECK(error_class(MPI_Exscan_init(&one, sum, 1, MPI_INT, MPI_SUM, inter, MPI_INFO_NULL, &request)) ==
              MPI_ERR_COMM);
    MPI_Comm_free(&half);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&comm);
    MPI_Finalize();
}

/* ---- Threads ---- */

enum { THREADS = 4, THREAD_JOBS = 20, THREAD_ROUNDS = 8 };

static MPI_Datatype shared_pair;
static MPI_Op shared_op;

static void *thread(void *arg)
{
    MPI_Comm comm = *(MPI_Comm *) arg;
    job_t jobs[THREAD_JOBS];
    MPI_Request requests[THREAD_JOBS];
    for (int round = 0; round < THREAD_ROUNDS; round++) {
        for (int i = 0; i < THREAD_JOBS; i++) {
            job_new(&jobs[i], comm, (i + round) % KINDS, i == 0 ? 10000 : 10 * i, i % size);
            prepare(&jobs[i], (uint32_t) (round * 100 + i));
            begin(&jobs[i], shared_pair, shared_op);
        }
        for (int i = 0; i < THREAD_JOBS; i++) {
            requests[i] = jobs[i].request;
        }
        if (round % 2) {
            MPI_Waitall(THREAD_JOBS, requests, MPI_STATUSES_IGNORE);
        }
        for (int i = THREAD_JOBS - 1; i >= 0; i--) {
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
            check(&jobs[i]);
            job_free(&jobs[i]);
        }
    }
    return NULL;
}

static void threads(void)
{
    pthread_t ids[THREADS];
    MPI_Comm comms[THREADS];
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    make_objects(&shared_pair, &shared_op);
    for (int i = 0; i < THREADS; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        MPI_CHECK(pthread_create(&ids[i], NULL, thread, &comms[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        MPI_Comm_free(&comms[i]);
    }
    MPI_Type_free(&shared_pair);
    MPI_Op_free(&shared_op);
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "many-1", .np = 1, .fn = many},             {.name = "many-2", .np = 2, .fn = many},
    {.name = "many-3", .np = 3, .fn = many},             {.name = "many-4", .np = 4, .fn = many},
    {.name = "many-5", .np = 5, .fn = many},             {.name = "many-8", .np = 8, .fn = many},
    {.name = "persistent-1", .np = 1, .fn = persistent}, {.name = "persistent-2", .np = 2, .fn = persistent},
    {.name = "persistent-3", .np = 3, .fn = persistent}, {.name = "persistent-5", .np = 5, .fn = persistent},
    {.name = "persistent-8", .np = 8, .fn = persistent}, {.name = "freed", .np = 4, .fn = freed},
    {.name = "bounded", .np = 2, .fn = bounded},         {.name = "errors", .np = 3, .fn = errors},
    {.name = "threads", .np = 3, .fn = threads},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
