/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What iof's source files share. */
#ifndef ORTE_MCA_IOF_BASE_INTERNAL_H
#define ORTE_MCA_IOF_BASE_INTERNAL_H

#include "orte/mca/iof/base/sink.h"
#include "opal/util/help_envelope.h"
#include "orte/mca/iof/iof.h"
#include "orte/runtime/wire.h"

#define ORTE_IOF_CHUNK ((size_t)64 * 1024)
/* One read; with its header it fits into one message to mpirun. */
#define ORTE_IOF_READ (ORTE_IOF_CHUNK - ORTE_WIRE_STREAM_HEADER)
/* A line longer than this is handed on in pieces, each with its tag and an added newline. */
#define ORTE_IOF_LINE_MAX ((size_t)1024 * 1024)

struct event;
struct evbuffer;
typedef struct orte_iof_input orte_iof_input_t;

/* One output stream of one process. */
typedef struct {
    orte_iof_t *iof;
    orte_proc_t *proc;
    const char *name;      /* "stdout", "stderr" */
    bool is_stderr;
    bool open;
    int fd;                /* -1: closed, or the process is on another host */
    struct event *event;
    orte_sink_t *console;  /* ours; NULL: files only */
    orte_sink_t *file;     /* owned; NULL: none */
    struct evbuffer *line; /* start of a line without its end yet; NULL: lines may be torn */
    opal_help_filter_t *help; /* takes users' messages out of the stream; NULL: none can be in it */
    bool paused;
    bool unread; /* nobody reads this stream any more: close it */
} orte_iof_channel_t;

/* A message for the user that was shown. */
typedef struct orte_iof_said {
    struct orte_iof_said *next;
    int repeats;  /* others that said the same */
    bool numbers; /* some with other numbers in it */
    int left_out; /* others that said something else of the topic, of which enough is shown */
    char topic[OPAL_HELP_TOPIC_MAX + 1];
    char text[]; /* without who said it */
} orte_iof_said_t;

typedef struct {
    orte_iof_channel_t out, err;
} orte_iof_proc_t;

struct orte_iof {
    orte_runtime_t *rt;
    orte_sink_t *out, *err;
    int null_fd;
    orte_iof_input_t *input;
    char *chunk; /* ORTE_IOF_CHUNK bytes */
    orte_iof_said_t *said;
    bool output_lost; /* some process's output has no reader any more */
    bool file_failed; /* a file of --output-filename, closed by now, is not complete */
    size_t (*owed)[2]; /* by daemon: bytes taken while stdout or stderr was full; NULL: none ever */
    void (*flushed)(void *);
    void *flushed_arg;
};

/* Output, output.c */
/* fd -1: bytes come through orte_iof_channel_feed(). */
int orte_iof_channel_open(orte_iof_channel_t *channel, int fd);
void orte_iof_channel_feed(orte_iof_channel_t *channel, const void *data, size_t size);
/* Close the reading end: the process is to learn that nobody reads. */
void orte_iof_channel_close(orte_iof_channel_t *channel);
void orte_iof_channel_start(orte_iof_channel_t *channel);
/* Take what is in the pipe now, then close. */
void orte_iof_channel_finish(orte_iof_channel_t *channel);
void orte_iof_channel_resume(orte_iof_channel_t *channel);

/* A message of a process, help.c: shown if it is new, else counted. */
void orte_iof_help_message(void *channel, const char *topic, const char *text);
/* Say how many were not shown; forget all. */
void orte_iof_help_summary(orte_iof_t *iof);

/* Input, input.c */
orte_iof_input_t *orte_iof_input_create(orte_iof_t *iof);
void orte_iof_input_destroy(orte_iof_input_t *input);
void orte_iof_input_start(orte_iof_input_t *input);
void orte_iof_input_continued(orte_iof_input_t *input);
/* Feed this descriptor as well; taken over. */
int orte_iof_input_add(orte_iof_input_t *input, int fd);
/* Feed a daemon as well. */
int orte_iof_input_add_daemon(orte_iof_input_t *input, uint32_t daemon);
void orte_iof_input_remove_daemon(orte_iof_input_t *input, uint32_t daemon);
/* In a daemon: a piece from mpirun. */
void orte_iof_input_take(orte_iof_input_t *input, const void *data, size_t size);
/* Room on the way to a daemon. */
void orte_iof_input_drained(orte_iof_input_t *input);
bool orte_iof_wants_input(const orte_proc_t *proc);

#endif
