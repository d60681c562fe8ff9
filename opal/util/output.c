/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Messages: composed in memory, written to standard error with one write(), user messages once per
 * topic. */
#include "opal/util/output.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opal/util/help_envelope.h"

/* Protects the identity and the topics seen; never held while writing. */
static pthread_mutex_t output_lock = PTHREAD_MUTEX_INITIALIZER;
static char output_identity[256];

/* Topics that were shown, a plain list: there are a handful in the life of a process. */
typedef struct topic {
    struct topic *next;
    char name[];
} topic_t;

static topic_t *topics;
static _Atomic bool muted;

void opal_help_mute(void)
{
    muted = true;
}

void opal_output_set_identity(const char *identity)
{
    pthread_mutex_lock(&output_lock);
    snprintf(output_identity, sizeof(output_identity), "%s", identity ? identity : "");
    pthread_mutex_unlock(&output_lock);
}

/* Until somebody tells better, a process is its host and process id. */
static void get_identity(char *out, size_t size)
{
    pthread_mutex_lock(&output_lock);
    if ('\0' == output_identity[0]) {
        char host[128] = "localhost";
        gethostname(host, sizeof(host) - 1);
        snprintf(output_identity, sizeof(output_identity), "%s pid %ld", host, (long) getpid());
    }
    snprintf(out, size, "%s", output_identity);
    pthread_mutex_unlock(&output_lock);
}

/* Standard error may be a non-blocking pipe that is full, or closed; a message is lost in the
 * latter case only. */
static void write_all(const char *data, size_t len)
{
    while (len > 0) {
        const ssize_t n = write(STDERR_FILENO, data, len);
        if (n >= 0) {
            data += n;
            len -= (size_t) n;
        } else if (EAGAIN == errno) {
            struct pollfd wait = {.fd = STDERR_FILENO, .events = POLLOUT};
            poll(&wait, 1, -1);
        } else if (errno != EINTR) {
            return;
        }
    }
}

/* True if the topic is new (or memory is out, in which case a message too many is the lesser
 * evil). */
static bool first_time(const char *name)
{
    bool first = true;
    pthread_mutex_lock(&output_lock);
    for (const topic_t *t = topics; t; t = t->next) {
        if (0 == strcmp(t->name, name)) {
            first = false;
            break;
        }
    }
    if (first) {
        const size_t size = strlen(name) + 1;
        topic_t *t = malloc(sizeof(*t) + size);
        if (t) {
            memcpy(t->name, name, size);
            t->next = topics;
            topics = t;
        }
    }
    pthread_mutex_unlock(&output_lock);
    return first;
}

/* "hawser: IDENTITY: " and the text, whose lines after the first are indented; ends in one
 * newline. */
static char *compose(const char *text)
{
    char identity[sizeof(output_identity)];
    get_identity(identity, sizeof(identity));

    char *out = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&out, &size);
    if (NULL == stream) {
        return NULL;
    }
    fprintf(stream, "hawser: %s: ", identity);
    size_t len = strlen(text);
    while (len > 0 && '\n' == text[len - 1]) {
        len--;
    }
    for (size_t i = 0; i < len; i++) {
        fputc(text[i], stream);
        if ('\n' == text[i] && text[i + 1] != '\n') {
            fputs("    ", stream);
        }
    }
    fputc('\n', stream);
    if (0 != fclose(stream)) {
        free(out);
        return NULL;
    }
    return out;
}

void opal_vshow_help(const char *topic, const char *format, va_list args)
{
    const int saved_errno = errno;
    char *text = NULL;
    char *message = NULL;
    if (muted || !first_time(topic) || vasprintf(&text, format, args) < 0) {
        errno = saved_errno;
        return;
    }
    message = compose(text);
    const char *aggregate = getenv(OPAL_HELP_AGGREGATE_ENV);
    if (NULL == message) {
        write_all(text, strlen(text));
    } else if (aggregate && 0 == strcmp(aggregate, "1")) {
        char envelope[OPAL_HELP_ENVELOPE_MAX];
        write_all(envelope, opal_help_envelope(envelope, topic, message));
    } else {
        write_all(message, strlen(message));
    }
    free(message);
    free(text);
    errno = saved_errno;
}

void opal_show_help(const char *topic, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    opal_vshow_help(topic, format, args);
    va_end(args);
}

void opal_voutput(const char *format, va_list args)
{
    const int saved_errno = errno;
    char identity[sizeof(output_identity)];
    char *text = NULL;
    char *line = NULL;
    get_identity(identity, sizeof(identity));
    if (vasprintf(&text, format, args) >= 0) {
        const int len = asprintf(&line, "[%s] %s\n", identity, text);
        if (len >= 0) {
            write_all(line, (size_t) len);
            free(line);
        }
        free(text);
    }
    errno = saved_errno;
}

void opal_output(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    opal_voutput(format, args);
    va_end(args);
}
