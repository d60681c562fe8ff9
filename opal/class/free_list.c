/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Chunks of free lists: made on demand, freed when demand has faded. */
#include "opal/class/free_list.h"

#include <stdlib.h>
#include <string.h>

static size_t round_up(size_t n, size_t align)
{
    return (n + align - 1) & ~(align - 1);
}

int opal_free_list_init(opal_free_list_t *list, size_t item_size, size_t align, uint32_t per_chunk,
                        size_t max,
                        void (*construct)(void *item))
{
    if (0 == item_size || 0 == per_chunk || 0 == align || (align & (align - 1)) != 0 || align > 4096
        || item_size > SIZE_MAX / 4 / per_chunk) {
        return OPAL_ERR_BAD_PARAM;
    }
    if (align < sizeof(opal_free_list_item_t)) {
        align = sizeof(opal_free_list_item_t);
    }
    memset(list, 0, sizeof(*list));
    opal_list_init(&list->partial);
    opal_list_init(&list->full);
    list->item_size = round_up(item_size, align);
    list->first_item = round_up(sizeof(opal_free_list_chunk_t), align);
    list->chunk_size = 256;
    while (list->chunk_size < list->first_item + per_chunk * list->item_size) {
        list->chunk_size *= 2;
    }
    /* Rounding up to a power of two leaves room for more items than wished for. */
    list->per_chunk = (uint32_t) ((list->chunk_size - list->first_item) / list->item_size);
    list->max = max;
    list->construct = construct;
    return OPAL_SUCCESS;
}

opal_free_list_chunk_t *opal_free_list_more(opal_free_list_t *list)
{
    const size_t allowed = list->max ? list->max - list->existing : list->per_chunk;
    const uint32_t n = allowed < list->per_chunk ? (uint32_t) allowed : list->per_chunk;
    opal_free_list_chunk_t *chunk = n > 0 ? aligned_alloc(list->chunk_size, list->chunk_size)
        : NULL;
    if (NULL == chunk) {
        return NULL;
    }
    chunk->free = NULL;
    chunk->used = 0;
    for (uint32_t i = n; i > 0; i--) {
        opal_free_list_item_t *item =
            (opal_free_list_item_t *) ((char *) chunk + list->first_item
                                       + (i - 1) * list->item_size);
        if (list->construct) {
            list->construct(item);
        }
        item->next = chunk->free;
        chunk->free = item;
    }
    list->existing += n;
    opal_list_append(&list->partial, &chunk->item);
    return chunk;
}

/* How many items a chunk without used ones holds: all but perhaps the last made have per_chunk. */
static size_t count_free(const opal_free_list_chunk_t *chunk)
{
    size_t n = 0;
    for (const opal_free_list_item_t *i = chunk->free; i; i = i->next) {
        n++;
    }
    return n;
}

void opal_free_list_tick(opal_free_list_t *list)
{
    const size_t faded = list->demand - list->demand / 8 - (list->demand > 0 && list->demand < 8);
    list->demand = list->peak > faded ? list->peak : faded;
    list->peak = list->used;
    for (;;) {
        opal_free_list_chunk_t *last = (opal_free_list_chunk_t *) opal_list_last(&list->partial);
        const size_t n = last && 0 == last->used ? count_free(last) : 0;
        if (0 == n || list->existing - n < list->demand) {
            return;
        }
        opal_list_remove(&last->item);
        list->existing -= n;
        free(last);
    }
}

void opal_free_list_fini(opal_free_list_t *list)
{
    opal_list_splice(&list->partial, &list->full);
    for (opal_list_item_t *i; NULL != (i = opal_list_pop(&list->partial));) {
        free(OPAL_CONTAINER_OF(i, opal_free_list_chunk_t, item));
    }
    list->existing = list->used = 0;
}
