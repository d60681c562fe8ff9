/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The table of predefined handles and the integers of other objects. */
#include "ompi/include/ompi/handles.h"

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

static ompi_handle_base_t no_object = { .kind = OMPI_HANDLE_NONE };

ompi_handle_base_t *ompi_predefined[OMPI_HANDLE_PREDEFINED] = {
    [0 ... OMPI_HANDLE_PREDEFINED - 1] = &no_object
};

/* Integers from OMPI_HANDLE_PREDEFINED on are indices into this table. A free slot holds the index
 * of the next free one, so that integers are reused and the table is no larger than the largest
 * number of objects that had integers at one time. */
enum { INTEGER_BASE = OMPI_HANDLE_PREDEFINED, FIRST_SLOTS = 64 };
#define NO_SLOT (SIZE_MAX >> 1)

typedef union slot {
    ompi_handle_base_t *object;
    uintptr_t next_free; /* (index << 1) | 1: odd, which no object's address is */
} slot_t;

static struct {
    pthread_mutex_t lock;
    slot_t *slots;
    size_t size; /* slots there are */
    size_t used; /* slots that ever held an object */
    size_t free; /* first free slot below used, or NO_SLOT */
} integers = { .lock = PTHREAD_MUTEX_INITIALIZER, .free = NO_SLOT };

void ompi_handle_register_predefined(const void *handle, ompi_handle_base_t *object)
{
    uintptr_t value = (uintptr_t) handle;

    assert(value > 0 && value < OMPI_HANDLE_PREDEFINED);
    assert(ompi_predefined[value] == &no_object || ompi_predefined[value] == object);
    object->abi = (uint32_t) value;
    ompi_predefined[value] = object;
}

/* With the lock held: doubles the table. Bounded by what an int can number. */
static bool grow(void)
{
    size_t size = integers.size == 0 ? FIRST_SLOTS : integers.size * 2;
    slot_t *slots;

    if (size > (size_t) INT_MAX - INTEGER_BASE) {
        return false;
    }
    slots = realloc(integers.slots, size * sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    integers.slots = slots;
    integers.size = size;
    return true;
}

/* With the lock held: a free slot, or NO_SLOT. */
static size_t take_slot(void)
{
    size_t index = integers.free;

    if (index != NO_SLOT) {
        integers.free = integers.slots[index].next_free >> 1;
        return index;
    }
    if (integers.used == integers.size && !grow()) {
        return NO_SLOT;
    }
    return integers.used++;
}

int ompi_handle_to_int(ompi_handle_base_t *base)
{
    size_t index;

    pthread_mutex_lock(&integers.lock);
    if (base->abi == 0) {
        index = take_slot();
        if (index == NO_SLOT) {
            pthread_mutex_unlock(&integers.lock);
            return -1;
        }
        integers.slots[index].object = base;
        base->abi = (uint32_t) (INTEGER_BASE + index);
    }
    pthread_mutex_unlock(&integers.lock);
    return (int) base->abi;
}

ompi_handle_base_t *ompi_handle_from_int(int value, ompi_handle_kind_t kind)
{
    ompi_handle_base_t *base = NULL;
    size_t index;

    if (value < 0) {
        return NULL;
    }
    if ((unsigned) value < OMPI_HANDLE_PREDEFINED) {
        base = ompi_predefined[value];
        return base->kind == (uint32_t) kind ? base : NULL;
    }
    index = (size_t) value - INTEGER_BASE;
    pthread_mutex_lock(&integers.lock);
    if (index < integers.used && (integers.slots[index].next_free & 1) == 0) {
        base = integers.slots[index].object;
    }
    pthread_mutex_unlock(&integers.lock);
    return base != NULL && base->kind == (uint32_t) kind ? base : NULL;
}

static void give_slot_back(size_t index)
{
    pthread_mutex_lock(&integers.lock);
    integers.slots[index].next_free = (uintptr_t) integers.free << 1 | 1;
    integers.free = index;
    pthread_mutex_unlock(&integers.lock);
}

void ompi_handle_fini(ompi_handle_base_t *base)
{
    uint32_t abi = base->abi;

    if (abi >= OMPI_HANDLE_PREDEFINED) {
        give_slot_back(abi - INTEGER_BASE);
    } else if (abi != 0 && ompi_predefined[abi] == base) {
        ompi_predefined[abi] = &no_object;
    }
    base->kind = OMPI_HANDLE_FREED;
    base->abi = 0;
}
