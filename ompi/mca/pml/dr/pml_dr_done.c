/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The ends of fragments. */
#include "ompi/mca/pml/dr/pml_dr_done.h"

#include "ompi/mca/pml/dr/pml_dr_due.h"

int dr_recall(dr_peer_t *d, const dr_frag_t *f, bool stuck)
{
    for (dr_desc_t *own = f->descs; own; own = own->next) {
        const mca_pml_link_t *link = &d->peer->links[own->path];
        if ((link->module->limits.caps & MCA_BTL_CAP_LET_GO) && (!stuck || link->suspect || !link->up)) {
            int rc = link->module->ops->recall(link->endpoint, &own->desc);
            if (rc != MCA_SUCCESS) {
                return rc;
            }
        }
    }
    return MCA_SUCCESS;
}

void dr_run_events(mca_btl_descriptor_t *list, mca_btl_event_t event, int status)
{
    while (list) {
        mca_btl_descriptor_t *next = list->btl_private[0];
        list->event(list, event, status);
        list = next;
    }
}

void dr_reopen(dr_peer_t *d, dr_out_t *out)
{
    if (d->refused && opal_list_is_empty(&d->stream.lost)) {
        d->refused = false;
        out->flush = true;
        for (int i = 0; i < d->peer->link_count; i++) {
            d->peer->links[i].blocked = false;
        }
    }
}

void dr_make_empty(dr_peer_t *d, dr_frag_t *f, dr_out_t *out)
{
    if (f->user) {
        dr_chain(&out->returned, f->user);
        f->user->btl_private[1] = NULL;
        f->user = NULL;
    }
    dr_wire_void_t body = {.span = htole32(f->record.span)};
    memcpy(f->bytes + sizeof(dr_prefix_t), &body, sizeof(body));
    f->is.what = DR_EMPTY;
    f->header_len = sizeof(body);
    f->payload_len = 0;
    f->summed = true;
    dr_stream_recost(&d->stream, &f->record, dr_frag_cost(f));
    dr_stream_lose(&d->stream, &f->record);
}

void dr_end_recalled(dr_peer_t *d, dr_out_t *out)
{
    opal_list_item_t *i, *tmp;
    d->any_recalled = false;
    OPAL_LIST_FOREACH (i, tmp, &d->stream.unacked) {
        dr_frag_t *f = OPAL_CONTAINER_OF(i, dr_frag_t, record.item);
        if (f->is.recalled && f->is.what == DR_IN_PLACE) {
            if (f->descs) {
                d->any_recalled = true;
            } else {
                dr_make_empty(d, f, out);
            }
        }
    }
}

dr_told_t dr_told;

/* The caller holds the peer's lock. */
void dr_take_told(dr_peer_t *d, dr_out_t *out)
{
    if (dr_told.peer == d) {
        opal_list_t done = OPAL_LIST_INIT(done);
        dr_told.peer = NULL;
        dr_stream_take_prefix(&d->stream, dr_told.ack, 0, &done);
        dr_end_frags(d, &done, out, false);
    }
}

void dr_settle(void)
{
    dr_peer_t *d = dr_told.peer;
    if (d) {
        dr_out_t out = {0};
        mca_pml_peer_lock(d->peer);
        dr_take_told(d, &out);
        dr_leave(d, &out);
    }
}

static void forget_desc(dr_desc_t *own)
{
    dr_desc_t **at = &own->frag->descs;
    while (*at != own) {
        at = &(*at)->next;
    }
    *at = own->next;
}

void dr_on_desc(mca_btl_descriptor_t *desc, mca_btl_event_t event, int status)
{
    (void) status;
    if (event == MCA_BTL_REUSABLE) {
        return;
    }
    dr_desc_t *own = OPAL_CONTAINER_OF(desc, dr_desc_t, desc);
    dr_frag_t *f = own->frag;
    dr_peer_t *d = f->owner;
    dr_out_t out = {0};
    mca_pml_peer_lock(d->peer);
    forget_desc(own);
    if (f->over) {
        if (!f->descs) {
            f->over = false;
            dr_end_frag(d, f, f->failed, &out);
        }
    } else if (event == MCA_BTL_UNCONFIRMED && f->record.path == own->path && f->record.number == own->number) {
        dr_stream_lose(&d->stream, &f->record);
    }
    if (!opal_list_is_empty(&d->stream.lost) || d->any_recalled) { /* one that is lost may have waited for the link to let go of it */
        dr_urgent(d);
    }
    dr_leave(d, &out);
    free(own);
}
