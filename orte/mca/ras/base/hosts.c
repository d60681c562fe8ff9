/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Mentions of hosts: the list of them, and the words of --host. */
#include "orte/mca/ras/base/base.h"

#include "opal/constants.h"
#include "opal/util/argv.h"
#include "orte/util/report.h"

#include <arpa/inet.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool orte_ras_base_number(const char *text, int *value)
{
    char *end;

    if (*text < '0' || *text > '9') {
        return false;
    }
    long number = strtol(text, &end, 10);
    if (*end != '\0' || number < 1 || number > INT_MAX) {
        return false;
    }
    *value = (int)number;
    return true;
}

orte_ras_host_t *orte_ras_base_append(orte_ras_hosts_t *hosts, const char *where)
{
    /* Room doubles at powers of two. */
    if ((hosts->count & (hosts->count - 1)) == 0) {
        size_t room = hosts->count == 0 ? 1 : 2 * (size_t)hosts->count;
        orte_ras_host_t *grown = realloc(hosts->at, room * sizeof(*grown));
        if (grown == NULL) {
            return NULL;
        }
        hosts->at = grown;
    }
    char *copy = strdup(where);
    if (copy == NULL) {
        return NULL;
    }
    orte_ras_host_t *host = &hosts->at[hosts->count++];
    *host = (orte_ras_host_t){.kind = ORTE_RAS_NAME, .where = copy};
    return host;
}

void orte_ras_hosts_free(orte_ras_hosts_t *hosts)
{
    for (int i = 0; i < hosts->count; i++) {
        free(hosts->at[i].name);
        free(hosts->at[i].user);
        free(hosts->at[i].where);
    }
    free(hosts->at);
    *hosts = (orte_ras_hosts_t){0};
}

bool orte_ras_base_is_address(const char *name)
{
    char copy[INET6_ADDRSTRLEN + 1];
    unsigned char binary[16];
    size_t length = strcspn(name, "%"); /* an IPv6 address may have a zone */

    if (length >= sizeof(copy)) {
        return false;
    }
    memcpy(copy, name, length);
    copy[length] = '\0';
    return inet_pton(AF_INET6, copy, binary) == 1 ||
           (name[length] == '\0' && inet_pton(AF_INET, copy, binary) == 1);
}

/* Characters of host names, and of addresses with a zone. A name that begins with '-' would be
 * an option to a remote shell. */
static bool is_plausible(const char *name)
{
    static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

    return orte_ras_base_is_address(name) ||
           (name[0] != '\0' && name[0] != '-' && strlen(name) < 254 &&
            name[strspn(name, known)] == '\0');
}

static int bad_name(const orte_ras_host_t *host, const char *text)
{
    orte_report("%s: '%s' can't be the name of a host: use a name, an IPv4 address or an IPv6 "
                "address in brackets, with user@ before it and :SLOTS after it if need be",
                host->where, text);
    return OPAL_ERR_BAD_PARAM;
}

int orte_ras_base_set_name(orte_ras_host_t *host, const char *text)
{
    const char *name = strrchr(text, '@');
    size_t length;

    if (name != NULL) {
        host->user = strndup(text, (size_t)(name - text));
        if (host->user == NULL) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
    }
    name = name == NULL ? text : name + 1;
    length = strlen(name);
    if (length > 2 && name[0] == '[' && name[length - 1] == ']') {
        name++;
        length -= 2;
    }
    host->name = strndup(name, length);
    if (host->name == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    bool bad_user = host->user != NULL && (host->user[0] == '\0' || host->user[0] == '-');
    return bad_user || !is_plausible(host->name) ? bad_name(host, text) : OPAL_SUCCESS;
}

int orte_ras_add(orte_ras_hosts_t *hosts, const char *name, int slots, const char *where)
{
    orte_ras_host_t *host = orte_ras_base_append(hosts, where);

    if (host == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    host->slots = slots;
    return orte_ras_base_set_name(host, name);
}

int orte_ras_add_list(orte_ras_hosts_t *hosts, const char *text, int slots, const char *where)
{
    char **names = NULL;
    int rc = orte_ras_expand(text, where, &names);

    for (char **name = names; name != NULL && *name != NULL && rc == OPAL_SUCCESS; name++) {
        rc = orte_ras_add(hosts, *name, slots, where);
    }
    opal_argv_free(names);
    return rc;
}

/* "+nK", "+e", "+e:K". */
static int parse_relative(orte_ras_hosts_t *hosts, const char *text, const char *where)
{
    orte_ras_host_t *host = orte_ras_base_append(hosts, where);
    bool ok = false;

    if (host == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (text[1] == 'n' || text[1] == 'N') {
        char *end;
        long number = strtol(text + 2, &end, 10);
        host->kind = ORTE_RAS_INDEX;
        host->number = (int)number;
        ok = text[2] >= '0' && text[2] <= '9' && number < INT_MAX;
        if (*end == ':') {
            ok = ok && orte_ras_base_number(end + 1, &host->slots);
        } else {
            ok = ok && *end == '\0';
        }
    } else if (text[1] == 'e' || text[1] == 'E') {
        host->kind = ORTE_RAS_EMPTY;
        host->slots = ORTE_RAS_SLOTS_ALL;
        ok = text[2] == '\0' || (text[2] == ':' && orte_ras_base_number(text + 3, &host->number));
    }
    if (!ok) {
        orte_report("%s: '%s' is not understood: +nK is host number K of the allocation, counted "
                    "from 0, +e or +e:K all or K empty hosts", where, text);
        return OPAL_ERR_BAD_PARAM;
    }
    return OPAL_SUCCESS;
}

/* Split ":N" or ":*" off a word in place. An IPv6 address without brackets has no such end. */
static int take_slots(char *word, const char *where, int *slots)
{
    char *colon = strrchr(word, ':');
    char *at = strrchr(word, '@');

    *slots = ORTE_RAS_SLOTS_UNSAID;
    if (colon == NULL || strchr(colon, ']') != NULL ||
        orte_ras_base_is_address(at == NULL ? word : at + 1)) {
        return OPAL_SUCCESS;
    }
    *colon = '\0';
    if (strcmp(colon + 1, "*") == 0 || strcasecmp(colon + 1, "auto") == 0) {
        *slots = ORTE_RAS_SLOTS_ALL;
    } else if (!orte_ras_base_number(colon + 1, slots)) {
        orte_report("%s: '%s:%s': the number of slots after ':' must be at least 1, or '*' for all "
                    "that the host has", where, word, colon + 1);
        return OPAL_ERR_BAD_PARAM;
    }
    return OPAL_SUCCESS;
}

static int parse_named(orte_ras_hosts_t *hosts, char *word, const char *where)
{
    char **names = NULL;
    int first = hosts->count, slots;
    bool exclude = word[0] == '^';

    word += exclude;
    int rc = take_slots(word, where, &slots);
    if (rc == OPAL_SUCCESS) {
        rc = orte_ras_expand(word, where, &names);
    }
    for (char **name = names; name != NULL && *name != NULL && rc == OPAL_SUCCESS; name++) {
        rc = orte_ras_add(hosts, *name, slots, where);
    }
    for (int i = first; exclude && i < hosts->count; i++) {
        hosts->at[i].kind = ORTE_RAS_EXCLUDE;
        hosts->excludes = true;
    }
    opal_argv_free(names);
    return rc;
}

/* End of the word at `text`: the next comma outside brackets. */
static const char *word_end(const char *text)
{
    int depth = 0;

    for (; *text != '\0' && (*text != ',' || depth > 0); text++) {
        depth += *text == '[' ? 1 : *text == ']' ? -1 : 0;
    }
    return text;
}

int orte_ras_parse_hosts(orte_ras_hosts_t *hosts, const char *text, const char *where)
{
    int rc = OPAL_SUCCESS, before = hosts->count;

    while (*text != '\0' && rc == OPAL_SUCCESS) {
        const char *end = word_end(text);
        char *word = strndup(text, (size_t)(end - text));
        if (word == NULL) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
        if (word[0] == '+') {
            rc = parse_relative(hosts, word, where);
        } else if (word[0] != '\0') {
            rc = parse_named(hosts, word, where);
        }
        free(word);
        text = end + (*end == ',');
    }
    if (rc == OPAL_SUCCESS && hosts->count == before) {
        orte_report("%s: no host is named; write for example %s node1:4,node2", where, where);
        return OPAL_ERR_BAD_PARAM;
    }
    return rc;
}
