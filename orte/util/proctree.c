/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Walks /proc, for the launcher and its reaper. */
#include "orte/util/proctree.h"

#include "opal/constants.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int orte_proctree_children(pid_t *pids, int max)
{
    char path[64], text[4096];
    size_t filled = 0;
    int count = 0;

    snprintf(path, sizeof(path), "/proc/self/task/%ld/children", syscall(SYS_gettid));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    while (filled < sizeof(text) - 1) {
        ssize_t got = read(fd, text + filled, sizeof(text) - 1 - filled);
        if (got <= 0) {
            break;
        }
        filled += (size_t)got;
    }
    close(fd);
    text[filled] = '\0';
    for (char *at = text, *end; count < max; at = end) {
        long pid = strtol(at, &end, 10);
        /* A number cut off by the buffer has no space after it; the next call sees it. */
        if (end == at || *end != ' ') {
            break;
        }
        pids[count++] = (pid_t)pid;
    }
    return count;
}

/* Does an entry of the environment file begin with mark? Entries end with a zero byte and may lie
 * across two reads: match position is carried over. */
static bool environ_has(int fd, const char *mark)
{
    char text[4096];
    size_t want = strlen(mark), matched = 0;
    bool skipping = false;
    ssize_t got;

    while ((got = read(fd, text, sizeof(text))) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (text[i] == '\0') {
                skipping = false;
                matched = 0;
            } else if (!skipping && text[i] == mark[matched]) {
                if (++matched == want) {
                    return true;
                }
            } else {
                skipping = true;
            }
        }
    }
    return false;
}

static bool is_marked(int proc_fd, const char *name, const char *mark)
{
    char path[NAME_MAX + 16];
    struct stat st;

    snprintf(path, sizeof(path), "%s/environ", name);
    int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool found = fstat(fd, &st) == 0 && st.st_uid == geteuid() && environ_has(fd, mark);
    close(fd);
    return found;
}

/* A handle that stays with this process even if its number is used again; -1 on old kernels. */
static int open_process(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* Send the signal; after SIGKILL also wait (bounded) until the process is gone. */
static bool signal_process(int pidfd, pid_t pid, int signal_number)
{
    struct pollfd gone = {.fd = pidfd, .events = POLLIN};

    if (pidfd < 0) {
        return kill(pid, signal_number) == 0;
    }
    if (syscall(SYS_pidfd_send_signal, pidfd, signal_number, NULL, 0) != 0) {
        return false;
    }
    if (signal_number == SIGKILL) {
        poll(&gone, 1, 1000);
    }
    return true;
}

int orte_proctree_kill_marked(const char *mark, int signal_number)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    int count = 0;

    if (dir == NULL) {
        return 0;
    }
    while ((entry = readdir(dir)) != NULL) {
        char *end;
        long pid = strtol(entry->d_name, &end, 10);
        if (*end != '\0' || pid <= 1 || pid == getpid()) {
            continue;
        }
        int pidfd = open_process((pid_t)pid);
        if (is_marked(dirfd(dir), entry->d_name, mark)) {
            count += signal_process(pidfd, (pid_t)pid, signal_number);
        }
        if (pidfd >= 0) {
            close(pidfd);
        }
    }
    closedir(dir);
    return count;
}
