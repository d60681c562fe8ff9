/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing frameworks. */
#include "opal/mca/base/framework.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/base/component.h"
#include "opal/mca/base/foreign.h"
#include "opal/mca/base/log.h"
#include "opal/mca/base/selection.h"
#include "opal/mca/base/var_source.h"
#include "opal/util/nearest.h"
#include "opal/util/output.h"

/* ---- All frameworks ---- */

static mca_base_framework_t **frameworks; /* NULL-terminated, or NULL */
static size_t framework_count;

static int remember(mca_base_framework_t *framework)
{
    for (size_t i = 0; i < framework_count; i++) {
        if (frameworks[i] == framework) {
            return OPAL_SUCCESS;
        }
    }
    void *list = realloc(frameworks, (framework_count + 2) * sizeof(*frameworks));
    if (NULL == list) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    frameworks = list;
    frameworks[framework_count++] = framework;
    frameworks[framework_count] = NULL;
    opal_list_init(&framework->components);
    opal_list_init(&framework->failed);
    return OPAL_SUCCESS;
}

mca_base_framework_t *const *mca_base_framework_list(void)
{
    static mca_base_framework_t *const none[] = {NULL};
    return frameworks ? frameworks : none;
}

/* ---- Parameters ---- */

static int register_framework(mca_base_framework_t *framework)
{
    static const mca_base_var_enum_t verbose_names[] = {
        {"error", MCA_LOG_ERROR}, {"warn", MCA_LOG_WARN},   {"info", MCA_LOG_INFO},
        {"debug", MCA_LOG_DEBUG}, {"trace", MCA_LOG_TRACE}, {"max", 100},
        {NULL, 0},
    };
    char help[256];
    snprintf(help, sizeof(help),
             "Components of framework %s to use (%s): a list, or ^ and a list of those not to use; "
             "empty: all that work here", framework->name, framework->help);
    const mca_base_var_desc_t selection = {
        .framework = framework->name, .type = MCA_VAR_LIST, .help = help,
        .level = MCA_VAR_LEVEL_USER, .scope = MCA_VAR_SCOPE_STARTUP,
    };
    const mca_base_var_desc_t verbose = {
        .framework = framework->name, .component = "base", .name = "verbose", .type = MCA_VAR_INT,
        .help = "How much framework and components tell: error, warn, info, debug, trace, max, or "
                "0 to 100",
        .enums = verbose_names, .min = 0, .max = 100,
        .level = MCA_VAR_LEVEL_USER, .scope = MCA_VAR_SCOPE_LOCAL,
    };
    int rc = mca_base_var_register(&selection, &framework->selection);
    if (OPAL_SUCCESS == rc) {
        rc = mca_base_var_register(&verbose, &framework->verbose);
    }
    if (OPAL_SUCCESS == rc && framework->register_params) {
        rc = framework->register_params();
    }
    return rc;
}

static int register_component(const mca_base_component_t *component)
{
    return component->register_params ? component->register_params(mca_base_services())
        : OPAL_SUCCESS;
}

/* ---- Failed components ---- */

/* Takes `reason` over. */
static void note_failure(mca_base_framework_t *framework, const char *name, const char *path,
                         char *reason)
{
    mca_base_failed_component_t *f = calloc(1, sizeof(*f));
    if (NULL == f) {
        free(reason);
        return;
    }
    f->name = strdup(name);
    f->path = path ? strdup(path) : NULL;
    f->reason = reason ? reason : strdup("there is no memory left");
    if (NULL == f->name || NULL == f->reason) {
        free(f->name);
        free(f->path);
        free(f->reason);
        free(f);
        return;
    }
    opal_list_append(&framework->failed, &f->item);
    mca_base_log(framework->name, name, MCA_LOG_INFO, "can't be used: %s", f->reason);
}

static void free_failures(mca_base_framework_t *framework)
{
    for (opal_list_item_t *i; NULL != (i = opal_list_pop(&framework->failed));) {
        mca_base_failed_component_t *f = OPAL_CONTAINER_OF(i, mca_base_failed_component_t, item);
        free(f->name);
        free(f->path);
        free(f->reason);
        free(f);
    }
}

static const mca_base_failed_component_t *find_failure(const mca_base_framework_t *framework,
                                                       const char *name)
{
    for (opal_list_item_t *i = opal_list_first(&framework->failed); i;
         i = opal_list_next(&framework->failed, i)) {
        const mca_base_failed_component_t *f =
            OPAL_CONTAINER_OF(i, mca_base_failed_component_t, item);
        if (0 == strcmp(f->name, name)) {
            return f;
        }
    }
    return NULL;
}

/* ---- What is installed ---- */

/* A component that exists, static or as an object. */
typedef struct candidate {
    const char *name;
    const mca_base_component_t *fixed; /* static, or NULL */
    const mca_base_object_t *object;   /* or NULL */
} candidate_t;

typedef struct candidates {
    candidate_t *list;
    size_t count;
} candidates_t;

static const candidate_t *find_candidate(const candidates_t *all, const char *name)
{
    for (size_t i = 0; i < all->count; i++) {
        if (0 == strcmp(all->list[i].name, name)) {
            return &all->list[i];
        }
    }
    return NULL;
}

/* The framework's components, static ones first; a static one hides an object of its name. */
static int collect(const mca_base_framework_t *framework, candidates_t *all)
{
    const mca_base_object_t *objects;
    size_t object_count;
    size_t fixed = 0;
    int rc = mca_base_objects(&objects, &object_count);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    while (framework->static_components && framework->static_components[fixed]) {
        fixed++;
    }
    all->count = 0;
    all->list = calloc(fixed + object_count + 1, sizeof(*all->list));
    if (NULL == all->list) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    for (size_t i = 0; i < fixed; i++) {
        const mca_base_component_t *c = framework->static_components[i];
        all->list[all->count++] = (candidate_t) {.name = c->name, .fixed = c};
    }
    for (size_t i = 0; i < object_count; i++) {
        if (0 == strcmp(objects[i].framework, framework->name)
            && !find_candidate(all, objects[i].name)) {
            all->list[all->count++] = (candidate_t) {.name = objects[i].name,
                                                     .object = &objects[i]};
        }
    }
    return OPAL_SUCCESS;
}

/* An object made for another version lies where users expect it to work: say so, though nobody
 * named it. */
static void report_misbuilt(const mca_base_framework_t *framework, const candidate_t *candidate,
                            const char *reason)
{
    char topic[256];
    snprintf(topic, sizeof(topic), "mca-component-refused:%s:%s", framework->name, candidate->name);
    opal_show_help(topic, "component %s of framework %s (%s) is not used: %s.", candidate->name,
                   framework->name,
                   candidate->object->path, reason);
}

static mca_base_component_item_t *load(mca_base_framework_t *framework,
                                       const candidate_t *candidate, unsigned flags)
{
    char *reason;
    mca_base_component_item_t *item;
    if (candidate->object) {
        bool misbuilt;
        item = mca_base_component_load(framework, candidate->object, &reason, &misbuilt);
        if (misbuilt && reason && !framework->include_list && !(flags & MCA_BASE_OPEN_INFO)) {
            report_misbuilt(framework, candidate, reason);
        }
    } else {
        reason = mca_base_component_refusal(framework, candidate->name, candidate->fixed);
        item = reason ? NULL : calloc(1, sizeof(*item));
        if (item) {
            opal_list_item_init(&item->item);
            item->component = candidate->fixed;
        }
    }
    if (NULL == item) {
        note_failure(framework, candidate->name, candidate->object ? candidate->object->path : NULL,
                     reason);
    }
    return item;
}

/* ---- Opening ---- */

/* Load, register, and open unless only information is wanted; false if the component can't be
 * used. */
static bool take(mca_base_framework_t *framework, const candidate_t *candidate, unsigned flags)
{
    mca_base_component_item_t *item = load(framework, candidate, flags);
    if (NULL == item) {
        return false;
    }
    mca_base_log_forget_reason();
    const char *what = "register its parameters";
    int rc = register_component(item->component);
    if (OPAL_SUCCESS == rc && !(flags & MCA_BASE_OPEN_INFO)) {
        what = "start";
        rc = item->component->open ? item->component->open(mca_base_services()) : OPAL_SUCCESS;
        item->opened = OPAL_SUCCESS == rc;
    }
    if (OPAL_SUCCESS == rc) {
        opal_list_append(&framework->components, &item->item);
        return true;
    }
    const char *said = mca_base_log_reason();
    note_failure(framework, candidate->name, item->path,
                 mca_base_reason("it could not %s: %s", what,
                                 *said != '\0' ? said : opal_strerror(rc)));
    mca_base_var_unbind(framework->name, candidate->name);
    mca_base_component_unload(item);
    return false;
}

static int report_missing(const mca_base_framework_t *framework, const candidates_t *all,
                          const char *name, bool include)
{
    opal_nearest_t nearest;
    opal_nearest_start(&nearest, name);
    char *have = mca_base_reason("none");
    for (size_t i = 0; i < all->count; i++) {
        opal_nearest_offer(&nearest, all->list[i].name);
        char *more = i > 0 ? mca_base_reason("%s, %s", have ? have : "", all->list[i].name)
                           : mca_base_reason("%s", all->list[i].name);
        free(have);
        have = more;
    }
    char topic[256];
    snprintf(topic, sizeof(topic), "mca-component-missing:%s:%s", framework->name, name);
    opal_show_help(topic,
                   "framework %s has no component \"%s\", which the parameter %s %s.%s%s%s\n"
                   "Installed: %s.", framework->name, name, framework->name,
                   include ? "asks for" : "excludes",
                   nearest.best ? " Did you mean " : "", nearest.best ? nearest.best : "",
                   nearest.best ? "?" : "", have ? have : "?");
    free(have);
    return OPAL_ERR_NOT_FOUND;
}

static int report_unusable(const mca_base_framework_t *framework, const char *name)
{
    const mca_base_failed_component_t *f = find_failure(framework, name);
    char topic[256];
    snprintf(topic, sizeof(topic), "mca-component-unusable:%s:%s", framework->name, name);
    opal_show_help(topic, "component %s of framework %s%s%s%s can't be used: %s.\n"
                   "The parameter %s asks for it; name others there, or remove the cause.",
                   name, framework->name, f && f->path ? " (" : "", f && f->path ? f->path : "",
                   f && f->path ? ")" : "", f ? f->reason : "there is no memory left",
                   framework->name);
    return OPAL_ERR_NOT_AVAILABLE;
}

/* Is all that the selection names installed? */
static int check_names(const mca_base_framework_t *framework, const candidates_t *all,
                       const mca_base_selection_t *selection)
{
    for (size_t i = 0; i < selection->count; i++) {
        if (!find_candidate(all, selection->names[i])) {
            return report_missing(framework, all, selection->names[i], selection->include);
        }
    }
    return OPAL_SUCCESS;
}

/* Exactly the named components, in their order. */
static int open_included(mca_base_framework_t *framework, const candidates_t *all,
                         const mca_base_selection_t *selection)
{
    const int rc = check_names(framework, all, selection);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    for (size_t i = 0; i < selection->count; i++) {
        if (!take(framework, find_candidate(all, selection->names[i]), MCA_BASE_OPEN_DEFAULT)) {
            return report_unusable(framework, selection->names[i]);
        }
    }
    return OPAL_SUCCESS;
}

/* Whatever works of what is not excluded. */
static int open_others(mca_base_framework_t *framework, const candidates_t *all,
                       const mca_base_selection_t *selection, unsigned flags)
{
    const int rc = flags & MCA_BASE_OPEN_INFO ? OPAL_SUCCESS
                                              : check_names(framework, all, selection);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    for (size_t i = 0; i < all->count; i++) {
        if ((flags & MCA_BASE_OPEN_INFO)
            || mca_base_selection_allows(selection, all->list[i].name)) {
            take(framework, &all->list[i], flags);
        }
    }
    return OPAL_SUCCESS;
}

/* Is a name of a list in the environment meant for Open MPI's components? Who excludes what is like
 * none of ours excludes nothing. */
static bool is_foreign(const mca_base_framework_t *framework, const candidates_t *all,
                       const mca_base_selection_t *selection, const char *name)
{
    if (find_candidate(all, name)) {
        return false;
    }
    opal_nearest_t nearest;
    opal_nearest_start(&nearest, name);
    for (size_t i = 0; i < all->count; i++) {
        opal_nearest_offer(&nearest, all->list[i].name);
    }
    return mca_base_foreign_component(framework->name, name)
           || (!selection->include && NULL == nearest.best);
}

static void report_foreign(const mca_base_framework_t *framework, const char *name, bool include)
{
    char topic[256];
    if (MCA_BASE_CHECK_IGNORE == mca_base_var_source_strictness()
        || mca_base_foreign_told_by_other()) {
        return;
    }
    snprintf(topic, sizeof(topic), "mca-component-foreign:%s:%s", framework->name, name);
    opal_show_help(topic, "parameter %s (from: environment): there is no component \"%s\" here.\n%s",
                   framework->name, name,
                   include ? "It is left out of the list; of an empty list all that work here are used."
                           : "That it is excluded has no effect.");
}

/* Without the names meant for Open MPI; of a list that names no others nothing is left. */
static void leave_out_foreign(const mca_base_framework_t *framework, const candidates_t *all,
                              mca_base_selection_t *selection, bool tell)
{
    mca_base_var_source_t source;
    size_t kept = 0;
    mca_base_var_lookup_raw(framework->name, &source);
    if (source != MCA_VAR_SOURCE_ENV) {
        return;
    }
    for (size_t i = 0; i < selection->count; i++) {
        char *name = selection->names[i];
        if (!is_foreign(framework, all, selection, name)) {
            selection->names[kept++] = name;
            continue;
        }
        if (tell) {
            report_foreign(framework, name, selection->include);
        }
        free(name);
    }
    selection->count = kept;
    selection->include = selection->include && kept > 0;
}

/* What the user selects, without what is meant for Open MPI; what is wrong with it is reported. */
static int read_selection(const mca_base_framework_t *framework, const candidates_t *all,
                          mca_base_selection_t *selection)
{
    const char *wrong = NULL;
    const int rc = mca_base_selection_parse(framework->selection, selection, &wrong);
    if (OPAL_ERR_BAD_PARAM == rc) {
        opal_show_help("mca-selection", "parameter %s: \"%s\" is no list of components: %s.",
                       framework->name,
                       framework->selection, wrong);
    }
    if (OPAL_SUCCESS == rc) {
        leave_out_foreign(framework, all, selection, true);
    }
    return rc;
}

static int open_components(mca_base_framework_t *framework, const candidates_t *all, unsigned flags)
{
    mca_base_selection_t selection = {0};
    int rc = flags & MCA_BASE_OPEN_INFO ? OPAL_SUCCESS : read_selection(framework, all, &selection);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    framework->include_list = selection.include;
    rc = selection.include ? open_included(framework, all, &selection)
                           : open_others(framework, all, &selection, flags);
    mca_base_selection_free(&selection);
    return rc;
}

static void close_all(mca_base_framework_t *framework)
{
    for (opal_list_item_t *i; NULL != (i = opal_list_last(&framework->components));) {
        mca_base_component_drop(framework, OPAL_CONTAINER_OF(i, mca_base_component_item_t, item));
    }
    free_failures(framework);
    framework->include_list = false;
}

int mca_base_framework_open(mca_base_framework_t *framework, unsigned flags)
{
    if (framework->open_count > 0) {
        framework->open_count++;
        return OPAL_SUCCESS;
    }
    candidates_t all = {0};
    int rc = remember(framework);
    if (OPAL_SUCCESS == rc) {
        rc = register_framework(framework);
    }
    if (OPAL_SUCCESS == rc) {
        rc = collect(framework, &all);
    }
    if (OPAL_SUCCESS == rc) {
        rc = open_components(framework, &all, flags);
    }
    free(all.list);
    if (OPAL_SUCCESS != rc) {
        close_all(framework);
        return rc;
    }
    framework->open_count = 1;
    return OPAL_SUCCESS;
}

/* ---- Closing ---- */

void mca_base_component_drop(mca_base_framework_t *framework, mca_base_component_item_t *item)
{
    opal_list_remove(&item->item);
    if (item->opened && item->component->close) {
        item->component->close();
    }
    mca_base_var_unbind(framework->name, item->component->name);
    mca_base_component_unload(item);
}

void mca_base_framework_close(mca_base_framework_t *framework)
{
    if (framework->open_count > 0 && 0 == --framework->open_count) {
        close_all(framework);
    }
}

mca_base_component_item_t *mca_base_component_find(const mca_base_framework_t *framework,
                                                   const char *name)
{
    for (opal_list_item_t *i = opal_list_first(&framework->components); i;
         i = opal_list_next(&framework->components, i)) {
        mca_base_component_item_t *item = OPAL_CONTAINER_OF(i, mca_base_component_item_t, item);
        if (0 == strcmp(item->component->name, name)) {
            return item;
        }
    }
    return NULL;
}

mca_base_component_item_t *mca_base_component_open(mca_base_framework_t *framework,
                                                   const char *name, char **why)
{
    candidates_t all = {0};
    mca_base_component_item_t *item = NULL;
    *why = NULL;
    if (OPAL_SUCCESS != collect(framework, &all)) {
        return NULL;
    }
    const candidate_t *candidate = find_candidate(&all, name);
    if (!candidate) {
        *why = mca_base_reason("no component of this name is installed");
    } else if (take(framework, candidate, MCA_BASE_OPEN_DEFAULT)) {
        item = mca_base_component_find(framework, name);
    } else {
        const mca_base_failed_component_t *f = find_failure(framework, name);
        *why = f ? mca_base_reason("%s", f->reason) : NULL;
    }
    free(all.list);
    return item;
}

bool mca_base_framework_selects(const mca_base_framework_t *framework, const char *name)
{
    mca_base_selection_t selection;
    const char *wrong;
    candidates_t all = {0};
    if (OPAL_SUCCESS != mca_base_selection_parse(framework->selection, &selection, &wrong)) {
        return false;
    }
    if (OPAL_SUCCESS == collect(framework, &all)) {
        leave_out_foreign(framework, &all, &selection, false);
    }
    const bool selects = mca_base_selection_allows(&selection, name);
    mca_base_selection_free(&selection);
    free(all.list);
    return selects;
}

int mca_base_framework_check_selection(const mca_base_framework_t *framework)
{
    mca_base_selection_t selection = {0};
    candidates_t all = {0};
    int rc = collect(framework, &all);
    if (OPAL_SUCCESS == rc) {
        rc = read_selection(framework, &all, &selection);
    }
    if (OPAL_SUCCESS == rc) {
        rc = check_names(framework, &all, &selection);
        mca_base_selection_free(&selection);
    }
    free(all.list);
    return rc;
}

/* ---- Parameters of everything installed ---- */

int mca_base_framework_register_all(mca_base_framework_t *framework)
{
    candidates_t all = {0};
    int rc = remember(framework);
    if (OPAL_SUCCESS == rc) {
        rc = register_framework(framework);
    }
    if (OPAL_SUCCESS == rc) {
        rc = collect(framework, &all);
    }
    for (size_t i = 0; i < all.count && OPAL_SUCCESS == rc; i++) {
        if (mca_base_component_find(framework, all.list[i].name)) {
            continue;
        }
        /* What can't be loaded here has no parameters here; who asks for it hears the reason. */
        char *reason = NULL;
        bool misbuilt;
        mca_base_component_item_t *item =
            all.list[i].object ? mca_base_component_load(framework, all.list[i].object, &reason,
                                                         &misbuilt) : NULL;
        free(reason);
        if (item) {
            register_component(item->component);
            mca_base_var_unbind(framework->name, all.list[i].name);
            mca_base_component_unload(item);
        } else if (all.list[i].fixed) {
            register_component(all.list[i].fixed);
        }
    }
    free(all.list);
    return rc;
}
