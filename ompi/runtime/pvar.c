/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The list of performance variables. */
#include "ompi/runtime/pvar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pthread_mutex_t ompi_pvar_lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
    ompi_pvar_t **list;
    int count;
} registry;

static bool same(const char *a, const char *b)
{
    return a && b ? 0 == strcmp(a, b) : a == b;
}

static char *make_full_name(const ompi_pvar_desc_t *d)
{
    char *name = NULL;
    const char *f = d->framework ? d->framework : "", *c = d->component ? d->component : "";
    return asprintf(&name, "%s%s%s%s%s", f, *f ? "_" : "", c, *c ? "_" : "", d->name) < 0 ? NULL
        : name;
}

/* The help, and what each value is for: "... [0: shm, 1: tcp:eth0]", "... [0: shm, ..., for each
 * rank]". */
static char *make_description(const ompi_pvar_t *p)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (NULL == stream) {
        return NULL;
    }
    fputs(p->desc.help, stream);
    const size_t count = p->desc.value_name ? ompi_pvar_value_count(p) : 0;
    for (size_t i = 0; i < count; i++) {
        fprintf(stream, "%s%zu: %s%s", 0 == i ? " [" : ", ", i,
                p->desc.value_name(p->desc.context, i),
                i + 1 < count ? "" : p->desc.of_peers ? ", for each rank]" : "]");
    }
    if (0 != fclose(stream)) {
        free(text);
        return NULL;
    }
    return text;
}

static char *copy(const char *s, bool *ok)
{
    char *out = s ? strdup(s) : NULL;
    *ok = *ok && (NULL == s || out);
    return out;
}

static void free_pvar(ompi_pvar_t *p)
{
    free((char *) p->desc.framework);
    free((char *) p->desc.component);
    free((char *) p->desc.name);
    free((char *) p->desc.help);
    free(p->full_name);
    free(p->description);
    free(p->last);
    free(p);
}

static int append(const ompi_pvar_desc_t *desc)
{
    bool ok = true;
    ompi_pvar_t *p = calloc(1, sizeof(*p));
    if (NULL == p) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    p->desc = *desc;
    p->desc.framework = copy(desc->framework, &ok);
    p->desc.component = copy(desc->component, &ok);
    p->desc.name = copy(desc->name, &ok);
    p->desc.help = copy(desc->help, &ok);
    p->full_name = make_full_name(desc);
    ompi_pvar_t **list = ok && p->full_name
                             ? realloc(registry.list, (size_t) (registry.count + 1) * sizeof(*list))
                             : NULL;
    if (NULL == list) {
        free_pvar(p);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    registry.list = list;
    registry.list[registry.count++] = p;
    return OPAL_SUCCESS;
}

/* The same variable once more, after its source was unregistered. */
static int renew(ompi_pvar_t *p, const ompi_pvar_desc_t *desc)
{
    if (p->desc.read || p->desc.var_class != desc->var_class
        || p->desc.is_double != desc->is_double || p->desc.of_peers != desc->of_peers
        || p->desc.states != desc->states) {
        return OPAL_ERR_EXISTS;
    }
    p->desc.count = desc->count;
    p->desc.read = desc->read;
    p->desc.value_name = desc->value_name;
    p->desc.context = desc->context;
    return OPAL_SUCCESS;
}

int ompi_pvar_register(const ompi_pvar_desc_t *desc)
{
    if (NULL == desc->name || NULL == desc->help || NULL == desc->read) {
        return OPAL_ERR_BAD_PARAM;
    }
    char *full_name = make_full_name(desc);
    if (NULL == full_name) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    pthread_mutex_lock(&ompi_pvar_lock);
    ompi_pvar_t *old = NULL;
    for (int i = 0; i < registry.count && NULL == old; i++) {
        if (0 == strcmp(registry.list[i]->full_name, full_name)) {
            old = registry.list[i];
        }
    }
    const int rc = old ? renew(old, desc) : append(desc);
    pthread_mutex_unlock(&ompi_pvar_lock);
    free(full_name);
    return rc;
}

/* Keep what tools may still want to see. */
static void freeze(ompi_pvar_t *p)
{
    const size_t count = ompi_pvar_value_count(p);
    char *description = make_description(p);
    void *last = calloc(count > 0 ? count : 1, sizeof(uint64_t));
    if (last) {
        if (!p->desc.of_peers) {
            p->desc.read(p->desc.context, NULL, last, count);
        }
        free(p->last);
        p->last = last;
        p->last_count = count;
    }
    if (description) {
        free(p->description);
        p->description = description;
    }
    p->desc.read = NULL;
    p->desc.count = NULL;
    p->desc.value_name = NULL;
}

void ompi_pvar_unregister(const char *framework, const char *component)
{
    pthread_mutex_lock(&ompi_pvar_lock);
    for (int i = 0; i < registry.count; i++) {
        ompi_pvar_t *p = registry.list[i];
        if (p->desc.read && same(p->desc.framework, framework)
            && same(p->desc.component, component)) {
            freeze(p);
        }
    }
    pthread_mutex_unlock(&ompi_pvar_lock);
}

int ompi_pvar_count(void)
{
    return registry.count;
}

ompi_pvar_t *ompi_pvar_get(int index)
{
    ompi_pvar_t *p = index >= 0 && index < registry.count ? registry.list[index] : NULL;
    if (p && p->desc.read) {
        /* Links may have come up since the last look. */
        char *description = make_description(p);
        if (description) {
            free(p->description);
            p->description = description;
        }
    }
    return p;
}

size_t ompi_pvar_value_count(const ompi_pvar_t *p)
{
    if (NULL == p->desc.read) {
        return p->last_count;
    }
    return p->desc.count ? p->desc.count(p->desc.context) : 1;
}

static void values_of_each(const ompi_pvar_t *p, const ompi_group_t *processes, uint64_t *values,
                           size_t count)
{
    const size_t each = count / (size_t) processes->size, have = ompi_pvar_value_count(p);
    for (int32_t i = 0; i < processes->size; i++) {
        const ompi_proc_t *proc = ompi_proc_of_rank(ompi_group_world_rank(processes, i));
        if (proc) {
            p->desc.read(p->desc.context, proc, values + (size_t) i * each,
                         have < each ? have : each);
        }
    }
}

void ompi_pvar_values(const ompi_pvar_t *p, const ompi_group_t *processes, void *values,
                      size_t count)
{
    const size_t have = ompi_pvar_value_count(p);
    const size_t n = have < count ? have : count;
    if (p->desc.of_peers && !p->desc.read) {
        return;
    }
    memset(values, 0, count * sizeof(uint64_t));
    if (processes && processes->size > 0) {
        values_of_each(p, processes, values, count);
    } else if (p->desc.read) {
        p->desc.read(p->desc.context, NULL, values, n);
    } else if (p->last) {
        memcpy(values, p->last, n * sizeof(uint64_t));
    }
}
