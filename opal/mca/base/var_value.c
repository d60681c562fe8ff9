/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Parsing and printing of parameter values. Nothing depends on the locale. */
#include "opal/mca/base/var_value.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/util/nearest.h"

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t) 0);
}

static int refuse(char why[MCA_BASE_VAR_WHY_MAX], const char *clause)
{
    snprintf(why, MCA_BASE_VAR_WHY_MAX, "%s", clause);
    return OPAL_ERR_BAD_PARAM;
}

static bool is_limited(const mca_base_var_desc_t *desc)
{
    return desc->min != 0 || desc->max != 0;
}

/* Whole decimal or 0x number. A leading 0 doesn't make it octal: nobody means that. */
static bool parse_i64(const char *text, int64_t *out)
{
    char *end;
    const char *digits = text + ('-' == *text || '+' == *text);
    const int base = '0' == digits[0] && ('x' == digits[1] || 'X' == digits[1]) ? 16 : 10;
    errno = 0;
    const long long v = strtoll(text, &end, base);
    *out = v;
    return *digits >= '0' && *digits <= '9' && '\0' == *end && 0 == errno;
}

/* Which entry of an enumeration; NULL if none. */
static const mca_base_var_enum_t *find_enum(const mca_base_var_enum_t *enums, const char *text)
{
    int64_t number;
    const bool is_number = parse_i64(text, &number);
    for (const mca_base_var_enum_t *e = enums; e && e->name; e++) {
        if (0 == strcasecmp(e->name, text) || (is_number && e->value == number)) {
            return e;
        }
    }
    return NULL;
}

static int parse_enum(const mca_base_var_desc_t *desc, const char *text,
                      mca_base_var_value_t *value,
                      char why[MCA_BASE_VAR_WHY_MAX])
{
    const mca_base_var_enum_t *found = find_enum(desc->enums, text);
    if (found) {
        value->i = found->value;
        return OPAL_SUCCESS;
    }
    opal_nearest_t nearest;
    opal_nearest_start(&nearest, text);
    int used = snprintf(why, MCA_BASE_VAR_WHY_MAX, "is none of");
    for (const mca_base_var_enum_t *e = desc->enums; e && e->name; e++) {
        opal_nearest_offer(&nearest, e->name);
        if (used < MCA_BASE_VAR_WHY_MAX) {
            used += snprintf(why + used, MCA_BASE_VAR_WHY_MAX - (size_t) used, "%s %s",
                             e == desc->enums ? "" : ",", e->name);
        }
    }
    if (nearest.best && used < MCA_BASE_VAR_WHY_MAX) {
        snprintf(why + used, MCA_BASE_VAR_WHY_MAX - (size_t) used, " (the nearest is %s)",
                 nearest.best);
    }
    return OPAL_ERR_BAD_PARAM;
}

static int parse_int(const mca_base_var_desc_t *desc, const char *text, mca_base_var_value_t *value,
                     char why[MCA_BASE_VAR_WHY_MAX])
{
    const mca_base_var_enum_t *named = find_enum(desc->enums, text);
    if (named) {
        value->i = named->value;
        return OPAL_SUCCESS;
    }
    if (!parse_i64(text, &value->i)) {
        return refuse(why, ERANGE == errno ? "is out of the range of 64-bit integers"
                      : "is not an integer");
    }
    if (is_limited(desc) && (value->i < desc->min || value->i > desc->max)) {
        snprintf(why, MCA_BASE_VAR_WHY_MAX, "is not between %" PRId64 " and %" PRId64, desc->min,
                 desc->max);
        return OPAL_ERR_BAD_PARAM;
    }
    return OPAL_SUCCESS;
}

/* The power of two of a suffix: "", b, k, kb, kib, m, ...; -1 if it is none. */
static int size_suffix(const char *suffix)
{
    static const char letters[] = "kmgt";
    if ('\0' == *suffix || 0 == strcasecmp(suffix, "b")) {
        return 0;
    }
    const char *letter = strchr(letters, *suffix | 0x20);
    if (NULL == letter || '\0' == *letter) {
        return -1;
    }
    suffix++;
    const bool ok = '\0' == *suffix || 0 == strcasecmp(suffix, "b")
        || 0 == strcasecmp(suffix, "ib");
    return ok ? 10 * (int) (letter - letters + 1) : -1;
}

static int parse_size(const mca_base_var_desc_t *desc, const char *text,
                      mca_base_var_value_t *value,
                      char why[MCA_BASE_VAR_WHY_MAX])
{
    char *end;
    const int base = '0' == text[0] && ('x' == text[1] || 'X' == text[1]) ? 16 : 10;
    errno = 0;
    const unsigned long long number = *text < '0' || *text > '9' ? 0 : strtoull(text, &end, base);
    const int error = errno;
    if (*text < '0' || *text > '9') {
        return refuse(why, "is not a size (a number and perhaps k, m, g or t)");
    }
    while (' ' == *end) {
        end++;
    }
    const int shift = size_suffix(end);
    if (shift < 0) {
        return refuse(why, "is not a size (a number and perhaps k, m, g or t)");
    }
    if (ERANGE == error || number > UINT64_MAX >> shift) {
        return refuse(why, "is out of the range of 64-bit sizes");
    }
    value->size = (uint64_t) number << shift;
    if (is_limited(desc) && (value->size < (uint64_t) desc->min
                             || value->size > (uint64_t) desc->max)) {
        snprintf(why, MCA_BASE_VAR_WHY_MAX, "is not between %" PRId64 " and %" PRId64 " bytes",
                 desc->min,
                 desc->max);
        return OPAL_ERR_BAD_PARAM;
    }
    return OPAL_SUCCESS;
}

static int parse_bool(const char *text, mca_base_var_value_t *value, char why[MCA_BASE_VAR_WHY_MAX])
{
    static const mca_base_var_enum_t names[] = {
        {"true", 1}, {"false", 0}, {"yes", 1}, {"no", 0}, {"on", 1}, {"off", 0}, {NULL, 0},
    };
    const mca_base_var_enum_t *found = find_enum(names, text);
    if (NULL == found) {
        return refuse(why, "is none of true, false, yes, no, on, off, 1, 0");
    }
    value->b = found->value != 0;
    return OPAL_SUCCESS;
}

static int parse_double(const char *text, mca_base_var_value_t *value,
                        char why[MCA_BASE_VAR_WHY_MAX])
{
    char *end;
    pthread_once(&c_locale_once, make_c_locale);
    value->d = c_locale ? strtod_l(text, &end, c_locale) : strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value->d)) {
        return refuse(why, "is not a finite number");
    }
    return OPAL_SUCCESS;
}

static int copy_string(const char *text, mca_base_var_value_t *value)
{
    value->s = NULL;
    if (text && *text != '\0') {
        value->s = strdup(text);
        return value->s ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
    }
    return OPAL_SUCCESS;
}

int mca_base_var_value_parse(const mca_base_var_desc_t *desc, const char *text,
                             mca_base_var_value_t *value,
                             char why[MCA_BASE_VAR_WHY_MAX])
{
    switch (desc->type) {
    case MCA_VAR_INT: return parse_int(desc, text, value, why);
    case MCA_VAR_SIZE: return parse_size(desc, text, value, why);
    case MCA_VAR_BOOL: return parse_bool(text, value, why);
    case MCA_VAR_DOUBLE: return parse_double(text, value, why);
    case MCA_VAR_ENUM: return parse_enum(desc, text, value, why);
    case MCA_VAR_STRING:
    case MCA_VAR_LIST: return copy_string(text, value);
    }
    return refuse(why, "has an unknown type");
}

int mca_base_var_value_default(const mca_base_var_desc_t *desc, mca_base_var_value_t *value)
{
    *value = (mca_base_var_value_t) {0};
    switch (desc->type) {
    case MCA_VAR_INT:
    case MCA_VAR_ENUM: value->i = desc->def.i; break;
    case MCA_VAR_SIZE: value->size = desc->def.size; break;
    case MCA_VAR_BOOL: value->b = desc->def.b; break;
    case MCA_VAR_DOUBLE: value->d = desc->def.d; break;
    case MCA_VAR_STRING:
    case MCA_VAR_LIST: return copy_string(desc->def.s, value);
    }
    return OPAL_SUCCESS;
}

/* The name an enumeration has for a value; NULL if none. */
static const char *enum_name(const mca_base_var_desc_t *desc, int64_t value)
{
    for (const mca_base_var_enum_t *e = desc->enums; e && e->name; e++) {
        if (e->value == value) {
            return e->name;
        }
    }
    return NULL;
}

static int format_double(char **out, double d)
{
    pthread_once(&c_locale_once, make_c_locale);
    const locale_t saved = c_locale ? uselocale(c_locale) : (locale_t) 0;
    const int rc = asprintf(out, "%.15g", d);
    if (saved) {
        uselocale(saved);
    }
    return rc;
}

char *mca_base_var_value_format(const mca_base_var_desc_t *desc, const mca_base_var_value_t *value)
{
    char *out = NULL;
    int rc = -1;
    const char *name;
    switch (desc->type) {
    case MCA_VAR_INT: rc = asprintf(&out, "%" PRId64, value->i); break;
    case MCA_VAR_SIZE: rc = asprintf(&out, "%" PRIu64, value->size); break;
    case MCA_VAR_BOOL: rc = asprintf(&out, "%s", value->b ? "true" : "false"); break;
    case MCA_VAR_DOUBLE: rc = format_double(&out, value->d); break;
    case MCA_VAR_ENUM:
        name = enum_name(desc, value->i);
        rc = name ? asprintf(&out, "%s", name) : asprintf(&out, "%" PRId64, value->i);
        break;
    case MCA_VAR_STRING:
    case MCA_VAR_LIST: rc = asprintf(&out, "%s", value->s ? value->s : ""); break;
    }
    return rc < 0 ? NULL : out;
}

void mca_base_var_value_store(mca_base_var_type_t type, const mca_base_var_value_t *value,
                              void *storage)
{
    switch (type) {
    case MCA_VAR_INT:
    case MCA_VAR_ENUM: *(int64_t *) storage = value->i; break;
    case MCA_VAR_SIZE: *(uint64_t *) storage = value->size; break;
    case MCA_VAR_BOOL: *(bool *) storage = value->b; break;
    case MCA_VAR_DOUBLE: *(double *) storage = value->d; break;
    case MCA_VAR_STRING:
    case MCA_VAR_LIST: *(char **) storage = value->s; break;
    }
}

void mca_base_var_value_load(mca_base_var_type_t type, const void *storage,
                             mca_base_var_value_t *value)
{
    switch (type) {
    case MCA_VAR_INT:
    case MCA_VAR_ENUM: value->i = *(const int64_t *) storage; break;
    case MCA_VAR_SIZE: value->size = *(const uint64_t *) storage; break;
    case MCA_VAR_BOOL: value->b = *(const bool *) storage; break;
    case MCA_VAR_DOUBLE: value->d = *(const double *) storage; break;
    case MCA_VAR_STRING:
    case MCA_VAR_LIST: value->s = *(char *const *) storage; break;
    }
}

const char *mca_base_var_type_name(mca_base_var_type_t type)
{
    static const char *const names[] = {
        [MCA_VAR_INT] = "int",   [MCA_VAR_SIZE] = "size",     [MCA_VAR_BOOL] = "bool",
        [MCA_VAR_DOUBLE] = "double",
        [MCA_VAR_ENUM] = "enum", [MCA_VAR_STRING] = "string", [MCA_VAR_LIST] = "list",
    };
    return names[type];
}

const char *mca_base_var_level_name(mca_base_var_level_t level)
{
    static const char *const names[] = {
        "user/basic",  "user/detail",  "user/all",  "tuner/basic", "tuner/detail",
        "tuner/all",   "dev/basic",    "dev/detail", "dev/all",
    };
    return level >= 1 && level <= 9 ? names[level - 1] : "unknown";
}
