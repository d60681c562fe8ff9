/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The link report: lines at the start, a table or JSON at the end. */
#include "ompi/mca/pml/base/pml_base_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/util/output.h"

#define REPORT_KEY "hawser.links"

enum { ROWS_MAX = 65536, REMARK_MAX = 224 };

static char *report; /* the parameter: NULL, "text", or "json:FILE" */

int mca_pml_base_report_register_params(void)
{
    static const mca_base_var_desc_t desc = {
        .framework = "pml", .component = "base", .name = "report_links", .type = MCA_VAR_STRING,
        .help = "Say which links are used and why others are not, and at the end what went over "
                "them: \"text\" (standard error of rank 0) or \"json:FILE\" (empty: no)",
        .level = MCA_VAR_LEVEL_USER, .scope = MCA_VAR_SCOPE_STARTUP};
    return mca_base_var_register(&desc, &report);
}

static bool is_on(void)
{
    return report && *report;
}

/* ---- At the start ---- */

static void add_text(char **text, const char *separator, const char *more)
{
    char *longer;
    if (more && asprintf(&longer, "%s%s%s", *text ? *text : "", *text ? separator : "", more) >= 0) {
        free(*text);
        *text = longer;
    }
}

static char *used_links(const mca_pml_peer_t *peer)
{
    char *text = NULL, one[96];
    double total = 0;
    for (int i = 0; i < peer->bandwidth_count; i++) {
        total += peer->bandwidth[i]->flow.rate;
    }
    for (int i = 0; i < peer->link_count; i++) {
        const mca_pml_link_t *link = &peer->links[i];
        if (peer->flows[i]) {
            snprintf(one, sizeof(one), "%s (%.0f %%)", link->module->name,
                     100 * link->flow.rate / total);
        } else {
            snprintf(one, sizeof(one), "%s (in reserve)", link->module->name);
        }
        add_text(&text, ", ", one);
    }
    return text;
}

/* Links that no process can use from here. */
static char *rejected_links(const char *refusals)
{
    char *text = NULL, one[256];
    size_t count;
    const mca_btl_base_rejection_t *list = mca_btl_base_rejections(&count);
    add_text(&text, "; ", refusals);
    for (size_t i = 0; i < count; i++) {
        snprintf(one, sizeof(one), "%s: %s", list[i].link, list[i].why);
        add_text(&text, "; ", one);
    }
    return text;
}

void mca_pml_base_report_start(const mca_pml_peer_t *peer, const char *refusals)
{
    static bool said[2];
    bool local = ompi_proc_is_local(peer->proc, NULL);
    /* Once per job where the launcher sees to that, else by the first process. */
    if (!is_on() || peer->proc == ompi_proc_self() || said[local] ||
        (ompi_rte.rank != 0 && !getenv("HAWSER_HELP_AGGREGATE"))) {
        return;
    }
    said[local] = true;
    char *used = used_links(peer), *rejected = rejected_links(refusals);
    opal_show_help(local ? "pml:links-same-host" : "pml:links-other-host",
                   "links to processes of %s host: %s%s%s", local ? "the same" : "another",
                   used ? used : "none", rejected ? "; not used: " : "", rejected ? rejected : "");
    free(used);
    free(rejected);
}

/* ---- At the end: rows, summed by sender's host, receiver's host and link ---- */

typedef struct row {
    char from[64], to[64], link[32];
    uint64_t bytes, messages, retries, resumes, failures, recoveries;
    double weight; /* sum over `peers` */
    uint64_t peers;
    uint64_t unused, unconnected; /* of these: nothing was sent, though the link is not the only one; and it has no connection */
    char why[160]; /* it failed; empty: it did not */
} row_t;

typedef struct table {
    row_t *rows;
    size_t count;
    uint32_t missing; /* processes that told nothing */
} table_t;

static void add_row(table_t *table, const row_t *row)
{
    for (size_t i = 0; i < table->count; i++) {
        row_t *r = &table->rows[i];
        if (strcmp(r->link, row->link) == 0 && strcmp(r->from, row->from) == 0 &&
            strcmp(r->to, row->to) == 0) {
            r->bytes += row->bytes;
            r->messages += row->messages;
            r->retries += row->retries;
            r->resumes += row->resumes;
            r->failures += row->failures;
            r->recoveries += row->recoveries;
            r->weight += row->weight;
            r->peers += row->peers;
            r->unused += row->unused;
            r->unconnected += row->unconnected;
            if (!r->why[0]) {
                memcpy(r->why, row->why, sizeof(r->why));
            }
            return;
        }
    }
    row_t *grown = table->count < ROWS_MAX
                       ? realloc(table->rows, (table->count + 1) * sizeof(*grown)) : NULL;
    if (grown) {
        table->rows = grown;
        table->rows[table->count++] = *row;
    }
}

static void add_link(table_t *table, const mca_pml_peer_t *peer, int i, double total)
{
    const mca_pml_link_t *link = &peer->links[i];
    row_t row = {.bytes = link->bytes, .messages = link->messages, .retries = link->retries,
                 .resumes = link->resumes, .failures = link->failures, .recoveries = link->recoveries, .peers = 1,
                 .weight = peer->flows[i] && total > 0 ? link->flow.rate / total : 0};
    snprintf(row.from, sizeof(row.from), "%s", ompi_rte.host ? ompi_rte.host : "unknown");
    snprintf(row.to, sizeof(row.to), "%s", ompi_proc_host(peer->proc));
    snprintf(row.link, sizeof(row.link), "%s", link->module->name);
    row.unused = link->bytes == 0 && peer->link_count > 1;
    row.unconnected = row.unused && link->blocked;
    if (link->why) {
        snprintf(row.why, sizeof(row.why), "%s", link->why);
    }
    for (char *c = row.why; *c; c++) {
        *c = (unsigned char) *c < ' ' ? ' ' : *c; /* rows travel as lines */
    }
    add_row(table, &row);
}

static void own_rows(table_t *table)
{
    for (mca_pml_peer_t *peer = NULL; (peer = mca_pml_base_peer_next(peer));) {
        double total = 0;
        if (peer->proc == ompi_proc_self()) {
            continue;
        }
        mca_pml_peer_lock(peer);
        for (int l = 0; l < peer->bandwidth_count; l++) {
            total += peer->bandwidth[l]->flow.rate;
        }
        for (int l = 0; l < peer->link_count; l++) {
            add_link(table, peer, l, total);
        }
        mca_pml_peer_unlock(peer);
    }
}

/* Lines of text: what one process tells rank 0. */
static char *write_rows(const table_t *table)
{
    char *text = strdup(""), line[768];
    for (size_t i = 0; i < table->count && text; i++) {
        const row_t *r = &table->rows[i];
        snprintf(line, sizeof(line), "%s\t%s\t%s\t%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                 " %" PRIu64 " %" PRIu64 " %.6f %" PRIu64 " %" PRIu64 " %" PRIu64 "\t%s\n", r->from, r->to, r->link, r->bytes,
                 r->messages, r->retries, r->resumes, r->failures, r->recoveries, r->weight, r->peers, r->unused, r->unconnected, r->why);
        add_text(&text, "", line);
    }
    return text;
}

static void read_rows(int status, const void *data, size_t len, void *context)
{
    table_t *table = context;
    char *text = status == OPAL_SUCCESS ? strndup(data, len) : NULL, *save = NULL;
    table->missing--;
    if (!text) {
        return;
    }
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        row_t r = {.why = ""};
        if (sscanf(line, "%63[^\t]\t%63[^\t]\t%31[^\t]\t%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                   " %" SCNu64 " %" SCNu64 " %lf %" SCNu64 " %" SCNu64 " %" SCNu64 "\t%159[^\n]", r.from, r.to, r.link, &r.bytes, &r.messages,
                   &r.retries, &r.resumes, &r.failures, &r.recoveries, &r.weight, &r.peers, &r.unused, &r.unconnected, r.why) >= 13) {
            add_row(table, &r);
        }
    }
    free(text);
}

static bool is_complete(void *context)
{
    return ((const table_t *) context)->missing == 0;
}

static int by_name(const void *a, const void *b)
{
    const row_t *x = a, *y = b;
    int order = strcmp(x->from, y->from);
    order = order ? order : strcmp(x->to, y->to);
    return order ? order : strcmp(x->link, y->link);
}

/* Part of the bytes between the same two hosts, in percent. */
static double share_of(const table_t *table, const row_t *row)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < table->count; i++) {
        if (strcmp(table->rows[i].from, row->from) == 0 && strcmp(table->rows[i].to, row->to) == 0) {
            sum += table->rows[i].bytes;
        }
    }
    return sum > 0 ? 100 * (double) row->bytes / (double) sum : 0;
}

/* What is to be said of a link besides its numbers; empty: nothing. Of the processes of two hosts some may have used it, and others not. */
static void remark(const row_t *row, char *text, size_t len)
{
    if (row->why[0]) {
        const bool back = row->failures > 0 && row->recoveries >= row->failures;
        snprintf(text, len, "%s%s", row->why, back ? "; the link has come back" : "");
    } else if (row->bytes == 0 && row->unused > 0) {
        snprintf(text, len, "%s%s", row->weight > 0 ? "" : "in reserve; ",
                 row->unconnected > 0 ? "not connected so far" : "nothing was sent over it");
    } else {
        text[0] = '\0';
    }
}

static void print_table(FILE *file, const table_t *table)
{
    if (table->count == 0) {
        fprintf(file, "hawser: nothing travelled over any link: no process has sent a message to another one\n");
        return;
    }
    fprintf(file, "hawser: what travelled over which link\n%-16s %-16s %-14s %14s %6s %10s %8s %8s %8s "
            "%10s %6s\n", "from", "to", "link", "bytes", "share", "fragments", "retries", "resumes", "failures",
            "recoveries", "weight");
    for (size_t i = 0; i < table->count; i++) {
        const row_t *r = &table->rows[i];
        fprintf(file, "%-16s %-16s %-14s %14" PRIu64 " %4.1f %% %10" PRIu64 " %8" PRIu64 " %8" PRIu64 " %8" PRIu64
                " %10" PRIu64 " %4.0f %%\n", r->from, r->to, r->link, r->bytes, share_of(table, r),
                r->messages, r->retries, r->resumes, r->failures, r->recoveries,
                r->peers ? 100 * r->weight / (double) r->peers : 0);
    }
    for (size_t i = 0; i < table->count; i++) {
        const row_t *r = &table->rows[i];
        char text[REMARK_MAX];
        remark(r, text, sizeof(text));
        if (text[0]) {
            fprintf(file, "hawser: %s to %s, %s: %s\n", r->from, r->to, r->link, text);
        }
    }
}

static void print_string(FILE *file, const char *s)
{
    putc('"', file);
    for (; *s; s++) {
        if (*s == '"' || *s == '\\' || (unsigned char) *s < ' ') {
            fprintf(file, "\\u%04x", (unsigned char) *s);
        } else {
            putc(*s, file);
        }
    }
    putc('"', file);
}

static void print_json(FILE *file, const table_t *table)
{
    fprintf(file, "{\"links\": [");
    for (size_t i = 0; i < table->count; i++) {
        const row_t *r = &table->rows[i];
        char text[REMARK_MAX];
        remark(r, text, sizeof(text));
        fprintf(file, "%s\n  {\"from\": ", i ? "," : "");
        print_string(file, r->from);
        fprintf(file, ", \"to\": ");
        print_string(file, r->to);
        fprintf(file, ", \"link\": ");
        print_string(file, r->link);
        fprintf(file, ", \"bytes\": %" PRIu64 ", \"share\": %.3f, \"fragments\": %" PRIu64
                ", \"retries\": %" PRIu64 ", \"resumes\": %" PRIu64 ", \"failures\": %" PRIu64 ", \"recoveries\": %" PRIu64
                ", \"weight\": %.3f, \"why\": ", r->bytes, share_of(table, r), r->messages, r->retries,
                r->resumes, r->failures, r->recoveries, r->peers ? 100 * r->weight / (double) r->peers : 0);
        print_string(file, text);
        putc('}', file);
    }
    fprintf(file, "\n], \"rejected\": [");
    size_t count;
    const mca_btl_base_rejection_t *list = mca_btl_base_rejections(&count);
    for (size_t i = 0; i < count; i++) {
        fprintf(file, "%s\n  {\"link\": ", i ? "," : "");
        print_string(file, list[i].link);
        fprintf(file, ", \"why\": ");
        print_string(file, list[i].why);
        putc('}', file);
    }
    fprintf(file, "\n]}\n");
}

static void print_report(table_t *table)
{
    qsort(table->rows, table->count, sizeof(row_t), by_name);
    if (strncmp(report, "json:", 5) != 0) {
        print_table(stderr, table);
        return;
    }
    FILE *file = fopen(report + 5, "we");
    if (file) {
        print_json(file, table);
    }
    if (!file || fclose(file) != 0) {
        opal_show_help("pml:report-file", "The link report can't be written to %s: %s.", report + 5,
                       strerror(errno));
    }
}

int mca_pml_base_report_end(void)
{
    table_t table = {NULL, 0, 0};
    if (!is_on()) {
        return OPAL_SUCCESS;
    }
    own_rows(&table);
    char *text = write_rows(&table);
    int rc = text ? ompi_rte_put(REPORT_KEY, text, strlen(text)) : OPAL_ERR_OUT_OF_RESOURCE;
    free(text);
    rc = rc == OPAL_SUCCESS ? ompi_rte_commit() : rc;
    rc = rc == OPAL_SUCCESS ? ompi_rte_fence() : rc;
    if (rc == OPAL_SUCCESS && ompi_rte.rank == 0) {
        table.missing = ompi_rte.size - 1;
        for (uint32_t r = 1; r < ompi_rte.size; r++) {
            if (ompi_rte_get(ompi_rte.nspace, r, REPORT_KEY, read_rows, &table) != OPAL_SUCCESS) {
                table.missing--;
            }
        }
        opal_progress_wait_until(is_complete, &table);
        print_report(&table);
    }
    free(table.rows);
    return rc;
}
