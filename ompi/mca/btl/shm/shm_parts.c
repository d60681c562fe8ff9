/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fragments of some ten or hundred KiB that the receiver reads while they are written: the sender fills chunks, and
 * says after each part how far it is. The receiver copies each part to where the payload goes as soon as the part is there, so that both
 * copy at the same time; where the payload has no place yet, the fragment is collected in memory of its own.
 *
 * The sender takes all chunks that a fragment needs before it writes the first part: what has begun becomes complete, unless the
 * sender dies. Nothing else of the same sender stands between the parts.
 */
#include <stdlib.h>
#include "ompi/mca/btl/shm/shm.h"
#include "ompi/mca/btl/shm/shm_ring.h"
#include "opal/runtime/progress.h"

enum {
    SHM_PARTS_CHUNKS = 64, /* of one fragment at most */
    SHM_PARTS_SHORT = 32 << 10, /* bytes of payload of fragments of which the first lines are asked for early */
    SHM_PARTS_AHEAD = 16,  /* these lines */
    SHM_PARTS_LONG = 512 << 10, /* bytes of payload; longer ones: see shm_trust.h */
    SHM_PARTS_OF_LONG = 16, /* where a part of btl_shm_part bytes is less than that of a fragment, it has more, but no more than: */
    SHM_PARTS_LONGEST = 64 << 10,
    SHM_PARTS_CLASS_MIN = 16 << 10, /* shorter ones are in the first class */
    SHM_PARTS_FILLED = 2,  /* times as long, where the user writes them: it does more than to copy */
    SHM_PARTS_CRUMB = SHM_LINE, /* so few bytes, as a sum behind the payload, do not take another chunk: there is room behind its payload */
    SHM_PARTS_HEADER = 2 * SHM_LINE - SHM_WORD - sizeof(shm_part_t), /* of a policy's and of the engine's */
};

void mca_btl_shm_parts_limits(mca_btl_endpoint_t *ep, mca_btl_parts_t *limits)
{
    const shm_layout_t *l = &ep->module->layout;
    size_t chunks = shm_chunks_round(l) * SHM_WARM_SHARE / 32; /* what goes out may be kept for answers */
    chunks = chunks < SHM_PARTS_CHUNKS ? chunks : SHM_PARTS_CHUNKS;
    size_t most = chunks * shm_chunk_payload(l), sure = SHM_PARTS_LONG + MCA_BTL_HEADER_MAX;
    if (ep->module->services->threads && most > sure) {
        most = sure; /* whether one crosses another one is not seen: mca_btl_shm_has_come() */
    }
    limits->min = mca_btl_shm_params.parts_min;
    limits->max = mca_btl_shm_params.parts_max < most ? mca_btl_shm_params.parts_max : most;
    limits->first = mca_btl_shm_params.part;
}

/* ---- Sending ---- */

/* What is being sent: its payload, its chunks as this process names them, and how far it is. */
typedef struct shm_writing {
    mca_btl_fill_fn_t fill;           /* writes the payload */
    void *context;
    size_t total, at;
    uint32_t part, first;             /* bytes of one, and of the first one */
    shm_loan_t loan;                  /* the first chunk's: of all the same way, and the offset of what needs but one */
    mca_btl_copy_t how;               /* it is written */
    uint32_t chunks[SHM_PARTS_CHUNKS], count;
} shm_writing_t;

/* What goes as it is. */
static void shm_fill_copy(void *context, size_t at, void *to, size_t len, mca_btl_copy_t how)
{
    opal_copy_into(to, (const unsigned char *)context + at, len, (opal_copy_how_t)how);
}

/* All chunks, or none. */
static bool shm_take_chunks(mca_btl_endpoint_t *ep, shm_writing_t *w)
{
    shm_module_t *m = ep->module;
    size_t size = shm_chunk_payload(&m->layout), whole = w->total > SHM_PARTS_CRUMB ? w->total - SHM_PARTS_CRUMB : 1;
    size_t need = (whole + size - 1) / size;
    bool got = mca_btl_shm_chunk_get(ep, w->total, false, &w->loan);
    if (OPAL_UNLIKELY(got && w->loan.aside)) { /* whoever needs it has it */
        mca_btl_shm_chunk_unget(ep, w->loan.chunk);
        got = false;
    }
    shm_loan_t more = w->loan;
    for (w->count = 0; got && w->count < need; w->count++) {
        w->chunks[w->count] = more.chunk;
        got = w->count + 1 == need || mca_btl_shm_chunk_more(ep, &more);
    }
    for (uint32_t i = 0; !got && i < w->count; i++) {
        mca_btl_shm_chunk_unget(ep, w->chunks[i]);
    }
    return got;
}

/* Bytes of the next part, but for its chunk's end. */
static inline size_t shm_next_length(const shm_writing_t *w)
{
    size_t part = w->at == 0 ? w->first : w->part, left = w->total - w->at;
    return left < part + part / 2 ? left : part; /* no crumbs */
}

/* Write the next part, and say so. `header`: the fragment's, with the first one. */
static void shm_write_part(mca_btl_endpoint_t *ep, shm_writing_t *w, const void *header, size_t header_len)
{
    shm_module_t *m = ep->module;
    uint32_t size = shm_chunk_payload(&m->layout), offset = (uint32_t)(w->at % size);
    size_t len = shm_next_length(w), room = size - offset, rest = w->total - w->at;
    if (len > room) {
        len = rest <= room + SHM_PARTS_CRUMB ? rest : room;
    }
    shm_loan_t loan = w->loan;
    loan.chunk = w->chunks[w->at / size];
    shm_part_t part = {.chunk = loan.chunk & ~(uint32_t)SHM_THEIRS, .offset = offset, .len = (uint32_t)len, .at = (uint32_t)w->at,
                       .total = (uint32_t)w->total, .header_len = (uint16_t)header_len};
    part.flags = (uint16_t)(shm_flags_of(&loan) | (offset + len >= size || w->at + len == w->total ? SHM_FLAG_LAST : 0));
    part.offset += w->loan.offset;
    unsigned char *to = shm_bytes_of(ep, loan.chunk) + part.offset;
    w->fill(w->context, w->at, to, len, w->how);
    w->at += len;
    shm_mark_written(ep, loan.chunk);
    uint32_t lines = shm_lines(sizeof(part) + header_len);
    shm_ring_clear_next(ep, lines);
    memcpy(ep->line + SHM_WORD, &part, sizeof(part));
    memcpy(ep->line + SHM_WORD + sizeof(part), header, header_len);
    shm_ring_publish(ep, lines, shm_word(ep->number, sizeof(part) + header_len, SHM_KIND_PART));
    if (lines > 1) {
        mca_btl_shm_ring_clear_ahead(ep, lines);
    }
    shm_published(ep);
}

static inline size_t shm_whole_lines(size_t len)
{
    return (len + SHM_LINE - 1) / SHM_LINE * SHM_LINE;
}

/* Bytes of a part for a receiver that waits: a quarter of a short fragment, so that both have something to do most of the time; of a long one
 * more than usual, as each part costs both something. */
static uint32_t shm_part_length(size_t total, size_t usual)
{
    size_t most = usual, quarter = shm_whole_lines(total / 4), some = shm_whole_lines(total / SHM_PARTS_OF_LONG);
    most = some < most ? most : some < SHM_PARTS_LONGEST ? some : SHM_PARTS_LONGEST;
    return (uint32_t)(quarter < most / 2 ? most / 2 : quarter < most ? quarter : most);
}

/* Under the endpoint's lock: is there room for all parts? */
static bool shm_parts_fit(mca_btl_endpoint_t *ep, shm_writing_t *w)
{
    shm_module_t *m = ep->module;
    if (atomic_load_explicit(&ep->slot->bulk, memory_order_acquire) != SHM_BULK_OK || mca_btl_shm_pool_init(m) != MCA_SUCCESS) {
        return false;
    }
    size_t usual = mca_btl_shm_params.part * (w->fill == shm_fill_copy ? 1 : SHM_PARTS_FILLED);
    uint32_t part = shm_part_length(w->total, usual), size = shm_chunk_payload(&m->layout);
    w->part = part < size && shm_last_is_read(ep) ? part : size;
    w->first = w->part <= mca_btl_shm_params.part / 2 ? (uint32_t)shm_whole_lines(w->part / 2) : w->part; /* of few the first one weighs most */
    uint32_t lines = (uint32_t)(w->total / w->part + w->total / size) + 4; /* no part is in two chunks, the first may be shorter, and has the header */
    return (lines <= ep->room || mca_btl_shm_ring_make_room(ep, lines)) && shm_take_chunks(ep, w);
}

/*
 * What the user writes it also sums: in one pass with the copy, or first, so that the instruction for copies can be used? On some processors
 * the one takes less, on others the other, and that is measured for fragments of like length. Those that are only copied are best copied
 * by the instruction wherever it was seen: plain stores take the writer less, and the reader more.
 */
static opal_contest_t *shm_parts_race(mca_btl_endpoint_t *ep, const shm_writing_t *w)
{
    return &ep->filled[opal_contest_class(w->total, SHM_PARTS_CLASS_MIN, SHM_PARTS_CLASSES)];
}

static void shm_write_parts(mca_btl_endpoint_t *ep, shm_writing_t *w, const void *header, size_t header_len)
{
    bool measured = w->loan.choice.measured;
    opal_contest_turn_t turn = {0};
    w->how = (mca_btl_copy_t)shm_how_of(w->loan.choice.way);
    if (w->fill != shm_fill_copy && w->how == MCA_BTL_COPY_ANY) {
        turn = opal_contest_turn(shm_parts_race(ep, w));
        w->how = turn.way ? MCA_BTL_COPY_PLAIN : MCA_BTL_COPY_ANY;
    }
    uint64_t since = OPAL_UNLIKELY(turn.timed) ? opal_now_ns() : 0;
    shm_write_part(ep, w, header, header_len);
    while (w->at < w->total) {
        shm_write_part(ep, w, header, 0);
    }
    if (OPAL_UNLIKELY(turn.timed)) {
        mca_btl_shm_fence(); /* see shm_note_written() */
        opal_contest_note(shm_parts_race(ep, w), opal_now_ns() - since, w->total);
    }
    uint32_t last = w->chunks[w->count - 1];
    if (OPAL_UNLIKELY(measured) && !(last & SHM_THEIRS)) {
        mca_btl_shm_fence();
        mca_btl_shm_chunk_measured(ep, last, w->total, w->loan.choice.way, opal_now_ns() - w->loan.since);
    }
}

/* Long ones only as far as it is likely that somebody waits for them, and of streams both ways none but the first in a turn. Under the
 * endpoint's lock. */
static bool shm_parts_are_good(mca_btl_endpoint_t *ep, size_t len)
{
    bool first = ep->warm_run == 0 || ep->warm_turns != atomic_load_explicit(&ep->turns, memory_order_relaxed);
    if (shm_warm_even(ep, false) && (!first || mca_btl_shm_warm_waits(ep, false))) {
        return false;
    }
    if (len < SHM_WHOLE_MAX && len < mca_btl_shm_params.eager_limit) {
        return !shm_whole_ask(&ep->whole, len, atomic_load_explicit(&ep->turns, memory_order_relaxed), opal_now_ns);
    }
    return len <= SHM_PARTS_LONG || shm_trust_ask(&ep->trust, atomic_load_explicit(&ep->slot->early, memory_order_relaxed));
}

int mca_btl_shm_send_filled(mca_btl_endpoint_t *ep, const void *header, size_t header_len, size_t len, mca_btl_fill_fn_t fill, void *context)
{
    shm_writing_t w; /* without its chunks, of which there is room for many */
    w.fill = fill;
    w.context = context;
    w.total = len;
    w.at = 0;
    if (header_len > SHM_PARTS_HEADER || len > (size_t)SHM_PARTS_CHUNKS * shm_chunk_payload(&ep->module->layout)) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    shm_lock(ep);
    int rc = ep->special & SHM_SPECIAL_DOWN ? MCA_ERR_UNREACHABLE : MCA_SUCCESS;
    if (rc == MCA_SUCCESS && (ep->special & SHM_SPECIAL_NEW || len == 0 || !shm_parts_are_good(ep, len) || !shm_parts_fit(ep, &w))) {
        rc = MCA_ERR_NOT_AVAILABLE;
    }
    if (rc == MCA_SUCCESS) {
        shm_even_sent(&ep->even);
        shm_write_parts(ep, &w, header, header_len);
        if (len > SHM_PARTS_LONG && !ep->module->services->threads) { /* with threads the ring is the poller's to look at */
            shm_trust_sent(&ep->trust, mca_btl_shm_has_come(ep, sizeof(shm_named_t))); /* shorter ones are mere words of the engine's */
        }
    }
    shm_unlock(ep);
    return rc;
}

int mca_btl_shm_send_parts(mca_btl_endpoint_t *ep, const void *header, size_t header_len, const void *payload, size_t len)
{
    return mca_btl_shm_send_filled(ep, header, header_len, len, shm_fill_copy, (void *)(uintptr_t)payload);
}

/* ---- Receiving ---- */

/* Where the payload of a new fragment goes: to where place() says, or into memory of its own; false: there is none. */
static bool shm_parts_place(mca_btl_endpoint_t *ep, const void *payload, size_t len, size_t total)
{
    const mca_btl_upcalls_t *up = ep->module->super.upcalls;
    shm_parts_t *p = ep->parts;
    size_t more = MCA_BTL_HEADER_MAX - p->header_len;
    more = more < len ? more : len;
    memcpy(p->head + p->header_len, payload, more);
    if (up->place(shm_cookie(ep), p->head, p->header_len + more, p->header_len + total, &p->place)) {
        if (p->place.header_len == p->header_len) {
            return true;
        }
        up->place_cancel(shm_cookie(ep), p->place.token); /* it begins somewhere in the payload: unheard of */
    }
    if (total > SHM_PARTS_LONG) {
        atomic_fetch_add_explicit(&shm_slot_at(&ep->module->segment, &ep->module->layout, ep->local_rank)->early, 1, memory_order_relaxed);
    }
    p->buffer = mca_btl_shm_buffer_get(ep->module, p->header_len + total);
    if (p->buffer) {
        memcpy(p->buffer, p->head, p->header_len);
    }
    return p->buffer != NULL;
}

/*
 * Parts are read out of the writer's caches by vectors, with lines asked for ahead, or by the instruction for copies: on some processors the one
 * takes a fifth less, on others the other. So that is measured, on the copies alone, for fragments of like length.
 */
static opal_contest_t *shm_parts_reading(shm_parts_t *p, size_t total)
{
    return &p->reading[opal_contest_class(total, SHM_PARTS_CLASS_MIN, SHM_PARTS_CLASSES)];
}

static inline opal_copy_how_t shm_parts_how(const shm_parts_t *p, const shm_part_t *part)
{
    return p->turn.way ? OPAL_COPY_REP : shm_how_of_flags(part->flags);
}

/* The first part of a fragment is here. */
static bool shm_parts_begin(mca_btl_endpoint_t *ep, const shm_part_t *part, const void *header, const void *payload)
{
    if (!ep->parts && !(ep->parts = calloc(1, sizeof(*ep->parts)))) {
        return false;
    }
    shm_parts_t *p = ep->parts;
    shm_even_got(&ep->even);
    memcpy(p->head, header, part->header_len);
    p->header_len = part->header_len;
    p->dropped = false;
    p->got = 0;
    p->ns = 0;
    p->turn = (opal_contest_turn_t){0};
    if (shm_how_of_flags(part->flags) == OPAL_COPY_ANY) {
        p->turn = opal_contest_turn(shm_parts_reading(p, part->total));
    }
    if (!shm_parts_place(ep, payload, part->len, part->total)) {
        return false;
    }
    p->total = part->total;
    if (!ep->watched && part->len < part->total) {
        ep->watched = true;
        atomic_store_explicit(&ep->module->watch_wanted, true, memory_order_relaxed);
    }
    return true;
}

/* Bytes of the payload from `at` on to where place() said. */
static void shm_parts_scatter(const mca_btl_place_t *place, size_t at, const unsigned char *from, size_t len, opal_copy_how_t how)
{
    for (uint32_t i = 0; i < place->iov_count && len > 0; i++) {
        size_t here = place->iov[i].iov_len;
        if (at >= here) {
            at -= here;
            continue;
        }
        size_t n = here - at < len ? here - at : len;
        opal_copy_out_part((unsigned char *)place->iov[i].iov_base + at, from, n, how);
        from += n;
        len -= n;
        at = 0;
    }
}

/* Does the user take what goes where place() said? */
static bool shm_parts_taken(mca_btl_endpoint_t *ep, const unsigned char *from, size_t len, opal_copy_how_t how)
{
    const mca_btl_upcalls_t *up = ep->module->super.upcalls;
    const shm_parts_t *p = ep->parts;
    return up->struct_size > offsetof(mca_btl_upcalls_t, take) && up->take &&
           up->take(shm_cookie(ep), p->place.token, p->got, from, len, (mca_btl_copy_t)how);
}

static void shm_parts_add(mca_btl_endpoint_t *ep, const unsigned char *from, size_t len, opal_copy_how_t how)
{
    shm_parts_t *p = ep->parts;
    if (p->buffer) {
        opal_copy_out_part(p->buffer + p->header_len + p->got, from, len, how);
    } else if (!p->dropped && !shm_parts_taken(ep, from, len, how)) {
        shm_parts_scatter(&p->place, p->got, from, len, how);
    }
    p->got += len;
}

static OPAL_NOINLINE void shm_parts_add_measured(mca_btl_endpoint_t *ep, const unsigned char *from, size_t len, opal_copy_how_t how)
{
    uint64_t start = opal_now_ns();
    shm_parts_add(ep, from, len, how);
    ep->parts->ns += opal_now_ns() - start;
}

/* A part is where it belongs. */
static void shm_parts_done_with(mca_btl_endpoint_t *ep, const shm_part_t *part)
{
    const shm_parts_t *p = ep->parts;
    uint32_t chunk = shm_named_chunk(part->chunk, part->flags);
    if (!(part->flags & SHM_FLAG_LAST)) {
        return;
    }
    if (OPAL_LIKELY(!(part->flags & SHM_FLAG_MEASURED))) {
        shm_chunk_read(ep, chunk);
        return;
    }
    if (p->got == p->total) {
        mca_btl_shm_tell_cost(ep, chunk, p->ns);
    }
    mca_btl_shm_return_chunk(ep, chunk);
}

static void shm_parts_end(shm_module_t *m, mca_btl_endpoint_t *ep)
{
    shm_parts_t *p = ep->parts;
    mca_btl_arrival_t arrival = {.module = &m->super, .endpoint = ep};
    unsigned char *buffer = p->buffer;
    if (OPAL_UNLIKELY(p->turn.timed) && !p->dropped) {
        opal_contest_note(shm_parts_reading(p, p->total), p->ns, p->total);
    }
    if (buffer) {
        arrival.data = buffer;
        arrival.len = p->header_len + p->total;
        arrival.token[0] = SHM_TOKEN_BUFFER;
    } else {
        arrival.data = p->head;
        arrival.len = p->header_len;
        arrival.place_token = p->place.token;
        arrival.placed_len = p->total;
    }
    p->total = 0;
    p->buffer = NULL;
    if (p->dropped) {
        return;
    }
    m->super.upcalls->arrive(shm_cookie(ep), &arrival);
    if (arrival.token[0] == SHM_TOKEN_BUFFER) { /* not kept */
        mca_btl_shm_buffer_put(m, buffer);
    }
}

/* Does it make sense, and is it what comes next? `len`: of the message in the ring. */
static bool shm_part_is_good(const mca_btl_endpoint_t *ep, const shm_part_t *part, uint32_t len)
{
    const shm_parts_t *p = ep->parts;
    const shm_layout_t *l = part->flags & SHM_FLAG_YOURS ? &ep->module->layout : &ep->layout;
    bool begun = shm_is_in_part(ep);
    bool there = shm_is_chunk(ep, part->chunk, part->flags) && part->offset <= l->chunk_size &&
                 part->len <= l->chunk_size - part->offset && part->len > 0;
    bool next = begun ? part->at == p->got && part->total == p->total && part->header_len == 0
                      : part->at == 0 && part->total <= (size_t)SHM_PARTS_CHUNKS * l->chunk_size && part->header_len > 0;
    return there && next && part->len <= part->total - part->at && part->header_len <= SHM_PARTS_HEADER &&
           len == sizeof(*part) + part->header_len;
}

bool mca_btl_shm_part_arrive(shm_module_t *m, mca_btl_endpoint_t *ep, const unsigned char *message, uint32_t len)
{
    shm_part_t part;
    memcpy(&part, message, sizeof(part));
    if (!shm_part_is_good(ep, &part, len)) {
        return false;
    }
    unsigned char *bytes = shm_bytes_of(ep, shm_named_chunk(part.chunk, part.flags));
    const unsigned char *payload = bytes + part.offset;
    opal_tsan_acquire(bytes);
    if (OPAL_UNLIKELY((part.flags & (SHM_FLAG_FRESH | SHM_FLAG_YOURS)) == SHM_FLAG_FRESH)) {
        mca_btl_shm_chunk_populate(&ep->segment, &ep->layout, part.chunk, false);
    }
    if (part.at == 0 && part.total <= SHM_PARTS_SHORT) {
        opal_prefetch_lines(payload, SHM_PARTS_AHEAD); /* they come while their place is looked for */
    }
    if (part.at == 0 && !shm_parts_begin(ep, &part, message + sizeof(part), payload)) {
        mca_btl_no_memory(&m->super);
        mca_btl_shm_peer_down(ep, "there is no memory for a message of it");
        return false;
    }
    opal_copy_how_t how = shm_parts_how(ep->parts, &part);
    if (OPAL_UNLIKELY(part.flags & SHM_FLAG_MEASURED || ep->parts->turn.timed)) {
        shm_parts_add_measured(ep, payload, part.len, how);
    } else {
        shm_parts_add(ep, payload, part.len, how);
    }
    shm_parts_done_with(ep, &part);
    if (ep->parts->got == ep->parts->total) {
        m->drained += (uint32_t)part.total;
        shm_parts_end(m, ep);
    }
    return true;
}

void mca_btl_shm_parts_drop(mca_btl_endpoint_t *ep)
{
    if (shm_is_in_part(ep)) {
        mca_btl_shm_buffer_put(ep->module, ep->parts->buffer);
        ep->parts->buffer = NULL;
        ep->parts->dropped = true;
    }
}

void mca_btl_shm_parts_cancel(mca_btl_endpoint_t *ep)
{
    shm_parts_t *p = ep->parts;
    if (!shm_is_in_part(ep)) {
        return;
    }
    bool placed = !p->buffer && !p->dropped;
    mca_btl_shm_buffer_put(ep->module, p->buffer);
    p->buffer = NULL;
    p->total = 0;
    if (placed) {
        ep->module->super.upcalls->place_cancel(shm_cookie(ep), p->place.token);
    }
}
