/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Channels: from a process's pipe to sinks, with tags and time stamps in front of whole lines. */
#include "orte/mca/iof/base/internal.h"

#include "opal/constants.h"
#include "orte/runtime/daemons.h"
#include "orte/runtime/follow.h"
#include "orte/util/report.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Nobody reads our stdout or stderr any more: as in a shell pipe, the writer is to learn of it, unless
 * it has its file as well. */
static void console_lost(orte_iof_channel_t *channel)
{
    channel->console = NULL;
    channel->unread = channel->file == NULL;
    channel->iof->output_lost = true;
    if (channel->unread && channel->fd < 0) {
        orte_daemons_output_lost(channel->proc, channel->is_stderr);
    }
}

static void deliver_bytes(orte_iof_channel_t *channel, const void *data, size_t size)
{
    if (channel->iof->rt->index != 0) {
        orte_follow_output(channel->proc, channel->is_stderr, data, size);
        return;
    }
    if (channel->console != NULL &&
        orte_sink_write(channel->console, data, size) == OPAL_ERR_UNREACHABLE) {
        console_lost(channel);
    }
    if (channel->file != NULL) {
        orte_sink_write(channel->file, data, size);
    }
}

/* "2026-11-20T11:15:02.123456 [1,0]<stdout>: " */
static int format_prefix(const orte_iof_channel_t *channel, char *text, size_t size)
{
    const orte_job_t *job = channel->proc->job;
    size_t used = 0;

    if (job->io.timestamp) {
        struct timespec now;
        struct tm local;
        clock_gettime(CLOCK_REALTIME, &now);
        localtime_r(&now.tv_sec, &local);
        used = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &local);
        used += (size_t)snprintf(text + used, size - used, ".%06ld ", now.tv_nsec / 1000);
    }
    if (job->io.tag == ORTE_TAG_RANK && job->number > 1) {
        used += (size_t)snprintf(text + used, size - used, "[%d,%d] ", job->number,
                                 channel->proc->rank);
    } else if (job->io.tag == ORTE_TAG_RANK) {
        used += (size_t)snprintf(text + used, size - used, "[%d] ", channel->proc->rank);
    } else if (job->io.tag == ORTE_TAG_FULL) {
        used += (size_t)snprintf(text + used, size - used, "[%d,%d]<%s>: ", job->number,
                                 channel->proc->rank, channel->name);
    }
    return (int)used;
}

/* Hand on all whole lines of channel->line as one piece, each with its prefix. `all`: the rest
 * too. */
static void deliver_lines(orte_iof_channel_t *channel, bool all)
{
    struct evbuffer *ready = evbuffer_new();
    char prefix[128];
    int length = format_prefix(channel, prefix, sizeof(prefix));

    if (ready == NULL) {
        return; /* stays in channel->line for the next attempt */
    }
    for (;;) {
        size_t eol_size = 0;
        struct evbuffer_ptr end =
            evbuffer_search_eol(channel->line, NULL, &eol_size, EVBUFFER_EOL_LF);
        size_t held = evbuffer_get_length(channel->line);
        bool whole = end.pos >= 0;
        if (!whole && (held == 0 || (!all && held < ORTE_IOF_LINE_MAX))) {
            break;
        }
        evbuffer_add(ready, prefix, (size_t)length);
        evbuffer_remove_buffer(channel->line, ready, whole ? (size_t)end.pos + 1 : held);
        if (!whole) {
            evbuffer_add(ready, "\n", 1);
        }
    }
    size_t size = evbuffer_get_length(ready);
    if (size > 0) {
        deliver_bytes(channel, evbuffer_pullup(ready, -1), size);
    }
    evbuffer_free(ready);
}

/* Bytes that the process wrote for whoever reads its output. */
static void deliver_plain(void *context, const char *data, size_t size)
{
    orte_iof_channel_t *channel = context;

    if (channel->line == NULL) {
        deliver_bytes(channel, data, size);
    } else if (evbuffer_add(channel->line, data, size) == 0) {
        deliver_lines(channel, false);
    }
}

static const opal_help_sink_t help_sink = {
    .plain = deliver_plain,
    .message = orte_iof_help_message,
};

void orte_iof_channel_close(orte_iof_channel_t *channel)
{
    if (!channel->open) {
        return;
    }
    channel->open = false;
    if (channel->help != NULL) {
        opal_help_filter_flush(channel->help, &help_sink, channel);
        free(channel->help);
        channel->help = NULL;
    }
    if (channel->line != NULL) {
        deliver_lines(channel, true);
        evbuffer_free(channel->line);
        channel->line = NULL;
    }
    if (channel->fd >= 0) {
        event_free(channel->event);
        close(channel->fd);
        channel->fd = -1;
    }
    channel->iof->file_failed |= channel->file != NULL && orte_sink_failed(channel->file);
    orte_sink_destroy(channel->file);
    channel->file = NULL;
}

void orte_iof_channel_feed(orte_iof_channel_t *channel, const void *data, size_t size)
{
    if (channel->help != NULL) {
        opal_help_filter_feed(channel->help, data, size, &help_sink, channel);
    } else {
        deliver_plain(channel, data, size);
    }
}

/* One read; so many bytes. 0: there is nothing more now, or ever (then the channel is closed). */
static size_t take(orte_iof_channel_t *channel)
{
    ssize_t got;

    do {
        got = read(channel->fd, channel->iof->chunk, ORTE_IOF_READ);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN) {
        return 0;
    }
    if (got <= 0) {
        orte_iof_channel_close(channel); /* end of file; a terminal's master says EIO */
        return 0;
    }
    orte_iof_channel_feed(channel, channel->iof->chunk, (size_t)got);
    if (channel->unread) {
        orte_iof_channel_close(channel);
        return 0;
    }
    return (size_t)got;
}

/* Should this channel be read on? */
static bool has_room(const orte_iof_channel_t *channel)
{
    if (channel->iof->rt->index != 0) {
        return orte_follow_has_room(channel->iof->rt);
    }
    return channel->console == NULL || orte_sink_pending(channel->console) <= ORTE_SINK_HIGH;
}

static void readable(evutil_socket_t fd, short what, void *arg)
{
    orte_iof_channel_t *channel = arg;

    (void)fd;
    (void)what;
    if (take(channel) > 0 && !has_room(channel)) {
        event_del(channel->event);
        channel->paused = true;
    }
}

int orte_iof_channel_open(orte_iof_channel_t *channel, int fd)
{
    const orte_io_options_t *io = &channel->proc->job->io;
    bool is_last = channel->iof->rt->index == 0; /* a daemon only hands on */
    bool has_help = is_last && (channel->is_stderr || io->merge_stderr);

    if (has_help && (channel->help = calloc(1, sizeof(*channel->help))) == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (is_last && (io->tag != ORTE_TAG_NONE || io->timestamp)) {
        channel->line = evbuffer_new();
        if (channel->line == NULL) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
    }
    channel->open = true;
    if (fd < 0) {
        return OPAL_SUCCESS;
    }
    channel->event =
        event_new(channel->iof->rt->base, fd, EV_READ | EV_PERSIST, readable, channel);
    if (channel->event == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    channel->fd = fd;
    return OPAL_SUCCESS;
}

void orte_iof_channel_start(orte_iof_channel_t *channel)
{
    if (channel->fd >= 0) {
        event_add(channel->event, NULL);
    }
}

void orte_iof_channel_resume(orte_iof_channel_t *channel)
{
    if (channel->fd >= 0 && channel->paused && has_room(channel)) { /* another sink's room is no use */
        channel->paused = false;
        event_add(channel->event, NULL);
    }
}

/* All that the process has written is in the pipe. Others, which have left its group and live on with another job, may
 * write into it for ever. */
void orte_iof_channel_finish(orte_iof_channel_t *channel)
{
    enum { TERMINAL_ROOM = 1024 * 1024 }; /* more than any has */
    int room = channel->fd < 0 ? 0 : fcntl(channel->fd, F_GETPIPE_SZ);
    size_t left = room < 0 ? TERMINAL_ROOM : (size_t)room, got;

    while (channel->fd >= 0 && left > 0 && (got = take(channel)) > 0) {
        left -= got < left ? got : left;
    }
    orte_iof_channel_close(channel);
}
