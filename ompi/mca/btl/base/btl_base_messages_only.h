/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The operations on remote memory of BTLs that have none. */
#ifndef MCA_BTL_BASE_MESSAGES_ONLY_H
#define MCA_BTL_BASE_MESSAGES_ONLY_H

#include "hawser/btl.h"

static inline int mca_btl_base_no_put_get(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote,
                                          const void *key)
{
    (void) ep, (void) desc, (void) remote, (void) key;
    return MCA_ERR_NOT_SUPPORTED;
}

static inline int mca_btl_base_no_register(mca_btl_module_t *module, void *addr, size_t len,
                                           uint8_t key[MCA_BTL_KEY_MAX], size_t *key_len,
                                           mca_btl_registration_t **registration)
{
    (void) module, (void) addr, (void) len, (void) key, (void) key_len, (void) registration;
    return MCA_ERR_NOT_SUPPORTED;
}

static inline void mca_btl_base_no_deregister(mca_btl_module_t *module, mca_btl_registration_t *registration)
{
    (void) module, (void) registration;
}

#endif
