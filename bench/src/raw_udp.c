/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The limits of datagrams over loopback, on unconnected sockets as a process with many peers has
   them: "pingpong" half round trip, polling without a pause; "stream" bandwidth in datagrams of at
   most 64 KiB, with a window that a datagram back opens again every half of it, so that nothing is
   lost. */
#include "raw_support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { DATAGRAM = 65448, WINDOW = 512 * 1024, BUFFER = 4 << 20 };

typedef struct link {
    const raw_options_t *options;
    int side;
    int fd;
    struct sockaddr_in peer;
    char *buffer;
    size_t unread;  /* stream: bytes received since the last answer */
    size_t under_way;
} link_t;

static int open_socket(struct sockaddr_in *address)
{
    socklen_t length = sizeof(*address);
    int size = BUFFER, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    *address = (struct sockaddr_in) { .sin_family = AF_INET,
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    if (fd < 0 || 0 != bind(fd, (struct sockaddr *) address, sizeof(*address))
        || 0 != getsockname(fd, (struct sockaddr *) address, &length)) {
        bench_die("socket");
    }
    if (0 != setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size))) {
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    }
    return fd;
}

static void put(const link_t *l, size_t bytes)
{
    while (sendto(l->fd, l->buffer, bytes, MSG_DONTWAIT, (const struct sockaddr *) &l->peer,
                  sizeof(l->peer))
           < 0) {
        if (EAGAIN != errno && EINTR != errno) {
            bench_die("sendto");
        }
    }
}

static size_t take(const link_t *l)
{
    struct sockaddr_in from;
    socklen_t length = sizeof(from);

    for (;;) {
        ssize_t n = recvfrom(l->fd, l->buffer, DATAGRAM, MSG_DONTWAIT, (struct sockaddr *) &from,
                             &length);
        if (n >= 0) {
            return (size_t) n;
        }
        if (EAGAIN != errno && EINTR != errno) {
            bench_die("recvfrom");
        }
    }
}

/* A message as datagrams, and what the window wants. */
static void put_message(link_t *l, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        size_t n = bytes - at < DATAGRAM ? bytes - at : DATAGRAM;
        if (l->under_way + n > WINDOW) {
            take(l);
            l->under_way -= WINDOW / 2;
        }
        put(l, n);
        l->under_way += n;
        at += n;
    }
}

static void take_message(link_t *l, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        size_t n = take(l);
        at += n;
        l->unread += n;
        if (l->unread >= WINDOW / 2) {
            put(l, 1);
            l->unread -= WINDOW / 2;
        }
    }
}

static double round_trips(link_t *l, size_t bytes, long iterations)
{
    double t0 = bench_now();

    l->under_way = l->unread = 0;
    for (long i = 0; i < iterations; i++) {
        for (int half = 0; half < 2; half++) {
            int send = half == l->side;
            for (size_t at = 0; at < bytes;) {
                size_t n = bytes - at < DATAGRAM ? bytes - at : DATAGRAM;
                if (send) {
                    put(l, n);
                } else {
                    n = take(l);
                }
                at += n;
            }
        }
    }
    return (bench_now() - t0) / (2.0 * (double) iterations);
}

/* 64 messages, then what the receiver owes, and one byte back. */
static double windows(link_t *l, size_t bytes, long iterations)
{
    double t0 = bench_now();

    for (long i = 0; i < iterations; i++) {
        l->under_way = l->unread = 0;
        for (int w = 0; w < 64; w++) {
            if (0 == l->side) {
                put_message(l, bytes);
            } else {
                take_message(l, bytes);
            }
        }
        if (0 == l->side) {
            while (take(l) != 2) {
            }
        } else {
            put(l, 2);
        }
    }
    return (bench_now() - t0) / (64.0 * (double) iterations);
}

static void measure(link_t *l, size_t bytes)
{
    int stream = 0 == strcmp(l->options->mode, "stream");
    double (*fn)(link_t *, size_t, long) = stream ? windows : round_trips;
    double seconds[BENCH_BATCHES], estimate, median;
    long iterations;

    fn(l, bytes, 3);
    estimate = fn(l, bytes, 10) * (stream ? 64.0 : 2.0);
    iterations = bench_iterations(estimate, l->options->ms);
    memcpy(l->buffer, &iterations, sizeof(iterations));
    if (0 == l->side) {
        put(l, sizeof(iterations));
    } else {
        take(l);
        memcpy(&iterations, l->buffer, sizeof(iterations));
    }
    for (int b = 0; b < BENCH_BATCHES; b++) {
        seconds[b] = fn(l, bytes, iterations);
    }
    median = bench_median(seconds, BENCH_BATCHES);
    if (0 == l->side) {
        printf("%s size=%zu us=%.4f gbs=%.4f\n", stream ? "udp_stream" : "udp", bytes,
               1e6 * median, 1e-9 * (double) bytes / median);
    }
}

int main(int argc, char **argv)
{
    raw_options_t o = raw_parse(argc, argv, "8:4m");
    link_t l = { .options = &o };
    struct sockaddr_in address[2];
    int fd[2];
    pid_t child;

    if (0 != strcmp(o.mode, "pingpong") && 0 != strcmp(o.mode, "stream")) {
        bench_usage_error(argv[0], "mode: pingpong or stream");
    }
    fd[0] = open_socket(&address[0]);
    fd[1] = open_socket(&address[1]);
    l.side = raw_fork(&o, &child);
    l.fd = fd[l.side];
    l.peer = address[1 - l.side];
    close(fd[1 - l.side]);
    l.buffer = bench_buffer(DATAGRAM);
    for (int i = 0; i < o.sizes.count; i++) {
        measure(&l, o.sizes.value[i]);
    }
    raw_join(l.side, child);
    return 0;
}
