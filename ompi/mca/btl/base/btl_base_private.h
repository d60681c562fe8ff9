/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of btl/base: the business card under construction, and the services table. */
#ifndef MCA_BTL_BASE_PRIVATE_H
#define MCA_BTL_BASE_PRIVATE_H

#include <endian.h>
#include <stdlib.h>
#include "ompi/mca/btl/base/btl_base.h"

typedef struct mca_btl_base_card {
    uint8_t *bytes;
    size_t len;
} mca_btl_base_card_t;

int mca_btl_base_card_begin(mca_btl_base_card_t *card, const char *pml);
int mca_btl_base_card_add(mca_btl_base_card_t *card, const char *component, const void *data, size_t len);

#endif
