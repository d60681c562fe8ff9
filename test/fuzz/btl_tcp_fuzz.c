/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzing of everything btl/tcp and net_if parse: greetings, frames, business cards (and the
 * pairing they lead to), lists of interfaces, ranges of ports. The first byte of the input chooses.
 * Built with -fsanitize=fuzzer -DHAWSER_LIBFUZZER it is a libFuzzer target; otherwise it runs the
 * corpus given as arguments (or found in the source tree) and a fixed number of mutations of it,
 * always the same ones.
 */
#include "opal/util/net_pair.h"
#include "ompi/mca/btl/tcp/btl_tcp_wire.h"
#include "test/support/fuzz_targets.h"

#include <stdlib.h>
#include <string.h>

static void fuzz_greeting(const uint8_t *data, size_t size)
{
    btl_tcp_greeting_type_t type;
    size_t len;
    if (size < BTL_TCP_GREETING_HEAD || btl_tcp_greeting_check(data, &type, &len) != MCA_SUCCESS ||
        len > size) {
        return;
    }
    must(len <= BTL_TCP_GREETING_MAX);
    btl_tcp_hello_t hello;
    btl_tcp_challenge_t challenge;
    btl_tcp_welcome_t welcome;
    btl_tcp_verdict_t verdict;
    uint8_t again[BTL_TCP_GREETING_MAX];
    if (type == BTL_TCP_HELLO && btl_tcp_hello_read(data, &hello) == MCA_SUCCESS) {
        must(hello.to_if < OPAL_NET_CARD_IFS_MAX && hello.link < OPAL_NET_CARD_LINKS_MAX);
        must(hello.serial != 0 && (hello.session != 0 || hello.handed == 0));
        btl_tcp_hello_write(again, &hello);
        must(memcmp(again, data, BTL_TCP_HELLO_BYTES - 26) == 0); /* but for two bytes unused so far */
        must(memcmp(again + 56, data + 56, BTL_TCP_HELLO_BYTES - 56) == 0);
    } else if (type == BTL_TCP_WELCOME && btl_tcp_welcome_read(data, &welcome) == MCA_SUCCESS) {
        must(welcome.session != 0);
        btl_tcp_welcome_write(again, &welcome);
        must(memcmp(again, data, BTL_TCP_WELCOME_BYTES) == 0);
    } else if (type == BTL_TCP_CHALLENGE) {
        btl_tcp_challenge_read(data, &challenge);
    } else if (type == BTL_TCP_VERDICT && btl_tcp_verdict_read(data, &verdict) == MCA_SUCCESS) {
        must(btl_tcp_verdict_text(verdict) != NULL);
    }
}

static void fuzz_frame(const uint8_t *data, size_t size)
{
    btl_tcp_frame_t frame;
    uint8_t again[BTL_TCP_FRAME_HEADER];
    if (size >= BTL_TCP_FRAME_HEADER && btl_tcp_frame_read(data, &frame)) {
        must(frame.len <= BTL_TCP_FRAME_LEN_MAX);
        btl_tcp_frame_write(again, &frame);
        must(memcmp(again, data, sizeof(again)) == 0);
    }
}

static void fuzz_card(const uint8_t *data, size_t size)
{
    static uint8_t
        again[OPAL_NET_CARD_HEAD + OPAL_NET_CARD_IFS_MAX * (OPAL_NET_CARD_IF + 8 * OPAL_NET_CARD_ADDR)];
    static const uint64_t domains[2] = {1, 2};
    opal_net_card_t card, own;
    opal_net_route_t routes[OPAL_NET_ROUTES_MAX];
    if (opal_net_card_read(data, size, BTL_TCP_VERSION, &card) != MCA_SUCCESS) {
        return;
    }
    must(opal_net_card_size(&card) == size && size <= sizeof(again));
    opal_net_card_write(again, &card);
    for (int d = 0; d < 2; d++) {
        own = card;
        own.domain += domains[d] - 1;
        for (unsigned i = 0; i < own.if_count; i++) {
            opal_net_pair_t pair = opal_net_pair(&own, 1, &card, 2, i);
            must(pair.peer_if < (int) card.if_count);
            if (pair.peer_if >= 0) {
                must(opal_net_routes(&own, i, &card, (unsigned) pair.peer_if, routes) > 0);
                must(opal_net_pair(&card, 2, &own, 1, (unsigned) pair.peer_if).peer_if == (int) i);
            }
        }
    }
}

static void fuzz_text(const uint8_t *data, size_t size)
{
    char text[512], why[64];
    opal_net_filter_t *filter = NULL;
    uint16_t lo, hi;
    size_t len = size < sizeof(text) - 1 ? size : sizeof(text) - 1;
    memcpy(text, data, len);
    text[len] = '\0';
    if (opal_net_filter_parse(text, &filter, why, sizeof(why)) == OPAL_SUCCESS) {
        opal_net_if_t nif = {.addr_count = 2, .addr = {{.family = AF_INET}, {.family = AF_INET6}}};
        opal_net_filter_match(filter, &nif);
        free(filter);
    }
    if (opal_net_ports_parse(text, &lo, &hi, why, sizeof(why)) == OPAL_SUCCESS) {
        must(lo <= hi);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const fuzz_target_t targets[] = {fuzz_greeting, fuzz_frame, fuzz_card, fuzz_text};
    return fuzz_one_of(targets, sizeof(targets) / sizeof(targets[0]), data, size);
}

#ifndef HAWSER_LIBFUZZER
#include "test/support/corpus.h"

int main(void)
{
    return corpus_run("btl_tcp", 8);
}
#endif
