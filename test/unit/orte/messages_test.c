/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * What mpirun and its daemons say to each other: all comes back as it was packed; cut short at any
 * byte, or with any byte changed, it is refused or understood, but nothing is read that is not there
 * (to be seen under the address sanitizer).
 */
#include "opal/constants.h"
#include "opal/util/argv.h"
#include "orte/mca/plm/plm.h"
#include "orte/runtime/runtime.h"
#include "orte/runtime/topology.h"
#include "orte/runtime/wire.h"
#include "test/support/fuzz.h"
#include "test/support/tap.h"

#include <limits.h>
#include <signal.h>
#include <string.h>

typedef int (*reader_t)(const orte_oob_message_t *message);

static int read_report(const orte_oob_message_t *message)
{
    orte_wire_report_t report;
    int rc = orte_wire_unpack_report(message, &report);

    if (rc == OPAL_SUCCESS) {
        free(report.allowed);
    }
    return rc;
}

static int read_notice(const orte_oob_message_t *message)
{
    orte_wire_notice_t notice;
    int rc = orte_wire_unpack_notice(message, &notice);

    if (rc == OPAL_SUCCESS) {
        free(notice.text);
    }
    return rc;
}

static int read_exited(const orte_oob_message_t *message)
{
    orte_wire_exited_t exited;

    return orte_wire_unpack_exited(message, &exited);
}

static int read_end(const orte_oob_message_t *message)
{
    int job;
    bool hard;

    return orte_wire_unpack_end(message, &job, &hard);
}

static int read_stream(const orte_oob_message_t *message)
{
    orte_wire_stream_t stream;
    const uint8_t *data;
    size_t size;

    return orte_wire_unpack_stream(message, &stream, &data, &size);
}

static int read_lost(const orte_oob_message_t *message)
{
    orte_wire_lost_t lost;
    int rc = orte_wire_unpack_lost(message, &lost);

    if (rc == OPAL_SUCCESS) {
        free(lost.nspace);
    }
    return rc;
}

static int read_request(const orte_oob_message_t *message)
{
    orte_wire_request_t request;

    return orte_wire_unpack_request(message, &request);
}

static orte_runtime_t *daemon_runtime(void)
{
    orte_runtime_t *rt = orte_runtime_create("orted");

    if (rt == NULL) {
        printf("Bail out! no memory\n");
        exit(1);
    }
    rt->index = 2;
    rt->ndaemons = 3;
    return rt;
}

static int read_job(const orte_oob_message_t *message)
{
    orte_runtime_t *rt = daemon_runtime();
    orte_job_t *job;
    int rc = orte_wire_unpack_job(message, rt, &job);

    orte_runtime_destroy(rt);
    return rc;
}

static int read_orders(const orte_oob_message_t *message)
{
    orte_plm_orders_t orders;
    const char *version;
    int rc = orte_plm_unpack_orders(message->data, message->size, &orders, &version);

    if (rc == OPAL_SUCCESS) {
        orte_plm_orders_free(&orders);
    }
    return rc;
}

/* A copy of exactly `size` bytes, so that a read behind its end is found. */
static int read_copy(reader_t read, const uint8_t *data, size_t size)
{
    orte_oob_message_t message = {.data = size == 0 ? NULL : malloc(size), .size = size};

    if (size > 0) {
        memcpy(message.data, data, size);
    }
    int rc = read(&message);
    free(message.data);
    return rc;
}

static unsigned draw(void)
{
    static uint32_t state = 0;

    if (state == 0) {
        state = fuzz_seed(12345);
    }

    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

/* `least`: shorter messages are refused. */
static void hurt(const char *name, reader_t read, orte_pack_t *pack, size_t least)
{
    size_t size, accepted = 0;
    uint8_t *data = orte_pack_take(pack, &size);

    TAP_OK(data != NULL && read_copy(read, data, size) == OPAL_SUCCESS, "%s is understood", name);
    for (size_t cut = 0; cut < size && cut < least; cut++) {
        accepted += read_copy(read, data, cut) == OPAL_SUCCESS;
    }
    TAP_OK(accepted == 0, "%s cut short anywhere is refused", name);
    for (int round = 0; round < 3000 * fuzz_times(); round++) {
        uint8_t *damaged = malloc(size);
        memcpy(damaged, data, size);
        for (unsigned count = 1 + draw() % 3; count > 0; count--) {
            damaged[draw() % size] = (uint8_t)(draw() % 4 == 0 ? 0xff : draw());
        }
        read_copy(read, damaged, size);
        free(damaged);
    }
    TAP_OK(true, "%s survives damage", name);
    free(data);
}

static orte_oob_message_t as_message(orte_pack_t *pack)
{
    orte_oob_message_t message = {0};

    message.data = orte_pack_take(pack, &message.size);
    return message;
}

static void test_small(void)
{
    orte_wire_report_t report = {.digest = {1, 2, 3}, .allowed = "0-3,8", .cpu_limit = 7};
    orte_wire_notice_t notice = {.number = 3, .pid = 77, .code = 9, .text = "because"};
    orte_wire_exited_t exited = {.rank = 4, .pid = 5, .status = 0x700, .was_connected = true};
    orte_wire_stream_t stream = {.rank = 6, .is_stderr = true};
    orte_wire_lost_t lost = {.rank = 7, .nspace = "mpirun-1"};
    orte_wire_request_t request = {.id = 1ull << 40, .number = -3, .data = (const uint8_t *)"abc",
                                   .size = 3};
    orte_pack_t pack;

    orte_pack_init(&pack);
    orte_wire_pack_report(&pack, &report);
    hurt("a report", read_report, &pack, SIZE_MAX);
    orte_wire_pack_notice(&pack, &notice);
    hurt("a notice", read_notice, &pack, SIZE_MAX);
    orte_wire_pack_exited(&pack, &exited);
    hurt("an exit", read_exited, &pack, SIZE_MAX);
    orte_wire_pack_end(&pack, 2, true);
    hurt("an end", read_end, &pack, SIZE_MAX);
    orte_wire_pack_lost(&pack, &lost);
    hurt("a loss", read_lost, &pack, SIZE_MAX);
    orte_wire_pack_stream(&pack, &stream);
    TAP_OK(pack.size == ORTE_WIRE_STREAM_HEADER, "the header of output has its size");
    orte_pack_raw(&pack, "output", 6);
    hurt("output", read_stream, &pack, ORTE_WIRE_STREAM_HEADER);
    orte_wire_pack_request(&pack, &request);
    hurt("a request", read_request, &pack, 12);
}

static void test_values(void)
{
    orte_wire_notice_t notice = {.job = 2, .number = 3, .pid = 77, .code = 9}, notice_back;
    orte_wire_stream_t stream = {.job = 2, .rank = 6, .is_stderr = true}, stream_back;
    const uint8_t *data;
    size_t size;
    int number;
    orte_pack_t pack;

    orte_pack_init(&pack);
    orte_wire_pack_notice(&pack, &notice);
    orte_oob_message_t message = as_message(&pack);
    TAP_OK(orte_wire_unpack_notice(&message, &notice_back) == OPAL_SUCCESS &&
               notice_back.job == 2 && notice_back.number == 3 && notice_back.pid == 77 && notice_back.code == 9 &&
               notice_back.text == NULL, "a notice without text");
    free(message.data);
    orte_wire_pack_stream(&pack, &stream);
    orte_pack_raw(&pack, "xyz", 3);
    message = as_message(&pack);
    TAP_OK(orte_wire_unpack_stream(&message, &stream_back, &data, &size) == OPAL_SUCCESS &&
               stream_back.job == 2 && stream_back.rank == 6 && stream_back.is_stderr && size == 3 &&
               memcmp(data, "xyz", 3) == 0, "output with its bytes");
    free(message.data);
    orte_pack_i32(&pack, SIGUSR1);
    message = as_message(&pack);
    TAP_OK(orte_wire_unpack_number(&message, 1, SIGRTMAX, &number) == OPAL_SUCCESS &&
               number == SIGUSR1, "a signal");
    TAP_OK(orte_wire_unpack_number(&message, 0, 1, &number) != OPAL_SUCCESS,
           "a number that is too large");
    free(message.data);
}

/* Two programs on two of three hosts: mpirun's own and that of daemon 2. */
static orte_runtime_t *make_world(void)
{
    static const char *const names[] = {"alpha", "beta", "gamma"};
    orte_runtime_t *rt = orte_runtime_create("mpirun");
    orte_job_t *job = rt->job;

    rt->ndaemons = 3;
    rt->nodes = calloc(3, sizeof(*rt->nodes));
    for (int i = 0; i < 3; i++) {
        rt->nodes[i] = i == 0 ? rt->self : orte_node_create(names[i], i);
        rt->nodes[i]->index = i;
        rt->nodes[i]->daemon = (uint32_t)i;
    }
    rt->nnodes = 3;
    job->nspace = strdup("mpirun-1-2.1");
    memset(job->secret, 'a', sizeof(job->secret) - 1);
    job->universe_size = 12;
    job->start_dir = strdup("/home/somebody");
    job->io.stdin_kind = ORTE_STDIN_ALL;
    for (int i = 0; i < 2; i++) {
        orte_app_t *app = orte_job_add_app(job);
        opal_argv_append(&app->argv, i == 0 ? "first" : "second");
        opal_argv_append(&app->argv, "with space");
        opal_argv_append(&app->environ, "A=1");
        app->path = strdup("/bin/true");
        app->np = 2;
        app->first_rank = 2 * i;
    }
    for (int i = 0; i < 4; i++) {
        orte_proc_t *proc = orte_job_add_proc(job, job->apps[i / 2], rt->nodes[i % 2 * 2]);
        proc->app_rank = i % 2;
        proc->local_rank = proc->node_rank = i / 2;
        proc->cpuset = i == 3 ? NULL : orte_topology_parse_cpus("2,4-5");
    }
    return rt;
}

static void check_job(const orte_runtime_t *rt)
{
    const orte_job_t *job = rt->job;

    TAP_OK(strcmp(job->nspace, "mpirun-1-2.1") == 0 && strlen(job->secret) == 64 &&
               job->universe_size == 12 && strcmp(job->start_dir, "/home/somebody") == 0 &&
               job->io.stdin_kind == ORTE_STDIN_ALL && job->nalive == 4, "what holds for the job");
    TAP_OK(rt->nnodes == 3 && rt->nodes[2] == rt->self && rt->self->index == 2 &&
               strcmp(rt->self->name, "gamma") == 0 && rt->self->nprocs == 2 &&
               !rt->nodes[0]->local && !rt->nodes[1]->local, "its hosts, ours among them");
    TAP_OK(job->napps == 2 && strcmp(job->apps[1]->argv[0], "second") == 0 &&
               strcmp(job->apps[1]->argv[1], "with space") == 0 &&
               strcmp(job->apps[0]->environ[0], "A=1") == 0 && job->apps[1]->first_rank == 2,
           "its programs");
    TAP_REQUIRE(job->nprocs == 4, "its processes");
    TAP_OK(job->procs[3]->node == rt->self && job->procs[3]->cpuset == NULL &&
               job->procs[3]->app == job->apps[1] && job->procs[3]->local_rank == 1 &&
               job->procs[0]->node == rt->nodes[0], "where they run");
    char *cpus = NULL;
    hwloc_bitmap_list_asprintf(&cpus, job->procs[1]->cpuset);
    TAP_OK(strcmp(cpus, "2,4-5") == 0, "on which cpus");
    free(cpus);
}

/* One that a process of the first has asked for. */
static orte_oob_message_t further_job(orte_runtime_t *world, int number)
{
    orte_job_t *job = orte_job_create(world, number);
    orte_app_t *app = orte_job_add_app(job);
    orte_pack_t pack;

    orte_job_enter(job);
    if (asprintf(&job->nspace, "mpirun-1-2.%d", number) < 0) {
        job->nspace = NULL;
    }
    job->parent = 1;
    job->parent_rank = 3;
    memset(job->secret, 'b', sizeof(job->secret) - 1);
    opal_argv_append(&app->argv, "third");
    opal_argv_append(&app->environ, "A=1");
    app->path = strdup("/bin/true");
    app->wdir = strdup("/tmp");
    app->wdir_optional = true;
    app->np = 1;
    orte_job_add_proc(job, app, world->nodes[2]);
    orte_pack_init(&pack);
    orte_wire_pack_job(&pack, job);
    return as_message(&pack);
}

/* On the nodes that are known; the third job is ready to start before the second. */
static void check_further_jobs(orte_runtime_t *world, orte_runtime_t *rt)
{
    orte_oob_message_t second = further_job(world, 2), third = further_job(world, 3);
    orte_job_t *back;

    TAP_OK(orte_wire_unpack_job(&third, rt, &back) == OPAL_SUCCESS && back == orte_job_find(rt, 3),
           "a further job");
    TAP_REQUIRE(orte_wire_unpack_job(&second, rt, &back) == OPAL_SUCCESS, "and one that was asked for earlier");
    TAP_OK(back == orte_job_find(rt, 2) && back == orte_job_find_nspace(rt, "mpirun-1-2.2") &&
               back->parent == 1 && back->parent_rank == 3 && rt->nnodes == 3 &&
               back->procs[0]->node == rt->self && back->apps[0]->wdir_optional,
           "has its parent and its hosts");
    TAP_OK(orte_wire_unpack_job(&second, rt, &back) != OPAL_SUCCESS &&
               orte_wire_unpack_job(&third, rt, &back) != OPAL_SUCCESS, "but neither a second time");
    free(second.data);
    free(third.data);
}

static void test_job(void)
{
    orte_runtime_t *world = make_world(), *rt = daemon_runtime();
    orte_pack_t pack;

    orte_pack_init(&pack);
    orte_wire_pack_job(&pack, world->job);
    orte_oob_message_t message = as_message(&pack);
    orte_job_t *job;
    TAP_REQUIRE(orte_wire_unpack_job(&message, rt, &job) == OPAL_SUCCESS && job == rt->job,
                "a job is understood");
    check_job(rt);
    TAP_OK(orte_wire_unpack_job(&message, rt, &job) != OPAL_SUCCESS, "but not a second time");
    free(message.data);
    check_further_jobs(world, rt);
    orte_runtime_destroy(rt);
    orte_wire_pack_job(&pack, world->job);
    hurt("a job", read_job, &pack, SIZE_MAX);
    world->nodes[1]->daemon = 2;
    orte_wire_pack_job(&pack, world->job);
    message = as_message(&pack);
    TAP_OK(read_job(&message) != OPAL_SUCCESS, "two hosts of one daemon are refused");
    free(message.data);
    orte_runtime_destroy(world);
}

static orte_plm_orders_t make_orders(void)
{
    orte_plm_orders_t orders = {.index = 1, .count = 3, .radix = 2, .session = strdup("12-0a"),
                                .contact = strdup("10.0.0.1:5"), .orted = strdup("/opt/orted"),
                                .component = strdup("rsh"), .verbose = true};

    memset(orders.key, '5', sizeof(orders.key) - 1);
    orders.hosts = calloc(3, sizeof(*orders.hosts));
    for (int i = 0; i < 3; i++) {
        orders.hosts[i].name = strdup("host");
    }
    orders.hosts[2].user = strdup("somebody");
    orders.hosts[2].port = 2222;
    opal_argv_append(&orders.environ, "OMPI_MCA_a=b\nc");
    return orders;
}

static void test_orders(void)
{
    orte_plm_orders_t orders = make_orders(), back;
    const char *version = "";
    orte_pack_t pack;

    orte_pack_init(&pack);
    orte_plm_pack_orders(&pack, &orders);
    orte_oob_message_t message = as_message(&pack);
    TAP_REQUIRE(orte_plm_unpack_orders(message.data, message.size, &back, &version) == OPAL_SUCCESS,
                "orders are understood");
    TAP_OK(back.index == 1 && back.count == 3 && back.radix == 2 && back.verbose &&
               strcmp(back.key, orders.key) == 0 && strcmp(back.session, "12-0a") == 0 &&
               strcmp(back.contact, "10.0.0.1:5") == 0 && strcmp(back.orted, "/opt/orted") == 0 &&
               strcmp(back.component, "rsh") == 0, "what holds for all");
    TAP_OK(back.hosts[1].user == NULL && strcmp(back.hosts[2].user, "somebody") == 0 &&
               back.hosts[2].port == 2222 && strcmp(back.environ[0], "OMPI_MCA_a=b\nc") == 0,
           "hosts and parameters");
    orte_plm_orders_free(&back);
    free(message.data);
    orte_plm_pack_orders(&pack, &orders);
    hurt("orders", read_orders, &pack, SIZE_MAX);
    free(orders.session);
    orders.session = strdup("../../etc");
    orte_plm_pack_orders(&pack, &orders);
    message = as_message(&pack);
    TAP_OK(read_orders(&message) == OPAL_ERR_PARSE, "a session whose name leads elsewhere");
    free(message.data);
    orte_plm_orders_free(&orders);
    static const char other[] = "hawser-orted 99.1\nwhatever comes then";
    TAP_OK(orte_plm_unpack_orders((const uint8_t *)other, sizeof(other), &back, &version) ==
                   OPAL_ERR_NOT_SUPPORTED && strcmp(version, "99.1") == 0,
           "orders of another version say which");
    TAP_OK(orte_plm_unpack_orders((const uint8_t *)"", 0, &back, &version) == OPAL_ERR_PARSE,
           "no orders");
}

static void test_cpus(void)
{
    static const char *const wrong[] = {"", "x", "0-", "1,,2x", "9999999", "-1", "0-99999999"};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        hwloc_bitmap_t set = orte_topology_parse_cpus(wrong[i]);
        TAP_OK(set == NULL, "\"%s\" is no list of cpus", wrong[i]);
        hwloc_bitmap_free(set);
    }
}

int main(void)
{
    tap_start(120 * (unsigned)fuzz_times());
    test_small();
    test_values();
    test_job();
    test_orders();
    test_cpus();
    return tap_end();
}
