/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The tools interface in a job: traffic per link, parameters at work, life around MPI_Init and
 * MPI_Finalize. */
#include "support/mpi_test.h"

enum { BYTES = 1 << 20 };

static char buffer[BYTES];

/* The sum of its values; -1: the variable does not exist. */
static double value_of(MPI_T_pvar_session session, const char *name, int var_class)
{
    int index, count;
    MPI_T_pvar_handle handle;
    unsigned long long values[64];
    double total = 0;
    if (MPI_SUCCESS != MPI_T_pvar_get_index(name, var_class, &index)
        || MPI_SUCCESS != MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count)
        || count > 64
        || MPI_SUCCESS != MPI_T_pvar_read(session, handle, values)) {
        return -1;
    }
    for (int i = 0; i < count; i++) {
        total += (double) values[i];
    }
    MPI_T_pvar_handle_free(session, &handle);
    return total;
}

/* Over all links. */
static double total_of(MPI_T_pvar_session session, const char *name)
{
    return value_of(session, name, MPI_T_PVAR_CLASS_COUNTER);
}

static double level_of(MPI_T_pvar_session session, const char *name)
{
    return value_of(session, name, MPI_T_PVAR_CLASS_LEVEL);
}

static void traffic(void)
{
    int provided, rank;
    MPI_T_pvar_session session;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_CHECK(MPI_SUCCESS == MPI_T_pvar_session_create(&session));
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const double before = total_of(session, "pml_base_link_bytes"), again = total_of(session, "pml_base_link_retries");
    for (int i = 0; i < 4; i++) {
        if (0 == rank) {
            MPI_Send(buffer, BYTES, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(buffer, BYTES, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(buffer, BYTES, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buffer, BYTES, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
        }
    }
    /* Who moves the bytes, sender or receiver, is the link's business: both ways the sum is the
     * same. */
    const double after = total_of(session, "pml_base_link_bytes");
    double sum = after - before;
    double retries = total_of(session, "pml_base_link_retries") - again;
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &retries, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_CHECK(before >= 0);
    MPI_CHECK(sum >= 8.0 * BYTES);
    MPI_CHECK(sum < 8.2 * BYTES || retries > 0); /* what goes twice counts twice */
    MPI_CHECK(total_of(session, "pml_base_link_messages") >= 4);
    MPI_Finalize();
    MPI_CHECK(total_of(session, "pml_base_link_bytes") >= after);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
}

/* The queues are as long as what was put into them. */
static void queues(void)
{
    enum { RECEIVES = 7, MESSAGES = 5, LENGTH = 100 };
    int provided, rank, found = 0;
    MPI_Request requests[RECEIVES];
    MPI_T_pvar_session session;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const double posted = level_of(session, "pml_base_posted_receives");
    for (int i = 0; i < RECEIVES; i++) {
        MPI_Irecv(&buffer[i], 1, MPI_CHAR, i % 2 ? MPI_ANY_SOURCE : 1 - rank, i, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_CHECK(level_of(session, "pml_base_posted_receives") == posted + RECEIVES);
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Send(buffer + RECEIVES, LENGTH, MPI_CHAR, 1 - rank, 100, MPI_COMM_WORLD);
    }
    MPI_Send(buffer, 0, MPI_CHAR, 1 - rank, 101, MPI_COMM_WORLD);
    while (!found) { /* the last one is there, and so are those before it */
        MPI_Iprobe(1 - rank, 101, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
    MPI_CHECK(level_of(session, "pml_base_unexpected_messages") == MESSAGES + 1);
    MPI_CHECK(level_of(session, "pml_base_unexpected_bytes") >= MESSAGES * LENGTH);
    MPI_CHECK(level_of(session, "pml_base_unexpected_bytes") < MESSAGES * LENGTH + 1000);
    MPI_CHECK(level_of(session, "pml_base_early_messages") == 0);
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Recv(buffer + RECEIVES, LENGTH, MPI_CHAR, 1 - rank, 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Recv(buffer, 0, MPI_CHAR, 1 - rank, 101, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_CHECK(level_of(session, "pml_base_unexpected_messages") == 0);
    for (int i = 0; i < RECEIVES; i++) {
        MPI_Send(buffer + RECEIVES, 1, MPI_CHAR, 1 - rank, i, MPI_COMM_WORLD);
    }
    MPI_Waitall(RECEIVES, requests, MPI_STATUSES_IGNORE);
    MPI_CHECK(level_of(session, "pml_base_posted_receives") == posted);
    MPI_CHECK(level_of(session, "pml_base_unsent_messages") == 0);
    MPI_T_pvar_session_free(&session);
    MPI_Finalize();
    MPI_T_finalize();
}

/* Indices from before MPI_Init hold; a change takes effect. */
static void parameters(void)
{
    int provided, before, after, index = -1, count;
    MPI_Count value = 0;
    MPI_T_cvar_handle handle;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_cvar_get_num(&before);
    MPI_CHECK(MPI_SUCCESS == MPI_T_cvar_get_index("opal_progress_yields", &index));
    MPI_CHECK(MPI_SUCCESS == MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) && 1 == count);
    MPI_Init(NULL, NULL);
    MPI_T_cvar_get_num(&after);
    MPI_CHECK(after == before); /* all were known */
    value = 5;
    MPI_CHECK(MPI_SUCCESS == MPI_T_cvar_write(handle, &value));
    value = 0;
    MPI_CHECK(MPI_SUCCESS == MPI_T_cvar_read(handle, &value) && 5 == value);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    MPI_CHECK(MPI_SUCCESS == MPI_T_cvar_read(handle, &value) && 5 == value);
    MPI_CHECK(MPI_SUCCESS == MPI_T_cvar_handle_free(&handle));
    MPI_CHECK(MPI_SUCCESS == MPI_T_finalize());
}

static const mpi_test_t tests[] = {
    {.name = "traffic", .np = 2, .fn = traffic},
    {.name = "queues", .np = 2, .fn = queues},
    {.name = "parameters", .np = 3, .fn = parameters},
    {.name = "parameters", .np = 0, .fn = parameters},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
