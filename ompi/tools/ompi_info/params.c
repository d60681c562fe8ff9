/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Parameters: value, where it comes from, level, type, help. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ompi/tools/ompi_info/ompi_info.h"
#include "opal/mca/base/framework.h"
#include "opal/util/nearest.h"

/* Parameters that belong to no framework are listed as those of this one. */
#define NO_FRAMEWORK "general"
#define NO_COMPONENT "base"

enum { HELP_INDENT = 26, HELP_WIDTH = 100 };

static const char *framework_of(const mca_base_var_t *v)
{
    return v->desc->framework ? v->desc->framework : NO_FRAMEWORK;
}

static const char *component_of(const mca_base_var_t *v)
{
    return v->desc->component ? v->desc->component : NO_COMPONENT;
}

/* "file (path:line)" and the like. */
static void describe_source(const mca_base_var_t *v, char *out, size_t size)
{
    switch (v->source) {
    case MCA_VAR_SOURCE_SITE_FILE:
    case MCA_VAR_SOURCE_USER_FILE: snprintf(out, size, "file (%s)", v->source_text); break;
    case MCA_VAR_SOURCE_TUNE: snprintf(out, size, "tune file (%s)", v->source_text); break;
    case MCA_VAR_SOURCE_OVERRIDE: snprintf(out, size, "override file (%s)", v->source_text); break;
    default: snprintf(out, size, "%s", v->source_text);
    }
}

/* Help text in lines of bounded width. */
static void print_wrapped(const char *text)
{
    while (*text != '\0') {
        size_t len = strlen(text);
        if (len > HELP_WIDTH - HELP_INDENT) {
            len = HELP_WIDTH - HELP_INDENT;
            while (len > 0 && text[len] != ' ') {
                len--;
            }
            len = len > 0 ? len : strcspn(text, " ");
        }
        printf("%*s%.*s\n", HELP_INDENT, "", (int) len, text);
        text += len;
        text += ' ' == *text;
    }
}

static bool accepts_other_numbers(const mca_base_var_t *v)
{
    return MCA_VAR_INT == v->desc->type;
}

static void print_for_people(const info_options_t *options, const mca_base_var_t *v)
{
    char label[128], source[4200], extra[512] = "";
    snprintf(label, sizeof(label), "MCA %s %s", framework_of(v), component_of(v));
    describe_source(v, source, sizeof(source));
    for (size_t i = 0; v->desc->synonyms && v->desc->synonyms[i]; i++) {
        const size_t used = strlen(extra);
        snprintf(extra + used, sizeof(extra) - used, "%s%s", 0 == i ? ", synonyms: " : " ",
                 v->desc->synonyms[i]);
    }
    const bool has_limits = (v->desc->min != 0 || v->desc->max != 0)
                            && (MCA_VAR_INT == v->desc->type || MCA_VAR_SIZE == v->desc->type);
    info_line(options, label, "",
              "parameter \"%s\" (current value: \"%s\", data source: %s, level: %d %s, type: "
              "%s%s%s%s%s)", v->full_name, v->text, source, (int) v->desc->level,
              mca_base_var_level_name(v->desc->level), mca_base_var_type_name(v->desc->type),
              v->desc->unit ? ", unit: " : "", v->desc->unit ? v->desc->unit : "",
              v->desc->deprecated ? ", deprecated" : "", extra);
    print_wrapped(v->desc->help);
    if (v->desc->deprecated) {
        printf("%*sDeprecated: %s\n", HELP_INDENT, "", v->desc->deprecated);
    }
    for (const mca_base_var_enum_t *e = v->desc->enums; e && e->name; e++) {
        printf("%s%*s%s%" PRId64 ":\"%s\"%s", e == v->desc->enums ? "" : ", ",
               e == v->desc->enums ? HELP_INDENT : 0,
               "", e == v->desc->enums ? "Valid values: " : "", e->value, e->name,
               e[1].name ? "" : "\n");
    }
    if (has_limits && (NULL == v->desc->enums || accepts_other_numbers(v))) {
        printf("%*sValid values: %" PRId64 " to %" PRId64 "\n", HELP_INDENT, "", v->desc->min,
               v->desc->max);
    }
}

static void print_for_programs(const info_options_t *options, const mca_base_var_t *v)
{
    char key[512], field[600], source[4200];
    const bool writeable = MCA_VAR_SCOPE_LOCAL == v->desc->scope
        || MCA_VAR_SCOPE_ALL == v->desc->scope;
    snprintf(key, sizeof(key), "mca:%s:%s:param:%s", framework_of(v), component_of(v),
             v->full_name);
    describe_source(v, source, sizeof(source));
    const struct {
        const char *name, *value;
    } fields[] = {
        {"value", v->text},
        {"source", source},
        {"status", writeable ? "writeable" : "read-only"},
        {"level", (const char[]) {(char) ('0' + v->desc->level), '\0'}},
        {"help", v->desc->help},
        {"unit", v->desc->unit},
        {"deprecated", v->desc->deprecated ? "yes" : "no"},
        {"type", mca_base_var_type_name(v->desc->type)},
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (fields[i].value) {
            snprintf(field, sizeof(field), "%s:%s", key, fields[i].name);
            info_line(options, "", field, "%s", fields[i].value);
        }
    }
    for (const mca_base_var_enum_t *e = v->desc->enums; e && e->name; e++) {
        printf("%s:enumerator:value:%" PRId64 ":%s\n", key, e->value, e->name);
    }
    for (size_t i = 0; v->desc->synonyms && v->desc->synonyms[i]; i++) {
        printf("%s:synonym:name:%s\n", key, v->desc->synonyms[i]);
    }
}

static bool matches(const char *wanted, const char *name)
{
    return 0 == strcmp(wanted, "all") || 0 == strcmp(wanted, name);
}

/* With --selected-only: parameters of components that the selection rules out are left out. */
static bool is_selected(const mca_base_var_t *v)
{
    for (mca_base_framework_t *const *f = mca_base_framework_list(); *f; f++) {
        if (0 == strcmp((*f)->name, framework_of(v))
            && mca_base_component_find(*f, component_of(v))) {
            return mca_base_framework_selects(*f, component_of(v));
        }
    }
    return true;
}

/* A component without parameters exists all the same. */
static bool component_exists(const info_options_t *options)
{
    for (mca_base_framework_t *const *f = mca_base_framework_list(); *f; f++) {
        if (matches(options->framework, (*f)->name)
            && (matches(options->component, NO_COMPONENT)
                || mca_base_component_find(*f, options->component))) {
            return true;
        }
    }
    return false;
}

static bool complain(const info_options_t *options)
{
    opal_nearest_t framework, component;
    bool known = false;
    opal_nearest_start(&framework, options->framework);
    opal_nearest_start(&component, options->component);
    for (int i = 0; i < mca_base_var_count(); i++) {
        const mca_base_var_t *v = mca_base_var_get(i);
        opal_nearest_offer(&framework, framework_of(v));
        if (matches(options->framework, framework_of(v))) {
            known = true;
            opal_nearest_offer(&component, component_of(v));
        }
    }
    const char *best = known ? component.best : framework.best;
    fprintf(stderr, "ompi_info: there is no %s \"%s\"%s%s.%s%s%s\n",
            known ? "component" : "framework",
            known ? options->component : options->framework, known ? " in framework " : "",
            known ? options->framework : "", best ? " Did you mean " : "", best ? best : "",
            best ? "?" : "");
    return false;
}

bool info_print_params(const info_options_t *options)
{
    bool found = false;
    for (int i = 0; i < mca_base_var_count(); i++) {
        const mca_base_var_t *v = mca_base_var_get(i);
        if (!matches(options->framework, framework_of(v))
            || !matches(options->component, component_of(v))) {
            continue;
        }
        found = true;
        if ((int) v->desc->level > options->level || (options->selected_only && !is_selected(v))) {
            continue;
        }
        if (options->parsable) {
            print_for_programs(options, v);
        } else {
            print_for_people(options, v);
        }
    }
    return found || component_exists(options) ? true : complain(options);
}
