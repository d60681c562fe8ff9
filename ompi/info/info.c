/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Info objects and the bodies of their routines (MPI-5.0, chapter 10). Usable at any time, also
 * before initialisation and after finalisation. */
#include "ompi/info/info.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ompi/errhandler/errhandler.h"
#include "ompi/mpi/c/bodies.h"

/* ---- For the rest of the library ---- */

ompi_info_t *ompi_info_new(void)
{
    ompi_info_t *info = calloc(1, sizeof *info);
    if (info) {
        ompi_handle_init(&info->base, OMPI_HANDLE_INFO);
        pthread_mutex_init(&info->lock, NULL);
    }
    return info;
}

void ompi_info_clear(ompi_info_t *info)
{
    for (size_t i = 0; i < info->count; i++) {
        free(info->entries[i].key);
        free(info->entries[i].value);
    }
    free(info->entries);
    info->entries = NULL;
    info->count = info->room = 0;
}

void ompi_info_free(ompi_info_t *info)
{
    ompi_handle_fini(&info->base);
    ompi_info_clear(info);
    pthread_mutex_destroy(&info->lock);
    free(info);
}

/* With the lock held. */
static ompi_info_entry_t *find(const ompi_info_t *info, const char *key)
{
    for (size_t i = 0; i < info->count; i++) {
        if (strcmp(info->entries[i].key, key) == 0) {
            return &info->entries[i];
        }
    }
    return NULL;
}

/* With the lock held. Takes both strings, also on failure. */
static int append(ompi_info_t *info, char *key, char *value)
{
    if (key && value && info->count == info->room) {
        size_t room = info->room ? 2 * info->room : 8;
        ompi_info_entry_t *bigger = realloc(info->entries, room * sizeof *bigger);
        if (bigger) {
            info->entries = bigger;
            info->room = room;
        }
    }
    if (!key || !value || info->count == info->room) {
        free(key);
        free(value);
        return MPI_ERR_NO_MEM;
    }
    info->entries[info->count++] = (ompi_info_entry_t) {.key = key, .value = value};
    return MPI_SUCCESS;
}

int ompi_info_put(ompi_info_t *info, const char *key, const char *value)
{
    int rc = MPI_SUCCESS;
    pthread_mutex_lock(&info->lock);
    ompi_info_entry_t *entry = find(info, key);
    if (entry) {
        char *copy = strdup(value);
        if (copy) {
            free(entry->value);
            entry->value = copy;
        } else {
            rc = MPI_ERR_NO_MEM;
        }
    } else {
        rc = append(info, strdup(key), strdup(value));
    }
    pthread_mutex_unlock(&info->lock);
    return rc;
}

ompi_info_t *ompi_info_copy(ompi_info_t *info)
{
    int rc = MPI_SUCCESS;
    ompi_info_t *copy = ompi_info_new();
    if (!copy) {
        return NULL;
    }
    pthread_mutex_lock(&info->lock);
    for (size_t i = 0; rc == MPI_SUCCESS && i < info->count; i++) {
        rc = append(copy, strdup(info->entries[i].key), strdup(info->entries[i].value));
    }
    pthread_mutex_unlock(&info->lock);
    if (rc != MPI_SUCCESS) {
        ompi_info_free(copy);
        copy = NULL;
    }
    return copy;
}

char *ompi_info_value(ompi_info_t *info, const char *key)
{
    char *value = NULL;
    if (info) {
        pthread_mutex_lock(&info->lock);
        const ompi_info_entry_t *entry = find(info, key);
        value = entry ? strdup(entry->value) : NULL;
        pthread_mutex_unlock(&info->lock);
    }
    return value;
}

bool ompi_info_bool(ompi_info_t *info, const char *key, bool otherwise)
{
    char *value = ompi_info_value(info, key);
    bool result = otherwise;
    if (value && strcasecmp(value, "true") == 0) {
        result = true;
    } else if (value && strcasecmp(value, "false") == 0) {
        result = false;
    } else if (value && *value) {
        char *end;
        long number = strtol(value, &end, 10);
        result = *end ? otherwise : number != 0;
    }
    free(value);
    return result;
}

/* ---- Bodies ---- */

static int check_key(const char *key)
{
    size_t length = strnlen(key, MPI_MAX_INFO_KEY);
    if (length == 0) {
        return ompi_error(MPI_ERR_INFO_KEY, "the key is empty");
    }
    if (length == MPI_MAX_INFO_KEY) {
        return ompi_error(MPI_ERR_INFO_KEY, "the key has more than %d characters",
                          MPI_MAX_INFO_KEY - 1);
    }
    return MPI_SUCCESS;
}

static int check_writable(const ompi_info_t *info)
{
    return info->read_only ? ompi_error(MPI_ERR_INFO, "MPI_INFO_ENV can't be changed")
                           : MPI_SUCCESS;
}

int ompi_mpi_info_create(ompi_info_t **info)
{
    *info = ompi_info_new();
    return *info ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

int ompi_mpi_info_dup(ompi_info_t *info, ompi_info_t **newinfo)
{
    *newinfo = ompi_info_copy(info);
    return *newinfo ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

int ompi_mpi_info_free(ompi_info_t **info)
{
    int rc = check_writable(*info);
    if (rc == MPI_SUCCESS) {
        ompi_info_free(*info);
        *info = NULL;
    }
    return rc;
}

int ompi_mpi_info_set(ompi_info_t *info, const char *key, const char *value)
{
    int rc = check_writable(info);
    if (rc == MPI_SUCCESS) {
        rc = check_key(key);
    }
    if (rc == MPI_SUCCESS && strnlen(value, MPI_MAX_INFO_VAL) == MPI_MAX_INFO_VAL) {
        rc = ompi_error(MPI_ERR_INFO_VALUE, "the value of %s has more than %d characters", key,
                        MPI_MAX_INFO_VAL - 1);
    }
    return rc == MPI_SUCCESS ? ompi_info_put(info, key, value) : rc;
}

int ompi_mpi_info_delete(ompi_info_t *info, const char *key)
{
    int rc = check_writable(info);
    if (rc == MPI_SUCCESS) {
        rc = check_key(key);
    }
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    pthread_mutex_lock(&info->lock);
    ompi_info_entry_t *entry = find(info, key);
    if (entry) {
        free(entry->key);
        free(entry->value);
        size_t behind = (size_t) (info->entries + info->count - (entry + 1));
        memmove(entry, entry + 1, behind * sizeof *entry);
        info->count--;
    }
    pthread_mutex_unlock(&info->lock);
    return entry ? MPI_SUCCESS
                 : ompi_error(MPI_ERR_INFO_NOKEY, "the info object has no key %s", key);
}

/* Copies the value of a key, cut off to `room` bytes with the final zero (0: not at all). *length
 * is the value's own, without the zero. */
static int look_up(ompi_info_t *info, const char *key, char *value, size_t room, int *length,
                   int *flag)
{
    int rc = check_key(key);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    pthread_mutex_lock(&info->lock);
    const ompi_info_entry_t *entry = find(info, key);
    *flag = entry != NULL;
    if (entry) {
        size_t all = strlen(entry->value);
        size_t part = all < room ? all : room - 1;
        *length = (int) all;
        if (room > 0) {
            memcpy(value, entry->value, part);
            value[part] = '\0';
        }
    }
    pthread_mutex_unlock(&info->lock);
    return MPI_SUCCESS;
}

/* `valuelen` does not count the final zero, for which the buffer has room. */
int ompi_mpi_info_get(ompi_info_t *info, const char *key, int valuelen, char *value, int *flag)
{
    int length;
    if (valuelen < 0) {
        return ompi_error(MPI_ERR_ARG, "valuelen is %d", valuelen);
    }
    return look_up(info, key, value, (size_t) valuelen + 1, &length, flag);
}

int ompi_mpi_info_get_valuelen(ompi_info_t *info, const char *key, int *valuelen, int *flag)
{
    return look_up(info, key, NULL, 0, valuelen, flag);
}

int ompi_mpi_info_get_string(ompi_info_t *info, const char *key, int *buflen, char *value,
                             int *flag)
{
    int length;
    if (*buflen < 0) {
        return ompi_error(MPI_ERR_ARG, "buflen is %d", *buflen);
    }
    int rc = look_up(info, key, value, (size_t) *buflen, &length, flag);
    if (rc == MPI_SUCCESS && *flag) {
        *buflen = length + 1;
    }
    return rc;
}

int ompi_mpi_info_get_nkeys(ompi_info_t *info, int *nkeys)
{
    pthread_mutex_lock(&info->lock);
    *nkeys = (int) info->count;
    pthread_mutex_unlock(&info->lock);
    return MPI_SUCCESS;
}

int ompi_mpi_info_get_nthkey(ompi_info_t *info, int n, char *key)
{
    pthread_mutex_lock(&info->lock);
    bool valid = n >= 0 && (size_t) n < info->count;
    if (valid) {
        /* Shorter than MPI_MAX_INFO_KEY: checked when it was set. */
        strcpy(key, info->entries[n].key);
    }
    pthread_mutex_unlock(&info->lock);
    return valid ? MPI_SUCCESS : ompi_error(MPI_ERR_ARG, "the info object has no key number %d", n);
}
