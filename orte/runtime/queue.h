/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Work handed to the event loop's thread: by libpmix's thread, and by the loop itself for later. */
#ifndef ORTE_RUNTIME_QUEUE_H
#define ORTE_RUNTIME_QUEUE_H

#include "opal/declspec.h"

struct event_base;
typedef struct orte_queue orte_queue_t;
typedef void (*orte_task_fn_t)(void *arg);

ORTE_DECLSPEC orte_queue_t *orte_queue_create(struct event_base *base);
ORTE_DECLSPEC void orte_queue_destroy(orte_queue_t *queue);
/* From any thread. Tasks run in the loop's thread, in the order of posting, each exactly once.
 * Returns OPAL_SUCCESS, or OPAL_ERR_OUT_OF_RESOURCE and the task will not run. */
ORTE_DECLSPEC int orte_queue_post(orte_queue_t *queue, orte_task_fn_t task, void *arg);
/* From the loop's thread: run what is posted now, without waiting for the loop to come round. */
ORTE_DECLSPEC void orte_queue_drain(orte_queue_t *queue);

#endif
