/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Who ends a request when its peer is given up: a link that holds its message, a thread that is about to end it, or whoever looks for all that
 * is under way to the peer. And that this finds no other peer's requests. Links that do what they are told. And who gives a peer up while
 * another thread is about to. */
#include <pthread.h>
#include <sched.h>

#include "ompi/mca/pml/teg/pml_teg.c"
#include "opal/runtime/opal.h"
#include "support/tap.h"

enum { LONG = 100000, EAGER = 4096, WINDOW = 8192 };

static char data[LONG], room_bytes[LONG];
static int short_rc;                 /* what send_short() says */
static mca_btl_descriptor_t *held;   /* what the link has */
static mca_pml_comm_t comm;
static mca_pml_comm_peer_t receiver;
static ompi_proc_t proc;
static mca_pml_peer_t *peer;
static mca_pml_send_t send;

static int link_short(mca_btl_endpoint_t *endpoint, const void *header, size_t header_len, const void *payload, size_t len)
{
    (void) endpoint;
    (void) header;
    (void) header_len;
    (void) payload;
    (void) len;
    return short_rc;
}

static int link_reserve(mca_btl_endpoint_t *endpoint, size_t min, size_t want, mca_btl_room_t *room)
{
    (void) endpoint;
    (void) min;
    room->ptr = room_bytes;
    room->len = want;
    return MCA_SUCCESS;
}

static void link_commit(mca_btl_endpoint_t *endpoint, mca_btl_room_t *room, size_t len)
{
    (void) endpoint;
    (void) room;
    (void) len;
}

static int link_send(mca_btl_endpoint_t *endpoint, mca_btl_descriptor_t *desc)
{
    (void) endpoint;
    held = desc;
    return 0;
}

static const mca_btl_module_ops_t ops = {.send_short = link_short, .reserve = link_reserve, .commit = link_commit, .send = link_send};

/* Takes whole messages from the user's memory; pieces are copied. */
static mca_btl_module_t module = {
    .struct_size = sizeof(module), .ops = &ops, .name = "told",
    .limits = {.short_max = EAGER, .eager_limit = EAGER, .min_frag = 1, .max_frag = sizeof(room_bytes), .send_min = SIZE_MAX, .window = SIZE_MAX,
               .get_min = SIZE_MAX, .get_try = SIZE_MAX, .bandwidth = 1000000000, .latency_ns = 1000,
               .caps = MCA_BTL_CAP_RELIABLE | MCA_BTL_CAP_CAN_FAIL | MCA_BTL_CAP_PLACE}};

static void make_send(size_t bytes)
{
    memset(&send, 0, sizeof(send));
    ompi_request_init(&send.super, OMPI_REQUEST_SEND, &engine_send_ops);
    opal_list_item_init(&send.item);
    send.mode = MCA_PML_STANDARD;
    send.cp = &receiver;
    send.ptr = data;
    send.bytes = bytes;
}

static void begin(size_t whole_max)
{
    mca_pml_base_params.eager_window = WINDOW;
    mca_pml_base_params.whole_max = whole_max;
    mca_pml_base_frag_room = sizeof(mca_pml_hdr_frag_t);
    peer = mca_pml_base_peer_new(&proc);
    TAP_REQUIRE(peer != NULL, "memory for a peer");
    mca_pml_link_t *link = &peer->links[0];
    link->module = &module;
    link->send_short = link_short;
    link->room = link->standing = &mca_pml_base_no_standing;
    link->behind = mca_pml_base_never_behind;
    link->parts = mca_pml_base_no_parts;
    link->up = true;
    opal_list_init(&link->flight);
    mca_pml_flow_init(&link->flow, &module.limits, mca_pml_base_frag_room, true, 1);
    peer->link_count = 1;
    mca_pml_base_peer_relist(peer);
    mca_pml_peer_set_state(peer, MCA_PML_PEER_READY);
    memset(&receiver, 0, sizeof(receiver));
    receiver.comm = &comm;
    receiver.peer = peer;
    atomic_init(&receiver.direct, peer);
    short_rc = MCA_SUCCESS;
    held = NULL;
}

/* A message was to be announced, as there was no credit, and the link was full; then there is both, and the link takes it whole. */
static void test_whole(void)
{
    begin(LONG);
    make_send(LONG / 2);
    peer->sent = 2 * WINDOW;
    peer->credited = WINDOW / 2;
    short_rc = MCA_ERR_AGAIN;
    engine_send_begin(&send);
    peer->credited = peer->sent;
    short_rc = MCA_SUCCESS;
    engine_writable(peer, peer->links[0].endpoint);
    TAP_REQUIRE(held == &send.desc, "a link has a whole message, which was refused as an announcement");
    opal_list_t failed = OPAL_LIST_INIT(failed);
    engine_fail_matched(peer, &failed);
    TAP_OK(opal_list_is_empty(&failed) && !ompi_request_is_complete(&send.super), "the peer is given up: its request is the link's still");
    held->event(held, MCA_BTL_CONFIRMED, MCA_SUCCESS);
    TAP_OK(ompi_request_is_complete(&send.super) && send.super.status.MPI_ERROR == MPI_SUCCESS, "... which ends it");
    free(peer);
}

/* The last piece is out; who sent it has let go of the peer's lock, and is about to end the request. */
static void test_ending(void)
{
    begin(0);
    make_send(LONG / 2);
    engine_send_begin(&send);
    TAP_REQUIRE(send.state == MCA_PML_SEND_WAITING && send.id != 0, "a long message is announced");
    const uint64_t id = send.id;
    opal_list_t done = OPAL_LIST_INIT(done), failed = OPAL_LIST_INIT(failed);
    engine_bulk_begin(peer, &send, 1, 0, send.bytes);
    engine_flush_bulk(peer, &done, 0);
    TAP_REQUIRE(opal_list_first(&done) == &send.item, "all of its pieces are out");
    engine_fail_matched(peer, &failed);
    TAP_OK(opal_list_is_empty(&failed) && opal_list_first(&done) == &send.item, "the peer is given up: the request is who sent it's to end");
    TAP_OK(engine_send_of(peer, id) == NULL, "... and no answer that comes twice finds it");
    engine_complete_sends(&done, MPI_SUCCESS);
    TAP_OK(ompi_request_is_complete(&send.super), "... who does it");
    free(peer);
}

/* ---- Requests of two peers that take turns in one slot ---- */

static int owners[2], objects[2];
static _Atomic bool stop;

static void *take_turns(void *arg)
{
    while (!stop) {
        for (int i = 0; i < 2; i++) {
            mca_pml_base_id_free(mca_pml_base_id_new(&objects[i], &owners[i]));
        }
    }
    return arg;
}

static void test_owners(void)
{
    enum { LOOKS = 1000, MS = 2000 };
    const uint64_t end = opal_now_ns() + MS * 1000000ull;
    uint64_t slot = mca_pml_base_id_new(&objects[1], &owners[1]), behind = mca_pml_base_id_new(&objects[0], &owners[0]);
    unsigned long others = 0;
    pthread_t thread;
    mca_pml_base_id_free(slot);
    opal_progress_threads = true;
    TAP_REQUIRE(pthread_create(&thread, NULL, take_turns, NULL) == 0, "a thread");
    while (opal_now_ns() < end) {
        for (int i = 0; i < LOOKS; i++) {
            uint32_t at = 0;
            others += mca_pml_base_id_next(&owners[0], &at) != &objects[0];
        }
    }
    stop = true;
    pthread_join(thread, NULL);
    opal_progress_threads = false;
    mca_pml_base_id_free(behind);
    TAP_OK(others == 0, "who looks for a peer's requests finds no other's: %lu", others);
}

/* ---- The timer that gives a peer up ---- */

static _Atomic bool called, set_anew;

/* As the engine's, it wants the peer's lock first. */
static void give_up(void *context)
{
    called = true;
    mca_pml_peer_lock(context);
    mca_pml_peer_unlock(context);
}

static void *make_progress(void *arg)
{
    while (!called) {
        opal_progress();
    }
    return arg;
}

/* As who finds that the peer has sent too much, and holds that lock. */
static void *set_timer(void *arg)
{
    mca_pml_base_path_watch(peer, 1000000, give_up);
    set_anew = true;
    return arg;
}

static void test_timer(void)
{
    enum { MS = 3000 };
    pthread_t threads[2];
    TAP_REQUIRE(opal_init() == OPAL_SUCCESS && opal_progress_init(true, false) == OPAL_SUCCESS, "progress with threads");
    begin(0);
    mca_pml_peer_lock(peer);
    mca_pml_base_path_watch(peer, 1, give_up);
    TAP_REQUIRE(pthread_create(&threads[0], NULL, make_progress, NULL) == 0, "a thread that makes progress");
    while (!called) {
        sched_yield();
    }
    TAP_REQUIRE(pthread_create(&threads[1], NULL, set_timer, NULL) == 0, "a thread that sets the timer anew");
    for (uint64_t end = opal_now_ns() + MS * 1000000ull; !set_anew && opal_now_ns() < end;) {
        sched_yield();
    }
    TAP_OK(set_anew, "the peer's timer is set anew under its lock, for which the timer's function waits");
    mca_pml_peer_unlock(peer);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    opal_timer_del(peer->path_timer);
    free(peer);
    opal_progress_finalize();
    opal_finalize();
}

int main(void)
{
    tap_start(60);
    test_timer();
    test_whole();
    test_ending();
    test_owners();
    return tap_end();
}
