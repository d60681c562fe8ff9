/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* put() and get(): RDMA writes and reads, from and to the caller's memory. Its registrations are the module's cache's. */
#include "ompi/mca/btl/openib/btl_openib.h"

#include <stdlib.h>
#include <string.h>
#include "opal/util/le.h"

/* A key is 16 bits that say so, the port that it is good for, and the adapter's 32 bits: it may have come another way. */
enum {
    KEY = 8,
    KEY_MAGIC = 0x696f,
    REMOTES_MAX = 16,       /* of an endpoint that the adapter has at once */
    WAITING_MAX = 1024,     /* that wait for it */
    LEN_MAX = 1 << 30,      /* every adapter moves that much at once */
};

int btl_openib_register_mem(mca_btl_module_t *super, void *addr, size_t len, uint8_t key[MCA_BTL_KEY_MAX],
                            size_t *key_len, mca_btl_registration_t **registration)
{
    btl_openib_module_t *m = (btl_openib_module_t *) super;
    common_verbs_region_t *r =
        common_verbs_cache_get(&m->cache, addr, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
                               IBV_ACCESS_REMOTE_READ);
    if (!r) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    opal_le_put16(key, KEY_MAGIC);
    opal_le_put16(key + 2, (uint16_t) m->index);
    opal_le_put32(key + 4, r->mr->rkey);
    *key_len = KEY;
    *registration = (mca_btl_registration_t *) r;
    return MCA_SUCCESS;
}

void btl_openib_deregister_mem(mca_btl_module_t *module, mca_btl_registration_t *registration)
{
    common_verbs_cache_put(&((btl_openib_module_t *) module)->cache, (common_verbs_region_t *) registration);
}

static void remote_free(btl_openib_module_t *m, btl_openib_remote_t *r)
{
    for (unsigned i = 0; i < r->count; i++) {
        common_verbs_cache_put(&m->cache, r->region[i]);
    }
    free(r);
}

/* With the caller's memory registered; NULL: it can't be. */
static btl_openib_remote_t *remote_new(btl_openib_module_t *m, mca_btl_descriptor_t *desc, bool get)
{
    btl_openib_remote_t *r = calloc(1, sizeof(*r));
    int access = get ? IBV_ACCESS_LOCAL_WRITE : 0;
    unsigned most = get ? m->read_sge_max : m->sge_max;
    for (uint32_t i = 0; r && i < desc->iov_count; i++) {
        struct iovec *v = &desc->iov[i];
        if (v->iov_len == 0) {
            continue;
        }
        common_verbs_region_t *region =
            r->count == most ? NULL : common_verbs_cache_get(&m->cache, v->iov_base, v->iov_len, access, access);
        if (!region) {
            remote_free(m, r);
            return NULL;
        }
        r->sge[r->count] = (struct ibv_sge){.addr = (uintptr_t) v->iov_base, .length = (uint32_t) v->iov_len,
                                            .lkey = region->mr->lkey};
        r->region[r->count++] = region;
    }
    if (r) {
        r->desc = desc;
        r->get = get;
        opal_list_item_init(&r->item);
    }
    return r;
}

/* False: the adapter does not take it, and the link fails. */
static bool give(mca_btl_endpoint_t *ep, btl_openib_remote_t *r)
{
    struct ibv_send_wr wr = {.sg_list = r->sge, .num_sge = (int) r->count,
                             .opcode = r->get ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = r->remote, .rkey = r->rkey}};
    if (!btl_openib_post(ep, &wr)) {
        return false;
    }
    r->number = ep->posted;
    return true;
}

void btl_openib_remotes_flush(mca_btl_endpoint_t *ep)
{
    opal_list_item_t *i;
    while (ep->state == BTL_OPENIB_UP && ep->remote_count < REMOTES_MAX && ep->posted - ep->freed < ep->module->depth / 2 &&
           (i = opal_list_first(&ep->waiting_remotes)) && give(ep, OPAL_CONTAINER_OF(i, btl_openib_remote_t, item))) {
        opal_list_remove(i);
        opal_list_append(&ep->remotes, i);
        ep->waiting_count--;
        ep->remote_count++;
    }
}

bool btl_openib_remotes_any(const mca_btl_endpoint_t *ep)
{
    return ep->remote_count + ep->waiting_count > 0;
}

void btl_openib_remotes_take(mca_btl_endpoint_t *ep, opal_list_t *out)
{
    opal_list_splice(out, &ep->remotes);
    opal_list_splice(out, &ep->waiting_remotes);
    ep->remote_count = ep->waiting_count = 0;
}

/* Is there room now? Under the lock. */
static int admit(mca_btl_endpoint_t *ep)
{
    if (ep->told_down || ep->deleted || ep->module->closed) {
        return MCA_ERR_UNREACHABLE;
    }
    if (ep->waiting_count >= WAITING_MAX) {
        ep->want_writable = true;
        btl_openib_wait(ep);
        return MCA_ERR_AGAIN;
    }
    return MCA_SUCCESS;
}

static int move(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const uint8_t *key, bool get)
{
    btl_openib_remote_t *r = NULL;
    size_t len = 0;
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        len += desc->iov[i].iov_len;
    }
    if (len == 0 || !key) {
        return len == 0 ? 1 : MCA_ERR_BAD_PARAM;
    }
    if (len > LEN_MAX || opal_le_get16(key) != KEY_MAGIC || opal_le_get16(key + 2) != ep->peer_port) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    btl_openib_call_begin(ep);
    int rc = admit(ep);
    if (rc == MCA_SUCCESS && (r = remote_new(ep->module, desc, get)) == NULL) {
        rc = MCA_ERR_NOT_AVAILABLE;
    }
    if (r) {
        r->remote = remote;
        r->rkey = opal_le_get32(key + 4);
        opal_list_append(&ep->waiting_remotes, &r->item);
        ep->waiting_count++;
        btl_openib_remotes_flush(ep);
        if (ep->state == BTL_OPENIB_APART) {
            btl_openib_ask(ep, BTL_OPENIB_CONNECT);
        }
        btl_openib_heat();
    }
    btl_openib_call_end(ep);
    return rc;
}

int btl_openib_put(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key)
{
    return move(ep, desc, remote, key, false);
}

int btl_openib_get(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key)
{
    return move(ep, desc, remote, key, true);
}

void btl_openib_remotes_done(mca_btl_endpoint_t *ep, opal_list_t *remotes, mca_btl_event_t event, int status)
{
    opal_list_item_t *i;
    while ((i = opal_list_pop(remotes))) {
        btl_openib_remote_t *r = OPAL_CONTAINER_OF(i, btl_openib_remote_t, item);
        mca_btl_descriptor_t *desc = r->desc;
        remote_free(ep->module, r);
        if (!ep->deleted) {
            desc->event(desc, event, status);
        }
    }
}
