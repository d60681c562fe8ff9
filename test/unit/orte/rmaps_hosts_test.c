/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Placement over several hosts that are not alike, from the words of the command line to the cpus
 * of each rank: exact maps, and what must hold of any map for random hosts and requests.
 */
#include "opal/constants.h"
#include "opal/runtime/opal.h"
#include "opal/util/argv.h"
#include "orte/mca/ras/ras.h"
#include "orte/mca/rmaps/rmaps.h"
#include "orte/mca/schizo/schizo.h"
#include "test/support/caught.h"
#include "test/support/tap.h"

#include <ctype.h>
#include <string.h>

static orte_runtime_t *rt;
static char message[1024]; /* of the last failure */
static char dir[] = "/tmp/hawser-rmaps-test-XXXXXX";

/* Machines by letter; `online` cuts others away for good, as the kernel does with cpus that are
 * offline, `allowed` as a control group does. */
static struct {
    char letter;
    const char *description, *online, *allowed;
    hwloc_topology_t topo;
} machines[] = {
    {'A', "pack:2 l3:1 core:2 pu:2", NULL, NULL, NULL},     /* threads 0-7 */
    {'B', "core:2 pu:1", NULL, NULL, NULL},                 /* 0-1 */
    {'C', "pack:2 numa:2 core:2 pu:2", NULL, NULL, NULL},   /* 0-15 */
    {'D', "pack:2 l3:4 core:8 pu:2", NULL, NULL, NULL},     /* 0-127 */
    {'E', "pack:2 core:4 pu:2", "0-7,10", NULL, NULL}, /* packages of 4 cores and of half a core */
    {'F', "pack:2 core:4 pu:2", NULL, "1-3,8-9", NULL},     /* a control group's odd choice */
    {'G', "pu:3", NULL, NULL, NULL},                        /* no cores at all */
    {'H', "pack:1 l2:4 l1:1 core:1 pu:4", "0,4-6,15", NULL, NULL},
};
enum { NMACHINES = sizeof(machines) / sizeof(machines[0]) };

static void make_machines(void)
{
    for (int i = 0; i < NMACHINES; i++) {
        hwloc_topology_init(&machines[i].topo);
        bool ok = hwloc_topology_set_synthetic(machines[i].topo, machines[i].description) == 0 &&
                  hwloc_topology_load(machines[i].topo) == 0;
        if (ok && machines[i].online != NULL) {
            hwloc_bitmap_t online = hwloc_bitmap_alloc();
            hwloc_bitmap_list_sscanf(online, machines[i].online);
            ok = hwloc_topology_restrict(machines[i].topo, online, 0) == 0;
            hwloc_bitmap_free(online);
        }
        TAP_REQUIRE(ok, "machine %c", machines[i].letter);
    }
}

static void free_machines(void)
{
    for (int i = 0; i < NMACHINES; i++) {
        hwloc_topology_destroy(machines[i].topo);
    }
}

static orte_node_t *make_node(const char *name, int index, int machine, int slots, int max_slots)
{
    orte_node_t *node = index == 0 ? rt->self : orte_node_create(name, index);

    node->index = index;
    node->slots = slots;
    node->max_slots = max_slots;
    node->topo = machines[machine].topo;
    node->topo_shared = true;
    node->allowed = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(node->topo));
    if (machines[machine].allowed != NULL) {
        hwloc_bitmap_list_sscanf(node->allowed, machines[machine].allowed);
    }
    return node;
}

/* "A4 B C2/3": hosts h0, h1, ... of these machines with slots and max_slots. mpirun runs on h0. */
static void make_hosts(const char *text)
{
    char **words = opal_argv_split(text, ' ');

    rt->nodes = calloc(16, sizeof(*rt->nodes));
    for (; words[rt->nnodes] != NULL; rt->nnodes++) {
        const char *word = words[rt->nnodes], *slash = strchr(word, '/');
        char name[16];
        int machine = 0;
        while (machines[machine].letter != word[0]) {
            machine++;
        }
        snprintf(name, sizeof(name), "h%d", rt->nnodes);
        rt->nodes[rt->nnodes] = make_node(name, rt->nnodes, machine, atoi(word + 1),
                                          slash == NULL ? 0 : atoi(slash + 1));
    }
    opal_argv_free(words);
}

static void start(const char *hosts)
{
    rt = orte_runtime_create("mpirun");
    free(rt->hostname);
    free(rt->self->name);
    rt->hostname = strdup("h0");
    rt->self->name = strdup("h0");
    make_hosts(hosts);
}

static int map(const char *line)
{
    char command[512];
    orte_cli_action_t action;

    snprintf(command, sizeof(command), "mpirun %s", line);
    char **argv = opal_argv_split(command, ' ');
    int rc = orte_schizo_parse(rt, opal_argv_count(argv), argv, &action);
    opal_argv_free(argv);
    if (rc == OPAL_SUCCESS) {
        rc = orte_ras_choose(rt, rt->job);
    }
    for (int i = 0; i < rt->nnodes && rc == OPAL_SUCCESS; i++) {
        rc = orte_ras_node_known(rt->nodes[i], &rt->job->placement);
    }
    return rc == OPAL_SUCCESS ? orte_rmaps_map(rt->job, rt->nodes, rt->nnodes) : rc;
}

static int map_line(void *line)
{
    return map(line);
}

/* "0:CPUS 1:CPUS": host number and cpus by rank; no cpus: not bound. */
static void describe(char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < rt->job->nprocs && used < size; i++) {
        const orte_proc_t *proc = rt->job->procs[i];
        char *cpus = NULL;
        if (proc->cpuset != NULL && hwloc_bitmap_list_asprintf(&cpus, proc->cpuset) < 0) {
            cpus = NULL;
        }
        used += (size_t)snprintf(text + used, size - used, "%s%d%s%s", i == 0 ? "" : " ",
                                 proc->node->index, cpus == NULL ? "" : ":",
                                 cpus == NULL ? "" : cpus);
        free(cpus);
    }
}

typedef struct {
    const char *hosts, *line, *expected; /* "!...": refused with these words */
} case_t;

static const case_t cases[] = {
    /* Slots: given, counted, exceeded evenly; max_slots and forbidding are limits. */
    {"A B", "a", "0:0-1 0:2-3 0:4-5 0:6-7 1:0 1:1"},
    {"A2 B1", "a", "0:0-1 0:2-3 1:0"},
    {"A2 B1", "-n 5 --bind-to none a", "0 0 0 1 1"},
    {"A2/2 B1", "-n 5 --bind-to none a", "0 0 1 1 1"},
    {"A1/2 B1/2 C1/2", "-n 5 --bind-to none a", "0 0 1 1 2"},
    {"A2/3 B1/2", "-n 6 a",
     "!6 processes of a were to run, but there is room for 5 only, because of max_slots"},
    {"A2 B1", "-n 4 --nooversubscribe a",
     "!room for 3 only, because oversubscribing was forbidden"},
    {"A2 B1", "-n 3 --map-by :NOOVERSUBSCRIBE a", "0:0-1 0:2-3 1:0"},
    {"A0/3 B", "a", "0:0-1 0:2-3 0:4-5 1:0 1:1"},
    /* By node, by object in each node, by object over all nodes. */
    {"A2 B2", "--map-by node a", "0:0-1 1:0 0:2-3 1:1"},
    {"A3 B1", "--map-by node a", "0:0-1 1:0 0:2-3 0:4-5"},
    {"A1/2 B1/1 C1", "-n 6 --map-by node --bind-to none a", "0 1 2 0 2 2"},
    {"A4 A4", "-n 6 --map-by package a", "0:0-3 0:4-7 0:0-3 0:4-7 1:0-3 1:4-7"},
    {"A4 A4", "-n 6 --map-by package:SPAN a", "0:0-3 0:4-7 1:0-3 1:4-7 0:0-3 0:4-7"},
    {"A1 C2", "-n 3 --map-by numa:SPAN a", "0:0-7 1:0-3 1:4-7"},
    {"A4 A4", "-n 4 --map-by package:SPAN --rank-by node a", "0:0-3 1:0-3 0:4-7 1:4-7"},
    {"A B", "--map-by ppr:1:package a", "0:0-3 0:4-7 1:0-1"},
    {"A4 B2", "-N 2 a", "0:0-1 0:2-3 1:0 1:1"},
    {"A4 B2/1", "-N 2 a", "!2 processes of a were to run on h1, but there is room for 1"},
    {"A B G", "-npernode 1 --bind-to core a", "0:0-1 1:0 2:0"},
    {"A B", "-n 2 --map-by slot:PE=2 a", "0:0-3 0:4-7"},
    {"A2 B2", "-n 3 --map-by slot:PE=2 a", "0:0-3 0:4-7 1:0-1"},
    {"A1/1 B1", "-n 2 --map-by slot:PE=3 a", "!PE=3), but h1 has 2 only"},
    {"A4 A4", "-n 4 --map-by slot:PE=2 a", "0:0-3 0:4-7 1:0-3 1:4-7"},
    {"A B", "--map-by core:PE=2 a", "0:0-3 0:4-7 1:0-1"},
    {"A4 B2", "-n 4 --map-by slot:PE=2 --nooversubscribe a", "!room for 3 only, because oversubscribing was forbidden"},
    /* Machines with gaps. */
    {"E", "a", "0:0-1 0:2-3 0:4-5 0:6-7 0:10"},
    {"E", "-n 2 --map-by package a", "0:0-7 0:10"},
    {"F", "a", "0:1 0:2-3 0:8-9"},
    {"F", "--map-by package --bind-to core -n 3 a", "0:1 0:8-9 0:2-3"},
    {"F", "--use-hwthread-cpus a", "0:1 0:2 0:3 0:8 0:9"},
    {"G B", "a", "0:0 0:1 0:2 1:0 1:1"},
    {"H", "--map-by l2cache -n 3 a", "0:0 0:4-6 0:15"},
    {"D", "-n 3 --map-by l3cache a", "0:0-15 0:16-31 0:32-47"},
    {"D", "-n 2 --cpu-set 3,9 a", "0:6-7 0:18-19"},
    {"D", "--map-by pe-list=3,9 a", "0:6-7 0:18-19"},
    {"D", "--cpu-set 3;9 a", "!--cpu-set 3;9: expected numbers of cpus"},
    {"D", "--cpu-set 3-0,5 a", "!--cpu-set 3-0,5: expected numbers of cpus"},
    {"D", "--cpu-set 0-4000000000 a", "!--cpu-set 0-4000000000: expected numbers of cpus"},
    {"D", "--cpu-set 99 a", "!--cpu-set 99: none of these cpus exists and may be used on h0"},
    /* Hosts of programs, and not this host. */
    {"A4 B2 C4", "--host h2:2,h1 a", "2:0-1 2:2-3 1:0"},
    {"A4 B2 C4", "--host h1 -n 1 a : --host h2,h1 -n 2 b", "1:0 2:0-1 1:1"},
    {"A4 B2", "-n 2 a : -n 3 b", "0:0-1 0:2-3 0:4-5 0:6-7 1:0"},
    {"A4 B2", "--host h0 a : b", "0:0-1 0:2-3 0:4-5 0:6-7 1:0 1:1"},
    {"A4 B2", "--nolocal a", "1:0 1:1"},
    {"A4 B2", "--map-by :NOLOCAL -n 1 a", "1:0"},
    {"A4", "--nolocal a", "!no host is left for a"},
    {"A4 B2", "--host +n1 a", "1:0"},
    /* A process for each line. */
    {"A4 B2", "--map-by seq --hostfile SEQ a", "0:0-1 1:0 0:2-3 0:4-5"},
    {"A4 B2", "--map-by seq:FILE=SEQ -n 2 a", "0:0-1 1:0"},
    {"A4 B2", "--map-by seq --host h1,h0,h1 a", "1:0 0:0-1 1:1"},
    {"A4 B2", "--map-by seq --hostfile SEQ -n 5 a", "!the list of --map-by seq has 4 hosts"},
    {"A4 B2", "--map-by seq a", "!needs to know the order"},
    {"A4 B2/1", "--map-by seq --host h1,h1 a", "!max_slots"},
    {"A4", "--map-by seq:FILE=SEQ a", "!SEQ:2: host h1 is not among"},
    {"A4 B2", "--map-by seq --rank-by node --hostfile SEQ a", "!--rank-by can't be used"},
    /* A line for each rank. */
    {"A4 C4", "--rankfile RANKS a", "1:4-7 0:0-3,6-7 0 1:0-1,8-9 0:0-7"},
    {"A4 C4", "--map-by rankfile:FILE=RANKS -n 2 a", "1:4-7 0:0-3,6-7"},
    {"A4 C4", "--rankfile RANKS --use-hwthread-cpus -n 2 a", "1:2-3 0:0-1,5"},
    {"A4 C4", "--rankfile RANKS -n 2 a : -n 1 b", "1:4-7 0:0-3,6-7 0"},
    {"A4 C4", "--rankfile RANKS --bind-to core -n 3 a", "1:4-7 0:0-3,6-7 0:4-5"},
    {"A4 C4", "--rankfile RANKS -n 6 a", "!has no line for rank 5"},
    {"A4 C4", "--rankfile RANKS a : b", "!has no line for rank 5"},
    {"A4", "--cpu-set 0-1 --rankfile RPACK a", "!RPACK:1: rank 0 can't have slot=1:*: h0 has no such"},
    {"A4", "--rankfile RANKS a", "!RANKS:2: host h1 is not among"},
    {"B2 C4", "--rankfile RANKS a", "!RANKS:3: rank 1 can't have slot=0:0-1,1:1: h0 has no such"},
    {"A4", "--rankfile RBAD1 a", "!RBAD1:1: this is not understood"},
    {"A4", "--rankfile RBAD2 a", "!RBAD2:2: an earlier line has this rank"},
    {"A4", "--rankfile RBAD3 a", "!RBAD3:1: the cpus are not understood"},
    {"A4", "--rankfile RBAD4 a", "!RBAD4:1: the rank is no number"},
    {"A4", "--rankfile /nonexistent a", "!can't read rank file /nonexistent"},
    {"A4", "--map-by rankfile a", "!needs a file"},
};

static void put_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");

    fputs(text, file);
    fclose(file);
}

static void make_files(void)
{
    put_file("SEQ", "h0\nh1 # second\nh0 slots=7\nh0\n");
    put_file("RANKS", "# rank file\nrank 0=h1 slot=2-3\nrank 1 = h0 slot=0:0-1,1:1\nrank 2=+n0\n"
                      "rank 3=h1 slot=*:0\nrank 4=h0 slot=*\n");
    put_file("RBAD1", "rank 0=h0 slot\n");
    put_file("RPACK", "rank 0=h0 slot=1:*\n");
    put_file("RBAD2", "rank 0=h0\nrank 0=h0\n");
    put_file("RBAD3", "rank 0=h0 slot=0-\n");
    put_file("RBAD4", "rank x=h0 slot=0\n");
}

static void exact_maps(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const case_t *c = &cases[i];
        char text[1024] = "";
        bool ok;
        start(c->hosts);
        int rc = caught(map_line, (void *)(uintptr_t)c->line, dir, message, sizeof(message));
        if (c->expected[0] == '!') {
            size_t length = strlen(message);
            ok = rc != OPAL_SUCCESS && strstr(message, c->expected + 1) != NULL &&
                 strchr(message, '\n') == message + length - 1;
        } else {
            describe(text, sizeof(text));
            ok = rc == OPAL_SUCCESS && message[0] == '\0' && strcmp(text, c->expected) == 0;
        }
        TAP_OK(ok, "%s: mpirun %s", c->hosts, c->line);
        if (!ok) {
            printf("# got:      %s (%d) %s\n# expected: %s\n", text, rc, message, c->expected);
        }
        orte_runtime_destroy(rt);
    }
}

/* --- any hosts, any request --- */

typedef struct {
    char hosts[128], line[256];
    const char *map, *bind;
    int np, room, slots; /* room and slots of all hosts; np 0: not given */
    bool forbidden, limited;
} trial_t;

static const char *pick(const char *const *words, unsigned *seed)
{
    int count = 0;

    while (words[count] != NULL) {
        count++;
    }
    return words[rand_r(seed) % count];
}

static void make_trial(trial_t *trial, unsigned *seed)
{
    static const char *const maps[] = {"slot", "node", "core", "numa", "package", "l3cache",
                                       "hwthread", "ppr:1:core", "ppr:2:node", NULL};
    static const char *const ranks[] = {"slot", "node", "fill", "span", NULL};
    static const char *const binds[] = {"none", "core", "hwthread", "package", "numa", NULL};
    int hosts = 1 + rand_r(seed) % 6;
    char *at = trial->hosts;

    for (int i = 0; i < hosts; i++) {
        at += sprintf(at, "%s%c", i == 0 ? "" : " ", machines[rand_r(seed) % NMACHINES].letter);
        if (rand_r(seed) % 3 > 0) {
            int slots = 1 + rand_r(seed) % 6;
            at += sprintf(at, "%d", slots);
            if (rand_r(seed) % 3 == 0) {
                at += sprintf(at, "/%d", slots + rand_r(seed) % 3);
            }
        }
    }
    trial->map = pick(maps, seed);
    trial->bind = pick(binds, seed);
    trial->np = rand_r(seed) % 4 == 0 ? 0 : 1 + rand_r(seed) % 40;
    trial->forbidden = rand_r(seed) % 4 == 0;
    char np[16] = "";
    if (trial->np > 0) {
        snprintf(np, sizeof(np), "-n %d ", trial->np);
    }
    snprintf(trial->line, sizeof(trial->line), "%s--map-by %s%s%s --rank-by %s --bind-to %s a", np,
             trial->map, rand_r(seed) % 3 == 0 ? ":SPAN" : "",
             trial->forbidden ? ":NOOVERSUBSCRIBE" : "", pick(ranks, seed), trial->bind);
}

static bool is_ppr(const trial_t *trial)
{
    return strncmp(trial->map, "ppr", 3) == 0;
}

/* What must hold on each host. */
static const char *broken_on(const trial_t *trial, const orte_node_t *node, bool slots_suffice)
{
    hwloc_bitmap_t used = hwloc_bitmap_alloc();
    bool own_cpus = strcmp(trial->bind, "core") == 0 &&
                    node->nprocs <= orte_rmaps_count_cpus(node, false) &&
                    (strcmp(trial->map, "slot") == 0 || strcmp(trial->map, "node") == 0);
    const char *why = NULL;
    int local = 0;

    for (int i = 0; i < rt->job->nprocs && why == NULL; i++) {
        const orte_proc_t *proc = rt->job->procs[i];
        if (proc->node != node) {
            continue;
        }
        why = proc->local_rank != local++ ? "local ranks are not dense" : NULL;
        if (proc->cpuset == NULL) {
            continue;
        }
        if (hwloc_bitmap_iszero(proc->cpuset) ||
            !hwloc_bitmap_isincluded(proc->cpuset, node->allowed)) {
            why = "bound to cpus that may not be used";
        } else if (own_cpus && hwloc_bitmap_intersects(proc->cpuset, used)) {
            why = "two share a core though there is one for each";
        }
        hwloc_bitmap_or(used, used, proc->cpuset);
    }
    hwloc_bitmap_free(used);
    if (node->max_slots > 0 && node->nprocs > node->max_slots) {
        return "more than max_slots";
    }
    if (node->nprocs > node->slots && (trial->forbidden || (slots_suffice && !is_ppr(trial)))) {
        return "more than slots";
    }
    return local == node->nprocs ? why : "processes are not counted";
}

static const char *broken(const trial_t *trial)
{
    const orte_job_t *job = rt->job;
    const char *why = NULL;
    int slots = 0;

    for (int i = 0; i < rt->nnodes; i++) {
        slots += rt->nodes[i]->slots;
    }
    if (trial->np > 0 ? job->nprocs != trial->np : !is_ppr(trial) && job->nprocs != slots) {
        return "number of processes";
    }
    for (int i = 0; i < job->nprocs; i++) {
        if (job->procs[i]->rank != i || job->procs[i]->app_rank != i) {
            return "ranks";
        }
        if (strcmp(trial->map, "slot") == 0 && strstr(trial->line, "--rank-by slot") != NULL &&
            i > 0 && job->procs[i]->node->index < job->procs[i - 1]->node->index) {
            return "by slot, but not host after host";
        }
    }
    for (int i = 0; i < rt->nnodes && why == NULL; i++) {
        why = broken_on(trial, rt->nodes[i], job->nprocs <= slots);
    }
    return why;
}

/* Is there a reason to refuse? */
static bool may_refuse(const trial_t *trial)
{
    bool limited = trial->forbidden || strchr(trial->hosts, '/') != NULL;

    /* Objects in turn need not find a cpu for each; N per object need not come to np. */
    return limited || is_ppr(trial);
}

static void any_maps(unsigned seed)
{
    unsigned state = seed;
    const char *why = NULL;
    int mapped = 0;

    for (int round = 0; round < 3000 && why == NULL; round++) {
        trial_t trial;
        char first[4096], second[4096];
        make_trial(&trial, &state);
        start(trial.hosts);
        if (map(trial.line) != OPAL_SUCCESS) {
            why = may_refuse(&trial) ? NULL : "refused";
        } else {
            mapped++;
            why = broken(&trial);
            describe(first, sizeof(first));
            orte_runtime_destroy(rt);
            start(trial.hosts);
            map(trial.line);
            describe(second, sizeof(second));
            why = why == NULL && strcmp(first, second) != 0 ? "not the same twice" : why;
        }
        if (why != NULL) {
            printf("# %s: hosts %s: mpirun %s\n", why, trial.hosts, trial.line);
        }
        orte_runtime_destroy(rt);
    }
    TAP_OK(why == NULL && mapped > 1500, "%d random maps of 3000 keep the rules (seed %u)", mapped,
           seed);
}

/* Random rank files: an error, or cpus that may be used. */
static void any_rank_files(unsigned seed)
{
    static const char alphabet[] = "0123456789:,-* h+n=#\n";
    const char *why = NULL;

    for (int round = 0; round < 2000 && why == NULL; round++) {
        char text[96] = "rank 0=h0 slot=";
        size_t used = round % 2 == 0 ? strlen(text) : 0;
        size_t end = used + (size_t)rand_r(&seed) % 12;
        for (; used < end; used++) {
            text[used] = alphabet[rand_r(&seed) % (int)(sizeof(alphabet) - 1)];
        }
        text[used] = '\0';
        put_file("NOISE", text);
        start("F B");
        if (map("--rankfile NOISE a") == OPAL_SUCCESS) {
            const orte_proc_t *proc = rt->job->procs[0];
            if (proc->cpuset != NULL &&
                (hwloc_bitmap_iszero(proc->cpuset) ||
                 !hwloc_bitmap_isincluded(proc->cpuset, proc->node->allowed))) {
                why = text;
                printf("# bad cpus from: %s\n", text);
            }
        }
        orte_runtime_destroy(rt);
    }
    TAP_OK(why == NULL, "2000 random rank files");
}

static void quiet_maps(unsigned seed)
{
    int null = open("/dev/null", O_WRONLY), saved = dup(STDERR_FILENO);

    dup2(null, STDERR_FILENO);
    any_maps(seed);
    any_rank_files(seed);
    dup2(saved, STDERR_FILENO);
    close(null);
    close(saved);
}

/* A job that comes while another runs, and one after it. */
static void second_job(void)
{
    orte_job_t *job = orte_job_create(NULL, 2);

    start("A4");
    TAP_REQUIRE(map("-n 2 a") == OPAL_SUCCESS, "a first job");
    job->rt = rt;
    orte_app_t *app = orte_job_add_app(job);
    app->np = 2;
    opal_argv_append(&app->argv, "b");
    TAP_OK(orte_rmaps_map(job, rt->nodes, 1) == OPAL_SUCCESS && job->procs[0]->node_rank == 2 &&
               hwloc_bitmap_first(job->procs[0]->cpuset) == 4 && !job->oversubscribed,
           "a second job gets other cores");
    orte_rmaps_unmap(job);
    TAP_OK(rt->nodes[0]->nprocs == 2 && hwloc_bitmap_weight(rt->nodes[0]->bound) == 4,
           "and gives them back");
    orte_job_destroy(job);
    orte_runtime_destroy(rt);
}

int main(void)
{
    char command[128];

    tap_start(300);
    TAP_REQUIRE(opal_init() == OPAL_SUCCESS && orte_rmaps_open() == OPAL_SUCCESS,
                "the components are there");
    TAP_REQUIRE(mkdtemp(dir) != NULL && chdir(dir) == 0, "a directory");
    make_machines();
    make_files();
    exact_maps();
    second_job();
    quiet_maps(20261120);
    quiet_maps(1);
    free_machines();
    snprintf(command, sizeof(command), "cd / && rm -r %s", dir);
    TAP_OK(system(command) == 0, "nothing left");
    return tap_end();
}
