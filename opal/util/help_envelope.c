/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Envelopes around user messages: made by processes, taken out of their standard error by the
 * launcher. */
#include "opal/util/help_envelope.h"

#include <stdbool.h>
#include <string.h>

enum { RS = 0x1e, US = 0x1f, MARK_LEN = sizeof(OPAL_HELP_ENVELOPE_MARK) - 1 };

static const char cut_notice[] = "... (cut)\n";

/* Copy up to `room` bytes; the two separators become spaces. */
static size_t put_clean(char *out, size_t room, const char *from)
{
    size_t n = 0;
    for (; n < room && from[n] != '\0'; n++) {
        out[n] = RS == from[n] || US == from[n] ? ' ' : from[n];
    }
    return n;
}

size_t opal_help_envelope(char out[OPAL_HELP_ENVELOPE_MAX], const char *topic, const char *text)
{
    size_t used = MARK_LEN;
    memcpy(out, OPAL_HELP_ENVELOPE_MARK, MARK_LEN);
    used += put_clean(out + used, OPAL_HELP_TOPIC_MAX, topic);
    out[used++] = US;

    const size_t room = OPAL_HELP_ENVELOPE_MAX - used - 1;
    const size_t n = put_clean(out + used, room, text);
    if (text[n] != '\0') {
        memcpy(out + used + room - (sizeof(cut_notice) - 1), cut_notice, sizeof(cut_notice) - 1);
    }
    used += n;
    out[used++] = RS;
    return used;
}

/* Hand the first `n` held bytes on as they are. */
static void pass_held(opal_help_filter_t *filter, size_t n, const opal_help_sink_t *sink,
                      void *context)
{
    if (n > 0) {
        sink->plain(context, filter->held, n);
        filter->used -= n;
        memmove(filter->held, filter->held + n, filter->used);
    }
}

/* Can the held bytes still be the start of an envelope? They start with RS. */
static bool mark_matches(const opal_help_filter_t *filter)
{
    const size_t n = filter->used < MARK_LEN ? filter->used : MARK_LEN;
    return 0 == memcmp(filter->held, OPAL_HELP_ENVELOPE_MARK, n);
}

/* The held bytes end in RS: hand them up as a message if they are one. */
static bool deliver(opal_help_filter_t *filter, const opal_help_sink_t *sink, void *context)
{
    char *topic = filter->held + MARK_LEN;
    char *end = filter->held + filter->used - 1;
    char *text = memchr(topic, US, (size_t) (end - topic));
    if (NULL == text || text == topic || text - topic > OPAL_HELP_TOPIC_MAX
        || NULL != memchr(text + 1, US, (size_t) (end - text - 1))
        || NULL != memchr(topic, '\0', (size_t) (end - topic))) {
        return false;
    }
    *text++ = '\0';
    *end = '\0';
    sink->message(context, topic, text);
    filter->used = 0;
    return true;
}

/* One byte after the held ones, of which there is at least one. */
static void take(opal_help_filter_t *filter, char byte, const opal_help_sink_t *sink, void *context)
{
    const bool in_envelope = filter->used >= MARK_LEN;
    filter->held[filter->used++] = byte;
    if (!in_envelope) {
        if (!mark_matches(filter)) {
            /* The byte that breaks the mark may start another. */
            pass_held(filter, RS == byte ? filter->used - 1 : filter->used, sink, context);
        }
    } else if (RS == byte) {
        if (!deliver(filter, sink, context)) {
            pass_held(filter, filter->used - 1, sink, context);
        }
    } else if (filter->used > OPAL_HELP_ENVELOPE_MAX - 1) {
        pass_held(filter, filter->used, sink, context);
    }
}

void opal_help_filter_feed(opal_help_filter_t *filter, const char *data, size_t len,
                           const opal_help_sink_t *sink, void *context)
{
    size_t at = 0;
    while (at < len) {
        if (filter->used > 0) {
            take(filter, data[at++], sink, context);
            continue;
        }
        const char *mark = memchr(data + at, RS, len - at);
        const size_t plain = mark ? (size_t) (mark - data) - at : len - at;
        if (plain > 0) {
            sink->plain(context, data + at, plain);
            at += plain;
        }
        if (mark) {
            filter->held[filter->used++] = RS;
            at++;
        }
    }
}

void opal_help_filter_flush(opal_help_filter_t *filter, const opal_help_sink_t *sink, void *context)
{
    pass_held(filter, filter->used, sink, context);
}
