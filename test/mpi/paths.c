/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * What tools read of each link to each process (paths.sh): the numbers of a communicator's processes add up to those of
 * the links, damage is counted where it came from, and states follow what becomes of a link.
 * PATHS_CLEAN: a link that must not have suffered; PATHS_STATE: the state that shared memory is to come to and leave;
 * PATHS_SHORT: with no more than one short message at a time.
 */
#include "support/mpi_test.h"

enum { RANKS = 3, VALUES = 64, LONG = 300000, ROUNDS = 40, SHORTS = 200 };

static int rank, size, link_count;
static MPI_T_pvar_session session;
static char names[1024]; /* of the links, as a description has them */

static int index_of(const char *name, int var_class)
{
    int index = -1;
    MPI_T_pvar_get_index(name, var_class, &index);
    return index;
}

static void start(void)
{
    int provided, len = sizeof(names), bind = -1;
    MPI_Init(NULL, NULL);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_T_pvar_get_info(index_of("pml_base_path_bytes", MPI_T_PVAR_CLASS_COUNTER), NULL, NULL, NULL, NULL, NULL, NULL,
                        names, &len, &bind, NULL, NULL, NULL);
    MPI_CHECK(bind == MPI_T_BIND_MPI_COMM);
}

static void stop(void)
{
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    MPI_Finalize();
}

/* The number of the link of that name. */
static int link_named(const char *name)
{
    char *at = strstr(names, name);
    while (at && at > names && *at != '[' && *at != ',') {
        at--;
    }
    return at ? atoi(at + 1) : -1;
}

static int read_of(const char *name, int var_class, MPI_Comm *comm, unsigned long long *values)
{
    int count = -1;
    MPI_T_pvar_handle handle;
    memset(values, 0, VALUES * sizeof(*values));
    if (MPI_CHECK(MPI_T_pvar_handle_alloc(session, index_of(name, var_class), comm, &handle, &count) == MPI_SUCCESS)) {
        if (MPI_CHECK(count <= VALUES)) {
            MPI_CHECK(MPI_T_pvar_read(session, handle, values) == MPI_SUCCESS);
        }
        MPI_T_pvar_handle_free(session, &handle);
    }
    return count;
}

static int counters_of(const char *name, MPI_Comm comm, unsigned long long *values)
{
    return read_of(name, MPI_T_PVAR_CLASS_COUNTER, comm == MPI_COMM_NULL ? NULL : &comm, values);
}

static void exchange(int rounds, int bytes)
{
    static char out[LONG], in[LONG];
    for (int i = 0; i < rounds; i++) {
        for (int step = 1; step < size; step++) {
            MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + step) % size, 0, in, bytes, MPI_BYTE, (rank + size - step) % size, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
}

/* ---- What adds up ---- */

static void check_sums(void)
{
    static const char *const kinds[] = {"messages", "bytes", "retries", "failures", "recoveries", "resumes"};
    for (int k = 0; k < 6; k++) {
        unsigned long long links[VALUES], paths[VALUES], sums[VALUES] = {0}, of[RANKS] = {0};
        char name[64];
        snprintf(name, sizeof(name), "pml_base_link_%s", kinds[k]);
        link_count = counters_of(name, MPI_COMM_NULL, links);
        snprintf(name, sizeof(name), "pml_base_path_%s", kinds[k]);
        MPI_CHECK(counters_of(name, MPI_COMM_WORLD, paths) == size * link_count);
        for (int i = 0; i < size * link_count; i++) {
            sums[i % link_count] += paths[i];
            of[i / link_count] += paths[i];
        }
        MPI_CHECK(memcmp(sums, links, (size_t) link_count * sizeof(sums[0])) == 0);
        for (int i = 0; k == 1 && i < size; i++) { /* who fetches, and who sends, is the links' business */
            MPI_CHECK(i == rank ? of[i] == 0 : of[i] >= 2 * SHORTS * 100);
        }
    }
}

/* The same numbers, in the order of the communicator's ranks. */
static void check_order(MPI_Comm comm, const int *world_ranks, int count)
{
    unsigned long long all[VALUES], some[VALUES];
    counters_of("pml_base_path_bytes", MPI_COMM_WORLD, all);
    MPI_CHECK(counters_of("pml_base_path_bytes", comm, some) == count * link_count);
    for (int i = 0; i < count * link_count; i++) {
        MPI_CHECK(some[i] == all[world_ranks[i / link_count] * link_count + i % link_count]);
    }
}

/* A handle keeps the processes of a communicator that is gone, and counts anew after a reset. */
static void check_handle(void)
{
    unsigned long long before[VALUES], after[VALUES], since[VALUES], all[VALUES];
    int count;
    MPI_Comm copy;
    MPI_T_pvar_handle handle;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_T_pvar_handle_alloc(session, index_of("pml_base_path_bytes", MPI_T_PVAR_CLASS_COUNTER), &copy, &handle, &count);
    MPI_Comm_free(&copy);
    MPI_CHECK(MPI_T_pvar_readreset(session, handle, before) == MPI_SUCCESS);
    exchange(2, LONG);
    MPI_CHECK(MPI_T_pvar_read(session, handle, since) == MPI_SUCCESS);
    counters_of("pml_base_path_bytes", MPI_COMM_WORLD, all);
    for (int i = 0; i < count; i++) {
        MPI_CHECK(before[i] + since[i] == all[i]);
    }
    MPI_CHECK(MPI_T_pvar_reset(session, handle) == MPI_SUCCESS);
    MPI_CHECK(MPI_T_pvar_read(session, handle, after) == MPI_SUCCESS);
    for (int i = 0; i < count; i++) {
        MPI_CHECK(after[i] == 0);
    }
}

static void check_refusals(void)
{
    int count;
    MPI_Comm none = MPI_COMM_NULL;
    MPI_T_pvar_handle handle;
    int index = index_of("pml_base_path_bytes", MPI_T_PVAR_CLASS_COUNTER);
    MPI_CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) == MPI_T_ERR_INVALID);
    MPI_CHECK(MPI_T_pvar_handle_alloc(session, index, &none, &handle, &count) == MPI_T_ERR_INVALID);
}

/* Does what one process says hold for all of them? All call it. */
static int holds_for_all(int here)
{
    int everywhere;
    MPI_Allreduce(&here, &everywhere, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return everywhere;
}

/* Of the links that carried much, does each have a round trip? */
static int have_times(void)
{
    unsigned long long messages[VALUES], times[VALUES];
    MPI_Comm world = MPI_COMM_WORLD;
    counters_of("pml_base_path_messages", world, messages);
    int count = read_of("pml_dr_path_round_trip", MPI_T_PVAR_CLASS_LEVEL, &world, times), have = 1;
    for (int i = 0; i < count; i++) {
        have = have && (messages[i] < 2 * SHORTS || times[i] > 0);
        MPI_CHECK(times[i] == 0 || (times[i] > 100 && times[i] < 20000000000u));
    }
    return have;
}

/* Under dr a link that carried much has a round trip: what came while a process was kept from its processor tells none, so on a busy
 * machine that takes a while. */
static void check_times(void)
{
    unsigned long long messages[VALUES], times[VALUES];
    MPI_Comm world = MPI_COMM_WORLD;
    if (index_of("pml_dr_path_round_trip", MPI_T_PVAR_CLASS_LEVEL) < 0) {
        return;
    }
    while (!holds_for_all(have_times())) {
        exchange(SHORTS, 100);
    }
    counters_of("pml_base_path_messages", world, messages);
    int count = read_of("pml_dr_path_patience", MPI_T_PVAR_CLASS_LEVEL, &world, times);
    for (int i = 0; i < count; i++) {
        MPI_CHECK(messages[i] < 2 * SHORTS || (times[i] >= 1000000 && times[i] < 20000000000u));
    }
}

static void sums(void)
{
    start();
    exchange(ROUNDS, LONG);
    exchange(2 * SHORTS, 100);
    check_sums();
    check_times();
    check_refusals();
    MPI_Comm turned, half, inter;
    int back[RANKS], remote[RANKS], remotes = 0;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank > 0 ? 0 : 1, 1, &inter);
    for (int i = 0; i < size; i++) {
        back[i] = size - 1 - i;
        if ((i > 0) != (rank > 0)) {
            remote[remotes++] = i;
        }
    }
    check_order(turned, back, size);
    check_order(inter, remote, remotes);
    check_handle();
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    MPI_Comm_free(&turned);
    stop();
}

/* ---- Damage ---- */

static void set_rate(const char *name, MPI_Count rate)
{
    int index, count;
    MPI_T_cvar_handle handle;
    if (MPI_CHECK(MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS)) {
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count);
        MPI_CHECK(MPI_T_cvar_write(handle, &rate) == MPI_SUCCESS);
        MPI_T_cvar_handle_free(&handle);
    }
}

/* The rehearsal is over. */
static void calm(void)
{
    set_rate("btl_chaos_loss", 0);
    set_rate("btl_chaos_damage", 0);
    set_rate("btl_chaos_duplicate", 0);
    set_rate("btl_chaos_reorder", 0);
    for (int i = 0; i < 5; i++) { /* what was sent before is here, repeats included */
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* What each process damaged is what the others found damaged in what it sent; links that nothing is done to stay clean. */
static void damage(void)
{
    unsigned long long values[VALUES], mine, injected[RANKS], caught[RANKS] = {0}, all[RANKS], retries = 0;
    const char *clean = getenv("PATHS_CLEAN");
    start();
    exchange(ROUNDS, LONG);
    exchange(SHORTS, 1000);
    MPI_Barrier(MPI_COMM_WORLD);
    calm();
    counters_of("btl_chaos_damaged", MPI_COMM_NULL, &values[0]);
    mine = values[0];
    MPI_Allgather(&mine, 1, MPI_UNSIGNED_LONG_LONG, injected, 1, MPI_UNSIGNED_LONG_LONG, MPI_COMM_WORLD);
    int count = counters_of("pml_dr_path_damaged", MPI_COMM_WORLD, values);
    int links = count / size, spared = clean ? link_named(clean) : -1;
    MPI_CHECK(!clean || spared >= 0);
    for (int i = 0; i < count; i++) {
        caught[i / links] += values[i];
        MPI_CHECK(i % links != spared || values[i] == 0);
    }
    MPI_Allreduce(caught, all, size, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++) {
        if (!MPI_CHECK(injected[i] == all[i] && injected[i] > 0) && rank == 0) {
            fprintf(stderr, "rank %d damaged %llu fragments, %llu were caught\n", i, injected[i], all[i]);
        }
    }
    counters_of("pml_base_path_retries", MPI_COMM_WORLD, values);
    for (int i = 0; i < count; i++) {
        retries += values[i];
    }
    MPI_CHECK(retries >= mine / 2); /* acknowledgments are not sent again */
    stop();
}

/* ---- States ---- */

static int find_state(MPI_T_enum states, const char *wanted)
{
    int count = 0, value = -1;
    MPI_T_enum_get_info(states, &count, NULL, NULL);
    for (int i = 0; i < count; i++) {
        char name[32];
        int len = sizeof(name), v;
        if (MPI_T_enum_get_item(states, i, &v, name, &len) == MPI_SUCCESS && strcmp(name, wanted) == 0) {
            value = v;
        }
    }
    return value;
}

/* Many at once: a link is taken out when it has more to try than makes it suspect. */
static void burst(void)
{
    enum { MESSAGES = 16, BYTES = 2000 };
    static char out[BYTES], in[MESSAGES][BYTES];
    MPI_Request requests[2 * MESSAGES];
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Irecv(in[i], BYTES, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[i]);
        MPI_Isend(out, BYTES, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &requests[MESSAGES + i]);
    }
    MPI_Waitall(2 * MESSAGES, requests, MPI_STATUSES_IGNORE);
}

/* Shared memory comes to a state, by the script of paths.sh or because it loses everything, and leaves it again. */
static void states(void)
{
    const char *wanted = getenv("PATHS_STATE");
    int states[VALUES] = {0}, count, came = 0, done = 0;
    unsigned long long failures[VALUES], recoveries[VALUES];
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_T_enum names_of;
    MPI_T_pvar_handle handle;
    start();
    int index = index_of("pml_base_path_state", MPI_T_PVAR_CLASS_STATE), bad = link_named("shm");
    MPI_T_pvar_get_info(index, NULL, NULL, NULL, NULL, &type, &names_of, NULL, NULL, NULL, NULL, NULL, NULL);
    MPI_CHECK(type == MPI_INT);
    int down = find_state(names_of, wanted ? wanted : "down"), up = find_state(names_of, "up");
    int by_loss = down != find_state(names_of, "down"), many = down == find_state(names_of, "probed");
    MPI_CHECK(down > 0 && up > 0 && find_state(names_of, "unused") == 0 && bad >= 0);
    MPI_T_pvar_handle_alloc(session, index, &world, &handle, &count);
    int at = (1 - rank) * (count / size) + bad;
    if (by_loss) {
        set_rate("btl_chaos_loss", 1000000);
    }
    while (!done) {
        if (getenv("PATHS_SHORT")) {
            exchange(1, 8);
        } else if (many) {
            burst();
        } else {
            exchange(1, 20000);
        }
        MPI_CHECK(MPI_T_pvar_read(session, handle, states) == MPI_SUCCESS);
        counters_of("pml_base_path_failures", world, failures);
        counters_of("pml_base_path_recoveries", world, recoveries);
        if (!came && states[at] == down) {
            came = 1;
            if (by_loss) {
                set_rate("btl_chaos_loss", 0);
            }
        }
        int mine = came && states[at] == up;
        MPI_Allreduce(&mine, &done, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    }
    MPI_CHECK(failures[at] == recoveries[at] && (failures[at] > 0 || down == find_state(names_of, "suspect")));
    MPI_Finalize();
    MPI_CHECK(MPI_T_pvar_read(session, handle, states) == MPI_SUCCESS && states[at] == up); /* as it was last seen */
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
}

static const mpi_test_t tests[] = {
    {.name = "sums", .np = RANKS, .fn = sums},
    {.name = "damage", .np = RANKS, .fn = damage},
    {.name = "states", .np = 2, .fn = states},
};

int main(int argc, char **argv)
{
    return mpi_test_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
