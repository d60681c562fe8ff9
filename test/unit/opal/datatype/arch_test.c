/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The ids of architectures: an id stands for one architecture, and ids from the wire do no harm. */
#include "opal/constants.h"
#include "opal/datatype/arch.h"
#include "test/support/tap.h"

#include <string.h>

static bool comes_back(const opal_arch_t *arch)
{
    const opal_arch_t *back = opal_arch_of_id(opal_arch_id(arch));

    return back != NULL && opal_arch_equal(arch, back);
}

static void test_ids(void)
{
    size_t known = 0, wrong = 0, convertible = 0;

    for (unsigned id = 0; id <= UINT16_MAX; id++) {
        const opal_arch_t *arch = opal_arch_of_id((uint16_t) id);
        if (arch != NULL) {
            known++;
            wrong += opal_arch_id(arch) != id;
            convertible += opal_arch_check(arch) == OPAL_SUCCESS;
        }
    }
    TAP_OK(known == 48, "%zu of 65536 ids are known", known);
    TAP_OK(wrong == 0, "an architecture's id is its own");
    TAP_OK(convertible >= 16 && convertible <= known, "%zu of them can be converted", convertible);
}

/* An integer that goes to a foreign machine and back. */
static void test_conversion(void)
{
    const opal_arch_t *foreign = opal_arch_of_id(OPAL_ARCH_BIG_ENDIAN | OPAL_ARCH_LONG32 | OPAL_ARCH_IEEE128);
    long here = 0x01020304, back = 0;
    uint8_t there[8] = {0};

    opal_arch_to_remote(foreign, OPAL_BASIC_LONG, there, &here, 1);
    TAP_OK(memcmp(there, "\1\2\3\4\0\0\0\0", 8) == 0, "a long of a big-endian machine with 4 bytes");
    opal_arch_from_remote(foreign, OPAL_BASIC_LONG, &back, there, 1);
    TAP_OK(back == here, "and back");
}

/* Numbers of other long doubles, to and from every machine that can be converted; and what else such a machine has. */
static void test_long_doubles(void)
{
    const long double here[] = {0, -1.5L, 1e300L, 3.25e-300L};
    size_t refused = 0, converted = 0, wrong = 0;

    for (unsigned id = 0; id <= UINT16_MAX; id++) {
        const opal_arch_t *arch = opal_arch_of_id((uint16_t) id);
        long double back[4] = {7, 7, 7, 7};
        uint8_t there[4 * 16];

        if (arch == NULL) {
            continue;
        }
        refused += opal_arch_check(arch) != OPAL_SUCCESS || !opal_arch_converts(arch, OPAL_BASIC_INT32);
        if (opal_arch_converts(arch, OPAL_BASIC_LONG_DOUBLE)) {
            converted++;
            opal_arch_to_remote(arch, OPAL_BASIC_LONG_DOUBLE, there, here, 4);
            opal_arch_from_remote(arch, OPAL_BASIC_LONG_DOUBLE, back, there, 4);
            for (int i = 0; i < 4; i++) {
                wrong += back[i] != (arch->size[OPAL_BASIC_LONG_DOUBLE] == 8 ? (long double) (double) here[i] : here[i]);
            }
        }
    }
    TAP_OK(refused == 0, "integers go between all machines");
    TAP_OK(converted >= 16, "long doubles between %zu and ours", converted);
    TAP_OK(wrong == 0, "... and come back as they were");
}

int main(void)
{
    tap_start(30);
    TAP_OK(comes_back(opal_arch_local()), "ours has an id");
    TAP_OK(comes_back(opal_arch_external32()), "external32 has an id");
    test_ids();
    test_conversion();
    test_long_doubles();
    return tap_end();
}
