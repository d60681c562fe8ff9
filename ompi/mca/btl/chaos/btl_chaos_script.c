/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The script: what happens when, one event a line, in the order of their times; docs/rehearsing-failures.md
 * explains it.
 *
 *   # time  what      how much   where
 *   0s      loss      10000
 *   1500ms  down                 link=tcp:eth1
 *   2s      up                   link=tcp:eth1 rank=0
 *   3s      throttle  10m
 *   5s      calm
 *   6s      repeat
 */
#include "ompi/mca/btl/chaos/btl_chaos.h"

#include <errno.h>
#include <stdio.h>

/* What an event does besides setting a fault's rate. */
enum { DO_THROTTLE = CHAOS_FAULTS, DO_DOWN, DO_UP, DO_CALM, DO_REPEAT, DO_COUNT };

static const char *const words[DO_COUNT] = {
    [CHAOS_LOSS] = "loss", [CHAOS_DAMAGE] = "damage", [CHAOS_DUPLICATE] = "duplicate", [CHAOS_REORDER] = "reorder",
    [CHAOS_DELAY] = "delay", [DO_THROTTLE] = "throttle", [DO_DOWN] = "down", [DO_UP] = "up", [DO_CALM] = "calm",
    [DO_REPEAT] = "repeat",
};

enum { EVENTS_MAX = 10000, LINE_MAX_LEN = 512 };

struct chaos_event {
    uint64_t at_ns;  /* after the script's start */
    int what;
    int64_t value;
    char link[32];   /* empty: all */
    int64_t rank;    /* negative: all */
};

static chaos_event_t *events;
static size_t event_count;

/* ---- Reading ---- */

/* "1500ms", "2s", "20us"; a number alone is milliseconds. */
static bool parse_time(const char *text, uint64_t *ns)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    double unit = strcmp(end, "s") == 0 ? 1e9 : strcmp(end, "us") == 0 ? 1e3
                  : strcmp(end, "ms") == 0 || *end == '\0' ? 1e6 : 0;
    if (end == text || errno != 0 || unit == 0 || !(value >= 0) || value * unit > 1e18) {
        return false;
    }
    *ns = (uint64_t) (value * unit);
    return true;
}

/* "10000", "64k", "10m" */
static bool parse_value(const char *text, int64_t max, int64_t *value)
{
    static const char units[] = "kmg";
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    int shift = unit ? 10 * (int) (unit - units + 1) : 0;
    if (end == text || errno != 0 || end[unit ? 1 : 0] != '\0' || n < 0 || n > max >> shift) {
        return false;
    }
    *value = (int64_t) n << shift;
    return true;
}

static bool parse_where(const char *text, chaos_event_t *e)
{
    if (strncmp(text, "link=", 5) == 0 && text[5] && strlen(text + 5) < sizeof(e->link)) {
        snprintf(e->link, sizeof(e->link), "%s", text + 5);
        return true;
    }
    return strncmp(text, "rank=", 5) == 0 && parse_value(text + 5, INT32_MAX, &e->rank);
}

/* NULL, or what is wrong with a line that is not empty. */
static const char *parse_line(char *line, chaos_event_t *e)
{
    char *save = NULL, *word = strtok_r(line, " \t\r\n", &save);
    *e = (chaos_event_t){.rank = -1};
    if (!parse_time(word, &e->at_ns)) {
        return "it does not begin with a time, such as 1500ms or 2s";
    }
    if (event_count > 0 && e->at_ns < events[event_count - 1].at_ns) {
        return "its time is before that of the line above";
    }
    word = strtok_r(NULL, " \t\r\n", &save);
    while (word && e->what < DO_COUNT && strcmp(words[e->what], word) != 0) {
        e->what++;
    }
    if (!word || e->what == DO_COUNT) {
        return "what is to happen is none of loss, damage, duplicate, reorder, delay, throttle, down, up, calm, repeat";
    }
    if (e->what == DO_REPEAT && e->at_ns == 0) {
        return "a script can't be repeated after no time";
    }
    if (e->what <= DO_THROTTLE) {
        word = strtok_r(NULL, " \t\r\n", &save);
        if (!word || !parse_value(word, e->what == DO_THROTTLE ? INT64_MAX : CHAOS_MILLION, &e->value)) {
            return "how much is missing or out of range";
        }
    }
    while ((word = strtok_r(NULL, " \t\r\n", &save))) {
        if (!parse_where(word, e)) {
            return "where is none of link=NAME and rank=NUMBER";
        }
    }
    return NULL;
}

/* A fragment suffers one fault at most: at no time may the rates be more than all. */
static bool is_possible(int64_t rate[CHAOS_FAULTS], const chaos_event_t *e)
{
    int64_t sum = 0;
    for (int f = 0; f < CHAOS_FAULTS; f++) {
        rate[f] = e->what == DO_CALM ? 0 : e->what == f ? e->value : rate[f];
        sum += rate[f];
    }
    return sum <= CHAOS_MILLION;
}

/* `rate`: what the lines above have set. */
static const char *add_line(char *line, int64_t rate[CHAOS_FAULTS])
{
    chaos_event_t e;
    line[strcspn(line, "#")] = '\0';
    if (line[strspn(line, " \t\r\n")] == '\0') {
        return NULL;
    }
    const char *wrong = parse_line(line, &e);
    if (!wrong && !is_possible(rate, &e)) {
        wrong = "loss, damage, duplicate, reorder and delay are together more than a million";
    }
    if (wrong) {
        return wrong;
    }
    chaos_event_t *grown = event_count < EVENTS_MAX ? realloc(events, (event_count + 1) * sizeof(*grown)) : NULL;
    if (!grown) {
        return "there are too many lines";
    }
    events = grown;
    events[event_count++] = e;
    return NULL;
}

bool mca_btl_chaos_script_read(void)
{
    const char *path = mca_btl_chaos_params.script, *wrong = NULL;
    char line[LINE_MAX_LEN];
    unsigned number = 0;
    int64_t rate[CHAOS_FAULTS];
    mca_btl_chaos_script_free();
    memcpy(rate, mca_btl_chaos_params.rate, sizeof(rate));
    if (!path || !*path) {
        return true;
    }
    FILE *file = fopen(path, "re");
    if (!file) {
        mca_btl_chaos_services->base->report("btl-chaos:script", "the script %s, named in the parameter "
                                             "btl_chaos_script, can't be read: %s.", path, strerror(errno));
        return false;
    }
    while (!wrong && fgets(line, sizeof(line), file)) {
        number++;
        wrong = !strchr(line, '\n') && !feof(file) ? "it is too long" : add_line(line, rate);
    }
    fclose(file);
    if (wrong) {
        mca_btl_chaos_services->base->report("btl-chaos:script", "the script %s, named in the parameter "
                                             "btl_chaos_script, line %u: %s.", path, number, wrong);
    }
    return !wrong;
}

void mca_btl_chaos_script_free(void)
{
    free(events);
    events = NULL;
    event_count = 0;
}

bool mca_btl_chaos_script_has(chaos_fault_t fault)
{
    for (size_t i = 0; i < event_count; i++) {
        if (events[i].what == (int) fault && events[i].value > 0) {
            return true;
        }
    }
    return false;
}

bool mca_btl_chaos_script_kills(void)
{
    for (size_t i = 0; i < event_count; i++) {
        if (events[i].what == DO_DOWN) {
            return true;
        }
    }
    return false;
}

/* ---- Playing ---- */

static bool concerns(const chaos_event_t *e, const chaos_module_t *m)
{
    return (e->link[0] == '\0' || strcmp(e->link, m->below->name) == 0 || strcmp(e->link, m->super.name) == 0) &&
           (e->rank < 0 || (uint32_t) e->rank == (uint32_t) mca_btl_chaos_services->job->self);
}

/* What is for another rank may be on another host. */
static bool is_somewhere(const chaos_event_t *e, mca_btl_module_t *const *list, size_t count)
{
    bool found = e->link[0] == '\0' || (e->rank >= 0 && (uint32_t) e->rank != (uint32_t) mca_btl_chaos_services->job->self);
    for (size_t i = 0; i < count && !found; i++) {
        found = concerns(e, (const chaos_module_t *) list[i]);
    }
    return found;
}

void mca_btl_chaos_script_check(mca_btl_module_t *const *list, size_t count)
{
    const mca_base_services_t *base = mca_btl_chaos_services->base;
    char topic[128];
    for (size_t i = 0; i < event_count; i++) {
        const chaos_event_t *e = &events[i];
        if (e->rank >= (int64_t) mca_btl_chaos_services->job->size) {
            snprintf(topic, sizeof(topic), "btl-chaos:script-rank:%lld", (long long) e->rank);
            base->report(topic, "the script %s, named in the parameter btl_chaos_script, has events for rank %lld, "
                         "which the job does not have: nothing happens there.", mca_btl_chaos_params.script,
                         (long long) e->rank);
        } else if (!is_somewhere(e, list, count)) {
            snprintf(topic, sizeof(topic), "btl-chaos:script-link:%s", e->link);
            base->report(topic, "the script %s, named in the parameter btl_chaos_script, has events for the link \"%s\", "
                         "and btl/chaos stands over no such link: nothing happens to it. --report-links shows the names.",
                         mca_btl_chaos_params.script, e->link);
        }
    }
}

static void set_rates(chaos_module_t *m, int64_t value)
{
    for (int i = 0; i < CHAOS_FAULTS; i++) {
        atomic_store(&m->rate[i], value);
    }
}

/* A life that the script decides does not end by itself. */
static void play(chaos_module_t *m, const chaos_event_t *e, uint64_t now)
{
    int life = atomic_load(&m->life);
    switch (e->what) {
    case DO_THROTTLE:
        atomic_store(&m->throttle, e->value);
        break;
    case DO_CALM:
        set_rates(m, 0);
        atomic_store(&m->throttle, 0);
        break;
    case DO_DOWN:
        if (life == CHAOS_UP) {
            mca_btl_chaos_change(m, CHAOS_FADING, now);
        }
        break;
    case DO_UP:
        if (life == CHAOS_FADING) {
            mca_btl_chaos_change(m, CHAOS_DOWN, now);
        } else if (life == CHAOS_DOWN) {
            mca_btl_chaos_change(m, CHAOS_UP, now);
        }
        break;
    default:
        atomic_store(&m->rate[e->what], e->value);
    }
}

void mca_btl_chaos_script_play(chaos_module_t *m, uint64_t now)
{
    while (m->next_event < event_count && events[m->next_event].at_ns <= now - m->script_ns) {
        const chaos_event_t *e = &events[m->next_event];
        if (e->what == DO_REPEAT) {
            m->next_event = 0;
            m->script_ns += e->at_ns;
            return;
        }
        if (concerns(e, m)) {
            int before = atomic_load(&m->life);
            play(m, e, now);
            if (e->what == DO_UP && before == CHAOS_FADING) {
                return; /* the death is told first, the return in the next round */
            }
        }
        m->next_event++;
    }
}

uint64_t mca_btl_chaos_script_next(const chaos_module_t *m)
{
    return m->next_event < event_count ? m->script_ns + events[m->next_event].at_ns : UINT64_MAX;
}
