/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Bells: see bell.h. */
#include "opal/runtime/bell.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    RINGS = 16,         /* the kernel queues fewer */
    PATIENCE_MS = 1000, /* with sleepers that are told to wake and do not */
};

/* Is the buffer full of what others have not yet read? The kernel calls the socket writable while half of it is free. */
static bool pile_up(int socket)
{
    struct pollfd own = {.fd = socket, .events = POLLOUT};
    return poll(&own, 1, 0) == 0;
}

static bool are_read(int socket)
{
    struct pollfd own = {.fd = socket, .events = POLLOUT};
    return poll(&own, 1, PATIENCE_MS) == 1;
}

/* EAGAIN means that this socket's buffer is full, or the sleeper's queue, who wakes anyway then. The buffer may have been
 * emptied before it is looked at: only refused again is it the queue. */
int opal_bell_ring(int socket, const struct sockaddr_un *address, socklen_t len)
{
    for (bool again = false;; again = true) {
        if (sendto(socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *) address, len) >= 0) {
            return 0;
        }
        if (errno != EAGAIN) {
            return errno;
        }
        bool piled_up = pile_up(socket);
        if (piled_up ? !are_read(socket) : again) {
            return piled_up ? EAGAIN : 0;
        }
    }
}

/* At once: they count against their senders' buffers. */
void opal_bells_take(int socket)
{
    struct mmsghdr bells[RINGS] = {0};
    int ignored = recvmmsg(socket, bells, RINGS, MSG_DONTWAIT, NULL);
    (void) ignored;
}
