/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What threads cost, us per message of 8 B. Two ranks with one thread each, MPI_THREAD_SINGLE or MULTIPLE (--level): half round trip
   ("latency") and a stream ("stream"). Several threads (--threads), MULTIPLE, each on a communicator of its own ("own") or all on
   the same one ("shared"): those of one rank send to themselves, each of two ranks' streams to one of the other's; between two
   threads of one rank also to the other and back ("handover", half round trip). The threads of two ranks, and those that are more
   than two, have a processor each, of those that the process is bound to. */
#include "mpi_support.h"

#include <pthread.h>
#include <stdatomic.h>

enum { TAG = 9, WINDOW = 64, THREADS_MAX = 32 };

/* ---- Two ranks ---- */

static void ping_pong(int rank, long iterations)
{
    double out = 1.0, in;

    for (long i = 0; i < iterations; i++) {
        if (0 == rank) {
            MPI_Send(&out, 1, MPI_DOUBLE, 1, TAG, MPI_COMM_WORLD);
            MPI_Recv(&in, 1, MPI_DOUBLE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&in, 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&out, 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
        }
    }
}

/* WINDOW messages from rank 0 to the other one, which answers. */
static void one_window(int rank, int peer, int tag, MPI_Comm comm)
{
    MPI_Request requests[WINDOW];
    double data[WINDOW] = { 0.0 }, answer = 0.0;

    for (int w = 0; w < WINDOW; w++) {
        if (0 == rank) {
            MPI_Isend(&data[w], 1, MPI_DOUBLE, peer, tag, comm, &requests[w]);
        } else {
            MPI_Irecv(&data[w], 1, MPI_DOUBLE, peer, tag, comm, &requests[w]);
        }
    }
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    if (0 == rank) {
        MPI_Recv(&answer, 1, MPI_DOUBLE, peer, tag, comm, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(&answer, 1, MPI_DOUBLE, peer, tag, comm);
    }
}

static void stream(int rank, long iterations)
{
    for (long i = 0; i < iterations; i++) {
        one_window(rank, 1 - rank, TAG, MPI_COMM_WORLD);
    }
}

static double pair_batch(const bench_world_t *world, int streaming, long iterations)
{
    double t0;

    MPI_Barrier(MPI_COMM_WORLD);
    t0 = bench_now();
    (streaming ? stream : ping_pong)(world->rank, iterations);
    return (bench_now() - t0) / (double) iterations / (streaming ? WINDOW : 2.0);
}

/* ---- Several threads ---- */

typedef struct worker worker_t;

struct worker {
    void (*step)(worker_t *); /* one iteration */
    MPI_Comm comm;
    int rank, peer; /* mine and the other one's in the communicator */
    int tag, answer; /* the tags of what I send and of what is sent to me */
    int cpu; /* which of `processors` this thread is bound to; -1: none */
    long iterations;
    atomic_int *missing; /* threads that have not begun yet */
    double begin, end;
};

static void to_itself(worker_t *w)
{
    double out = 1.0, in;
    MPI_Request request;

    MPI_Irecv(&in, 1, MPI_DOUBLE, w->peer, w->tag, w->comm, &request);
    MPI_Send(&out, 1, MPI_DOUBLE, w->peer, w->tag, w->comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void to_the_other_and_back(worker_t *w)
{
    double out = 1.0, in;

    if (TAG == w->tag) {
        MPI_Send(&out, 1, MPI_DOUBLE, w->peer, w->tag, w->comm);
        MPI_Recv(&in, 1, MPI_DOUBLE, w->peer, w->answer, w->comm, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&in, 1, MPI_DOUBLE, w->peer, w->answer, w->comm, MPI_STATUS_IGNORE);
        MPI_Send(&out, 1, MPI_DOUBLE, w->peer, w->tag, w->comm);
    }
}

static void window_to_the_other_rank(worker_t *w)
{
    one_window(w->rank, w->peer, w->tag, w->comm);
}

static cpu_set_t processors; /* of the process, before its threads are bound */

static void *work(void *argument)
{
    worker_t *w = argument;

    bench_bind(&processors, w->cpu);
    /* Who slept here would begin late: short batches would be over one after the other, and no thread in another's way. */
    atomic_fetch_sub(w->missing, 1);
    while (atomic_load(w->missing) > 0) {
        sched_yield();
    }
    w->begin = bench_now();
    for (long i = 0; i < w->iterations; i++) {
        w->step(w);
    }
    w->end = bench_now();
    return NULL;
}

typedef struct scene {
    const char *kind;
    void (*step)(worker_t *);
    int own;      /* each thread has a communicator */
    int messages; /* of an iteration */
    int threads;
} scene_t;

static MPI_Comm own_comm[THREADS_MAX];

/* Seconds per message of all threads of this rank together. */
static double threads_batch(const bench_world_t *world, const scene_t *scene, long iterations)
{
    atomic_int missing = scene->threads;
    pthread_t thread[THREADS_MAX];
    worker_t worker[THREADS_MAX];
    double begin, end;

    for (int t = 0; t < scene->threads; t++) {
        worker[t] = (worker_t) { .step = scene->step, .comm = own_comm[scene->own ? t : 0], .rank = world->rank,
                                 .peer = world->size - 1 - world->rank, .tag = TAG + t, .answer = TAG + 1 - t,
                                 .cpu = scene->threads > 2 || world->size > 1 ? world->rank * scene->threads + t : -1,
                                 .iterations = iterations, .missing = &missing };
        if (t > 0 && 0 != pthread_create(&thread[t], NULL, work, &worker[t])) {
            bench_die("thread");
        }
    }
    work(&worker[0]);
    begin = worker[0].begin;
    end = worker[0].end;
    for (int t = 1; t < scene->threads; t++) {
        pthread_join(thread[t], NULL);
        begin = worker[t].begin < begin ? worker[t].begin : begin;
        end = worker[t].end > end ? worker[t].end : end;
    }
    return (end - begin) / (double) iterations / scene->messages / scene->threads;
}

/* ---- Both ---- */

static double one_batch(const bench_world_t *world, const scene_t *scene, int streaming, long iterations)
{
    if (NULL == scene) {
        return pair_batch(world, streaming, iterations);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return threads_batch(world, scene, iterations);
}

/* us per message: the batches, sorted. */
static void measure(const bench_world_t *world, const scene_t *scene, int streaming, double ms,
                    double us[BENCH_BATCHES])
{
    double per_message;
    long iterations;

    one_batch(world, scene, streaming, 20);
    per_message = one_batch(world, scene, streaming, 500);
    iterations = bench_iterations(per_message * (scene ? scene->threads * scene->messages : streaming ? WINDOW : 2), ms);
    MPI_Bcast(&iterations, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    for (int b = 0; b < BENCH_BATCHES; b++) {
        us[b] = 1e6 * one_batch(world, scene, streaming, iterations);
    }
    qsort(us, BENCH_BATCHES, sizeof(*us), bench_compare_doubles);
}

static void tell(const char *kind, const char *what, const char *value, const double us[BENCH_BATCHES])
{
    printf("threads kind=%s %s=%s us=%.4f best=%.4f worst=%.4f\n", kind, what, value, us[BENCH_BATCHES / 2], us[0],
           us[BENCH_BATCHES - 1]);
}

/* A communicator for each thread. Intel MPI keeps threads apart whose communicators say so. */
static void make_comms(MPI_Comm like)
{
    for (int t = 0; t < THREADS_MAX; t++) {
        char number[12];
        MPI_Info info;

        snprintf(number, sizeof(number), "%d", t);
        MPI_Info_create(&info);
        MPI_Info_set(info, "thread_id", number);
        MPI_Comm_dup_with_info(like, info, &own_comm[t]);
        MPI_Info_free(&info);
    }
}

/* Of the scenes those of this kind; NULL: all that so many threads can play. */
static void several_threads(const bench_world_t *world, int threads, const char *kind, double ms)
{
    static const scene_t one_rank[] = {
        { .kind = "own", .step = to_itself, .messages = 1, .own = 1 },
        { .kind = "shared", .step = to_itself, .messages = 1 },
        { .kind = "handover", .step = to_the_other_and_back, .messages = 1 },
    };
    static const scene_t two_ranks[] = {
        { .kind = "own", .step = window_to_the_other_rank, .messages = WINDOW, .own = 1 },
        { .kind = "shared", .step = window_to_the_other_rank, .messages = WINDOW },
    };
    const scene_t *scenes = 1 == world->size ? one_rank : two_ranks;
    size_t count = 1 == threads ? 1 : 1 == world->size && 2 == threads ? 3 : 2;
    int played = 0;
    double us[BENCH_BATCHES];
    char number[12];

    if (0 != sched_getaffinity(0, sizeof(processors), &processors)) {
        bench_die("processors");
    }
    make_comms(1 == world->size ? MPI_COMM_SELF : MPI_COMM_WORLD);
    snprintf(number, sizeof(number), "%d", threads);
    for (size_t i = 0; i < count; i++) {
        scene_t scene = scenes[i];

        if (NULL != kind && 0 != strcmp(kind, scene.kind)) {
            continue;
        }
        played++;
        scene.threads = threads;
        measure(world, &scene, 0, ms, us);
        if (0 == world->rank) {
            tell(scene.kind, "threads", number, us);
        }
    }
    if (0 == played) {
        bench_usage_error("threads", kind);
    }
    for (int t = 0; t < THREADS_MAX; t++) {
        MPI_Comm_free(&own_comm[t]);
    }
}

static void pair(const bench_world_t *world, int level, double ms)
{
    double us[BENCH_BATCHES];

    for (int streaming = 0; streaming < 2; streaming++) {
        measure(world, NULL, streaming, ms, us);
        if (0 == world->rank) {
            tell(streaming ? "stream" : "latency", "level", MPI_THREAD_MULTIPLE == level ? "multiple" : "single", us);
        }
    }
}

int main(int argc, char **argv)
{
    int level = MPI_THREAD_MULTIPLE, threads = 0, provided;
    double ms = 60.0;
    const char *value, *kind = NULL;
    bench_world_t world;

    for (int i = 1; i < argc; i++) {
        if (NULL != (value = bench_option(argc, argv, &i, "--ms"))) {
            ms = atof(value);
        } else if (NULL != (value = bench_option(argc, argv, &i, "--kind"))) {
            kind = value;
        } else if (NULL != (value = bench_option(argc, argv, &i, "--threads"))) {
            threads = atoi(value);
            if (threads < 1 || threads > THREADS_MAX) {
                bench_usage_error(argv[0], value);
            }
        } else if (NULL != (value = bench_option(argc, argv, &i, "--level")) && 0 == strcmp(value, "single")) {
            level = MPI_THREAD_SINGLE;
        } else if (NULL == value || 0 != strcmp(value, "multiple")) {
            bench_usage_error(argv[0], argv[i]);
        }
    }
    MPI_Init_thread(&argc, &argv, level, &provided);
    world = bench_world(argv[0], threads > 0 ? 1 : 2);
    if (provided < level) {
        fprintf(stderr, "threads: this library has no MPI_THREAD_MULTIPLE\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (threads > 0) {
        several_threads(&world, threads, kind, ms);
    } else {
        pair(&world, level, ms);
    }
    return bench_end(&world);
}
