/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ranks exchange a random mix of messages of all lengths and modes, for links.sh to cut links
 * under it. Each message is checked to the byte and for its place in the order. Rank 0 prints, every
 * --interval ms, what arrived at it and what it has handed to each link, up to now:
 *
 *     EPOCH-MS BYTES-ARRIVED LINK=BYTES LINK=BYTES ...
 *
 * and both print "rank R: N messages, B bytes, wrong W". Ends --seconds after the start, or when the
 * file --until appears. Long ones carry most of the bytes, so that a rate can be seen; --short leaves
 * messages whose MPI_Send returns at once, and whose buffer is overwritten then. --links NAMES sends over a communicator
 * with this value of the info key hawser_links.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 8, AHEAD = 64, LONGEST = 1 << 20, EAGER = 15000, LINKS = 32, NAME = 64, TAG = 3 };

typedef struct head {
    int64_t number; /* negative: the last one */
    int64_t length;
} head_t;

typedef struct links {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    int count;
    char names[LINKS][NAME];
    unsigned long long bytes[LINKS];
} links_t;

static int rank, shorts_only;
static const char *until = "";
static uint64_t seed = 1;
static double seconds = 5, interval = 0.05;
static const char *chosen; /* --links */
static MPI_Comm comm = MPI_COMM_WORLD;
static long wrong;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static uint64_t hash(uint64_t x)
{
    x = (x ^ x >> 31) * 0x7fb5d329728ea185u;
    x = (x ^ x >> 27) * 0x81dadef4bc2dd44du;
    return x ^ x >> 33;
}

/* Of message `number` from `src`; equal on both sides. */
static int length_of(int src, int64_t number)
{
    static const int most[] = {16, 200, 2000, 7000, EAGER, 70000, 300000, LONGEST};
    uint64_t r = hash(seed ^ hash((uint64_t) number * 2 + (uint64_t) src + 1));
    return (int) (sizeof(head_t) + (r >> 8) % (uint64_t) most[r % (shorts_only ? 5 : 8)]);
}

static void fill(char *data, int src, int64_t number, int length)
{
    head_t head = {number, length};
    uint64_t s = hash(seed + (uint64_t) number * 4 + (uint64_t) src);
    memcpy(data, &head, sizeof(head));
    for (int i = sizeof(head); i < length; i += 8) {
        s = s * 6364136223846793005u + 1442695040888963407u;
        memcpy(data + i, &s, length - i < 8 ? (size_t) (length - i) : 8);
    }
}

static int is_right(const char *data, int64_t number, int got)
{
    static char wanted[LONGEST + sizeof(head_t)];
    int length = length_of(1 - rank, number);
    if (got == length) {
        fill(wanted, 1 - rank, number, length);
        if (memcmp(data, wanted, (size_t) length) == 0) {
            return 1;
        }
    }
    fprintf(stderr, "rank %d: message %lld is wrong: %d bytes of %d\n", rank, (long long) number, got, length);
    return 0;
}

/* ---- What went over which link ---- */

static void links_open(links_t *links)
{
    char name[] = "pml_base_link_bytes", text[4096];
    int index, n, provided, length = sizeof(text), name_length = sizeof(name);
    MPI_Datatype type;
    MPI_T_enum values;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS) {
        return;
    }
    MPI_T_pvar_get_info(index, name, &name_length, &n, &n, &type, &values, text, &length, &n, &n, &n, &n);
    MPI_T_pvar_session_create(&links->session);
    MPI_T_pvar_handle_alloc(links->session, index, NULL, &links->handle, &links->count);
    links->count = links->count < LINKS ? links->count : 0;
    const char *at = strrchr(text, '[');
    for (int i = 0; at && i < links->count; i++) {
        sscanf(at + 1, " %d: %63[^],]", &n, links->names[i]);
        at = strchr(at + 1, ',');
    }
}

static void links_print(links_t *links, long long arrived)
{
    if (links->count > 0) {
        MPI_T_pvar_read(links->session, links->handle, links->bytes);
    }
    printf("%.0f %lld", 1e3 * now(), arrived);
    for (int i = 0; i < links->count; i++) {
        printf(" %s=%llu", links->names[i], links->bytes[i]);
    }
    printf("\n");
    fflush(stdout);
}

/* ---- The mix ---- */

typedef struct side {
    int64_t number; /* of the next message */
    MPI_Request requests[SLOTS];
    char *data[SLOTS];
    int over;
} side_t;

static void side_open(side_t *side)
{
    memset(side, 0, sizeof(*side));
    for (int i = 0; i < SLOTS; i++) {
        side->requests[i] = MPI_REQUEST_NULL;
        side->data[i] = calloc(1, LONGEST + sizeof(head_t));
        if (!side->data[i]) {
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

static void post(side_t *in, int slot)
{
    MPI_Irecv(in->data[slot], LONGEST + (int) sizeof(head_t), MPI_BYTE, 1 - rank, TAG, comm,
              &in->requests[slot]);
}

/* Start the next message, if its slot is free. */
static int send_next(side_t *out, int last)
{
    int slot = (int) (out->number % SLOTS), free_slot, length = last ? (int) sizeof(head_t)
                                                                      : length_of(rank, out->number);
    uint64_t how = hash(seed * 3 + (uint64_t) out->number) % 8;
    MPI_Test(&out->requests[slot], &free_slot, MPI_STATUS_IGNORE);
    if (!free_slot) {
        return 0;
    }
    char *data = out->data[slot];
    fill(data, rank, last ? -1 : out->number, length);
    if (length < EAGER && (how < 5 || last)) {
        MPI_Send(data, length, MPI_BYTE, 1 - rank, TAG, comm);
        memset(data, 0xee, (size_t) length); /* it is ours again */
    } else if (how == 7) {
        MPI_Issend(data, length, MPI_BYTE, 1 - rank, TAG, comm, &out->requests[slot]);
    } else {
        MPI_Isend(data, length, MPI_BYTE, 1 - rank, TAG, comm, &out->requests[slot]);
    }
    out->number++;
    return 1;
}

/* The next message is here; its bytes. */
static int take(side_t *in, const MPI_Status *status)
{
    int slot = (int) (in->number % SLOTS), got;
    head_t head;
    MPI_Get_count(status, MPI_BYTE, &got);
    memcpy(&head, in->data[slot], sizeof(head));
    if (head.number == -1 && got == (int) sizeof(head)) {
        in->over = 1;
        return got;
    }
    wrong += !is_right(in->data[slot], in->number, got);
    in->number++;
    post(in, slot);
    return got;
}

/* Wait for the next message, or for the slot of the next to be sent, if it `may_send`. Bytes that came. */
static int wait_next(side_t *in, side_t *out, int may_send)
{
    MPI_Request *at[2] = {&in->requests[in->number % SLOTS], &out->requests[out->number % SLOTS]};
    MPI_Request two[2] = {in->over ? MPI_REQUEST_NULL : *at[0], may_send ? *at[1] : MPI_REQUEST_NULL};
    MPI_Status status;
    int which;
    MPI_Waitany(2, two, &which, &status);
    if (which == MPI_UNDEFINED) {
        return 0;
    }
    *at[which] = MPI_REQUEST_NULL;
    return which == 0 ? take(in, &status) : 0;
}

static long long run(void)
{
    side_t in, out;
    links_t links = {.count = 0};
    long long arrived = 0;
    side_open(&in);
    side_open(&out);
    links_open(&links);
    for (int i = 0; i < SLOTS; i++) {
        post(&in, i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double end = now() + seconds, next = now() + interval;
    while (!in.over || !out.over) {
        int last = now() >= end, may_send = !out.over && (in.over || out.number - in.number < AHEAD);
        if (may_send && send_next(&out, last)) {
            out.over = last;
        } else {
            arrived += wait_next(&in, &out, may_send);
        }
        if (now() >= next) {
            if (rank == 0) {
                links_print(&links, arrived);
            }
            end = access(until, F_OK) == 0 ? 0 : end;
            next += interval * (1 + (int) ((now() - next) / interval));
        }
    }
    MPI_Waitall(SLOTS, out.requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < SLOTS; i++) {
        if (in.requests[i] != MPI_REQUEST_NULL) {
            MPI_Cancel(&in.requests[i]);
            MPI_Wait(&in.requests[i], MPI_STATUS_IGNORE);
        }
    }
    printf("rank %d: %lld messages, %lld bytes, wrong %ld\n", rank, (long long) in.number, arrived, wrong);
    return in.number;
}

static void choose_links(void)
{
    if (chosen) {
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, "hawser_links", chosen);
        MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
        MPI_Info_free(&info);
    }
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--short") == 0) {
            shorts_only = 1;
        } else if (i + 1 < argc && strcmp(argv[i], "--links") == 0) {
            chosen = argv[++i];
        } else if (i + 1 < argc && strcmp(argv[i], "--seconds") == 0) {
            seconds = atof(argv[++i]);
        } else if (i + 1 < argc && strcmp(argv[i], "--until") == 0) {
            until = argv[++i];
        } else if (i + 1 < argc && strcmp(argv[i], "--interval") == 0) {
            interval = 1e-3 * atof(argv[++i]);
        } else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) {
            seed = (uint64_t) atoll(argv[++i]);
        }
    }
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    choose_links();
    long long messages = run();
    if (chosen) {
        MPI_Comm_free(&comm);
    }
    MPI_Finalize();
    return wrong > 0 || messages == 0;
}
