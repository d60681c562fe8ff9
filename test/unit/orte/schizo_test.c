/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Command lines in the spellings of Open MPI and of hydra: what they come to, and which are
 * refused. */
#include "opal/constants.h"
#include "opal/util/argv.h"
#include "orte/mca/schizo/schizo.h"
#include "orte/util/env.h"
#include "test/support/tap.h"

#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

static orte_runtime_t *rt;
static orte_cli_action_t action; /* of the last parse() */

/* Parse a line split at blanks; '~' stands for a blank inside a word. Messages go nowhere. */
static int parse(const char *line)
{
    char **argv = opal_argv_split(line, ' ');

    for (char **word = argv; *word != NULL; word++) {
        for (char *at = *word; *at != '\0'; at++) {
            *at = *at == '~' ? ' ' : *at;
        }
    }
    orte_runtime_destroy(rt);
    rt = orte_runtime_create("mpirun");
    int null = open("/dev/null", O_WRONLY), saved = dup(STDERR_FILENO);
    dup2(null, STDERR_FILENO);
    int rc = orte_schizo_parse(rt, opal_argv_count(argv), argv, &action);
    dup2(saved, STDERR_FILENO);
    close(null);
    close(saved);
    opal_argv_free(argv);
    return rc;
}

/* --- what a command line came to: all that is not as by default --- */

static char text[2048];

static void add(const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + used, sizeof(text) - used, format, args);
    va_end(args);
}

static void add_list(const char *name, char **list)
{
    char *joined = opal_argv_join(list, ';');

    if (joined != NULL && joined[0] != '\0') {
        add(" %s=%s", name, joined);
    }
    free(joined);
}

static void add_text(const char *name, const char *value)
{
    if (value != NULL) {
        add(" %s=%s", name, value);
    }
}

static void add_flag(const char *name, bool set)
{
    if (set) {
        add(" %s", name);
    }
}

static void add_placement(const orte_placement_t *p)
{
    static const char *const maps[] = {"slot", "node", "object", "ppr", "seq", "rankfile"};
    static const char *const ranks[] = {"slot", "node", "fill", "object"};
    static const char *const states[] = {"unset", "no", "yes"};

    if (p->map_given) {
        add(" map=%s", maps[p->map]);
        if (p->map == ORTE_MAP_PPR) {
            add(":%d", p->ppr);
        }
        if (p->map_level > ORTE_LEVEL_NODE || p->map == ORTE_MAP_PPR) {
            add(":%s", orte_level_name(p->map_level));
        }
    }
    if (p->rank_given) {
        add(" rank=%s:%s", ranks[p->rank], orte_level_name(p->rank_level));
    }
    if (p->bind_given) {
        add(" bind=%s", orte_level_name(p->bind));
    }
    if (p->cpus_per_proc > 0) {
        add(" pe=%d", p->cpus_per_proc);
    }
    add_text("file", p->map_file);
    add_text("cpus", p->cpu_set);
    add_flag("span", p->span);
    add_flag("nolocal", p->nolocal);
    add_flag("hwt", p->hwthread_cpus);
    if (p->bind_overload != ORTE_UNSET) {
        add(" overload=%s", states[p->bind_overload + 1]);
    }
    if (p->oversubscribe != ORTE_UNSET) {
        add(" over=%s", states[p->oversubscribe + 1]);
    }
}

static void add_io(const orte_io_options_t *io)
{
    if (io->stdin_kind != ORTE_STDIN_RANK || io->stdin_rank != 0) {
        add(" stdin=%s%d", io->stdin_kind == ORTE_STDIN_ALL    ? "all"
                           : io->stdin_kind == ORTE_STDIN_NONE ? "none" : "", io->stdin_rank);
    }
    add_flag("tag", io->tag == ORTE_TAG_FULL);
    add_flag("rank", io->tag == ORTE_TAG_RANK);
    add_flag("time", io->timestamp);
    add_flag("merge", io->merge_stderr);
    add_text("dir", io->output_dir);
    add_flag("nocopy", io->output_only_files);
    add_text("out", io->out_pattern);
    add_text("err", io->err_pattern);
}

static void add_options(const orte_options_t *o)
{
    add_flag("quiet", o->quiet);
    add_flag("verbose", o->verbose);
    add_flag("dmap", o->display_map);
    add_flag("dbind", o->display_bindings);
    add_flag("dalloc", o->display_allocation);
    add_flag("dtopo", o->display_topologies);
    add_flag("dry", o->do_not_launch);
    add_flag("codes", o->print_exit_codes);
    add_flag("continuous", o->continuous);
    add_flag("stacks", o->stack_traces);
    add_flag("state", o->report_state);
    add_flag("noprefix", o->no_prefix);
    add_flag("noenv", o->env_none);
    add_text("prefix", o->prefix);
    add_text("launch_agent", o->launch_agent);
    if (o->timeout > 0) {
        add(" timeout=%g", o->timeout);
    }
    add_list("genv", o->env_set);
    add_list("unset", o->env_unset);
    add_list("mca", o->mca);
    add_list("tune", o->tune);
    add_list("path", o->search_path);
}

static void describe(void)
{
    text[0] = '\0';
    add_placement(&rt->job->placement);
    add_io(&rt->job->io);
    add_options(&rt->opt);
    for (int i = 0; i < rt->job->napps; i++) {
        const orte_app_t *app = rt->job->apps[i];
        add(" | %s", app->argv[0]);
        if (app->np > 0) {
            add(" n=%d", app->np);
        }
        add_text("wdir", app->wdir);
        add_list("hosts", app->hosts);
        add_list("files", app->hostfiles);
        add_list("env", app->env);
    }
}

/* Every spelling; the value is what it comes to. */
static const struct {
    const char *line, *value;
} spelled[] = {
    {"a", " | a"},
    {"-n 3 a", " | a n=3"},
    {"--n=3 a", " | a n=3"},
    {"-np 3 a", " | a n=3"},
    {"--np 3 a", " | a n=3"},
    {"-c 3 a", " | a n=3"},
    {"-n 5 -np 3 a", " | a n=3"},
    {"--np=3 -- a", " | a n=3"},
    {"-wdir /d a", " | a wdir=/d"},
    {"--wd /d a", " | a wdir=/d"},
    {"--path /p --path /q a", " path=/p;/q | a"},
    {"--allow-run-as-root a", " | a"},
    {"--host x,y:2 a", " | a hosts=x,y:2"},
    {"-H x a", " | a hosts=x"},
    {"-hosts x,y a", " | a hosts=x,y"},
    {"--hostfile /dev/null a", " | a files=/dev/null"},
    {"-machinefile /dev/null a", " | a files=/dev/null"},
    {"-f /dev/null a", " | a files=/dev/null"},
    {"--default-hostfile h a", " mca=ras_base_default_hostfile=h | a"},
    {"--nolocal a", " nolocal | a"},
    {"-skip-launch-node a", " nolocal | a"},
    {"--prefix /opt/h a", " prefix=/opt/h | a"},
    {"--noprefix a", " noprefix | a"},
    {"--no-prefix a", " noprefix | a"},
    {"--launch-agent /opt/h/bin/orted a", " launch_agent=/opt/h/bin/orted | a"},
    {"--rsh-agent rsh a", " mca=plm_rsh_agent=rsh | a"},
    {"-launcher-exec /bin/ssh a", " mca=plm_rsh_agent=/bin/ssh | a"},
    {"-bootstrap-exec /bin/ssh a", " mca=plm_rsh_agent=/bin/ssh | a"},
    {"-launcher ssh a", " mca=plm=rsh;plm_rsh_agent=ssh | a"},
    {"-bootstrap slurm a", " mca=plm=slurm | a"},
    {"-launcher fork a", " | a"},
    {"-iface eth1 a", " mca=net_include=eth1 | a"},
    {"--map-by slot a", " map=slot | a"},
    {"--map-by node a", " map=node | a"},
    {"--mapby core a", " map=object:core | a"},
    {"-map-by socket a", " map=object:package | a"},
    {"--map-by package:PE=2,SPAN:OVERSUBSCRIBE a", " map=object:package pe=2 span over=yes | a"},
    {"--map-by :NOOVERSUBSCRIBE,HWTCPUS a", " hwt over=no | a"},
    {"--map-by numa:NOLOCAL:CORECPUS a", " map=object:numa nolocal | a"},
    {"--map-by l3cache --map-by :PE=2 a", " map=object:l3cache pe=2 | a"},
    {"--map-by ppr:2:l2cache:PE=3 a", " map=ppr:2:l2cache pe=3 | a"},
    {"--map-by seq a", " map=seq | a"},
    {"--map-by seq:FILE=/h a", " map=seq file=/h | a"},
    {"--map-by rankfile:file=/r a", " map=rankfile file=/r | a"},
    {"--map-by pe-list=0,2:ORDERED a", " map=slot cpus=0,2 | a"},
    {"--rankfile /r a", " map=rankfile file=/r | a"},
    {"-rf /r a", " map=rankfile file=/r | a"},
    {"--rank-by span a", " rank=object:none | a"},
    {"--rankby fill a", " rank=fill:none | a"},
    {"--rank-by numa a", " rank=object:numa | a"},
    {"--bind-to core a", " bind=core | a"},
    {"--bindto hwt a", " bind=hwthread | a"},
    {"-bind-to socket a", " bind=package | a"},
    {"-binding numa a", " bind=numa | a"},
    {"--bind-to l2cache:overload-allowed a", " bind=l2cache overload=yes | a"},
    {"--bind-to core:if-supported,no-overload a", " bind=core overload=no | a"},
    {"--bind-to node a", " bind=none | a"},
    {"-N 2 a", " map=ppr:2:node | a"},
    {"--npernode 2 a", " map=ppr:2:node | a"},
    {"-ppn 2 a", " map=ppr:2:node | a"},
    {"-perhost 2 a", " map=ppr:2:node | a"},
    {"--npersocket 2 a", " map=ppr:2:package | a"},
    {"--pernode a", " map=ppr:1:node | a"},
    {"--byslot a", " map=slot | a"},
    {"--bynode a", " map=node | a"},
    {"-rr a", " map=node | a"},
    {"--bycore a", " map=object:core | a"},
    {"--bysocket a", " map=object:package | a"},
    {"--bind-to-core a", " bind=core | a"},
    {"--bind-to-socket a", " bind=package | a"},
    {"--bind-to-none a", " bind=none | a"},
    {"--cpus-per-proc 4 a", " pe=4 | a"},
    {"--cpus-per-rank 4 a", " pe=4 | a"},
    {"--oversubscribe a", " over=yes | a"},
    {"--nooversubscribe a", " over=no | a"},
    {"--no-oversubscribe a", " over=no | a"},
    {"--use-hwthread-cpus a", " hwt | a"},
    {"--cpu-set 0-3 a", " cpus=0-3 | a"},
    {"--cpu-list 0,2 a", " cpus=0,2 | a"},
    {"--display map,bind,alloc,topo a", " dmap dbind dalloc dtopo | a"},
    {"--display map-devel,bindings,allocation,topology a", " dmap dbind dalloc dtopo | a"},
    {"--report-bindings a", " dbind | a"},
    {"--display-map a", " dmap | a"},
    {"--display-devel-map a", " dmap | a"},
    {"--display-allocation a", " dalloc | a"},
    {"--display-devel-allocation a", " dalloc | a"},
    {"--display-topo a", " dtopo | a"},
    {"--do-not-launch a", " dry | a"},
    {"--stdin 3 a", " stdin=3 | a"},
    {"-s all a", " stdin=all0 | a"},
    {"--stdin none a", " stdin=none0 | a"},
    {"--tag-output a", " tag | a"},
    {"-prepend-rank a", " rank | a"},
    {"-l a", " rank | a"},
    {"--timestamp-output a", " time | a"},
    {"--merge-stderr-to-stdout a", " merge | a"},
    {"--output-filename /d:nocopy a", " dir=/d nocopy | a"},
    {"--output-directory /d a", " dir=/d | a"},
    {"--output-filename /d:x a", " dir=/d:x | a"},
    {"--output tag,timestamp,merge,dir=/d a", " tag time merge dir=/d | a"},
    {"--output rank,directory=/d a", " rank dir=/d | a"},
    {"-outfile-pattern /o.%r.%h -errfile-pattern /e.%g.%r a", " out=/o.%r.%h err=/e.%g.%r | a"},
    {"-x A=1 a", " | a env=A=1"},
    {"-genv A 1 a", " genv=A=1 | a"},
    {"-env A 1 a", " | a env=A=1"},
    {"-genvnone a", " noenv | a"},
    {"-envnone -envall a", " | a"},
    {"-genvnone -genvall a", " | a"},
    {"-genvlist SCHIZO_TEST a", " noenv genv=SCHIZO_TEST=set | a"},
    {"-envlist SCHIZO_TEST a", " noenv genv=SCHIZO_TEST=set | a"},
    {"-genvlist SCHIZO_TEST a : b", " noenv genv=SCHIZO_TEST=set | a | b"},
    {"-genv SCHIZO_TEST 5 -genvlist SCHIZO_TEST a", " noenv genv=SCHIZO_TEST=5 | a"},
    {"-genvlist SCHIZO_TEST -genv SCHIZO_TEST 5 a", " noenv genv=SCHIZO_TEST=5 | a"},
    {"-x SCHIZO_T* a", " | a env=SCHIZO_TEST=set"},
    {"--unset-env A a", " unset=A | a"},
    {"--mca a 1 --gmca b 2 a", " mca=a=1;b=2 | a"},
    {"--prtemca a 1 --omca b 2 a", " mca=a=1;b=2 | a"},
    {"--report-links a", " mca=pml_base_report_links=text | a"},
    {"-memory-alloc-kinds mpi,cuda a", " | a"},
    {"-initial-errhandler mpi_errors_return a", " mca=mpi_initial_errhandler=mpi_errors_return | a"},
    {"--report-links=json:/f a", " mca=pml_base_report_links=json:/f | a"},
    {"--pmixmca ptl_base_verbose 1 a", " | a"},
    {"--timeout 2.5 a", " timeout=2.5 | a"},
    {"--timeout 1 --get-stack-traces --report-state-on-timeout a", " stacks state timeout=1 | a"},
    {"--continuous a", " continuous | a"},
    {"--enable-recovery a", " continuous | a"},
    {"-disable-auto-cleanup a", " continuous | a"},
    {"--with-ft ulfm a", " continuous | a"},
    {"--with-ft none a", " | a"},
    {"--disable-recovery a", " | a"},
    {"-print-all-exitcodes a", " codes | a"},
    {"-exitcodes a", " codes | a"},
    {"-q a", " quiet | a"},
    {"--quiet a", " quiet | a"},
    {"-v a", " verbose | a"},
    {"--verbose a", " verbose | a"},
    {"--personality ompi --leave-session-attached --show-progress a", " | a"},
    {"--do-not-resolve --novm -disable-hostname-propagation a", " | a"},
    {"-n 1 --host x a : -n 2 -f /dev/null -wdir /d b",
     " | a n=1 hosts=x | b n=2 wdir=/d files=/dev/null"},
};

static void spellings(void)
{
    setenv("SCHIZO_TEST", "set", 1);
    for (size_t i = 0; i < sizeof(spelled) / sizeof(spelled[0]); i++) {
        char line[256];
        snprintf(line, sizeof(line), "mpirun %s", spelled[i].line);
        text[0] = '\0';
        int rc = parse(line);
        if (rc == OPAL_SUCCESS) {
            describe();
        }
        bool ok = rc == OPAL_SUCCESS && strcmp(text, spelled[i].value) == 0;
        TAP_OK(ok, "%s", spelled[i].line);
        if (!ok) {
            printf("# got:      %s (%d)\n# expected: %s\n", text, rc, spelled[i].value);
        }
    }
}

/* Those that print something and end. */
static void informed(void)
{
    static const char *const lines[] = {"mpirun --help", "mpirun -h", "mpirun --help mapping",
                                        "mpirun --help=--host", "mpirun --version", "mpirun -V",
                                        "mpirun -n 2 --version nonsense"};

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        fflush(stdout);
        int null = open("/dev/null", O_WRONLY), saved = dup(STDOUT_FILENO);
        dup2(null, STDOUT_FILENO);
        int rc = parse(lines[i]);
        fflush(stdout);
        dup2(saved, STDOUT_FILENO);
        close(null);
        close(saved);
        TAP_OK(rc == OPAL_SUCCESS && action == ORTE_CLI_EXIT, "%s", lines[i]);
    }
}

static void old_spellings(void)
{
    TAP_OK(parse("mpirun --npernode 2 --bycore -ppn 3 -n 2 a") == 0 &&
               opal_argv_count(rt->opt.old_spellings) == 2 &&
               strcmp(rt->opt.old_spellings[0], "--npernode (now -N)") == 0 &&
               strcmp(rt->opt.old_spellings[1], "--bycore (now --map-by=core)") == 0,
           "old spellings are remembered with the new ones");
}

static void programs(void)
{
    TAP_REQUIRE(parse("mpirun -n 2 -x A=1 -genv G g a -n 9 -x : -wdir /d -env B 2 b : c") == 0,
                "three programs");
    orte_app_t **apps = rt->job->apps;
    TAP_OK(rt->job->napps == 3, "are three");
    TAP_OK(apps[0]->np == 2 && apps[1]->np == 0, "-n belongs to the one that follows");
    TAP_OK(opal_argv_count(apps[0]->argv) == 4 && strcmp(apps[0]->argv[3], "-x") == 0,
           "options after a program are its arguments");
    TAP_OK(strcmp(orte_env_get(apps[0]->env, "A"), "1") == 0 && apps[2]->env == NULL,
           "-x belongs to the one that follows");
    TAP_OK(strcmp(orte_env_get(apps[1]->env, "B"), "2") == 0 && strcmp(apps[1]->wdir, "/d") == 0,
           "-env, -wdir likewise");
    TAP_OK(strcmp(orte_env_get(rt->opt.env_set, "G"), "g") == 0, "-genv is for all");
    TAP_OK(apps[2]->index == 2 && strcmp(apps[2]->argv[0], "c") == 0, "in order");
}

static void values(void)
{
    TAP_OK(parse("mpirun --map-by numa:PE=3:OVERSUBSCRIBE,HWTCPUS --rank-by fill --bind-to "
                 "core:no-overload a") == 0 &&
               rt->job->placement.map == ORTE_MAP_OBJECT &&
               rt->job->placement.map_level == ORTE_LEVEL_NUMA &&
               rt->job->placement.cpus_per_proc == 3 &&
               rt->job->placement.oversubscribe == ORTE_YES && rt->job->placement.hwthread_cpus &&
               rt->job->placement.rank == ORTE_RANK_FILL &&
               rt->job->placement.bind == ORTE_LEVEL_CORE &&
               rt->job->placement.bind_overload == ORTE_NO, "placement");
    TAP_OK(parse("mpirun --map-by :OVERSUBSCRIBE a") == 0 && !rt->job->placement.map_given &&
               rt->job->placement.oversubscribe == ORTE_YES, "modifiers alone");
    TAP_OK(parse("mpirun --mca a 1 --mca b 2 --gmca a 3 p") == 0 &&
               opal_argv_count(rt->opt.mca) == 3 && strcmp(rt->opt.mca[2], "a=3") == 0,
           "parameters, in order");
    TAP_OK(parse("mpirun --stdin all --tag-output --timestamp-output --merge-stderr-to-stdout a") ==
                   0 && rt->job->io.stdin_kind == ORTE_STDIN_ALL && rt->job->io.tag == ORTE_TAG_FULL &&
               rt->job->io.timestamp && rt->job->io.merge_stderr, "input and output");
    TAP_OK(parse("mpirun --output-filename /d:nocopy a") == 0 &&
               strcmp(rt->job->io.output_dir, "/d") == 0 && rt->job->io.output_only_files,
           "output files");
    TAP_OK(parse("mpirun --host a,b:2 --host c a") == 0 &&
               opal_argv_count(rt->job->apps[0]->hosts) == 2, "hosts");
    TAP_OK(parse("mpirun --timeout 2.5 a") == 0 && rt->opt.timeout == 2.5, "a fraction of a second");
    TAP_OK(parse("mpirun --report-bindings --display map,alloc a") == 0 && rt->opt.display_map &&
               rt->opt.display_bindings && rt->opt.display_allocation, "--display");
}

static const char *const bad[] = {
    "", "-n", "-n 2", "-n x a", "-n 0 a", "-n -1 a", "-n 99999999999 a", "-n 2x a", "--nonsense a",
    "a :", ": a", "--mca x", "--mca x=y 1 a", "--quiet=1 a", "--map-by core:PE a",
    "--map-by core:PE= a", "--map-by ppr a", "--map-by ppr:2 a", "--map-by ppr:x:core a",
    "--map-by core:JUNK a", "--bind-to core:junk a", "--bind-to core: a", "--rank-by junk a",
    "--timeout 0 a", "--timeout nan a", "--timeout inf a", "--stdin -1 a", "--display junk a",
    "--output junk a", "--output-filename :nocopy a", "--hostfile /nonexistent a",
    "--app /nonexistent", "-configfile /nonexistent", "--tune /nonexistent a", "-am /nonexistent a",
    "--help nonsense", "--prefix opt a", "--launch-agent --version a",
    "--with-ft junk a", "--report-links=junk a", "-launcher junk a", "--byslot=1 a",
    "--pmixmca a=b c a", "--output-filename /d:nojobid a", "--output-filename /d:nocopy,nojobid a",
    "-x =5 a", "-x= a", "-genv =A 5 a", "-env A=B 5 a",
    "--map-by=core:FILE= a",
    /* Known elsewhere. */
    "--xml a", "--xml-file a", "--preload-binary a", "--preload-files f a", "--max-restarts 2 a",
    "--set-cwd-to-session-dir a", "--ompi-server u a", "-ckpoint 1 a", "-ckpoint-interval 1 a",
    "-ckpoint-prefix p a", "-ckpointlib blcr a", "-outfile-pattern p a", "-errfile-pattern %x%r a",
    "-outfile-pattern %r% a", "-prepend-pattern p a", "--debug a", "--debugger a", "--tv a",
    "-rankmap m a", "-membind local a",
};

static void refused(void)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char line[256];
        snprintf(line, sizeof(line), "mpirun %s", bad[i]);
        TAP_OK(parse(line) != OPAL_SUCCESS, "refused: %s", bad[i]);
    }
}

static void put_file(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");

    fputs(content, file);
    fclose(file);
}

static void files(void)
{
    char dir[] = "/tmp/hawser-schizo-test-XXXXXX", path[64], line[128], itself[128];

    TAP_REQUIRE(mkdtemp(dir) != NULL, "a directory");
    snprintf(path, sizeof(path), "%s/apps", dir);
    put_file(path, "# programs\n-n 2 -x B=2 'a b' \"c \\\"d\\\"\" e\\ f # end\n\n-n 1 -wdir /q \\\n"
                   "   g \\\n h\n");
    snprintf(line, sizeof(line), "mpirun -x A=1 --host x -wdir /d --app %s", path);
    bool ok = parse(line) == OPAL_SUCCESS && rt->job->napps == 2;
    if (ok) {
        describe();
    }
    TAP_OK(ok && strcmp(text, " | a b n=2 wdir=/d hosts=x env=A=1;B=2"
                              " | g n=1 wdir=/q hosts=x env=A=1") == 0,
           "--app with comments, continued lines, and what stands before it: %s", text);
    char **argv = ok ? rt->job->apps[0]->argv : NULL;
    TAP_OK(ok && opal_argv_count(argv) == 3 && strcmp(argv[1], "c \"d\"") == 0 &&
               strcmp(argv[2], "e f") == 0 && opal_argv_count(rt->job->apps[1]->argv) == 2, "quotes");
    put_file(path, "a = 1 2\n# comment\n--mca b 3 -x V=4\nc=\\\n 5\n");
    snprintf(line, sizeof(line), "mpirun --tune %s a", path);
    ok = parse(line) == OPAL_SUCCESS;
    if (ok) {
        describe();
    }
    TAP_OK(ok && strcmp(text, " genv=V=4 tune=a=1 2;b=3;c=5 | a") == 0, "--tune: %s", text);
    put_file(path, "-n 1 a : -n 2 b\n");
    snprintf(line, sizeof(line), "mpirun --app %s", path);
    TAP_OK(parse(line) != OPAL_SUCCESS, "refused: ':' in a file of programs");
    put_file(path, "-n 1 'a\n");
    TAP_OK(parse(line) != OPAL_SUCCESS, "refused: an open quote");
    put_file(path, "# first \\\n-n 1 a \"b\\nc\" \\\r\n d\r\n-n 1 e \\\\\n-n 1 f\n");
    ok = parse(line) == OPAL_SUCCESS && rt->job->napps == 3;
    argv = ok ? rt->job->apps[0]->argv : NULL;
    TAP_OK(ok && opal_argv_count(argv) == 3 && strcmp(argv[1], "b\\nc") == 0 && strcmp(argv[2], "d") == 0 &&
               strcmp(rt->job->apps[1]->argv[1], "\\") == 0,
           "a comment goes on in no other line, nor does an escaped backslash; within \"\" a backslash stays, as in a shell");
    snprintf(itself, sizeof(itself), "--app %s a\n", path);
    put_file(path, itself);
    TAP_OK(parse(line) != OPAL_SUCCESS, "refused: a file of programs that names itself");
    snprintf(line, sizeof(line), "mpirun --tune %s a", path);
    put_file(path, "--mca =x y\n");
    TAP_OK(parse(line) != OPAL_SUCCESS, "refused: no name in --tune");
    unlink(path);
    rmdir(dir);
}

static void matching(void)
{
    char *patterns[] = {"EXACT", "PRE*", NULL};

    TAP_OK(orte_env_matches("EXACT=1", patterns) && orte_env_matches("PREFIX=1", patterns) &&
               orte_env_matches("PRE=1", patterns), "names that match");
    TAP_OK(!orte_env_matches("EXACTLY=1", patterns) && !orte_env_matches("PR=1", patterns) &&
               !orte_env_matches("X=PRE", patterns), "names that do not");
}

int main(void)
{
    tap_start(30);
    spellings();
    informed();
    old_spellings();
    programs();
    values();
    refused();
    files();
    matching();
    orte_runtime_destroy(rt);
    return tap_end();
}
