/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A library that a test component needs. */
__attribute__((visibility("default"))) int tst_needed(void);

int tst_needed(void)
{
    return 1;
}
