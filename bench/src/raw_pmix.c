/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What a rank must do at least to be known to its launcher: the floor under MPI_Init and
 * MPI_Finalize. */
#include <pmix.h>
#include <stddef.h>

int main(void)
{
    pmix_proc_t me;
    if (PMIx_Init(&me, NULL, 0) != PMIX_SUCCESS) {
        return 1;
    }
    pmix_status_t status = PMIx_Fence(NULL, 0, NULL, 0);
    PMIx_Finalize(NULL, 0);
    return status != PMIX_SUCCESS;
}
