/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Dims_create against an exhaustive search, with dimensions given by the caller; refusals. */
#include <mpi.h>

#include "support/tap.h"

/* The smallest possible largest factor of n in three factors. */
static int best_largest(int n)
{
    int best = n;

    for (int a = 1; a <= n; a++) {
        for (int b = 1; b <= a && 0 == n % a; b++) {
            int c = 0 == n / a % b ? n / a / b : n + 1;

            if (c <= b && a < best) {
                best = a;
            }
        }
    }
    return best;
}

static void test_balance(void)
{
    bool ok = true;

    for (int n = 1; n <= 600; n++) {
        int dims[3] = {0, 0, 0};

        ok = ok && MPI_SUCCESS == MPI_Dims_create(n, 3, dims) &&
             dims[0] * dims[1] * dims[2] == n && dims[0] >= dims[1] && dims[1] >= dims[2] &&
             dims[0] == best_largest(n);
    }
    TAP_OK(ok, "three dimensions, up to 600 processes");
}

static int class_of(int rc)
{
    int class;

    MPI_Error_class(rc, &class);
    return class;
}

static void test_given(void)
{
    int some[] = {0, 3, 0};
    int all[] = {2, 3};
    int none[] = {2, 3};
    int bad[] = {0, 4};
    int negative[] = {-1, 0};
    int many[40] = {0};
    int prime[2] = {0, 0};

    TAP_OK(MPI_SUCCESS == MPI_Dims_create(24, 3, some) && 4 == some[0] && 3 == some[1] &&
               2 == some[2], "a given dimension stays");
    TAP_OK(MPI_SUCCESS == MPI_Dims_create(6, 2, all) && 2 == all[0] && 3 == all[1],
           "all dimensions given");
    TAP_OK(class_of(MPI_Dims_create(7, 2, none)) == MPI_ERR_DIMS, "all given, wrong product");
    TAP_OK(class_of(MPI_Dims_create(6, 2, bad)) == MPI_ERR_DIMS, "a given one does not divide");
    TAP_OK(class_of(MPI_Dims_create(6, 2, negative)) == MPI_ERR_DIMS, "a negative one");
    TAP_OK(MPI_SUCCESS == MPI_Dims_create(1 << 30, 40, many) && 2 == many[29] && 1 == many[30],
           "40 dimensions");
    TAP_OK(MPI_SUCCESS == MPI_Dims_create(2147483647, 2, prime) && 2147483647 == prime[0] &&
               1 == prime[1], "a prime");
}

int main(int argc, char **argv)
{
    tap_start(30);
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    test_balance();
    test_given();
    MPI_Finalize();
    return tap_end();
}
