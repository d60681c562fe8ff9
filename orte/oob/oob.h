/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * oob: messages among mpirun and its daemons ("out of band": not the MPI library's).
 *
 * Daemons have indices: mpirun is 0, the daemons of the other hosts 1 .. count-1. They form a radix
 * tree (orte/oob/tree.h); each keeps one TCP connection to its parent and takes one from each of
 * its children, and a message to any index travels along the tree.
 *
 * Life: orte_oob_create(); handlers of messages are set; orte_oob_listen() in whoever has, or may
 * get, children: its contact text goes to them by the launcher's own way, as does the key;
 * orte_oob_connect() to the parent (all but mpirun); on_connected tells of every neighbour;
 * messages flow; orte_oob_leave(), and when it is done orte_oob_destroy().
 *
 * Threads: everything happens in the thread of the event loop. No callback is made from inside a
 * call; any function but orte_oob_destroy() may be called from any callback.
 *
 * Classes. Messages between two daemons arrive in the order of sending *within a class*:
 *   CONTROL: goes before streams on every connection; up to the parameter oob_message_max bytes
 *       (sent in pieces of 64 KiB). Nothing holds it back, so its users bound it.
 *   STREAM:  output and input of processes; at most ORTE_OOB_STREAM_MAX bytes each. Flow-controlled
 *       from end to end: a sender may have orte_oob_window() bytes on the way to a receiver; the
 *       receiver gives the room back by orte_oob_consumed(), when it has got rid of the bytes. So
 *       a receiver who stands still costs memory of one window per sender, wherever the bytes
 *       are, and delays no other pair of daemons and no control message.
 *   Since CONTROL overtakes STREAM, the end of a stream is to be said in the stream.
 *
 * Loss. A daemon that dies, or whose host falls silent for oob_heartbeat seconds, is reported by
 * on_lost to *all* daemons that can still be reached, once each, with what its neighbour saw; one
 * that leaves in order, to its neighbours and all above. Everything below it in the tree is then
 * unreachable too and not reported apart; orte_oob_is_lost() tells. Silence is that of the host
 * (its kernel answers for a process that is stopped or computes), so that load, SIGSTOP and
 * debuggers lose nobody.
 *
 * Who is trusted. Before anything else is believed, both sides prove knowledge of the job's key
 * (256 bits, see orte_oob_key_create()) by HMAC-SHA-256 over both nonces, roles and indices; every
 * frame after that carries a code over its content and its position, with keys of this connection
 * and direction. So a stranger on the machine or the network can't join, inject, replay, reorder or
 * change anything; he can read (nothing is encrypted, as with other launchers: keep passwords out
 * of command lines and environments) and he can break a connection that he can cut. Whoever knows
 * the key is trusted: it goes through standard input of the remote agent, never through a command
 * line or an environment.
 */
#ifndef ORTE_OOB_OOB_H
#define ORTE_OOB_OOB_H

#include "opal/constants.h"
#include "orte/oob/tree.h"
#include "orte/util/pack.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event_base;
typedef struct orte_oob orte_oob_t;

enum {
    ORTE_OOB_KEY_BYTES = 32,
    ORTE_OOB_KEY_TEXT = 2 * ORTE_OOB_KEY_BYTES + 1, /* hexadecimal, with its end */
    ORTE_OOB_STREAM_MAX = 64 * 1024,
    ORTE_OOB_TAGS = 64,      /* tags are below this */
    ORTE_OOB_SENTENCE = 1024, /* room for any sentence made here */
};

#define ORTE_OOB_EVERYBODY (UINT32_MAX - 1) /* as a destination: see orte_oob_send() */

typedef enum { ORTE_OOB_CONTROL, ORTE_OOB_STREAM, ORTE_OOB_CLASSES } orte_oob_class_t;

/* What a message is about. Others are given by their users, from ORTE_OOB_TAG_FIRST on. */
enum {
    ORTE_OOB_TAG_GRPCOMM = 1,
    ORTE_OOB_TAG_FIRST = 8,
};

/* A message that has arrived. The bytes are freed after the handler's return, unless it has taken
 * them: set `data` to NULL and free() them later. */
typedef struct orte_oob_message {
    uint32_t from;
    uint16_t tag;
    orte_oob_class_t cls;
    uint8_t *data;
    size_t size;
} orte_oob_message_t;

typedef void (*orte_oob_handler_t)(void *arg, orte_oob_message_t *message);

typedef enum {
    ORTE_OOB_LEFT,    /* it called orte_oob_leave() */
    ORTE_OOB_DIED,    /* its connection was closed or reset: the process ended */
    ORTE_OOB_SILENT,  /* its host has not answered for oob_heartbeat seconds */
    ORTE_OOB_BROKEN,  /* what came from it is not right, or memory ran out for it */
} orte_oob_loss_t;

/* Callbacks may be NULL. Sentences have no final stop, name hosts, and live for the call only. */
typedef struct orte_oob_config {
    uint32_t index, count, radix; /* radix 0: the parameter oob_radix */
    uint8_t key[ORTE_OOB_KEY_BYTES];
    const char *hostname;         /* for messages; copied */
    void *arg;                    /* of all callbacks */

    /* A neighbour (parent or child) has proved itself; what waited for it is sent now. */
    void (*on_connected)(void *arg, uint32_t index, const char *hostname);
    /* The parent can't be reached: OPAL_ERR_NOT_SUPPORTED if it is of another version, else
     * OPAL_ERR_UNREACHABLE. The sentence says what was tried, what happened and what to do. */
    void (*on_connect_failed)(void *arg, int rc, const char *sentence);
    /* See "Loss" above. Comes after all CONTROL messages that arrived from there, at its neighbours
     * after all of its messages. */
    void (*on_lost)(void *arg, uint32_t index, orte_oob_loss_t why, const char *sentence);
    /* orte_oob_backlog(index, STREAM) has fallen to half a window or less, after it was more.
     * Not for a daemon that is lost. */
    void (*on_drained)(void *arg, uint32_t index);
    /* Somebody who connected was turned away. `index`: who he said he is, unproven, or
     * ORTE_OOB_NONE. rc: OPAL_ERR_NOT_SUPPORTED: another version of this software (worth telling
     * the user); OPAL_ERR_PERMISSION: he does not know the key or has no business here;
     * OPAL_ERR_TIMEOUT: he said too little for too long. Strangers are no reason to end a job. */
    void (*on_refused)(void *arg, uint32_t index, int rc, const char *sentence);
} orte_oob_config_t;

/* oob_radix, oob_port_range, oob_heartbeat, oob_connect_timeout, oob_greeting_timeout, oob_window,
 * oob_message_max, and the shared net_include, net_exclude, net_ports. */
ORTE_DECLSPEC int orte_oob_register_params(void);
/* The parameter oob_radix, for who plans the tree. */
ORTE_DECLSPEC uint32_t orte_oob_radix(void);

/* ---- The key ---- */

/* OPAL_ERR_IN_ERRNO: the system gives no random numbers. */
ORTE_DECLSPEC int orte_oob_key_create(uint8_t key[ORTE_OOB_KEY_BYTES]);
ORTE_DECLSPEC void orte_oob_key_format(const uint8_t key[ORTE_OOB_KEY_BYTES],
                                       char text[ORTE_OOB_KEY_TEXT]);
/* OPAL_ERR_PARSE: not 64 hexadecimal digits. */
ORTE_DECLSPEC int orte_oob_key_parse(const char *text, uint8_t key[ORTE_OOB_KEY_BYTES]);

/* ---- Life ---- */

/* NULL: no memory. */
ORTE_DECLSPEC orte_oob_t *orte_oob_create(struct event_base *base, const orte_oob_config_t *config);
/* Ends all connections at once; a neighbour who was not told by orte_oob_leave() reports a death.
 * Not from a callback of this module: post it to the loop. */
ORTE_DECLSPEC void orte_oob_destroy(orte_oob_t *oob);

/* Take connections of children from now on. *contact, "addr,addr:port" with IPv6 addresses in
 * brackets, is for their orte_oob_connect() and lives as long as `oob`. The addresses are those of
 * usable interfaces by net_include and net_exclude; loopback only if there is no other or the user
 * asks for it. On error `why` holds a sentence for the user: OPAL_ERR_NOT_AVAILABLE (no port of the
 * range is free, no usable interface), OPAL_ERR_BAD_PARAM (a parameter), OPAL_ERR_IN_ERRNO. */
ORTE_DECLSPEC int orte_oob_listen(orte_oob_t *oob, const char **contact,
                                  char why[ORTE_OOB_SENTENCE]);

/* Connect to the parent. All its addresses are tried, a new one every 250 ms while none has
 * answered; the first at which the parent proves itself is taken, so that addresses which lead
 * nowhere, to oneself or to somebody else (docker0) do no harm. on_connected or on_connect_failed
 * follows, the latter at most oob_connect_timeout after the last address was begun.
 * OPAL_ERR_PARSE: not a contact text. OPAL_ERR_EXISTS: called before. */
ORTE_DECLSPEC int orte_oob_connect(orte_oob_t *oob, const char *contact);

/* More daemons have been added at the end. To be called in every daemon before any message of or to
 * a new one, so in the handler of a broadcast that says so. OPAL_ERR_BAD_PARAM: fewer;
 * OPAL_ERR_OUT_OF_RESOURCE. */
ORTE_DECLSPEC int orte_oob_grow(orte_oob_t *oob, uint32_t count);

/* No more messages from here: send what is queued, tell the neighbours (they report
 * ORTE_OOB_LEFT), wait until they have got it or `limit_ms` has passed; then done(arg), from the
 * loop. To be called when no daemon below needs the connection any more: whoever leaves cuts it
 * off. Messages that arrive meanwhile are still delivered, losses are not reported any more. */
ORTE_DECLSPEC void orte_oob_leave(orte_oob_t *oob, int limit_ms, void (*done)(void *arg),
                                  void *arg);

/* ---- Messages ---- */

/* To be set before messages with this tag can arrive: one without a handler is reported and
 * dropped. NULL takes the handler away. */
ORTE_DECLSPEC void orte_oob_handle(orte_oob_t *oob, uint16_t tag, orte_oob_handler_t handler,
                                   void *arg);

/* Takes `data`, made by malloc() (NULL if size is 0), in every case, failure included. `to` is an
 * index (one's own as well) or ORTE_OOB_EVERYBODY: all daemons below this one in the tree, hence
 * mpirun's message reaches all; not oneself. Broadcasts and messages to one daemon keep their order
 * within the class.
 * To a neighbour that is yet to connect, or through it, messages wait for that.
 * OPAL_ERR_UNREACHABLE: the way there is lost, or we leave. A broadcast leaves out lost daemons and
 * succeeds.
 * OPAL_ERR_BAD_PARAM: an index or tag out of range, or too many bytes.
 * OPAL_ERR_OUT_OF_RESOURCE. */
ORTE_DECLSPEC int orte_oob_send(orte_oob_t *oob, uint32_t to, uint16_t tag, orte_oob_class_t cls,
                                uint8_t *data, size_t size);
/* The same message to several daemons, each one other than this; its bytes are kept once. Those
 * that are lost are left out; OPAL_ERR_OUT_OF_RESOURCE: some do not get it. */
ORTE_DECLSPEC int orte_oob_multicast(orte_oob_t *oob, const uint32_t *to, size_t count,
                                     uint16_t tag, orte_oob_class_t cls, uint8_t *data,
                                     size_t size);
/* As orte_oob_send(), with what was written into `pack`, which is as new afterwards; a writer's
 * error is returned. */
ORTE_DECLSPEC int orte_oob_send_pack(orte_oob_t *oob, uint32_t to, uint16_t tag,
                                     orte_oob_class_t cls, orte_pack_t *pack);

/* CONTROL: bytes that wait here for the connection towards `to`. STREAM: bytes sent to `to` and not
 * yet consumed there. With ORTE_OOB_EVERYBODY: of whoever has the most. A source is read on while
 * its STREAM backlog is below orte_oob_window(), and again from on_drained. */
ORTE_DECLSPEC size_t orte_oob_backlog(const orte_oob_t *oob, uint32_t to, orte_oob_class_t cls);
/* The parameter oob_window, less in large jobs, so that the windows of all daemons towards mpirun
 * are at most 64 MiB together (but at least 16 KiB each). */
ORTE_DECLSPEC size_t orte_oob_window(const orte_oob_t *oob);
/* The receiver is done with `size` bytes of STREAM messages of `from`; owed exactly once for every
 * byte that was delivered, in any portions. */
ORTE_DECLSPEC void orte_oob_consumed(orte_oob_t *oob, uint32_t from, size_t size);

/* ---- Questions ---- */

ORTE_DECLSPEC struct event_base *orte_oob_base(const orte_oob_t *oob);
ORTE_DECLSPEC uint32_t orte_oob_index(const orte_oob_t *oob);
ORTE_DECLSPEC uint32_t orte_oob_count(const orte_oob_t *oob);
ORTE_DECLSPEC uint32_t orte_oob_tree_radix(const orte_oob_t *oob);
/* Reported lost, or below such a one. Of an index out of range: true. */
ORTE_DECLSPEC bool orte_oob_is_lost(const orte_oob_t *oob, uint32_t index);

#endif
