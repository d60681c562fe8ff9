/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Keys and sets of attributes. */
#include "ompi/attribute/attribute.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/attribute/keyval.h"
#include "ompi/datatype/datatype.h"
#include "ompi/errhandler/errhandler.h"

/* Keys are numbers from here on, above the predefined ones of the ABI. */
enum { KEYVAL_BASE = 1024 };

typedef struct keyval {
    int number;
    uint32_t object_kind; /* ompi_handle_kind_t */
    /* The user's until it is freed, and every attribute; with the lock held. */
    int32_t refs;
    bool freed;
    ompi_copy_attr_fn_t copy;
    ompi_delete_attr_fn_t delete;
    void *extra_state;
} keyval_t;

typedef struct attribute {
    keyval_t *keyval;
    void *value;
} attribute_t;

struct ompi_attribute_set {
    size_t count, room;
    attribute_t *attributes;
};

/* Guards the table of keys, their counts and all sets. Never held while a callback runs. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static keyval_t **keyvals;
static int keyval_room;

/* ---- Keys; all with the lock held ---- */

static keyval_t *find_keyval(int number, uint32_t object_kind)
{
    int i = number - KEYVAL_BASE;
    if (number < KEYVAL_BASE || i >= keyval_room || !keyvals[i] ||
        keyvals[i]->object_kind != object_kind) {
        return NULL;
    }
    return keyvals[i];
}

static void release_keyval(keyval_t *keyval)
{
    if (--keyval->refs == 0) {
        keyvals[keyval->number - KEYVAL_BASE] = NULL;
        free(keyval);
    }
}

/* An unused place of the table; -1: out of memory. */
static int take_place(void)
{
    for (int i = 0; i < keyval_room; i++) {
        if (!keyvals[i]) {
            return i;
        }
    }
    int old = keyval_room, room = old ? 2 * old : 16;
    keyval_t **bigger = realloc(keyvals, (size_t) room * sizeof(keyval_t *));
    if (!bigger) {
        return -1;
    }
    memset(bigger + old, 0, (size_t) (room - old) * sizeof *bigger);
    keyvals = bigger;
    keyval_room = room;
    return old;
}

int ompi_keyval_create(uint32_t object_kind, ompi_copy_attr_fn_t copy, ompi_delete_attr_fn_t delete,
                       void *extra_state, int *number)
{
    keyval_t *keyval = malloc(sizeof *keyval);
    if (!keyval) {
        return MPI_ERR_NO_MEM;
    }
    pthread_mutex_lock(&lock);
    int place = take_place();
    if (place >= 0) {
        *keyval = (keyval_t){.number = KEYVAL_BASE + place,
                             .object_kind = object_kind,
                             .refs = 1,
                             .copy = copy,
                             .delete = delete,
                             .extra_state = extra_state};
        keyvals[place] = keyval;
        *number = keyval->number;
    }
    pthread_mutex_unlock(&lock);
    if (place < 0) {
        free(keyval);
        return MPI_ERR_NO_MEM;
    }
    return MPI_SUCCESS;
}

static int bad_keyval(int number)
{
    return ompi_error(MPI_ERR_KEYVAL, "%d is no attribute key for this kind of object", number);
}

int ompi_keyval_free(uint32_t object_kind, int number)
{
    pthread_mutex_lock(&lock);
    keyval_t *keyval = find_keyval(number, object_kind);
    bool valid = keyval != NULL;
    /* One that attributes still need may be freed again: delete callbacks do so, called for one after the other. */
    if (valid && !keyval->freed) {
        keyval->freed = true;
        release_keyval(keyval);
    }
    pthread_mutex_unlock(&lock);
    return valid ? MPI_SUCCESS : bad_keyval(number);
}

/* ---- Sets; those without a callback with the lock held ---- */

static attribute_t *find(ompi_attribute_set_t *set, const keyval_t *keyval)
{
    for (size_t i = 0; set && i < set->count; i++) {
        if (set->attributes[i].keyval == keyval) {
            return &set->attributes[i];
        }
    }
    return NULL;
}

/* Adds an attribute at the end, with a count on its key. */
static int append(ompi_attribute_set_t **set, keyval_t *keyval, void *value)
{
    if (!*set) {
        *set = calloc(1, sizeof **set);
        if (!*set) {
            return MPI_ERR_NO_MEM;
        }
    }
    if ((*set)->count == (*set)->room) {
        size_t room = (*set)->room ? 2 * (*set)->room : 4;
        attribute_t *bigger = realloc((*set)->attributes, room * sizeof *bigger);
        if (!bigger) {
            return MPI_ERR_NO_MEM;
        }
        (*set)->attributes = bigger;
        (*set)->room = room;
    }
    (*set)->attributes[(*set)->count++] = (attribute_t) {.keyval = keyval, .value = value};
    keyval->refs++;
    return MPI_SUCCESS;
}

/* Takes one out; the count on its key stays with the caller. */
static attribute_t take_out(ompi_attribute_set_t *set, attribute_t *attribute)
{
    attribute_t taken = *attribute;
    size_t behind = (size_t) (set->attributes + set->count - (attribute + 1));
    memmove(attribute, attribute + 1, behind * sizeof *attribute);
    set->count--;
    return taken;
}

static void free_set(ompi_attribute_set_t **set)
{
    if (*set) {
        free((*set)->attributes);
        free(*set);
        *set = NULL;
    }
}

static void unlock_and_release(keyval_t *keyval)
{
    release_keyval(keyval);
    pthread_mutex_unlock(&lock);
}

/* MPI_NULL_DELETE_FN is a null pointer in the ABI. */
static int call_delete(void *object, const attribute_t *attribute)
{
    const keyval_t *k = attribute->keyval;
    return k->delete ? k->delete(ompi_handle_of(object, NULL), k->number, attribute->value,
                                  k->extra_state)
                     : MPI_SUCCESS;
}

static uint32_t kind_of(const void *object)
{
    return ((const ompi_handle_base_t *) object)->kind;
}

int ompi_attribute_put(void *object, ompi_attribute_set_t **set, int number, void *value)
{
    int rc = MPI_SUCCESS;
    pthread_mutex_lock(&lock);
    keyval_t *keyval = find_keyval(number, kind_of(object));
    if (!keyval) {
        pthread_mutex_unlock(&lock);
        return bad_keyval(number);
    }
    keyval->refs++; /* it must not go while its callback runs */
    attribute_t *present = find(*set, keyval);
    if (present) {
        attribute_t old = *present;
        pthread_mutex_unlock(&lock);
        rc = call_delete(object, &old); /* the old value goes first: MPI-5.0 section 7.7.2 */
        pthread_mutex_lock(&lock);
    }
    present = find(*set, keyval); /* the callback may have changed the set */
    if (rc == MPI_SUCCESS && present) {
        present->value = value;
    } else if (rc == MPI_SUCCESS) {
        rc = append(set, keyval, value);
    }
    unlock_and_release(keyval);
    return rc;
}

int ompi_attribute_get(void *object, ompi_attribute_set_t *const *set, int number, void **value,
                       int *flag)
{
    pthread_mutex_lock(&lock);
    keyval_t *keyval = find_keyval(number, kind_of(object));
    const attribute_t *attribute = keyval ? find(*set, keyval) : NULL;
    *flag = attribute != NULL;
    if (attribute) {
        *value = attribute->value;
    }
    pthread_mutex_unlock(&lock);
    return keyval ? MPI_SUCCESS : bad_keyval(number);
}

int ompi_attribute_delete(void *object, ompi_attribute_set_t **set, int number)
{
    pthread_mutex_lock(&lock);
    keyval_t *keyval = find_keyval(number, kind_of(object));
    attribute_t *attribute = keyval ? find(*set, keyval) : NULL;
    if (!attribute) {
        pthread_mutex_unlock(&lock);
        return keyval
                   ? ompi_error(MPI_ERR_KEYVAL, "the object has no attribute with key %d", number)
                   : bad_keyval(number);
    }
    attribute_t present = *attribute;
    keyval->refs++;
    pthread_mutex_unlock(&lock);
    int rc = call_delete(object, &present);
    pthread_mutex_lock(&lock);
    attribute = find(*set, keyval); /* the callback may have changed the set */
    if (rc == MPI_SUCCESS && attribute) {
        take_out(*set, attribute);
        release_keyval(keyval);
        if ((*set)->count == 0) {
            free_set(set);
        }
    }
    unlock_and_release(keyval);
    return rc;
}

/* Takes a picture of a set, with counts on its keys. */
static int picture(ompi_attribute_set_t *const *set, attribute_t **attributes, size_t *count)
{
    int rc = MPI_SUCCESS;
    pthread_mutex_lock(&lock);
    *count = *set ? (*set)->count : 0;
    *attributes = *count ? malloc(*count * sizeof **attributes) : NULL;
    if (*count && !*attributes) {
        *count = 0;
        rc = MPI_ERR_NO_MEM;
    }
    for (size_t i = 0; i < *count; i++) {
        (*attributes)[i] = (*set)->attributes[i];
        (*attributes)[i].keyval->refs++;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

static int copy_one(void *from, const attribute_t *attribute, ompi_attribute_set_t **to_set)
{
    keyval_t *k = attribute->keyval;
    void *value = NULL;
    int flag = 0, rc = MPI_SUCCESS;
    if (k->copy == OMPI_ATTRIBUTE_DUP_FN) {
        flag = 1;
        value = attribute->value;
    } else if (k->copy) {
        rc = k->copy(ompi_handle_of(from, NULL), k->number, k->extra_state, attribute->value,
                     &value, &flag);
    }
    if (rc == MPI_SUCCESS && flag) {
        pthread_mutex_lock(&lock);
        rc = append(to_set, k, value);
        pthread_mutex_unlock(&lock);
    }
    return rc;
}

int ompi_attribute_copy_all(void *from, ompi_attribute_set_t *const *from_set, void *to,
                            ompi_attribute_set_t **to_set)
{
    attribute_t *attributes;
    size_t count;
    int rc = picture(from_set, &attributes, &count);
    for (size_t i = 0; rc == MPI_SUCCESS && i < count; i++) {
        rc = copy_one(from, &attributes[i], to_set);
    }
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++) {
        release_keyval(attributes[i].keyval);
    }
    pthread_mutex_unlock(&lock);
    free(attributes);
    if (rc != MPI_SUCCESS) {
        ompi_attribute_discard_all(to, to_set);
    }
    return rc;
}

/* `anyway`: go on after a callback that fails. */
static int delete_all(void *object, ompi_attribute_set_t **set, bool anyway)
{
    int rc = MPI_SUCCESS;
    pthread_mutex_lock(&lock);
    while (rc == MPI_SUCCESS && *set && (*set)->count > 0) {
        attribute_t last = take_out(*set, &(*set)->attributes[(*set)->count - 1]);
        pthread_mutex_unlock(&lock);
        rc = call_delete(object, &last);
        rc = anyway ? MPI_SUCCESS : rc;
        pthread_mutex_lock(&lock);
        if (rc != MPI_SUCCESS) {
            append(set, last.keyval, last.value); /* there is room: it was taken out of here */
        }
        release_keyval(last.keyval);
    }
    if (rc == MPI_SUCCESS) {
        free_set(set);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

int ompi_attribute_delete_all(void *object, ompi_attribute_set_t **set)
{
    return delete_all(object, set, false);
}

void ompi_attribute_discard_all(void *object, ompi_attribute_set_t **set)
{
    (void) delete_all(object, set, true);
}

void ompi_attribute_drop_all(ompi_attribute_set_t **set)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; *set && i < (*set)->count; i++) {
        release_keyval((*set)->attributes[i].keyval);
    }
    free_set(set);
    pthread_mutex_unlock(&lock);
}

/* ---- Datatypes: the datatype code calls us ---- */

static int delete_type_attributes(ompi_datatype_t *type)
{
    return ompi_attribute_delete_all(type, &type->attrs);
}

static int copy_type_attributes(ompi_datatype_t *from, ompi_datatype_t *to)
{
    return ompi_attribute_copy_all(from, &from->attrs, to, &to->attrs);
}

int ompi_attribute_init(void)
{
    ompi_datatype_attr_hooks.delete_all = delete_type_attributes;
    ompi_datatype_attr_hooks.copy_all = copy_type_attributes;
    return MPI_SUCCESS;
}

void ompi_attribute_finalize(void)
{
    ompi_datatype_attr_hooks = (ompi_datatype_attr_hooks_t) {.delete_all = NULL};
    for (int i = 0; i < OMPI_DATATYPE_PREDEFINED_COUNT; i++) {
        /* Predefined types are never freed. */
        ompi_attribute_drop_all(&ompi_datatype_predefined[i].attrs);
    }
    for (int i = 0; i < keyval_room; i++) {
        free(keyvals[i]);
    }
    free(keyvals);
    keyvals = NULL;
    keyval_room = 0;
}
