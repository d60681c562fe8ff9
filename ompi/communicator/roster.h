/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The members of a group in a form that travels: indices of processes mean something in one process
 * only. In 64-bit words: number of jobs; for each its size, the length of its name, and its name in
 * as many words as needed; then for each member its job's number in the upper half, its rank in the
 * lower one.
 */
#ifndef OMPI_COMMUNICATOR_ROSTER_H
#define OMPI_COMMUNICATOR_ROSTER_H

#include "ompi/group/group.h"

typedef struct ompi_roster {
    int64_t *words;
    int64_t len; /* in words */
} ompi_roster_t;

/* MPI error classes. */
int ompi_roster_write(const ompi_group_t *group, ompi_roster_t *roster);
/* The same members here, of that session (group.h); jobs that are new become known. A roster that makes no sense is
 * MPI_ERR_OTHER. */
int ompi_roster_read(const ompi_roster_t *roster, uint64_t session, ompi_group_t **group);
/* Room to receive one of that many words. */
int ompi_roster_room(ompi_roster_t *roster, int64_t len);
void ompi_roster_free(ompi_roster_t *roster);

/* Order of two processes, given as indices, that is the same in all processes. */
int ompi_roster_compare(uint32_t a, uint32_t b);

#endif
