/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Version, build, folders and components. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/tools/ompi_info/ompi_info.h"
#include "opal/mca/base/framework.h"
#include "opal/util/installdirs.h"

/* Labels end in this column. */
enum { LABEL_WIDTH = 24 };

/* A value for programs: quoted if a colon or quote in it could be misunderstood. */
static void print_value(const char *value)
{
    if (NULL == strpbrk(value, ":\"")) {
        puts(value);
        return;
    }
    putchar('"');
    for (; *value != '\0'; value++) {
        if ('"' == *value || '\\' == *value) {
            putchar('\\');
        }
        putchar(*value);
    }
    puts("\"");
}

void info_line(const info_options_t *options, const char *label, const char *key,
               const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    const int len = vasprintf(&text, format, args);
    va_end(args);
    if (len < 0) {
        return;
    }
    if (options->parsable) {
        printf("%s:", key);
        print_value(text);
    } else {
        printf("%*s: %s\n", LABEL_WIDTH, label, text);
    }
    free(text);
}

void info_print_header(const info_options_t *options)
{
    info_line(options, "Hawser", "hawser:version", "%s", PACKAGE_VERSION);
    info_line(options, "MPI API", "mpi-api:version", "5.0");
    info_line(options, "MPI ABI", "mpi-abi:version", "1.0");
    info_line(options, "Prefix", "path:prefix", "%s", opal_installdirs()->prefix);
}

void info_print_config(const info_options_t *options)
{
    static const struct {
        const char *label, *key, *text;
    } facts[] = {
        {"Architecture", "config:arch", HAWSER_BUILD_HOST},
        {"Configure arguments", "config:cli", HAWSER_BUILD_ARGS},
        {"C compiler", "compiler:c:command", HAWSER_BUILD_CC},
        {"C++ compiler", "compiler:cxx:command", HAWSER_BUILD_CXX},
        {"C compiler version", "compiler:c:version", __VERSION__},
        {"C compiler flags", "option:cflags", HAWSER_BUILD_CFLAGS},
        {"Linker flags", "option:ldflags", HAWSER_BUILD_LDFLAGS},
        {"Fortran compiler", "compiler:fortran:command", HAWSER_BUILD_FORTRAN},
        {"Fortran bindings", "bindings:fortran", "no"},
        {"Thread support", "option:threads", "MPI_THREAD_MULTIPLE"},
        {"Debug support", "option:debug", HAWSER_BUILD_DEBUG},
        {"Sanitizers", "option:sanitizers", HAWSER_BUILD_SANITIZERS},
        {"libevent", "library:libevent", HAWSER_BUILD_LIBEVENT},
        {"hwloc", "library:hwloc", HAWSER_BUILD_HWLOC},
        {"PMIx", "library:pmix", HAWSER_BUILD_PMIX},
        {"libibverbs", "library:ibverbs", HAWSER_BUILD_IBVERBS},
        {"UCX", "library:ucx", HAWSER_BUILD_UCX},
    };
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        info_line(options, facts[i].label, facts[i].key, "%s", facts[i].text);
    }
}

bool info_print_path(const info_options_t *options)
{
    const opal_installdirs_t *d = opal_installdirs();
    const struct {
        const char *label, *kind, *path;
    } paths[] = {
        {"Prefix", "prefix", d->prefix},
        {"Bindir", "bindir", d->bindir},
        {"Libdir", "libdir", d->libdir},
        {"Incdir", "incdir", d->includedir},
        {"Mandir", "mandir", d->mandir},
        {"Pkglibdir", "pkglibdir", d->hawserlibdir},
        {"Sysconfdir", "sysconfdir", d->sysconfdir},
        {"Datadir", "datadir", d->datadir},
    };
    const bool all = 0 == strcmp(options->path, "all");
    bool found = false;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        if (all || 0 == strcmp(options->path, paths[i].kind)) {
            char key[64];
            snprintf(key, sizeof(key), "path:%s", paths[i].kind);
            info_line(options, paths[i].label, key, "%s", paths[i].path);
            found = true;
        }
    }
    if (!found) {
        fprintf(stderr,
                "ompi_info: there is no folder called \"%s\"; --path takes prefix, bindir, libdir, "
                "incdir, "
                "mandir, pkglibdir, sysconfdir, datadir or all.\n", options->path);
    }
    return found;
}

static void print_component(const info_options_t *options, const mca_base_framework_t *f,
                            const mca_base_component_t *c)
{
    char label[64], key[128];
    snprintf(label, sizeof(label), "MCA %s", f->name);
    if (!options->parsable) {
        info_line(options, label, "", "%s (MCA v1.0, API v%u.%u, Component v%u.%u.%u)", c->name,
                  c->contract_major,
                  c->contract_minor, c->version[0], c->version[1], c->version[2]);
        return;
    }
    snprintf(key, sizeof(key), "mca:%s:%s:version", f->name, c->name);
    printf("%s:mca:1.0\n%s:api:%u.%u\n%s:component:%u.%u.%u\n", key, key, c->contract_major,
           c->contract_minor, key,
           c->version[0], c->version[1], c->version[2]);
}

void info_print_components(const info_options_t *options)
{
    for (mca_base_framework_t *const *f = mca_base_framework_list(); *f; f++) {
        for (opal_list_item_t *i = opal_list_first(&(*f)->components); i;
             i = opal_list_next(&(*f)->components, i)) {
            const mca_base_component_t *c = OPAL_CONTAINER_OF(i, mca_base_component_item_t,
                                                              item)->component;
            if (!options->selected_only || mca_base_framework_selects(*f, c->name)) {
                print_component(options, *f, c);
            }
        }
    }
}

void info_print_failed(const info_options_t *options)
{
    for (mca_base_framework_t *const *f = mca_base_framework_list(); *f; f++) {
        for (opal_list_item_t *i = opal_list_first(&(*f)->failed); i; i =
             opal_list_next(&(*f)->failed, i)) {
            const mca_base_failed_component_t *c =
                OPAL_CONTAINER_OF(i, mca_base_failed_component_t, item);
            char label[64], key[128];
            snprintf(label, sizeof(label), "MCA %s", (*f)->name);
            snprintf(key, sizeof(key), "mca:%s:%s:failed", (*f)->name, c->name);
            if (options->parsable) {
                info_line(options, label, key, "%s", c->reason);
            } else {
                info_line(options, label, key, "%s (failed to load: %s%s%s)", c->name,
                          c->path ? c->path : "",
                          c->path ? ": " : "", c->reason);
            }
        }
    }
}
