/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the PML engine puts on the wire. Little-endian, fixed width. A policy may put a prefix of its own in front.
 *
 *   MATCH   header, payload                     a whole message, sent before the receiver is known
 *   RNDV    header, length, sender's id, payload  first fragment of a long or synchronous message
 *   RGET    as RNDV, then address (and key)     the receiver may fetch the message itself
 *   ACK     sender's id, receiver's id, range   matched: send [from, to) to the receiver's id
 *   FRAG    receiver's id, offset, payload      a piece of a matched message
 *             or, if UNASKED: sender's id, ...  a piece of a message that may not be matched yet
 *   FIN     sender's id, bytes                  fetched, or cancelled: the sender's buffer is free
 *   CHECK   sender's id, receiver's id, range   a fetch of [from, to) is under way: what is its sum?
 *   SUM     receiver's id, offset, sum          the answer
 *   CANCEL  as RNDV                             forget this message, if it is not matched; FIN says so. Its length is
 *                                               that of the payload of the first fragment
 *   CREDIT  nothing                             the common part says it all; its flags may say that links are in doubt, or that
 *                                               the sender has given the receiver up
 *
 * Data goes as it lies in the sender's memory: a receiver whose numbers look otherwise converts it.
 *
 * `credit` is the number of bytes (modulo 2^32) of eager messages of this peer that have left the receiver's memory
 * since the start: cumulative, so that repeats and reordering do no harm.
 *
 * Ids are opaque to the other side: slot number and generation, see mca_pml_base_id_*.
 */
#ifndef MCA_PML_BASE_HDR_H
#define MCA_PML_BASE_HDR_H

#include <assert.h>
#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MCA_PML_HDR_MATCH = 1,
    MCA_PML_HDR_RNDV = 2,
    MCA_PML_HDR_RGET = 3,
    MCA_PML_HDR_ACK = 4,
    MCA_PML_HDR_FRAG = 5,
    MCA_PML_HDR_FIN = 6,
    MCA_PML_HDR_CREDIT = 7,
    MCA_PML_HDR_CHECK = 8,
    MCA_PML_HDR_SUM = 9,
    MCA_PML_HDR_CANCEL = 10,
};

enum {
    MCA_PML_FLAG_DOUBT = 1,     /* of CREDIT: a link between us fell silent; this one works, try the others */
    MCA_PML_FLAG_CANCELLED = 2, /* of FIN: the message will not be received */
    MCA_PML_FLAG_UNASKED = 4,   /* of RNDV: the rest follows without an ACK, in FRAGs that say so, too; the id is none of a request's */
    MCA_PML_FLAG_FETCH = 8,     /* of RGET: it would have gone in parts else: fetch it. Of FIN: such messages had better be fetched */
    MCA_PML_FLAG_PARTS = 16,    /* of FIN: they had better go in parts */
    MCA_PML_FLAG_GIVEN_UP = 32, /* of CREDIT: you could not be reached, or sent too much; nothing of yours is answered any more */
};

/* In `arch`, where the receiver looks for what is not as usual anyway: a message of mode MCA_PML_FAILED. */
enum { MCA_PML_ARCH_FAILED = 0x8000 };

typedef struct mca_pml_hdr_common {
    uint8_t type;
    uint8_t flags;
    uint16_t arch;     /* of first fragments: how the sender's numbers look, see opal_arch_id(); MCA_PML_ARCH_FAILED */
    uint32_t credit;
} mca_pml_hdr_common_t;

typedef struct mca_pml_hdr_match {
    mca_pml_hdr_common_t common;
    uint32_t context;
    uint32_t src;      /* rank in the communicator */
    int32_t tag;
    uint32_t seq;      /* per communicator and ordered pair of processes */
} mca_pml_hdr_match_t;

typedef struct mca_pml_hdr_rndv {
    mca_pml_hdr_match_t match;
    uint64_t length;   /* of the whole message */
    uint64_t sreq;
} mca_pml_hdr_rndv_t;

typedef struct mca_pml_hdr_rget {
    mca_pml_hdr_rndv_t rndv;
    uint64_t address;
    uint32_t key_len;
    uint32_t reserved;
    uint8_t key[32];
} mca_pml_hdr_rget_t;

typedef struct mca_pml_hdr_ack {
    mca_pml_hdr_common_t common;
    uint64_t sreq, rreq;
    uint64_t from, to; /* bytes of the message still wanted */
} mca_pml_hdr_ack_t; /* and CHECK */

typedef struct mca_pml_hdr_frag {
    mca_pml_hdr_common_t common;
    uint64_t rreq;
    uint64_t offset;
} mca_pml_hdr_frag_t;

typedef struct mca_pml_hdr_fin {
    mca_pml_hdr_common_t common;
    uint64_t sreq;
    uint64_t bytes;
} mca_pml_hdr_fin_t;

typedef struct mca_pml_hdr_sum {
    mca_pml_hdr_common_t common;
    uint64_t rreq;
    uint64_t offset;
    uint32_t sum;      /* as the policy sums */
    uint32_t reserved;
} mca_pml_hdr_sum_t;

typedef union mca_pml_hdr {
    mca_pml_hdr_common_t common;
    mca_pml_hdr_match_t match;
    mca_pml_hdr_rndv_t rndv;
    mca_pml_hdr_rget_t rget;
    mca_pml_hdr_ack_t ack;
    mca_pml_hdr_frag_t frag;
    mca_pml_hdr_fin_t fin;
    mca_pml_hdr_sum_t sum;
} mca_pml_hdr_t;

static_assert(sizeof(mca_pml_hdr_common_t) == 8, "wire format");
static_assert(sizeof(mca_pml_hdr_match_t) == 24, "wire format");
static_assert(sizeof(mca_pml_hdr_rndv_t) == 40, "wire format");
static_assert(sizeof(mca_pml_hdr_rget_t) == 88, "wire format");
static_assert(sizeof(mca_pml_hdr_ack_t) == 40, "wire format");
static_assert(sizeof(mca_pml_hdr_frag_t) == 24, "wire format");
static_assert(sizeof(mca_pml_hdr_fin_t) == 24, "wire format");
static_assert(sizeof(mca_pml_hdr_sum_t) == 32, "wire format");

/* Bytes of the header of a fragment of `len` bytes at `data`, or 0 if it is no valid header. The fields' meaning is
 * checked where they are used; this guards against reading outside. */
static inline size_t mca_pml_hdr_length(const void *data, size_t len)
{
    static const uint8_t lengths[11] = {
        [MCA_PML_HDR_MATCH] = sizeof(mca_pml_hdr_match_t), [MCA_PML_HDR_RNDV] = sizeof(mca_pml_hdr_rndv_t),
        [MCA_PML_HDR_RGET] = sizeof(mca_pml_hdr_rget_t),   [MCA_PML_HDR_ACK] = sizeof(mca_pml_hdr_ack_t),
        [MCA_PML_HDR_FRAG] = sizeof(mca_pml_hdr_frag_t),   [MCA_PML_HDR_FIN] = sizeof(mca_pml_hdr_fin_t),
        [MCA_PML_HDR_CREDIT] = sizeof(mca_pml_hdr_common_t), [MCA_PML_HDR_CHECK] = sizeof(mca_pml_hdr_ack_t),
        [MCA_PML_HDR_SUM] = sizeof(mca_pml_hdr_sum_t),     [MCA_PML_HDR_CANCEL] = sizeof(mca_pml_hdr_rndv_t),
    };
    if (len < sizeof(mca_pml_hdr_common_t)) {
        return 0;
    }
    uint8_t type = *(const uint8_t *) data;
    size_t need = type < sizeof(lengths) ? lengths[type] : 0;
    return need <= len ? need : 0;
}

#endif
