/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The doorbell; see door.h. A datagram's content means nothing. */
#include "opal/runtime/door.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "opal/mca/shmem/shmem.h"
#include "opal/runtime/progress.h"

enum {
    RINGS = 16,         /* the kernel queues fewer */
    PATIENCE_MS = 1000, /* with sleepers that are told to wake and do not */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int door = -1;
static opal_door_id_t own_id;
static opal_event_t *event;

static socklen_t address_of(opal_door_id_t id, struct sockaddr_un *address)
{
    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX; /* sun_path[0] = 0: abstract */
    int n = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "hawser.door.%016" PRIx64 "%016" PRIx64,
                     id.word[0], id.word[1]);
    return (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) n);
}

/* All of them at once: they count against their senders' buffers. */
static void on_ring(int fd, unsigned what, void *context)
{
    struct mmsghdr bells[RINGS] = {0};
    (void) what;
    (void) context;
    int ignored = recvmmsg(fd, bells, RINGS, MSG_DONTWAIT, NULL);
    (void) ignored;
}

static int make(void)
{
    struct sockaddr_un address;
    own_id = (opal_door_id_t) {.word = {opal_shmem_random() | 1, opal_shmem_random()}};
    socklen_t len = address_of(own_id, &address);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return OPAL_ERR_IN_ERRNO;
    }
    int rc = bind(fd, (struct sockaddr *) &address, len) == 0 ? OPAL_SUCCESS : OPAL_ERR_IN_ERRNO;
    if (rc == OPAL_SUCCESS) {
        rc = opal_event_add(fd, OPAL_EVENT_READ | OPAL_EVENT_LATE, on_ring, NULL, &event);
    }
    if (rc != OPAL_SUCCESS) {
        close(fd);
        return rc;
    }
    door = fd;
    return OPAL_SUCCESS;
}

int opal_door_open(opal_door_id_t *own)
{
    pthread_mutex_lock(&lock);
    int rc = door < 0 ? make() : OPAL_SUCCESS;
    *own = own_id;
    pthread_mutex_unlock(&lock);
    return rc;
}

/* Is this socket's buffer full of what others have not yet read? The kernel calls the socket writable while half of the
 * buffer is free. */
static bool rings_pile_up(void)
{
    struct pollfd own = {.fd = door, .events = POLLOUT};
    return poll(&own, 1, 0) == 0;
}

static bool rings_are_read(void)
{
    struct pollfd own = {.fd = door, .events = POLLOUT};
    return poll(&own, 1, PATIENCE_MS) == 1;
}

/* EAGAIN means that this socket's buffer is full, or the sleeper's queue, who wakes anyway then. The buffer may have been
 * emptied before it is looked at: only refused again is it the queue. */
void opal_door_ring(opal_door_id_t id)
{
    struct sockaddr_un address;
    if (id.word[0] == 0) {
        return;
    }
    socklen_t len = address_of(id, &address);
    for (bool again = false;; again = true) {
        if (sendto(door, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *) &address, len) >= 0 || errno != EAGAIN) {
            return;
        }
        bool piled_up = rings_pile_up();
        if (piled_up ? !rings_are_read() : again) {
            return;
        }
    }
}

void opal_door_close(void)
{
    if (door >= 0) {
        opal_event_del(event);
        event = NULL;
        close(door);
        door = -1;
    }
}
