/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Enumerations of the tools interface: the named values of a parameter. The handle is the
 * parameter. */
#include "ompi/mpi/tool/tool.h"

static const mca_base_var_enum_t bools[] = {{"false", 0}, {"true", 1}, {NULL, 0}};

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

/* The parameter behind a handle; NULL if the handle is none of ours. */
static const mca_base_var_t *var_of(MPI_T_enum handle)
{
    const int count = mca_base_var_count();
    for (int i = 0; i < count && handle != MPI_T_ENUM_NULL; i++) {
        const mca_base_var_t *var = mca_base_var_get(i);
        if ((MPI_T_enum) var == handle && items_of(var)) {
            return var;
        }
    }
    return NULL;
}

static int count_items(const mca_base_var_enum_t *items)
{
    int n = 0;
    while (items[n].name) {
        n++;
    }
    return n;
}

int ompi_mpi_t_enum_get_info(MPI_T_enum enumtype, int *num, char *name, int *name_len)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    const mca_base_var_t *var = var_of(enumtype);
    if (NULL == var) {
        return ompi_tool_leave(MPI_T_ERR_INVALID_HANDLE);
    }
    if (num) {
        *num = count_items(items_of(var));
    }
    ompi_tool_put_text(var->full_name, name, name_len);
    return ompi_tool_leave(MPI_SUCCESS);
}

int ompi_mpi_t_enum_get_item(MPI_T_enum enumtype, int indx, int *value, char *name, int *name_len)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    const mca_base_var_t *var = var_of(enumtype);
    if (NULL == var) {
        return ompi_tool_leave(MPI_T_ERR_INVALID_HANDLE);
    }
    const mca_base_var_enum_t *items = items_of(var);
    if (indx < 0 || indx >= count_items(items)) {
        return ompi_tool_leave(MPI_T_ERR_INVALID_INDEX);
    }
    if (value) {
        *value = (int) items[indx].value;
    }
    ompi_tool_put_text(items[indx].name, name, name_len);
    return ompi_tool_leave(MPI_SUCCESS);
}
