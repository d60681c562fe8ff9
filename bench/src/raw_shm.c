/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The machine's limits between two processes: "line" one cache line each way (also the probe for
   the machine's state), "ring" two copies through a shared ring, pipelined, in the best chunk, ring and way of
   copying, as half round trip and as a stream; "ways" the same for each way; "cma" one copy by process_vm_readv;
   "memcpy" in one process. */
#include "raw_support.h"

#include <sys/uio.h>

#include "opal/util/copy.h"

/* A cache line's speed depends on where in the shared cache it lives: the probe tries many. */
enum { RING_BYTES_MAX = 4 << 20, PROBE_LINES = 2 * BENCH_BATCHES + 1, PAGE = 4096 };

typedef struct probe_page {
    raw_line_t flag[2];
    char rest[PAGE - 2 * sizeof(raw_line_t)];
} probe_page_t;

typedef struct ring {
    raw_line_t written; /* bytes that were put in, and taken out, so far */
    raw_line_t taken;
    char data[RING_BYTES_MAX];
} ring_t;

/* How a ring is used. */
typedef struct ring_way {
    size_t bytes; /* of the ring that go round */
    size_t chunk;
    opal_copy_how_t how;
} ring_way_t;

static const size_t ring_bytes[] = { 128 << 10, 1 << 20, RING_BYTES_MAX };
static const char *const how_names[] = { "any", "lines", "past" };

typedef struct shared {
    raw_line_t turn[2];
    raw_line_t count; /* iterations that side 0 chose */
    raw_line_t address[2]; /* of the sides' buffers */
    ring_t ring[2];        /* one per direction */
    probe_page_t probe[PROBE_LINES];
} shared_t;

typedef struct pair {
    const raw_options_t *options;
    shared_t *shared;
    int side;
    pid_t child;
    char *out;
    char *in;
    long turn;
} pair_t;

/* Side 0 tells side 1 a number. */
static long tell(pair_t *p, long value)
{
    p->turn++;
    if (0 == p->side) {
        atomic_store_explicit(&p->shared->count.value, value, memory_order_relaxed);
        raw_set(&p->shared->turn[0].value, p->turn);
        raw_wait_for(&p->shared->turn[1].value, p->turn);
        return value;
    }
    raw_wait_for(&p->shared->turn[0].value, p->turn);
    value = atomic_load_explicit(&p->shared->count.value, memory_order_relaxed);
    raw_set(&p->shared->turn[1].value, p->turn);
    return value;
}

static void ping(pair_t *p)
{
    atomic_long *mine = &p->shared->turn[p->side].value;
    atomic_long *other = &p->shared->turn[1 - p->side].value;

    p->turn++;
    if (0 == p->side) {
        raw_set(mine, p->turn);
        raw_wait_for(other, p->turn);
    } else {
        raw_wait_for(other, p->turn);
        raw_set(mine, p->turn);
    }
}

/* Seconds that a cache line takes one way, over the two lines of one page. */
static double line_batch(pair_t *p, int page, long iterations)
{
    atomic_long *mine = &p->shared->probe[page].flag[p->side].value;
    atomic_long *other = &p->shared->probe[page].flag[1 - p->side].value;
    long first = atomic_load_explicit(mine, memory_order_relaxed);
    double t0 = bench_now();

    for (long i = first + 1; i <= first + iterations; i++) {
        if (0 == p->side) {
            raw_set(mine, i);
            raw_wait_for(other, i);
        } else {
            raw_wait_for(other, i);
            raw_set(mine, i);
        }
    }
    return (bench_now() - t0) / (2.0 * (double) iterations);
}

static void run_line(pair_t *p)
{
    double ns[PROBE_LINES], median, estimate;
    long iterations;

    line_batch(p, 0, 500);
    estimate = line_batch(p, 0, 500);
    iterations = tell(p, 1 + (long) (p->options->ms * 1e-3 / PROBE_LINES / (2.0 * estimate)));
    for (int page = 0; page < PROBE_LINES; page++) {
        line_batch(p, page, 50);
        ns[page] = 1e9 * line_batch(p, page, iterations);
    }
    median = bench_median(ns, PROBE_LINES);
    if (0 == p->side) {
        printf("line ns=%.2f best=%.2f worst=%.2f\n", median, ns[0], ns[PROBE_LINES - 1]);
    }
}

/* The counters run on for ever; a chunk never wraps, since the chunk divides the ring. */
static void ring_put(ring_t *ring, const char *from, size_t bytes, ring_way_t way)
{
    size_t chunk = way.chunk;
    long written = atomic_load_explicit(&ring->written.value, memory_order_relaxed);

    for (size_t done = 0; done < bytes; done += chunk) {
        size_t part = bytes - done < chunk ? bytes - done : chunk;
        while (written - atomic_load_explicit(&ring->taken.value, memory_order_acquire)
               > (long) (way.bytes - chunk)) {
            raw_pause();
        }
        opal_copy_into(ring->data + (size_t) written % way.bytes, from + done, part, way.how);
        written += (long) chunk;
        raw_set(&ring->written.value, written);
    }
}

static void ring_take(ring_t *ring, char *to, size_t bytes, ring_way_t way)
{
    size_t chunk = way.chunk;
    long taken = atomic_load_explicit(&ring->taken.value, memory_order_relaxed);

    for (size_t done = 0; done < bytes; done += chunk) {
        size_t part = bytes - done < chunk ? bytes - done : chunk;
        while (atomic_load_explicit(&ring->written.value, memory_order_acquire) == taken) {
            raw_pause();
        }
        opal_copy_out(to + done, ring->data + (size_t) taken % way.bytes, part, way.how);
        taken += (long) chunk;
        raw_set(&ring->taken.value, taken);
    }
}

typedef double (*batch_fn_t)(pair_t *p, size_t bytes, ring_way_t way, long iterations);

static double ring_round_trips(pair_t *p, size_t bytes, ring_way_t way, long iterations)
{
    double t0 = bench_now();

    for (long i = 0; i < iterations; i++) {
        if (0 == p->side) {
            ring_put(&p->shared->ring[0], p->out, bytes, way);
            ring_take(&p->shared->ring[1], p->in, bytes, way);
        } else {
            ring_take(&p->shared->ring[0], p->in, bytes, way);
            ring_put(&p->shared->ring[1], p->out, bytes, way);
        }
    }
    return (bench_now() - t0) / (2.0 * (double) iterations);
}

static double ring_stream(pair_t *p, size_t bytes, ring_way_t way, long iterations)
{
    double t0 = bench_now();

    for (long i = 0; i < iterations; i++) {
        if (0 == p->side) {
            ring_put(&p->shared->ring[0], p->out, bytes, way);
        } else {
            ring_take(&p->shared->ring[0], p->in, bytes, way);
        }
    }
    ping(p); /* the last byte has been taken out */
    return (bench_now() - t0) / (double) iterations;
}

/* Side 1 reads side 0's buffer, then the reverse. */
static double cma_round_trips(pair_t *p, size_t bytes, ring_way_t way, long iterations)
{
    pid_t other = 0 == p->side ? p->child : getppid();
    struct iovec to = { .iov_base = p->in, .iov_len = bytes }, from = { .iov_len = bytes };
    double t0 = bench_now();

    (void) way;
    from.iov_base = (void *) atomic_load(&p->shared->address[1 - p->side].value);
    for (long i = 0; i < iterations; i++) {
        if (1 == p->side && process_vm_readv(other, &to, 1, &from, 1, 0) != (ssize_t) bytes) {
            bench_die("process_vm_readv");
        }
        ping(p);
        if (0 == p->side && process_vm_readv(other, &to, 1, &from, 1, 0) != (ssize_t) bytes) {
            bench_die("process_vm_readv");
        }
        ping(p);
    }
    return (bench_now() - t0) / (2.0 * (double) iterations);
}

static double copies(pair_t *p, size_t bytes, ring_way_t way, long iterations)
{
    double t0 = bench_now();

    (void) way;
    for (long i = 0; i < iterations; i++) {
        memcpy(p->in, p->out, bytes);
        __asm__ volatile("" : : "r"(p->in) : "memory");
    }
    return (bench_now() - t0) / (double) iterations;
}

/* Chunks of one length after chunks of another would lie across the ring's end. */
static void empty_rings(pair_t *p)
{
    ping(p);
    for (int i = 0; 0 == p->side && i < 2; i++) {
        atomic_store(&p->shared->ring[i].written.value, 0);
        atomic_store(&p->shared->ring[i].taken.value, 0);
    }
    ping(p);
}

/* Median seconds of one transfer; both sides call it. */
static double median_of(pair_t *p, batch_fn_t fn, size_t bytes, ring_way_t way)
{
    double seconds[BENCH_BATCHES], estimate;
    long iterations;

    empty_rings(p);
    fn(p, bytes, way, 3);
    estimate = fn(p, bytes, way, 20);
    iterations = tell(p, bench_iterations(2.0 * estimate, p->options->ms));
    for (int b = 0; b < BENCH_BATCHES; b++) {
        seconds[b] = fn(p, bytes, way, iterations);
    }
    return bench_median(seconds, BENCH_BATCHES);
}

static void report(const pair_t *p, const char *kind, size_t bytes, ring_way_t way, double seconds)
{
    if (0 == p->side) {
        printf("%s size=%zu us=%.4f gbs=%.4f chunk=%zu ring=%zu way=%s\n", kind, bytes, 1e6 * seconds,
               1e-9 * (double) bytes / seconds, way.chunk, way.bytes, how_names[way.how]);
    }
}

/* Is the way better in one of the chunks and rings than `best`? Chunks from 4 KiB to 128 KiB; a message shorter than that has one
   choice. */
static void best_ring(pair_t *p, batch_fn_t fn, size_t bytes, opal_copy_how_t how, ring_way_t *way, double *best)
{
    for (size_t chunk = 4096; chunk <= 131072; chunk *= chunk == 65536 ? 2 : 4) {
        for (size_t i = 0; i < sizeof(ring_bytes) / sizeof(ring_bytes[0]); i++) {
            ring_way_t here = { .bytes = ring_bytes[i], .chunk = chunk, .how = how };
            double seconds = median_of(p, fn, bytes, here);
            if (seconds < *best) {
                *best = seconds;
                *way = here;
            }
        }
        if (chunk >= bytes) {
            break;
        }
    }
}

static void best_way(pair_t *p, batch_fn_t fn, const char *kind, size_t bytes, bool each)
{
    ring_way_t way = { .bytes = 0 };
    double best = 1e9;

    for (opal_copy_how_t how = OPAL_COPY_ANY; how <= OPAL_COPY_PAST; how++) {
        best_ring(p, fn, bytes, how, &way, &best);
        if (each) {
            report(p, kind, bytes, way, best);
            best = 1e9;
        }
    }
    if (!each) {
        report(p, kind, bytes, way, best);
    }
}

static void run_sizes(pair_t *p)
{
    const char *mode = p->options->mode;
    ring_way_t none = { .bytes = 0 };

    for (int i = 0; i < p->options->sizes.count; i++) {
        size_t bytes = p->options->sizes.value[i];
        if (0 == strcmp(mode, "ring") || 0 == strcmp(mode, "ways")) {
            best_way(p, ring_round_trips, "ring", bytes, 0 == strcmp(mode, "ways"));
            best_way(p, ring_stream, "stream", bytes, 0 == strcmp(mode, "ways"));
        } else if (0 == strcmp(mode, "cma")) {
            report(p, "cma", bytes, none, median_of(p, cma_round_trips, bytes, none));
        } else {
            report(p, "memcpy", bytes, none, median_of(p, copies, bytes, none));
        }
    }
}

int main(int argc, char **argv)
{
    raw_options_t o = raw_parse(argc, argv, "8:4m");
    pair_t p = { .options = &o, .shared = raw_shared(sizeof(shared_t)) };
    size_t room = bench_largest(&o.sizes);

    if (0 != strcmp(o.mode, "line") && 0 != strcmp(o.mode, "ring") && 0 != strcmp(o.mode, "ways")
        && 0 != strcmp(o.mode, "cma") && 0 != strcmp(o.mode, "memcpy")) {
        bench_usage_error(argv[0], "mode: line, ring, ways, cma or memcpy");
    }
    opal_copy_init();
    if (o.cpu[0] == o.cpu[1]) {
        fprintf(stderr, "raw_shm: needs two processors\n");
        return 2;
    }
    p.side = raw_fork(&o, &p.child);
    p.out = bench_buffer(room);
    p.in = bench_buffer(room);
    atomic_store(&p.shared->address[p.side].value, (long) p.out);
    ping(&p);
    if (0 == strcmp(o.mode, "line")) {
        run_line(&p);
    } else {
        run_sizes(&p);
    }
    raw_join(p.side, p.child);
    return 0;
}
