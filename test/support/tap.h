/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The unit tests' harness: TAP output, a time limit for the whole program, failure counted.
 *
 *   int main(void) { tap_start(30); TAP_OK(1 + 1 == 2, "addition"); return tap_end(); }
 */
#ifndef TEST_SUPPORT_TAP_H
#define TEST_SUPPORT_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int tap_count, tap_failed;

/* `seconds`: after this time SIGALRM ends the program, which the driver reports as an error. */
static inline void tap_start(unsigned seconds)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(seconds);
}

__attribute__((format(printf, 4, 5))) static inline bool tap_ok(bool ok, const char *file, int line,
                                                                 const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("%s %d - ", ok ? "ok" : "not ok", ++tap_count);
    vprintf(format, args);
    printf("\n");
    va_end(args);
    if (!ok) {
        tap_failed++;
        printf("# at %s:%d\n", file, line);
    }
    return ok;
}

#define TAP_OK(condition, ...) tap_ok((condition), __FILE__, __LINE__, __VA_ARGS__)
#define TAP_SKIP(reason) printf("ok %d # SKIP %s\n", ++tap_count, (reason))

/* Fatal: what follows makes no sense without it. */
#define TAP_REQUIRE(condition, ...)                                                        \
    do {                                                                                   \
        if (!tap_ok((condition), __FILE__, __LINE__, __VA_ARGS__)) {                       \
            printf("Bail out! %s\n", #condition);                                         \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

static inline int tap_end(void)
{
    printf("1..%d\n", tap_count);
    return tap_failed ? 1 : 0;
}

#endif
