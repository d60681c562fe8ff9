/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Parameters: every source and its rank, provenance, types and limits, names nobody knows. */
#include "opal/mca/base/var.h"

#include <inttypes.h>
#include <locale.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "opal/runtime/opal.h"
#include "opal/util/output.h"
#include "scene.h"

static const mca_base_var_enum_t colours[] = {{"red", 1}, {"green", 2}, {"blue", 5}, {NULL, 0}};
static const char *const old_names[] = {"tst_old_number", NULL};

static struct {
    int64_t number, colour, loud;
    uint64_t size;
    bool flag;
    double ratio;
    char *string;
} value;

static const mca_base_var_desc_t descs[] = {
    {.framework = "tst", .component = "x", .name = "number", .help = "a number",
        .type = MCA_VAR_INT,
     .level = MCA_VAR_LEVEL_USER, .scope = MCA_VAR_SCOPE_ALL, .def.i = 3, .min = -10, .max = 1000,
     .synonyms = old_names},
    {.framework = "tst", .component = "x", .name = "colour", .help = "a colour",
        .type = MCA_VAR_ENUM,
     .level = MCA_VAR_LEVEL_USER, .def.i = 2, .enums = colours},
    {.framework = "tst", .component = "x", .name = "size", .help = "a size", .unit = "bytes",
     .type = MCA_VAR_SIZE, .level = MCA_VAR_LEVEL_USER, .def.size = 4096},
    {.framework = "tst", .component = "x", .name = "flag", .help = "a flag", .type = MCA_VAR_BOOL,
     .level = MCA_VAR_LEVEL_USER, .def.b = true},
    {.framework = "tst", .component = "x", .name = "ratio", .help = "a ratio",
        .type = MCA_VAR_DOUBLE,
     .level = MCA_VAR_LEVEL_USER, .def.d = 0.5},
    {.framework = "tst", .component = "x", .name = "string", .help = "a string",
        .type = MCA_VAR_STRING,
     .level = MCA_VAR_LEVEL_USER, .scope = MCA_VAR_SCOPE_LOCAL, .def.s = "abc"},
    {.framework = "tst", .name = "loud", .help = "deprecated", .type = MCA_VAR_INT,
        .enums = colours,
     .level = MCA_VAR_LEVEL_USER, .deprecated = "use tst_x_number instead"},
};

static int register_all(void)
{
    void *const storage[] = {&value.number, &value.colour, &value.size, &value.flag,
                             &value.ratio, &value.string, &value.loud};
    int worst = OPAL_SUCCESS;
    for (size_t i = 0; i < sizeof(descs) / sizeof(descs[0]); i++) {
        const int rc = mca_base_var_register(&descs[i], storage[i]);
        worst = rc != OPAL_SUCCESS ? rc : worst;
    }
    return worst;
}

/* What a child is to do: set the environment, start, register, check, compare. */
typedef struct scene {
    const char *env[8];         /* name, value, ..., NULL */
    int init, reg, check;       /* expected results */
    const char *name, *text;    /* a parameter's expected value */
    const char *source;         /* the end of its expected source text */
} scene_t;

static bool ends_with(const char *text, const char *end)
{
    const size_t a = strlen(text), b = strlen(end);
    return a >= b && 0 == strcmp(text + a - b, end);
}

static int play(void *context)
{
    const scene_t *s = context;
    opal_output_set_identity("test");
    for (size_t i = 0; s->env[i]; i += 2) {
        setenv(s->env[i], s->env[i + 1], 1);
    }
    const int init = opal_init();
    if (init != s->init || init != OPAL_SUCCESS) {
        return init == s->init ? 0 : 10;
    }
    const int reg = register_all();
    const int check = mca_base_var_check_unknown();
    const mca_base_var_t *v = s->name ? mca_base_var_get(mca_base_var_find(s->name)) : NULL;
    int bad = reg != s->reg ? 11 : check != s->check ? 12 : 0;
    if (s->name && (NULL == v || 0 != strcmp(v->text, s->text)
                    || !ends_with(v->source_text, s->source))) {
        fprintf(stderr, "%s = %s (%s)\n", s->name, v ? v->text : "?", v ? v->source_text : "?");
        bad = 13;
    }
    opal_finalize();
    return bad;
}

/* Run a scene; `says`: what must stand in its output (NULL: it must say nothing). */
static void expect_of(int (*player)(void *), const char *what, scene_t s, const char *says)
{
    child_result_t r;
    child_run(player, &s, &r);
    if (!TAP_OK(0 == r.status && (says ? NULL != strstr(r.err, says) : '\0' == r.err[0]), "%s",
                what)) {
        child_explain(&r);
    }
}

static void expect(const char *what, scene_t s, const char *says)
{
    expect_of(play, what, s, says);
}

/* As somebody who may not read all of it; root would. */
static int play_as_other(void *context)
{
    const uid_t self = geteuid();
    if (0 == self && 0 != seteuid(65534)) {
        return 14;
    }
    const int status = play(context);
    if (0 != seteuid(self) || 0 != prctl(PR_SET_DUMPABLE, 1)) { /* for the leak sanitizer */
        return 15;
    }
    return status;
}

#define NUMBER(t, from) .name = "tst_x_number", .text = t, .source = from

static void precedence(void)
{
    expect("default", (scene_t) {NUMBER("3", "default")}, NULL);
    scene_file(SCENE_SITE, "# site\ntst_x_number = 10\n");
    expect("site file", (scene_t) {NUMBER("10", SCENE_SITE ":2")}, NULL);
    scene_file(SCENE_USER, "tst_x_number = 20\ntst_x_number = 21\n");
    expect("user file beats it, its last line counts", (scene_t) {NUMBER("21", SCENE_USER ":2")},
           NULL);
    expect("environment beats them",
           (scene_t) {.env = {"OMPI_MCA_tst_x_number", "30"}, NUMBER("30", "environment")}, NULL);
    expect("--tune file", (scene_t) {.env = {"OMPI_MCA_tst_x_number", "40",
                                             "HAWSER_MCA_SOURCE_tst_x_number",
                                             "tune /a/b.tune:7"}, NUMBER("40", "/a/b.tune:7")},
                                             NULL);
    expect("command line", (scene_t) {.env = {"OMPI_MCA_tst_x_number", "50",
                                              "HAWSER_MCA_SOURCE_tst_x_number",
                                              "command line"}, NUMBER("50", "command line")}, NULL);
    scene_file(SCENE_OVERRIDE, "tst_x_number = 60\n");
    expect("the override file beats everything",
           (scene_t) {.env = {"OMPI_MCA_tst_x_number", "50", "HAWSER_MCA_SOURCE_tst_x_number",
                              "command line"},
                      NUMBER("60", SCENE_OVERRIDE ":1")}, NULL);
    scene_file(SCENE_OVERRIDE, NULL);

    char files[256];
    snprintf(files, sizeof(files), "%s/a.conf:%s/b.conf", scene_dir, scene_dir);
    scene_file("a.conf", "tst_x_number = 70\n");
    scene_file("b.conf", "tst_x_number = 80\ntst_x_size = 1k\n");
    expect("the leftmost of mca_base_param_files wins",
           (scene_t) {.env = {"OMPI_MCA_mca_base_param_files", files}, NUMBER("70", "a.conf:1")},
           NULL);
    expect("and the others are read too",
           (scene_t) {.env = {"OMPI_MCA_mca_base_param_files", files},
                      .name = "tst_x_size", .text = "1024", .source = "b.conf:2"}, NULL);
    scene_file(SCENE_SITE, NULL);
    scene_file(SCENE_USER, NULL);

    expect("a synonym", (scene_t) {.env = {"OMPI_MCA_tst_old_number", "5"},
                                   NUMBER("5", "environment")}, NULL);
    scene_file(SCENE_USER, "tst_x_number = 20\n");
    expect("a synonym from a stronger source beats the name",
           (scene_t) {.env = {"OMPI_MCA_tst_old_number", "5"}, NUMBER("5", "environment")}, NULL);
    scene_file(SCENE_USER, NULL);
}

static void bad_files(void)
{
    scene_file(SCENE_USER, "tst_x_number = 4\nthis is nothing\n");
    expect("a malformed line ends the start, with file and line",
           (scene_t) {.init = OPAL_ERR_PARSE},
           SCENE_USER ":2: this line is no parameter setting: there is no '='");
    expect("or is only reported", (scene_t) {.env = {"OMPI_MCA_mca_base_param_check", "warn"},
                                             NUMBER("4", SCENE_USER ":1")}, SCENE_USER ":2: ");
    expect("or ignored", (scene_t) {.env = {"OMPI_MCA_mca_base_param_check", "ignore"},
                                    NUMBER("4", SCENE_USER ":1")}, NULL);
    scene_file(SCENE_USER, "tst_x_number = 4\nmca_base_param_files = /nonexistent.conf\n");
    expect("a file that names other files", (scene_t) {.init = OPAL_ERR_PARSE},
           SCENE_USER ":2: this line is no parameter setting: mca_base_param_files says which files are read, and has no effect");
    scene_file(SCENE_USER, NULL);
    expect("a missing file that was asked for",
           (scene_t) {.env = {"OMPI_MCA_mca_base_param_files", "/nonexistent.conf"},
                      .init = OPAL_ERR_PARSE},
           "/nonexistent.conf: the parameter file can't be read: there is no such file");
    expect("a folder in place of a file",
           (scene_t) {.env = {"OMPI_MCA_mca_base_param_files", "/"}, .init = OPAL_ERR_PARSE},
           "/: the parameter file can't be read: Is a directory");
}

static void good(const char *name, const char *given, const char *text)
{
    char env[128];
    snprintf(env, sizeof(env), "OMPI_MCA_%s", name);
    char what[256];
    snprintf(what, sizeof(what), "%s = %s", name, given);
    expect(what, (scene_t) {.env = {env, given}, .name = name, .text = text,
                            .source = "environment"}, NULL);
}

static void bad(const char *name, const char *given, const char *says)
{
    char env[128];
    snprintf(env, sizeof(env), "OMPI_MCA_%s", name);
    char what[256];
    snprintf(what, sizeof(what), "%s = %s is refused", name, given);
    expect(what, (scene_t) {.env = {env, given}, .reg = OPAL_ERR_BAD_PARAM,
                            .check = OPAL_ERR_BAD_PARAM}, says);
}

static void types(void)
{
    good("tst_x_number", "-10", "-10");
    good("tst_x_number", "0x10", "16");
    good("tst_x_number", "010", "10");
    bad("tst_x_number", "1001", "\"1001\" (from: environment) is not between -10 and 1000");
    bad("tst_x_number", "99999999999999999999", "out of the range");
    bad("tst_x_number", "12x", "is not an integer");
    bad("tst_x_number", "", "is not an integer");
    bad("tst_x_number", " 1", "is not an integer");
    good("tst_x_colour", "BLUE", "blue");
    good("tst_x_colour", "1", "red");
    bad("tst_x_colour", "gren", "is none of red, green, blue (the nearest is green).");
    bad("tst_x_colour", "3", "is none of");
    good("tst_x_size", "0", "0");
    good("tst_x_size", "64k", "65536");
    good("tst_x_size", "1 MiB", "1048576");
    good("tst_x_size", "2gb", "2147483648");
    good("tst_x_size", "16777215t", "18446742974197923840");
    good("tst_x_size", "18446744073709551615", "18446744073709551615");
    bad("tst_x_size", "16777216t", "out of the range");
    bad("tst_x_size", "18446744073709551616", "out of the range");
    bad("tst_x_size", "-1", "is not a size");
    bad("tst_x_size", "1q", "is not a size");
    bad("tst_x_size", "k", "is not a size");
    good("tst_x_flag", "no", "false");
    good("tst_x_flag", "On", "true");
    bad("tst_x_flag", "maybe", "is none of true, false");
    good("tst_x_ratio", "1e-3", "0.001");
    bad("tst_x_ratio", "1,5", "is not a finite number");
    bad("tst_x_ratio", "nan", "is not a finite number");
    good("tst_x_string", "a b#c", "a b#c");
    good("tst_x_string", "", "");
    expect("a bad value may be tolerated",
           (scene_t) {.env = {"OMPI_MCA_mca_base_param_check", "warn", "OMPI_MCA_tst_x_number",
                              "x"},
                      NUMBER("3", "default")}, "The default is used instead: \"3\".");
    expect("a bad strictness is itself an error",
           (scene_t) {.env = {"OMPI_MCA_mca_base_param_check", "wran"}, .init = OPAL_ERR_BAD_PARAM},
           "(the nearest is warn)");
    expect("a deprecated parameter", (scene_t) {.env = {"OMPI_MCA_tst_loud", "green"},
                                                .name = "tst_loud",
                                                .text = "2", .source = "environment"},
           "parameter tst_loud (from: environment) is deprecated: use tst_x_number instead.");
}

static void forbid(const char *name, mode_t mode)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", scene_dir, name);
    chmod(path, mode);
}

/* Files that are there, and that we may not read. */
static void files_of_others(void)
{
    char user[256];
    scene_file(SCENE_USER, "tst_x_number = 20\n");
    scene_file(SCENE_SITE, "tst_x_number = 10\n");
    forbid("", 0755);
    forbid("home", 0);
    expect_of(play_as_other, "somebody else's home has no file for us", (scene_t) {NUMBER("10", SCENE_SITE ":1")}, NULL);
    snprintf(user, sizeof(user), "%s/%s", scene_dir, SCENE_USER);
    expect_of(play_as_other, "but a file that was named must be readable",
              (scene_t) {.env = {"OMPI_MCA_mca_base_param_files", user}, .init = OPAL_ERR_PARSE}, "can't be read");
    forbid(SCENE_SITE, 0);
    expect_of(play_as_other, "and so must the site's", (scene_t) {.init = OPAL_ERR_PARSE}, "can't be read");
    forbid("home", 0755);
    scene_file(SCENE_USER, NULL);
    scene_file(SCENE_SITE, NULL);
}

static void unknown_names(void)
{
    expect("an unknown name ends the start, with the nearest name",
           (scene_t) {.env = {"OMPI_MCA_tst_x_nubmer", "1"}, .check = OPAL_ERR_NOT_FOUND},
           "parameter tst_x_nubmer (from: environment) is not known. Did you mean tst_x_number?");
    expect("a name in the environment that is like none of ours is another library's",
           (scene_t) {.env = {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"}},
           "parameter btl_vader_single_copy_mechanism (from: environment) is not known.\n    It has no effect.");
    expect("which one process of a job says", (scene_t) {.env = {"OMPI_MCA_btl_vader_single_copy_mechanism", "none", "PMIX_RANK", "1"}}, NULL);
    expect("... and elsewhere it is an error, which says whose it is",
           (scene_t) {.env = {"OMPI_MCA_mpi_yield_when_idle", "1", "HAWSER_MCA_SOURCE_mpi_yield_when_idle", "command line"}, .check = OPAL_ERR_NOT_FOUND}, "It is a parameter of Open MPI's");
    scene_file(SCENE_SITE, "\n\ntst_y_number = 1\n");
    expect("also from a file, with its line", (scene_t) {.check = OPAL_ERR_NOT_FOUND},
           SCENE_SITE ":3) is not known");
    expect("or is only reported", (scene_t) {.env = {"OMPI_MCA_mca_base_param_check", "warn"}},
           "It has no effect.");
    expect("or ignored", (scene_t) {.env = {"OMPI_MCA_mca_base_param_check", "ignore"}}, NULL);
    char mark[MCA_BASE_MARK_MAX];
    mca_base_var_mark((char *[]) {"OMPI_MCA_b=1", "HOME=/", "OMPI_MCA_a=2", NULL}, mark);
    expect("or was checked by the launcher", (scene_t) {.env = {"OMPI_MCA_a", "2", "OMPI_MCA_b", "1", "HAWSER_MCA_CHECKED", mark}}, NULL);
    expect("who then had the same settings", (scene_t) {.env = {"OMPI_MCA_a", "2", "OMPI_MCA_b", "2", "HAWSER_MCA_CHECKED", mark},
                                                        .check = OPAL_ERR_NOT_FOUND}, SCENE_SITE ":3) is not known");
    scene_file(SCENE_SITE, "?tst_y_number = 1\n?tst_x_number = 9\n");
    expect("an optional name", (scene_t) {NUMBER("9", SCENE_SITE ":2")}, NULL);
    scene_file(SCENE_SITE, NULL);
    expect("an optional name on the command line",
           (scene_t) {.env = {"OMPI_MCA_?tst_x_number", "8", "OMPI_MCA_?tst_zzz", "8"},
                      NUMBER("8", "environment")},
           NULL);
}

/* Values in their storage, changes at run time, unbinding and binding again. */
static int at_run_time(void *context)
{
    (void) context;
    mca_base_var_value_t v;
    int64_t second = 0;
    setenv("OMPI_MCA_tst_x_ratio", "2.25", 1);
    setlocale(LC_ALL, "de_DE.UTF-8");
    if (OPAL_SUCCESS != opal_init() || OPAL_SUCCESS != register_all()) {
        return 1;
    }
    const int number = mca_base_var_find("tst_x_number");
    const int string = mca_base_var_find("tst_x_string");
    if (number < 0 || mca_base_var_find("tst_old_number") != number
        || mca_base_var_find("nonsense") != -1) {
        return 2;
    }
    if (value.number != 3 || value.colour != 2 || value.size != 4096 || !value.flag
        || value.ratio != 2.25
        || 0 != strcmp(value.string, "abc")) {
        return 3;
    }
    const char *old = value.string;
    if (OPAL_SUCCESS != mca_base_var_set(number, "77") || value.number != 77
        || OPAL_SUCCESS != mca_base_var_set(string, "new") || 0 != strcmp(value.string, "new")
        || 0 != strcmp(old, "abc")) {
        return 4;
    }
    if (OPAL_ERR_BAD_PARAM != mca_base_var_set(number, "x") || value.number != 77
        || OPAL_ERR_PERMISSION != mca_base_var_set(mca_base_var_find("tst_x_size"), "1")
        || OPAL_ERR_NOT_FOUND != mca_base_var_set(-1, "1")
        || OPAL_ERR_NOT_FOUND != mca_base_var_set(mca_base_var_count(), "1")) {
        return 5;
    }
    if (mca_base_var_get(number)->source != MCA_VAR_SOURCE_SET) {
        return 6;
    }
    mca_base_var_unbind("tst", "x");
    if (OPAL_SUCCESS != mca_base_var_set(number, "78") || value.number != 77
        || OPAL_SUCCESS != mca_base_var_read(number, &v) || v.i != 78) {
        return 7;
    }
    if (OPAL_SUCCESS != mca_base_var_register(&descs[0], &second) || second != 78) {
        return 8;
    }
    mca_base_var_desc_t other = descs[0];
    other.type = MCA_VAR_BOOL;
    if (OPAL_ERR_EXISTS != mca_base_var_register(&other, &value.flag)) {
        return 9;
    }
    mca_base_var_desc_t helpless = {.framework = "tst", .name = "helpless", .type = MCA_VAR_INT};
    if (OPAL_ERR_BAD_PARAM != mca_base_var_register(&helpless, &second)) {
        return 10;
    }
    opal_finalize();
    return 0;
}

/* A value that the site fixed can't be changed at run time either. */
static int overridden(void *context)
{
    (void) context;
    if (OPAL_SUCCESS != opal_init() || OPAL_SUCCESS != register_all()) {
        return 1;
    }
    const int rc = mca_base_var_set(mca_base_var_find("tst_x_number"), "1");
    opal_finalize();
    return OPAL_ERR_PERMISSION == rc ? 0 : 2;
}

static int has_site_files(void *context)
{
    (void) context;
    return scene_has_site_files() ? 0 : 1;
}

int main(void)
{
    child_result_t r;
    tap_start(120);
    scene_make();
    child_run(has_site_files, NULL, &r);
    if (0 != r.status) {
        TAP_SKIP("sysconfdir lies outside the prefix");
        scene_remove();
        return tap_end();
    }
    precedence();
    bad_files();
    types();
    files_of_others();
    unknown_names();
    child_run(at_run_time, NULL, &r);
    if (!TAP_OK(0 == r.status, "changes at run time")) {
        child_explain(&r);
    }
    scene_file(SCENE_OVERRIDE, "tst_x_number = 60\n");
    child_run(overridden, NULL, &r);
    TAP_OK(0 == r.status, "what the site overrides can't be set");
    scene_remove();
    return tap_end();
}
