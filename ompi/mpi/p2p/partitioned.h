/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partitioned communication (MPI-5.0 chapter 4) over the PML. The sender cuts its buffer into messages
 * of whole partitions, one each unless there are very many, and tells the receiver once, in a setup message,
 * how: each message has a tag of its own, so that it can leave as soon as it is ready, in any order,
 * and lands in its place. The receiver's partitions need not be the sender's: they are looked up in
 * the messages that cover them. Setup messages match initialisations in their order, by source and
 * tag; from then on both sides start and end without hearing of each other.
 */
#ifndef OMPI_MPI_P2P_PARTITIONED_H
#define OMPI_MPI_P2P_PARTITIONED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ompi/datatype/datatype.h"
#include "ompi/request/request.h"

/* Words of a setup message; all are int64_t. */
enum {
    OMPI_PART_TAG,       /* the user's */
    OMPI_PART_FIRST_TAG, /* of the first message, see ompi_comm_tag_of_partition() */
    OMPI_PART_MESSAGES,
    OMPI_PART_CHUNK,     /* bytes of each message but the last */
    OMPI_PART_TOTAL,     /* bytes */
    OMPI_PART_ARCH,      /* how the sender's numbers look: opal_arch_id() */
    OMPI_PART_WORDS,
};

/* Most messages of one operation: each costs some hundred bytes on both sides. More partitions than
 * that share messages. */
enum { OMPI_PART_MESSAGES_MAX = 1 << 14 };

struct ompi_part;

typedef struct ompi_part_message {
    struct ompi_part *part;
    char *bounce;        /* receives: where the bytes go first, if not into the buffer */
    atomic_bool arrived; /* receives: in this round */
} ompi_part_message_t;

/* What both directions share. */
typedef struct ompi_part {
    ompi_request_t super;
    int partitions;
    int messages;
    ompi_part_message_t *message;
    _Atomic int pending; /* messages that are not complete, and one until all are started */
    _Atomic int error;   /* of any of them */
    /* A message is complete; called before that counts. May be NULL. */
    void (*done)(ompi_part_message_t *message, const MPI_Status *status);
    void (*set_status)(struct ompi_part *part); /* all are complete */
} ompi_part_t;

/* Room for the messages. An MPI error class. */
int ompi_part_new_messages(ompi_part_t *part, int messages);
void ompi_part_free_messages(ompi_part_t *part);
/* A new round: all messages are pending, and may be started. It does not end before ompi_part_begun();
 * after that the operation may be gone. */
void ompi_part_begin(ompi_part_t *part);
void ompi_part_begun(ompi_part_t *part);
/* The PML has taken the message, or has not: rc. Its end is counted. */
void ompi_part_started(ompi_part_message_t *message, int rc, ompi_request_t *request);
/* The bytes of so many partitions of so many elements; an MPI error class. */
int ompi_part_size(const ompi_datatype_t *type, int partitions, MPI_Count count, size_t *bytes);
/* Partitioned operations cannot be cancelled. */
int ompi_part_cancel(ompi_request_t *request);

/* The user has no more use for the communicator: nothing is kept there for receives that have been freed. */
void ompi_part_leave(const ompi_communicator_t *comm);
/* Before communicators go. */
void ompi_part_finalize(void);

#endif /* OMPI_MPI_P2P_PARTITIONED_H */
