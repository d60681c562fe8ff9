/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sink: where output goes. Never blocks the event loop and never makes a descriptor non-
 * blocking that others share with us (the shell, say): pipes and terminals are opened anew,
 * sockets are written with MSG_DONTWAIT, regular files do not block.
 */
#ifndef ORTE_MCA_IOF_BASE_SINK_H
#define ORTE_MCA_IOF_BASE_SINK_H

#include <stdbool.h>
#include <stddef.h>

struct event_base;
typedef struct orte_sink orte_sink_t;

/* Above HIGH the feeders should pause; `drained` is called when less than LOW is left. */
#define ORTE_SINK_HIGH ((size_t)256 * 1024)
#define ORTE_SINK_LOW ((size_t)64 * 1024)

/* A sink on our standard output or error. NULL: no memory. */
orte_sink_t *orte_sink_create(struct event_base *base, int fd, void (*drained)(void *), void *arg);
/* A sink on a new file, truncated. NULL with errno. */
orte_sink_t *orte_sink_open(struct event_base *base, const char *path);
void orte_sink_destroy(orte_sink_t *sink);
/* Take all bytes. OPAL_ERR_UNREACHABLE: nobody reads any more (as after `| head`), or the disk
 * is full; bytes are lost from then on. OPAL_ERR_OUT_OF_RESOURCE: no memory, these bytes are
 * lost. */
int orte_sink_write(orte_sink_t *sink, const void *data, size_t size);
/* Write what can be written without waiting for anybody. */
void orte_sink_flush(orte_sink_t *sink);
size_t orte_sink_pending(const orte_sink_t *sink);
/* Bytes were lost, and not because nobody wanted them: the disk is full. It was reported. */
bool orte_sink_failed(const orte_sink_t *sink);

#endif
