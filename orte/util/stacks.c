/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Debuggers as children with a pipe each; /proc where they say nothing. */
#include "orte/util/stacks.h"

#include <dirent.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PARALLEL = 4,           /* debuggers at a time: each needs tens of megabytes */
    PROCESSES_MAX = 4096,
    TEXT_MAX = 256 * 1024,  /* of one process */
    LINE_MAX_SHOWN = 512,
};

extern char **environ;

/* One process that is looked at. */
typedef struct {
    orte_stacks_t *owner;
    size_t which;
    pid_t pid;
    pid_t debugger; /* 0: none runs */
    int pipe;
    struct event *event;
    struct evbuffer *text;
} look_t;

struct orte_stacks {
    struct event_base *base;
    struct event *timer, *start;
    orte_stacks_text_t text;
    void (*done)(void *arg);
    void *arg;
    look_t *looks;
    size_t count, begun, ended, running;
};

/* Debuggers in the order of preference; "PID" stands for the process. No start files, no
 * questions, no downloads. */
static const char *const debuggers[][12] = {
    {"gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", "thread apply all bt",
     "-p", "PID", NULL},
    {"eu-stack", "-p", "PID", NULL},
    {"pstack", "PID", NULL},
};

/* ---- What the kernel tells ---- */

/* One line of a file in /proc, without its end; "" if there is none. */
static void read_line(pid_t pid, const char *task, const char *name, char *line, size_t size)
{
    char path[96];

    snprintf(path, sizeof(path), "/proc/%ld/task/%s/%s", (long)pid, task, name);
    FILE *file = fopen(path, "re");
    line[0] = '\0';
    if (file != NULL) {
        if (fgets(line, (int)size, file) == NULL) {
            line[0] = '\0';
        }
        fclose(file);
    }
    line[strcspn(line, "\n")] = '\0';
}

/* "  thread 12 (name): S, in futex_wait_queue, system call 202" */
static void describe_thread(pid_t pid, const char *task, struct evbuffer *to)
{
    char name[64], stat[512], where[128], call[256];

    read_line(pid, task, "comm", name, sizeof(name));
    read_line(pid, task, "stat", stat, sizeof(stat));
    read_line(pid, task, "wchan", where, sizeof(where));
    read_line(pid, task, "syscall", call, sizeof(call));
    const char *state = strrchr(stat, ')');
    call[strcspn(call, " ")] = '\0';
    const bool waits = where[0] != '\0' && strcmp(where, "0") != 0;
    const bool calls = call[0] >= '0' && call[0] <= '9';
    evbuffer_add_printf(to, "thread %s (%s): state %c%s%s%s%s\n", task, name,
                        state != NULL && strlen(state) > 2 ? state[2] : '?',
                        waits ? ", waiting in " : "", waits ? where : "",
                        calls ? ", system call " : "", calls ? call : "");
}

static void describe_process(pid_t pid, struct evbuffer *to)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%ld/task", (long)pid);
    DIR *dir = opendir(path);
    if (dir == NULL) {
        evbuffer_add_printf(to, "it has ended\n");
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] != '.') {
            describe_thread(pid, entry->d_name, to);
        }
    }
    closedir(dir);
}

/* ---- Ends ---- */

static void begin_more(orte_stacks_t *stacks);

/* `kill_it`: it holds its pipe open still, so its number is its own. Whoever watches our children
 * waits for it. */
static void stop_debugger(look_t *look, bool kill_it)
{
    if (look->event != NULL) {
        event_free(look->event);
        look->event = NULL;
        close(look->pipe);
    }
    if (look->debugger > 0) {
        if (kill_it) {
            kill(look->debugger, SIGKILL);
        }
        look->debugger = 0;
        look->owner->running--;
    }
}

/* Lines of a stack: "Thread ..." of gdb, "TID 12:" of eu-stack, "#0 ..." of all. */
static bool is_stack_line(const char *line)
{
    return line[0] == '#' || strncmp(line, "Thread ", 7) == 0 || strncmp(line, "TID ", 4) == 0;
}

/* Keep the stack of what a debugger has said. False: there is none. */
static bool filter(struct evbuffer *text, struct evbuffer *to)
{
    bool found = false;
    char *line;

    while ((line = evbuffer_readln(text, NULL, EVBUFFER_EOL_LF)) != NULL) {
        if (is_stack_line(line) && evbuffer_get_length(to) < TEXT_MAX) {
            evbuffer_add_printf(to, "%.*s\n", LINE_MAX_SHOWN, line);
            found = found || line[0] == '#';
        }
        free(line);
    }
    return found;
}

static void look_end(look_t *look, bool kill_it)
{
    orte_stacks_t *stacks = look->owner;
    struct evbuffer *shown = evbuffer_new();

    stop_debugger(look, kill_it);
    stacks->ended++;
    if (shown != NULL) {
        if (look->text == NULL || !filter(look->text, shown)) {
            evbuffer_drain(shown, evbuffer_get_length(shown));
            describe_process(look->pid, shown);
        }
        evbuffer_add(shown, "", 1);
        stacks->text(stacks->arg, look->which, look->pid, (char *)evbuffer_pullup(shown, -1));
        evbuffer_free(shown);
    }
    if (look->text != NULL) {
        evbuffer_free(look->text);
        look->text = NULL;
    }
}

static void debugger_says(evutil_socket_t fd, short what, void *arg)
{
    look_t *look = arg;
    orte_stacks_t *stacks = look->owner;

    (void)what;
    int got = evbuffer_read(look->text, fd, 65536);
    if (got > 0 && evbuffer_get_length(look->text) < TEXT_MAX) {
        return;
    }
    look_end(look, got > 0); /* it has ended, or it says too much */
    begin_more(stacks);
}

/* The time is over: whoever has not said anything by now will not. */
static void time_over(evutil_socket_t fd, short what, void *arg)
{
    orte_stacks_t *stacks = arg;

    (void)fd;
    (void)what;
    for (size_t i = 0; i < stacks->count; i++) {
        if (i >= stacks->begun || stacks->looks[i].debugger > 0) {
            look_end(&stacks->looks[i], true);
        }
    }
    stacks->begun = stacks->count;
    begin_more(stacks);
}

/* ---- Begin ---- */

/* The debugger as a child in a group of its own, with its output in a pipe. Returns its pid; 0: it
 * can't be started. */
static pid_t start_one(const char *const *command, pid_t pid, int output)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    char number[24];
    char *argv[12];
    sigset_t defaults;
    pid_t child = 0;
    int i = 0;

    snprintf(number, sizeof(number), "%ld", (long)pid);
    for (; command[i] != NULL; i++) {
        argv[i] = strcmp(command[i], "PID") == 0 ? number : (char *)command[i];
    }
    argv[i] = NULL;
    if (posix_spawn_file_actions_init(&files) != 0) {
        return 0;
    }
    if (posix_spawnattr_init(&attr) == 0) {
        sigfillset(&defaults);
        posix_spawnattr_setsigdefault(&attr, &defaults);
        posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
        posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&files, output, 1);
        posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
        if (posix_spawnp(&child, argv[0], &files, &attr, argv, environ) != 0) {
            child = 0;
        }
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&files);
    return child;
}

static void look_begin(look_t *look)
{
    orte_stacks_t *stacks = look->owner;
    int ends[2];

    look->text = evbuffer_new();
    if (look->text == NULL || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        look_end(look, false);
        return;
    }
    for (size_t i = 0; i < sizeof(debuggers) / sizeof(debuggers[0]) && look->debugger == 0; i++) {
        look->debugger = start_one(debuggers[i], look->pid, ends[1]);
    }
    close(ends[1]);
    look->pipe = ends[0];
    look->event =
        event_new(stacks->base, ends[0], EV_READ | EV_PERSIST, debugger_says, look);
    stacks->running += look->debugger > 0;
    if (look->event == NULL) {
        close(ends[0]);
    }
    if (look->debugger == 0 || look->event == NULL || event_add(look->event, NULL) != 0) {
        look_end(look, true);
    }
}

static void begin_more(orte_stacks_t *stacks)
{
    while (stacks->begun < stacks->count && stacks->running < PARALLEL) {
        look_begin(&stacks->looks[stacks->begun++]);
    }
    if (stacks->ended == stacks->count && stacks->done != NULL) {
        void (*done)(void *arg) = stacks->done;
        stacks->done = NULL;
        event_del(stacks->timer);
        done(stacks->arg); /* may destroy us */
    }
}

static void start(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    begin_more(arg);
}

/* The group's place in the list; `count`: not one of them. */
static size_t find_group(const pid_t *groups, size_t count, pid_t group)
{
    size_t i = 0;

    while (i < count && groups[i] != group) {
        i++;
    }
    return i;
}

static int by_group(const void *a, const void *b)
{
    const look_t *x = a, *y = b;

    if (x->which != y->which) {
        return x->which < y->which ? -1 : 1;
    }
    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* All processes of these groups, in the groups' order. */
static void find_processes(orte_stacks_t *stacks, const pid_t *groups, size_t count)
{
    DIR *dir = opendir("/proc");

    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        pid_t pid = (pid_t)atol(entry->d_name);
        size_t which = pid <= 0 ? count : find_group(groups, count, getpgid(pid));
        if (which < count && stacks->count < PROCESSES_MAX) {
            stacks->looks[stacks->count++] =
                (look_t){.owner = stacks, .which = which, .pid = pid};
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    qsort(stacks->looks, stacks->count, sizeof(stacks->looks[0]), by_group);
}

orte_stacks_t *orte_stacks_collect(struct event_base *base, const pid_t *groups, size_t count,
                                   int limit_ms, orte_stacks_text_t text,
                                   void (*done)(void *arg), void *arg)
{
    orte_stacks_t *stacks = calloc(1, sizeof(*stacks));
    struct timeval limit = {.tv_sec = limit_ms / 1000, .tv_usec = (limit_ms % 1000) * 1000};

    if (stacks == NULL) {
        return NULL;
    }
    *stacks = (orte_stacks_t){.base = base, .text = text, .done = done, .arg = arg};
    stacks->looks = calloc(PROCESSES_MAX, sizeof(*stacks->looks));
    stacks->timer = event_new(base, -1, 0, time_over, stacks);
    stacks->start = event_new(base, -1, 0, start, stacks);
    if (stacks->looks == NULL || stacks->timer == NULL || stacks->start == NULL ||
        event_add(stacks->timer, &limit) != 0) {
        orte_stacks_destroy(stacks);
        return NULL;
    }
    find_processes(stacks, groups, count);
    event_active(stacks->start, EV_TIMEOUT, 1);
    return stacks;
}

void orte_stacks_destroy(orte_stacks_t *stacks)
{
    if (stacks == NULL) {
        return;
    }
    for (size_t i = 0; i < stacks->count; i++) {
        stop_debugger(&stacks->looks[i], true);
        if (stacks->looks[i].text != NULL) {
            evbuffer_free(stacks->looks[i].text);
        }
    }
    if (stacks->timer != NULL) {
        event_free(stacks->timer);
    }
    if (stacks->start != NULL) {
        event_free(stacks->start);
    }
    free(stacks->looks);
    free(stacks);
}
