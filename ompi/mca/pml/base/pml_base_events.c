/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Events of the engine: what they are called, and what they say. */
#include "ompi/mca/pml/base/pml_base_events.h"

#include "ompi/communicator/communicator.h"
#include "ompi/mca/btl/base/btl_base.h"

ompi_event_type_t *mca_pml_base_event_types[MCA_PML_EVENTS];

#define PEER "rank of the peer in its job"
#define LINK "link: where it stands among the values of pml_base_link_bytes"
#define MESSAGE {"communicator, as of MPI_Comm_toint", "source", "tag", "bytes"}

static const ompi_event_desc_t descs[MCA_PML_EVENTS] = {
    [MCA_PML_EVENT_LINK_DOWN] = {.name = "link_down", .level = MCA_VAR_LEVEL_USER, .values = {PEER, LINK},
                                 .help = "A link to a peer has failed"},
    [MCA_PML_EVENT_LINK_UP] = {.name = "link_up", .level = MCA_VAR_LEVEL_USER, .values = {PEER, LINK},
                               .help = "A link to a peer that had failed is back"},
    [MCA_PML_EVENT_PEER_LOST] = {.name = "peer_lost", .level = MCA_VAR_LEVEL_USER, .values = {PEER},
                                 .help = "A peer is given up: it has ended, or no link to it came back in time"},
    [MCA_PML_EVENT_UNEXPECTED] = {.name = "unexpected_queued", .level = MCA_VAR_LEVEL_TUNER, .values = MESSAGE,
                                  .help = "A message has come for which no receive is posted"},
    [MCA_PML_EVENT_FETCHED] = {.name = "unexpected_received", .level = MCA_VAR_LEVEL_TUNER, .values = MESSAGE,
                               .help = "A message that waited for a receive has found one"},
};

int mca_pml_base_events_register(void)
{
    int rc = OPAL_SUCCESS;
    for (int i = 0; i < MCA_PML_EVENTS && rc == OPAL_SUCCESS; i++) {
        ompi_event_desc_t desc = descs[i];
        desc.framework = "pml";
        desc.component = "base";
        rc = ompi_event_register(&desc, &mca_pml_base_event_types[i]);
    }
    return rc;
}

static int64_t index_of(const mca_btl_module_t *module)
{
    const mca_btl_base_modules_t *all = mca_pml_base_modules();
    for (size_t i = 0; i < all->count; i++) {
        if (all->modules[i] == module) {
            return (int64_t) i;
        }
    }
    return -1;
}

void mca_pml_base_event_of_link(mca_pml_event_t event, const mca_pml_peer_t *peer, const mca_pml_link_t *link)
{
    const int64_t values[] = {peer->proc->rank, link ? index_of(link->module) : -1};
    ompi_event_raise(mca_pml_base_event_types[event], values);
}

void mca_pml_base_event_of_message(mca_pml_event_t event, ompi_communicator_t *comm, const mca_pml_message_t *message)
{
    const mca_pml_hdr_t *hdr = mca_pml_message_hdr(message);
    const uintptr_t handle = (uintptr_t) ompi_comm_handle(comm);
    const int64_t values[] = {
        handle < OMPI_HANDLE_PREDEFINED ? (int64_t) handle : ompi_handle_to_int(&comm->base), message->match.src,
        message->match.tag,
        (int64_t) (hdr->common.type == MCA_PML_HDR_MATCH ? message->len : le64toh(hdr->rndv.length))};
    ompi_event_raise(mca_pml_base_event_types[event], values);
}
