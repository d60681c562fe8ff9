/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What both sides of a greeting have in common: bytes come in until a message is whole, within one
 * time limit for all of it. */
#include "orte/oob/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A whole message, or a whole head. False: the greeting may be gone. */
static bool advance(oob_greeting_t *greeting)
{
    oob_greeting_type_t type;
    size_t len;
    int rc = oob_head_read(greeting->in, greeting->oob->speaker.release, &type, &len,
                           &greeting->speaker);

    if (rc != OPAL_SUCCESS) {
        greeting->failed(greeting, rc, "it speaks another language");
        return false;
    }
    if ((greeting->expected & 1u << type) == 0) {
        greeting->failed(greeting, OPAL_ERR_BAD_PARAM, "it speaks out of turn");
        return false;
    }
    if (greeting->have < len) {
        greeting->need = len;
        return true;
    }
    greeting->have = 0;
    greeting->need = OOB_HEAD_BYTES;
    greeting->message(greeting, type);
    return false;
}

static void ready(evutil_socket_t fd, short what, void *arg)
{
    oob_greeting_t *greeting = arg;

    if (what & EV_WRITE) {
        greeting->connected(greeting);
        return;
    }
    ssize_t got = recv(fd, greeting->in + greeting->have, greeting->need - greeting->have,
                       MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        return;
    }
    if (got <= 0) {
        greeting->failed(greeting, OPAL_ERR_UNREACHABLE,
                         got == 0 ? "it closed the connection" : strerror(errno));
        return;
    }
    greeting->have += (size_t)got;
    if (greeting->have == greeting->need) {
        advance(greeting);
    }
}

static void expired(evutil_socket_t fd, short what, void *arg)
{
    oob_greeting_t *greeting = arg;

    (void)fd;
    (void)what;
    greeting->failed(greeting, OPAL_ERR_TIMEOUT, "no answer");
}

oob_greeting_t *oob_greeting_create(orte_oob_t *oob, int fd, short events, int64_t limit_ms)
{
    oob_greeting_t *greeting = calloc(1, sizeof(*greeting));
    struct timeval limit = oob_timeval(limit_ms);

    if (greeting == NULL) {
        close(fd);
        return NULL;
    }
    opal_list_item_init(&greeting->item);
    greeting->oob = oob;
    greeting->fd = fd;
    greeting->index = ORTE_OOB_NONE;
    greeting->need = OOB_HEAD_BYTES;
    greeting->event = event_new(oob->base, fd, events | EV_PERSIST, ready, greeting);
    greeting->timer = event_new(oob->base, -1, 0, expired, greeting);
    if (greeting->event == NULL || greeting->timer == NULL ||
        event_add(greeting->event, NULL) != 0 || event_add(greeting->timer, &limit) != 0) {
        oob_greeting_destroy(greeting);
        return NULL;
    }
    return greeting;
}

bool oob_greeting_listen(oob_greeting_t *greeting)
{
    event_free(greeting->event);
    greeting->event =
        event_new(greeting->oob->base, greeting->fd, EV_READ | EV_PERSIST, ready, greeting);
    return greeting->event != NULL && event_add(greeting->event, NULL) == 0;
}

void oob_greeting_destroy(oob_greeting_t *greeting)
{
    if (opal_list_item_is_linked(&greeting->item)) {
        opal_list_remove(&greeting->item);
    }
    if (greeting->event != NULL) {
        event_free(greeting->event);
    }
    if (greeting->timer != NULL) {
        event_free(greeting->timer);
    }
    if (greeting->fd >= 0) {
        close(greeting->fd);
    }
    free(greeting);
}

bool oob_greeting_send(oob_greeting_t *greeting, const uint8_t *data, size_t size)
{
    /* A fresh socket has room for a greeting. */
    return send(greeting->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size;
}

int oob_greeting_finish(oob_greeting_t *greeting, char tx_role)
{
    orte_oob_t *oob = greeting->oob;
    uint8_t tx_key[OPAL_SHA256_BYTES], rx_key[OPAL_SHA256_BYTES];
    oob_speaker_t speaker = greeting->speaker;
    uint32_t index = greeting->index;
    int fd = greeting->fd;

    oob_mac(oob->config.key, tx_role, greeting->hello, greeting->challenge, OOB_ACCEPTED, tx_key);
    oob_mac(oob->config.key, tx_role == 'i' ? 'a' : 'i', greeting->hello, greeting->challenge,
            OOB_ACCEPTED, rx_key);
    greeting->fd = -1;
    oob_greeting_destroy(greeting);
    int rc = oob_link_up(oob, index, fd, &speaker, tx_key, rx_key);
    explicit_bzero(tx_key, sizeof(tx_key));
    explicit_bzero(rx_key, sizeof(rx_key));
    return rc;
}

void oob_version_sentence(const orte_oob_t *oob, const oob_speaker_t *other,
                          char text[ORTE_OOB_SENTENCE])
{
    snprintf(text, ORTE_OOB_SENTENCE,
             "host %s has Hawser %s, host %s has Hawser %s%s: install one version on all hosts, or "
             "name its place by --prefix", oob->speaker.host, oob->speaker.release, other->host,
             other->release,
             strcmp(other->release, oob->speaker.release) == 0 ? " of another build" : "");
}
