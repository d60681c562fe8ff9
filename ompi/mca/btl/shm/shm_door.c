/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The doorbell: a datagram socket with an abstract name (nothing on disk, gone with its process),
 * rung by those who find a flag of the sleeper's set. A datagram's content means nothing.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>
#include "ompi/mca/btl/shm/shm.h"

static socklen_t shm_door_name(struct sockaddr_un *address, mca_btl_name_t name, uint64_t random)
{
    memset(address, 0, sizeof(*address));
    address->sun_family = AF_UNIX; /* sun_path[0] = 0: abstract */
    int n = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
                     "hawser.%016" PRIx64 ".%016" PRIx64, name, random);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static void shm_door_rung(int fd, unsigned what, void *context)
{
    (void)what, (void)context; /* the poller that runs next does the rest */
    opal_bells_take(fd);
}

int mca_btl_shm_door_open(shm_module_t *m)
{
    struct sockaddr_un address;
    socklen_t len = shm_door_name(&address, m->services->job->self, m->segment.id.random);
    m->door = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (m->door < 0 || bind(m->door, (struct sockaddr *)&address, len) != 0) {
        SHM_LOG(m, MCA_LOG_WARN, "making the doorbell's socket failed: %s", strerror(errno));
        mca_btl_shm_door_close(m);
        return MCA_ERR_NOT_AVAILABLE;
    }
    int rc = m->services->event_add(m->door, MCA_BTL_EVENT_READ | MCA_BTL_EVENT_LATE, shm_door_rung, m, &m->door_event);
    if (rc != MCA_SUCCESS) {
        mca_btl_shm_door_close(m);
    }
    return rc;
}

void mca_btl_shm_door_close(shm_module_t *m)
{
    if (m->door_event) {
        m->services->event_del(m->door_event);
        m->door_event = NULL;
    }
    if (m->door >= 0) {
        close(m->door);
        m->door = -1;
    }
}

void mca_btl_shm_door_address(mca_btl_endpoint_t *ep)
{
    ep->door_len = shm_door_name(&ep->door, ep->name, ep->segment.id.random);
}

OPAL_COLD void mca_btl_shm_fence(void)
{
    atomic_thread_fence(memory_order_seq_cst);
}

/* Of several who find the flag set one rings; where that could not be, the next one does. */
OPAL_COLD void mca_btl_shm_door_ring(mca_btl_endpoint_t *ep, _Atomic uint32_t *flag)
{
    uint32_t set = 1;
    if (!atomic_compare_exchange_strong(flag, &set, 0) || ep->door_len == 0) {
        return;
    }
    int error = opal_bell_ring(ep->module->door, &ep->door, ep->door_len);
    if (error == ECONNREFUSED) {
        ep->watched = true; /* probably dead; the watch makes sure */
        atomic_store_explicit(&ep->module->watch_wanted, true, memory_order_relaxed);
    } else if (error) {
        atomic_store(flag, 1);
    }
}

/* The name is bound as long as its process lives, or a child that it has forked, and never again. */
bool mca_btl_shm_door_there(const mca_btl_endpoint_t *ep)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return true; /* can't tell */
    }
    bool there = connect(fd, (const struct sockaddr *)&ep->door, ep->door_len) == 0 || errno != ECONNREFUSED;
    close(fd);
    return there;
}
