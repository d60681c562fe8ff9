/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The launcher's name service over PMIx's non-blocking calls. See names.h. */
#include "ompi/runtime/names.h"

#include <pmix.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/runtime/rte.h"
#include "opal/class/list.h"
#include "opal/runtime/progress.h"

/* A question under way. Its answer comes in libpmix's thread, also after the asker gave up: the one
 * that lets go last frees it. */
typedef struct question {
    opal_list_item_t item;    /* in `questions` */
    _Atomic int32_t answered; /* 1: status, data and len are valid */
    _Atomic int32_t holders;  /* the asker, libpmix */
    pmix_status_t status;
    char *data;
    size_t len;
} question_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static opal_list_t questions = OPAL_LIST_INIT(questions);
static _Thread_local pmix_status_t why;

const char *ompi_names_why(void)
{
    return PMIx_Error_string(why);
}

static question_t *ask(void)
{
    question_t *question = calloc(1, sizeof *question);
    if (question) {
        atomic_init(&question->holders, 2);
        pthread_mutex_lock(&lock);
        opal_list_append(&questions, &question->item);
        pthread_mutex_unlock(&lock);
    }
    return question;
}

static void let_go(question_t *question)
{
    if (atomic_fetch_sub_explicit(&question->holders, 1, memory_order_acq_rel) == 1) {
        pthread_mutex_lock(&lock);
        opal_list_remove(&question->item);
        pthread_mutex_unlock(&lock);
        free(question->data);
        free(question);
    }
}

/* In libpmix's thread. */
static void answer(question_t *question, pmix_status_t status)
{
    question->status = status;
    atomic_store_explicit(&question->answered, 1, memory_order_release);
    opal_progress_wake();
    let_go(question);
}

static void op_done(pmix_status_t status, void *context)
{
    answer(context, status);
}

/* The data are libpmix's. */
static void lookup_done(pmix_status_t status, pmix_pdata_t data[], size_t count, void *context)
{
    question_t *question = context;
    if (status == PMIX_SUCCESS && count == 1 && data[0].value.type == PMIX_BYTE_OBJECT) {
        const pmix_byte_object_t *bytes = &data[0].value.data.bo;
        question->data = malloc(bytes->size + 1);
        if (question->data) {
            if (bytes->size > 0) { /* else the pointer may be null */
                memcpy(question->data, bytes->bytes, bytes->size);
            }
            question->data[bytes->size] = '\0';
            question->len = bytes->size;
        } else {
            status = PMIX_ERR_NOMEM;
        }
    } else if (status == PMIX_SUCCESS) {
        status = PMIX_ERR_NOT_FOUND;
    }
    answer(question, status);
}

static int code_of(pmix_status_t status)
{
    switch (status) {
    case PMIX_SUCCESS: return OPAL_SUCCESS;
    case PMIX_ERR_DUPLICATE_KEY: return OPAL_ERR_EXISTS;
    case PMIX_ERR_NOT_FOUND: return OPAL_ERR_NOT_FOUND;
    case PMIX_ERR_NOT_SUPPORTED: return OPAL_ERR_NOT_SUPPORTED;
    case PMIX_ERR_NOMEM: return OPAL_ERR_OUT_OF_RESOURCE;
    default: why = status; return OPAL_ERROR;
    }
}

static bool is_answered(void *context)
{
    const question_t *question = context;
    return atomic_load_explicit(&question->answered, memory_order_acquire) != 0;
}

/* `rc` is what the PMIx call returned; its callback comes only if that was success. */
static int wait_for(question_t *question, pmix_status_t rc, uint64_t deadline_ns)
{
    if (rc != PMIX_SUCCESS) {
        answer(question, rc == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : rc);
    }
    if (deadline_ns == OMPI_NAMES_FOREVER) {
        opal_progress_wait(&question->answered);
    } else if (!opal_progress_wait_deadline(is_answered, question, deadline_ns)) {
        return OPAL_ERR_TIMEOUT;
    }
    return code_of(question->status);
}

static int check(const char *name)
{
    if (ompi_rte.singleton) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    return strlen(name) <= PMIX_MAX_KEYLEN ? OPAL_SUCCESS : OPAL_ERR_BAD_PARAM;
}

int ompi_names_publish(const char *name, const void *data, size_t len)
{
    int rc = check(name);
    question_t *question = rc == OPAL_SUCCESS ? ask() : NULL;
    if (!question) {
        return rc != OPAL_SUCCESS ? rc : OPAL_ERR_OUT_OF_RESOURCE;
    }
    pmix_info_t info;
    pmix_byte_object_t bytes = {.bytes = (char *) data, .size = len};
    PMIX_INFO_LOAD(&info, name, &bytes, PMIX_BYTE_OBJECT);
    rc = wait_for(question, PMIx_Publish_nb(&info, 1, op_done, question),
                  OMPI_NAMES_FOREVER);
    PMIX_INFO_DESTRUCT(&info);
    let_go(question);
    return rc;
}

int ompi_names_lookup(const char *name, uint64_t deadline_ns, char **data, size_t *len)
{
    int rc = check(name);
    question_t *question = rc == OPAL_SUCCESS ? ask() : NULL;
    if (!question) {
        return rc != OPAL_SUCCESS ? rc : OPAL_ERR_OUT_OF_RESOURCE;
    }
    char *names[] = {(char *) name, NULL};
    pmix_info_t wait;
    int all = 0; /* of the names */
    bool waits = deadline_ns != OMPI_NAMES_DONT_WAIT;
    PMIX_INFO_LOAD(&wait, PMIX_WAIT, &all, PMIX_INT);
    rc = wait_for(question,
                  PMIx_Lookup_nb(names, &wait, waits, lookup_done, question),
                  waits ? deadline_ns : OMPI_NAMES_FOREVER);
    PMIX_INFO_DESTRUCT(&wait);
    if (rc == OPAL_SUCCESS) {
        *data = question->data;
        *len = question->len;
        question->data = NULL;
    }
    let_go(question);
    return rc;
}

int ompi_names_unpublish(const char *name)
{
    int rc = check(name);
    question_t *question = rc == OPAL_SUCCESS ? ask() : NULL;
    if (!question) {
        return rc != OPAL_SUCCESS ? rc : OPAL_ERR_OUT_OF_RESOURCE;
    }
    char *names[] = {(char *) name, NULL};
    rc = wait_for(question, PMIx_Unpublish_nb(names, NULL, 0, op_done, question),
                  OMPI_NAMES_FOREVER);
    let_go(question);
    return rc;
}

void ompi_names_finalize(void)
{
    opal_list_item_t *item;
    while ((item = opal_list_pop(&questions)) != NULL) {
        question_t *question = OPAL_CONTAINER_OF(item, question_t, item);
        free(question->data);
        free(question);
    }
}
