/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which links the messages of a communicator may use: a policy for each communicator, LA-MPI's `bind`.
 *
 * Without one (the engine's default) a message takes the peer's latency and bandwidth lists. A policy is asked once for
 * every peer and link and answers yes or no; the engine asks whenever it chooses a link for a message of the
 * communicator, so it must be cheap and always answer alike. It is a preference, not a wall: where no link that it
 * chose leads to a peer, or none is up at present, all links are used, as a hint may not make a program fail. What goes
 * without it: the engine's own control (acknowledgments, credit), and eager messages that a failed link gave back.
 *
 * The info key `hawser_links` makes a policy of names; mca_pml.bind_comm() takes any.
 */
#ifndef MCA_PML_BASE_BIND_H
#define MCA_PML_BASE_BIND_H

#include <stdbool.h>
#include <stdint.h>

#include "ompi/include/ompi/handles.h"
#include "ompi/mca/pml/base/pml_base_peer.h"

#define MCA_PML_BIND_KEY "hawser_links"

typedef struct mca_pml_bind {
    /* May messages to the peer use the link? Under the peer's lock. */
    bool (*may_use)(const struct mca_pml_bind *bind, const mca_pml_peer_t *peer, const mca_pml_link_t *link);
} mca_pml_bind_t;

#pragma GCC visibility push(default)

/* A peer without a direct link: where fast paths look for one whose communicator has a policy. */
extern mca_pml_peer_t mca_pml_base_nowhere;

/* Of no communicator: where fast paths look for who sent last. */
extern struct mca_pml_comm_peer mca_pml_base_nobody;

/* The links that are up and chosen, as bits by their index in peer->links; if there are none, all that are up. */
uint32_t mca_pml_base_bind_links(const mca_pml_bind_t *bind, const mca_pml_peer_t *peer);
/* The same for pieces of long messages: where no chosen link is up, the bandwidth list. */
uint32_t mca_pml_base_bind_pieces(const mca_pml_bind_t *bind, const mca_pml_peer_t *peer);

/* A policy of names: "tcp:eth1,shm" (links as the link report calls them, or BTLs), "^tcp:eth0" (all but these). A name
 * that no link of this process has is said once. NULL in *bind: no name is known, or "" was given: any link. MPI_SUCCESS
 * or MPI_ERR_NO_MEM. */
int mca_pml_base_bind_names(const char *names, mca_pml_bind_t **bind);
/* Frees what mca_pml_base_bind_names() made; NULL is allowed. */
void mca_pml_base_bind_free(mca_pml_bind_t *bind);

/* Have the communicator, which the PML knows, follow its info: MPI_SUCCESS or MPI_ERR_NO_MEM. *taken: the value is in use. */
int mca_pml_base_bind_comm(ompi_communicator_t *comm, const char *names, bool *taken);

#pragma GCC visibility pop

#endif
