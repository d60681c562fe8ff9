/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Control variables: every parameter is one, under its own name and index. Integers are MPI_COUNT,
 * sizes MPI_UNSIGNED_LONG_LONG, booleans and enumerations MPI_INT with an enumeration, texts
 * MPI_CHAR. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/mpi/tool/tool.h"

enum {
    HANDLE_MAGIC = 0x43564152,
    TEXT_MAX = 4096, /* characters of a text with its NUL, at least */
};

/* What MPI_T_cvar_handle points to. */
typedef struct cvar_handle {
    uint32_t magic;
    int index;
    int count;
} cvar_handle_t;

static bool is_text(const mca_base_var_t *var)
{
    return MCA_VAR_STRING == var->desc->type || MCA_VAR_LIST == var->desc->type;
}

static MPI_Datatype datatype_of(const mca_base_var_t *var)
{
    switch (var->desc->type) {
    case MCA_VAR_INT: return MPI_COUNT;
    case MCA_VAR_SIZE: return MPI_UNSIGNED_LONG_LONG;
    case MCA_VAR_DOUBLE: return MPI_DOUBLE;
    case MCA_VAR_BOOL:
    case MCA_VAR_ENUM: return MPI_INT;
    case MCA_VAR_STRING:
    case MCA_VAR_LIST: break;
    }
    return MPI_CHAR;
}

static int scope_of(const mca_base_var_t *var)
{
    switch (var->desc->scope) {
    case MCA_VAR_SCOPE_CONSTANT: return MPI_T_SCOPE_CONSTANT;
    case MCA_VAR_SCOPE_LOCAL: return MPI_T_SCOPE_LOCAL;
    case MCA_VAR_SCOPE_ALL: return MPI_T_SCOPE_ALL_EQ;
    case MCA_VAR_SCOPE_STARTUP: break;
    }
    return MPI_T_SCOPE_READONLY;
}

int ompi_mpi_t_cvar_get_num(int *num_cvar)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    if (NULL == num_cvar) {
        return ompi_tool_leave(MPI_T_ERR_INVALID);
    }
    *num_cvar = mca_base_var_count();
    return ompi_tool_leave(MPI_SUCCESS);
}

int ompi_mpi_t_cvar_get_index(const char *name, int *cvar_index)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    if (NULL == name || NULL == cvar_index) {
        return ompi_tool_leave(MPI_T_ERR_INVALID);
    }
    const int index = mca_base_var_find(name);
    if (index < 0) {
        return ompi_tool_leave(MPI_T_ERR_INVALID_NAME);
    }
    *cvar_index = index;
    return ompi_tool_leave(MPI_SUCCESS);
}

int ompi_mpi_t_cvar_get_info(int cvar_index, char *name, int *name_len, int *verbosity,
                             MPI_Datatype *datatype,
                             MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind, int *scope)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    const mca_base_var_t *var = mca_base_var_get(cvar_index);
    if (NULL == var) {
        return ompi_tool_leave(MPI_T_ERR_INVALID_INDEX);
    }
    ompi_tool_put_text(var->full_name, name, name_len);
    ompi_tool_put_text(var->desc->help, desc, desc_len);
    if (verbosity) {
        *verbosity = ompi_tool_verbosity(var->desc->level);
    }
    if (datatype) {
        *datatype = datatype_of(var);
    }
    if (enumtype) {
        *enumtype = ompi_tool_enum_of(var);
    }
    if (bind) {
        *bind = MPI_T_BIND_NO_OBJECT;
    }
    if (scope) {
        *scope = scope_of(var);
    }
    return ompi_tool_leave(MPI_SUCCESS);
}

int ompi_mpi_t_cvar_handle_alloc(int cvar_index, void *obj_handle, MPI_T_cvar_handle *handle,
                                 int *count)
{
    (void) obj_handle; /* no parameter is bound to an object */
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    const mca_base_var_t *var = mca_base_var_get(cvar_index);
    if (NULL == var) {
        return ompi_tool_leave(MPI_T_ERR_INVALID_INDEX);
    }
    if (NULL == handle || NULL == count) {
        return ompi_tool_leave(MPI_T_ERR_INVALID);
    }
    cvar_handle_t *h = malloc(sizeof(*h));
    if (NULL == h) {
        return ompi_tool_leave(MPI_T_ERR_OUT_OF_HANDLES);
    }
    *h = (cvar_handle_t) {.magic = HANDLE_MAGIC, .index = cvar_index, .count = 1};
    if (is_text(var)) {
        const size_t need = strlen(var->text) + 1;
        h->count = need < TEXT_MAX ? TEXT_MAX : (int) need;
    }
    *handle = (MPI_T_cvar_handle) h;
    *count = h->count;
    return ompi_tool_leave(MPI_SUCCESS);
}

int ompi_mpi_t_cvar_handle_free(MPI_T_cvar_handle *handle)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    cvar_handle_t *h = handle ? (cvar_handle_t *) *handle : NULL;
    if (NULL == h || h->magic != HANDLE_MAGIC) {
        return ompi_tool_leave(MPI_T_ERR_INVALID_HANDLE);
    }
    h->magic = 0;
    free(h);
    *handle = MPI_T_CVAR_HANDLE_NULL;
    return ompi_tool_leave(MPI_SUCCESS);
}

/* The handle's parameter and present value, or NULL. */
static const mca_base_var_t *look_up(MPI_T_cvar_handle handle, const cvar_handle_t **h,
                                     mca_base_var_value_t *value)
{
    *h = (const cvar_handle_t *) handle;
    if (NULL == *h || (*h)->magic != HANDLE_MAGIC
        || OPAL_SUCCESS != mca_base_var_read((*h)->index, value)) {
        return NULL;
    }
    return mca_base_var_get((*h)->index);
}

int ompi_mpi_t_cvar_read(MPI_T_cvar_handle handle, void *buf)
{
    int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    const cvar_handle_t *h;
    mca_base_var_value_t value;
    const mca_base_var_t *var = look_up(handle, &h, &value);
    if (NULL == var || NULL == buf) {
        return ompi_tool_leave(var ? MPI_T_ERR_INVALID : MPI_T_ERR_INVALID_HANDLE);
    }
    switch (var->desc->type) {
    case MCA_VAR_INT: *(MPI_Count *) buf = value.i; break;
    case MCA_VAR_SIZE: *(unsigned long long *) buf = value.size; break;
    case MCA_VAR_DOUBLE: *(double *) buf = value.d; break;
    case MCA_VAR_BOOL: *(int *) buf = value.b; break;
    case MCA_VAR_ENUM: *(int *) buf = (int) value.i; break;
    case MCA_VAR_STRING:
    case MCA_VAR_LIST: snprintf(buf, (size_t) h->count, "%s", value.s ? value.s : ""); break;
    }
    return ompi_tool_leave(MPI_SUCCESS);
}

/* The value in the user's buffer as text, as sources give it; to be freed. */
static char *text_of(const mca_base_var_t *var, const cvar_handle_t *h, const void *buf)
{
    char *text = NULL;
    int rc = -1;
    switch (var->desc->type) {
    case MCA_VAR_INT: rc = asprintf(&text, "%" PRId64, (int64_t) *(const MPI_Count *) buf); break;
    case MCA_VAR_SIZE: rc = asprintf(&text, "%llu", *(const unsigned long long *) buf); break;
    case MCA_VAR_BOOL:
    case MCA_VAR_ENUM: rc = asprintf(&text, "%d", *(const int *) buf); break;
    case MCA_VAR_DOUBLE: {
        const mca_base_var_desc_t number = {.type = MCA_VAR_DOUBLE, .def.d = *(const double *) buf};
        return mca_base_var_default_text(&number);
    }
    case MCA_VAR_STRING:
    case MCA_VAR_LIST: return strndup(buf, (size_t) h->count - 1);
    }
    return rc < 0 ? NULL : text;
}

int ompi_mpi_t_cvar_write(MPI_T_cvar_handle handle, const void *buf)
{
    int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    const cvar_handle_t *h;
    mca_base_var_value_t value;
    const mca_base_var_t *var = look_up(handle, &h, &value);
    if (NULL == var || NULL == buf) {
        return ompi_tool_leave(var ? MPI_T_ERR_INVALID : MPI_T_ERR_INVALID_HANDLE);
    }
    char *text = text_of(var, h, buf);
    if (NULL == text) {
        return ompi_tool_leave(MPI_T_ERR_MEMORY);
    }
    switch (mca_base_var_set(h->index, text)) {
    case OPAL_SUCCESS: rc = MPI_SUCCESS; break;
    case OPAL_ERR_PERMISSION: rc = MPI_T_ERR_CVAR_SET_NEVER; break;
    case OPAL_ERR_OUT_OF_RESOURCE: rc = MPI_T_ERR_MEMORY; break;
    default: rc = MPI_T_ERR_INVALID; /* out of the parameter's limits */
    }
    free(text);
    return ompi_tool_leave(rc);
}
