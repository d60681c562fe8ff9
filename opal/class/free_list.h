/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bounded pools of equal items, got from the system in chunks and given back when the surplus
 * lasts.
 *
 *      chunk, aligned to its size (a power of two)
 *      +--------+------+------+------+-----
 *      | header | item | item | item | ...       item -> chunk by masking the address
 *      +--------+------+------+------+-----
 *
 * get and put are O(1). Items come from the chunk used last, so that rarely used chunks become
 * empty. opal_free_list_tick(), called at regular intervals, follows the demand (its peak since the
 * last tick, which then fades by 1/8 per tick) and frees empty chunks above it. A free item's first
 * pointer is the list's; the rest of its bytes stay as they were put back. No locking.
 */
#ifndef OPAL_CLASS_FREE_LIST_H
#define OPAL_CLASS_FREE_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "opal/class/list.h"
#include "opal/constants.h"

typedef struct opal_free_list_item {
    struct opal_free_list_item *next;
} opal_free_list_item_t;

typedef struct opal_free_list_chunk {
    opal_list_item_t item;          /* of `partial` or `full` */
    opal_free_list_item_t *free;
    uint32_t used;                  /* items handed out */
} opal_free_list_chunk_t;

typedef struct opal_free_list {
    opal_list_t partial;            /* chunks with free items; empty ones at the end */
    opal_list_t full;
    size_t item_size, chunk_size, first_item;
    uint32_t per_chunk;
    size_t max;                     /* items that may exist; 0: no bound */
    size_t existing, used;
    size_t peak, demand;            /* items in use: most since the last tick; fading most */
    void (*construct)(void *item);  /* once per item, when its chunk is made; may be NULL */
} opal_free_list_t;

/* `align`: a power of two, at most 4096; `per_chunk`: a wish for the number of items per chunk. */
OPAL_DECLSPEC int opal_free_list_init(opal_free_list_t *list, size_t item_size, size_t align,
                                      uint32_t per_chunk,
                                      size_t max, void (*construct)(void *item));
/* All items must be back. */
OPAL_DECLSPEC void opal_free_list_fini(opal_free_list_t *list);
OPAL_DECLSPEC void opal_free_list_tick(opal_free_list_t *list);

/* Private: a chunk with a free item, made if need be; NULL: the bound or memory is reached. */
OPAL_DECLSPEC opal_free_list_chunk_t *opal_free_list_more(opal_free_list_t *list);

/* An item, or NULL if the bound or memory is reached. */
static inline void *opal_free_list_get(opal_free_list_t *list)
{
    opal_free_list_chunk_t *chunk = (opal_free_list_chunk_t *) list->partial.head.next;
    if (OPAL_UNLIKELY(opal_list_is_empty(&list->partial))) {
        chunk = opal_free_list_more(list);
        if (NULL == chunk) {
            return NULL;
        }
    }
    opal_free_list_item_t *item = chunk->free;
    chunk->free = item->next;
    chunk->used++;
    if (OPAL_UNLIKELY(NULL == chunk->free)) {
        opal_list_remove(&chunk->item);
        opal_list_append(&list->full, &chunk->item);
    }
    if (++list->used > list->peak) {
        list->peak = list->used;
    }
    return item;
}

static inline void opal_free_list_put(opal_free_list_t *list, void *pointer)
{
    opal_free_list_item_t *item = pointer;
    opal_free_list_chunk_t *chunk =
        (opal_free_list_chunk_t *) ((uintptr_t) pointer & ~(uintptr_t) (list->chunk_size - 1));
    const bool was_full = NULL == chunk->free;
    item->next = chunk->free;
    chunk->free = item;
    list->used--;
    if (OPAL_UNLIKELY(0 == --chunk->used)) {
        opal_list_remove(&chunk->item);
        opal_list_append(&list->partial, &chunk->item);
    } else if (OPAL_UNLIKELY(was_full)) {
        opal_list_remove(&chunk->item);
        opal_list_prepend(&list->partial, &chunk->item);
    }
}

#endif
