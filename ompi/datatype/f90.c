/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Types chosen by what Fortran asks of them: MPI_Type_match_size, MPI_Type_create_f90_*. */
#include <pthread.h>
#include <stdlib.h>

#include "mpi.h"
#include "ompi/datatype/internal.h"
#include "ompi/mpi/c/bodies.h"

/* ---- By size ---- */

typedef struct sized_type {
    int typeclass;
    int size;
    MPI_Datatype type;
} sized_type_t;

static const sized_type_t sized_types[] = {
    {MPI_TYPECLASS_INTEGER, 1, MPI_INTEGER1}, {MPI_TYPECLASS_INTEGER, 2, MPI_INTEGER2},
    {MPI_TYPECLASS_INTEGER, 4, MPI_INTEGER4}, {MPI_TYPECLASS_INTEGER, 8, MPI_INTEGER8},
    {MPI_TYPECLASS_INTEGER, 16, MPI_INTEGER16}, {MPI_TYPECLASS_REAL, 2, MPI_REAL2},
    {MPI_TYPECLASS_REAL, 4, MPI_REAL4}, {MPI_TYPECLASS_REAL, 8, MPI_REAL8},
    {MPI_TYPECLASS_REAL, 16, MPI_REAL16}, {MPI_TYPECLASS_COMPLEX, 4, MPI_COMPLEX4},
    {MPI_TYPECLASS_COMPLEX, 8, MPI_COMPLEX8}, {MPI_TYPECLASS_COMPLEX, 16, MPI_COMPLEX16},
    {MPI_TYPECLASS_COMPLEX, 32, MPI_COMPLEX32},
};

int ompi_mpi_type_match_size(int typeclass, int size, ompi_datatype_t **datatype)
{
    for (size_t i = 0; i < sizeof(sized_types) / sizeof(sized_types[0]); i++) {
        if (sized_types[i].typeclass == typeclass && sized_types[i].size == size) {
            *datatype = ompi_datatype_builtin(sized_types[i].type);
            return MPI_SUCCESS;
        }
    }
    return MPI_ERR_ARG;
}

/* ---- By precision and range ---- */

/* What gfortran's selected_real_kind and selected_int_kind choose from, smallest first. */
typedef struct fortran_kind {
    int precision;              /* decimal digits; unused for integers */
    int range;                  /* decimal exponent */
    MPI_Datatype type;
    MPI_Datatype complex;
} fortran_kind_t;

static const fortran_kind_t real_kinds[] = {
    {6, 37, MPI_REAL4, MPI_COMPLEX8},
    {15, 307, MPI_REAL8, MPI_COMPLEX16},
#if __LDBL_MANT_DIG__ == 64
    {18, 4931, MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX},
#endif
    {33, 4931, MPI_REAL16, MPI_COMPLEX32},
};

static const fortran_kind_t integer_kinds[] = {
    {0, 2, MPI_INTEGER1, MPI_DATATYPE_NULL},  {0, 4, MPI_INTEGER2, MPI_DATATYPE_NULL},
    {0, 9, MPI_INTEGER4, MPI_DATATYPE_NULL},  {0, 18, MPI_INTEGER8, MPI_DATATYPE_NULL},
    {0, 38, MPI_INTEGER16, MPI_DATATYPE_NULL},
};

/* Equal arguments give the same handle, so every type made is kept. */
typedef struct cached_type {
    struct cached_type *next;
    int p;
    int r;
    ompi_datatype_t *type;
} cached_type_t;

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static cached_type_t *cache;

static cached_type_t *cache_find(int combiner, int p, int r)
{
    cached_type_t *entry = cache;

    while (NULL != entry &&
           (entry->type->args->combiner != combiner || entry->p != p || entry->r != r)) {
        entry = entry->next;
    }
    return entry;
}

/* A predefined type without a name: the same as `model` but for how it says it was made. */
static int make_unnamed(const ompi_datatype_t *model, int combiner, int p, int r,
                        ompi_datatype_t **newtype)
{
    ompi_args_collector_t args;
    opal_datatype_t layout;
    int rc;

    opal_datatype_copy_layout(&layout, &model->opal);
    rc = ompi_datatype_wrap(0, &layout, newtype);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    ompi_args_begin(&args, combiner, false, 2, 0, 0, 0);
    if (MPI_COMBINER_F90_INTEGER != combiner) {
        ompi_args_int(&args, p);
    }
    ompi_args_int(&args, r);
    rc = ompi_args_end(&args, newtype);
    if (MPI_SUCCESS == rc) {
        (*newtype)->op_type = model->op_type;
        (*newtype)->type_class = model->type_class;
        (*newtype)->opal.flags |= OMPI_DATATYPE_PREDEFINED | OMPI_DATATYPE_COMMITTED;
    }
    return rc;
}

static int make_cached(const ompi_datatype_t *model, int combiner, int p, int r,
                       ompi_datatype_t **newtype)
{
    cached_type_t *entry;
    int rc = MPI_SUCCESS;

    (void) pthread_mutex_lock(&cache_lock);
    entry = cache_find(combiner, p, r);
    if (NULL == entry) {
        entry = calloc(1, sizeof(*entry));
        rc = NULL == entry ? MPI_ERR_NO_MEM : make_unnamed(model, combiner, p, r, &entry->type);
        if (MPI_SUCCESS == rc) {
            entry->p = p;
            entry->r = r;
            entry->next = cache;
            cache = entry;
        }
    }
    if (MPI_SUCCESS == rc) {
        *newtype = entry->type;
    } else {
        free(entry);
    }
    (void) pthread_mutex_unlock(&cache_lock);
    return rc;
}

void ompi_datatype_f90_finalize(void)
{
    while (NULL != cache) {
        cached_type_t *entry = cache;

        cache = entry->next;
        ompi_datatype_destroy(entry->type);
        free(entry);
    }
}

/* The smallest kind with this precision and range; MPI_UNDEFINED asks for nothing. */
static const fortran_kind_t *find_real_kind(int p, int r)
{
    if (MPI_UNDEFINED == p && MPI_UNDEFINED == r) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof(real_kinds) / sizeof(real_kinds[0]); i++) {
        if (p <= real_kinds[i].precision && r <= real_kinds[i].range) {
            return &real_kinds[i];
        }
    }
    return NULL;
}

int ompi_mpi_type_create_f90_real(int p, int r, ompi_datatype_t **newtype)
{
    const fortran_kind_t *kind = find_real_kind(p, r);

    return NULL == kind ? MPI_ERR_ARG
                        : make_cached(ompi_datatype_builtin(kind->type), MPI_COMBINER_F90_REAL,
                                      p, r, newtype);
}

int ompi_mpi_type_create_f90_complex(int p, int r, ompi_datatype_t **newtype)
{
    const fortran_kind_t *kind = find_real_kind(p, r);

    return NULL == kind ? MPI_ERR_ARG
                        : make_cached(ompi_datatype_builtin(kind->complex),
                                      MPI_COMBINER_F90_COMPLEX, p, r, newtype);
}

int ompi_mpi_type_create_f90_integer(int r, ompi_datatype_t **newtype)
{
    for (size_t i = 0; i < sizeof(integer_kinds) / sizeof(integer_kinds[0]); i++) {
        if (r <= integer_kinds[i].range) {
            return make_cached(ompi_datatype_builtin(integer_kinds[i].type),
                               MPI_COMBINER_F90_INTEGER, 0, r, newtype);
        }
    }
    return MPI_ERR_ARG;
}
