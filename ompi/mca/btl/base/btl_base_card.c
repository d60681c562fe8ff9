/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Reads business cards; every length is checked, they come from other processes. */
#include "ompi/mca/btl/base/btl_base_private.h"

#include <string.h>

static const uint8_t card_magic[4] = {'H', 'W', 'C', 1};

typedef struct reader {
    const uint8_t *p, *end;
} reader_t;

static const uint8_t *take(reader_t *r, size_t n)
{
    if ((size_t) (r->end - r->p) < n) {
        return NULL;
    }
    const uint8_t *at = r->p;
    r->p += n;
    return at;
}

/* {u8 length, characters} */
static const char *take_name(reader_t *r, size_t *len)
{
    const uint8_t *n = take(r, 1);
    if (!n) {
        return NULL;
    }
    *len = *n;
    return (const char *) take(r, *len);
}

static const uint8_t *take_part(reader_t *r, const char **name, size_t *name_len, size_t *len)
{
    uint32_t n;
    *name = take_name(r, name_len);
    const uint8_t *length = *name ? take(r, sizeof(n)) : NULL;
    if (!length) {
        return NULL;
    }
    memcpy(&n, length, sizeof(n));
    *len = le32toh(n);
    return take(r, *len);
}

static const char *open_card(reader_t *r, const void *card, size_t len, size_t *pml_len)
{
    r->p = card;
    r->end = r->p + len;
    const uint8_t *magic = take(r, sizeof(card_magic));
    if (!magic || memcmp(magic, card_magic, sizeof(card_magic)) != 0) {
        return NULL;
    }
    return take_name(r, pml_len);
}

int mca_btl_base_card_check(const void *card, size_t len, const char **pml, size_t *pml_len)
{
    reader_t r;
    *pml = open_card(&r, card, len, pml_len);
    if (!*pml) {
        return OPAL_ERR_PARSE;
    }
    while (r.p < r.end) {
        const char *name;
        size_t name_len, part_len;
        if (!take_part(&r, &name, &name_len, &part_len)) {
            return OPAL_ERR_PARSE;
        }
    }
    return OPAL_SUCCESS;
}

const void *mca_btl_base_card_find(const void *card, size_t len, const char *component, size_t *part_len)
{
    reader_t r;
    size_t pml_len, name_len;
    const char *name;
    if (!open_card(&r, card, len, &pml_len)) {
        return NULL;
    }
    while (r.p < r.end) {
        const uint8_t *part = take_part(&r, &name, &name_len, part_len);
        if (!part) {
            return NULL;
        }
        if (name_len == strlen(component) && memcmp(name, component, name_len) == 0) {
            return part;
        }
    }
    return NULL;
}

static int append(mca_btl_base_card_t *card, const void *data, size_t len)
{
    uint8_t *grown = realloc(card->bytes, card->len + len);
    if (!grown) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    memcpy(grown + card->len, data, len);
    card->bytes = grown;
    card->len += len;
    return OPAL_SUCCESS;
}

static int append_name(mca_btl_base_card_t *card, const char *name)
{
    size_t len = strlen(name);
    uint8_t n = (uint8_t) len;
    if (len > UINT8_MAX) {
        return OPAL_ERR_BAD_PARAM;
    }
    int rc = append(card, &n, 1);
    return rc == OPAL_SUCCESS ? append(card, name, len) : rc;
}

int mca_btl_base_card_begin(mca_btl_base_card_t *card, const char *pml)
{
    int rc = append(card, card_magic, sizeof(card_magic));
    return rc == OPAL_SUCCESS ? append_name(card, pml) : rc;
}

int mca_btl_base_card_add(mca_btl_base_card_t *card, const char *component, const void *data, size_t len)
{
    uint32_t n = htole32((uint32_t) len);
    if (len > UINT32_MAX) {
        return OPAL_ERR_BAD_PARAM;
    }
    int rc = append_name(card, component);
    if (rc == OPAL_SUCCESS) {
        rc = append(card, &n, sizeof(n));
    }
    return rc == OPAL_SUCCESS ? append(card, data, len) : rc;
}
