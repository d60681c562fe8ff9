/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Dims_create: a balanced factorisation. */
#include <stdbool.h>
#include <stddef.h>

#include "mpi.h"
#include "ompi/mpi/c/bodies.h"

/* No int has more factors than 2^30, and none more divisors than 2095133040. */
enum { MAX_FREE_DIMS = 32, MAX_DIVISORS = 1600 };

typedef struct divisors {
    int n;
    int value[MAX_DIVISORS];    /* ascending */
} divisors_t;

static void find_divisors(int number, divisors_t *divisors)
{
    int above = MAX_DIVISORS;

    divisors->n = 0;
    for (int d = 1; d <= number / d; d++) {
        if (0 == number % d) {
            divisors->value[divisors->n++] = d;
            if (d != number / d) {
                divisors->value[--above] = number / d;
            }
        }
    }
    while (above < MAX_DIVISORS) {
        divisors->value[divisors->n++] = divisors->value[above++];
    }
}

/* True if n is at most limit^count. */
static bool fits(long long n, long long limit, int count)
{
    for (long long power = 1; count > 0; count--) {
        power *= limit;
        if (power >= n) {
            return true;
        }
    }
    return 1 == n;
}

/* Writes `count` factors of n, largest first, none above `limit`, each as small as what is left
 * allows; false if there are none. */
static bool factorise(const divisors_t *divisors, int n, int limit, int *factors, int count)
{
    if (1 == count) {
        factors[0] = n;
        return n <= limit;
    }
    for (int i = 0; i < divisors->n && divisors->value[i] <= limit; i++) {
        int f = divisors->value[i];

        if (0 == n % f && fits(n, f, count) &&
            factorise(divisors, n / f, f, factors + 1, count - 1)) {
            factors[0] = f;
            return true;
        }
    }
    return false;
}

int ompi_mpi_dims_create(int nnodes, int ndims, int dims[])
{
    int factors[MAX_FREE_DIMS];
    divisors_t divisors;
    int rest = nnodes;
    int free_dims = 0;
    int searched;

    if (nnodes < 1 || ndims < 0) {
        return MPI_ERR_ARG;
    }
    for (int i = 0; i < ndims; i++) {
        if (dims[i] < 0 || (dims[i] > 0 && 0 != rest % dims[i])) {
            return MPI_ERR_DIMS;
        }
        free_dims += 0 == dims[i];
        rest /= dims[i] > 0 ? dims[i] : 1;
    }
    if (0 == free_dims) {
        return 1 == rest ? MPI_SUCCESS : MPI_ERR_DIMS;
    }
    searched = free_dims < MAX_FREE_DIMS ? free_dims : MAX_FREE_DIMS;
    find_divisors(rest, &divisors);
    /* Cannot fail: rest * 1 * 1 ... is left if nothing better is found. */
    (void) factorise(&divisors, rest, rest, factors, searched);
    for (int i = 0, f = 0; i < ndims; i++) {
        if (0 == dims[i]) {
            dims[i] = f < searched ? factors[f] : 1;
            f++;
        }
    }
    return MPI_SUCCESS;
}
