/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection after its greeting.
 *
 * Frames are coded and put into one scratch buffer, as many as are there, and written with one
 * call; what the kernel does not take is kept. Control goes first at every frame; the kernel is
 * kept from taking more than NOTSENT_LOW bytes that it can't send yet, since control can't overtake
 * these.
 */
#include "orte/oob/internal.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    NOTSENT_LOW = 128 * 1024,
    WRITES_PER_TURN = 8, /* then others have their turn */
};

static void readable(evutil_socket_t fd, short what, void *arg);
static void writable(evutil_socket_t fd, short what, void *arg);

/* ---- Making and ending ---- */

static void set_option(int fd, int level, int option, int64_t value)
{
    int number = (int)value;

    /* What an old kernel does not know costs latency, or seconds until a loss is seen. */
    (void)setsockopt(fd, level, option, &number, sizeof(number));
}

/* The kernel probes an idle neighbour once per second (or rarer, with a long limit), so that an
 * acknowledgment of some kind comes at that pace as long as the other host lives. Not
 * TCP_USER_TIMEOUT: it would also end connections to a process that is stopped or slow. */
static void set_options(int fd)
{
    int64_t limit = orte_oob_params.heartbeat_s, pace = limit < 8 ? 1 : limit / 4;

    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, NOTSENT_LOW);
    if (limit > 0) {
        set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
        set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, pace);
        set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, pace);
        set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, limit / pace);
    }
}

int oob_link_up(orte_oob_t *oob, uint32_t index, int fd, const oob_speaker_t *speaker,
                const uint8_t tx_key[OPAL_SHA256_BYTES], const uint8_t rx_key[OPAL_SHA256_BYTES])
{
    oob_link_t *link = oob_link_get(oob, index);

    if (link == NULL || link->fd >= 0) {
        close(fd);
        return link == NULL ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_ERR_EXISTS;
    }
    struct event *in = event_new(oob->base, fd, EV_READ | EV_PERSIST, readable, link);
    struct event *out = event_new(oob->base, fd, EV_WRITE, writable, link);
    if (in == NULL || out == NULL || event_add(in, NULL) != 0) {
        if (in != NULL) {
            event_free(in);
        }
        if (out != NULL) {
            event_free(out);
        }
        close(fd);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    set_options(fd);
    link->fd = fd;
    link->readable = in;
    link->writable = out;
    link->speaker = *speaker;
    opal_hmac_sha256_init(&link->tx_key, tx_key, OPAL_SHA256_BYTES);
    opal_hmac_sha256_init(&link->rx_key, rx_key, OPAL_SHA256_BYTES);
    oob_tell_lost(link);
    oob_link_kick(link);
    if (oob->config.on_connected != NULL) {
        oob->config.on_connected(oob->config.arg, index, link->speaker.host);
    }
    return OPAL_SUCCESS;
}

void oob_link_destroy(oob_link_t *link)
{
    opal_list_item_t *item;

    if (link == NULL) {
        return;
    }
    for (int cls = 0; cls < ORTE_OOB_CLASSES; cls++) {
        while ((item = opal_list_pop(&link->queue[cls])) != NULL) {
            oob_out_destroy(OPAL_CONTAINER_OF(item, oob_out_t, item));
        }
    }
    if (link->fd >= 0) {
        event_free(link->readable);
        event_free(link->writable);
        close(link->fd);
    }
    explicit_bzero(&link->tx_key, sizeof(link->tx_key));
    explicit_bzero(&link->rx_key, sizeof(link->rx_key));
    free(link->tx);
    free(link->rx);
    free(link);
}

int64_t oob_link_silence(const oob_link_t *link)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);

    if (link->fd < 0 || getsockopt(link->fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0) {
        return 0;
    }
    /* Something of ours is out: data, or at least the second probe (the first may just have gone,
     * long after the last acknowledgment, where the other side's window is closed). */
    bool waiting = (info.tcpi_unacked > 0 && info.tcpi_retransmits > 0) || info.tcpi_probes > 1;
    return waiting ? info.tcpi_last_ack_recv : 0;
}

/* ---- Writing ---- */

void oob_link_kick(oob_link_t *link)
{
    if (link->fd >= 0) {
        event_active(link->writable, EV_WRITE, 1);
    }
}

void oob_link_send(oob_link_t *link, orte_oob_class_t cls, oob_out_t *out)
{
    if (link->said_goodbye) {
        oob_out_destroy(out);
        return;
    }
    bool was_empty = opal_list_is_empty(&link->queue[ORTE_OOB_CONTROL]) &&
                     opal_list_is_empty(&link->queue[ORTE_OOB_STREAM]);
    opal_list_append(&link->queue[cls], &out->item);
    link->queued[cls] += out->size;
    if (was_empty && link->tx == NULL) {
        oob_link_kick(link);
    }
}

/* Code a frame at the end of the scratch buffer; returns its size. */
static size_t put_frame(oob_link_t *link, uint8_t *at, const oob_frame_t *frame,
                        const uint8_t *bytes)
{
    uint8_t *body = at + OOB_FRAME_HEADER;

    oob_frame_write(at, frame);
    if (frame->len > 0) {
        memcpy(body, bytes, frame->len);
    }
    oob_frame_code(&link->tx_key, link->tx_count++, at, body, frame->len, body + frame->len);
    return OOB_FRAME_HEADER + frame->len + OOB_FRAME_CODE;
}

/* The next frame of the first message in the queue. */
static size_t put_next(oob_link_t *link, orte_oob_class_t cls, uint8_t *at)
{
    oob_out_t *out =
        OPAL_CONTAINER_OF(opal_list_first(&link->queue[cls]), oob_out_t, item);
    oob_frame_t frame = out->frame;
    size_t left = out->size - out->done;
    const uint8_t *bytes = out->payload == NULL ? NULL : out->payload->data + out->done;

    frame.len = (uint32_t)(left < OOB_FRAME_LEN_MAX ? left : OOB_FRAME_LEN_MAX);
    if (frame.type == OOB_DATA && !out->relayed) {
        frame.flags |= (out->done == 0 ? OOB_FLAG_FIRST : 0) |
                       (frame.len == left ? OOB_FLAG_LAST : 0);
    }
    size_t size = put_frame(link, at, &frame, bytes);
    out->done += frame.len;
    link->queued[cls] -= frame.len;
    if (out->done == out->size) {
        opal_list_remove(&out->item);
        oob_out_destroy(out);
    }
    return size;
}

/* Fill the scratch buffer; returns how much. The goodbye comes when all else has gone. */
static size_t fill(oob_link_t *link)
{
    orte_oob_t *oob = link->oob;
    size_t size = 0;

    while (OOB_SCRATCH - size >= OOB_FRAME_MAX) {
        if (!opal_list_is_empty(&link->queue[ORTE_OOB_CONTROL])) {
            size += put_next(link, ORTE_OOB_CONTROL, oob->scratch + size);
        } else if (!opal_list_is_empty(&link->queue[ORTE_OOB_STREAM])) {
            size += put_next(link, ORTE_OOB_STREAM, oob->scratch + size);
        } else if (oob->leave.begun && oob->held_bytes == 0 && !link->said_goodbye) {
            oob_frame_t goodbye = {.type = OOB_GOODBYE, .from = oob->config.index,
                                   .to = link->index};
            size += put_frame(link, oob->scratch + size, &goodbye, NULL);
            link->said_goodbye = true;
        } else {
            break;
        }
    }
    return size;
}

/* Keep what was not written. */
static bool keep(oob_link_t *link, const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size);

    if (copy == NULL) {
        return false;
    }
    memcpy(copy, data, size);
    free(link->tx);
    link->tx = copy;
    link->tx_at = 0;
    link->tx_size = size;
    return true;
}

typedef enum { WROTE_ALL, WROTE_SOME, WROTE_FAILED } wrote_t;

/* One write of what was left over or is in the queues. */
static wrote_t write_once(oob_link_t *link, bool *idle)
{
    const uint8_t *data = link->tx == NULL ? link->oob->scratch : link->tx + link->tx_at;
    size_t size = link->tx == NULL ? fill(link) : link->tx_size - link->tx_at;

    *idle = size == 0;
    if (size == 0) {
        return WROTE_ALL;
    }
    ssize_t done = send(link->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (done < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
        return WROTE_FAILED;
    }
    done = done < 0 ? 0 : done;
    if ((size_t)done == size) {
        free(link->tx);
        link->tx = NULL;
        return WROTE_ALL;
    }
    if (link->tx != NULL) {
        link->tx_at += (size_t)done;
        return WROTE_SOME;
    }
    errno = ENOMEM;
    return keep(link, data + done, size - (size_t)done) ? WROTE_SOME : WROTE_FAILED;
}

static void lost_with_errno(oob_link_t *link, int error)
{
    const char *own = link->oob->speaker.host, *host = link->speaker.host;
    char sentence[ORTE_OOB_SENTENCE];
    orte_oob_loss_t why = ORTE_OOB_DIED;

    if (error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH ||
        error == EHOSTDOWN || error == ENETDOWN) {
        why = ORTE_OOB_SILENT;
        snprintf(sentence, sizeof(sentence), "host %s no longer answers host %s: %s", host, own,
                 strerror(error));
    } else if (error == ENOMEM || error == ENOBUFS) {
        why = ORTE_OOB_BROKEN;
        snprintf(sentence, sizeof(sentence), "host %s has no memory for messages with host %s",
                 own, host);
    } else if (error == 0 || error == ECONNRESET || error == EPIPE) {
        snprintf(sentence, sizeof(sentence), "the connection of host %s to host %s was closed: "
                 "the process there has ended", own, host);
    } else {
        snprintf(sentence, sizeof(sentence), "the connection of host %s to host %s failed: %s",
                 own, host, strerror(error));
    }
    oob_link_lost(link, why, sentence);
}

static void writable(evutil_socket_t fd, short what, void *arg)
{
    oob_link_t *link = arg;
    orte_oob_t *oob = link->oob;
    bool idle = false;

    (void)fd;
    (void)what;
    if (link->no_memory) {
        lost_with_errno(link, ENOMEM);
        return;
    }
    for (int turn = 0; !idle; turn++) {
        if (turn == WRITES_PER_TURN) {
            event_add(link->writable, NULL);
            return;
        }
        switch (write_once(link, &idle)) {
        case WROTE_SOME:
            event_add(link->writable, NULL);
            return;
        case WROTE_FAILED:
            lost_with_errno(link, errno);
            return;
        case WROTE_ALL:
            break;
        }
    }
    if (link->said_goodbye) {
        shutdown(link->fd, SHUT_WR);
    }
    oob_leave_progress(oob);
}

/* ---- Reading ---- */

static void broken(oob_link_t *link, const char *what)
{
    char sentence[ORTE_OOB_SENTENCE];

    snprintf(sentence, sizeof(sentence), "host %s got from host %s %s", link->oob->speaker.host,
             link->speaker.host, what);
    oob_link_lost(link, ORTE_OOB_BROKEN, sentence);
}

typedef enum { FRAME_DONE, FRAME_PART, FRAME_WRONG, FRAME_GOODBYE } frame_result_t;

/* The frame at the start of `data`; *used: its size. */
static frame_result_t take_frame(oob_link_t *link, const uint8_t *data, size_t size, size_t *used)
{
    uint8_t code[OOB_FRAME_CODE];
    oob_frame_t frame;
    uint32_t len;

    if (size < OOB_FRAME_HEADER) {
        return FRAME_PART;
    }
    if (!oob_frame_len(data, &len)) {
        return FRAME_WRONG;
    }
    *used = OOB_FRAME_HEADER + len + OOB_FRAME_CODE;
    if (size < *used) {
        return FRAME_PART;
    }
    const uint8_t *bytes = data + OOB_FRAME_HEADER;
    oob_frame_code(&link->rx_key, link->rx_count++, data, bytes, len, code);
    if (!opal_equal_const_time(code, bytes + len, sizeof(code)) ||
        !oob_frame_read(data, link->oob->config.count, orte_oob_params.message_max, &frame)) {
        return FRAME_WRONG;
    }
    if (frame.type == OOB_GOODBYE) {
        return frame.from == link->index && frame.to == link->oob->config.index ? FRAME_GOODBYE
                                                                                : FRAME_WRONG;
    }
    return oob_receive(link, &frame, bytes) ? FRAME_DONE : FRAME_WRONG;
}

/* All whole frames in the scratch buffer; the rest is kept. False: the link is gone. */
static bool take_frames(oob_link_t *link, size_t size)
{
    const uint8_t *data = link->oob->scratch;
    char sentence[ORTE_OOB_SENTENCE];
    size_t used = 0;
    frame_result_t result;

    while ((result = take_frame(link, data, size, &used)) == FRAME_DONE) {
        data += used;
        size -= used;
    }
    if (result == FRAME_GOODBYE) {
        snprintf(sentence, sizeof(sentence), "the daemon on host %s has left",
                 link->speaker.host);
        oob_link_lost(link, ORTE_OOB_LEFT, sentence);
        return false;
    }
    if (result == FRAME_WRONG) {
        broken(link, "a message that is damaged or not of its daemon");
        return false;
    }
    if (size > 0) {
        link->rx = malloc(size);
        if (link->rx == NULL) {
            lost_with_errno(link, ENOMEM);
            return false;
        }
        memcpy(link->rx, data, size);
        link->rx_size = size;
    }
    return true;
}

static void readable(evutil_socket_t fd, short what, void *arg)
{
    oob_link_t *link = arg;
    uint8_t *scratch = link->oob->scratch;
    size_t have = link->rx == NULL ? 0 : link->rx_size;

    (void)what;
    ssize_t got = recv(fd, scratch + have, OOB_SCRATCH - have, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        return;
    }
    if (got <= 0) {
        lost_with_errno(link, got == 0 ? 0 : errno);
        return;
    }
    if (have > 0) {
        memcpy(scratch, link->rx, have);
        free(link->rx);
        link->rx = NULL;
    }
    take_frames(link, have + (size_t)got);
}
