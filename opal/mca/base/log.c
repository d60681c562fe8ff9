/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Messages of frameworks and components, and the services table through which components send
 * them. */
#include "opal/mca/base/log.h"

#include <stdio.h>
#include <string.h>

#include "opal/mca/base/framework.h"
#include "opal/util/output.h"
#include "opal/util/thread_text.h"

static opal_thread_text_t last_reason;

const char *mca_base_log_reason(void)
{
    return opal_thread_text(&last_reason);
}

void mca_base_log_forget_reason(void)
{
    opal_thread_text(&last_reason)[0] = '\0';
}

static int64_t verbosity(const char *framework)
{
    for (mca_base_framework_t *const *f = mca_base_framework_list(); *f; f++) {
        if (0 == strcmp((*f)->name, framework)) {
            return (*f)->verbose;
        }
    }
    return MCA_LOG_ERROR;
}

__attribute__((format(printf, 4, 0))) static void vlog(const char *framework, const char *component,
                                                       mca_log_level_t level, const char *format,
                                                       va_list args)
{
    if ((int64_t) level > verbosity(framework)) {
        return;
    }
    char text[1024];
    vsnprintf(text, sizeof(text), format, args);
    opal_output("%s%s%s: %s", framework, component ? ":" : "", component ? component : "", text);
}

void mca_base_log(const char *framework, const char *component, mca_log_level_t level,
                  const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vlog(framework, component, level, format, args);
    va_end(args);
}

/* ---- Services ---- */

__attribute__((format(printf, 1, 0))) static void keep_reason(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    vsnprintf(opal_thread_text(&last_reason), OPAL_THREAD_TEXT_SIZE, format, again);
    va_end(again);
}

__attribute__((format(printf, 4, 5))) static void service_log(const char *framework,
                                                              const char *component,
                                                              mca_log_level_t level,
                                                              const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (level <= MCA_LOG_INFO) {
        keep_reason(format, args);
    }
    vlog(framework, component, level, format, args);
    va_end(args);
}

__attribute__((format(printf, 2, 3))) static void service_report(const char *topic,
                                                                 const char *format, ...)
{
    va_list args;
    va_start(args, format);
    keep_reason(format, args);
    opal_vshow_help(topic, format, args);
    va_end(args);
}

const mca_base_services_t *mca_base_services(void)
{
    static const mca_base_services_t services = {
        .struct_size = sizeof(services),
        .var_register = mca_base_var_register,
        .log = service_log,
        .report = service_report,
    };
    return &services;
}
