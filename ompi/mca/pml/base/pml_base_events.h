/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Events of the engine, for tools. Each is raised where it happens, under the engine's locks. */
#ifndef MCA_PML_BASE_EVENTS_H
#define MCA_PML_BASE_EVENTS_H

#include "ompi/mca/pml/base/pml_base_request.h"
#include "ompi/runtime/event.h"

typedef enum {
    MCA_PML_EVENT_LINK_DOWN,
    MCA_PML_EVENT_LINK_UP,
    MCA_PML_EVENT_PEER_LOST,
    MCA_PML_EVENT_UNEXPECTED,
    MCA_PML_EVENT_FETCHED,
    MCA_PML_EVENTS
} mca_pml_event_t;

#pragma GCC visibility push(default)

extern ompi_event_type_t *mca_pml_base_event_types[MCA_PML_EVENTS];

int mca_pml_base_events_register(void);
void mca_pml_base_event_of_link(mca_pml_event_t event, const mca_pml_peer_t *peer, const mca_pml_link_t *link);
void mca_pml_base_event_of_message(mca_pml_event_t event, ompi_communicator_t *comm, const mca_pml_message_t *message);

#pragma GCC visibility pop

/* Of a message that waits, or waited, for a receive. */
static inline void mca_pml_event_message(mca_pml_event_t event, ompi_communicator_t *comm,
                                         const mca_pml_message_t *message)
{
    if (ompi_event_wanted(mca_pml_base_event_types[event])) {
        mca_pml_base_event_of_message(event, comm, message);
    }
}

#endif
