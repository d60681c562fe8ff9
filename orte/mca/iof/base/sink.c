/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Sinks: write what can be written now, queue the rest, go on when the descriptor is ready. */
#include "orte/mca/iof/base/sink.h"

#include "opal/constants.h"
#include "orte/util/report.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

typedef enum {
    SINK_PLAIN,  /* regular file, /dev/null: never blocks */
    SINK_ASYNC,  /* our own open file description, non-blocking */
    SINK_SOCKET, /* shared description; send(MSG_DONTWAIT) */
    SINK_SHARED, /* could not be opened anew: small blocking writes when poll says ready */
} sink_kind_t;

struct orte_sink {
    int fd;
    bool own_fd;
    bool gone;
    bool failed; /* gone, though somebody would have read it */
    char *name;
    sink_kind_t kind;
    struct event *writable;
    struct evbuffer *queue;
    void (*drained)(void *);
    void *arg;
};

static sink_kind_t classify(orte_sink_t *sink, int fd)
{
    char path[64];
    struct stat st;

    if (fstat(fd, &st) != 0 || S_ISREG(st.st_mode) || S_ISBLK(st.st_mode) ||
        (S_ISCHR(st.st_mode) && !isatty(fd))) {
        return SINK_PLAIN;
    }
    if (S_ISSOCK(st.st_mode)) {
        return SINK_SOCKET;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int own = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (own < 0) {
        return SINK_SHARED;
    }
    sink->fd = own;
    sink->own_fd = true;
    return SINK_ASYNC;
}

/* One attempt. Returns bytes written, or -1 with errno (EAGAIN: not now). */
static ssize_t attempt(orte_sink_t *sink, const void *data, size_t size)
{
    switch (sink->kind) {
    case SINK_SOCKET:
        return send(sink->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    case SINK_SHARED:
        /* A pipe that polls writable has room for PIPE_BUF bytes. */
        return write(sink->fd, data, size < PIPE_BUF ? size : PIPE_BUF);
    default:
        return write(sink->fd, data, size);
    }
}

static void sink_lost(orte_sink_t *sink)
{
    sink->gone = true;
    evbuffer_drain(sink->queue, evbuffer_get_length(sink->queue));
    if (errno != EPIPE) {
        sink->failed = true;
        orte_report("can't write to %s, output is lost from here on: %s", sink->name, strerror(errno));
    }
}

/* Write until done or not possible now. Returns bytes consumed. */
static size_t write_some(orte_sink_t *sink, const char *data, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t rc = attempt(sink, data + done, size - done);
        if (rc > 0) {
            done += (size_t)rc;
            if (sink->kind == SINK_SHARED) {
                break;
            }
        } else if (rc < 0 && errno == EINTR) {
            continue;
        } else if (rc < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            break;
        } else {
            sink_lost(sink);
            break;
        }
    }
    return done;
}

static void writable(evutil_socket_t fd, short what, void *arg)
{
    orte_sink_t *sink = arg;

    (void)fd;
    (void)what;
    while (!sink->gone && evbuffer_get_length(sink->queue) > 0) {
        struct evbuffer_iovec piece;
        if (evbuffer_peek(sink->queue, -1, NULL, &piece, 1) < 1) {
            break;
        }
        size_t done = write_some(sink, piece.iov_base, piece.iov_len);
        if (!sink->gone) {
            evbuffer_drain(sink->queue, done);
        }
        if (done < piece.iov_len || sink->kind == SINK_SHARED) {
            break;
        }
    }
    if (evbuffer_get_length(sink->queue) == 0) {
        event_del(sink->writable);
    }
    if (evbuffer_get_length(sink->queue) < ORTE_SINK_LOW && sink->drained != NULL) {
        sink->drained(sink->arg);
    }
}

static orte_sink_t *sink_alloc(struct event_base *base, int fd, const char *name,
                               void (*drained)(void *), void *arg)
{
    orte_sink_t *sink = calloc(1, sizeof(*sink));

    if (sink == NULL) {
        return NULL;
    }
    sink->fd = fd;
    sink->name = strdup(name);
    sink->drained = drained;
    sink->arg = arg;
    sink->kind = classify(sink, fd);
    sink->queue = evbuffer_new();
    sink->writable = event_new(base, sink->fd, EV_WRITE | EV_PERSIST, writable, sink);
    if (sink->name == NULL || sink->queue == NULL || sink->writable == NULL) {
        orte_sink_destroy(sink);
        return NULL;
    }
    return sink;
}

orte_sink_t *orte_sink_create(struct event_base *base, int fd, void (*drained)(void *), void *arg)
{
    return sink_alloc(base, fd, fd == STDOUT_FILENO ? "standard output" : "standard error", drained,
                      arg);
}

orte_sink_t *orte_sink_open(struct event_base *base, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);

    if (fd < 0) {
        return NULL;
    }
    orte_sink_t *sink = sink_alloc(base, fd, path, NULL, NULL);
    if (sink == NULL || sink->fd != fd) {
        close(fd); /* failed, or opened anew (a named pipe) */
        if (sink == NULL) {
            errno = ENOMEM;
        }
    } else {
        sink->own_fd = true;
    }
    return sink;
}

void orte_sink_destroy(orte_sink_t *sink)
{
    if (sink == NULL) {
        return;
    }
    if (sink->writable != NULL) {
        event_free(sink->writable);
    }
    if (sink->queue != NULL) {
        evbuffer_free(sink->queue);
    }
    if (sink->own_fd) {
        close(sink->fd);
    }
    free(sink->name);
    free(sink);
}

int orte_sink_write(orte_sink_t *sink, const void *data, size_t size)
{
    size_t done = 0;

    if (sink->gone) {
        return OPAL_ERR_UNREACHABLE;
    }
    /* A shared descriptor is written only when poll says it may be, never at once. */
    if (evbuffer_get_length(sink->queue) == 0 && sink->kind != SINK_SHARED) {
        done = write_some(sink, data, size);
    }
    if (sink->gone) {
        return OPAL_ERR_UNREACHABLE;
    }
    if (done == size) {
        return OPAL_SUCCESS;
    }
    if (evbuffer_add(sink->queue, (const char *)data + done, size - done) != 0 ||
        event_add(sink->writable, NULL) != 0) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    return OPAL_SUCCESS;
}

void orte_sink_flush(orte_sink_t *sink)
{
    struct pollfd ready = {.fd = sink->fd, .events = POLLOUT};

    while (evbuffer_get_length(sink->queue) > 0 && poll(&ready, 1, 0) == 1 && ready.revents == POLLOUT) {
        writable(sink->fd, EV_WRITE, sink);
    }
}

size_t orte_sink_pending(const orte_sink_t *sink)
{
    return evbuffer_get_length(sink->queue);
}

bool orte_sink_failed(const orte_sink_t *sink)
{
    return sink->failed;
}
