/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * btl/shm: the processes of one node through shared memory.
 *
 * Each process owns one segment, of the same layout in all processes of a job:
 *
 *     header | slots: one per local rank | rings: one per local rank | states of chunks | chunks
 *
 * Slot s and ring s of a segment belong to the pair (local rank s -> owner): the ring's data lines
 * are written by s alone and read by the owner alone. Nothing of a pair that does not talk is ever
 * touched, so it has no memory behind it. A ring appears when its sender fills in the slot and
 * raises header.announced; from then on the owner polls it. Chunks are their owner's bulk room: it
 * packs a fragment into one, sends the chunk's number through the peer's ring, and the peer hands
 * the fragment up where it stands and clears the chunk's state when done, or sends its own next fragment in it (shm_warm.c).
 *
 * A ring is a circle of 64-byte lines, numbered by a running 32-bit count that starts at 1. A
 * message is an 8-byte word and the fragment's bytes, from the start of a line; it never wraps:
 *
 *     63      56 55                 32 31                  0
 *     +---------+---------------------+---------------------+
 *     |  kind   |       length        |  number of the line |   then the bytes
 *     +---------+---------------------+---------------------+
 *
 * The word is written last (release); the reader polls the word of the next line alone, so that a
 * small message costs the transfer of one line. Room lent by reserve() starts at the line behind the
 * word's (FAR). Lines inside a longer message hold any bytes, which one lap later could pass for a word:
 * the writer clears those words in time (shm_ring.h). A lap may end before the ring does (SKIP; see
 * shm_ring.c). The reader says rarely, on a line of its own, how far it has read.
 *
 * With threads a process may own further segments, its lanes, which have rings and nothing else: see shm_lane.c.
 *
 * A long message may be copied once, from address space to address space (shm_cma.c), and by both processes at once
 * (shm_share.c): the header has the jobs for that.
 *
 * What is read from shared memory is checked before use: the worst that a wild peer can do is
 * damage messages of its own job.
 */
#ifndef MCA_BTL_SHM_H
#define MCA_BTL_SHM_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include "hawser/btl.h"
#include "opal/declspec.h"
#include "opal/mca/shmem/shmem.h"
#include "opal/runtime/bell.h"
#include "opal/util/contest.h"
#include "opal/util/copy.h"
#include "opal/util/lock.h"
#include "opal/util/sanitize.h"
#include "ompi/mca/btl/shm/shm_even.h"
#include "ompi/mca/btl/shm/shm_trust.h"
#include "ompi/mca/btl/shm/shm_ways.h"
#include "ompi/mca/btl/shm/shm_whole.h"

#define SHM_MAGIC 0x6d68735f72657377ull
#define SHM_LINE 64u
#define SHM_ALIGNED _Alignas(SHM_LINE)

enum {
    SHM_VERSION = 12,
    SHM_WORD = 8,             /* bytes before a message's data */
    SHM_SHORT_MAX = 2048 + MCA_BTL_HEADER_MAX,     /* send_short takes at most: longer ones are quicker in a chunk */
    SHM_MIN_RING = 2048,
    SHM_MIN_CHUNK = 4096,
    SHM_MAX_CHUNKS = 1024,
    SHM_LARGE_CHUNK = 64 << 10, /* larger ones are worth it only where there are */
    SHM_LARGE_SLACK = 4096 + MCA_BTL_HEADER_MAX, /* beyond the payload: two halves fit, with headers. No multiple of a page: copies from page to
                               * page of which both begin at the same place are slow, as loads then seem to depend on stores */
    SHM_MANY_CHUNKS = 32,     /* so many; smaller ones if there would be but */
    SHM_FEW_CHUNKS = 8,       /* so few */
    SHM_ASIDE_SHARE = 8,      /* so many times as many as are set aside, at least */
    SHM_STREAK = 4,           /* looks in a row that find a message, after which a stream is coming */
    SHM_DRAIN = 64,           /* messages taken from one ring before the next is looked at */
    SHM_DRAIN_BYTES = 512 << 10, /* ... or so many bytes of long ones */
    SHM_PREFETCH_LINES = 8,
    SHM_AHEAD_LINES = 4,      /* of a chunk, while the one before is copied, if that has */
    SHM_AHEAD_MIN = 16 << 10, /* so many bytes */
    SHM_DEMOTE_MAX = 2048 + MCA_BTL_HEADER_MAX, /* bytes of a message whose lines are moved to the common cache at most: see shm_demote() */
    SHM_CLEAR_AHEAD = 288,     /* lines whose words are cleared ahead of time, at most */
    SHM_CLEAR_MESSAGES = 5,   /* messages of several lines, for which that is done at once */
    SHM_NEAR_LINES = 192,     /* see shm_ring.c */
    SHM_NEAR_SHORT = 96,      /* ... while messages have one line */
    SHM_NEAR_TAIL = 12,       /* of them, too few to be worth a look for room */
    SHM_TELL_LINES = 256,     /* the reader tells after so many at the latest */
    SHM_TELL_SOON = 8,        /* ... while no stream is coming: a lap of the near lines needs it */
    SHM_SLOW_INTERVAL = 64,   /* polls between looks at what is rare */
    SHM_CROWDED_INTERVAL = 2, /* the same where processes outnumber processors: a turn on the processor stands between polls */
    SHM_QUIET_POLLS = 1024,   /* without a message, after which a ring counts as idle */
    SHM_FEW_RINGS = 4,        /* so many are always polled */
    SHM_IDLE_LOOKS = 8,       /* idle ones looked at in each poll */
    SHM_JOBS = 4,             /* copies that a process shares with their senders at once */
    SHM_WATCH_US = 200000,    /* between looks whether those waited for still live */
    SHM_SAMPLES = 8,          /* measured fragments under way at most */
    SHM_BUFFER_CLASSES = 11,  /* of buffers for arrivals that are kept: 4 KiB to 4 MiB */
    SHM_PARTS_CLASSES = 8,    /* of fragments in parts, by their length: 16 KiB to 2 MiB */
    SHM_RACE_MIN = 2 << 10,   /* bytes of fragments in one piece of which it is measured how they are copied; */
    SHM_RACE_CLASSES = 6,     /* up to 128 KiB */
    SHM_WARM_MAX = 32,        /* chunks kept for answers to one peer at most */
    SHM_WARM_SHARE = 20,      /* of 32 of a peer's; another quarter may stay with messages: see keep_quota. Of the pool for one message in parts */
    SHM_WARM_CALM = 64,       /* turns after a stream, in which none are kept */
    SHM_WARM_SEED = 16,       /* messages that could go through a chunk, of which one does, while none is kept */
};

typedef enum {
    SHM_KIND_NONE = 0,
    SHM_KIND_DATA = 1,  /* the fragment follows the word */
    SHM_KIND_SKIP = 2,  /* go on at the ring's start; `length` lines are left out */
    SHM_KIND_CHUNK = 3, /* behind the word: a shm_named_t */
    SHM_KIND_FAR = 4,   /* the fragment starts at the next line */
    SHM_KIND_HELP = 5,  /* 32 bits each behind the word: number of a job in the writer's segment, its generation */
    SHM_KIND_PART = 6,  /* behind the word: a shm_part_t; the fragment's header behind that of the first part */
} shm_kind_t;

/* Sizes and places in a segment; derived from the number of processes and the parameters. */
typedef struct shm_layout {
    uint32_t local_size;
    uint32_t ring_lines;
    uint32_t chunk_size;
    uint32_t chunk_count;
    uint64_t slots, rings, states, chunks; /* offsets */
    uint64_t size;
} shm_layout_t;

/* ---- What stands in a segment ---- */

/* A copy that two processes share; see shm_share.c. Written by the segment's owner but for claim, done and failed. */
typedef struct shm_job {
    SHM_ALIGNED _Atomic uint64_t claim;       /* generation << 32 | the next chunk to take */
    uint64_t from, to;                        /* in the sender's memory, in the owner's */
    uint64_t length;
    uint32_t chunk, count;                    /* bytes of one, how many */
    SHM_ALIGNED _Atomic uint32_t done;        /* chunks that the sender has written */
    _Atomic uint32_t failed;                  /* it could not write one */
} shm_job_t;

typedef struct shm_header {
    _Atomic uint64_t magic;                   /* last: what stands below is there */
    uint32_t version;
    uint32_t local_rank;
    mca_btl_name_t name;
    uint64_t token[2];                        /* proves knowledge of the job's secret */
    shm_layout_t layout;
    uint32_t fence;                           /* its sleep does not fence for senders */
    uint64_t token_address;                   /* of `token`, where the owner has it mapped */
    uint64_t pid_space;                       /* where the owner's pid means something; 0: not known */
    SHM_ALIGNED _Atomic uint32_t sleeping;    /* ring the door after publishing; read by all senders */
    SHM_ALIGNED _Atomic uint32_t announced;   /* rings announced so far; written by senders */
    SHM_ALIGNED _Atomic uint32_t want_chunk;  /* the owner sleeps and waits for a chunk's return */
    _Atomic uint32_t attached;                /* processes that have it mapped, owner not counted */
    shm_job_t jobs[SHM_JOBS];
} shm_header_t;

enum { SHM_BULK_UNKNOWN = 0, SHM_BULK_OK = 1, SHM_BULK_REFUSED = 2 };

typedef struct shm_slot {
    /* Written by the owner of the segment, the ring's reader. */
    SHM_ALIGNED _Atomic uint32_t consumed;   /* number of the first line not yet read */
    _Atomic uint32_t bulk;                   /* SHM_BULK_*: can it reach the sender's chunks? */
    _Atomic uint32_t refused;                /* it does not want to hear the sender */
    _Atomic uint32_t early;                  /* long fragments in parts that came before their receives: see shm_trust.h */
    /* Written by the sender. */
    SHM_ALIGNED _Atomic uint32_t announced;
    _Atomic uint32_t want_room;              /* the sender sleeps and waits for room, or until all is read */
    mca_btl_name_t name;
    opal_shmem_id_t id;                      /* its segment */
} shm_slot_t;
_Static_assert(sizeof(shm_slot_t) == 2 * SHM_LINE, "a slot is two lines");

/* How the reader is to go about a fragment in a chunk. */
enum {
    SHM_FLAG_LINES = 1u << 0,    /* copy it as OPAL_COPY_LINES */
    SHM_FLAG_PAST = 1u << 1,     /* ... as OPAL_COPY_PAST */
    SHM_FLAG_MEASURED = 1u << 2, /* leave the time that this took beside the chunk's state */
    SHM_FLAG_FRESH = 1u << 3,    /* the chunk may be new to you: have all of its pages mapped at once */
    SHM_FLAG_LAST = 1u << 4,     /* of parts: no other one is in this chunk, which is free behind it */
    SHM_FLAG_YOURS = 1u << 5,    /* the chunk is the reader's own: an earlier fragment came in it */
    SHM_FLAG_ROUND = 1u << 6,    /* the way by which it was chosen; copied as anything else */
    SHM_FLAG_ASIDE = 1u << 7,    /* the chunk is one of few that the writer has set aside: it goes back at once */
};

/* A fragment in a chunk. */
typedef struct shm_named {
    uint32_t chunk;
    uint32_t offset;                          /* bytes from the chunk's start, a multiple of SHM_WORD */
    uint32_t len;
    uint32_t flags;
} shm_named_t;

/* A part of a fragment's payload, in a chunk. Those of one fragment stand in the ring one behind the other; see shm_parts.c. */
typedef struct shm_part {
    uint32_t chunk, offset;                   /* of the chunk; bytes from its start */
    uint32_t len;
    uint32_t at, total;                       /* where in the payload; all of it */
    uint16_t header_len;                      /* of the first part; of others 0 */
    uint16_t flags;                           /* SHM_FLAG_* */
} shm_part_t;

/*
 * How a process names chunks to itself: those of its own segment by their numbers, those of the peer's with this bit.
 * NO_CHUNK is none of them.
 */
enum { SHM_THEIRS = 1u << 23, SHM_NO_CHUNK = 0xffffff };

typedef struct shm_chunk_state {
    SHM_ALIGNED _Atomic uint32_t busy;
    _Atomic uint32_t cost;                    /* ns that the reader of a measured fragment took; 0: it did not copy it. Before busy */
    uint32_t populated;                       /* the owner's: it has all of the chunk's pages */
    uint64_t seen_by;                         /* ... and so has the peer of local rank r: bit r % 64, of long fragments but for the near way */
    uint32_t holder;                          /* the owner's: local rank of the peer that it was lent for last */
} shm_chunk_state_t;

/* What a process publishes of a segment; first that of its main one, then those of its lanes, by their numbers. */
typedef struct shm_card {
    uint64_t magic;
    uint32_t version;
    uint32_t local_rank;
    opal_shmem_id_t id;
} shm_card_t;

/* ---- What a process keeps ---- */

/* process_vm_readv or process_vm_writev. */
typedef ssize_t (*shm_cma_call_t)(pid_t, const struct iovec *, unsigned long, const struct iovec *,
                                  unsigned long, unsigned long);

typedef struct shm_module shm_module_t;

/* Conditions that take a send off its shortest path. */
enum {
    SHM_SPECIAL_FENCE = 1u << 0,    /* fence between publishing and looking whether the reader sleeps */
    SHM_SPECIAL_NEW = 1u << 1,      /* the ring has not been announced yet */
    SHM_SPECIAL_DOWN = 1u << 2,
};

static_assert(MCA_BTL_STANDING_MAX == SHM_LINE - SHM_WORD, "a line's");

/* The fragment of a peer that is here in part. */
typedef struct shm_parts {
    size_t total, got;              /* bytes of payload; total is 0: there is none */
    size_t header_len;
    uint64_t ns;                    /* of copying, if that is measured */
    opal_contest_turn_t turn;       /* how it is copied: see shm_parts_how() */
    opal_contest_t reading[SHM_PARTS_CLASSES]; /* ... which of the two is quicker, by powers of two of `total` */
    bool dropped;                   /* whoever was to have it has left */
    unsigned char *buffer;          /* it is collected here, header and payload; NULL: `place` has the payload */
    mca_btl_place_t place;
    _Alignas(8) unsigned char head[MCA_BTL_HEADER_MAX]; /* the header; begun, and the first bytes of the payload */
} shm_parts_t;

struct mca_btl_endpoint {
    /* The writer's side, hot. See shm_lock() for what is valid when. */
    SHM_ALIGNED unsigned char *line;    /* next line to write, under the lock */
    mca_btl_standing_t standing;        /* that line behind its word, if there is nothing else to look at */
    const _Atomic uint32_t *sleeping;   /* the peer's */
    uint32_t number;                    /* the line's */
    uint32_t standing_end;              /* the number of the first line that does not stand ready */
    uint32_t settled;                   /* number of the line from which the three below count */
    uint32_t room;                      /* lines that can be written from there on in one piece */
    uint32_t clean;                     /* lines from there on in which no old bytes pass for a word */
    uint32_t tidy;                      /* the same from the ring's start on, whatever `dirt` says */
    uint32_t bulk_max;                  /* bytes of a fragment that a chunk takes; 0: not known to be of use */
    uint32_t messages;                  /* written since the last look at turns; less the lines of longer ones, until settled */
    uint32_t hold_max;                  /* bytes of fragments that may be held back from the peer, see mca_btl_shm_ahead(); 0: none */
    bool locked;                        /* with threads: only publish() and publish_more() may use what stands ready without the lock */
    bool longer;                        /* some message since `settled` had several lines */
    bool alone;                         /* the pieces asked for now are of the only long message there is */
    bool warm_pieces;                   /* ... and may go through chunks kept for answers */
    bool even_pieces;                   /* they are of several long messages, and may go in what has just been read: shm_warm_even() */
    bool even_long;                     /* ... of so long ones that few chunks should go to and fro */
    uint8_t even_met;                   /* calls of ahead() for which long messages are taken to go both ways at once */
    bool racing;                        /* the fragment for which there is room is timed: see shm_race() */

    /* The rest. */
    SHM_ALIGNED shm_module_t *module;
    _Atomic uint32_t special;           /* SHM_SPECIAL_*; the shortest path wants none */
    unsigned char *ring;
    shm_slot_t *slot;                   /* mine, in the peer's segment */
    uint64_t dirt;                      /* blocks of the ring that may hold any bytes; see shm_ring.h */
    uint32_t block_shift;               /* lines of a block, as a power of two */
    uint32_t near_lines, capacity;      /* see shm_ring.c */
    bool beyond;                        /* behind the near lines */
    _Atomic uint32_t turns;             /* times that messages came; written by the poller */
    uint32_t turns_seen;                /* the module's, at the end of the last lap */
    void *_Atomic cookie;               /* see shm_cookie() */
    mca_btl_name_t name;
    uint32_t local_rank;                /* the peer's */
    bool waiting;                       /* a send was refused; on the module's list, under its lock */
    bool wants_chunk;                   /* ... for want of a chunk */
    atomic_bool watched;                /* is it alive? Somebody waits for it */
    atomic_bool hopeless;                    /* a send needs chunks, which the peer can't reach */
    atomic_bool no_cma;
    atomic_bool no_share;                     /* the peer can't write here: don't ask it to help */
    atomic_bool cma_proved;                   /* its pid is the peer here, too */
    uint32_t lead;                      /* where fragments begin in a chunk, so that payload starts a line */
    size_t cheap;                       /* fragments up to this are cheaper in the ring than in a chunk */
    unsigned char *hold_line;           /* if the module's `holding`: which the peer must not see yet, nor what is behind it */
    uint64_t hold_word;                 /* ... what will be written there then */
    uint32_t held, held_count;          /* bytes of fragments from there on; fragments */
    _Atomic uint32_t last_chunk;        /* sent to this peer; NO_CHUNK: it has come back */
    uint32_t last_turns;                /* `turns` then */
    _Atomic uint32_t owed;              /* changed under the module's lock: chunks from this peer that may be kept for answers: so many were sent to it, up to the quota */
    uint32_t warm_count, warm_quota;    /* a stack, see shm_warm.c */
    uint32_t warm[SHM_WARM_MAX];
    size_t reserve_from;                /* warm_min while one is there, or one of the pool is to be sent, that it may come back; else SIZE_MAX */
    uint32_t warm_seed;                 /* messages of warm_min bytes and more through the ring until then */
    uint32_t warm_turns;                /* `turns` when last sent to through a chunk; since then: */
    uint32_t warm_run;                  /* messages, as far as they are counted */
    uint32_t warm_stream;               /* `turns` of which that is known to be a stream; UINT32_MAX: of none */
    uint32_t warm_calm;                 /* turns until chunks are kept again, unless `even`; 0: they are */
    uint32_t demote_turns;              /* `turns` when last sent to in several lines, of the ring or of a chunk */
    shm_even_t even;                    /* not with threads */
    shm_ways_t *ways;                   /* under the pool's lock; NULL until a fragment is long enough */
    uint64_t filling;                   /* since when (ns) the measured fragment for which there is room is being written */
    uint64_t racing_since;              /* ... the timed one, see shm_race() */
    opal_contest_t writing[SHM_RACE_CLASSES]; /* by powers of two of its length, from SHM_RACE_MIN on */
    opal_contest_t filled[SHM_PARTS_CLASSES]; /* the same of parts that the user writes, see shm_parts_race() */
    uint32_t watch_consumed;            /* slot->consumed when last watched */
    uint32_t wants_lines;               /* of the refused send */
    uint32_t wants_number, wants_capacity; /* of the endpoint then */
    uint32_t keep_quota;                /* of the peer's chunks */
    uint32_t behind_long;               /* number of the message behind the last one that was long: in a chunk */
    mca_btl_endpoint_t *next_waiting;   /* under the module's lock */
    mca_btl_endpoint_t *next_ready;     /* the poller's: waits no more, is about to be told */
    opal_lock_t lock;                   /* see shm_lock() */
    opal_shmem_segment_t segment;       /* the peer's */
    const shm_header_t *header;         /* at its start */
    shm_layout_t layout;                /* its header's, checked */
    _Atomic uint32_t kept;              /* the peer's chunks that are kept here */
    shm_parts_t *parts;                 /* what comes from it; NULL until the first */
    shm_trust_t trust;                  /* ... of what goes to it */
    shm_whole_t whole;                  /* the same */
    struct sockaddr_un door;
    socklen_t door_len;
};

/* A measured fragment on its way. */
typedef struct shm_sample {
    mca_btl_endpoint_t *ep;
    uint32_t chunk;                 /* with which its time comes back */
    uint32_t len;
    uint32_t ns;                    /* that the writer took */
    shm_way_t way;
} shm_sample_t;

/* A chunk that was lent, and in which way the fragment goes. */
typedef struct shm_loan {
    uint32_t chunk;
    uint32_t offset;                /* of the fragment in it, but for the endpoint's `lead` */
    uint64_t since;                 /* ns, if it is to be measured: the search for the chunk counts */
    bool fresh;                     /* the peer may not have seen it yet */
    bool aside;                     /* it is one of those set aside */
    shm_ways_choice_t choice;
} shm_loan_t;

/* The owner's side of a job. */
typedef struct shm_share {
    atomic_bool busy;
    atomic_bool waits;              /* for the sender's last chunks; the poller looks */
    mca_btl_endpoint_t *ep;
    mca_btl_descriptor_t *desc;
    uint32_t theirs;                /* chunks that the sender took */
} shm_share_t;

typedef bool (*shm_brief_fn_t)(void *peer, const void *data, size_t len);
typedef bool (*shm_brief_how_fn_t)(void *peer, const void *data, size_t len, mca_btl_copy_t how);

/* The reader's side of a pair; compact, as all of these are gone through in each poll. */
typedef struct shm_rx {
    const unsigned char *line;
    uint32_t number;
    uint32_t published;     /* what slot->consumed says */
    mca_btl_endpoint_t *endpoint;
    uint32_t quiet;         /* polls since the last message, as far as looks at what is rare tell */
    uint32_t left;          /* lines from `line` to the ring's end */
} shm_rx_t;

/* Where in their chunks short fragments stand that go round with the pool: see shm_place(). */
typedef struct shm_places {
    uint32_t turn, round;   /* fragments of this round so far; rounds */
    uint32_t len;           /* of the fragment asked for last; for that: */
    uint32_t stride, count; /* places in a chunk */
    uint32_t now;           /* bytes from a chunk's start */
} shm_places_t;

struct shm_module {
    mca_btl_module_t super;
    const mca_btl_services_t *services;
    shm_layout_t layout;
    opal_shmem_segment_t segment;
    shm_header_t *header;
    void *poller, *door_event, *watch_timer;
    int door;                    /* the doorbell's socket; -1: none */
    atomic_bool armed;           /* the progress engine sleeps, or is about to */

    shm_rx_t *rx;                /* [0, rx_active) are polled each time, of [rx_active, rx_count) some */
    uint32_t rx_active, rx_count;
    uint32_t rx_next;            /* the idle one to be looked at next */
    _Atomic uint32_t turns;      /* times that something was found in a ring */
    const bool *polled_on;       /* services->waiting, or what is never true */
    uint32_t streak;             /* looks in a row that found all they looked for: see shm_drain() */
    shm_share_t shares[SHM_JOBS];
    _Atomic uint32_t shares_waiting;

    shm_brief_fn_t brief;        /* the user's arrive_brief(), or one that takes nothing */
    uint32_t tell_lines, tell_soon; /* read without telling the writer, at most; the second while no stream is coming */
    uint32_t look_every;         /* so many polls at what is rare */
    uint32_t polls;              /* until the next such look */
    uint32_t announced_seen;
    bool *slot_seen;             /* per local rank */

    mca_btl_endpoint_t **peers;  /* by local rank */

    mca_btl_endpoint_t *holding;  /* with a fragment that its peer is not shown yet; NULL: there is none */
    bool polling;                 /* something came, and more may be sent because of that */
    uint32_t drained;             /* bytes of long messages since a look at a ring ended because of them */
    shm_brief_how_fn_t brief_how; /* the user's arrive_brief_how(), or as above */

    pthread_mutex_t lock;        /* pool, spare buffers, waiting list; taken by shm_module_lock() */
    mca_btl_endpoint_t *waiting;
    _Atomic uint32_t waiting_count;
    atomic_bool watch_wanted;    /* some endpoint is `watched`; the poller starts the timer */
    bool watching;

    /* The pool: chunks are numbered; a stack of free ones, a circle of those lent. */
    atomic_bool pool_ready;
    bool pool_off;
    uint32_t *chunk_free, chunk_free_count;
    uint32_t *chunk_lent, lent_head, lent_count, lent_mask; /* places are numbered on and on, and masked */
    uint32_t came_back, look_next; /* where in the circle: see mca_btl_shm_chunk_ready() */
    shm_places_t places;
    shm_sample_t samples[SHM_SAMPLES];
    uint32_t sample_count;
    struct shm_buffer *spare[SHM_BUFFER_CLASSES]; /* under the lock, as the next one */
    size_t spare_bytes;
    bool cma_offered;
    char reason[256];            /* why the last peer was refused */
};

/* The peer as its user has it; NULL: it was deleted. Who adds it may be another thread than the poller. */
static inline void *shm_cookie(const mca_btl_endpoint_t *ep)
{
    return atomic_load_explicit(&ep->cookie, memory_order_acquire);
}

static inline void shm_set_cookie(mca_btl_endpoint_t *ep, void *cookie)
{
    atomic_store_explicit(&ep->cookie, cookie, memory_order_release);
}

/* ---- Parameters ---- */

typedef struct shm_params {
    int64_t backing, single_copy;
    uint64_t memory, ring_max, pool_max, chunk, eager_limit, behind_eager_limit, behind_chunk_min, share_min, parts_min, parts_max, part, warm_min, spare, hold;
    int64_t exclusivity, way, warm, warm_run, lanes;
} shm_params_t;
extern shm_params_t mca_btl_shm_params;

enum { SHM_COPY_AUTO, SHM_COPY_ALWAYS, SHM_COPY_NEVER };

#define SHM_WAY_AUTO SHM_WAYS /* of params.way: measured */

/* ---- shm_component.c ---- */
extern MCA_EXPORT const mca_base_component_t mca_btl_shm_component;
#define SHM_LOG(m, level, ...) (m)->services->base->log("btl", "shm", (level), __VA_ARGS__)

/* ---- shm_segment.c: layout, creation, trust ---- */
/* Of a process that has so many lanes. */
shm_layout_t mca_btl_shm_layout(uint32_t local_size, uint32_t lanes);
/* The same for one of them: rings, no chunks. */
shm_layout_t mca_btl_shm_layout_lane(uint32_t local_size, uint32_t lanes);
int mca_btl_shm_segment_create(shm_module_t *m);
/* Attach and check the segment of the process `name`, local rank `local_rank`. */
int mca_btl_shm_segment_attach(shm_module_t *m, mca_btl_endpoint_t *ep, const opal_shmem_id_t *id,
                               char *why, size_t why_size);

/* ---- shm_lane.c ---- */
/* How many lanes this process is to have. */
uint32_t mca_btl_shm_lane_count(const mca_btl_services_t *services);
extern const mca_btl_poller_t mca_btl_shm_lane_poller;

/* ---- shm_peer.c ---- */
int mca_btl_shm_add_peer(mca_btl_module_t *module, const mca_btl_peer_t *peer, void *cookie,
                         mca_btl_endpoint_t **endpoint, const char **why);
void mca_btl_shm_del_peer(mca_btl_module_t *module, mca_btl_endpoint_t *endpoint);
void mca_btl_shm_free_peers(shm_module_t *m);
/* First send: take the ring into use and tell the peer. */
void mca_btl_shm_announce(mca_btl_endpoint_t *ep);
/* Slots that senders have filled in since the last look. */
void mca_btl_shm_find_announced(shm_module_t *m);
/* The peer sends, but was deleted: ask for it anew; false: not wanted. */
bool mca_btl_shm_revive(mca_btl_endpoint_t *ep);
/* Where this process's pid means something; 0: not known. */
uint64_t mca_btl_shm_pid_space(void);
/* No more to or from this peer. */
void mca_btl_shm_peer_down(mca_btl_endpoint_t *ep, const char *why);
/* Start looking whether peers that are waited for still live; from progress only. */
void mca_btl_shm_watch(shm_module_t *m);

/* ---- shm_send.c ---- */
int mca_btl_shm_send_short(mca_btl_endpoint_t *ep, const void *header, size_t header_len,
                           const void *payload, size_t len);
const void *const *mca_btl_shm_next_store(mca_btl_endpoint_t *ep);
const mca_btl_standing_t *mca_btl_shm_standing(mca_btl_endpoint_t *ep);
int mca_btl_shm_publish(mca_btl_endpoint_t *ep, size_t len);
int mca_btl_shm_publish_more(mca_btl_endpoint_t *ep, size_t len);
int mca_btl_shm_reserve(mca_btl_endpoint_t *ep, size_t min, size_t want, mca_btl_room_t *room);
void mca_btl_shm_commit(mca_btl_endpoint_t *ep, mca_btl_room_t *room, size_t len);
int mca_btl_shm_send(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc);
void mca_btl_shm_ahead(mca_btl_endpoint_t *ep, size_t messages, size_t bytes);
/* The peer of `holding` sees what it has not been shown. */
void mca_btl_shm_show(shm_module_t *m);

/* ---- shm_ring.c ---- */
void mca_btl_shm_ring_soil(mca_btl_endpoint_t *ep, uint32_t from, uint32_t to);
void mca_btl_shm_ring_soil_last(mca_btl_endpoint_t *ep, uint32_t lines);
void mca_btl_shm_ring_clear_now(mca_btl_endpoint_t *ep, uint32_t lines);
void mca_btl_shm_ring_clear_ahead(mca_btl_endpoint_t *ep, uint32_t lines);
void mca_btl_shm_ring_stand_anew(mca_btl_endpoint_t *ep, uint32_t lines);
void mca_btl_shm_ring_begin(mca_btl_endpoint_t *ep);
void mca_btl_shm_ring_go_on(mca_btl_endpoint_t *ep);
bool mca_btl_shm_ring_make_room(mca_btl_endpoint_t *ep, uint32_t lines);

/* ---- shm_parts.c: fragments that are read while they are written ---- */
void mca_btl_shm_parts_limits(mca_btl_endpoint_t *ep, mca_btl_parts_t *limits);
int mca_btl_shm_send_parts(mca_btl_endpoint_t *ep, const void *header, size_t header_len, const void *payload, size_t len);
int mca_btl_shm_send_filled(mca_btl_endpoint_t *ep, const void *header, size_t header_len, size_t len, mca_btl_fill_fn_t fill, void *context);
/* The part that a message in the ring names; false: it names none. */
bool mca_btl_shm_part_arrive(shm_module_t *m, mca_btl_endpoint_t *ep, const unsigned char *message, uint32_t len);
/* Does the next message in this peer's ring, if it is there, take so many bytes there at least? With threads, for the poller only. */
bool mca_btl_shm_has_come(const mca_btl_endpoint_t *ep, uint32_t least);
/* The rest will not come. */
void mca_btl_shm_parts_cancel(mca_btl_endpoint_t *ep);
/* The rest is not wanted. */
void mca_btl_shm_parts_drop(mca_btl_endpoint_t *ep);
/* Something has come of which the rest has not. */
static inline bool shm_is_in_part(const mca_btl_endpoint_t *ep)
{
    return ep->parts && ep->parts->total > 0;
}

/* ---- shm_pool.c: this process's chunks ---- */
int mca_btl_shm_pool_init(shm_module_t *m);
void mca_btl_shm_pool_free(shm_module_t *m);
/* A free chunk for a fragment of so many bytes, and its way; false: there is none. `piece`: of a long message. */
bool mca_btl_shm_chunk_get(mca_btl_endpoint_t *ep, size_t len, bool piece, shm_loan_t *loan);
/* Another one for the same fragment. */
bool mca_btl_shm_chunk_more(mca_btl_endpoint_t *ep, shm_loan_t *loan);
/* Have the pages of a chunk, of this process's or of a peer's segment, in place, to write or to read. */
void mca_btl_shm_chunk_populate(const opal_shmem_segment_t *segment, const shm_layout_t *layout, uint32_t chunk, bool write);
/* A measured fragment of `len` bytes in the chunk, and maybe others, has been written, in `ns`. */
void mca_btl_shm_chunk_measured(mca_btl_endpoint_t *ep, uint32_t chunk, size_t len, shm_way_t way, uint64_t ns);
/* Not sent after all. */
void mca_btl_shm_chunk_unget(mca_btl_endpoint_t *ep, uint32_t chunk);
/* The peer's process is gone, and does not give back what it has. */
void mca_btl_shm_chunks_reclaim(mca_btl_endpoint_t *ep);
/* Is there one to be had for the peer? No, perhaps, though one has come back out of turn, but then yes after a few looks, and when the process is about to sleep. */
bool mca_btl_shm_chunk_ready(const mca_btl_endpoint_t *ep);

/* Of shm_poll.c: a chunk that a fragment of the peer came in is not needed any more. */
void mca_btl_shm_return_chunk(mca_btl_endpoint_t *ep, uint32_t chunk);

/* ---- shm_warm.c: chunks kept for answers ---- */
/* How many of a peer's are kept at most. */
uint32_t mca_btl_shm_warm_quota(const mca_btl_endpoint_t *ep);
/* The fragment in a chunk has been read: keep the chunk for the answer, if some are owed, or give it back. Takes the module's lock;
 * the others want it. */
void mca_btl_shm_chunk_keep(mca_btl_endpoint_t *ep, uint32_t chunk);
static inline void shm_chunk_read(mca_btl_endpoint_t *ep, uint32_t chunk)
{
    if (OPAL_LIKELY(atomic_load_explicit(&ep->owed, memory_order_relaxed) == 0)) {
        mca_btl_shm_return_chunk(ep, chunk);
    } else {
        mca_btl_shm_chunk_keep(ep, chunk);
    }
}
/* A message is about to be sent, not in a turn of which shm_warm_in_stream(). */
void mca_btl_shm_warm_begin(mca_btl_endpoint_t *ep);
/* Does this go into what has just been read, as each side sends a stream? `piece`: of a long message. */
static inline bool shm_warm_even(const mca_btl_endpoint_t *ep, bool piece)
{
    return OPAL_UNLIKELY(ep->even.on) && (piece ? ep->even_pieces : ep->warm_calm > 0);
}
/* Is this turn known to be a stream's? Then there is nothing to be taken. */
static inline bool shm_warm_in_stream(const mca_btl_endpoint_t *ep)
{
    return ep->warm_stream == atomic_load_explicit(&ep->turns, memory_order_relaxed);
}
/* A fragment will be: the peer may be owed one chunk more. */
static inline void shm_warm_owe(mca_btl_endpoint_t *ep)
{
    uint32_t owed = atomic_load_explicit(&ep->owed, memory_order_relaxed);
    if (owed < ep->warm_quota && (ep->warm_calm == 0 || ep->even.on)) {
        atomic_store_explicit(&ep->owed, owed + 1, memory_order_relaxed);
    }
}
static inline void shm_reserve_from(mca_btl_endpoint_t *ep, size_t len)
{
    __atomic_store_n(&ep->reserve_from, len, __ATOMIC_RELAXED); /* the contract has a plain size_t there */
}
/* A message has gone through the ring: now and then one that could go through a chunk is to do so, that the chunk may come back. */
static inline void shm_warm_seed(mca_btl_endpoint_t *ep, size_t len)
{
    if (len >= mca_btl_shm_params.warm_min && --ep->warm_seed == 0) {
        ep->warm_seed = SHM_WARM_SEED;
        shm_reserve_from(ep, ep->warm_quota > 0 ? mca_btl_shm_params.warm_min : SIZE_MAX);
    }
}
/* One less. */
static inline void shm_warm_disown(mca_btl_endpoint_t *ep)
{
    uint32_t owed = atomic_load_explicit(&ep->owed, memory_order_relaxed);
    atomic_store_explicit(&ep->owed, owed - (owed > 0), memory_order_relaxed);
}
/* No chunk is left for a message: the peer is behind. */
void mca_btl_shm_warm_stream(mca_btl_endpoint_t *ep);
/* The one kept last; false: there is none. */
bool mca_btl_shm_warm_take(mca_btl_endpoint_t *ep, uint32_t *chunk);
/* It was not needed: it will be the next. */
void mca_btl_shm_warm_untake(mca_btl_endpoint_t *ep, uint32_t chunk);
/* Is a fragment better sent when what has come from the peer has been read? If it is refused, for that or for want of room, even.waits then says
 * whether a chunk that is kept will do. */
bool mca_btl_shm_warm_waits(mca_btl_endpoint_t *ep, bool piece);
/* Whatever is kept goes back. */
void mca_btl_shm_warm_drop(mca_btl_endpoint_t *ep);
/* The pool has no chunk left: have those back that are kept; false: there are none. */
bool mca_btl_shm_warm_release(shm_module_t *m);

/* ---- shm_buffers.c: memory for arrivals that are kept ---- */
/* At least so many bytes, at the start of a cache line; NULL: there are none. */
void *mca_btl_shm_buffer_get(shm_module_t *m, size_t len);
/* Give it back; NULL is nothing. */
void mca_btl_shm_buffer_put(shm_module_t *m, void *bytes);
/* Nothing is kept for the next ones any more. */
void mca_btl_shm_buffers_release(shm_module_t *m);

/* ---- shm_poll.c ---- */
int mca_btl_shm_poll(void *context);
/* Note their arrive_brief() and arrive_brief_how(), or functions that take nothing. */
void mca_btl_shm_know_upcalls(shm_module_t *m);
/* Hand up all that stands in a peer's ring. */
void mca_btl_shm_drain_peer(mca_btl_endpoint_t *ep);
/* Beside it, before: the time that copying a measured fragment took; 0: it was not copied. */
void mca_btl_shm_tell_cost(mca_btl_endpoint_t *ep, uint32_t chunk, uint64_t ns);
void mca_btl_shm_arm(void *context);
void mca_btl_shm_disarm(void *context);
int mca_btl_shm_keep(mca_btl_arrival_t *arrival);
void mca_btl_shm_release(mca_btl_arrival_t *arrival);

/* ---- shm_door.c: waking a sleeper ---- */
int mca_btl_shm_door_open(shm_module_t *m);
void mca_btl_shm_door_close(shm_module_t *m);
void mca_btl_shm_door_address(mca_btl_endpoint_t *ep);
/* Wake the owner of a door whose flag was found set. */
void mca_btl_shm_door_ring(mca_btl_endpoint_t *ep, _Atomic uint32_t *flag);
/* Between publishing and looking at a flag, where the sleeper can't fence for us. Not inline: gcc's ThreadSanitizer refuses
 * fences in inline functions of headers. */
void mca_btl_shm_fence(void);
bool mca_btl_shm_door_there(const mca_btl_endpoint_t *ep);

/* ---- shm_cma.c: single copy between address spaces ---- */
int mca_btl_shm_put(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key);
int mca_btl_shm_get(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key);
int mca_btl_shm_register_mem(mca_btl_module_t *module, void *addr, size_t len,
                             uint8_t key[MCA_BTL_KEY_MAX], size_t *key_len,
                             mca_btl_registration_t **registration);
void mca_btl_shm_deregister_mem(mca_btl_module_t *module, mca_btl_registration_t *registration);
/* Can this process move data to and from the peer's memory? MCA_SUCCESS, or why not. */
int mca_btl_shm_cma_ready(mca_btl_endpoint_t *ep);
/* Move bytes between `here` and `there` in the peer's memory. False: not permitted, or no memory there; errno. */
bool mca_btl_shm_cma_move(mca_btl_endpoint_t *ep, shm_cma_call_t call, uint64_t here, uint64_t there, uint64_t len);
/* Say in the limits that single copy is there. */
void mca_btl_shm_cma_offer(shm_module_t *m);

/* ---- shm_share.c: single copy by both ---- */
/* As get() of one piece of memory, with the sender's help; MCA_ERR_AGAIN: not now, do it alone. */
int mca_btl_shm_share_get(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote);
/* The peer asks for help with its job. */
void mca_btl_shm_share_help(mca_btl_endpoint_t *ep, uint32_t index, uint32_t generation);
/* Tell the ends of shared copies that had to wait; the number of them. */
int mca_btl_shm_share_poll(shm_module_t *m);

/* ---- Small helpers ---- */

static inline void shm_module_lock(shm_module_t *m)
{
    if (m->services->threads) {
        pthread_mutex_lock(&m->lock);
    }
}

static inline void shm_module_unlock(shm_module_t *m)
{
    if (m->services->threads) {
        pthread_mutex_unlock(&m->lock);
    }
}

static inline opal_copy_how_t shm_how_of(shm_way_t way)
{
    return way == SHM_WAY_WIDE ? OPAL_COPY_LINES : way == SHM_WAY_PAST ? OPAL_COPY_PAST : OPAL_COPY_ANY;
}

static inline uint32_t shm_flags_of(const shm_loan_t *loan)
{
    shm_way_t way = loan->choice.way;
    uint32_t how = way == SHM_WAY_WIDE ? SHM_FLAG_LINES : way == SHM_WAY_PAST ? SHM_FLAG_PAST : way == SHM_WAY_ROUND ? SHM_FLAG_ROUND : 0;
    return how | (loan->choice.measured ? SHM_FLAG_MEASURED : 0) | (loan->fresh ? SHM_FLAG_FRESH : 0) |
           (loan->chunk & SHM_THEIRS ? SHM_FLAG_YOURS : 0) | (loan->aside ? SHM_FLAG_ASIDE : 0);
}

static inline shm_way_t shm_way_of_flags(uint32_t flags)
{
    return flags & SHM_FLAG_LINES ? SHM_WAY_WIDE : flags & SHM_FLAG_PAST ? SHM_WAY_PAST : flags & SHM_FLAG_ROUND ? SHM_WAY_ROUND : SHM_WAY_NEAR;
}

static inline opal_copy_how_t shm_how_of_flags(uint32_t flags)
{
    return shm_how_of(shm_way_of_flags(flags));
}

/* The reader tells how far it is after so many lines, and that many are in the longest message
 * that goes through a ring itself: it fits even if the reader has not told of the last ones. */
static inline uint32_t shm_tell_lines(uint32_t ring_lines)
{
    return ring_lines / 4 < SHM_TELL_LINES ? ring_lines / 4 : SHM_TELL_LINES;
}

static inline size_t shm_in_ring(const shm_layout_t *layout)
{
    return (shm_tell_lines(layout->ring_lines) - 1) * (size_t)SHM_LINE;
}

static inline shm_header_t *shm_header_of(const opal_shmem_segment_t *segment)
{
    return segment->base;
}

static inline shm_slot_t *shm_slot_at(const opal_shmem_segment_t *segment, const shm_layout_t *layout,
                                      uint32_t slot)
{
    return (shm_slot_t *)((unsigned char *)segment->base + layout->slots) + slot;
}

static inline unsigned char *shm_ring_at(const opal_shmem_segment_t *segment, const shm_layout_t *layout,
                                         uint32_t slot)
{
    return (unsigned char *)segment->base + layout->rings + (uint64_t)slot * layout->ring_lines * SHM_LINE;
}

static inline shm_chunk_state_t *shm_chunk_state(const opal_shmem_segment_t *segment,
                                                 const shm_layout_t *layout, uint32_t chunk)
{
    return (shm_chunk_state_t *)((unsigned char *)segment->base + layout->states) + chunk;
}

/* Chunks that are set aside, the last ones: see shm_pool.c. The others go round. */
static inline uint32_t shm_chunks_aside(const shm_layout_t *layout)
{
    uint32_t peers = layout->local_size > 1 ? layout->local_size - 1 : 1, most = layout->chunk_count / SHM_ASIDE_SHARE;
    return peers == 1 ? 0 : peers < most ? peers : most;
}

static inline uint32_t shm_chunks_round(const shm_layout_t *layout)
{
    return layout->chunk_count - shm_chunks_aside(layout);
}

/* Is the receiver of one of this process's chunks done with it? */
static inline bool shm_chunk_returned(const shm_module_t *m, uint32_t chunk)
{
    return atomic_load_explicit(&shm_chunk_state(&m->segment, &m->layout, chunk)->busy, memory_order_acquire) == 0;
}

/* What is in a chunk of a fragment that is sent in parts: all parts but the last begin and end with lines. */
static inline uint32_t shm_chunk_payload(const shm_layout_t *layout)
{
    return layout->chunk_size - (layout->chunk_size > SHM_LARGE_CHUNK ? SHM_LARGE_SLACK : MCA_BTL_HEADER_MAX);
}

/* Bytes of the longest fragment in a chunk, wherever in the first line it begins. */
static inline uint32_t shm_chunk_room(const shm_layout_t *layout)
{
    return shm_chunk_payload(layout) + MCA_BTL_HEADER_MAX - SHM_LINE;
}

static inline unsigned char *shm_chunk_at(const opal_shmem_segment_t *segment,
                                          const shm_layout_t *layout, uint32_t chunk)
{
    return (unsigned char *)segment->base + layout->chunks + (uint64_t)chunk * layout->chunk_size;
}

/* Of a chunk as this process names it: its state, its memory. */
static inline shm_chunk_state_t *shm_state_of(const mca_btl_endpoint_t *ep, uint32_t chunk)
{
    return chunk & SHM_THEIRS ? shm_chunk_state(&ep->segment, &ep->layout, chunk & ~(uint32_t)SHM_THEIRS)
                              : shm_chunk_state(&ep->module->segment, &ep->module->layout, chunk);
}

static inline unsigned char *shm_bytes_of(const mca_btl_endpoint_t *ep, uint32_t chunk)
{
    return chunk & SHM_THEIRS ? shm_chunk_at(&ep->segment, &ep->layout, chunk & ~(uint32_t)SHM_THEIRS)
                              : shm_chunk_at(&ep->module->segment, &ep->module->layout, chunk);
}

/* What the peer says later, that a chunk is free again, or holds a fragment of its own, orders whoever touches it next behind who wrote it
 * here, and has called this. */
static inline void shm_mark_written(mca_btl_endpoint_t *ep, uint32_t chunk)
{
    opal_tsan_release(shm_bytes_of(ep, chunk));
    atomic_store_explicit(&ep->last_chunk, chunk, memory_order_relaxed);
    ep->last_turns = atomic_load_explicit(&ep->turns, memory_order_relaxed);
}

/* The chunk that a message of the peer names, as this process names it. */
static inline uint32_t shm_named_chunk(uint32_t number, uint32_t flags)
{
    return flags & SHM_FLAG_YOURS ? number : number | SHM_THEIRS;
}

/* Is there such a chunk, and can this process reach it? */
static inline bool shm_is_chunk(const mca_btl_endpoint_t *ep, uint32_t number, uint32_t flags)
{
    return flags & SHM_FLAG_YOURS ? number < ep->module->layout.chunk_count && ep->module->pool_ready
                                  : ep->segment.base && number < ep->layout.chunk_count;
}

/* Has the peer read what was sent to it last in a chunk? Who keeps a chunk does not say when it has read what was in it, as that would cost a
 * trip of a cache line: it is taken to have if it has sent something since. */
static inline bool shm_last_is_read(const mca_btl_endpoint_t *ep)
{
    uint32_t last = atomic_load_explicit(&ep->last_chunk, memory_order_relaxed);
    return last == SHM_NO_CHUNK || ep->last_turns != atomic_load_explicit(&ep->turns, memory_order_relaxed)
           || atomic_load_explicit(&shm_state_of(ep, last)->busy, memory_order_acquire) == 0;
}

/* token[0] of an arrival: in a chunk of the peer's the chunk's number + 1; in a buffer that becomes the user's if it is kept, this; else 0. */
#define SHM_TOKEN_BUFFER UINT64_MAX

/* token[1]: what keep() and release() did. Other values: the address of a buffer. */
enum { SHM_NOT_KEPT = 0, SHM_KEPT_IN_PLACE = 1, SHM_GIVEN_BACK = 2 };

#endif
