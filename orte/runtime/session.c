/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The session directory. */
#include "orte/runtime/session.h"

#include "orte/util/proctree.h"
#include "orte/util/report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SHM_DIR "/dev/shm"
#define LOCK_NAME "lock"
/* A directory still without its final name is one being made, or left by a crash in that moment. */
#define UNNAMED "hawser-new-"
#define UNNAMED_MAX_AGE 3600 /* seconds */

static const char *tmp_dir(void)
{
    const char *dir = getenv("TMPDIR");

    return dir != NULL && dir[0] == '/' ? dir : "/tmp";
}

/* Remove a directory's contents; symbolic links are removed, never followed. */
static void remove_contents(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (dir == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        if (unlinkat(fd, entry->d_name, 0) != 0 && (errno == EISDIR || errno == EPERM)) {
            remove_contents(fd, entry->d_name);
            unlinkat(fd, entry->d_name, AT_REMOVEDIR);
        }
    }
    closedir(dir);
}

static void remove_tree(const char *path)
{
    remove_contents(AT_FDCWD, path);
    rmdir(path);
}

/* Remove our own files in /dev/shm whose names begin with prefix. */
static void remove_shm(const char *prefix)
{
    DIR *dir = opendir(SHM_DIR);
    struct dirent *entry;
    struct stat st;

    if (dir == NULL) {
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            st.st_uid == geteuid()) {
            unlinkat(dirfd(dir), entry->d_name, 0);
        }
    }
    closedir(dir);
}

char *orte_session_job_prefix(const char *id)
{
    char *prefix;

    return asprintf(&prefix, "mpirun-%s.", id) < 0 ? NULL : prefix;
}

int orte_session_mark(const char *name, char *text, size_t size)
{
    return snprintf(text, size, "%s:", name) < (int)size ? 0 : -1;
}

static void remove_files(const char *path, const char *name)
{
    char prefix[NAME_MAX + 1];
    int id_length = (int)strcspn(name, ".");

    snprintf(prefix, sizeof(prefix), "hawser.mpirun-%.*s.", id_length, name);
    remove_shm(prefix);
    remove_tree(path);
}

void orte_session_remove(const char *path, const char *name)
{
    static const char variable[] = ORTE_SESSION_ENV "=";
    char mark[NAME_MAX + sizeof(variable)];

    /* Until a look at all processes finds none: one may fork between being seen and being
     * killed. */
    strcpy(mark, variable);
    if (orte_session_mark(name, mark + sizeof(variable) - 1, NAME_MAX) != 0) {
        return; /* no name of ours is so long */
    }
    for (int pass = 0; pass < 100 && orte_proctree_kill_marked(mark, SIGKILL) > 0; pass++) {
    }
    remove_files(path, name);
}

/* Make the lock file in `dir` and hold it. Returns the descriptor or -1 with errno. */
static int take_lock(const char *dir)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/" LOCK_NAME, dir) >= (int)sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static char *make_id(void)
{
    unsigned random_bits;
    char *id;

    if (getrandom(&random_bits, sizeof(random_bits), 0) != (ssize_t)sizeof(random_bits)) {
        return NULL;
    }
    return asprintf(&id, "%ld-%08x", (long)getpid(), random_bits) < 0 ? NULL : id;
}

/* Make the directory under a passing name, lock it, and give it its own name. */
static int make_directory(orte_session_t *session)
{
    char passing[PATH_MAX];

    if (snprintf(passing, sizeof(passing), "%s/" UNNAMED "XXXXXX", tmp_dir()) >=
        (int)sizeof(passing)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (mkdtemp(passing) == NULL) {
        return -1;
    }
    session->lock_fd = take_lock(passing);
    if (session->lock_fd < 0 || rename(passing, session->path) != 0) {
        int error = errno;
        remove_tree(passing);
        errno = error;
        return -1;
    }
    return 0;
}

/* NULL: no memory. */
static char *make_name(const char *id, int daemon)
{
    char *name;

    if (daemon == 0) {
        return strdup(id);
    }
    return asprintf(&name, "%s.%d", id, daemon) < 0 ? NULL : name;
}

orte_session_t *orte_session_create(const char *id, int daemon)
{
    orte_session_t *session = calloc(1, sizeof(*session));

    if (session == NULL || (session->id = id == NULL ? make_id() : strdup(id)) == NULL ||
        (session->name = make_name(session->id, daemon)) == NULL ||
        asprintf(&session->path, "%s/hawser-%ld-%s", tmp_dir(), (long)geteuid(),
                 session->name) < 0) {
        orte_report("no memory for the session directory's name");
        goto free_session;
    }
    session->lock_fd = -1;
    if (make_directory(session) != 0) {
        orte_report("can't make a session directory in %s: %s; set TMPDIR to a local directory "
                    "that you may write to", tmp_dir(), strerror(errno));
        goto close_lock;
    }
    return session;

close_lock:
    if (session->lock_fd >= 0) {
        close(session->lock_fd);
    }
    free(session->path);
free_session:
    if (session != NULL) {
        free(session->id);
        free(session->name);
    }
    free(session);
    return NULL;
}

void orte_session_destroy(orte_session_t *session)
{
    if (session == NULL) {
        return;
    }
    remove_files(session->path, session->name);
    close(session->lock_fd);
    free(session->path);
    free(session->id);
    free(session->name);
    free(session);
}

static bool is_old(int dir, const char *name)
{
    struct stat st;

    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == geteuid() &&
           time(NULL) - st.st_mtime > UNNAMED_MAX_AGE;
}

/* Nobody holds the lock: the owner is dead. Without a lock file it died while being removed. */
static bool is_dead(int dir, const char *name)
{
    char path[NAME_MAX + sizeof(LOCK_NAME) + 2];
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(st.st_mode) ||
        st.st_uid != geteuid()) {
        return false;
    }
    snprintf(path, sizeof(path), "%s/" LOCK_NAME, name);
    int fd = openat(dir, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT && is_old(dir, name);
    }
    bool dead = flock(fd, LOCK_EX | LOCK_NB) == 0;
    close(fd);
    return dead;
}

int orte_session_sweep(bool verbose)
{
    char prefix[64], path[PATH_MAX];
    DIR *dir = opendir(tmp_dir());
    struct dirent *entry;
    int removed = 0;

    if (dir == NULL) {
        return 0;
    }
    int length = snprintf(prefix, sizeof(prefix), "hawser-%ld-", (long)geteuid());
    while ((entry = readdir(dir)) != NULL) {
        snprintf(path, sizeof(path), "%s/%s", tmp_dir(), entry->d_name);
        if (strncmp(entry->d_name, UNNAMED, sizeof(UNNAMED) - 1) == 0) {
            if (is_old(dirfd(dir), entry->d_name)) {
                remove_tree(path);
                removed++;
            }
        } else if (strncmp(entry->d_name, prefix, (size_t)length) == 0 &&
                   is_dead(dirfd(dir), entry->d_name)) {
            if (verbose) {
                printf("removing %s\n", path);
            }
            orte_session_remove(path, entry->d_name + length);
            removed++;
        }
    }
    closedir(dir);
    return removed;
}
