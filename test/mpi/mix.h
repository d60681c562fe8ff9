/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every routine of point-to-point and neighbourhood communication, called by one thread of many in each process: the threads of
 * one number talk to each other, round a ring, with tags of their own on a communicator that all threads use. What single
 * routines do is the matter of other tests; here they meet. Buffered sends need a buffer for the process.
 */
#ifndef TEST_MPI_MIX_H
#define TEST_MPI_MIX_H

#include <stdbool.h>
#include <stdlib.h>

#include "support/mpi_test.h"

typedef struct mix {
    MPI_Comm comm;
    int me, next, before; /* thread; ranks */
    int count, salt;
    int *out, *in;
} mix_t;

enum { MIX_TAGS = 8, MIX_TOKEN = 1, MIX_MOST = 40000 };
enum { MIX_STANDARD, MIX_SYNCHRONOUS, MIX_BUFFERED, MIX_READY, MIX_MODES };

static int mix_tag(const mix_t *m, int which)
{
    return m->me * MIX_TAGS + which;
}

static int mix_value(int from, int me, int salt, int i)
{
    return ((from * 64 + me) * 1024 + salt) * 16 + i;
}

static void mix_fill(mix_t *m, int rank)
{
    m->salt = (m->salt + 1) % 1024;
    for (int i = 0; i < m->count; i++) {
        m->out[i] = mix_value(rank, m->me, m->salt, i);
        m->in[i] = -1;
    }
}

static void mix_check(const mix_t *m)
{
    int i = 0;
    while (i < m->count && m->in[i] == mix_value(m->before, m->me, m->salt, i)) {
        i++;
    }
    MPI_CHECK(i == m->count);
}

/* One request to its end, in one of the ways there are. */
static void mix_complete(MPI_Request *request, int way)
{
    int flag = 0, index = -1, n = 0, indices[1];
    MPI_Status statuses[1];
    switch (way % 10) {
    case 0: MPI_Wait(request, MPI_STATUS_IGNORE); return;
    case 1: MPI_Waitall(1, request, statuses); return;
    case 2: MPI_Waitany(1, request, &index, statuses); return;
    case 3: MPI_Waitsome(1, request, &n, indices, statuses); return;
    }
    while (!flag) {
        switch (way % 10) {
        case 4: MPI_Test(request, &flag, statuses); break;
        case 5: MPI_Testall(1, request, &flag, statuses); break;
        case 6: MPI_Testany(1, request, &index, &flag, statuses); break;
        case 7: MPI_Testsome(1, request, &n, indices, statuses); flag = n != 0; break;
        case 8: MPI_Request_get_status(*request, &flag, statuses); break;
        case 9: MPI_Request_get_status_any(1, request, &index, &flag, statuses); break;
        }
    }
    if (way % 10 >= 8) {
        MPI_Wait(request, MPI_STATUS_IGNORE);
    }
}

/* Our receive is posted: says so to the sender, waits for the like from the receiver. */
static void mix_ready(const mix_t *m)
{
    MPI_Sendrecv(NULL, 0, MPI_INT, m->before, mix_tag(m, MIX_TOKEN), NULL, 0, MPI_INT, m->next, mix_tag(m, MIX_TOKEN), m->comm,
                 MPI_STATUS_IGNORE);
}

static void mix_send(const mix_t *m, int mode)
{
    const int tag = mix_tag(m, 0);
    switch (mode) {
    case MIX_STANDARD: MPI_Send(m->out, m->count, MPI_INT, m->next, tag, m->comm); break;
    case MIX_SYNCHRONOUS: MPI_Ssend(m->out, m->count, MPI_INT, m->next, tag, m->comm); break;
    case MIX_BUFFERED: MPI_Bsend(m->out, m->count, MPI_INT, m->next, tag, m->comm); break;
    case MIX_READY: MPI_Rsend(m->out, m->count, MPI_INT, m->next, tag, m->comm); break;
    }
}

static void mix_isend(const mix_t *m, int mode, MPI_Request *request)
{
    const int tag = mix_tag(m, 0);
    switch (mode) {
    case MIX_STANDARD: MPI_Isend(m->out, m->count, MPI_INT, m->next, tag, m->comm, request); break;
    case MIX_SYNCHRONOUS: MPI_Issend(m->out, m->count, MPI_INT, m->next, tag, m->comm, request); break;
    case MIX_BUFFERED: MPI_Ibsend(m->out, m->count, MPI_INT, m->next, tag, m->comm, request); break;
    case MIX_READY: MPI_Irsend(m->out, m->count, MPI_INT, m->next, tag, m->comm, request); break;
    }
}

static void mix_send_init(const mix_t *m, int mode, MPI_Request *request)
{
    const int tag = mix_tag(m, 0);
    switch (mode) {
    case MIX_STANDARD: MPI_Send_init(m->out, m->count, MPI_INT, m->next, tag, m->comm, request); break;
    case MIX_SYNCHRONOUS: MPI_Ssend_init(m->out, m->count, MPI_INT, m->next, tag, m->comm, request); break;
    case MIX_BUFFERED: MPI_Bsend_init(m->out, m->count, MPI_INT, m->next, tag, m->comm, request); break;
    case MIX_READY: MPI_Rsend_init(m->out, m->count, MPI_INT, m->next, tag, m->comm, request); break;
    }
}

/* All modes, blocking, non-blocking and persistent, to a receive that is posted. */
static void mix_modes(mix_t *m, int rank)
{
    for (int mode = 0; mode < MIX_MODES; mode++) {
        for (int form = 0; form < 3; form++) {
            MPI_Request send = MPI_REQUEST_NULL, receive;
            mix_fill(m, rank);
            if (form == 2) {
                MPI_Recv_init(m->in, m->count, MPI_INT, m->before, mix_tag(m, 0), m->comm, &receive);
                MPI_Start(&receive);
            } else {
                MPI_Irecv(m->in, m->count, MPI_INT, m->before, mix_tag(m, 0), m->comm, &receive);
            }
            mix_ready(m);
            if (form == 0) {
                mix_send(m, mode);
            } else if (form == 1) {
                mix_isend(m, mode, &send);
            } else {
                mix_send_init(m, mode, &send);
                MPI_Startall(1, &send);
            }
            mix_complete(&receive, m->salt);
            mix_complete(&send, form == 0 ? 0 : m->salt + 3);
            mix_check(m);
            if (form == 2) {
                MPI_Request_free(&receive);
                MPI_Request_free(&send);
            }
        }
    }
}

/* What finds a message before it receives it. */
static void mix_probes(mix_t *m, int rank)
{
    for (int kind = 0; kind < 4; kind++) {
        const int tag = mix_tag(m, 2);
        MPI_Request send, receive;
        MPI_Message message;
        MPI_Status status;
        int flag = 0, count;
        mix_fill(m, rank);
        MPI_Isend(m->out, m->count, MPI_INT, m->next, tag, m->comm, &send);
        switch (kind) {
        case 0: MPI_Probe(m->before, tag, m->comm, &status); break;
        case 1: MPI_Mprobe(m->before, tag, m->comm, &message, &status); break;
        }
        while (kind >= 2 && !flag) {
            if (kind == 2) {
                MPI_Iprobe(MPI_ANY_SOURCE, tag, m->comm, &flag, &status);
            } else {
                MPI_Improbe(MPI_ANY_SOURCE, tag, m->comm, &flag, &message, &status);
            }
        }
        MPI_Get_count(&status, MPI_INT, &count);
        MPI_CHECK(count == m->count && status.MPI_SOURCE == m->before);
        if (kind == 1) {
            MPI_Mrecv(m->in, m->count, MPI_INT, &message, MPI_STATUS_IGNORE);
        } else if (kind == 3) {
            MPI_Imrecv(m->in, m->count, MPI_INT, &message, &receive);
            mix_complete(&receive, m->salt);
        } else {
            MPI_Recv(m->in, m->count, MPI_INT, m->before, tag, m->comm, MPI_STATUS_IGNORE);
        }
        mix_complete(&send, m->salt + 1);
        mix_check(m);
    }
}

/* Both ways in one call. */
static void mix_exchanges(mix_t *m, int rank)
{
    const int tag = mix_tag(m, 3), n = m->count;
    for (int kind = 0; kind < 4; kind++) {
        MPI_Request request = MPI_REQUEST_NULL;
        mix_fill(m, rank);
        memcpy(m->in, m->out, (size_t) n * sizeof(int));
        switch (kind) {
        case 0:
            MPI_Sendrecv(m->out, n, MPI_INT, m->next, tag, m->in, n, MPI_INT, m->before, tag, m->comm, MPI_STATUS_IGNORE);
            break;
        case 1:
            MPI_Sendrecv_replace(m->in, n, MPI_INT, m->next, tag, m->before, tag, m->comm, MPI_STATUS_IGNORE);
            break;
        case 2:
            MPI_Isendrecv(m->out, n, MPI_INT, m->next, tag, m->in, n, MPI_INT, m->before, tag, m->comm, &request);
            break;
        case 3:
            MPI_Isendrecv_replace(m->in, n, MPI_INT, m->next, tag, m->before, tag, m->comm, &request);
            break;
        }
        mix_complete(&request, kind < 2 ? 0 : m->salt);
        mix_check(m);
    }
}

enum { MIX_PARTS = 4 };

static void mix_partitions(mix_t *m, int rank)
{
    const MPI_Count part = m->count / MIX_PARTS;
    const int last[] = {MIX_PARTS - 1}, tag = mix_tag(m, 4), all = m->count;
    MPI_Request send, receive;
    m->count = (int) part * MIX_PARTS;
    MPI_Psend_init(m->out, MIX_PARTS, part, MPI_INT, m->next, tag, m->comm, MPI_INFO_NULL, &send);
    MPI_Precv_init(m->in, MIX_PARTS, part, MPI_INT, m->before, tag, m->comm, MPI_INFO_NULL, &receive);
    for (int i = 0; i < 2; i++) {
        int flag = 0;
        mix_fill(m, rank);
        MPI_Start(&receive);
        MPI_Start(&send);
        MPI_Pready(0, send);
        MPI_Pready_range(1, MIX_PARTS - 2, send);
        MPI_Pready_list(1, last, send);
        while (!flag) {
            MPI_Parrived(receive, MIX_PARTS - 1, &flag);
        }
        mix_complete(&receive, m->salt);
        mix_complete(&send, m->salt + 5);
        mix_check(m);
    }
    MPI_Request_free(&send);
    MPI_Request_free(&receive);
    m->count = all;
}

static int mix_query(void *state, MPI_Status *status)
{
    MPI_Status_set_elements(status, MPI_INT, *(int *) state);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

static int mix_no_free(void *state)
{
    (void) state;
    return MPI_SUCCESS;
}

static int mix_no_cancel(void *state, int complete)
{
    (void) state;
    (void) complete;
    return MPI_SUCCESS;
}

/* Requests that no message ends. */
static void mix_others(mix_t *m)
{
    MPI_Request requests[3];
    MPI_Status statuses[3];
    int flag = 0, count, three = 3;
    MPI_Grequest_start(mix_query, mix_no_free, mix_no_cancel, &three, &requests[0]);
    MPI_Irecv(m->in, 1, MPI_INT, m->before, mix_tag(m, 5), m->comm, &requests[1]);
    MPI_Isend(m->out, 1, MPI_INT, MPI_PROC_NULL, 0, m->comm, &requests[2]);
    MPI_Cancel(&requests[1]);
    MPI_Grequest_complete(requests[0]);
    while (!flag) {
        MPI_Request_get_status_all(3, requests, &flag, statuses);
    }
    MPI_Waitall(3, requests, statuses);
    MPI_Test_cancelled(&statuses[1], &flag);
    MPI_Get_count(&statuses[0], MPI_INT, &count);
    MPI_CHECK(flag && count == 3);
}

static void mix_messages(MPI_Comm comm, int me, int rank, int size, int count)
{
    mix_t m = {.comm = comm, .me = me, .next = (rank + 1) % size, .before = (rank + size - 1) % size, .count = count};
    m.out = malloc((size_t) count * sizeof(int));
    m.in = malloc((size_t) count * sizeof(int));
    mix_modes(&m, rank);
    mix_probes(&m, rank);
    mix_exchanges(&m, rank);
    mix_partitions(&m, rank);
    mix_others(&m);
    free(m.out);
    free(m.in);
}

/* ---- Neighbours on a ring, which is this thread's alone ---- */

enum { MIX_BLOCKING, MIX_NONBLOCKING, MIX_PERSISTENT, MIX_FORMS };

#define MIX_NEIGHBOURS(Name, ...)                                                                            \
    (form == MIX_BLOCKING      ? MPI_Neighbor_##Name(__VA_ARGS__, ring)                                      \
     : form == MIX_NONBLOCKING ? MPI_Ineighbor_##Name(__VA_ARGS__, ring, request)                            \
                               : MPI_Neighbor_##Name##_init(__VA_ARGS__, ring, MPI_INFO_NULL, request))

static void mix_neighbour_call(MPI_Comm ring, int kind, int form, const int *out, int *in, MPI_Request *request)
{
    static const int ones[] = {1, 1}, displs[] = {0, 1};
    static const MPI_Aint bytes[] = {0, sizeof(int)};
    const MPI_Datatype types[] = {MPI_INT, MPI_INT};
    switch (kind) {
    case 0: MIX_NEIGHBOURS(allgather, out, 1, MPI_INT, in, 1, MPI_INT); break;
    case 1: MIX_NEIGHBOURS(allgatherv, out, 1, MPI_INT, in, ones, displs, MPI_INT); break;
    case 2: MIX_NEIGHBOURS(alltoall, out, 1, MPI_INT, in, 1, MPI_INT); break;
    case 3: MIX_NEIGHBOURS(alltoallv, out, ones, displs, MPI_INT, in, ones, displs, MPI_INT); break;
    case 4: MIX_NEIGHBOURS(alltoallw, out, ones, bytes, types, in, ones, bytes, types); break;
    }
}

static void mix_neighbours(MPI_Comm ring, int rank, int size)
{
    for (int kind = 0; kind < 5; kind++) {
        for (int form = 0; form < MIX_FORMS; form++) {
            const int out[] = {rank * 2, rank * 2 + (kind >= 2)}, before = (rank + size - 1) % size, next = (rank + 1) % size;
            MPI_Request request = MPI_REQUEST_NULL;
            int in[] = {-1, -1};
            mix_neighbour_call(ring, kind, form, out, in, &request);
            if (form == MIX_PERSISTENT) {
                MPI_Start(&request);
            }
            mix_complete(&request, form == MIX_BLOCKING ? 0 : kind + form);
            if (form == MIX_PERSISTENT) {
                MPI_Request_free(&request);
            }
            MPI_CHECK(in[0] == before * 2 + (kind >= 2) && in[1] == next * 2);
        }
    }
}

#endif
