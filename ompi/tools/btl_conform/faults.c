/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A kernel that takes little at a time (--short-writes): this program's send() and sendmsg() stand
 * before the C library's for plug-ins too, and now and then take a part of what they are given, and
 * then nothing for a few calls, as a full socket does. */
#include "ompi/tools/btl_conform/conform.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PIECES = 64, REFUSALS = 6, MAX_FDS = 1024, GREETING = 256 };

static _Atomic uint8_t refusals[MAX_FDS]; /* how often a socket is still full */

/* Does this call meet a full socket? */
static bool is_full(int fd)
{
    uint8_t left = atomic_load(&refusals[fd]);
    if (left > 0) {
        atomic_store(&refusals[fd], left - 1);
    }
    return left > 0;
}

/* Of a TCP connection that is past its greeting: a fresh socket is never full. */
static bool is_fair_game(int fd)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);
    return conform_options.short_writes && fd >= 0 && fd < MAX_FDS
           && getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 && info.tcpi_bytes_acked > GREETING;
}

/* The first `len` bytes of a message; how many pieces that are. */
static size_t cut(const struct msghdr *msg, struct iovec *iov, size_t len)
{
    size_t count = 0;
    for (; len > 0; count++) {
        iov[count] = msg->msg_iov[count];
        iov[count].iov_len = iov[count].iov_len < len ? iov[count].iov_len : len;
        len -= iov[count].iov_len;
    }
    return count;
}

__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
    size_t total = 0;
    struct iovec iov[PIECES];
    struct msghdr part = *msg;
    if (!is_fair_game(fd) || msg->msg_iovlen > PIECES) {
        return syscall(SYS_sendmsg, fd, msg, flags);
    }
    if (is_full(fd)) {
        errno = EAGAIN;
        return -1;
    }
    for (size_t i = 0; i < msg->msg_iovlen; i++) {
        total += msg->msg_iov[i].iov_len;
    }
    if (total > 1 && conform_random(4) == 0) {
        /* Near the end is where the padding of small fragments is. */
        size_t keep = conform_random(2) ? conform_random(total - 1) : conform_random(total < 9 ? total - 1 : 8);
        part.msg_iovlen = cut(msg, iov, total - 1 - keep > 0 ? total - 1 - keep : 1);
        part.msg_iov = iov;
        atomic_store(&refusals[fd], (uint8_t)(1 + conform_random(REFUSALS)));
    }
    return syscall(SYS_sendmsg, fd, &part, flags);
}

__attribute__((visibility("default"))) ssize_t send(int fd, const void *data, size_t len, int flags)
{
    struct iovec iov = {(void *)(uintptr_t)data, len};
    const struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    return sendmsg(fd, &msg, flags);
}
