/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A program that stands still in a function with a name that can be looked for. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void stuck_in_here(void);

__attribute__((noinline, noclone)) void stuck_in_here(void)
{
    for (;;) {
        pause();
    }
}

int main(void)
{
    printf("stuck %s\n", getenv("PMIX_RANK"));
    fflush(stdout);
    stuck_in_here();
    return 0;
}
