/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The port, the contact text, and children that come.
 *
 * Who comes is a guest until he has proved himself. Guests are few (as many as children, and
 * GUESTS_MORE) and have a time limit; if there are too many, the oldest goes, so that strangers who
 * hold connections open can't keep a child out, whose greeting takes two round trips.
 */
#include "orte/oob/internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    GUESTS_MORE = 64,
    ADDRESSES_MAX = 16,     /* in a contact text */
    ACCEPTS_PER_TURN = 64,
    PAUSE_MS = 100,         /* no descriptors: ask again then */
};

/* ---- Guests ---- */

static void guest_end(oob_greeting_t *guest, int rc, const char *sentence)
{
    orte_oob_t *oob = guest->oob;
    uint32_t index = guest->index;

    oob_greeting_destroy(guest);
    oob->listener.guest_count--;
    if (oob->config.on_refused != NULL) {
        oob->config.on_refused(oob->config.arg, index, rc, sentence);
    }
}

static void guest_refuse(oob_greeting_t *guest, oob_verdict_t verdict, const uint8_t *mac, int rc,
                         const char *what)
{
    uint8_t out[OOB_VERDICT_BYTES], unread[1024];
    char sentence[ORTE_OOB_SENTENCE];

    oob_verdict_write(out, &guest->oob->speaker, verdict, mac);
    oob_greeting_send(guest, out, sizeof(out));
    /* Closing with bytes unread resets the connection, which may overtake the verdict. */
    (void)!recv(guest->fd, unread, sizeof(unread), MSG_DONTWAIT);
    if (verdict == OOB_REFUSED_VERSION) {
        oob_version_sentence(guest->oob, &guest->speaker, sentence);
    } else {
        snprintf(sentence, sizeof(sentence), "host %s turned away a connection from %s%s%s: %s",
                 guest->oob->speaker.host, guest->address,
                 guest->speaker.host[0] == '\0' ? "" : ", which calls itself ",
                 guest->speaker.host, what);
    }
    guest_end(guest, rc, sentence);
}

static void guest_failed(oob_greeting_t *guest, int rc, const char *what)
{
    if (rc == OPAL_ERR_NOT_SUPPORTED) {
        guest_refuse(guest, OOB_REFUSED_VERSION, NULL, rc, what);
        return;
    }
    char sentence[ORTE_OOB_SENTENCE];
    snprintf(sentence, sizeof(sentence), "a connection from %s to host %s came to nothing: %s",
             guest->address, guest->oob->speaker.host,
             rc == OPAL_ERR_TIMEOUT ? "it did not prove itself in time" : what);
    guest_end(guest, rc == OPAL_ERR_TIMEOUT ? rc : OPAL_ERR_PERMISSION, sentence);
}

static void guest_hello(oob_greeting_t *guest)
{
    orte_oob_t *oob = guest->oob;
    oob_hello_t hello;
    oob_challenge_t challenge = {.from = oob->config.index};

    if (oob_hello_read(guest->in, &hello) != OPAL_SUCCESS) {
        guest_failed(guest, OPAL_ERR_BAD_PARAM, "its greeting is damaged");
        return;
    }
    guest->index = hello.from;
    memcpy(guest->hello, guest->in, OOB_HELLO_BYTES);
    if (hello.to != oob->config.index || hello.from < oob->first_child ||
        hello.from - oob->first_child >= oob->nchildren || hello.radix != oob->config.radix) {
        guest_refuse(guest, OOB_REFUSED_STRANGER, NULL, OPAL_ERR_PERMISSION,
                     "it looks for another daemon");
        return;
    }
    challenge.to = hello.from;
    if (getrandom(challenge.nonce, sizeof(challenge.nonce), 0) != OOB_NONCE_BYTES) {
        guest_refuse(guest, OOB_REFUSED_CLOSED, NULL, OPAL_ERR_OUT_OF_RESOURCE,
                     "the system gives no random numbers");
        return;
    }
    oob_challenge_write(guest->challenge, &oob->speaker, &challenge);
    oob_mac(oob->config.key, 'A', guest->hello, guest->challenge, OOB_ACCEPTED,
            guest->challenge + OOB_CHALLENGE_MAC_AT);
    guest->expected = 1u << OOB_PROOF;
    if (!oob_greeting_send(guest, guest->challenge, OOB_CHALLENGE_BYTES)) {
        guest_failed(guest, OPAL_ERR_UNREACHABLE, strerror(errno));
    }
}

static void guest_proof(oob_greeting_t *guest)
{
    orte_oob_t *oob = guest->oob;
    uint8_t mac[OPAL_SHA256_BYTES], out[OOB_VERDICT_BYTES];

    oob_mac(oob->config.key, 'I', guest->hello, guest->challenge, OOB_ACCEPTED, mac);
    if (!opal_equal_const_time(mac, guest->in + OOB_HEAD_BYTES, sizeof(mac))) {
        guest_refuse(guest, OOB_REFUSED_PROOF, NULL, OPAL_ERR_PERMISSION,
                     "it does not know the job's key");
        return;
    }
    oob_link_t *link = oob->children[guest->index - oob->first_child];
    if (oob->lost[guest->index] || (link != NULL && link->fd >= 0)) {
        oob_mac(oob->config.key, 'V', guest->hello, guest->challenge, OOB_REFUSED_TWICE, mac);
        guest_refuse(guest, OOB_REFUSED_TWICE, mac, OPAL_ERR_PERMISSION,
                     "the daemon with this number is, or was, connected already");
        return;
    }
    oob_mac(oob->config.key, 'V', guest->hello, guest->challenge, OOB_ACCEPTED, mac);
    oob_verdict_write(out, &oob->speaker, OOB_ACCEPTED, mac);
    if (!oob_greeting_send(guest, out, sizeof(out))) {
        guest_failed(guest, OPAL_ERR_UNREACHABLE, strerror(errno));
        return;
    }
    oob->listener.guest_count--;
    oob_greeting_finish(guest, 'a');
}

static void guest_message(oob_greeting_t *guest, oob_greeting_type_t type)
{
    if (type == OOB_HELLO) {
        guest_hello(guest);
    } else {
        guest_proof(guest);
    }
}

/* Where the user names interfaces, connections by others are not taken. */
static bool is_wanted_here(const oob_listener_t *listener, int fd)
{
    struct sockaddr_storage sock;
    socklen_t len = sizeof(sock);
    opal_net_addr_t addr;

    if (listener->local == NULL) {
        return true;
    }
    if (getsockname(fd, (struct sockaddr *)&sock, &len) != 0 ||
        !opal_net_addr_from_sock(&sock, &addr)) {
        return false;
    }
    for (size_t i = 0; i < listener->local_count; i++) {
        if (opal_net_addr_equal(&addr, &listener->local[i])) {
            return true;
        }
    }
    return false;
}

static void guest_come(orte_oob_t *oob, int fd, const struct sockaddr_storage *from)
{
    oob_listener_t *listener = &oob->listener;
    opal_net_addr_t addr;

    if (!is_wanted_here(listener, fd)) {
        close(fd);
        return;
    }
    if (listener->guest_count >= oob->nchildren + GUESTS_MORE) {
        opal_list_item_t *oldest = opal_list_first(&listener->guests);
        guest_failed(OPAL_CONTAINER_OF(oldest, oob_greeting_t, item), OPAL_ERR_TIMEOUT, "");
    }
    oob_greeting_t *guest =
        oob_greeting_create(oob, fd, EV_READ, orte_oob_params.greeting_timeout_ms);
    if (guest == NULL) {
        return; /* no memory: he sees a closed connection */
    }
    guest->message = guest_message;
    guest->failed = guest_failed;
    guest->expected = 1u << OOB_HELLO;
    if (opal_net_addr_from_sock(from, &addr)) {
        opal_net_addr_text(&addr, guest->address);
    }
    opal_list_append(&listener->guests, &guest->item);
    listener->guest_count++;
}

static void come(evutil_socket_t fd, short what, void *arg)
{
    orte_oob_t *oob = arg;
    oob_listener_t *listener = &oob->listener;
    struct timeval pause = oob_timeval(PAUSE_MS);

    (void)what;
    for (int i = 0; i < ACCEPTS_PER_TURN && listener->fd >= 0; i++) {
        struct sockaddr_storage from = {0};
        socklen_t len = sizeof(from);
        int guest = accept4(fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (guest >= 0) {
            guest_come(oob, guest, &from);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            event_del(listener->event);
            event_add(listener->pause, &pause);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

static void pause_over(evutil_socket_t fd, short what, void *arg)
{
    orte_oob_t *oob = arg;

    (void)fd;
    (void)what;
    event_add(oob->listener.event, NULL);
}

/* ---- The port ---- */

/* errno tells. */
static int open_port(int family, uint16_t port)
{
    static const int zero = 0, one = 1;
    struct sockaddr_storage sock;
    opal_net_addr_t any = {.family = (uint8_t)family};
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) {
        return -1;
    }
    if (family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    socklen_t len = opal_net_addr_to_sock(&any, 0, port, &sock);
    if (bind(fd, (struct sockaddr *)&sock, len) != 0 || listen(fd, SOMAXCONN) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

/* The first free port; both families on one socket, or IPv4 alone where the system has no IPv6. */
static int open_in_range(uint16_t low, uint16_t high)
{
    int family = AF_INET6, fd = -1;

    for (uint32_t port = low; port <= high && fd < 0; port++) {
        fd = open_port(family, (uint16_t)port);
        if (fd < 0 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL) && family == AF_INET6) {
            family = AF_INET;
            fd = open_port(family, (uint16_t)port);
        }
        if (fd < 0 && errno != EADDRINUSE && errno != EACCES) {
            break;
        }
    }
    return fd;
}

static int open_listener(orte_oob_t *oob, uint16_t *port, char why[ORTE_OOB_SENTENCE])
{
    const bool own = orte_oob_params.port_range != NULL && *orte_oob_params.port_range != '\0';
    const char *name = own ? "oob_port_range" : "net_ports";
    const char *text = own ? orte_oob_params.port_range : orte_oob_params.net->ports;
    struct sockaddr_storage sock;
    socklen_t len = sizeof(sock);
    uint16_t low, high;
    char what[200];

    if (opal_net_ports_parse(text, &low, &high, what, sizeof(what)) != OPAL_SUCCESS) {
        snprintf(why, ORTE_OOB_SENTENCE, "parameter %s: %s", name, what);
        return OPAL_ERR_BAD_PARAM;
    }
    int fd = open_in_range(low, high);
    if (fd < 0 && low > 0 && (errno == EADDRINUSE || errno == EACCES)) {
        snprintf(why, ORTE_OOB_SENTENCE,
                 "no port from %u to %u is free on host %s: end what uses them there, or give "
                 "parameter %s a wider range", low, high, oob->speaker.host, name);
        return OPAL_ERR_NOT_AVAILABLE;
    }
    if (fd < 0 || getsockname(fd, (struct sockaddr *)&sock, &len) != 0) {
        snprintf(why, ORTE_OOB_SENTENCE, "host %s can't listen for daemons: %s",
                 oob->speaker.host, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return OPAL_ERR_IN_ERRNO;
    }
    /* The port stands at the same place in both families' addresses. */
    *port = ntohs(((struct sockaddr_in *)(void *)&sock)->sin_port);
    oob->listener.fd = fd;
    return OPAL_SUCCESS;
}

/* ---- The contact text ---- */

typedef struct {
    opal_net_addr_t list[ADDRESSES_MAX];
    size_t count;
} addresses_t;

/* Link-local IPv6 addresses mean something on one's own side only. */
static void add_addresses(addresses_t *to, const opal_net_if_t *nif)
{
    for (unsigned i = 0; i < nif->addr_count && to->count < ADDRESSES_MAX; i++) {
        if (nif->addr[i].family == AF_INET || !opal_net_addr_is_link_local(&nif->addr[i])) {
            to->list[to->count++] = nif->addr[i];
        }
    }
}

static int usable_addresses(orte_oob_t *oob, addresses_t *to, const opal_net_filter_t *include,
                            const opal_net_filter_t *exclude, char why[ORTE_OOB_SENTENCE])
{
    opal_net_if_t *list;
    size_t count;
    int rc = opal_net_if_list(&list, &count);

    if (rc != OPAL_SUCCESS) {
        snprintf(why, ORTE_OOB_SENTENCE, "can't list the network interfaces of host %s: %s",
                 oob->speaker.host, opal_strerror(rc));
        return rc;
    }
    /* Loopback leads nowhere from other hosts: last choice, unless the user asks for it. */
    for (int loopback = 0; loopback < 2; loopback++) {
        for (size_t i = 0; i < count && (loopback == 0 || to->count == 0); i++) {
            const bool is_loopback = list[i].flags & OPAL_NET_LOOPBACK && include->count == 0;
            if (is_loopback == (loopback == 1) &&
                *opal_net_if_unwanted(&list[i], include, exclude) == '\0') {
                add_addresses(to, &list[i]);
            }
        }
    }
    free(list);
    if (to->count == 0) {
        snprintf(why, ORTE_OOB_SENTENCE,
                 "host %s has no network interface that mpirun and its daemons may use: see "
                 "parameters net_include and net_exclude", oob->speaker.host);
        return OPAL_ERR_NOT_AVAILABLE;
    }
    return OPAL_SUCCESS;
}

static int find_addresses(orte_oob_t *oob, addresses_t *to, char why[ORTE_OOB_SENTENCE])
{
    const opal_net_params_t *net = orte_oob_params.net;
    opal_net_filter_t *include = NULL, *exclude = NULL;
    char what[ORTE_OOB_SENTENCE - 64];
    const char *name = "net_include";
    int rc = opal_net_filter_parse(net->include, &include, what, sizeof(what));

    if (rc == OPAL_SUCCESS) {
        name = "net_exclude";
        rc = opal_net_filter_parse(net->exclude, &exclude, what, sizeof(what));
    }
    if (rc != OPAL_SUCCESS) {
        snprintf(why, ORTE_OOB_SENTENCE, "parameter %s: %s", name, what);
    } else {
        rc = usable_addresses(oob, to, include, exclude, why);
    }
    if (rc == OPAL_SUCCESS && (include->count > 0 || exclude->count > 0)) {
        oob->listener.local = malloc(to->count * sizeof(to->list[0]));
        if (oob->listener.local == NULL) {
            snprintf(why, ORTE_OOB_SENTENCE, "out of memory");
            rc = OPAL_ERR_OUT_OF_RESOURCE;
        } else {
            memcpy(oob->listener.local, to->list, to->count * sizeof(to->list[0]));
            oob->listener.local_count = to->count;
        }
    }
    free(include);
    free(exclude);
    return rc;
}

static char *contact_text(const addresses_t *addresses, uint16_t port, bool ipv6)
{
    char *text = malloc(addresses->count * (OPAL_NET_TEXT_MAX + 3) + 8), *at = text;
    char one[OPAL_NET_TEXT_MAX];

    for (size_t i = 0; text != NULL && i < addresses->count; i++) {
        const opal_net_addr_t *addr = &addresses->list[i];
        if (addr->family == AF_INET || ipv6) {
            at += sprintf(at, addr->family == AF_INET ? "%s%s" : "%s[%s]", at == text ? "" : ",",
                          opal_net_addr_text(addr, one));
        }
    }
    if (text != NULL) {
        sprintf(at, ":%u", port);
    }
    return text;
}

static bool is_ipv6(int fd)
{
    int domain = AF_INET;
    socklen_t len = sizeof(domain);

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_INET6;
}

int orte_oob_listen(orte_oob_t *oob, const char **contact, char why[ORTE_OOB_SENTENCE])
{
    oob_listener_t *listener = &oob->listener;
    addresses_t addresses = {.count = 0};
    uint16_t port;

    if (listener->fd >= 0) {
        snprintf(why, ORTE_OOB_SENTENCE, "this daemon listens already");
        return OPAL_ERR_EXISTS;
    }
    int rc = find_addresses(oob, &addresses, why);
    if (rc == OPAL_SUCCESS) {
        rc = open_listener(oob, &port, why);
    }
    if (rc != OPAL_SUCCESS) {
        oob_listener_stop(oob);
        return rc;
    }
    listener->contact = contact_text(&addresses, port, is_ipv6(listener->fd));
    listener->event = event_new(oob->base, listener->fd, EV_READ | EV_PERSIST, come, oob);
    listener->pause = event_new(oob->base, -1, 0, pause_over, oob);
    if (listener->contact == NULL || listener->event == NULL || listener->pause == NULL ||
        event_add(listener->event, NULL) != 0) {
        snprintf(why, ORTE_OOB_SENTENCE, "out of memory");
        oob_listener_stop(oob);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    *contact = listener->contact;
    return OPAL_SUCCESS;
}

void oob_listener_stop(orte_oob_t *oob)
{
    oob_listener_t *listener = &oob->listener;
    opal_list_item_t *item;

    while ((item = opal_list_first(&listener->guests)) != NULL) {
        oob_greeting_destroy(OPAL_CONTAINER_OF(item, oob_greeting_t, item));
    }
    listener->guest_count = 0;
    if (listener->event != NULL) {
        event_free(listener->event);
        listener->event = NULL;
    }
    if (listener->pause != NULL) {
        event_free(listener->pause);
        listener->pause = NULL;
    }
    if (listener->fd >= 0) {
        close(listener->fd);
        listener->fd = -1;
    }
    free(listener->local);
    listener->local = NULL;
}
