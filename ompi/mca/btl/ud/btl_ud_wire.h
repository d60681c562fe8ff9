/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * What btl/ud puts on the wire. A fragment is one datagram, header and data; all numbers are little-endian:
 *
 *      0          8          16          20          24      25     26      27     28     30
 *    | code u64 | from u64 | epoch u32 | peer u32  | magic | type | flags | port | room | len u16 |
 *      32         36         40         44      48
 *    | seen u32 | at u32   | qpn u32  | LID u16, LMC, 0 |
 *
 * code    SipHash-2-4 of the rest of the header and of the first 128 bytes of data, with the key of this ordered
 *         pair of processes and ports, which comes from the job's secret.
 * epoch   the sender's number for its endpoint, which grows when that is made anew; `peer`: the epoch of the
 *         other side that `seen` speaks of, 0: none heard yet.
 * port    the sender's, as it stands in its card.
 * room    datagrams that may be under way to the sender of this one: 1 to BTL_UD_ROOM_MAX.
 * at      number of this datagram among those with data, from 1 on; in others: of the last one sent.
 * seen    number up to which the sender has read.
 * qpn     the queue pair that receives for the sender; 0 and 1 are never anybody's own.
 * LID     where the sender's port is now, on InfiniBand, and LMC: on how many paths; else 0.
 *
 * A datagram to a group (CAST) has the group's key instead, its tag in `peer`, 0 in `seen` and LID, and 1 in `room`; `epoch` and `at` are the
 * sender's for the group.
 */
#ifndef BTL_UD_WIRE_H
#define BTL_UD_WIRE_H

#include "ompi/mca/common/verbs/common_verbs.h"
#include "opal/util/siphash.h"

enum {
    BTL_UD_HEADER = 48,
    BTL_UD_MAGIC = 0x5d,
    BTL_UD_CODED_DATA = 128,
    BTL_UD_SEEN_BITS = 512,   /* older numbers count as seen */
    BTL_UD_ROOM_MAX = 256,    /* nobody grants more: each of these must be found among the numbers seen */
};

typedef enum { BTL_UD_DATA = 1, BTL_UD_REPORT, BTL_UD_PROBE, BTL_UD_BYE, BTL_UD_CAST } btl_ud_type_t;

enum { BTL_UD_FLAG_ASK = 1u << 0 }; /* a report is wanted */

typedef struct btl_ud_header {
    mca_btl_name_t from;
    uint32_t epoch, peer_epoch;
    uint8_t type, flags, port;
    uint16_t room, len;
    uint32_t seen, at, qpn;
    uint16_t lid;
    uint8_t lmc;
} btl_ud_header_t;

/* Numbers that have come: none is handed up twice. */
typedef struct btl_ud_seen {
    uint32_t last;            /* the highest */
    uint64_t bits[BTL_UD_SEEN_BITS / 64];
} btl_ud_seen_t;

void btl_ud_header_write(uint8_t out[BTL_UD_HEADER], const btl_ud_header_t *header);
/* False: not ours, or out of bounds. */
bool btl_ud_header_read(const uint8_t *in, size_t len, btl_ud_header_t *header);
void btl_ud_key(const uint8_t secret[32], mca_btl_name_t from, unsigned from_port, mca_btl_name_t to,
                unsigned to_port, opal_siphash_key_t *key);
/* The Q_Key of the job: others' datagrams are dropped by the adapter. */
uint32_t btl_ud_qkey(const uint8_t secret[32]);
/* What makes the group with this number: its tag, the key of its datagrams, its address (GID), of IPv4 or IPv6. */
void btl_ud_group_secrets(const uint8_t secret[32], uint64_t id, bool ipv4, uint32_t *tag, opal_siphash_key_t *key,
                          uint8_t gid[16]);
/* Of a datagram that stands in one piece. */
uint64_t btl_ud_code(const opal_siphash_key_t *key, const uint8_t *datagram, size_t len);
/* The one that stands in it. */
uint64_t btl_ud_code_get(const uint8_t *datagram);
void btl_ud_code_put(const opal_siphash_key_t *key, uint8_t *datagram, size_t len);
/* Is it new? */
bool btl_ud_seen_add(btl_ud_seen_t *seen, uint32_t number);

#endif
