/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The object, its parameters and neighbours; who is lost; leaving. */
#include "orte/oob/internal.h"

#include "opal/mca/base/var.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    WINDOW_MIN = 16 * 1024,
    WINDOWS_TOGETHER = 64 * 1024 * 1024, /* of all daemons towards one */
    MONITOR_PER_LIMIT = 5,               /* looks per oob_heartbeat */
};

oob_params_t orte_oob_params;

#define USER .framework = "oob", .scope = MCA_VAR_SCOPE_STARTUP, .level = MCA_VAR_LEVEL_USER
#define TUNER .framework = "oob", .scope = MCA_VAR_SCOPE_STARTUP, .level = MCA_VAR_LEVEL_TUNER

int orte_oob_register_params(void)
{
    static const char *const radix_names[] = {"routed_radix", "rml_base_radix", NULL};
    oob_params_t *p = &orte_oob_params;
    const struct {
        mca_base_var_desc_t desc;
        void *storage;
    } table[] = {
        /* 64: two steps reach 4160 hosts, and no daemon starts or serves more than 64 others. */
        {{TUNER, .name = "radix", .type = MCA_VAR_INT, .def.i = 64, .min = 1, .max = 65536,
          .synonyms = radix_names,
          .help = "Most daemons below each in the tree by which they start and speak"},
         &p->radix},
        {{USER, .name = "port_range", .type = MCA_VAR_STRING,
          .help = "Ports on which mpirun and its daemons listen for each other, as LOW-HIGH "
                  "(empty: net_ports, or else any)"},
         &p->port_range},
        {{USER, .name = "heartbeat", .type = MCA_VAR_INT, .unit = "s", .def.i = 4, .min = 0,
          .max = 3600,
          .help = "Time without any sign of life after which a host counts as lost (0: never)"},
         &p->heartbeat_s},
        {{TUNER, .name = "connect_timeout", .type = MCA_VAR_INT, .unit = "ms", .def.i = 10000,
          .min = 10, .max = 3600 * 1000,
          .help = "Time for reaching one address of the daemon above"},
         &p->connect_timeout_ms},
        {{TUNER, .name = "greeting_timeout", .type = MCA_VAR_INT, .unit = "ms", .def.i = 10000,
          .min = 10, .max = 3600 * 1000,
          .help = "Time for a new connection to prove that it belongs to the job"},
         &p->greeting_timeout_ms},
        {{TUNER, .name = "window", .type = MCA_VAR_SIZE, .unit = "bytes", .def.size = 1 << 20,
          .min = WINDOW_MIN, .max = 1 << 30,
          .help = "Output or input of processes on its way between two daemons (less in jobs of "
                  "more than 64 hosts)"},
         &p->window},
        {{TUNER, .name = "message_max", .type = MCA_VAR_SIZE, .unit = "bytes",
          .def.size = 1 << 30, .min = 1 << 20, .max = INT64_MAX,
          .help = "Longest message between daemons that is taken"},
         &p->message_max},
    };
    int rc = opal_net_params(mca_base_services(), &p->net);

    for (size_t i = 0; rc == OPAL_SUCCESS && i < sizeof(table) / sizeof(table[0]); i++) {
        rc = mca_base_var_register(&table[i].desc, table[i].storage);
    }
    return rc;
}

uint32_t orte_oob_radix(void)
{
    return (uint32_t)orte_oob_params.radix;
}

/* ---- The key ---- */

int orte_oob_key_create(uint8_t key[ORTE_OOB_KEY_BYTES])
{
    ssize_t got;

    do {
        got = getrandom(key, ORTE_OOB_KEY_BYTES, 0);
    } while (got < 0 && errno == EINTR);
    return got == ORTE_OOB_KEY_BYTES ? OPAL_SUCCESS : OPAL_ERR_IN_ERRNO;
}

void orte_oob_key_format(const uint8_t key[ORTE_OOB_KEY_BYTES], char text[ORTE_OOB_KEY_TEXT])
{
    for (int i = 0; i < ORTE_OOB_KEY_BYTES; i++) {
        snprintf(text + 2 * i, 3, "%02x", key[i]);
    }
}

static int digit(char c)
{
    const char *digits = "0123456789abcdef", *at = c == '\0' ? NULL : strchr(digits, c);

    return at == NULL ? -1 : (int)(at - digits);
}

int orte_oob_key_parse(const char *text, uint8_t key[ORTE_OOB_KEY_BYTES])
{
    if (strlen(text) != ORTE_OOB_KEY_TEXT - 1) {
        return OPAL_ERR_PARSE;
    }
    for (int i = 0; i < ORTE_OOB_KEY_BYTES; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0) {
            return OPAL_ERR_PARSE;
        }
        key[i] = (uint8_t)(high << 4 | low);
    }
    return OPAL_SUCCESS;
}

/* ---- Making and ending ---- */

struct timeval oob_timeval(int64_t ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000};
}

static void look_for_silence(evutil_socket_t fd, short what, void *arg);
static void left(evutil_socket_t fd, short what, void *arg);

static int start_events(orte_oob_t *oob)
{
    int64_t period = orte_oob_params.heartbeat_s * 1000 / MONITOR_PER_LIMIT;
    struct timeval time = oob_timeval(period);

    oob->soon = event_new(oob->base, -1, 0, oob_soon, oob);
    oob->monitor = event_new(oob->base, -1, EV_PERSIST, look_for_silence, oob);
    oob->leave.timer = event_new(oob->base, -1, 0, left, oob);
    if (oob->soon == NULL || oob->monitor == NULL || oob->leave.timer == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    return period == 0 || event_add(oob->monitor, &time) == 0 ? OPAL_SUCCESS
                                                              : OPAL_ERR_OUT_OF_RESOURCE;
}

static int resize(orte_oob_t *oob, uint32_t count)
{
    uint32_t first, nchildren = orte_oob_tree_children(oob->config.index, count,
                                                       oob->config.radix, &first);
    uint8_t *lost = realloc(oob->lost, count);

    if (lost == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    oob->lost = lost;
    oob_link_t **children =
        nchildren == 0 ? NULL : realloc(oob->children, nchildren * sizeof(oob_link_t *));
    if (nchildren > 0 && children == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    for (uint32_t i = oob->nchildren; i < nchildren; i++) {
        children[i] = NULL;
    }
    oob->children = children;
    oob->first_child = first;
    oob->nchildren = nchildren;
    if (count > oob->config.count) {
        memset(lost + oob->config.count, 0, count - oob->config.count);
    }
    oob->config.count = count;
    return OPAL_SUCCESS;
}

orte_oob_t *orte_oob_create(struct event_base *base, const orte_oob_config_t *config)
{
    orte_oob_t *oob = calloc(1, sizeof(*oob));

    if (oob == NULL) {
        return NULL;
    }
    oob->base = base;
    oob->config = *config;
    oob->config.hostname = NULL; /* its copy is in `speaker` */
    oob->config.count = 0;
    oob->config.radix = config->radix == 0 ? orte_oob_radix() : config->radix;
    oob_speaker_set(&oob->speaker, PACKAGE_VERSION, config->hostname);
    oob->listener.fd = -1;
    opal_list_init(&oob->local);
    opal_list_init(&oob->credit_due);
    opal_list_init(&oob->listener.guests);
    opal_list_init(&oob->connector.attempts);
    oob->scratch = malloc(OOB_SCRATCH);
    if (oob->scratch == NULL || resize(oob, config->count) != OPAL_SUCCESS ||
        start_events(oob) != OPAL_SUCCESS) {
        orte_oob_destroy(oob);
        return NULL;
    }
    return oob;
}

static void free_event(struct event *event)
{
    if (event != NULL) {
        event_free(event);
    }
}

void orte_oob_destroy(orte_oob_t *oob)
{
    opal_list_item_t *item;

    if (oob == NULL) {
        return;
    }
    oob_listener_stop(oob);
    oob_connector_stop(oob);
    for (uint32_t slot = 0; slot < oob_link_slots(oob); slot++) {
        oob_link_destroy(oob_link_at(oob, slot));
    }
    while ((item = opal_list_pop(&oob->local)) != NULL) {
        oob_out_destroy(OPAL_CONTAINER_OF(item, oob_out_t, item));
    }
    oob_peers_destroy(oob);
    free_event(oob->soon);
    free_event(oob->monitor);
    free_event(oob->leave.timer);
    free(oob->listener.contact);
    free(oob->children);
    free(oob->lost);
    free(oob->scratch);
    explicit_bzero(oob->config.key, sizeof(oob->config.key));
    free(oob);
}

int orte_oob_grow(orte_oob_t *oob, uint32_t count)
{
    return count < oob->config.count ? OPAL_ERR_BAD_PARAM : resize(oob, count);
}

struct event_base *orte_oob_base(const orte_oob_t *oob)
{
    return oob->base;
}

uint32_t orte_oob_index(const orte_oob_t *oob)
{
    return oob->config.index;
}

uint32_t orte_oob_count(const orte_oob_t *oob)
{
    return oob->config.count;
}

uint32_t orte_oob_tree_radix(const orte_oob_t *oob)
{
    return oob->config.radix;
}

size_t orte_oob_window(const orte_oob_t *oob)
{
    size_t share = WINDOWS_TOGETHER / (oob->config.count > 1 ? oob->config.count - 1 : 1);

    share = share < WINDOW_MIN ? WINDOW_MIN : share;
    return share < orte_oob_params.window ? share : (size_t)orte_oob_params.window;
}

/* ---- Neighbours ---- */

uint32_t oob_link_slots(const orte_oob_t *oob)
{
    return 1 + oob->nchildren;
}

oob_link_t *oob_link_at(const orte_oob_t *oob, uint32_t slot)
{
    return slot == 0 ? oob->parent : oob->children[slot - 1];
}

/* Where the link of a neighbour is kept; NULL: no neighbour. */
static oob_link_t **slot_of(orte_oob_t *oob, uint32_t index)
{
    if (index == orte_oob_tree_parent(oob->config.index, oob->config.radix)) {
        return &oob->parent;
    }
    return index >= oob->first_child && index - oob->first_child < oob->nchildren
               ? &oob->children[index - oob->first_child]
               : NULL;
}

oob_link_t *oob_link_get(orte_oob_t *oob, uint32_t index)
{
    oob_link_t **slot = slot_of(oob, index);

    if (slot == NULL || *slot != NULL || oob->lost[index]) {
        return slot == NULL ? NULL : *slot;
    }
    oob_link_t *link = calloc(1, sizeof(*link));
    if (link != NULL) {
        link->oob = oob;
        link->index = index;
        link->fd = -1;
        for (int cls = 0; cls < ORTE_OOB_CLASSES; cls++) {
            opal_list_init(&link->queue[cls]);
        }
        *slot = link;
    }
    return link;
}

/* ---- Loss ---- */

bool orte_oob_is_lost(const orte_oob_t *oob, uint32_t index)
{
    uint32_t here = oob->config.index, radix = oob->config.radix;

    if (index >= oob->config.count) {
        return true;
    }
    /* The way there, walked from both ends: whoever has the larger index climbs. */
    while (here != index) {
        if (here > index) {
            here = orte_oob_tree_parent(here, radix);
            if (oob->lost[here]) {
                return true;
            }
        } else {
            if (oob->lost[index]) {
                return true;
            }
            index = orte_oob_tree_parent(index, radix);
        }
    }
    return false;
}

static void send_lost(oob_link_t *link, uint32_t index, orte_oob_loss_t why, const char *sentence)
{
    size_t size = strlen(sentence);
    oob_frame_t frame = {.type = OOB_LOST, .from = index, .to = ORTE_OOB_EVERYBODY,
                         .number = why};
    uint8_t *data = malloc(size + 1);

    if (data != NULL) {
        memcpy(data, sentence, size);
    }
    oob_out_t *out = oob_out_create(oob_payload_create(data), size, &frame);
    if (data == NULL || out == NULL) {
        link->no_memory = true;
        oob_link_kick(link);
        return;
    }
    oob_link_send(link, ORTE_OOB_CONTROL, out);
}

void oob_tell_lost(oob_link_t *link)
{
    orte_oob_t *oob = link->oob;

    for (uint32_t i = 0; i < oob->config.count; i++) {
        if (oob->lost[i]) {
            send_lost(link, i, ORTE_OOB_DIED, "it was lost before this connection was made");
        }
    }
}

/* Who leaves in order is of interest to those above only; the rest is told by whoever ends the
 * job. */
static void spread(orte_oob_t *oob, const oob_link_t *except, uint32_t index, orte_oob_loss_t why,
                   const char *sentence)
{
    uint32_t slots = why == ORTE_OOB_LEFT ? 1 : oob_link_slots(oob);

    for (uint32_t slot = 0; slot < slots; slot++) {
        oob_link_t *link = oob_link_at(oob, slot);
        if (link != NULL && link != except && link->fd >= 0) {
            send_lost(link, index, why, sentence);
        }
    }
}

/* Note it and tell our user. What is on the way to those below is void, too. */
static void note_lost(orte_oob_t *oob, uint32_t index, orte_oob_loss_t why, const char *sentence)
{
    oob->lost[index] = 1;
    oob_peers_forget_lost(oob);
    if (oob->config.on_lost != NULL && !oob->leave.begun) {
        oob->config.on_lost(oob->config.arg, index, why, sentence);
    }
}

void oob_link_lost(oob_link_t *link, orte_oob_loss_t why, const char *sentence)
{
    orte_oob_t *oob = link->oob;
    uint32_t index = link->index;

    *slot_of(oob, index) = NULL;
    oob_link_destroy(link);
    if (!oob->leave.begun) {
        spread(oob, NULL, index, why, sentence);
    }
    note_lost(oob, index, why, sentence);
    oob_leave_progress(oob);
}

void oob_told_lost(orte_oob_t *oob, oob_link_t *by, uint32_t index, orte_oob_loss_t why,
                   const char *sentence)
{
    if (oob->lost[index] || index == oob->config.index) {
        return;
    }
    spread(oob, by, index, why, sentence);
    note_lost(oob, index, why, sentence);
}

static void look_for_silence(evutil_socket_t fd, short what, void *arg)
{
    orte_oob_t *oob = arg;
    char sentence[ORTE_OOB_SENTENCE];

    (void)fd;
    (void)what;
    for (uint32_t slot = 0; slot < oob_link_slots(oob); slot++) {
        oob_link_t *link = oob_link_at(oob, slot);
        if (link != NULL && oob_link_silence(link) >= orte_oob_params.heartbeat_s * 1000) {
            snprintf(sentence, sizeof(sentence),
                     "host %s has not answered host %s for %d s (parameter oob_heartbeat): it is "
                     "down, or the network between them is", link->speaker.host,
                     oob->speaker.host, (int)orte_oob_params.heartbeat_s);
            oob_link_lost(link, ORTE_OOB_SILENT, sentence);
        }
    }
}

/* ---- Leaving ---- */

static void left(evutil_socket_t fd, short what, void *arg)
{
    orte_oob_t *oob = arg;
    void (*done)(void *arg) = oob->leave.done;

    (void)fd;
    (void)what;
    oob->leave.done = NULL;
    event_del(oob->leave.timer);
    if (done != NULL) {
        done(oob->leave.arg);
    }
}

void oob_leave_progress(orte_oob_t *oob)
{
    if (oob->leave.done == NULL || !opal_list_is_empty(&oob->local)) {
        return;
    }
    for (uint32_t slot = 0; slot < oob_link_slots(oob); slot++) {
        oob_link_t *link = oob_link_at(oob, slot);
        if (link != NULL && link->fd >= 0) {
            return;
        }
    }
    event_active(oob->leave.timer, EV_TIMEOUT, 1);
}

void orte_oob_leave(orte_oob_t *oob, int limit_ms, void (*done)(void *arg), void *arg)
{
    struct timeval limit = oob_timeval(limit_ms);

    oob->leave.begun = true;
    oob->leave.done = done;
    oob->leave.arg = arg;
    oob_listener_stop(oob);
    oob_connector_stop(oob);
    for (uint32_t slot = 0; slot < oob_link_slots(oob); slot++) {
        oob_link_t *link = oob_link_at(oob, slot);
        if (link != NULL) {
            oob_link_kick(link);
        }
    }
    event_add(oob->leave.timer, &limit);
    oob_leave_progress(oob);
}
