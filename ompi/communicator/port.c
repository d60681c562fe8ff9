/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports and service names, over the launcher's name service.
 *
 * A port P is open while the name P is published. A process that accepts publishes the name
 * P.accept with a ticket, which is used once. Whoever connects takes the ticket by publishing
 * P.TICKET.taken, which only one can do, and sees that P.accept still offers it: else the mark may
 * be that of a ticket used up long ago, whose first taker has cleared its own. Then the two swap
 * texts under P.TICKET.a0, P.TICKET.c0, P.TICKET.a1 ...; a text is taken back when the other side's
 * next one shows that it has been read, and P.accept when P.TICKET.c0 has come.
 */
#include "ompi/communicator/port.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "ompi/communicator/meet.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/info/info.h"
#include "ompi/mpi/c/bodies.h"
#include "ompi/runtime/names.h"
#include "opal/mca/base/var.h"
#include "opal/runtime/progress.h"

#define PORT_PREFIX "hawser-port:"
#define SERVICE_PREFIX "hawser-service:"

enum { NAME_ROOM = MPI_MAX_PORT_NAME + 64 }; /* a port, a ticket and what stands behind them */

static int64_t connect_timeout;

int ompi_port_register_params(void)
{
    static const mca_base_var_desc_t desc = {
        .framework = "mpi",
        .name = "connect_timeout",
        .help = "How long MPI_Comm_connect waits for the other side to accept; 0: without limit. "
                "Info key timeout (in seconds) is stronger; it holds for MPI_Comm_accept as well, "
                "which otherwise waits without limit",
        .type = MCA_VAR_INT,
        .unit = "s",
        .level = MCA_VAR_LEVEL_TUNER,
        .def.i = 600,
        .min = 0,
        .max = INT32_MAX,
    };

    return mca_base_var_register(&desc, &connect_timeout);
}

/* ---- What the name service says, in MPI's words ---- */

static int service_error(int rc, int not_found, const char *what, const char *name)
{
    switch (rc) {
    case OPAL_SUCCESS:
        return MPI_SUCCESS;
    case OPAL_ERR_NOT_SUPPORTED:
        return ompi_error(MPI_ERR_UNSUPPORTED_OPERATION,
                          "%s: there is no name service: %s", what,
                          ompi_rte.singleton ? "this process was started without mpirun"
                                             : "the launcher offers none through PMIx");
    case OPAL_ERR_OUT_OF_RESOURCE:
        return MPI_ERR_NO_MEM;
    case OPAL_ERR_BAD_PARAM:
        return ompi_error(not_found, "%s: the name is too long: \"%.40s...\"", what, name);
    case OPAL_ERR_NOT_FOUND:
        return ompi_error(not_found, "%s: nobody has published \"%s\"", what, name);
    case OPAL_ERR_EXISTS:
        return ompi_error(not_found, "%s: \"%s\" is published already", what, name);
    case OPAL_ERR_TIMEOUT:
        return ompi_error(not_found, "%s: nobody was there at \"%s\" in the time allowed", what,
                          name);
    default:
        return ompi_error(MPI_ERR_OTHER, "%s: the launcher's name service says: %s", what,
                          ompi_names_why());
    }
}

/* ---- Opening and closing ---- */

int ompi_mpi_open_port(ompi_info_t *info, char *port_name)
{
    static _Atomic uint32_t opened;
    char name[MPI_MAX_PORT_NAME];
    (void) info; /* ip_port and ip_address, the standard's keys, say nothing to a name service */
    int len = snprintf(name, sizeof name, PORT_PREFIX "%s.%" PRIu32 ".%" PRIu32, ompi_rte.nspace,
                       ompi_rte.rank, atomic_fetch_add(&opened, 1));
    if (len >= (int) sizeof name) {
        return ompi_error(MPI_ERR_OTHER, "the job's name is too long: %s", ompi_rte.nspace);
    }
    int rc = ompi_names_publish(name, "open", strlen("open"));
    if (rc != OPAL_SUCCESS) {
        return service_error(rc, MPI_ERR_PORT, "opening a port", name);
    }
    memcpy(port_name, name, (size_t) len + 1);
    return MPI_SUCCESS;
}

static bool is_port(const char *name)
{
    return strncmp(name, PORT_PREFIX, strlen(PORT_PREFIX)) == 0 &&
           strnlen(name, MPI_MAX_PORT_NAME) < MPI_MAX_PORT_NAME;
}

int ompi_mpi_close_port(const char *port_name)
{
    if (!is_port(port_name)) {
        return ompi_error(MPI_ERR_PORT, "not the name of a port: \"%.60s\"", port_name);
    }
    int rc = ompi_names_unpublish(port_name);
    return rc == OPAL_ERR_NOT_FOUND
               ? ompi_error(MPI_ERR_PORT, "this process has no open port \"%s\"", port_name)
               : service_error(rc, MPI_ERR_PORT, "closing a port", port_name);
}

/* ---- A line between the two roots ---- */

typedef struct line {
    const char *port;
    uint64_t ticket;
    uint64_t deadline_ns;
    char mine, theirs; /* 'a' and 'c': the side that accepts, and the one that connects */
    bool offered;      /* P.accept shows our ticket */
    int round;
} line_t;

static void name_text(const line_t *line, char side, int round, char *name)
{
    snprintf(name, NAME_ROOM, "%s.%016" PRIx64 ".%c%d", line->port, line->ticket, side, round);
}

static void name_taken(const line_t *line, char *name)
{
    snprintf(name, NAME_ROOM, "%s.%016" PRIx64 ".taken", line->port, line->ticket);
}

static void name_accept(const line_t *line, char *name)
{
    snprintf(name, NAME_ROOM, "%s.accept", line->port);
}

static void withdraw(line_t *line)
{
    char name[NAME_ROOM];
    if (line->offered) {
        name_accept(line, name);
        ompi_names_unpublish(name);
        line->offered = false;
    }
}

static void take_back(const line_t *line, int round)
{
    char name[NAME_ROOM];
    if (round >= 0) {
        name_text(line, line->mine, round, name);
        ompi_names_unpublish(name);
    }
}

/* The meeting's swap. */
static int swap(void *context, const char *mine, char **theirs)
{
    line_t *line = context;
    char name[NAME_ROOM];
    size_t len;
    name_text(line, line->mine, line->round, name);
    int rc = ompi_names_publish(name, mine, strlen(mine));
    if (rc == OPAL_SUCCESS) {
        name_text(line, line->theirs, line->round, name);
        rc = ompi_names_lookup(name, line->deadline_ns, theirs, &len);
    }
    withdraw(line); /* whoever connects has seen it, or won't any more */
    if (rc == OPAL_SUCCESS) {
        take_back(line, line->round - 1);
        line->round++;
    }
    return service_error(rc, MPI_ERR_PORT, "meeting the other side", line->port);
}

/* `otherwise`: seconds, 0 for no limit, if the info says nothing. */
static uint64_t deadline(ompi_info_t *info, int64_t otherwise)
{
    char *text = ompi_info_value(info, "timeout");
    int64_t seconds = text && atoll(text) > 0 ? atoll(text) : otherwise;
    free(text);
    return seconds <= 0 || seconds > INT32_MAX
               ? OMPI_NAMES_FOREVER
               : opal_now_ns() + (uint64_t) seconds * 1000000000u;
}

/* "mpirun-PID-ID." is what the names of one mpirun's jobs have in common; other launchers name theirs in other ways. */
static bool is_of_another_mpirun(const char *port)
{
    static const char ours[] = "mpirun-";
    const char *job = port + strlen(PORT_PREFIX);
    return strncmp(job, ours, strlen(ours)) == 0 &&
           strncmp(job, ompi_rte.nspace, strcspn(ompi_rte.nspace, ".") + 1) != 0;
}

static int not_open(const char *port)
{
    return is_of_another_mpirun(port)
               ? ompi_error(MPI_ERR_PORT, "port \"%s\" belongs to another mpirun: ports reach jobs of the same mpirun only, "
                            "which MPI_Comm_spawn starts", port)
               : ompi_error(MPI_ERR_PORT, "port \"%s\" is not open", port);
}

static int check_open(const char *port)
{
    char *data = NULL;
    size_t len;
    if (!is_port(port)) {
        return ompi_error(MPI_ERR_PORT, "not the name of a port: \"%.60s\"", port);
    }
    int rc = ompi_names_lookup(port, OMPI_NAMES_DONT_WAIT, &data, &len);
    free(data);
    return rc == OPAL_ERR_NOT_FOUND ? not_open(port)
                                    : service_error(rc, MPI_ERR_PORT, "looking up a port", port);
}

/* Offer a ticket and wait until somebody takes it. */
static int offer(line_t *line)
{
    char name[NAME_ROOM], taken[NAME_ROOM], ticket[32], *data = NULL;
    size_t len;
    if (getrandom(&line->ticket, sizeof line->ticket, 0) != (ssize_t) sizeof line->ticket) {
        return ompi_error(MPI_ERR_OTHER, "the system gives no random numbers");
    }
    name_accept(line, name);
    name_taken(line, taken);
    snprintf(ticket, sizeof ticket, "%016" PRIx64, line->ticket);
    int rc = ompi_names_publish(name, ticket, strlen(ticket));
    if (rc == OPAL_ERR_EXISTS) {
        return ompi_error(MPI_ERR_PORT, "port \"%s\" is being accepted on already", line->port);
    }
    if (rc == OPAL_SUCCESS) {
        line->offered = true;
        rc = ompi_names_lookup(taken, line->deadline_ns, &data, &len);
        free(data);
    }
    if (rc != OPAL_SUCCESS) {
        withdraw(line);
    }
    return service_error(rc, MPI_ERR_PORT, "accepting", line->port);
}

static int read_offer(const line_t *line, uint64_t deadline_ns, uint64_t *ticket)
{
    char name[NAME_ROOM], *data = NULL;
    size_t len;
    name_accept(line, name);
    int rc = ompi_names_lookup(name, deadline_ns, &data, &len);
    *ticket = rc == OPAL_SUCCESS ? strtoull(data, NULL, 16) : 0;
    free(data);
    return rc;
}

/* OPAL_ERR_EXISTS: somebody else has taken it, or it is offered no more. */
static int take_this(const line_t *line)
{
    char taken[NAME_ROOM];
    uint64_t offered;
    name_taken(line, taken);
    int rc = ompi_names_publish(taken, "", 0);
    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    rc = read_offer(line, OMPI_NAMES_DONT_WAIT, &offered);
    if (rc == OPAL_SUCCESS && offered == line->ticket) {
        return OPAL_SUCCESS;
    }
    ompi_names_unpublish(taken);
    return rc == OPAL_SUCCESS || rc == OPAL_ERR_NOT_FOUND ? OPAL_ERR_EXISTS : rc;
}

/* Take the first ticket that nobody else takes. One that is taken already is soon gone. */
static int take(line_t *line)
{
    int rc;
    do {
        rc = read_offer(line, line->deadline_ns, &line->ticket);
        if (rc == OPAL_SUCCESS) {
            rc = take_this(line);
        }
    } while (rc == OPAL_ERR_EXISTS);
    return service_error(rc, MPI_ERR_PORT, "connecting", line->port);
}

/* All texts have been read: the sides have talked over their communicator. */
static void clear(const line_t *line)
{
    char name[NAME_ROOM];
    take_back(line, line->round - 1);
    if (line->mine == 'c') {
        name_taken(line, name);
        ompi_names_unpublish(name);
    }
}

static int connect_sides(line_t *line, int root, ompi_communicator_t *comm, int failure,
                         int32_t *note, ompi_communicator_t **newcomm)
{
    const ompi_meeting_t meeting = {
        .swap = swap, .context = line, .failure = failure, .note = note};
    int rc = ompi_comm_connect_meeting(comm, root, &meeting, newcomm);
    withdraw(line); /* if it failed before the first swap */
    if (rc == MPI_SUCCESS && comm->my_rank == root) {
        clear(line);
    }
    return rc;
}

static int check_intra(const ompi_communicator_t *comm)
{
    return ompi_comm_is_inter(comm) ? ompi_error(MPI_ERR_COMM, "it is an intercommunicator")
                                    : MPI_SUCCESS;
}

int ompi_port_accept(const char *port_name, ompi_info_t *info, int root, ompi_communicator_t *comm,
                     int failure, int32_t *note, ompi_communicator_t **newcomm)
{
    line_t line = {.port = port_name, .mine = 'a', .theirs = 'c'};
    int rc = check_intra(comm);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    if (comm->my_rank == root && failure == MPI_SUCCESS) {
        line.deadline_ns = deadline(info, 0);
        failure = offer(&line);
    }
    return connect_sides(&line, root, comm, failure, note, newcomm);
}

int ompi_mpi_comm_accept(const char *port_name, ompi_info_t *info, int root,
                         ompi_communicator_t *comm, ompi_communicator_t **newcomm)
{
    int rc = comm->my_rank == root ? check_open(port_name) : MPI_SUCCESS;
    return ompi_port_accept(port_name, info, root, comm, rc, NULL, newcomm);
}

int ompi_mpi_comm_connect(const char *port_name, ompi_info_t *info, int root,
                          ompi_communicator_t *comm, ompi_communicator_t **newcomm)
{
    line_t line = {.port = port_name, .mine = 'c', .theirs = 'a'};
    int rc = check_intra(comm);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    if (comm->my_rank == root) {
        line.deadline_ns = deadline(info, connect_timeout);
        rc = check_open(port_name);
        rc = rc == MPI_SUCCESS ? take(&line) : rc;
    }
    return connect_sides(&line, root, comm, rc, NULL, newcomm);
}

/* ---- Services: names for ports ---- */

static char *service_key(const char *service)
{
    char *key;
    return asprintf(&key, SERVICE_PREFIX "%s", service) < 0 ? NULL : key;
}

int ompi_mpi_publish_name(const char *service_name, ompi_info_t *info, const char *port_name)
{
    char *key = service_key(service_name);
    (void) info;
    int rc = key ? ompi_names_publish(key, port_name, strlen(port_name)) : OPAL_ERR_OUT_OF_RESOURCE;
    free(key);
    return service_error(rc, MPI_ERR_SERVICE, "publishing a service", service_name);
}

int ompi_mpi_lookup_name(const char *service_name, ompi_info_t *info, char *port_name)
{
    char *key = service_key(service_name), *port = NULL;
    size_t len;
    (void) info;
    int rc = key ? ompi_names_lookup(key, OMPI_NAMES_DONT_WAIT, &port, &len)
                 : OPAL_ERR_OUT_OF_RESOURCE;
    free(key);
    if (rc == OPAL_SUCCESS) {
        snprintf(port_name, MPI_MAX_PORT_NAME, "%s", port);
    }
    free(port);
    return service_error(rc, MPI_ERR_NAME, "looking up a service", service_name);
}

int ompi_mpi_unpublish_name(const char *service_name, ompi_info_t *info, const char *port_name)
{
    char *key = service_key(service_name);
    (void) info;
    (void) port_name;
    int rc = key ? ompi_names_unpublish(key) : OPAL_ERR_OUT_OF_RESOURCE;
    free(key);
    return rc == OPAL_ERR_NOT_FOUND
               ? ompi_error(MPI_ERR_SERVICE, "this process has not published \"%s\"", service_name)
               : service_error(rc, MPI_ERR_SERVICE, "unpublishing a service", service_name);
}
