/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The parameters pml_dr_*. */
#ifndef MCA_PML_DR_PARAMS_H
#define MCA_PML_DR_PARAMS_H

#include "hawser/component.h"
#include "ompi/mca/pml/dr/pml_dr_stream.h"

typedef struct dr_params {
    int64_t priority;
    opal_checksum_kind_t checksum;
    bool bare;              /* see pml_dr_bare.h */
    dr_stream_params_t stream;
    uint64_t tick;          /* ns */
    uint64_t lend_min;      /* bytes */
    uint64_t piece, pieces_max, wide_max; /* bytes */
} dr_params_t;

extern dr_params_t dr_params;

int dr_params_register(const mca_base_services_t *services);
/* Their values are final: derive what is used. */
void dr_params_derive(void);
/* "dr", and how it checks: both sides must agree. */
const char *dr_params_name(void);

#endif
