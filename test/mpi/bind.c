/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links chosen for a communicator by the info key hawser_links: what travels goes over them, by the library's own
 * counters, arrives whole, and the hint is seen where MPI says. For two processes of one host with shm and tcp.
 */
#include "support/mpi_pvar.h"
#include "support/mpi_test.h"

enum { LONG = 3 << 20 };

static int rank;

static MPI_Comm with_links(MPI_Comm parent, const char *links)
{
    MPI_Comm comm;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "hawser_links", links);
    MPI_Comm_dup_with_info(parent, info, &comm);
    MPI_Info_free(&info);
    return comm;
}

static void set_links(MPI_Comm comm, const char *links)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "hawser_links", links);
    MPI_CHECK(MPI_Comm_set_info(comm, info) == MPI_SUCCESS);
    MPI_Info_free(&info);
}

/* NULL: the communicator must not show the key. */
static void check_links(MPI_Comm comm, const char *expected)
{
    MPI_Info info;
    char value[64] = "";
    int length = sizeof(value), flag;
    MPI_Comm_get_info(comm, &info);
    MPI_Info_get_string(info, "hawser_links", &length, value, &flag);
    MPI_CHECK(expected ? flag && strcmp(value, expected) == 0 : !flag);
    MPI_Info_free(&info);
}

/* Bytes handed so far to the links whose name begins so. */
static unsigned long long bytes_over(const char *prefix)
{
    long long bytes = mpi_pvar_of_links("pml_base_link_bytes", prefix);
    MPI_CHECK(bytes >= 0);
    return (unsigned long long) bytes;
}

static void fill(unsigned char *data, int len, int salt)
{
    for (int i = 0; i < len; i++) {
        data[i] = (unsigned char) (i * 7 + i / 251 + salt);
    }
}

static int differs(const unsigned char *data, int len, int salt)
{
    int wrong = 0;
    for (int i = 0; i < len; i++) {
        wrong += data[i] != (unsigned char) (i * 7 + i / 251 + salt);
    }
    return wrong;
}

/* Both ways, messages of all lengths, contiguous and every other four bytes, of which several are under way; in order. */
static void exchange(MPI_Comm comm)
{
    static const int lengths[] = {0, 8, 900, 5000, 40000, 300000, LONG};
    enum { N = sizeof(lengths) / sizeof(*lengths) };
    static unsigned char out[N][LONG], in[N][LONG];
    MPI_Request requests[2 * N];
    MPI_Datatype strided;
    for (int i = 0; i < N; i++) {
        memset(in[i], 0, (size_t) lengths[i]);
        fill(out[i], lengths[i], rank + i);
        MPI_Irecv(in[i], lengths[i], MPI_BYTE, 1 - rank, 5, comm, &requests[i]);
    }
    for (int i = 0; i < N; i++) {
        MPI_Isend(out[i], lengths[i], MPI_BYTE, 1 - rank, 5, comm, &requests[N + i]);
    }
    MPI_Waitall(2 * N, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < N; i++) {
        MPI_CHECK(differs(in[i], lengths[i], 1 - rank + i) == 0);
    }
    MPI_Type_vector(LONG / 8, 4, 8, MPI_BYTE, &strided);
    MPI_Type_commit(&strided);
    memset(in[0], 0, LONG);
    MPI_Sendrecv(out[N - 1], 1, strided, 1 - rank, 6, in[0], 1, strided, 1 - rank, 6, comm, MPI_STATUS_IGNORE);
    fill(out[0], LONG, 1 - rank + N - 1);
    int wrong = 0;
    for (int i = 0; i + 8 <= LONG; i += 8) {
        wrong += memcmp(in[0] + i, out[0] + i, 4) != 0;
    }
    MPI_CHECK(wrong == 0);
    MPI_Type_free(&strided);
    int value = rank, sum;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_CHECK(sum == 1);
}

/* Exchange on `comm`: the data must go over links whose names begin with `over`, and over `not` only control and what
 * was sent again. (What the receiver fetches by itself nobody hands to a link: shm counts no more than it was handed.) */
static void exchange_over(MPI_Comm comm, const char *over, const char *not)
{
    MPI_Barrier(MPI_COMM_WORLD);
    unsigned long long used = bytes_over(over), unused = bytes_over(not);
    exchange(comm);
    used = bytes_over(over) - used;
    unused = bytes_over(not) - unused;
    if (used < LONG / 4 || unused > used / 4) {
        printf("# rank %d: %llu bytes over %s, %llu over %s\n", rank, used, over, unused, not);
    }
    MPI_CHECK(used >= LONG / 4);
    MPI_CHECK(unused <= used / 4);
}

static void start(void)
{
    int provided;
    MPI_Init(NULL, NULL);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}

static void end(void)
{
    MPI_T_finalize();
    MPI_Finalize();
}

static void test_chosen(void)
{
    MPI_Comm tcp, shm, copy;
    start();
    exchange(MPI_COMM_WORLD); /* makes the connections */
    tcp = with_links(MPI_COMM_WORLD, "tcp");
    shm = with_links(MPI_COMM_WORLD, "^tcp");
    for (int i = 0; i < 3; i++) {
        exchange_over(tcp, "tcp", "shm");
        exchange_over(shm, "shm", "tcp");
    }
    exchange(MPI_COMM_WORLD);
    MPI_Comm_dup(tcp, &copy);
    check_links(copy, "tcp");
    exchange_over(copy, "tcp", "shm");
    MPI_Comm_free(&copy);
    MPI_Comm_dup_with_info(tcp, MPI_INFO_NULL, &copy);
    check_links(copy, NULL);
    MPI_Comm_free(&copy);
    check_links(MPI_COMM_WORLD, NULL);
    MPI_Comm_free(&tcp);
    MPI_Comm_free(&shm);
    end();
}

/* On a communicator in use, the choice changes with the messages that are sent next. */
static void test_changed(void)
{
    MPI_Comm comm;
    start();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    exchange(comm);
    set_links(comm, "tcp");
    check_links(comm, "tcp");
    exchange_over(comm, "tcp", "shm");
    set_links(comm, "shm");
    check_links(comm, "shm");
    exchange_over(comm, "shm", "tcp");
    set_links(comm, "");
    check_links(comm, NULL);
    exchange(comm);
    MPI_Comm_free(&comm);
    end();
}

/* A name that no link has is said once, in both processes together, and ignored; the others hold. A link that leads
 * nowhere (self, to another process) leaves all of them. */
static void test_unknown(void)
{
    MPI_Comm comm;
    start();
    exchange(MPI_COMM_WORLD);
    comm = with_links(MPI_COMM_WORLD, "nosuch0");
    check_links(comm, NULL);
    exchange(comm);
    set_links(comm, "self");
    check_links(comm, "self");
    exchange(comm);
    MPI_Comm_free(&comm);
    end();
}

static const mpi_test_t tests[] = {
    {.name = "chosen", .np = 2, .fn = test_chosen},
    {.name = "changed", .np = 2, .fn = test_changed},
    {.name = "unknown", .np = 2, .fn = test_unknown, .says = "names \"nosuch0\", and no link"},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof(tests) / sizeof(*tests));
}
