/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What mpirun knows of its daemons, and what it makes of what they say. */
#include "orte/runtime/daemons.h"

#include "orte/mca/errmgr/errmgr.h"
#include "orte/mca/grpcomm/grpcomm.h"
#include "orte/mca/iof/iof.h"
#include "orte/mca/plm/plm.h"
#include "orte/pmix/server.h"
#include "orte/runtime/follow.h"
#include "orte/runtime/queue.h"
#include "orte/runtime/state.h"
#include "orte/runtime/topology.h"
#include "orte/runtime/wire.h"
#include "orte/util/report.h"

#include "opal/datatype/arch.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Time for daemons to go once they were told; they have nothing left to do by then. */
#define LEAVE_LIMIT_MS 5000

typedef struct {
    orte_node_t *node;
    bool reported;  /* digest is valid */
    bool asked;     /* for its topology */
    bool lost;
    uint8_t digest[OPAL_SHA256_BYTES];
} daemon_t;

struct orte_daemons {
    orte_runtime_t *rt;
    uint8_t digest[OPAL_SHA256_BYTES]; /* of our own topology */
    daemon_t *list;  /* by index; entry 0 is not used */
    uint32_t known;  /* have their topology */
    bool leaving;
};

static daemon_t *sender(orte_daemons_t *daemons, const orte_oob_message_t *message)
{
    return &daemons->list[message->from];
}

/* A daemon that has proved itself and says what makes no sense: a fault of ours, and no reason to
 * trust it further. */
static void nonsense(orte_daemons_t *daemons, const orte_oob_message_t *message)
{
    orte_report("a message of kind %d from the daemon on host %s makes no sense; ending the job",
                message->tag, sender(daemons, message)->node->name);
    orte_errmgr_all_failed(daemons->rt, ORTE_EXIT_HOST_LOST);
}

/* NULL: it is forgotten, which its daemons may not know yet; or there never was such a job. */
static orte_job_t *find_job(orte_daemons_t *daemons, const orte_oob_message_t *message, int number)
{
    orte_job_t *job = orte_job_find(daemons->rt, number);

    if (job == NULL && (number < 1 || number > daemons->rt->last_job)) {
        nonsense(daemons, message);
    }
    return job;
}

static orte_proc_t *find_proc(orte_daemons_t *daemons, const orte_oob_message_t *message, int number,
                              int rank)
{
    const orte_job_t *job = find_job(daemons, message, number);

    if (job == NULL) {
        return NULL;
    }
    if (rank < 0 || rank >= job->nprocs || job->procs[rank]->node->daemon != message->from) {
        nonsense(daemons, message);
        return NULL;
    }
    return job->procs[rank];
}

/* ---- Start ---- */

static int share_topology(orte_daemons_t *daemons, daemon_t *daemon, hwloc_topology_t topo)
{
    daemon->node->topo = topo;
    daemon->node->topo_shared = true;
    if (++daemons->known == daemons->rt->ndaemons - 1) {
        orte_state_job(daemons->rt->job, ORTE_JOB_MAP);
    }
    return OPAL_SUCCESS;
}

/* Machines of one kind need to send their topology once; ours may be of that kind. */
static void find_topology(orte_daemons_t *daemons, uint32_t index)
{
    daemon_t *daemon = &daemons->list[index];
    bool asked = false;

    if (memcmp(daemon->digest, daemons->digest, sizeof(daemon->digest)) == 0) {
        share_topology(daemons, daemon, daemons->rt->self->topo);
        return;
    }
    for (uint32_t i = 1; i < daemons->rt->ndaemons; i++) {
        daemon_t *other = &daemons->list[i];
        if (i == index || !other->reported ||
            memcmp(other->digest, daemon->digest, sizeof(daemon->digest)) != 0) {
            continue;
        }
        if (other->node->topo != NULL) {
            share_topology(daemons, daemon, other->node->topo);
            return;
        }
        asked = asked || other->asked;
    }
    if (!asked) {
        daemon->asked = true;
        orte_oob_send(daemons->rt->oob, index, ORTE_WIRE_ASK_TOPOLOGY, ORTE_OOB_CONTROL, NULL, 0);
    }
}

static void take_report(void *arg, orte_oob_message_t *message)
{
    orte_daemons_t *daemons = arg;
    daemon_t *daemon = sender(daemons, message);
    orte_wire_report_t report;

    if (daemon->reported || orte_wire_unpack_report(message, &report) != OPAL_SUCCESS) {
        nonsense(daemons, message);
        return;
    }
    orte_trace("the daemon on %s is up", daemon->node->name);
    daemon->reported = true;
    memcpy(daemon->digest, report.digest, sizeof(daemon->digest));
    daemon->node->cpu_limit = report.cpu_limit;
    daemons->rt->mixed = daemons->rt->mixed || report.arch != opal_arch_id(opal_arch_local());
    daemon->node->allowed = orte_topology_parse_cpus(report.allowed);
    free(report.allowed);
    if (daemon->node->allowed == NULL) {
        nonsense(daemons, message);
        return;
    }
    find_topology(daemons, message->from);
}

static void take_topology(void *arg, orte_oob_message_t *message)
{
    orte_daemons_t *daemons = arg;
    daemon_t *daemon = sender(daemons, message);
    hwloc_topology_t topo;

    if (!daemon->asked || daemon->node->topo != NULL ||
        (topo = orte_topology_parse((const char *)message->data, message->size)) == NULL) {
        nonsense(daemons, message);
        return;
    }
    share_topology(daemons, daemon, topo);
    daemon->node->topo_shared = false;
    for (uint32_t i = 1; i < daemons->rt->ndaemons; i++) {
        daemon_t *other = &daemons->list[i];
        if (other->reported && other->node->topo == NULL &&
            memcmp(other->digest, daemon->digest, sizeof(daemon->digest)) == 0) {
            share_topology(daemons, other, topo);
        }
    }
}

void orte_daemons_start_failed(orte_runtime_t *rt, uint32_t index, const char *text)
{
    if (rt->index != 0) {
        orte_follow_start_failed(rt, index, text);
        return;
    }
    if (text != NULL && !rt->failed) {
        orte_report("%s", text);
    }
    orte_errmgr_all_failed(rt, ORTE_EXIT_USAGE);
}

static void take_start_failed(void *arg, orte_oob_message_t *message)
{
    orte_daemons_t *daemons = arg;
    orte_wire_notice_t notice;

    if (orte_wire_unpack_notice(message, &notice) != OPAL_SUCCESS) {
        nonsense(daemons, message);
        return;
    }
    orte_daemons_start_failed(daemons->rt, (uint32_t)notice.number, notice.text);
    free(notice.text);
}

/* ---- Neighbours ---- */

static void connected(void *arg, uint32_t index, const char *hostname)
{
    orte_daemons_t *daemons = arg;

    orte_trace("daemon %u (%s) has connected", (unsigned)index, hostname);
    orte_plm_connected(daemons->rt, index);
}

static bool has_part(const orte_job_t *job, uint32_t index)
{
    return job->has_part != NULL && job->has_part[index];
}

/* Nothing more will come from there; `lost`: the processes are dead or out of reach. */
static void part_over(orte_job_t *job, uint32_t index, bool lost)
{
    const orte_runtime_t *rt = job->rt;

    if (!has_part(job, index)) {
        return;
    }
    job->has_part[index] = false;
    for (int i = 0; i < job->nprocs; i++) {
        if (job->procs[i]->node == rt->daemons->list[index].node) {
            if (lost) {
                orte_errmgr_proc_lost(job->procs[i]);
            }
            orte_iof_finish(rt->iof, job->procs[i]);
        }
    }
    orte_job_part_over(job);
}

static void daemon_lost(orte_daemons_t *daemons, uint32_t index)
{
    daemons->list[index].lost = true;
    orte_plm_forget(daemons->rt, index);
    orte_iof_daemon_lost(daemons->rt->iof, index);
    for (orte_job_t *job = daemons->rt->jobs; job != NULL; job = job->next) {
        part_over(job, index, true);
    }
}

static void lost(void *arg, uint32_t index, orte_oob_loss_t why, const char *sentence)
{
    orte_daemons_t *daemons = arg;
    orte_runtime_t *rt = daemons->rt;

    orte_trace("lost daemon %u: %s", (unsigned)index, sentence);
    if (daemons->leaving || why == ORTE_OOB_LEFT) {
        return;
    }
    orte_grpcomm_lost(rt->grpcomm, index);
    orte_errmgr_daemon_lost(rt, daemons->list[index].node->name, sentence);
    for (uint32_t i = 1; i < rt->ndaemons; i++) {
        if (!daemons->list[i].lost && orte_oob_is_lost(rt->oob, i)) {
            orte_pmix_daemon_lost(rt, i);
            daemon_lost(daemons, i);
        }
    }
}

static void refused(void *arg, uint32_t index, int rc, const char *sentence)
{
    (void)arg;
    (void)index;
    if (rc == OPAL_ERR_NOT_SUPPORTED) {
        orte_warn("%s", sentence);
    } else {
        orte_trace("turned away: %s", sentence);
    }
}

static void drained(void *arg, uint32_t index)
{
    orte_daemons_t *daemons = arg;

    (void)index;
    orte_iof_remote_drained(daemons->rt->iof);
}

/* ---- While the job runs ---- */

static void take_exited(void *arg, orte_oob_message_t *message)
{
    orte_daemons_t *daemons = arg;
    orte_wire_exited_t exited;
    orte_proc_t *proc;

    if (orte_wire_unpack_exited(message, &exited) != OPAL_SUCCESS) {
        nonsense(daemons, message);
        return;
    }
    proc = find_proc(daemons, message, exited.job, exited.rank);
    if (proc == NULL || proc->state == ORTE_PROC_EXITED) {
        return;
    }
    proc->pid = exited.pid;
    proc->exit_status = exited.status;
    proc->was_connected = exited.was_connected;
    proc->state = exited.was_finalized ? ORTE_PROC_FINALIZED : ORTE_PROC_STARTED;
    orte_errmgr_proc_exited(proc);
}

static void take_aborted(void *arg, orte_oob_message_t *message)
{
    orte_daemons_t *daemons = arg;
    orte_wire_notice_t notice;

    if (orte_wire_unpack_notice(message, &notice) != OPAL_SUCCESS) {
        nonsense(daemons, message);
        return;
    }
    orte_proc_t *proc = find_proc(daemons, message, notice.job, notice.number);
    if (proc != NULL) {
        proc->pid = notice.pid;
        orte_errmgr_proc_aborted(proc, notice.code, notice.text);
    }
    free(notice.text);
}

static void take_failed(void *arg, orte_oob_message_t *message)
{
    orte_daemons_t *daemons = arg;
    orte_wire_notice_t notice;

    if (orte_wire_unpack_notice(message, &notice) != OPAL_SUCCESS) {
        nonsense(daemons, message);
        return;
    }
    orte_job_t *job = find_job(daemons, message, notice.job);
    if (job != NULL) {
        orte_errmgr_start_failed(job, notice.code, notice.text);
    }
    free(notice.text);
}

static void take_started(void *arg, orte_oob_message_t *message)
{
    orte_daemons_t *daemons = arg;
    orte_job_t *job;
    int number;

    if (orte_wire_unpack_number(message, 1, INT_MAX, &number) != OPAL_SUCCESS) {
        nonsense(daemons, message);
    } else if ((job = find_job(daemons, message, number)) != NULL) {
        orte_job_started(job);
    }
}

static void take_examined(void *arg, orte_oob_message_t *message)
{
    orte_daemons_t *daemons = arg;
    orte_wire_notice_t notice;

    if (orte_wire_unpack_notice(message, &notice) != OPAL_SUCCESS) {
        nonsense(daemons, message);
    } else if (notice.text == NULL) {
        orte_errmgr_examined(daemons->rt);
    } else {
        orte_report("%s", notice.text);
        free(notice.text);
    }
}

static void take_output(void *arg, orte_oob_message_t *message)
{
    orte_daemons_t *daemons = arg;
    orte_wire_stream_t stream;
    const uint8_t *data;
    size_t size;

    if (orte_wire_unpack_stream(message, &stream, &data, &size) != OPAL_SUCCESS) {
        nonsense(daemons, message);
        return;
    }
    orte_proc_t *proc = find_proc(daemons, message, stream.job, stream.rank);
    if (proc != NULL) {
        orte_iof_remote_output(daemons->rt->iof, proc, stream.is_stderr, data, size);
        orte_iof_remote_owes(daemons->rt->iof, message->from, stream.is_stderr, message->size);
    }
}

static void take_over(void *arg, orte_oob_message_t *message)
{
    orte_daemons_t *daemons = arg;
    orte_job_t *job;
    int number;

    orte_oob_consumed(daemons->rt->oob, message->from, message->size);
    if (orte_wire_unpack_number(message, 1, INT_MAX, &number) != OPAL_SUCCESS) {
        nonsense(daemons, message);
    } else if ((job = find_job(daemons, message, number)) != NULL) {
        orte_trace("job %d is over on %s", number, sender(daemons, message)->node->name);
        part_over(job, message->from, false);
    }
}

static void take_input_lost(void *arg, orte_oob_message_t *message)
{
    orte_daemons_t *daemons = arg;

    orte_iof_daemon_lost(daemons->rt->iof, message->from);
}

static const struct {
    uint16_t tag;
    orte_oob_handler_t handler;
} handlers[] = {
    {ORTE_WIRE_REPORT, take_report},
    {ORTE_WIRE_TOPOLOGY, take_topology},
    {ORTE_WIRE_START_FAILED, take_start_failed},
    {ORTE_WIRE_EXITED, take_exited},
    {ORTE_WIRE_ABORTED, take_aborted},
    {ORTE_WIRE_FAILED, take_failed},
    {ORTE_WIRE_STARTED, take_started},
    {ORTE_WIRE_EXAMINED, take_examined},
    {ORTE_WIRE_OUTPUT, take_output},
    {ORTE_WIRE_OVER, take_over},
    {ORTE_WIRE_INPUT_LOST, take_input_lost},
};

static int start_listening(orte_runtime_t *rt, const char **contact)
{
    char why[ORTE_OOB_SENTENCE];
    int rc = orte_oob_listen(rt->oob, contact, why);

    if (rc != OPAL_SUCCESS) {
        orte_report("no daemon can reach this host: %s", why);
    }
    return rc;
}

int orte_daemons_open(orte_runtime_t *rt, const uint8_t key[ORTE_OOB_KEY_BYTES], uint32_t radix,
                      const char **contact)
{
    orte_daemons_t *daemons = calloc(1, sizeof(*daemons));
    orte_oob_config_t config = {
        .index = 0, .count = rt->ndaemons, .radix = radix, .hostname = rt->hostname,
        .arg = daemons, .on_connected = connected, .on_lost = lost, .on_drained = drained,
        .on_refused = refused,
    };

    memcpy(config.key, key, sizeof(config.key));
    if (daemons == NULL ||
        (daemons->list = calloc(rt->ndaemons, sizeof(*daemons->list))) == NULL ||
        (rt->oob = orte_oob_create(rt->base, &config)) == NULL ||
        (rt->grpcomm = orte_grpcomm_create(rt->oob)) == NULL) {
        explicit_bzero(&config, sizeof(config));
        orte_report("no memory for connections to %u daemons", (unsigned)rt->ndaemons);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    explicit_bzero(&config, sizeof(config));
    daemons->rt = rt;
    rt->daemons = daemons;
    for (int i = 0; i < rt->nnodes; i++) {
        daemons->list[rt->nodes[i]->daemon].node = rt->nodes[i];
    }
    daemons->list[0].node = rt->self;
    int rc = orte_topology_digest(rt->self, daemons->digest);
    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
        orte_oob_handle(rt->oob, handlers[i].tag, handlers[i].handler, daemons);
    }
    orte_pmix_handle_messages(rt);
    return start_listening(rt, contact);
}

int orte_daemons_launch(orte_job_t *job)
{
    orte_runtime_t *rt = job->rt;
    orte_pack_t pack;

    if (rt->daemons == NULL) {
        return OPAL_SUCCESS;
    }
    job->has_part = calloc(rt->ndaemons, sizeof(*job->has_part));
    if (job->has_part == NULL) {
        orte_report("no memory to start the job on %u hosts", (unsigned)rt->ndaemons);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    orte_pack_init(&pack);
    orte_wire_pack_job(&pack, job);
    int rc = orte_oob_send_pack(rt->oob, ORTE_OOB_EVERYBODY, ORTE_WIRE_LAUNCH, ORTE_OOB_CONTROL,
                                &pack);
    if (rc != OPAL_SUCCESS) {
        orte_report("can't tell the daemons of the job: %s", opal_strerror(rc));
        return rc;
    }
    for (uint32_t i = 1; i < rt->ndaemons; i++) {
        if (!rt->daemons->list[i].lost) {
            job->has_part[i] = true;
            job->parts++;
            job->unstarted++;
        }
    }
    return OPAL_SUCCESS;
}

static void send_to_all(orte_runtime_t *rt, uint16_t tag, orte_pack_t *pack)
{
    int rc = orte_oob_send_pack(rt->oob, ORTE_OOB_EVERYBODY, tag, ORTE_OOB_CONTROL, pack);

    if (rc != OPAL_SUCCESS) {
        orte_trace("message %d could not be sent to all: %s", tag, opal_strerror(rc));
    }
}

static void tell_all(orte_runtime_t *rt, uint16_t tag, int number)
{
    orte_pack_t pack;

    if (rt->daemons == NULL) {
        return;
    }
    orte_pack_init(&pack);
    orte_pack_i32(&pack, number);
    send_to_all(rt, tag, &pack);
}

void orte_daemons_signal(orte_runtime_t *rt, int signal_number)
{
    tell_all(rt, ORTE_WIRE_SIGNAL, signal_number);
}

void orte_daemons_end(orte_job_t *job, bool hard)
{
    orte_pack_t pack;

    orte_plm_stop_starting(job->rt);
    if (job->rt->daemons == NULL) {
        return;
    }
    orte_pack_init(&pack);
    orte_wire_pack_end(&pack, job->number, hard);
    send_to_all(job->rt, ORTE_WIRE_END, &pack);
}

void orte_daemons_forget(orte_job_t *job)
{
    if (job->has_part != NULL) {
        tell_all(job->rt, ORTE_WIRE_FORGET, job->number);
    }
}

static bool has_any_part(const orte_runtime_t *rt, uint32_t index)
{
    const orte_job_t *job = rt->jobs;

    while (job != NULL && !has_part(job, index)) {
        job = job->next;
    }
    return job != NULL;
}

const char *orte_daemons_unfinished(const orte_runtime_t *rt)
{
    for (uint32_t i = 1; rt->daemons != NULL && i < rt->ndaemons; i++) {
        if (has_any_part(rt, i)) {
            return rt->daemons->list[i].node->name;
        }
    }
    return NULL;
}

int orte_daemons_examine(orte_runtime_t *rt, bool states, bool stacks)
{
    int asked = 0;

    if (rt->daemons == NULL) {
        return 0;
    }
    tell_all(rt, ORTE_WIRE_EXAMINE, (states ? 1 : 0) | (stacks ? 2 : 0));
    for (uint32_t i = 1; i < rt->ndaemons; i++) {
        asked += has_any_part(rt, i);
    }
    return asked;
}

void orte_daemons_output_lost(const orte_proc_t *proc, bool is_stderr)
{
    orte_wire_stream_t stream = {.job = proc->job->number, .rank = proc->rank,
                                 .is_stderr = is_stderr};
    orte_pack_t pack;

    orte_pack_init(&pack);
    orte_wire_pack_stream(&pack, &stream);
    orte_oob_send_pack(proc->job->rt->oob, proc->node->daemon, ORTE_WIRE_OUTPUT_LOST,
                       ORTE_OOB_CONTROL, &pack);
}

static void tell_lost(const orte_job_t *job, int rank, bool in_order)
{
    orte_wire_lost_t lost = {.rank = rank, .in_order = in_order, .nspace = job->nspace};
    orte_runtime_t *rt = job->rt;
    orte_pack_t pack;

    if (rt->daemons == NULL) {
        return;
    }
    orte_pack_init(&pack);
    orte_wire_pack_lost(&pack, &lost);
    orte_oob_send_pack(rt->oob, ORTE_OOB_EVERYBODY, ORTE_WIRE_LOST, ORTE_OOB_CONTROL, &pack);
}

void orte_daemons_proc_lost(const orte_proc_t *proc)
{
    orte_pmix_proc_lost(proc->job->rt, proc->job->nspace, proc->rank);
    tell_lost(proc->job, proc->rank, false);
}

void orte_daemons_proc_ended(const orte_proc_t *proc)
{
    orte_pmix_proc_ended(proc->job->nspace, proc->rank);
    tell_lost(proc->job, proc->rank, true);
}

void orte_daemons_job_over(const orte_job_t *job)
{
    orte_pmix_proc_lost(job->rt, job->nspace, ORTE_WIRE_ALL_RANKS);
    tell_lost(job, ORTE_WIRE_ALL_RANKS, false);
}

void orte_daemons_consumed(orte_runtime_t *rt, uint32_t index, size_t size)
{
    orte_oob_consumed(rt->oob, index, size);
}

void orte_daemons_leave(orte_runtime_t *rt, void (*done)(void *arg), void *arg)
{
    if (rt->daemons == NULL) {
        orte_queue_post(rt->queue, done, arg);
        return;
    }
    rt->daemons->leaving = true;
    tell_all(rt, ORTE_WIRE_LEAVE, 0);
    orte_plm_when_ended(rt, LEAVE_LIMIT_MS, done, arg);
}
