/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Ports, services, accept and connect, join, disconnect: parts of one job that meet anew. */
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/mpi_test.h"

static int rank, size;

static void begin(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
}

static int class_of(int error)
{
    int class = -1;
    MPI_Error_class(error, &class);
    return class;
}

/* Everybody's world rank to everybody on the other side, and a merge. */
static void check_talk(MPI_Comm inter)
{
    int n, local, flag, got, all, sum = -1;
    MPI_Comm merged;
    MPI_Comm_test_inter(inter, &flag);
    MPI_CHECK(flag);
    MPI_Comm_remote_size(inter, &n);
    MPI_Comm_size(inter, &local);
    for (int i = 0; i < n; i++) {
        MPI_Send(&rank, 1, MPI_INT, i, 3, inter);
    }
    for (int i = 0; i < n; i++) {
        MPI_Recv(&got, 1, MPI_INT, i, 3, inter, MPI_STATUS_IGNORE);
        MPI_CHECK(got >= 0 && got < size && got != rank);
    }
    MPI_Intercomm_merge(inter, 0, &merged);
    MPI_Comm_size(merged, &all);
    MPI_CHECK(all == local + n);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, merged);
    MPI_CHECK(all != size || sum == size * (size - 1) / 2);
    MPI_Comm_free(&merged);
}

/* The lower half accepts, the upper one connects, `times` times; the roots are not the first. The
 * name of the port goes over the world, or by a service. */
static void meet(int times, int by_service)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm half, inter;
    begin();
    int middle = size / 2, low = rank < middle, n;
    MPI_Comm_split(MPI_COMM_WORLD, low, rank, &half);
    MPI_Comm_size(half, &n);
    int root = n - 1, owner = middle - 1;
    if (rank == owner) {
        MPI_CHECK(MPI_Open_port(MPI_INFO_NULL, port) == MPI_SUCCESS);
        MPI_CHECK(!by_service ||
                  MPI_Publish_name("tea time", MPI_INFO_NULL, port) == MPI_SUCCESS);
    }
    if (by_service) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_CHECK(rank == owner ||
                  MPI_Lookup_name("tea time", MPI_INFO_NULL, port) == MPI_SUCCESS);
    } else {
        MPI_Bcast(port, sizeof port, MPI_CHAR, owner, MPI_COMM_WORLD);
    }
    for (int i = 0; i < times; i++) {
        int rc = low ? MPI_Comm_accept(port, MPI_INFO_NULL, root, half, &inter)
                     : MPI_Comm_connect(port, MPI_INFO_NULL, root, half, &inter);
        if (MPI_CHECK(rc == MPI_SUCCESS)) {
            check_talk(inter);
            MPI_CHECK(MPI_Comm_disconnect(&inter) == MPI_SUCCESS && inter == MPI_COMM_NULL);
        }
    }
    if (rank == owner) {
        MPI_CHECK(!by_service ||
                  MPI_Unpublish_name("tea time", MPI_INFO_NULL, port) == MPI_SUCCESS);
        MPI_CHECK(MPI_Close_port(port) == MPI_SUCCESS);
    }
    MPI_Comm_free(&half);
    MPI_Finalize();
}

static void test_world(void)
{
    meet(1, 0);
}

static void test_service(void)
{
    meet(3, 1);
}

/* All but one connect to that one at the same time, each again and again: whoever connects may
 * have read of a ticket that others use up before he takes it. Each is served as often as it comes. */
static void test_many(void)
{
    enum { TIMES = 25, RANKS_MAX = 8 };
    char port[MPI_MAX_PORT_NAME];
    int served[RANKS_MAX] = {0}, got = 0;
    MPI_Comm inter;
    begin();
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
    }
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 0; i < TIMES * (rank == 0 ? size - 1 : 1); i++) {
        int rc = rank == 0 ? MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter)
                           : MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
        if (MPI_CHECK(rc == MPI_SUCCESS)) {
            MPI_Sendrecv(&rank, 1, MPI_INT, 0, 0, &got, 1, MPI_INT, 0, 0, inter,
                         MPI_STATUS_IGNORE);
            served[got]++;
            MPI_Comm_disconnect(&inter);
        }
    }
    for (int i = 0; i < size; i++) {
        MPI_CHECK(served[i] == ((rank == 0) != (i == 0) ? TIMES : 0));
    }
    if (rank == 0) {
        MPI_Close_port(port);
    }
    MPI_Finalize();
}

/* One process accepts in one thread while it connects elsewhere in another: a ring. */
static char ring_port[MPI_MAX_PORT_NAME];

static void *accept_one(void *arg)
{
    MPI_Comm *inter = arg;
    MPI_CHECK(MPI_Comm_accept(ring_port, MPI_INFO_NULL, 0, MPI_COMM_SELF, inter) == MPI_SUCCESS);
    return NULL;
}

static void test_threads(void)
{
    char next[MPI_MAX_PORT_NAME];
    int provided, before = -1, after = -1;
    MPI_Comm alone, left, right;
    pthread_t thread;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Open_port(MPI_INFO_NULL, ring_port);
    MPI_Sendrecv(ring_port, MPI_MAX_PORT_NAME, MPI_CHAR, (rank + size - 1) % size, 0, next,
                 MPI_MAX_PORT_NAME, MPI_CHAR, (rank + 1) % size, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Comm_dup(MPI_COMM_SELF, &alone); /* each thread needs a communicator of its own */
    pthread_create(&thread, NULL, accept_one, &left);
    MPI_CHECK(MPI_Comm_connect(next, MPI_INFO_NULL, 0, alone, &right) == MPI_SUCCESS);
    pthread_join(thread, NULL);
    MPI_Comm_free(&alone);
    MPI_Request request;
    MPI_Isend(&rank, 1, MPI_INT, 0, 0, right, &request);
    MPI_Sendrecv(&rank, 1, MPI_INT, 0, 0, &before, 1, MPI_INT, 0, 0, left, MPI_STATUS_IGNORE);
    MPI_Recv(&after, 1, MPI_INT, 0, 0, right, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_CHECK(before == (rank + size - 1) % size && after == (rank + 1) % size);
    /* It is collective, and may wait for all: in an order that all agree on. */
    MPI_Comm_disconnect(rank == 0 ? &right : &left);
    MPI_Comm_disconnect(rank == 0 ? &left : &right);
    MPI_Close_port(ring_port);
    MPI_Finalize();
}

static void test_errors(void)
{
    char port[MPI_MAX_PORT_NAME], long_name[2000];
    MPI_Comm inter = MPI_COMM_WORLD;
    MPI_Info info;
    begin();
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    MPI_CHECK(class_of(MPI_Close_port("nonsense")) == MPI_ERR_PORT);
    MPI_CHECK(class_of(MPI_Comm_connect("nonsense", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter)) ==
              MPI_ERR_PORT); /* everywhere, not only at the root */
    MPI_CHECK(class_of(MPI_Lookup_name("nobody", MPI_INFO_NULL, port)) == MPI_ERR_NAME);
    MPI_CHECK(class_of(MPI_Lookup_name(long_name, MPI_INFO_NULL, port)) == MPI_ERR_NAME);
    MPI_CHECK(class_of(MPI_Unpublish_name("nobody", MPI_INFO_NULL, "p")) == MPI_ERR_SERVICE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_CHECK(MPI_Publish_name("mine", MPI_INFO_NULL, "p") == MPI_SUCCESS);
        MPI_CHECK(class_of(MPI_Publish_name("mine", MPI_INFO_NULL, "p")) == MPI_ERR_SERVICE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) { /* of another */
        MPI_CHECK(class_of(MPI_Unpublish_name("mine", MPI_INFO_NULL, "p")) == MPI_ERR_SERVICE);
    }
    /* Open, but nobody comes; then closed. */
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Info_create(&info);
    MPI_Info_set(info, "timeout", "1");
    MPI_CHECK(class_of(MPI_Comm_accept(port, info, 0, MPI_COMM_SELF, &inter)) == MPI_ERR_PORT);
    MPI_CHECK(class_of(MPI_Comm_connect(port, info, 0, MPI_COMM_SELF, &inter)) == MPI_ERR_PORT);
    MPI_Info_free(&info);
    MPI_Close_port(port);
    MPI_CHECK(class_of(MPI_Close_port(port)) == MPI_ERR_PORT);
    MPI_CHECK(class_of(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter)) ==
              MPI_ERR_PORT);
    MPI_Finalize();
}

/* Nobody started this process: no names. */
static void test_alone(void)
{
    char port[MPI_MAX_PORT_NAME];
    begin();
    MPI_CHECK(class_of(MPI_Open_port(MPI_INFO_NULL, port)) == MPI_ERR_UNSUPPORTED_OPERATION);
    MPI_Finalize();
}

/* Where rank 0 can be reached: on the loopback interface, unless the processes are on different hosts. */
static struct sockaddr_in address_of_rank_0(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char names[2][MPI_MAX_PROCESSOR_NAME] = {""};
    struct ifaddrs *all = NULL;
    int len;
    MPI_Get_processor_name(names[rank], &len);
    MPI_Bcast(names[0], sizeof names[0], MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Bcast(names[1], sizeof names[1], MPI_CHAR, 1, MPI_COMM_WORLD);
    if (strcmp(names[0], names[1]) != 0 && MPI_CHECK(getifaddrs(&all) == 0)) {
        for (struct ifaddrs *i = all; i; i = i->ifa_next) {
            if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && !(i->ifa_flags & IFF_LOOPBACK)) {
                address.sin_addr = ((struct sockaddr_in *) (void *) i->ifa_addr)->sin_addr;
                break;
            }
        }
        freeifaddrs(all);
    }
    return address;
}

/* A socket between ranks 0 and 1. */
static int connected(void)
{
    struct sockaddr_in address = address_of_rank_0();
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (rank == 0) {
        MPI_CHECK(bind(fd, (struct sockaddr *) &address, sizeof address) == 0 && listen(fd, 1) == 0 &&
                  getsockname(fd, (struct sockaddr *) &address, &len) == 0);
    }
    if (rank == 0) {
        int listener = fd;
        /* Who leaves MPI sends nothing again: it has arrived before. */
        MPI_Ssend(&address, sizeof address, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        fd = accept(listener, NULL, NULL);
        close(listener);
    } else {
        MPI_Recv(&address, sizeof address, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_CHECK(connect(fd, (struct sockaddr *) &address, sizeof address) == 0);
    }
    return fd;
}

static void test_join(void)
{
    int got = -1;
    MPI_Comm inter;
    begin();
    int fd = connected();
    if (MPI_CHECK(MPI_Comm_join(fd, &inter) == MPI_SUCCESS)) {
        MPI_Sendrecv(&rank, 1, MPI_INT, 0, 0, &got, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
        MPI_CHECK(got == 1 - rank);
        MPI_Comm_disconnect(&inter);
    }
    /* Still usable, and quiescent. */
    char byte = (char) rank, other = 9;
    MPI_CHECK(write(fd, &byte, 1) == 1 && read(fd, &other, 1) == 1 && other == 1 - rank);
    /* One side goes away: an error, not a wait. */
    if (rank == 0) {
        close(fd);
    } else {
        MPI_CHECK(class_of(MPI_Comm_join(fd, &inter)) == MPI_ERR_OTHER);
        close(fd);
    }
    MPI_Finalize();
}

static int pair[2];

/* One side of what can't be joined: no error, and the socket is as it was. */
static void *join_in_vain(void *side)
{
    int fd = *(int *) side;
    char byte = 'x', other = 0;
    MPI_Comm inter = MPI_COMM_WORLD;
    MPI_CHECK(MPI_Comm_join(fd, &inter) == MPI_SUCCESS && inter == MPI_COMM_NULL);
    MPI_CHECK(write(fd, &byte, 1) == 1 && read(fd, &other, 1) == 1 && other == byte);
    return NULL;
}

/* A process can't be on both sides of an intercommunicator. */
static void test_join_self(void)
{
    pthread_t thread;
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    pthread_create(&thread, NULL, join_in_vain, &pair[0]);
    join_in_vain(&pair[1]);
    pthread_join(thread, NULL);
    MPI_Finalize();
}

/* Two processes that no launcher has in common do not find each other's addresses. */
static void test_join_strangers(void)
{
    int status = -1;
    MPI_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    pid_t child = fork();
    alarm(60); /* the child inherits none */
    MPI_Init(NULL, NULL);
    join_in_vain(&pair[child == 0]);
    MPI_Finalize();
    if (child != 0) {
        MPI_CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
}

static void *disconnect_one(void *comm)
{
    MPI_CHECK(MPI_Comm_disconnect(comm) == MPI_SUCCESS);
    return NULL;
}

/* Each of three processes has a communicator with each other one. Rank 0 disconnects from both at once; 1 from 2, then from 0;
 * 2 from 0, then from 1. */
static void test_circle(void)
{
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < 10; round++) {
        MPI_Comm with_next[3]; /* of each rank */
        pthread_t thread;
        for (int r = 0; r < 3; r++) {
            int member = rank == r || rank == (r + 1) % 3;
            MPI_Comm_split(MPI_COMM_WORLD, member ? 0 : MPI_UNDEFINED, rank, &with_next[r]);
        }
        if (rank == 0) {
            MPI_CHECK(pthread_create(&thread, NULL, disconnect_one, &with_next[0]) == 0);
            disconnect_one(&with_next[2]);
            pthread_join(thread, NULL);
        } else {
            disconnect_one(&with_next[rank]);
            disconnect_one(&with_next[rank - 1]);
        }
    }
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "world-2", .np = 2, .fn = test_world},
    {.name = "world-5", .np = 5, .fn = test_world},
    {.name = "service", .np = 4, .fn = test_service},
    {.name = "many", .np = 5, .fn = test_many},
    {.name = "threads", .np = 3, .fn = test_threads},
    {.name = "errors", .np = 3, .fn = test_errors},
    {.name = "alone", .np = 0, .fn = test_alone},
    {.name = "join", .np = 2, .fn = test_join},
    {.name = "join-self", .np = 1, .fn = test_join_self, .says = "both sides are the same process"},
    {.name = "join-strangers", .np = 0, .fn = test_join_strangers, .says = "MPI_Comm_join gives MPI_COMM_NULL"},
    {.name = "circle", .np = 3, .fn = test_circle},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
