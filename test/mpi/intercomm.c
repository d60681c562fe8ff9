/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Intercommunicators: making, talking, duplicating, dividing, merging. */
#include <stdbool.h>

#include "support/mpi_test.h"

static int rank, size;

/* Two halves: ranks below `middle`, and the others. */
static MPI_Comm make(MPI_Comm *half)
{
    MPI_Comm inter;
    int middle;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    middle = size / 2;
    MPI_Comm_split(MPI_COMM_WORLD, rank < middle, rank, half);
    /* The leaders are not the first ones: the last of the lower half, the second of the upper one
     * if there is one. */
    int upper = size - middle, upper_leader = upper > 1 ? 1 : 0;
    MPI_Intercomm_create(*half, rank < middle ? middle - 1 : upper_leader, MPI_COMM_WORLD,
                         rank < middle ? middle + upper_leader : middle - 1, 7, &inter);
    return inter;
}

static void finish(MPI_Comm *half, MPI_Comm *inter)
{
    MPI_Comm_free(half);
    MPI_Comm_free(inter);
    MPI_Finalize();
}

/* Everybody sends his world rank to everybody on the other side. */
static void check_talk(MPI_Comm inter)
{
    int n, got;
    MPI_Group remote, world;
    MPI_Status status;
    MPI_Comm_remote_size(inter, &n);
    MPI_Comm_remote_group(inter, &remote);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int i = 0; i < n; i++) {
        MPI_Send(&rank, 1, MPI_INT, i, 3, inter);
    }
    for (int i = 0; i < n; i++) {
        int expected;
        MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 3, inter, &status);
        MPI_Group_translate_ranks(remote, 1, &status.MPI_SOURCE, world, &expected);
        MPI_CHECK(got == expected);
    }
    MPI_Group_free(&remote);
    MPI_Group_free(&world);
}

static void test_create(void)
{
    MPI_Comm half, inter = make(&half);
    int flag, n, local, result, middle = size / 2;
    MPI_Comm_test_inter(inter, &flag);
    MPI_CHECK(flag);
    MPI_Comm_size(inter, &local);
    MPI_Comm_remote_size(inter, &n);
    MPI_CHECK(local == (rank < middle ? middle : size - middle) && n == size - local);
    MPI_Comm_compare(inter, half, &result);
    MPI_CHECK(result == MPI_UNEQUAL);
    check_talk(inter);
    finish(&half, &inter);
}

static void test_dup(void)
{
    MPI_Comm half, copy, inter = make(&half);
    int result;
    MPI_Comm_dup(inter, &copy);
    MPI_Comm_compare(inter, copy, &result);
    MPI_CHECK(result == MPI_CONGRUENT);
    check_talk(copy);
    check_talk(inter);
    MPI_Comm_free(&copy);
    finish(&half, &inter);
}

static void test_idup(void)
{
    MPI_Comm half, copies[3], inter = make(&half);
    MPI_Request requests[3];
    for (int i = 0; i < 3; i++) {
        MPI_Comm_idup(inter, &copies[i], &requests[i]);
    }
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 3; i++) {
        check_talk(copies[i]);
        MPI_Comm_free(&copies[i]);
    }
    finish(&half, &inter);
}

static void check_merged(MPI_Comm inter, int high, int expected)
{
    MPI_Comm all;
    int me, n, flag, got = -1;
    MPI_Intercomm_merge(inter, high, &all);
    MPI_Comm_test_inter(all, &flag);
    MPI_Comm_rank(all, &me);
    MPI_Comm_size(all, &n);
    MPI_CHECK(!flag && n == size && me == expected);
    MPI_Sendrecv(&me, 1, MPI_INT, (me + 1) % n, 0, &got, 1, MPI_INT, (me + n - 1) % n, 0, all,
                 MPI_STATUS_IGNORE);
    MPI_CHECK(got == (me + n - 1) % n);
    MPI_Comm_free(&all);
}

static void test_merge(void)
{
    MPI_Comm half, inter = make(&half);
    int middle = size / 2, low = rank < middle;
    check_merged(inter, !low, rank);
    check_merged(inter, low, low ? rank + size - middle : rank - middle);
    /* Both say the same: the one with the lowest rank in the world is first. */
    check_merged(inter, 0, rank);
    finish(&half, &inter);
}

static void test_parts(void)
{
    MPI_Comm half, part, inter = make(&half);
    MPI_Group group, some;
    int local, first = 0, me;
    MPI_Comm_rank(inter, &me);
    MPI_Comm_group(inter, &group);
    MPI_Group_incl(group, 1, &first, &some);
    MPI_Comm_create(inter, some, &part); /* the first of both sides */
    MPI_CHECK((part != MPI_COMM_NULL) == (me == 0));
    if (part != MPI_COMM_NULL) {
        check_talk(part);
        MPI_Comm_free(&part);
    }
    MPI_Group_free(&some);
    MPI_Group_free(&group);

    /* Even and odd ones of both sides, in reverse order. */
    MPI_Comm_split(inter, me % 2, -me, &part);
    MPI_Comm_size(inter, &local);
    int remote = size - local, here = (local + 1 - me % 2) / 2, there = (remote + 1 - me % 2) / 2;
    MPI_CHECK((part != MPI_COMM_NULL) == (there > 0));
    if (part != MPI_COMM_NULL) {
        int n, new_rank;
        MPI_Comm_size(part, &n);
        MPI_Comm_rank(part, &new_rank);
        MPI_CHECK(n == here && new_rank == here - 1 - me / 2);
        MPI_Comm_remote_size(part, &n);
        MPI_CHECK(n == there);
        check_talk(part);
        MPI_Comm_free(&part);
    }
    /* Those on one node: all, or on several nodes fewer, perhaps none of the other side. */
    MPI_Comm node;
    int n;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &n);
    bool together = n == size;
    MPI_Comm_free(&node);
    MPI_Comm_split_type(inter, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part);
    MPI_CHECK(part != MPI_COMM_NULL || !together);
    if (part != MPI_COMM_NULL) {
        MPI_Comm_remote_size(part, &n);
        MPI_CHECK(together ? n == remote : n > 0 && n <= remote);
        check_talk(part);
        MPI_Comm_free(&part);
    }
    finish(&half, &inter);
}

/* The two groups overlap: an error for all, and nobody hangs. */
static void test_overlap(void)
{
    MPI_Comm copy, inter;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_CHECK(MPI_Intercomm_create(copy, 0, MPI_COMM_WORLD, 0, 1, &inter) == MPI_ERR_COMM);
    MPI_Comm_free(&copy);
    MPI_Finalize();
}

/* The leaders' arguments are wrong: an error for all of both sides. */
static void test_wrong_leader(void)
{
    MPI_Comm half, inter;
    MPI_Group world, mine, others;
    int size;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN);
    MPI_CHECK(MPI_Intercomm_create(half, 1, MPI_COMM_WORLD, size, 1, &inter) == MPI_ERR_RANK);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Comm_group(half, &mine);
    MPI_Group_difference(world, mine, &others);
    MPI_CHECK(MPI_Intercomm_create_from_groups(mine, 1, others, size, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter) ==
              MPI_ERR_RANK);
    MPI_CHECK(MPI_Intercomm_create_from_groups(mine, 1, others, 1, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &inter) ==
              MPI_SUCCESS);
    MPI_Comm_free(&inter);
    MPI_Group_free(&world);
    MPI_Group_free(&mine);
    MPI_Group_free(&others);
    MPI_Comm_free(&half);
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "create-2", .np = 2, .fn = test_create},
    {.name = "create-5", .np = 5, .fn = test_create},
    {.name = "dup", .np = 4, .fn = test_dup},
    {.name = "idup", .np = 5, .fn = test_idup},
    {.name = "merge-2", .np = 2, .fn = test_merge},
    {.name = "merge-5", .np = 5, .fn = test_merge},
    {.name = "parts-2", .np = 2, .fn = test_parts},
    {.name = "parts-5", .np = 5, .fn = test_parts},
    {.name = "overlap", .np = 2, .fn = test_overlap},
    {.name = "wrong-leader", .np = 5, .fn = test_wrong_leader},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
