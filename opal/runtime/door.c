/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The doorbell; see door.h. A datagram's content means nothing. */
#include "opal/runtime/door.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "opal/mca/shmem/shmem.h"
#include "opal/runtime/bell.h"
#include "opal/runtime/progress.h"

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

static void on_ring(int fd, unsigned what, void *context)
{
    (void) what;
    (void) context;
    opal_bells_take(fd);
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

void opal_door_ring(opal_door_id_t id)
{
    struct sockaddr_un address;
    if (id.word[0] != 0) {
        socklen_t len = address_of(id, &address);
        opal_bell_ring(door, &address, len);
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
