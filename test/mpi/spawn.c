/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Jobs that start jobs: MPI_Comm_spawn, MPI_Comm_spawn_multiple, and what joins both sides. */
#include <signal.h>

#include "support/mpi_test.h"

enum { POSTED = 1000 }; /* messages of a child that ends before they are received */

static char self[PATH_MAX];

static int class_of(int error)
{
    int class = -1;
    MPI_Error_class(error, &class);
    return class;
}

/* A group alone can't make a communicator of processes of several jobs, which have no world in common. */
static void check_group(MPI_Comm all)
{
    MPI_Group group;
    MPI_Comm comm;
    MPI_Comm_group(all, &group);
    MPI_CHECK(class_of(MPI_Comm_create_from_group(group, "family", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm)) == MPI_ERR_GROUP);
    MPI_Group_free(&group);
}

/* Processes of both jobs that are on one node find each other there; of two worlds, each its own. `local`: of our job. */
static void check_nodes(MPI_Comm all, int local)
{
    enum { LENGTH = MPI_MAX_PROCESSOR_NAME };
    char mine[LENGTH] = "", *names;
    int size, n, same = 0;
    MPI_Comm part;
    MPI_Info info;
    MPI_Comm_size(all, &size);
    names = malloc((size_t) size * LENGTH);
    MPI_Get_processor_name(mine, &n);
    MPI_Allgather(mine, LENGTH, MPI_CHAR, names, LENGTH, MPI_CHAR, all);
    for (int i = 0; i < size; i++) {
        same += strcmp(names + i * LENGTH, mine) == 0;
    }
    free(names);
    MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part);
    MPI_Comm_size(part, &n);
    MPI_CHECK(n == same);
    MPI_Comm_free(&part);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_pset_name", "mpi://WORLD");
    MPI_Comm_split_type(all, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &part);
    MPI_Comm_size(part, &n);
    MPI_CHECK(n == local);
    MPI_Comm_free(&part);
    MPI_Info_free(&info);
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
    check_group(all);
    check_nodes(all, local);
    MPI_Comm_free(&all);
}

static void wait_for_end(int pid)
{
    while (kill(pid, 0) == 0) {
        usleep(1000);
    }
}

/* Rank and host of each child, in turn, to the parents' root. */
static void tell(int rank, MPI_Comm parent)
{
    char text[MPI_MAX_PROCESSOR_NAME + 16], host[MPI_MAX_PROCESSOR_NAME];
    int length;
    MPI_Get_processor_name(host, &length);
    snprintf(text, sizeof text, "%d:%.*s", rank, length, host);
    printf("child %d speaks\n", rank);
    fflush(stdout);
    MPI_Send(text, (int) strlen(text) + 1, MPI_CHAR, 0, rank, parent);
}

/* Children that do not do what families do. */
static int other_child(const char *kind, int rank, MPI_Comm parent)
{
    char text[PATH_MAX], here[PATH_MAX];
    int pid;
    if (strcmp(kind, "look") == 0) {
        const char *a = getenv("SPAWN_TEST_A"), *b = getenv("SPAWN_TEST_B");
        MPI_Errhandler handler;
        MPI_Comm_get_errhandler(parent, &handler);
        snprintf(text, sizeof text, "%.*s %s %s%s", PATH_MAX / 2, getcwd(here, sizeof here), a ? a : "no",
                 b ? b : "no", handler == MPI_ERRORS_RETURN ? " returns" : "");
        MPI_Send(text, (int) strlen(text) + 1, MPI_CHAR, 0, 0, parent);
    } else if (strcmp(kind, "outlive") == 0) {
        MPI_Recv(&pid, 1, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE);
        MPI_Comm_disconnect(&parent);
        wait_for_end(pid);
        printf("the parents are gone\n");
    } else if (strcmp(kind, "aside") == 0) {
        pid = (int) getpid();
        MPI_Send(&pid, 1, MPI_INT, 0, 0, parent);
        MPI_Comm_disconnect(&parent);
        MPI_Abort(MPI_COMM_WORLD, 4);
    } else if (strcmp(kind, "post") == 0) {
        pid = (int) getpid();
        MPI_Send(&pid, 1, MPI_INT, 0, 0, parent);
        for (int i = 0; i < POSTED; i++) {
            MPI_Send(&i, 1, MPI_INT, 0, 1, parent);
        }
        parent = MPI_COMM_NULL;
    } else if (strcmp(kind, "merge") == 0) {
        MPI_Comm all;
        MPI_Intercomm_merge(parent, 1, &all);
        pid = (int) getpid();
        MPI_Send(&pid, 1, MPI_INT, 0, 0, all);
        parent = MPI_COMM_NULL;
    } else if (strcmp(kind, "leave") == 0) {
        parent = MPI_COMM_NULL; /* it may still wait for us */
    } else if (strcmp(kind, "tell") == 0) {
        tell(rank, parent);
    } else if (strcmp(kind, "abort") == 0 && rank == 1) {
        MPI_Abort(MPI_COMM_WORLD, 6);
    } else if (strcmp(kind, "killed") == 0 && rank == 0) {
        raise(SIGKILL);
    } else {
        for (;;) {
            pause();
        }
    }
    if (parent != MPI_COMM_NULL) {
        MPI_Comm_disconnect(&parent);
    }
    MPI_Finalize();
    return mpi_test_failures ? MPI_TEST_FAILED : 0;
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
    if (strcmp(kind, "one") != 0 && strcmp(kind, "many") != 0 && strcmp(kind, "grand") != 0) {
        return other_child(kind, rank, parent);
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
    char *child[] = {"child", "many", "0", NULL};
    int rank, size, codes[2] = {9, 9};
    MPI_Comm inter, two;
    begin(&rank, &size);
    int rc = MPI_Comm_spawn("/no/such/program", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                            &inter, codes);
    MPI_CHECK(class_of(rc) == MPI_ERR_SPAWN);
    MPI_CHECK(codes[0] == MPI_ERR_SPAWN && codes[1] == MPI_ERR_SPAWN); /* in every caller */
    rc = MPI_Comm_spawn(self, MPI_ARGV_NULL, 0, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes);
    MPI_CHECK(class_of(rc) == MPI_ERR_ARG);
    MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_WORLD, 1 - rank, 0, &two);
    MPI_Comm_set_errhandler(two, MPI_ERRORS_RETURN);
    rc = MPI_Comm_spawn(self, child, 1, MPI_INFO_NULL, 0, two, &inter, codes);
    MPI_CHECK(class_of(rc) == MPI_ERR_COMM); /* and no child is there that would find nobody */
    MPI_Comm_free(&two);
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

/* What the info says reaches the child: it looks, and its message is how it is. */
static void test_info(void)
{
    char *args[] = {"child", "look", "x", NULL}, got[PATH_MAX] = "";
    int rank, size;
    MPI_Comm inter;
    MPI_Info info;
    begin(&rank, &size);
    MPI_Info_create(&info);
    MPI_Info_set(info, "wdir", "/usr");
    MPI_Info_set(info, "env", "SPAWN_TEST_A=1\nSPAWN_TEST_B=two words");
    MPI_Info_set(info, "bind_to", "none");
    MPI_Info_set(info, "mpi_initial_errhandler", "mpi_errors_return");
    int rc = MPI_Comm_spawn(self, args, 1, info, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    if (MPI_CHECK(rc == MPI_SUCCESS) && rank == 0) {
        MPI_Recv(got, sizeof got, MPI_CHAR, 0, 0, inter, MPI_STATUS_IGNORE);
        MPI_CHECK(strcmp(got, "/usr 1 two words returns") == 0);
    }
    MPI_Comm_disconnect(&inter);
    MPI_Info_free(&info);
    MPI_Finalize();
}

/* Two ranks have children of their own at the same time, in other jobs. */
static void test_apart(void)
{
    char *args[] = {"child", "one", "mine", NULL}, got[16] = "";
    int rank, size;
    MPI_Comm inter;
    begin(&rank, &size);
    MPI_CHECK(MPI_Comm_spawn(self, args, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter,
                             MPI_ERRCODES_IGNORE) == MPI_SUCCESS);
    check_family(inter, 0);
    MPI_Recv(got, sizeof got, MPI_CHAR, 0, 0, inter, MPI_STATUS_IGNORE);
    MPI_CHECK(strcmp(got, "mine") == 0);
    MPI_Comm_disconnect(&inter);
    MPI_Finalize();
}

/* Parents that have ended are not missed: the child speaks when its parent is gone. */
static void test_outlive(void)
{
    char *args[] = {"child", "outlive", "x", NULL};
    int rank, size, pid = (int) getpid();
    MPI_Comm inter;
    begin(&rank, &size);
    MPI_CHECK(MPI_Comm_spawn(self, args, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                             MPI_ERRCODES_IGNORE) == MPI_SUCCESS);
    if (rank == 0) {
        MPI_Send(&pid, 1, MPI_INT, 0, 0, inter);
    }
    MPI_Comm_disconnect(&inter);
    MPI_Finalize();
}

/* A child ends, and the launcher says so, while what it sent waits here: that still comes, and nothing after it. */
static void test_late(void)
{
    char *args[] = {"child", "post", "x", NULL};
    int rank, size, pid, flag, got = -1;
    MPI_Comm inter;
    begin(&rank, &size);
    MPI_Comm_spawn(self, args, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    MPI_Recv(&pid, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
    while (kill(pid, 0) == 0) { /* it goes when all is here */
        MPI_Iprobe(0, 2, inter, &flag, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 8; i++) {
        usleep(250000);
        MPI_Iprobe(0, 2, inter, &flag, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < POSTED; i++) {
        MPI_CHECK(MPI_Recv(&got, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE) == MPI_SUCCESS && got == i);
    }
    MPI_CHECK(class_of(MPI_Recv(&got, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE)) == MPI_ERR_OTHER);
    MPI_Finalize();
}

/* One that has ended as it should is nobody's loss: a receive from any source is for the others. */
static void test_others(void)
{
    char *args[] = {"child", "merge", "x", NULL};
    int rank, size, pid, flag, got = -1;
    MPI_Comm inter, all;
    MPI_Request request;
    begin(&rank, &size);
    MPI_Comm_spawn(self, args, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    MPI_Intercomm_merge(inter, 0, &all);
    if (rank == 0) {
        MPI_Recv(&pid, 1, MPI_INT, 2, 0, all, MPI_STATUS_IGNORE);
        MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 1, all, &request);
        while (kill(pid, 0) == 0) {
            MPI_Iprobe(MPI_ANY_SOURCE, 2, all, &flag, MPI_STATUS_IGNORE);
        }
        for (int i = 0; i < 8; i++) {
            usleep(250000);
            MPI_Iprobe(MPI_ANY_SOURCE, 2, all, &flag, MPI_STATUS_IGNORE);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_CHECK(got == 42);
        MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 2, all, MPI_STATUS_IGNORE);
        MPI_CHECK(got == 43);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Send(&(int) {42}, 1, MPI_INT, 0, 1, all);
        MPI_Send(&(int) {43}, 1, MPI_INT, 0, 2, all);
    }
    MPI_Finalize();
}

/* The child aborts, or is killed, and its parents go with it. */
static void test_fate(const char *kind)
{
    char *args[] = {"child", (char *) kind, "x", NULL};
    int rank, size;
    MPI_Comm inter;
    begin(&rank, &size);
    MPI_Comm_spawn(self, args, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    for (;;) {
        pause();
    }
}

static void test_abort(void)
{
    test_fate("abort");
}

static void test_killed(void)
{
    test_fate("killed");
}

/* And the reverse: the children wait for ever. */
static void test_orphans(void)
{
    char *args[] = {"child", "wait", "x", NULL};
    int rank, size;
    MPI_Comm inter;
    begin(&rank, &size);
    MPI_Comm_spawn(self, args, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    if (rank == 1) {
        MPI_Abort(MPI_COMM_WORLD, 7);
    }
    for (;;) {
        pause();
    }
}

/* Who has parted does not fall with the other: the child aborts, its parents go on. */
static void test_aside(void)
{
    char *args[] = {"child", "aside", "x", NULL};
    int rank, size, pid;
    MPI_Comm inter;
    begin(&rank, &size);
    MPI_CHECK(MPI_Comm_spawn(self, args, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                             MPI_ERRCODES_IGNORE) == MPI_SUCCESS);
    if (rank == 0) {
        MPI_Recv(&pid, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
    }
    MPI_Comm_disconnect(&inter);
    if (rank == 0) {
        wait_for_end(pid);
        printf("the parents go on\n");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}

/* Not an MPI program: whoever waits for it would wait for ever. */
static void test_stranger(void)
{
    int rank, size;
    MPI_Comm inter;
    begin(&rank, &size);
    MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                   MPI_ERRCODES_IGNORE);
    MPI_Finalize();
}

/* The first six are run by system/prterun.sh as well. */
static const mpi_test_t tests[] = {
    {.name = "one", .np = 2, .fn = test_one},
    {.name = "three", .np = 2, .fn = test_three},
    {.name = "grandchildren", .np = 2, .fn = test_grand},
    {.name = "multiple", .np = 2, .fn = test_multiple},
    {.name = "often", .np = 2, .fn = test_often},
    {.name = "errors", .np = 2, .fn = test_errors},
    {.name = "alone", .np = 0, .fn = test_alone},
    {.name = "info", .np = 2, .fn = test_info},
    {.name = "apart", .np = 3, .fn = test_apart},
    {.name = "outlive", .np = 2, .fn = test_outlive, .says = "the parents are gone\n"},
    {.name = "late", .np = 1, .fn = test_late, .says = "has ended: messages"},
    {.name = "others", .np = 2, .fn = test_others},
    {.name = "abort", .np = 2, .fn = test_abort, .exit_code = 6,
     .says = "rank 1 of job 2"},
    {.name = "killed", .np = 2, .fn = test_killed, .exit_code = 137,
     .says = "rank 0 of job 2"},
    {.name = "orphans", .np = 2, .fn = test_orphans, .exit_code = 7, .says = "rank 1 ("},
    {.name = "aside", .np = 2, .fn = test_aside, .exit_code = 4, .says = "the parents go on\n"},
    {.name = "stranger", .np = 2, .fn = test_stranger, .exit_code = 1,
     .says = "has ended without calling MPI_Init"},
};

/* For shell tests: "tell N [KEY=VALUE]..." spawns N children of all with this info, and rank 0 says where they are;
 * "tell N command=C" is another program. */
static int tell_about(int count, char **settings)
{
    char *args[] = {"child", "tell", "x", NULL}, *command = self;
    char text[MPI_MAX_PROCESSOR_NAME + 16];
    MPI_Info info;
    MPI_Comm inter;
    int rank;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Info_create(&info);
    for (char **setting = settings; *setting; setting++) {
        char *value = strchr(*setting, '=');
        *value++ = '\0';
        if (strcmp(*setting, "command") == 0) {
            command = value;
        } else {
            MPI_Info_set(info, *setting, value);
        }
    }
    MPI_Comm_spawn(command, args, count, info, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    for (int i = 0; i < count && rank == 0; i++) {
        MPI_Recv(text, sizeof text, MPI_CHAR, i, i, inter, MPI_STATUS_IGNORE);
        printf("%s%s", text, i + 1 < count ? " " : "\n");
    }
    fflush(stdout);
    MPI_Comm_disconnect(&inter);
    MPI_Info_free(&info);
    MPI_Finalize();
    return 0;
}

/* "connect PORT", with an error handler that ends the job. */
static int connect_to(const char *port)
{
    MPI_Comm inter;
    MPI_Init(NULL, NULL);
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    return 0;
}

/* "left" waits for a message of a child that ends without sending one. */
static int be_left(void)
{
    char *args[] = {"child", "leave", "x", NULL};
    int got;
    MPI_Comm inter;
    MPI_Init(NULL, NULL);
    MPI_Comm_spawn(self, args, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    MPI_Recv(&got, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
    return 0;
}

/* "stay" has three children that stay, and says so; "forever" has children come and go. Both until somebody
 * ends them. */
static _Noreturn void go_on_forever(bool stay)
{
    char *args[] = {"child", stay ? "wait" : "look", "x", NULL}, got[PATH_MAX];
    int rank;
    MPI_Comm inter;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (stay) {
        MPI_Comm_spawn(self, args, 3, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                       MPI_ERRCODES_IGNORE);
        if (rank == 0) {
            printf("all are here\n");
            fflush(stdout);
        }
    }
    while (stay) {
        pause();
    }
    for (;;) {
        MPI_Comm_spawn(self, args, 3, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                       MPI_ERRCODES_IGNORE);
        for (int i = 0; i < 3 && rank == 0; i++) {
            MPI_Recv(got, sizeof got, MPI_CHAR, i, 0, inter, MPI_STATUS_IGNORE);
        }
        MPI_Comm_disconnect(&inter);
    }
}

int main(int argc, char **argv)
{
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    if (argc == 4 && strcmp(argv[1], "child") == 0) {
        alarm(60);
        return child(argv[2], argv[3]);
    }
    if (argc >= 3 && strcmp(argv[1], "tell") == 0) {
        return tell_about(atoi(argv[2]), argv + 3);
    }
    if (argc == 3 && strcmp(argv[1], "connect") == 0) {
        return connect_to(argv[2]);
    }
    if (argc == 2 && strcmp(argv[1], "left") == 0) {
        return be_left();
    }
    if (argc == 2 && (strcmp(argv[1], "stay") == 0 || strcmp(argv[1], "forever") == 0)) {
        go_on_forever(strcmp(argv[1], "stay") == 0);
    }
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
