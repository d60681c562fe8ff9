/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Messages for the user that many processes send: each is shown once. */
#include "orte/mca/iof/base/internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of one topic so many different ones are shown: a thousand processes may each miss another one. */
#define SHOWN_MAX 8

/* "hawser: HOST rank N: " is left out. */
static const char *without_sender(const char *text)
{
    const char *sender = strstr(text, ": ");
    const char *rest = sender != NULL ? strstr(sender + 2, ": ") : NULL;

    return rest != NULL ? rest + 2 : text;
}

static const char *skip_digits(const char *text)
{
    return text + strspn(text, "0123456789");
}

/* Numbers apart: mostly they are ranks, and each process names its own. */
static bool is_same(const char *a, const char *b)
{
    while (*a != '\0' && *b != '\0') {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            a = skip_digits(a);
            b = skip_digits(b);
        } else if (*a++ != *b++) {
            return false;
        }
    }
    return *a == *b;
}

static void remember(orte_iof_t *iof, const char *topic, const char *text)
{
    orte_iof_said_t *said = calloc(1, sizeof(*said) + strlen(text) + 1);

    if (said != NULL) { /* else the next one is shown too */
        snprintf(said->topic, sizeof(said->topic), "%s", topic);
        strcpy(said->text, text);
        said->next = iof->said;
        iof->said = said;
    }
}

void orte_iof_help_message(void *context, const char *topic, const char *text)
{
    orte_iof_channel_t *channel = context;
    orte_iof_t *iof = channel->iof;
    const char *what = without_sender(text);
    orte_iof_said_t *last = NULL;
    int shown = 0;

    if (channel->file != NULL) {
        orte_sink_write(channel->file, text, strlen(text));
    }
    for (orte_iof_said_t *said = iof->said; said != NULL; said = said->next) {
        if (strcmp(said->topic, topic) != 0) {
            continue;
        }
        if (is_same(said->text, what)) {
            said->repeats++;
            said->numbers |= strcmp(said->text, what) != 0;
            return;
        }
        last = said;
        shown++;
    }
    if (shown >= SHOWN_MAX) {
        last->left_out++;
        return;
    }
    orte_sink_write(iof->err, text, strlen(text));
    remember(iof, topic, what);
}

static void tell(const orte_iof_t *iof, int count, const char *what, const char *topic, const char *but)
{
    char text[OPAL_HELP_TOPIC_MAX + 128];

    if (count > 0 && !iof->rt->opt.quiet) {
        snprintf(text, sizeof(text), "%s: %d more process%s said %s about %s%s\n", iof->rt->progname,
                 count, count == 1 ? "" : "es", what, topic, but);
        orte_sink_write(iof->err, text, strlen(text));
    }
}

void orte_iof_help_summary(orte_iof_t *iof)
{
    while (iof->said != NULL) {
        orte_iof_said_t *said = iof->said;
        iof->said = said->next;
        tell(iof, said->repeats, "what is said above", said->topic,
             said->numbers ? ", some with other numbers" : "");
        tell(iof, said->left_out, "something else", said->topic, "");
        free(said);
    }
}
