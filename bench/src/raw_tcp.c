/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The limits of a socket: "pingpong" half round trip, polling without a pause or (--sleep) waiting
   in epoll; "stream" bandwidth in writes of each size. Over loopback, or over the link that leads
   from --address to the network namespace --netns (a file of /proc/PID/ns). */
#include "raw_support.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

typedef struct link {
    const raw_options_t *options;
    int side;
    int fd;
    int epoll;
    char *buffer;
} link_t;

static int listen_on(const char *text, struct sockaddr_in *address)
{
    socklen_t length = sizeof(*address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *address = (struct sockaddr_in) { .sin_family = AF_INET,
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    if (NULL != text && 1 != inet_pton(AF_INET, text, &address->sin_addr)) {
        bench_die("--address");
    }
    if (fd < 0 || 0 != bind(fd, (struct sockaddr *) address, sizeof(*address))
        || 0 != listen(fd, 1) || 0 != getsockname(fd, (struct sockaddr *) address, &length)) {
        bench_die("listen");
    }
    return fd;
}

static void make_link(link_t *l, int listener, const struct sockaddr_in *address)
{
    int on = 1;
    struct epoll_event event = { .events = EPOLLIN };

    if (0 == l->side) {
        l->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    } else {
        l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (l->fd < 0
            || 0 != connect(l->fd, (const struct sockaddr *) address, sizeof(*address))) {
            bench_die("connect");
        }
    }
    close(listener);
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (l->fd < 0 || l->epoll < 0
        || 0 != setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on))
        || 0 != epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->fd, &event)) {
        bench_die("socket");
    }
}

static void put(const link_t *l, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t n = send(l->fd, l->buffer + done, bytes - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && EAGAIN != errno && EINTR != errno) {
            bench_die("send");
        }
        done += n > 0 ? (size_t) n : 0;
    }
}

static void take(const link_t *l, size_t bytes)
{
    struct epoll_event event;

    for (size_t done = 0; done < bytes;) {
        ssize_t n = recv(l->fd, l->buffer + done, bytes - done, MSG_DONTWAIT);
        if (0 == n) {
            errno = ECONNRESET;
        }
        if (0 == n || (n < 0 && EAGAIN != errno && EINTR != errno)) {
            bench_die("recv");
        }
        done += n > 0 ? (size_t) n : 0;
        if (l->options->sleeping && done < bytes) {
            epoll_wait(l->epoll, &event, 1, -1);
        }
    }
}

static double round_trips(const link_t *l, size_t bytes, long iterations)
{
    double t0 = bench_now();

    for (long i = 0; i < iterations; i++) {
        if (0 == l->side) {
            put(l, bytes);
            take(l, bytes);
        } else {
            take(l, bytes);
            put(l, bytes);
        }
    }
    return (bench_now() - t0) / (2.0 * (double) iterations);
}

/* A window of messages, then one byte back. */
static double windows(const link_t *l, size_t bytes, long iterations)
{
    double t0 = bench_now();

    for (long i = 0; i < iterations; i++) {
        for (int w = 0; w < l->options->window; w++) {
            if (0 == l->side) {
                put(l, bytes);
            } else {
                take(l, bytes);
            }
        }
        if (0 == l->side) {
            take(l, 1);
        } else {
            put(l, 1);
        }
    }
    return (bench_now() - t0) / ((double) l->options->window * (double) iterations);
}

static void measure(link_t *l, size_t bytes)
{
    int stream = 0 == strcmp(l->options->mode, "stream");
    double (*fn)(const link_t *, size_t, long) = stream ? windows : round_trips;
    double seconds[BENCH_BATCHES], estimate, median;
    long iterations;

    estimate = fn(l, bytes, 3);
    if (1e3 * estimate * (stream ? 10.0 * l->options->window : 20.0) < l->options->ms) {
        estimate = fn(l, bytes, 10); /* not where it takes long: a slow link */
    }
    estimate *= stream ? (double) l->options->window : 2.0;
    iterations = bench_iterations(estimate, l->options->ms);
    memcpy(l->buffer, &iterations, sizeof(iterations));
    if (0 == l->side) {
        put(l, sizeof(iterations));
    } else {
        take(l, sizeof(iterations));
        memcpy(&iterations, l->buffer, sizeof(iterations));
    }
    for (int b = 0; b < l->options->batches; b++) {
        seconds[b] = fn(l, bytes, iterations);
    }
    median = bench_median(seconds, l->options->batches);
    if (0 == l->side) {
        printf("%s size=%zu us=%.4f gbs=%.4f\n", stream ? "tcp_stream" : "tcp", bytes,
               1e6 * median, 1e-9 * (double) bytes / median);
    }
}

int main(int argc, char **argv)
{
    raw_options_t o = raw_parse(argc, argv, "8:4m");
    link_t l = { .options = &o };
    struct sockaddr_in address;
    pid_t child;
    int listener;

    if (0 != strcmp(o.mode, "pingpong") && 0 != strcmp(o.mode, "stream")) {
        bench_usage_error(argv[0], "mode: pingpong or stream");
    }
    listener = listen_on(o.address, &address);
    l.side = raw_fork(&o, &child);
    if (1 == l.side && NULL != o.netns) {
        int fd = open(o.netns, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || 0 != setns(fd, CLONE_NEWNET)) {
            bench_die("--netns");
        }
        close(fd);
    }
    make_link(&l, listener, &address);
    l.buffer = bench_buffer(bench_largest(&o.sizes) + sizeof(long));
    for (int i = 0; i < o.sizes.count; i++) {
        measure(&l, o.sizes.value[i]);
    }
    raw_join(l.side, child);
    return 0;
}
