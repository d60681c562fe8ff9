/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Jobs in which not every process takes part in MPI. Rank 0 says "done" when it is through.
 *
 *   start [MS]  the last rank ends without MPI_Init; the others talk to each other, and end MPI; they begin with it so many
 *               ms later, for who is there when the launcher tells of the end hears of it in another way than who comes after
 *   call        the same, but the others call the last one
 *   alone       only rank 0 calls MPI: it opens a session, and closes it
 *   again       when all have ended MPI, rank 0 opens a session once more */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void open_session(void)
{
    MPI_Session session;
    MPI_Group self;
    MPI_Comm comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://SELF", &self);
    MPI_Comm_create_from_group(self, "absent", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&self);
    MPI_Session_finalize(&session);
}

static void talk(bool all)
{
    int rank, size, in = -1;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int others = size - 1;
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % others, 0, &in, 1, MPI_INT, (rank + others - 1) % others, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (all) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *place = getenv("PMIX_RANK");
    int me = place ? atoi(place) : 0, last = atoi(getenv("ABSENT_LAST"));
    long ms = argc > 2 ? atol(argv[2]) : 0;
    bool starts = strcmp(what, "start") == 0, calls = strcmp(what, "call") == 0;
    if ((starts || calls) && me != last) {
        nanosleep(&(struct timespec) {ms / 1000, ms % 1000 * 1000000}, NULL);
        talk(calls);
    } else if (strcmp(what, "again") == 0) {
        MPI_Init(NULL, NULL);
        MPI_Finalize();
    }
    if (me == 0 && !starts && !calls) {
        open_session();
    }
    if (me == 0) {
        puts("done");
    }
    return 0;
}
