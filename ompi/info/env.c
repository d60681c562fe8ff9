/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* MPI_INFO_ENV and MPI_Info_create_env: how the process was started. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "ompi/errhandler/errhandler.h"
#include "ompi/info/info.h"
#include "ompi/mpi/c/bodies.h"
#include "ompi/runtime/rte.h"
#include "ompi/runtime/runtime.h"

ompi_info_t ompi_info_env = {.read_only = true, .lock = PTHREAD_MUTEX_INITIALIZER};

/* A handle for it exists before MPI is initialised; then it is empty. */
__attribute__((constructor)) static void register_env(void)
{
    ompi_handle_init(&ompi_info_env.base, OMPI_HANDLE_INFO);
    ompi_handle_register_predefined(MPI_INFO_ENV, &ompi_info_env.base);
}

/* A value longer than an info object can hold is cut off. */
static int put_cut(ompi_info_t *info, const char *key, const char *value)
{
    char text[MPI_MAX_INFO_VAL];
    size_t length = strlen(value) < sizeof text ? strlen(value) : sizeof text - 1;
    memcpy(text, value, length);
    text[length] = '\0';
    return ompi_info_put(info, key, text);
}

/* Arguments separated by blanks. */
typedef struct line {
    char text[MPI_MAX_INFO_VAL];
    size_t used;
} line_t;

static void add_argument(line_t *line, const char *argument)
{
    if (line->used < sizeof line->text) {
        int n = snprintf(line->text + line->used, sizeof line->text - line->used, "%s%s",
                         line->used ? " " : "", argument);
        line->used += n > 0 ? (size_t) n : 0;
    }
}

static int put_command(ompi_info_t *info, const char *command, const line_t *arguments)
{
    int rc = put_cut(info, "command", command);
    return rc == MPI_SUCCESS ? put_cut(info, "argv", arguments->text) : rc;
}

/* The kernel gives zero-terminated strings one behind the other. */
static int put_own_command(ompi_info_t *info)
{
    char strings[4096 + 1]; /* more than fits into two values anyway */
    line_t arguments = {.used = 0};
    FILE *file = fopen("/proc/self/cmdline", "re");
    if (!file) {
        return MPI_SUCCESS;
    }
    size_t size = fread(strings, 1, sizeof strings - 1, file);
    fclose(file);
    strings[size] = '\0';
    for (const char *at = strings + strlen(strings) + 1; at < strings + size;
         at += strlen(at) + 1) {
        add_argument(&arguments, at);
    }
    return size > 0 ? put_command(info, strings, &arguments) : MPI_SUCCESS;
}

static const char *thread_level_name(int level)
{
    switch (level) {
    case MPI_THREAD_FUNNELED: return "MPI_THREAD_FUNNELED";
    case MPI_THREAD_SERIALIZED: return "MPI_THREAD_SERIALIZED";
    case MPI_THREAD_MULTIPLE: return "MPI_THREAD_MULTIPLE";
    default: return "MPI_THREAD_SINGLE";
    }
}

/* What is known of the job and the machine. */
static int put_environment(ompi_info_t *info)
{
    char text[PATH_MAX];
    struct utsname machine;
    int rc = MPI_SUCCESS;
    if (ompi_rte.size > 0) {
        snprintf(text, sizeof text, "%u", ompi_rte.size);
        rc = put_cut(info, "maxprocs", text);
        if (rc == MPI_SUCCESS) {
            rc = put_cut(info, "host", ompi_rte.host);
        }
        if (rc == MPI_SUCCESS) {
            rc = put_cut(info, "thread_level", thread_level_name(ompi_thread_level));
        }
    }
    if (rc == MPI_SUCCESS && uname(&machine) == 0) {
        rc = put_cut(info, "arch", machine.machine);
    }
    if (rc == MPI_SUCCESS && getcwd(text, sizeof text)) {
        rc = put_cut(info, "wdir", text);
    }
    if (rc == MPI_SUCCESS) {
        rc = put_cut(info, "mpi_memory_alloc_kinds", "system,mpi");
    }
    if (rc == MPI_SUCCESS) {
        rc = put_cut(info, "mpi_initial_errhandler", ompi_errhandler_initial_name());
    }
    return rc;
}

int ompi_info_init(void)
{
    int rc = put_own_command(&ompi_info_env);
    return rc == MPI_SUCCESS ? put_environment(&ompi_info_env) : rc;
}

void ompi_info_finalize(void)
{
    ompi_info_clear(&ompi_info_env);
}

/* argc and argv are those of main, if the caller has them. */
int ompi_mpi_info_create_env(int argc, char *argv[], ompi_info_t **info)
{
    int rc = MPI_SUCCESS;
    ompi_info_t *env = ompi_info_new();
    if (!env) {
        return MPI_ERR_NO_MEM;
    }
    if (argc > 0 && argv) {
        line_t arguments = {.used = 0};
        for (int i = 1; i < argc; i++) {
            add_argument(&arguments, argv[i]);
        }
        rc = put_command(env, argv[0], &arguments);
    } else {
        rc = put_own_command(env);
    }
    if (rc == MPI_SUCCESS) {
        rc = put_environment(env);
    }
    if (rc != MPI_SUCCESS) {
        ompi_info_free(env);
        return rc;
    }
    *info = env;
    return MPI_SUCCESS;
}
