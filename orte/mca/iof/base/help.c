/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Messages for the user that many processes send: each topic is shown once. */
#include "orte/mca/iof/base/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static orte_iof_topic_t *find_topic(const orte_iof_t *iof, const char *name)
{
    orte_iof_topic_t *topic = iof->topics;

    while (topic != NULL && strcmp(topic->name, name) != 0) {
        topic = topic->next;
    }
    return topic;
}

void orte_iof_help_message(void *context, const char *name, const char *text)
{
    orte_iof_channel_t *channel = context;
    orte_iof_t *iof = channel->iof;
    orte_iof_topic_t *topic = find_topic(iof, name);

    if (channel->file != NULL) {
        orte_sink_write(channel->file, text, strlen(text));
    }
    if (topic != NULL) {
        topic->repeats++;
        return;
    }
    orte_sink_write(iof->err, text, strlen(text));
    topic = calloc(1, sizeof(*topic));
    if (topic != NULL) { /* else the next one is shown too */
        snprintf(topic->name, sizeof(topic->name), "%s", name);
        topic->next = iof->topics;
        iof->topics = topic;
    }
}

void orte_iof_help_summary(orte_iof_t *iof)
{
    while (iof->topics != NULL) {
        orte_iof_topic_t *topic = iof->topics;
        iof->topics = topic->next;
        if (topic->repeats > 0 && !iof->rt->opt.quiet) {
            char text[OPAL_HELP_TOPIC_MAX + 128];
            snprintf(text, sizeof(text), "%s: %d more process%s said what is said above about %s\n",
                     iof->rt->progname, topic->repeats, topic->repeats == 1 ? "" : "es",
                     topic->name);
            orte_sink_write(iof->err, text, strlen(text));
        }
        free(topic);
    }
}
