/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Starts daemons by ssh, rsh, or whatever takes a host's name and a command. */
#include "orte/mca/plm/plm.h"

#include "opal/util/argv.h"
#include "orte/util/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *agent_list;
static int64_t num_concurrent;

static int register_params(const mca_base_services_t *services)
{
    static const char *const synonyms[] = {"plm_ssh_agent", "pls_rsh_agent", NULL};
    static const mca_base_var_desc_t agent = {
        .framework = "plm", .component = "rsh", .name = "agent",
        .help = "Commands that run a command on another host, with their options, separated by ':' (one before "
                "a digit or % is part of an option); the first one that is installed is used",
        .type = MCA_VAR_STRING, .level = MCA_VAR_LEVEL_USER, .scope = MCA_VAR_SCOPE_STARTUP,
        .def.s = "ssh : rsh", .synonyms = synonyms,
    };
    static const mca_base_var_desc_t concurrent = {
        .framework = "plm", .component = "rsh", .name = "num_concurrent",
        .help = "Daemons that one host may be starting at the same time",
        .type = MCA_VAR_INT, .level = MCA_VAR_LEVEL_TUNER, .scope = MCA_VAR_SCOPE_STARTUP,
        .def.i = 64, .min = 1, .max = 65536,
    };
    int rc = services->var_register(&agent, &agent_list);

    return rc == MCA_SUCCESS ? services->var_register(&concurrent, &num_concurrent) : rc;
}

/* Where a command is, from PATH if its name has no slash; NULL: nowhere. */
static char *find_command(const char *name)
{
    const char *path = getenv("PATH");
    char *found = NULL;

    if (strchr(name, '/') != NULL) {
        return access(name, X_OK) == 0 ? strdup(name) : NULL;
    }
    char **dirs = opal_argv_split(path != NULL ? path : "/usr/local/bin:/usr/bin:/bin", ':');
    for (char **dir = dirs; found == NULL && dir != NULL && *dir != NULL; dir++) {
        if (asprintf(&found, "%s/%s", *dir, name) < 0) {
            found = NULL;
        } else if (access(found, X_OK) != 0) {
            free(found);
            found = NULL;
        }
    }
    opal_argv_free(dirs);
    return found;
}

/* The end of the command at `text`. What looks like a port (ssh -J gate:2222), or one of ssh's own marks
 * (ControlPath=%h:%p), belongs to it. */
static size_t command_length(const char *text)
{
    size_t length = strcspn(text, ":");

    while (text[length] == ':' && text[length + 1] != '\0' && strchr("0123456789%", text[length + 1]) != NULL) {
        length += 1 + strcspn(text + length + 1, ":");
    }
    return length;
}

static char **split_agents(const char *text)
{
    char **agents = NULL;

    while (text != NULL && *text != '\0') {
        size_t length = command_length(text);
        char *agent = strndup(text, length);
        if (agent == NULL || opal_argv_append(&agents, agent) != OPAL_SUCCESS) {
            free(agent);
            break;
        }
        free(agent);
        text += length + (text[length] == ':');
    }
    return agents;
}

/* The words of the first agent that is installed, with its full path as the first; NULL: none. */
static char **find_agent(void)
{
    char **agents = split_agents(agent_list), **words = NULL;

    for (char **agent = agents; words == NULL && agent != NULL && *agent != NULL; agent++) {
        words = opal_argv_split(*agent, ' ');
        char *path = words == NULL ? NULL : find_command(words[0]);
        if (path == NULL) {
            opal_argv_free(words);
            words = NULL;
        } else {
            free(words[0]);
            words[0] = path;
        }
    }
    opal_argv_free(agents);
    return words;
}

static const char *unusable(void)
{
    static char why[512];
    char **words = find_agent();

    if (words != NULL) {
        opal_argv_free(words);
        return NULL;
    }
    snprintf(why, sizeof(why), "none of the commands of parameter plm_rsh_agent (\"%.300s\") is "
             "installed on this host; install ssh, or name a command that works like it",
             agent_list == NULL ? "" : agent_list);
    return why;
}

static int concurrency(void)
{
    return (int)num_concurrent;
}

static bool is_named(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');

    return strcmp(slash == NULL ? path : slash + 1, name) == 0;
}

/* One word for any shell: bare if nothing in it means anything to one, else in single quotes. */
static char *quote(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "/._-+=:,@%";
    char *text = NULL;
    size_t size;

    if (word[0] != '\0' && strspn(word, plain) == strlen(word)) {
        return strdup(word);
    }
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) {
        return NULL;
    }
    fputc('\'', out);
    for (; *word != '\0'; word++) {
        if (*word == '\'') {
            fputs("'\\''", out);
        } else {
            fputc(*word, out);
        }
    }
    fputc('\'', out);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static int append_login(char ***argv, const orte_plm_host_t *host)
{
    char port[16];
    bool is_ssh = is_named((*argv)[0], "ssh");
    int rc = OPAL_SUCCESS;

    if (is_ssh) {
        rc = opal_argv_append(argv, "-x"); /* no windows are forwarded */
    }
    if (rc == OPAL_SUCCESS && host->port > 0) {
        snprintf(port, sizeof(port), "%d", host->port);
        rc = opal_argv_append(argv, "-p");
        rc = rc == OPAL_SUCCESS ? opal_argv_append(argv, port) : rc;
    }
    if (rc == OPAL_SUCCESS && host->user != NULL) {
        rc = opal_argv_append(argv, "-l");
        rc = rc == OPAL_SUCCESS ? opal_argv_append(argv, host->user) : rc;
    }
    return rc == OPAL_SUCCESS ? opal_argv_append(argv, host->name) : rc;
}

/* ssh HOST 'PATH --orders -': the far shell, whichever it is, sees plain or quoted words only. */
static char **command(const orte_plm_host_t *host, uint32_t count, const char *orted)
{
    char **argv = find_agent();
    char *path = quote(orted), *line = NULL;

    (void)count;
    if (host->name[0] == '-') {
        orte_report("'%s' is no name of a host", host->name);
        goto failed;
    }
    if (argv == NULL || path == NULL || append_login(&argv, host) != OPAL_SUCCESS ||
        asprintf(&line, "%s --orders -", path) < 0) {
        line = NULL;
        orte_report("can't start a daemon on host %s: no memory, or the command of plm_rsh_agent "
                    "has vanished", host->name);
        goto failed;
    }
    if (opal_argv_append(&argv, line) != OPAL_SUCCESS) {
        goto failed;
    }
    free(path);
    free(line);
    return argv;

failed:
    opal_argv_free(argv);
    free(path);
    free(line);
    return NULL;
}

static bool explain(const orte_plm_host_t *host, int status, const char *line, const char *said,
                    char *text, size_t size)
{
    char **words = find_agent(), *login = NULL;
    bool refused = WIFEXITED(status) && WEXITSTATUS(status) == 255;

    (void)said;
    if (refused && words != NULL && append_login(&words, host) == OPAL_SUCCESS) {
        login = opal_argv_join(words, ' ');
    }
    if (refused) {
        snprintf(text, size, "host %s can't be reached with %s%s%s; is the name right, and does "
                 "\"%s true\" work without being asked anything?", host->name, words == NULL ? "ssh" : words[0],
                 line[0] == '\0' ? "" : ": ", line, login == NULL ? "ssh HOST" : login);
    }
    free(login);
    opal_argv_free(words);
    return refused;
}

static const orte_plm_module_t rsh = {
    .priority = 10,
    .unusable = unusable,
    .concurrency = concurrency,
    .command = command,
    .explain = explain,
};

MCA_EXPORT const mca_base_component_t mca_plm_rsh_component = {
    .magic = MCA_BASE_COMPONENT_MAGIC,
    .struct_size = sizeof(mca_base_component_t),
    .framework = "plm",
    .contract_major = ORTE_PLM_CONTRACT_MAJOR,
    .contract_minor = ORTE_PLM_CONTRACT_MINOR,
    .name = "rsh",
    .version = {1, 0, 0},
    .register_params = register_params,
    .ops = &rsh,
};
