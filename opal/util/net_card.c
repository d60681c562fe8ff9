/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Cards: which interfaces of this machine are used, and how that is told to other processes. What
 * comes from them is checked before use. */
#include "opal/util/net_card.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "opal/util/le.h"
#include "opal/util/sha256.h"

/* ---- On the wire ----
 *
 *   "HTC1" | version u16 | interfaces u16 | port u16 | links u16 | 0 u32 | domain u64
 *   per interface: name[16] | flags u16 (bit 0: loopback) | addresses u16 | Mbit/s u32
 *   per address:   family u8 (4 or 6) | prefix u8 | 0 u16 | bytes[16]
 */

static const uint8_t card_magic[4] = {'H', 'T', 'C', '1'};

size_t opal_net_card_size(const opal_net_card_t *card)
{
    size_t size = OPAL_NET_CARD_HEAD;
    for (unsigned i = 0; i < card->if_count; i++) {
        size += OPAL_NET_CARD_IF + card->nif[i].addr_count * OPAL_NET_CARD_ADDR;
    }
    return size;
}

void opal_net_card_write(uint8_t *out, const opal_net_card_t *card)
{
    memset(out, 0, opal_net_card_size(card));
    memcpy(out, card_magic, sizeof(card_magic));
    opal_le_put16(out + 4, card->version);
    opal_le_put16(out + 6, (uint16_t) card->if_count);
    opal_le_put16(out + 8, card->port);
    opal_le_put16(out + 10, card->links);
    opal_le_put64(out + 16, card->domain);
    out += OPAL_NET_CARD_HEAD;
    for (unsigned i = 0; i < card->if_count; i++) {
        const opal_net_card_if_t *nif = &card->nif[i];
        memcpy(out, nif->name, OPAL_NET_CARD_NAME);
        opal_le_put16(out + 16, nif->loopback ? 1 : 0);
        opal_le_put16(out + 18, (uint16_t) nif->addr_count);
        opal_le_put32(out + 20, nif->mbps);
        out += OPAL_NET_CARD_IF;
        for (unsigned k = 0; k < nif->addr_count; k++, out += OPAL_NET_CARD_ADDR) {
            out[0] = nif->addr[k].family == AF_INET ? 4 : 6;
            out[1] = nif->addr[k].prefix;
            memcpy(out + 4, nif->addr[k].bytes, 16);
        }
    }
}

static bool card_addr_read(const uint8_t *in, opal_net_addr_t *addr)
{
    addr->family = in[0] == 4 ? AF_INET : AF_INET6;
    addr->prefix = in[1];
    memcpy(addr->bytes, in + 4, 16);
    return (in[0] == 4 && in[1] <= 32) || (in[0] == 6 && in[1] <= 128);
}

/* One interface; the bytes it took, or 0. */
static size_t card_if_read(const uint8_t *in, size_t left, opal_net_card_if_t *nif)
{
    if (left < OPAL_NET_CARD_IF) {
        return 0;
    }
    memcpy(nif->name, in, OPAL_NET_CARD_NAME);
    nif->loopback = opal_le_get16(in + 16) & 1;
    nif->addr_count = opal_le_get16(in + 18);
    nif->mbps = opal_le_get32(in + 20);
    size_t size = OPAL_NET_CARD_IF + (size_t) nif->addr_count * OPAL_NET_CARD_ADDR;
    if (nif->name[OPAL_NET_CARD_NAME - 1] || nif->addr_count > OPAL_NET_ADDRS_MAX || size > left) {
        return 0;
    }
    for (unsigned k = 0; k < nif->addr_count; k++) {
        if (!card_addr_read(in + OPAL_NET_CARD_IF + k * OPAL_NET_CARD_ADDR, &nif->addr[k])) {
            return 0;
        }
    }
    return size;
}

int opal_net_card_read(const void *data, size_t len, uint16_t version, opal_net_card_t *card)
{
    const uint8_t *in = data;
    memset(card, 0, sizeof(*card));
    if (!in || len < OPAL_NET_CARD_HEAD || memcmp(in, card_magic, sizeof(card_magic)) != 0 ||
        opal_le_get16(in + 4) != version) {
        return OPAL_ERR_BAD_PARAM;
    }
    card->version = version;
    card->if_count = opal_le_get16(in + 6);
    card->port = opal_le_get16(in + 8);
    card->links = opal_le_get16(in + 10);
    card->domain = opal_le_get64(in + 16);
    if (card->if_count > OPAL_NET_CARD_IFS_MAX || card->links == 0 || card->links > OPAL_NET_CARD_LINKS_MAX) {
        return OPAL_ERR_BAD_PARAM;
    }
    size_t at = OPAL_NET_CARD_HEAD;
    for (unsigned i = 0; i < card->if_count; i++) {
        size_t size = card_if_read(in + at, len - at, &card->nif[i]);
        if (size == 0) {
            return OPAL_ERR_BAD_PARAM;
        }
        at += size;
    }
    return at == len ? OPAL_SUCCESS : OPAL_ERR_BAD_PARAM;
}

/* ---- Choosing ---- */

/* Equal in processes on one network stack: this boot of the machine, this network namespace. */
static uint64_t network_domain(const char *host)
{
    opal_sha256_t hash;
    uint8_t digest[OPAL_SHA256_BYTES], boot[64];
    struct stat ns = {0};
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    size_t len = file ? fread(boot, 1, sizeof(boot), file) : 0;
    if (file) {
        fclose(file);
    }
    if (len == 0) { /* no /proc: the host's name is the next best */
        len = strnlen(host, sizeof(boot));
        memcpy(boot, host, len);
    }
    if (stat("/proc/self/ns/net", &ns) != 0) {
        ns.st_dev = ns.st_ino = 0;
    }
    opal_sha256_init(&hash);
    opal_sha256_update(&hash, boot, len);
    opal_sha256_update(&hash, &ns.st_dev, sizeof(ns.st_dev));
    opal_sha256_update(&hash, &ns.st_ino, sizeof(ns.st_ino));
    opal_sha256_final(&hash, digest);
    return opal_le_get64(digest);
}

static bool family_wanted(const opal_net_wanted_t *wanted, const opal_net_addr_t *addr)
{
    return wanted->family == 0 || (wanted->family == 4) == (addr->family == AF_INET);
}

static void reject(const opal_net_wanted_t *wanted, const char *interface, const char *why)
{
    char link[32];
    snprintf(link, sizeof(link), "%s:%s", wanted->name, interface);
    wanted->rejected(link, why);
}

static void card_add(const opal_net_wanted_t *wanted, opal_net_card_t *card,
                     const opal_net_if_t *nif)
{
    opal_net_card_if_t *own = &card->nif[card->if_count];
    memset(own, 0, sizeof(*own));
    for (unsigned i = 0; i < nif->addr_count; i++) {
        if (family_wanted(wanted, &nif->addr[i])) {
            own->addr[own->addr_count++] = nif->addr[i];
        }
    }
    if (own->addr_count == 0) {
        reject(wanted, nif->name, "no address of the wanted family");
        return;
    }
    snprintf(own->name, sizeof(own->name), "%s", nif->name);
    own->loopback = (nif->flags & OPAL_NET_LOOPBACK) != 0;
    own->mbps = nif->mbps;
    card->if_count++;
}

/* "btl-tcp:bad-list" and the like: what the user is told once. */
static const char *topic(const opal_net_wanted_t *wanted, const char *what, char text[64])
{
    snprintf(text, 64, "%s:%s", wanted->prefix, what);
    for (char *c = text; *c; c++) {
        *c = *c == '_' ? '-' : *c;
    }
    return text;
}

static int parse_filter(const opal_net_wanted_t *wanted, const char *name, const char *text,
                        opal_net_filter_t **filter)
{
    char why[200], about[64];
    int rc = opal_net_filter_parse(text, filter, why, sizeof(why));
    if (rc != OPAL_SUCCESS) {
        wanted->base->report(topic(wanted, "bad-list", about), "Parameter %s: %s.", name, why);
    }
    return rc;
}

/* The user's lists: the component's own, or else those shared with the launcher. */
static int filters(const opal_net_wanted_t *w, opal_net_filter_t **include,
                   opal_net_filter_t **exclude, char origin[128])
{
    char about[64], in_name[64] = "net_include", ex_name[64] = "net_exclude";
    const opal_net_params_t *shared;
    int rc = opal_net_params(w->base, &shared);
    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    bool own = (w->if_include && *w->if_include) || (w->if_exclude && *w->if_exclude);
    const char *in = own ? w->if_include : shared->include,
               *ex = own ? w->if_exclude : shared->exclude;
    if (own) {
        snprintf(in_name, sizeof(in_name), "%.50s_if_include", w->prefix);
        snprintf(ex_name, sizeof(ex_name), "%.50s_if_exclude", w->prefix);
    }
    snprintf(origin, 128, "%.60s and %.60s", in_name, ex_name);
    if (in && *in && ex && *ex) {
        w->base->report(topic(w, "both-lists", about),
                        "The parameters %s are both set (\"%s\" and \"%s\"). They exclude each "
                        "other: say which interfaces to use, or which not to.",
                        origin, in, ex);
        return OPAL_ERR_BAD_PARAM;
    }
    rc = parse_filter(w, in_name, in, include);
    return rc == OPAL_SUCCESS ? parse_filter(w, ex_name, ex, exclude) : rc;
}

bool opal_net_card_shares_subnet(const opal_net_card_t *card, unsigned index)
{
    for (unsigned k = 0; k < card->if_count; k++) {
        for (unsigned a = 0; k != index && a < card->nif[index].addr_count; a++) {
            for (unsigned b = 0; b < card->nif[k].addr_count; b++) {
                if (!opal_net_addr_is_link_local(&card->nif[k].addr[b]) &&
                    opal_net_addr_same_net(&card->nif[index].addr[a], &card->nif[k].addr[b])) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* Has it an address that says where it leads? Link-local ones are the same everywhere. */
static bool is_numbered(const opal_net_wanted_t *wanted, const opal_net_if_t *nif)
{
    for (unsigned i = 0; i < nif->addr_count; i++) {
        if (family_wanted(wanted, &nif->addr[i]) && !opal_net_addr_is_link_local(&nif->addr[i])) {
            return true;
        }
    }
    return false;
}

static void choose(const opal_net_wanted_t *wanted, opal_net_card_t *card,
                   const opal_net_if_t *list, size_t count, const opal_net_filter_t *include,
                   const opal_net_filter_t *exclude)
{
    bool numbered = false;
    for (size_t i = 0; i < count; i++) {
        numbered |= !*opal_net_if_unwanted(&list[i], include, exclude) &&
                    is_numbered(wanted, &list[i]) && !(list[i].flags & OPAL_NET_LOOPBACK);
    }
    for (size_t i = 0; i < count; i++) {
        const char *why = opal_net_if_unwanted(&list[i], include, exclude);
        if (!*why && card->if_count == OPAL_NET_CARD_IFS_MAX) {
            why = "more interfaces than can be used";
        } else if (!*why && numbered && include->count == 0 && !is_numbered(wanted, &list[i])) {
            why = "link-local addresses only, and not asked for";
        }
        if (*why) {
            reject(wanted, list[i].name, why);
        } else {
            card_add(wanted, card, &list[i]);
        }
    }
}

int opal_net_card_choose(const opal_net_wanted_t *wanted, opal_net_card_t *card)
{
    opal_net_filter_t *include = NULL, *exclude = NULL;
    opal_net_if_t *list = NULL;
    char origin[128], about[64];
    size_t count;
    int rc = filters(wanted, &include, &exclude, origin);
    if (rc == OPAL_SUCCESS && opal_net_if_list(&list, &count) != OPAL_SUCCESS) {
        wanted->base->log("btl", wanted->name, MCA_LOG_ERROR, "can't list the network interfaces");
        rc = OPAL_ERR_NOT_AVAILABLE;
    }
    if (rc != OPAL_SUCCESS) {
        goto out;
    }
    card->domain = network_domain(wanted->host);
    choose(wanted, card, list, count, include, exclude);
    if (card->if_count == 0) {
        wanted->base->report(
            topic(wanted, "no-interface", about),
            "No network interface is left for btl/%s on host %s: of %zu interfaces none is up and "
            "admitted by the parameters %s (and %s_family). Change them, or leave btl/%s out (--mca "
            "btl ^%s).",
            wanted->name, wanted->host, count, origin, wanted->prefix, wanted->name, wanted->name);
        rc = OPAL_ERR_NOT_AVAILABLE;
    }
out:
    free(include);
    free(exclude);
    free(list);
    return rc;
}

int opal_net_port_range(const opal_net_wanted_t *wanted, int64_t min, int64_t range, unsigned *lo,
                        unsigned *hi)
{
    const opal_net_params_t *shared;
    uint16_t first, last;
    char why[200], about[64];
    if (min > 0) {
        *lo = (unsigned) min;
        *hi = range > 0 ? *lo + (unsigned) range - 1 : 65535;
        *hi = *hi > 65535 ? 65535 : *hi;
        return OPAL_SUCCESS;
    }
    int rc = opal_net_params(wanted->base, &shared);
    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    rc = opal_net_ports_parse(shared->ports, &first, &last, why, sizeof(why));
    if (rc != OPAL_SUCCESS) {
        wanted->base->report(topic(wanted, "bad-ports", about), "Parameter net_ports: %s.", why);
        return rc;
    }
    *lo = first;
    *hi = last;
    return OPAL_SUCCESS;
}
