/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * plm: process lifecycle management. Sees to it that every node that a job may use has something
 * that can start processes and tells its cpus: mpirun itself on its own node, a daemon (orted) on
 * all others.
 *
 * Daemons are started along the tree of orte/oob: mpirun starts its children in it, and each daemon
 * its own as soon as it is connected. What starts one is an *agent*: a local process such as ssh,
 * whose standard input carries all that the daemon must know (the key of the job among it: nothing
 * secret stands in a command line or an environment), and whose output is what the daemon says
 * before it is connected. An agent lives as long as its daemon.
 *
 * A component knows one kind of agent. The base picks the component, writes the input, keeps the
 * number of agents that are under way below the component's limit, and tells the user which host
 * could not be had, why, and what to do.
 */
#ifndef ORTE_MCA_PLM_PLM_H
#define ORTE_MCA_PLM_PLM_H

#include "hawser/component.h"
#include "orte/oob/oob.h"
#include "orte/runtime/runtime.h"

#define ORTE_PLM_CONTRACT_MAJOR 1
#define ORTE_PLM_CONTRACT_MINOR 0

typedef struct orte_plm orte_plm_t;

/* Where daemon number `index` is to run. */
typedef struct {
    char *name;
    char *user; /* NULL: ours */
    int port;   /* 0: the usual one */
} orte_plm_host_t;

/* What a component's `ops` points to. */
typedef struct {
    int priority;
    /* NULL: usable here. Else why not: a clause for the user. */
    const char *(*unusable)(void);
    /* One agent starts all children of mpirun, or of a daemon, at once. */
    bool all_at_once;
    /* Agents that may be under way at a time. */
    int (*concurrency)(void);
    /* The command that starts the daemon on this host (all_at_once: on all of them; `host` is an
     * array then). NULL after a report. To be freed with opal_argv_free(). `orted`: the daemon's
     * path there. */
    char **(*command)(const orte_plm_host_t *host, uint32_t count, const char *orted);
    /* The agent ended with this status (as from waitpid) before its daemon was connected; `line` is
     * the last line of its output, "" if none, `said` the end of all of it. Write a sentence for the user, with the host's name.
     * False: there is nothing to add to what the base says. */
    bool (*explain)(const orte_plm_host_t *host, int status, const char *line, const char *said,
                    char *text, size_t size);
    /* Does what a living agent of several daemons has said show that one of them will never call back? NULL: it can't be
     * seen. */
    bool (*hopeless)(const char *said);
} orte_plm_module_t;

/* Exit code of a daemon that could not start and has said why in one line. */
enum { ORTE_PLM_DAEMON_REFUSED = 3 };

/* Everything that a daemon is told at its start. */
typedef struct {
    uint32_t index, count, radix; /* index ORTE_OOB_NONE: found by the host's name in Slurm */
    char key[ORTE_OOB_KEY_TEXT];
    char *session;          /* id */
    char *contact;          /* of its parent */
    char *orted;            /* path of the daemon */
    char *component;        /* of plm that started it, and is to start its children */
    orte_plm_host_t *hosts; /* by index; entry 0 is mpirun's */
    char **environ;         /* parameters: NAME=value */
    bool verbose;
} orte_plm_orders_t;

ORTE_DECLSPEC int orte_plm_register_params(void);
ORTE_DECLSPEC void orte_plm_orders_free(orte_plm_orders_t *orders);
/* The text for a daemon's standard input: a line with the version and their size, then the
 * packed orders. */
ORTE_DECLSPEC void orte_plm_pack_orders(orte_pack_t *pack, const orte_plm_orders_t *orders);
/* Is this all of them? */
ORTE_DECLSPEC bool orte_plm_orders_complete(const uint8_t *data, size_t size);
/* The reverse. OPAL_ERR_NOT_SUPPORTED: of another version, which *version (static) names;
 * OPAL_ERR_PARSE: no orders at all. */
ORTE_DECLSPEC int orte_plm_unpack_orders(const uint8_t *data, size_t size,
                                         orte_plm_orders_t *orders, const char **version);

/* Step DAEMONS of a job, in mpirun: leads to MAP when all daemons are there. OPAL_ERR_* after a
 * report. */
ORTE_DECLSPEC int orte_plm_launch_daemons(orte_job_t *job);

/* Start the children of this daemon in the tree. Takes the orders, which say what is the same for
 * all; `contact` is ours. OPAL_ERR_* after a report. */
ORTE_DECLSPEC int orte_plm_start_children(orte_runtime_t *rt, orte_plm_orders_t *orders,
                                          const char *contact);
/* Choose the component: by name, or the best one that is usable (NULL). NULL after a report. */
ORTE_DECLSPEC const orte_plm_module_t *orte_plm_select(const char *name, const char **chosen);
/* From oob: a child has connected. */
ORTE_DECLSPEC void orte_plm_connected(orte_runtime_t *rt, uint32_t index);
/* A child process was waited for. True if it was an agent. */
ORTE_DECLSPEC bool orte_plm_child_ended(orte_runtime_t *rt, pid_t pid, int status);
ORTE_DECLSPEC bool orte_plm_is_agent(const orte_runtime_t *rt, pid_t pid);
/* Give up what is not connected yet: its agents are ended. */
ORTE_DECLSPEC void orte_plm_stop_starting(orte_runtime_t *rt);
/* End the agent of a daemon that is lost. */
ORTE_DECLSPEC void orte_plm_forget(orte_runtime_t *rt, uint32_t index);
/* Call done(arg) from the loop once no agent is left; those that still live after `limit_ms` are
 * ended. */
ORTE_DECLSPEC void orte_plm_when_ended(orte_runtime_t *rt, int limit_ms, void (*done)(void *arg),
                                       void *arg);

#endif
