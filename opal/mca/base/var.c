/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The registry of parameters: descriptions, values and where these come from. */
#include "opal/mca/base/var.h"

#include <pthread.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/base/framework.h"
#include "opal/mca/base/var_source.h"
#include "opal/mca/base/var_value.h"
#include "opal/util/output.h"

/* A name or synonym of a registered parameter. */
typedef struct var_name {
    char *name;
    int index;
} var_name_t;

/* A string that was replaced; somebody may still read it. */
typedef struct retired {
    struct retired *next;
    char *string;
} retired_t;

static struct {
    /* Registration and changes. Readers of `text` and string values need no lock: what they read is
     * retired, not freed. */
    pthread_mutex_t lock;
    int uses;
    mca_base_var_t **vars;
    int count, room;
    void *names;            /* tree of var_name_t */
    retired_t *retired;
    bool bad_value;         /* a value that did not parse was met where that is an error */
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct {
    char *component_path;
    char *files;
    int64_t check;
} base_params;

/* ---- Copies of descriptions ---- */

static char *copy(const char *s, bool *ok)
{
    char *out = s ? strdup(s) : NULL;
    *ok = *ok && (NULL == s || out);
    return out;
}

static mca_base_var_enum_t *copy_enums(const mca_base_var_enum_t *from, bool *ok)
{
    size_t n = 0;
    while (from && from[n].name) {
        n++;
    }
    mca_base_var_enum_t *out = from ? calloc(n + 1, sizeof(*out)) : NULL;
    *ok = *ok && (NULL == from || out);
    for (size_t i = 0; out && i < n; i++) {
        out[i].name = copy(from[i].name, ok);
        out[i].value = from[i].value;
    }
    return out;
}

static const char **copy_strings(const char *const *from, bool *ok)
{
    size_t n = 0;
    while (from && from[n]) {
        n++;
    }
    const char **out = from ? calloc(n + 1, sizeof(*out)) : NULL;
    *ok = *ok && (NULL == from || out);
    for (size_t i = 0; out && i < n; i++) {
        out[i] = copy(from[i], ok);
    }
    return out;
}

static void free_desc(mca_base_var_desc_t *d)
{
    if (NULL == d) {
        return;
    }
    for (size_t i = 0; d->enums && d->enums[i].name; i++) {
        free((char *) d->enums[i].name);
    }
    for (size_t i = 0; d->synonyms && d->synonyms[i]; i++) {
        free((char *) d->synonyms[i]);
    }
    free((void *) d->enums);
    free((void *) d->synonyms);
    free((char *) d->framework);
    free((char *) d->component);
    free((char *) d->name);
    free((char *) d->help);
    free((char *) d->unit);
    free((char *) d->deprecated);
    if (mca_base_var_type_is_string(d->type)) {
        free((char *) d->def.s);
    }
    free(d);
}

static mca_base_var_desc_t *copy_desc(const mca_base_var_desc_t *from)
{
    bool ok = true;
    mca_base_var_desc_t *d = malloc(sizeof(*d));
    if (NULL == d) {
        return NULL;
    }
    *d = *from;
    d->framework = copy(from->framework, &ok);
    d->component = copy(from->component, &ok);
    d->name = copy(from->name, &ok);
    d->help = copy(from->help, &ok);
    d->unit = copy(from->unit, &ok);
    d->deprecated = copy(from->deprecated, &ok);
    d->enums = copy_enums(from->enums, &ok);
    d->synonyms = copy_strings(from->synonyms, &ok);
    if (mca_base_var_type_is_string(from->type)) {
        d->def.s = copy(from->def.s, &ok);
    }
    if (!ok) {
        free_desc(d);
        return NULL;
    }
    return d;
}

static void free_var(mca_base_var_t *v)
{
    if (v->storage && mca_base_var_type_is_string(v->desc->type)) {
        *(char **) v->storage = NULL;
    }
    if (v->desc && mca_base_var_type_is_string(v->desc->type)) {
        free(v->value.s);
    }
    free_desc((mca_base_var_desc_t *) v->desc);
    free(v->full_name);
    free(v->source_text);
    free(v->text);
    free(v);
}

/* ---- Names ---- */

static int compare_names(const void *a, const void *b)
{
    const var_name_t *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int find_locked(const char *name)
{
    const var_name_t key = {.name = (char *) name};
    var_name_t *const *found = tfind(&key, &registry.names, compare_names);
    return found ? (*found)->index : -1;
}

static int add_name(const char *name, int index)
{
    if (find_locked(name) >= 0) {
        return OPAL_ERR_EXISTS;
    }
    var_name_t *n = malloc(sizeof(*n));
    char *copied = strdup(name);
    if (NULL == n || NULL == copied) {
        free(n);
        free(copied);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    *n = (var_name_t) {.name = copied, .index = index};
    if (NULL == tsearch(n, &registry.names, compare_names)) {
        free(n);
        free(copied);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    return OPAL_SUCCESS;
}

static void free_name(void *node)
{
    var_name_t *n = node;
    free(n->name);
    free(n);
}

static char *make_full_name(const mca_base_var_desc_t *d)
{
    const char *const parts[] = {d->framework, d->component, d->name};
    char out[512];
    size_t used = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const size_t len = parts[i] ? strlen(parts[i]) : 0;
        if (0 == len || used + len + 2 > sizeof(out)) {
            continue;
        }
        if (used > 0) {
            out[used++] = '_';
        }
        memcpy(out + used, parts[i], len);
        used += len;
    }
    out[used] = '\0';
    return used > 0 ? strdup(out) : NULL;
}

/* ---- Values ---- */

/* Keep a string until the end; what can't be kept leaks rather than vanish under a reader. */
static void retire(char *string)
{
    retired_t *r = string ? malloc(sizeof(*r)) : NULL;
    if (r) {
        *r = (retired_t) {.next = registry.retired, .string = string};
        registry.retired = r;
    }
}

/* Make this the value; takes over the string in it. */
static int assign(mca_base_var_t *v, const mca_base_var_value_t *value,
                  mca_base_var_source_t source,
                  const char *source_text)
{
    char *text = mca_base_var_value_format(v->desc, value);
    char *where = strdup(source_text);
    if (NULL == text || NULL == where) {
        free(text);
        free(where);
        if (mca_base_var_type_is_string(v->desc->type)) {
            free(value->s);
        }
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (mca_base_var_type_is_string(v->desc->type)) {
        retire(v->value.s);
    }
    retire(v->text);
    retire(v->source_text);
    v->value = *value;
    v->text = text;
    v->source = source;
    v->source_text = where;
    if (v->storage) {
        mca_base_var_value_store(v->desc->type, value, v->storage);
    }
    return OPAL_SUCCESS;
}

/* The strongest setting under the parameter's name or one of its synonyms. */
static const mca_base_var_setting_t *find_setting(const mca_base_var_t *v)
{
    const mca_base_var_setting_t *best = mca_base_var_source_find(v->full_name);
    for (size_t i = 0; v->desc->synonyms && v->desc->synonyms[i]; i++) {
        const mca_base_var_setting_t *s = mca_base_var_source_find(v->desc->synonyms[i]);
        if (s && (NULL == best || s->source > best->source)) {
            best = s;
        }
    }
    return best;
}

static int report_bad_value(const mca_base_var_t *v, const mca_base_var_setting_t *s,
                            const char *why)
{
    const mca_base_check_t strictness = mca_base_var_source_strictness();
    const bool fatal = MCA_BASE_CHECK_ERROR == strictness;
    char *topic;
    if (strictness != MCA_BASE_CHECK_IGNORE
        && asprintf(&topic, "mca-param-value:%s", v->full_name) >= 0) {
        opal_show_help(topic, "parameter %s: the value \"%s\" (from: %s) %s.\n%s%s%s", v->full_name,
                       s->value,
                       s->source_text, why,
                       fatal ? "Correct it; ompi_info --param all all --level 9 explains all "
                               "parameters."
                             : "The default is used instead: \"",
                       fatal ? "" : v->text, fatal ? "" : "\".");
        free(topic);
    }
    registry.bad_value = registry.bad_value || fatal;
    return fatal ? OPAL_ERR_BAD_PARAM : OPAL_SUCCESS;
}

static void report_deprecated(const mca_base_var_t *v, const mca_base_var_setting_t *s)
{
    char *topic;
    if (asprintf(&topic, "mca-param-deprecated:%s", v->full_name) >= 0) {
        opal_show_help(topic, "parameter %s (from: %s) is deprecated: %s.", s->name, s->source_text,
                       v->desc->deprecated);
        free(topic);
    }
}

/* Set the value from the sources, or to the default. */
static int evaluate(mca_base_var_t *v)
{
    mca_base_var_value_t value;
    int rc = mca_base_var_value_default(v->desc, &value);
    if (OPAL_SUCCESS == rc) {
        rc = assign(v, &value, MCA_VAR_SOURCE_DEFAULT, "default");
    }
    const mca_base_var_setting_t *s = find_setting(v);
    if (OPAL_SUCCESS != rc || NULL == s || MCA_VAR_SCOPE_CONSTANT == v->desc->scope) {
        return rc;
    }
    char why[MCA_BASE_VAR_WHY_MAX];
    rc = mca_base_var_value_parse(v->desc, s->value, &value, why);
    if (OPAL_ERR_BAD_PARAM == rc) {
        return report_bad_value(v, s, why);
    }
    if (OPAL_SUCCESS == rc) {
        rc = assign(v, &value, s->source, s->source_text);
    }
    if (OPAL_SUCCESS == rc && v->desc->deprecated) {
        report_deprecated(v, s);
    }
    return rc;
}

/* ---- Registration ---- */

static int append(mca_base_var_t *v)
{
    if (registry.count == registry.room) {
        const int room = registry.room ? 2 * registry.room : 128;
        void *vars = realloc(registry.vars, (size_t) room * sizeof(*registry.vars));
        if (NULL == vars) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
        registry.vars = vars;
        registry.room = room;
    }
    const int rc = add_name(v->full_name, registry.count);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    registry.vars[registry.count++] = v;
    for (size_t i = 0; v->desc->synonyms && v->desc->synonyms[i]; i++) {
        /* A synonym that is somebody's name stays his. */
        if (OPAL_ERR_OUT_OF_RESOURCE == add_name(v->desc->synonyms[i], registry.count - 1)) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
    }
    return OPAL_SUCCESS;
}

static int register_new(const mca_base_var_desc_t *desc, const char *full_name, void *storage)
{
    mca_base_var_t *v = calloc(1, sizeof(*v));
    if (NULL == v) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    v->desc = copy_desc(desc);
    v->full_name = strdup(full_name);
    const int rc = v->desc && v->full_name ? append(v) : OPAL_ERR_OUT_OF_RESOURCE;
    if (OPAL_SUCCESS != rc) {
        if (NULL == v->desc || 0 == registry.count || registry.vars[registry.count - 1] != v) {
            free_desc((mca_base_var_desc_t *) v->desc);
            free(v->full_name);
            free(v);
        }
        return rc;
    }
    v->storage = storage;
    return evaluate(v);
}

static bool is_stored(const mca_base_var_t *v, const void *storage)
{
    mca_base_var_value_t now = {0};
    mca_base_var_value_load(v->desc->type, storage, &now);
    switch (v->desc->type) {
    case MCA_VAR_INT:
    case MCA_VAR_ENUM: return now.i == v->value.i;
    case MCA_VAR_SIZE: return now.size == v->value.size;
    case MCA_VAR_BOOL: return now.b == v->value.b;
    case MCA_VAR_DOUBLE: return now.d == v->value.d;
    case MCA_VAR_STRING:
    case MCA_VAR_LIST: return now.s == v->value.s;
    }
    return false;
}

/* A component came back: its storage is new, the parameter is the old one. Or all are made known again (MPI_T_init_thread), while other
 * threads read their values: what is right is not written. */
static int register_again(mca_base_var_t *v, const mca_base_var_desc_t *desc, void *storage)
{
    if (v->desc->type != desc->type) {
        return OPAL_ERR_EXISTS;
    }
    v->storage = storage;
    if (storage && !is_stored(v, storage)) {
        mca_base_var_value_store(v->desc->type, &v->value, storage);
    }
    return OPAL_SUCCESS;
}

int mca_base_var_register(const mca_base_var_desc_t *desc, void *storage)
{
    if (NULL == desc->help || '\0' == *desc->help || 0 == registry.uses) {
        return OPAL_ERR_BAD_PARAM;
    }
    char *full_name = make_full_name(desc);
    if (NULL == full_name) {
        return OPAL_ERR_BAD_PARAM;
    }
    pthread_mutex_lock(&registry.lock);
    const int index = find_locked(full_name);
    const int rc = index < 0 ? register_new(desc, full_name, storage)
                             : register_again(registry.vars[index], desc, storage);
    pthread_mutex_unlock(&registry.lock);
    free(full_name);
    return rc;
}

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && 0 == strcmp(a, b));
}

void mca_base_var_unbind(const char *framework, const char *component)
{
    pthread_mutex_lock(&registry.lock);
    for (int i = 0; i < registry.count; i++) {
        mca_base_var_t *v = registry.vars[i];
        if (same(v->desc->framework, framework) && same(v->desc->component, component)) {
            v->storage = NULL;
        }
    }
    pthread_mutex_unlock(&registry.lock);
}

/* ---- Look-up ---- */

int mca_base_var_count(void)
{
    pthread_mutex_lock(&registry.lock);
    const int count = registry.count;
    pthread_mutex_unlock(&registry.lock);
    return count;
}

const mca_base_var_t *mca_base_var_get(int index)
{
    pthread_mutex_lock(&registry.lock);
    const mca_base_var_t *v = index >= 0 && index < registry.count ? registry.vars[index] : NULL;
    pthread_mutex_unlock(&registry.lock);
    return v;
}

int mca_base_var_find(const char *full_name)
{
    pthread_mutex_lock(&registry.lock);
    const int index = find_locked(full_name);
    pthread_mutex_unlock(&registry.lock);
    return index;
}

int mca_base_var_read(int index, mca_base_var_value_t *value)
{
    pthread_mutex_lock(&registry.lock);
    const mca_base_var_t *v = index >= 0 && index < registry.count ? registry.vars[index] : NULL;
    if (v) {
        *value = v->value;
        if (v->storage) {
            mca_base_var_value_load(v->desc->type, v->storage, value);
        }
    }
    pthread_mutex_unlock(&registry.lock);
    return v ? OPAL_SUCCESS : OPAL_ERR_NOT_FOUND;
}

static int set_locked(mca_base_var_t *v, const char *text)
{
    char why[MCA_BASE_VAR_WHY_MAX];
    mca_base_var_value_t value;
    if (v->desc->scope != MCA_VAR_SCOPE_LOCAL && v->desc->scope != MCA_VAR_SCOPE_ALL) {
        return OPAL_ERR_PERMISSION;
    }
    if (MCA_VAR_SOURCE_OVERRIDE == v->source) {
        return OPAL_ERR_PERMISSION; /* the site has the last word */
    }
    const int rc = mca_base_var_value_parse(v->desc, text, &value, why);
    return OPAL_SUCCESS == rc ? assign(v, &value, MCA_VAR_SOURCE_SET, "set at run time") : rc;
}

int mca_base_var_set(int index, const char *text)
{
    int rc = OPAL_ERR_NOT_FOUND;
    pthread_mutex_lock(&registry.lock);
    if (index >= 0 && index < registry.count) {
        rc = set_locked(registry.vars[index], text);
    }
    pthread_mutex_unlock(&registry.lock);
    return rc;
}

const char *mca_base_var_lookup_raw(const char *full_name, mca_base_var_source_t *source)
{
    const mca_base_var_setting_t *s = mca_base_var_source_find(full_name);
    if (source) {
        *source = s ? s->source : MCA_VAR_SOURCE_DEFAULT;
    }
    return s ? s->value : NULL;
}

char *mca_base_var_default_text(const mca_base_var_desc_t *desc)
{
    mca_base_var_value_t value;
    if (OPAL_SUCCESS != mca_base_var_value_default(desc, &value)) {
        return NULL;
    }
    char *text = mca_base_var_value_format(desc, &value);
    if (mca_base_var_type_is_string(desc->type)) {
        free(value.s);
    }
    return text;
}

bool mca_base_var_met_bad_value(void)
{
    return registry.bad_value;
}

/* ---- Start and end ---- */

static int register_base_params(void)
{
    const mca_base_var_desc_t path = {
        .framework = "mca", .component = "base", .name = "component_path", .type = MCA_VAR_STRING,
        .help = "Folders searched for components before the installation's own, separated by "
                "colons",
        .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP,
    };
    const mca_base_var_desc_t files = {
        .framework = "mca", .component = "base", .name = "param_files", .type = MCA_VAR_STRING,
        .help = "Files of parameters, separated by colons, the strongest first; can be set in the "
                "environment and by --mca only",
        .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP,
        .def.s = mca_base_var_source_files(),
    };
    const mca_base_var_desc_t check = {
        .framework = "mca", .component = "base", .name = "param_check", .type = MCA_VAR_ENUM,
        .help = "What to do about unknown parameters (one in the environment that is Open MPI's, or like none of ours, is only reported), values "
                "that do not parse and malformed lines in files",
        .level = MCA_VAR_LEVEL_USER, .scope = MCA_VAR_SCOPE_STARTUP, .def.i = MCA_BASE_CHECK_ERROR,
        .enums = mca_base_check_names,
    };
    int rc = mca_base_var_register(&path, &base_params.component_path);
    if (OPAL_SUCCESS == rc) {
        rc = mca_base_var_register(&files, &base_params.files);
    }
    return OPAL_SUCCESS == rc ? mca_base_var_register(&check, &base_params.check) : rc;
}

int mca_base_var_init(void)
{
    if (registry.uses++ > 0) {
        return OPAL_SUCCESS;
    }
    int rc = mca_base_var_source_read();
    if (OPAL_SUCCESS == rc) {
        rc = register_base_params();
    }
    if (OPAL_SUCCESS != rc) {
        mca_base_var_finalize();
    }
    return rc;
}

void mca_base_var_finalize(void)
{
    if (0 == registry.uses || --registry.uses > 0) {
        return;
    }
    for (int i = 0; i < registry.count; i++) {
        free_var(registry.vars[i]);
    }
    free(registry.vars);
    tdestroy(registry.names, free_name);
    while (registry.retired) {
        retired_t *r = registry.retired;
        registry.retired = r->next;
        free(r->string);
        free(r);
    }
    mca_base_var_source_free();
    registry.vars = NULL;
    registry.names = NULL;
    registry.count = registry.room = 0;
    registry.bad_value = false;
}
