/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launcher's data model: nodes, jobs, programs ("apps") and processes, written for many hosts.
 * One mpirun owns one orte_runtime_t; everything else hangs below it and is touched by the event
 * loop's thread alone.
 */
#ifndef ORTE_RUNTIME_TYPES_H
#define ORTE_RUNTIME_TYPES_H

#include "opal/declspec.h"

#include <hwloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct event;
struct event_base;
typedef struct orte_runtime orte_runtime_t;
typedef struct orte_job orte_job_t;
typedef struct orte_node orte_node_t;

/* Exit codes of the launcher itself; every other code is that of the process that failed. */
enum {
    ORTE_EXIT_USAGE = 1,         /* command line, files named by it, or start-up failed */
    ORTE_EXIT_TIMEOUT = 124,     /* --timeout expired */
    ORTE_EXIT_HOST_LOST = 125,   /* a daemon or its host died or fell silent */
    ORTE_EXIT_NOT_EXEC = 126,    /* program found, can't be executed */
    ORTE_EXIT_NOT_FOUND = 127,   /* no such program */
    ORTE_EXIT_SIGNAL_BASE = 128, /* + number of the signal that ended the job */
};

/* Steps of a job, in order. A handler per step is kept in state.c; see state.h. */
typedef enum {
    ORTE_JOB_INIT,
    ORTE_JOB_ALLOCATE, /* ras: which nodes, how many slots each */
    ORTE_JOB_DAEMONS,  /* plm: something on every node that can start processes and knows its cpus */
    ORTE_JOB_MAP,      /* rmaps: node, rank and cpu set of every process */
    ORTE_JOB_REGISTER, /* the PMIx server learns about the job */
    ORTE_JOB_LAUNCH,   /* odls: start the processes */
    ORTE_JOB_RUNNING,
    ORTE_JOB_ENDING,   /* processes and what they left behind are being ended */
    ORTE_JOB_DONE,     /* no process left, all output delivered */
} orte_job_state_t;

typedef enum {
    ORTE_PROC_INIT,
    ORTE_PROC_STARTED,      /* exec succeeded */
    ORTE_PROC_CONNECTED,    /* called PMIx_Init */
    ORTE_PROC_FINALIZED,    /* called PMIx_Finalize */
    ORTE_PROC_EXITED,       /* waited for; exit_status is valid */
    ORTE_PROC_NOT_STARTED,  /* exec failed or the job ended before its turn */
} orte_proc_state_t;

/* Kinds of places, widest first; the order is used to compare "wider" and "narrower". */
typedef enum {
    ORTE_LEVEL_NONE,
    ORTE_LEVEL_NODE,
    ORTE_LEVEL_PACKAGE,
    ORTE_LEVEL_NUMA,
    ORTE_LEVEL_L3,
    ORTE_LEVEL_L2,
    ORTE_LEVEL_L1,
    ORTE_LEVEL_CORE,
    ORTE_LEVEL_HWTHREAD,
} orte_level_t;

typedef enum {
    ORTE_MAP_SLOT,
    ORTE_MAP_NODE,
    ORTE_MAP_OBJECT,
    ORTE_MAP_PPR,
    ORTE_MAP_SEQ,      /* a process for each line of a host file */
    ORTE_MAP_RANKFILE, /* node and cpus of each rank from a file */
} orte_map_kind_t;
typedef enum { ORTE_RANK_SLOT, ORTE_RANK_NODE, ORTE_RANK_FILL, ORTE_RANK_OBJECT } orte_rank_kind_t;
typedef enum { ORTE_UNSET = -1, ORTE_NO = 0, ORTE_YES = 1 } orte_tristate_t;

/* What the user asked of placement; "unset" fields get their defaults in orte_rmaps_map(). */
typedef struct {
    bool map_given, rank_given, bind_given;
    orte_map_kind_t map;
    orte_level_t map_level; /* for OBJECT and PPR */
    int ppr;                /* processes per map_level object */
    char *map_file;         /* for SEQ (NULL: the program's host files) and RANKFILE */
    bool span;              /* go over the objects of all nodes as if they were one machine's */
    bool nolocal;           /* not on the node that mpirun runs on */
    int cpus_per_proc;      /* PE=n; 0: not given */
    int threads_per_proc;   /* what the programs were told (OMP_NUM_THREADS); 0: not known */
    orte_rank_kind_t rank;
    orte_level_t rank_level; /* NONE: the mapped level */
    orte_level_t bind; /* NONE: do not bind */
    orte_tristate_t bind_overload; /* may several bound processes share a cpu; unset means yes */
    bool hwthread_cpus; /* a "cpu" is a hardware thread, not a core */
    bool cpus_given;    /* that was said, either way */
    orte_tristate_t oversubscribe;
    char *cpu_set; /* --cpu-set: hwloc list of logical cpus the job may use, or NULL */
} orte_placement_t;

/* A host. ras names it; what its machine is like (topo, allowed, cpu_limit) is known before the job
 * is mapped. */
struct orte_node {
    char *name;            /* as the allocation has it: daemons are started by this name */
    char *user;            /* whom to log in as; NULL: whoever runs mpirun */
    int port;              /* of the remote shell; 0: the usual one */
    int index;             /* in rt->nodes; -1: not one of them */
    bool local;            /* the host that this process runs on */
    uint32_t daemon;       /* index of the daemon there; 0: mpirun itself */
    int slots;             /* processes that fit without sharing a cpu, unless given by the user; 0:
                            * not given, and the cpus are not known yet */
    int max_slots;         /* never more processes than this; 0: no such limit */
    int cpu_limit;         /* cpu time granted by the control group, in cpus; 0: not limited */
    bool topo_shared;      /* another node owns topo: machines of one kind need it once */
    hwloc_topology_t topo;
    hwloc_bitmap_t allowed; /* hardware threads that the job may use: cgroup, affinity, --cpu-set */
    hwloc_bitmap_t bound;   /* hardware threads that processes of any job are bound to; NULL: none */
    int nprocs;             /* mapped here, over all jobs */
    int proc_limit;         /* never more of them than this, because: */
    char *proc_limit_why;   /* a clause for messages; NULL: no such limit is known */
};

/* A node that a program may use, as its --host and --hostfile say. */
typedef struct {
    orte_node_t *node;
    int slots; /* so many of the node's slots; 0: all */
} orte_share_t;

/* One program of the command line: what stands between two ':'. */
typedef struct {
    int index;
    char **hosts;     /* arguments of --host, and */
    char **hostfiles; /* of --hostfile, as given; ras understands them */
    orte_share_t *shares; /* the nodes it may use, in order; none: all of the runtime's */
    int nshares;
    char **argv;
    char *path;     /* resolved executable */
    char **env;     /* NAME=value to set; applied over the job's environment */
    char **environ; /* complete, but for what is each process's own; set before the launch */
    char *wdir;     /* NULL: where mpirun was started */
    bool wdir_optional; /* on a host without it, home does */
    int np;         /* 0: not given */
    int first_rank; /* set by the mapper */
} orte_app_t;

typedef struct orte_proc {
    orte_job_t *job;
    orte_app_t *app;
    orte_node_t *node;
    int rank;       /* in the job */
    int app_rank;   /* within its program */
    int local_rank; /* among the job's processes on its node */
    int node_rank;  /* among all processes on its node */
    hwloc_bitmap_t locale; /* object it was mapped to (hardware threads) */
    hwloc_bitmap_t cpuset; /* NULL: not bound */
    orte_proc_state_t state;
    bool was_connected;    /* it is a PMIx client: must finalize before it exits */
    bool abort_called;
    pid_t pid;             /* also its process group; 0: never started */
    bool waited;           /* waitpid returned it; its end has not been dealt with yet */
    bool told_ended;       /* the others of its job have been told that it has ended in order */
    bool group_gone;       /* nobody is left in its process group: others may have its number now */
    int exit_status;       /* as from waitpid */
    int farewell_ms;       /* for so long its farewell through PMIx has been waited for */
    void *iof;             /* stdio channels, owned by iof */
} orte_proc_t;

typedef enum { ORTE_STDIN_RANK, ORTE_STDIN_ALL, ORTE_STDIN_NONE } orte_stdin_kind_t;
/* What stands before each line: nothing, "[rank] " ("[job,rank] " of further jobs),
 * "[job,rank]<stream>: ". */
typedef enum { ORTE_TAG_NONE, ORTE_TAG_RANK, ORTE_TAG_FULL } orte_tag_t;

/* How the job's stdio is to be treated. */
typedef struct {
    orte_stdin_kind_t stdin_kind;
    int stdin_rank;
    orte_tag_t tag;
    bool timestamp;
    bool merge_stderr;
    bool terminal;     /* processes get a terminal as standard output */
    char *output_dir;  /* --output-filename, made absolute */
    bool output_only_files; /* do not copy to our own stdout and stderr as well */
    /* files for each rank's stdout and stderr, in place of ours; absolute paths with %r (rank), %h
     * (host), %g (job), %%; NULL: none */
    char *out_pattern, *err_pattern;
} orte_io_options_t;

/* Whoever asked for a job and waits to hear whether its processes run. */
typedef struct {
    /* Called once; NULL: nobody waits. `why`: NULL if they run, else a sentence for the user. */
    void (*answer)(void *arg, const orte_job_t *job, int exit_code, const char *why);
    void *arg;
} orte_job_asker_t;

/* A job's end on this host; odls's. */
typedef struct {
    int stage;
    bool given_up;
    bool over;           /* nothing of the job is left here */
    struct event *grace; /* between SIGTERM and SIGKILL, and between SIGKILL and giving up */
} orte_job_end_t;

struct orte_job {
    orte_runtime_t *rt;
    orte_job_t *next;  /* in rt->jobs */
    int number;        /* 1 for the job of the command line; then as they are asked for */
    int parent;        /* number of the job of which a process asked for this one; 0: none */
    int parent_rank;
    bool separate;     /* no more connected to its parent: neither's failure ends the other */
    orte_job_asker_t asker;
    bool refused;      /* whoever asked for it was told that it can't run; nothing else follows */
    char *nspace;      /* PMIx namespace; also the <jobid> in names of files */
    char secret[65];   /* 256 random bits in hex, given to the ranks through PMIx only */
    orte_job_state_t state;
    orte_placement_t placement;
    orte_io_options_t io;
    orte_app_t **apps;
    int napps;
    orte_proc_t **procs; /* by rank */
    int nprocs;
    bool oversubscribed; /* some node is */
    int universe_size;   /* 0: not counted yet */
    char *start_dir;     /* where mpirun was started; NULL: here */
    int nrunning;        /* started on this host and not yet waited for */
    int nalive;          /* on all hosts: not known to have ended */
    int unstarted;       /* hosts that have not said yet that all of its processes there run */
    int parts;           /* hosts on which something of the job may still run or be on its way */
    bool *has_part;      /* by daemon: it is one of `parts`; in mpirun, NULL: no daemon is */
    orte_job_end_t end;
    bool failed;         /* what was reported is why it ends: the rest is no news */
    bool ending;         /* it was asked to end, though its state may not say so yet */
};

/* Slots of all nodes, or the number of processes if that is more. */
ORTE_DECLSPEC int orte_job_universe_size(const orte_job_t *job);
/* Nothing of the job is left on one of its hosts; on the last one its state becomes DONE. */
ORTE_DECLSPEC void orte_job_part_over(orte_job_t *job);
ORTE_DECLSPEC orte_job_t *orte_job_create(orte_runtime_t *rt, int number);
/* Into rt->jobs, at the end, and out of it. */
ORTE_DECLSPEC void orte_job_enter(orte_job_t *job);
ORTE_DECLSPEC void orte_job_leave(orte_job_t *job);
/* Its namespace, by its number and the session's id, and its secret. OPAL_ERR_IN_ERRNO. */
ORTE_DECLSPEC int orte_job_make_names(orte_job_t *job);
/* NULL: there is none (any more). */
ORTE_DECLSPEC orte_job_t *orte_job_find(const orte_runtime_t *rt, int number);
ORTE_DECLSPEC orte_job_t *orte_job_find_nspace(const orte_runtime_t *rt, const char *nspace);
/* Have all jobs reached this state? */
ORTE_DECLSPEC bool orte_job_all_reached(const orte_runtime_t *rt, orte_job_state_t state);
/* Tell whoever waits for the job; does nothing if nobody does. */
ORTE_DECLSPEC void orte_job_answer(orte_job_t *job, int exit_code, const char *why);
ORTE_DECLSPEC void orte_job_destroy(orte_job_t *job);
ORTE_DECLSPEC orte_app_t *orte_job_add_app(orte_job_t *job);
/* Append a process in state INIT; its rank is its position until the mapper renumbers. */
ORTE_DECLSPEC orte_proc_t *orte_job_add_proc(orte_job_t *job, orte_app_t *app, orte_node_t *node);
/* Free all processes again. */
ORTE_DECLSPEC void orte_job_drop_procs(orte_job_t *job);
ORTE_DECLSPEC orte_node_t *orte_node_create(const char *name, int index);
ORTE_DECLSPEC void orte_node_destroy(orte_node_t *node);
ORTE_DECLSPEC const char *orte_level_name(orte_level_t level);

#endif
