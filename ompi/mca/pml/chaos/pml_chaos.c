/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * chaos: a policy for tests. It loses, repeats and delays (and so reorders) fragments on their way to the links, from
 * a seed, and recovers what it lost through the engine's path for fragments that a failed link gives back. Never
 * selected unless named (--mca pml chaos).
 *
 * Fragments are copied, and held back for a number of rounds of the poller. A held fragment is then handed to its link (it was
 * delayed, or is a repeat), or given back to the engine (it was lost). What is held is bounded.
 */
#include "ompi/mca/pml/base/pml_base_policy_plain.h"

#include <stdlib.h>
#include <string.h>

enum { HOLD_MAX = 4 << 20, ROUNDS_MAX = 64 };

typedef enum { FATE_SEND, FATE_LOSE, FATE_GIVE_BACK } fate_t;

typedef struct held {
    opal_list_item_t item;
    mca_pml_peer_t *peer;
    mca_pml_link_t *link;
    fate_t fate;
    uint64_t due;                  /* round */
    mca_btl_descriptor_t *desc;    /* FATE_GIVE_BACK: in place of bytes */
    size_t len;
    _Alignas(16) unsigned char bytes[];
} held_t;

static opal_list_t holding = OPAL_LIST_INIT(holding);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t held_bytes;
static uint64_t now_round, random_state;
static _Atomic bool refused; /* somebody was told to try again */
static int64_t seed, lose_percent, repeat_percent, delay_percent, pretended_arch;

/* xorshift64*; under the lock. */
static uint32_t draw(uint32_t below)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (uint32_t) ((random_state * 0x2545f4914f6cdd1du) >> 33) % below;
}

/* Keep a copy. False: out of memory or over the limit. Under the lock. */
static bool hold(mca_pml_peer_t *peer, mca_pml_link_t *link, fate_t fate, const void *hdr, size_t hdr_len,
                 const struct iovec *iov, size_t pieces)
{
    size_t len = hdr_len;
    for (size_t i = 0; i < pieces; i++) {
        len += iov[i].iov_len;
    }
    held_t *h = malloc(sizeof(*h) + len);
    if (!h) {
        return false;
    }
    *h = (held_t){.peer = peer, .link = link, .fate = fate, .due = now_round + 1 + draw(ROUNDS_MAX), .len = len};
    unsigned char *at = h->bytes;
    if (hdr_len > 0) {
        memcpy(at, hdr, hdr_len);
    }
    at += hdr_len;
    for (size_t i = 0; i < pieces; i++) {
        if (iov[i].iov_len > 0) {
            memcpy(at, iov[i].iov_base, iov[i].iov_len);
        }
        at += iov[i].iov_len;
    }
    if (len >= sizeof(mca_pml_hdr_common_t)) {
        ((mca_pml_hdr_common_t *) (void *) h->bytes)->arch = htole16((uint16_t) pretended_arch);
    }
    opal_list_append(&holding, &h->item);
    held_bytes += len;
    return true;
}

/* Everything goes through the list: what is neither lost nor delayed with the shortest delay. */
static int take(mca_pml_peer_t *peer, mca_pml_link_t *link, const void *hdr, size_t hdr_len, const struct iovec *iov,
                size_t pieces)
{
    int rc = MCA_SUCCESS;
    pthread_mutex_lock(&lock);
    if (held_bytes > HOLD_MAX) {
        refused = true;
        rc = MCA_ERR_AGAIN;
    } else {
        uint32_t dice = draw(100);
        fate_t fate = dice < (uint32_t) lose_percent ? FATE_LOSE : FATE_SEND;
        if (!hold(peer, link, fate, hdr, hdr_len, iov, pieces)) {
            rc = MCA_ERR_AGAIN;
            refused = true;
        } else {
            held_t *h = OPAL_CONTAINER_OF(opal_list_last(&holding), held_t, item);
            if (fate == FATE_SEND && draw(100) >= (uint32_t) delay_percent) {
                h->due = now_round;
            }
            if (draw(100) < (uint32_t) repeat_percent) {
                hold(peer, link, FATE_SEND, hdr, hdr_len, iov, pieces);
            }
        }
    }
    pthread_mutex_unlock(&lock);
    if (opal_progress_threads) {
        opal_progress_wake(); /* the owner of progress may sleep, and only the poller moves what is held */
    }
    return rc;
}

/* ---- The policy ---- */

static int policy_short(mca_pml_peer_t *peer, mca_pml_link_t *link, const void *hdr, size_t hdr_len, const void *data,
                        size_t len)
{
    struct iovec iov = {(void *) (uintptr_t) data, len};
    return take(peer, link, hdr, hdr_len, &iov, 1);
}

static int policy_reserve(mca_pml_peer_t *peer, mca_pml_link_t *link, size_t min, size_t want, mca_btl_room_t *room)
{
    (void) peer;
    (void) min;
    size_t max = link->module->limits.max_frag;
    room->len = want < max ? want : max;
    pthread_mutex_lock(&lock);
    room->ptr = held_bytes > HOLD_MAX ? NULL : malloc(room->len);
    refused |= !room->ptr;
    pthread_mutex_unlock(&lock);
    if (!room->ptr) {
        opal_progress_wake();
        return MCA_ERR_AGAIN;
    }
    return MCA_SUCCESS;
}

static void policy_commit(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_btl_room_t *room, size_t len)
{
    struct iovec iov = {room->ptr, len};
    if (take(peer, link, NULL, 0, &iov, 1) != MCA_SUCCESS) { /* committed is committed: over the limit, then */
        pthread_mutex_lock(&lock);
        bool kept = hold(peer, link, FATE_SEND, NULL, 0, &iov, 1);
        pthread_mutex_unlock(&lock);
        if (!kept) {
            abort();
        }
    }
    free(room->ptr);
}

/* Half of them are given back unconfirmed, with or without having been sent. */
static int policy_send(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_btl_descriptor_t *desc)
{
    pthread_mutex_lock(&lock);
    uint32_t dice = draw(4);
    held_t *h = dice < 2 && held_bytes <= HOLD_MAX ? malloc(sizeof(*h)) : NULL;
    if (h) {
        *h = (held_t){.peer = peer, .link = link, .fate = FATE_GIVE_BACK, .due = now_round + 1 + draw(ROUNDS_MAX),
                      .desc = desc};
        opal_list_append(&holding, &h->item);
    }
    pthread_mutex_unlock(&lock);
    if (h && dice == 0) {
        return 0;
    }
    int rc = take(peer, link, desc->header, desc->header_len, desc->iov, desc->iov_count);
    return h ? 0 : rc == MCA_SUCCESS ? 1 : rc;
}

/* The link was given copies, and the one that is held is not looked at again. */
static int policy_recall(mca_pml_peer_t *peer, mca_pml_link_t *link, mca_btl_descriptor_t *desc)
{
    (void) peer;
    (void) link;
    (void) desc;
    return MCA_SUCCESS;
}

static bool policy_arrive(mca_pml_peer_t *peer, mca_btl_arrival_t *arrival)
{
    (void) peer;
    (void) arrival;
    return true;
}

static bool policy_is_idle(void)
{
    pthread_mutex_lock(&lock);
    bool idle = opal_list_is_empty(&holding);
    pthread_mutex_unlock(&lock);
    return idle;
}

enum { POLICY_STANDING = 0, POLICY_PASS_SELF = 0 };
#include "ompi/mca/pml/base/pml_base_engine.h"

/* ---- What is held comes due ---- */

/* Hand bytes to a link. False: it takes none now. */
static bool pass_on(const held_t *h)
{
    const mca_btl_module_ops_t *ops = h->link->module->ops;
    mca_btl_room_t room = {.how = MCA_BTL_COPY_ANY};
    if (!h->link->up) {
        engine_returned(h->peer, h->link->endpoint, h->bytes, h->len, MCA_ERR_UNREACHABLE);
        return true;
    }
    size_t hdr_len = mca_pml_hdr_length(h->bytes, h->len);
    if (h->len <= h->link->module->limits.short_max) {
        return ops->send_short(h->link->endpoint, h->bytes, hdr_len, h->bytes + hdr_len, h->len - hdr_len) ==
               MCA_SUCCESS;
    }
    if (ops->reserve(h->link->endpoint, h->len, h->len, &room) != MCA_SUCCESS) {
        return false;
    }
    memcpy(room.ptr, h->bytes, h->len);
    ops->commit(h->link->endpoint, &room, h->len);
    return true;
}

static bool finish(held_t *h)
{
    switch (h->fate) {
    case FATE_SEND:
        return pass_on(h);
    case FATE_LOSE:
        engine_returned(h->peer, h->link->endpoint, h->bytes, h->len, MCA_ERR_UNREACHABLE);
        return true;
    default:
        h->desc->event(h->desc, MCA_BTL_UNCONFIRMED, MCA_ERR_UNREACHABLE);
        return true;
    }
}

/* Those who were told to try again. */
static void tell_refused(void)
{
    for (mca_pml_peer_t *peer = NULL; (peer = mca_pml_base_peer_next(peer));) {
        for (int l = 0; l < peer->link_count; l++) {
            engine_writable(peer, peer->links[l].endpoint);
        }
    }
}

/* The first one that is due, taken out; NULL: none. */
static held_t *take_due(opal_list_t *later)
{
    held_t *found = NULL;
    pthread_mutex_lock(&lock);
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &holding) {
        held_t *h = OPAL_CONTAINER_OF(i, held_t, item);
        if (h->due <= now_round) {
            opal_list_remove(i);
            found = h;
            break;
        }
    }
    if (!found) {
        opal_list_splice(&holding, later);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static int chaos_poll(void *context)
{
    (void) context;
    opal_list_t later = OPAL_LIST_INIT(later);
    pthread_mutex_lock(&lock);
    now_round++;
    bool any = !opal_list_is_empty(&holding);
    pthread_mutex_unlock(&lock);
    held_t *h;
    while (any && (h = take_due(&later))) {
        if (finish(h)) {
            pthread_mutex_lock(&lock);
            held_bytes -= h->len;
            pthread_mutex_unlock(&lock);
            free(h);
        } else {
            opal_list_append(&later, &h->item);
        }
    }
    if (refused && held_bytes <= HOLD_MAX) {
        refused = false;
        tell_refused();
    }
    return any; /* no sleep while something is held */
}

/* ---- The component ---- */

static opal_poller_t *poller;

static int chaos_register(const mca_base_services_t *services)
{
    static const struct {
        const char *name, *help;
        int64_t def, max;
        int64_t *storage;
    } list[] = {
        {"seed", "Start of the random numbers; a run with the same seed makes the same choices", 1, INT32_MAX, &seed},
        {"lose", "Percent of fragments that are lost and given back to the engine", 10, 90, &lose_percent},
        {"repeat", "Percent of fragments that are sent twice", 10, 90, &repeat_percent},
        {"delay", "Percent of fragments that are held back for a while", 30, 100, &delay_percent},
        {"arch", "Id of the architecture (opal/datatype/arch.h) from whose memory the data is said to come",
         ENGINE_ARCH_HOST, UINT16_MAX, &pretended_arch},
    };
    enum { PARAMETERS = sizeof(list) / sizeof(list[0]) };
    static mca_base_var_desc_t descs[PARAMETERS];
    for (size_t i = 0; i < PARAMETERS; i++) {
        descs[i] = (mca_base_var_desc_t){
            .framework = "pml", .component = "chaos", .name = list[i].name, .help = list[i].help,
            .type = MCA_VAR_INT, .def.i = list[i].def, .min = 0, .max = list[i].max,
            .level = MCA_VAR_LEVEL_DEVELOPER, .scope = MCA_VAR_SCOPE_STARTUP};
        int rc = services->var_register(&descs[i], list[i].storage);
        if (rc != MCA_SUCCESS) {
            return rc;
        }
    }
    return MCA_SUCCESS;
}

static int chaos_query(int *priority)
{
    *priority = -1; /* only by name */
    return MCA_SUCCESS;
}

static const opal_poller_ops_t poller_ops = {.poll = chaos_poll};

static int chaos_init(mca_pml_t *pml)
{
    random_state = ((uint64_t) seed << 20 ^ ompi_rte.rank) * 0x9e3779b97f4a7c15u | 1;
    int rc = opal_progress_poller_add(&poller_ops, NULL, &poller);
    return rc == OPAL_SUCCESS ? engine_init("chaos", pml) : rc;
}

static void chaos_finalize(void)
{
    opal_progress_poller_del(poller);
    mca_pml_base_peers_fini();
}

static const mca_pml_component_ops_t chaos_ops = {
    .struct_size = sizeof(mca_pml_component_ops_t),
    .query = chaos_query,
    .init = chaos_init,
    .finalize = chaos_finalize,
};

MCA_EXPORT extern const mca_base_component_t mca_pml_chaos_component;
const mca_base_component_t mca_pml_chaos_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "pml",
    .contract_major = MCA_PML_CONTRACT_MAJOR,
    .contract_minor = MCA_PML_CONTRACT_MINOR,
    .name = "chaos",
    .version = {1, 0, 0},
    .register_params = chaos_register,
    .ops = &chaos_ops,
};
