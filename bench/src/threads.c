/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What threads cost, us per message of 8 B. Two ranks with one thread each, MPI_THREAD_SINGLE or MULTIPLE (--level): half round trip
   ("latency") and a stream ("stream"). One rank, MULTIPLE, which sends to itself: one thread and two, each on a communicator of
   its own ("own"), two on the same one ("shared"), and one thread to the other and back ("handover", half round trip). */
#include "mpi_support.h"

#include <pthread.h>

enum { TAG = 9, TAG_ANSWER = 10, WINDOW = 64, THREADS_MAX = 2 };

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

static void stream(int rank, long iterations)
{
    MPI_Request requests[WINDOW];
    double data[WINDOW] = { 0.0 }, answer = 0.0;

    for (long i = 0; i < iterations; i++) {
        for (int w = 0; w < WINDOW; w++) {
            if (0 == rank) {
                MPI_Isend(&data[w], 1, MPI_DOUBLE, 1, TAG, MPI_COMM_WORLD, &requests[w]);
            } else {
                MPI_Irecv(&data[w], 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD, &requests[w]);
            }
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (0 == rank) {
            MPI_Recv(&answer, 1, MPI_DOUBLE, 1, TAG_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Send(&answer, 1, MPI_DOUBLE, 0, TAG_ANSWER, MPI_COMM_WORLD);
        }
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

/* ---- One rank ---- */

typedef struct worker {
    MPI_Comm comm;
    int tag, answer; /* the tag of what the other thread sends back; -1: this thread sends to itself */
    long iterations;
    pthread_barrier_t *start;
    double seconds; /* from the start to this thread's end */
} worker_t;

static void *work(void *argument)
{
    worker_t *w = argument;
    double out = 1.0, in, t0;
    MPI_Request request;

    pthread_barrier_wait(w->start);
    t0 = bench_now();
    for (long i = 0; i < w->iterations; i++) {
        if (w->answer < 0) {
            MPI_Irecv(&in, 1, MPI_DOUBLE, 0, w->tag, w->comm, &request);
            MPI_Send(&out, 1, MPI_DOUBLE, 0, w->tag, w->comm);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (TAG == w->tag) {
            MPI_Send(&out, 1, MPI_DOUBLE, 0, w->tag, w->comm);
            MPI_Recv(&in, 1, MPI_DOUBLE, 0, w->answer, w->comm, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&in, 1, MPI_DOUBLE, 0, w->answer, w->comm, MPI_STATUS_IGNORE);
            MPI_Send(&out, 1, MPI_DOUBLE, 0, w->tag, w->comm);
        }
    }
    w->seconds = bench_now() - t0;
    return NULL;
}

typedef struct scene {
    const char *kind;
    int threads, own, handover;
} scene_t;

static MPI_Comm own_comm[THREADS_MAX];

/* Seconds per message of all threads together. */
static double self_batch(const scene_t *scene, long iterations)
{
    pthread_barrier_t start;
    pthread_t thread[THREADS_MAX];
    worker_t worker[THREADS_MAX];
    double slowest = 0.0;

    pthread_barrier_init(&start, NULL, (unsigned) scene->threads);
    for (int t = 0; t < scene->threads; t++) {
        worker[t] = (worker_t) { .comm = own_comm[scene->own ? t : 0], .tag = TAG + t, .answer = -1,
                                 .iterations = iterations, .start = &start };
        if (scene->handover) {
            worker[t].answer = TAG + 1 - t;
        }
        if (t > 0 && 0 != pthread_create(&thread[t], NULL, work, &worker[t])) {
            bench_die("thread");
        }
    }
    work(&worker[0]);
    for (int t = 0; t < scene->threads; t++) {
        if (t > 0) {
            pthread_join(thread[t], NULL);
        }
        slowest = worker[t].seconds > slowest ? worker[t].seconds : slowest;
    }
    pthread_barrier_destroy(&start);
    return slowest / (double) iterations / scene->threads;
}

/* ---- Both ---- */

static double one_batch(const bench_world_t *world, const scene_t *scene, int streaming, long iterations)
{
    return scene ? self_batch(scene, iterations) : pair_batch(world, streaming, iterations);
}

/* us per message: the batches, sorted. */
static void measure(const bench_world_t *world, const scene_t *scene, int streaming, double ms,
                    double us[BENCH_BATCHES])
{
    double per_message;
    long iterations;

    one_batch(world, scene, streaming, 20);
    per_message = one_batch(world, scene, streaming, 500);
    iterations = bench_iterations(per_message * (scene ? scene->threads : streaming ? WINDOW : 2), ms);
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

static void with_itself(const bench_world_t *world, double ms)
{
    static const scene_t scenes[] = {
        { .kind = "own", .threads = 1, .own = 1 },
        { .kind = "own", .threads = 2, .own = 1 },
        { .kind = "shared", .threads = 2 },
        { .kind = "handover", .threads = 2, .handover = 1 },
    };

    double us[BENCH_BATCHES];

    for (int t = 0; t < THREADS_MAX; t++) {
        MPI_Comm_dup(MPI_COMM_SELF, &own_comm[t]);
    }
    for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++) {
        measure(world, &scenes[i], 0, ms, us);
        tell(scenes[i].kind, "threads", 1 == scenes[i].threads ? "1" : "2", us);
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
    int level = MPI_THREAD_MULTIPLE, provided;
    double ms = 60.0;
    const char *value;
    bench_world_t world;

    for (int i = 1; i < argc; i++) {
        if (NULL != (value = bench_option(argc, argv, &i, "--ms"))) {
            ms = atof(value);
        } else if (NULL != (value = bench_option(argc, argv, &i, "--level")) && 0 == strcmp(value, "single")) {
            level = MPI_THREAD_SINGLE;
        } else if (NULL == value || 0 != strcmp(value, "multiple")) {
            bench_usage_error(argv[0], argv[i]);
        }
    }
    MPI_Init_thread(&argc, &argv, level, &provided);
    world = bench_world(argv[0], 1);
    if (provided < level) {
        fprintf(stderr, "threads: this library has no MPI_THREAD_MULTIPLE\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (1 == world.size) {
        with_itself(&world, ms);
    } else {
        pair(&world, level, ms);
    }
    return bench_end(&world);
}
