/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Writes and compares what must be alike. */
#include "ompi/runtime/alike.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/mca/coll/coll.h"
#include "opal/mca/base/var.h"

/* ---- Writing ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static const char *name_of(const opal_list_item_t *i)
{
    return OPAL_CONTAINER_OF(i, mca_base_component_item_t, item)->component->name;
}

/* Sorted, as a list that includes components has them in the user's order. */
static void write_components(FILE *out)
{
    size_t count = 0, n = 0;
    opal_list_item_t *i, *tmp;
    OPAL_LIST_FOREACH (i, tmp, &mca_coll_base_framework.components) {
        count++;
    }
    const char **names = calloc(count + 1, sizeof *names);
    OPAL_LIST_FOREACH (i, tmp, &mca_coll_base_framework.components) {
        if (names) {
            names[n++] = name_of(i);
        }
    }
    if (n > 1) {
        qsort(names, n, sizeof *names, by_name);
    }
    for (size_t k = 0; k < n; k++) {
        fprintf(out, "%s%s", k > 0 ? "," : "coll=", names[k]);
    }
    fputs("\n", out);
    free(names);
}

static bool matters(const mca_base_var_t *v)
{
    const mca_base_var_desc_t *d = v->desc;
    return d->framework && d->component && strcmp(d->framework, "coll") == 0 && d->scope == MCA_VAR_SCOPE_STARTUP &&
           mca_base_component_find(&mca_coll_base_framework, d->component);
}

static void write_params(FILE *out)
{
    for (int i = 0, count = mca_base_var_count(); i < count; i++) {
        const mca_base_var_t *v = mca_base_var_get(i);
        char *usual = matters(v) ? mca_base_var_default_text(v->desc) : NULL;
        if (usual && strcmp(usual, v->text) != 0) {
            fprintf(out, "%s=%s\n", v->full_name, v->text);
        }
        free(usual);
    }
}

char *ompi_alike_text(void)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        return NULL;
    }
    fputs("version=" PACKAGE_VERSION "\n", out);
    write_components(out);
    write_params(out);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* ---- Comparing ---- */

typedef struct piece {
    const char *at;
    size_t len;
} piece_t;

/* The next line of the text, which gets shorter; false: there is none. A line without '=' is a name alone. */
static bool take_line(piece_t *text, piece_t *name, piece_t *value)
{
    if (text->len == 0) {
        return false;
    }
    const char *end = memchr(text->at, '\n', text->len);
    size_t len = end ? (size_t) (end - text->at) : text->len;
    const char *equals = memchr(text->at, '=', len);
    size_t name_len = equals ? (size_t) (equals - text->at) : len;
    *name = (piece_t) {text->at, name_len};
    *value = equals ? (piece_t) {equals + 1, len - name_len - 1} : (piece_t) {text->at + len, 0};
    len += end != NULL;
    text->at += len;
    text->len -= len;
    return true;
}

static bool same(piece_t a, piece_t b)
{
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

static bool is(piece_t a, const char *word)
{
    return same(a, (piece_t) {word, strlen(word)});
}

/* What the text says of `name`; nothing: it is at its default. */
static piece_t value_in(piece_t text, piece_t name)
{
    piece_t other, value;
    while (take_line(&text, &other, &value)) {
        if (same(other, name)) {
            return value;
        }
    }
    return (piece_t) {"the default", strlen("the default")};
}

static char *say(piece_t name, piece_t ours, piece_t theirs)
{
    enum { MOST = 256 }; /* it may come from anywhere */
    int our_len = (int) (ours.len < MOST ? ours.len : MOST), their_len = (int) (theirs.len < MOST ? theirs.len : MOST);
    char *text;
    int rc;
    if (is(name, "version")) {
        rc = asprintf(&text, "it uses Hawser %.*s, this process %.*s; install one version on all hosts", their_len, theirs.at,
                      our_len, ours.at);
    } else if (is(name, "coll")) {
        rc = asprintf(&text, "it has the components %.*s for collective operations, this process %.*s; set --mca coll alike for all "
                      "processes, and install the same components on all hosts", their_len, theirs.at, our_len, ours.at);
    } else {
        rc = asprintf(&text, "its parameter %.*s is %.*s, that of this process %.*s; set it alike for all processes",
                      (int) (name.len < MOST ? name.len : MOST), name.at, their_len, theirs.at, our_len, ours.at);
    }
    return rc < 0 ? NULL : text;
}

char *ompi_alike_difference(const char *ours, const char *theirs, size_t len)
{
    const piece_t here = {ours, strlen(ours)}, there = {theirs, len};
    piece_t name, value;
    if (same(here, there)) {
        return NULL;
    }
    for (piece_t rest = here; take_line(&rest, &name, &value);) {
        piece_t other = value_in(there, name);
        if (!same(value, other)) {
            return say(name, value, other);
        }
    }
    for (piece_t rest = there; take_line(&rest, &name, &value);) {
        piece_t own = value_in(here, name);
        if (!same(value, own)) {
            return say(name, own, value);
        }
    }
    return NULL;
}
