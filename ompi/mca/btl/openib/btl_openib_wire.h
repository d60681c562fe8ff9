/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * What btl/openib puts on the wire; all numbers are little-endian.
 *
 * A HELLO, in one unreliable datagram, introduces two processes' ports to each other:
 *
 *      0          16          20     21      22    23   24         32       40       44
 *    | code 16  | magic u32 | port | flags | MTU | rd | from u64 | to u64 | id u32 | your_id u32 |
 *      48        52        56            60        62    63  64       80         84  88
 *    | QPN u32 | PSN u32 | greeter u32 | LID u16 | LMC | 0 | GID 16 | room u32 | service u16, 0 |
 *
 * code     the first half of HMAC-SHA256 of the rest, with the job's secret: nobody else is listened to.
 * id       the sender's number for this connection, never 0, higher than those of its earlier ones; your_id: the receiver's
 *          number that the sender knows of, 0: none.
 * QPN, PSN of the queue pair that the sender has made for this connection; greeter: the one that reads HELLOs.
 * service  the port number of its rdma_cm listener, 0: none.
 * rd       RDMA reads that the sender serves at once; room: fragments that the receiver may send before it hears more.
 *
 * A frame over the connection is this prefix, and in DATA a fragment behind it:
 *
 *      0            4          6      7     8
 *    | handed u32 | room u16 | type | tag |
 *
 * RING has behind it where a ring of `slots` slots of 256 bytes begins in the sender's memory; RING_OFF and RING_LEFT are
 * prefixes alone, see btl_openib_ring.c:
 *
 *      8             16         20          24
 *    | address u64 | rkey u32 | slots u32 |
 *
 * What is written into a slot ends where the slot does:
 *
 *    | prefix of DATA | fragment, padded to 8 bytes | number u32 | length u16 | lap u16 |
 *
 * number   of the fragment among all of the connection, from 1; lap: how often the slot has been used, from 1; the last word
 *          that is written.
 * handed   how many of the receiver's fragments the sender has handed up; room: how many more than that may be sent.
 * tag      the lowest bits of the receiver's id: a frame of an earlier connection is nobody's.
 */
#ifndef BTL_OPENIB_WIRE_H
#define BTL_OPENIB_WIRE_H

#include "hawser/btl.h"
#include "ompi/mca/common/verbs/common_verbs.h"

enum {
    BTL_OPENIB_HELLO = 88,
    BTL_OPENIB_PREFIX = 8,
    BTL_OPENIB_ROOM_MAX = 4096, /* nobody grants more */
    BTL_OPENIB_RING_FRAME = 24,
    BTL_OPENIB_SLOT = 256,
    BTL_OPENIB_SLOT_TAIL = 8,
    BTL_OPENIB_SLOTS_MAX = 64,
};

enum { BTL_OPENIB_HELLO_ANSWER = 1u << 0 }; /* one is wanted */

typedef struct btl_openib_hello {
    mca_btl_name_t from, to;
    uint32_t id, your_id, qpn, psn, room;
    uint8_t port, flags, rd;
    common_verbs_addr_t addr;  /* its qpn: the greeter's */
} btl_openib_hello_t;

typedef enum {
    BTL_OPENIB_DATA = 1,
    BTL_OPENIB_COUNT,
    BTL_OPENIB_BYE,
    BTL_OPENIB_RING,
    BTL_OPENIB_RING_OFF,
    BTL_OPENIB_RING_LEFT,
} btl_openib_type_t;

typedef struct btl_openib_prefix {
    uint32_t handed;
    uint16_t room;
    uint8_t type, tag;
} btl_openib_prefix_t;

void btl_openib_hello_write(const btl_openib_hello_t *hello, const uint8_t secret[32], uint8_t out[BTL_OPENIB_HELLO]);
/* False: nobody of this job wrote it, or it is out of bounds. */
bool btl_openib_hello_read(const uint8_t *in, size_t len, const uint8_t secret[32], btl_openib_hello_t *hello);
void btl_openib_prefix_write(const btl_openib_prefix_t *prefix, uint8_t out[BTL_OPENIB_PREFIX]);
/* False: of a length, type or room that no frame has. */
bool btl_openib_prefix_read(const uint8_t *in, size_t len, btl_openib_prefix_t *prefix);

#endif
