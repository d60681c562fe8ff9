/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* One mpirun, or one of its daemons: its event loop, its hosts, its jobs, and what the command line said about all of
 * them. */
#ifndef ORTE_RUNTIME_RUNTIME_H
#define ORTE_RUNTIME_RUNTIME_H

#include "opal/declspec.h"
#include "orte/runtime/types.h"

struct orte_oob;
struct orte_grpcomm;
struct orte_daemons;
struct orte_plm;
struct orte_queue;
struct orte_reaper;
struct orte_session;
struct orte_pmix_server;
struct orte_iof;
struct orte_odls;
struct orte_errmgr;

typedef struct {
    bool quiet;
    bool verbose;
    bool display_map, display_bindings, display_allocation, display_topologies;
    bool do_not_launch;
    bool print_exit_codes;
    bool continuous;     /* a failed process does not end the job */
    double timeout;      /* seconds; 0: none */
    const char *timeout_by; /* what said so */
    bool stack_traces;   /* when it is over, say where each rank stands, */
    bool report_state;   /* or in which state it is */
    bool fork_only;      /* -launcher fork: on no other host */
    char *prefix;        /* --prefix: where the installation lies on other hosts; NULL: not said */
    bool no_prefix;      /* --noprefix: daemons are found by PATH there */
    char *launch_agent;  /* --launch-agent: the daemon's program on other hosts; NULL: not said */
    char **env_set;      /* NAME=value, for every program */
    char **env_unset;    /* names (with trailing '*': prefixes) not to be passed on */
    bool env_none;       /* pass on only what is asked for */
    char **tune;         /* NAME=value from --tune files; later ones win */
    char **tune_sources; /* for each, "tune FILE:LINE" */
    char **mca;          /* NAME=value from --mca; later ones win, and beat all of tune */
    char **search_path;  /* --path */
    char **old_spellings; /* "--npernode (now -N)": old names that the command line has */
} orte_options_t;

struct orte_runtime {
    const char *progname; /* as the user called it: mpirun, mpiexec */
    char *hostname;
    orte_options_t opt;
    uint32_t index;       /* of this daemon; 0: mpirun */
    uint32_t ndaemons;    /* mpirun among them */
    struct orte_oob *oob; /* NULL: the job runs on this host alone */
    struct orte_grpcomm *grpcomm;
    struct orte_daemons *daemons; /* in mpirun: what it knows of the others */
    struct orte_plm *plm;
    struct event_base *base;
    struct orte_queue *queue;
    struct orte_reaper *reaper;
    struct orte_session *session;
    struct orte_pmix_server *pmix;
    struct orte_iof *iof;
    struct orte_odls *odls;
    struct orte_errmgr *errmgr;
    bool tells_ended;     /* the timer of mca/errmgr/base/ended.c is set */
    bool hurried;         /* mpirun was told twice to end, */
    bool leaving;         /* or three times: it waits no more */
    orte_node_t *self;    /* this host; also in nodes if the job may use it */
    orte_node_t **nodes;
    int nnodes;
    char *allocation;     /* whose nodes these are ("Slurm job 5"); NULL: no resource manager's */
    orte_job_t *job;      /* the job of the command line; lives as long as the runtime */
    orte_job_t *jobs;     /* that and all others that are not over yet, in order of their numbers (in a daemon: of their start) */
    int last_job;         /* number of the latest */
    bool mixed;           /* in mpirun: numbers look otherwise on some host than on this one */
    int unexamined;       /* hosts whose processes are being looked at, after a time limit */
    bool failed;          /* exit_code is that of the first failure */
    int exit_code;
};

ORTE_DECLSPEC orte_runtime_t *orte_runtime_create(const char *argv0);
/* Make sure 0, 1 and 2 are open, so that no pipe of ours takes one of these numbers: first of all. */
ORTE_DECLSPEC void orte_runtime_open_standard_descriptors(void);
/* What can't be written, for want of a reader or beyond the limit on the size of files, is an error and ends nobody. */
ORTE_DECLSPEC void orte_runtime_outlive_writes(void);
/* The event loop and what lives in it: queue, iof, odls. Reports what fails. */
ORTE_DECLSPEC int orte_runtime_start_loop(orte_runtime_t *rt);
ORTE_DECLSPEC void orte_runtime_destroy(orte_runtime_t *rt);

#endif
