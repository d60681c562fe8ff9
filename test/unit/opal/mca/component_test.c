/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Components: found, refused for every reason, selected by lists, loaded only when wanted. */
#include <dlfcn.h>

#include "opal/mca/base/framework.h"
#include "opal/runtime/opal.h"
#include "opal/util/output.h"
#include "scene.h"

static int opens, closes;

static int static_open(const mca_base_services_t *services)
{
    (void) services;
    opens++;
    return OPAL_SUCCESS;
}

static void static_close(void)
{
    closes++;
}

static const mca_base_component_t fixed = {
    .magic = MCA_BASE_COMPONENT_MAGIC, .struct_size = sizeof(fixed), .framework = "tst",
    .contract_major = 2,
    .name = "fixed", .open = static_open, .close = static_close, .ops = &opens,
};
static const mca_base_component_t *const static_table[] = {&fixed, NULL};

static mca_base_framework_t tst = {
    .project = "ompi", .name = "tst", .help = "for tests", .contract_major = 2, .contract_minor = 1,
    .static_components = static_table,
};

/* Copy a component from the build tree into the scene, with one string of it replaced by another of
 * the same length (how a needed library is made to be missing). */
static bool install(const char *folder, const char *name, const char *from, const char *to)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/test/unit/opal/mca/.libs/mca_tst_%s.so",
             getenv("top_builddir"), name);
    FILE *in = fopen(path, "rb");
    snprintf(path, sizeof(path), "%s/%s/mca_tst_%s.so", scene_dir, folder, name);
    FILE *out = fopen(path, "wb");
    bool ok = in && out;
    static char data[1 << 20];
    const size_t len = ok ? fread(data, 1, sizeof(data), in) : 0;
    ok = ok && len > 0 && len < sizeof(data);
    char *at = ok && from ? memmem(data, len, from, strlen(from)) : NULL;
    while (at) {
        memcpy(at, to, strlen(to));
        at = memmem(at, (size_t) (data + len - at), from, strlen(from));
    }
    ok = ok && fwrite(data, 1, len, out) == len;
    if (in) {
        fclose(in);
    }
    if (out) {
        fclose(out);
    }
    return ok;
}

/* ---- Scenes ---- */

typedef struct scene {
    const char *selection;      /* parameter tst; NULL: not set */
    unsigned flags;
    int result;                 /* of mca_base_framework_open() */
    /* names of the open components, in order, each followed by a blank */
    const char *open;
    const char *failed;         /* a failed component, */
    const char *reason;         /* and a part of its reason */
    const char *not_loaded;     /* an object that must not be in the process */
} scene_t;

static bool is_loaded(const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/lib/hawser/mca_tst_%s.so", scene_dir, name);
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    if (handle) {
        dlclose(handle);
    }
    return handle != NULL;
}

static int compare(const scene_t *s)
{
    char names[1024] = "";
    for (opal_list_item_t *i = opal_list_first(&tst.components); i;
         i = opal_list_next(&tst.components, i)) {
        strcat(names, OPAL_CONTAINER_OF(i, mca_base_component_item_t, item)->component->name);
        strcat(names, " ");
    }
    if (0 != strcmp(names, s->open)) {
        fprintf(stderr, "open: %s\n", names);
        return 21;
    }
    bool found = NULL == s->failed;
    for (opal_list_item_t *i = opal_list_first(&tst.failed); i;
         i = opal_list_next(&tst.failed, i)) {
        const mca_base_failed_component_t *f =
            OPAL_CONTAINER_OF(i, mca_base_failed_component_t, item);
        fprintf(stderr, "failed: %s: %s\n", f->name, f->reason);
        found = found || (0 == strcmp(f->name, s->failed) && strstr(f->reason, s->reason));
    }
    return found ? 0 : 22;
}

static int play(void *context)
{
    const scene_t *s = context;
    opal_output_set_identity("test");
    if (s->selection) {
        setenv("OMPI_MCA_tst", s->selection, 1);
    }
    if (OPAL_SUCCESS != opal_init()) {
        return 10;
    }
    const int rc = mca_base_framework_open(&tst, s->flags);
    int bad = rc != s->result ? 20 : OPAL_SUCCESS == rc ? compare(s) : 0;
    if (s->not_loaded && is_loaded(s->not_loaded)) {
        bad = 23;
    }
    if (OPAL_SUCCESS == rc) {
        mca_base_framework_close(&tst);
    }
    if (!opal_list_is_empty(&tst.components) || !opal_list_is_empty(&tst.failed) || opens != closes
        || is_loaded("good")) {
        bad = 24;
    }
    opal_finalize();
    return bad;
}

static void expect(const char *what, scene_t s, const char *says)
{
    child_result_t r;
    child_run(play, &s, &r);
    if (!TAP_OK(0 == r.status && (NULL == says || NULL != strstr(r.err, says)), "%s", what)) {
        child_explain(&r);
    }
}

static void selection(void)
{
    expect("all that work, static ones first", (scene_t) {.open = "fixed good other "}, NULL);
    expect("an include list is an order", (scene_t) {.selection = "other, good,other",
                                                     .open = "other good "}, NULL);
    expect("what is not included is not loaded",
           (scene_t) {.selection = "other", .open = "other ", .not_loaded = "good"}, NULL);
    expect("an exclude list", (scene_t) {.selection = "^good", .open = "fixed other ",
                                         .not_loaded = "good"}, NULL);
    expect("an empty list is none", (scene_t) {.selection = "", .open = "fixed good other "}, NULL);
    expect("a missing component", (scene_t) {.selection = "good,othr",
                                             .result = OPAL_ERR_NOT_FOUND},
           "framework tst has no component \"othr\", which the parameter tst asks for. Did you "
           "mean other?");
    expect("an excluded component that does not exist",
           (scene_t) {.selection = "^godo", .result = OPAL_ERR_NOT_FOUND},
           "which the parameter tst excludes. Did you mean good?");
    expect("one that is like none of ours",
           (scene_t) {.selection = "^quite_foreign,good", .open = "fixed other ", .not_loaded = "good"},
           "parameter tst (from: environment): there is no component \"quite_foreign\" here.");
    expect("include and exclude in one list",
           (scene_t) {.selection = "good,^other", .result = OPAL_ERR_BAD_PARAM},
           "a list either includes or excludes");
    expect("a list of nothing", (scene_t) {.selection = ",", .result = OPAL_ERR_BAD_PARAM},
           "it names no component");
}

/* A component that can't be used: noted when nobody asked for it, an error when somebody did. */
static void refused(const char *name, const char *reason)
{
    char what[128];
    snprintf(what, sizeof(what), "%s is left out, with the reason", name);
    expect(what, (scene_t) {.open = "fixed good other ", .failed = name, .reason = reason}, NULL);
    snprintf(what, sizeof(what), "%s, asked for, is an error with the reason", name);
    expect(what, (scene_t) {.selection = name, .result = OPAL_ERR_NOT_AVAILABLE}, reason);
}

static void refusals(void)
{
    refused("badmagic", "wrong magic number");
    refused("newmajor",
            "it was built for version 3.0 of the tst contract, but this installation has 2.1; "
            "rebuild");
    refused("oldmajor", "it was built for version 1.0 of the tst contract");
    refused("newminor", "it was built for version 2.2 of the tst contract");
    refused("nosymbol", "it does not define the symbol mca_tst_nosymbol_component");
    refused("misnamed", "it says that its name is \"somebody\"");
    refused("nohardware", "it could not start: there is no such hardware here");
    refused("needy", "libtstgonX");
    refused("junk", "it can't be loaded");
    expect("an object of another version is reported though nobody asked",
           (scene_t) {.open = "fixed good other "},
           "mca_tst_newmajor.so) is not used: it was built for version 3.0");
}

static void information(void)
{
    expect("for information everything is loaded, whatever the selection", (scene_t) {
        .selection = "other", .flags = MCA_BASE_OPEN_INFO, .open = "fixed good nohardware other ",
        .failed = "newmajor", .reason = "contract"}, NULL);
}

/* The folder named by the parameter comes before the installation's. */
static int search_path(void *context)
{
    char path[256];
    (void) context;
    snprintf(path, sizeof(path), "%s/nowhere:%s/extra", scene_dir, scene_dir);
    setenv("OMPI_MCA_mca_base_component_path", path, 1);
    if (OPAL_SUCCESS != opal_init() || OPAL_SUCCESS != mca_base_framework_open(&tst, 0)) {
        return 1;
    }
    const mca_base_component_item_t *good = mca_base_component_find(&tst, "good");
    const mca_base_component_item_t *other = mca_base_component_find(&tst, "other");
    const int bad = !good || !other || !strstr(good->path, "/extra/")
        || !strstr(other->path, "/lib/hawser/");
    mca_base_framework_close(&tst);
    opal_finalize();
    return bad;
}

/* Parameters of components that are not loaded are known to the check, and nothing stays loaded. */
static int check_names(void *context)
{
    setenv("OMPI_MCA_tst", "other", 1);
    setenv(context, "7", 1);
    if (OPAL_SUCCESS != opal_init() || OPAL_SUCCESS != mca_base_framework_open(&tst, 0)) {
        return 1;
    }
    const int rc = mca_base_var_check_unknown();
    const bool loaded = is_loaded("good");
    mca_base_framework_close(&tst);
    opal_finalize();
    return loaded ? 2 : OPAL_SUCCESS == rc ? 0 : 3;
}

static void names(void)
{
    child_result_t r;
    child_run(search_path, NULL, &r);
    if (!TAP_OK(0 == r.status && strstr(r.err,
                                        "/nowhere, named in the parameter mca_base_component_path"),
                "mca_base_component_path comes first, a missing folder is reported")) {
        child_explain(&r);
    }
    child_run(check_names, "OMPI_MCA_tst_good_answer", &r);
    if (!TAP_OK(0 == r.status && '\0' == r.err[0],
                "a parameter of a component that is not open is known")) {
        child_explain(&r);
    }
    child_run(check_names, "OMPI_MCA_tst_good_anser", &r);
    if (!TAP_OK(3 == r.status && strstr(r.err, "Did you mean tst_good_answer?"),
                "its misspelling is not")) {
        child_explain(&r);
    }
}

int main(void)
{
    static const char *const objects[] = {"good", "other"};
    static const char *const broken[] = {"badmagic", "newmajor", "oldmajor", "newminor", "nosymbol",
                                         "misnamed",
                                         "nohardware"};
    tap_start(120);
    scene_make();
    TAP_REQUIRE(getenv("top_builddir"), "the build tree is known");
    bool ok = true;
    for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++) {
        ok = ok && install("lib/hawser", objects[i], NULL, NULL);
    }
    TAP_REQUIRE(ok && install("extra", "good", NULL, NULL), "working components are installed");
    selection();
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        ok = ok && install("lib/hawser", broken[i], NULL, NULL);
    }
    TAP_REQUIRE(ok && install("lib/hawser", "needy", "libtstgone", "libtstgonX"),
                "broken components are installed");
    scene_file("lib/hawser/mca_tst_junk.so", "this is no object\n");
    scene_file("lib/hawser/mca_tst.so", "no component's name\n");
    scene_file("lib/hawser/mca_tst_.so", "no component's name\n");
    refusals();
    information();
    names();
    scene_remove();
    return tap_end();
}
