/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Keys, acknowledgments: what goes on the wire, and what is believed of what comes from it. */
#include "ompi/mca/pml/dr/pml_dr_wire.h"

#include <string.h>

uint32_t dr_wire_key(uint64_t src, uint64_t dst)
{
    /* Finalizer of splitmix64 over both names: any bit of either changes half of the key. */
    uint64_t x = src * 0x9e3779b97f4a7c15u ^ (dst + 0x632be59bd9b4e019u);
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (uint32_t) (x ^ x >> 31);
}

static size_t ack_length(unsigned blocks)
{
    return offsetof(dr_wire_ack_t, block) + blocks * sizeof(dr_wire_block_t);
}

size_t dr_wire_write_ack(dr_wire_ack_t *wire, const dr_ack_t *ack)
{
    *wire = (dr_wire_ack_t){
        .delivered = htole64(ack->delivered),
        .received = htole32((uint32_t) (ack->received - ack->delivered)),
        .horizon = htole32((uint32_t) (ack->horizon - ack->delivered)),
        .repeat = htole32(ack->repeat),
        .blocks = (uint8_t) ack->blocks,
        .nacks = (uint8_t) ack->nacks,
    };
    for (unsigned i = 0; i < ack->blocks + ack->nacks; i++) {
        wire->block[i].from = htole32((uint32_t) (ack->block[i].from - ack->delivered));
        wire->block[i].to = htole32((uint32_t) (ack->block[i].to - ack->delivered));
    }
    return ack_length(ack->blocks + ack->nacks);
}

bool dr_wire_read_ack(const void *header, size_t len, dr_ack_t *ack)
{
    dr_wire_ack_t wire;
    if (len < ack_length(0) || len > sizeof(wire)) {
        return false;
    }
    memcpy(&wire, header, len);
    if (wire.blocks > DR_ACK_BLOCKS || wire.nacks > DR_ACK_NACKS || len != ack_length(wire.blocks + wire.nacks)) {
        return false;
    }
    ack->delivered = le64toh(wire.delivered);
    ack->received = ack->delivered + le32toh(wire.received);
    ack->horizon = ack->delivered + le32toh(wire.horizon);
    ack->repeat = le32toh(wire.repeat);
    ack->blocks = wire.blocks;
    ack->nacks = wire.nacks;
    uint64_t last = ack->delivered;
    for (unsigned i = 0; i < ack->blocks + ack->nacks; i++) {
        dr_range_t *b = &ack->block[i];
        *b = (dr_range_t){ack->delivered + le32toh(wire.block[i].from), ack->delivered + le32toh(wire.block[i].to)};
        last = i == ack->blocks ? ack->delivered : last; /* the damaged ones are a list of their own */
        if (b->from < last || b->to <= b->from) {
            return false;
        }
        last = b->to;
    }
    return true;
}
