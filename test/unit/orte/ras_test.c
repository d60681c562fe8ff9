/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which nodes a job gets: the words of --host, host files, the variables of resource managers, how
 * they combine, and what is refused with which words. Nothing but files and environment is used.
 */
#include "opal/constants.h"
#include "opal/runtime/opal.h"
#include "opal/util/argv.h"
#include "orte/mca/ras/ras.h"
#include "orte/mca/schizo/schizo.h"
#include "test/support/caught.h"
#include "test/support/fuzz.h"
#include "test/support/tap.h"

#include <string.h>
#include <sys/stat.h>

static orte_runtime_t *rt;
static char dir[] = "/tmp/hawser-ras-test-XXXXXX";
static char message[1024]; /* of the last failure */

/* The text of a file in `dir`. */
static void put_file(const char *name, const char *text)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

static int allocate(void *arg)
{
    orte_cli_action_t action;
    char **argv = opal_argv_split(arg, ' ');
    int rc = orte_schizo_parse(rt, opal_argv_count(argv), argv, &action);

    if (rc == OPAL_SUCCESS) {
        rc = orte_ras_allocate(rt, rt->job);
    }
    opal_argv_free(argv);
    return rc;
}

/* "name:slots/max ..." of all nodes, then "|" and "name:slots" of each program's shares. */
static void describe(char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < rt->nnodes; i++) {
        const orte_node_t *node = rt->nodes[i];
        used += (size_t)snprintf(text + used, size - used, "%s%s%s%s:%d", i == 0 ? "" : " ",
                                 node->user == NULL ? "" : node->user,
                                 node->user == NULL ? "" : "@", node->name, node->slots);
        if (node->max_slots > 0) {
            used += (size_t)snprintf(text + used, size - used, "/%d", node->max_slots);
        }
        if (node->port > 0) {
            used += (size_t)snprintf(text + used, size - used, "#%d", node->port);
        }
    }
    if (rt->job->placement.threads_per_proc > 0) {
        used += (size_t)snprintf(text + used, size - used, " cpus=%d",
                                 rt->job->placement.threads_per_proc);
    }
    for (int a = 0; rt->job->napps > 1 && a < rt->job->napps; a++) {
        const orte_app_t *app = rt->job->apps[a];
        used += (size_t)snprintf(text + used, size - used, " |");
        for (int i = 0; i < app->nshares; i++) {
            used += (size_t)snprintf(text + used, size - used, " %s:%d", app->shares[i].node->name,
                                     app->shares[i].slots);
        }
    }
}

/* A command line, what is set in the environment ("A=b|C=d"), and the nodes that come of it, or,
 * after "!", words that the message must have. "me" is this host. */
typedef struct {
    const char *line, *environment, *expected;
} case_t;

#define SLURM "SLURM_JOB_ID=5|SLURM_JOB_NODELIST=n[1-3,07]|SLURM_TASKS_PER_NODE=4(x3),2"

static const case_t cases[] = {
    {"a", NULL, "me:0"},
    {"--host localhost a", NULL, "me:1"},
    {"--host localhost:3 a", NULL, "me:3"},
    {"--host me,localhost,127.0.0.1,::1,[::1] a", NULL, "me:5"},
    {"--host me.example.org:2,me:* a", NULL, "me:0"},
    {"--host x:4,y a", NULL, "x:4 y:1"},
    {"--host y,x:2,y:2 --host x a", NULL, "y:3 x:3"},
    {"-H x,X,x.example.org a", NULL, "x:3"},
    {"--host x.a,x.b a", NULL, "x.a:1 x.b:1"},
    {"--host 10.0.0.1,10.0.0.2:5 a", NULL, "10.0.0.1:1 10.0.0.2:5"},
    {"--host 10.1,10.2 a", NULL, "10.1:1 10.2:1"},
    {"--host fe80::1%eth0,[fe80::2]:3,fe80::1:4 a", NULL, "fe80::1%eth0:1 fe80::2:3 fe80::1:4:1"},
    {"--host me@x:2,you@[fe80::2]:3 a", NULL, "me@x:2 you@fe80::2:3"},
    {"--host n[08-10,2]:2,r[0-1]n[1-2] a", NULL,
     "n08:2 n09:2 n10:2 n2:2 r0n1:1 r0n2:1 r1n1:1 r1n2:1"},
    {"--host n[1-2]-ib a", NULL, "n1-ib:1 n2-ib:1"},
    {"--host x,y,^x a", NULL, "y:1"},
    {"--host x:2 a : --host y:3 b", NULL, "x:2 y:3 | x:2 | y:3"},
    {"--host x:2 a : --host x:3 b", NULL, "x:5 | x:2 | x:3"},
    {"--host x:2,y a : b", NULL, "x:2 y:1 | x:2 y:1 |"},
    {"--hostfile H a", NULL, "x:0 y:4/8 z:2 me:3 bob@w:0#2222 eve@v:1"},
    {"--machinefile H --host y,x:* a", NULL, "x:0 y:4/8"},
    {"-f H --host ^x,^z a", NULL, "y:4/8 me:3 bob@w:0#2222 eve@v:1"},
    {"-f H --host +n1,+n3:2 a", NULL, "y:4/8 me:3"},
    {"-f H --host z,+e:2 a", NULL, "x:0 y:4/8 z:2"},
    {"-f H --host +e a", NULL, "x:0 y:4/8 z:2 me:3 bob@w:0#2222 eve@v:1"},
    {"-f H --host x a : -f H --host y b", NULL, "x:0 y:4/8 | x:1 | y:1"},
    {"-f NAMES a", NULL, "x:2 y:0"},
    {"-f MOST a", NULL, "x:2/2147483647"},
    {"-f H --host me@y,x a", NULL, "x:0 me@y:4/8"},
    {"-f H --host ann@w a", NULL, "ann@w:0#2222"},
    {"--host n2,ann@n1 a", SLURM, "ann@n1:4 n2:4"},
    {"--host bob@x,x:2,bob@x a", NULL, "bob@x:4"},
    {"-f BOM a", NULL, "x:3"},
    {"a", "OMPI_MCA_ras_base_default_hostfile=D", "d1:2 d2:0"},
    {"--host d2 a", "OMPI_MCA_ras_base_default_hostfile=D", "d2:0"},
    {"--hostfile NAMES a", "OMPI_MCA_ras_base_default_hostfile=D", "x:2 y:0"},
    {"a", SLURM, "n1:4 n2:4 n3:4 n07:2"},
    {"--host n2:2,n1 a", SLURM, "n1:4 n2:4"},
    {"--host ^n1 a", SLURM, "n2:4 n3:4 n07:2"},
    {"--host +n3,+n0:2 a : --host +e:1 b", SLURM, "n1:4 n07:2 | n07:1 n1:2 | n1:0"},
    {"--host n2:9 a : b", SLURM, "n1:4 n2:4 n3:4 n07:2 | n2:9 |"},
    {"a", "SLURM_JOBID=5|SLURM_NODELIST=n1|SLURM_JOB_CPUS_PER_NODE=7|SLURM_CPUS_PER_TASK=2",
     "n1:3 cpus=2"},
    {"a", "SLURM_JOB_ID=5|SLURM_JOB_NODELIST=me,q|SLURM_TASKS_PER_NODE=1(x2)", "me:1 q:1"},
    {"a", "SLURM_JOB_ID=5|SLURM_JOB_NODELIST=p[1-2]|SLURM_TASKS_PER_NODE=1(x2)|SLURMD_NODENAME=p2",
     "p1:1 p2:1"},
    {"a", "PBS_JOBID=7|PBS_NODEFILE=NAMES", "x:2 y:1"},
    {"a", "LSB_JOBID=7|LSB_MCPU_HOSTS=x 3 y 2 |LSB_HOSTS=q", "x:3 y:2"},
    {"a", "LSB_JOBID=7|LSB_HOSTS=x x y x", "x:3 y:1"},
    {"a", "LSB_JOBID=7|LSB_DJOB_HOSTFILE=NAMES|LSB_HOSTS=q", "x:2 y:1"},
    {"a", "JOB_ID=7|PE_HOSTFILE=PE", "x:4 y.example.org:2"},
    {"--do-not-launch a", "OMPI_MCA_ras_simulator_hosts=s[1-2]:3", "s1:3 s2:3"},
    {"--mca x y a", "SLURM_TASKS_PER_NODE=4", "me:0"},
    /* Refused. */
    {"--host x:0 a", NULL, "!--host: 'x:0': the number of slots"},
    {"--host x:y a", NULL, "!--host: 'x:y'"},
    {"--host x: a", NULL, "!number of slots"},
    {"--host , a", NULL, "!no host is named"},
    {"--host -x a", NULL, "!'-x' can't be the name of a host"},
    {"--host x;y a", NULL, "!can't be the name"},
    {"--host @x a", NULL, "!can't be the name"},
    {"--host -o@x a", NULL, "!can't be the name"},
    {"--host bob@x,eve@x a", NULL, "!--host: log in to host x as bob, or as eve?"},
    {"--host bob@x a : --host eve@x b", NULL, "!log in to host x as bob, or as eve?"},
    {"-f PORTS a", NULL, "!PORTS:2: is the remote shell of host x at port 22, or at 23?"},
    {"--host n[1- a", NULL, "!not closed"},
    {"--host n[] a", NULL, "!numbers in its brackets"},
    {"--host n[2-1] a", NULL, "!ends before it begins"},
    {"--host n[1-99999999] a", NULL, "!too many names"},
    {"--host n[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9] a", NULL, "!too many names"},
    {"--host n[1-2]] a", NULL, "!can't be the name"},
    {"--host +x a", NULL, "!+nK is host number K"},
    {"--host +n0 a", NULL, "!there is none"},
    {"-f H --host q a", NULL, "!host q is not among those that may be used (x, y, z"},
    {"-f H --host +n6 a", NULL, "!there are 6 hosts only"},
    {"--host ^me a", NULL, "!no host is left of me"},
    {"--host n9 a", SLURM, "!(Slurm job 5: n1, n2, n3, n07)"},
    {"-f BAD1 a", NULL, "!BAD1:2: 'slots=0' is not understood"},
    {"-f BAD2 a", NULL, "!BAD2:1: 'slot=4' is not understood"},
    {"-f BAD3 a", NULL, "!BAD3:1: slots=4 is more than max_slots=2"},
    {"-f BAD4 a", NULL, "!--rankfile"},
    {"-f EMPTY a", NULL, "!EMPTY names no host"},
    {"a", "SLURM_JOB_ID=5|SLURM_JOB_NODELIST=n[1-3]|SLURM_TASKS_PER_NODE=4(x2)",
     "!SLURM_TASKS_PER_NODE=4(x2) does not give a number for each of the 3 hosts"},
    {"a", "SLURM_JOB_ID=5|SLURM_JOB_NODELIST=n[1-3]|SLURM_TASKS_PER_NODE=4(x4)", "!each of the 3"},
    {"a", "SLURM_JOB_ID=5|SLURM_JOB_NODELIST=n[1-3]|SLURM_TASKS_PER_NODE=4(3)", "!each of the 3"},
    {"a", "SLURM_JOB_ID=5|SLURM_JOB_NODELIST=n[1-3]", "!--ntasks-per-node"},
    {"a", "SLURM_JOB_ID=5|SLURM_JOB_NODELIST=n[1-|SLURM_TASKS_PER_NODE=1", "!SLURM_JOB_NODELIST: "},
    {"a", "PBS_JOBID=7|PBS_NODEFILE=/nonexistent", "!PBS_NODEFILE names, /nonexistent: No such"},
    {"a", "LSB_JOBID=7|LSB_MCPU_HOSTS=x 3 y", "!pairs of host and slots"},
    {"a", "JOB_ID=7|PE_HOSTFILE=NAMES", "!NAMES:1: expected a host and its slots"},
    {"a", "OMPI_MCA_ras_simulator_hosts=s1", "!add --do-not-launch"},
};

static void make_files(void)
{
    put_file("H", "# hosts\nx\n\n  y slots=4 max_slots=8 # and why\nz\nz\nme slots = 3\n"
                  "bob@w port=2222\nv username=eve count=1\r\n");
    put_file("NAMES", "x\nx\ny\n");
    put_file("MOST", "x slots=1 max_slots=2147483647\nx slots=1 max_slots=2147483647\n");
    put_file("BOM", "\xef\xbb\xbfx slots=3\r\n"); /* as some editors write it */
    put_file("PORTS", "x port=22\nx port=23\n");
    put_file("D", "d1:2\nd2");
    put_file("PE", "x 4 all.q@x UNDEFINED\n\ny.example.org 2 all.q@y <NULL>\n");
    put_file("BAD1", "x\ny slots=0\n");
    put_file("BAD2", "x slot=4\n");
    put_file("BAD3", "x slots=4 max-slots=2\n");
    put_file("BAD4", "rank 0=x slot=0\n");
    put_file("EMPTY", "# nothing\n");
}

static void set_environment(const char *settings, bool on)
{
    char **list = opal_argv_split(settings, '|');

    for (char **setting = list; setting != NULL && *setting != NULL; setting++) {
        char *value = strchr(*setting, '=');
        *value++ = '\0';
        if (on) {
            setenv(*setting, value, 1);
        } else {
            unsetenv(*setting);
        }
    }
    opal_argv_free(list);
}

/* A runtime of a host called "me", with the framework opened under the case's parameters. */
static int run_case(void *arg)
{
    const case_t *c = arg;
    char line[512];

    snprintf(line, sizeof(line), "mpirun %s", c->line);
    set_environment(c->environment, true);
    rt = orte_runtime_create("mpirun");
    free(rt->hostname);
    free(rt->self->name);
    rt->hostname = strdup("me");
    rt->self->name = strdup("me");
    int rc = opal_init();
    if (rc == OPAL_SUCCESS) {
        rc = orte_ras_open();
    }
    return rc == OPAL_SUCCESS ? allocate(line) : rc;
}

static void end_case(const case_t *c)
{
    orte_ras_close();
    opal_finalize();
    orte_runtime_destroy(rt);
    set_environment(c->environment, false);
}

static void all_cases(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const case_t *c = &cases[i];
        char text[1024] = "";
        int rc = caught(run_case, (void *)c, dir, message, sizeof(message));
        bool ok;
        if (c->expected[0] == '!') {
            size_t length = strlen(message);
            ok = rc != OPAL_SUCCESS && strstr(message, c->expected + 1) != NULL &&
                 strchr(message, '\n') == message + length - 1;
        } else {
            describe(text, sizeof(text));
            ok = rc == OPAL_SUCCESS && message[0] == '\0' && strcmp(text, c->expected) == 0;
        }
        TAP_OK(ok, "%s%s%s", c->line, c->environment == NULL ? "" : " with ",
               c->environment == NULL ? "" : c->environment);
        if (!ok) {
            printf("# got:      %s (%d) %s\n# expected: %s\n", text, rc, message, c->expected);
        }
        end_case(c);
    }
}

static const char alphabet[] = "nx019[]-,:^+e@.*%#= \nslots=2 max_slots=3 port=1 user=";

static void make_noise(char *text, int room, unsigned *seed)
{
    int length = rand_r(seed) % (room - 1);

    for (int i = 0; i < length; i++) {
        text[i] = alphabet[rand_r(seed) % (int)(sizeof(alphabet) - 1)];
    }
    text[length] = '\0';
}

/* A named host has a name, and it can't be taken for an option. */
static bool is_sane(const orte_ras_hosts_t *hosts)
{
    for (int i = 0; i < hosts->count; i++) {
        const orte_ras_host_t *host = &hosts->at[i];
        bool named = host->kind == ORTE_RAS_NAME || host->kind == ORTE_RAS_EXCLUDE;
        if ((host->name != NULL) != named ||
            (named && (host->name[0] == '\0' || host->name[0] == '-')) || host->slots < -1 ||
            host->port < 0 || host->port > 65535) {
            return false;
        }
    }
    return true;
}

/* Random text over the characters that mean something: an error or sane hosts. */
static void noise(void)
{
    const unsigned start = fuzz_seed(20261120);
    const int rounds = 20000 * fuzz_times();
    unsigned seed = start;
    bool sane = true;

    for (int round = 0; round < rounds; round++) {
        char text[64];
        orte_ras_hosts_t hosts = {0};
        bool file = round % 8 == 0;
        make_noise(text, file ? (int)sizeof(text) : 24, &seed);
        if (file) {
            put_file("NOISE", text);
        }
        int rc = file ? orte_ras_read_hostfile(&hosts, "NOISE")
                      : orte_ras_parse_hosts(&hosts, text, "--host");
        sane = sane && (rc != OPAL_SUCCESS || is_sane(&hosts));
        orte_ras_hosts_free(&hosts);
    }
    TAP_OK(sane, "%d random lists of hosts and host files, seed %u", rounds, start);
}

/* What a resource manager's variables or file say, damaged: an error, or nodes with slots. */
static void manager_noise(void)
{
    static const char *const managers[] = {
        "SLURM_JOB_ID=1|SLURM_JOB_NODELIST=%s|SLURM_TASKS_PER_NODE=2(x2)",
        "SLURM_JOB_ID=1|SLURM_JOB_NODELIST=n[1-3],x|SLURM_TASKS_PER_NODE=%s",
        "SLURM_JOB_ID=1|SLURM_JOB_NODELIST=n[1-3],x|SLURM_JOB_CPUS_PER_NODE=%s|SLURM_CPUS_PER_TASK=2",
        "LSB_JOBID=1|LSB_MCPU_HOSTS=%s", "LSB_JOBID=1|LSB_HOSTS=%s", "LSB_JOBID=1|LSB_DJOB_HOSTFILE=NOISE",
        "PBS_JOBID=1|PBS_NODEFILE=NOISE", "JOB_ID=1|PE_HOSTFILE=NOISE"};
    static const char few[] = "nx019[]-,()( x2) \n";
    const unsigned start = fuzz_seed(20261120);
    const int rounds = 150 * fuzz_times();
    unsigned seed = start;
    bool sane = true;

    for (int round = 0; round < rounds; round++) {
        const char *manager = managers[rand_r(&seed) % (sizeof(managers) / sizeof(managers[0]))];
        char text[24], environment[256];
        case_t c = {.line = "a", .environment = environment};
        int length = rand_r(&seed) % (int)(sizeof(text) - 1);
        for (int i = 0; i < length; i++) {
            text[i] = few[rand_r(&seed) % (int)(sizeof(few) - 1)];
        }
        text[length] = '\0';
        put_file("NOISE", text);
        snprintf(environment, sizeof(environment), manager, text);
        if (run_case(&c) == OPAL_SUCCESS) {
            for (int i = 0; i < rt->nnodes; i++) {
                sane = sane && rt->nodes[i]->name[0] != '\0' && rt->nodes[i]->slots >= 0;
            }
        }
        end_case(&c);
    }
    TAP_OK(sane, "%d damaged allocations of resource managers, seed %u", rounds, start);
}

/* Twenty thousand messages are of no use. */
static void quiet_noise(void)
{
    int null = open("/dev/null", O_WRONLY), saved = dup(STDERR_FILENO);

    dup2(null, STDERR_FILENO);
    noise();
    manager_noise();
    dup2(saved, STDERR_FILENO);
    close(null);
    close(saved);
}

int main(void)
{
    static const char *const clear[] = {"SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID", "LSB_JOBID",
                                        "JOB_ID", "SLURMD_NODENAME", "SLURM_CPUS_PER_TASK"};

    tap_start(300 * (unsigned)fuzz_times());
    for (size_t i = 0; i < sizeof(clear) / sizeof(clear[0]); i++) {
        unsetenv(clear[i]);
    }
    TAP_REQUIRE(mkdtemp(dir) != NULL && chdir(dir) == 0, "a directory");
    make_files();
    all_cases();
    quiet_noise();
    TAP_OK(chdir("/") == 0, "leave the directory");
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", dir);
    TAP_OK(system(command) == 0, "nothing left");
    return tap_end();
}
