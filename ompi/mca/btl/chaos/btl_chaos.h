/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * btl/chaos: stands over other byte transfer layers and does to their fragments what bad links do, from a seed, so
 * that failures can be rehearsed. See docs/rehearsing-failures.md.
 *
 * It adds nothing on the wire. A module of chaos stands over one module of another component, which it claims through
 * services->component(); upcalls of that module come to chaos, with the chaos endpoint as cookie. What is to be sent
 * either goes straight through, or becomes an *entry*, in one of two lists of its endpoint:
 *
 *   line   keeps its order: what is delayed, throttled, or behind such; also what is damaged
 *   late   waits until others have overtaken it, or its time has come: what is reordered, and repeats
 *
 * One draw from the endpoint's own random numbers decides each fragment's fate, when it is taken: the same seed and
 * the same calls give the same faults, whatever other peers do. A module lives through UP, FADING and DOWN. In FADING what is
 * taken is kept; of that, the first few fragments arrive. At DOWN all of it is given back.
 *
 * Locks, if there are threads: an endpoint's (its lists), held from reserve() to commit(), and while sending below; never
 * during an upcall.
 */
#ifndef MCA_BTL_CHAOS_H
#define MCA_BTL_CHAOS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "hawser/btl.h"
#include "opal/class/list.h"

typedef enum {
    CHAOS_LOSS,
    CHAOS_DAMAGE,
    CHAOS_DUPLICATE,
    CHAOS_REORDER,
    CHAOS_DELAY,
    CHAOS_FAULTS,
    CHAOS_NONE = CHAOS_FAULTS,
} chaos_fault_t;

/* What is counted: each fault, and then */
enum { CHAOS_DEATHS = CHAOS_FAULTS, CHAOS_RETURNS, CHAOS_FRAGMENTS, CHAOS_COUNTS };

enum { CHAOS_MILLION = 1000000, CHAOS_BUCKETS = 64, CHAOS_MODULES_MAX = 32 };

typedef struct chaos_params {
    char *wrap, *links, *script;
    int64_t seed;
    int64_t rate[CHAOS_FAULTS]; /* per million fragments; may change at run time */
    int64_t depth;              /* fragments that overtake one at most */
    int64_t delay_us;           /* longest delay */
    uint64_t throttle;          /* bytes/s; 0: none */
    int64_t life_ms, dead_ms;   /* means; life 0: never dies */
    int64_t fade_ms;
    uint64_t hold;              /* bytes held back of one endpoint */
    bool report;
} chaos_params_t;

typedef enum { CHAOS_UP, CHAOS_FADING, CHAOS_DOWN } chaos_life_t;

typedef enum {
    CHAOS_BYTES,   /* a copy of a fragment */
    CHAOS_DESC,    /* a descriptor to be sent */
    CHAOS_GET,
    CHAOS_PUT,
    CHAOS_REFUSE,  /* a get or put that was lost: its descriptor ends unconfirmed */
} chaos_what_t;

typedef struct chaos_entry {
    opal_list_item_t item;
    chaos_what_t what;
    bool repeat;                 /* of a fragment that was sent: not given back */
    mca_btl_descriptor_t *desc;
    uint64_t remote;             /* GET, PUT */
    uint8_t key[MCA_BTL_KEY_MAX];
    bool has_key;
    uint64_t number;             /* among those taken by the endpoint */
    uint64_t due_ns;             /* line: not before; late: not after */
    uint64_t after;              /* late: or when so many have passed */
    uint64_t damage;             /* bit that was turned, + 1 */
    int status;                  /* ended: with this */
    bool arrives;                /* a link that faded let it through, though it is given back */
    size_t len;
    _Alignas(16) unsigned char bytes[];
} chaos_entry_t;

typedef struct chaos_module chaos_module_t;

struct mca_btl_endpoint {
    chaos_module_t *module;
    mca_btl_endpoint_t *next;    /* of all of the module; never changes */
    void *cookie;                /* of the user's */
    mca_btl_name_t name;
    _Atomic(mca_btl_endpoint_t *) below;
    pthread_mutex_t lock;
    uint64_t random;
    opal_list_t line, late;      /* chaos_entry_t */
    opal_list_t ended;           /* the same, over, of which the user must be told */
    chaos_entry_t *lent;         /* by reserve(); NULL: the module below has lent */
    size_t held;                 /* bytes of line and late */
    uint64_t taken, passed;      /* fragments */
    uint64_t line_ns;            /* when the last entry of the line is due */
    uint32_t fading;             /* fragments that still arrive while the link fades */
    atomic_bool work;            /* for the poller */
    bool refused;                /* the user was told to try again */
    bool blocked;                /* we were, by the module below */
    bool below_down, told_down, give_back, closed;
    char why[96];                /* the module below is down */
};

/* An event of the script; see btl_chaos_script.c. */
typedef struct chaos_event chaos_event_t;

struct chaos_module {
    mca_btl_module_t super;
    mca_btl_module_t *below;
    bool touched;                /* gets faults */
    pthread_mutex_t lock;        /* of the table of endpoints */
    _Atomic(mca_btl_endpoint_t *) all;
    void *poller, *timer;
    atomic_bool active;          /* what the progress engine was told */
    _Atomic int life;            /* chaos_life_t */
    uint64_t change_ns;          /* next change of life; 0: none */
    uint64_t random;             /* of lives */
    _Atomic uint64_t free_ns;    /* throttled: the link is busy until then */
    /* By the script; negative: the parameter counts. */
    _Atomic int64_t rate[CHAOS_FAULTS], throttle;
    size_t next_event;
    uint64_t script_ns;          /* when the script began, for this round */
};

extern chaos_params_t mca_btl_chaos_params;
extern const mca_btl_services_t *mca_btl_chaos_services;

/* ---- btl_chaos_faults.c ---- */

/* Start of an endpoint's random numbers. */
uint64_t mca_btl_chaos_seed(uint64_t peer, const char *link);
uint64_t mca_btl_chaos_draw(uint64_t *state, uint64_t below);
/* What happens to the endpoint's next fragment. */
chaos_fault_t mca_btl_chaos_fate(mca_btl_endpoint_t *ep);
/* A bit of a fragment of `len` bytes, by its number; the start, where headers stand, is met more often. */
uint64_t mca_btl_chaos_bit(mca_btl_endpoint_t *ep, size_t len);
void mca_btl_chaos_turn(struct iovec *iov, size_t count, uint64_t bit);
/* One more of CHAOS_COUNTS. */
void mca_btl_chaos_count(int what);
void mca_btl_chaos_count_back(int what); /* it has not happened after all */
uint64_t mca_btl_chaos_counted(int what);
int mca_btl_chaos_offer_counts(void);
void mca_btl_chaos_print_counts(void);
/* Bytes/s, 0: no limit. */
uint64_t mca_btl_chaos_throttle(const chaos_module_t *m);

/* ---- btl_chaos_life.c ---- */

/* Bring life and script up to date. */
void mca_btl_chaos_live(chaos_module_t *m, uint64_t now);
void mca_btl_chaos_live_start(chaos_module_t *m, uint64_t now);
/* When that is due next; UINT64_MAX: never. */
uint64_t mca_btl_chaos_live_next(const chaos_module_t *m);
void mca_btl_chaos_change(chaos_module_t *m, chaos_life_t life, uint64_t now);

/* ---- btl_chaos_script.c ---- */

/* Read the parameter's file; false: it was reported what is wrong. */
bool mca_btl_chaos_script_read(void);
void mca_btl_chaos_script_free(void);
/* Report each link and rank in it that is not there. */
void mca_btl_chaos_script_check(mca_btl_module_t *const *list, size_t count);
/* Does the script, at any time, do this? */
bool mca_btl_chaos_script_has(chaos_fault_t fault);
bool mca_btl_chaos_script_kills(void);
/* Do to the module what is due. */
void mca_btl_chaos_script_play(chaos_module_t *m, uint64_t now);
uint64_t mca_btl_chaos_script_next(const chaos_module_t *m);

/* ---- btl_chaos_card.c: what the components below publish, in one card ---- */

int mca_btl_chaos_card_add(const char *component, const void *data, size_t len);
int mca_btl_chaos_card_publish(void);
/* A component's part of a peer's card; NULL: none. */
const void *mca_btl_chaos_card_find(const void *card, size_t len, const char *component, size_t *part_len);

/* ---- btl_chaos_params.c ---- */

int mca_btl_chaos_register_params(const mca_base_services_t *services);
/* Is a word in a list with commas? */
bool mca_btl_chaos_listed(const char *list, const char *word);

/* ---- btl_chaos_module.c ---- */

/* Stand over a module. */
int mca_btl_chaos_module_init(chaos_module_t *m, mca_btl_module_t *below, const mca_base_component_t *component);

/* ---- btl_chaos_send.c ---- */

int mca_btl_chaos_send_short(mca_btl_endpoint_t *ep, const void *header, size_t header_len, const void *payload,
                             size_t len);
int mca_btl_chaos_reserve(mca_btl_endpoint_t *ep, size_t min, size_t want, mca_btl_room_t *room);
void mca_btl_chaos_commit(mca_btl_endpoint_t *ep, mca_btl_room_t *room, size_t len);
int mca_btl_chaos_send(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc);
void mca_btl_chaos_parts(mca_btl_endpoint_t *ep, mca_btl_parts_t *limits);
int mca_btl_chaos_send_parts(mca_btl_endpoint_t *ep, const void *header, size_t header_len, const void *payload, size_t len);
int mca_btl_chaos_send_filled(mca_btl_endpoint_t *ep, const void *header, size_t header_len, size_t len, mca_btl_fill_fn_t fill, void *context);
int mca_btl_chaos_put(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key);
int mca_btl_chaos_get(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key);

/* ---- btl_chaos_line.c: what is held back ---- */

chaos_entry_t *mca_btl_chaos_entry_copy(const void *header, size_t header_len, const struct iovec *iov, size_t count);
chaos_entry_t *mca_btl_chaos_entry_desc(chaos_what_t what, mca_btl_descriptor_t *desc);
/* Give an entry its place, after its fate; passes on what may go at once. The caller holds the endpoint's lock. */
void mca_btl_chaos_place(mca_btl_endpoint_t *ep, chaos_entry_t *entry, chaos_fault_t fault);
/* Must a fragment wait in the line, whatever its fate? */
bool mca_btl_chaos_must_wait(mca_btl_endpoint_t *ep);
/* A fragment of so many bytes went through; what it has overtaken may follow. */
void mca_btl_chaos_passed(mca_btl_endpoint_t *ep, size_t len);
/* Pass on what is due, tell what must be told; from progress. How much was done. */
int mca_btl_chaos_progress(mca_btl_endpoint_t *ep, uint64_t now);
/* When something held is due; UINT64_MAX: never by itself. */
uint64_t mca_btl_chaos_due(mca_btl_endpoint_t *ep);
void mca_btl_chaos_drop_all(mca_btl_endpoint_t *ep);
/* Nothing is held, and nothing left to tell. */
bool mca_btl_chaos_is_empty(mca_btl_endpoint_t *ep);
/* See recall() of the contract. */
int mca_btl_chaos_recall(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc);
/* The poller has work at this endpoint. Any thread. */
void mca_btl_chaos_wake(mca_btl_endpoint_t *ep);

static inline void chaos_lock(mca_btl_endpoint_t *ep)
{
    if (mca_btl_chaos_services->threads) {
        pthread_mutex_lock(&ep->lock);
    }
}

static inline void chaos_unlock(mca_btl_endpoint_t *ep)
{
    if (mca_btl_chaos_services->threads) {
        pthread_mutex_unlock(&ep->lock);
    }
}

static inline const mca_btl_module_ops_t *chaos_below(const mca_btl_endpoint_t *ep)
{
    return ep->module->below->ops;
}

static inline mca_btl_endpoint_t *chaos_endpoint(mca_btl_endpoint_t *ep)
{
    return atomic_load_explicit(&ep->below, memory_order_relaxed);
}

static inline size_t chaos_iov_len(const struct iovec *iov, size_t count)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        len += iov[i].iov_len;
    }
    return len;
}

#endif
