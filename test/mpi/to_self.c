/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages to oneself: those whose receive waits are handed over within the send, the others come by a link, and the order is
 * that of all. A row of random sends and receives is compared with a model of matching (MPI-5.0 section 3.5).
 */
#include "support/hash.h"
#include "support/mpi_test.h"

enum { ROUNDS = 150, OPS = 40, TAGS = 3, LENGTHS = 8, LONGEST = 20000, NOBODY = -1 };

typedef struct op {
    int tag, count, partner; /* index in the other list, by the model */
    bool spaced;             /* an int of each two */
    int *data;
    MPI_Request request;
} op_t;

static const int lengths[LENGTHS] = {0, 1, 2, 5, 8, 100, 3000, LONGEST};
static op_t sends[OPS], recvs[OPS];
static int sent, received;
static MPI_Datatype spaced_int;
static uint32_t state;
static MPI_Comm comm;
static int me;

static uint32_t draw(uint32_t below)
{
    state = test_hash(state + 1);
    return state % below;
}

static int value(int send, int i)
{
    return send * 1000003 + i;
}

static bool matches(const op_t *send, const op_t *recv)
{
    return recv->tag == MPI_ANY_TAG || recv->tag == send->tag;
}

/* The oldest in the list that has no partner and matches. */
static int model_partner(const op_t *one, const op_t *list, int count, bool one_sends)
{
    for (int i = 0; i < count; i++) {
        if (list[i].partner == NOBODY && (one_sends ? matches(one, &list[i]) : matches(&list[i], one))) {
            return i;
        }
    }
    return NOBODY;
}

static void marry(int send, int recv)
{
    sends[send].partner = recv;
    recvs[recv].partner = send;
}

static void begin_send(int tag)
{
    op_t *op = &sends[sent];
    MPI_Datatype type;
    *op = (op_t) {.tag = tag, .count = lengths[draw(LENGTHS)], .partner = NOBODY, .spaced = draw(3) == 0, .data = op->data};
    int recv = model_partner(op, recvs, received, true), stride = op->spaced ? 2 : 1;
    if (recv != NOBODY) {
        marry(sent, recv);
    }
    for (int i = 0; i < op->count; i++) {
        op->data[i * stride] = value(sent, i);
    }
    type = op->spaced ? spaced_int : MPI_INT;
    switch (draw(recv == NOBODY ? 2 : 4)) { /* only what has a receive may be waited for */
    case 0: MPI_Isend(op->data, op->count, type, me, op->tag, comm, &op->request); break;
    case 1: MPI_Issend(op->data, op->count, type, me, op->tag, comm, &op->request); break;
    case 2: MPI_Send(op->data, op->count, type, me, op->tag, comm); op->request = MPI_REQUEST_NULL; break;
    default: MPI_Ssend(op->data, op->count, type, me, op->tag, comm); op->request = MPI_REQUEST_NULL; break;
    }
    sent++;
}

static void begin_recv(int tag)
{
    op_t *op = &recvs[received];
    *op = (op_t) {.tag = tag, .count = LONGEST, .partner = NOBODY, .spaced = draw(3) == 0, .data = op->data};
    int send = model_partner(op, sends, sent, false);
    if (send != NOBODY) {
        marry(send, received);
    }
    MPI_Irecv(op->data, op->count, op->spaced ? spaced_int : MPI_INT, draw(2) ? me : MPI_ANY_SOURCE, op->tag, comm, &op->request);
    received++;
}

/* A partner for each that has none. */
static void complete_row(void)
{
    int lonely_sends = sent, lonely_recvs = received;
    for (int s = 0; s < lonely_sends; s++) {
        if (sends[s].partner == NOBODY) {
            begin_recv(sends[s].tag);
        }
    }
    for (int r = 0; r < lonely_recvs; r++) {
        if (recvs[r].partner == NOBODY) {
            begin_send(recvs[r].tag == MPI_ANY_TAG ? 0 : recvs[r].tag);
        }
    }
}

static void check_recv(op_t *recv)
{
    MPI_Status status;
    int count, stride = recv->spaced ? 2 : 1;
    MPI_Wait(&recv->request, &status);
    const op_t *send = &sends[recv->partner];
    MPI_Get_count(&status, MPI_INT, &count);
    MPI_CHECK(status.MPI_SOURCE == me && status.MPI_TAG == send->tag && count == send->count);
    for (int i = 0; i < count; i++) {
        MPI_CHECK(recv->data[i * stride] == value(recv->partner, i));
    }
}

static void row(void)
{
    sent = received = 0;
    while (sent < OPS / 2 && received < OPS / 2) {
        if (draw(2)) {
            begin_send((int) draw(TAGS));
        } else {
            begin_recv(draw(6) == 0 ? MPI_ANY_TAG : (int) draw(TAGS));
        }
    }
    complete_row();
    for (int r = 0; r < received; r++) {
        check_recv(&recvs[r]);
    }
    for (int s = 0; s < sent; s++) {
        MPI_Wait(&sends[s].request, MPI_STATUS_IGNORE);
    }
}

static void order(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spaced_int);
    MPI_Type_commit(&spaced_int);
    for (int i = 0; i < OPS; i++) {
        sends[i].data = malloc(2 * LONGEST * sizeof(int));
        recvs[i].data = malloc(2 * LONGEST * sizeof(int));
    }
    for (int r = 0; r < ROUNDS; r++) {
        state = (uint32_t) (r * 7 + me);
        row();
    }
    for (int i = 0; i < OPS; i++) {
        free(sends[i].data);
        free(recvs[i].data);
    }
    MPI_Type_free(&spaced_int);
    MPI_Comm_free(&comm);
    MPI_Finalize();
}

/* What is handed over within a send and does not fit. */
static void truncated(void)
{
    int in[2], out[4] = {1, 2, 3, 4}, count, class;
    MPI_Request request;
    MPI_Status status;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Irecv(in, 2, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
    MPI_CHECK(MPI_Send(out, 4, MPI_INT, 0, 0, MPI_COMM_SELF) == MPI_SUCCESS);
    int rc = MPI_Wait(&request, &status);
    MPI_Error_class(rc, &class);
    MPI_Get_count(&status, MPI_INT, &count);
    MPI_CHECK(class == MPI_ERR_TRUNCATE && count == 2 && in[0] == 1 && in[1] == 2);
    MPI_Finalize();
}

/* Requests that watch a receive, persistent ones, and one that was given up. */
static void other_requests(void)
{
    int in = 0, out = 7, last = 0;
    MPI_Request both, persistent, given_up;
    MPI_Status status;
    MPI_Init(NULL, NULL);
    MPI_Isendrecv(&out, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &both);
    MPI_Wait(&both, &status);
    MPI_CHECK(in == 7 && status.MPI_TAG == 1);
    MPI_Recv_init(&in, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_SELF, &persistent);
    for (int i = 0; i < 5; i++) {
        MPI_Start(&persistent);
        MPI_Send(&i, 1, MPI_INT, 0, 2, MPI_COMM_SELF);
        MPI_Wait(&persistent, &status);
        MPI_CHECK(in == i && status.MPI_SOURCE == 0);
    }
    MPI_Request_free(&persistent);
    MPI_Irecv(&in, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &given_up);
    MPI_Request_free(&given_up);
    MPI_Send(&out, 1, MPI_INT, 0, 3, MPI_COMM_SELF);
    MPI_Sendrecv(&out, 1, MPI_INT, 0, 3, &last, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &status); /* it has overtaken nothing */
    MPI_CHECK(in == 7 && last == 7);
    MPI_Finalize();
}

static const mpi_test_t tests[] = {
    {.name = "order", .np = 2, .fn = order},
    {.name = "truncated", .np = 1, .fn = truncated},
    {.name = "other-requests", .np = 1, .fn = other_requests},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
