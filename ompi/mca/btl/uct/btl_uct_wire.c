/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Business cards and HELLO frames: writing, and reading what is not to be trusted. */
#include "ompi/mca/btl/uct/btl_uct.h"

#include <string.h>
#include "opal/util/le.h"
#include "opal/util/sha256.h"

enum {
    HELLO_MAGIC = 0x55435432, /* "UCT2" */
    HELLO_FIXED = 40,         /* magic, from, to, id, your_id, pid, pid_space */
};

/* ---- Pieces ---- */

typedef struct cursor {
    uint8_t *at, *end; /* NULL at: it did not fit, or was not there */
} cursor_t;

static uint8_t *take(cursor_t *c, size_t len)
{
    uint8_t *p = c->at;
    c->at = p && (size_t) (c->end - p) >= len ? p + len : NULL;
    return c->at ? p : NULL;
}

static void put_bytes(cursor_t *c, const void *bytes, size_t len)
{
    uint8_t *p = take(c, 2 + len);
    if (p) {
        opal_le_put16(p, (uint16_t) len);
        memcpy(p + 2, bytes, len);
    }
}

/* At most `room` bytes, the number to *len. */
static void get_bytes(cursor_t *c, void *bytes, size_t room, uint16_t *len)
{
    uint8_t *p = take(c, 2);
    uint16_t n = p ? opal_le_get16(p) : 0;
    p = n <= room ? take(c, n) : NULL;
    if (!p) {
        c->at = NULL;
        n = 0;
    }
    if (n > 0) {
        memcpy(bytes, p, n);
    }
    *len = n;
}

static void put_address(cursor_t *c, const btl_uct_address_t *a)
{
    put_bytes(c, a->bytes, a->len);
}

static void get_address(cursor_t *c, btl_uct_address_t *a)
{
    get_bytes(c, a->bytes, sizeof(a->bytes), &a->len);
}

static void get_name(cursor_t *c, char name[BTL_UCT_NAME_MAX])
{
    uint16_t len;
    get_bytes(c, name, BTL_UCT_NAME_MAX - 1, &len);
    name[len] = '\0';
    if (strlen(name) != len) {
        c->at = NULL;
    }
}

/* ---- Places ---- */

static void put_place(cursor_t *c, const btl_uct_place_t *place)
{
    put_bytes(c, place->transport, strlen(place->transport));
    put_bytes(c, place->device, strlen(place->device));
    uint8_t *p = take(c, 2);
    if (p) {
        opal_le_put16(p, place->index);
    }
    put_address(c, &place->on);
    put_address(c, &place->iface);
    put_address(c, &place->greeter);
    put_address(c, &place->mover_on);
    put_address(c, &place->mover);
}

static void get_place(cursor_t *c, btl_uct_place_t *place)
{
    get_name(c, place->transport);
    get_name(c, place->device);
    uint8_t *p = take(c, 2);
    place->index = p ? opal_le_get16(p) : 0;
    get_address(c, &place->on);
    get_address(c, &place->iface);
    get_address(c, &place->greeter);
    get_address(c, &place->mover_on);
    get_address(c, &place->mover);
}

size_t btl_uct_place_write(const btl_uct_place_t *place, uint8_t *out, size_t room)
{
    cursor_t c = {out, out + room};
    put_place(&c, place);
    return c.at ? (size_t) (c.at - out) : 0;
}

size_t btl_uct_place_read(const uint8_t *in, size_t len, btl_uct_place_t *place)
{
    cursor_t c = {(uint8_t *) (uintptr_t) in, (uint8_t *) (uintptr_t) in + len};
    get_place(&c, place);
    return c.at ? (size_t) (c.at - in) : 0;
}

/* ---- HELLO ---- */

static void authenticate(const uint8_t *frame, size_t len, const uint8_t secret[32], uint8_t mac[OPAL_SHA256_BYTES])
{
    static const char label[] = "hawser btl uct hello";
    opal_hmac_sha256_t ctx;
    opal_hmac_sha256_init(&ctx, secret, 32);
    opal_hmac_sha256_update(&ctx, label, sizeof(label));
    opal_hmac_sha256_update(&ctx, frame, len);
    opal_hmac_sha256_final(&ctx, mac);
}

size_t btl_uct_hello_write(const btl_uct_hello_t *h, const uint8_t secret[32], uint8_t *out, size_t room)
{
    cursor_t c = {out, out + room};
    uint8_t *p = take(&c, HELLO_FIXED);
    if (p) {
        opal_le_put32(p, HELLO_MAGIC);
        opal_le_put64(p + 4, h->from);
        opal_le_put64(p + 12, h->to);
        opal_le_put32(p + 20, h->id);
        opal_le_put32(p + 24, h->your_id);
        opal_le_put32(p + 28, h->pid);
        opal_le_put64(p + 32, h->pid_space);
    }
    put_place(&c, &h->place);
    put_address(&c, &h->endpoint);
    size_t len = c.at ? (size_t) (c.at - out) : 0;
    p = take(&c, OPAL_SHA256_BYTES);
    if (!p) {
        return 0;
    }
    authenticate(out, len, secret, p);
    return len + OPAL_SHA256_BYTES;
}

size_t btl_uct_hello_read(const uint8_t *in, size_t len, const uint8_t secret[32], btl_uct_hello_t *h)
{
    uint8_t mac[OPAL_SHA256_BYTES];
    if (len < HELLO_FIXED + OPAL_SHA256_BYTES || opal_le_get32(in) != HELLO_MAGIC) {
        return 0;
    }
    authenticate(in, len - OPAL_SHA256_BYTES, secret, mac);
    if (!opal_equal_const_time(mac, in + len - OPAL_SHA256_BYTES, OPAL_SHA256_BYTES)) {
        return 0;
    }
    h->from = opal_le_get64(in + 4);
    h->to = opal_le_get64(in + 12);
    h->id = opal_le_get32(in + 20);
    h->your_id = opal_le_get32(in + 24);
    h->pid = opal_le_get32(in + 28);
    h->pid_space = opal_le_get64(in + 32);
    uint8_t *start = (uint8_t *) (uintptr_t) in;
    cursor_t c = {start + HELLO_FIXED, start + len - OPAL_SHA256_BYTES};
    get_place(&c, &h->place);
    get_address(&c, &h->endpoint);
    return c.at == c.end && h->id != 0 ? len : 0;
}
