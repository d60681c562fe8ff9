/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intrusive doubly linked list, circular with a head: the one list of the code base.
 *
 *      head <-> item <-> item <-> (head)
 *
 * All operations are O(1) but opal_list_length(). An item is in one list at a time; an item out of any list
 * that was removed with opal_list_remove() points to itself. No locking.
 */
#ifndef OPAL_CLASS_LIST_H
#define OPAL_CLASS_LIST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct opal_list_item {
    struct opal_list_item *next, *prev;
} opal_list_item_t;

typedef struct opal_list {
    opal_list_item_t head;
} opal_list_t;

#define OPAL_LIST_INIT(list) {{&(list).head, &(list).head}}

/* The structure around a member. */
#define OPAL_CONTAINER_OF(ptr, type, member) ((type *) ((char *) (ptr) -offsetof(type, member)))

static inline void opal_list_init(opal_list_t *list)
{
    list->head.next = list->head.prev = &list->head;
}

static inline void opal_list_item_init(opal_list_item_t *item)
{
    item->next = item->prev = item;
}

static inline bool opal_list_is_empty(const opal_list_t *list)
{
    return list->head.next == &list->head;
}

/* True if the item, once initialised, is in a list. */
static inline bool opal_list_item_is_linked(const opal_list_item_t *item)
{
    return item->next != item;
}

static inline void opal_list_insert_before(opal_list_item_t *pos, opal_list_item_t *item)
{
    item->next = pos;
    item->prev = pos->prev;
    pos->prev->next = item;
    pos->prev = item;
}

static inline void opal_list_append(opal_list_t *list, opal_list_item_t *item)
{
    opal_list_insert_before(&list->head, item);
}

static inline void opal_list_prepend(opal_list_t *list, opal_list_item_t *item)
{
    opal_list_insert_before(list->head.next, item);
}

static inline void opal_list_remove(opal_list_item_t *item)
{
    item->prev->next = item->next;
    item->next->prev = item->prev;
    opal_list_item_init(item);
}

/* `fresh` takes the place of `old`, which is in no list then. */
static inline void opal_list_replace(opal_list_item_t *old, opal_list_item_t *fresh)
{
    opal_list_insert_before(old, fresh);
    opal_list_remove(old);
}

/* First item, or NULL. */
static inline opal_list_item_t *opal_list_first(const opal_list_t *list)
{
    return opal_list_is_empty(list) ? NULL : list->head.next;
}

/* Last item, or NULL. */
static inline opal_list_item_t *opal_list_last(const opal_list_t *list)
{
    return opal_list_is_empty(list) ? NULL : list->head.prev;
}

/* The item after `item`, or NULL at the end. */
static inline opal_list_item_t *opal_list_next(const opal_list_t *list, const opal_list_item_t *item)
{
    return item->next == &list->head ? NULL : item->next;
}

/* Take the first item out, or NULL. */
static inline opal_list_item_t *opal_list_pop(opal_list_t *list)
{
    opal_list_item_t *item = opal_list_first(list);
    if (item) {
        opal_list_remove(item);
    }
    return item;
}

/* Move all of `from` to the end of `to`. */
static inline void opal_list_splice(opal_list_t *to, opal_list_t *from)
{
    if (opal_list_is_empty(from)) {
        return;
    }
    from->head.next->prev = to->head.prev;
    to->head.prev->next = from->head.next;
    from->head.prev->next = &to->head;
    to->head.prev = from->head.prev;
    opal_list_init(from);
}

static inline size_t opal_list_length(const opal_list_t *list)
{
    size_t n = 0;
    for (const opal_list_item_t *i = list->head.next; i != &list->head; i = i->next) {
        n++;
    }
    return n;
}

/* Safe against removal of the current item by the body. */
#define OPAL_LIST_FOREACH(item, tmp, list)                                                    \
    for ((item) = (list)->head.next, (tmp) = (item)->next; (item) != &(list)->head;           \
         (item) = (tmp), (tmp) = (item)->next)

#endif
