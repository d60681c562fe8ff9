/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A trace of fragments per link over time, in the format of Chrome's trace viewer and Perfetto. */
#include "ompi/mca/pml/base/pml_base_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/util/output.h"

typedef struct event {
    const mca_btl_module_t *module;
    const char *what;
    uint64_t from, to, offset;
    size_t bytes;
    uint32_t rank;
} event_t;

/* A link whose short messages are noted. */
typedef struct traced {
    const mca_btl_endpoint_t *endpoint;
    const mca_pml_peer_t *peer;
    const mca_pml_link_t *link;
} traced_t;

bool mca_pml_base_trace_on;

static char *pattern;
static uint64_t events_max;
static event_t *events;
static size_t event_count, event_room, lost;
static traced_t *traced; /* the list of peers has a lock that is taken before a peer's, which senders hold */
static size_t traced_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int mca_pml_base_trace_register_params(void)
{
    static const mca_base_var_desc_t file = {
        .framework = "pml", .component = "base", .name = "trace_links", .type = MCA_VAR_STRING,
        .help = "Write a trace of fragments per link over time, for Perfetto or chrome://tracing, to "
                "this file; %r in it is the rank (it must be there where there are several), %h the host (empty: no trace)",
        .level = MCA_VAR_LEVEL_USER, .scope = MCA_VAR_SCOPE_STARTUP};
    static const mca_base_var_desc_t max = {
        .framework = "pml", .component = "base", .name = "trace_events", .type = MCA_VAR_SIZE,
        .help = "Most fragments of a process that pml_base_trace_links notes", .def.size = 1 << 20,
        .min = 1, .max = 1 << 30, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP};
    int rc = mca_base_var_register(&file, &pattern);
    rc = rc ? rc : mca_base_var_register(&max, &events_max);
    bool on = pattern && *pattern;
    if (on != mca_pml_base_trace_on) { /* made known again (MPI_T_init_thread) while threads read it: not written */
        mca_pml_base_trace_on = on;
    }
    return rc;
}

static event_t *new_event(void)
{
    if (event_count == event_room) {
        size_t room = event_room ? 2 * event_room : 4096;
        room = room < events_max ? room : events_max;
        event_t *grown = room > event_room ? realloc(events, room * sizeof(*grown)) : NULL;
        if (!grown) {
            lost++;
            return NULL;
        }
        events = grown;
        event_room = room;
    }
    return &events[event_count++];
}

void mca_pml_base_trace(const mca_pml_peer_t *peer, const mca_pml_link_t *link, const char *what,
                        uint64_t from, uint64_t to, size_t bytes, uint64_t offset)
{
    pthread_mutex_lock(&lock);
    event_t *e = new_event();
    if (e) {
        *e = (event_t){link->module, what, from, to, offset, bytes, peer->proc->rank};
    }
    pthread_mutex_unlock(&lock);
}

static traced_t find_traced(const mca_btl_endpoint_t *endpoint)
{
    traced_t found = {NULL, NULL, NULL};
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < traced_count && !found.link; i++) {
        if (traced[i].endpoint == endpoint) {
            found = traced[i];
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* In the place of a module's send_short: who this is takes a search, which only a trace pays. */
static int traced_short(mca_btl_endpoint_t *endpoint, const void *header, size_t header_len,
                        const void *payload, size_t len)
{
    traced_t found = find_traced(endpoint);
    if (!found.link) {
        return MCA_ERR_UNREACHABLE;
    }
    int rc = found.link->module->ops->send_short(endpoint, header, header_len, payload, len);
    uint64_t now = opal_now_ns();
    if (rc == MCA_SUCCESS) {
        mca_pml_base_trace(found.peer, found.link, "short", now, now, header_len + len, 0);
    }
    return rc;
}

static bool add_traced(const mca_pml_peer_t *peer, const mca_pml_link_t *link)
{
    pthread_mutex_lock(&lock);
    traced_t *grown = realloc(traced, (traced_count + 1) * sizeof(*grown));
    if (grown) {
        traced = grown;
        traced[traced_count++] = (traced_t){link->endpoint, peer, link};
    }
    pthread_mutex_unlock(&lock);
    return grown != NULL;
}

void mca_pml_base_trace_link(const mca_pml_peer_t *peer, mca_pml_link_t *link)
{
    if (mca_pml_base_trace_on && add_traced(peer, link)) {
        link->send_short = traced_short;
        link->room = link->standing = &mca_pml_base_no_standing; /* what goes that way is not seen */
    }
}

bool mca_pml_base_trace_is_named(void)
{
    bool has_rank = false;
    for (const char *p = pattern; p && *p && !has_rank; p++) {
        has_rank = p[0] == '%' && p[1] == 'r';
        p += p[0] == '%' && p[1] == '%';
    }
    return has_rank || !mca_pml_base_trace_on || ompi_rte.size < 2;
}

/* The file's name: %r is the rank, %h the host, %% a percent sign. */
static char *file_name(void)
{
    char *name = NULL;
    size_t size;
    FILE *out = open_memstream(&name, &size);
    for (const char *p = pattern; out && *p; p++) {
        if (p[0] == '%' && p[1] == 'r') {
            fprintf(out, "%" PRIu32, ompi_rte.rank);
            p++;
        } else if (p[0] == '%' && p[1] == 'h') {
            fputs(ompi_rte.host ? ompi_rte.host : "unknown", out);
            p++;
        } else {
            putc(*p, out);
            p += p[0] == '%' && p[1] == '%';
        }
    }
    if (out) {
        fclose(out);
    }
    return name;
}

/* Pieces take time and overlap: asynchronous events. What goes at once is an instant. */
static void print_event(FILE *file, const event_t *e, size_t number)
{
    const char *link = e->module->name;
    if (e->from == e->to) {
        fprintf(file, ",\n{\"ph\": \"i\", \"s\": \"t\", \"pid\": %" PRIu32 ", \"tid\": \"%s\", \"ts\": %.3f, "
                "\"name\": \"%s\", \"args\": {\"to\": %" PRIu32 ", \"bytes\": %zu}}", ompi_rte.rank, link,
                (double) e->from * 1e-3, e->what, e->rank, e->bytes);
        return;
    }
    fprintf(file, ",\n{\"ph\": \"b\", \"cat\": \"%s\", \"id\": %zu, \"pid\": %" PRIu32 ", \"tid\": \"%s\", "
            "\"ts\": %.3f, \"name\": \"%s\", \"args\": {\"to\": %" PRIu32 ", \"bytes\": %zu, \"offset\": %"
            PRIu64 "}}", link, number, ompi_rte.rank, link, (double) e->from * 1e-3, e->what, e->rank,
            e->bytes, e->offset);
    fprintf(file, ",\n{\"ph\": \"e\", \"cat\": \"%s\", \"id\": %zu, \"pid\": %" PRIu32 ", \"tid\": \"%s\", "
            "\"ts\": %.3f, \"name\": \"%s\"}", link, number, ompi_rte.rank, link,
            (double) e->to * 1e-3, e->what);
}

void mca_pml_base_trace_end(void)
{
    if (!mca_pml_base_trace_on) {
        return;
    }
    char *name = file_name();
    FILE *file = name ? fopen(name, "we") : NULL;
    if (file) {
        fprintf(file, "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n{\"ph\": \"M\", \"pid\": %" PRIu32
                ", \"name\": \"process_name\", \"args\": {\"name\": \"rank %" PRIu32 " on %s\"}}",
                ompi_rte.rank, ompi_rte.rank, ompi_rte.host ? ompi_rte.host : "unknown");
        for (size_t i = 0; i < event_count; i++) {
            print_event(file, &events[i], i);
        }
        fprintf(file, "\n], \"otherData\": {\"lost\": %zu}}\n", lost);
    }
    if (!file || fclose(file) != 0) {
        opal_show_help("pml:trace-file", "The trace of links can't be written to %s: %s.",
                       name ? name : pattern, strerror(errno));
    }
    free(name);
    free(events);
    free(traced);
    events = NULL;
    traced = NULL;
    event_count = event_room = lost = traced_count = 0;
    mca_pml_base_trace_on = false;
}
