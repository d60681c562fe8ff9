/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Every second of 8-byte elements (opal/datatype/copy_second.h), packed and unpacked: what is copied is right, for all lengths and places, and
 * nothing else is touched. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "opal/constants.h"
#include "opal/datatype/convertor.h"
#include "opal/datatype/datatype.h"
#include "support/tap.h"

enum { MOST = 70, GAPS = 16, SHIFTS = 9, ROOM = 16 * MOST + 64, NOTHING = 0xa5 };

static unsigned char apart[ROOM], close_by[ROOM], back[ROOM];

static void fill(unsigned char *bytes, unsigned seed)
{
    for (size_t i = 0; i < ROOM; i++) {
        bytes[i] = (unsigned char) (seed + 7 * i + i / 251);
    }
}

/* Are `n` elements at `at`, `stride` bytes apart, those at `from`, `from_stride` apart, and is all else as it was? */
static bool only(const unsigned char *at, size_t stride, const unsigned char *from, size_t from_stride, size_t n, size_t shift)
{
    bool good = true;
    for (size_t i = 0; i < ROOM; i++) {
        size_t k = i < shift ? MOST : (i - shift) / stride, in = i < shift ? 0 : (i - shift) % stride;
        good &= at[i] == (k < n && in < 8 ? from[shift + k * from_stride + in] : NOTHING);
    }
    return good;
}

/* `n` elements of `type` with a gap behind each. */
static opal_convertor_t convertor(opal_datatype_t *seconds, const opal_datatype_t *type, size_t n, void *at)
{
    opal_convertor_t conv;
    if (opal_datatype_loop(seconds, type, n, GAPS) != OPAL_SUCCESS || opal_convertor_init(&conv, seconds, 1, at, NULL) != OPAL_SUCCESS) {
        abort();
    }
    return conv;
}

static void lengths(void)
{
    bool packed = true, unpacked = true, cut = true;
    opal_datatype_t type, seconds;
    if (opal_datatype_init_basic(&type, OPAL_BASIC_FLOAT64) != OPAL_SUCCESS) {
        abort();
    }
    for (size_t n = 1; n <= MOST; n++) {
        for (size_t shift = 0; shift < SHIFTS; shift++) {
            fill(apart, (unsigned) n);
            memset(close_by, NOTHING, ROOM);
            opal_convertor_t conv = convertor(&seconds, &type, n, apart + shift);
            packed &= opal_convertor_pack_at(&conv, 0, close_by + shift, 8 * n) == 8 * n && only(close_by, 8, apart, GAPS, n, shift);
            memset(back, NOTHING, ROOM);
            size_t some = 8 * n / 3;
            cut &= opal_convertor_pack_at(&conv, some, back, 8 * n) == 8 * n - some && memcmp(back, close_by + shift + some, 8 * n - some) == 0;
            opal_datatype_fini(&seconds);
            fill(close_by, (unsigned) shift);
            memset(back, NOTHING, ROOM);
            conv = convertor(&seconds, &type, n, back + shift);
            unpacked &= opal_convertor_unpack_at(&conv, 0, close_by + shift, 8 * n) == 8 * n && only(back, GAPS, close_by, 8, n, shift);
            opal_datatype_fini(&seconds);
        }
    }
    opal_datatype_fini(&type);
    TAP_OK(packed, "packed, up to %d elements at %d places", MOST, SHIFTS);
    TAP_OK(cut, "... from within an element");
    TAP_OK(unpacked, "unpacked: what lies between is as it was");
}

int main(void)
{
    tap_start(30);
    lengths();
    return tap_end();
}
