/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* put() and get(): UCT's zero-copy operations on remote memory, from and to the caller's memory. */
#include "ompi/mca/btl/uct/btl_uct.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "opal/util/le.h"

/* A key is 16 bits that say so, the module that it is good for (it may have come another way), and UCT's own. */
enum {
    KEY_MAGIC = 0x7563,
    KEY_HEAD = 4,
    KEY_ROOM = MCA_BTL_KEY_MAX - KEY_HEAD,
    OPS_MAX = 1024,         /* of an endpoint, before it says AGAIN */
    LEN_MAX = 1 << 30,      /* of one of them */
    STOP_WAIT_NS = 1000000000, /* without any sign of its end, what is under way counts as stuck */
};

/* ---- What can be had ---- */

uint32_t btl_uct_rma_caps(const btl_uct_iface_t *i)
{
    const uct_iface_attr_t *a = &i->attr;
    const uct_md_attr_t *md = &i->md->attr;
    uint64_t flags = md->cap.flags;
    bool host = (md->cap.reg_mem_types & UCS_BIT(UCS_MEMORY_TYPE_HOST)) != 0;
    if (((flags & UCT_MD_FLAG_NEED_MEMH) && !((flags & UCT_MD_FLAG_REG) && host)) ||
        ((flags & UCT_MD_FLAG_NEED_RKEY) && (!(flags & UCT_MD_FLAG_REG) || md->rkey_packed_size > KEY_ROOM))) {
        return 0;
    }
    /* A byte is the least that a caller may want moved: what is too short for zero copy must be gettable otherwise. */
    bool put = (a->cap.flags & UCT_IFACE_FLAG_PUT_ZCOPY) && a->cap.put.max_iov > 0 && a->cap.put.min_zcopy <= 1;
    bool get = (a->cap.flags & UCT_IFACE_FLAG_GET_ZCOPY) && a->cap.get.max_iov > 0 &&
               (a->cap.get.min_zcopy <= 1 || ((a->cap.flags & UCT_IFACE_FLAG_GET_BCOPY) &&
                                              a->cap.get.max_bcopy >= a->cap.get.min_zcopy));
    uint32_t caps = (put ? MCA_BTL_CAP_PUT : 0) | (get ? MCA_BTL_CAP_GET : 0);
    return caps && !(flags & UCT_MD_FLAG_NEED_RKEY) ? caps | MCA_BTL_CAP_SINGLE_COPY : caps;
}

/* ---- Memory ---- */

/* MCA_ERR_OUT_OF_RESOURCE: it can't be registered. */
int btl_uct_register_mem(mca_btl_module_t *super, void *addr, size_t len, uint8_t key[MCA_BTL_KEY_MAX], size_t *key_len,
                         mca_btl_registration_t **registration)
{
    btl_uct_module_t *m = (btl_uct_module_t *) super;
    const btl_uct_md_t *md = m->rma ? m->rma->md : NULL;
    uct_mem_h memh;
    if (!md || (super->limits.caps & MCA_BTL_CAP_SINGLE_COPY)) {
        return MCA_ERR_NOT_SUPPORTED;
    }
    btl_uct_lock();
    ucs_status_t s = btl_uct_ucx.uct_md_mem_reg(md->md, addr, len, UCT_MD_MEM_ACCESS_ALL, &memh);
    if (s == UCS_OK && (s = btl_uct_ucx.uct_md_mkey_pack(md->md, memh, key + KEY_HEAD)) != UCS_OK) {
        btl_uct_ucx.uct_md_mem_dereg(md->md, memh);
    }
    btl_uct_unlock();
    if (s != UCS_OK) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    opal_le_put16(key, KEY_MAGIC);
    opal_le_put16(key + 2, m->place.index);
    *key_len = KEY_HEAD + md->attr.rkey_packed_size;
    *registration = (mca_btl_registration_t *) memh;
    return MCA_SUCCESS;
}

void btl_uct_deregister_mem(mca_btl_module_t *module, mca_btl_registration_t *registration)
{
    btl_uct_lock();
    btl_uct_ucx.uct_md_mem_dereg(((btl_uct_module_t *) module)->rma->md->md, (uct_mem_h) registration);
    btl_uct_unlock();
}

/* ---- Counters ---- */

static const struct {
    const char *name, *help;
} texts[BTL_UCT_COUNTS] = {
    [BTL_UCT_PUTS] = {"puts", "Puts that are done: memory written to a peer's without a message"},
    [BTL_UCT_PUT_BYTES] = {"put_bytes", "Bytes of them"},
    [BTL_UCT_GETS] = {"gets", "Gets that are done: memory read out of a peer's, long messages with it"},
    [BTL_UCT_GET_BYTES] = {"get_bytes", "Bytes of them"},
};

static uint64_t read_count(void *context)
{
    return atomic_load_explicit(&mca_btl_uct.moved[(intptr_t) context], memory_order_relaxed);
}

int btl_uct_offer_counters(void)
{
    int rc = MCA_SUCCESS;
    for (intptr_t i = 0; rc == MCA_SUCCESS && i < BTL_UCT_COUNTS; i++) {
        rc = mca_btl_uct.services->counter("uct", texts[i].name, texts[i].help, read_count, (void *) i);
    }
    return rc;
}

static void note_done(bool get, size_t bytes)
{
    atomic_fetch_add_explicit(&mca_btl_uct.moved[get ? BTL_UCT_GETS : BTL_UCT_PUTS], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&mca_btl_uct.moved[get ? BTL_UCT_GET_BYTES : BTL_UCT_PUT_BYTES], bytes, memory_order_relaxed);
}

/* ---- Operations: life ---- */

static void op_release(btl_uct_op_t *op)
{
    const btl_uct_md_t *md = op->ep->module->rma->md;
    for (uint32_t i = 0; i < MCA_BTL_IOV_MAX; i++) {
        if (op->memh[i] != UCT_MEM_HANDLE_NULL) {
            btl_uct_ucx.uct_md_mem_dereg(md->md, op->memh[i]);
        }
    }
    if (op->unpacked) {
        btl_uct_ucx.uct_rkey_release(md->component, &op->rkey);
    }
}

static void op_count(mca_btl_endpoint_t *ep, int more)
{
    ep->ops += (uint32_t) more;
    if (ep->module->rma == &ep->module->mover) {
        mca_btl_uct.moving += (uint32_t) more;
    }
}

/* UCT's callback, and ours: nothing of it is under way any more; under the lock. */
static void op_ended(uct_completion_t *completion)
{
    btl_uct_op_t *op = OPAL_CONTAINER_OF(completion, btl_uct_op_t, completion);
    if (op->abandoned) {
        return;
    }
    opal_list_remove(&op->item);
    opal_list_append(&mca_btl_uct.ended, &op->item);
    if (mca_btl_uct.services->threads) {
        mca_btl_uct.services->wake();
    }
}

/* All has been given of it that will be. */
static void op_given(btl_uct_op_t *op, ucs_status_t status)
{
    opal_list_remove(&op->item);
    opal_list_append(&op->ep->ops_flight, &op->item);
    if (status != UCS_OK && op->completion.status == UCS_OK) {
        op->completion.status = status;
    }
    if (--op->completion.count == 0) {
        op_ended(&op->completion);
    }
}

/* With what it needs of the memory domain. */
static bool op_prepare(btl_uct_op_t *op, const uint8_t *key)
{
    const btl_uct_md_t *md = op->ep->module->rma->md;
    const mca_btl_descriptor_t *d = op->desc;
    for (uint32_t i = 0; (md->attr.cap.flags & UCT_MD_FLAG_NEED_MEMH) && i < d->iov_count; i++) {
        if (d->iov[i].iov_len > 0 &&
            btl_uct_ucx.uct_md_mem_reg(md->md, d->iov[i].iov_base, d->iov[i].iov_len,
                                       op->get ? UCT_MD_MEM_ACCESS_LOCAL_WRITE : UCT_MD_MEM_ACCESS_LOCAL_READ,
                                       &op->memh[i]) != UCS_OK) {
            op->memh[i] = UCT_MEM_HANDLE_NULL;
            return false;
        }
    }
    if (md->attr.cap.flags & UCT_MD_FLAG_NEED_RKEY) {
        op->unpacked = btl_uct_ucx.uct_rkey_unpack(md->component, key + KEY_HEAD, &op->rkey) == UCS_OK;
        return op->unpacked;
    }
    return true;
}

static btl_uct_op_t *op_new(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const uint8_t *key, bool get)
{
    btl_uct_op_t *op = calloc(1, sizeof(*op));
    if (!op) {
        return NULL;
    }
    *op = (btl_uct_op_t) {.completion = {op_ended, 1, UCS_OK}, .ep = ep, .desc = desc, .remote = remote, .get = get,
                          .rkey.rkey = UCT_INVALID_RKEY};
    for (uint32_t i = 0; i < MCA_BTL_IOV_MAX; i++) {
        op->memh[i] = UCT_MEM_HANDLE_NULL;
    }
    if (!op_prepare(op, key)) {
        op_release(op);
        free(op);
        return NULL;
    }
    return op;
}

/* ---- To UCT ---- */

static uct_ep_h mover_of(const mca_btl_endpoint_t *ep)
{
    return ep->module->rma == &ep->module->data ? ep->ep : ep->mover;
}

/* What UCT is to move at once. */
typedef struct piece {
    uct_iov_t iov[MCA_BTL_IOV_MAX];
    size_t count, len;
    uint32_t at;          /* behind it, as in the operation */
    size_t offset;
} piece_t;

/* The next one of an operation, of at most `entries` entries and `most` bytes. Its length; 0: there is none. */
static size_t next_piece(const btl_uct_op_t *op, size_t entries, size_t most, piece_t *p)
{
    const mca_btl_descriptor_t *d = op->desc;
    p->count = p->len = 0;
    for (p->at = op->at, p->offset = op->offset; p->at < d->iov_count && p->len < most; p->at++, p->offset = 0) {
        size_t n = d->iov[p->at].iov_len - p->offset, room = most - p->len;
        if (n > 0 && p->count == entries) {
            break;
        }
        if (n > 0) {
            p->iov[p->count++] = (uct_iov_t) {.buffer = (uint8_t *) d->iov[p->at].iov_base + p->offset,
                                              .length = n < room ? n : room, .memh = op->memh[p->at], .count = 1};
            p->len += n < room ? n : room;
        }
        if (n > room) {
            p->offset += room;
            break;
        }
    }
    return p->len;
}

static size_t min_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void unpack(void *to, const void *data, size_t len)
{
    memcpy(to, data, len);
}

static ucs_status_t give_get(btl_uct_op_t *op, uct_ep_h ep, piece_t *p)
{
    const uct_iface_attr_t *a = &op->ep->module->rma->attr;
    next_piece(op, min_of(a->cap.get.max_iov, MCA_BTL_IOV_MAX), a->cap.get.max_zcopy, p);
    if (p->len > 0 && p->len < a->cap.get.min_zcopy) {
        next_piece(op, 1, a->cap.get.max_bcopy, p);
        return uct_ep_get_bcopy(ep, unpack, p->iov[0].buffer, p->len, op->remote, op->rkey.rkey, &op->completion);
    }
    return p->len > 0 ? uct_ep_get_zcopy(ep, p->iov, p->count, op->remote, op->rkey.rkey, &op->completion) : UCS_OK;
}

static ucs_status_t give_put(btl_uct_op_t *op, uct_ep_h ep, piece_t *p)
{
    const uct_iface_attr_t *a = &op->ep->module->rma->attr;
    next_piece(op, min_of(a->cap.put.max_iov, MCA_BTL_IOV_MAX), a->cap.put.max_zcopy, p);
    return p->len > 0 ? uct_ep_put_zcopy(ep, p->iov, p->count, op->remote, op->rkey.rkey, &op->completion) : UCS_OK;
}

/* UCS_ERR_NO_RESOURCE: the rest later. */
static ucs_status_t op_give(btl_uct_op_t *op)
{
    uct_ep_h ep = mover_of(op->ep);
    ucs_status_t s;
    piece_t p;
    do {
        op->completion.count++;
        s = op->get ? give_get(op, ep, &p) : give_put(op, ep, &p);
        op->completion.count -= s != UCS_INPROGRESS;
        if (UCS_STATUS_IS_ERR(s)) {
            return s;
        }
        op->remote += p.len;
        op->at = p.at;
        op->offset = p.offset;
    } while (p.len > 0);
    if (!op->get) { /* a put that is complete for UCT may have left only; what is flushed has arrived */
        op->completion.count++;
        s = uct_ep_flush(ep, 0, &op->completion);
        op->completion.count -= s != UCS_INPROGRESS;
    }
    return UCS_STATUS_IS_ERR(s) ? s : UCS_OK;
}

bool btl_uct_ops_flush(mca_btl_endpoint_t *ep)
{
    opal_list_item_t *i;
    while ((i = opal_list_first(&ep->ops_waiting))) {
        btl_uct_op_t *op = OPAL_CONTAINER_OF(i, btl_uct_op_t, item);
        if (ep->state != BTL_UCT_UP || (ep->work & BTL_UCT_FAIL)) {
            return false;
        }
        ucs_status_t s = mover_of(ep) ? op_give(op) : UCS_ERR_UNREACHABLE;
        if (s == UCS_ERR_NO_RESOURCE) {
            return false;
        }
        if (s != UCS_OK && ep->module->rma == &ep->module->data) {
            btl_uct_fail_soon(ep, btl_uct_ucx.ucs_status_string(s));
        }
        op_given(op, s);
    }
    return true;
}

/* ---- From the user ---- */

static size_t length_of(const mca_btl_descriptor_t *desc)
{
    size_t len = 0;
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        len += desc->iov[i].iov_len;
    }
    return len;
}

/* May it take one more? Under the lock. */
static int admit(mca_btl_endpoint_t *ep)
{
    if (ep->told_down || ep->deleted) {
        return MCA_ERR_UNREACHABLE;
    }
    if (!ep->moves) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    if (ep->ops >= OPS_MAX) {
        ep->want_writable = true;
        return MCA_ERR_AGAIN;
    }
    return MCA_SUCCESS;
}

static int start(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const uint8_t *key, bool get)
{
    int rc = admit(ep);
    if (rc != MCA_SUCCESS) {
        return rc;
    }
    btl_uct_op_t *op = op_new(ep, desc, remote, key, get);
    if (!op) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    bool first = opal_list_is_empty(&ep->ops_waiting);
    opal_list_append(&ep->ops_waiting, &op->item);
    op_count(ep, 1);
    if (ep->state == BTL_UCT_APART) {
        btl_uct_connect(ep);
    } else if (ep->state == BTL_UCT_UP && first && !btl_uct_ops_flush(ep)) {
        btl_uct_ask(ep, BTL_UCT_FLUSH);
    }
    return 0;
}

static int move(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const uint8_t *key, bool get)
{
    uint32_t caps = ep->module->super.limits.caps;
    size_t len = length_of(desc);
    if (!(caps & (get ? MCA_BTL_CAP_GET : MCA_BTL_CAP_PUT))) {
        return MCA_ERR_NOT_SUPPORTED;
    }
    if (len == 0) {
        return 1;
    }
    if (!(caps & MCA_BTL_CAP_SINGLE_COPY)) {
        if (!key) {
            return MCA_ERR_BAD_PARAM;
        }
        if (opal_le_get16(key) != KEY_MAGIC || opal_le_get16(key + 2) != ep->place.index) {
            return MCA_ERR_NOT_AVAILABLE;
        }
    }
    if (len > LEN_MAX) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    btl_uct_lock();
    int rc = start(ep, desc, remote, key, get);
    btl_uct_unlock();
    return rc;
}

int btl_uct_put(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key)
{
    return move(ep, desc, remote, key, false);
}

int btl_uct_get(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key)
{
    return move(ep, desc, remote, key, true);
}

/* ---- Their end ---- */

void btl_uct_ops_stop(mca_btl_endpoint_t *ep)
{
    const mca_btl_services_t *services = mca_btl_uct.services;
    opal_list_item_t *i;
    while ((i = opal_list_first(&ep->ops_waiting))) {
        op_given(OPAL_CONTAINER_OF(i, btl_uct_op_t, item), UCS_ERR_CANCELED);
    }
    uct_ep_h mover = mover_of(ep);
    if (opal_list_is_empty(&ep->ops_flight) || !mover) {
        return;
    }
    /* Where UCT can't cancel them they end by themselves, or with the endpoint. */
    uct_ep_flush(mover, UCT_FLUSH_FLAG_CANCEL, NULL);
    uint64_t since = services->now_ns();
    for (uint32_t left = ep->ops; !opal_list_is_empty(&ep->ops_flight) && services->now_ns() - since < STOP_WAIT_NS;) {
        uct_worker_progress(mca_btl_uct.worker);
        size_t now = opal_list_length(&ep->ops_flight);
        if (now < left) {
            left = (uint32_t) now;
            since = services->now_ns();
        }
    }
}

void btl_uct_ops_abandon(mca_btl_endpoint_t *ep)
{
    opal_list_item_t *i;
    while ((i = opal_list_first(&ep->ops_flight))) {
        btl_uct_op_t *op = OPAL_CONTAINER_OF(i, btl_uct_op_t, item);
        op->completion.status = UCS_ERR_CANCELED;
        op_ended(&op->completion);
        op->abandoned = true;
    }
}

void btl_uct_ops_forget(mca_btl_endpoint_t *ep)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &mca_btl_uct.ended) {
        btl_uct_op_t *op = OPAL_CONTAINER_OF(i, btl_uct_op_t, item);
        if (op->ep == ep) {
            opal_list_remove(i);
            op_release(op);
            op_count(ep, -1);
            if (!op->abandoned) {
                free(op);
            }
        }
    }
}

/* One has ended. A mover that fails is not asked again, its peer's messages go on. */
static void tell(btl_uct_op_t *op)
{
    mca_btl_endpoint_t *ep = op->ep;
    mca_btl_descriptor_t *desc = op->desc;
    ucs_status_t status = op->completion.status;
    btl_uct_lock();
    op_release(op);
    op_count(ep, -1);
    ep->moves &= status == UCS_OK || mover_of(ep) == ep->ep || ep->state != BTL_UCT_UP;
    if (ep->want_writable && ep->ops == OPS_MAX / 2) {
        btl_uct_ask(ep, BTL_UCT_WRITABLE);
    }
    if (status == UCS_OK) {
        note_done(op->get, length_of(desc));
    }
    bool heed = !ep->deleted;
    btl_uct_unlock();
    if (!op->abandoned) {
        free(op);
    }
    if (heed && status == UCS_OK) {
        desc->event(desc, MCA_BTL_CONFIRMED, MCA_SUCCESS);
    } else if (heed) {
        desc->event(desc, MCA_BTL_UNCONFIRMED, MCA_ERR_UNREACHABLE);
    }
}

int btl_uct_ops_tell(void)
{
    int done = 0;
    for (;; done++) {
        btl_uct_lock();
        opal_list_item_t *item = opal_list_pop(&mca_btl_uct.ended);
        btl_uct_unlock();
        if (!item) {
            return done;
        }
        tell(OPAL_CONTAINER_OF(item, btl_uct_op_t, item));
    }
}
