/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Letting go of what the user sends another way: descriptors taken back, links given up, and the
 * watch for connections over which nothing gets through. */
#include "ompi/mca/btl/tcp/btl_tcp.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* ---- Descriptors taken back ---- */

/* Take an entry of which nothing has been sent out of the queue. `before`: the one in front of it. */
static void unqueue(mca_btl_endpoint_t *ep, btl_tcp_entry_t *entry, btl_tcp_entry_t *before)
{
    *(before ? &before->next : &ep->head) = entry->next;
    if (ep->tail == entry) {
        ep->tail = before;
    }
    if (ep->cursor == entry) {
        ep->cursor = entry->next;
    }
    ep->frames_out--;
}

/* The peer may have a part of the frame, and counts it: a copy takes its place in the queue. */
static bool replace(mca_btl_endpoint_t *ep, btl_tcp_entry_t *entry, btl_tcp_entry_t *before)
{
    size_t bytes = opal_le_get32(entry->wire);
    uint32_t size = (uint32_t) btl_tcp_entry_size(bytes);
    btl_tcp_chunk_t *chunk = btl_tcp_chunk_get(size);
    if (!chunk) {
        return false;
    }
    btl_tcp_entry_t *copy = (btl_tcp_entry_t *) (void *) chunk->data;
    const mca_btl_descriptor_t *desc = entry->desc;
    chunk->fill = size;
    chunk->live = 1;
    *copy = *entry;
    copy->kind = BTL_TCP_ENTRY_RECALLED;
    copy->chunk = chunk;
    uint8_t *to = copy->wire + BTL_TCP_FRAME_HEADER;
    memcpy(to, desc->header, desc->header_len);
    to += desc->header_len;
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        if (desc->iov[i].iov_len > 0) {
            memcpy(to, desc->iov[i].iov_base, desc->iov[i].iov_len);
            to += desc->iov[i].iov_len;
        }
    }
    memset(to, 0, btl_tcp_padding(bytes));
    *(before ? &before->next : &ep->head) = copy;
    if (ep->tail == entry) {
        ep->tail = copy;
    }
    if (ep->cursor == entry) {
        ep->cursor = copy; /* cursor_sent bytes of it are out */
    }
    ep->kept += size;
    return true;
}

/* The descriptor's entry in the queue, and the one before it; NULL: its last event is on its way.
 * *sent: some of it may be out. */
static btl_tcp_entry_t *find(mca_btl_endpoint_t *ep, const mca_btl_descriptor_t *desc,
                             btl_tcp_entry_t **before, bool *sent)
{
    btl_tcp_entry_t *entry = ep->head;
    bool unsent = false;
    *before = NULL;
    while (entry) {
        unsent |= entry == ep->cursor;
        if (entry->kind == BTL_TCP_ENTRY_DESC && entry->desc == desc) {
            break;
        }
        *before = entry;
        entry = entry->next;
    }
    *sent = !unsent || (entry == ep->cursor && ep->cursor_sent > 0);
    return entry;
}

int btl_tcp_recall(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc)
{
    btl_tcp_entry_t *before;
    bool sent;
    int rc = MCA_SUCCESS;
    btl_tcp_lock(&ep->lock);
    btl_tcp_entry_t *entry = find(ep, desc, &before, &sent);
    if (entry && sent && !replace(ep, entry, before)) {
        rc = MCA_ERR_OUT_OF_RESOURCE;
    } else if (entry) {
        if (!sent) {
            unqueue(ep, entry, before);
        }
        ep->lent -= opal_le_get32(entry->wire);
        entry->next = ep->recalled;
        ep->recalled = entry;
        btl_tcp_kick(ep, BTL_TCP_KICK_LET_GO);
    }
    btl_tcp_unlock(&ep->lock);
    return rc;
}

/* ---- Links given up ---- */

void btl_tcp_fail(mca_btl_endpoint_t *ep, const char *why)
{
    btl_tcp_lock(&ep->lock);
    if (!ep->give_up && !ep->told_down && !ep->deleted) {
        ep->give_up = true;
        ep->give_up_why = strdup(why ? why : "it was given up"); /* NULL is no harm */
        btl_tcp_kick(ep, BTL_TCP_KICK_LET_GO);
    }
    btl_tcp_unlock(&ep->lock);
}

void btl_tcp_let_go(mca_btl_endpoint_t *ep)
{
    btl_tcp_lock(&ep->lock);
    btl_tcp_entry_t *list = ep->recalled;
    bool give_up = ep->give_up;
    char *why = ep->give_up_why;
    ep->recalled = NULL;
    ep->give_up = false;
    ep->give_up_why = NULL;
    btl_tcp_unlock(&ep->lock);
    for (btl_tcp_entry_t *entry = list, *next; entry; entry = next) {
        next = entry->next;
        entry->desc->event(entry->desc, MCA_BTL_UNCONFIRMED, MCA_ERR_NOT_AVAILABLE);
    }
    if (give_up && !ep->told_down && !ep->deleted) {
        btl_tcp_connect_abort(ep);
        btl_tcp_endpoint_fail(ep, why ? why : "it was given up");
    }
    free(why);
}

/* ---- Silence ---- */

/* Has the connection been standing still since the last look: it is lost, or something sent is not
 * acknowledged, and nothing else has been meanwhile? Two looks at least: what is under way just now is not late. The
 * peer's kernel acknowledges, and answers the probes of a full window, not the peer: one that
 * computes is not silent. Probes are also sent when nothing can leave this host. */
static bool stands_still(mca_btl_endpoint_t *ep, uint64_t *round_trip_ns)
{
    struct tcp_info info;
    socklen_t len = sizeof(info);
    memset(&info, 0, sizeof(info)); /* an older kernel fills in less */
    btl_tcp_lock(&ep->lock);
    bool waits = ep->head != NULL;
    btl_tcp_unlock(&ep->lock);
    bool lost = ep->state != BTL_TCP_UP;
    if (!waits || (!lost && (getsockopt(ep->fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
                             (info.tcpi_unacked == 0 && info.tcpi_probes == 0)))) {
        ep->is_still = false;
        return false;
    }
    *round_trip_ns = (uint64_t) info.tcpi_rtt * 1000;
    bool was_still = ep->is_still && info.tcpi_bytes_acked == ep->still_at;
    ep->is_still = true;
    ep->still_at = info.tcpi_bytes_acked;
    ep->still_ns = was_still ? ep->still_ns : 0;
    return was_still;
}

void btl_tcp_watch_silence(mca_btl_endpoint_t *ep, uint64_t ns)
{
    uint64_t limit = (uint64_t) mca_btl_tcp.params.silence_timeout_ms * 1000000;
    uint64_t most = limit / BTL_TCP_LOOKS, round_trip = 0;
    if (limit == 0 || !stands_still(ep, &round_trip)) {
        return;
    }
    ep->still_ns += ns < most ? ns : most;
    if (ep->still_ns < limit + 2 * round_trip) {
        return;
    }
    ep->still_ns = 0; /* told again if it lasts */
    if (!ep->deleted) {
        BTL_TCP_LOG(MCA_LOG_DEBUG, "%s: nothing reaches rank %u", ep->module->super.name,
                    (uint32_t) ep->name);
        ep->module->super.upcalls->state(ep->cookie, ep, MCA_BTL_STATE_SILENT,
                                         "the peer's machine acknowledges nothing");
    }
}
