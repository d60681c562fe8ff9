/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What a daemon makes of what mpirun says. */
#include "orte/runtime/follow.h"

#include "orte/mca/errmgr/errmgr.h"
#include "orte/mca/grpcomm/grpcomm.h"
#include "orte/mca/iof/iof.h"
#include "orte/mca/odls/odls.h"
#include "orte/pmix/server.h"
#include "orte/runtime/queue.h"
#include "orte/runtime/state.h"
#include "orte/runtime/topology.h"
#include "orte/runtime/wire.h"
#include "orte/util/report.h"

#include "opal/datatype/arch.h"

#include <event2/event.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Children have nothing left to do when they are sent home. */
#define LEAVE_LIMIT_MS 4000

typedef struct {
    orte_runtime_t *rt;
    orte_plm_orders_t orders; /* for the children; given away when they are started */
    const char *contact;      /* ours; NULL: no children */
    bool up;                  /* connected to the parent */
    bool given_up;
    bool leaving;
} follow_t;

static follow_t self;

static void send_pack(orte_runtime_t *rt, uint16_t tag, orte_oob_class_t cls, orte_pack_t *pack)
{
    int rc = orte_oob_send_pack(rt->oob, 0, tag, cls, pack);

    if (rc != OPAL_SUCCESS) {
        orte_trace("message %d was not sent: %s", tag, opal_strerror(rc));
    }
}

/* ---- The end ---- */

static void leave_loop(void *arg)
{
    orte_runtime_t *rt = arg;

    event_base_loopbreak(rt->base);
}

static void leave_tree(void *arg)
{
    orte_runtime_t *rt = arg;

    orte_oob_leave(rt->oob, 1000, leave_loop, rt);
}

/* All jobs, if there were any, are over: nothing but children of the tree is left. */
static void go(orte_runtime_t *rt)
{
    orte_plm_stop_starting(rt);
    orte_plm_when_ended(rt, 0, leave_loop, rt);
}

/* The first job's object is there before the job is. */
static bool has_job(const orte_runtime_t *rt)
{
    return rt->job->nspace != NULL;
}

void orte_follow_give_up(orte_runtime_t *rt, int exit_code)
{
    if (self.given_up || self.leaving) {
        return;
    }
    self.given_up = true;
    rt->exit_code = exit_code;
    if (!has_job(rt) || orte_job_all_reached(rt, ORTE_JOB_DONE)) {
        go(rt);
        return;
    }
    for (orte_job_t *job = rt->jobs; job != NULL; job = job->next) {
        orte_state_job(job, ORTE_JOB_ENDING);
        orte_odls_end(rt->odls, job, true);
    }
}

void orte_follow_job_over(orte_job_t *job)
{
    orte_runtime_t *rt = job->rt;
    orte_pack_t pack;

    if (self.given_up) {
        if (orte_job_all_reached(rt, ORTE_JOB_DONE)) {
            go(rt);
        }
        return;
    }
    orte_pack_init(&pack);
    orte_pack_i32(&pack, job->number);
    send_pack(rt, ORTE_WIRE_OVER, ORTE_OOB_STREAM, &pack);
}

/* ---- What is said to mpirun ---- */

static void send_notice(orte_runtime_t *rt, uint16_t tag, const orte_wire_notice_t *notice)
{
    orte_pack_t pack;

    orte_pack_init(&pack);
    orte_wire_pack_notice(&pack, notice);
    send_pack(rt, tag, ORTE_OOB_CONTROL, &pack);
}

void orte_follow_proc_exited(const orte_proc_t *proc, bool was_finalized)
{
    orte_wire_exited_t exited = {.job = proc->job->number, .rank = proc->rank, .pid = proc->pid,
                                 .status = proc->exit_status,
                                 .was_connected = proc->was_connected,
                                 .was_finalized = was_finalized};
    orte_pack_t pack;

    orte_pack_init(&pack);
    orte_wire_pack_exited(&pack, &exited);
    send_pack(proc->job->rt, ORTE_WIRE_EXITED, ORTE_OOB_CONTROL, &pack);
}

void orte_follow_proc_aborted(const orte_proc_t *proc, int code, const char *text)
{
    const orte_wire_notice_t notice = {.job = proc->job->number, .number = proc->rank,
                                       .pid = proc->pid, .code = code, .text = (char *)text};

    send_notice(proc->job->rt, ORTE_WIRE_ABORTED, &notice);
}

void orte_follow_failed(const orte_job_t *job, int rank, int code, const char *text)
{
    const orte_wire_notice_t notice = {.job = job->number, .number = rank, .code = code,
                                       .text = (char *)text};

    send_notice(job->rt, ORTE_WIRE_FAILED, &notice);
}

void orte_follow_examined(orte_runtime_t *rt, const char *text)
{
    const orte_wire_notice_t notice = {.text = (char *)text};

    send_notice(rt, ORTE_WIRE_EXAMINED, &notice);
}

void orte_follow_start_failed(orte_runtime_t *rt, uint32_t index, const char *text)
{
    const orte_wire_notice_t notice = {.number = (int32_t)index, .text = (char *)text};

    send_notice(rt, ORTE_WIRE_START_FAILED, &notice);
}

void orte_follow_started(const orte_job_t *job)
{
    orte_pack_t pack;

    orte_pack_init(&pack);
    orte_pack_i32(&pack, job->number);
    send_pack(job->rt, ORTE_WIRE_STARTED, ORTE_OOB_CONTROL, &pack);
}

void orte_follow_output(const orte_proc_t *proc, bool is_stderr, const void *data, size_t size)
{
    orte_wire_stream_t stream = {.job = proc->job->number, .rank = proc->rank,
                                 .is_stderr = is_stderr};
    orte_pack_t pack;

    orte_pack_init(&pack);
    orte_wire_pack_stream(&pack, &stream);
    orte_pack_raw(&pack, data, size);
    send_pack(proc->job->rt, ORTE_WIRE_OUTPUT, ORTE_OOB_STREAM, &pack);
}

bool orte_follow_has_room(const orte_runtime_t *rt)
{
    return orte_oob_backlog(rt->oob, 0, ORTE_OOB_STREAM) < orte_oob_window(rt->oob);
}

void orte_follow_input_done(orte_runtime_t *rt, size_t size, bool lost)
{
    if (size > 0) {
        orte_oob_consumed(rt->oob, 0, size);
    }
    if (lost) {
        orte_oob_send(rt->oob, 0, ORTE_WIRE_INPUT_LOST, ORTE_OOB_CONTROL, NULL, 0);
    }
}

static void send_report(orte_runtime_t *rt)
{
    orte_wire_report_t report = {.cpu_limit = rt->self->cpu_limit,
                                 .arch = (uint8_t)opal_arch_id(opal_arch_local())};
    orte_pack_t pack;

    if (orte_topology_digest(rt->self, report.digest) != OPAL_SUCCESS ||
        hwloc_bitmap_list_asprintf(&report.allowed, rt->self->allowed) < 0) {
        orte_follow_give_up(rt, ORTE_EXIT_USAGE);
        return;
    }
    orte_pack_init(&pack);
    orte_wire_pack_report(&pack, &report);
    free(report.allowed);
    send_pack(rt, ORTE_WIRE_REPORT, ORTE_OOB_CONTROL, &pack);
}

/* ---- What mpirun says ---- */

static void nonsense(orte_runtime_t *rt, const orte_oob_message_t *message)
{
    orte_report("a message of kind %d from daemon %u makes no sense; giving up", message->tag,
                (unsigned)message->from);
    orte_follow_give_up(rt, ORTE_EXIT_USAGE);
}

static void take_ask_topology(void *arg, orte_oob_message_t *message)
{
    orte_runtime_t *rt = arg;
    orte_pack_t pack;
    char *text;
    int size;

    (void)message;
    orte_pack_init(&pack);
    if (orte_topology_text(rt->self, &text, &size) != OPAL_SUCCESS) {
        orte_follow_give_up(rt, ORTE_EXIT_USAGE);
        return;
    }
    orte_pack_raw(&pack, text, (size_t)size);
    orte_topology_text_free(rt->self, text);
    send_pack(rt, ORTE_WIRE_TOPOLOGY, ORTE_OOB_CONTROL, &pack);
}

/* Processes start where mpirun was started, or at home if this host has no such directory. */
static void change_directory(const orte_job_t *job)
{
    const char *home = getenv("HOME");

    if (job->start_dir != NULL && chdir(job->start_dir) == 0) {
        return;
    }
    if (home == NULL || chdir(home) != 0) {
        orte_trace("the directory %s is not there, and no home either",
                   job->start_dir == NULL ? "" : job->start_dir);
    }
}

static void take_launch(void *arg, orte_oob_message_t *message)
{
    orte_runtime_t *rt = arg;
    orte_job_t *job;

    if (message->from != 0 || orte_wire_unpack_job(message, rt, &job) != OPAL_SUCCESS) {
        nonsense(rt, message);
        return;
    }
    if (job == rt->job) {
        change_directory(job);
    }
    orte_state_job(job, self.given_up ? ORTE_JOB_DONE : ORTE_JOB_REGISTER);
}

static void take_signal(void *arg, orte_oob_message_t *message)
{
    orte_runtime_t *rt = arg;
    int number;

    if (orte_wire_unpack_number(message, 1, SIGRTMAX, &number) != OPAL_SUCCESS) {
        nonsense(rt, message);
        return;
    }
    for (orte_job_t *job = rt->jobs; job != NULL; job = job->next) {
        orte_odls_signal(rt->odls, job, number);
    }
}

static void take_end(void *arg, orte_oob_message_t *message)
{
    orte_runtime_t *rt = arg;
    int number;
    bool hard;

    if (orte_wire_unpack_end(message, &number, &hard) != OPAL_SUCCESS) {
        nonsense(rt, message);
        return;
    }
    orte_plm_stop_starting(rt);
    orte_job_t *job = orte_job_find(rt, number);
    if (!has_job(rt) || job == NULL) {
        return;
    }
    orte_state_job(job, ORTE_JOB_ENDING);
    if (hard) {
        orte_odls_end(rt->odls, job, true);
    }
}

static void take_forget(void *arg, orte_oob_message_t *message)
{
    orte_runtime_t *rt = arg;
    int number;

    if (orte_wire_unpack_number(message, 1, INT_MAX, &number) != OPAL_SUCCESS) {
        nonsense(rt, message);
        return;
    }
    orte_job_t *job = orte_job_find(rt, number);
    if (job != NULL && job->state == ORTE_JOB_DONE) {
        orte_state_forget(job);
    }
}

/* Without the job there is nothing to tell, and mpirun does not wait for it. */
static void take_examine(void *arg, orte_oob_message_t *message)
{
    orte_runtime_t *rt = arg;
    int wanted;

    if (orte_wire_unpack_number(message, 1, 3, &wanted) != OPAL_SUCCESS) {
        nonsense(rt, message);
    } else if (has_job(rt)) {
        orte_errmgr_examine(rt, (wanted & 1) != 0, (wanted & 2) != 0);
    }
}

/* The children get the same message from mpirun, and go before us. Where jobs are not over, mpirun has waited for us in
 * vain. */
static void take_leave(void *arg, orte_oob_message_t *message)
{
    orte_runtime_t *rt = arg;

    (void)message;
    if (self.given_up || self.leaving) {
        return;
    }
    if (has_job(rt) && !orte_job_all_reached(rt, ORTE_JOB_DONE)) {
        orte_follow_give_up(rt, ORTE_EXIT_HOST_LOST);
        return;
    }
    self.leaving = true;
    orte_plm_when_ended(rt, LEAVE_LIMIT_MS, leave_tree, rt);
}

static void take_lost(void *arg, orte_oob_message_t *message)
{
    orte_runtime_t *rt = arg;
    orte_wire_lost_t lost;

    if (orte_wire_unpack_lost(message, &lost) != OPAL_SUCCESS) {
        nonsense(rt, message);
        return;
    }
    if (lost.in_order) {
        orte_pmix_proc_ended(lost.nspace, lost.rank);
    } else {
        orte_pmix_proc_lost(rt, lost.nspace, lost.rank);
    }
    free(lost.nspace);
}

static void take_input(void *arg, orte_oob_message_t *message)
{
    orte_runtime_t *rt = arg;

    orte_iof_remote_input(rt->iof, message->data, message->size);
}

static void take_output_lost(void *arg, orte_oob_message_t *message)
{
    orte_runtime_t *rt = arg;
    orte_wire_stream_t stream;
    const uint8_t *data;
    size_t size;

    if (orte_wire_unpack_stream(message, &stream, &data, &size) != OPAL_SUCCESS) {
        nonsense(rt, message);
        return;
    }
    const orte_job_t *job = orte_job_find(rt, stream.job);
    if (job != NULL && stream.rank < job->nprocs) {
        orte_iof_close_output(rt->iof, job->procs[stream.rank], stream.is_stderr);
    }
}

/* ---- Neighbours ---- */

static void connected(void *arg, uint32_t index, const char *hostname)
{
    orte_runtime_t *rt = arg;

    orte_trace("daemon %u (%s) is connected", (unsigned)index, hostname);
    if (index != orte_oob_tree_parent(rt->index, orte_oob_tree_radix(rt->oob))) {
        orte_plm_connected(rt, index);
        return;
    }
    self.up = true;
    send_report(rt);
    if (self.contact != NULL &&
        orte_plm_start_children(rt, &self.orders, self.contact) != OPAL_SUCCESS) {
        orte_follow_start_failed(rt, rt->index, NULL);
    }
}

static void connect_failed(void *arg, int rc, const char *sentence)
{
    orte_runtime_t *rt = arg;

    (void)rc;
    orte_report("%s", sentence);
    orte_follow_give_up(rt, ORTE_PLM_DAEMON_REFUSED);
}

static void lost(void *arg, uint32_t index, orte_oob_loss_t why, const char *sentence)
{
    orte_runtime_t *rt = arg;

    (void)why;
    orte_trace("lost daemon %u: %s", (unsigned)index, sentence);
    if (self.leaving) {
        return;
    }
    orte_grpcomm_lost(rt->grpcomm, index);
    orte_pmix_daemon_lost(rt, index);
    orte_plm_forget(rt, index);
    if (orte_oob_is_lost(rt->oob, 0)) {
        orte_follow_give_up(rt, ORTE_EXIT_HOST_LOST);
    }
}

static void drained(void *arg, uint32_t index)
{
    orte_runtime_t *rt = arg;

    (void)index;
    orte_iof_remote_drained(rt->iof);
}

static const struct {
    uint16_t tag;
    orte_oob_handler_t handler;
} handlers[] = {
    {ORTE_WIRE_ASK_TOPOLOGY, take_ask_topology},
    {ORTE_WIRE_LAUNCH, take_launch},
    {ORTE_WIRE_SIGNAL, take_signal},
    {ORTE_WIRE_END, take_end},
    {ORTE_WIRE_FORGET, take_forget},
    {ORTE_WIRE_EXAMINE, take_examine},
    {ORTE_WIRE_LEAVE, take_leave},
    {ORTE_WIRE_LOST, take_lost},
    {ORTE_WIRE_INPUT, take_input},
    {ORTE_WIRE_OUTPUT_LOST, take_output_lost},
};

static int open_oob(orte_runtime_t *rt, const orte_plm_orders_t *orders)
{
    orte_oob_config_t config = {
        .index = rt->index, .count = orders->count, .radix = orders->radix,
        .hostname = orders->hosts[rt->index].name, .arg = rt, .on_connected = connected,
        .on_connect_failed = connect_failed, .on_lost = lost, .on_drained = drained,
    };
    int rc = orte_oob_key_parse(orders->key, config.key);

    if (rc == OPAL_SUCCESS) {
        rt->oob = orte_oob_create(rt->base, &config);
        rt->grpcomm = rt->oob == NULL ? NULL : orte_grpcomm_create(rt->oob);
        rc = rt->grpcomm == NULL ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
    }
    explicit_bzero(&config, sizeof(config));
    if (rc != OPAL_SUCCESS) {
        orte_report("can't open connections: %s", opal_strerror(rc));
    }
    return rc;
}

int orte_follow_start(orte_runtime_t *rt, orte_plm_orders_t *orders)
{
    char why[ORTE_OOB_SENTENCE];
    uint32_t first;
    int rc = open_oob(rt, orders);

    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    self.rt = rt;
    for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
        orte_oob_handle(rt->oob, handlers[i].tag, handlers[i].handler, rt);
    }
    orte_pmix_handle_messages(rt);
    if (orte_oob_tree_children(rt->index, orders->count, orders->radix, &first) > 0 &&
        (rc = orte_oob_listen(rt->oob, &self.contact, why)) != OPAL_SUCCESS) {
        orte_report("no daemon can reach this host: %s", why);
        return rc;
    }
    self.orders = *orders;
    *orders = (orte_plm_orders_t){0};
    rc = orte_oob_connect(rt->oob, self.orders.contact);
    if (rc != OPAL_SUCCESS) {
        orte_report("\"%s\" is no address of mpirun", self.orders.contact);
    }
    return rc;
}
