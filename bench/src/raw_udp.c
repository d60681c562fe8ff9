/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The limits of datagrams over loopback, on unconnected sockets as a process with many peers has
   them, from memory of the message's size to such memory: "pingpong" half round trip, polling
   without a pause; "stream" bandwidth in datagrams of at most 64 KiB, with a window that a datagram
   back opens again every half of it, so that nothing is lost. "pingpong+" and "stream+" do besides
   what nobody can leave out who promises that data arrives intact and from whom it is said to
   come: 120 bytes of headers, CRC32C of the data, and the headers' code (SipHash), at both ends. */
#include "raw_support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "opal/checksum/crc32c.h"
#include "opal/util/siphash.h"

enum { DATAGRAM = 65448, WINDOW = 512 * 1024, BUFFER = 4 << 20, HEAD = 120, COPIED = 2048 };

/* What goes before the data in the modes with "+". */
typedef struct head {
    uint64_t code;
    uint32_t sum, length;
    char more[HEAD - 16];
} head_t;

typedef struct link {
    const raw_options_t *options;
    int side;
    int checked; /* the modes with "+" */
    int fd;
    struct sockaddr_in peer;
    char *memory; /* of the message */
    _Alignas(8) char small[HEAD + COPIED];
    size_t unread;  /* stream: bytes received since the last answer */
    size_t under_way;
} link_t;

static const opal_siphash_key_t key = { { 1, 2 } };

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

/* Bytes of a message that one datagram takes. */
static size_t most(const link_t *l)
{
    return l->checked ? DATAGRAM - HEAD : DATAGRAM;
}

static uint64_t code(const head_t *head)
{
    return opal_siphash(&key, (const char *) head + sizeof(head->code), HEAD - sizeof(head->code));
}

static void send_pieces(const link_t *l, struct iovec *iov, int count)
{
    const struct msghdr message = { .msg_name = (void *) &l->peer, .msg_namelen = sizeof(l->peer),
                                    .msg_iov = iov, .msg_iovlen = (size_t) count };

    while ((1 == count ? sendto(l->fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT,
                                (const struct sockaddr *) &l->peer, sizeof(l->peer))
                       : sendmsg(l->fd, &message, MSG_DONTWAIT))
           < 0) {
        if (EAGAIN != errno && EINTR != errno) {
            bench_die("sendto");
        }
    }
}

static void put_checked(link_t *l, const char *data, size_t bytes)
{
    head_t *head = (head_t *) (void *) l->small;
    struct iovec iov[2] = { { head, HEAD }, { (char *) data, bytes } };
    int count = bytes <= COPIED ? 1 : 2;

    head->sum = (uint32_t) opal_crc32c_update(UINT32_MAX, data, bytes);
    head->length = (uint32_t) bytes;
    head->code = code(head);
    if (1 == count) {
        memcpy(l->small + HEAD, data, bytes);
        iov[0].iov_len += bytes;
    }
    send_pieces(l, iov, count);
}

static void put(link_t *l, const char *data, size_t bytes)
{
    struct iovec iov = { (char *) data, bytes };

    if (l->checked) {
        put_checked(l, data, bytes);
    } else {
        send_pieces(l, &iov, 1);
    }
}

static size_t receive(const link_t *l, struct iovec *iov, int count)
{
    struct sockaddr_in from;
    socklen_t length = sizeof(from);
    struct msghdr message = { .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = iov,
                              .msg_iovlen = (size_t) count };

    for (;;) {
        ssize_t n = 1 == count ? recvfrom(l->fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT,
                                          (struct sockaddr *) &from, &length)
                               : recvmsg(l->fd, &message, MSG_DONTWAIT);
        if (n >= 0) {
            return (size_t) n;
        }
        if (EAGAIN != errno && EINTR != errno) {
            bench_die("recvfrom");
        }
    }
}

/* Into `data`, of which `bytes` are wanted at most. */
static size_t take_checked(link_t *l, char *data, size_t bytes)
{
    head_t *head = (head_t *) (void *) l->small;
    struct iovec iov[2] = { { head, HEAD }, { data, bytes } };
    int count = bytes <= COPIED ? 1 : 2;
    size_t n;

    iov[0].iov_len += 1 == count ? bytes : 0;
    n = receive(l, iov, count);
    if (n < HEAD || head->length != n - HEAD || head->code != code(head)) {
        fprintf(stderr, "bench: a datagram is not authentic\n");
        exit(2);
    }
    if (1 == count) {
        memcpy(data, l->small + HEAD, n - HEAD);
    }
    if ((uint32_t) opal_crc32c_update(UINT32_MAX, data, n - HEAD) != head->sum) {
        fprintf(stderr, "bench: a datagram is damaged\n");
        exit(2);
    }
    return n - HEAD;
}

static size_t take(link_t *l, char *data, size_t bytes)
{
    struct iovec iov = { data, bytes };

    return l->checked ? take_checked(l, data, bytes) : receive(l, &iov, 1);
}

/* A message as datagrams, and what the window wants. */
static void put_message(link_t *l, size_t bytes)
{
    char answer[2];

    for (size_t at = 0; at < bytes;) {
        size_t n = bytes - at < most(l) ? bytes - at : most(l);
        if (l->under_way + n > WINDOW) {
            take(l, answer, sizeof(answer));
            l->under_way -= WINDOW / 2;
        }
        put(l, l->memory + at, n);
        l->under_way += n;
        at += n;
    }
}

static void take_message(link_t *l, size_t bytes)
{
    char answer[2] = { 0 };

    for (size_t at = 0; at < bytes;) {
        size_t n = take(l, l->memory + at, bytes - at < most(l) ? bytes - at : most(l));
        at += n;
        l->unread += n;
        if (l->unread >= WINDOW / 2) {
            put(l, answer, 1);
            l->unread -= WINDOW / 2;
        }
    }
}

static double round_trips(link_t *l, size_t bytes, long iterations)
{
    double t0 = bench_now();

    for (long i = 0; i < iterations; i++) {
        for (int half = 0; half < 2; half++) {
            int send = half == l->side;
            for (size_t at = 0; at < bytes;) {
                size_t n = bytes - at < most(l) ? bytes - at : most(l);
                if (send) {
                    put(l, l->memory + at, n);
                } else {
                    n = take(l, l->memory + at, n);
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
    char answer[2] = { 0 };
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
            while (take(l, answer, sizeof(answer)) != 2) {
            }
        } else {
            put(l, answer, 2);
        }
    }
    return (bench_now() - t0) / (64.0 * (double) iterations);
}

static void measure(link_t *l, size_t bytes)
{
    int stream = 's' == l->options->mode[0];
    double (*fn)(link_t *, size_t, long) = stream ? windows : round_trips;
    double seconds[BENCH_BATCHES], estimate, median;
    long iterations;

    fn(l, bytes, 3);
    estimate = fn(l, bytes, 10) * (stream ? 64.0 : 2.0);
    iterations = bench_iterations(estimate, l->options->ms);
    if (0 == l->side) {
        put(l, (const char *) &iterations, sizeof(iterations));
    } else {
        take(l, (char *) &iterations, sizeof(iterations));
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
    link_t l = { .options = &o, .checked = NULL != strchr(o.mode, '+') };
    struct sockaddr_in address[2];
    int fd[2];
    pid_t child;

    if (0 != strcmp(o.mode, "pingpong") && 0 != strcmp(o.mode, "stream")
        && 0 != strcmp(o.mode, "pingpong+") && 0 != strcmp(o.mode, "stream+")) {
        bench_usage_error(argv[0], "mode: pingpong or stream, with + or without");
    }
    fd[0] = open_socket(&address[0]);
    fd[1] = open_socket(&address[1]);
    l.side = raw_fork(&o, &child);
    l.fd = fd[l.side];
    l.peer = address[1 - l.side];
    close(fd[1 - l.side]);
    l.memory = bench_buffer(bench_largest(&o.sizes));
    for (int i = 0; i < o.sizes.count; i++) {
        measure(&l, o.sizes.value[i]);
    }
    raw_join(l.side, child);
    return 0;
}
