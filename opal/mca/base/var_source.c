/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Reading the sources of parameters, weakest first, so that a later setting replaces an earlier
 * one. */
#include "opal/mca/base/var_source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opal/util/installdirs.h"
#include "opal/util/keyval.h"
#include "opal/util/output.h"
#include "opal/util/siphash.h"

#define ENV_PREFIX "OMPI_MCA_"
#define ENV_SOURCE_PREFIX "HAWSER_MCA_SOURCE_"

enum { COMPLAINTS_MAX = 5 }; /* about lines, told one by one: more tell nothing new */

extern char **environ;

const mca_base_var_enum_t mca_base_check_names[] = {
    {"error", MCA_BASE_CHECK_ERROR},
    {"warn", MCA_BASE_CHECK_WARN},
    {"ignore", MCA_BASE_CHECK_IGNORE},
    {NULL, 0},
};

/* A complaint about a file, kept until strictness is known. */
typedef struct complaint {
    struct complaint *next;
    char *file, *what;
    int line;               /* 0: about the whole file */
} complaint_t;

static struct {
    void *tree;                         /* of settings, by name; see tsearch(3) */
    mca_base_var_setting_t **list;
    size_t count, room;
    complaint_t *complaints, **complaints_end;
    char *files;
    int error;                          /* OPAL_ERR_OUT_OF_RESOURCE, if it was met on the way */
} sources;

static bool tolerant;

static int compare(const void *a, const void *b)
{
    const mca_base_var_setting_t *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static void free_setting(mca_base_var_setting_t *s)
{
    if (s) {
        free(s->name);
        free(s->value);
        free(s->source_text);
        free(s);
    }
}

static mca_base_var_setting_t *new_setting(const char *name, const char *value,
                                           mca_base_var_source_t source,
                                           const char *source_text)
{
    mca_base_var_setting_t *s = calloc(1, sizeof(*s));
    if (NULL == s) {
        return NULL;
    }
    s->optional = '?' == *name;
    s->name = strdup(name + s->optional);
    s->value = strdup(value);
    s->source_text = strdup(source_text);
    s->source = source;
    if (NULL == s->name || NULL == s->value || NULL == s->source_text) {
        free_setting(s);
        return NULL;
    }
    return s;
}

/* Put a new setting into the list and the tree; takes it over. */
static int insert(mca_base_var_setting_t *s)
{
    if (sources.count == sources.room) {
        const size_t room = sources.room ? 2 * sources.room : 32;
        void *list = realloc(sources.list, room * sizeof(*sources.list));
        if (NULL == list) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
        sources.list = list;
        sources.room = room;
    }
    if (NULL == tsearch(s, &sources.tree, compare)) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    sources.list[sources.count++] = s;
    return OPAL_SUCCESS;
}

static void set(const char *name, const char *value, mca_base_var_source_t source,
                const char *source_text)
{
    mca_base_var_setting_t *fresh = new_setting(name, value, source, source_text);
    if (NULL == fresh) {
        sources.error = OPAL_ERR_OUT_OF_RESOURCE;
        return;
    }
    mca_base_var_setting_t **found = tfind(fresh, &sources.tree, compare);
    if (found && source >= MCA_VAR_SOURCE_ENV && (*found)->source > source) {
        free_setting(fresh); /* NAME and ?NAME both stand in the environment, the weaker one behind the other */
    } else if (found) {
        const mca_base_var_setting_t old = **found;
        **found = *fresh;
        *fresh = old;
        free_setting(fresh);
    } else if (OPAL_SUCCESS != insert(fresh)) {
        free_setting(fresh);
        sources.error = OPAL_ERR_OUT_OF_RESOURCE;
    }
}

/* ---- Files ---- */

static void file_error(void *context, const char *file, int line, const char *what);

/* Which files are read is settled before the first of them is. */
static bool names_files(const char *name)
{
    return 0 == strcmp(name + ('?' == *name), "mca_base_param_files");
}

static void file_entry(void *context, const char *file, int line, const char *name,
                       const char *value)
{
    char *text;
    if (names_files(name)) {
        file_error(context, file, line, "mca_base_param_files says which files are read, and has no effect in one of them; set "
                                        "OMPI_MCA_mca_base_param_files in the environment, or --mca mca_base_param_files");
        return;
    }
    if (asprintf(&text, "%s:%d", file, line) < 0) {
        sources.error = OPAL_ERR_OUT_OF_RESOURCE;
        return;
    }
    set(name, value, *(mca_base_var_source_t *) context, text);
    free(text);
}

static void file_error(void *context, const char *file, int line, const char *what)
{
    (void) context;
    complaint_t *c = calloc(1, sizeof(*c));
    if (c) {
        c->file = strdup(file);
        c->what = strdup(what);
        c->line = line;
    }
    if (NULL == c || NULL == c->file || NULL == c->what) {
        sources.error = OPAL_ERR_OUT_OF_RESOURCE;
        if (c) {
            free(c->file);
            free(c->what);
        }
        free(c);
        return;
    }
    *sources.complaints_end = c;
    sources.complaints_end = &c->next;
}

/* HOME may be somebody else's, as after su or in a container: what we may not even read there is not ours. */
static bool is_of_others(const char *file)
{
    return 0 != faccessat(AT_FDCWD, file, R_OK, AT_EACCESS) && EACCES == errno;
}

static void read_file(const char *file, mca_base_var_source_t source, bool must_exist)
{
    static const opal_keyval_sink_t sink = {.entry = file_entry, .error = file_error};
    if (MCA_VAR_SOURCE_USER_FILE == source && !must_exist && is_of_others(file)) {
        return;
    }
    const int rc = opal_keyval_parse_file(file, &sink, &source);
    if (OPAL_ERR_NOT_FOUND == rc && must_exist) {
        file_error(NULL, file, 0, "there is no such file (it is named in mca_base_param_files)");
    } else if (OPAL_ERR_OUT_OF_RESOURCE == rc) {
        sources.error = rc;
    }
}

/* A path of configure's, or of the user with "~" in front; to be freed. */
static char *expand_home(const char *path, size_t len)
{
    char *out = NULL;
    if (0 == len || path[0] != '~' || (len > 1 && path[1] != '/')) {
        return strndup(path, len);
    }
    const char *home = getenv("HOME");
    if (NULL == home || '\0' == *home) {
        const struct passwd *pw = getpwuid(getuid());
        home = pw ? pw->pw_dir : "/";
    }
    return asprintf(&out, "%s%.*s", home, (int) len - 1, path + 1) < 0 ? NULL : out;
}

/* mca_base_param_files from the environment, where it must stand, or the two usual files. */
static char *wanted_files(bool *by_user)
{
    char *out = NULL;
    const char *env = getenv(ENV_PREFIX "mca_base_param_files");
    *by_user = env != NULL;
    if (env) {
        return strdup(env);
    }
    char *user = expand_home("~/.hawser/mca-params.conf", sizeof("~/.hawser/mca-params.conf") - 1);
    if (user && asprintf(&out, "%s:%s/hawser-mca-params.conf", user,
                         opal_installdirs()->sysconfdir) < 0) {
        out = NULL;
    }
    free(user);
    return out;
}

/* The leftmost file of the list is the strongest, so they are read from the right. */
static void read_files(void)
{
    bool by_user;
    sources.files = wanted_files(&by_user);
    if (NULL == sources.files) {
        sources.error = OPAL_ERR_OUT_OF_RESOURCE;
        return;
    }
    const size_t sysconf_len = strlen(opal_installdirs()->sysconfdir);
    size_t end = strlen(sources.files);
    for (;;) {
        size_t start = end;
        while (start > 0 && sources.files[start - 1] != ':') {
            start--;
        }
        char *file = expand_home(sources.files + start, end - start);
        if (NULL == file) {
            sources.error = OPAL_ERR_OUT_OF_RESOURCE;
        } else if (*file != '\0') {
            const bool site = 0 == strncmp(file, opal_installdirs()->sysconfdir, sysconf_len)
                              && '/' == file[sysconf_len];
            read_file(file, site ? MCA_VAR_SOURCE_SITE_FILE : MCA_VAR_SOURCE_USER_FILE, by_user);
        }
        free(file);
        if (0 == start) {
            return;
        }
        end = start - 1;
    }
}

static void read_override_file(void)
{
    char *file;
    if (asprintf(&file, "%s/hawser-mca-params-override.conf", opal_installdirs()->sysconfdir) < 0) {
        sources.error = OPAL_ERR_OUT_OF_RESOURCE;
        return;
    }
    read_file(file, MCA_VAR_SOURCE_OVERRIDE, false);
    free(file);
}

/* ---- Environment ---- */

/* Where the launcher had a setting of the environment from. */
static mca_base_var_source_t env_source(const char *name, const char **text)
{
    char *key;
    const char *said = NULL;
    if (asprintf(&key, ENV_SOURCE_PREFIX "%s", name) >= 0) {
        said = getenv(key);
        free(key);
    }
    if (said && 0 == strcmp(said, "command line")) {
        *text = "command line";
        return MCA_VAR_SOURCE_COMMAND_LINE;
    }
    if (said && 0 == strncmp(said, "tune ", 5)) {
        *text = said + 5;
        return MCA_VAR_SOURCE_TUNE;
    }
    *text = "environment";
    return MCA_VAR_SOURCE_ENV;
}

static void read_environment(void)
{
    const size_t prefix_len = sizeof(ENV_PREFIX) - 1;
    for (char **e = environ; e && *e; e++) {
        const char *equals = strchr(*e, '=');
        if (0 != strncmp(*e, ENV_PREFIX, prefix_len) || NULL == equals
            || equals == *e + prefix_len) {
            continue;
        }
        char *name = strndup(*e + prefix_len, (size_t) (equals - *e) - prefix_len);
        if (NULL == name) {
            sources.error = OPAL_ERR_OUT_OF_RESOURCE;
            return;
        }
        const char *text;
        const mca_base_var_source_t source = env_source(name, &text);
        set(name, equals + 1, source, text);
        free(name);
    }
}

void mca_base_var_mark(char *const *env, char mark[MCA_BASE_MARK_MAX])
{
    static const opal_siphash_key_t key = {{0, 0}}; /* nobody need be kept from making one */
    uint64_t sum = 0;
    for (; env && *env; env++) {
        if (0 == strncmp(*env, ENV_PREFIX, sizeof(ENV_PREFIX) - 1)) {
            sum += opal_siphash(&key, *env, strlen(*env)); /* shells change the order */
        }
    }
    snprintf(mark, MCA_BASE_MARK_MAX, "%016" PRIx64, sum);
}

/* ---- All of it ---- */

void mca_base_var_tolerate(void)
{
    tolerant = true;
}

mca_base_check_t mca_base_var_source_strictness(void)
{
    if (tolerant) {
        return MCA_BASE_CHECK_WARN;
    }
    const mca_base_var_setting_t *s = mca_base_var_source_find("mca_base_param_check");
    for (const mca_base_var_enum_t *e = mca_base_check_names; s && e->name; e++) {
        char number[24];
        snprintf(number, sizeof(number), "%" PRId64, e->value);
        if (0 == strcasecmp(s->value, e->name) || 0 == strcmp(s->value, number)) {
            return (mca_base_check_t) e->value;
        }
    }
    return MCA_BASE_CHECK_ERROR;
}

static void report(const complaint_t *c, const char *what_next)
{
    char *topic;
    if (asprintf(&topic, "mca-param-file:%s:%d", c->file, c->line) < 0) {
        return;
    }
    if (c->line > 0) {
        opal_show_help(topic, "%s:%d: this line is no parameter setting: %s.\n%s", c->file, c->line,
                       c->what,
                       what_next);
    } else {
        opal_show_help(topic, "%s: the parameter file can't be read: %s.\n%s", c->file, c->what,
                       what_next);
    }
    free(topic);
}

static int report_complaints(void)
{
    const mca_base_check_t strictness = mca_base_var_source_strictness();
    if (NULL == sources.complaints || MCA_BASE_CHECK_IGNORE == strictness) {
        return OPAL_SUCCESS;
    }
    const bool fatal = MCA_BASE_CHECK_ERROR == strictness;
    int reported = 0, more = 0;
    for (const complaint_t *c = sources.complaints; c; c = c->next) {
        if (reported < COMPLAINTS_MAX) {
            report(c, fatal ? "Correct it, or set the parameter mca_base_param_check to warn or ignore."
                            : "It is ignored.");
            reported++;
        } else {
            more++;
        }
    }
    if (more > 0) {
        opal_show_help("mca-param-file:more", "%d more lines of parameter files are no parameter setting.", more);
    }
    return fatal ? OPAL_ERR_PARSE : OPAL_SUCCESS;
}

int mca_base_var_source_read(void)
{
    sources.complaints_end = &sources.complaints;
    read_files();
    read_environment();
    read_override_file();
    if (OPAL_SUCCESS != sources.error) {
        return sources.error;
    }
    return report_complaints();
}

static void ignore_node(void *node)
{
    (void) node;
}

void mca_base_var_source_free(void)
{
    tdestroy(sources.tree, ignore_node);
    for (size_t i = 0; i < sources.count; i++) {
        free_setting(sources.list[i]);
    }
    free(sources.list);
    while (sources.complaints) {
        complaint_t *c = sources.complaints;
        sources.complaints = c->next;
        free(c->file);
        free(c->what);
        free(c);
    }
    free(sources.files);
    memset(&sources, 0, sizeof(sources));
}

const mca_base_var_setting_t *mca_base_var_source_find(const char *name)
{
    const mca_base_var_setting_t key = {.name = (char *) name};
    mca_base_var_setting_t *const *found = tfind(&key, &sources.tree, compare);
    return found ? *found : NULL;
}

size_t mca_base_var_source_count(void)
{
    return sources.count;
}

const mca_base_var_setting_t *mca_base_var_source_get(size_t index)
{
    return index < sources.count ? sources.list[index] : NULL;
}

const char *mca_base_var_source_files(void)
{
    return sources.files;
}
