/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Appending to a buffer that doubles, and reading with every length checked. */
#include "orte/util/pack.h"

#include "opal/util/argv.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 256 };

static const uint8_t nothing; /* what empty pieces point to */

/* ---- Writing ---- */

void orte_pack_init(orte_pack_t *pack)
{
    *pack = (orte_pack_t){.rc = OPAL_SUCCESS};
}

void orte_pack_fini(orte_pack_t *pack)
{
    free(pack->data);
    orte_pack_init(pack);
}

/* Room for `size` more bytes, counted as written; NULL after an error. */
static uint8_t *extend(orte_pack_t *pack, size_t size)
{
    if (pack->rc != OPAL_SUCCESS) {
        return NULL;
    }
    if (size > pack->room - pack->size) {
        size_t room = pack->room == 0 ? FIRST_ROOM : pack->room;
        while (room - pack->size < size && room <= SIZE_MAX / 2) {
            room *= 2;
        }
        uint8_t *grown = room - pack->size < size ? NULL : realloc(pack->data, room);
        if (grown == NULL) {
            pack->rc = OPAL_ERR_OUT_OF_RESOURCE;
            return NULL;
        }
        pack->data = grown;
        pack->room = room;
    }
    uint8_t *at = pack->data + pack->size;
    pack->size += size;
    return at;
}

uint8_t *orte_pack_take(orte_pack_t *pack, size_t *size)
{
    uint8_t *data = NULL;

    if (pack->data == NULL) {
        extend(pack, 1);
        pack->size = 0;
    }
    if (pack->rc == OPAL_SUCCESS) {
        data = pack->data;
        *size = pack->size;
        pack->data = NULL;
    }
    orte_pack_fini(pack);
    return data;
}

static void put_number(orte_pack_t *pack, uint64_t value, size_t size)
{
    uint8_t *at = extend(pack, size);

    for (size_t i = 0; at != NULL && i < size; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

void orte_pack_u8(orte_pack_t *pack, uint8_t value)
{
    put_number(pack, value, sizeof(value));
}

void orte_pack_u16(orte_pack_t *pack, uint16_t value)
{
    put_number(pack, value, sizeof(value));
}

void orte_pack_u32(orte_pack_t *pack, uint32_t value)
{
    put_number(pack, value, sizeof(value));
}

void orte_pack_u64(orte_pack_t *pack, uint64_t value)
{
    put_number(pack, value, sizeof(value));
}

void orte_pack_i32(orte_pack_t *pack, int32_t value)
{
    put_number(pack, (uint32_t)value, sizeof(value));
}

void orte_pack_i64(orte_pack_t *pack, int64_t value)
{
    put_number(pack, (uint64_t)value, sizeof(value));
}

void orte_pack_bool(orte_pack_t *pack, bool value)
{
    put_number(pack, value, 1);
}

void orte_pack_raw(orte_pack_t *pack, const void *data, size_t size)
{
    uint8_t *at = extend(pack, size);

    if (at != NULL && size > 0) {
        memcpy(at, data, size);
    }
}

void orte_pack_bytes(orte_pack_t *pack, const void *data, size_t size)
{
    orte_pack_u64(pack, size);
    orte_pack_raw(pack, data, size);
}

void orte_pack_string(orte_pack_t *pack, const char *text)
{
    orte_pack_bool(pack, text != NULL);
    if (text != NULL) {
        orte_pack_bytes(pack, text, strlen(text));
    }
}

void orte_pack_strings(orte_pack_t *pack, char *const *texts)
{
    uint64_t count = 0;

    orte_pack_bool(pack, texts != NULL);
    if (texts == NULL) {
        return;
    }
    while (texts[count] != NULL) {
        count++;
    }
    orte_pack_u64(pack, count);
    for (uint64_t i = 0; i < count; i++) {
        orte_pack_bytes(pack, texts[i], strlen(texts[i]));
    }
}

/* ---- Reading ---- */

void orte_unpack_init(orte_unpack_t *unpack, const void *data, size_t size)
{
    *unpack = (orte_unpack_t){.at = data, .left = size, .rc = OPAL_SUCCESS};
}

bool orte_unpack_is_done(const orte_unpack_t *unpack)
{
    return unpack->rc == OPAL_SUCCESS && unpack->left == 0;
}

static void fail(orte_unpack_t *unpack, int rc)
{
    if (unpack->rc == OPAL_SUCCESS) {
        unpack->rc = rc;
    }
}

/* The next `size` bytes; NULL after an error, never for size 0 without one. */
static const uint8_t *next(orte_unpack_t *unpack, uint64_t size)
{
    if (unpack->rc == OPAL_SUCCESS && size > unpack->left) {
        fail(unpack, OPAL_ERR_TRUNCATE);
    }
    if (unpack->rc != OPAL_SUCCESS) {
        return NULL;
    }
    if (size == 0) {
        return &nothing;
    }
    const uint8_t *at = unpack->at;
    unpack->at += size;
    unpack->left -= (size_t)size;
    return at;
}

static uint64_t get_number(orte_unpack_t *unpack, size_t size)
{
    const uint8_t *at = next(unpack, size);
    uint64_t value = 0;

    for (size_t i = 0; at != NULL && i < size; i++) {
        value |= (uint64_t)at[i] << (8 * i);
    }
    return value;
}

uint8_t orte_unpack_u8(orte_unpack_t *unpack)
{
    return (uint8_t)get_number(unpack, 1);
}

uint16_t orte_unpack_u16(orte_unpack_t *unpack)
{
    return (uint16_t)get_number(unpack, 2);
}

uint32_t orte_unpack_u32(orte_unpack_t *unpack)
{
    return (uint32_t)get_number(unpack, 4);
}

uint64_t orte_unpack_u64(orte_unpack_t *unpack)
{
    return get_number(unpack, 8);
}

int32_t orte_unpack_i32(orte_unpack_t *unpack)
{
    return (int32_t)orte_unpack_u32(unpack);
}

int64_t orte_unpack_i64(orte_unpack_t *unpack)
{
    return (int64_t)orte_unpack_u64(unpack);
}

bool orte_unpack_bool(orte_unpack_t *unpack)
{
    uint8_t value = orte_unpack_u8(unpack);

    if (value > 1) {
        fail(unpack, OPAL_ERR_PARSE);
    }
    return value == 1;
}

const uint8_t *orte_unpack_bytes(orte_unpack_t *unpack, size_t *size)
{
    uint64_t length = orte_unpack_u64(unpack);
    const uint8_t *at = next(unpack, length);

    *size = at == NULL ? 0 : (size_t)length;
    return at;
}

const uint8_t *orte_unpack_rest(orte_unpack_t *unpack, size_t *size)
{
    *size = unpack->rc == OPAL_SUCCESS ? unpack->left : 0;
    return next(unpack, *size);
}

/* A string that is there. */
static char *get_text(orte_unpack_t *unpack)
{
    size_t size;
    const uint8_t *at = orte_unpack_bytes(unpack, &size);

    if (at == NULL) {
        return NULL;
    }
    if (memchr(at, '\0', size) != NULL) {
        fail(unpack, OPAL_ERR_PARSE);
        return NULL;
    }
    char *text = malloc(size + 1);
    if (text == NULL) {
        fail(unpack, OPAL_ERR_OUT_OF_RESOURCE);
        return NULL;
    }
    memcpy(text, at, size);
    text[size] = '\0';
    return text;
}

char *orte_unpack_string(orte_unpack_t *unpack)
{
    return orte_unpack_bool(unpack) ? get_text(unpack) : NULL;
}

char **orte_unpack_strings(orte_unpack_t *unpack)
{
    if (!orte_unpack_bool(unpack)) {
        return NULL;
    }
    uint64_t count = orte_unpack_u64(unpack);
    if (count > unpack->left / sizeof(uint64_t)) { /* each has at least its length */
        fail(unpack, OPAL_ERR_TRUNCATE);
    }
    if (unpack->rc != OPAL_SUCCESS) {
        return NULL;
    }
    char **texts = calloc((size_t)count + 1, sizeof(*texts));
    if (texts == NULL) {
        fail(unpack, OPAL_ERR_OUT_OF_RESOURCE);
        return NULL;
    }
    for (uint64_t i = 0; i < count && unpack->rc == OPAL_SUCCESS; i++) {
        texts[i] = get_text(unpack);
    }
    if (unpack->rc != OPAL_SUCCESS) {
        opal_argv_free(texts);
        return NULL;
    }
    return texts;
}
