/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Shared memory segments: memfd and /dev/shm. See shmem.h. */
#include "opal/mca/shmem/shmem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SHMEM_DIR "/dev/shm"
#define SHMEM_PREFIX "hawser."

enum { SHMEM_NAME_TRIES = 16 };

uint64_t opal_shmem_random(void)
{
    uint64_t value;
    if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != (ssize_t)sizeof(value)) {
        struct timespec now; /* no entropy yet, early at boot: still unique on this node */
        clock_gettime(CLOCK_MONOTONIC, &now);
        value = ((uint64_t)getpid() << 40) ^ ((uint64_t)now.tv_sec << 30) ^ (uint64_t)now.tv_nsec;
    }
    return value;
}

static int shmem_path(char *path, size_t size, const char *job, int32_t pid, uint64_t random)
{
    int n = snprintf(path, size, SHMEM_DIR "/" SHMEM_PREFIX "%s.%" PRId32 ".%016" PRIx64, job, pid, random);
    return n > 0 && (size_t)n < size && !strchr(job, '/') ? OPAL_SUCCESS : OPAL_ERR_BAD_PARAM;
}

/* Beyond the limit on the size of files (ulimit -f) ftruncate() fails too, but with a signal that ends the process. */
static int shmem_size_file(int fd, size_t size)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && size > limit.rlim_cur) {
        errno = EFBIG;
        return -1;
    }
    return ftruncate(fd, (off_t)size);
}

/* A sealed anonymous file: nobody can shrink it under those who have it mapped. */
static int shmem_open_memfd(opal_shmem_segment_t *segment, size_t size)
{
    int fd = memfd_create("hawser", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    if (shmem_size_file(fd, size) != 0
        || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    segment->fd = fd;
    segment->id.backing = OPAL_SHMEM_MEMFD;
    segment->id.fd = fd;
    return OPAL_SUCCESS;
}

/* One try at a fresh name; OPAL_ERR_EXISTS: take another. */
static int shmem_open_name(opal_shmem_segment_t *segment, const char *job, size_t size)
{
    struct stat st;
    segment->id.random = opal_shmem_random();
    int rc = shmem_path(segment->path, sizeof(segment->path), job, segment->id.pid, segment->id.random);
    if (rc != OPAL_SUCCESS) {
        errno = ENAMETOOLONG;
        return rc;
    }
    int fd = open(segment->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return errno == EEXIST ? OPAL_ERR_EXISTS : OPAL_ERR_NOT_AVAILABLE;
    }
    /* Between open and flock another process's sweep may have taken it for a dead one's. */
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || fstat(fd, &st) != 0 || st.st_nlink == 0) {
        unlink(segment->path);
        close(fd);
        return OPAL_ERR_EXISTS;
    }
    if (shmem_size_file(fd, size) != 0) {
        int saved = errno;
        unlink(segment->path);
        close(fd);
        errno = saved;
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    segment->fd = fd;
    return OPAL_SUCCESS;
}

static int shmem_open_file(opal_shmem_segment_t *segment, const char *job, size_t size)
{
    int rc = OPAL_ERR_EXISTS;
    for (int i = 0; i < SHMEM_NAME_TRIES && rc == OPAL_ERR_EXISTS; i++) {
        rc = shmem_open_name(segment, job, size);
    }
    if (rc != OPAL_SUCCESS) {
        segment->path[0] = '\0';
        return rc;
    }
    segment->id.backing = OPAL_SHMEM_FILE;
    return OPAL_SUCCESS;
}

static int shmem_map(opal_shmem_segment_t *segment, size_t size)
{
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, segment->fd, 0);
    if (base == MAP_FAILED) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    segment->base = base;
    segment->size = size;
    segment->id.size = size;
    return OPAL_SUCCESS;
}

int opal_shmem_create(opal_shmem_backing_t backing, const char *job, size_t size,
                      opal_shmem_segment_t *segment, char *why, size_t why_size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size = (size + page - 1) & ~(page - 1);
    memset(segment, 0, sizeof(*segment));
    segment->fd = -1;
    segment->owner = true;
    segment->id.pid = (int32_t)getpid();
    segment->id.random = opal_shmem_random();

    const char *step = "memfd_create";
    int rc = OPAL_ERR_NOT_AVAILABLE;
    if (backing != OPAL_SHMEM_FILE) {
        rc = access("/proc/self/fd", X_OK) == 0 ? shmem_open_memfd(segment, size) : rc;
    }
    if (backing == OPAL_SHMEM_FILE || (backing == OPAL_SHMEM_AUTO && rc != OPAL_SUCCESS)) {
        step = "creating a file in " SHMEM_DIR;
        rc = shmem_open_file(segment, job, size);
    }
    if (rc == OPAL_SUCCESS) {
        step = "mmap";
        rc = shmem_map(segment, size);
    }
    if (rc != OPAL_SUCCESS) {
        snprintf(why, why_size, "%s failed: %s", step, strerror(errno));
        opal_shmem_detach(segment);
    }
    return rc;
}

int opal_shmem_attach(const opal_shmem_id_t *id, const char *job, opal_shmem_segment_t *segment,
                      char *why, size_t why_size)
{
    char path[128];
    struct stat st;
    memset(segment, 0, sizeof(*segment));
    segment->fd = -1;
    segment->id = *id;
    int rc = OPAL_SUCCESS;
    if (id->backing == OPAL_SHMEM_MEMFD) {
        snprintf(path, sizeof(path), "/proc/%" PRId32 "/fd/%" PRId32, id->pid, id->fd);
    } else {
        rc = shmem_path(path, sizeof(path), job, id->pid, id->random);
    }
    if (rc != OPAL_SUCCESS || (id->backing != OPAL_SHMEM_MEMFD && id->backing != OPAL_SHMEM_FILE)) {
        snprintf(why, why_size, "its description of shared memory makes no sense");
        return OPAL_ERR_BAD_PARAM;
    }
    segment->fd = open(path, O_RDWR | O_CLOEXEC);
    if (segment->fd < 0) {
        snprintf(why, why_size, "%s can't be opened: %s", path, strerror(errno));
        return OPAL_ERR_UNREACHABLE;
    }
    if (fstat(segment->fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < 0
        || (uint64_t)st.st_size != id->size || id->size == 0) {
        snprintf(why, why_size, "%s is not the peer's shared memory", path);
        rc = OPAL_ERR_UNREACHABLE;
    } else if ((rc = shmem_map(segment, (size_t)id->size)) != OPAL_SUCCESS) {
        snprintf(why, why_size, "mapping %s failed: %s", path, strerror(errno));
    }
    if (rc != OPAL_SUCCESS) {
        opal_shmem_detach(segment);
    }
    return rc;
}

int opal_shmem_back(const opal_shmem_segment_t *segment, size_t offset, size_t len)
{
    int rc;
    if (segment->id.backing == OPAL_SHMEM_MEMFD || len == 0) {
        return OPAL_SUCCESS; /* limited by the node's memory alone, as malloc's is */
    }
    if (segment->fd < 0 || offset > segment->size || len > segment->size - offset) {
        return OPAL_ERR_BAD_PARAM;
    }
    do {
        rc = posix_fallocate(segment->fd, (off_t)offset, (off_t)len);
    } while (rc == EINTR);
    errno = rc;
    return rc == 0 ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

void opal_shmem_close_fd(opal_shmem_segment_t *segment)
{
    if (segment->fd >= 0) {
        close(segment->fd);
        segment->fd = -1;
    }
}

void opal_shmem_unlink(opal_shmem_segment_t *segment)
{
    if (segment->owner && segment->path[0] != '\0') {
        unlink(segment->path);
        segment->path[0] = '\0';
    }
}

void opal_shmem_detach(opal_shmem_segment_t *segment)
{
    opal_shmem_unlink(segment);
    if (segment->base) {
        munmap(segment->base, segment->size);
        segment->base = NULL;
    }
    opal_shmem_close_fd(segment);
}

/* Whoever gets the lock knows that the creator is gone. */
static bool shmem_sweep_one(int dir, const char *name)
{
    bool removed = false;
    int fd = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid()
        && flock(fd, LOCK_EX | LOCK_NB) == 0) {
        removed = unlinkat(dir, name, 0) == 0;
    }
    close(fd);
    return removed;
}

int opal_shmem_sweep(void)
{
    int count = 0;
    DIR *dir = opendir(SHMEM_DIR);
    if (!dir) {
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (strncmp(entry->d_name, SHMEM_PREFIX, strlen(SHMEM_PREFIX)) == 0) {
            count += shmem_sweep_one(dirfd(dir), entry->d_name);
        }
    }
    closedir(dir);
    return count;
}
