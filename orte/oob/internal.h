/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * What oob's source files share.
 *
 *   oob.c      the object, its parameters, loss, leaving
 *   message.c  sending, routing, putting together, flow control
 *   link.c     one connection after the greeting: frames out and in, silence
 *   greet.c    what both sides of a greeting have in common
 *   listen.c   the port, the contact text, children that come
 *   connect.c  reaching the parent
 */
#ifndef ORTE_OOB_INTERNAL_H
#define ORTE_OOB_INTERNAL_H

#include "opal/class/hash.h"
#include "opal/class/list.h"
#include "opal/util/net_if.h"
#include "orte/oob/wire.h"

#include <event2/event.h>

typedef struct oob_params {
    int64_t radix, heartbeat_s, connect_timeout_ms, greeting_timeout_ms;
    uint64_t window, message_max;
    char *port_range;
    const opal_net_params_t *net;
} oob_params_t;

extern oob_params_t orte_oob_params;

/* ---- Messages under way ---- */

/* Bytes of a message, shared by the connections it goes out on. */
typedef struct oob_payload {
    uint8_t *data;
    unsigned refs;
} oob_payload_t;

/* In a queue of a connection, or held until the receiver gives room: a whole message of ours, cut
 * into frames as it is written, or one frame of somebody else's that is passed on as it came. */
typedef struct oob_out {
    opal_list_item_t item;
    oob_payload_t *payload; /* NULL: no bytes */
    size_t size, done;
    oob_frame_t frame;
    bool relayed;
} oob_out_t;

/* Takes over a reference to `payload`, failure included. NULL: no memory. */
oob_out_t *oob_out_create(oob_payload_t *payload, size_t size, const oob_frame_t *frame);
void oob_out_destroy(oob_out_t *out);
/* Takes `data`; one reference. NULL: no memory, or no data. */
oob_payload_t *oob_payload_create(uint8_t *data);
void oob_payload_release(oob_payload_t *payload);

/* ---- Connections ---- */

/* A neighbour. Made when it connects or when something is to be sent to it, whichever is first;
 * until it is up, messages wait in its queues. */
typedef struct oob_link {
    orte_oob_t *oob;
    uint32_t index;
    oob_speaker_t speaker;
    int fd; /* -1: not connected yet */
    struct event *readable, *writable;
    opal_list_t queue[ORTE_OOB_CLASSES]; /* of oob_out_t */
    size_t queued[ORTE_OOB_CLASSES];     /* bytes of messages in it */
    opal_hmac_sha256_t tx_key, rx_key;
    uint64_t tx_count, rx_count; /* frames so far */
    uint8_t *tx, *rx;            /* written in part; received in part; NULL: none */
    size_t tx_at, tx_size, rx_size;
    bool said_goodbye; /* nothing more is written */
    bool no_memory;    /* something for it could not be queued: it is to be given up */
} oob_link_t;

/* A connection whose other side has proved itself; takes `fd`, failure included. */
int oob_link_up(orte_oob_t *oob, uint32_t index, int fd, const oob_speaker_t *speaker,
                const uint8_t tx_key[OPAL_SHA256_BYTES], const uint8_t rx_key[OPAL_SHA256_BYTES]);
void oob_link_destroy(oob_link_t *link);
/* Takes `out`; it is written from the loop. */
void oob_link_send(oob_link_t *link, orte_oob_class_t cls, oob_out_t *out);
/* Write what there is, from the loop. */
void oob_link_kick(oob_link_t *link);
/* Milliseconds for which the other host has left something unanswered. */
int64_t oob_link_silence(const oob_link_t *link);

/* ---- Other daemons as ends of messages ---- */

typedef struct oob_peer {
    uint32_t index;
    /* A message of it that is being put together */
    uint8_t *part; /* NULL: none */
    size_t part_have, part_room;
    uint64_t part_total;
    uint16_t part_tag;
    /* Our streams to it: bytes sent and confirmed since the start; what waits for room there */
    uint64_t sent, confirmed;
    opal_list_t held;
    size_t held_bytes;
    bool above; /* on_drained is owed */
    /* Its streams to us, bytes since the start */
    uint64_t delivered, consumed, credited;
    opal_list_item_t credit_due;
} oob_peer_t;

/* ---- Greetings ---- */

typedef struct oob_greeting oob_greeting_t;
struct oob_greeting {
    opal_list_item_t item; /* of orte_oob_t.guests or .attempts */
    orte_oob_t *oob;
    int fd;
    struct event *event, *timer;
    /* A whole message has come, of the type that `expected` has the bit of. May end it. */
    void (*message)(oob_greeting_t *greeting, oob_greeting_type_t type);
    /* It came to nothing, for instance OPAL_ERR_NOT_SUPPORTED: the other's version; to be ended
     * by the callee. `what`: a clause. */
    void (*failed)(oob_greeting_t *greeting, int rc, const char *what);
    /* The TCP connection stands, or errno says why not; used by connect.c alone. */
    void (*connected)(oob_greeting_t *greeting);
    unsigned expected; /* bits 1 << type */
    uint8_t in[OOB_GREETING_MAX];
    size_t have, need;
    oob_speaker_t speaker; /* the other side, as it says; empty before its first message */
    uint32_t index;        /* who it is or says it is */
    uint8_t hello[OOB_HELLO_BYTES], challenge[OOB_CHALLENGE_BYTES];
    char address[OPAL_NET_TEXT_MAX];
};

/* Takes `fd`, failure included. events: EV_READ, or EV_WRITE for a connection being made. */
oob_greeting_t *oob_greeting_create(orte_oob_t *oob, int fd, short events, int64_t limit_ms);
void oob_greeting_destroy(oob_greeting_t *greeting);
/* From `connected`: messages are to be read from now on. False: no memory. */
bool oob_greeting_listen(oob_greeting_t *greeting);
/* False: it could not be sent whole. */
bool oob_greeting_send(oob_greeting_t *greeting, const uint8_t *data, size_t size);
/* Proved on both sides: make it a connection of the daemon `index`, and end the greeting.
 * `tx_role`: 'i' or 'a', what we are. */
int oob_greeting_finish(oob_greeting_t *greeting, char tx_role);
/* "this is Hawser 1.0 on h1, that is Hawser 1.1 on h2; ...". */
void oob_version_sentence(const orte_oob_t *oob, const oob_speaker_t *other,
                          char text[ORTE_OOB_SENTENCE]);

/* ---- The object ---- */

typedef struct oob_address {
    opal_net_addr_t addr;
    uint16_t port;
} oob_address_t;

typedef struct oob_listener {
    int fd; /* -1: not listening */
    struct event *event, *pause;
    char *contact;
    opal_list_t guests; /* oldest first */
    unsigned guest_count;
    opal_net_addr_t *local; /* addresses that may be connected to; NULL: all */
    size_t local_count;
} oob_listener_t;

typedef struct oob_connector {
    oob_address_t *addresses; /* NULL: orte_oob_connect() was not called */
    size_t count, begun;
    opal_list_t attempts;
    struct event *timer;
    bool proved; /* the parent has proved itself on the one attempt that is left */
    int rc;      /* OPAL_ERR_NOT_SUPPORTED once an attempt met another version */
    char sentence[ORTE_OOB_SENTENCE];
} oob_connector_t;

struct orte_oob {
    struct event_base *base;
    orte_oob_config_t config;
    oob_speaker_t speaker;
    struct {
        orte_oob_handler_t handler;
        void *arg;
    } handlers[ORTE_OOB_TAGS];
    oob_link_t *parent;    /* NULL: none yet, or lost */
    oob_link_t **children; /* by index - first_child */
    uint32_t first_child, nchildren;
    uint8_t *lost; /* by index; `config.count` of them */
    opal_hash_t peers;
    opal_list_t local;      /* oob_out_t: messages to ourselves */
    opal_list_t credit_due; /* oob_peer_t */
    struct event *soon;     /* local messages and credits, from the loop */
    struct event *monitor;  /* looks for silence */
    uint8_t *scratch;       /* OOB_SCRATCH bytes, for one read or write */
    size_t held_bytes;      /* of all peers */
    oob_listener_t listener;
    oob_connector_t connector;
    struct {
        void (*done)(void *arg); /* NULL: not leaving, or done */
        void *arg;
        struct event *timer;
        bool begun;
    } leave;
};

#define OOB_SCRATCH ((size_t)4 * OOB_FRAME_MAX)

/* oob.c */
/* The neighbour's connection ends for this reason. Destroys it. */
void oob_link_lost(oob_link_t *link, orte_oob_loss_t why, const char *sentence);
/* A neighbour tells that `index` is lost. */
void oob_told_lost(orte_oob_t *oob, oob_link_t *by, uint32_t index, orte_oob_loss_t why,
                   const char *sentence);
/* Tell a new neighbour who is lost. */
void oob_tell_lost(oob_link_t *link);
/* The neighbour's link, made if need be; NULL: lost, or no memory. */
oob_link_t *oob_link_get(orte_oob_t *oob, uint32_t index);
/* For each slot of a link: parent, then children. */
oob_link_t *oob_link_at(const orte_oob_t *oob, uint32_t slot);
uint32_t oob_link_slots(const orte_oob_t *oob);
/* We leave, and something has been written or has ended. */
void oob_leave_progress(orte_oob_t *oob);

/* message.c */
/* A frame that has come from a neighbour. False: it has no business here. */
bool oob_receive(oob_link_t *from, const oob_frame_t *frame, const uint8_t *bytes);
void oob_soon(evutil_socket_t fd, short what, void *arg);
/* Drop what is on the way from and to daemons that are lost. */
void oob_peers_forget_lost(orte_oob_t *oob);
void oob_peers_destroy(orte_oob_t *oob);

/* listen.c, connect.c */
void oob_listener_stop(orte_oob_t *oob);
void oob_connector_stop(orte_oob_t *oob);

struct timeval oob_timeval(int64_t ms);

#endif
