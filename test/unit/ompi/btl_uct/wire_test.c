/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What btl/uct tells others: written and read; cut short, altered, and of strangers. */
#include "ompi/mca/btl/uct/btl_uct.h"

#include <stdlib.h>
#include <string.h>
#include "opal/util/le.h"
#include "opal/util/sha256.h"
#include "test/support/tap.h"

static const uint8_t secret[32] = {7}, other_secret[32] = {8};
static uint64_t state = 42;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) (state >> 33) % below;
}

static btl_uct_hello_t sample(void)
{
    btl_uct_hello_t h = {.from = 0x1122334455667788, .to = 0x99, .id = 0x70001, .your_id = 5, .pid = 77,
                         .pid_space = 4026531836};
    strcpy(h.place.transport, "rc_verbs");
    strcpy(h.place.device, "mlx5_0:1");
    h.place.on.len = 18;
    memset(h.place.on.bytes, 1, 18);
    h.place.iface.len = BTL_UCT_ADDRESS_MAX;
    memset(h.place.iface.bytes, 2, BTL_UCT_ADDRESS_MAX);
    h.place.index = 0x1234;
    h.place.mover_on.len = 8;
    memset(h.place.mover_on.bytes, 4, 8);
    h.place.mover.len = 4;
    memset(h.place.mover.bytes, 5, 4);
    h.endpoint.len = 3;
    memset(h.endpoint.bytes, 3, 3);
    return h;
}

static bool same_address(const btl_uct_address_t *a, const btl_uct_address_t *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static bool same_place(const btl_uct_place_t *a, const btl_uct_place_t *b)
{
    return strcmp(a->transport, b->transport) == 0 && strcmp(a->device, b->device) == 0 &&
           same_address(&a->on, &b->on) && same_address(&a->iface, &b->iface) &&
           same_address(&a->greeter, &b->greeter) && a->index == b->index &&
           same_address(&a->mover_on, &b->mover_on) && same_address(&a->mover, &b->mover);
}

static void test_hello(void)
{
    btl_uct_hello_t h = sample(), back;
    uint8_t frame[BTL_UCT_HELLO_MAX];
    size_t len = btl_uct_hello_write(&h, secret, frame, sizeof(frame)), wrong = 0;
    TAP_OK(len > 0 && btl_uct_hello_read(frame, len, secret, &back) == len, "a greeting is read");
    TAP_OK(back.from == h.from && back.to == h.to && back.id == h.id && back.your_id == h.your_id && back.pid == h.pid &&
               back.pid_space == h.pid_space && same_place(&h.place, &back.place) &&
               same_address(&h.endpoint, &back.endpoint),
           "... as it was written");
    TAP_OK(btl_uct_hello_read(frame, len, other_secret, &back) == 0, "not that of another job");
    for (size_t i = 0; i < len * 8; i++) {
        frame[i / 8] ^= (uint8_t) (1 << i % 8);
        wrong += btl_uct_hello_read(frame, len, secret, &back) != 0;
        frame[i / 8] ^= (uint8_t) (1 << i % 8);
    }
    TAP_OK(wrong == 0, "not with any bit altered");
    for (size_t n = 0; n < len; n++) {
        wrong += btl_uct_hello_read(frame, n, secret, &back) != 0;
        wrong += btl_uct_hello_write(&h, secret, frame, n) != 0;
    }
    TAP_OK(wrong == 0, "not if cut short, and none is written without the room for it");
}

/* Whoever has the secret may still be wrong about lengths. */
static void test_insane_hello(void)
{
    uint8_t frame[BTL_UCT_HELLO_MAX];
    btl_uct_hello_t h = sample(), back;
    size_t taken = 0;
    for (int round = 0; round < 20000; round++) {
        size_t len = btl_uct_hello_write(&h, secret, frame, sizeof(frame)) - OPAL_SHA256_BYTES;
        for (uint32_t n = 1 + draw(4); n > 0; n--) {
            frame[4 + draw((uint32_t) len - 4)] = (uint8_t) draw(256);
        }
        static const char label[] = "hawser btl uct hello";
        opal_hmac_sha256_t ctx;
        opal_hmac_sha256_init(&ctx, secret, 32);
        opal_hmac_sha256_update(&ctx, label, sizeof(label));
        opal_hmac_sha256_update(&ctx, frame, len);
        opal_hmac_sha256_final(&ctx, frame + len);
        if (btl_uct_hello_read(frame, len + OPAL_SHA256_BYTES, secret, &back) != 0) {
            taken++;
            if (back.id == 0 || back.place.on.len > BTL_UCT_ADDRESS_MAX || back.endpoint.len > BTL_UCT_ADDRESS_MAX ||
                strlen(back.place.device) >= BTL_UCT_NAME_MAX) {
                abort();
            }
        }
    }
    TAP_OK(taken > 0 && taken < 20000, "of 20000 that are authentic and altered some are read, all of those sane");
}

static void test_place(void)
{
    btl_uct_place_t p = sample().place, back;
    uint8_t card[sizeof(p)];
    size_t len = btl_uct_place_write(&p, card, sizeof(card)), wrong = 0, read = 0;
    TAP_OK(len > 0 && btl_uct_place_read(card, len, &back) == len && same_place(&p, &back), "a card is read");
    for (size_t n = 0; n < len; n++) {
        wrong += btl_uct_place_read(card, n, &back) != 0;
    }
    TAP_OK(wrong == 0, "not if cut short");
    for (int round = 0; round < 20000; round++) {
        uint8_t altered[sizeof(card)];
        memcpy(altered, card, len);
        altered[draw((uint32_t) len)] = (uint8_t) draw(256);
        read += btl_uct_place_read(altered, draw((uint32_t) len) + 1, &back) <= len;
    }
    TAP_OK(read == 20000, "nothing is read beyond an altered card");
}

int main(void)
{
    tap_start(60);
    test_hello();
    test_insane_hello();
    test_place();
    return tap_end();
}
