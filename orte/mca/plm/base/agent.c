/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Agents: the local processes (ssh, srun) that start daemons elsewhere. */
#include "orte/mca/plm/plm.h"

#include "opal/class/list.h"
#include "opal/mca/base/var.h"
#include "opal/util/argv.h"
#include "orte/mca/odls/base/spawn.h"
#include "orte/mca/plm/base/base.h"
#include "orte/runtime/daemons.h"
#include "orte/runtime/queue.h"
#include "orte/runtime/reaper.h"
#include "orte/util/report.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define SAID_MAX 4096 /* bytes of an agent's output that are kept for a message */

typedef struct {
    opal_list_item_t item;
    orte_plm_t *plm;
    uint32_t index;         /* first of its daemons */
    uint32_t waiting;       /* of its daemons: not connected yet */
    pid_t pid;
    bool ended;             /* it was waited for; `status` is valid */
    int status;
    int fd;                 /* its output; -1: closed */
    struct event *readable;
    struct event *deadline;
    bool hopeless;          /* it has said that one of its daemons will not call back */
    bool failed;            /* what it said has been made a message of */
    bool dropped;           /* nobody wants to hear of its end */
    size_t said;
    char text[SAID_MAX];
} agent_t;

struct orte_plm {
    orte_runtime_t *rt;
    const orte_plm_module_t *module;
    orte_plm_orders_t orders; /* `index` and `contact` are the children's */
    uint32_t next, end;       /* children not begun yet */
    int starting;             /* agents with daemons that are not connected yet */
    bool stopped;
    opal_list_t agents;
    struct event *limit;      /* of orte_plm_when_ended() */
    void (*ended)(void *);
    void *ended_arg;
};

static int64_t start_timeout;

int orte_plm_base_register_agent_params(void)
{
    static const mca_base_var_desc_t timeout = {
        .framework = "plm", .component = "base", .name = "start_timeout",
        .help = "Time within which a daemon must have called back after its start was begun",
        .unit = "s", .type = MCA_VAR_INT, .level = MCA_VAR_LEVEL_USER,
        .scope = MCA_VAR_SCOPE_STARTUP, .def.i = 60, .min = 1, .max = 86400,
    };
    return mca_base_var_register(&timeout, &start_timeout);
}

static void start_more(orte_plm_t *plm);

static const orte_plm_host_t *host_of(const agent_t *agent)
{
    return &agent->plm->orders.hosts[agent->index];
}

static void agent_free(agent_t *agent)
{
    orte_plm_t *plm = agent->plm;

    opal_list_remove(&agent->item);
    if (agent->readable != NULL) {
        event_free(agent->readable);
    }
    if (agent->deadline != NULL) {
        event_free(agent->deadline);
    }
    if (agent->fd >= 0) {
        close(agent->fd);
    }
    free(agent);
    if (opal_list_is_empty(&plm->agents) && plm->ended != NULL) {
        orte_queue_post(plm->rt->queue, plm->ended, plm->ended_arg);
        plm->ended = NULL;
    }
}

static void agent_kill(agent_t *agent, int signal_number)
{
    agent->dropped = true;
    if (agent->pid > 0 && !agent->ended) {
        kill(-agent->pid, signal_number);
    }
}

/* The last line with anything in it. */
static void last_line(agent_t *agent, char *line, size_t size)
{
    size_t end = agent->said, start;

    while (end > 0 && (agent->text[end - 1] == '\n' || agent->text[end - 1] == '\r')) {
        end--;
    }
    for (start = end; start > 0 && agent->text[start - 1] != '\n'; start--) {
    }
    snprintf(line, size, "%.*s", (int)(end - start), agent->text + start);
}

/* Why an agent ended before its daemon called back, and what to do. */
static void explain(agent_t *agent, char *text, size_t size)
{
    const orte_plm_host_t *host = host_of(agent);
    const char *orted = agent->plm->orders.orted;
    char said[1024], all[SAID_MAX + 1];
    int code = WIFEXITED(agent->status) ? WEXITSTATUS(agent->status) : -1;

    last_line(agent, said, sizeof(said));
    snprintf(all, sizeof(all), "%.*s", (int)agent->said, agent->text);
    if (agent->plm->module->explain(host, agent->status, said, all, text, size)) {
        return;
    }
    if (code == ORTE_PLM_DAEMON_REFUSED && said[0] != '\0') {
        snprintf(text, size, "host %s: %s", host->name, said);
    } else if (code == 127 || code == 126) {
        snprintf(text, size, "host %s: %s is %s there: install Hawser %s on that host in the same "
                 "place, or say with --prefix where it is", host->name, orted,
                 code == 127 ? "not" : "not executable", PACKAGE_VERSION);
    } else if (code >= 0) {
        snprintf(text, size, "host %s: the daemon ended with code %d before it had called back%s%s",
                 host->name, code, said[0] == '\0' ? "" : ": ", said);
    } else {
        snprintf(text, size, "host %s: the start of the daemon was ended by signal %d (%s)",
                 host->name, WTERMSIG(agent->status), strsignal(WTERMSIG(agent->status)));
    }
}

static void daemon_failed(agent_t *agent, const char *text)
{
    agent->plm->starting--;
    agent->waiting = 0;
    agent->failed = true;
    agent->dropped = true;
    orte_daemons_start_failed(agent->plm->rt, agent->index, text);
}

static void show(const char *data, size_t size)
{
    if (size > 0 && write(STDERR_FILENO, data, size) < 0) {
        return; /* nowhere left to say so */
    }
}

/* It was waited for and all that it said has been read. */
static void agent_over(agent_t *agent)
{
    char text[2048];

    if (agent->waiting > 0 && !agent->dropped && !agent->plm->stopped) {
        explain(agent, text, sizeof(text));
        daemon_failed(agent, text);
    } else if (agent->waiting > 0) {
        agent->plm->starting--;
    } else if (!agent->failed && !(WIFEXITED(agent->status) && WEXITSTATUS(agent->status) == 255)) {
        show(agent->text, agent->said);
    }
    agent_free(agent);
}

/* What a daemon says once it is connected is for the user at once. Other words are held until more
 * come: if they are the agent's last and it ends with 255, it has only said that it lost its
 * connection, of which the user hears otherwise if it matters. */
static void pass_on_late(agent_t *agent, const char *data, size_t size)
{
    static const char mark[] = "orted on ";

    show(agent->text, agent->said);
    agent->said = 0;
    if ((size >= sizeof(mark) - 1 && memcmp(data, mark, sizeof(mark) - 1) == 0) ||
        size > SAID_MAX) {
        show(data, size);
        return;
    }
    memcpy(agent->text, data, size);
    agent->said = size;
}

static void pass_on(agent_t *agent, const char *data, size_t size)
{
    if (agent->failed) {
        return;
    }
    if (agent->waiting == 0) {
        pass_on_late(agent, data, size);
        return;
    }
    if (size > SAID_MAX - agent->said) {
        size_t keep = size < SAID_MAX ? SAID_MAX - size : 0;
        size_t drop = agent->said > keep ? agent->said - keep : 0;
        memmove(agent->text, agent->text + drop, agent->said - drop);
        agent->said -= drop;
    }
    size_t take = size < SAID_MAX - agent->said ? size : SAID_MAX - agent->said;
    memcpy(agent->text + agent->said, data + size - take, take);
    agent->said += take;
}

/* False at the end, or when nothing is there now. */
static bool take_output(agent_t *agent)
{
    char data[SAID_MAX];
    ssize_t got = read(agent->fd, data, sizeof(data));

    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    if (got <= 0) {
        event_del(agent->readable);
        close(agent->fd);
        agent->fd = -1;
        return false;
    }
    pass_on(agent, data, (size_t)got);
    return true;
}

/* One daemon of several could not be started, and the agent goes on for the others. What it says next may be the reason. */
static void look_for_failure(agent_t *agent)
{
    static const struct timeval pause = {.tv_usec = 500000};
    const orte_plm_module_t *module = agent->plm->module;
    char all[SAID_MAX + 1];

    if (agent->waiting == 0 || agent->dropped || agent->hopeless || module->hopeless == NULL) {
        return;
    }
    snprintf(all, sizeof(all), "%.*s", (int)agent->said, agent->text);
    agent->hopeless = module->hopeless(all);
    if (agent->hopeless) {
        event_add(agent->deadline, &pause);
    }
}

static void readable(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    take_output(arg);
    look_for_failure(arg);
}

static void too_late(evutil_socket_t fd, short what, void *arg)
{
    agent_t *agent = arg;
    char text[2048], said[1024];

    (void)fd;
    (void)what;
    last_line(agent, said, sizeof(said));
    if (agent->hopeless) {
        explain(agent, text, sizeof(text));
    } else {
        snprintf(text, sizeof(text), "host %s: no daemon has called back within %lld s, and the command "
                 "that was to start it still runs%s%s; can one log in there without being asked "
                 "anything, and does no firewall keep that host from connecting to this one?",
                 host_of(agent)->name, (long long)start_timeout, said[0] == '\0' ? "" : ": ", said);
    }
    daemon_failed(agent, text);
    agent_kill(agent, SIGTERM);
}

/* The orders as a file: nobody has to wait until an agent reads them. */
static int orders_file(const orte_plm_orders_t *orders)
{
    orte_pack_t pack;
    size_t size;

    orte_pack_init(&pack);
    orte_plm_pack_orders(&pack, orders);
    uint8_t *data = orte_pack_take(&pack, &size);
    int fd = data == NULL ? -1 : memfd_create("hawser-orders", MFD_CLOEXEC);
    for (size_t done = 0; fd >= 0 && done < size;) {
        ssize_t got = write(fd, data + done, size - done);
        if (got < 0) {
            close(fd);
            fd = -1;
            break;
        }
        done += (size_t)got;
    }
    if (data != NULL) {
        explicit_bzero(data, size);
    }
    free(data);
    if (fd >= 0) {
        lseek(fd, 0, SEEK_SET);
    }
    return fd;
}

static int watch(agent_t *agent, int fd)
{
    struct timeval limit = {.tv_sec = start_timeout};
    struct event_base *base = agent->plm->rt->base;

    agent->fd = fd;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    agent->readable = event_new(base, fd, EV_READ | EV_PERSIST, readable, agent);
    agent->deadline = evtimer_new(base, too_late, agent);
    if (agent->readable == NULL || agent->deadline == NULL ||
        event_add(agent->readable, NULL) != 0 || event_add(agent->deadline, &limit) != 0) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    return OPAL_SUCCESS;
}

/* argv[0] was found by the component: it has a slash. */
static int spawn_agent(agent_t *agent, char **argv)
{
    int input = orders_file(&agent->plm->orders), output[2] = {-1, -1};
    int rc = OPAL_ERR_IN_ERRNO;

    if (input >= 0 && pipe2(output, O_CLOEXEC) == 0) {
        int stdio[3] = {input, output[1], output[1]};
        orte_spawn_t spawn = {.path = argv[0], .argv = argv, .env = environ, .stdio = stdio,
                              .outlives = true};
        agent->pid = orte_spawn(&spawn);
        if (agent->pid > 0) {
            orte_reaper_group(agent->plm->rt->reaper, agent->pid, true);
            rc = watch(agent, output[0]);
            output[0] = -1;
        }
    }
    int error = errno;
    for (int i = 0; i < 2; i++) {
        if (output[i] >= 0) {
            close(output[i]);
        }
    }
    if (input >= 0) {
        close(input);
    }
    errno = error;
    return rc;
}

/* Begin with daemon `index` (and all our children that follow, if the component takes them at once). */
static int start_one(orte_plm_t *plm, uint32_t index)
{
    uint32_t count = plm->module->all_at_once ? plm->end - index : 1;
    agent_t *agent = calloc(1, sizeof(*agent));

    if (agent == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    agent->plm = plm;
    agent->index = index;
    agent->waiting = count;
    agent->fd = -1;
    plm->orders.index = plm->module->all_at_once ? ORTE_OOB_NONE : index;
    opal_list_append(&plm->agents, &agent->item);
    char **argv = plm->module->command(&plm->orders.hosts[index], count, plm->orders.orted);
    if (argv == NULL) {
        agent_free(agent);
        return OPAL_ERROR;
    }
    int rc = spawn_agent(agent, argv);
    if (rc != OPAL_SUCCESS) {
        orte_report("can't run %s to start a daemon on host %s: %s", argv[0],
                    host_of(agent)->name, strerror(errno));
        if (agent->pid <= 0) {
            agent_free(agent);
        }
    } else {
        orte_trace("plm: starting a daemon on %s (%s, pid %ld)", host_of(agent)->name, argv[0],
                   (long)agent->pid);
        plm->starting++;
        plm->next = index + count;
    }
    opal_argv_free(argv);
    return rc;
}

static void start_more(orte_plm_t *plm)
{
    while (!plm->stopped && plm->next < plm->end && plm->starting < plm->module->concurrency()) {
        uint32_t index = plm->next;
        if (start_one(plm, index) != OPAL_SUCCESS) {
            plm->stopped = true;
            orte_daemons_start_failed(plm->rt, index, NULL);
        }
    }
}

int orte_plm_start_children(orte_runtime_t *rt, orte_plm_orders_t *orders, const char *contact)
{
    uint32_t first, count = orte_oob_tree_children(rt->index, orders->count, orders->radix, &first);
    const char *name;

    if (count == 0) {
        orte_plm_orders_free(orders);
        return OPAL_SUCCESS;
    }
    orte_plm_t *plm = calloc(1, sizeof(*plm));
    if (plm == NULL || (plm->module = orte_plm_select(orders->component, &name)) == NULL) {
        orte_plm_orders_free(orders);
        free(plm);
        return OPAL_ERR_NOT_AVAILABLE;
    }
    plm->rt = rt;
    rt->plm = plm;
    plm->orders = *orders;
    *orders = (orte_plm_orders_t){0};
    free(plm->orders.contact);
    plm->orders.contact = strdup(contact);
    opal_list_init(&plm->agents);
    plm->next = first;
    plm->end = first + count;
    if (plm->orders.contact == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    start_more(plm);
    return OPAL_SUCCESS;
}

/* From now on the daemon itself says when it goes. */
void orte_plm_connected(orte_runtime_t *rt, uint32_t index)
{
    orte_plm_t *plm = rt->plm;
    opal_list_item_t *item, *next;

    if (plm == NULL) {
        return;
    }
    OPAL_LIST_FOREACH(item, next, &plm->agents) {
        agent_t *agent = OPAL_CONTAINER_OF(item, agent_t, item);
        bool covers = plm->module->all_at_once ? index >= agent->index : index == agent->index;
        if (covers && agent->waiting > 0 && --agent->waiting == 0) {
            event_del(agent->deadline);
            agent->said = 0; /* greetings of a login shell, at most */
            plm->starting--;
            /* A daemon cleans up after itself: should we be killed, it is left to do so. */
            orte_reaper_group(rt->reaper, agent->pid, false);
        }
    }
    start_more(plm);
}

static agent_t *find_agent(const orte_runtime_t *rt, pid_t pid)
{
    opal_list_item_t *item, *next;

    if (rt->plm == NULL) {
        return NULL;
    }
    OPAL_LIST_FOREACH(item, next, &rt->plm->agents) {
        agent_t *agent = OPAL_CONTAINER_OF(item, agent_t, item);
        if (agent->pid == pid) {
            return agent;
        }
    }
    return NULL;
}

bool orte_plm_is_agent(const orte_runtime_t *rt, pid_t pid)
{
    return find_agent(rt, pid) != NULL;
}

bool orte_plm_child_ended(orte_runtime_t *rt, pid_t pid, int status)
{
    agent_t *agent = find_agent(rt, pid);

    if (agent == NULL) {
        return false;
    }
    orte_trace("plm: the agent of %s (pid %ld) ended with status %#x", host_of(agent)->name,
               (long)pid, (unsigned)status);
    agent->ended = true;
    agent->status = status;
    orte_reaper_group(rt->reaper, pid, false);
    while (agent->fd >= 0 && take_output(agent)) {
    }
    agent_over(agent);
    return true;
}

void orte_plm_stop_starting(orte_runtime_t *rt)
{
    opal_list_item_t *item, *next;

    if (rt->plm == NULL) {
        return;
    }
    rt->plm->stopped = true;
    OPAL_LIST_FOREACH(item, next, &rt->plm->agents) {
        agent_t *agent = OPAL_CONTAINER_OF(item, agent_t, item);
        if (agent->waiting > 0) {
            agent_kill(agent, SIGTERM);
        }
    }
}

void orte_plm_forget(orte_runtime_t *rt, uint32_t index)
{
    opal_list_item_t *item, *next;

    if (rt->plm == NULL || rt->plm->module->all_at_once) {
        return;
    }
    OPAL_LIST_FOREACH(item, next, &rt->plm->agents) {
        agent_t *agent = OPAL_CONTAINER_OF(item, agent_t, item);
        if (agent->index == index) {
            agent_kill(agent, SIGTERM);
        }
    }
}

/* First time: they are asked to end. Second time: they are made to. */
static void limit_over(evutil_socket_t fd, short what, void *arg)
{
    struct timeval more = {.tv_sec = 1};
    orte_plm_t *plm = arg;
    opal_list_item_t *item, *next;

    (void)fd;
    (void)what;
    OPAL_LIST_FOREACH(item, next, &plm->agents) {
        agent_t *agent = OPAL_CONTAINER_OF(item, agent_t, item);
        agent_kill(agent, agent->dropped ? SIGKILL : SIGTERM);
    }
    event_add(plm->limit, &more);
}

void orte_plm_when_ended(orte_runtime_t *rt, int limit_ms, void (*done)(void *arg), void *arg)
{
    struct timeval limit = {.tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000};
    orte_plm_t *plm = rt->plm;

    if (plm == NULL || opal_list_is_empty(&plm->agents)) {
        orte_queue_post(rt->queue, done, arg);
        return;
    }
    plm->ended = done;
    plm->ended_arg = arg;
    plm->limit = evtimer_new(rt->base, limit_over, plm);
    if (plm->limit != NULL) {
        event_add(plm->limit, &limit);
    }
}
