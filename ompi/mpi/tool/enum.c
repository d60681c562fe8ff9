/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Enumerations of the tools interface: the named values of a parameter, whose handle is the parameter,
 * the states of a performance variable, whose handle is the variable, and the elements of a type of
 * events, whose handle is the type. */
#include "ompi/mpi/tool/tool.h"

static const mca_base_var_enum_t bools[] = {{"false", 0}, {"true", 1}, {NULL, 0}};

/* Items of one or the other. */
typedef struct enumeration {
    const char *name;
    int count;
    const mca_base_var_enum_t *items;
    const ompi_event_type_t *event;
} enumeration_t;

static const mca_base_var_enum_t *items_of(const mca_base_var_t *var)
{
    switch (var->desc->type) {
    case MCA_VAR_ENUM: return var->desc->enums;
    case MCA_VAR_BOOL: return bools;
    default: return NULL;
    }
}

MPI_T_enum ompi_tool_enum_of(const mca_base_var_t *var)
{
    return items_of(var) ? (MPI_T_enum) var : MPI_T_ENUM_NULL;
}

MPI_T_enum ompi_tool_enum_of_pvar(const ompi_pvar_t *pvar)
{
    return pvar->desc.states ? (MPI_T_enum) pvar : MPI_T_ENUM_NULL;
}

MPI_T_enum ompi_tool_enum_of_event(const ompi_event_type_t *type)
{
    return (MPI_T_enum) type;
}

static int count_items(const mca_base_var_enum_t *items)
{
    int n = 0;
    while (items[n].name) {
        n++;
    }
    return n;
}

static bool find(MPI_T_enum handle, enumeration_t *found)
{
    for (int i = 0; handle != MPI_T_ENUM_NULL && i < mca_base_var_count(); i++) {
        const mca_base_var_t *var = mca_base_var_get(i);
        if ((MPI_T_enum) var == handle && items_of(var)) {
            *found = (enumeration_t) {.name = var->full_name, .count = count_items(items_of(var)), .items = items_of(var)};
            return true;
        }
    }
    for (int i = 0; handle != MPI_T_ENUM_NULL && i < ompi_pvar_count(); i++) {
        const ompi_pvar_t *p = ompi_pvar_get(i);
        if (p->desc.states && (MPI_T_enum) p == handle) {
            *found = (enumeration_t) {.name = p->full_name, .count = count_items(p->desc.states), .items = p->desc.states};
            return true;
        }
    }
    for (int i = 0; handle != MPI_T_ENUM_NULL && i < ompi_event_type_count(); i++) {
        const ompi_event_type_t *type = ompi_event_type_get(i);
        if ((MPI_T_enum) type == handle) {
            *found = (enumeration_t) {.name = type->full_name, .count = type->count, .event = type};
            return true;
        }
    }
    return false;
}

/* Begin a routine about an enumeration. */
static int enter(MPI_T_enum handle, enumeration_t *found)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    return find(handle, found) ? MPI_SUCCESS : ompi_tool_leave(MPI_T_ERR_INVALID_HANDLE);
}

int ompi_mpi_t_enum_get_info(MPI_T_enum enumtype, int *num, char *name, int *name_len)
{
    enumeration_t e;
    const int rc = enter(enumtype, &e);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    if (num) {
        *num = e.count;
    }
    ompi_tool_put_text(e.name, name, name_len);
    return ompi_tool_leave(MPI_SUCCESS);
}

int ompi_mpi_t_enum_get_item(MPI_T_enum enumtype, int indx, int *value, char *name, int *name_len)
{
    enumeration_t e;
    const int rc = enter(enumtype, &e);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    if (indx < 0 || indx >= e.count) {
        return ompi_tool_leave(MPI_T_ERR_INVALID_INDEX);
    }
    if (value) {
        *value = e.items ? (int) e.items[indx].value : indx;
    }
    ompi_tool_put_text(e.items ? e.items[indx].name : e.event->desc.values[indx], name, name_len);
    return ompi_tool_leave(MPI_SUCCESS);
}
