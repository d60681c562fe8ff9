/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Jobs that start jobs: MPI_Comm_spawn, MPI_Comm_spawn_multiple, and what joins both sides. */
#include "support/mpi_test.h"

static char self[PATH_MAX];

static int class_of(int error)
{
    int class = -1;
    MPI_Error_class(error, &class);
    return class;
}

/* Both sides are ranked together, the parents first, and find the same sum. */
static void check_family(MPI_Comm inter, int high)
{
    MPI_Comm all;
    int rank, size, local, remote, sum = 0;
    MPI_Comm_size(inter, &local);
    MPI_Comm_remote_size(inter, &remote);
    MPI_Intercomm_merge(inter, high, &all);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    MPI_CHECK(size == local + remote && (rank >= (high ? remote : local)) == high);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all);
    MPI_CHECK(sum == size * (size - 1) / 2);
    /* Long messages, everybody to everybody. */
    enum { LONG = 100000 };
    int *out = malloc(LONG * sizeof *out), *in = malloc(LONG * sizeof *in);
    for (int shift = 1; shift < size; shift++) {
        int to = (rank + shift) % size, from = (rank + size - shift) % size;
        for (int i = 0; i < LONG; i++) {
            out[i] = rank * LONG + i;
        }
        MPI_Sendrecv(out, LONG, MPI_INT, to, shift, in, LONG, MPI_INT, from, shift, all,
                     MPI_STATUS_IGNORE);
        MPI_CHECK(in[0] == from * LONG && in[LONG - 1] == from * LONG + LONG - 1);
    }
    free(out);
    free(in);
    MPI_Comm_free(&all);
}

/* What a child does: "child KIND ARGUMENT", its argument back to the parents' root. */
static int child(const char *kind, const char *argument)
{
    MPI_Comm parent, again;
    int rank, *appnum, flag;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parent);
    if (!MPI_CHECK(parent != MPI_COMM_NULL)) {
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    if (strcmp(kind, "many") == 0) {
        MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &appnum, &flag);
        MPI_CHECK(flag && *appnum == atoi(argument));
    }
    check_family(parent, 1);
    if (rank == 0) {
        MPI_Send(argument, (int) strlen(argument) + 1, MPI_CHAR, 0, 0, parent);
    }
    if (strcmp(kind, "grand") == 0) { /* and these have children as well */
        char *args[] = {"child", "one", "grandchild", NULL};
        MPI_Comm inter;
        char got[32] = "";
        MPI_Comm_spawn(self, args, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter,
                       MPI_ERRCODES_IGNORE);
        check_family(inter, 0);
        MPI_Recv(got, sizeof got, MPI_CHAR, 0, 0, inter, MPI_STATUS_IGNORE);
        MPI_CHECK(strcmp(got, "grandchild") == 0);
        MPI_Comm_disconnect(&inter);
    }
    MPI_Comm_disconnect(&parent);
    MPI_Comm_get_parent(&again);
    MPI_CHECK(again == MPI_COMM_NULL);
    MPI_Finalize();
    return mpi_test_failures ? MPI_TEST_FAILED : 0;
}

static void begin(int *rank, int *size)
{
    MPI_Comm parent;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_get_parent(&parent);
    MPI_CHECK(parent == MPI_COMM_NULL);
}

static void family(int children, const char *kind)
{
    char *args[] = {"child", (char *) kind, "an argument, with spaces", NULL};
    int rank, size, codes[8] = {9, 9, 9, 9, 9, 9, 9, 9};
    MPI_Comm inter;
    begin(&rank, &size);
    int root = size - 1;
    int rc = MPI_Comm_spawn(rank == root ? self : NULL, rank == root ? args : NULL, children,
                            MPI_INFO_NULL, root, MPI_COMM_WORLD, &inter, codes);
    if (MPI_CHECK(rc == MPI_SUCCESS)) {
        MPI_CHECK(codes[0] == MPI_SUCCESS && codes[children - 1] == MPI_SUCCESS);
        check_family(inter, 0);
        if (rank == 0) {
            char got[64] = "";
            MPI_Recv(got, sizeof got, MPI_CHAR, 0, 0, inter, MPI_STATUS_IGNORE);
            MPI_CHECK(strcmp(got, args[2]) == 0);
        }
        MPI_Comm_disconnect(&inter);
    }
    MPI_Finalize();
}

static void test_one(void)
{
    family(1, "one");
}

static void test_three(void)
{
    family(3, "one");
}

static void test_grand(void)
{
    family(2, "grand");
}

/* Two programs in one job. */
static void test_multiple(void)
{
    char *first[] = {"child", "many", "0", NULL}, *second[] = {"child", "many", "1", NULL};
    char *commands[] = {self, self}, **args[] = {first, second}, got[16] = "";
    const int counts[] = {1, 2};
    const MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    int rank, size, codes[3], remote;
    MPI_Comm inter;
    begin(&rank, &size);
    int rc = MPI_Comm_spawn_multiple(2, commands, args, counts, infos, 0, MPI_COMM_WORLD, &inter,
                                     codes);
    if (MPI_CHECK(rc == MPI_SUCCESS)) {
        MPI_Comm_remote_size(inter, &remote);
        MPI_CHECK(remote == 3);
        check_family(inter, 0);
        if (rank == 0) {
            MPI_Recv(got, sizeof got, MPI_CHAR, 0, 0, inter, MPI_STATUS_IGNORE);
            MPI_CHECK(strcmp(got, "0") == 0);
        }
        MPI_Comm_disconnect(&inter);
    }
    MPI_Finalize();
}

/* One after the other: nothing is used up. */
static void test_often(void)
{
    char *args[] = {"child", "one", "x", NULL}, got[16];
    int rank, size;
    MPI_Comm inter;
    begin(&rank, &size);
    for (int i = 0; i < 8; i++) {
        MPI_CHECK(MPI_Comm_spawn(self, args, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                                 MPI_ERRCODES_IGNORE) == MPI_SUCCESS);
        check_family(inter, 0);
        if (rank == 0) {
            MPI_Recv(got, sizeof got, MPI_CHAR, 0, 0, inter, MPI_STATUS_IGNORE);
        }
        MPI_Comm_disconnect(&inter);
    }
    MPI_Finalize();
}

static void test_errors(void)
{
    int rank, size, codes[2] = {9, 9};
    MPI_Comm inter;
    begin(&rank, &size);
    int rc = MPI_Comm_spawn("/no/such/program", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                            &inter, codes);
    MPI_CHECK(class_of(rc) == MPI_ERR_SPAWN);
    MPI_CHECK(rank != 0 || (codes[0] == MPI_ERR_SPAWN && codes[1] == MPI_ERR_SPAWN));
    rc = MPI_Comm_spawn(self, MPI_ARGV_NULL, 0, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes);
    MPI_CHECK(class_of(rc) == MPI_ERR_ARG || rank != 0);
    MPI_CHECK(rc != MPI_SUCCESS);
    MPI_Finalize();
}

/* Nobody started this process, so that nobody can start more. */
static void test_alone(void)
{
    int rank, size;
    MPI_Comm inter;
    begin(&rank, &size);
    int rc = MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                            MPI_ERRCODES_IGNORE);
    MPI_CHECK(class_of(rc) == MPI_ERR_SPAWN);
    MPI_Finalize();
}

/* Under mpirun, which starts one job only: an error everywhere, and life goes on. */
static void test_refused(void)
{
    int rank, size, sum = 0;
    MPI_Comm inter;
    begin(&rank, &size);
    int rc = MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                            MPI_ERRCODES_IGNORE);
    MPI_CHECK(class_of(rc) == MPI_ERR_SPAWN);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_CHECK(sum == size * (size - 1) / 2);
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "refused", .np = 3, .fn = test_refused},
    {.name = "alone", .np = 0, .fn = test_alone},
};

/* Run by name under a launcher that starts jobs for jobs (system/prterun.sh). */
static const mpi_test_t families[] = {
    {.name = "one", .fn = test_one},
    {.name = "three", .fn = test_three},
    {.name = "grandchildren", .fn = test_grand},
    {.name = "multiple", .fn = test_multiple},
    {.name = "often", .fn = test_often},
    {.name = "errors", .fn = test_errors},
};

int main(int argc, char **argv)
{
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    if (argc == 4 && strcmp(argv[1], "child") == 0) {
        alarm(60);
        return child(argv[2], argv[3]);
    }
    for (size_t i = 0; argc == 2 && i < sizeof families / sizeof *families; i++) {
        if (strcmp(argv[1], families[i].name) == 0) {
            return mpi_test_main(argc, argv, families, sizeof families / sizeof *families);
        }
    }
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
