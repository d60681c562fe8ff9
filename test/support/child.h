/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Running a piece of a test in a process of its own, with its standard error captured. */
#ifndef TEST_SUPPORT_CHILD_H
#define TEST_SUPPORT_CHILD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct child_result {
    int status;             /* exit code, or 256 + signal */
    char err[16384];        /* what it wrote to standard error, cut to fit */
} child_result_t;

/* Run fn(context) in a child; its return value is the exit code. */
static inline void child_run(int (*fn)(void *context), void *context, child_result_t *result)
{
    int fds[2];
    memset(result, 0, sizeof(*result));
    fflush(stdout);
    if (0 != pipe(fds)) {
        result->status = -1;
        return;
    }
    const pid_t pid = fork();
    if (0 == pid) {
        dup2(fds[1], STDERR_FILENO);
        close(fds[0]);
        close(fds[1]);
        const int code = fn(context);
        fflush(stdout);
        exit(code); /* not _exit(): the leak checker reports at exit */
    }
    close(fds[1]);
    size_t used = 0;
    char spill[1024];
    for (;;) {
        const size_t room = sizeof(result->err) - 1 - used;
        const ssize_t n = room > 0 ? read(fds[0], result->err + used, room)
            : read(fds[0], spill, sizeof(spill));
        if (n <= 0) {
            break;
        }
        used += room > 0 ? (size_t) n : 0;
    }
    close(fds[0]);
    int status = -1;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        result->status = -1;
    } else {
        result->status = WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
    }
}

/* Show what a failed child said, as TAP comments. */
static inline void child_explain(const child_result_t *result)
{
    printf("# exit status %d\n", result->status);
    for (const char *line = result->err; *line != '\0';) {
        const size_t len = strcspn(line, "\n");
        printf("# | %.*s\n", (int) len, line);
        line += len + ('\n' == line[len]);
    }
}

#endif
