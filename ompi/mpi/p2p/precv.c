/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Partitioned receives; see partitioned.h. While receives from a process wait for their senders, one
 * receive for setup messages from there is posted, and a poller looks after it. A setup message that
 * nobody waits for yet, by its tag, is kept; the one for a receive that has been freed meanwhile is
 * dropped, as those of both sides match in the order of their making.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "opal/class/list.h"
#include "opal/datatype/convertor.h"
#include "ompi/communicator/context.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/mpi/c/bodies.h"
#include "ompi/mpi/c/state.h"
#include "ompi/mpi/p2p/partitioned.h"

struct listener;

typedef struct precv {
    ompi_part_t part;
    opal_list_item_t item;      /* in the listener's `waiting`, or in a list of those to be started */
    struct listener *listener;  /* NULL: it has its sender, or failed */
    bool started;               /* without a sender; guarded by `lock`, like `listener` */
    bool freed;                 /* without a sender: only its place among those that wait is left */
    atomic_bool begun;          /* the messages of this round are started */
    int failure;                /* MPI error class: it can't have its messages */
    void *buf;
    ompi_datatype_t *type;      /* retained */
    size_t elements, bytes;     /* of all partitions; bytes as the sender counts, once it is known */
    size_t chunk, sent;         /* bytes of a message but the last, of all that the sender has */
    uint32_t first_tag;
    int source, tag;
    opal_convertor_t conv;      /* where messages go through bounce buffers */
} precv_t;

/* A setup message that came before its receive. */
typedef struct early {
    opal_list_item_t item;
    int64_t words[OMPI_PART_WORDS];
} early_t;

/* Of one process in one communicator, while there is anything to keep. */
typedef struct listener {
    opal_list_item_t item;
    ompi_communicator_t *comm; /* retained */
    int source;
    ompi_request_t *request;   /* the posted receive, or NULL */
    int64_t words[OMPI_PART_WORDS];
    opal_list_t waiting, early;
} listener_t;

/* Guards listeners, and which receives have a sender. The poller exists from the first receive on. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static opal_list_t listeners = OPAL_LIST_INIT(listeners);
static opal_poller_t *poller;

/* ---- Rounds ---- */

static void set_status(ompi_part_t *part)
{
    precv_t *recv = (precv_t *) part;
    if (recv->source == MPI_PROC_NULL) {
        ompi_status_set(&part->super.status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    } else {
        ompi_status_set(&part->super.status, recv->source, recv->tag,
                        opal_convertor_local_size(&recv->conv, recv->sent));
    }
}

static void start_message(precv_t *recv, int m);

static void start_messages(precv_t *recv)
{
    ompi_part_begin(&recv->part);
    for (int m = 0; m < recv->part.messages; m++) {
        atomic_store_explicit(&recv->part.message[m].arrived, false, memory_order_relaxed);
    }
    for (int m = 0; m < recv->part.messages; m++) {
        start_message(recv, m);
    }
    atomic_store_explicit(&recv->begun, true, memory_order_release);
    ompi_part_begun(&recv->part);
}

/* A receive that has waited for its sender, and has it now, or has a failure. */
static void start_late(precv_t *recv)
{
    if (recv->failure == MPI_SUCCESS) {
        start_messages(recv);
    } else {
        set_status(&recv->part);
        recv->part.super.status.MPI_ERROR = recv->failure;
        ompi_request_complete(&recv->part.super);
    }
}

static int precv_start(ompi_request_t *request)
{
    precv_t *recv = (precv_t *) request;
    pthread_mutex_lock(&lock);
    bool waiting = recv->listener != NULL;
    int failure = recv->failure; /* of one that waits, the thread that ends its waiting sets it */
    if (waiting || failure == MPI_SUCCESS) {
        request->active = true;
        atomic_store(&recv->begun, false);
        atomic_store(&request->complete, 0);
    }
    recv->started = waiting;
    pthread_mutex_unlock(&lock);
    if (waiting || failure != MPI_SUCCESS) {
        return failure;
    }
    start_messages(recv);
    return MPI_SUCCESS;
}

/* ---- The messages, once the sender is known ---- */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The bytes [from, to) of all are in a message. */
static void range_of(const precv_t *recv, int m, size_t *from, size_t *to)
{
    size_t end = m + 1 < recv->part.messages ? (size_t) (m + 1) * recv->chunk : recv->sent;
    *from = least((size_t) m * recv->chunk, recv->bytes);
    *to = least(end, recv->bytes);
}

/* Where the bytes of a message go, as elements of our type if they are whole ones; false: not at
 * once. */
static bool place_of(const precv_t *recv, size_t from, size_t bytes, void **place, size_t *count,
                     ompi_datatype_t **type)
{
    size_t size = recv->elements > 0 ? recv->bytes / recv->elements : 0;
    if (bytes == 0 || (from % size == 0 && bytes % size == 0)) {
        ptrdiff_t at = bytes ? (ptrdiff_t) (from / size) * ompi_datatype_extent(recv->type) : 0;
        *count = bytes ? bytes / size : 0;
        *type = recv->type;
        *place = (void *) ((uintptr_t) recv->buf + (uintptr_t) at); /* buf may be MPI_BOTTOM */
        return true;
    }
    char *data = recv->conv.remote ? NULL
        : opal_convertor_contiguous_ptr(&recv->type->opal, recv->elements, recv->buf);
    *count = bytes;
    *type = ompi_datatype_builtin(MPI_BYTE);
    *place = data ? data + from : NULL;
    return data != NULL;
}

static void start_message(precv_t *recv, int m)
{
    ompi_part_message_t *message = &recv->part.message[m];
    size_t from, to, count;
    ompi_datatype_t *type;
    ompi_request_t *request;
    range_of(recv, m, &from, &to);
    void *place;
    if (!place_of(recv, from, to - from, &place, &count, &type)) {
        place = message->bounce;
    }
    int rc = mca_pml.irecv(place, count, type, recv->source,
                           ompi_comm_tag_of_partition(recv->first_tag + (uint32_t) m),
                           recv->part.super.comm, &request);
    ompi_part_started(message, rc, request);
}

/* A message that ends within an element of our type has been received aside. */
static void take_message(ompi_part_message_t *message, const MPI_Status *status)
{
    precv_t *recv = (precv_t *) message->part;
    if (message->bounce) {
        size_t at = (size_t) (message - recv->part.message) * recv->chunk;
        opal_convertor_unpack_at(&recv->conv, at, message->bounce, ompi_status_bytes(status));
    }
    atomic_store_explicit(&message->arrived, true, memory_order_release);
}

static int make_messages(precv_t *recv, const int64_t *words)
{
    int messages = (int) words[OMPI_PART_MESSAGES];
    recv->chunk = (size_t) words[OMPI_PART_CHUNK];
    recv->sent = (size_t) words[OMPI_PART_TOTAL];
    recv->first_tag = (uint32_t) words[OMPI_PART_FIRST_TAG];
    const uint16_t id = (uint16_t) words[OMPI_PART_ARCH];
    const opal_arch_t *arch = id == opal_arch_id(opal_arch_local()) ? NULL : opal_arch_of_id(id);
    if (words[OMPI_PART_MESSAGES] < 0 || words[OMPI_PART_MESSAGES] > OMPI_PART_MESSAGES_MAX ||
        opal_convertor_init(&recv->conv, &recv->type->opal, recv->elements, recv->buf, arch) !=
            OPAL_SUCCESS) {
        return MPI_ERR_INTERN;
    }
    recv->bytes = recv->conv.size;
    int rc = ompi_part_new_messages(&recv->part, messages);
    for (int m = 0; rc == MPI_SUCCESS && m < messages; m++) {
        size_t from, to, count;
        ompi_datatype_t *type;
        void *place;
        range_of(recv, m, &from, &to);
        if (!place_of(recv, from, to - from, &place, &count, &type)) {
            recv->part.message[m].bounce = malloc(to - from);
            rc = recv->part.message[m].bounce ? MPI_SUCCESS : MPI_ERR_NO_MEM;
        }
    }
    return rc;
}

/* With the lock held. */
static void give_sender(precv_t *recv, const int64_t *words, int failure)
{
    recv->failure = failure == MPI_SUCCESS ? make_messages(recv, words) : failure;
    recv->listener = NULL;
}

/* ---- Setup messages ---- */

static listener_t *listener_of(ompi_communicator_t *comm, int source)
{
    opal_list_item_t *item, *next;
    OPAL_LIST_FOREACH (item, next, &listeners) {
        listener_t *found = OPAL_CONTAINER_OF(item, listener_t, item);
        if (found->comm == comm && found->source == source) {
            return found;
        }
    }
    listener_t *made = calloc(1, sizeof *made);
    if (made) {
        made->comm = comm;
        made->source = source;
        ompi_comm_retain(comm);
        opal_list_init(&made->waiting);
        opal_list_init(&made->early);
        opal_list_item_init(&made->item);
        opal_list_append(&listeners, &made->item);
    }
    return made;
}

static void drop_listener(listener_t *listener)
{
    opal_list_item_t *item, *next;
    OPAL_LIST_FOREACH (item, next, &listener->waiting) {
        precv_t *recv = OPAL_CONTAINER_OF(item, precv_t, item);
        if (recv->freed) {
            free(recv);
        }
    }
    while ((item = opal_list_pop(&listener->early)) != NULL) {
        free(OPAL_CONTAINER_OF(item, early_t, item));
    }
    opal_list_remove(&listener->item);
    ompi_comm_release(listener->comm);
    free(listener);
}

static int post(listener_t *listener)
{
    if (listener->request) {
        return MPI_SUCCESS;
    }
    int rc = mca_pml.irecv(listener->words, OMPI_PART_WORDS, ompi_datatype_builtin(MPI_INT64_T),
                           listener->source, OMPI_COMM_TAG_PARTITIONED, listener->comm,
                           &listener->request);
    if (rc != MPI_SUCCESS) {
        listener->request = NULL;
    }
    return rc;
}

/* Nobody waits here any more: without a setup message kept, the listener goes. The posted receive
 * stays if its message has come: the next round looks at it. */
static void quieten(listener_t *listener)
{
    if (!opal_list_is_empty(&listener->waiting)) {
        return;
    }
    if (listener->request && !ompi_request_is_complete(listener->request)) {
        listener->request->ops->cancel(listener->request);
    }
    if (listener->request && ompi_request_is_complete(listener->request) &&
        ompi_status_cancelled(&listener->request->status)) {
        ompi_request_wait(&listener->request, MPI_STATUS_IGNORE);
    }
    if (!listener->request && opal_list_is_empty(&listener->early)) {
        drop_listener(listener);
    }
}

static precv_t *waiting_for(listener_t *listener, int64_t tag)
{
    opal_list_item_t *item, *next;
    OPAL_LIST_FOREACH (item, next, &listener->waiting) {
        precv_t *recv = OPAL_CONTAINER_OF(item, precv_t, item);
        if (recv->tag == tag) {
            return recv;
        }
    }
    return NULL;
}

/* The receive is taken out of waiting; if it was started, that is to be done when the lock is free. */
static void end_waiting(precv_t *recv, const int64_t *words, int failure, opal_list_t *late)
{
    opal_list_remove(&recv->item);
    if (recv->freed) {
        free(recv);
        return;
    }
    give_sender(recv, words, failure);
    if (recv->started) {
        recv->started = false;
        opal_list_append(late, &recv->item);
    }
}

static void fail_all(listener_t *listener, int failure, opal_list_t *late)
{
    opal_list_item_t *item;
    while ((item = opal_list_first(&listener->waiting)) != NULL) {
        end_waiting(OPAL_CONTAINER_OF(item, precv_t, item), NULL, failure, late);
    }
}

static void take_setup(listener_t *listener, opal_list_t *late)
{
    int rc = ompi_request_wait(&listener->request, MPI_STATUS_IGNORE);
    listener->request = NULL;
    if (rc == MPI_SUCCESS) {
        precv_t *recv = waiting_for(listener, listener->words[OMPI_PART_TAG]);
        early_t *early = recv ? NULL : malloc(sizeof *early);
        if (recv) {
            end_waiting(recv, listener->words, MPI_SUCCESS, late);
        } else if (early) {
            opal_list_item_init(&early->item);
            memcpy(early->words, listener->words, sizeof early->words);
            opal_list_append(&listener->early, &early->item);
        } else {
            rc = MPI_ERR_NO_MEM;
        }
    }
    if (rc == MPI_SUCCESS && !opal_list_is_empty(&listener->waiting)) {
        rc = post(listener);
    }
    if (rc != MPI_SUCCESS) {
        fail_all(listener, rc, late);
    }
}

static int poll_listeners(void *context)
{
    opal_list_t late;
    opal_list_item_t *item, *next;
    int done = 0;
    bool posted = false;
    (void) context;
    opal_list_init(&late);
    pthread_mutex_lock(&lock);
    OPAL_LIST_FOREACH (item, next, &listeners) {
        listener_t *listener = OPAL_CONTAINER_OF(item, listener_t, item);
        while (listener->request && ompi_request_is_complete(listener->request)) {
            take_setup(listener, &late);
            done++;
        }
        posted = posted || listener->request;
        quieten(listener);
    }
    if (!posted) {
        opal_progress_poller_active(poller, false);
    }
    pthread_mutex_unlock(&lock);
    while ((item = opal_list_pop(&late)) != NULL) {
        start_late(OPAL_CONTAINER_OF(item, precv_t, item));
    }
    return done;
}

/* With the lock held. */
static int wake_poller(void)
{
    static const opal_poller_ops_t ops = {.poll = poll_listeners};
    if (!poller && opal_progress_poller_add(&ops, NULL, &poller) != OPAL_SUCCESS) {
        return MPI_ERR_NO_MEM;
    }
    opal_progress_poller_active(poller, true);
    if (opal_progress_threads) {
        opal_progress_wake(); /* the message may be there already, while who owns progress sleeps */
    }
    return MPI_SUCCESS;
}

/* Its setup message is here, or it waits. */
static int find_sender(precv_t *recv)
{
    opal_list_item_t *item, *next;
    listener_t *listener = listener_of(recv->part.super.comm, recv->source);
    if (!listener) {
        return MPI_ERR_NO_MEM;
    }
    OPAL_LIST_FOREACH (item, next, &listener->early) {
        early_t *early = OPAL_CONTAINER_OF(item, early_t, item);
        if (early->words[OMPI_PART_TAG] == recv->tag) {
            opal_list_remove(&early->item);
            give_sender(recv, early->words, MPI_SUCCESS);
            free(early);
            quieten(listener);
            return recv->failure;
        }
    }
    int rc = post(listener);
    if (rc == MPI_SUCCESS) {
        rc = wake_poller();
    }
    if (rc != MPI_SUCCESS) {
        quieten(listener);
        return rc;
    }
    recv->listener = listener;
    opal_list_append(&listener->waiting, &recv->item);
    return MPI_SUCCESS;
}

static bool only_freed_wait(const listener_t *listener)
{
    opal_list_item_t *item, *next;
    OPAL_LIST_FOREACH (item, next, &listener->waiting) {
        if (!OPAL_CONTAINER_OF(item, precv_t, item)->freed) {
            return false;
        }
    }
    return true;
}

void ompi_part_leave(const ompi_communicator_t *comm)
{
    opal_list_item_t *item, *next;
    pthread_mutex_lock(&lock);
    OPAL_LIST_FOREACH (item, next, &listeners) {
        listener_t *listener = OPAL_CONTAINER_OF(item, listener_t, item);
        if (listener->comm != comm || !only_freed_wait(listener)) {
            continue;
        }
        if (listener->request) {
            listener->request->ops->cancel(listener->request);
        }
        if (!listener->request || ompi_request_is_complete(listener->request)) {
            if (listener->request) {
                ompi_request_wait(&listener->request, MPI_STATUS_IGNORE);
            }
            drop_listener(listener);
        } /* else its message is just being taken: the next round looks at it */
    }
    pthread_mutex_unlock(&lock);
}

void ompi_part_finalize(void)
{
    opal_list_item_t *item;
    while ((item = opal_list_first(&listeners)) != NULL) {
        listener_t *listener = OPAL_CONTAINER_OF(item, listener_t, item);
        if (listener->request) {
            listener->request->ops->cancel(listener->request);
            ompi_request_wait(&listener->request, MPI_STATUS_IGNORE);
        }
        drop_listener(listener);
    }
    if (poller) {
        opal_progress_poller_del(poller);
        poller = NULL;
    }
}

/* ---- Their life ---- */

static void release_parts(precv_t *recv)
{
    ompi_part_free_messages(&recv->part);
    ompi_datatype_release(recv->type);
    ompi_comm_release(recv->part.super.comm);
    ompi_handle_fini(&recv->part.super.base);
}

/* The sender's setup message is still to come, and is not for the receive that is made next. */
static void precv_free(ompi_request_t *request)
{
    precv_t *recv = (precv_t *) request;
    pthread_mutex_lock(&lock);
    bool waiting = recv->listener != NULL;
    if (waiting) { /* the listener holds the communicator, too: it does not end here */
        release_parts(recv);
        recv->freed = true;
    }
    pthread_mutex_unlock(&lock);
    if (!waiting) {
        release_parts(recv);
        free(recv);
    }
}

static const ompi_request_ops_t precv_ops = {.start = precv_start,
                                             .cancel = ompi_part_cancel,
                                             .free = precv_free};

static precv_t *precv_new(void *buf, int partitions, size_t count, ompi_datatype_t *type,
                          int source, int tag, ompi_communicator_t *comm)
{
    precv_t *recv = calloc(1, sizeof *recv);
    if (!recv) {
        return NULL;
    }
    ompi_request_init(&recv->part.super, OMPI_REQUEST_RECV, &precv_ops);
    opal_list_item_init(&recv->item);
    recv->part.super.persistent = true;
    recv->part.super.active = false;
    recv->part.super.comm = comm;
    recv->part.partitions = partitions;
    recv->part.set_status = set_status;
    recv->part.done = take_message;
    ompi_status_set_empty(&recv->part.super.status);
    atomic_store(&recv->part.super.complete, OMPI_REQUEST_COMPLETE);
    recv->buf = buf;
    recv->type = type;
    recv->elements = (size_t) partitions * count;
    recv->source = source;
    recv->tag = tag;
    ompi_comm_retain(comm);
    ompi_datatype_retain(type);
    return recv;
}

int ompi_mpi_precv_init(void *buf, int partitions, MPI_Count count, ompi_datatype_t *datatype,
                        int source, int tag, ompi_communicator_t *comm, ompi_info_t *info,
                        ompi_request_t **request)
{
    size_t bytes;
    (void) info;
    if (source == MPI_ANY_SOURCE || tag == MPI_ANY_TAG) {
        return ompi_error(source == MPI_ANY_SOURCE ? MPI_ERR_RANK : MPI_ERR_TAG,
                          "a partitioned receive takes no wildcards");
    }
    int rc = ompi_part_size(datatype, partitions, count, &bytes);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    precv_t *recv = precv_new(buf, partitions, (size_t) count, datatype, source, tag, comm);
    if (!recv) {
        return MPI_ERR_NO_MEM;
    }
    recv->bytes = bytes;
    if (source != MPI_PROC_NULL) {
        pthread_mutex_lock(&lock);
        rc = find_sender(recv);
        pthread_mutex_unlock(&lock);
    }
    if (rc != MPI_SUCCESS) {
        precv_free(&recv->part.super);
        return rc;
    }
    ompi_comm_count_persistent(comm, 1);
    *request = &recv->part.super;
    return MPI_SUCCESS;
}

/* ---- Has it come? ---- */

static bool has_arrived(precv_t *recv, int partition)
{
    if (ompi_request_is_complete(&recv->part.super)) {
        return true;
    }
    if (!atomic_load_explicit(&recv->begun, memory_order_acquire)) {
        return false;
    }
    size_t each = recv->bytes / (size_t) recv->part.partitions;
    size_t from = (size_t) partition * each, to = from + each;
    if (each == 0 || to > recv->sent || recv->chunk == 0) {
        return false; /* what has no bytes, or is not sent, comes with the whole */
    }
    for (size_t m = from / recv->chunk; m <= (to - 1) / recv->chunk; m++) {
        if (!atomic_load_explicit(&recv->part.message[m].arrived, memory_order_acquire)) {
            return false;
        }
    }
    return true;
}

int ompi_mpi_parrived(ompi_request_t *request, int partition, int *flag)
{
    precv_t *recv = (precv_t *) request;
    if (!request) {
        *flag = 1; /* as of one that is not active (MPI-5.0 section 4.2.2) */
        return MPI_SUCCESS;
    }
    if (request->ops != &precv_ops) {
        ompi_error_origin(request->comm);
        return ompi_error(MPI_ERR_REQUEST, "it is not that of a partitioned receive");
    }
    if (partition < 0 || partition >= recv->part.partitions) {
        ompi_error_origin(request->comm);
        return ompi_error(MPI_ERR_ARG, "partition %d is none of the %d", partition,
                          recv->part.partitions);
    }
    *flag = has_arrived(recv, partition);
    if (!*flag) {
        opal_progress();
        *flag = has_arrived(recv, partition);
    }
    return MPI_SUCCESS;
}
