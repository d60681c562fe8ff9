/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Tables of the jobs and their processes; a process's entry is made when somebody asks for it. */
#include "ompi/proc/proc.h"

#include "opal/datatype/arch.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ompi_job_t ompi_job_own;
_Atomic uint32_t ompi_procs_lost;

/* Others, the last one first. Only added to, so that readers need no lock. */
static _Atomic(ompi_job_t *) others;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int set_up(ompi_job_t *job, const char *nspace, uint32_t size, uint32_t first)
{
    job->nspace = strdup(nspace);
    job->hash = ompi_rte_hash(nspace);
    job->size = size;
    job->first = first;
    job->procs = calloc(size, sizeof *job->procs);
    return job->nspace && job->procs ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

static void tear_down(ompi_job_t *job)
{
    for (uint32_t i = 0; job->procs && i < job->size; i++) {
        ompi_proc_t *proc = atomic_load_explicit(&job->procs[i], memory_order_relaxed);
        free(proc ? atomic_load_explicit(&proc->host, memory_order_relaxed) : NULL);
        free(proc);
    }
    free(job->procs);
    free(job->nspace);
    *job = (ompi_job_t) {.size = 0};
}

int ompi_proc_init(void)
{
    int rc = set_up(&ompi_job_own, ompi_rte.nspace, ompi_rte.size, 0);
    ompi_job_own.arch = opal_arch_id(opal_arch_local());
    ompi_job_own.mixed = ompi_rte.mixed;
    if (rc != OPAL_SUCCESS) {
        tear_down(&ompi_job_own);
    }
    return rc;
}

void ompi_proc_finalize(void)
{
    ompi_job_t *job = atomic_exchange(&others, NULL);
    while (job) {
        ompi_job_t *next = job->next;
        tear_down(job);
        free(job);
        job = next;
    }
    tear_down(&ompi_job_own);
}

/* ---- Jobs ---- */

static ompi_job_t *newest(void)
{
    return atomic_load_explicit(&others, memory_order_acquire);
}

static ompi_job_t *find_job(const char *nspace)
{
    if (strcmp(nspace, ompi_job_own.nspace) == 0) {
        return &ompi_job_own;
    }
    ompi_job_t *job = newest();
    while (job && strcmp(nspace, job->nspace) != 0) {
        job = job->next;
    }
    return job;
}

/* Processes are named by their job's hash: two jobs of one hash can't be told apart. */
static bool has_hash(uint32_t hash)
{
    const ompi_job_t *job = newest();
    while (job && job->hash != hash) {
        job = job->next;
    }
    return job || hash == ompi_job_own.hash;
}

/* With the lock held. */
static ompi_job_t *add_job(const char *nspace, uint32_t size, uint16_t arch, bool mixed)
{
    ompi_job_t *last = newest();
    uint64_t first = last ? (uint64_t) last->first + last->size : ompi_job_own.size;
    bool possible = size > 0 && first + size <= INT32_MAX && !has_hash(ompi_rte_hash(nspace));
    ompi_job_t *job = possible ? calloc(1, sizeof *job) : NULL;
    if (!job) {
        return NULL;
    }
    if (set_up(job, nspace, size, (uint32_t) first) != OPAL_SUCCESS) {
        tear_down(job);
        free(job);
        return NULL;
    }
    job->arch = arch;
    job->mixed = mixed;
    job->next = last;
    atomic_store_explicit(&others, job, memory_order_release);
    return job;
}

const ompi_job_t *ompi_job_meet(const char *nspace, uint32_t size, uint16_t arch, bool mixed)
{
    pthread_mutex_lock(&lock);
    ompi_job_t *job = find_job(nspace);
    if (!job) {
        job = add_job(nspace, size, arch, mixed);
    }
    pthread_mutex_unlock(&lock);
    return job && job->size == size ? job : NULL;
}

void ompi_job_over(const char *nspace, void (*fn)(ompi_proc_t *proc))
{
    const ompi_job_t *job = find_job(nspace);
    for (uint32_t i = 0; job && job != &ompi_job_own && i < job->size; i++) {
        ompi_proc_t *proc = atomic_load_explicit(&job->procs[i], memory_order_acquire);
        if (proc) {
            atomic_store(&proc->over, true);
            fn(proc);
        }
    }
}

const ompi_job_t *ompi_job_of_index(uint32_t index)
{
    if (index < ompi_job_own.size) {
        return &ompi_job_own;
    }
    const ompi_job_t *job = newest();
    while (job && index < job->first) {
        job = job->next;
    }
    return job;
}

bool ompi_proc_is_foreign(uint32_t index)
{
    const ompi_job_t *job = ompi_job_of_index(index);
    return job->mixed || job->arch != ompi_job_own.arch;
}

/* ---- Processes ---- */

static ompi_proc_t *proc_of(const ompi_job_t *job, uint32_t rank)
{
    ompi_proc_t *proc = atomic_load_explicit(&job->procs[rank], memory_order_acquire);
    if (OPAL_LIKELY(proc != NULL)) {
        return proc;
    }
    ompi_proc_t *fresh = calloc(1, sizeof *fresh);
    if (!fresh) {
        return NULL;
    }
    fresh->job = job;
    fresh->rank = rank;
    fresh->name = (mca_btl_name_t) job->hash << 32 | rank;
    if (!atomic_compare_exchange_strong_explicit(&job->procs[rank], &proc, fresh,
                                                 memory_order_acq_rel, memory_order_acquire)) {
        free(fresh); /* another thread was faster */
        return proc;
    }
    return fresh;
}

ompi_proc_t *ompi_proc_of_rank_slow(uint32_t index)
{
    const ompi_job_t *job = ompi_job_of_index(index);
    return proc_of(job, index - job->first);
}

ompi_proc_t *ompi_proc_of_name(mca_btl_name_t name)
{
    uint32_t rank = (uint32_t) name, hash = (uint32_t) (name >> 32);
    const ompi_job_t *job = hash == ompi_job_own.hash ? &ompi_job_own : newest();
    while (job && job->hash != hash) {
        job = job->next;
    }
    return job && rank < job->size ? proc_of(job, rank) : NULL;
}

ompi_proc_t *ompi_proc_self(void)
{
    return ompi_proc_of_rank(ompi_rte.rank);
}

/* ---- What the runtime knows of it ---- */

bool ompi_proc_is_local(const ompi_proc_t *proc, uint32_t *local_rank)
{
    return proc->job == &ompi_job_own && ompi_rte_is_local(proc->rank, local_rank);
}

const char *ompi_proc_host(ompi_proc_t *proc)
{
    if (proc->job == &ompi_job_own) {
        return ompi_rte_host_of(proc->rank);
    }
    char *known = atomic_load(&proc->host);
    if (!known) {
        char *found = ompi_rte_find_host(proc->job->nspace, proc->rank);
        if (found && !atomic_compare_exchange_strong(&proc->host, &known, found)) {
            free(found); /* another thread was faster */
        } else {
            known = found;
        }
    }
    return known ? known : "unknown";
}

const char *ompi_proc_text(const ompi_proc_t *proc, char text[OMPI_PROC_TEXT_SIZE])
{
    const char *nspace = proc->job->nspace, *number = strrchr(nspace, '.');
    bool numbered = strncmp(nspace, "mpirun-", strlen("mpirun-")) == 0 && number;
    if (proc->job == &ompi_job_own) {
        snprintf(text, OMPI_PROC_TEXT_SIZE, "%" PRIu32, proc->rank);
    } else {
        snprintf(text, OMPI_PROC_TEXT_SIZE, "%" PRIu32 " of job %s", proc->rank, numbered ? number + 1 : nspace);
    }
    return text;
}

int ompi_proc_get(const ompi_proc_t *proc, const char *key, ompi_rte_get_fn_t fn, void *context)
{
    return ompi_rte_get(proc->job == &ompi_job_own ? NULL : proc->job->nspace, proc->rank, key, fn,
                        context);
}
