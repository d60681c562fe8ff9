/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * What mpirun and its daemons say to each other: one tag per kind of message, one pack and one unpack
 * function per kind that has contents.
 *
 *     down, from mpirun (0) to everybody          up, from a daemon to mpirun
 *     ----------------------------------          ---------------------------
 *     ASK_TOPOLOGY (to one)                       REPORT     the daemon is up; what its host is like
 *     LAUNCH   a job, complete                    TOPOLOGY   the answer to ASK_TOPOLOGY
 *     SIGNAL   to all processes                   START_FAILED  of a daemon below it in the tree
 *     END      a job                              STARTED    all processes of a job that was asked for
 *     FORGET   a job that is over everywhere                 run, as far as they are on this host
 *     EXAMINE  what is each process doing?        EXITED     a process was waited for
 *     LEAVE    exit; what is left of jobs ends    EXAMINED   a line about that; without text: all told
 *     INPUT    (to one) a piece of stdin;         ABORTED    a process called abort
 *              none: its end                      FAILED     a process or a step could not be started
 *     OUTPUT_LOST (to one) nobody reads           OUTPUT     a piece of a process's stdout or stderr
 *              a process's output any more        OVER       nothing of a job is left on the host;
 *                                                            comes after all its OUTPUT
 *     LOST     a process has failed, and          INPUT_LOST no process there reads stdin any more
 *              its job goes on without it
 *     between any two
 *     ---------------
 *     MODEX, MODEX_REPLY  what a process has put into PMIx
 *     DATA, DATA_REPLY    publish, lookup, unpublish; mpirun keeps what was published
 *     SPAWN, SPAWN_REPLY  a process asks for a job, which mpirun starts, or says that its own parts from
 *                         the one that has asked for it
 *
 * INPUT, OUTPUT and OVER are STREAM messages (orte/oob/oob.h), all others CONTROL. Every unpack
 * function checks all that it reads; on OPAL_ERR_* nothing is to be freed.
 */
#ifndef ORTE_RUNTIME_WIRE_H
#define ORTE_RUNTIME_WIRE_H

#include "opal/util/sha256.h"
#include "orte/oob/oob.h"
#include "orte/runtime/runtime.h"

enum {
    ORTE_WIRE_REPORT = ORTE_OOB_TAG_FIRST,
    ORTE_WIRE_ASK_TOPOLOGY,
    ORTE_WIRE_TOPOLOGY,
    ORTE_WIRE_START_FAILED,
    ORTE_WIRE_LAUNCH,
    ORTE_WIRE_SIGNAL,
    ORTE_WIRE_END,
    ORTE_WIRE_EXAMINE,
    ORTE_WIRE_EXAMINED,
    ORTE_WIRE_LEAVE,
    ORTE_WIRE_EXITED,
    ORTE_WIRE_ABORTED,
    ORTE_WIRE_FAILED,
    ORTE_WIRE_OVER,
    ORTE_WIRE_OUTPUT,
    ORTE_WIRE_OUTPUT_LOST,
    ORTE_WIRE_INPUT,
    ORTE_WIRE_INPUT_LOST,
    ORTE_WIRE_MODEX,
    ORTE_WIRE_MODEX_REPLY,
    ORTE_WIRE_DATA,
    ORTE_WIRE_DATA_REPLY,
    ORTE_WIRE_STARTED,
    ORTE_WIRE_FORGET,
    ORTE_WIRE_SPAWN,
    ORTE_WIRE_SPAWN_REPLY,
    ORTE_WIRE_LOST,
};

/* REPORT. Machines of one kind have equal digests, and only one of them sends its topology. */
typedef struct {
    uint8_t digest[OPAL_SHA256_BYTES]; /* of the topology's text */
    char *allowed;                     /* hwloc list of the cpus that the daemon may use */
    int cpu_limit;
    uint8_t arch;                      /* how numbers look there, see opal_arch_id() */
} orte_wire_report_t;

/* START_FAILED: daemon `index` could not be started. ABORTED, FAILED: `rank` (-1: none) of `job` with an
 * exit code; the text may be NULL. */
typedef struct {
    int32_t job;
    int32_t number; /* index of a daemon, or rank */
    int32_t pid;    /* of the process; 0: none */
    int32_t code;
    char *text;
} orte_wire_notice_t;

typedef struct {
    int32_t job;
    int32_t rank;
    int32_t pid;
    int32_t status; /* as from waitpid */
    bool was_connected, was_finalized;
} orte_wire_exited_t;

/* LOST */
typedef struct {
    int32_t rank; /* ORTE_WIRE_ALL_RANKS: the job is over */
    bool in_order; /* it has ended as it should, while others of its job go on */
    char *nspace; /* of its job */
} orte_wire_lost_t;
#define ORTE_WIRE_ALL_RANKS (-1)

/* OUTPUT begins with this, and the rest are the process's bytes; all of OUTPUT_LOST. */
typedef struct {
    int32_t job;
    int32_t rank;
    bool is_stderr;
} orte_wire_stream_t;

#define ORTE_WIRE_STREAM_HEADER 9 /* bytes of orte_wire_stream_t as packed */

/* MODEX: rank; the data are its job's namespace. Replies: a PMIx status and what was asked for. DATA:
 * what is to be done, and for whom, as orte/pmix/data.c packs it; SPAWN: the same,
 * as orte/pmix/spawn.c packs it. `id` is the asker's. */
typedef struct {
    uint64_t id;
    int32_t number; /* rank, kind of DATA, or status */
    const uint8_t *data; /* points into the message */
    size_t size;
} orte_wire_request_t;

ORTE_DECLSPEC void orte_wire_pack_report(orte_pack_t *pack, const orte_wire_report_t *report);
ORTE_DECLSPEC int orte_wire_unpack_report(const orte_oob_message_t *message,
                                          orte_wire_report_t *report);
ORTE_DECLSPEC void orte_wire_pack_notice(orte_pack_t *pack, const orte_wire_notice_t *notice);
ORTE_DECLSPEC int orte_wire_unpack_notice(const orte_oob_message_t *message,
                                          orte_wire_notice_t *notice);
ORTE_DECLSPEC void orte_wire_pack_exited(orte_pack_t *pack, const orte_wire_exited_t *exited);
ORTE_DECLSPEC int orte_wire_unpack_exited(const orte_oob_message_t *message,
                                          orte_wire_exited_t *exited);
ORTE_DECLSPEC void orte_wire_pack_lost(orte_pack_t *pack, const orte_wire_lost_t *lost);
ORTE_DECLSPEC int orte_wire_unpack_lost(const orte_oob_message_t *message, orte_wire_lost_t *lost);
ORTE_DECLSPEC void orte_wire_pack_stream(orte_pack_t *pack, const orte_wire_stream_t *stream);
/* *data: the bytes behind the header, in the message. */
ORTE_DECLSPEC int orte_wire_unpack_stream(const orte_oob_message_t *message,
                                          orte_wire_stream_t *stream, const uint8_t **data,
                                          size_t *size);
ORTE_DECLSPEC void orte_wire_pack_request(orte_pack_t *pack, const orte_wire_request_t *request);
ORTE_DECLSPEC int orte_wire_unpack_request(const orte_oob_message_t *message,
                                           orte_wire_request_t *request);
/* SIGNAL, EXAMINE (1: states, 2: stacks, 3: both), and the number of a job, OVER, STARTED, FORGET: a
 * number between min and max. */
ORTE_DECLSPEC int orte_wire_unpack_number(const orte_oob_message_t *message, int min, int max,
                                          int *number);
/* END: a job, and whether the hard way. */
ORTE_DECLSPEC void orte_wire_pack_end(orte_pack_t *pack, int job, bool hard);
ORTE_DECLSPEC int orte_wire_unpack_end(const orte_oob_message_t *message, int *job, bool *hard);

/* LAUNCH: the mapped job with its programs and processes; the first one with all nodes. */
ORTE_DECLSPEC void orte_wire_pack_job(orte_pack_t *pack, const orte_job_t *job);
/* The first job fills rt->job (empty until now) and rt->nodes; rt->self becomes the node whose daemon we
 * are, with the name that mpirun has for it. Others are new in rt->jobs. On an error what there is of
 * the job, *job or NULL, and the nodes are as far as they came, to be freed as ever. */
ORTE_DECLSPEC int orte_wire_unpack_job(const orte_oob_message_t *message, orte_runtime_t *rt,
                                       orte_job_t **job);

#endif
