/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dynamic processes: MPI_Comm_spawn. The parents' root opens a port, has the launcher start the
 * children with the port's name in their environment, and accepts; the children connect in
 * MPI_Init.
 */
#include "ompi/communicator/dynamic.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ompi/communicator/port.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/info/info.h"
#include "ompi/mpi/c/bodies.h"
#include "ompi/runtime/names.h"
#include "ompi/runtime/spawn.h"
#include "opal/util/argv.h"

static _Atomic(ompi_communicator_t *) parent_comm;

enum { SECRET_NAME_MAX = MPI_MAX_PORT_NAME + sizeof OMPI_SPAWN_SECRET_SUFFIX };

/* ---- Children ---- */

int ompi_comm_connect_parent(void)
{
    const char *given = getenv(OMPI_SPAWN_PORT_ENV);
    ompi_communicator_t *comm = NULL;
    if (!given || ompi_rte.singleton) {
        return MPI_SUCCESS;
    }
    char *port = strdup(given);
    if (!port) {
        return MPI_ERR_NO_MEM;
    }
    unsetenv(OMPI_SPAWN_PORT_ENV); /* programs that this process starts by itself are not its parents' */
    int rc = ompi_mpi_comm_connect(port, NULL, 0, &ompi_comm_world, &comm);
    free(port);
    if (rc == MPI_SUCCESS) {
        snprintf(comm->name, sizeof comm->name, "MPI_COMM_PARENT");
        atomic_store(&parent_comm, comm);
    }
    return rc;
}

void ompi_comm_forget_parent(const ompi_communicator_t *comm)
{
    ompi_communicator_t *known = atomic_load(&parent_comm);
    if (known == comm) {
        atomic_compare_exchange_strong(&parent_comm, &known, NULL);
    }
}

int ompi_mpi_comm_get_parent(ompi_communicator_t **parent)
{
    *parent = atomic_load(&parent_comm);
    return MPI_SUCCESS;
}

/* ---- Parents ---- */

/* One program with what its info says; the strings are to be freed. */
typedef struct order {
    ompi_spawn_app_t app;
    char *command, *env, *hints[OMPI_SPAWN_HINTS];
} order_t;

/* Info key "path" (MPI-5.0, 11.8.4): folders in which the program is looked for; all hosts are
 * taken to have the same. NULL: no memory. */
static char *find_command(const char *command, ompi_info_t *info)
{
    char *path = strchr(command, '/') ? NULL : ompi_info_value(info, "path");
    char **folders = path ? opal_argv_split(path, ':') : NULL, *found = NULL;
    for (char **folder = folders; folder && *folder && !found; folder++) {
        if (asprintf(&found, "%s/%s", *folder, command) < 0) {
            found = NULL;
        } else if (access(found, X_OK) != 0) {
            free(found);
            found = NULL;
        }
    }
    opal_argv_free(folders);
    free(path);
    return found ? found : strdup(command);
}

/* What programs written for Open MPI say, "npernode", "pernode" and "ppr" apart. */
static const char *const hint_names[OMPI_SPAWN_HINTS][2] = {
    [OMPI_SPAWN_WDIR] = {"wdir"},
    [OMPI_SPAWN_HOST] = {"host"},
    [OMPI_SPAWN_HOSTFILE] = {"hostfile"},
    [OMPI_SPAWN_ADD_HOST] = {"add-host", "add_host"},
    [OMPI_SPAWN_ADD_HOSTFILE] = {"add-hostfile", "add_hostfile"},
    [OMPI_SPAWN_MAP_BY] = {"map_by", "map-by"},
    [OMPI_SPAWN_RANK_BY] = {"rank_by", "rank-by"},
    [OMPI_SPAWN_BIND_TO] = {"bind_to", "bind-to"},
};

/* "npernode" N and "pernode" true: so many on each host; "ppr" N:OBJECT: on each such object. NULL: none of
 * these, or no memory. */
static char *map_per_node(ompi_info_t *info)
{
    char *number = ompi_info_value(info, "npernode"), *ppr = ompi_info_value(info, "ppr");
    char *pernode = ompi_info_value(info, "pernode"), *found = NULL;
    int length = 0;
    if (number) {
        length = asprintf(&found, "ppr:%s:node", number);
    } else if (ppr) {
        length = asprintf(&found, "ppr:%s", ppr);
    } else if (pernode && strcmp(pernode, "true") == 0) {
        length = asprintf(&found, "ppr:1:node");
    }
    free(number);
    free(ppr);
    free(pernode);
    return length < 0 ? NULL : found;
}

/* Lines NAME=value: those of key "env", and the error handler to start with. NULL: none, or no memory. */
static char *environment(ompi_info_t *info)
{
    char *env = ompi_info_value(info, "env"), *handler = ompi_info_value(info, "mpi_initial_errhandler"), *both = NULL;
    if (handler && asprintf(&both, "%s%sOMPI_MCA_mpi_initial_errhandler=%s", env ? env : "", env ? "\n" : "", handler) < 0) {
        both = NULL;
    }
    free(handler);
    if (both) {
        free(env);
    }
    return both ? both : env;
}

static int fill_in(order_t *order, const char *command, char **args, int maxprocs,
                   ompi_info_t *info)
{
    if (maxprocs < 1) {
        return ompi_error(MPI_ERR_ARG, "maxprocs is %d for %s", maxprocs, command);
    }
    order->command = find_command(command, info);
    if (!order->command) {
        return MPI_ERR_NO_MEM;
    }
    order->env = environment(info);
    order->app = (ompi_spawn_app_t) {
        .command = order->command, .args = args, .maxprocs = maxprocs, .env = order->env};
    for (int i = 0; i < OMPI_SPAWN_HINTS; i++) {
        order->hints[i] = ompi_info_value(info, hint_names[i][0]);
        if (!order->hints[i] && hint_names[i][1]) {
            order->hints[i] = ompi_info_value(info, hint_names[i][1]);
        }
        if (!order->hints[i] && i == OMPI_SPAWN_MAP_BY) {
            order->hints[i] = map_per_node(info);
        }
        order->app.hints[i] = order->hints[i];
    }
    return MPI_SUCCESS;
}

static int launch_error(int rc, const char *command)
{
    switch (rc) {
    case OPAL_SUCCESS:
        return MPI_SUCCESS;
    case OPAL_ERR_OUT_OF_RESOURCE:
        return MPI_ERR_NO_MEM;
    case OPAL_ERR_NOT_SUPPORTED:
        return ompi_error(MPI_ERR_SPAWN, "%s can't be started: %s", command,
                          ompi_rte.singleton ? "this process was started without mpirun"
                                             : "the launcher does not start programs for programs");
    default:
        return ompi_error(MPI_ERR_SPAWN, "%s can't be started: the launcher says: %s", command,
                          ompi_spawn_why());
    }
}

/* What MPI_Comm_spawn_multiple gets, at the root. */
typedef struct spawn {
    int count;
    char **commands, ***args;
    const int *maxprocs;
    const MPI_Info *infos;
} spawn_t;

static int launch(const spawn_t *spawn, const char *port)
{
    order_t *orders = calloc((size_t) spawn->count, sizeof *orders);
    ompi_spawn_app_t *apps = calloc((size_t) spawn->count, sizeof *apps);
    char setting[MPI_MAX_PORT_NAME + sizeof OMPI_SPAWN_PORT_ENV + 1];
    int rc = orders && apps ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    for (int i = 0; i < spawn->count && rc == MPI_SUCCESS; i++) {
        rc = fill_in(&orders[i], spawn->commands[i], spawn->args ? spawn->args[i] : NULL,
                     spawn->maxprocs[i], ompi_info_from_handle(spawn->infos[i]));
        apps[i] = orders[i].app;
    }
    if (rc == MPI_SUCCESS) {
        snprintf(setting, sizeof setting, OMPI_SPAWN_PORT_ENV "=%s", port);
        rc = launch_error(ompi_spawn(apps, spawn->count, setting), apps[0].command);
    }
    for (int i = 0; orders && i < spawn->count; i++) {
        free(orders[i].command);
        free(orders[i].env);
        for (int k = 0; k < OMPI_SPAWN_HINTS; k++) {
            free(orders[i].hints[k]);
        }
    }
    free(orders);
    free(apps);
    return rc;
}

static void fill_codes(int *codes, int count, int code)
{
    for (int i = 0; codes && i < count; i++) {
        codes[i] = code;
    }
}

static void name_secret(const char *port, char name[SECRET_NAME_MAX])
{
    snprintf(name, SECRET_NAME_MAX, "%s" OMPI_SPAWN_SECRET_SUFFIX, port);
}

/* `port` is to be left, whatever is returned. */
static int launch_at_port(const spawn_t *spawn, char *port)
{
    char name[SECRET_NAME_MAX];
    int rc = ompi_mpi_open_port(NULL, port);
    if (rc == MPI_ERR_UNSUPPORTED_OPERATION) {
        return launch_error(OPAL_ERR_NOT_SUPPORTED, spawn->commands[0]);
    }
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    name_secret(port, name);
    if (ompi_names_publish(name, ompi_rte.secret, sizeof ompi_rte.secret) != OPAL_SUCCESS) {
        return ompi_error(MPI_ERR_SPAWN, "the job's secret can't be published for the children: "
                          "the launcher says: %s", ompi_names_why());
    }
    return launch(spawn, port);
}

static void leave_port(const char *port)
{
    char name[SECRET_NAME_MAX];
    if (*port) {
        name_secret(port, name);
        ompi_names_unpublish(name);
        ompi_mpi_close_port(port);
    }
}

/* How many processes there were to be. */
static int32_t sum_of(const spawn_t *spawn)
{
    int32_t sum = 0;
    for (int i = 0; i < spawn->count; i++) {
        sum += spawn->maxprocs[i] > 0 ? spawn->maxprocs[i] : 0;
    }
    return sum;
}

/* All or none are started, so that every process has the same code. Only the root knows how many there were to be: it
 * tells the others, `failure` or not. */
static int spawn_all(const spawn_t *spawn, int root, int failure, ompi_communicator_t *comm,
                     ompi_communicator_t **intercomm, int *codes)
{
    char port[MPI_MAX_PORT_NAME] = "";
    if (ompi_comm_is_inter(comm)) { /* before any child is started */
        return ompi_error(MPI_ERR_COMM, "it is an intercommunicator");
    }
    bool begin = comm->my_rank == root && failure == MPI_SUCCESS;
    int32_t wanted = begin ? sum_of(spawn) : 0;
    int rc = begin ? launch_at_port(spawn, port) : failure;
    rc = ompi_port_accept(port, NULL, root, comm, rc, &wanted, intercomm);
    if (begin) {
        leave_port(port);
    }
    fill_codes(codes, wanted, rc == MPI_SUCCESS ? MPI_SUCCESS : MPI_ERR_SPAWN);
    return rc;
}

int ompi_mpi_comm_spawn(const char *command, char *argv[], int maxprocs, ompi_info_t *info,
                        int root, ompi_communicator_t *comm, ompi_communicator_t **intercomm,
                        int array_of_errcodes[])
{
    char *commands[] = {(char *) command};
    char **args[] = {argv};
    const MPI_Info infos[] = {ompi_info_handle(info)};
    const spawn_t spawn = {
        .count = 1, .commands = commands, .args = args, .maxprocs = &maxprocs, .infos = infos};
    return spawn_all(&spawn, root, MPI_SUCCESS, comm, intercomm, array_of_errcodes);
}

static int check_arrays(const spawn_t *spawn)
{
    if (spawn->count < 1) {
        return ompi_error(MPI_ERR_COUNT, "count is %d", spawn->count);
    }
    if (!spawn->commands || !spawn->maxprocs || !spawn->infos) {
        return ompi_error(MPI_ERR_ARG, "an array is NULL");
    }
    for (int i = 0; i < spawn->count; i++) {
        if (!spawn->commands[i]) {
            return ompi_error(MPI_ERR_ARG, "array_of_commands[%d] is NULL", i);
        }
    }
    return MPI_SUCCESS;
}

int ompi_mpi_comm_spawn_multiple(int count, char *array_of_commands[], char **array_of_argv[],
                                 const int array_of_maxprocs[], const MPI_Info array_of_info[],
                                 int root, ompi_communicator_t *comm,
                                 ompi_communicator_t **intercomm, int array_of_errcodes[])
{
    const spawn_t spawn = {.count = count, .commands = array_of_commands, .args = array_of_argv,
                           .maxprocs = array_of_maxprocs, .infos = array_of_info};
    int rc = comm->my_rank == root ? check_arrays(&spawn) : MPI_SUCCESS;
    return spawn_all(&spawn, root, rc, comm, intercomm, array_of_errcodes);
}
