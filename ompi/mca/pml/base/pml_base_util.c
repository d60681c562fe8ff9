/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Messages without a communicator, fatal reports. */
#include <inttypes.h>
#include "ompi/mca/pml/base/pml_base_cache.h"
#include "ompi/mca/pml/base/pml_base_util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/util/output.h"

static opal_list_t orphans = OPAL_LIST_INIT(orphans), left = OPAL_LIST_INIT(left);
static pthread_mutex_t orphans_lock = PTHREAD_MUTEX_INITIALIZER;

void mca_pml_base_util_fini(void)
{
    opal_list_item_t *i;
    opal_list_splice(&left, &orphans);
    while ((i = opal_list_pop(&left))) {
        mca_pml_base_message_free(OPAL_CONTAINER_OF(i, mca_pml_message_t, match.age_link));
    }
    mca_pml_base_cache_fini();
    mca_pml_base_bsend_fini();
}

/* ---- Messages for communicators that are not there yet ---- */

void mca_pml_base_orphan_add(mca_pml_message_t *message)
{
    pthread_mutex_lock(&orphans_lock);
    opal_list_append(&orphans, &message->match.age_link);
    pthread_mutex_unlock(&orphans_lock);
}

mca_pml_message_t *mca_pml_base_orphan_take(uint32_t context)
{
    mca_pml_message_t *found = NULL;
    opal_list_item_t *i, *tmp;
    pthread_mutex_lock(&orphans_lock);
    OPAL_LIST_FOREACH (i, tmp, &orphans) {
        mca_pml_message_t *message = OPAL_CONTAINER_OF(i, mca_pml_message_t, match.age_link);
        if (le32toh(mca_pml_message_hdr(message)->match.context) == context) {
            opal_list_remove(i);
            found = message;
            break;
        }
    }
    pthread_mutex_unlock(&orphans_lock);
    return found;
}

/* ---- Messages whose communicator is no more ---- */

void mca_pml_base_left_add(mca_pml_message_t *message)
{
    pthread_mutex_lock(&orphans_lock);
    opal_list_append(&left, &message->match.age_link);
    pthread_mutex_unlock(&orphans_lock);
}

mca_pml_message_t *mca_pml_base_left_take(const mca_pml_peer_t *peer, uint64_t sreq, bool cancel)
{
    mca_pml_message_t *found = NULL;
    opal_list_item_t *i, *tmp;
    pthread_mutex_lock(&orphans_lock);
    OPAL_LIST_FOREACH (i, tmp, &left) {
        mca_pml_message_t *message = OPAL_CONTAINER_OF(i, mca_pml_message_t, match.age_link);
        const mca_pml_hdr_t *hdr = mca_pml_message_hdr(message);
        if (!found && message->peer == peer && hdr->rndv.sreq == sreq && (hdr->common.type == MCA_PML_HDR_CANCEL) == cancel) {
            opal_list_remove(i);
            found = message;
        }
    }
    pthread_mutex_unlock(&orphans_lock);
    return found;
}

/* ---- Reports ---- */

enum { LAST_RESERVE = 256 << 10 }; /* bytes: what it takes to tell the runtime, about */

static _Atomic(void *) reserve;

/* By several threads at once, where memory is short for all of them. */
void mca_pml_base_reserve(bool hold)
{
    free(atomic_exchange(&reserve, hold ? malloc(LAST_RESERVE) : NULL)); /* nobody writes to it: it takes no memory until then */
}

void mca_pml_base_out_of_memory(const char *what)
{
    char text[256];
    mca_pml_base_reserve(false);
    snprintf(text, sizeof(text), "out of memory for %s", what);
    opal_show_help("pml:out-of-memory",
                   "Out of memory for %s. The message can't be kept and must not be lost, so the job ends.\n"
                   "Fewer processes per node, or a smaller pml_base_eager_window, need less memory.",
                   what);
    ompi_rte_abort(1, text);
}

void mca_pml_base_no_memory(mca_btl_module_t *module)
{
    char what[128];
    snprintf(what, sizeof(what), "a message that has come over %s", module->name);
    mca_pml_base_out_of_memory(what);
}

void mca_pml_base_no_memory_yet(mca_btl_module_t *module)
{
    static _Atomic uint64_t first, last; /* ns, of shortages with no longer pauses between them */
    uint64_t limit = (uint64_t) (mca_pml_base_params.path_timeout > 0 ? mca_pml_base_params.path_timeout : 1) * 1000000000;
    uint64_t now = opal_now_ns(), before = atomic_exchange(&last, now);
    if (before == 0 || now > before + limit) {
        atomic_store(&first, now);
    } else if (now >= atomic_load(&first) + limit) {
        mca_pml_base_no_memory(module);
    }
}

void mca_pml_base_report_unreachable(mca_pml_peer_t *peer)
{
    char rank[OMPI_PROC_TEXT_SIZE];
    const char *host = ompi_proc_host(peer->proc);
    ompi_proc_text(peer->proc, rank);
    if (peer->gone) {
        opal_show_help("pml:gone",
                       "Rank %s on host %s has ended%s: messages to it and from it fail.", rank, host,
                       atomic_load(&peer->proc->over) ? "" : ", or was killed, without MPI_Finalize");
        return;
    }
    if (peer->flooded) {
        opal_show_help("pml:flooded",
                       "Rank %s on host %s sent more messages than this process may keep until they are received: more than "
                       "%" PRIu64 " bytes wait here, so no more is taken from it.\n"
                       "That is the sum of pml_base_eager_window, which no sender goes beyond if it is set alike for all "
                       "processes, and of pml_base_unexpected_max.",
                       rank, host,
                       mca_pml_base_params.eager_window + mca_pml_base_params.unexpected_max);
        return;
    }
    if (peer->given_up) {
        opal_show_help("pml:given-up",
                       "Rank %s on host %s has given this process up, and says there why: messages to it and from it fail.",
                       rank, host);
        return;
    }
    if (peer->unlike) {
        opal_show_help("pml:unlike", "Rank %s on host %s is not set up as this process is, and can't be talked to: %s.", rank, host,
                       peer->why ? peer->why : "out of memory");
        return;
    }
    if (peer->link_count == 0) {
        opal_show_help("pml:unreachable",
                       "Rank %s on host %s can't be reached: %s.\n"
                       "Which links there are shows --mca btl_base_verbose 40; the parameter \"btl\" selects them.",
                       rank, host, peer->why ? peer->why : "no link leads there");
        return;
    }
    char *links = mca_pml_base_peer_links(peer);
    opal_show_help("pml:cut-off",
                   "Rank %s on host %s can't be reached any more: its last link failed and none came back within %lld s "
                   "(%s).\nHow long is waited says the parameter pml_base_path_timeout.",
                   rank, host, (long long) mca_pml_base_params.path_timeout, links ? links : "out of memory");
    free(links);
}

void mca_pml_base_comm_promises(ompi_communicator_t *comm)
{
    uint8_t promises = (comm->flags & OMPI_COMM_ASSERT_NO_ANY_SOURCE ? MCA_PML_NO_ANY_SOURCE : 0) |
                       (comm->flags & OMPI_COMM_ASSERT_NO_ANY_TAG ? MCA_PML_NO_ANY_TAG : 0);
    mca_pml_comm_lock(comm->pml);
    mca_pml_match_promise(&comm->pml->match, promises);
    comm->pml->overtaking = comm->flags & OMPI_COMM_ASSERT_ALLOW_OVERTAKING;
    mca_pml_comm_unlock(comm->pml);
}

void mca_pml_base_comm_leaves(ompi_communicator_t *comm)
{
    mca_pml_comm_t *pc = comm->pml;
    if (!pc) {
        return;
    }
    mca_pml_comm_lock(pc);
    int32_t unused = pc->stock;
    pc->stock = 0;
    pc->leaving = true;
    mca_pml_comm_unlock(pc);
    (void) opal_refs_add(&comm->refs, -unused); /* the caller has one */
}
