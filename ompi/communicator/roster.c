/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Groups on the wire. See roster.h. */
#include "ompi/communicator/roster.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/errhandler/errhandler.h"

enum { NAME_MAX_BYTES = 511, WORD = sizeof(int64_t) };

static int64_t words_of(int64_t bytes)
{
    return (bytes + WORD - 1) / WORD;
}

int ompi_roster_room(ompi_roster_t *roster, int64_t len)
{
    roster->len = len;
    roster->words = calloc((size_t) len + 1, WORD);
    return roster->words ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

void ompi_roster_free(ompi_roster_t *roster)
{
    free(roster->words);
    *roster = (ompi_roster_t) {.len = 0};
}

/* ---- Writing ---- */

typedef struct jobs {
    const ompi_job_t **list;
    int64_t count;
    int64_t words; /* that they need */
} jobs_t;

/* The number of the job of a process; it is added if it is new; -1: no memory. Neighbours mostly
 * are of one job, so that the search begins with the last one. */
static int64_t number_of(jobs_t *jobs, uint32_t index)
{
    const ompi_job_t *job = ompi_job_of_index(index);
    for (int64_t i = jobs->count - 1; i >= 0; i--) {
        if (jobs->list[i] == job) {
            return i;
        }
    }
    const ompi_job_t **more = realloc(jobs->list, (size_t) (jobs->count + 1) * sizeof *more);
    if (!more) {
        return -1;
    }
    jobs->list = more;
    jobs->list[jobs->count] = job;
    jobs->words += 2 + words_of((int64_t) strlen(job->nspace));
    return jobs->count++;
}

/* A job's size and, above it, how numbers look there. */
static int64_t describe(const ompi_job_t *job)
{
    return (int64_t) ((uint64_t) job->mixed << 48 | (uint64_t) job->arch << 32 | job->size);
}

/* Words travel as numbers: bytes stand in them from the lowest on, whatever the order in memory. */
static void write_bytes(int64_t *to, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i / WORD] |= (int64_t) ((uint64_t) (unsigned char) bytes[i] << 8 * (i % WORD));
    }
}

static void read_bytes(char *bytes, const int64_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (char) ((uint64_t) from[i / WORD] >> 8 * (i % WORD));
    }
}

static int64_t *write_jobs(const jobs_t *jobs, int64_t *at)
{
    *at++ = jobs->count;
    for (int64_t i = 0; i < jobs->count; i++) {
        size_t bytes = strlen(jobs->list[i]->nspace);
        *at++ = describe(jobs->list[i]);
        *at++ = (int64_t) bytes;
        write_bytes(at, jobs->list[i]->nspace, bytes);
        at += words_of((int64_t) bytes);
    }
    return at;
}

int ompi_roster_write(const ompi_group_t *group, ompi_roster_t *roster)
{
    jobs_t jobs = {.list = NULL};
    int rc = MPI_SUCCESS;
    for (int32_t i = 0; i < group->size && rc == MPI_SUCCESS; i++) {
        rc = number_of(&jobs, ompi_group_world_rank(group, i)) < 0 ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    }
    if (rc == MPI_SUCCESS) {
        rc = ompi_roster_room(roster, 1 + jobs.words + group->size);
    }
    if (rc == MPI_SUCCESS) {
        int64_t *at = write_jobs(&jobs, roster->words);
        for (int32_t i = 0; i < group->size; i++) {
            uint32_t index = ompi_group_world_rank(group, i);
            int64_t job = number_of(&jobs, index);
            *at++ = job << 32 | (index - jobs.list[job]->first);
        }
    }
    free(jobs.list);
    return rc;
}

/* ---- Reading ---- */

static int refuse(void)
{
    return ompi_error(MPI_ERR_OTHER, "what the other side says of its processes makes no sense");
}

/* Reads the jobs; *at is left behind them. jobs->list has room for as many as there can be. */
static int read_jobs(const ompi_roster_t *roster, jobs_t *jobs, int64_t *at)
{
    char name[NAME_MAX_BYTES + 1];
    for (int64_t i = 0; i < jobs->count; i++) {
        if (roster->len - *at < 2) {
            return refuse();
        }
        uint64_t word = (uint64_t) roster->words[*at];
        uint32_t size = (uint32_t) word;
        int64_t bytes = roster->words[*at + 1];
        *at += 2;
        if (size < 1 || size > INT32_MAX || word >> 49 || bytes < 1 || bytes > NAME_MAX_BYTES ||
            roster->len - *at < words_of(bytes)) {
            return refuse();
        }
        read_bytes(name, roster->words + *at, (size_t) bytes);
        name[bytes] = '\0';
        *at += words_of(bytes);
        jobs->list[i] = ompi_job_meet(name, size, (uint16_t) (word >> 32), word >> 48);
        if (!jobs->list[i]) {
            return MPI_ERR_NO_MEM;
        }
    }
    return MPI_SUCCESS;
}

static int read_members(const ompi_roster_t *roster, const jobs_t *jobs, int64_t at,
                        uint64_t session, ompi_group_t **group)
{
    int64_t count = roster->len - at;
    uint32_t *indices = malloc(((size_t) count + 1) * sizeof *indices);
    if (!indices) {
        return MPI_ERR_NO_MEM;
    }
    for (int64_t i = 0; i < count; i++) {
        uint64_t member = (uint64_t) roster->words[at + i];
        uint64_t job = member >> 32;
        if (job >= (uint64_t) jobs->count || (uint32_t) member >= jobs->list[job]->size) {
            free(indices);
            return refuse();
        }
        indices[i] = jobs->list[job]->first + (uint32_t) member;
    }
    *group = ompi_group_new_list(indices, (int32_t) count, session);
    return *group ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

int ompi_roster_read(const ompi_roster_t *roster, uint64_t session, ompi_group_t **group)
{
    jobs_t jobs = {.count = roster->len > 0 ? roster->words[0] : -1};
    int64_t at = 1;
    if (jobs.count < 0 || jobs.count > roster->len / 3) {
        return refuse();
    }
    jobs.list = calloc((size_t) jobs.count + 1, sizeof *jobs.list);
    if (!jobs.list) {
        return MPI_ERR_NO_MEM;
    }
    int rc = read_jobs(roster, &jobs, &at);
    if (rc == MPI_SUCCESS) {
        rc = read_members(roster, &jobs, at, session, group);
    }
    free(jobs.list);
    return rc;
}

/* ---- Order ---- */

int ompi_roster_compare(uint32_t a, uint32_t b)
{
    const ompi_job_t *a_job = ompi_job_of_index(a), *b_job = ompi_job_of_index(b);
    if (a_job != b_job) {
        return strcmp(a_job->nspace, b_job->nspace);
    }
    return (a > b) - (a < b);
}
