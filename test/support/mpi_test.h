/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of MPI behaviour. A program is a table of tests; run by the harness, it starts itself under
 * mpirun once for each test, in as many processes as the test wants, and judges by exit code and by
 * what was said.
 *
 *   static void ring(void) { MPI_Init(NULL, NULL); MPI_CHECK(1 + 1 == 2); MPI_Finalize(); }
 *   static const mpi_test_t tests[] = {{.name = "ring", .np = 4, .fn = ring}};
 *   int main(int argc, char **argv) { return mpi_test_main(argc, argv, tests, 1); }
 *
 * MPIRUN in the environment replaces the build tree's mpirun; MPIRUN_ARGS are further arguments for
 * it. MPI_TEST_SLOWNESS multiplies the limits of time, for a machine that is emulated. The argument --list prints the names.
 */
#ifndef TEST_SUPPORT_MPI_TEST_H
#define TEST_SUPPORT_MPI_TEST_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mpi.h>

#include "support/tap.h"

typedef struct mpi_test {
    const char *name;
    int np;            /* processes; 0: one, without mpirun */
    int exit_code;     /* that mpirun must end with */
    const char *says;  /* must be part of the output; NULL: there must be none */
    unsigned seconds;  /* limit; 0: 60 */
    void (*fn)(void);  /* what each process does, from MPI_Init to MPI_Finalize */
} mpi_test_t;

enum { MPI_TEST_FAILED = 99 };

#if OPAL_ENABLE_SANITIZERS
/* What libpmix does not free is not ours to free. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_options(void);
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void)
{
    return "leak:libpmix\n";
}
__attribute__((visibility("default"))) const char *__lsan_default_options(void)
{
    return "print_suppressions=0";
}
#endif

static int mpi_test_failures;

static inline unsigned mpi_test_seconds(const mpi_test_t *test)
{
    const char *slowness = getenv("MPI_TEST_SLOWNESS");
    int factor = slowness ? atoi(slowness) : 1;
    return (test->seconds ? test->seconds : 60) * (unsigned) (factor > 0 ? factor : 1);
}

/* Several threads may check. */
#define MPI_CHECK(condition) mpi_test_check((condition), #condition, __FILE__, __LINE__)

static inline int mpi_test_check(int ok, const char *what, const char *file, int line)
{
    if (!ok) {
        __atomic_fetch_add(&mpi_test_failures, 1, __ATOMIC_RELAXED);
        fprintf(stderr, "pid %d: %s:%d: not so: %s\n", (int) getpid(), file, line, what);
    }
    return ok;
}

static inline void mpi_test_exec(const mpi_test_t *test)
{
    char self[PATH_MAX], mpirun[PATH_MAX + 16], np[16], *argv[64];
    int argc = 0;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    const char *top = getenv("top_builddir"), *given = getenv("MPIRUN");
    char *args = getenv("MPIRUN_ARGS") ? strdup(getenv("MPIRUN_ARGS")) : NULL;
    self[length > 0 ? length : 0] = '\0';
    snprintf(mpirun, sizeof mpirun, "%s/orte/mpirun", top ? top : "..");
    if (test->np > 0) {
        snprintf(np, sizeof np, "%d", test->np);
        argv[argc++] = (char *) (given ? given : mpirun);
        argv[argc++] = "-n";
        argv[argc++] = np;
        for (char *arg = args ? strtok(args, " ") : NULL; arg && argc < 60;
             arg = strtok(NULL, " ")) {
            argv[argc++] = arg;
        }
    }
    argv[argc++] = self;
    argv[argc++] = (char *) test->name;
    argv[argc] = NULL;
    execvp(argv[0], argv);
    perror(argv[0]);
    _exit(127);
}

/* Runs one test; its output is in `output`, cut to fit. Returns the exit code, or 256 + signal. */
static inline int mpi_test_run(const mpi_test_t *test, char *output, size_t size)
{
    int fds[2], status = -1;
    size_t used = 0;
    char spill[1024];
    fflush(stdout);
    if (pipe(fds) != 0) {
        return -1;
    }
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], STDOUT_FILENO);
        dup2(fds[1], STDERR_FILENO);
        close(fds[0]);
        close(fds[1]);
        mpi_test_exec(test);
    }
    close(fds[1]);
    for (;;) {
        size_t room = size - 1 - used;
        ssize_t n = room > 0 ? read(fds[0], output + used, room)
                             : read(fds[0], spill, sizeof spill);
        if (n <= 0) {
            break;
        }
        used += room > 0 ? (size_t) n : 0;
    }
    output[used] = '\0';
    close(fds[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

static inline void mpi_test_show(const char *output)
{
    for (const char *line = output; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        printf("# | %.*s\n", (int) strcspn(line, "\n"), line);
    }
}

static inline int mpi_test_judge(const mpi_test_t *tests, size_t count, const char *only)
{
    static char output[65536];
    unsigned limit = 30;
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        limit += mpi_test_seconds(&tests[i]);
    }
    tap_start(limit);
    for (size_t i = 0; i < count; i++) {
        const mpi_test_t *t = &tests[i];
        if (only && strcmp(only, t->name) != 0) {
            continue;
        }
        found = true;
        int code = mpi_test_run(t, output, sizeof output);
        bool said = t->says ? strstr(output, t->says) != NULL : output[0] == '\0';
        if (!TAP_OK(code == t->exit_code && said, "%s, %d processes", t->name, t->np)) {
            printf("# exit code %d, wanted %d; output%s%s:\n", code, t->exit_code,
                   t->says ? " with: " : "", t->says ? t->says : " should be empty");
            mpi_test_show(output);
        }
    }
    if (only && !found) {
        TAP_OK(false, "there is a test \"%s\"", only);
    }
    return tap_end();
}

static inline int mpi_test_main(int argc, char **argv, const mpi_test_t *tests, size_t count)
{
    bool child = argc == 2 && !getenv("MPI_TEST_JUDGE");
    for (size_t i = 0; child && i < count; i++) {
        if (strcmp(argv[1], tests[i].name) == 0) {
            alarm(mpi_test_seconds(&tests[i]));
            tests[i].fn();
            return mpi_test_failures ? MPI_TEST_FAILED : 0;
        }
    }
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < count; i++) {
            puts(tests[i].name);
        }
        return 0;
    }
    unsetenv("MPI_TEST_JUDGE");
    return mpi_test_judge(tests, count, argc == 2 ? argv[1] : NULL);
}

#endif
