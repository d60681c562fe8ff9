/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Helpers of the engine that need not be compiled into every PML. */
#ifndef MCA_PML_BASE_UTIL_H
#define MCA_PML_BASE_UTIL_H

#include "ompi/mca/pml/base/pml_base_request.h"

#pragma GCC visibility push(default)

/* Memory ran out where a message would be lost: say so and end the job. */
void mca_pml_base_out_of_memory(const char *what) __attribute__((noreturn, cold));

/* ... for what has come over a link: mca_btl_upcalls_t.no_memory. */
void mca_pml_base_no_memory(mca_btl_module_t *module);
/* ... where it is sent again: not before that has gone on for pml_base_path_timeout. */
void mca_pml_base_no_memory_yet(mca_btl_module_t *module);
/* Memory for that way, which frees some; `hold`: from the start on, else at the end. */
void mca_pml_base_reserve(bool hold);

/* Tell the user, once per peer, that no link leads there and why. */
void mca_pml_base_report_unreachable(mca_pml_peer_t *peer);

/* What is promised of the wildcards used on a communicator, and of the order of its messages, has changed. */
void mca_pml_base_comm_promises(ompi_communicator_t *comm);

/* A communicator is about to be freed or left: from now on only those who use it are counted in its references. */
void mca_pml_base_comm_leaves(ompi_communicator_t *comm);

/* Room in the attached buffer of MPI_Buffer_attach for a message of `len` bytes; NULL: it does not fit now.
 * `comm`: its own buffer first, see MPI-4.1 section 3.6. */
void *mca_pml_base_bsend_alloc(ompi_communicator_t *comm, size_t len);
void mca_pml_base_bsend_free(void *room);

void mca_pml_base_bsend_fini(void);
/* Let go of what is left; nothing is in use any more. */
void mca_pml_base_util_fini(void);

/* Messages for communicators that are not there yet. Takes ownership. */
void mca_pml_base_orphan_add(mca_pml_message_t *message);
/* Take the next one of a context, oldest first; NULL: no more. */
mca_pml_message_t *mca_pml_base_orphan_take(uint32_t context);

/* Messages that were announced and not received before their communicator was freed here, as their senders may take them back; and who would
 * take back such a one that is not here (CANCEL). Takes ownership. */
void mca_pml_base_left_add(mca_pml_message_t *message);
/* The one that the peer has announced with this id, or who takes that back; NULL: there is none. */
mca_pml_message_t *mca_pml_base_left_take(const mca_pml_peer_t *peer, uint64_t sreq, bool cancel);

#pragma GCC visibility pop

#endif
