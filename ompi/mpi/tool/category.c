/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Categories: one per framework, with one below it per component. They follow from the names of the
 * variables and events, so the table is brought up to date before each look; categories are only ever added.
 *
 *      btl                     variables of the framework itself ("btl", "btl_base_verbose")
 *      +-- btl_tcp             variables of a component
 *      general                 variables that belong to no framework
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/mpi/tool/tool.h"
#include "opal/mca/base/framework.h"

typedef struct category {
    char *name;
    char *framework, *component; /* component: NULL for a framework's own */
    int parent;                  /* index; -1: top level */
} category_t;

static struct {
    category_t *list;
    int count;
    int changes;                /* what MPI_T_category_changed() returns */
    int cvars_seen, pvars_seen, events_seen;
} table;

static const char *framework_name(const char *framework)
{
    return framework ? framework : "general";
}

/* Variables of the base are the framework's own. */
static const char *component_name(const char *component)
{
    return component && 0 != strcmp(component, "base") ? component : NULL;
}

static bool same(const char *a, const char *b)
{
    return a && b ? 0 == strcmp(a, b) : a == b;
}

static int find(const char *framework, const char *component)
{
    for (int i = 0; i < table.count; i++) {
        if (same(table.list[i].framework, framework) && same(table.list[i].component, component)) {
            return i;
        }
    }
    return -1;
}

/* The index of the category, made if need be; -1: no memory. */
static int obtain(const char *framework, const char *component, int parent)
{
    const int found = find(framework, component);
    if (found >= 0) {
        return found;
    }
    category_t *list = realloc(table.list, (size_t) (table.count + 1) * sizeof(*list));
    if (NULL == list) {
        return -1;
    }
    table.list = list;
    category_t c = {.framework = strdup(framework),
                    .component = component ? strdup(component) : NULL,
                    .parent = parent};
    if (asprintf(&c.name, "%s%s%s", framework, component ? "_" : "",
                 component ? component : "") < 0) {
        c.name = NULL;
    }
    if (NULL == c.name || NULL == c.framework || (component && NULL == c.component)) {
        free(c.name);
        free(c.framework);
        free(c.component);
        return -1;
    }
    table.list[table.count] = c;
    table.changes++;
    return table.count++;
}

static bool add(const char *framework, const char *component)
{
    const int parent = obtain(framework_name(framework), NULL, -1);
    return parent >= 0
           && (NULL == component_name(component)
               || obtain(framework_name(framework), component_name(component), parent) >= 0);
}

static bool update(void)
{
    const int cvars = mca_base_var_count(), pvars = ompi_pvar_count(), events = ompi_event_type_count();
    bool ok = true;
    if (cvars == table.cvars_seen && pvars == table.pvars_seen && events == table.events_seen) {
        return true;
    }
    for (int i = table.cvars_seen < cvars ? table.cvars_seen : 0; i < cvars && ok; i++) {
        const mca_base_var_desc_t *d = mca_base_var_get(i)->desc;
        ok = add(d->framework, d->component);
    }
    for (int i = table.pvars_seen; i < pvars && ok; i++) {
        const ompi_pvar_desc_t *d = &ompi_pvar_get(i)->desc;
        ok = add(d->framework, d->component);
    }
    for (int i = table.events_seen; i < events && ok; i++) {
        const ompi_event_desc_t *d = &ompi_event_type_get(i)->desc;
        ok = add(d->framework, d->component);
    }
    if (ok) {
        table.changes++; /* its members changed */
        table.cvars_seen = cvars;
        table.pvars_seen = pvars;
        table.events_seen = events;
    }
    return ok;
}

static bool has(const category_t *c, const char *framework, const char *component)
{
    return same(c->framework, framework_name(framework))
        && same(c->component, component_name(component));
}

typedef enum { CVARS, PVARS, EVENTS, CATEGORIES } member_kind_t;

static int count_all(member_kind_t kind)
{
    switch (kind) {
    case CVARS: return mca_base_var_count();
    case PVARS: return ompi_pvar_count();
    case EVENTS: return ompi_event_type_count();
    default: return table.count;
    }
}

/* Is number i of a kind in the category? */
static bool is_member(int category, member_kind_t kind, int i)
{
    const category_t *c = &table.list[category];
    switch (kind) {
    case CVARS: return has(c, mca_base_var_get(i)->desc->framework, mca_base_var_get(i)->desc->component);
    case PVARS: return has(c, ompi_pvar_get(i)->desc.framework, ompi_pvar_get(i)->desc.component);
    case EVENTS: return has(c, ompi_event_type_get(i)->desc.framework, ompi_event_type_get(i)->desc.component);
    default: return table.list[i].parent == category;
    }
}

/* Store the first `len` members of a kind; how many there are. */
static int members(int category, member_kind_t kind, int len, int indices[])
{
    const int all = count_all(kind);
    int n = 0;
    for (int i = 0; i < all; i++) {
        const bool in = is_member(category, kind, i);
        if (in && n < len) {
            indices[n] = i;
        }
        n += in;
    }
    return n;
}

/* Begin a routine about a category. */
static int enter(int cat_index)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    if (!update()) {
        return ompi_tool_leave(MPI_T_ERR_MEMORY);
    }
    if (cat_index < 0 || cat_index >= table.count) {
        return ompi_tool_leave(MPI_T_ERR_INVALID_INDEX);
    }
    return MPI_SUCCESS;
}

static int get_members(int cat_index, member_kind_t kind, int len, int indices[])
{
    const int rc = enter(cat_index);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    if (len < 0 || (len > 0 && NULL == indices)) {
        return ompi_tool_leave(MPI_T_ERR_INVALID);
    }
    members(cat_index, kind, len, indices);
    return ompi_tool_leave(MPI_SUCCESS);
}

int ompi_mpi_t_category_get_num(int *num_cat)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    if (NULL == num_cat || !update()) {
        return ompi_tool_leave(num_cat ? MPI_T_ERR_MEMORY : MPI_T_ERR_INVALID);
    }
    *num_cat = table.count;
    return ompi_tool_leave(MPI_SUCCESS);
}

int ompi_mpi_t_category_changed(int *update_number)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    if (NULL == update_number || !update()) {
        return ompi_tool_leave(update_number ? MPI_T_ERR_MEMORY : MPI_T_ERR_INVALID);
    }
    *update_number = table.changes;
    return ompi_tool_leave(MPI_SUCCESS);
}

int ompi_mpi_t_category_get_index(const char *name, int *cat_index)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    if (NULL == name || NULL == cat_index || !update()) {
        return ompi_tool_leave(MPI_T_ERR_INVALID);
    }
    for (int i = 0; i < table.count; i++) {
        if (0 == strcmp(table.list[i].name, name)) {
            *cat_index = i;
            return ompi_tool_leave(MPI_SUCCESS);
        }
    }
    return ompi_tool_leave(MPI_T_ERR_INVALID_NAME);
}

static void describe(const category_t *c, char *out, size_t size)
{
    if (c->component) {
        snprintf(out, size, "Component %s of framework %s", c->component, c->framework);
        return;
    }
    snprintf(out, size, "Variables of %s", c->framework);
    for (mca_base_framework_t *const *f = mca_base_framework_list(); *f; f++) {
        if (0 == strcmp((*f)->name, c->framework)) {
            snprintf(out, size, "Framework %s: %s", c->framework, (*f)->help);
        }
    }
}

int ompi_mpi_t_category_get_info(int cat_index, char *name, int *name_len, char *desc,
                                 int *desc_len, int *num_cvars,
                                 int *num_pvars, int *num_categories)
{
    const int rc = enter(cat_index);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    char text[256];
    describe(&table.list[cat_index], text, sizeof(text));
    ompi_tool_put_text(table.list[cat_index].name, name, name_len);
    ompi_tool_put_text(text, desc, desc_len);
    if (num_cvars) {
        *num_cvars = members(cat_index, CVARS, 0, NULL);
    }
    if (num_pvars) {
        *num_pvars = members(cat_index, PVARS, 0, NULL);
    }
    if (num_categories) {
        *num_categories = members(cat_index, CATEGORIES, 0, NULL);
    }
    return ompi_tool_leave(MPI_SUCCESS);
}

int ompi_mpi_t_category_get_cvars(int cat_index, int len, int indices[])
{
    return get_members(cat_index, CVARS, len, indices);
}

int ompi_mpi_t_category_get_pvars(int cat_index, int len, int indices[])
{
    return get_members(cat_index, PVARS, len, indices);
}

int ompi_mpi_t_category_get_categories(int cat_index, int len, int indices[])
{
    return get_members(cat_index, CATEGORIES, len, indices);
}

int ompi_mpi_t_category_get_num_events(int cat_index, int *num_events)
{
    const int rc = enter(cat_index);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    if (num_events) {
        *num_events = members(cat_index, EVENTS, 0, NULL);
    }
    return ompi_tool_leave(num_events ? MPI_SUCCESS : MPI_T_ERR_INVALID);
}

int ompi_mpi_t_category_get_events(int cat_index, int len, int indices[])
{
    return get_members(cat_index, EVENTS, len, indices);
}
