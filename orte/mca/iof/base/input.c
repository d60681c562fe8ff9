/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Standard input, to one process or to all. One chunk is read, written to every target, and only when
 * all have taken it the next one is read: the slowest reader sets the pace. A daemon with processes
 * that want input is one target of mpirun's; it has taken a chunk when there is room on the way to it
 * for more. Its own chunks come from mpirun, so that memory is one chunk here and one window there.
 */
#include "orte/mca/iof/base/internal.h"

#include "opal/constants.h"
#include "orte/runtime/follow.h"
#include "orte/util/report.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct target {
    struct target *next;
    orte_iof_input_t *input;
    uint32_t daemon; /* 0: a process of this host */
    int fd;
    struct event *writable;
    size_t done; /* bytes of the chunk written */
} target_t;

/* A daemon's chunks to come; one without bytes is the end. */
typedef struct piece {
    struct piece *next;
    size_t size;
    char data[];
} piece_t;

struct orte_iof_input {
    orte_iof_t *iof;
    struct event *readable;
    struct event *foreground; /* looks whether the terminal is ours */
    bool always_ready; /* a regular file: poll is of no use */
    bool waiting;      /* the read event is armed */
    bool started;      /* in a daemon: all processes are there */
    bool lost_told;    /* in a daemon: mpirun knows that nobody reads */
    piece_t *pieces, **last_piece;
    target_t *targets;
    size_t size;       /* of the chunk in hand */
    char chunk[ORTE_IOF_CHUNK];
};

bool orte_iof_wants_input(const orte_proc_t *proc)
{
    const orte_io_options_t *io = &proc->job->io;

    return io->stdin_kind == ORTE_STDIN_ALL ||
           (io->stdin_kind == ORTE_STDIN_RANK && io->stdin_rank == proc->rank);
}

static void target_remove(target_t *target)
{
    target_t **link = &target->input->targets;

    while (*link != target) {
        link = &(*link)->next;
    }
    *link = target->next;
    if (target->daemon == 0) {
        event_free(target->writable);
        close(target->fd);
    }
    free(target);
}

/* A terminal may be read only by the foreground group; others would be stopped for trying. */
static bool in_background(void)
{
    pid_t foreground = tcgetpgrp(STDIN_FILENO);

    return foreground > 0 && foreground != getpgrp();
}

/* No signal tells that a shell's fg has put a running job in the foreground. */
static const struct timeval foreground_pause = {.tv_usec = 500 * 1000};

static void next_piece(orte_iof_input_t *input);

static void arm(orte_iof_input_t *input)
{
    if (input->iof->rt->index != 0) {
        next_piece(input);
        return;
    }
    if (input->targets == NULL || input->waiting) {
        return;
    }
    if (in_background()) {
        event_add(input->foreground, &foreground_pause);
        return;
    }
    input->waiting = true;
    if (input->always_ready) {
        event_active(input->readable, EV_READ, 1);
    } else {
        event_add(input->readable, NULL);
    }
}

static bool has_room(const orte_iof_input_t *input, const target_t *target)
{
    const orte_oob_t *oob = input->iof->rt->oob;

    return target->daemon == 0 ||
           orte_oob_backlog(oob, target->daemon, ORTE_OOB_STREAM) < orte_oob_window(oob);
}

/* All targets have the chunk: on to the next. */
static void advance(orte_iof_input_t *input)
{
    for (target_t *target = input->targets; target != NULL; target = target->next) {
        if (target->done < input->size || !has_room(input, target)) {
            return;
        }
    }
    arm(input);
}

/* The chunk, or the end (no bytes), to a daemon. False if it can't be reached. */
static bool send_chunk(target_t *target, size_t size)
{
    orte_iof_input_t *input = target->input;
    uint8_t *copy = size == 0 ? NULL : malloc(size);

    if (size > 0 && copy == NULL) {
        orte_warn("no memory to pass on standard input");
        return false;
    }
    if (size > 0) {
        memcpy(copy, input->chunk, size);
    }
    target->done = size;
    return orte_oob_send(input->iof->rt->oob, target->daemon, ORTE_WIRE_INPUT, ORTE_OOB_STREAM,
                         copy, size) == OPAL_SUCCESS;
}

/* Write what the target can take now; false if it is gone. */
static bool push(target_t *target)
{
    orte_iof_input_t *input = target->input;

    if (target->daemon != 0) {
        if (target->done < input->size && !send_chunk(target, input->size)) {
            target_remove(target);
            return false;
        }
        return true;
    }
    while (target->done < input->size) {
        ssize_t rc = write(target->fd, input->chunk + target->done, input->size - target->done);
        if (rc >= 0) {
            target->done += (size_t)rc;
        } else if (errno == EAGAIN) {
            event_add(target->writable, NULL);
            return true;
        } else if (errno != EINTR) {
            target_remove(target); /* EPIPE: it reads no more */
            return false;
        }
    }
    return true;
}

static void target_writable(evutil_socket_t fd, short what, void *arg)
{
    target_t *target = arg;
    orte_iof_input_t *input = target->input;

    (void)fd;
    (void)what;
    push(target);
    advance(input);
}

static void close_all(orte_iof_input_t *input)
{
    while (input->targets != NULL) {
        if (input->targets->daemon != 0) {
            send_chunk(input->targets, 0);
        }
        target_remove(input->targets);
    }
}

static void look_for_foreground(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    advance(arg); /* a SIGCONT may have been quicker */
}

static void push_all(orte_iof_input_t *input)
{
    for (target_t *target = input->targets, *next; target != NULL; target = next) {
        next = target->next;
        target->done = 0;
        push(target);
    }
}

static void readable(evutil_socket_t fd, short what, void *arg)
{
    orte_iof_input_t *input = arg;

    (void)what;
    input->waiting = false;
    if (in_background()) {
        arm(input); /* put there since */
        return;
    }
    ssize_t got = read(fd, input->chunk, sizeof(input->chunk));
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        arm(input);
        return;
    }
    if (got <= 0) {
        if (got < 0 && errno != EIO) {
            orte_warn("can't read standard input: %s", strerror(errno));
        }
        close_all(input);
        return;
    }
    input->size = (size_t)got;
    push_all(input);
    advance(input);
}

static piece_t *pop_piece(orte_iof_input_t *input)
{
    piece_t *piece = input->pieces;

    if (piece != NULL && (input->pieces = piece->next) == NULL) {
        input->last_piece = &input->pieces;
    }
    return piece;
}

/* The chunk in hand becomes this one. True if all targets took it at once. */
static bool pass_on_piece(orte_iof_input_t *input, piece_t *piece)
{
    bool taken = true;

    input->size = piece->size;
    if (piece->size == 0) {
        input->lost_told = true; /* mpirun sends no more anyway */
        close_all(input);
    }
    memcpy(input->chunk, piece->data, piece->size);
    push_all(input);
    for (target_t *target = input->targets; target != NULL; target = target->next) {
        taken = taken && target->done >= input->size;
    }
    free(piece);
    return taken;
}

/* In a daemon: the chunk in hand is done with; take those that have come, as long as all targets take
 * them at once. */
static void next_piece(orte_iof_input_t *input)
{
    piece_t *piece;

    do {
        if (!input->started) {
            return;
        }
        bool lost = input->targets == NULL && !input->lost_told;
        input->lost_told = input->lost_told || lost;
        orte_follow_input_done(input->iof->rt, input->size, lost);
        input->size = 0;
        piece = pop_piece(input);
    } while (piece != NULL && pass_on_piece(input, piece));
}

void orte_iof_input_take(orte_iof_input_t *input, const void *data, size_t size)
{
    bool idle = input->pieces == NULL && input->size == 0;
    piece_t *piece = size > sizeof(input->chunk) ? NULL : malloc(sizeof(*piece) + size);

    if (piece == NULL) {
        orte_warn("no memory for standard input: a piece of it is lost");
        orte_follow_input_done(input->iof->rt, size, false);
        return;
    }
    piece->next = NULL;
    piece->size = size;
    if (size > 0) {
        memcpy(piece->data, data, size);
    }
    *input->last_piece = piece;
    input->last_piece = &piece->next;
    if (idle) {
        next_piece(input);
    }
}

int orte_iof_input_add_daemon(orte_iof_input_t *input, uint32_t daemon)
{
    for (target_t *target = input->targets; target != NULL; target = target->next) {
        if (target->daemon == daemon) {
            return OPAL_SUCCESS;
        }
    }
    target_t *target = calloc(1, sizeof(*target));
    if (target == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    target->input = input;
    target->daemon = daemon;
    target->fd = -1;
    target->next = input->targets;
    input->targets = target;
    return OPAL_SUCCESS;
}

void orte_iof_input_remove_daemon(orte_iof_input_t *input, uint32_t daemon)
{
    for (target_t *target = input->targets; target != NULL; target = target->next) {
        if (target->daemon == daemon) {
            target_remove(target);
            advance(input);
            return;
        }
    }
}

void orte_iof_input_drained(orte_iof_input_t *input)
{
    if (input->targets != NULL) {
        advance(input);
    }
}

orte_iof_input_t *orte_iof_input_create(orte_iof_t *iof)
{
    orte_iof_input_t *input = calloc(1, sizeof(*input));
    struct stat st;

    if (input == NULL) {
        return NULL;
    }
    input->iof = iof;
    input->last_piece = &input->pieces;
    input->always_ready = fstat(STDIN_FILENO, &st) != 0 || S_ISREG(st.st_mode) ||
                          (S_ISCHR(st.st_mode) && !isatty(STDIN_FILENO));
    input->readable = event_new(iof->rt->base, STDIN_FILENO, input->always_ready ? 0 : EV_READ,
                                readable, input);
    input->foreground = evtimer_new(iof->rt->base, look_for_foreground, input);
    if (input->readable == NULL || input->foreground == NULL) {
        orte_iof_input_destroy(input);
        return NULL;
    }
    return input;
}

void orte_iof_input_destroy(orte_iof_input_t *input)
{
    if (input == NULL) {
        return;
    }
    while (input->targets != NULL) {
        target_remove(input->targets);
    }
    for (piece_t *piece; (piece = pop_piece(input)) != NULL;) {
        free(piece);
    }
    if (input->readable != NULL) {
        event_free(input->readable);
    }
    if (input->foreground != NULL) {
        event_free(input->foreground);
    }
    free(input);
}

int orte_iof_input_add(orte_iof_input_t *input, int fd)
{
    target_t *target = calloc(1, sizeof(*target));

    if (target == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    target->writable = event_new(input->iof->rt->base, fd, EV_WRITE, target_writable, target);
    if (target->writable == NULL) {
        free(target);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    target->input = input;
    target->fd = fd;
    target->next = input->targets;
    input->targets = target;
    return OPAL_SUCCESS;
}

void orte_iof_input_start(orte_iof_input_t *input)
{
    input->started = true;
    advance(input);
}

void orte_iof_input_continued(orte_iof_input_t *input)
{
    advance(input);
}
