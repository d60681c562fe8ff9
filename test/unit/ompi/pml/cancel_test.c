/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The receiver's part of cancelling (pml_base_engine_cancel.h): a request that comes twice, over two links, as when the first one failed
 * before it had confirmed it. */
#include "ompi/mca/pml/teg/pml_teg.c"
#include "support/tap.h"

enum { PAYLOAD = 100, NUMBER = 1 };

static mca_pml_comm_t comm;
static mca_pml_comm_peer_t sender;
static mca_pml_peer_t peer;

static void begin(void)
{
    memset(&comm, 0, sizeof(comm));
    memset(&sender, 0, sizeof(sender));
    memset(&peer, 0, sizeof(peer));
    peer.main = &peer;
    sender.comm = &comm;
    sender.peer = &peer;
    opal_list_init(&sender.parked);
    if (mca_pml_match_init(&comm.match) != OPAL_SUCCESS) {
        TAP_REQUIRE(false, "memory");
    }
}

static void end(void)
{
    opal_list_item_t *i;
    while ((i = opal_list_pop(&sender.parked))) {
        engine_message_free(OPAL_CONTAINER_OF(i, mca_pml_message_t, match.age_link));
    }
    mca_pml_match_fini(&comm.match);
}

static mca_pml_hdr_t header(uint8_t type, uint64_t length)
{
    mca_pml_hdr_t hdr = {.rndv = {.length = htole64(length), .sreq = htole64(7)}};
    hdr.common.type = type;
    hdr.match.seq = htole32(NUMBER);
    return hdr;
}

/* The message waits for the one before it. */
static void park(void)
{
    static const char payload[PAYLOAD];
    mca_pml_hdr_t hdr = header(MCA_PML_HDR_RNDV, 1 << 20);
    mca_pml_message_t *message = engine_keep(&peer, NULL, &hdr, sizeof(hdr.rndv), payload, PAYLOAD);
    TAP_REQUIRE(message != NULL, "it may be kept");
    engine_park(&sender, message, NUMBER);
}

static void twice(const char *when)
{
    mca_pml_hdr_t hdr = header(MCA_PML_HDR_CANCEL, PAYLOAD);
    size_t payload = 0;
    TAP_OK(engine_forget(&comm, &sender, &hdr.rndv, &payload) && payload == PAYLOAD, "%s: forgotten, and its payload counted", when);
    TAP_OK(engine_forget(&comm, &sender, &hdr.rndv, &payload) && payload == 0, "... once: asked again, it is said again, and nothing counted");
    sender.recv_seq = NUMBER;
    engine_unpark(&comm, &sender);
    TAP_OK(sender.recv_seq == NUMBER + 1 && opal_list_is_empty(&sender.parked) && comm.match.message_count == 0,
           "... and when it has its turn, nobody gets it");
}

int main(void)
{
    tap_start(60);
    mca_pml_base_params.unexpected_max = 1 << 20;
    TAP_REQUIRE(mca_pml_base_cache_init() == OPAL_SUCCESS, "memory for messages");
    begin();
    park();
    twice("a message that waits for its turn");
    end();
    begin();
    twice("a message that has not come");
    end();
    mca_pml_base_cache_fini();
    return tap_end();
}
