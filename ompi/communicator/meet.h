/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * How two processes without a common communicator make one: over any channel that swaps texts
 * between them they say who they are and vote for a context. Sides of MPI_Comm_accept and
 * MPI_Comm_connect meet so (over the launcher's name service), and those of MPI_Comm_join (over the
 * user's socket).
 */
#ifndef OMPI_COMMUNICATOR_MEET_H
#define OMPI_COMMUNICATOR_MEET_H

#include "ompi/communicator/communicator.h"

typedef struct ompi_meeting {
    /* Hand `mine` to the other side and wait for its text: *theirs, to be freed. Both sides call it
     * equally often. An MPI error class, told by ompi_error(). */
    int (*swap)(void *context, const char *mine, char **theirs);
    void *context;
    int failure; /* not MPI_SUCCESS: this side could not even begin */
    int32_t *note; /* a number of the root's that all of its side are given, whatever comes of it; NULL: none */
} ompi_meeting_t;

/* *bridge: a communicator of the two, *peer: the other's rank in it. */
int ompi_comm_meet(const ompi_meeting_t *meeting, ompi_communicator_t **bridge, int *peer);

/* The whole of `local` makes an intercommunicator with the other side's, after its process `root`
 * has met the other root by `meeting` (significant at the root, but for the note; after a failure
 * there, all of `local` return its error, for its reason). */
int ompi_comm_connect_meeting(ompi_communicator_t *local, int root, const ompi_meeting_t *meeting,
                              ompi_communicator_t **newcomm);

#endif
