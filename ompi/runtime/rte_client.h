/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the parts of the PMIx client behind rte.h share: rte.c knows who we are and where the others are, rte_secret.c the job's secret,
 * rte_fence.c waits for others, rte_cards.c publishes and looks up, rte_watch.c hears of those that are gone. libpmix calls back in a
 * thread of its own: what it brings is copied there and handed to the progress engine.
 */
#ifndef OMPI_RUNTIME_RTE_CLIENT_H
#define OMPI_RUNTIME_RTE_CLIENT_H

#include <pmix.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "ompi/runtime/rte.h"

/* Job information from our mpirun; else published by rank 0. */
#define OMPI_RTE_SECRET_KEY "hawser.job.secret"

/* A fence that goes on. */
typedef struct ompi_rte_fence {
    _Atomic int32_t result; /* 0: not yet; 1: done; negative: a PMIx status */
} ompi_rte_fence_t;

typedef struct ompi_rte_client {
    pmix_proc_t proc;       /* we; without a name: nobody is there to ask */
    bool own_launcher;      /* the only one that gives a secret */
    bool collect_cards;     /* the starting fence brings all addresses to every node */
    bool closed;            /* nobody wants an answer any more; of progress */
    _Atomic bool some_ended; /* of this job, in order: no fence of all of it will be over any more. Told in progress */
    /* Tells that all have published. It goes on while MPI_Init returns; look-ups wait for it. */
    ompi_rte_fence_t start;
} ompi_rte_client_t;

extern ompi_rte_client_t ompi_rte_client;

/* Random bytes from the system. */
int ompi_rte_random(void *to, size_t len);
/* Sets ompi_rte.secret. `hex`: our mpirun's; NULL: it gave none. Part of the start: blocking calls. */
int ompi_rte_secret_find(const char *hex);

bool ompi_rte_fence_is_over(ompi_rte_fence_t *fence);
/* Any thread. */
void ompi_rte_fence_end(ompi_rte_fence_t *fence, pmix_status_t status);
/* Begin one of all of the job. `done` comes in libpmix's thread, or from in here, with the fence as its context. */
int ompi_rte_fence_start(bool collect, pmix_op_cbfunc_t done, ompi_rte_fence_t *fence);

/* The starting fence will not be over any more, if it isn't: who has published is found, who has not is gone. */
void ompi_rte_give_up_start(void);
void ompi_rte_cards_finalize(void);

#endif
