/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * put() and get(): RDMA writes and reads. The caller's memory is registered for the time of the transfer: a registration
 * that is kept has to follow every way in which memory is unmapped, and this one need not.
 */
#include "ompi/mca/btl/openib/btl_openib.h"

#include <stdlib.h>
#include <string.h>
#include "opal/util/le.h"

enum {
    KEY = 4,
    REMOTES_MAX = 16,       /* of an endpoint at once */
    LEN_MAX = 1 << 30,      /* every adapter moves that much at once */
};

struct mca_btl_registration {
    struct ibv_mr *mr;
};

int btl_openib_register_mem(mca_btl_module_t *super, void *addr, size_t len, uint8_t key[MCA_BTL_KEY_MAX],
                            size_t *key_len, mca_btl_registration_t **registration)
{
    btl_openib_module_t *m = (btl_openib_module_t *) super;
    mca_btl_registration_t *r = malloc(sizeof(*r));
    if (!r) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    r->mr = common_verbs_lib.reg_mr(m->port->device->pd, addr, len,
                                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
    if (!r->mr) {
        free(r);
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    opal_le_put32(key, r->mr->rkey);
    *key_len = KEY;
    *registration = r;
    return MCA_SUCCESS;
}

void btl_openib_deregister_mem(mca_btl_module_t *module, mca_btl_registration_t *registration)
{
    (void) module;
    common_verbs_lib.dereg_mr(registration->mr);
    free(registration);
}

static void remote_free(btl_openib_remote_t *r)
{
    for (unsigned i = 0; i < r->mr_count; i++) {
        common_verbs_lib.dereg_mr(r->mr[i]);
    }
    free(r);
}

/* The caller's memory, as the adapter wants it; NULL: it can't be registered. */
static btl_openib_remote_t *remote_new(btl_openib_module_t *m, mca_btl_descriptor_t *desc, struct ibv_sge *sge)
{
    btl_openib_remote_t *r = calloc(1, sizeof(*r));
    for (uint32_t i = 0; r && i < desc->iov_count; i++) {
        struct iovec *v = &desc->iov[i];
        if (v->iov_len == 0) {
            continue;
        }
        struct ibv_mr *mr = r->mr_count == m->sge_max
                                ? NULL
                                : common_verbs_lib.reg_mr(m->port->device->pd, v->iov_base, v->iov_len,
                                                          IBV_ACCESS_LOCAL_WRITE);
        if (!mr) {
            remote_free(r);
            return NULL;
        }
        sge[r->mr_count] = (struct ibv_sge){.addr = (uintptr_t) v->iov_base, .length = (uint32_t) v->iov_len,
                                            .lkey = mr->lkey};
        r->mr[r->mr_count++] = mr;
    }
    return r;
}

/* Is there room now? Under the lock. */
static int admit(mca_btl_endpoint_t *ep)
{
    if (ep->told_down || ep->deleted || ep->module->closed) {
        return MCA_ERR_UNREACHABLE;
    }
    if (ep->state == BTL_OPENIB_APART) {
        btl_openib_ask(ep, BTL_OPENIB_CONNECT);
    }
    if (ep->state != BTL_OPENIB_UP || ep->posted - ep->freed >= ep->module->depth / 2 ||
        opal_list_length(&ep->remotes) >= REMOTES_MAX) {
        ep->want_writable = true;
        btl_openib_wait(ep);
        return MCA_ERR_AGAIN;
    }
    return MCA_SUCCESS;
}

static int move(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key,
                enum ibv_wr_opcode opcode)
{
    struct ibv_sge sge[MCA_BTL_IOV_MAX];
    size_t len = 0;
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        len += desc->iov[i].iov_len;
    }
    if (len == 0 || !key) {
        return len == 0 ? 1 : MCA_ERR_BAD_PARAM;
    }
    btl_openib_call_begin(ep);
    int rc = len > LEN_MAX ? MCA_ERR_NOT_AVAILABLE : admit(ep);
    btl_openib_remote_t *r = rc == MCA_SUCCESS ? remote_new(ep->module, desc, sge) : NULL;
    if (rc == MCA_SUCCESS && !r) {
        rc = MCA_ERR_NOT_AVAILABLE;
    }
    if (r) {
        struct ibv_send_wr wr = {.sg_list = sge, .num_sge = (int) r->mr_count, .opcode = opcode,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = {.remote_addr = remote, .rkey = opal_le_get32(key)}};
        r->desc = desc;
        if (btl_openib_post(ep, &wr)) {
            r->number = ep->posted;
            opal_list_append(&ep->remotes, &r->item);
            btl_openib_heat();
        } else {
            remote_free(r);
            ep->want_writable = true;
            rc = MCA_ERR_AGAIN; /* the link fails, and says so */
        }
    }
    btl_openib_call_end(ep);
    return rc;
}

int btl_openib_put(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key)
{
    return move(ep, desc, remote, key, IBV_WR_RDMA_WRITE);
}

int btl_openib_get(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key)
{
    return move(ep, desc, remote, key, IBV_WR_RDMA_READ);
}

void btl_openib_remotes_done(mca_btl_endpoint_t *ep, opal_list_t *remotes, mca_btl_event_t event, int status)
{
    opal_list_item_t *i;
    while ((i = opal_list_pop(remotes))) {
        btl_openib_remote_t *r = OPAL_CONTAINER_OF(i, btl_openib_remote_t, item);
        mca_btl_descriptor_t *desc = r->desc;
        remote_free(r);
        if (!ep->deleted) {
            desc->event(desc, event, status);
        }
    }
}
