/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Our stdin, to one process or to all. One chunk is read, written to every target, and only when
 * all have taken it the next one is read: the slowest reader sets the pace and memory is one
 * chunk.
 */
#include "orte/mca/iof/base/internal.h"

#include "opal/constants.h"
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
    int fd;
    struct event *writable;
    size_t done; /* bytes of the chunk written */
} target_t;

struct orte_iof_input {
    orte_iof_t *iof;
    struct event *readable;
    bool always_ready; /* a regular file: poll is of no use */
    bool waiting;      /* the read event is armed */
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
    event_free(target->writable);
    close(target->fd);
    free(target);
}

/* A terminal may be read only by the foreground group; others would be stopped for trying. */
static bool in_background(void)
{
    pid_t foreground = tcgetpgrp(STDIN_FILENO);

    return foreground > 0 && foreground != getpgrp();
}

static void arm(orte_iof_input_t *input)
{
    if (input->targets == NULL || input->waiting || in_background()) {
        return;
    }
    input->waiting = true;
    if (input->always_ready) {
        event_active(input->readable, EV_READ, 1);
    } else {
        event_add(input->readable, NULL);
    }
}

/* All targets have the chunk: on to the next. */
static void advance(orte_iof_input_t *input)
{
    for (target_t *target = input->targets; target != NULL; target = target->next) {
        if (target->done < input->size) {
            return;
        }
    }
    arm(input);
}

/* Write what the target can take now; false if it is gone. */
static bool push(target_t *target)
{
    orte_iof_input_t *input = target->input;

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
        target_remove(input->targets);
    }
}

static void readable(evutil_socket_t fd, short what, void *arg)
{
    orte_iof_input_t *input = arg;

    (void)what;
    input->waiting = false;
    if (in_background()) {
        return; /* put in the background since; orte_iof_continued() looks again */
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
    for (target_t *target = input->targets, *next; target != NULL; target = next) {
        next = target->next;
        target->done = 0;
        push(target);
    }
    advance(input);
}

orte_iof_input_t *orte_iof_input_create(orte_iof_t *iof)
{
    orte_iof_input_t *input = calloc(1, sizeof(*input));
    struct stat st;

    if (input == NULL) {
        return NULL;
    }
    input->iof = iof;
    input->always_ready = fstat(STDIN_FILENO, &st) != 0 || S_ISREG(st.st_mode) ||
                          (S_ISCHR(st.st_mode) && !isatty(STDIN_FILENO));
    input->readable = event_new(iof->rt->base, STDIN_FILENO, input->always_ready ? 0 : EV_READ,
                                readable, input);
    if (input->readable == NULL) {
        free(input);
        return NULL;
    }
    return input;
}

void orte_iof_input_destroy(orte_iof_input_t *input)
{
    if (input == NULL) {
        return;
    }
    close_all(input);
    event_free(input->readable);
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
    advance(input);
}

void orte_iof_input_continued(orte_iof_input_t *input)
{
    advance(input);
}
