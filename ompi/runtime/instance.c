/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Bringing the library up and taking it down, for the first and the last instance (runtime.h). */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "ompi/attribute/attribute.h"
#include "ompi/communicator/communicator.h"
#include "ompi/datatype/datatype.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/group/group.h"
#include "ompi/info/info.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/mpi/c/state.h"
#include "ompi/op/op.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "ompi/runtime/params.h"
#include "ompi/runtime/rte.h"
#include "ompi/runtime/runtime.h"
#include "opal/mca/base/var.h"
#include "opal/runtime/opal.h"
#include "opal/runtime/progress.h"
#include "opal/util/output.h"

_Atomic int32_t ompi_door = OMPI_DOOR_CLOSED;
int ompi_thread_level = MPI_THREAD_SINGLE;

/* Held while the library goes up or down: others that want in wait. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool up;
static pid_t up_in;
static int instances;
static bool with_world; /* the world is one of those that have used the library since it came up */

/* The runtime starts behind the progress engine and ends before it: libpmix's thread may ring its
 * doorbell until then. How many processes share the processors is known only afterwards. */
static int start_progress(void)
{
    return opal_progress_init(ompi_thread_level == MPI_THREAD_MULTIPLE, false);
}

static int start_rte(void)
{
    int rc = ompi_rte_init();
    if (rc == OPAL_SUCCESS) {
        opal_progress_set_oversubscribed(ompi_rte.oversubscribed);
    }
    return rc;
}

static int start_pml(void)
{
    int rc = mca_pml_base_open();
    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    rc = mca_pml_base_select();
    if (rc != OPAL_SUCCESS) {
        mca_pml_base_close();
    }
    return rc;
}

static int publish(void)
{
    int rc = mca_pml_base_publish();
    return rc == OPAL_SUCCESS ? ompi_rte_commit() : rc;
}

static void proc_lost(ompi_proc_t *proc)
{
    if (!atomic_exchange(&proc->lost, true)) {
        atomic_fetch_add(&ompi_procs_lost, 1);
    }
    mca_pml.lost(proc);
}

static void take_loss(const char *nspace, uint32_t rank)
{
    if (rank == OMPI_RTE_ALL_RANKS) {
        ompi_job_over(nspace, proc_lost);
        return;
    }
    ompi_proc_t *proc = ompi_proc_of_name((mca_btl_name_t) ompi_rte_hash(nspace) << 32 | rank);
    if (proc && proc != ompi_proc_self()) {
        proc_lost(proc);
    }
}

static int watch_procs(void)
{
    ompi_rte_watch(take_loss);
    return OPAL_SUCCESS;
}

/* All components have registered what they know. */
static int check_parameters(void)
{
    return mca_base_var_check_unknown();
}

/* Nobody leaves while a peer may still wait for what this process has sent, or send to it. */
static void quiesce(void)
{
    int rc = mca_pml.drain(NULL) == MPI_SUCCESS ? ompi_rte_fence() : OPAL_ERROR;
    if (rc != OPAL_SUCCESS && rc != OPAL_ERR_PEER_FAILED) {
        opal_show_help("mpi:finalize",
                       "MPI could not end in good order: messages may have been lost.");
    }
}

/* Up in this order, down in the reverse one. Functions return OPAL_SUCCESS (which is MPI_SUCCESS)
 * or an error. */
static const struct {
    const char *what;
    int (*start)(void);
    void (*stop)(void);
} stages[] = {
    {"the portable base", opal_init, opal_finalize},
    {"parameters of the MPI layer", ompi_register_own_params, NULL},
    {"the progress engine", start_progress, opal_progress_finalize},
    {"the runtime", start_rte, ompi_rte_finalize},
    {"error handlers", NULL, ompi_errhandler_finalize},
    {"info objects", ompi_info_init, ompi_info_finalize},
    {"datatypes", ompi_datatype_init, ompi_datatype_finalize},
    {"attributes", ompi_attribute_init, ompi_attribute_finalize},
    {"operators", ompi_op_init, NULL},
    {"requests", ompi_request_module_init, ompi_request_module_finalize},
    {"groups", ompi_group_init, ompi_group_finalize},
    {"processes", ompi_proc_init, ompi_proc_finalize},
    {"point-to-point messages", start_pml, mca_pml_base_close},
    {"collectives", mca_coll_base_open, mca_coll_base_close},
    {"communicators", ompi_comm_init, ompi_comm_finalize},
    {"the publication of addresses", publish, NULL},
    {"the exchange of addresses", ompi_rte_begin, NULL},
    {"the watch over other processes", watch_procs, NULL},
    {"parameters", check_parameters, NULL},
    {"traffic", NULL, quiesce},
    {"the progress thread", opal_progress_thread_start, opal_progress_thread_stop},
};

enum { STAGES = sizeof stages / sizeof *stages };

static void stop_below(size_t stage)
{
    while (stage-- > 0) {
        if (stages[stage].stop) {
            stages[stage].stop();
        }
    }
}

/* A process whose threads may all call MPI mostly has one that does. With a thread of our own that makes progress there are two. */
static void let_be_alone(void)
{
    if (opal_progress_threads && !opal_progress_has_thread()) {
        opal_alone_begin();
    }
}

static int32_t door_unchecked(void)
{
    return ompi_mpi_param_check ? 0 : OMPI_DOOR_UNCHECKED;
}

ompi_enter_t ompi_enter_other(void)
{
    int32_t alone = OMPI_DOOR_ALONE | door_unchecked();
    if (!ompi_runtime_active()) {
        return OMPI_ENTER_NOT;
    }
    opal_alone_end();
    atomic_compare_exchange_strong(&ompi_door, &alone, OMPI_DOOR_OPEN | door_unchecked());
    return ompi_mpi_param_check ? OMPI_ENTER_CHECK : OMPI_ENTER_PASS;
}

/* With the lock held. */
static void take_down(void)
{
    up = with_world = false;
    opal_alone_end();
    stop_below(STAGES);
}

/* Sessions alone, before the world or after it, do not take the library down, as that waits for the whole job and a process may
 * open a session again that others do not: the end of the process does. */
static void at_exit(void)
{
    if (up_in != getpid()) {
        return; /* it is our parent's, which goes on */
    }
    pthread_mutex_lock(&lock);
    if (up && instances == 0) {
        take_down();
    }
    pthread_mutex_unlock(&lock);
}

static int bring_up(int thread_level)
{
    static bool registered;
    ompi_thread_level = thread_level;
    for (size_t stage = 0; stage < STAGES; stage++) {
        if (stages[stage].start && stages[stage].start() != OPAL_SUCCESS) {
            stop_below(stage);
            return ompi_error(MPI_ERR_OTHER, "%s could not be started", stages[stage].what);
        }
    }
    registered = registered || atexit(at_exit) == 0;
    up = true;
    up_in = getpid();
    let_be_alone();
    return MPI_SUCCESS;
}

int ompi_instance_acquire(int thread_level)
{
    pthread_mutex_lock(&lock);
    if (up && !opal_alone_is_self()) {
        opal_alone_end();
    }
    int rc = up ? MPI_SUCCESS : bring_up(thread_level);
    if (rc == MPI_SUCCESS) {
        const int32_t world = atomic_load(&ompi_world_state);
        instances++;
        with_world = with_world || (world >= OMPI_WORLD_STARTING && world < OMPI_WORLD_ENDED);
        atomic_store(&ompi_door, (opal_alone_is_self() ? OMPI_DOOR_ALONE : OMPI_DOOR_OPEN) | door_unchecked());
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

int ompi_instance_release(void)
{
    pthread_mutex_lock(&lock);
    bool last = --instances == 0;
    if (last) {
        atomic_store(&ompi_door, OMPI_DOOR_CLOSED);
    }
    if (last && with_world) {
        take_down();
    }
    pthread_mutex_unlock(&lock);
    return MPI_SUCCESS;
}
