/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What libpmix has to say. It writes to standard error, but to another descriptor if the environment names one: ours. So what
 * is no news can be left out: that an answer did not reach a process which the end of its job was quicker to end. */
#include "orte/pmix/internal.h"

#include "orte/pmix/server.h"
#include "orte/util/report.h"

#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DESCRIPTOR_ENV "PMIX_OUTPUT_STDERR_FD"

enum { ROOM = 1 << 20 }; /* what it says while nobody reads, if the system allows; more is lost */

static int said = -1; /* our end */

static void pass_on(const char *line)
{
    if (strstr(line, "pmix_ptl_base: send_msg: write failed") != NULL) {
        orte_trace("libpmix: %s", line);
    } else {
        dprintf(STDERR_FILENO, "%s\n", line);
    }
}

void orte_pmix_output_pass_on(void)
{
    static char text[8192];
    static size_t have;
    ssize_t got;

    while (said >= 0 && (got = read(said, text + have, sizeof(text) - 1 - have)) > 0) {
        char *line = text, *end;
        have += (size_t)got;
        text[have] = '\0';
        while ((end = strchr(line, '\n')) != NULL || (line == text && have == sizeof(text) - 1)) {
            end = end == NULL ? text + have : end;
            *end = '\0';
            pass_on(line);
            line = end < text + have ? end + 1 : end;
        }
        have -= (size_t)(line - text);
        memmove(text, line, have);
    }
}

static void readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    orte_pmix_output_pass_on();
}

void orte_pmix_output_redirect(orte_runtime_t *rt)
{
    char number[16];
    int ends[2];
    struct event *event;

    if (getenv(DESCRIPTOR_ENV) != NULL || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        return; /* the user's choice, or as it is without us */
    }
    fcntl(ends[1], F_SETPIPE_SZ, ROOM);
    event = event_new(rt->base, ends[0], EV_READ | EV_PERSIST, readable, NULL);
    if (event == NULL || event_add(event, NULL) != 0) {
        close(ends[0]);
        close(ends[1]);
        return;
    }
    said = ends[0];
    snprintf(number, sizeof(number), "%d", ends[1]);
    setenv(DESCRIPTOR_ENV, number, 1);
}

void orte_pmix_output_redirected(void)
{
    if (said >= 0) {
        unsetenv(DESCRIPTOR_ENV); /* no process that we start has it */
        orte_pmix_output_pass_on();
    }
}
