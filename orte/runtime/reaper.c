/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The reaper process and mpirun's side of its pipe. */
#include "orte/runtime/reaper.h"

#include "orte/runtime/session.h"
#include "orte/util/report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MSG_SESSION, MSG_GROUP, MSG_GROUP_GONE, MSG_CLEAN };

/* A message: this header, then for MSG_SESSION both strings with their ends. At most PIPE_BUF bytes
 * together, so that it is written whole or not at all. Both sides are one program. */
typedef struct {
    int kind;
    pid_t group;
    int name_size, path_size;
} message_t;

#define TEXT_MAX (PIPE_BUF - sizeof(message_t))

struct orte_reaper {
    pid_t pid;
    int pipe; /* write end, non-blocking; -1 once the reaper is lost */
};

/* What the reaper knows. */
typedef struct {
    char text[TEXT_MAX];
    const char *name, *path; /* in text; NULL: no session yet */
    pid_t *groups;
    int ngroups, room;
} knowledge_t;

static void note_group(knowledge_t *known, pid_t group, bool exists)
{
    for (int i = 0; i < known->ngroups; i++) {
        if (known->groups[i] == group) {
            known->groups[i] = known->groups[--known->ngroups];
            break;
        }
    }
    if (!exists) {
        return;
    }
    if (known->ngroups == known->room) {
        int room = known->room == 0 ? 64 : 2 * known->room;
        pid_t *grown = realloc(known->groups, (size_t)room * sizeof(pid_t));
        if (grown == NULL) {
            return; /* the search by environment still finds the group's processes */
        }
        known->groups = grown;
        known->room = room;
    }
    known->groups[known->ngroups++] = group;
}

/* Groups first, as they are known; the session's end finds by its mark whatever left its group. */
static void clean_up(const knowledge_t *known)
{
    for (int i = 0; i < known->ngroups; i++) {
        kill(-known->groups[i], SIGKILL);
    }
    if (known->name != NULL) {
        orte_session_remove(known->path, known->name);
    }
}

/* Close all descriptors from `first` on. */
static void close_from(unsigned first)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, ~0U, 0) == 0) {
        return;
    }
#endif
    for (long fd = first, limit = sysconf(_SC_OPEN_MAX); fd < limit; fd++) {
        close((int)fd);
    }
}

/* Live quietly: own session (no signals from the terminal), no inherited descriptor but the
 * pipe, which becomes number 3. Returns that. */
static int detach(int pipe, const char *name)
{
    static const int ignored[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                                  SIGPIPE, SIGUSR1, SIGUSR2, SIGTSTP};
    int null = open("/dev/null", O_RDWR);

    setsid();
    for (int fd = 0; fd <= 2; fd++) {
        if (null >= 0) {
            dup2(null, fd);
        }
    }
    if (pipe != 3) {
        dup2(pipe, 3);
    }
    close_from(4);
    if (chdir("/") != 0) {
        /* Staying keeps a file system busy, nothing worse. */
    }
    prctl(PR_SET_NAME, name);
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++) {
        signal(ignored[i], SIG_IGN);
    }
    return 3;
}

/* Read exactly `size` bytes; false at the end of the pipe. */
static bool read_all(int pipe, void *buffer, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = read(pipe, (char *)buffer + done, size - done);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return false;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

static void __attribute__((noreturn)) reaper_main(int pipe, const char *name)
{
    static knowledge_t known;
    message_t message;

    pipe = detach(pipe, name);
    while (read_all(pipe, &message, sizeof(message))) {
        switch (message.kind) {
        case MSG_CLEAN:
            _exit(0);
        case MSG_SESSION:
            if (read_all(pipe, known.text, (size_t)message.name_size + (size_t)message.path_size)) {
                known.name = known.text;
                known.path = known.text + message.name_size;
            }
            break;
        default:
            note_group(&known, message.group, message.kind == MSG_GROUP);
        }
    }
    clean_up(&known);
    _exit(0);
}

orte_reaper_t *orte_reaper_start(const char *name)
{
    orte_reaper_t *reaper = malloc(sizeof(*reaper));
    int ends[2];

    if (reaper == NULL || pipe2(ends, O_CLOEXEC) != 0) {
        orte_report("can't start the reaper process: %s", strerror(errno));
        free(reaper);
        return NULL;
    }
    reaper->pid = fork();
    if (reaper->pid == 0) {
        close(ends[1]);
        reaper_main(ends[0], name);
    }
    close(ends[0]);
    if (reaper->pid < 0) {
        orte_report("can't start the reaper process: %s", strerror(errno));
        close(ends[1]);
        free(reaper);
        return NULL;
    }
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    reaper->pipe = ends[1];
    return reaper;
}

pid_t orte_reaper_pid(const orte_reaper_t *reaper)
{
    return reaper->pid;
}

/* EPIPE: it has died, and its SIGCHLD brings the warning. EAGAIN: it is stopped; then a group is
 * not noted, and the search by environment has to find it. */
static void tell(orte_reaper_t *reaper, const void *message, size_t size)
{
    if (reaper->pipe >= 0 && write(reaper->pipe, message, size) < 0) {
        orte_trace("reaper not told: %s", strerror(errno));
    }
}

void orte_reaper_session(orte_reaper_t *reaper, const char *path, const char *name)
{
    char buffer[PIPE_BUF];
    message_t *message = (message_t *)(void *)buffer;
    size_t name_size = strlen(name) + 1, path_size = strlen(path) + 1;

    if (name_size + path_size > TEXT_MAX) {
        orte_warn("the path of the session directory is too long for the reaper; after a kill -9 "
                  "of this process %s will stay", path);
        return;
    }
    *message = (message_t){.kind = MSG_SESSION, .name_size = (int)name_size,
                           .path_size = (int)path_size};
    memcpy(buffer + sizeof(*message), name, name_size);
    memcpy(buffer + sizeof(*message) + name_size, path, path_size);
    tell(reaper, buffer, sizeof(*message) + name_size + path_size);
}

void orte_reaper_group(orte_reaper_t *reaper, pid_t group, bool exists)
{
    message_t message = {.kind = exists ? MSG_GROUP : MSG_GROUP_GONE, .group = group};

    tell(reaper, &message, sizeof(message));
}

void orte_reaper_lost(orte_reaper_t *reaper)
{
    if (reaper->pipe >= 0) {
        close(reaper->pipe);
        reaper->pipe = -1;
    }
}

void orte_reaper_finish(orte_reaper_t *reaper)
{
    message_t message = {.kind = MSG_CLEAN};

    if (reaper == NULL) {
        return;
    }
    if (reaper->pipe >= 0) {
        tell(reaper, &message, sizeof(message));
        close(reaper->pipe);
        while (waitpid(reaper->pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    free(reaper);
}
