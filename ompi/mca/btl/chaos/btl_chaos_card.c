/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The card: for each component below {u8 length of its name, name, u32 length, bytes}, little-endian. A process that
 * has the same component without chaos, or not at all, finds no part of its own, and is not reached. */
#include "ompi/mca/btl/chaos/btl_chaos.h"

#include <endian.h>

static unsigned char *card;
static size_t card_len;

int mca_btl_chaos_card_add(const char *component, const void *data, size_t len)
{
    size_t name = strlen(component), part = 1 + name + sizeof(uint32_t) + len;
    unsigned char *grown = name <= UINT8_MAX && len <= UINT32_MAX ? realloc(card, card_len + part) : NULL;
    if (!grown) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    card = grown;
    uint32_t le = htole32((uint32_t) len);
    unsigned char *at = card + card_len;
    *at++ = (unsigned char) name;
    memcpy(at, component, name);
    memcpy(at + name, &le, sizeof(le));
    memcpy(at + name + sizeof(le), data, len);
    card_len += part;
    return MCA_SUCCESS;
}

int mca_btl_chaos_card_publish(void)
{
    int rc = card ? mca_btl_chaos_services->publish("chaos", card, card_len) : MCA_SUCCESS;
    free(card);
    card = NULL;
    card_len = 0;
    return rc;
}

const void *mca_btl_chaos_card_find(const void *from, size_t len, const char *component, size_t *part_len)
{
    const unsigned char *at = from;
    while (len > 0) {
        uint32_t le;
        size_t name = at[0], head = 1 + name + sizeof(le);
        if (len < head) {
            return NULL;
        }
        memcpy(&le, at + 1 + name, sizeof(le));
        *part_len = le32toh(le);
        if (*part_len > len - head) {
            return NULL;
        }
        if (name == strlen(component) && memcmp(at + 1, component, name) == 0) {
            return at + head;
        }
        at += head + *part_len;
        len -= head + *part_len;
    }
    return NULL;
}
