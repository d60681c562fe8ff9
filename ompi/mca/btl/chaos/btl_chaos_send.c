/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Sending: what a fragment is to suffer is decided when it is taken; most go straight through. */
#include "ompi/mca/btl/chaos/btl_chaos.h"

/* MCA_SUCCESS: the endpoint takes fragments now. The caller holds its lock. */
static int may_take(mca_btl_endpoint_t *ep)
{
    if (atomic_load_explicit(&ep->module->life, memory_order_relaxed) == CHAOS_DOWN || ep->below_down) {
        return MCA_ERR_UNREACHABLE;
    }
    if (ep->held >= mca_btl_chaos_params.hold) {
        ep->refused = true;
        mca_btl_chaos_wake(ep);
        return MCA_ERR_AGAIN;
    }
    return MCA_SUCCESS;
}

/* What the module below answered to a fragment that went straight through. */
static int went(mca_btl_endpoint_t *ep, int rc, size_t len)
{
    if (rc == MCA_ERR_AGAIN) {
        ep->refused = ep->blocked = true;
    } else if (rc >= 0) {
        mca_btl_chaos_count(CHAOS_FRAGMENTS);
        mca_btl_chaos_passed(ep, len);
    }
    return rc;
}

/* A fragment that is not sent as it is: MCA_SUCCESS, or MCA_ERR_AGAIN if memory is out (`entry` is NULL). */
static int suffer(mca_btl_endpoint_t *ep, chaos_entry_t *entry, chaos_fault_t fault)
{
    if (!entry) {
        ep->refused = true;
        mca_btl_chaos_wake(ep);
        return MCA_ERR_AGAIN;
    }
    mca_btl_chaos_count(CHAOS_FRAGMENTS);
    if (fault != CHAOS_NONE) {
        mca_btl_chaos_count(fault);
    }
    if (fault == CHAOS_LOSS) {
        free(entry);
    } else {
        mca_btl_chaos_place(ep, entry, fault);
    }
    return MCA_SUCCESS;
}

int mca_btl_chaos_send_short(mca_btl_endpoint_t *ep, const void *header, size_t header_len, const void *payload,
                             size_t len)
{
    chaos_lock(ep);
    int rc = may_take(ep);
    if (rc == MCA_SUCCESS) {
        uint64_t before = ep->random;
        chaos_fault_t fault = mca_btl_chaos_fate(ep);
        if (fault == CHAOS_NONE && !mca_btl_chaos_must_wait(ep)) {
            rc = went(ep, chaos_below(ep)->send_short(chaos_endpoint(ep), header, header_len, payload, len),
                      header_len + len);
        } else {
            struct iovec iov = {(void *) (uintptr_t) payload, len};
            rc = suffer(ep, mca_btl_chaos_entry_copy(header, header_len, &iov, 1), fault);
        }
        ep->random = rc < 0 ? before : ep->random;
    }
    chaos_unlock(ep);
    return rc;
}

/* The lock is held until commit. */
int mca_btl_chaos_reserve(mca_btl_endpoint_t *ep, size_t min, size_t want, mca_btl_room_t *room)
{
    size_t max = ep->module->below->limits.max_frag;
    if (min > max) {
        return MCA_ERR_BAD_PARAM;
    }
    chaos_lock(ep);
    int rc = may_take(ep);
    ep->lent = NULL;
    if (rc == MCA_SUCCESS && mca_btl_chaos_must_wait(ep)) {
        size_t len = want < min ? min : want < max ? want : max;
        ep->lent = malloc(sizeof(*ep->lent) + len);
        if (ep->lent) {
            *ep->lent = (chaos_entry_t){.what = CHAOS_BYTES};
            room->ptr = ep->lent->bytes;
            room->len = len;
        } else {
            ep->refused = true;
            mca_btl_chaos_wake(ep);
            rc = MCA_ERR_AGAIN;
        }
    } else if (rc == MCA_SUCCESS) {
        rc = chaos_below(ep)->reserve(chaos_endpoint(ep), min, want, room);
        if (rc == MCA_ERR_AGAIN) {
            ep->refused = ep->blocked = true;
        }
    }
    if (rc != MCA_SUCCESS) {
        chaos_unlock(ep);
    }
    return rc;
}

/* What was written into room of the module below. */
static void commit_below(mca_btl_endpoint_t *ep, mca_btl_room_t *room, size_t len, chaos_fault_t fault)
{
    const mca_btl_module_ops_t *ops = chaos_below(ep);
    struct iovec iov = {room->ptr, len};
    chaos_entry_t *copy = fault == CHAOS_NONE || fault == CHAOS_DAMAGE || fault == CHAOS_LOSS
                              ? NULL : mca_btl_chaos_entry_copy(NULL, 0, &iov, 1);
    if (fault == CHAOS_DAMAGE) {
        mca_btl_chaos_turn(&iov, 1, mca_btl_chaos_bit(ep, len));
        mca_btl_chaos_count(CHAOS_DAMAGE);
    }
    if (copy || fault == CHAOS_LOSS) {
        ops->commit(chaos_endpoint(ep), room, 0);
        mca_btl_chaos_count(CHAOS_FRAGMENTS);
        mca_btl_chaos_count(fault);
        if (copy) {
            mca_btl_chaos_place(ep, copy, fault);
        }
    } else {
        ops->commit(chaos_endpoint(ep), room, len);
        went(ep, MCA_SUCCESS, len);
    }
}

void mca_btl_chaos_commit(mca_btl_endpoint_t *ep, mca_btl_room_t *room, size_t len)
{
    chaos_entry_t *lent = ep->lent;
    ep->lent = NULL;
    if (len == 0) {
        if (lent) {
            free(lent);
        } else {
            chaos_below(ep)->commit(chaos_endpoint(ep), room, 0);
        }
    } else if (lent) {
        lent->len = len;
        suffer(ep, lent, mca_btl_chaos_fate(ep));
    } else {
        commit_below(ep, room, len, mca_btl_chaos_fate(ep));
    }
    chaos_unlock(ep);
}

int mca_btl_chaos_send(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc)
{
    chaos_lock(ep);
    int rc = may_take(ep);
    if (rc == MCA_SUCCESS) {
        uint64_t before = ep->random;
        chaos_fault_t fault = mca_btl_chaos_fate(ep);
        size_t len = desc->header_len + chaos_iov_len(desc->iov, desc->iov_count);
        if (fault == CHAOS_NONE && !mca_btl_chaos_must_wait(ep)) {
            rc = went(ep, chaos_below(ep)->send(chaos_endpoint(ep), desc), len);
        } else if (fault == CHAOS_NONE || fault == CHAOS_REORDER || fault == CHAOS_DELAY) {
            rc = suffer(ep, mca_btl_chaos_entry_desc(CHAOS_DESC, desc), fault);
        } else { /* the copy is changed, or sent twice: for the user it is done */
            rc = suffer(ep, mca_btl_chaos_entry_copy(desc->header, desc->header_len, desc->iov, desc->iov_count),
                        fault);
            rc = rc == MCA_SUCCESS ? 1 : rc;
        }
        ep->random = rc < 0 ? before : ep->random;
    }
    chaos_unlock(ep);
    return rc;
}

/* ---- In parts ---- */

static const mca_btl_module_ops_t *filled_below(const mca_btl_endpoint_t *ep)
{
    const mca_btl_module_t *below = ep->module->below;
    return below->component->contract_minor >= 18 && below->ops->send_filled ? below->ops : NULL;
}

void mca_btl_chaos_parts(mca_btl_endpoint_t *ep, mca_btl_parts_t *limits)
{
    const mca_btl_module_ops_t *ops = filled_below(ep);
    *limits = (mca_btl_parts_t){.min = SIZE_MAX, .max = 0};
    if (ops) {
        ops->parts(chaos_endpoint(ep), limits);
    }
}

/* Between the user's fill() and the module below. */
typedef struct filling {
    mca_btl_fill_fn_t fill;
    void *context;
    uint64_t bit; /* of the payload that is turned, + 1; 0: none */
} filling_t;

static void fill_damaged(void *context, size_t at, void *to, size_t len, mca_btl_copy_t how)
{
    const filling_t *f = context;
    struct iovec iov = {to, len};
    f->fill(f->context, at, to, len, how);
    if (f->bit > 8 * (uint64_t) at) {
        mca_btl_chaos_turn(&iov, 1, f->bit - 1 - 8 * (uint64_t) at);
    }
}

static int filled_damaged(mca_btl_endpoint_t *ep, const void *header, size_t header_len, size_t len, mca_btl_fill_fn_t fill, void *context)
{
    unsigned char head[MCA_BTL_HEADER_MAX];
    struct iovec iov = {head, header_len};
    uint64_t bit = mca_btl_chaos_bit(ep, header_len + len), first = 8 * (uint64_t) header_len;
    filling_t filling = {.fill = fill, .context = context, .bit = bit >= first ? bit - first + 1 : 0};
    memcpy(head, header, header_len);
    mca_btl_chaos_turn(&iov, 1, bit);
    int rc = chaos_below(ep)->send_filled(chaos_endpoint(ep), head, header_len, len, fill_damaged, &filling);
    if (rc == MCA_SUCCESS) {
        mca_btl_chaos_count(CHAOS_DAMAGE);
    }
    return rc;
}

/* For the user it is on its way, so fill() has written it. */
static int filled_lost(size_t len, mca_btl_fill_fn_t fill, void *context)
{
    void *nowhere = malloc(len);
    if (!nowhere) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    fill(context, 0, nowhere, len, MCA_BTL_COPY_ANY);
    free(nowhere);
    mca_btl_chaos_count(CHAOS_LOSS);
    return MCA_SUCCESS;
}

/* What is to be held back, or sent twice, goes by the other ways, to the same fate. */
int mca_btl_chaos_send_filled(mca_btl_endpoint_t *ep, const void *header, size_t header_len, size_t len, mca_btl_fill_fn_t fill, void *context)
{
    chaos_lock(ep);
    int rc = may_take(ep);
    if (rc == MCA_SUCCESS) {
        uint64_t before = ep->random;
        chaos_fault_t fault = mca_btl_chaos_fate(ep);
        if (mca_btl_chaos_must_wait(ep) || !filled_below(ep) || header_len > MCA_BTL_HEADER_MAX) {
            rc = MCA_ERR_NOT_AVAILABLE;
        } else if (fault == CHAOS_DAMAGE) {
            rc = filled_damaged(ep, header, header_len, len, fill, context);
        } else if (fault == CHAOS_LOSS) {
            rc = filled_lost(len, fill, context);
        } else if (fault == CHAOS_NONE) {
            rc = chaos_below(ep)->send_filled(chaos_endpoint(ep), header, header_len, len, fill, context);
        } else {
            rc = MCA_ERR_NOT_AVAILABLE;
        }
        rc = went(ep, rc, header_len + len);
        ep->random = rc < 0 ? before : ep->random;
    } else if (rc == MCA_ERR_AGAIN) {
        rc = MCA_ERR_NOT_AVAILABLE;
    }
    chaos_unlock(ep);
    return rc;
}

static void fill_copy(void *context, size_t at, void *to, size_t len, mca_btl_copy_t how)
{
    (void) how;
    memcpy(to, (const char *) context + at, len);
}

int mca_btl_chaos_send_parts(mca_btl_endpoint_t *ep, const void *header, size_t header_len, const void *payload, size_t len)
{
    return mca_btl_chaos_send_filled(ep, header, header_len, len, fill_copy, (void *) (uintptr_t) payload);
}

/* ---- Put and get ---- */

/* One that is damaged: its descriptor stands for the user's. */
typedef struct transfer {
    mca_btl_descriptor_t desc;
    mca_btl_descriptor_t *user;
    bool get;
    uint64_t bit;
    unsigned char copy[]; /* of what is put, damaged */
} transfer_t;

static void transfer_damage(const transfer_t *t)
{
    if (t->get) {
        mca_btl_chaos_turn(t->user->iov, t->user->iov_count, t->bit);
    }
}

static void transfer_event(mca_btl_descriptor_t *desc, mca_btl_event_t event, int status)
{
    transfer_t *t = desc->user;
    mca_btl_descriptor_t *user = t->user;
    if (event == MCA_BTL_CONFIRMED) {
        transfer_damage(t);
    }
    if (event != MCA_BTL_REUSABLE) {
        free(t);
    }
    user->event(user, event, status);
}

static transfer_t *transfer_new(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *user, bool get, size_t len)
{
    transfer_t *t = malloc(sizeof(*t) + (get ? 0 : len));
    if (!t) {
        return NULL;
    }
    *t = (transfer_t){.desc = *user, .user = user, .get = get, .bit = mca_btl_chaos_bit(ep, len)};
    t->desc.event = transfer_event;
    t->desc.user = t;
    if (!get) {
        unsigned char *at = t->copy;
        for (uint32_t i = 0; i < user->iov_count; i++) {
            memcpy(at, user->iov[i].iov_base, user->iov[i].iov_len);
            at += user->iov[i].iov_len;
        }
        t->desc.iov[0] = (struct iovec){t->copy, len};
        t->desc.iov_count = 1;
        mca_btl_chaos_turn(t->desc.iov, 1, t->bit);
    }
    return t;
}

typedef int (*transfer_fn_t)(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key);

static int transfer_damaged(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key,
                            bool get, size_t len)
{
    transfer_t *t = transfer_new(ep, desc, get, len);
    transfer_fn_t fn = get ? chaos_below(ep)->get : chaos_below(ep)->put;
    if (!t) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    int rc = fn(chaos_endpoint(ep), &t->desc, remote, key);
    if (rc == 1) {
        transfer_damage(t);
    }
    if (rc >= 0) {
        mca_btl_chaos_count(CHAOS_DAMAGE);
    }
    if (rc != 0) {
        free(t);
    }
    return rc;
}

/* Lost, delayed, or behind others: an entry of the line, also what is to be overtaken. */
static int transfer_later(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key,
                          bool get, chaos_fault_t fault)
{
    chaos_what_t what = fault == CHAOS_LOSS ? CHAOS_REFUSE : get ? CHAOS_GET : CHAOS_PUT;
    chaos_entry_t *e = mca_btl_chaos_entry_desc(what, desc);
    if (!e) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    e->remote = remote;
    e->has_key = key != NULL;
    if (key) {
        memcpy(e->key, key, sizeof(e->key));
    }
    if (fault == CHAOS_LOSS) {
        mca_btl_chaos_count(CHAOS_LOSS);
        fault = CHAOS_DELAY; /* it is noticed later */
        mca_btl_chaos_count(CHAOS_FRAGMENTS);
        mca_btl_chaos_place(ep, e, fault);
        return 0;
    }
    suffer(ep, e, fault);
    return 0;
}

static int transfer(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key, bool get)
{
    uint32_t able = ep->module->below->limits.caps & (get ? MCA_BTL_CAP_GET : MCA_BTL_CAP_PUT);
    transfer_fn_t fn = get ? chaos_below(ep)->get : chaos_below(ep)->put;
    size_t len = chaos_iov_len(desc->iov, desc->iov_count);
    if (!able || len == 0) {
        return fn(chaos_endpoint(ep), desc, remote, key);
    }
    chaos_lock(ep);
    int rc = may_take(ep);
    if (rc == MCA_SUCCESS) {
        uint64_t before = ep->random;
        chaos_fault_t fault = mca_btl_chaos_fate(ep);
        fault = fault == CHAOS_DUPLICATE ? CHAOS_NONE : fault; /* a second time changes nothing */
        if (fault == CHAOS_DAMAGE) {
            rc = went(ep, transfer_damaged(ep, desc, remote, key, get, len), len);
        } else if (fault == CHAOS_NONE && !mca_btl_chaos_must_wait(ep)) {
            rc = went(ep, fn(chaos_endpoint(ep), desc, remote, key), len);
        } else {
            rc = transfer_later(ep, desc, remote, key, get, fault);
        }
        ep->random = rc < 0 ? before : ep->random;
    }
    chaos_unlock(ep);
    return rc;
}

int mca_btl_chaos_put(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key)
{
    return transfer(ep, desc, remote, key, false);
}

int mca_btl_chaos_get(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key)
{
    return transfer(ep, desc, remote, key, true);
}
