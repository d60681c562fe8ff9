/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* User messages: their form, once per topic, and the envelope for the launcher with its filter. */
#include "opal/util/help_envelope.h"
#include "opal/util/output.h"

#include <stdint.h>

#include "support/child.h"
#include "support/tap.h"

/* ---- Messages ---- */

static int say(void *context)
{
    (void) context;
    opal_output_set_identity("node7 rank 3");
    opal_show_help("t:one", "first %d\nsecond line\n", 1);
    opal_show_help("t:one", "again");
    opal_show_help("t:two", "other");
    opal_output("debug %s", "line");
    return 0;
}

static void messages(void)
{
    child_result_t r;
    child_run(say, NULL, &r);
    if (!TAP_OK(0 == strcmp(r.err, "hawser: node7 rank 3: first 1\n    second line\n"
                                   "hawser: node7 rank 3: other\n[node7 rank 3] debug line\n"),
                "form of messages, and each topic once")) {
        child_explain(&r);
    }
}

/* ---- The filter ---- */

typedef struct seen {
    char plain[32768];
    size_t plain_len;
    int messages;
    char topic[256], text[8192];
} seen_t;

static void plain(void *context, const char *data, size_t len)
{
    seen_t *s = context;
    memcpy(s->plain + s->plain_len, data, len);
    s->plain_len += len;
}

static void message(void *context, const char *topic, const char *text)
{
    seen_t *s = context;
    s->messages++;
    snprintf(s->topic, sizeof(s->topic), "%s", topic);
    snprintf(s->text, sizeof(s->text), "%s", text);
}

static const opal_help_sink_t sink = {.plain = plain, .message = message};

/* Feed in pieces of `step` bytes. */
static void filter(const char *data, size_t len, size_t step, seen_t *seen)
{
    opal_help_filter_t f = {0};
    memset(seen, 0, sizeof(*seen));
    for (size_t at = 0; at < len; at += step) {
        opal_help_filter_feed(&f, data + at, len - at < step ? len - at : step, &sink, seen);
    }
    opal_help_filter_flush(&f, &sink, seen);
}

static void envelopes(void)
{
    child_result_t r;
    seen_t *s = malloc(sizeof(*s));
    setenv(OPAL_HELP_AGGREGATE_ENV, "1", 1);
    child_run(say, NULL, &r);
    unsetenv(OPAL_HELP_AGGREGATE_ENV);
    unsigned wrong = 0;
    for (size_t step = 1; step < 40; step++) {
        filter(r.err, strlen(r.err), step, s);
        wrong += s->messages != 2 || 0 != strcmp(s->topic, "t:two")
                 || 0 != strcmp(s->text, "hawser: node7 rank 3: other\n")
                 || s->plain_len != strlen("[node7 rank 3] debug line\n");
    }
    TAP_OK(0 == wrong, "messages are taken out, the rest passes, however the stream is cut");

    char out[OPAL_HELP_ENVELOPE_MAX];
    char *huge = malloc(10001);
    memset(huge, 'x', 10000);
    huge[10000] = '\0';
    const size_t len = opal_help_envelope(out, "topic", huge);
    filter(out, len, 100, s);
    TAP_OK(len <= OPAL_HELP_ENVELOPE_MAX && 1 == s->messages && 0 == s->plain_len
           && strstr(s->text, "(cut)"),
           "a huge message is cut to one atomic write");
    const size_t evil = opal_help_envelope(out, "to\x1fpic", "te\x1ext\x1f");
    filter(out, evil, 3, s);
    TAP_OK(1 == s->messages && 0 == strcmp(s->topic, "to pic") && 0 == strcmp(s->text, "te xt "),
           "separators in a message do no harm");
    free(huge);
    free(s);
}

/* Whatever is no envelope passes unchanged. */
static void other_streams(void)
{
    static const char alphabet[] = "\x1e\x1f" "hawser-help\x1ex\n";
    seen_t *s = malloc(sizeof(*s));
    const char broken[] = "a\x1e\x1fhawser-\x1e\x1fhawser-help\x1fno end";
    filter(broken, sizeof(broken) - 1, 4, s);
    TAP_OK(0 == s->messages && s->plain_len == sizeof(broken) - 1
           && 0 == memcmp(s->plain, broken, s->plain_len),
           "a broken envelope passes");

    uint64_t seed = 7;
    unsigned wrong = 0;
    for (int round = 0; round < 300; round++) {
        char data[6000];
        for (size_t i = 0; i < sizeof(data); i++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            data[i] = alphabet[(seed >> 40) % (sizeof(alphabet) - 1)];
        }
        /* Marks without a second part, so that nothing is a message. */
        memcpy(data + 100, OPAL_HELP_ENVELOPE_MARK, sizeof(OPAL_HELP_ENVELOPE_MARK) - 1);
        memset(data + 113, 'y', 4500);
        filter(data, sizeof(data), 1 + seed % 700, s);
        wrong += 0 == s->messages && (s->plain_len != sizeof(data)
                                      || 0 != memcmp(s->plain, data, sizeof(data)));
    }
    TAP_OK(0 == wrong, "random streams pass unchanged");
    free(s);
}

int main(void)
{
    tap_start(60);
    messages();
    envelopes();
    other_streams();
    return tap_end();
}
