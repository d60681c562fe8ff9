/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The three ways in which a link takes a fragment; what is not summed yet is summed on the way. */
#include "ompi/mca/pml/dr/pml_dr_put.h"

#include "ompi/mca/pml/dr/pml_dr_done.h"
#include "ompi/mca/pml/dr/pml_dr_due.h"

static void sum_payload(dr_peer_t *d, dr_frag_t *f)
{
    uint64_t sum = dr_wire_begin(&d->out);
    if (f->user) {
        for (uint32_t i = 0; i < f->user->iov_count; i++) {
            const struct iovec *v = &f->user->iov[i];
            sum = opal_checksum_update(d->out.kind, sum, v->iov_base, v->iov_len);
        }
    } else {
        sum = opal_checksum_update(d->out.kind, sum, f->bytes + dr_head_length(f), f->payload_len);
    }
    f->payload_sum = opal_checksum_finish(d->out.kind, sum);
    f->summed = true;
}

/* Into room that the link lends; the first time the payload is summed on the way. */
static int put_room(dr_peer_t *d, mca_pml_link_t *link, dr_frag_t *f, const struct iovec *iov, uint32_t count)
{
    size_t head = dr_head_length(f), len = head + f->payload_len;
    mca_btl_room_t room = {.how = MCA_BTL_COPY_ANY};
    int rc = link->module->ops->reserve(link->endpoint, len, len, &room);
    if (rc != MCA_SUCCESS) {
        return rc;
    }
    const opal_checksum_kind_t kind = f->summed ? OPAL_CHECKSUM_NONE : d->out.kind;
    char *to = (char *) room.ptr + head;
    uint64_t sum = dr_wire_begin(&d->out);
    for (uint32_t i = 0; i < count; i++) {
        sum = opal_checksum_copy_into(kind, sum, to, iov[i].iov_base, iov[i].iov_len, (opal_copy_how_t) room.how);
        to += iov[i].iov_len;
    }
    if (!f->summed) {
        f->payload_sum = opal_checksum_finish(kind, sum);
        f->summed = true;
    }
    dr_seal_frag(d, f);
    opal_copy_head(room.ptr, f->bytes, head);
    link->module->ops->commit(link->endpoint, &room, len);
    return MCA_SUCCESS;
}

int dr_put_whole(dr_peer_t *d, mca_pml_link_t *link, dr_frag_t *f, const void *data)
{
    const struct iovec iov = {(void *) (uintptr_t) data, f->payload_len};
    int rc = put_room(d, link, f, &iov, 1);
    if (rc == MCA_SUCCESS) {
        memcpy(f->bytes + dr_head_length(f), data, f->payload_len);
    }
    return dr_note_full(d, link, rc);
}

/* What is being written. */
typedef struct filling {
    opal_checksum_kind_t kind;
    const char *data;
    size_t len;
    uint64_t sum; /* so far */
} filling_t;

static void fill(void *context, size_t at, void *to, size_t len, mca_btl_copy_t how)
{
    filling_t *f = context;
    size_t n = at < f->len ? (len < f->len - at ? len : f->len - at) : 0;
    if (n > 0) {
        f->sum = opal_checksum_copy_into(f->kind, f->sum, to, f->data + at, n, (opal_copy_how_t) how);
    }
    if (n < len) {
        dr_behind_t check = htole32(opal_checksum_finish(f->kind, f->sum));
        memcpy((char *) to + n, (const char *) &check + (at + n - f->len), len - n);
    }
}

int dr_put_filled(dr_peer_t *d, mca_pml_link_t *link, dr_frag_t *f)
{
    filling_t filling = {.kind = d->out.kind, .data = f->user->iov[0].iov_base, .len = f->payload_len, .sum = dr_wire_begin(&d->out)};
    bool sums = filling.kind != OPAL_CHECKSUM_NONE;
    size_t behind = sums ? sizeof(dr_behind_t) : 0, head = dr_head_length(f);
    dr_wire_write(&d->out, (dr_prefix_t *) f->bytes, DR_DATA, (uint8_t) (dr_flags_of(d, f) | (sums ? DR_FLAG_BEHIND : 0)), f->header_len,
                  f->record.seq, dr_stream_ride(&d->stream), 0, head + f->payload_len + behind);
    int rc = link->module->ops->send_filled(link->endpoint, f->bytes, head, f->payload_len + behind, fill, &filling);
    if (rc == MCA_SUCCESS) {
        f->payload_sum = opal_checksum_finish(filling.kind, filling.sum);
        f->summed = true;
    }
    return dr_note_full(d, link, rc);
}

/* From where it lies. */
static int put_desc(dr_peer_t *d, mca_pml_link_t *link, dr_frag_t *f)
{
    dr_desc_t *own = malloc(sizeof(*own));
    if (!own) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    if (!f->summed) {
        sum_payload(d, f);
    }
    dr_seal_frag(d, f);
    *own = (dr_desc_t){.desc = {.header = f->bytes, .header_len = (uint32_t) dr_head_length(f), .event = dr_on_desc},
                       .frag = f, .next = f->descs, .number = f->record.number, .path = f->record.path};
    if (f->user) {
        own->desc.iov_count = f->user->iov_count;
        memcpy(own->desc.iov, f->user->iov, f->user->iov_count * sizeof(struct iovec));
    } else {
        own->desc.iov_count = 1;
        own->desc.iov[0] = (struct iovec){f->bytes + dr_head_length(f), f->payload_len};
    }
    int rc = link->module->ops->send(link->endpoint, &own->desc);
    if (rc == 0) {
        f->descs = own;
    } else {
        free(own);
    }
    return rc == 1 ? MCA_SUCCESS : rc;
}

int dr_put(dr_peer_t *d, mca_pml_link_t *link, dr_frag_t *f)
{
    const mca_btl_limits_t *limits = &link->module->limits;
    size_t head = dr_head_length(f);
    int rc;
    if (!f->user && head + f->payload_len <= limits->short_max) {
        if (!f->summed) {
            sum_payload(d, f);
        }
        dr_seal_frag(d, f);
        rc = dr_send_kept(link, f);
    } else {
        const struct iovec kept = {f->bytes + head, f->payload_len};
        rc = f->payload_len >= limits->send_min
                 ? put_desc(d, link, f)
                 : put_room(d, link, f, f->user ? f->user->iov : &kept, f->user ? f->user->iov_count : 1);
    }
    return dr_note_full(d, link, rc);
}

void dr_commit(dr_peer_t *d, mca_pml_link_t *link, dr_frag_t *f)
{
    unsigned path = dr_path_of(d, link);
    dr_stream_send(&d->stream, &f->record, path, (uint32_t) f->header_len + f->payload_len, dr_frag_cost(f), dr_send_time(d, path));
    int rc = dr_put(d, link, f);
    if (rc != MCA_SUCCESS) {
        link->blocked |= rc == MCA_ERR_AGAIN;
        dr_stream_lose(&d->stream, &f->record);
        dr_urgent(d);
    }
    dr_active(d);
}
