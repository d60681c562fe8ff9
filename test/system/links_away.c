/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes that compute for longer than their only link may be down (links_away.sh). Rank 0 says when it may be cut, and
 * sends while it is; both are outside MPI when it comes back. ARGUMENT: seconds that they compute.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void look_at_links_for(double seconds)
{
    int found;
    for (double until = MPI_Wtime() + seconds; MPI_Wtime() < until;) {
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    int rank, number = 42;
    time_t away = argc > 1 ? atoi(argv[1]) : 6;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Sendrecv(&number, 1, MPI_INT, !rank, 0, &(int){0}, 1, MPI_INT, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0) {
        printf("cut\n");
        fflush(stdout);
    }
    look_at_links_for(1);
    if (rank == 0) {
        MPI_Isend(&number, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &request);
    }
    look_at_links_for(1);
    nanosleep(&(struct timespec){.tv_sec = away}, NULL);
    if (rank == 0) {
        MPI_Recv(&number, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        printf("got %d\n", number);
    } else {
        MPI_Recv(&number, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        number++;
        MPI_Send(&number, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
