/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What comes from other processes: headers, ids, business cards, ranges of arrived bytes. Damaged and random input must be
 * refused, never read past its end (run under the address sanitizer to see that). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/mca/btl/base/btl_base.h"
#include "ompi/mca/pml/base/pml_base_hdr.h"
#include "ompi/mca/pml/base/pml_base_peer.h"
#include "ompi/mca/pml/base/pml_base_ranges.h"
#include "support/tap.h"

static uint64_t state = 88172645463325252u;

static uint32_t draw(uint32_t below)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t) ((state * 0x2545f4914f6cdd1du) >> 33) % below;
}

static void headers(void)
{
    bool short_refused = true, inside = true;
    for (int i = 0; i < 20000; i++) {
        size_t len = draw(100);
        unsigned char *data = malloc(len ? len : 1); /* exactly as long: a read behind it is seen */
        for (size_t k = 0; k < len; k++) {
            data[k] = (unsigned char) (k == 0 ? draw(10) : draw(256));
        }
        size_t hdr_len = mca_pml_hdr_length(data, len);
        inside &= hdr_len <= len;
        short_refused &= len >= sizeof(mca_pml_hdr_common_t) || hdr_len == 0;
        free(data);
    }
    TAP_OK(inside && short_refused, "random headers: never longer than what is there");
    uint8_t match[24] = {MCA_PML_HDR_MATCH};
    TAP_OK(mca_pml_hdr_length(match, 24) == 24 && mca_pml_hdr_length(match, 23) == 0, "MATCH, whole and cut");
}

static void ids(void)
{
    static int a, b;
    uint64_t first = mca_pml_base_id_new(&a, &a);
    TAP_OK(first != 0 && mca_pml_base_id_find(first) == &a, "an id leads to its object");
    mca_pml_base_id_free(first);
    TAP_OK(mca_pml_base_id_find(first) == NULL, "a freed id leads nowhere");
    uint64_t second = mca_pml_base_id_new(&b, &b);
    TAP_OK(second != first && mca_pml_base_id_find(first) == NULL && mca_pml_base_id_find(second) == &b,
           "its slot's next id is another one");
    int wrong = 0;
    for (int i = 0; i < 100000; i++) {
        uint64_t id = (uint64_t) draw(1u << 31) << 32 ^ draw(1u << 31);
        wrong += id != second && mca_pml_base_id_find(id) != NULL;
    }
    TAP_OK(wrong == 0, "forged ids lead nowhere");
    mca_pml_base_id_free(second);
}

static const unsigned char good_card[] = {'H', 'W', 'C', 1,   3,   't', 'e', 'g', 3, 't', 'c', 'p', 4,
                                          0,   0,   0,   'a', 'b', 'c', 'd', 3,   's', 'h', 'm', 0,  0, 0, 0};

static void cards(void)
{
    const char *pml;
    size_t pml_len, len;
    int rc = mca_btl_base_card_check(good_card, sizeof(good_card), &pml, &pml_len);
    TAP_OK(rc == OPAL_SUCCESS && pml_len == 3 && memcmp(pml, "teg", 3) == 0, "a good card");
    const void *part = mca_btl_base_card_find(good_card, sizeof(good_card), "tcp", &len);
    TAP_OK(part && len == 4 && memcmp(part, "abcd", 4) == 0, "its part for tcp");
    TAP_OK(!mca_btl_base_card_find(good_card, sizeof(good_card), "udp", &len), "no part for udp");
    int accepted = 0;
    for (size_t cut = 0; cut < sizeof(good_card); cut++) {
        unsigned char *copy = malloc(cut ? cut : 1);
        memcpy(copy, good_card, cut);
        rc = mca_btl_base_card_check(copy, cut, &pml, &pml_len);
        accepted += rc == OPAL_SUCCESS && cut != 8 && cut != 20; /* the borders of whole parts */
        free(copy);
    }
    TAP_OK(accepted == 0, "cut cards are refused");
    for (int i = 0; i < 50000; i++) { /* damaged ones: anything but a read outside */
        unsigned char *copy = malloc(sizeof(good_card));
        memcpy(copy, good_card, sizeof(good_card));
        copy[draw(sizeof(good_card))] = (unsigned char) draw(256);
        copy[draw(sizeof(good_card))] = (unsigned char) draw(256);
        if (mca_btl_base_card_check(copy, sizeof(good_card), &pml, &pml_len) == OPAL_SUCCESS) {
            mca_btl_base_card_find(copy, sizeof(good_card), "shm", &len);
        }
        free(copy);
    }
    TAP_OK(true, "damaged cards do no harm");
}

/* Random pieces of a message, repeated and overlapping, against a bitmap. */
static bool ranges_run(void)
{
    enum { N = 300 };
    bool have[N] = {false}, good = true;
    size_t received = 0;
    mca_pml_ranges_t ranges;
    uint32_t start = draw(20);
    mca_pml_ranges_init(&ranges, start);
    memset(have, 1, start);
    for (int i = 0; i < 200 && good; i++) {
        uint32_t from = draw(N), to = from + draw(N - from + 1);
        uint64_t fresh, want = 0;
        for (uint32_t k = from; k < to; k++) {
            want += !have[k];
            have[k] = true;
        }
        good = mca_pml_ranges_add(&ranges, from, to, &fresh) && fresh == want;
        received += fresh;
    }
    size_t total = 0;
    for (int k = (int) start; k < N; k++) {
        total += have[k];
    }
    mca_pml_ranges_fini(&ranges);
    return good && total == received;
}

int main(void)
{
    tap_start(60);
    headers();
    ids();
    cards();
    int good = 0;
    for (int i = 0; i < 500; i++) {
        good += ranges_run();
    }
    TAP_OK(good == 500, "arrived ranges: %d of 500 runs equal the bitmap", good);
    return tap_end();
}
