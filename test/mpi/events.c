/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of the tools interface (MPI-5.0, 15.3.8): what is raised when, what it says, which callback is called, what
 * is dropped, how handles go.
 */
#include <pthread.h>
#include <stdint.h>

#include "support/mpi_test.h"

enum { VALUES = 4, QUEUE = 1024, MANY = QUEUE + 476 };

/* Callbacks may be called by the progress thread. */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

/* What callbacks have seen. */
static struct {
    int calls, freed, misread, dropped;
    MPI_T_cb_safety level, freed_level;
    int64_t values[VALUES];
    MPI_Count when;
    int source;
    MPI_T_event_instance instance;
} seen;

static int rank;

static void begin(void)
{
    int provided;
    MPI_CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS);
}

static void end(void)
{
    MPI_Finalize();
    MPI_CHECK(MPI_T_finalize() == MPI_SUCCESS);
}

/* Both ways to read an event, its time and its source. */
static void note(MPI_T_event_instance event, MPI_T_event_registration registration, MPI_T_cb_safety level, void *data)
{
    int64_t copy[VALUES] = {0}, *values = seen.values;
    MPI_Count when = 0;
    pthread_mutex_lock(&guard);
    memset(seen.values, 0, sizeof seen.values);
    seen.calls += registration == *(MPI_T_event_registration *) data;
    seen.level = level;
    seen.instance = event;
    seen.misread += MPI_T_event_copy(event, copy) != MPI_SUCCESS;
    for (int i = 0; MPI_T_event_read(event, i, &values[i < VALUES ? i : 0]) == MPI_SUCCESS; i++) {
        seen.misread += values[i] != copy[i];
    }
    seen.misread += MPI_T_event_get_timestamp(event, &when) != MPI_SUCCESS || when < seen.when;
    seen.misread += MPI_T_event_get_source(event, &seen.source) != MPI_SUCCESS;
    seen.when = when;
    pthread_mutex_unlock(&guard);
}

static void other(MPI_T_event_instance event, MPI_T_event_registration registration, MPI_T_cb_safety level, void *data)
{
    (void) event;
    (void) registration;
    (void) level;
    pthread_mutex_lock(&guard);
    ++*(int *) data;
    pthread_mutex_unlock(&guard);
}

/* Of ours: collective operations have messages, too. */
static void tagged(MPI_T_event_instance event, MPI_T_event_registration registration, MPI_T_cb_safety level, void *data)
{
    int64_t tag = -1;
    (void) registration;
    (void) level;
    pthread_mutex_lock(&guard);
    seen.misread += MPI_T_event_read(event, 2, &tag) != MPI_SUCCESS;
    *(int *) data += tag >= 0;
    pthread_mutex_unlock(&guard);
}

static void lost(MPI_Count count, MPI_T_event_registration registration, int source, MPI_T_cb_safety level, void *data)
{
    pthread_mutex_lock(&guard);
    seen.misread += registration != *(MPI_T_event_registration *) data || source != 0
                    || level != MPI_T_CB_REQUIRE_MPI_RESTRICTED;
    seen.dropped += (int) count;
    pthread_mutex_unlock(&guard);
}

static void freed(MPI_T_event_registration registration, MPI_T_cb_safety level, void *data)
{
    pthread_mutex_lock(&guard);
    seen.misread += registration != *(MPI_T_event_registration *) data;
    seen.freed++;
    seen.freed_level = level;
    pthread_mutex_unlock(&guard);
}

static void free_it(MPI_T_event_instance event, MPI_T_event_registration registration, MPI_T_cb_safety level, void *data)
{
    (void) event;
    (void) level;
    const bool good = MPI_T_event_handle_free(registration, data, freed) == MPI_SUCCESS;
    pthread_mutex_lock(&guard);
    seen.calls++;
    seen.misread += !good;
    pthread_mutex_unlock(&guard);
}

/* The handle stays where it is: it is the callback's data. */
static void listen_to(const char *name, MPI_T_event_cb_function *fn, MPI_T_event_registration *handle)
{
    int index = -1;
    MPI_CHECK(MPI_T_event_get_index(name, &index) == MPI_SUCCESS);
    MPI_CHECK(MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, handle) == MPI_SUCCESS);
    MPI_CHECK(MPI_T_event_register_callback(*handle, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, handle, fn) ==
              MPI_SUCCESS);
}

/* Rank 0 sends; rank 1 has the messages when this returns, and has received none of them. */
static void queue_up(int messages, int bytes, int tag)
{
    static char data[1 << 20];
    int found = 0;
    if (rank == 0) {
        for (int i = 0; i < messages; i++) {
            MPI_Request request;
            MPI_Isend(data, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request);
            MPI_Request_free(&request);
        }
        MPI_Send(NULL, 0, MPI_BYTE, 1, tag + 1, MPI_COMM_WORLD);
        return;
    }
    while (!found) { /* the last one is there, and so are those before it */
        MPI_Iprobe(0, tag + 1, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
}

static void fetch(int messages, int bytes, int tag)
{
    static char data[1 << 20];
    for (int i = 0; rank == 1 && i < messages; i++) {
        MPI_Recv(data, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank == 1) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* Events are handed over in a later round of progress. */
static void make_rounds(void)
{
    int flag;
    for (int i = 0; i < 10; i++) {
        MPI_Iprobe(MPI_ANY_SOURCE, 4711, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    }
}

static int sum_of(const int *a, const int *b)
{
    pthread_mutex_lock(&guard);
    const int sum = *a + *b;
    pthread_mutex_unlock(&guard);
    return sum;
}

/* Until the counters are as high together, and a little longer: none may come that is not wanted. */
static void settle(const int *a, const int *b, int wanted)
{
    const double end = MPI_Wtime() + 30;
    while (sum_of(a, b) < wanted && MPI_Wtime() < end) {
        make_rounds();
    }
    make_rounds();
    MPI_CHECK(sum_of(a, b) == wanted);
}

static const int nothing = 0;

static void unexpected(void)
{
    MPI_T_event_registration queued, received;
    MPI_Count before = 0, after = 0;
    begin();
    listen_to("pml_base_unexpected_queued", note, &queued);
    MPI_CHECK(MPI_T_source_get_timestamp(0, &before) == MPI_SUCCESS); /* a progress thread may be fast afterwards */
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    queue_up(3, 300000, 7); /* a long one, whose first fragment alone is here */
    settle(&seen.calls, &nothing, rank == 1 ? 4 : 0);
    MPI_CHECK(MPI_T_source_get_timestamp(0, &after) == MPI_SUCCESS && after > before);
    if (rank == 1) {
        MPI_CHECK(seen.level == MPI_T_CB_REQUIRE_MPI_RESTRICTED && seen.source == 0);
        MPI_CHECK(seen.values[0] == MPI_Comm_toint(MPI_COMM_WORLD) && seen.values[1] == 0 && seen.values[2] == 8 &&
                  seen.values[3] == 0);
        MPI_CHECK(seen.when >= before && seen.when <= after);
        MPI_CHECK(MPI_T_event_read(seen.instance, 0, &before) == MPI_T_ERR_INVALID_HANDLE); /* it is over */
    }
    listen_to("pml_base_unexpected_received", note, &received);
    MPI_CHECK(MPI_T_event_handle_free(queued, NULL, NULL) == MPI_SUCCESS);
    seen.calls = 0;
    fetch(2, 300000, 7);
    settle(&seen.calls, &nothing, rank == 1 ? 3 : 0);
    MPI_CHECK(rank == 0 || seen.values[2] == 8);
    if (rank == 1) { /* one more, taken out by a probe */
        static char data[300000];
        MPI_Message message;
        MPI_Mprobe(0, 7, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        settle(&seen.calls, &nothing, 4);
        MPI_CHECK(seen.values[2] == 7 && seen.values[3] == 300000);
        MPI_Mrecv(data, 300000, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    }
    MPI_CHECK(seen.misread == 0);
    end(); /* what is not freed is freed */
}

/* The lowest level that will do is called; one that will not do is not. */
static void levels(void)
{
    MPI_T_event_registration handle;
    int none = 0, restricted = 0, safe = 0, signal_safe = 0;
    begin();
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    listen_to("pml_base_unexpected_queued", tagged, &handle);
    MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, MPI_INFO_NULL, &signal_safe, tagged);
    MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, &safe, tagged);
    MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, &restricted, tagged);
    MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL, &none, tagged);
    int *expected[] = {&restricted, &safe, &signal_safe, NULL};
    const MPI_T_cb_safety removed[] = {MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_T_CB_REQUIRE_THREAD_SAFE,
                                       MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE, MPI_T_CB_REQUIRE_NONE};
    MPI_Barrier(MPI_COMM_WORLD); /* a thread that makes progress may queue at once what is sent */
    for (int i = 0; i < 4; i++) {
        queue_up(1, 1, 10);
        settle(expected[i] ? expected[i] : &nothing, &nothing, rank == 1 && expected[i] ? 2 : 0);
        MPI_CHECK(none + restricted + safe + signal_safe == (rank == 1 && expected[i] ? 2 : 0));
        fetch(1, 1, 10);
        MPI_T_event_register_callback(handle, removed[i], MPI_INFO_NULL, NULL, NULL);
        none = restricted = safe = signal_safe = 0;
        MPI_Barrier(MPI_COMM_WORLD); /* then the next one comes */
    }
    MPI_CHECK(MPI_T_event_register_callback(handle, 0x77, MPI_INFO_NULL, NULL, other) == MPI_T_ERR_INVALID);
    end();
}

static bool helped(void)
{
    const char *text = getenv("OMPI_MCA_opal_progress_thread");
    return text && atoi(text);
}

/* More than the queue holds between two rounds of progress. */
static void dropped(void)
{
    MPI_T_event_registration handle;
    static MPI_Request requests[MANY + 1];
    begin();
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    queue_up(MANY, 1, 20);
    MPI_Barrier(MPI_COMM_WORLD);
    make_rounds();
    listen_to("pml_base_unexpected_received", note, &handle);
    MPI_CHECK(MPI_T_event_set_dropped_handler(handle, lost) == MPI_SUCCESS);
    if (rank == 1) {
        static char data[MANY];
        for (int i = 0; i < MANY; i++) { /* no progress is made here, unless by the thread that is there for it */
            MPI_Irecv(&data[i], 1, MPI_BYTE, 0, 20, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Irecv(NULL, 0, MPI_BYTE, 0, 21, MPI_COMM_WORLD, &requests[MANY]);
        MPI_CHECK(helped() || (seen.calls == 0 && seen.dropped == 0));
        settle(&seen.calls, &seen.dropped, MANY + 1);
        MPI_CHECK(seen.calls == QUEUE || (helped() && seen.calls > QUEUE));
        MPI_Waitall(MANY + 1, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    queue_up(1, 1, 30); /* it goes on */
    make_rounds();
    const int before = sum_of(&seen.calls, &seen.dropped);
    fetch(1, 1, 30);
    settle(&seen.calls, &seen.dropped, before + (rank == 1 ? 2 : 0));
    MPI_CHECK(seen.misread == 0);
    end();
}

/* A handle is freed from outside, from its callback, and by MPI_T_finalize. */
static void handles(void)
{
    MPI_T_event_registration outside, inside, stays;
    begin();
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) { /* sends only when rank 1 listens, see levels() */
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 39, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    listen_to("pml_base_unexpected_queued", note, &outside);
    MPI_T_event_registration copy = outside;
    MPI_CHECK(MPI_T_event_handle_free(outside, &copy, freed) == MPI_SUCCESS);
    MPI_CHECK(seen.freed == 1 && seen.freed_level == MPI_T_CB_REQUIRE_NONE);
    MPI_CHECK(MPI_T_event_handle_free(copy, NULL, NULL) == MPI_T_ERR_INVALID_HANDLE);
    listen_to("pml_base_unexpected_queued", free_it, &inside);
    listen_to("pml_base_unexpected_queued", note, &stays);
    if (rank == 1) {
        MPI_Send(NULL, 0, MPI_BYTE, 0, 39, MPI_COMM_WORLD);
    }
    queue_up(5, 1, 40);
    settle(&seen.calls, &seen.freed, rank == 1 ? 1 + 6 + 2 : 1);
    if (rank == 1) {
        MPI_CHECK(seen.freed == 2 && seen.freed_level == MPI_T_CB_REQUIRE_MPI_RESTRICTED);
        MPI_CHECK(seen.calls == 1 + 6);
        MPI_CHECK(MPI_T_event_set_dropped_handler(inside, NULL) == MPI_T_ERR_INVALID_HANDLE);
    }
    fetch(5, 1, 40);
    MPI_CHECK(seen.misread == 0);
    end();
    MPI_CHECK(MPI_T_event_handle_free(stays, NULL, NULL) == MPI_T_ERR_NOT_INITIALIZED);
}

/* What happened before a handle was there is nothing to it, though it is handed over later. */
static void late(void)
{
    MPI_T_event_registration early, behind;
    MPI_Request requests[2];
    int calls = 0, late_calls = 0;
    begin();
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    queue_up(1, 1, 50);
    MPI_Barrier(MPI_COMM_WORLD);
    make_rounds();
    listen_to("pml_base_unexpected_received", tagged, &early);
    MPI_T_event_register_callback(early, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, &calls, tagged);
    if (rank == 1) {
        char data;
        MPI_Irecv(&data, 1, MPI_BYTE, 0, 50, MPI_COMM_WORLD, &requests[0]); /* no progress is made here */
        listen_to("pml_base_unexpected_received", tagged, &behind);
        MPI_T_event_register_callback(behind, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, &late_calls, tagged);
        MPI_Irecv(NULL, 0, MPI_BYTE, 0, 51, MPI_COMM_WORLD, &requests[1]);
        settle(&calls, &nothing, 2);
        settle(&late_calls, &nothing, 1);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_CHECK(seen.misread == 0);
    end();
}

/* Links that die and come back: in-tree ones, wrapped. */
static void links(void)
{
    MPI_T_event_registration down, up;
    int downs = 0, ups = 0, go_on = 1;
    setenv("OMPI_MCA_btl", "chaos,self", 1);
    setenv("OMPI_MCA_btl_chaos_wrap", "shm,tcp", 1);
    setenv("OMPI_MCA_btl_chaos_life", "100", 1);
    setenv("OMPI_MCA_btl_chaos_dead", "100", 1);
    begin();
    listen_to("pml_base_link_down", other, &down);
    listen_to("pml_base_link_up", other, &up);
    MPI_T_event_register_callback(down, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, &downs, other);
    MPI_T_event_register_callback(up, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, &ups, other);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    while (go_on) {
        int mine = sum_of(&downs, &nothing) < 2 || sum_of(&ups, &nothing) < 1;
        MPI_Allreduce(&mine, &go_on, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    end();
}

/* Each fragment that comes damaged is told of: as many as are counted. */
static void damage(void)
{
    enum { BYTES = 100000 };
    static char data[BYTES], more[BYTES];
    MPI_T_event_registration handle;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle counter;
    int events = 0, index = -1, count;
    unsigned long long damaged = 0;
    setenv("OMPI_MCA_pml", "dr", 1);
    setenv("OMPI_MCA_btl", "chaos,self", 1);
    setenv("OMPI_MCA_btl_chaos_wrap", "shm", 1);
    setenv("OMPI_MCA_btl_chaos_damage", "20000", 1);
    begin();
    listen_to("pml_dr_damaged_fragment", other, &handle);
    MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_MPI_RESTRICTED, MPI_INFO_NULL, &events, other);
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 200; i++) {
        MPI_Sendrecv(data, BYTES, MPI_BYTE, 1 - rank, 0, more, BYTES, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
    MPI_Finalize(); /* hands over what there is */
    MPI_T_pvar_session_create(&session);
    MPI_CHECK(MPI_T_pvar_get_index("pml_dr_damaged", MPI_T_PVAR_CLASS_COUNTER, &index) == MPI_SUCCESS);
    MPI_T_pvar_handle_alloc(session, index, NULL, &counter, &count);
    MPI_T_pvar_read(session, counter, &damaged);
    MPI_CHECK(events > 0 && (unsigned long long) events == damaged);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
}

/* What every type says of itself: a description, elements with names, a place in a category. */
static void check_type(int index)
{
    MPI_Datatype types[VALUES + 1];
    MPI_Aint displacements[VALUES + 1];
    MPI_T_enum elements;
    MPI_Info info;
    char name[100], text[300], element[300];
    int name_length = sizeof name, length = sizeof text, verbosity, count = VALUES + 1, bind, items, found, one = 1;
    MPI_CHECK(MPI_T_event_get_info(index, name, &name_length, &verbosity, types, displacements, &count, &elements,
                                   &info, text, &length, &bind) == MPI_SUCCESS);
    MPI_CHECK(MPI_T_event_get_index(name, &found) == MPI_SUCCESS && found == index);
    MPI_CHECK(name_length > 1 && length > 10 && bind == MPI_T_BIND_NO_OBJECT && count >= 1 && count <= VALUES);
    MPI_CHECK(MPI_T_enum_get_info(elements, &items, NULL, NULL) == MPI_SUCCESS && items == count);
    for (int i = 0; i < count; i++) {
        int value, room = sizeof element;
        MPI_CHECK(types[i] == MPI_INT64_T && displacements[i] == 8 * i);
        MPI_CHECK(MPI_T_enum_get_item(elements, i, &value, element, &room) == MPI_SUCCESS && value == i && room > 1);
    }
    MPI_Info_free(&info);
    types[1] = MPI_DATATYPE_NULL;
    MPI_T_event_get_info(index, NULL, NULL, NULL, types, NULL, &one, NULL, NULL, NULL, NULL, NULL);
    MPI_CHECK(one == count && types[1] == MPI_DATATYPE_NULL); /* no more than there was room for */
}

static int in_categories(int event)
{
    int categories, places = 0;
    MPI_T_category_get_num(&categories);
    for (int c = 0; c < categories; c++) {
        int count = 0, members[64];
        MPI_CHECK(MPI_T_category_get_num_events(c, &count) == MPI_SUCCESS && count <= 64);
        MPI_CHECK(MPI_T_category_get_events(c, count, members) == MPI_SUCCESS);
        for (int i = 0; i < count; i++) {
            places += members[i] == event;
        }
    }
    return places;
}

static void description(void)
{
    int count = 0, sources = 0, length = 100, index;
    char name[100];
    MPI_T_source_order order;
    MPI_Count ticks, most, now;
    MPI_CHECK(MPI_T_event_get_num(&count) == MPI_T_ERR_NOT_INITIALIZED);
    begin();
    MPI_CHECK(MPI_T_event_get_num(&count) == MPI_SUCCESS && count >= 6);
    for (int i = 0; i < count; i++) {
        check_type(i);
        MPI_CHECK(in_categories(i) == 1);
    }
    MPI_CHECK(MPI_T_source_get_num(&sources) == MPI_SUCCESS && sources == 1);
    MPI_CHECK(MPI_T_source_get_info(0, name, &length, NULL, NULL, &order, &ticks, &most, NULL) == MPI_SUCCESS);
    MPI_CHECK(order == MPI_T_SOURCE_ORDERED && ticks == 1000000000 && most > 0);
    MPI_CHECK(MPI_T_source_get_info(1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
    MPI_CHECK(MPI_T_source_get_timestamp(-1, &now) == MPI_T_ERR_INVALID_INDEX);
    MPI_CHECK(MPI_T_event_get_index("no_such_event", &index) == MPI_T_ERR_INVALID_NAME);
    MPI_CHECK(MPI_T_event_handle_alloc(count, NULL, MPI_INFO_NULL, NULL) == MPI_T_ERR_INVALID_INDEX);
    MPI_CHECK(MPI_T_event_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
              MPI_T_ERR_INVALID_INDEX);
    MPI_CHECK(MPI_T_event_get_timestamp(NULL, &now) == MPI_T_ERR_INVALID_HANDLE);
    MPI_T_finalize();
}

static void hints(void)
{
    MPI_T_event_registration handle;
    MPI_Info info;
    int keys = -1;
    begin();
    listen_to("pml_base_peer_lost", note, &handle);
    MPI_Info_create(&info);
    MPI_Info_set(info, "anything", "at all");
    MPI_CHECK(MPI_T_event_handle_set_info(handle, info) == MPI_SUCCESS);
    MPI_CHECK(MPI_T_event_callback_set_info(handle, MPI_T_CB_REQUIRE_NONE, info) == MPI_SUCCESS);
    MPI_Info_free(&info);
    MPI_CHECK(MPI_T_event_handle_get_info(handle, &info) == MPI_SUCCESS);
    MPI_Info_get_nkeys(info, &keys);
    MPI_CHECK(keys == 0);
    MPI_Info_free(&info);
    MPI_CHECK(MPI_T_event_callback_get_info(handle, MPI_T_CB_REQUIRE_NONE, &info) == MPI_SUCCESS);
    MPI_Info_free(&info);
    MPI_CHECK(MPI_T_event_callback_get_info(handle, 0x22, &info) == MPI_T_ERR_INVALID);
    MPI_T_finalize();
}

static const mpi_test_t tests[] = {
    {.name = "description", .np = 0, .fn = description},
    {.name = "hints", .np = 0, .fn = hints},
    {.name = "unexpected", .np = 2, .fn = unexpected},
    {.name = "levels", .np = 2, .fn = levels},
    {.name = "dropped", .np = 2, .fn = dropped},
    {.name = "handles", .np = 2, .fn = handles},
    {.name = "late", .np = 2, .fn = late},
    {.name = "links", .np = 2, .fn = links},
    {.name = "damage", .np = 2, .fn = damage},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
