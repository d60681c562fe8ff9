/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What the system says of caches. */
#include "opal/util/cache.h"
#include <string.h>
#include <unistd.h>

#include "support/tap.h"

int main(void)
{
    static const struct {
        const char *text;
        size_t bytes;
    } texts[] = {{"32768K\n", 32 << 20}, {"48K", 48 << 10}, {"2M\n", 2 << 20}, {"1G", 1 << 30}, {"512\n", 512}, {"0K", 0},
                 {"", 0}, {"K", 0}, {"-4K", 0}, {"unknown\n", 0}, {"18446744073709551615K", 0}, {"99999999999999999999999", 0}};
    tap_start(60);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        TAP_OK(opal_cache_parse(texts[i].text) == texts[i].bytes, "\"%.*s\"", (int) strcspn(texts[i].text, "\n"), texts[i].text);
    }
    size_t largest = opal_cache_largest();
    bool known = access("/sys/devices/system/cpu/cpu0/cache/index0/size", R_OK) == 0;
    TAP_OK(known ? largest >= 4096 && largest <= (size_t) 64 << 30 : largest == 0, "the largest cache has %zu bytes, or is not known", largest);
    TAP_OK(opal_cache_largest() == largest, "... also when asked again");
    return tap_end();
}
