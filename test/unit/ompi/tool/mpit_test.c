/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The tools interface without MPI_Init: life, control variables, enumerations, performance
 * variables, categories. */
#include <stdint.h>
#include <string.h>

#include "mpi.h"
#include "ompi/runtime/pvar.h"
#include "support/tap.h"

/* ---- A source of numbers ---- */

static uint64_t counters[3];
static double level;
static size_t links = 2;

static size_t count_links(void *context)
{
    (void) context;
    return links;
}

static void read_counters(void *context, const ompi_proc_t *proc, void *values, size_t count)
{
    (void) context;
    (void) proc;
    memcpy(values, counters, count * sizeof(counters[0]));
}

static void read_level(void *context, const ompi_proc_t *proc, void *values, size_t count)
{
    (void) context;
    (void) proc;
    for (size_t i = 0; i < count; i++) {
        ((double *) values)[i] = level;
    }
}

static const char *link_name(void *context, size_t i)
{
    static const char *const names[] = {"a", "b", "c"};
    (void) context;
    return names[i];
}

static void register_source(void)
{
    const ompi_pvar_desc_t total = {
        .framework = "tst", .component = "src", .name = "total", .help = "Bytes per link",
        .level = MCA_VAR_LEVEL_USER, .var_class = MPI_T_PVAR_CLASS_COUNTER, .count = count_links,
        .read = read_counters, .value_name = link_name,
    };
    const ompi_pvar_desc_t timed = {
        .framework = "tst", .component = "src", .name = "timed",
        .help = "Bytes per link while started",
        .level = MCA_VAR_LEVEL_TUNER, .var_class = MPI_T_PVAR_CLASS_COUNTER, .on_demand = true,
        .count = count_links, .read = read_counters,
    };
    const ompi_pvar_desc_t state = {
        .framework = "tst", .component = "src", .name = "level", .help = "A level",
        .level = MCA_VAR_LEVEL_USER, .var_class = MPI_T_PVAR_CLASS_LEVEL, .is_double = true,
        .read = read_level,
    };
    TAP_OK(OPAL_SUCCESS == ompi_pvar_register(&total) && OPAL_SUCCESS == ompi_pvar_register(&timed)
               && OPAL_SUCCESS == ompi_pvar_register(&state), "sources register");
    TAP_OK(OPAL_ERR_EXISTS == ompi_pvar_register(&total), "but not twice");
}

/* ---- Tests ---- */

static void life(void)
{
    int n, provided = -1;
    TAP_OK(MPI_T_ERR_NOT_INITIALIZED == MPI_T_cvar_get_num(&n), "nothing works before the start");
    TAP_OK(MPI_T_ERR_NOT_INITIALIZED == MPI_T_finalize(), "not even the end");
    TAP_OK(MPI_SUCCESS == MPI_T_init_thread(MPI_THREAD_SINGLE, &provided)
           && MPI_THREAD_MULTIPLE == provided,
           "start");
    TAP_OK(MPI_SUCCESS == MPI_T_init_thread(MPI_THREAD_SINGLE, &provided)
           && MPI_SUCCESS == MPI_T_finalize()
               && MPI_SUCCESS == MPI_T_cvar_get_num(&n) && n > 10,
               "starts are counted; there are %d variables", n);
}

static void every_cvar(void)
{
    int n = 0;
    unsigned wrong = 0;
    MPI_T_cvar_get_num(&n);
    for (int i = 0; i < n; i++) {
        char name[256], desc[1024], buffer[65536];
        int name_len = sizeof(name), desc_len = sizeof(desc), index = -1, count = 0;
        int verbosity, bind, scope;
        MPI_Datatype type;
        MPI_T_enum items;
        MPI_T_cvar_handle handle;
        wrong += MPI_SUCCESS != MPI_T_cvar_get_info(i, name, &name_len, &verbosity, &type, &items,
                                                    desc, &desc_len,
                                                     &bind, &scope);
        wrong += name_len != (int) strlen(name) + 1 || desc_len < 2 || bind != MPI_T_BIND_NO_OBJECT;
        wrong += MPI_SUCCESS != MPI_T_cvar_get_index(name, &index) || index != i;
        wrong += (items != MPI_T_ENUM_NULL) && type != MPI_INT;
        wrong += MPI_SUCCESS != MPI_T_cvar_handle_alloc(i, NULL, &handle, &count) || count < 1
                 || count > (int) sizeof(buffer);
        wrong += (type == MPI_CHAR) != (count > 1);
        wrong += MPI_SUCCESS != MPI_T_cvar_read(handle, buffer);
        wrong += MPI_SUCCESS != MPI_T_cvar_handle_free(&handle) || handle != MPI_T_CVAR_HANDLE_NULL;
    }
    TAP_OK(0 == wrong, "all %d control variables can be described and read (%u wrong)", n, wrong);
}

static MPI_T_cvar_handle cvar(const char *name)
{
    int index = -1, count;
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
    MPI_T_cvar_get_index(name, &index);
    MPI_T_cvar_handle_alloc(index, NULL, &handle, &count);
    return handle;
}

static void cvar_values(void)
{
    MPI_Count spin = 0;
    MPI_T_cvar_handle h = cvar("opal_progress_spin_us");
    TAP_REQUIRE(h != MPI_T_CVAR_HANDLE_NULL, "a handle");
    TAP_OK(MPI_SUCCESS == MPI_T_cvar_read(h, &spin) && 4321 == spin,
           "the environment's value is read");
    spin = 77;
    TAP_OK(MPI_SUCCESS == MPI_T_cvar_write(h, &spin), "a local variable is written");
    spin = 0;
    TAP_OK(MPI_SUCCESS == MPI_T_cvar_read(h, &spin) && 77 == spin, "and read back");
    spin = -2;
    TAP_OK(MPI_T_ERR_INVALID == MPI_T_cvar_write(h, &spin), "a value out of bounds is refused");
    MPI_T_cvar_handle_free(&h);
    TAP_OK(MPI_T_ERR_INVALID_HANDLE == MPI_T_cvar_read(h, &spin), "the null handle is refused");

    int check = -1;
    h = cvar("mca_base_param_check");
    TAP_OK(MPI_SUCCESS == MPI_T_cvar_read(h, &check) && 0 == check, "an enumeration is read");
    TAP_OK(MPI_T_ERR_CVAR_SET_NEVER == MPI_T_cvar_write(h, &check),
           "a start parameter is never written");
    MPI_T_cvar_handle_free(&h);

    char text[4096];
    h = cvar("net_include");
    TAP_OK(MPI_SUCCESS == MPI_T_cvar_read(h, text) && 0 == strcmp(text, "lo,eth0"),
           "a text is read");
    MPI_T_cvar_handle_free(&h);

    int index;
    TAP_OK(MPI_T_ERR_INVALID_NAME == MPI_T_cvar_get_index("no_such_thing", &index), "unknown name");
    TAP_OK(MPI_T_ERR_INVALID_INDEX == MPI_T_cvar_handle_alloc(-1, NULL, &h, &index)
               && MPI_T_ERR_INVALID_INDEX == MPI_T_cvar_handle_alloc(1 << 30, NULL, &h, &index),
               "bad index");
}

static void texts(void)
{
    int index = -1, len = 0;
    char name[64] = "untouched";
    MPI_T_cvar_get_index("mca_base_param_check", &index);
    MPI_T_cvar_get_info(index, name, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    TAP_OK(21 == len && 0 == strcmp(name, "untouched"), "length 0 asks for the length");
    len = 4;
    MPI_T_cvar_get_info(index, name, &len, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    TAP_OK(21 == len && 0 == strcmp(name, "mca"), "a short buffer gets the start");
}

static void enums(void)
{
    int index = -1, n = 0, value = -1, len;
    char name[64];
    MPI_T_enum items = MPI_T_ENUM_NULL;
    MPI_T_cvar_get_index("mca_base_param_check", &index);
    MPI_T_cvar_get_info(index, NULL, NULL, NULL, NULL, &items, NULL, NULL, NULL, NULL);
    len = sizeof(name);
    TAP_OK(MPI_SUCCESS == MPI_T_enum_get_info(items, &n, name, &len) && 3 == n,
           "an enumeration has three items");
    len = sizeof(name);
    TAP_OK(MPI_SUCCESS == MPI_T_enum_get_item(items, 1, &value, name, &len) && 1 == value
               && 0 == strcmp(name, "warn"), "its second is warn");
    TAP_OK(MPI_T_ERR_INVALID_INDEX == MPI_T_enum_get_item(items, 3, &value, name, &len),
           "it has no fourth");
    TAP_OK(MPI_T_ERR_INVALID_HANDLE == MPI_T_enum_get_info(MPI_T_ENUM_NULL, &n, name, &len),
           "no enumeration");
}

static MPI_T_pvar_handle pvar(MPI_T_pvar_session session, const char *name, int var_class,
                              int *count)
{
    int index = -1;
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    MPI_T_pvar_get_index(name, var_class, &index);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, count);
    return handle;
}

static int is_atomic(const char *name, int var_class)
{
    int index = -1, atomic = -1;
    MPI_T_pvar_get_index(name, var_class, &index);
    MPI_T_pvar_get_info(index, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, &atomic);
    return atomic;
}

static void running_pvar(MPI_T_pvar_session session)
{
    uint64_t v[3] = {0};
    int count = 0;
    counters[0] = 10;
    counters[1] = 20;
    MPI_T_pvar_handle h = pvar(session, "tst_src_total", MPI_T_PVAR_CLASS_COUNTER, &count);
    TAP_OK(2 == count && MPI_SUCCESS == MPI_T_pvar_read(session, h, v) && 10 == v[0] && 20 == v[1],
           "a running counter shows its totals");
    TAP_OK(MPI_T_ERR_PVAR_NO_STARTSTOP == MPI_T_pvar_start(session, h), "it can't be started");
    counters[0] = 15;
    TAP_OK(1 == is_atomic("tst_src_total", MPI_T_PVAR_CLASS_COUNTER)
               && MPI_SUCCESS == MPI_T_pvar_readreset(session, h, v) && 15 == v[0], "read and reset");
    counters[0] = 18;
    TAP_OK(MPI_SUCCESS == MPI_T_pvar_read(session, h, v) && 3 == v[0] && 0 == v[1],
           "counts from there");
    TAP_OK(MPI_T_ERR_PVAR_NO_WRITE == MPI_T_pvar_write(session, h, v), "it can't be written");
    TAP_OK(MPI_SUCCESS == MPI_T_pvar_handle_free(session, &h) && MPI_T_PVAR_HANDLE_NULL == h,
           "free");
}

static void started_pvar(MPI_T_pvar_session session)
{
    uint64_t v[3] = {0};
    int count;
    MPI_T_pvar_handle h = pvar(session, "tst_src_timed", MPI_T_PVAR_CLASS_COUNTER, &count);
    counters[0] = 100;
    TAP_OK(MPI_SUCCESS == MPI_T_pvar_read(session, h, v) && 0 == v[0], "a counter starts at 0");
    TAP_OK(MPI_SUCCESS == MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES), "start all");
    counters[0] = 107;
    MPI_T_pvar_stop(session, h);
    counters[0] = 1000;
    TAP_OK(MPI_SUCCESS == MPI_T_pvar_read(session, h, v) && 7 == v[0],
           "it counts between start and stop");
    MPI_T_pvar_start(session, h);
    counters[0] = 1003;
    TAP_OK(MPI_SUCCESS == MPI_T_pvar_read(session, h, v) && 10 == v[0], "and goes on");
    TAP_OK(MPI_SUCCESS == MPI_T_pvar_reset(session, h)
           && MPI_SUCCESS == MPI_T_pvar_read(session, h, v)
               && 0 == v[0], "reset");
}

static void pvars(void)
{
    MPI_T_pvar_session session, other;
    double d = 0;
    uint64_t v[3];
    int count, index = -1, len = 256;
    char desc[256];
    register_source();
    TAP_REQUIRE(MPI_SUCCESS == MPI_T_pvar_session_create(&session)
                && MPI_SUCCESS == MPI_T_pvar_session_create(&other),
                "sessions");
    running_pvar(session);
    started_pvar(session);
    level = 2.5;
    MPI_T_pvar_handle h = pvar(session, "tst_src_level", MPI_T_PVAR_CLASS_LEVEL, &count);
    TAP_OK(MPI_SUCCESS == MPI_T_pvar_read(session, h, &d) && 2.5 == d, "a level is a double");
    TAP_OK(MPI_T_ERR_PVAR_NO_WRITE == MPI_T_pvar_reset(session, h), "it can't be reset");
    TAP_OK(0 == is_atomic("tst_src_level", MPI_T_PVAR_CLASS_LEVEL)
               && MPI_T_ERR_PVAR_NO_ATOMIC == MPI_T_pvar_readreset(session, h, &d),
           "nor read and reset at once");
    TAP_OK(MPI_T_ERR_INVALID_HANDLE == MPI_T_pvar_read(other, h, &d),
           "another session's handle is refused");

    MPI_T_pvar_get_index("tst_src_total", MPI_T_PVAR_CLASS_COUNTER, &index);
    links = 3;
    MPI_T_pvar_get_info(index, NULL, NULL, NULL, NULL, NULL, NULL, desc, &len, NULL, NULL, NULL,
                        NULL);
    TAP_OK(0 == strcmp(desc, "Bytes per link [0: a, 1: b, 2: c]"),
           "the description names the values");
    TAP_OK(MPI_T_ERR_INVALID_NAME == MPI_T_pvar_get_index("tst_src_total", MPI_T_PVAR_CLASS_LEVEL,
                                                          &index),
           "a name goes with a class");

    counters[2] = 33;
    ompi_pvar_unregister("tst", "src");
    counters[2] = 44;
    h = pvar(session, "tst_src_total", MPI_T_PVAR_CLASS_COUNTER, &count);
    TAP_OK(3 == count && MPI_SUCCESS == MPI_T_pvar_read(session, h, v) && 33 == v[2],
           "the last values stay when the source is gone");
    TAP_OK(MPI_SUCCESS == MPI_T_pvar_session_free(&session) && MPI_T_PVAR_SESSION_NULL == session
               && MPI_SUCCESS == MPI_T_pvar_session_free(&other),
               "sessions end with their handles");
    TAP_OK(MPI_T_ERR_INVALID_SESSION == MPI_T_pvar_session_free(&session), "and only once");
}

static void categories(void)
{
    int n = 0, index = -1, cvars = 0, subs = 0, before = 0, after = 0, list[64];
    TAP_OK(MPI_SUCCESS == MPI_T_category_get_num(&n) && n > 3, "there are %d categories", n);
    TAP_OK(MPI_SUCCESS == MPI_T_category_get_index("btl", &index), "one is a framework");
    TAP_OK(MPI_SUCCESS == MPI_T_category_get_info(index, NULL, NULL, NULL, NULL, &cvars, NULL,
                                                  &subs) && cvars >= 2
               && subs >= 1, "it has variables and components");
    TAP_OK(MPI_SUCCESS == MPI_T_category_get_categories(index, 64, list), "which can be listed");
    int total = 0;
    for (int i = 0; i < n; i++) {
        MPI_T_category_get_info(i, NULL, NULL, NULL, NULL, &cvars, NULL, NULL);
        total += cvars;
    }
    MPI_T_cvar_get_num(&cvars);
    TAP_OK(total == cvars, "each control variable is in exactly one category");
    MPI_T_category_changed(&before);
    MPI_T_category_changed(&after);
    TAP_OK(before == after, "looking changes nothing");
    TAP_OK(MPI_T_ERR_INVALID_INDEX == MPI_T_category_get_cvars(n, 0, list), "bad index");
    TAP_OK(MPI_T_ERR_INVALID_NAME == MPI_T_category_get_index("nonsense", &index), "bad name");
}

/* What they tell when something happens: test/mpi/events.c. */
static void events(void)
{
    int n = -1, sources = -1, described = 0;
    MPI_T_event_get_num(&n);
    MPI_T_source_get_num(&sources);
    TAP_OK(n > 0, "there are %d events", n);
    TAP_OK(sources > 0, "and %d sources", sources);
    for (int i = 0; i < n; i++) {
        char name[64] = "";
        int verbosity, len = sizeof(name), elements = 0, bind;
        described += MPI_SUCCESS == MPI_T_event_get_info(i, name, &len, &verbosity, NULL, NULL, &elements, NULL, NULL, NULL,
                                                         NULL, &bind)
                     && name[0] != '\0';
    }
    TAP_OK(described == n, "each can be described");
    TAP_OK(MPI_T_ERR_INVALID_INDEX == MPI_T_event_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL,
                                                           NULL, NULL, NULL,
                                                           NULL, NULL),
           "bad index");
}

int main(void)
{
    int provided, n;
    tap_start(60);
    setenv("OMPI_MCA_opal_progress_spin_us", "4321", 1);
    setenv("OMPI_MCA_net_include", "lo,eth0", 1);
    life();
    every_cvar();
    cvar_values();
    texts();
    enums();
    pvars();
    categories();
    events();
    TAP_OK(MPI_SUCCESS == MPI_T_finalize(), "end");
    TAP_OK(MPI_T_ERR_NOT_INITIALIZED == MPI_T_cvar_get_num(&n), "nothing works after the end");
    TAP_OK(MPI_SUCCESS == MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided)
           && MPI_SUCCESS == MPI_T_finalize(),
           "it can start again");
    return tap_end();
}
