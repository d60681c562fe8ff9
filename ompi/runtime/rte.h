/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The only door from an MPI process to whatever started it: PMIx. A process that nobody started is
 * a world of one, with everything answered here. After ompi_rte_init() only non-blocking PMIx calls
 * are made; their callbacks run in libpmix's thread, enqueue, and ring the progress engine's
 * doorbell.
 */
#ifndef OMPI_RUNTIME_RTE_H
#define OMPI_RUNTIME_RTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hawser/btl.h"
#include "opal/constants.h"

#pragma GCC visibility push(default) /* components use these */

typedef struct ompi_rte {
    char *nspace;              /* the job's name, as PMIx has it */
    mca_btl_name_t self;       /* hash of nspace << 32 | rank */
    uint32_t rank, size;       /* in MPI_COMM_WORLD */
    uint32_t universe_size;    /* 0: unknown */
    uint32_t appnum;
    uint32_t local_rank, local_size;
    uint32_t node_id, node_count;
    char *host;
    char *session_dir;         /* NULL: none */
    uint32_t *local_peers;     /* world ranks on this node, ascending, local_size of them */
    bool singleton;
    bool oversubscribed;       /* more local processes than processors we may use */
    bool mixed;                /* the launcher says: the job's hosts are not all of one architecture */
    uint8_t secret[32];        /* of the job */
} ompi_rte_t;

extern ompi_rte_t ompi_rte;

/* Find out who we are. A clear error if a launcher started several of us without PMIx. */
int ompi_rte_init(void);
/* `abort`: leave without a farewell. */
void ompi_rte_finalize(void);

/* Stay here until all processes of the job are here. Drives progress. OPAL_ERR_PEER_FAILED: one of
 * them is gone; that is the launcher's to report. */
int ompi_rte_fence(void);

/* Parting from processes of other jobs. Launchers that are not ours would have to be told in their own way
 * that the jobs were connected, and can't do it. */
bool ompi_rte_can_part(void);
/* Tell the launcher that this job as a whole has nothing more to do with another one: the failure of one is
 * no more the other's. To be called by one process. Drives progress. */
int ompi_rte_part_job(const char *nspace);
/* Stay here until all of these processes, of this job and others, are here, or `vain` says that this will never be. Drives
 * progress. */
typedef struct ompi_rte_id {
    const char *nspace;
    uint32_t rank;
} ompi_rte_id_t;
int ompi_rte_part(const ompi_rte_id_t *ids, size_t count, bool (*vain)(void *context), void *context);

/* Publish this process's value under a key; to be followed by ompi_rte_commit(). Others find what was committed before
 * a fence, of which ompi_rte_begin() starts the first, once and in the background: look-ups and fences wait for it. */
int ompi_rte_put(const char *key, const void *data, size_t len);
int ompi_rte_commit(void);
int ompi_rte_begin(void);

/* Look up what a process published: of this job (nspace NULL), or of another one that has been met.
 * fn runs from progress (or from inside the call, if the answer is known), with status OPAL_SUCCESS
 * and the data (valid during the call), or OPAL_ERR_NOT_FOUND. */
typedef void (*ompi_rte_get_fn_t)(int status, const void *data, size_t len, void *context);
int ompi_rte_get(const char *nspace, uint32_t rank, const char *key, ompi_rte_get_fn_t fn,
                 void *context);
/* Upper half of the names of a job's processes. */
uint32_t ompi_rte_hash(const char *nspace);

/* From now on fn runs, from progress, when the launcher tells that a process of this job (or of another
 * one: its name) has ended without MPI_Finalize, or that another job is over (OMPI_RTE_ALL_RANKS). Not all launchers do. */
#define OMPI_RTE_ALL_RANKS UINT32_MAX
typedef void (*ompi_rte_lost_fn_t)(const char *nspace, uint32_t rank);
void ompi_rte_watch(ompi_rte_lost_fn_t fn);

/* Is this rank on our node? O(log local_size). `local_rank` may be NULL. */
bool ompi_rte_is_local(uint32_t rank, uint32_t *local_rank);
/* Host name of a rank; "unknown" if nobody tells. Valid until finalize. */
const char *ompi_rte_host_of(uint32_t rank);

/* That of a process of another job, to be freed; NULL: not known on this node. */
char *ompi_rte_find_host(const char *nspace, uint32_t rank);

/* End the job with this code; `text` says why. Does not return. */
void ompi_rte_abort(int code, const char *text) __attribute__((noreturn));

#pragma GCC visibility pop

#endif
