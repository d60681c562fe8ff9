/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls on sockets, as in sys/socket.h, but no cancellation points: in a process with several
 * threads, and libpmix has one of its own, glibc makes each of its calls one with two atomic
 * operations, some 20 ns, which a poller of sockets pays for every look.
 */
#ifndef OPAL_UTIL_SOCKET_CALL_H
#define OPAL_UTIL_SOCKET_CALL_H

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline ssize_t opal_sendto(int fd, const void *data, size_t len, int flags,
                                  const struct sockaddr *to, socklen_t to_len)
{
    return syscall(SYS_sendto, fd, data, len, flags, to, to_len);
}

static inline ssize_t opal_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    return syscall(SYS_sendmsg, fd, msg, flags);
}

static inline ssize_t opal_recvfrom(int fd, void *data, size_t len, int flags,
                                    struct sockaddr *from, socklen_t *from_len)
{
    return syscall(SYS_recvfrom, fd, data, len, flags, from, from_len);
}

static inline ssize_t opal_recvmsg(int fd, struct msghdr *msg, int flags)
{
    return syscall(SYS_recvmsg, fd, msg, flags);
}

#endif
