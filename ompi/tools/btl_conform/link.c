/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The plug-in, its modules and peers; upcalls that check the contract's rules; sending whole
 * fragments. */
#include "ompi/tools/btl_conform/conform.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_DATA = 1, PATIENCE_MS = 60000, LOSS_PATIENCE_MS = 3000 };

mca_btl_module_t *conform_modules[CONFORM_MAX_MODULES];
int conform_module_count, conform_module_index;
mca_btl_module_t *conform_module;
conform_peer_t conform_peers[CONFORM_MAX_PROCESSES];
conform_arrive_fn_t conform_on_arrive;
_Atomic int conform_descriptors;

static const mca_base_component_t *component;

/* True while this thread is inside one of the BTL's send functions. */
static _Thread_local bool in_call;

/* ---- Bytes ---- */

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185ull;
    x ^= x >> 27;
    x *= 0x81dadef4bc2dd44dull;
    return x ^ x >> 33;
}

static uint32_t header_check(const conform_header_t *h)
{
    return (uint32_t)mix(h->magic ^ (uint64_t)h->kind << 32 ^ (uint64_t)h->stream << 48
                         ^ mix(h->number ^ mix(h->seed ^ mix(h->len + 1))));
}

void conform_make_header(conform_header_t *h, uint16_t kind, uint16_t stream, uint64_t number, uint32_t len)
{
    *h = (conform_header_t){.magic = CONFORM_MAGIC, .kind = kind, .stream = stream, .number = number,
                            .len = len};
    h->seed = mix(number ^ (uint64_t)stream << 40 ^ (uint64_t)self.rank << 50 ^ conform_options.seed);
    h->check = header_check(h);
}

/* Word i of the bytes that belong to a seed, which `from` stands for. Words do not hang on the one before: most of the kit's time is spent here. */
static inline uint64_t filling(uint64_t from, size_t i)
{
    return (from + i) * 0x9e3779b97f4a7c15ull;
}

static inline uint64_t filling_of(uint64_t seed)
{
    return (seed | 1) * 6364136223846793005ull;
}

/* From word `first` on. */
static void fill_words(unsigned char *to, size_t len, uint64_t from, size_t first)
{
    size_t i = 0;
    for (; (i + 1) * 8 <= len; i++) {
        uint64_t word = filling(from, first + i);
        memcpy(to + i * 8, &word, 8);
    }
    uint64_t word = filling(from, first + i);
    memcpy(to + i * 8, &word, len - i * 8);
}

void conform_fill(unsigned char *to, size_t len, uint64_t seed)
{
    fill_words(to, len, filling_of(seed), 0);
}

ptrdiff_t conform_compare(const unsigned char *bytes, size_t len, uint64_t seed)
{
    enum { BLOCK = 1024 };
    unsigned char want[BLOCK];
    for (size_t at = 0; at < len; at += BLOCK) {
        size_t n = len - at < BLOCK ? len - at : BLOCK, i = 0;
        fill_words(want, n, filling_of(seed), at / 8);
        if (memcmp(bytes + at, want, n) != 0) {
            while (bytes[at + i] == want[i]) {
                i++;
            }
            return (ptrdiff_t)(at + i);
        }
    }
    return -1;
}

/* ---- Upcalls ---- */

static conform_peer_t *upcall_peer(void *cookie, const char *upcall)
{
    conform_peer_t *peer = cookie;
    REQUIRE(peer >= conform_peers && peer < conform_peers + CONFORM_MAX_PROCESSES,
            "%s: a cookie that the kit never gave", upcall);
    REQUIRE(!in_call, "%s called from inside a send function", upcall);
    REQUIRE(conform_in_progress, "%s called outside progress", upcall);
    return peer;
}

/* Numbers of a stream that have come: without order that is what tells a repetition. */
static void check_once(conform_peer_t *peer, uint16_t stream, uint64_t number)
{
    conform_seen_t *seen = &peer->seen[stream];
    size_t word = number / 64;
    uint64_t bit = (uint64_t)1 << number % 64;
    REQUIRE(number < CONFORM_NUMBERS_MAX, "stream %u of process %d: fragment %llu, which nobody sent", stream,
            peer->rank, (unsigned long long)number);
    if (word >= seen->words) {
        size_t words = word * 2 + 64;
        seen->bits = realloc(seen->bits, words * sizeof(*seen->bits));
        REQUIRE(seen->bits, "out of memory");
        memset(seen->bits + seen->words, 0, (words - seen->words) * sizeof(*seen->bits));
        seen->words = words;
    }
    REQUIRE(!(seen->bits[word] & bit), "stream %u of process %d: fragment %llu arrived twice", stream, peer->rank,
            (unsigned long long)number);
    seen->bits[word] |= bit;
}

void conform_check_arrival(conform_peer_t *peer, const conform_header_t *header,
                           const unsigned char *payload)
{
    uint16_t s = header->stream;
    uint64_t want = peer->next_in[s];
    if (conform_module->limits.caps & MCA_BTL_CAP_ORDERED) {
        REQUIRE(header->number == want, "stream %u of process %d: fragment %llu arrived, %llu expected", s,
                peer->rank, (unsigned long long)header->number, (unsigned long long)want);
    } else {
        check_once(peer, s, header->number);
    }
    peer->next_in[s] = header->number + 1;
    ptrdiff_t at = conform_compare(payload, header->len, header->seed);
    REQUIRE(at < 0, "fragment %llu of process %d, %u bytes: damaged at byte %td",
            (unsigned long long)header->number, peer->rank, header->len, at);
}

static void upcall_arrive(void *cookie, mca_btl_arrival_t *arrival)
{
    conform_peer_t *peer = upcall_peer(cookie, "arrive");
    REQUIRE(!arrival->place_token || arrival->placed_len > 0, "placed, but nothing");
    REQUIRE((uintptr_t)arrival->data % 8 == 0, "arrival at %p, not aligned", arrival->data);
    REQUIRE(arrival->len >= sizeof(conform_header_t), "arrival of %zu bytes", arrival->len);
    REQUIRE(arrival->module == conform_module, "arrival of another module");
    mca_btl_endpoint_t **endpoint = &peer->endpoint[conform_module_index];
    REQUIRE(!*endpoint || *endpoint == arrival->endpoint, "arrival at another endpoint than add_peer() gave");
    if (!*endpoint) {
        *endpoint = arrival->endpoint;
    }
    conform_header_t h;
    memcpy(&h, arrival->data, sizeof(h));
    REQUIRE(h.magic == CONFORM_MAGIC && h.check == header_check(&h) && h.stream < CONFORM_STREAMS,
            "arrival with a damaged header");
    REQUIRE(arrival->len == sizeof(h) + h.len, "fragment of %u bytes arrived with %zu", h.len,
            arrival->len - sizeof(h));
    const unsigned char *payload = (const unsigned char *)arrival->data + sizeof(h);
    if (conform_on_arrive) {
        conform_on_arrive(peer, arrival, &h, payload);
    } else {
        conform_check_arrival(peer, &h, payload);
    }
    peer->arrived++;
    peer->arrived_bytes += h.len;
}

static bool upcall_place(void *cookie, const void *head, size_t head_len, size_t len, mca_btl_place_t *place)
{
    (void)head, (void)place;
    upcall_peer(cookie, "place");
    REQUIRE(head_len >= (len < MCA_BTL_HEADER_MAX ? len : MCA_BTL_HEADER_MAX),
            "place() with %zu bytes of %zu", head_len, len);
    return false;
}

static void upcall_place_cancel(void *cookie, void *token)
{
    (void)token;
    upcall_peer(cookie, "place_cancel");
}

static void upcall_writable(void *cookie, mca_btl_endpoint_t *endpoint)
{
    conform_peer_t *peer = upcall_peer(cookie, "writable");
    REQUIRE(endpoint == peer->endpoint[conform_module_index], "writable: another endpoint");
    atomic_fetch_add(&peer->writables, 1);
    atomic_store(&peer->blocked, false);
}

static void upcall_returned(void *cookie, mca_btl_endpoint_t *endpoint, const void *data, size_t len,
                            int status)
{
    (void)endpoint;
    conform_peer_t *peer = upcall_peer(cookie, "returned");
    conform_header_t h;
    REQUIRE(status != MCA_SUCCESS, "returned without a reason");
    REQUIRE(len >= sizeof(h), "returned: %zu bytes", len);
    memcpy(&h, data, sizeof(h));
    REQUIRE(h.magic == CONFORM_MAGIC && h.check == header_check(&h) && len == sizeof(h) + h.len,
            "returned: not what was sent");
    REQUIRE(conform_compare((const unsigned char *)data + sizeof(h), h.len, h.seed) < 0,
            "returned: damaged");
    peer->returned++;
}

static void upcall_state(void *cookie, mca_btl_endpoint_t *endpoint, mca_btl_state_t state, const char *why)
{
    (void)endpoint;
    conform_peer_t *peer = upcall_peer(cookie, "state");
    if (state == MCA_BTL_STATE_RESUMED) {
        REQUIRE(!peer->down, "resumed while down");
        return;
    }
    if (state == MCA_BTL_STATE_SILENT) { /* a peer that rests on a busy machine: no fault, and no end */
        REQUIRE(conform_module->limits.caps & MCA_BTL_CAP_LET_GO, "SILENT from a link that can't fail at will");
        return;
    }
    REQUIRE(peer->down == (state == MCA_BTL_STATE_UP), "state(%s) twice",
            state == MCA_BTL_STATE_UP ? "up" : "down");
    REQUIRE(state == MCA_BTL_STATE_UP || (why && *why), "down without a reason");
    peer->down = state == MCA_BTL_STATE_DOWN;
    if (peer->down) {
        peer->downs++;
        snprintf(peer->down_why, sizeof(peer->down_why), "%s", why);
    }
    atomic_store(&peer->blocked, false);
}

static void *upcall_incoming(mca_btl_module_t *module, mca_btl_name_t name)
{
    uint32_t rank = (uint32_t)name;
    REQUIRE(module == conform_modules[conform_module_index], "incoming: another module");
    REQUIRE(name >> 32 == conform_job.self >> 32 && rank < (uint32_t)self.size, "incoming: nobody");
    conform_peers[rank].rank = (int)rank;
    return &conform_peers[rank];
}

const mca_btl_upcalls_t conform_upcalls = {
    .struct_size = sizeof(mca_btl_upcalls_t),
    .arrive = upcall_arrive,
    .place = upcall_place,
    .place_cancel = upcall_place_cancel,
    .writable = upcall_writable,
    .returned = upcall_returned,
    .state = upcall_state,
    .incoming = upcall_incoming,
};

/* ---- Life ---- */

static const char *file_of(const char *plugin)
{
    const char *slash = strrchr(plugin, '/');
    return slash ? slash + 1 : plugin;
}

/* mca_btl_<name>_component, by the name of the file mca_btl_<name>.so. */
static const mca_base_component_t *load(const char *plugin)
{
    char symbol[256];
    const char *base = file_of(plugin);
    char path[4096]; /* without a slash dlopen() would search its own path */
    snprintf(path, sizeof(path), "%s%s", base == plugin ? "./" : "", plugin);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(object, "%s", dlerror());
    snprintf(symbol, sizeof(symbol), "%.*s_component", (int)strcspn(base, "."), base);
    const mca_base_component_t *c = dlsym(object, symbol);
    REQUIRE(c, "%s has no symbol %s", plugin, symbol);
    REQUIRE(c->magic == MCA_BASE_COMPONENT_MAGIC && c->struct_size == sizeof(*c), "wrong magic or size");
    REQUIRE(c->framework && strcmp(c->framework, "btl") == 0, "its framework is not btl");
    REQUIRE(c->contract_major == MCA_BTL_CONTRACT_MAJOR && c->contract_minor <= MCA_BTL_CONTRACT_MINOR,
            "built for contract %u.%u", c->contract_major, c->contract_minor);
    REQUIRE(c->name && c->ops, "no name or no operations");
    return c;
}

const mca_base_component_t *conform_open_plugin(const char *path)
{
    const mca_base_component_t *c = load(path);
    REQUIRE(!c->register_params || c->register_params(conform_services.base) == MCA_SUCCESS,
            "register_params of %s failed", c->name);
    REQUIRE(!c->open || c->open(conform_services.base) == MCA_SUCCESS, "open of %s failed", c->name);
    return c;
}

/* Opened by conform_other(). */
static const mca_base_component_t *others[8];
static int other_count;

const mca_base_component_t *conform_other(const char *name)
{
    size_t len = strlen(name);
    for (int i = 0; i < conform_options.other_count; i++) {
        const char *file = file_of(conform_options.others[i]);
        if (strncmp(file, "mca_btl_", 8) == 0 && strncmp(file + 8, name, len) == 0 && file[8 + len] == '.') {
            return others[other_count++] = conform_open_plugin(conform_options.others[i]);
        }
    }
    return NULL;
}

static void pick_module(void)
{
    conform_module_index = 0;
    for (int i = 0; conform_options.module && i < conform_module_count; i++) {
        if (strcmp(conform_modules[i]->name, conform_options.module) == 0) {
            conform_module_index = i;
        }
    }
    conform_module = conform_modules[conform_module_index];
    REQUIRE(!conform_options.module || strcmp(conform_module->name, conform_options.module) == 0,
            "no module %s", conform_options.module);
}

void conform_link_init(void)
{
    mca_btl_module_t **modules;
    size_t count = 0;
    conform_services_start();
    for (int i = 0; i < CONFORM_MAX_PROCESSES; i++) {
        for (int s = 0; s < CONFORM_STREAMS; s++) {
            free(conform_peers[i].seen[s].bits);
        }
        memset(&conform_peers[i], 0, sizeof(conform_peers[i]));
        conform_peers[i].rank = i;
    }
    component = conform_open_plugin(conform_options.plugin);
    const mca_btl_component_ops_t *ops = component->ops;
    int rc = ops->init(&conform_services, &modules, &count);
    if (rc == MCA_ERR_NOT_AVAILABLE && conform_services.threads) {
        conform_skip("the link does not work among threads");
    }
    REQUIRE(rc == MCA_SUCCESS && count > 0 && count <= CONFORM_MAX_MODULES, "init: %d, %zu modules", rc,
            count);
    conform_module_count = (int)count;
    for (size_t i = 0; i < count; i++) {
        conform_modules[i] = modules[i];
        modules[i]->upcalls = &conform_upcalls;
    }
    pick_module();
}

void conform_link_start(void)
{
    conform_link_init();
    conform_exchange(conform_published ? conform_card : NULL, conform_published);
}

conform_peer_t *conform_add(int rank)
{
    conform_peer_t *peer = &conform_peers[rank];
    const char *why = NULL;
    mca_btl_endpoint_t *endpoint = NULL;
    const mca_btl_peer_t who = {
        .name = (conform_job.self & ~(uint64_t)UINT32_MAX) | (uint32_t)rank, .local = true,
        .local_rank = (uint32_t)rank, .host = conform_job.host,
        .card = conform_card_len[rank] ? conform_cards[rank] : NULL, .card_len = conform_card_len[rank],
    };
    int rc = conform_module->ops->add_peer(conform_module, &who, peer, &endpoint, &why);
    if (rc == MCA_ERR_UNREACHABLE) {
        conform_skip("process %d can't be reached: %s", rank, why ? why : "no reason given");
    }
    REQUIRE(rc == MCA_SUCCESS && endpoint, "add_peer: %d", rc);
    REQUIRE(!peer->endpoint[conform_module_index] || peer->endpoint[conform_module_index] == endpoint,
            "add_peer gave another endpoint than the one that the peer's contact made");
    peer->endpoint[conform_module_index] = endpoint;
    return peer;
}

void conform_link_end(void)
{
    for (int i = 0; i < self.size; i++) {
        if (conform_peers[i].endpoint[conform_module_index]) {
            conform_module->ops->del_peer(conform_module, conform_peers[i].endpoint[conform_module_index]);
            conform_peers[i].endpoint[conform_module_index] = NULL;
        }
    }
    for (int i = 0; i < conform_module_count; i++) {
        conform_modules[i]->ops->finalize(conform_modules[i]);
    }
    if (component->close) {
        component->close();
    }
    for (; other_count > 0; other_count--) {
        if (others[other_count - 1]->close) {
            others[other_count - 1]->close();
        }
    }
    REQUIRE(conform_open_handles == 0, "%u pollers, events or timers left after finalize",
            conform_open_handles);
    conform_module_count = 0;
    conform_published = 0;
}

/* ---- Sending ---- */

typedef struct kit_descriptor {
    mca_btl_descriptor_t super;
    conform_header_t header;
    conform_peer_t *peer;
    bool queued, reusable;
    unsigned char payload[];
} kit_descriptor_t;

static void descriptor_event(mca_btl_descriptor_t *desc, mca_btl_event_t event, int status)
{
    kit_descriptor_t *d = (kit_descriptor_t *)desc;
    REQUIRE(!in_call, "a descriptor's event from inside a send function");
    REQUIRE(conform_in_progress, "a descriptor's event outside progress");
    REQUIRE(desc->user == d, "desc->user was changed");
    if (event == MCA_BTL_REUSABLE) {
        REQUIRE(!d->reusable, "MCA_BTL_REUSABLE twice");
        d->reusable = true;
        memset(d->payload, 0xa5, d->header.len); /* must not show up at the peer */
        memset(&d->header, 0xa5, offsetof(conform_header_t, len));
        return;
    }
    REQUIRE(event == MCA_BTL_CONFIRMED || event == MCA_BTL_UNCONFIRMED, "event %d", event);
    REQUIRE((status == MCA_SUCCESS) == (event == MCA_BTL_CONFIRMED), "event %d with status %d", event, status);
    atomic_fetch_sub(&conform_descriptors, 1);
    free(d);
}

size_t conform_max_len(conform_way_t way)
{
    const mca_btl_limits_t *l = &conform_module->limits;
    return (way == WAY_SHORT ? l->short_max : l->max_frag) - sizeof(conform_header_t);
}

static int send_descriptor(mca_btl_endpoint_t *ep, conform_peer_t *peer, const conform_header_t *h)
{
    kit_descriptor_t *d = calloc(1, sizeof(*d) + h->len + 8);
    REQUIRE(d, "out of memory");
    d->header = *h;
    d->peer = peer;
    conform_fill(d->payload, h->len, h->seed);
    d->super = (mca_btl_descriptor_t){.header = &d->header, .header_len = sizeof(d->header),
                                      .event = descriptor_event, .user = d};
    size_t at = 0, pieces = h->len ? 1 + conform_random(MCA_BTL_IOV_MAX) : 0;
    for (size_t i = 0; i < pieces; i++) {
        size_t left = h->len - at, n = i + 1 < pieces ? conform_random(left + 1) : left;
        d->super.iov[d->super.iov_count++] = (struct iovec){d->payload + at, n};
        at += n;
    }
    atomic_fetch_add(&conform_descriptors, 1);
    int rc = conform_module->ops->send(ep, &d->super);
    if (rc == 0) {
        return MCA_SUCCESS;
    }
    atomic_fetch_sub(&conform_descriptors, 1);
    free(d);
    REQUIRE(rc == 1 || rc < 0, "send returned %d", rc);
    return rc == 1 ? MCA_SUCCESS : rc;
}

static int send_room(mca_btl_endpoint_t *ep, const conform_header_t *h)
{
    mca_btl_room_t room = {.how = MCA_BTL_COPY_ANY};
    size_t need = sizeof(*h) + h->len;
    int rc = conform_module->ops->reserve(ep, need, need + conform_random(256), &room);
    if (rc != MCA_SUCCESS) {
        return rc;
    }
    REQUIRE(room.ptr && room.len >= need && (uintptr_t)room.ptr % 8 == 0, "reserve(%zu) lent %zu at %p", need,
            room.len, room.ptr);
    memcpy(room.ptr, h, sizeof(*h));
    conform_fill((unsigned char *)room.ptr + sizeof(*h), h->len, h->seed);
    conform_module->ops->commit(ep, &room, need);
    return MCA_SUCCESS;
}

/* By the room that stands ready; false: there is not enough. */
static bool send_standing(mca_btl_endpoint_t *ep, const conform_header_t *h)
{
    const mca_btl_module_ops_t *ops = conform_module->ops;
    const unsigned minor = conform_module->component->contract_minor;
    bool may = minor >= 7 && ops->standing && ops->publish && !conform_options.threads; /* with threads it is for one that is alone */
    const mca_btl_standing_t *room = may ? ops->standing(ep) : NULL;
    size_t len = sizeof(*h) + h->len;
    bool more = len > MCA_BTL_STANDING_MAX && minor >= 12 && ops->publish_more;
    if (!room || (more ? (uintptr_t)room->ptr + len > (uintptr_t)room->end : len > room->len)) {
        return false;
    }
    REQUIRE(room->len <= MCA_BTL_STANDING_MAX && room->ptr && (uintptr_t)room->ptr % 8 == 0, "%zu bytes stand ready at %p",
            room->len, room->ptr);
    conform_fill((unsigned char *)room->ptr + sizeof(*h), h->len, h->seed);
    memcpy(room->ptr, h, sizeof(*h));
    int rc = more ? ops->publish_more(ep, len) : ops->publish(ep, len);
    REQUIRE(rc == MCA_SUCCESS, "publish: %d", rc);
    return true;
}

int conform_try_send(conform_peer_t *peer, conform_way_t way, uint16_t stream, size_t len)
{
    mca_btl_endpoint_t *ep = peer->endpoint[conform_module_index];
    conform_header_t h;
    conform_make_header(&h, KIND_DATA, stream, peer->next_out[stream], (uint32_t)len);
    if (way == WAY_ANY) {
        way = (conform_way_t)conform_random(3);
        way = way == WAY_SHORT && len > conform_max_len(WAY_SHORT) ? WAY_RESERVE : way;
    }
    in_call = true;
    atomic_store(&peer->blocked, true); /* before the call: another thread may be told at once */
    int rc;
    if (way == WAY_SHORT && conform_random(2) && send_standing(ep, &h)) {
        rc = MCA_SUCCESS;
    } else if (way == WAY_SHORT) {
        unsigned char *bytes = malloc(len + 1);
        REQUIRE(bytes, "out of memory");
        conform_fill(bytes, len, h.seed);
        rc = conform_module->ops->send_short(ep, &h, sizeof(h), bytes, len);
        free(bytes); /* they are the caller's again, whatever the link has sent of them */
    } else if (way == WAY_RESERVE) {
        rc = send_room(ep, &h);
    } else {
        rc = send_descriptor(ep, peer, &h);
    }
    in_call = false;
    REQUIRE(rc == MCA_SUCCESS || rc == MCA_ERR_AGAIN || rc == MCA_ERR_UNREACHABLE,
            "sending %zu bytes (way %d): %d", len, way, rc);
    if (rc == MCA_SUCCESS) {
        peer->next_out[stream]++;
    }
    if (rc != MCA_ERR_AGAIN) {
        atomic_store(&peer->blocked, false);
    }
    return rc;
}

static bool not_blocked(void *context)
{
    return !atomic_load(&((conform_peer_t *)context)->blocked);
}

void conform_send(conform_peer_t *peer, conform_way_t way, uint16_t stream, size_t len)
{
    int rc;
    while ((rc = conform_try_send(peer, way, stream, len)) == MCA_ERR_AGAIN) {
        conform_waits("room for fragment %llu of stream %u to process %d",
                      (unsigned long long)peer->next_out[stream], stream, peer->rank);
        REQUIRE(conform_wait(not_blocked, peer, PATIENCE_MS), "refused, and never told writable");
        conform_goes_on();
    }
    REQUIRE(rc == MCA_SUCCESS, "sending to process %d: %d (%s)", peer->rank, rc,
            peer->down ? peer->down_why : "not told down");
}

typedef struct arrived {
    conform_peer_t *peer;
    uint64_t count;
} arrived_t;

static bool has_arrived(void *context)
{
    const arrived_t *a = context;
    return a->peer->arrived >= a->count;
}

uint64_t conform_loss_max(uint64_t count)
{
    return conform_module->limits.caps & MCA_BTL_CAP_RELIABLE ? 0 : count / 50;
}

void conform_wait_arrived(conform_peer_t *peer, uint64_t count)
{
    uint64_t loss = conform_loss_max(count);
    conform_waits("fragments of process %d: %llu, of which %llu had come", peer->rank,
                  (unsigned long long)count, (unsigned long long)peer->arrived);
    while (peer->arrived < count) { /* slow is no failure, standing still is */
        arrived_t a = {peer, peer->arrived + 1};
        bool may_lack = peer->arrived + loss >= count;
        if (may_lack && !conform_wait(has_arrived, &a, LOSS_PATIENCE_MS)) {
            printf("# process %d: %llu of %llu fragments from process %d were lost\n", self.rank,
                   (unsigned long long)(count - peer->arrived), (unsigned long long)count, peer->rank);
            break;
        }
        REQUIRE(may_lack || conform_wait(has_arrived, &a, PATIENCE_MS), "%llu of %llu fragments arrived from process %d",
                (unsigned long long)peer->arrived, (unsigned long long)count, peer->rank);
    }
    conform_goes_on();
}

static bool is_idle(void *context)
{
    conform_peer_t *peer = context;
    return conform_module->ops->idle(conform_module, peer->endpoint[conform_module_index])
           && atomic_load(&conform_descriptors) == 0;
}

void conform_wait_idle(conform_peer_t *peer)
{
    conform_waits("process %d to confirm all, %d descriptors among it", peer->rank,
                  atomic_load(&conform_descriptors));
    REQUIRE(conform_wait(is_idle, peer, PATIENCE_MS), "never idle: something taken was not handed up%s%s",
            peer->down ? "; the endpoint is down: " : "", peer->down_why);
    conform_goes_on();
}
