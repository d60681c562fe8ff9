/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A steady stream of messages from rank 0 to rank 1, which prints what came in each interval, so
   that one can see what a link that slows down, fails or comes back does to it:
       MS-SINCE-THE-START MB/S
   and at the end "total MB/S". With --check every message is looked through. */
#include "mpi_support.h"

enum { TAG = 7, WINDOW_MAX = 64 };

typedef struct options {
    int bytes, window, check;
    double seconds, interval; /* s */
} options_t;

static options_t parse(int argc, char **argv)
{
    options_t o = { .bytes = 4 << 20, .window = 4, .seconds = 5.0, .interval = 0.1 };
    const char *value;

    for (int i = 1; i < argc; i++) {
        if (NULL != (value = bench_option(argc, argv, &i, "--bytes"))) {
            o.bytes = atoi(value);
        } else if (NULL != (value = bench_option(argc, argv, &i, "--window"))) {
            o.window = atoi(value);
        } else if (NULL != (value = bench_option(argc, argv, &i, "--seconds"))) {
            o.seconds = atof(value);
        } else if (NULL != (value = bench_option(argc, argv, &i, "--interval"))) {
            o.interval = atof(value);
        } else if (0 == strcmp(argv[i], "--check")) {
            o.check = 1;
        } else {
            bench_usage_error(argv[0], argv[i]);
        }
    }
    if (o.window < 1 || o.window > WINDOW_MAX || o.bytes < 16) {
        bench_usage_error(argv[0], "--window or --bytes");
    }
    return o;
}

/* The first bytes are the message's number; a negative one ends the stream. */
static void stamp(char *data, int bytes, long number, int all)
{
    memcpy(data, &number, sizeof(number));
    for (int i = (int) sizeof(number); all && i < bytes; i++) {
        data[i] = (char) (number * 31 + i * 7 + (i >> 8));
    }
}

static int is_right(const char *data, int bytes, long number, int all)
{
    long had;

    memcpy(&had, data, sizeof(had));
    for (int i = (int) sizeof(number); all && had == number && i < bytes; i++) {
        if (data[i] != (char) (number * 31 + i * 7 + (i >> 8))) {
            return 0;
        }
    }
    return had == number;
}

static void source(const options_t *o, char **buffers, MPI_Request *requests)
{
    double end = bench_now() + o->seconds;
    long number = 0;

    for (int slot = 0; bench_now() < end || 0 != slot; slot = (slot + 1) % o->window) {
        MPI_Wait(&requests[slot], MPI_STATUS_IGNORE);
        stamp(buffers[slot], o->bytes, number++, o->check);
        MPI_Isend(buffers[slot], o->bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &requests[slot]);
    }
    MPI_Waitall(o->window, requests, MPI_STATUSES_IGNORE);
    number = -1;
    MPI_Send(&number, sizeof(number), MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
}

static long sink(const options_t *o, char **buffers, MPI_Request *requests)
{
    double start = bench_now(), since = start;
    double sum = 0.0, total = 0.0;
    long wrong = 0;

    for (int slot = 0; slot < o->window; slot++) {
        MPI_Irecv(buffers[slot], o->bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[slot]);
    }
    for (long number = 0;; number++) {
        int slot = (int) (number % o->window), bytes;
        MPI_Status status;
        MPI_Wait(&requests[slot], &status);
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        if (bytes != o->bytes) {
            break; /* the end */
        }
        wrong += !is_right(buffers[slot], bytes, number, o->check);
        MPI_Irecv(buffers[slot], o->bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[slot]);
        sum += bytes;
        double now = bench_now();
        if (now - since >= o->interval) {
            printf("%.0f %.1f\n", 1e3 * (now - start), 1e-6 * sum / (now - since));
            fflush(stdout);
            total += sum;
            sum = 0.0;
            since = now;
        }
    }
    for (int slot = 0; slot < o->window; slot++) {
        if (MPI_REQUEST_NULL != requests[slot]) {
            MPI_Cancel(&requests[slot]);
            MPI_Wait(&requests[slot], MPI_STATUS_IGNORE);
        }
    }
    printf("total %.1f wrong %ld\n", 1e-6 * (total + sum) / (bench_now() - start), wrong);
    return wrong;
}

int main(int argc, char **argv)
{
    char *buffers[WINDOW_MAX];
    MPI_Request requests[WINDOW_MAX];
    int rank;
    long wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    options_t o = parse(argc, argv);
    for (int i = 0; i < o.window; i++) {
        requests[i] = MPI_REQUEST_NULL;
        buffers[i] = calloc(1, (size_t) o.bytes);
        if (NULL == buffers[i]) {
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        memset(buffers[i], 1, (size_t) o.bytes);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == rank) {
        source(&o, buffers, requests);
    } else if (1 == rank) {
        wrong = sink(&o, buffers, requests);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < o.window; i++) {
        free(buffers[i]);
    }
    MPI_Finalize();
    return wrong ? 1 : 0;
}
