/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory shared by processes of one node. Its creator makes a segment and sends its id to the
 * others, who attach it; what stands in it, and whether to believe it, is the users' matter.
 *
 * Two backings. MEMFD: an anonymous file, reached as /proc/<pid>/fd/<n>; it has no name, so
 * nothing can be left behind, and the size of /dev/shm is no limit. FILE:
 * /dev/shm/hawser.<job>.<pid>.<random>, mode 0600, locked (flock) by its creator for its lifetime,
 * which is how opal_shmem_sweep() tells those that a crash left.
 *
 * Pages appear when first touched. Under FILE a full /dev/shm would turn that touch into SIGBUS:
 * opal_shmem_back() is called for each range before its first use, and fails instead.
 */
#ifndef OPAL_MCA_SHMEM_SHMEM_H
#define OPAL_MCA_SHMEM_SHMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "opal/constants.h"

typedef enum {
    OPAL_SHMEM_AUTO = 0, /* MEMFD, or FILE where that does not work */
    OPAL_SHMEM_MEMFD = 1,
    OPAL_SHMEM_FILE = 2,
} opal_shmem_backing_t;

/* Says to a process of the same job and node where a segment is. Native byte order; no padding. */
typedef struct opal_shmem_id {
    uint32_t backing;
    int32_t pid;     /* of the creator */
    int32_t fd;      /* MEMFD: of the creator's */
    uint32_t reserved;
    uint64_t random; /* differs between any two segments; FILE: end of the name */
    uint64_t size;
} opal_shmem_id_t;
_Static_assert(sizeof(opal_shmem_id_t) == 32, "travels between processes");

typedef struct opal_shmem_segment {
    void *base;
    size_t size;
    int fd;              /* -1: closed */
    bool owner;
    opal_shmem_id_t id;
    char path[128];      /* FILE: while the name exists; else empty */
} opal_shmem_segment_t;

/* `size` is rounded up to pages. All bytes read as zero. `job` is part of a FILE's name. On
 * failure *why is a clause for a message. */
OPAL_DECLSPEC int opal_shmem_create(opal_shmem_backing_t backing, const char *job, size_t size,
                                    opal_shmem_segment_t *segment, char *why, size_t why_size);
/* Map another process's segment, read and write. */
OPAL_DECLSPEC int opal_shmem_attach(const opal_shmem_id_t *id, const char *job,
                                    opal_shmem_segment_t *segment, char *why, size_t why_size);
/* Make sure that [offset, offset + len) has memory behind it. OPAL_ERR_OUT_OF_RESOURCE: it has
 * not. */
OPAL_DECLSPEC int opal_shmem_back(const opal_shmem_segment_t *segment, size_t offset, size_t len);
/* Close the descriptor of an attached segment, after the last opal_shmem_back(); the mapping
 * stays. */
OPAL_DECLSPEC void opal_shmem_close_fd(opal_shmem_segment_t *segment);
/* FILE: remove the name; those attached are not touched. The owner does so once all have
 * attached. */
OPAL_DECLSPEC void opal_shmem_unlink(opal_shmem_segment_t *segment);
/* Unmap, and, if owner, remove. */
OPAL_DECLSPEC void opal_shmem_detach(opal_shmem_segment_t *segment);
/* Remove segments in /dev/shm that this user's dead processes left; the number removed. */
OPAL_DECLSPEC int opal_shmem_sweep(void);
/* 64 bits nobody can guess. */
OPAL_DECLSPEC uint64_t opal_shmem_random(void);

#endif
