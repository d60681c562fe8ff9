/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * dr's reliability over a pretended network: two ends, up to four links between them that lose, damage, repeat, reorder
 * and delay, some of it for seconds, and that die and return with or without saying so, on a pretended clock. What is random comes from a
 * seed: each *world* has its own number of links, rates, window and traffic. Checked at every arrival: handed up once,
 * everything bounded; when its turn in the application's order comes: intact, where it was put; at the end of each world:
 * all arrived, every damaged fragment caught; and when both ends have drained once, each leaves at a time of its own, as
 * out of MPI_Finalize, and the other needs nothing of it any more. And whatever is late, retransmission times stay near what
 * round trips over the links really take, and what others have passed is not taken for lost often.
 *
 * Some worlds count many numbers for each byte, so that 4 GiB go by while a packet is late: acknowledgments that ride carry 32 bits.
 *
 * Payload comes in three ways, as in the engine (pml_base_engine_arrive.h, _place.h, _fetch.h): with its fragment; *placed*, when a link
 * asks, with the header alone, where the payload goes, and writes it there piece by piece, maybe damaged, maybe never to the
 * end; and *fetched*, when the fragment only says that there is something and the receiver copies it by itself, maybe
 * damaged, and compares sums with the sender.
 *
 *   dr_sim [--seed N] [--worlds N] [--fragments N]      fragments of each direction and world
 *   dr_sim --seed N --worlds 1                          one world again, e.g. that of a failure
 *
 * DR_SIM_SEED and DR_SIM_WORLDS in the environment are other defaults; 120000 worlds have 10^9 fragments.
 */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "ompi/mca/pml/dr/pml_dr_stream.h"
#include "ompi/mca/pml/dr/pml_dr_wheel.h"
#include "support/tap.h"

enum {
    PATHS_MAX = 4,
    PAYLOAD_MAX = 240,
    HEADER = 16,      /* as the engine's headers: number of the fragment, and of the message's part */
    PACKET_MAX = sizeof(dr_prefix_t) + sizeof(dr_wire_ack_t) + PAYLOAD_MAX + HEADER,
    TICK_NS = 500000,
    PARKED_MAX = 1 << 16,
    WORDS_MAX = 1 << 14,
    AWAY_NS = 20000000,
};

static const uint64_t MS = 1000000, SECOND = 1000000000;

/* ---- What is random ---- */

static uint64_t random_state;

static uint64_t draw(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545f4914f6cdd1du >> 11;
}

static uint32_t below(uint32_t n)
{
    return (uint32_t) (draw() % n);
}

static bool chance(uint32_t per_million)
{
    return per_million > 0 && below(1000000) < per_million;
}

/* ---- The pretended network ---- */

typedef struct packet {
    uint64_t at;      /* ns: arrives */
    uint64_t order;   /* of two at the same time */
    uint8_t to, path;
    bool damaged;
    uint32_t life;    /* of the link, when it was sent: what was under way dies with it */
    bool placed;      /* its link is writing the payload */
    size_t len;
    _Alignas(8) unsigned char bytes[PACKET_MAX];
} packet_t;

typedef struct faults {
    uint32_t loss, damage, repeat, reorder, late; /* per million */
    uint64_t delay, jitter;                 /* ns */
} faults_t;

typedef struct link {
    faults_t faults;
    bool reliable;     /* nothing happens to what it carries, unless it dies, which it says */
    bool alive, says;  /* does it say when it dies? */
    bool places;       /* it reads payload to its place */
    uint64_t window;   /* bytes that it takes at once */
    uint64_t change;   /* ns: dies or returns; 0: never */
    uint64_t free[2];  /* ns, each direction: keeps the order of a reliable link */
    uint32_t life;
} link_t;

/* A fragment that is kept until it is acknowledged. */
typedef struct kept {
    dr_record_t record;
    bool is_void;
    size_t len;        /* with the prefix */
    _Alignas(8) unsigned char bytes[PACKET_MAX];
} kept_t;

/* What the application says by itself. */
typedef enum { PLAIN, FETCH, ASK_SUM, TELL_SUM, FETCHED } what_t;

typedef struct word {
    uint64_t number;
    uint32_t sum;
    uint32_t what;
} word_t;

static_assert(sizeof(word_t) == HEADER, "a fragment's header");

/* A link writes a fragment's payload. */
typedef struct placing {
    uint64_t seq, number;
    uint32_t span;
    packet_t *packet; /* NULL: not used */
} placing_t;

typedef struct end {
    dr_stream_t *stream;
    dr_seal_t out, in;
    uint64_t sent, wanted;      /* fragments of the application: handed to dr, to be handed to it */
    uint64_t arrived;           /* in the application's order */
    unsigned char *parked;      /* by number modulo PARKED_MAX: came before its turn */
    uint64_t parked_count;
    placing_t placing[DR_HELD_MAX];
    word_t words[WORDS_MAX];    /* to be sent, a ring */
    uint64_t words_in, words_out;
    uint64_t offered;           /* the other one is to fetch them */
    dr_wheel_t wheel;
    dr_timer_t timer;           /* not set: nothing is due before something happens */
    bool fenced, left;          /* it has drained, and waits for the other one; it is gone */
    uint64_t leave_at;          /* ns: what the other one's word takes to come */
    uint64_t away_until;        /* ns: it computes; what arrives waits */
} end_t;

typedef struct counts {
    uint64_t packets, lost, damaged, repeated, caught, unread, voided, deaths, retransmitted, delivered;
    uint64_t placed, displaced, fetched, spoilt, rests;
    uint64_t gaps_most, parked_most, kept_most;
    uint64_t granted; /* sent with what was granted beforehand */
    uint64_t late, looks, patient; /* late packets; looks at retransmission times, how many of them found a long one */
    uint64_t slowest, slowest_seed, took; /* ns of its time that a world took, and which; all together */
    double windows; /* of spread links, in the end; each 1 at most */
} counts_t;

static struct world {
    uint64_t now, order;
    unsigned paths;
    uint64_t window;
    uint32_t payload_max, burst;
    uint32_t scale; /* sequence numbers of a byte */
    bool computes, voids, fetches, rests;
    link_t links[PATHS_MAX];
    end_t ends[2];
} world;

static dr_stream_params_t params;

/* Where payload goes, of either end. */
static unsigned char memory[2][PARKED_MAX][PAYLOAD_MAX];

static packet_t **heap;
static size_t heap_count, heap_room;
static packet_t *spare_packets[4096];
static size_t spare_packet_count;
static counts_t counts;
static uint64_t world_seed;

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            failed_check(#condition, __LINE__);                                                              \
        }                                                                                                    \
    } while (0)

static _Noreturn void failed_check(const char *condition, int line)
{
    tap_ok(false, __FILE__, line, "%s", condition);
    printf("# again: dr_sim --seed %" PRIu64 " --worlds 1; at %.6f s of its time\n", world_seed,
           (double) world.now / 1e9);
    printf("Bail out! a property does not hold\n");
    exit(1);
}

static bool sooner(const packet_t *a, const packet_t *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void heap_push(packet_t *p)
{
    if (heap_count == heap_room) {
        heap_room = heap_room ? 2 * heap_room : 1024;
        heap = realloc(heap, heap_room * sizeof(heap[0]));
        CHECK(heap != NULL);
    }
    size_t i = heap_count++;
    for (; i > 0 && sooner(p, heap[(i - 1) / 2]); i = (i - 1) / 2) {
        heap[i] = heap[(i - 1) / 2];
    }
    heap[i] = p;
}

static packet_t *heap_pop(void)
{
    packet_t *first = heap[0], *last = heap[--heap_count];
    size_t i = 0;
    for (;;) {
        size_t c = 2 * i + 1;
        if (c >= heap_count) {
            break;
        }
        c += c + 1 < heap_count && sooner(heap[c + 1], heap[c]);
        if (!sooner(heap[c], last)) {
            break;
        }
        heap[i] = heap[c];
        i = c;
    }
    heap[i] = last;
    return first;
}

static packet_t *packet_new(void)
{
    packet_t *p = spare_packet_count > 0 ? spare_packets[--spare_packet_count] : malloc(sizeof(*p));
    CHECK(p != NULL);
    return p;
}

static void packet_free(packet_t *p)
{
    if (spare_packet_count < sizeof(spare_packets) / sizeof(spare_packets[0])) {
        spare_packets[spare_packet_count++] = p;
    } else {
        free(p);
    }
}

static void put_on_link(unsigned from, unsigned path, const void *bytes, size_t len)
{
    link_t *link = &world.links[path];
    const faults_t *f = &link->faults;
    packet_t *p = packet_new();
    p->to = (uint8_t) !from;
    p->path = (uint8_t) path;
    p->life = link->life;
    p->len = len;
    p->damaged = p->placed = false;
    p->order = world.order++;
    p->at = world.now + f->delay + (f->jitter > 0 ? draw() % f->jitter : 0);
    memcpy(p->bytes, bytes, len);
    if (link->reliable) {
        p->at = p->at > link->free[from] ? p->at : link->free[from];
        link->free[from] = p->at;
    } else {
        if (chance(f->reorder)) {
            p->at += f->delay + draw() % (20 * f->delay);
        }
        if (chance(f->late)) {
            p->at += draw() % (5 * SECOND);
            counts.late++;
        }
        if (chance(f->damage)) { /* up to three bits: CRC32C sees that always */
            p->damaged = true;
            uint32_t first = below((uint32_t) len * 8);
            for (uint32_t i = 0, n = 1 + below(3); i < n; i++) {
                uint32_t bit = (first + i * 11) % ((uint32_t) len * 8);
                p->bytes[bit / 8] ^= (unsigned char) (1u << bit % 8);
            }
            counts.damaged++;
        }
    }
    heap_push(p);
}

/* A link takes a packet; what becomes of it, it does not say. False: it is known to be down. */
static bool transmit(unsigned from, unsigned path, const void *bytes, size_t len)
{
    link_t *link = &world.links[path];
    counts.packets++;
    if (!link->alive) {
        return !link->says;
    }
    if (!link->reliable && chance(link->faults.loss)) {
        counts.lost++;
        return true;
    }
    put_on_link(from, path, bytes, len);
    if (!link->reliable && chance(link->faults.repeat)) {
        counts.repeated++;
        put_on_link(from, path, bytes, len);
    }
    return true;
}

/* ---- An end: what pml/dr does, over the pretended links ---- */

static kept_t *spare;

static kept_t *kept_new(void)
{
    kept_t *k = spare;
    if (k) {
        memcpy(&spare, k->bytes, sizeof(spare));
    } else {
        k = malloc(sizeof(*k));
        CHECK(k != NULL);
    }
    k->is_void = false;
    return k;
}

static void kept_free(kept_t *k)
{
    memcpy(k->bytes, &spare, sizeof(spare));
    spare = k;
}

static void release(opal_list_t *done)
{
    opal_list_item_t *i;
    while ((i = opal_list_pop(done))) {
        kept_free(OPAL_CONTAINER_OF(i, kept_t, record.item));
    }
}

static unsigned char content(uint64_t number, size_t at)
{
    return (unsigned char) ((number * 0x9e3779b97f4a7c15u >> 32) + at * 31);
}

static size_t payload_length(uint64_t number)
{
    return number * 0xda942042e4dd58b5u >> 40 & 0xffff ? (number * 0xda942042e4dd58b5u >> 33) % (world.payload_max + 1) : 0;
}

static void make_paths(end_t *end)
{
    CHECK(dr_stream_add_paths(end->stream, world.paths));
    for (unsigned i = 0; i < world.paths; i++) {
        const link_t *link = &world.links[i];
        dr_stream_init_path(end->stream, i, link->reliable, link->window);
        if (link->says && !link->alive) {
            dr_stream_set_down(end->stream, i, world.now);
        }
    }
}

/* Some of the long ones are fetched. */
static bool is_fetched(uint64_t number)
{
    return world.fetches && payload_length(number) >= 16 && (number * 0x9e3779b97f4a7c15u >> 40) % 8 == 0;
}

static uint32_t span_of(size_t bytes)
{
    return (uint32_t) bytes * world.scale;
}

static void seal(end_t *end, kept_t *k, bool again)
{
    dr_prefix_t *prefix = (dr_prefix_t *) k->bytes;
    size_t header = k->is_void ? sizeof(dr_wire_void_t) : HEADER;
    unsigned char *payload = k->bytes + sizeof(*prefix) + header;
    uint32_t sum = dr_wire_payload_sum(&end->out, payload, k->len - sizeof(*prefix) - header);
    dr_wire_write(&end->out, prefix, k->is_void ? DR_VOID : DR_DATA, again ? DR_FLAG_ACK_NOW | DR_FLAG_AGAIN : 0, header,
                  k->record.seq, again ? 0 : dr_stream_ride(end->stream), sum, k->len);
}

/* Something was sent, or came: timers are to be looked at by the next tick. */
static void active(end_t *end)
{
    if (end->timer.at == 0 || end->timer.at * TICK_NS > world.now + TICK_NS) {
        dr_wheel_set(&end->wheel, &end->timer, world.now + TICK_NS);
    }
}

/* The best path for the next fragment: up, else suspect; -1: none. */
static int choose(end_t *end)
{
    if (!end->stream->paths) {
        make_paths(end);
    }
    unsigned start = below(world.paths);
    for (int state = DR_PATH_UP; state <= DR_PATH_SUSPECT; state++) {
        for (unsigned i = 0; i < world.paths; i++) {
            unsigned path = (start + i) % world.paths;
            if (end->stream->paths[path].state == state) {
                return (int) path;
            }
        }
    }
    return -1;
}

/* As a short message goes: the stream hears of it when the link has it. */
static bool send_granted(unsigned who, unsigned path, kept_t *k)
{
    end_t *end = &world.ends[who];
    k->record.seq = end->stream->next;
    seal(end, k, false);
    if (!transmit(who, path, k->bytes, k->len)) {
        kept_free(k);
        return false;
    }
    dr_stream_send_granted(end->stream, &k->record, path, span_of(k->len - sizeof(dr_prefix_t)), sizeof(kept_t));
    counts.granted++;
    active(end);
    return true;
}

/* A fragment of the application. */
static bool send_word(unsigned who, word_t word, size_t payload)
{
    end_t *end = &world.ends[who];
    int path = choose(end);
    if (path < 0) {
        return false;
    }
    const uint32_t span = span_of(HEADER + payload);
    bool granted = dr_stream_is_granted(end->stream, (unsigned) path, sizeof(kept_t), span);
    if (!granted && !dr_stream_has_room(end->stream, (unsigned) path, sizeof(kept_t), span)) {
        return false;
    }
    kept_t *k = kept_new();
    k->len = sizeof(dr_prefix_t) + HEADER + payload;
    memcpy(k->bytes + sizeof(dr_prefix_t), &word, HEADER);
    for (size_t i = 0; i < payload; i++) {
        k->bytes[sizeof(dr_prefix_t) + HEADER + i] = content(word.number, i);
    }
    if (granted) {
        return send_granted(who, (unsigned) path, k);
    }
    bool exact = world.order % (world.links[path].reliable ? 16 : 4) == 0; /* not each is timed */
    dr_stream_send(end->stream, &k->record, (unsigned) path, span, sizeof(kept_t), exact ? world.now : 0);
    seal(end, k, false);
    if (!transmit(who, (unsigned) path, k->bytes, k->len)) {
        dr_stream_undo(end->stream, &k->record);
        kept_free(k);
        return false;
    }
    if (world.order % 4 != 0) {
        dr_stream_grant(end->stream, (unsigned) path);
    }
    active(end);
    counts.kept_most = end->stream->kept > counts.kept_most ? end->stream->kept : counts.kept_most;
    return true;
}

static bool send_number(unsigned who, uint64_t number)
{
    if (!is_fetched(number)) {
        return send_word(who, (word_t){.number = number, .what = PLAIN}, payload_length(number));
    }
    bool sent = send_word(who, (word_t){.number = number, .what = FETCH}, 0);
    world.ends[who].offered += sent;
    return sent;
}

/* To be sent in this end's next turn. */
static void say(end_t *end, what_t what, uint64_t number, uint32_t sum)
{
    CHECK(end->words_in - end->words_out < WORDS_MAX);
    end->words[end->words_in++ % WORDS_MAX] = (word_t){.number = number, .sum = sum, .what = what};
}

/* Now and then the bytes of a lost fragment go under a new range, and its own carries nothing any more. */
static bool make_void(unsigned who, kept_t *k)
{
    word_t word;
    memcpy(&word, k->bytes + sizeof(dr_prefix_t), sizeof(word));
    if (word.what != PLAIN) {
        return false;
    }
    opal_list_t *lost = &world.ends[who].stream->lost;
    opal_list_t others = OPAL_LIST_INIT(others);
    opal_list_splice(&others, lost); /* has_room() wants it empty: here the new one goes first */
    bool sent = send_number(who, word.number);
    opal_list_splice(lost, &others);
    if (!sent) {
        return false;
    }
    k->is_void = true;
    dr_wire_void_t body = {.span = htole32(k->record.span)};
    memcpy(k->bytes + sizeof(dr_prefix_t), &body, sizeof(body));
    k->len = sizeof(dr_prefix_t) + sizeof(body);
    counts.voided++;
    return true;
}

static void send_lost(unsigned who)
{
    end_t *end = &world.ends[who];
    dr_record_t *r;
    while ((r = dr_stream_first_lost(end->stream))) {
        kept_t *k = OPAL_CONTAINER_OF(r, kept_t, record);
        int path = choose(end);
        if (path < 0) {
            return;
        }
        if (world.voids && !k->is_void && chance(20000)) {
            make_void(who, k);
        }
        dr_stream_resend(end->stream, r, (unsigned) path, world.links[path].reliable ? 0 : world.now);
        seal(end, k, true);
        counts.retransmitted++;
        active(end);
        if (!transmit(who, (unsigned) path, k->bytes, k->len)) {
            dr_stream_lose(end->stream, r);
            return;
        }
    }
}

static void send_bare(unsigned who, unsigned path, dr_kind_t kind, uint64_t token, const void *header, size_t len)
{
    end_t *end = &world.ends[who];
    _Alignas(8) unsigned char bytes[sizeof(dr_prefix_t) + sizeof(dr_wire_ack_t)];
    dr_prefix_t *prefix = (dr_prefix_t *) bytes;
    if (len > 0) {
        memcpy(bytes + sizeof(*prefix), header, len);
    }
    dr_wire_write(&end->out, prefix, kind, 0, len, token, 0, 0, sizeof(*prefix) + len);
    transmit(who, path, bytes, sizeof(*prefix) + len);
}

static void send_ack(unsigned who)
{
    end_t *end = &world.ends[who];
    int path = choose(end);
    if (path < 0) {
        return;
    }
    dr_ack_t ack;
    dr_wire_ack_t wire;
    dr_stream_fill_ack(end->stream, &ack);
    send_bare(who, (unsigned) path, DR_ACK, end->stream->next, &wire, dr_wire_write_ack(&wire, &ack));
    dr_stream_ack_sent(end->stream);
}

static unsigned char *memory_of(const end_t *end, uint64_t number)
{
    return memory[end - world.ends][number % PARKED_MAX];
}

/* Is it known to be there already? */
static bool is_here(const end_t *end, uint64_t number)
{
    return number < end->arrived || end->parked[number % PARKED_MAX];
}

/* It is verified, where it belongs: once? In what order that comes is for the engine to put right: so here. Nothing may
 * have been written over it when its turn comes. */
static void deliver(end_t *end, uint64_t number)
{
    CHECK(number - end->arrived < PARKED_MAX);
    end->parked[number % PARKED_MAX] = 1;
    end->parked_count++;
    counts.delivered++;
    counts.parked_most = end->parked_count > counts.parked_most ? end->parked_count : counts.parked_most;
    while (end->parked[end->arrived % PARKED_MAX]) {
        const unsigned char *payload = memory_of(end, end->arrived);
        for (size_t i = 0, len = payload_length(end->arrived); i < len; i++) {
            CHECK(payload[i] == content(end->arrived, i));
        }
        end->parked[end->arrived++ % PARKED_MAX] = 0;
        end->parked_count--;
    }
}

/* ---- Payload that a link writes before it is verified ---- */

static placing_t *placing_of(end_t *end, const packet_t *p)
{
    for (unsigned i = 0; i < DR_HELD_MAX; i++) {
        if (end->placing[i].packet == p) {
            return &end->placing[i];
        }
    }
    return NULL;
}

static void unplace(end_t *end, placing_t *placing)
{
    dr_stream_unhold(end->stream, placing->seq, placing->span);
    placing->packet->placed = false;
    placing->packet = NULL;
}

/* Links let go of what is here whole by another way: the range, or the payload. What they had is lost. */
static void take_places(end_t *end, uint64_t seq, uint32_t span, uint64_t number)
{
    for (unsigned i = 0; i < DR_HELD_MAX; i++) {
        placing_t *p = &end->placing[i];
        if (p->packet && ((p->seq < seq + span && seq < p->seq + p->span) || p->number == number)) {
            p->packet->life = UINT32_MAX;
            unplace(end, p);
            counts.displaced++;
        }
    }
}

/* A link asks, with the header alone, where the payload goes. False: it is to come as it is. Nothing is placed over what is
 * here, or is being written. */
static bool place(end_t *end, packet_t *p)
{
    const dr_prefix_t *prefix = (const dr_prefix_t *) p->bytes;
    placing_t *unused = placing_of(end, NULL);
    word_t word;
    memcpy(&word, prefix + 1, sizeof(word));
    if (!unused || !dr_wire_open(&end->in, p->bytes, p->len) || prefix->kind != DR_DATA || word.what != PLAIN ||
        p->len <= sizeof(*prefix) + HEADER || is_here(end, word.number)) {
        return false;
    }
    for (unsigned i = 0; i < DR_HELD_MAX; i++) {
        if (end->placing[i].packet && end->placing[i].number == word.number) {
            return false;
        }
    }
    placing_t placing = {.seq = le64toh(prefix->seq), .number = word.number,
                         .span = span_of(p->len - sizeof(*prefix)), .packet = p};
    if (dr_stream_judge(end->stream, placing.seq, placing.span) != DR_NEW ||
        !dr_stream_hold(end->stream, placing.seq, placing.span)) {
        return false;
    }
    *unused = placing;
    p->placed = true;
    counts.placed++;
    size_t len = p->len - sizeof(*prefix) - HEADER;
    memcpy(memory_of(end, word.number), p->bytes + sizeof(*prefix) + HEADER, len / 2);
    p->at = world.now + (chance(5000) ? draw() % (50 * MS) : draw() % 50000);
    return true;
}

/* The rest of it. */
static void write_placed(end_t *end, packet_t *p)
{
    placing_t *placing = placing_of(end, p);
    size_t head = sizeof(dr_prefix_t) + HEADER, len = p->len - head;
    memcpy(memory_of(end, placing->number) + len / 2, p->bytes + head + len / 2, len - len / 2);
    dr_stream_unhold(end->stream, placing->seq, placing->span);
    placing->packet = NULL;
}

/* ---- Payload that the receiver fetches ---- */

/* Copy it, as single copy or a get does: what comes may be damaged, and nobody says so. Then ask for the sum. */
static void fetch(end_t *end, uint64_t number)
{
    unsigned char *to = memory_of(end, number);
    size_t len = payload_length(number);
    for (size_t i = 0; i < len; i++) {
        to[i] = content(number, i);
    }
    if (chance(20000)) {
        to[below((uint32_t) len)] ^= (unsigned char) (1 + below(255));
        counts.spoilt++;
    }
    say(end, ASK_SUM, number, 0);
}

static void tell_sum(end_t *end, uint64_t number)
{
    unsigned char bytes[PAYLOAD_MAX];
    size_t len = payload_length(number);
    for (size_t i = 0; i < len; i++) {
        bytes[i] = content(number, i);
    }
    say(end, TELL_SUM, number, dr_wire_payload_sum(&end->out, bytes, len));
}

static void compare(end_t *end, const word_t *word)
{
    if (dr_wire_payload_sum(&end->in, memory_of(end, word->number), payload_length(word->number)) != word->sum) {
        counts.fetched++; /* once more */
        fetch(end, word->number);
        return;
    }
    deliver(end, word->number);
    say(end, FETCHED, word->number, 0);
}

/* ---- Arrivals ---- */

/* The application has a verified fragment. */
static void take_word(end_t *end, const word_t *word, const unsigned char *payload, size_t len)
{
    switch (word->what) {
    case PLAIN:
        CHECK(word->number < end->wanted && len == payload_length(word->number));
        if (is_here(end, word->number)) { /* as the engine, which drops pieces that it has */
            CHECK(world.voids);
        } else {
            if (payload != memory_of(end, word->number)) {
                take_places(end, 0, 0, word->number);
                memcpy(memory_of(end, word->number), payload, len);
            }
            deliver(end, word->number);
        }
        break;
    case FETCH:
        CHECK(word->number < end->wanted && len == 0);
        counts.fetched++;
        fetch(end, word->number);
        break;
    case ASK_SUM:
        tell_sum(end, word->number);
        break;
    case TELL_SUM:
        compare(end, word);
        break;
    default:
        CHECK(word->what == FETCHED && end->offered > 0);
        end->offered--;
        break;
    }
}

static void on_sequenced(end_t *end, packet_t *p, const dr_prefix_t *prefix, opal_list_t *done)
{
    dr_stream_t *s = end->stream;
    const unsigned char *header = p->bytes + sizeof(*prefix);
    const unsigned char *payload = header + prefix->header_len;
    size_t len = p->len - sizeof(*prefix) - prefix->header_len;
    uint64_t seq = le64toh(prefix->seq);
    uint32_t span = span_of(prefix->header_len + len);
    word_t word = {0};
    if (prefix->kind == DR_VOID) {
        dr_wire_void_t body;
        memcpy(&body, header, sizeof(body));
        span = le32toh(body.span);
    } else {
        memcpy(&word, header, sizeof(word));
    }
    if (p->placed) {
        write_placed(end, p);
        payload = memory_of(end, word.number);
    }
    dr_verdict_t verdict = dr_stream_judge(s, seq, span);
    if (verdict == DR_BUSY && prefix->kind == DR_DATA) {
        take_places(end, seq, span, UINT64_MAX);
        verdict = dr_stream_judge(s, seq, span);
    }
    if (verdict != DR_NEW) {
        counts.unread += p->damaged;
        return;
    }
    if (prefix->kind == DR_DATA && !(prefix->flags & DR_FLAG_AGAIN) && dr_stream_tells(s, seq)) {
        dr_stream_told(s, seq);
        dr_stream_take_prefix(s, le32toh(prefix->ack), world.now, done);
    }
    if (!dr_wire_payload_is_good(&end->in, le32toh(prefix->payload_check), payload, len)) {
        counts.caught++;
        dr_stream_damaged(s, seq, span);
        return;
    }
    CHECK(!p->damaged);
    CHECK(dr_stream_deliver(s, seq, span, prefix->flags & DR_FLAG_ACK_NOW));
    CHECK(s->rx.count <= DR_GAPS_MAX);
    counts.gaps_most = s->rx.count > counts.gaps_most ? s->rx.count : counts.gaps_most;
    if (prefix->kind == DR_DATA) {
        take_word(end, &word, payload, len);
    }
}

static void arrive(packet_t *p)
{
    end_t *end = &world.ends[p->to];
    const dr_prefix_t *prefix = (const dr_prefix_t *) p->bytes;
    if (!dr_wire_open(&end->in, p->bytes, p->len)) {
        CHECK(p->damaged);
        counts.caught++;
        return;
    }
    opal_list_t done = OPAL_LIST_INIT(done);
    if (end->timer.at > 0 && world.now > end->timer.at * TICK_NS + AWAY_NS) {
        dr_stream_away(end->stream);
    }
    active(end);
    end->stream->heard = true;
    dr_ack_t ack;
    switch (prefix->kind) {
    case DR_DATA:
    case DR_VOID:
        on_sequenced(end, p, prefix, &done);
        break;
    case DR_ACK:
        CHECK(dr_wire_read_ack(p->bytes + sizeof(*prefix), prefix->header_len, &ack));
        dr_stream_told(end->stream, le64toh(prefix->seq));
        dr_stream_take_ack(end->stream, &ack, world.now, &done);
        break;
    case DR_PROBE:
        send_bare(p->to, p->path, DR_ECHO, le64toh(prefix->seq), NULL, 0);
        break;
    default:
        if (world.now >= le64toh(prefix->seq)) {
            dr_stream_echoed(end->stream, p->path, le64toh(prefix->seq), world.now);
        }
        break;
    }
    CHECK(end->stream->acked <= world.ends[!p->to].stream->rx.next); /* nothing is forgotten that has not come */
    release(&done);
}

/* ---- The world's course ---- */

/* How long is waited for acknowledgments, backing off left aside, beside a round trip at its worst: without what is late, but
 * with acknowledgments that are lost. */
static void look_at_patience(const end_t *end)
{
    for (unsigned i = 0; i < end->stream->path_count; i++) {
        const dr_path_t *p = &end->stream->paths[i];
        const faults_t *f = &world.links[i].faults;
        uint64_t worst = 2 * (22 * f->delay + f->jitter) + 3 * params.ack_delay;
        if (p->vain == 0 && p->srtt > 0) {
            counts.looks++;
            counts.patient += dr_stream_rto(end->stream, p) > 5 * worst + 2 * params.rto_initial;
        }
    }
}

static void run_end(unsigned who)
{
    end_t *end = &world.ends[who];
    dr_stream_t *s = end->stream;
    if (world.now < end->away_until || end->left) {
        return;
    }
    dr_wheel_advance(&end->wheel, world.now);
    if (dr_wheel_pop(&end->wheel)) {
        uint64_t next = dr_stream_tick(s, world.now);
        CHECK(!s->dead);
        look_at_patience(end);
        if (next > 0) {
            dr_wheel_set(&end->wheel, &end->timer, next > world.now + TICK_NS ? next : world.now + TICK_NS);
        } else if (world.rests) {
            dr_stream_rest(s);
            counts.rests += !s->paths;
        }
        if (dr_stream_first_lost(s) || s->need == DR_ACK_URGENT) {
            active(end);
        }
        for (unsigned i = 0; i < s->path_count; i++) {
            if (s->paths[i].probe_due) {
                s->paths[i].probe_due = false;
                send_bare(who, i, DR_PROBE, world.now, NULL, 0);
            }
        }
        if (world.computes && chance(5000)) {
            end->away_until = world.now + draw() % (2 * SECOND);
            return;
        }
    }
    send_lost(who);
    while (end->words_out < end->words_in && send_word(who, end->words[end->words_out % WORDS_MAX], 0)) {
        end->words_out++;
    }
    uint32_t n = end->words_out < end->words_in ? 0 : below(world.burst + 1);
    while (n-- > 0 && end->sent < world.ends[!who].wanted && send_number(who, end->sent)) {
        end->sent++;
    }
    if (s->need == DR_ACK_URGENT) {
        send_ack(who);
    }
    CHECK(s->kept <= world.window + sizeof(kept_t));
}

/* A link that says so gives back what it had; one that doesn't swallows it. */
static void change_link(unsigned path)
{
    link_t *link = &world.links[path];
    bool others = false;
    for (unsigned i = 0; i < world.paths; i++) {
        others |= i != path && world.links[i].alive;
    }
    if (link->alive && !others && !below(4)) { /* seldom the last one */
        link->change = world.now + draw() % (50 * MS);
        return;
    }
    link->alive = !link->alive;
    link->life++;
    counts.deaths += !link->alive;
    link->change = world.now + 2 * MS + draw() % ((link->alive ? 40 : 100) * MS);
    for (unsigned who = 0; who < 2 && link->says; who++) {
        active(&world.ends[who]);
        if (!world.ends[who].stream->paths) {
            continue;
        }
        if (link->alive) {
            dr_stream_set_up(world.ends[who].stream, path, world.now);
        } else {
            dr_stream_set_down(world.ends[who].stream, path, world.now);
        }
    }
}

static bool is_drained(const end_t *end)
{
    return opal_list_is_empty(&end->stream->unacked) && end->stream->need == DR_ACK_NONE && end->offered == 0 &&
           end->words_in == end->words_out;
}

/* MPI_Finalize: drain, tell the other one, and leave when its word has come. Its program is over when what it wants of
 * the network has come and what it has for it is handed over. */
static void finalize(unsigned who)
{
    end_t *end = &world.ends[who], *other = &world.ends[!who];
    if (world.now < end->away_until || end->left) {
        return;
    }
    if (!end->fenced && end->arrived == end->wanted && end->sent == other->wanted && is_drained(end)) {
        end->fenced = true;
        uint64_t heard = world.now + draw() % (5 * MS);
        other->leave_at = heard > other->leave_at ? heard : other->leave_at;
        end->leave_at = world.now > end->leave_at ? world.now : end->leave_at;
    }
    if (end->fenced && other->fenced && world.now >= end->leave_at) {
        CHECK(opal_list_is_empty(&other->stream->unacked) && opal_list_is_empty(&end->stream->unacked));
        end->left = true;
    }
}

static bool is_over(void)
{
    return world.ends[0].left && world.ends[1].left;
}

/* A packet's time has come: unless its link has died it is here, or its payload has begun to come. */
static void on_time(packet_t *p)
{
    end_t *end = &world.ends[p->to];
    const link_t *link = &world.links[p->path];
    if (p->life == link->life && link->alive && !end->left) {
        if (link->places && !p->placed && place(end, p)) {
            p->order = world.order++;
            heap_push(p);
            return;
        }
        arrive(p);
    } else {
        if (p->placed) {
            unplace(end, placing_of(end, p));
        }
        counts.unread += p->damaged;
    }
    packet_free(p);
}

static void step(uint64_t step_ns)
{
    world.now += step_ns;
    for (unsigned i = 0; i < world.paths; i++) {
        if (world.links[i].change > 0 && world.now >= world.links[i].change) {
            change_link(i);
        }
    }
    while (heap_count > 0 && heap[0]->at <= world.now) {
        packet_t *p = heap_pop();
        const link_t *link = &world.links[p->path];
        if (world.now < world.ends[p->to].away_until && link->alive) {
            p->at = world.ends[p->to].away_until; /* waits in the link's memory */
            p->order = world.order++;
            heap_push(p);
            continue;
        }
        on_time(p);
    }
    for (unsigned who = 0; who < 2; who++) {
        run_end(who);
        finalize(who);
    }
}

static void make_links(void)
{
    bool dying = world.paths > 1 && below(2);
    for (unsigned i = 0; i < world.paths; i++) {
        link_t *link = &world.links[i];
        static const uint32_t most[] = {0, 1000, 50000, 200000};
        *link = (link_t){.alive = true, .reliable = !below(5), .faults = {
            .loss = below(most[below(4)] + 1), .damage = below(most[below(4)] + 1),
            .repeat = below(most[below(4)] + 1), .reorder = below(most[below(4)] + 1),
            .late = below(most[below(3)] / 10 + 1), .delay = 5000 + draw() % 200000, .jitter = below(2) ? 20000 : 0}};
        link->says = link->reliable || below(2);
        link->places = !below(3);
        link->window = (uint64_t) (4096 + below(1 << 18)) * world.scale;
        link->change = dying && below(3) ? draw() % (20 * MS) : 0;
    }
}

static void make_end(unsigned who, uint64_t fragments)
{
    end_t *end = &world.ends[who];
    end->stream = malloc(sizeof(*end->stream));
    end->parked = calloc(PARKED_MAX, 1);
    CHECK(end->stream && end->parked);
    dr_stream_init(end->stream, &params, draw());
    end->out = (dr_seal_t){OPAL_CHECKSUM_CRC32C, dr_wire_key(1 + who, 2 - who)};
    end->in = (dr_seal_t){OPAL_CHECKSUM_CRC32C, dr_wire_key(2 - who, 1 + who)};
    end->wanted = fragments;
    dr_wheel_init(&end->wheel, TICK_NS, world.now);
    dr_timer_init(&end->timer);
}

static void make_world(uint64_t seed, uint64_t fragments)
{
    world_seed = seed;
    random_state = seed * 0x9e3779b97f4a7c15u | 1;
    memset(&world, 0, sizeof(world));
    draw();
    world.now = 1;
    world.paths = 1 + below(PATHS_MAX);
    world.scale = seed % 4 == 3 ? 1u << (16 + seed / 4 % 4) : 1;
    world.window = sizeof(kept_t) * (4 + (uint64_t) below(600));
    world.payload_max = below(3) ? 32 : PAYLOAD_MAX;
    world.burst = 1 + below(64);
    world.computes = !below(3);
    world.voids = below(2);
    world.fetches = below(2);
    world.rests = below(2);
    params = (dr_stream_params_t){
        .rto_initial = 50 * MS, .rto_min = 2 * MS, .rto_reliable = 2 * MS, .rto_max = SECOND, .ack_delay = MS, .ack_bytes = world.window / 64,
        .window = world.window, .probe_first = 10 * MS, .probe_max = 500 * MS, .silence_max = 300 * SECOND,
        .suspect_after = 2, .down_after = 5};
    make_links();
    make_end(0, fragments);
    make_end(1, below(3) ? fragments : fragments / 10);
}

static void end_world(void)
{
    while (heap_count > 0) { /* late repeats */
        packet_t *p = heap_pop();
        counts.unread += p->damaged;
        packet_free(p);
    }
    for (unsigned who = 0; who < 2; who++) {
        end_t *end = &world.ends[who];
        CHECK(end->stream->kept == 0 && end->parked_count == 0 && end->stream->timed == 0);
        CHECK(end->stream->held_count == 0 && end->arrived == end->wanted);
        for (unsigned i = 0; i < end->stream->path_count; i++) {
            CHECK(end->stream->paths[i].flight == 0 && end->stream->paths[i].flight_bytes == 0);
        }
        dr_stream_fini(end->stream);
        free(end->stream);
        free(end->parked);
    }
}

static void run_world(uint64_t seed, uint64_t fragments)
{
    make_world(seed, fragments);
    uint64_t limit = fragments * 100 * MS + 600 * SECOND;
    while (!is_over()) {
        step(10000);
        CHECK(world.now < limit);
    }
    counts.took += world.now;
    if (world.now > counts.slowest) {
        counts.slowest = world.now;
        counts.slowest_seed = seed;
    }
    end_world();
    CHECK(counts.damaged == counts.caught + counts.unread);
}

/* A link that loses nothing, and whose packets go ways of different length: about as many are under way at once as pass one of them. */
static void run_spread(uint64_t seed)
{
    make_world(seed, 5000); /* enough to learn what the link is like */
    world.paths = world.scale = 1;
    world.computes = world.rests = false;
    world.window = params.window = 1 << 20;
    world.links[0] = (link_t){.alive = true, .faults = {.delay = 20000, .jitter = 200000}, .window = 1 << 16};
    while (!is_over()) {
        step(10000);
        CHECK(world.now < 600 * SECOND);
    }
    counts.windows += (double) world.ends[0].stream->paths[0].cwnd / (1 << 16);
    end_world();
}

/* How many of 100 are sent again. */
static double sent_again(uint64_t seed, uint64_t worlds)
{
    const counts_t before = counts;
    for (uint64_t i = 0; i < worlds; i++) {
        run_spread(seed + i);
    }
    return 100.0 * (double) (counts.retransmitted - before.retransmitted) / (double) (counts.delivered - before.delivered);
}

static uint64_t number_of(const char *text)
{
    return strtoull(text, NULL, 0);
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? number_of(text) : otherwise;
}

int main(int argc, char **argv)
{
    uint64_t seed = setting("DR_SIM_SEED", 1), worlds = setting("DR_SIM_WORLDS", 600), fragments = 5000;
    unsigned limit = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--seed")) {
            seed = number_of(argv[i + 1]);
        } else if (!strcmp(argv[i], "--worlds")) {
            worlds = number_of(argv[i + 1]);
        } else if (!strcmp(argv[i], "--fragments")) {
            fragments = number_of(argv[i + 1]);
        } else if (!strcmp(argv[i], "--limit")) {
            limit = (unsigned) number_of(argv[i + 1]);
        }
    }
    tap_start(limit > 0 ? limit : (unsigned) (120 + worlds / 10));
    for (uint64_t i = 0; i < worlds; i++) {
        run_world(seed + i, fragments);
    }
    printf("# %" PRIu64 " fragments in %" PRIu64 " packets: %" PRIu64 " lost, %" PRIu64 " damaged, %" PRIu64
           " repeated, %" PRIu64 " sent again, %" PRIu64 " made void, %" PRIu64 " deaths of links\n",
           counts.delivered, counts.packets, counts.lost, counts.damaged, counts.repeated, counts.retransmitted,
           counts.voided, counts.deaths);
    printf("# %" PRIu64 " placed, of %" PRIu64 " the place was taken; %" PRIu64 " fetched, %" PRIu64 " damaged; %" PRIu64
           " times at rest\n", counts.placed, counts.displaced, counts.fetched, counts.spoilt, counts.rests);
    printf("# the slowest world, %" PRIu64 ", took %.1f s of its time, all together %.0f s\n", counts.slowest_seed,
           (double) counts.slowest / 1e9, (double) counts.took / 1e9);
    printf("# %" PRIu64 " sent with what was granted before\n", counts.granted);
    printf("# at most %" PRIu64 " gaps, %" PRIu64 " out of order, %" PRIu64 " bytes kept; %.1f s\n", counts.gaps_most,
           counts.parked_most, counts.kept_most, (double) clock() / CLOCKS_PER_SEC);
    printf("# %" PRIu64 " packets were late by seconds; %" PRIu64 " of %" PRIu64 " retransmission times were long\n",
           counts.late, counts.patient, counts.looks);
    const uint64_t spread = 20;
    const double again = sent_again(seed, spread);
    TAP_OK(again < 10, "what is only passed by others is not often sent again: %.1f %%", again);
    TAP_OK(counts.windows > 0.6 * (double) spread, "... and makes the windows no smaller: %.0f %%", 100 * counts.windows / (double) spread);
    TAP_OK(counts.damaged == counts.caught + counts.unread, "each of %" PRIu64 " damaged packets was caught, or not "
           "looked at (%" PRIu64 ")", counts.damaged, counts.unread);
    TAP_OK(counts.looks < 20000 || counts.patient <= counts.looks / 5000, "retransmission times stay near the round trips");
    TAP_OK(true, "all %" PRIu64 " fragments of %" PRIu64 " worlds from seed %" PRIu64 " arrived once, intact",
           counts.delivered, worlds, seed);
    return tap_end();
}
