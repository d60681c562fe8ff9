/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Shared memory segments: both backings, what attach refuses, what a crash leaves and sweep removes. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "opal/mca/shmem/shmem.h"
#include "test/support/tap.h"

enum { SIZE = 1 << 20 };

/* A child attaches the segment and answers in it. */
static int attach_in_child(const opal_shmem_id_t *id)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        opal_shmem_segment_t segment;
        char why[128];
        if (opal_shmem_attach(id, "job", &segment, why, sizeof(why)) != OPAL_SUCCESS) {
            _exit(why[0] ? 2 : 3);
        }
        char *bytes = segment.base;
        int ok = bytes[0] == 'a' && bytes[SIZE - 1] == 'z';
        bytes[1] = 'b';
        opal_shmem_detach(&segment);
        _exit(ok ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_backing(opal_shmem_backing_t backing, const char *name)
{
    opal_shmem_segment_t segment;
    char why[128] = "", path[128];
    int rc = opal_shmem_create(backing, "job", SIZE - 10, &segment, why, sizeof(why));
    TAP_REQUIRE(rc == OPAL_SUCCESS, "%s: create (%s)", name, why);
    TAP_OK(segment.size == SIZE, "%s: the size is rounded up to pages", name);
    TAP_OK(opal_shmem_back(&segment, 0, SIZE) == OPAL_SUCCESS, "%s: memory behind all of it", name);
    TAP_OK(opal_shmem_back(&segment, SIZE, 0) == OPAL_SUCCESS, "%s: behind nothing", name);
    char *bytes = segment.base;
    TAP_OK(bytes[0] == 0 && bytes[SIZE - 1] == 0, "%s: zeroed", name);
    bytes[0] = 'a';
    bytes[SIZE - 1] = 'z';
    TAP_OK(attach_in_child(&segment.id) == 0, "%s: another process sees the same bytes", name);
    TAP_OK(bytes[1] == 'b', "%s: and this one what it wrote", name);

    opal_shmem_id_t wrong = segment.id;
    wrong.size *= 2;
    TAP_OK(attach_in_child(&wrong) == 2, "%s: a wrong size is refused with a reason", name);
    wrong = segment.id;
    wrong.fd = wrong.backing == OPAL_SHMEM_MEMFD ? 4000 : wrong.fd;
    wrong.random ^= wrong.backing == OPAL_SHMEM_FILE;
    TAP_OK(attach_in_child(&wrong) == 2, "%s: what is not there is refused", name);
    wrong.backing = 77;
    TAP_OK(attach_in_child(&wrong) == 2, "%s: an unknown backing is refused", name);

    TAP_OK(opal_shmem_sweep() >= 0 && (segment.path[0] == '\0' || access(segment.path, F_OK) == 0),
           "%s: sweep leaves the living alone", name);
    strcpy(path, segment.path);
    opal_shmem_detach(&segment);
    TAP_OK(path[0] == '\0' || access(path, F_OK) != 0, "%s: nothing left", name);
}

/* A process that dies leaves a file; the next one's sweep removes it. */
static void test_sweep(bool alone)
{
    int fds[2];
    char path[128] = "";
    TAP_REQUIRE(pipe(fds) == 0, "pipe");
    pid_t pid = fork();
    if (pid == 0) {
        opal_shmem_segment_t segment;
        char why[128];
        if (opal_shmem_create(OPAL_SHMEM_FILE, "job", SIZE, &segment, why, sizeof(why)) == OPAL_SUCCESS
            && write(fds[1], segment.path, sizeof(segment.path)) > 0) {
            kill(getpid(), SIGKILL);
        }
        _exit(1);
    }
    TAP_OK(read(fds[0], path, sizeof(path)) == (ssize_t)sizeof(path), "a child makes a segment");
    waitpid(pid, NULL, 0);
    TAP_OK(!alone || access(path, F_OK) == 0, "its file is left when it is killed");
    int removed = opal_shmem_sweep();
    TAP_OK(!alone || removed == 1, "sweep finds it");
    TAP_OK(path[0] && access(path, F_OK) != 0, "and removes it");
    close(fds[0]);
    close(fds[1]);
}

/* Under a limit on the size of files there is a reason, and no signal. */
static void test_file_limit(opal_shmem_backing_t backing, const char *name)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        const struct rlimit limit = {.rlim_cur = SIZE - 1, .rlim_max = RLIM_INFINITY};
        opal_shmem_segment_t segment;
        char why[128] = "";
        int rc = setrlimit(RLIMIT_FSIZE, &limit) == 0
                     ? opal_shmem_create(backing, "job", SIZE, &segment, why, sizeof(why)) : OPAL_SUCCESS;
        _exit(rc != OPAL_SUCCESS && strstr(why, strerror(EFBIG)) ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    TAP_OK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: larger than files may be", name);
}

int main(void)
{
    /* Others may sweep at the same time, unless this process can have a /dev/shm of its own. */
    bool alone = unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0
                 && mount("none", "/dev/shm", "tmpfs", 0, "size=16m") == 0;
    tap_start(60);
    test_backing(OPAL_SHMEM_MEMFD, "memfd");
    test_backing(OPAL_SHMEM_FILE, "file");
    test_sweep(alone);
    test_file_limit(OPAL_SHMEM_MEMFD, "memfd");
    test_file_limit(OPAL_SHMEM_FILE, "file");
    opal_shmem_segment_t segment;
    char why[128] = "";
    int rc = opal_shmem_create(OPAL_SHMEM_FILE, "a/b", SIZE, &segment, why, sizeof(why));
    TAP_OK(rc != OPAL_SUCCESS && why[0], "a job name that leads elsewhere is refused");
    TAP_OK(opal_shmem_random() != opal_shmem_random(), "random numbers differ");
    return tap_end();
}
