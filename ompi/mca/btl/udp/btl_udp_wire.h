/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything that btl/udp puts on the wire: datagrams and the business card. All numbers are
 * little-endian, all sizes fixed; nothing received is used before its validator here has passed it
 * and its code has been found right.
 *
 * A datagram is a header and data. A fragment travels as one or more datagrams, all but the last of
 * the same size, so that the kernel or the network card can cut and join them:
 *
 *      0         8          16           20            24   25   26    27
 *    | code u64 | from u64 | epoch u32 | peer u32    | magic type flags if |
 *      28         30         32           36            40        44         48       52      54
 *    | room u16 | room u16 | seen u32  | seen u32    | at u32  | number   | len u32 | index | seg |
 *    | short    | long     | short     | long        |         | u32      |         | u16   | u16 |
 *
 * code    SipHash-2-4 of the rest of the header and of the first 128 bytes of data, with the key of
 *         this ordered pair of processes and interfaces. The key is derived from the job's secret,
 *         which never travels. (128 bytes hold what BTLs' users call a header; the payload's
 *         integrity is their concern.)
 * epoch   the sender's number for its endpoint; it grows when that is made anew. `peer`: the epoch
 *         of the other side to which `seen` belongs; 0: none heard yet.
 * if      the sender's interface, as numbered in its card
 * room    KiB that the peer may have under way in each of the two channels
 * seen    how far the sender has read the peer's channels
 * at      the sender's position in this channel behind this datagram. Positions count bytes, a
 *         charge for each datagram included; also those of datagrams that were lost.
 * number  of the fragment in its channel; `len` its bytes in all; this datagram has those from
 *         index * seg on
 *
 * In datagrams without data (REPORT, PROBE, BYE) `at` is the position in the short channel and
 * `number` that in the long one: a PROBE asks the peer to read on to there, and to report.
 */
#ifndef BTL_UDP_WIRE_H
#define BTL_UDP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hawser/btl.h"
#include "opal/util/le.h"
#include "opal/util/net_card.h"
#include "opal/util/siphash.h"

enum {
    BTL_UDP_VERSION = 1,
    BTL_UDP_MAGIC = 0xb0 | BTL_UDP_VERSION,
    BTL_UDP_HEADER = 56,
    BTL_UDP_CODED_DATA = 128,   /* bytes of data that the code covers */
    BTL_UDP_SEGMENTS_MAX = 64,  /* datagrams of one fragment; what one UDP_SEGMENT call takes */
    BTL_UDP_FRAG_MAX = 1 << 16, /* bytes of a fragment */
    BTL_UDP_SEG_MIN = 256,
    BTL_UDP_MTU_MIN = 576,
    BTL_UDP_CHARGE = 1024,      /* of each datagram: what the kernel counts for it above its bytes */
    BTL_UDP_FRAG_WEIGHT = BTL_UDP_FRAG_MAX + BTL_UDP_SEGMENTS_MAX * BTL_UDP_CHARGE,

    BTL_UDP_CARD_HEAD = 8,
    BTL_UDP_CARD_IF = 8,
    BTL_UDP_CARD_MAX = BTL_UDP_CARD_HEAD + OPAL_NET_CARD_IFS_MAX * BTL_UDP_CARD_IF +
                       OPAL_NET_CARD_BYTES_MAX,
};

typedef enum { BTL_UDP_SHORT, BTL_UDP_LONG, BTL_UDP_CHANNELS } btl_udp_channel_id_t;

typedef enum {
    BTL_UDP_DATA = 1,
    BTL_UDP_REPORT = 2,
    BTL_UDP_PROBE = 3, /* report at once */
    BTL_UDP_BYE = 4,   /* the sender's endpoint ends; report nothing more */
} btl_udp_type_t;

enum {
    BTL_UDP_FLAG_ASK = 1u << 0,  /* report soon */
    BTL_UDP_FLAG_LONG = 1u << 1, /* the long channel; always of data */
};

typedef struct btl_udp_header {
    uint64_t from;
    uint32_t epoch, peer_epoch;
    uint8_t type, flags, nif;
    uint16_t room[BTL_UDP_CHANNELS];
    uint32_t seen[BTL_UDP_CHANNELS];
    uint32_t at, number, len;
    uint16_t index, seg;
} btl_udp_header_t;

/* The code is left out. */
void btl_udp_header_write(uint8_t out[BTL_UDP_HEADER], const btl_udp_header_t *header);
/* `len`: of the whole datagram. False: not one of ours, or damaged. The code is not looked at. */
bool btl_udp_header_read(const uint8_t *in, size_t len, btl_udp_header_t *header);

/* Datagrams of which a fragment consists, and the bytes of data in one. */
static inline unsigned btl_udp_segments(uint32_t len, uint32_t seg)
{
    return len <= seg ? 1 : (len + seg - 1) / seg;
}

static inline uint32_t btl_udp_segment_len(uint32_t len, uint32_t seg, unsigned index)
{
    uint32_t left = len - (uint32_t) index * seg;
    return left < seg ? left : seg;
}

/* Data of the largest datagram of a path, and the bytes of that datagram: what an interface's MTU
 * leaves beside the IP and UDP headers. Data stays aligned when datagrams are joined. */
static inline uint32_t btl_udp_datagram_of(uint32_t mtu, bool ipv6)
{
    return (mtu < 65535 ? mtu : 65535) - (ipv6 ? 48 : 28);
}

static inline uint32_t btl_udp_segment_of(uint32_t datagram)
{
    return (datagram - BTL_UDP_HEADER) & ~7u;
}

/* The code of a datagram whose header and coded part of the data stand at `start`. */
static inline uint64_t btl_udp_code(const opal_siphash_key_t *key, const uint8_t *start,
                                    size_t data_len)
{
    size_t coded = data_len < BTL_UDP_CODED_DATA ? data_len : BTL_UDP_CODED_DATA;
    return opal_siphash(key, start + 8, BTL_UDP_HEADER - 8 + coded);
}

/* The key of datagrams from one process and interface to another. */
void btl_udp_key(const uint8_t secret[32], mca_btl_name_t from, unsigned from_if,
                 mca_btl_name_t to, unsigned to_if, opal_siphash_key_t *key);

/* Is position or number a before b? They wrap around. */
static inline bool btl_udp_before(uint32_t a, uint32_t b)
{
    return (int32_t) (a - b) < 0;
}

/* ---- Numbers that have been seen ---- */

enum { BTL_UDP_SEEN_BITS = 512 };

/* The last BTL_UDP_SEEN_BITS numbers up to `next` - 1. */
typedef struct btl_udp_seen {
    uint32_t next;
    uint64_t bits[BTL_UDP_SEEN_BITS / 64];
} btl_udp_seen_t;

/* True, and remembered: it was not seen before. What is too old to tell was. */
bool btl_udp_seen_add(btl_udp_seen_t *seen, uint32_t number);

/* ---- Business card ---- */

typedef struct btl_udp_card {
    opal_net_card_t net;     /* each interface with one address */
    uint16_t port[OPAL_NET_CARD_IFS_MAX][BTL_UDP_CHANNELS];
    uint32_t mtu[OPAL_NET_CARD_IFS_MAX];
} btl_udp_card_t;

size_t btl_udp_card_size(const btl_udp_card_t *card);
void btl_udp_card_write(uint8_t *out, const btl_udp_card_t *card);
/* MCA_ERR_BAD_PARAM: damaged, or of another version. */
int btl_udp_card_read(const void *data, size_t len, btl_udp_card_t *card);

#endif
