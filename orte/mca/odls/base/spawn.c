/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * vfork and exec. The child borrows our memory until it execs, so that the cost does not depend
 * on our size and an error is simply stored where the parent finds it. Between vfork and exec
 * the child makes system calls only; signals are blocked around it, because a handler of ours
 * run in the child would act on our memory.
 */
#include "orte/mca/odls/base/spawn.h"

#include "opal/util/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void child_fail(orte_spawn_t *spawn, const char *call)
{
    spawn->failed_call = call;
    spawn->error = errno;
    _exit(127);
}

/* Descriptors 0..2: sources lie above 2 (mpirun keeps its own 0..2 open), so none is
 * overwritten. */
static void child_stdio(orte_spawn_t *spawn)
{
    for (int i = 0; i < 3; i++) {
        if (dup2(spawn->stdio[i], i) < 0) {
            child_fail(spawn, "dup2");
        }
    }
}

/* Our handlers must not run here, though exec would remove them; what we ignore, SIGPIPE, exec would
 * leave ignored. What our own caller ignored (nohup) stays so. */
static void child_signals(void)
{
    struct sigaction action;
    sigset_t none;

    for (int number = 1; number < NSIG; number++) {
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_IGN &&
            action.sa_handler != SIG_DFL) {
            signal(number, SIG_DFL);
        }
    }
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Connections of libpmix to other processes are among them, and who inherits one keeps it open. Where the
 * kernel can't do it they stay open, as they were. */
static void keep_no_files(void)
{
#ifdef CLOSE_RANGE_CLOEXEC
    close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
#endif
}

static void __attribute__((noreturn)) child_main(orte_spawn_t *spawn, pid_t parent)
{
    if (setpgid(0, 0) != 0) {
        child_fail(spawn, "setpgid");
    }
    if (!spawn->outlives) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    if (getppid() != parent) {
        _exit(127); /* mpirun died before the line above could take effect */
    }
    child_stdio(spawn);
    if (spawn->cpu_mask != NULL &&
        syscall(SYS_sched_setaffinity, 0, spawn->cpu_mask_size, spawn->cpu_mask) != 0) {
        child_fail(spawn, "bind");
    }
    if (spawn->nofile != NULL) {
        setrlimit(RLIMIT_NOFILE, spawn->nofile);
    }
    if (spawn->wdir != NULL && chdir(spawn->wdir) != 0) {
        child_fail(spawn, "chdir");
    }
    keep_no_files();
    child_signals();
    execve(spawn->path, spawn->argv, spawn->env);
    child_fail(spawn, "exec");
    _exit(127);
}

pid_t orte_spawn(orte_spawn_t *spawn)
{
    sigset_t before;
    pid_t parent = getpid();

    spawn->failed_call = NULL;
    opal_signals_block(&before);
    pid_t pid = vfork();
    if (pid == 0) {
        child_main(spawn, parent);
    }
    int error = errno;
    opal_signals_restore(&before);
    if (pid < 0) {
        spawn->failed_call = "fork";
        spawn->error = error;
        return -1;
    }
    if (spawn->failed_call != NULL) {
        waitpid(pid, NULL, 0);
        return -1;
    }
    return pid;
}
