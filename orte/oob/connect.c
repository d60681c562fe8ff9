/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reaching the parent: one attempt per address, begun one after the other at short intervals, all
 * going on until one of them meets somebody who knows the key and is the parent. Only then the
 * others are given up and we prove ourselves there, so that the parent sees one child once.
 */
#include "orte/oob/internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { INTERVAL_MS = 250 };

static void begin_next(orte_oob_t *oob);

/* ---- Contact texts ---- */

/* One address of the list, "1.2.3.4" or "[::1]"; *text moves behind it. */
static bool parse_address(const char **text, opal_net_addr_t *addr)
{
    const bool bracket = **text == '[';
    const char *start = *text + bracket;
    size_t len = strcspn(start, bracket ? "]" : ",:");
    char host[INET6_ADDRSTRLEN];

    if (len >= sizeof(host)) {
        return false;
    }
    memcpy(host, start, len);
    host[len] = '\0';
    *text = start + len;
    if (bracket) {
        if (**text != ']') {
            return false;
        }
        ++*text;
    }
    *addr = (opal_net_addr_t){.family = bracket ? AF_INET6 : AF_INET,
                              .prefix = bracket ? 128 : 32};
    return inet_pton(addr->family, host, addr->bytes) == 1;
}

static bool parse_port(const char *text, uint16_t *port)
{
    char *end;

    if (*text < '0' || *text > '9') {
        return false;
    }
    unsigned long number = strtoul(text, &end, 10);
    *port = (uint16_t)number;
    return *end == '\0' && number > 0 && number <= UINT16_MAX;
}

/* "addr,addr:port". */
static int parse_contact(const char *text, oob_address_t **addresses, size_t *count)
{
    size_t room = 1;
    uint16_t port;

    for (const char *p = text; *p != '\0'; p++) {
        room += *p == ',';
    }
    oob_address_t *list = calloc(room, sizeof(*list));
    if (list == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    *count = 0;
    while (*count < room && parse_address(&text, &list[*count].addr)) {
        ++*count;
        if (*text != ',') {
            break;
        }
        text++;
    }
    if (*count < room || *text != ':' || !parse_port(text + 1, &port)) {
        free(list);
        return OPAL_ERR_PARSE;
    }
    for (size_t i = 0; i < *count; i++) {
        list[i].port = port;
    }
    *addresses = list;
    return OPAL_SUCCESS;
}

/* ---- Attempts ---- */

/* "10.0.0.1 port 4000: connection refused; ..." */
static void note(orte_oob_t *oob, const char *address, const char *what)
{
    char *text = oob->connector.sentence;
    size_t used = strlen(text);

    snprintf(text + used, sizeof(oob->connector.sentence) - used, "%s%s: %s",
             used == 0 ? "" : "; ", address, what);
}

static void give_up(orte_oob_t *oob)
{
    oob_connector_t *connector = &oob->connector;
    char sentence[ORTE_OOB_SENTENCE];
    uint32_t parent = orte_oob_tree_parent(oob->config.index, oob->config.radix);
    char name[32] = "mpirun";

    event_del(connector->timer);
    if (parent != 0) {
        snprintf(name, sizeof(name), "daemon %u", parent);
    }
    if (connector->rc == OPAL_ERR_NOT_SUPPORTED) {
        snprintf(sentence, sizeof(sentence), "%s", connector->sentence);
    } else {
        snprintf(sentence, sizeof(sentence),
                 "host %s can't connect to %s (%.*s): check the firewalls between the hosts "
                 "(parameter oob_port_range) and which networks are used (net_include, "
                 "net_exclude)", oob->speaker.host, name, ORTE_OOB_SENTENCE - 300,
                 connector->sentence);
    }
    if (oob->config.on_connect_failed != NULL) {
        oob->config.on_connect_failed(oob->config.arg, connector->rc, sentence);
    }
}

/* After an attempt has ended: another one, or was it the last? */
static void go_on(orte_oob_t *oob)
{
    oob_connector_t *connector = &oob->connector;

    if (connector->begun < connector->count && !connector->proved) {
        begin_next(oob);
    } else if (opal_list_is_empty(&connector->attempts)) {
        give_up(oob);
    }
}

static void attempt_failed(oob_greeting_t *attempt, int rc, const char *what)
{
    orte_oob_t *oob = attempt->oob;
    oob_connector_t *connector = &oob->connector;

    if (rc == OPAL_ERR_NOT_SUPPORTED) {
        connector->rc = rc;
        oob_version_sentence(oob, &attempt->speaker, connector->sentence);
    } else if (connector->rc != OPAL_ERR_NOT_SUPPORTED) {
        note(oob, attempt->address, what);
    }
    oob_greeting_destroy(attempt);
    go_on(oob);
}

static void others_end(orte_oob_t *oob, oob_greeting_t *winner)
{
    opal_list_item_t *item, *next;

    OPAL_LIST_FOREACH(item, next, &oob->connector.attempts)
    {
        if (item != &winner->item) {
            oob_greeting_destroy(OPAL_CONTAINER_OF(item, oob_greeting_t, item));
        }
    }
}

static void attempt_challenge(oob_greeting_t *attempt)
{
    orte_oob_t *oob = attempt->oob;
    uint8_t mac[OPAL_SHA256_BYTES], out[OOB_PROOF_BYTES];
    oob_challenge_t challenge;

    memcpy(attempt->challenge, attempt->in, OOB_CHALLENGE_BYTES);
    oob_challenge_read(attempt->challenge, &challenge);
    oob_mac(oob->config.key, 'A', attempt->hello, attempt->challenge, OOB_ACCEPTED, mac);
    if (challenge.from != attempt->index || challenge.to != oob->config.index ||
        !opal_equal_const_time(mac, attempt->challenge + OOB_CHALLENGE_MAC_AT, sizeof(mac))) {
        attempt_failed(attempt, OPAL_ERR_PERMISSION, "it does not know the job's key");
        return;
    }
    oob->connector.proved = true;
    event_del(oob->connector.timer);
    others_end(oob, attempt);
    oob_mac(oob->config.key, 'I', attempt->hello, attempt->challenge, OOB_ACCEPTED, mac);
    oob_proof_write(out, &oob->speaker, mac);
    attempt->expected = 1u << OOB_VERDICT;
    if (!oob_greeting_send(attempt, out, sizeof(out))) {
        attempt_failed(attempt, OPAL_ERR_UNREACHABLE, strerror(errno));
    }
}

static void attempt_verdict(oob_greeting_t *attempt)
{
    orte_oob_t *oob = attempt->oob;
    uint8_t mac[OPAL_SHA256_BYTES];
    oob_verdict_t verdict;

    if (oob_verdict_read(attempt->in, &verdict) != OPAL_SUCCESS) {
        attempt_failed(attempt, OPAL_ERR_BAD_PARAM, "its answer is damaged");
        return;
    }
    if (verdict != OOB_ACCEPTED) {
        attempt_failed(attempt, OPAL_ERR_PERMISSION, oob_verdict_text(verdict));
        return;
    }
    oob_mac(oob->config.key, 'V', attempt->hello, attempt->challenge, verdict, mac);
    if (!oob->connector.proved ||
        !opal_equal_const_time(mac, attempt->in + OOB_HEAD_BYTES + 8, sizeof(mac))) {
        attempt_failed(attempt, OPAL_ERR_PERMISSION, "it does not know the job's key");
        return;
    }
    if (oob_greeting_finish(attempt, 'i') != OPAL_SUCCESS) {
        note(oob, "the parent", "out of memory");
        give_up(oob);
    }
}

static void attempt_message(oob_greeting_t *attempt, oob_greeting_type_t type)
{
    if (type == OOB_CHALLENGE) {
        attempt_challenge(attempt);
    } else {
        attempt_verdict(attempt);
    }
}

static void attempt_connected(oob_greeting_t *attempt)
{
    orte_oob_t *oob = attempt->oob;
    oob_hello_t hello = {.from = oob->config.index, .to = attempt->index,
                         .radix = oob->config.radix};
    int error = 0;
    socklen_t len = sizeof(error);

    if (getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0) {
        attempt_failed(attempt, OPAL_ERR_UNREACHABLE, strerror(error));
        return;
    }
    if (getrandom(hello.nonce, sizeof(hello.nonce), 0) != OOB_NONCE_BYTES) {
        attempt_failed(attempt, OPAL_ERR_OUT_OF_RESOURCE, "the system gives no random numbers");
        return;
    }
    oob_hello_write(attempt->hello, &oob->speaker, &hello);
    if (!oob_greeting_listen(attempt)) {
        attempt_failed(attempt, OPAL_ERR_OUT_OF_RESOURCE, "out of memory");
    } else if (!oob_greeting_send(attempt, attempt->hello, OOB_HELLO_BYTES)) {
        attempt_failed(attempt, OPAL_ERR_UNREACHABLE, strerror(errno));
    }
}

/* Begin one attempt; false: it failed at once, which is noted. */
static bool begin(orte_oob_t *oob, const oob_address_t *address)
{
    struct sockaddr_storage sock;
    socklen_t len = opal_net_addr_to_sock(&address->addr, 0, address->port, &sock);
    char text[OPAL_NET_TEXT_MAX], full[OPAL_NET_TEXT_MAX + 16];
    int fd = socket(address->addr.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    snprintf(full, sizeof(full), "%s port %u", opal_net_addr_text(&address->addr, text),
             address->port);
    if (fd < 0 || (connect(fd, (struct sockaddr *)&sock, len) != 0 && errno != EINPROGRESS)) {
        note(oob, full, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    oob_greeting_t *attempt =
        oob_greeting_create(oob, fd, EV_WRITE, orte_oob_params.connect_timeout_ms);
    if (attempt == NULL) {
        note(oob, full, "out of memory");
        return false;
    }
    attempt->message = attempt_message;
    attempt->failed = attempt_failed;
    attempt->connected = attempt_connected;
    attempt->expected = 1u << OOB_CHALLENGE | 1u << OOB_VERDICT;
    attempt->index = orte_oob_tree_parent(oob->config.index, oob->config.radix);
    snprintf(attempt->address, sizeof(attempt->address), "%.*s", OPAL_NET_TEXT_MAX - 1, full);
    opal_list_append(&oob->connector.attempts, &attempt->item);
    return true;
}

static void begin_next(orte_oob_t *oob)
{
    oob_connector_t *connector = &oob->connector;
    struct timeval interval = oob_timeval(INTERVAL_MS);
    bool begun = false;

    while (!begun && connector->begun < connector->count) {
        begun = begin(oob, &connector->addresses[connector->begun++]);
    }
    if (connector->begun < connector->count) {
        event_add(connector->timer, &interval);
    } else if (opal_list_is_empty(&connector->attempts)) {
        give_up(oob);
    }
}

static void interval_over(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    begin_next(arg);
}

int orte_oob_connect(orte_oob_t *oob, const char *contact)
{
    oob_connector_t *connector = &oob->connector;

    if (connector->addresses != NULL) {
        return OPAL_ERR_EXISTS;
    }
    connector->timer = event_new(oob->base, -1, 0, interval_over, oob);
    if (connector->timer == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    int rc = parse_contact(contact, &connector->addresses, &connector->count);
    if (rc != OPAL_SUCCESS) {
        event_free(connector->timer);
        connector->timer = NULL;
        return rc;
    }
    connector->rc = OPAL_ERR_UNREACHABLE;
    event_active(connector->timer, EV_TIMEOUT, 1); /* callbacks come from the loop only */
    return OPAL_SUCCESS;
}

void oob_connector_stop(orte_oob_t *oob)
{
    oob_connector_t *connector = &oob->connector;
    opal_list_item_t *item;

    while ((item = opal_list_first(&connector->attempts)) != NULL) {
        oob_greeting_destroy(OPAL_CONTAINER_OF(item, oob_greeting_t, item));
    }
    if (connector->timer != NULL) {
        event_free(connector->timer);
        connector->timer = NULL;
    }
    free(connector->addresses);
    connector->addresses = NULL;
    connector->count = connector->begun = 0;
}
