/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lanes: modules beside the main one, each with a segment of its own in which there are rings and nothing else, for the small messages of
 * threads that would fight over the main one's. A lane's segment leads to the same lane of the peers, by the slots of that.
 *
 * Whichever thread waits polls a lane, one at a time; what else is the poller's alone, the timer that watches peers, enters it.
 */
#include <sched.h>
#include <stddef.h>
#include <unistd.h>
#include "ompi/mca/btl/shm/shm.h"

enum { SHM_LANES_AUTO_MAX = 16 };

/* As many as threads can be at work at a time. Processes that are not bound share the processors. */
uint32_t mca_btl_shm_lane_count(const mca_btl_services_t *services)
{
    cpu_set_t processors;
    bool known = services->struct_size > offsetof(mca_btl_services_t, poller_lane) && services->poller_lane;
    if (!known || !services->threads) {
        return 0;
    }
    if (mca_btl_shm_params.lanes >= 0) {
        return (uint32_t)mca_btl_shm_params.lanes;
    }
    long mine = sched_getaffinity(0, sizeof(processors), &processors) == 0 ? CPU_COUNT(&processors) : SHM_LANES_AUTO_MAX;
    long share = sysconf(_SC_NPROCESSORS_ONLN) / (long)services->job->local_size;
    long count = mine < share ? mine : share;
    count = count < SHM_LANES_AUTO_MAX ? count : SHM_LANES_AUTO_MAX;
    return count < 2 || services->job->local_size < 2 ? 0 : (uint32_t)count;
}

/* A lane that nobody has sent to is seldom polled: each time, it is looked for the first one that does. */
static int shm_lane_poll(void *context)
{
    shm_module_t *m = context;
    if (OPAL_UNLIKELY(m->rx_count == 0)) {
        mca_btl_shm_find_announced(m);
    }
    return mca_btl_shm_poll(m);
}

const mca_btl_poller_t mca_btl_shm_lane_poller = {.poll = shm_lane_poll, .arm = mca_btl_shm_arm, .disarm = mca_btl_shm_disarm};
