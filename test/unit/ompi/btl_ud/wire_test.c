/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What btl/ud puts on the wire: written, read and refused, field by field; its keys and codes; numbers that have been seen. */
#include "ompi/mca/btl/ud/btl_ud_wire.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "opal/util/le.h"
#include "test/support/tap.h"

static const uint8_t secret[32] = {7}, other_secret[32] = {8};

/* ---- Headers ---- */

static const btl_ud_header_t sample = {.from = 0x123456789abcdef0, .epoch = 9, .peer_epoch = 0xfffffff8,
                                       .type = BTL_UD_DATA, .flags = BTL_UD_FLAG_ASK, .port = 3, .room = 96, .len = 100,
                                       .seen = 0xfffffff0, .at = 77, .qpn = 0x123456, .lid = 0xbffe, .lmc = 1};

/* Read from exactly as much memory as the datagram has. */
static bool reads_bytes(const uint8_t *header, size_t len, btl_ud_header_t *out)
{
    uint8_t *exact = calloc(1, len > 0 ? len : 1);
    memcpy(exact, header, len < BTL_UD_HEADER ? len : BTL_UD_HEADER);
    bool good = btl_ud_header_read(exact, len, out);
    free(exact);
    return good;
}

static bool reads(const btl_ud_header_t *in, size_t data)
{
    uint8_t bytes[BTL_UD_HEADER] = {0};
    btl_ud_header_t out;
    memset(&out, 0, sizeof(out));
    btl_ud_header_write(bytes, in);
    return reads_bytes(bytes, BTL_UD_HEADER + data, &out) && out.from == in->from && out.epoch == in->epoch &&
           out.peer_epoch == in->peer_epoch && out.type == in->type && out.flags == in->flags && out.port == in->port &&
           out.room == in->room && out.len == in->len && out.seen == in->seen && out.at == in->at && out.qpn == in->qpn &&
           out.lid == in->lid && out.lmc == in->lmc;
}

/* The sample with one field changed. */
static btl_ud_header_t changed;
#define WITH(field, value) (changed = sample, changed.field = (value), &changed)

static void test_header(void)
{
    TAP_OK(reads(&sample, 100), "a header is read as written");
    bool control = true;
    for (unsigned type = BTL_UD_REPORT; type <= BTL_UD_BYE; type++) {
        const btl_ud_header_t h = {.from = 1, .epoch = 1, .type = (uint8_t) type, .room = 1, .qpn = 2};
        control &= reads(&h, 0) && !reads(&h, 1);
    }
    TAP_OK(control, "those of other kinds, too, which have no data");
    TAP_OK(!reads(&sample, 99) && !reads(&sample, 101) && !reads(&sample, 0) && !reads(WITH(len, 0xffff), 100) &&
               !reads(WITH(len, 0), 0), "other data than the header says, or none, is refused");
    TAP_OK(!reads(WITH(epoch, 0), 100), "no epoch is 0");
    TAP_OK(!reads(WITH(type, 0), 100) && !reads(WITH(type, BTL_UD_BYE + 1), 0) && !reads(WITH(type, 0xff), 100),
           "unknown kinds are refused");
    bool flags = false;
    for (unsigned bit = 1; bit < 8; bit++) {
        flags |= reads(WITH(flags, (uint8_t) (1u << bit)), 100);
    }
    TAP_OK(!flags, "unknown flags, too");
    TAP_OK(reads(WITH(port, COMMON_VERBS_PORTS_MAX - 1), 100) && !reads(WITH(port, COMMON_VERBS_PORTS_MAX), 100) &&
               !reads(WITH(port, 0xff), 100), "a port that no card can have");
    TAP_OK(reads(WITH(room, 1), 100) && reads(WITH(room, BTL_UD_ROOM_MAX), 100) && !reads(WITH(room, 0), 100) &&
               !reads(WITH(room, BTL_UD_ROOM_MAX + 1), 100) && !reads(WITH(room, 0xffff), 100),
           "more room than anybody grants, or none");
    TAP_OK(reads(WITH(qpn, 0xffffff), 100) && !reads(WITH(qpn, 0x1000000), 100) && !reads(WITH(qpn, 0), 100) &&
               !reads(WITH(qpn, 1), 100), "a queue pair that nobody can have made");
    TAP_OK(reads(WITH(lid, 0), 100) && reads(WITH(lmc, 7), 100) && !reads(WITH(lmc, 8), 100) && !reads(WITH(lmc, 0xff), 100),
           "a port with more paths than there can be");
}

static void test_bytes(void)
{
    uint8_t bytes[BTL_UD_HEADER] = {0};
    btl_ud_header_t out;
    bool any = false;
    btl_ud_header_write(bytes, &sample);
    for (size_t cut = 0; cut < BTL_UD_HEADER; cut++) {
        any |= reads_bytes(bytes, cut, &out);
    }
    TAP_OK(!any, "a header that was cut short is refused");
    for (unsigned magic = 0; magic < 256; magic++) {
        bytes[24] = (uint8_t) magic;
        any |= magic != BTL_UD_MAGIC && reads_bytes(bytes, BTL_UD_HEADER + 100, &out);
    }
    TAP_OK(!any, "other versions are");
    bytes[24] = BTL_UD_MAGIC;
    for (unsigned bit = 0; bit < 8; bit++) {
        bytes[47] = (uint8_t) (1u << bit);
        any |= reads_bytes(bytes, BTL_UD_HEADER + 100, &out);
        bytes[47] = 0;
    }
    TAP_OK(!any && reads_bytes(bytes, BTL_UD_HEADER + 100, &out), "so is anything where nothing is meant yet");
}

/* ---- Keys and codes ---- */

static bool same_key(mca_btl_name_t from, unsigned from_port, mca_btl_name_t to, unsigned to_port, const uint8_t *of)
{
    opal_siphash_key_t a, b;
    btl_ud_key(secret, 1, 0, 2, 0, &a);
    btl_ud_key(of, from, from_port, to, to_port, &b);
    return memcmp(&a, &b, sizeof(a)) == 0;
}

static void test_keys(void)
{
    TAP_OK(same_key(1, 0, 2, 0, secret), "both sides derive the same key");
    TAP_OK(!same_key(2, 0, 1, 0, secret), "each direction has its own");
    TAP_OK(!same_key(1, 1, 2, 0, secret) && !same_key(1, 0, 2, 1, secret), "so has each pair of ports");
    TAP_OK(!same_key(3, 0, 2, 0, secret) && !same_key(1, 0, 3, 0, secret), "of processes");
    TAP_OK(!same_key(1, 0, 2, 0, other_secret), "and each job");
    TAP_OK(btl_ud_qkey(secret) == btl_ud_qkey(secret) && btl_ud_qkey(secret) != btl_ud_qkey(other_secret),
           "a job has its Q_Key");
    uint32_t all = 0;
    for (unsigned i = 0; i < 256; i++) {
        uint8_t some[32] = {(uint8_t) i, 3};
        all |= btl_ud_qkey(some);
    }
    TAP_OK(all == 0x7fffffff, "which never stands for the queue pair's own");
}

static void test_codes(void)
{
    enum { DATA = BTL_UD_CODED_DATA + 40 };
    uint8_t datagram[BTL_UD_HEADER + DATA];
    opal_siphash_key_t key;
    unsigned unseen = 0, seen_behind = 0;
    memset(datagram, 0x5a, sizeof(datagram));
    btl_ud_header_write(datagram, &sample);
    btl_ud_key(secret, 1, 0, 2, 0, &key);
    uint64_t code = btl_ud_code(&key, datagram, sizeof(datagram));
    for (size_t bit = 8 * 8; bit < sizeof(datagram) * 8; bit++) {
        datagram[bit / 8] ^= (uint8_t) (1 << bit % 8);
        bool changes = btl_ud_code(&key, datagram, sizeof(datagram)) != code;
        bool covered = bit / 8 < BTL_UD_HEADER + BTL_UD_CODED_DATA;
        unseen += covered && !changes;
        seen_behind += !covered && changes;
        datagram[bit / 8] ^= (uint8_t) (1 << bit % 8);
    }
    TAP_OK(unseen == 0, "the code depends on each bit of header and first data");
    TAP_OK(seen_behind == 0, "and on nothing behind, whose checksum is dr's");
    TAP_OK(btl_ud_code(&key, datagram, BTL_UD_HEADER) != btl_ud_code(&key, datagram, BTL_UD_HEADER + 1),
           "on the length it does");
}

/* ---- Numbers ---- */

static void test_seen(void)
{
    btl_ud_seen_t seen = {.last = 0xffffffef};
    bool once = true, twice = false;
    for (uint32_t i = 0; i < 3000; i++) { /* a shuffle within some hundred, over the wrap */
        uint32_t n = 0xfffffff0 + (i / 200 * 200 + i % 200 * 77 % 200);
        once &= btl_ud_seen_add(&seen, n);
        twice |= btl_ud_seen_add(&seen, n);
    }
    TAP_OK(once && !twice, "each number is new once, in any order");
    TAP_OK(btl_ud_seen_add(&seen, seen.last + 100000), "a leap forward is new");
    TAP_OK(!btl_ud_seen_add(&seen, seen.last - BTL_UD_SEEN_BITS) && !btl_ud_seen_add(&seen, seen.last + 0x80000000u),
           "what is too old is not");
    TAP_OK(btl_ud_seen_add(&seen, seen.last - BTL_UD_SEEN_BITS + 1), "what is just not too old is");
    TAP_OK(!btl_ud_seen_add(&seen, seen.last - BTL_UD_SEEN_BITS + 1), "once");
    for (uint32_t step = 1; step <= 2 * BTL_UD_SEEN_BITS; step++) { /* what is leapt over is not seen */
        uint32_t before = seen.last;
        once &= btl_ud_seen_add(&seen, before + step) && (step == 1 || btl_ud_seen_add(&seen, before + step - 1));
    }
    TAP_OK(once, "leaps of any length leave what is between new");
    static_assert((int) BTL_UD_ROOM_MAX < (int) BTL_UD_SEEN_BITS, "all that is under way can be told from what has come");
}

int main(void)
{
    tap_start(60);
    test_header();
    test_bytes();
    test_keys();
    test_codes();
    test_seen();
    return tap_end();
}
