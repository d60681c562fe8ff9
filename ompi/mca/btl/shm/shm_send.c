/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Sending: short messages into the ring, longer ones into lent room in the ring or in a chunk. */
#include "ompi/mca/btl/shm/shm.h"
#include "ompi/mca/btl/shm/shm_ring.h"
#include "opal/runtime/progress.h"

enum {
    SHM_HOLD_SHARE = 4, /* of the pool a fourth is held back at most, so that the reader and the writer have some, too */
    SHM_HOLD_AHEAD = 4, /* times as much must be ahead as is held back */
    SHM_PIECES_SHARE = 4, SHM_PIECES_OF = 5, /* of the chunks kept, for pieces of a message that is alone: 2 MiB, from which on it was slower */
};

/* What the room given out by reserve() is; kept in its token[0]. READY: a chunk whose number goes into the line that stands
 * ready, so that neither needed the lock. */
enum { SHM_ROOM_RING = 0, SHM_ROOM_CHUNK = 1, SHM_ROOM_READY = 2 };

/* The endpoint will hear of writable() when it has `lines` of room, and a chunk if it wants one. */
static int shm_refuse(mca_btl_endpoint_t *ep, uint32_t lines, bool chunk)
{
    shm_module_t *m = ep->module;
    uint32_t some = shm_tell_lines(ep->layout.ring_lines); /* one by one would cost a look per message */
    uint32_t most = ep->capacity / 2; /* a longer message may be more than a short lap ever has: see shm_ring.c */
    shm_module_lock(m);
    ep->wants_lines = lines > some ? lines : some;
    ep->wants_lines = ep->wants_lines < most ? ep->wants_lines : most;
    ep->wants_number = ep->number;
    ep->wants_capacity = ep->capacity;
    ep->wants_chunk = chunk;
    if (!ep->waiting) {
        ep->watched = true;
        atomic_store_explicit(&m->watch_wanted, true, memory_order_relaxed);
        ep->waiting = true;
        ep->next_waiting = m->waiting;
        m->waiting = ep;
        atomic_fetch_add(&m->waiting_count, 1);
    }
    shm_module_unlock(m);
    if (m->services->threads && atomic_load(&m->armed)) { /* or arm() sees the count: these two and its two are in one order */
        m->services->wake(); /* let the sleeper ask for room before it sleeps on */
    }
    return MCA_ERR_AGAIN;
}

static OPAL_COLD int shm_make_ready(mca_btl_endpoint_t *ep)
{
    if (ep->special & SHM_SPECIAL_DOWN) {
        return MCA_ERR_UNREACHABLE;
    }
    mca_btl_shm_announce(ep);
    shm_published(ep); /* even if nothing can be sent yet: the peer has to open the way back */
    return MCA_SUCCESS;
}

/* Under the endpoint's lock: may it be sent on? */
static OPAL_ALWAYS_INLINE int shm_ready(mca_btl_endpoint_t *ep)
{
    bool other = ep->special & (SHM_SPECIAL_DOWN | SHM_SPECIAL_NEW);
    return OPAL_UNLIKELY(other) ? shm_make_ready(ep) : MCA_SUCCESS;
}

/* What is not a short header and few bytes for one line, or meets anything out of the ordinary. */
static OPAL_NOINLINE int shm_send_short_any(mca_btl_endpoint_t *ep, const void *header, size_t header_len,
                                                        const void *payload, size_t len)
{
    uint32_t lines = shm_lines(header_len + len);
    if (header_len + len > ep->module->super.limits.short_max) {
        return MCA_ERR_BAD_PARAM;
    }
    shm_lock(ep);
    opal_prefetch_write(ep->line);
    int rc = shm_ready(ep);
    if (rc == MCA_SUCCESS && lines > ep->room && !mca_btl_shm_ring_make_room(ep, lines)) {
        rc = shm_refuse(ep, lines, false);
    }
    if (rc == MCA_SUCCESS) {
        if (lines == 1) {
            const unsigned char *line = ep->line;
            shm_ring_put_line(ep, header, header_len, payload, len);
            opal_cache_demote(line);
        } else {
            shm_ring_put_lines(ep, header, header_len, payload, len);
            shm_warm_seed(ep, header_len + len);
        }
        shm_published(ep);
    }
    shm_unlock(ep);
    return rc;
}

static OPAL_NOINLINE int shm_ring_door(mca_btl_endpoint_t *ep)
{
    mca_btl_shm_door_ring(ep, (_Atomic uint32_t *)(uintptr_t)ep->sleeping);
    return MCA_SUCCESS;
}

/* The line that stands ready is used; the next one does, if there is one: if not, true. */
static OPAL_ALWAYS_INLINE bool shm_stand_next(mca_btl_endpoint_t *ep, unsigned char *line, uint32_t number)
{
    ep->standing.ptr = line + SHM_LINE + SHM_WORD; /* ep->line follows, see shm_lock() */
    ep->number = ++number;
    return number == ep->standing_end;
}

/* Behind the last one that stood ready. */
static OPAL_NOINLINE int shm_go_on(mca_btl_endpoint_t *ep)
{
    shm_wake_reader(ep);
    mca_btl_shm_ring_go_on(ep);
    return MCA_SUCCESS;
}

/* The line that stands ready has been written. The smallest messages come this way: no call, and nothing kept in memory. */
static OPAL_ALWAYS_INLINE int shm_publish(mca_btl_endpoint_t *ep, size_t len, shm_kind_t kind)
{
    unsigned char *line = shm_standing_line(ep);
    uint32_t number = ep->number;
    shm_store_word(line, shm_word(number, len, kind), memory_order_release);
    bool used_up = shm_stand_next(ep, line, number);
    opal_cache_demote(line + SHM_WORD);
    if (OPAL_UNLIKELY(used_up)) {
        return shm_go_on(ep);
    }
    if (OPAL_UNLIKELY(atomic_load_explicit(ep->sleeping, memory_order_relaxed))) {
        return shm_ring_door(ep);
    }
    return MCA_SUCCESS;
}

/*
 * What is held back. In a stream of long messages the reader would be right behind the writer, and take each line out of the writer's caches,
 * where both wait for the other. Behind a cache that both share it is quicker to be some way behind, when the lines have got there. So of a
 * stream the first fragment's word is not written until more of them are there: the reader does not look beyond it.
 */

void mca_btl_shm_show(shm_module_t *m)
{
    mca_btl_endpoint_t *ep = m->holding;
    m->holding = NULL;
    shm_store_word(ep->hold_line, ep->hold_word, memory_order_release);
    if (OPAL_UNLIKELY(atomic_load_explicit(ep->sleeping, memory_order_relaxed))) {
        shm_ring_door(ep);
    }
}

/* The ring's next line, which names a chunk with a fragment of so many bytes, is written but for its word. */
static OPAL_NOINLINE void shm_publish_held(mca_btl_endpoint_t *ep, size_t fragment)
{
    shm_module_t *m = ep->module;
    if (m->holding && m->holding != ep) {
        mca_btl_shm_show(m);
    }
    if (m->holding) {
        shm_publish(ep, sizeof(shm_named_t), SHM_KIND_CHUNK);
    } else {
        m->holding = ep;
        ep->hold_line = shm_standing_line(ep);
        ep->hold_word = shm_word(ep->number, sizeof(shm_named_t), SHM_KIND_CHUNK);
        ep->held = ep->held_count = 0;
        if (shm_stand_next(ep, ep->hold_line, ep->number)) {
            mca_btl_shm_ring_go_on(ep);
        }
    }
    ep->held += (uint32_t)fragment;
    if (ep->held >= ep->hold_max || ++ep->held_count >= m->layout.chunk_count / SHM_HOLD_SHARE) {
        mca_btl_shm_show(m);
    }
}

/*
 * There must be several times as much as is held, and a message that is alone should not come late. Shorter messages are in the
 * writer's caches before they are sent, and it gets ahead by itself. What is sent while the module is polled is shown at the end of that, for
 * more is sent then whenever something comes. With threads nothing is held back, for what stands ready is another's then.
 *
 * Streams both ways go in what has just been read (shm_even.h), but for messages so long that the processors' caches have not even what is sent.
 * Where long messages come while there is more to send, both processes are at it at once: then longer ones do, too, and single ones. Messages by
 * turns never meet so.
 *
 * A message that is alone goes through chunks that are kept for answers, as shorter ones do, if all of it finds room there,
 * and some is left: one that took all of them was slower.
 */
void mca_btl_shm_ahead(mca_btl_endpoint_t *ep, size_t messages, size_t bytes)
{
    const shm_layout_t *l = &ep->module->layout;
    size_t most = (size_t)l->chunk_count * l->chunk_size / SHM_HOLD_SHARE, hold = mca_btl_shm_params.hold < most ? mca_btl_shm_params.hold : most;
    if (messages > 0) {
        bool met = ep->even_met > 0 && bytes >= SHM_EVEN_LONG;
        ep->even_met -= ep->even_met > 0;
        ep->even_pieces = met ? bytes <= SHM_EVEN_MET_LONGEST : messages > 1 && bytes <= messages * SHM_EVEN_LONGEST;
        ep->even_long = met && ep->even_pieces && bytes > SHM_EVEN_LONG;
    } else if (ep->even_met == 0) {
        ep->even_pieces = false;
    }
    bool much = messages > 1 && !shm_warm_even(ep, true) && bytes >= mca_btl_shm_params.hold && bytes >= SHM_HOLD_AHEAD * hold / messages;
    ep->hold_max = much ? (uint32_t)hold : 0;
    ep->alone = messages == 1;
    ep->warm_pieces = ep->alone && bytes <= (size_t)ep->warm_quota * SHM_PIECES_SHARE / SHM_PIECES_OF * shm_chunk_payload(l);
    if (messages == 0 && ep->module->holding && !ep->module->polling) {
        mca_btl_shm_show(ep->module);
    }
}

/*
 * A message of several lines has been written and published. To a peer that waits for it they come quicker from the cache that all share than
 * from this processor's own. In a stream the writer would wait for them, so it is only the first message since something came from the peer.
 */
static OPAL_ALWAYS_INLINE void shm_demote(mca_btl_endpoint_t *ep, const void *lines, size_t len)
{
    if (!opal_cache_has_demote || len > SHM_DEMOTE_MAX) {
        return;
    }
    uint32_t turns = atomic_load_explicit(&ep->turns, memory_order_relaxed);
    if (turns != ep->demote_turns) {
        ep->demote_turns = turns;
        opal_cache_demote_lines(lines, len);
    }
}

int mca_btl_shm_publish(mca_btl_endpoint_t *ep, size_t len)
{
    return shm_publish(ep, len, SHM_KIND_DATA);
}

/* As many lines that stand ready have been written. */
int mca_btl_shm_publish_more(mca_btl_endpoint_t *ep, size_t len)
{
    unsigned char *line = shm_standing_line(ep);
    uint32_t lines = shm_lines(len), number = ep->number;
    shm_store_word(line, shm_word(number, len, SHM_KIND_DATA), memory_order_release);
    shm_demote(ep, line, (size_t)lines * SHM_LINE);
    number += lines;
    ep->standing.ptr = line + (size_t)lines * SHM_LINE + SHM_WORD;
    ep->number = number;
    ep->messages -= lines - 1; /* it counts as one */
    ep->longer = true;
    shm_warm_seed(ep, len);
    if (OPAL_UNLIKELY(atomic_load_explicit(ep->sleeping, memory_order_relaxed))) {
        shm_ring_door(ep);
    }
    if (OPAL_UNLIKELY(ep->standing_end - number < lines)) {
        mca_btl_shm_ring_stand_anew(ep, lines);
    }
    return MCA_SUCCESS;
}

const mca_btl_standing_t *mca_btl_shm_standing(mca_btl_endpoint_t *ep)
{
    return &ep->standing;
}

int mca_btl_shm_send_short(mca_btl_endpoint_t *ep, const void *header, size_t header_len,
                           const void *payload, size_t len)
{
    if (OPAL_UNLIKELY(header_len != SHM_USUAL_HEADER || ep->locked || SHM_USUAL_HEADER + len > ep->standing.len)) {
        return shm_send_short_any(ep, header, header_len, payload, len);
    }
    shm_copy_line(ep->standing.ptr, header, SHM_USUAL_HEADER, payload, len);
    return shm_publish(ep, SHM_USUAL_HEADER + len, SHM_KIND_DATA);
}

const void *const *mca_btl_shm_next_store(mca_btl_endpoint_t *ep)
{
    return (const void *const *)(const void *)&ep->standing.ptr; /* of that line */
}

/* ---- Lent room ---- */

static int shm_reserve_ring(mca_btl_endpoint_t *ep, size_t len, mca_btl_room_t *room)
{
    uint32_t lines = 1 + shm_lines_far(len);
    if (lines > ep->room && !mca_btl_shm_ring_make_room(ep, lines)) {
        return shm_refuse(ep, lines, false);
    }
    room->ptr = ep->line + SHM_LINE;
    room->len = len;
    room->how = MCA_BTL_COPY_ANY;
    room->token[0] = SHM_ROOM_RING;
    room->token[1] = lines;
    return MCA_SUCCESS;
}

/* How much of `want` a chunk takes. What is cut ends with a line, as the next one's payload begins with one: both copy whole lines. */
static size_t shm_cut(const mca_btl_endpoint_t *ep, size_t min, size_t want)
{
    size_t all = ep->bulk_max, over = (all + ep->lead) % SHM_LINE;
    return want <= all ? want : all - over >= min ? all - over : all;
}

/* What is lent, as token[1] of the room: the chunk, the fragment's offset there in words, and flags. */
static OPAL_ALWAYS_INLINE uint64_t shm_loan_token(const shm_loan_t *loan, uint32_t lead)
{
    return loan->chunk | (uint64_t)((loan->offset + lead) / SHM_WORD) << 24 | (uint64_t)shm_flags_of(loan) << 48;
}

static OPAL_ALWAYS_INLINE uint32_t shm_loan_chunk(uint64_t token)
{
    return (uint32_t)token & 0xffffff;
}

static OPAL_ALWAYS_INLINE shm_named_t shm_loan_named(uint64_t token, size_t len)
{
    return (shm_named_t){.chunk = shm_loan_chunk(token) & ~(uint32_t)SHM_THEIRS, .offset = SHM_WORD * ((uint32_t)(token >> 24) & 0xffffff),
                         .len = (uint32_t)len, .flags = (uint32_t)(token >> 48)};
}

/*
 * A fragment in one piece, of some KiB, is written into lines that may be in the reader's caches by memcpy(), which uses the instruction for
 * copies, or by plain stores: on some processors the one takes less, on others the other. So that is measured, from here to the message's
 * publication, for fragments of like length.
 */
static OPAL_ALWAYS_INLINE opal_contest_t *shm_race(mca_btl_endpoint_t *ep, size_t len)
{
    return &ep->writing[opal_contest_class(len, SHM_RACE_MIN, SHM_RACE_CLASSES)];
}

static OPAL_ALWAYS_INLINE mca_btl_copy_t shm_race_begin(mca_btl_endpoint_t *ep, size_t len)
{
    opal_contest_turn_t turn = opal_contest_turn(shm_race(ep, len));
    if (OPAL_UNLIKELY(turn.timed)) {
        ep->racing = true;
        ep->racing_since = opal_now_ns();
    }
    return turn.way ? MCA_BTL_COPY_PLAIN : MCA_BTL_COPY_ANY;
}

static OPAL_NOINLINE void shm_race_end(mca_btl_endpoint_t *ep, size_t len)
{
    ep->racing = false;
    mca_btl_shm_fence(); /* the last stores may still wait for their lines */
    opal_contest_note(shm_race(ep, len), opal_now_ns() - ep->racing_since, len);
}

/* A chunk, if one is free, and how much of the message it takes. */
static OPAL_ALWAYS_INLINE bool shm_lend_chunk(mca_btl_endpoint_t *ep, size_t min, size_t want, mca_btl_room_t *room)
{
    shm_loan_t loan;
    room->len = shm_cut(ep, min, want);
    bool waits = OPAL_UNLIKELY(ep->even.on) && mca_btl_shm_warm_waits(ep, want > min);
    if (OPAL_UNLIKELY(waits || !mca_btl_shm_chunk_get(ep, room->len, want > min, &loan))) {
        return false;
    }
    shm_even_sent(&ep->even);
    if (shm_warm_even(ep, want > min)) {
        shm_even_choose(&ep->even, room->len, opal_now_ns);
    }
    room->ptr = shm_bytes_of(ep, loan.chunk) + loan.offset + ep->lead;
    room->how = (mca_btl_copy_t)shm_how_of(loan.choice.way);
    ep->racing = false;
    if (room->how == MCA_BTL_COPY_ANY && room->len >= SHM_RACE_MIN && room->len < SHM_RACE_MIN << SHM_RACE_CLASSES) {
        room->how = shm_race_begin(ep, room->len);
    }
    room->token[1] = shm_loan_token(&loan, ep->lead);
    ep->filling = loan.since;
    return true;
}

static int shm_reserve_chunk(mca_btl_endpoint_t *ep, size_t min, size_t want, mca_btl_room_t *room)
{
    if (min > ep->bulk_max) {
        return MCA_ERR_BAD_PARAM;
    }
    if (ep->room == 0 && !mca_btl_shm_ring_make_room(ep, 1)) {
        return shm_refuse(ep, 1, false);
    }
    room->token[0] = SHM_ROOM_CHUNK;
    return shm_lend_chunk(ep, min, want, room) ? MCA_SUCCESS : shm_refuse(ep, 1, true);
}

/* Under the endpoint's lock. Bulk fragments go into chunks once the peer is known to reach them. */
static OPAL_NOINLINE int shm_reserve_other(mca_btl_endpoint_t *ep, size_t min, size_t want, mca_btl_room_t *room)
{
    size_t in_ring = shm_in_ring(&ep->layout);
    if (want <= ep->cheap) {
        return shm_reserve_ring(ep, want, room);
    }
    uint32_t bulk = atomic_load_explicit(&ep->slot->bulk, memory_order_acquire);
    if (bulk == SHM_BULK_OK && mca_btl_shm_pool_init(ep->module) == MCA_SUCCESS) {
        ep->bulk_max = shm_chunk_room(&ep->module->layout);
        return shm_reserve_chunk(ep, min, want, room);
    }
    if (min <= in_ring) {
        return shm_reserve_ring(ep, want < in_ring ? want : in_ring, room);
    }
    if (bulk != SHM_BULK_UNKNOWN) {
        ep->hopeless = true; /* the poller tells */
    }
    return shm_refuse(ep, 1, true);
}

static OPAL_NOINLINE int shm_reserve_locked(mca_btl_endpoint_t *ep, size_t min, size_t want, mca_btl_room_t *room)
{
    if (min > ep->module->super.limits.max_frag) {
        return MCA_ERR_BAD_PARAM;
    }
    shm_lock(ep);
    int rc = shm_ready(ep);
    if (rc == MCA_SUCCESS) {
        rc = shm_reserve_other(ep, min, want, room);
    }
    if (rc != MCA_SUCCESS) {
        shm_unlock(ep);
    }
    return rc; /* the lock, if any, is held until commit */
}

int mca_btl_shm_reserve(mca_btl_endpoint_t *ep, size_t min, size_t want, mca_btl_room_t *room)
{
    if (want < min) {
        want = min;
    }
    bool ready = !ep->locked && ep->standing.len > 0 && ep->bulk_max >= min && want > ep->cheap;
    if (OPAL_LIKELY(ready && shm_lend_chunk(ep, min, want, room))) {
        room->token[0] = SHM_ROOM_READY;
        return MCA_SUCCESS;
    }
    return shm_reserve_locked(ep, min, want, room);
}

static void shm_commit_ring(mca_btl_endpoint_t *ep, uint32_t lent, size_t len)
{
    uint32_t lines = len > 0 ? 1 + shm_lines_far(len) : 0;
    if (lines < lent) { /* any bytes may have been written where nothing is sent */
        uint32_t at = (uint32_t)((size_t)(ep->line - ep->ring) / SHM_LINE);
        ep->clean = ep->clean > 0 ? 1 : 0;
        mca_btl_shm_ring_soil(ep, at + 1, at + lent);
    }
    if (lines > 0) {
        shm_ring_clear_next(ep, lines);
        shm_ring_publish(ep, lines, shm_word(ep->number, len, SHM_KIND_FAR));
        mca_btl_shm_ring_clear_ahead(ep, lines);
    }
}

static OPAL_NOINLINE void shm_note_written(mca_btl_endpoint_t *ep, const shm_named_t *named)
{
    mca_btl_shm_fence(); /* the last stores may still wait for their lines, and the message's publication for them */
    mca_btl_shm_chunk_measured(ep, named->chunk, named->len, shm_way_of_flags(named->flags), opal_now_ns() - ep->filling);
}

/* The name of a chunk with so many bytes, to where a line's data is. */
static OPAL_ALWAYS_INLINE void shm_name_chunk(mca_btl_endpoint_t *ep, void *to, uint64_t token, size_t len)
{
    const shm_named_t named = shm_loan_named(token, len);
    if (OPAL_UNLIKELY(named.flags & SHM_FLAG_MEASURED)) {
        shm_note_written(ep, &named);
    }
    if (OPAL_UNLIKELY(ep->racing)) {
        shm_race_end(ep, len);
    }
    shm_mark_written(ep, shm_loan_chunk(token));
    memcpy(to, &named, sizeof(named));
}

static void shm_commit_chunk(mca_btl_endpoint_t *ep, uint64_t token, size_t len)
{
    if (len == 0) {
        mca_btl_shm_chunk_unget(ep, shm_loan_chunk(token));
        return;
    }
    shm_ring_clear_next(ep, 1);
    shm_name_chunk(ep, ep->line + SHM_WORD, token, len);
    shm_ring_publish(ep, 1, shm_word(ep->number, sizeof(shm_named_t), SHM_KIND_CHUNK));
}

static OPAL_NOINLINE void shm_commit_locked(mca_btl_endpoint_t *ep, mca_btl_room_t *room, size_t len)
{
    if (room->token[0] == SHM_ROOM_RING) {
        shm_commit_ring(ep, (uint32_t)room->token[1], len);
    } else {
        shm_commit_chunk(ep, room->token[1], len);
    }
    if (len > 0) {
        shm_published(ep);
    }
    shm_unlock(ep);
}

void mca_btl_shm_commit(mca_btl_endpoint_t *ep, mca_btl_room_t *room, size_t len)
{
    if (OPAL_UNLIKELY(room->token[0] != SHM_ROOM_READY)) {
        shm_commit_locked(ep, room, len);
    } else if (OPAL_UNLIKELY(len == 0)) {
        mca_btl_shm_chunk_unget(ep, shm_loan_chunk(room->token[1]));
    } else {
        shm_name_chunk(ep, ep->standing.ptr, room->token[1], len);
        if (OPAL_UNLIKELY(ep->hold_max > 0 && room->how == MCA_BTL_COPY_LINES)) {
            shm_publish_held(ep, len);
        } else {
            shm_publish(ep, sizeof(shm_named_t), SHM_KIND_CHUNK);
            shm_demote(ep, (const unsigned char *)room->ptr - ep->lead, ep->lead + len);
        }
    }
}

static void shm_gather(unsigned char *to, const mca_btl_descriptor_t *desc, opal_copy_how_t how)
{
    memcpy(to, desc->header, desc->header_len);
    to += desc->header_len;
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        if (desc->iov[i].iov_len > 0) {
            opal_copy_into(to, desc->iov[i].iov_base, desc->iov[i].iov_len, how);
            to += desc->iov[i].iov_len;
        }
    }
}

/* Copied at once, hence confirmed at once. */
int mca_btl_shm_send(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc)
{
    mca_btl_room_t room;
    size_t len = desc->header_len;
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        len += desc->iov[i].iov_len;
    }
    int rc = mca_btl_shm_reserve(ep, len, len, &room);
    if (rc != MCA_SUCCESS) {
        return rc;
    }
    shm_gather(room.ptr, desc, (opal_copy_how_t)room.how);
    mca_btl_shm_commit(ep, &room, len);
    return 1;
}
