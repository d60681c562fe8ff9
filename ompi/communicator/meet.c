/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A communicator for two processes that had none in common. See meet.h. */
#include "ompi/communicator/meet.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "ompi/communicator/context.h"
#include "ompi/communicator/roster.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/mca/coll/coll.h"
#include "opal/util/thread_text.h"

/* Version of the texts: both sides must be of the same. */
#define GREETING "hawser-meet-2"

/* ---- Who is there ---- */

typedef struct other {
    uint32_t index; /* of the process (proc.h) */
    uint32_t salt;  /* of this meeting, the same on both sides */
} other_t;

/* What the other side says of itself. */
static int read_greeting(const char *text, other_t *other)
{
    char nspace[512];
    uint32_t rank, size;
    uint16_t arch;
    unsigned mixed;
    if (sscanf(text, GREETING " %511s %" SCNu32 " %" SCNu32 " %" SCNu16 " %u %" SCNu32, nspace,
               &rank, &size, &arch, &mixed, &other->salt) != 6 || rank >= size || mixed > 1) {
        return ompi_error(MPI_ERR_OTHER, "the other side does not speak as this version of Hawser "
                          "does (it says \"%.60s\")", text);
    }
    const ompi_job_t *job = ompi_job_meet(nspace, size, arch, mixed);
    if (!job) {
        return MPI_ERR_NO_MEM;
    }
    other->index = job->first + rank;
    return other->index != ompi_rte.rank
               ? MPI_SUCCESS
               : ompi_error(MPI_ERR_COMM, "both sides are the same process");
}

static int swap_names(const ompi_meeting_t *meeting, other_t *other)
{
    char *mine, *theirs = NULL;
    uint32_t salt = 0;
    if (getrandom(&salt, sizeof salt, 0) != (ssize_t) sizeof salt) {
        return ompi_error(MPI_ERR_OTHER, "the system gives no random numbers");
    }
    if (asprintf(&mine, GREETING " %s %" PRIu32 " %" PRIu32 " %" PRIu16 " %u %" PRIu32,
                 ompi_rte.nspace, ompi_rte.rank, ompi_rte.size, ompi_job_own.arch,
                 (unsigned) ompi_job_own.mixed, salt) < 0) {
        return MPI_ERR_NO_MEM;
    }
    int rc = meeting->swap(meeting->context, mine, &theirs);
    free(mine);
    if (rc == MPI_SUCCESS) {
        rc = read_greeting(theirs, other);
        other->salt ^= salt;
    }
    free(theirs);
    return rc;
}

/* ---- A context for the two ---- */

static int swap_votes(const ompi_meeting_t *meeting, int64_t *values)
{
    char mine[128], *theirs = NULL;
    int64_t others[OMPI_COMM_VALUES];
    snprintf(mine, sizeof mine, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, values[0],
             values[1], values[2], values[3]);
    int rc = meeting->swap(meeting->context, mine, &theirs);
    if (rc == MPI_SUCCESS &&
        sscanf(theirs, "%" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64, &others[0], &others[1],
               &others[2], &others[3]) != OMPI_COMM_VALUES) {
        rc = ompi_error(MPI_ERR_OTHER, "the other side's answer makes no sense: \"%.60s\"", theirs);
    }
    free(theirs);
    if (rc == MPI_SUCCESS) {
        ompi_comm_take_maxima(values, others, OMPI_COMM_VALUES);
    }
    return rc;
}

static int agree(const ompi_meeting_t *meeting, uint32_t salt, int failure, uint32_t *context)
{
    /* Only tells this vote from others that go on at the same time. */
    const ompi_comm_agreement_t agreement = {.comm = &ompi_comm_world, .tag = (int) salt};
    ompi_comm_vote_t vote;
    int rc;
    ompi_comm_vote_start(&vote, true, failure);
    do {
        rc = swap_votes(meeting, vote.values);
        if (rc != MPI_SUCCESS) {
            ompi_comm_vote_abandon(&vote);
            return rc;
        }
    } while (!ompi_comm_vote_count(&agreement, &vote, &rc, context));
    return rc;
}

/* Both sides put the two in the same order. */
static ompi_communicator_t *pair_with(uint32_t index, int *peer)
{
    uint32_t *members = malloc(2 * sizeof *members);
    if (!members) {
        return NULL;
    }
    *peer = ompi_roster_compare(index, ompi_rte.rank) > 0;
    members[*peer] = index;
    members[1 - *peer] = ompi_rte.rank;
    ompi_group_t *group = ompi_group_new_list(members, 2, 0);
    ompi_communicator_t *pair = group ? ompi_comm_new(group, NULL) : NULL;
    if (group) {
        ompi_group_release(group);
    }
    return pair;
}

int ompi_comm_meet(const ompi_meeting_t *meeting, ompi_communicator_t **bridge, int *peer)
{
    uint32_t context;
    other_t other;
    *bridge = NULL;
    int rc = swap_names(meeting, &other);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    ompi_communicator_t *pair = pair_with(other.index, peer);
    rc = agree(meeting, other.salt, pair ? MPI_SUCCESS : MPI_ERR_NO_MEM, &context);
    if (rc == MPI_SUCCESS) {
        rc = ompi_comm_enable(pair, context);
    }
    if (rc == MPI_SUCCESS) {
        *bridge = pair;
    } else if (pair) {
        ompi_comm_release(pair);
    }
    return rc;
}

/* ---- Both sides as a whole ---- */

static int tell(ompi_communicator_t *local, int root, void *data, size_t count, MPI_Datatype type)
{
    return local->coll->bcast.fn(data, count, ompi_datatype_builtin(type), root, local,
                                 local->coll->bcast.module);
}

/* All of `local` fail for the root's reason. It is said in the root's words, so that the user hears it once, whoever is
 * the first to say it. */
static int tell_reason(ompi_communicator_t *local, int root, int rc)
{
    char why[OPAL_THREAD_TEXT_SIZE] = "";
    if (local->my_rank == root) {
        snprintf(why, sizeof why, "%s", ompi_error_reason(rc));
    }
    if (tell(local, root, why, sizeof why, MPI_CHAR) != MPI_SUCCESS && local->my_rank != root) {
        *why = '\0';
    }
    why[sizeof why - 1] = '\0';
    return *why ? ompi_error(rc, "%s", why)
                : ompi_error(rc, "the root (rank %d) could not connect", root);
}

/* All of `local` learn how the root's part of the meeting went. */
static int tell_all(ompi_communicator_t *local, int root, int rc, int32_t *note)
{
    int32_t said[] = {rc, note ? *note : 0};
    int told = tell(local, root, said, 2, MPI_INT32_T);
    if (told != MPI_SUCCESS) {
        return rc != MPI_SUCCESS ? rc : told;
    }
    if (note) {
        *note = said[1];
    }
    return said[0] == MPI_SUCCESS ? MPI_SUCCESS : tell_reason(local, root, said[0]);
}

int ompi_comm_connect_meeting(ompi_communicator_t *local, int root, const ompi_meeting_t *meeting,
                              ompi_communicator_t **newcomm)
{
    ompi_communicator_t *bridge = NULL;
    int peer = 0, rc = MPI_SUCCESS;
    *newcomm = NULL;
    if (local->my_rank == root) {
        rc = meeting->failure;
        if (rc == MPI_SUCCESS) {
            rc = ompi_comm_meet(meeting, &bridge, &peer);
        }
    }
    rc = tell_all(local, root, rc, meeting->note);
    if (rc == MPI_SUCCESS) {
        rc = ompi_comm_connect(local, root, bridge, peer, 0, MPI_SUCCESS, newcomm);
    }
    if (bridge) {
        ompi_comm_free(bridge);
    }
    return rc;
}
