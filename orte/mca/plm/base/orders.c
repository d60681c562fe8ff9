/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What a daemon reads from its standard input. */
#include "orte/mca/plm/plm.h"

#include "opal/util/argv.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first line is text, and the same in all versions to come: this, the version, and the number of
 * bytes that follow. An agent may keep the daemon's standard input open, so that its end tells
 * nothing. */
#define GREETING "hawser-orted "
#define GREETING_MAX 128

void orte_plm_orders_free(orte_plm_orders_t *orders)
{
    for (uint32_t i = 0; orders->hosts != NULL && i < orders->count; i++) {
        free(orders->hosts[i].name);
        free(orders->hosts[i].user);
    }
    free(orders->hosts);
    free(orders->session);
    free(orders->contact);
    free(orders->orted);
    free(orders->component);
    opal_argv_free(orders->environ);
    explicit_bzero(orders, sizeof(*orders));
}

static void pack_body(orte_pack_t *pack, const orte_plm_orders_t *orders)
{
    orte_pack_u32(pack, orders->index);
    orte_pack_u32(pack, orders->count);
    orte_pack_u32(pack, orders->radix);
    orte_pack_string(pack, orders->key);
    orte_pack_string(pack, orders->session);
    orte_pack_string(pack, orders->contact);
    orte_pack_string(pack, orders->orted);
    orte_pack_string(pack, orders->component);
    orte_pack_strings(pack, orders->environ);
    orte_pack_bool(pack, orders->verbose);
    for (uint32_t i = 0; i < orders->count; i++) {
        orte_pack_string(pack, orders->hosts[i].name);
        orte_pack_string(pack, orders->hosts[i].user);
        orte_pack_i32(pack, orders->hosts[i].port);
    }
}

void orte_plm_pack_orders(orte_pack_t *pack, const orte_plm_orders_t *orders)
{
    char line[GREETING_MAX];
    orte_pack_t body;
    size_t size;

    orte_pack_init(&body);
    pack_body(&body, orders);
    uint8_t *data = orte_pack_take(&body, &size);
    if (data == NULL) {
        pack->rc = OPAL_ERR_OUT_OF_RESOURCE;
        return;
    }
    int length = snprintf(line, sizeof(line), GREETING PACKAGE_VERSION " %zu\n", size);
    orte_pack_raw(pack, line, (size_t)length);
    orte_pack_raw(pack, data, size);
    explicit_bzero(data, size);
    free(data);
}

/* The length of the first line; 0 if it is none of ours. *version is what it names, *body the number
 * of bytes behind it. */
static size_t read_greeting(const uint8_t *data, size_t size, const char **version, size_t *body)
{
    static char found[32];
    char line[GREETING_MAX];
    size_t skip = sizeof(GREETING) - 1, limit = size < sizeof(line) ? size : sizeof(line) - 1;
    const uint8_t *end = size > skip ? memchr(data, '\n', limit) : NULL;

    if (end == NULL || memcmp(data, GREETING, skip) != 0) {
        return 0;
    }
    size_t length = (size_t)(end - data);
    memcpy(line, data, length);
    line[length] = '\0';
    snprintf(found, sizeof(found), "%.*s", (int)strcspn(line + skip, " "), line + skip);
    *version = found;
    *body = strtoul(line + skip + strcspn(line + skip, " "), NULL, 10);
    return length + 1;
}

bool orte_plm_orders_complete(const uint8_t *data, size_t size)
{
    const char *version;
    size_t body, line = read_greeting(data, size, &version, &body);

    return line > 0 && size - line >= body;
}

static void unpack_hosts(orte_unpack_t *unpack, orte_plm_orders_t *orders)
{
    /* Each takes at least 8 bytes; also bounds what is allocated. */
    if (orders->count > unpack->left / 8 || orders->count == 0 ||
        (orders->hosts = calloc(orders->count, sizeof(*orders->hosts))) == NULL) {
        unpack->rc = OPAL_ERR_PARSE;
        return;
    }
    for (uint32_t i = 0; i < orders->count && unpack->rc == OPAL_SUCCESS; i++) {
        orders->hosts[i].name = orte_unpack_string(unpack);
        orders->hosts[i].user = orte_unpack_string(unpack);
        orders->hosts[i].port = orte_unpack_i32(unpack);
        if (orders->hosts[i].name == NULL || orders->hosts[i].port < 0) {
            unpack->rc = OPAL_ERR_PARSE;
        }
    }
}

static void unpack_key(orte_unpack_t *unpack, orte_plm_orders_t *orders)
{
    char *key = orte_unpack_string(unpack);

    if (key != NULL && strlen(key) + 1 == sizeof(orders->key)) {
        memcpy(orders->key, key, sizeof(orders->key));
        explicit_bzero(key, strlen(key));
    } else {
        unpack->rc = OPAL_ERR_PARSE;
    }
    free(key);
}

static bool sane(const orte_plm_orders_t *orders)
{
    return orders->session != NULL && orders->contact != NULL && orders->orted != NULL &&
           orders->component != NULL && orders->radix > 0 && orders->count <= INT_MAX &&
           strspn(orders->session, "0123456789abcdef-") == strlen(orders->session) &&
           (orders->index == ORTE_OOB_NONE ||
            (orders->index > 0 && orders->index < orders->count));
}

int orte_plm_unpack_orders(const uint8_t *data, size_t size, orte_plm_orders_t *orders,
                           const char **version)
{
    orte_unpack_t unpack;
    size_t body, skip = read_greeting(data, size, version, &body);

    *orders = (orte_plm_orders_t){0};
    if (skip == 0) {
        return OPAL_ERR_PARSE;
    }
    if (strcmp(*version, PACKAGE_VERSION) != 0) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    if (size - skip != body) {
        return OPAL_ERR_PARSE;
    }
    orte_unpack_init(&unpack, data + skip, body);
    orders->index = orte_unpack_u32(&unpack);
    uint32_t count = orte_unpack_u32(&unpack);
    orders->radix = orte_unpack_u32(&unpack);
    unpack_key(&unpack, orders);
    orders->session = orte_unpack_string(&unpack);
    orders->contact = orte_unpack_string(&unpack);
    orders->orted = orte_unpack_string(&unpack);
    orders->component = orte_unpack_string(&unpack);
    orders->environ = orte_unpack_strings(&unpack);
    orders->verbose = orte_unpack_bool(&unpack);
    if (unpack.rc == OPAL_SUCCESS) {
        orders->count = count;
        unpack_hosts(&unpack, orders);
    }
    if (!orte_unpack_is_done(&unpack) || !sane(orders)) {
        if (orders->hosts == NULL) {
            orders->count = 0;
        }
        orte_plm_orders_free(orders);
        return OPAL_ERR_PARSE;
    }
    return OPAL_SUCCESS;
}
