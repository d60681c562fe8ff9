/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A locked list and an eventfd that wakes the loop. */
#include "orte/runtime/queue.h"

#include "opal/constants.h"

#include <event2/event.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

typedef struct task {
    struct task *next;
    orte_task_fn_t run;
    void *arg;
} task_t;

struct orte_queue {
    pthread_mutex_t lock;
    task_t *first, **last; /* under lock */
    int wake;
    struct event *event;
};

static void woken(evutil_socket_t fd, short what, void *arg)
{
    uint64_t count;

    (void)what;
    if (read(fd, &count, sizeof(count)) == (ssize_t)sizeof(count)) {
        orte_queue_drain(arg);
    }
}

orte_queue_t *orte_queue_create(struct event_base *base)
{
    orte_queue_t *queue = calloc(1, sizeof(*queue));

    if (queue == NULL) {
        return NULL;
    }
    pthread_mutex_init(&queue->lock, NULL);
    queue->last = &queue->first;
    queue->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    queue->event = queue->wake < 0
                       ? NULL
                       : event_new(base, queue->wake, EV_READ | EV_PERSIST, woken, queue);
    if (queue->event == NULL || event_add(queue->event, NULL) != 0) {
        orte_queue_destroy(queue);
        return NULL;
    }
    return queue;
}

void orte_queue_destroy(orte_queue_t *queue)
{
    if (queue == NULL) {
        return;
    }
    if (queue->event != NULL) {
        event_free(queue->event);
    }
    if (queue->wake >= 0) {
        close(queue->wake);
    }
    while (queue->first != NULL) {
        task_t *task = queue->first;
        queue->first = task->next;
        free(task);
    }
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

int orte_queue_post(orte_queue_t *queue, orte_task_fn_t run, void *arg)
{
    static const uint64_t one = 1;
    task_t *task = malloc(sizeof(*task));

    if (task == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    *task = (task_t){.run = run, .arg = arg};
    pthread_mutex_lock(&queue->lock);
    bool was_empty = queue->first == NULL;
    *queue->last = task;
    queue->last = &task->next;
    pthread_mutex_unlock(&queue->lock);
    if (was_empty && write(queue->wake, &one, sizeof(one)) < 0) {
        /* Only a counter near 2^64 refuses a write, and then the loop is awake anyway. */
    }
    return OPAL_SUCCESS;
}

void orte_queue_drain(orte_queue_t *queue)
{
    pthread_mutex_lock(&queue->lock);
    task_t *task = queue->first;
    queue->first = NULL;
    queue->last = &queue->first;
    pthread_mutex_unlock(&queue->lock);
    while (task != NULL) {
        task_t *next = task->next;
        task->run(task->arg);
        free(task);
        task = next;
    }
}
