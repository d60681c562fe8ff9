/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Fragments that are held back: their lists, and passing them on to the module below. */
#include "ompi/mca/btl/chaos/btl_chaos.h"

#include <stdio.h>

enum { BURST_NS = 1000000 }; /* a throttled link takes that much ahead of its time */

static chaos_entry_t *entry_of(opal_list_item_t *item)
{
    return OPAL_CONTAINER_OF(item, chaos_entry_t, item);
}

/* ---- Entries ---- */

chaos_entry_t *mca_btl_chaos_entry_copy(const void *header, size_t header_len, const struct iovec *iov, size_t count)
{
    size_t len = header_len + chaos_iov_len(iov, count);
    chaos_entry_t *e = malloc(sizeof(*e) + len);
    if (!e) {
        return NULL;
    }
    *e = (chaos_entry_t){.what = CHAOS_BYTES, .len = len};
    unsigned char *at = e->bytes;
    if (header_len > 0) {
        memcpy(at, header, header_len);
        at += header_len;
    }
    for (size_t i = 0; i < count; i++) {
        if (iov[i].iov_len > 0) {
            memcpy(at, iov[i].iov_base, iov[i].iov_len);
            at += iov[i].iov_len;
        }
    }
    return e;
}

chaos_entry_t *mca_btl_chaos_entry_desc(chaos_what_t what, mca_btl_descriptor_t *desc)
{
    chaos_entry_t *e = calloc(1, sizeof(*e));
    if (e) {
        e->what = what;
        e->desc = desc;
        e->len = desc->header_len + chaos_iov_len(desc->iov, desc->iov_count);
    }
    return e;
}

static void free_entries(opal_list_t *list)
{
    for (opal_list_item_t *i; (i = opal_list_pop(list));) {
        free(entry_of(i));
    }
}

void mca_btl_chaos_drop_all(mca_btl_endpoint_t *ep)
{
    free_entries(&ep->line);
    free_entries(&ep->late);
    free_entries(&ep->ended);
    ep->held = 0;
}

bool mca_btl_chaos_is_empty(mca_btl_endpoint_t *ep)
{
    return opal_list_is_empty(&ep->line) && opal_list_is_empty(&ep->late) && opal_list_is_empty(&ep->ended);
}

void mca_btl_chaos_wake(mca_btl_endpoint_t *ep)
{
    atomic_store(&ep->work, true);
    if (!atomic_exchange(&ep->module->active, true)) {
        mca_btl_chaos_services->poller_active(ep->module->poller, true);
    }
    if (mca_btl_chaos_services->threads) {
        mca_btl_chaos_services->wake(); /* the owner of progress may sleep, without a timer for this */
    }
}

/* ---- Passing on ---- */

static void count_passed(mca_btl_endpoint_t *ep, size_t len)
{
    uint64_t rate = mca_btl_chaos_throttle(ep->module);
    ep->passed++;
    if (rate > 0) {
        uint64_t now = mca_btl_chaos_services->now_ns(), from = atomic_load(&ep->module->free_ns);
        from = from > now ? from : now;
        atomic_store(&ep->module->free_ns, from + (uint64_t) ((double) len * 1e9 / (double) rate));
    }
}

/* Has the link time, going by its rate? */
static bool is_free(const chaos_module_t *m, uint64_t now)
{
    return mca_btl_chaos_throttle(m) == 0 || atomic_load(&m->free_ns) <= now + BURST_NS;
}

bool mca_btl_chaos_must_wait(mca_btl_endpoint_t *ep)
{
    chaos_module_t *m = ep->module;
    return !opal_list_is_empty(&ep->line) || atomic_load_explicit(&m->life, memory_order_relaxed) != CHAOS_UP ||
           (mca_btl_chaos_throttle(m) > 0 && !is_free(m, mca_btl_chaos_services->now_ns()));
}

static int send_bytes(mca_btl_endpoint_t *ep, const unsigned char *bytes, size_t len)
{
    const mca_btl_module_ops_t *ops = chaos_below(ep);
    size_t head = len < MCA_BTL_HEADER_MAX ? len : MCA_BTL_HEADER_MAX;
    mca_btl_room_t room = {.how = MCA_BTL_COPY_ANY};
    if (len <= ep->module->below->limits.short_max) {
        return ops->send_short(chaos_endpoint(ep), bytes, head, bytes + head, len - head);
    }
    int rc = ops->reserve(chaos_endpoint(ep), len, len, &room);
    if (rc == MCA_SUCCESS) {
        memcpy(room.ptr, bytes, len);
        ops->commit(chaos_endpoint(ep), &room, len);
    }
    return rc;
}

/* 1: done; 0: its events come from below; else why not. */
static int send_entry(mca_btl_endpoint_t *ep, chaos_entry_t *e)
{
    const mca_btl_module_ops_t *ops = chaos_below(ep);
    const void *key = e->has_key ? e->key : NULL;
    int rc;
    switch (e->what) {
    case CHAOS_BYTES:
        rc = send_bytes(ep, e->bytes, e->len);
        return rc == MCA_SUCCESS ? 1 : rc;
    case CHAOS_DESC:
        return ops->send(chaos_endpoint(ep), e->desc);
    case CHAOS_GET:
        return ops->get(chaos_endpoint(ep), e->desc, e->remote, key);
    case CHAOS_PUT:
        return ops->put(chaos_endpoint(ep), e->desc, e->remote, key);
    default:
        return MCA_ERR_UNREACHABLE;
    }
}

static void take_out(mca_btl_endpoint_t *ep, chaos_entry_t *e)
{
    opal_list_remove(&e->item);
    ep->held -= e->len;
}

/* The user must be told how it went. */
static void end(mca_btl_endpoint_t *ep, chaos_entry_t *e, int status)
{
    e->status = status;
    opal_list_append(&ep->ended, &e->item);
}

/* False: not now. */
static bool pass(mca_btl_endpoint_t *ep, chaos_entry_t *e)
{
    int rc = send_entry(ep, e);
    if (rc == MCA_ERR_AGAIN || (rc < 0 && e->what == CHAOS_BYTES)) {
        ep->blocked = true; /* until it is writable; or down, and then what is held is given back */
        return false;
    }
    take_out(ep, e);
    count_passed(ep, e->len);
    if (e->what != CHAOS_BYTES && rc != 0) {
        end(ep, e, rc == 1 ? MCA_SUCCESS : rc);
    } else {
        free(e);
    }
    return true;
}

/* The first of the line that may go. */
static chaos_entry_t *due_in_line(mca_btl_endpoint_t *ep, uint64_t now)
{
    opal_list_item_t *first = opal_list_first(&ep->line);
    chaos_entry_t *e = first ? entry_of(first) : NULL;
    return e && e->due_ns <= now && is_free(ep->module, now) ? e : NULL;
}

static chaos_entry_t *due_late(mca_btl_endpoint_t *ep, uint64_t now)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &ep->late) {
        chaos_entry_t *e = entry_of(i);
        if (e->after <= ep->passed || e->due_ns <= now) {
            return e;
        }
    }
    return NULL;
}

/* Pass on all that is due. The caller holds the endpoint's lock. */
static int flush(mca_btl_endpoint_t *ep, uint64_t now)
{
    int done = 0;
    chaos_entry_t *e;
    if (atomic_load(&ep->module->life) != CHAOS_UP || ep->below_down) {
        return 0;
    }
    while (!ep->blocked && (e = due_in_line(ep, now)) && pass(ep, e)) {
        done++;
    }
    while (!ep->blocked && (e = due_late(ep, now)) && pass(ep, e)) {
        done++;
    }
    return done;
}

void mca_btl_chaos_passed(mca_btl_endpoint_t *ep, size_t len)
{
    count_passed(ep, len);
    if (!opal_list_is_empty(&ep->late)) {
        flush(ep, mca_btl_chaos_services->now_ns());
    }
}

/* ---- Placing ---- */

static void append(mca_btl_endpoint_t *ep, opal_list_t *list, chaos_entry_t *e)
{
    e->number = ep->taken++;
    ep->held += e->len;
    opal_list_append(list, &e->item);
}

static void append_line(mca_btl_endpoint_t *ep, chaos_entry_t *e, uint64_t due)
{
    ep->line_ns = due > ep->line_ns ? due : ep->line_ns;
    e->due_ns = opal_list_is_empty(&ep->line) ? due : ep->line_ns;
    ep->line_ns = e->due_ns;
    append(ep, &ep->line, e);
}

static void append_late(mca_btl_endpoint_t *ep, chaos_entry_t *e, uint64_t now)
{
    e->after = ep->passed + 1 + mca_btl_chaos_draw(&ep->random, (uint64_t) mca_btl_chaos_params.depth);
    e->due_ns = now + (uint64_t) mca_btl_chaos_params.delay_us * 1000;
    append(ep, &ep->late, e);
}

/* A link that fades: the first few fragments arrive, though all will be given back. */
static void arrive_fading(mca_btl_endpoint_t *ep, chaos_entry_t *e)
{
    chaos_entry_t *copy = NULL;
    if (ep->fading == 0 || e->what > CHAOS_DESC) {
        return;
    }
    ep->fading--;
    if (e->what == CHAOS_DESC) {
        copy = mca_btl_chaos_entry_copy(e->desc->header, e->desc->header_len, e->desc->iov, e->desc->iov_count);
    }
    if (e->what == CHAOS_BYTES || copy) {
        e->arrives = send_bytes(ep, copy ? copy->bytes : e->bytes, e->len) == MCA_SUCCESS;
    }
    free(copy);
}

static void damage(mca_btl_endpoint_t *ep, chaos_entry_t *e)
{
    struct iovec all = {e->bytes, e->len};
    uint64_t bit = mca_btl_chaos_bit(ep, e->len);
    mca_btl_chaos_turn(&all, 1, bit);
    e->damage = bit + 1;
}

void mca_btl_chaos_place(mca_btl_endpoint_t *ep, chaos_entry_t *e, chaos_fault_t fault)
{
    uint64_t now = mca_btl_chaos_services->now_ns();
    chaos_entry_t *again = NULL;
    if (fault == CHAOS_DAMAGE) {
        damage(ep, e);
    } else if (fault == CHAOS_DUPLICATE) {
        struct iovec all = {e->bytes, e->len};
        again = mca_btl_chaos_entry_copy(NULL, 0, &all, 1);
    }
    if (atomic_load(&ep->module->life) == CHAOS_FADING) {
        arrive_fading(ep, e);
    }
    if (fault == CHAOS_REORDER) {
        append_late(ep, e, now);
    } else {
        uint64_t delay = fault != CHAOS_DELAY ? 0
                         : 1 + mca_btl_chaos_draw(&ep->random, (uint64_t) mca_btl_chaos_params.delay_us * 1000 + 1);
        append_line(ep, e, delay > 0 ? now + delay : 0);
    }
    if (again) {
        again->repeat = true;
        append_late(ep, again, now);
    }
    flush(ep, now);
    if (!mca_btl_chaos_is_empty(ep)) {
        mca_btl_chaos_wake(ep);
    }
}

/* ---- From progress ---- */

/* All that is held ends, repeats left out, in the order in which it was taken and as it was given to us. */
static void end_all(mca_btl_endpoint_t *ep)
{
    for (;;) {
        opal_list_item_t *a = opal_list_first(&ep->line), *b = opal_list_first(&ep->late);
        if (!a && !b) {
            return;
        }
        chaos_entry_t *e = !b || (a && entry_of(a)->number < entry_of(b)->number) ? entry_of(a) : entry_of(b);
        take_out(ep, e);
        if (e->repeat) {
            free(e);
            continue;
        }
        if (e->damage > 0) {
            struct iovec all = {e->bytes, e->len};
            mca_btl_chaos_turn(&all, 1, e->damage - 1);
            if (!e->arrives) { /* nobody can notice */
                mca_btl_chaos_count_back(CHAOS_DAMAGE);
            }
        }
        end(ep, e, MCA_ERR_UNREACHABLE);
    }
}

/* What the user must hear, besides the ends of fragments. */
typedef struct told {
    bool writable, state, down;
    char why[96];
} told_t;

/* The caller holds the endpoint's lock. */
static void note_state(mca_btl_endpoint_t *ep, told_t *told)
{
    bool dead = atomic_load(&ep->module->life) == CHAOS_DOWN;
    bool down = dead || ep->below_down;
    if (down != ep->told_down) {
        ep->told_down = told->down = down;
        told->state = true;
        snprintf(told->why, sizeof(told->why), "%s",
                 !down ? "it came back" : dead ? "btl/chaos let it die" : ep->why);
        ep->refused = ep->refused && !down; /* who was refused hears of it */
    }
    if (ep->give_back) {
        ep->give_back = ep->blocked = false;
        end_all(ep);
    }
    if (ep->refused && !ep->blocked && !down && ep->held <= mca_btl_chaos_params.hold / 2) {
        ep->refused = false;
        told->writable = true;
    }
}

/* One after the other: a callback may recall the next one. */
static int tell_ended(mca_btl_endpoint_t *ep)
{
    for (int done = 0;; done++) {
        chaos_lock(ep);
        opal_list_item_t *first = opal_list_pop(&ep->ended);
        chaos_unlock(ep);
        if (!first) {
            return done;
        }
        chaos_entry_t *e = entry_of(first);
        if (e->what == CHAOS_BYTES) {
            ep->module->super.upcalls->returned(ep->cookie, ep, e->bytes, e->len, e->status);
        } else {
            e->desc->event(e->desc, e->status == MCA_SUCCESS ? MCA_BTL_CONFIRMED : MCA_BTL_UNCONFIRMED, e->status);
        }
        free(e);
    }
}

int mca_btl_chaos_progress(mca_btl_endpoint_t *ep, uint64_t now)
{
    told_t told = {.writable = false};
    chaos_lock(ep);
    if (ep->closed) {
        chaos_unlock(ep);
        return 0;
    }
    int done = flush(ep, now);
    note_state(ep, &told);
    atomic_store(&ep->work, !mca_btl_chaos_is_empty(ep));
    chaos_unlock(ep);
    const mca_btl_upcalls_t *up = ep->module->super.upcalls;
    if (told.state) {
        up->state(ep->cookie, ep, told.down ? MCA_BTL_STATE_DOWN : MCA_BTL_STATE_UP, told.why);
    }
    done += tell_ended(ep);
    if (told.writable) {
        up->writable(ep->cookie, ep);
    }
    return done + told.state + told.writable;
}

/* ---- Letting go ---- */

static chaos_entry_t *find_desc(opal_list_t *list, const mca_btl_descriptor_t *desc)
{
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, list) {
        if (entry_of(i)->desc == desc) {
            return entry_of(i);
        }
    }
    return NULL;
}

/* What we hold has not gone out: it never does. */
int mca_btl_chaos_recall(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc)
{
    chaos_lock(ep);
    chaos_entry_t *e = find_desc(&ep->line, desc), *over = find_desc(&ep->ended, desc);
    e = e ? e : find_desc(&ep->late, desc);
    if (e) {
        take_out(ep, e);
        end(ep, e, MCA_ERR_NOT_AVAILABLE);
    } else if (over) {
        over->status = MCA_ERR_NOT_AVAILABLE;
    }
    chaos_unlock(ep);
    if (e) {
        mca_btl_chaos_wake(ep);
    }
    return e || over ? MCA_SUCCESS : chaos_below(ep)->recall(chaos_endpoint(ep), desc);
}

uint64_t mca_btl_chaos_due(mca_btl_endpoint_t *ep)
{
    uint64_t due = UINT64_MAX;
    opal_list_item_t *i, *tmp;
    chaos_lock(ep);
    if (!ep->blocked && !ep->below_down && atomic_load(&ep->module->life) == CHAOS_UP) {
        opal_list_item_t *first = opal_list_first(&ep->line);
        if (first) {
            uint64_t link = mca_btl_chaos_throttle(ep->module) > 0 ? atomic_load(&ep->module->free_ns) : 0;
            link = link > BURST_NS ? link - BURST_NS : 0;
            due = entry_of(first)->due_ns > link ? entry_of(first)->due_ns : link;
        }
        OPAL_LIST_FOREACH (i, tmp, &ep->late) {
            due = entry_of(i)->due_ns < due ? entry_of(i)->due_ns : due;
        }
    }
    chaos_unlock(ep);
    return due;
}
