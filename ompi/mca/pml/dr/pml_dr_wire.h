/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * What dr puts in front of every fragment. Little-endian, fixed width; no address and no index of memory.
 *
 *   0        4     5      6        7          8     16    20              24
 *   | check  | kind| flags| version| header_len| seq | ack | payload_check | header | payload | payload_check, if DR_FLAG_BEHIND
 *
 * `check` covers the prefix (with itself as zero), `header_len` bytes behind it, and the fragment's length: nothing else is
 * believed before it is right. `payload_check` covers what follows. Both start from the pair's key (who sends to
 * whom), so that a fragment for somebody else is as good as damaged.
 *
 *   DATA   a fragment of the engine: takes the sequence numbers [seq, seq + its bytes without the prefix)
 *   VOID   these numbers carry nothing any more: [seq, seq + span); the bytes went under others
 *   ACK    seq is what the sender's next new fragment will take; header: dr_wire_ack_t
 *   PROBE  seq is a token; to be answered at once, over the same link, by ECHO with the same token
 *   ECHO
 *   BARE   a fragment of the engine that takes no numbers, seq and ack are 0; nothing is checked (pml_dr_bare.h)
 *
 * `ack`, of DATA without DR_FLAG_AGAIN, else 0, is the lower half of the number below which all was verified and delivered when it went. If
 * that is no less than what is known, which dr_stream_tells(), the upper half follows from what the receiver of it has sent: less than DR_REACH
 * is ever under way.
 */
#ifndef MCA_PML_DR_WIRE_H
#define MCA_PML_DR_WIRE_H

#include <assert.h>
#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "opal/checksum/checksum.h"

enum { DR_WIRE_VERSION = 4 };

typedef enum { DR_DATA = 1, DR_VOID, DR_ACK, DR_PROBE, DR_ECHO, DR_BARE } dr_kind_t;

enum {
    DR_FLAG_ACK_NOW = 1, /* the sender waits for the acknowledgment */
    DR_FLAG_BEHIND = 2,  /* payload_check is not known yet when the prefix goes: it stands behind the payload, in no number */
    DR_FLAG_AGAIN = 4,   /* fragments with higher numbers may have gone before it: nothing rides on it */
};

typedef uint32_t dr_behind_t;

typedef struct dr_prefix {
    uint32_t check;
    uint8_t kind, flags, version, header_len;
    uint64_t seq;
    uint32_t ack;
    uint32_t payload_check;
} dr_prefix_t;

typedef struct dr_wire_void {
    uint32_t span;
    uint32_t reserved;
} dr_wire_void_t;

enum { DR_ACK_BLOCKS = 16, DR_ACK_NACKS = 4 };

typedef struct dr_wire_block {
    uint32_t from, to; /* beyond `delivered` */
} dr_wire_block_t;

/* Blocks ascend: first those that are delivered, then those that came damaged. */
typedef struct dr_wire_ack {
    uint64_t delivered; /* all numbers below are verified and delivered */
    uint32_t received;  /* beyond `delivered`: all numbers below came with a header that was right */
    uint32_t horizon;   /* beyond `delivered`: what lies before it and in no block is missing */
    uint32_t repeat;    /* lower half of the number behind the first of a fragment that came again since the last one; 0: none did */
    uint8_t blocks, nacks;
    uint16_t reserved;
    dr_wire_block_t block[DR_ACK_BLOCKS + DR_ACK_NACKS];
} dr_wire_ack_t;

static_assert(sizeof(dr_prefix_t) == 24, "wire format");
static_assert(sizeof(dr_wire_void_t) == 8, "wire format");
static_assert(sizeof(dr_wire_ack_t) == 24 + 20 * 8, "wire format");
static_assert(offsetof(dr_wire_ack_t, block) == 24, "wire format");
static_assert(sizeof(dr_wire_ack_t) <= UINT8_MAX, "header_len is one byte");

/* How one direction of a pair of processes is checked. */
typedef struct dr_seal {
    opal_checksum_kind_t kind;
    uint32_t key;
} dr_seal_t;

/* The key of fragments from `src` to `dst`. */
uint32_t dr_wire_key(uint64_t src, uint64_t dst);

/* Both sums go on from the key. OPAL_CHECKSUM_NONE is always 0. */
static inline uint64_t dr_wire_begin(const dr_seal_t *seal)
{
    return seal->kind == OPAL_CHECKSUM_NONE ? 0 : seal->key;
}

/* The three words of a prefix as they stand in memory. As variables: in an array the compiler would put two of them together with
 * one store, or load two that were just stored one by one, which waits until the stores are through. */
typedef struct dr_wire_words {
    uint64_t a, b, c;
} dr_wire_words_t;

static OPAL_ALWAYS_INLINE dr_wire_words_t dr_wire_load_words(const void *from)
{
    dr_wire_words_t w;
    memcpy(&w.a, from, 8);
    memcpy(&w.b, (const char *) from + 8, 8);
    memcpy(&w.c, (const char *) from + 16, 8);
    __asm__("" : "+r"(w.a), "+r"(w.b), "+r"(w.c));
    return w;
}

static OPAL_ALWAYS_INLINE void dr_wire_store_words(void *to, dr_wire_words_t w)
{
    __asm__("" : "+r"(w.a), "+r"(w.b), "+r"(w.c));
    memcpy(to, &w.a, 8);
    memcpy((char *) to + 8, &w.b, 8);
    memcpy((char *) to + 16, &w.c, 8);
}

/* Of the prefix, with `check` zero, and of the header behind it, which is that of a short message nearly always. */
static OPAL_ALWAYS_INLINE uint32_t dr_wire_header_sum(const dr_seal_t *seal, dr_wire_words_t prefix, const void *header,
                                                      size_t header_len, size_t len)
{
    if (seal->kind == OPAL_CHECKSUM_NONE) {
        return 0;
    }
    uint64_t sum = opal_checksum_words3(seal->kind, seal->key ^ (uint32_t) len, prefix.a, prefix.b, prefix.c);
    if (OPAL_LIKELY(header_len == sizeof(prefix))) {
        dr_wire_words_t w = dr_wire_load_words(header);
        sum = opal_checksum_words3(seal->kind, sum, w.a, w.b, w.c);
    } else {
        sum = opal_checksum_update(seal->kind, sum, header, header_len);
    }
    return opal_checksum_finish(seal->kind, sum);
}

static inline uint32_t dr_wire_payload_sum(const dr_seal_t *seal, const void *payload, size_t len)
{
    return opal_checksum_finish(seal->kind, opal_checksum_update(seal->kind, dr_wire_begin(seal), payload, len));
}

/* Write a prefix in front of header_len bytes of header. `len`: of the whole fragment. */
static inline void dr_wire_write(const dr_seal_t *seal, dr_prefix_t *prefix, dr_kind_t kind, unsigned flags,
                                 size_t header_len, uint64_t seq, uint32_t ack, uint32_t payload_check, size_t len)
{
    uint64_t first = (uint64_t) ((uint32_t) kind | flags << 8 | (uint32_t) DR_WIRE_VERSION << 16 |
                                 (uint32_t) header_len << 24) << 32;
    dr_wire_words_t w = {htole64(first), htole64(seq), htole64((uint64_t) payload_check << 32 | ack)};
    w.a = htole64(first | dr_wire_header_sum(seal, w, prefix + 1, header_len, len));
    dr_wire_store_words(prefix, w);
}

/* The prefix of a bare fragment in front of header_len bytes of header. */
static OPAL_ALWAYS_INLINE void dr_wire_write_bare(void *prefix, size_t header_len)
{
    uint64_t first = (uint64_t) (DR_BARE | (uint32_t) DR_WIRE_VERSION << 16 | (uint32_t) header_len << 24) << 32;
    dr_wire_store_words(prefix, (dr_wire_words_t){htole64(first), 0, 0});
}

/* Is it one? The prefix is inside, then. */
static OPAL_ALWAYS_INLINE bool dr_wire_is_bare(const void *data, size_t len)
{
    const dr_prefix_t *prefix = (const dr_prefix_t *) data;
    return len >= sizeof(*prefix) && prefix->kind == DR_BARE && prefix->version == DR_WIRE_VERSION;
}

/* Is this the start of an undamaged header? Nothing outside [data, data + len) is read, no field is believed unless
 * true is returned: then the prefix and header_len bytes are inside. */
static inline bool dr_wire_open(const dr_seal_t *seal, const void *data, size_t len)
{
    const dr_prefix_t *prefix = (const dr_prefix_t *) data;
    if (len < sizeof(*prefix) || prefix->header_len > len - sizeof(*prefix) || prefix->version != DR_WIRE_VERSION ||
        prefix->kind < DR_DATA || prefix->kind > DR_ECHO) {
        return false;
    }
    dr_wire_words_t w = dr_wire_load_words(prefix);
    w.a &= htole64((uint64_t) UINT32_MAX << 32);
    return dr_wire_header_sum(seal, w, prefix + 1, prefix->header_len, len) == le32toh(prefix->check);
}

/* Is the payload what was sent, by the check that came with it? */
static inline bool dr_wire_payload_is_good(const dr_seal_t *seal, uint32_t check, const void *payload, size_t len)
{
    return len == 0 || dr_wire_payload_sum(seal, payload, len) == check;
}

/* ---- Short messages ----
 * The same in fewer instructions for what nearly all are: DATA, a header as long as the prefix, few bytes, no sums or those of the
 * processor's instruction. What is so written, dr_wire_open() reads, and the reverse. */

enum { DR_USUAL_HEADER = sizeof(dr_wire_words_t), DR_USUAL_HEAD = sizeof(dr_prefix_t) + DR_USUAL_HEADER };

static OPAL_ALWAYS_INLINE bool dr_wire_has_usual_sums(const dr_seal_t *seal)
{
    return seal->kind == OPAL_CHECKSUM_NONE ||
           (OPAL_CRC32C_INLINE && seal->kind == OPAL_CHECKSUM_CRC32C &&
            atomic_load_explicit(&opal_crc32c_instruction, memory_order_relaxed));
}

/* Of prefix and header; `len`: of the whole fragment. */
static OPAL_ALWAYS_INLINE uint32_t dr_wire_usual_sum(const dr_seal_t *seal, dr_wire_words_t p, dr_wire_words_t h, size_t len)
{
#if OPAL_CRC32C_INLINE
    uint64_t sum = opal_crc32c_step8(opal_crc32c_step8(opal_crc32c_step8(seal->key ^ (uint32_t) len, p.a), p.b), p.c);
    return ~(uint32_t) opal_crc32c_step8(opal_crc32c_step8(opal_crc32c_step8(sum, h.a), h.b), h.c);
#else
    return dr_wire_header_sum(seal, p, &h, sizeof(h), len);
#endif
}

#define DR_WIRE_USUAL ((uint64_t) (DR_DATA | DR_WIRE_VERSION << 16 | DR_USUAL_HEADER << 24) << 32)

/* Write prefix and header. `sums` says whether there are any: a constant. `sum`: the payload's; `len`: its bytes. */
static OPAL_ALWAYS_INLINE void dr_wire_write_usual_head(const dr_seal_t *seal, bool sums, void *to, uint64_t seq, uint32_t ack,
                                                        const void *header, uint32_t sum, size_t len)
{
    dr_wire_words_t h = dr_wire_load_words(header);
    dr_wire_words_t p = {htole64(DR_WIRE_USUAL), htole64(seq), htole64((uint64_t) sum << 32 | ack)};
    dr_wire_store_words((unsigned char *) to + sizeof(dr_prefix_t), h);
    if (sums) {
        p.a |= htole64(dr_wire_usual_sum(seal, p, h, DR_USUAL_HEAD + len));
    }
    dr_wire_store_words(to, p);
}

/* Write prefix, header and payload; the sum of the payload. */
static OPAL_ALWAYS_INLINE uint32_t dr_wire_write_usual(const dr_seal_t *seal, bool sums, void *to, uint64_t seq, uint32_t ack,
                                                       const void *header, const void *data, size_t len)
{
    unsigned char *payload = (unsigned char *) to + DR_USUAL_HEAD;
    uint32_t sum = 0;
    if (!sums) {
        opal_copy(payload, data, len);
    } else {
        sum = ~opal_crc32c_copy(seal->key, payload, data, len);
    }
    dr_wire_write_usual_head(seal, sums, to, seq, ack, header, sum, len);
    return sum;
}

/* Up to 8 bytes as a word, and their sum. */
static OPAL_ALWAYS_INLINE uint64_t dr_wire_read_tiny(const dr_seal_t *seal, bool sums, const void *data, size_t len, uint32_t *sum)
{
    uint64_t word = 0;
    *sum = 0;
    if (OPAL_LIKELY(len == sizeof(word))) {
        memcpy(&word, data, sizeof(word));
#if OPAL_CRC32C_INLINE
        if (sums) {
            *sum = ~(uint32_t) opal_crc32c_step8(seal->key, word);
        }
#endif
    } else {
        if (len > 0) { /* `data` may be NULL otherwise */
            memcpy(&word, data, len);
        }
        if (sums) {
            *sum = ~opal_crc32c_update(seal->key, data, len);
        }
    }
    return word;
}

/* Is it such a message, undamaged? False: dr_wire_open() finds out what it is. Nothing outside [data, data + len) is read. */
static OPAL_ALWAYS_INLINE bool dr_wire_is_usual(const dr_seal_t *seal, bool sums, const void *data, size_t len)
{
    if (len < DR_USUAL_HEAD) {
        return false;
    }
    dr_wire_words_t p = dr_wire_load_words(data);
    uint32_t check = (uint32_t) le64toh(p.a), payload_check = (uint32_t) (le64toh(p.c) >> 32);
    p.a &= htole64((uint64_t) UINT32_MAX << 32);
    if ((p.a & ~htole64((uint64_t) DR_FLAG_ACK_NOW << 40)) != htole64(DR_WIRE_USUAL)) {
        return false;
    }
    if (!sums) {
        return check == 0 && payload_check == 0;
    }
    const unsigned char *header = (const unsigned char *) data + sizeof(dr_prefix_t);
    return check == dr_wire_usual_sum(seal, p, dr_wire_load_words(header), len) &&
           (len == DR_USUAL_HEAD ||
            payload_check == ~opal_crc32c_update(seal->key, header + DR_USUAL_HEADER, len - DR_USUAL_HEAD));
}

/* What an acknowledgment says; read with dr_wire_read_ack(), which checks it. */
typedef struct dr_range {
    uint64_t from, to;
} dr_range_t;

typedef struct dr_ack {
    uint64_t delivered, received, horizon;
    uint32_t repeat;
    unsigned blocks, nacks;
    dr_range_t block[DR_ACK_BLOCKS + DR_ACK_NACKS]; /* delivered ones, then damaged ones */
} dr_ack_t;

/* Bytes of the header; at most sizeof(dr_wire_ack_t). */
size_t dr_wire_write_ack(dr_wire_ack_t *wire, const dr_ack_t *ack);
/* False: it makes no sense. */
bool dr_wire_read_ack(const void *header, size_t len, dr_ack_t *ack);

/* The full number of which the lower half is `low`, at most `limit`, and less than 2^31 below it. */
static inline uint64_t dr_wire_widen(uint32_t low, uint64_t limit)
{
    return limit - (uint32_t) ((uint32_t) limit - low);
}

#endif
