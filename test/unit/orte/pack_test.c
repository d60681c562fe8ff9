/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The writer and reader of messages between daemons: every type there and back, every cut of a
 * message refused, errors that stick. */
#include "orte/util/pack.h"

#include "opal/util/argv.h"
#include "test/support/tap.h"

#include <string.h>

static char *const words[] = {"a", "", "some words", NULL};

static void write_all(orte_pack_t *pack)
{
    orte_pack_u8(pack, 0xab);
    orte_pack_u16(pack, 0xabcd);
    orte_pack_u32(pack, 0xdeadbeef);
    orte_pack_u64(pack, UINT64_C(0x0123456789abcdef));
    orte_pack_i32(pack, -5);
    orte_pack_i64(pack, INT64_MIN);
    orte_pack_bool(pack, true);
    orte_pack_bytes(pack, "\0\1\2", 3);
    orte_pack_bytes(pack, NULL, 0);
    orte_pack_string(pack, "text");
    orte_pack_string(pack, "");
    orte_pack_string(pack, NULL);
    orte_pack_strings(pack, words);
    orte_pack_strings(pack, words + 3);
    orte_pack_strings(pack, NULL);
    orte_pack_raw(pack, "rest", 4);
}

static bool strings_equal(char **texts)
{
    int i = 0;

    for (; texts != NULL && words[i] != NULL && texts[i] != NULL; i++) {
        if (strcmp(texts[i], words[i]) != 0) {
            return false;
        }
    }
    return texts != NULL && texts[i] == NULL && words[i] == NULL;
}

/* Everything as it was written; false, or the reader's error, if not. */
static bool read_all(orte_unpack_t *unpack)
{
    size_t size, empty, rest;
    bool same = orte_unpack_u8(unpack) == 0xab;

    same = orte_unpack_u16(unpack) == 0xabcd && same;
    same = orte_unpack_u32(unpack) == 0xdeadbeef && same;
    same = orte_unpack_u64(unpack) == UINT64_C(0x0123456789abcdef) && same;
    same = orte_unpack_i32(unpack) == -5 && same;
    same = orte_unpack_i64(unpack) == INT64_MIN && same;
    same = orte_unpack_bool(unpack) && same;
    const uint8_t *bytes = orte_unpack_bytes(unpack, &size);
    same = bytes != NULL && size == 3 && memcmp(bytes, "\0\1\2", 3) == 0 && same;
    same = orte_unpack_bytes(unpack, &empty) != NULL && empty == 0 && same;
    char *text = orte_unpack_string(unpack), *none = orte_unpack_string(unpack);
    char *null = orte_unpack_string(unpack);
    same = text != NULL && strcmp(text, "text") == 0 && none != NULL && *none == '\0' &&
           null == NULL && same;
    char **full = orte_unpack_strings(unpack), **hollow = orte_unpack_strings(unpack);
    char **absent = orte_unpack_strings(unpack);
    same = strings_equal(full) && hollow != NULL && hollow[0] == NULL && absent == NULL && same;
    bytes = orte_unpack_rest(unpack, &rest);
    same = bytes != NULL && rest == 4 && memcmp(bytes, "rest", 4) == 0 && same;
    free(text);
    free(none);
    opal_argv_free(full);
    opal_argv_free(hollow);
    return same && orte_unpack_is_done(unpack);
}

/* Every length but the right one fails; the bytes are on the heap, so that a sanitizer sees a look
 * beyond them. The last four are the rest, which has no length of its own. */
static void test_cuts(const uint8_t *data, size_t size)
{
    size_t refused = 0, sticky = 0;

    for (size_t len = 0; len < size - 4; len++) {
        uint8_t *cut = malloc(len + (len == 0));
        memcpy(cut, data, len);
        orte_unpack_t unpack;
        orte_unpack_init(&unpack, cut, len);
        refused += !read_all(&unpack) && unpack.rc == OPAL_ERR_TRUNCATE;
        sticky += orte_unpack_u8(&unpack) == 0 && orte_unpack_string(&unpack) == NULL;
        free(cut);
    }
    TAP_OK(refused == size - 4, "%zu of %zu cut messages are refused", refused, size - 4);
    TAP_OK(sticky == size - 4, "the error sticks");
}

static void test_lies(void)
{
    static const uint8_t huge[] = {1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 'x'};
    static const uint8_t two[] = {2}, zero_inside[] = {1, 2, 0, 0, 0, 0, 0, 0, 0, 'x', 0};
    orte_unpack_t unpack;
    size_t size;

    orte_unpack_init(&unpack, huge, sizeof(huge));
    TAP_OK(orte_unpack_strings(&unpack) == NULL && unpack.rc == OPAL_ERR_TRUNCATE,
           "2^64-1 strings");
    orte_unpack_init(&unpack, huge, sizeof(huge));
    TAP_OK(orte_unpack_string(&unpack) == NULL && unpack.rc == OPAL_ERR_TRUNCATE,
           "a string of 2^64-1 bytes");
    orte_unpack_init(&unpack, huge + 1, sizeof(huge) - 1);
    TAP_OK(orte_unpack_bytes(&unpack, &size) == NULL && size == 0, "2^64-1 bytes");
    orte_unpack_init(&unpack, two, sizeof(two));
    TAP_OK(!orte_unpack_bool(&unpack) && unpack.rc == OPAL_ERR_PARSE, "a bool of 2");
    orte_unpack_init(&unpack, zero_inside, sizeof(zero_inside));
    TAP_OK(orte_unpack_string(&unpack) == NULL && unpack.rc == OPAL_ERR_PARSE,
           "a string with a zero inside");
}

static void test_sizes(void)
{
    orte_pack_t pack;
    size_t size = 1;
    char *block = calloc(1, 100000);

    orte_pack_init(&pack);
    uint8_t *data = orte_pack_take(&pack, &size);
    TAP_OK(data != NULL && size == 0, "nothing is no error");
    free(data);
    for (int i = 0; i < 20; i++) {
        orte_pack_raw(&pack, block, 100000);
    }
    data = orte_pack_take(&pack, &size);
    TAP_OK(data != NULL && size == 2000000, "many bytes");
    free(data);
    orte_pack_raw(&pack, block, 1);
    orte_pack_raw(&pack, block, SIZE_MAX - 10);
    orte_pack_u8(&pack, 1);
    TAP_OK(orte_pack_take(&pack, &size) == NULL, "more than memory can hold");
    orte_pack_u8(&pack, 7);
    data = orte_pack_take(&pack, &size);
    TAP_OK(data != NULL && size == 1 && data[0] == 7, "the writer is as new after that");
    free(data);
    free(block);
}

int main(void)
{
    orte_pack_t pack;
    orte_unpack_t unpack;
    size_t size;

    tap_start(30);
    orte_pack_init(&pack);
    write_all(&pack);
    uint8_t *data = orte_pack_take(&pack, &size);
    TAP_REQUIRE(data != NULL, "written");
    static const uint8_t start[] = {0xab, 0xcd, 0xab, 0xef, 0xbe, 0xad, 0xde};
    TAP_OK(memcmp(data, start, sizeof(start)) == 0, "numbers are little-endian");
    orte_unpack_init(&unpack, data, size);
    TAP_OK(read_all(&unpack), "read as written");
    orte_unpack_init(&unpack, data, size);
    orte_unpack_u8(&unpack);
    TAP_OK(!orte_unpack_is_done(&unpack), "something left is not done");
    test_cuts(data, size);
    free(data);
    test_lies();
    test_sizes();
    return tap_end();
}
