/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Doorbells: more sleepers than a socket's buffer has room for rings all hear theirs, though they read late. */
#include "opal/runtime/door.h"

#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "mpi.h"
#include "support/tap.h"

enum { SLEEPERS = 900 };

static int sleepers[SLEEPERS];
static int heard;

/* A sleeper's own socket, under the name that its id stands for. */
static int make_sleeper(opal_door_id_t id)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int n = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "hawser.door.%016" PRIx64 "%016" PRIx64,
                     id.word[0], id.word[1]);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (struct sockaddr *) &address,
                        (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + (size_t) n)) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void *wake_late(void *unused)
{
    (void) unused;
    nanosleep(&(struct timespec) {.tv_nsec = 100000000}, NULL); /* so that rings pile up */
    for (int i = 0; i < SLEEPERS; i++) {
        char bell;
        heard += recv(sleepers[i], &bell, 1, 0) == 1; /* one that is forgotten stays here: the time limit tells */
    }
    return NULL;
}

int main(void)
{
    opal_door_id_t own, id = {.word = {(uint64_t) getpid() << 32 | 1, 0}};
    struct rlimit files = {SLEEPERS + 100, SLEEPERS + 100};
    pthread_t late;
    int made = 0;
    tap_start(30);
    if (setrlimit(RLIMIT_NOFILE, &files) != 0) {
        TAP_SKIP("too few open files are allowed");
        return tap_end();
    }
    TAP_OK(MPI_Init(NULL, NULL) == MPI_SUCCESS && opal_door_open(&own) == OPAL_SUCCESS, "a doorbell");
    for (int i = 0; i < SLEEPERS; i++) {
        id.word[1] = (uint64_t) i;
        sleepers[i] = make_sleeper(id);
        made += sleepers[i] >= 0;
    }
    TAP_OK(made == SLEEPERS, "%d sleepers", made);
    pthread_create(&late, NULL, wake_late, NULL);
    for (int i = 0; i < SLEEPERS; i++) {
        id.word[1] = (uint64_t) i;
        opal_door_ring(id);
    }
    pthread_join(late, NULL);
    TAP_OK(heard == SLEEPERS, "all hear theirs");
    id.word[1] = SLEEPERS;
    opal_door_ring(id);
    TAP_OK(true, "who is gone hears nothing, and holds nobody up");
    MPI_Finalize();
    return tap_end();
}
