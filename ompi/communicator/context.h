/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Context ids: which are free here, and how the processes of a new communicator agree on one.
 *
 * Every process holds one free slot in reserve and votes for it; one reduction tells whether all
 * voted for the same. If not, each tries to reserve the highest that was voted for, or else the
 * next free one above it, and they vote again. Nobody ever waits for another creation of a
 * communicator in the same process, so that threads can create communicators in any order. Votes
 * only go up; after some rounds each creation goes up by steps of its own, so that two of them that
 * run into each other part.
 */
#ifndef OMPI_COMMUNICATOR_CONTEXT_H
#define OMPI_COMMUNICATOR_CONTEXT_H

#include "ompi/communicator/communicator.h"

/* Which processes are concerned, and how they reach each other. */
typedef struct ompi_comm_agreement {
    ompi_communicator_t *comm; /* messages go over it, between its local group */
    const int32_t *ranks;      /* in `comm` of the processes concerned; NULL: all */
    int32_t size, me;          /* number of them, and which we are */
    int tag;
    /* Two groups: their first processes exchange over `bridge`; NULL: one group. */
    ompi_communicator_t *bridge;
    int32_t bridge_peer;       /* rank there of the other group's first process */
    int bridge_tag;
} ompi_comm_agreement_t;

enum {
    OMPI_COMM_VALUES = 4,      /* of a vote */
    OMPI_COMM_VALUES_MAX = 16, /* at most, of one agreement */
};

/*
 * values[i] becomes the maximum over all processes; an MPI error class. An error goes to all that need what is
 * missing: after one, this process's messages say so (MCA_PML_FAILED). That a message can't be sent is none: the
 * values are known here, as they are to all that do not hear from the process that is gone. So, in a tree, whoever
 * has an error is below that process, and nobody waits in vain in another agreement that the others go on with.
 */
int ompi_comm_allmax(const ompi_comm_agreement_t *agreement, int64_t *values, int count);

/* The messages of allmax one after the other: each is to be done before the next is asked for, also after an error. */
typedef enum {
    OMPI_COMM_STEP_END,
    OMPI_COMM_STEP_SEND,    /* the values */
    OMPI_COMM_STEP_RECEIVE, /* the values */
    OMPI_COMM_STEP_COLLECT, /* receive others, take the maxima */
    /* With the other group: send the values, receive others, take the maxima. */
    OMPI_COMM_STEP_SWAP,
} ompi_comm_step_kind_t;

typedef struct ompi_comm_step {
    ompi_comm_step_kind_t kind;
    ompi_communicator_t *comm;
    int32_t peer;
    int tag;
    int phase;   /* how far it is; zero at the start */
    int32_t bit;
} ompi_comm_step_t;

void ompi_comm_next_step(const ompi_comm_agreement_t *agreement, ompi_comm_step_t *step);
void ompi_comm_take_maxima(int64_t *values, const int64_t *others, int count);

/* The vote on a context, round by round; see above. */
typedef struct ompi_comm_vote {
    bool member;
    int64_t slot;    /* in reserve; -1: none */
    uint32_t uses;
    int failure;     /* MPI error class of this process */
    int round;
    int64_t values[OMPI_COMM_VALUES];
} ompi_comm_vote_t;

void ompi_comm_vote_start(ompi_comm_vote_t *vote, bool member, int failure);
/* After each allmax of vote->values: true if it was the last one. Then *rc tells how it ended, and
 * *context is the new one of a member. */
bool ompi_comm_vote_count(const ompi_comm_agreement_t *agreement, ompi_comm_vote_t *vote, int *rc,
                          uint32_t *context);
/* Messages failed: the vote is over. */
void ompi_comm_vote_abandon(ompi_comm_vote_t *vote);

/* Internal tags of point-to-point messages, apart from those of collectives. */
enum {
    OMPI_COMM_TAG_AGREE = -5,
    OMPI_COMM_TAG_BRIDGE = -6,
    OMPI_COMM_TAG_EXCHANGE = -7,
    OMPI_COMM_TAG_PARTITIONED = -8, /* setup messages of partitioned communication */
};
/* Tags that depend on a tag of the user: far below those of collectives. */
int ompi_comm_tag_of_group(int tag);
int ompi_comm_tag_of_bridge(int tag);
int ompi_comm_tag_of_string(int hash);
int ompi_comm_tag_of_idup(uint32_t number);
/* Tags of partitioned communication, counted by the sender. They come again when so many have been
 * used: a receive that was matched as long ago as that and not started since would be confused. */
enum { OMPI_COMM_PARTITION_TAGS = 1 << 27 };
int ompi_comm_tag_of_partition(uint32_t number);

/* All of an intracommunicator, a part of one, or both groups of an intercommunicator. */
void ompi_comm_agree_all(ompi_comm_agreement_t *agreement, ompi_communicator_t *comm);
void ompi_comm_agree_some(ompi_comm_agreement_t *agreement, ompi_communicator_t *comm,
                          const int32_t *ranks, int32_t size, int32_t me, int tag);
/* `local_comm` and another one's local group; the processes with rank 0 ... of both meet on
 * `bridge`. */
void ompi_comm_agree_bridged(ompi_comm_agreement_t *agreement, ompi_communicator_t *local_comm,
                             ompi_communicator_t *bridge, int32_t bridge_peer, int bridge_tag);

/*
 * Bring new communicators to life, all or none: agree that all have succeeded so far (failure: an
 * MPI error class, or MPI_SUCCESS) and on a context, and enable it. *newcomm is NULL in processes
 * that take part without being members. On failure *newcomm is released and NULL.
 */
int ompi_comm_establish(const ompi_comm_agreement_t *agreement, ompi_communicator_t **newcomm,
                        int failure);

/* The poller of MPI_Comm_idup. */
void ompi_comm_idup_finalize(void);

/* Of a name that is the same in all processes, where a number is needed. */
static inline uint64_t ompi_comm_hash_of(const char *name)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (; *name; name++) {
        hash = (hash ^ (unsigned char) *name) * 1099511628211u;
    }
    return hash;
}

/* MPI_Intercomm_create. `failure`: an MPI error class if the leader's arguments are wrong; then all of `local` fail. */
int ompi_comm_connect(ompi_communicator_t *local, int leader, ompi_communicator_t *peer_comm,
                      int remote_leader, int tag, int failure, ompi_communicator_t **newcomm);

/* ---- The table; used by communicator.c ---- */

int ompi_context_bind(uint32_t context, ompi_communicator_t *comm);
/* Forgets the communicator and frees the slot. */
void ompi_context_release(uint32_t context);
/* The communicators that are left, one after the other; start with *slot = 0. NULL: no more. */
ompi_communicator_t *ompi_context_next(uint32_t *slot);
void ompi_context_finalize(void);

#endif
