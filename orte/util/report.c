/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Messages of the launcher's tools. */
#include "orte/util/report.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
    const char *name;
    bool quiet, trace;
    struct timespec start;
    bool hold;
    char held[2048];
    void (*write)(void *arg, const char *text, size_t size);
    void *write_arg;
    pthread_t writer;
} report = {.name = "mpirun"};

void orte_report_setup(const char *name, bool quiet, bool trace)
{
    report.name = name;
    report.quiet = quiet;
    report.trace = trace;
    if (report.start.tv_sec == 0) {
        clock_gettime(CLOCK_MONOTONIC, &report.start);
    }
}

void orte_report_through(void (*write)(void *arg, const char *text, size_t size), void *arg)
{
    report.write = write;
    report.write_arg = arg;
    report.writer = pthread_self();
}

/* One write per message, so that lines of several writers to one terminal or file do not mix. */
static void emit(const char *prefix, const char *format, va_list args)
{
    char line[4096];
    int used = snprintf(line, sizeof(line), "%s", prefix);
    int text = vsnprintf(line + used, sizeof(line) - used - 1, format, args);

    if (text < 0) {
        return;
    }
    size_t length = strlen(line);
    line[length++] = '\n';
    if (report.write != NULL && pthread_equal(pthread_self(), report.writer)) {
        report.write(report.write_arg, line, length);
        return;
    }
    for (size_t done = 0; done < length;) {
        ssize_t rc = write(STDERR_FILENO, line + done, length - done);
        if (rc < 0) {
            return; /* nowhere left to say so */
        }
        done += (size_t)rc;
    }
}

static void emit_named(const char *kind, const char *format, va_list args)
{
    char prefix[128];

    snprintf(prefix, sizeof(prefix), "%s: %s", report.name, kind);
    emit(prefix, format, args);
}

void orte_report_hold(void)
{
    report.hold = true;
    report.held[0] = '\0';
}

const char *orte_report_held(void)
{
    return report.hold && report.held[0] != '\0' ? report.held : NULL;
}

void orte_report_release(void)
{
    report.hold = false;
}

static void keep(const char *format, va_list args)
{
    size_t used = strlen(report.held);

    if (used > 0) {
        used += (size_t)snprintf(report.held + used, sizeof(report.held) - used, "; ");
    }
    if (used < sizeof(report.held)) {
        vsnprintf(report.held + used, sizeof(report.held) - used, format, args);
    }
}

void orte_report(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (report.hold) {
        keep(format, args);
    } else {
        emit_named("", format, args);
    }
    va_end(args);
}

void orte_warn(const char *format, ...)
{
    va_list args;

    if (report.quiet) {
        return;
    }
    va_start(args, format);
    emit_named("warning: ", format, args);
    va_end(args);
}

void orte_trace(const char *format, ...)
{
    va_list args;
    struct timespec now;
    char prefix[128];

    if (!report.trace) {
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(prefix, sizeof(prefix), "%s: [%7.3f ms] ", report.name,
             (double)(now.tv_sec - report.start.tv_sec) * 1e3 +
                 (double)(now.tv_nsec - report.start.tv_nsec) * 1e-6);
    va_start(args, format);
    emit(prefix, format, args);
    va_end(args);
}
