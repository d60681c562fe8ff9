/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * ras: resource allocation. Says which nodes the job may use and how many slots each has.
 *
 * Hosts come from the first of these that is there:
 *   1. a resource manager's allocation, read by a component (slurm, tm, lsf, gridengine, and
 *      simulator);
 *   2. the host files of the programs, or else what their --host says;
 *   3. the default host file (parameter ras_base_default_hostfile), if it exists;
 *   4. this host.
 * In 1 and 3 --hostfile and --host choose among the hosts, program by program, as --host does in 2
 * where the program has a host file too.
 *
 * Nothing is asked of other hosts and of no name service: names are compared as text. Which of them
 * can be reached is found out when daemons are started.
 */
#ifndef ORTE_MCA_RAS_RAS_H
#define ORTE_MCA_RAS_RAS_H

#include "opal/declspec.h"
#include "hawser/component.h"
#include "orte/runtime/runtime.h"

#define ORTE_RAS_CONTRACT_MAJOR 1
#define ORTE_RAS_CONTRACT_MINOR 0

/* How a host is named. */
typedef enum {
    ORTE_RAS_NAME,    /* by name or address */
    ORTE_RAS_EXCLUDE, /* ^name: not this one */
    ORTE_RAS_INDEX,   /* +nK: the K-th host of the allocation, from 0 */
    ORTE_RAS_EMPTY,   /* +e, +e:K: K (or all) hosts that nothing runs on */
} orte_ras_kind_t;

/* Special numbers of slots. */
enum {
    ORTE_RAS_SLOTS_UNSAID = 0,
    ORTE_RAS_SLOTS_ALL = -1, /* all that the host has */
};

/* One mention of a host. */
typedef struct {
    orte_ras_kind_t kind;
    char *name;    /* without login name, port and the brackets of an address; NULL: +n, +e */
    char *user;    /* NULL: not said */
    int port;      /* 0: not said */
    int number;    /* K; 0 of EMPTY: all */
    int slots;     /* or ORTE_RAS_SLOTS_* */
    int max_slots; /* 0: no limit */
    char *where;   /* "hosts.txt:3", "--host", "SLURM_JOB_NODELIST": for messages */
} orte_ras_host_t;

typedef struct {
    orte_ras_host_t *at;
    int count;
    bool excludes; /* some are of kind EXCLUDE */
} orte_ras_hosts_t;

/* What a component finds out. */
typedef struct {
    char *title;           /* "Slurm job 5": for messages; allocated */
    orte_ras_hosts_t hosts; /* mentions of one name add up */
    char *self;            /* what the manager calls this host; NULL: goes by its host name */
    int cpus_per_proc;     /* cpus for each process; 0: not said */
    char *topology;        /* synthetic description, or XML file, of hosts that do not exist; NULL:
                            * they do */
} orte_ras_allocation_t;

/* What a component's `ops` points to. */
typedef struct {
    int priority;
    /* Do we run inside such an allocation? Of those that say so the one with the highest priority
     * is used. */
    bool (*available)(void);
    /* What must be there for that: "SLURM_JOB_ID and SLURM_JOB_NODELIST in the environment". */
    const char *needs;
    /* Fill in the allocation, which is all zero. OPAL_ERR_* after a report. */
    int (*read)(orte_ras_allocation_t *allocation);
} orte_ras_module_t;

/* --- for the launcher --- */
/* Open the framework: the components that parameter ras selects. Counted; reports what fails. */
ORTE_DECLSPEC int orte_ras_open(void);
ORTE_DECLSPEC void orte_ras_close(void);
/* Only make the parameters of the framework and its installed components known. */
ORTE_DECLSPEC int orte_ras_register_params(void);
/* Fill rt->nodes: rt->self where this host is meant, new nodes with their names, in this order
 * their index; and the shares of the job's programs. Slots that nobody gave are left 0. Topologies
 * are not known yet. OPAL_ERR_* after a report. */
ORTE_DECLSPEC int orte_ras_allocate(orte_runtime_t *rt, orte_job_t *job);
/* The shares of a further job's programs, out of the nodes there are. OPAL_ERR_* after a report. */
ORTE_DECLSPEC int orte_ras_choose(orte_runtime_t *rt, orte_job_t *job);
/* A node's topology has become known: cut it to --cpu-set, and count its cpus as slots if nobody
 * gave any. OPAL_ERR_* after a report. */
ORTE_DECLSPEC int orte_ras_node_known(orte_node_t *node, const orte_placement_t *placement);
/* For a job that is only to be shown, not started: nodes whose machine is not known are taken to be
 * like this host, or as the simulator says. rt->self must be known. */
ORTE_DECLSPEC int orte_ras_rehearse(orte_runtime_t *rt);
/* Print what --display allocation and topo ask for, once all nodes are known. */
ORTE_DECLSPEC void orte_ras_display(const orte_runtime_t *rt, const orte_placement_t *placement);
ORTE_DECLSPEC void orte_ras_display_topologies(const orte_runtime_t *rt);

/* --- for components and other readers of host names --- */
/* Append one host; `slots` may be ORTE_RAS_SLOTS_*. */
ORTE_DECLSPEC int orte_ras_add(orte_ras_hosts_t *hosts, const char *name, int slots,
                               const char *where);
/* Append the hosts of a list like "login,node[01-16,20],10.0.0.7"; each gets `slots`. */
ORTE_DECLSPEC int orte_ras_add_list(orte_ras_hosts_t *hosts, const char *text, int slots,
                                    const char *where);
/* Names of such a list, ranges expanded, commas between them outside brackets. Reports. */
ORTE_DECLSPEC int orte_ras_expand(const char *text, const char *where, char ***names);
/* Append the hosts of the argument of --host: names with :N or :*, ^name, +nK, +e[:K]. Reports. */
ORTE_DECLSPEC int orte_ras_parse_hosts(orte_ras_hosts_t *hosts, const char *text,
                                       const char *where);
/* Append the entries of a host file. Reports with file and line. */
ORTE_DECLSPEC int orte_ras_read_hostfile(orte_ras_hosts_t *hosts, const char *path);
/* Append the lines "name" of a manager's file, a slot each. Reports. */
ORTE_DECLSPEC int orte_ras_read_names(orte_ras_hosts_t *hosts, const char *path,
                                      const char *variable);
ORTE_DECLSPEC void orte_ras_hosts_free(orte_ras_hosts_t *hosts);
/* Is `name` the same host as the node, as far as names tell? */
ORTE_DECLSPEC bool orte_ras_is_node(const orte_runtime_t *rt, const orte_node_t *node,
                                    const char *name);
/* The node that a mention by name or +nK means; NULL: there is none. */
ORTE_DECLSPEC orte_node_t *orte_ras_find_node(const orte_runtime_t *rt,
                                              const orte_ras_host_t *host);

#endif
