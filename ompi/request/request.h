/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests. A request is active from its start to its completion; whoever completes it calls
 * ompi_request_complete() once. A non-persistent request belongs to the user until MPI_Wait, MPI_Test (and kin) or
 * MPI_Request_free; ops->free is called when it is both freed (or waited for) and complete.
 *
 * Small sends complete at once and share one immutable request, ompi_request_send_done.
 */
#ifndef OMPI_REQUEST_REQUEST_H
#define OMPI_REQUEST_REQUEST_H

#include <stdatomic.h>
#include <string.h>
#include "ompi/include/ompi/handles.h"
#include "opal/class/list.h"
#include "opal/runtime/progress.h"
#include "opal/util/alone.h"

#pragma GCC visibility push(default) /* components use these */

typedef enum {
    OMPI_REQUEST_NULL,
    OMPI_REQUEST_SEND,
    OMPI_REQUEST_RECV,
    OMPI_REQUEST_GENERALIZED,
    OMPI_REQUEST_COLL,
    OMPI_REQUEST_DONE, /* ompi_request_send_done: complete for ever, never freed */
} ompi_request_type_t;

/* Whichever of completion and MPI_Request_free comes second gives the memory back; whichever of completion and
 * ompi_request_watch() comes second tells the watcher. */
enum {
    OMPI_REQUEST_COMPLETE = 1, /* status is valid; also set while a persistent request is inactive */
    OMPI_REQUEST_FREED = 2,    /* MPI_Request_free was called: nobody waits */
    OMPI_REQUEST_WATCHED = 4,  /* on_complete is to be called */
};

typedef struct ompi_request_ops {
    int (*start)(ompi_request_t *request);  /* persistent only; else NULL */
    int (*cancel)(ompi_request_t *request);
    void (*free)(ompi_request_t *request);  /* give the memory back; the request is complete or inactive. Not for generalized ones */
    /* Somebody asks for its end: bring it about, if this process can by itself. `waits`: progress may be driven for a while. NULL: it
     * can't. */
    void (*settle)(ompi_request_t *request, bool waits);
    /* Its handle goes, the operation goes on: the program may learn of its end otherwise, and before this process does, and the memory that it
     * sends from is not to be needed then. NULL: it isn't. */
    void (*detach)(ompi_request_t *request);
} ompi_request_ops_t;

struct ompi_request_t {
    ompi_handle_base_t base;
    _Atomic int32_t complete;      /* OMPI_REQUEST_COMPLETE | OMPI_REQUEST_FREED */
    uint8_t type;                  /* ompi_request_type_t */
    bool persistent;
    bool active;                   /* persistent: started and not yet waited for */
    bool blocking;                 /* of a thread that waits for it itself: nobody marks or watches it */
    const ompi_request_ops_t *ops;
    ompi_communicator_t *comm; /* whose error handler hears of failures; NULL: the default */
    MPI_Status status;             /* MPI_ERROR holds the outcome (class or code) */
    void (*on_complete)(ompi_request_t *request, void *context); /* if OMPI_REQUEST_WATCHED */
    void *on_complete_context;
};

extern ompi_request_t ompi_request_send_done;
extern ompi_request_t ompi_request_recv_proc_null; /* completed receive from MPI_PROC_NULL */

/* ---- MPI_Status: MPI_internal[0..1] hold the bytes received (64 bits, as in memory), [2] the cancelled flag. ---- */

static inline void ompi_status_set_bytes(MPI_Status *status, uint64_t bytes)
{
    memcpy(&status->MPI_internal[0], &bytes, sizeof(bytes));
}
static inline uint64_t ompi_status_bytes(const MPI_Status *status)
{
    uint64_t bytes;
    memcpy(&bytes, &status->MPI_internal[0], sizeof(bytes));
    return bytes;
}
static inline void ompi_status_set_cancelled(MPI_Status *status, bool cancelled)
{
    status->MPI_internal[2] = cancelled;
}
static inline bool ompi_status_cancelled(const MPI_Status *status)
{
    return status->MPI_internal[2] != 0;
}
/* MPI_ERROR is left alone unless a multiple-completion call says otherwise (MPI-5.0 section 3.2.5). */
static inline void ompi_status_set(MPI_Status *status, int source, int tag, uint64_t bytes)
{
    status->MPI_SOURCE = source;
    status->MPI_TAG = tag;
    ompi_status_set_bytes(status, bytes);
    status->MPI_internal[2] = 0;
}
/* The empty status of MPI-5.0 section 3.7.3. */
static inline void ompi_status_set_empty(MPI_Status *status)
{
    ompi_status_set(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0);
    status->MPI_ERROR = MPI_SUCCESS;
}

static inline void ompi_request_init(ompi_request_t *request, ompi_request_type_t type,
                                     const ompi_request_ops_t *ops)
{
    ompi_handle_init(&request->base, OMPI_HANDLE_REQUEST);
    atomic_store_explicit(&request->complete, 0, memory_order_relaxed);
    request->type = (uint8_t) type;
    request->persistent = false;
    request->active = true;
    request->blocking = false;
    request->ops = ops;
    request->comm = NULL;
}

/* Its memory is given back. Few are ever asked for an integer. */
static inline void ompi_request_fini(ompi_request_t *request)
{
    if (OPAL_UNLIKELY(request->base.abi != 0)) {
        ompi_handle_fini(&request->base);
    }
}

static inline bool ompi_request_is_complete(const ompi_request_t *request)
{
    return atomic_load_explicit(&request->complete, memory_order_acquire) & OMPI_REQUEST_COMPLETE;
}

/* Set a bit of `complete`; returns the bits that were set before. `threads`: opal_progress_threads. */
static inline int32_t ompi_request_mark_if(ompi_request_t *request, int32_t bit, bool threads)
{
    bool alone = false;
    if (OPAL_UNLIKELY(threads) && !(alone = opal_alone_nest())) {
        return atomic_fetch_or_explicit(&request->complete, bit, memory_order_acq_rel);
    }
    int32_t old = atomic_load_explicit(&request->complete, memory_order_relaxed);
    atomic_store_explicit(&request->complete, old | bit, memory_order_release);
    if (alone) {
        opal_alone_unnest();
    }
    return old;
}

static inline int32_t ompi_request_mark(ompi_request_t *request, int32_t bit)
{
    return ompi_request_mark_if(request, bit, opal_progress_threads);
}

/* A request that was marked complete has a watcher, or is nobody's any more. */
void ompi_request_completed(ompi_request_t *request, int32_t before);

/* The two halves of ompi_request_complete(). After the first the request may be gone, unless what it returns says that somebody
 * is to be told by the second. `threads`: as above. */
static inline int32_t ompi_request_finish_if(ompi_request_t *request, bool threads)
{
    if (request->blocking) {
        atomic_store_explicit(&request->complete, OMPI_REQUEST_COMPLETE, memory_order_release);
        return 0;
    }
    return ompi_request_mark_if(request, OMPI_REQUEST_COMPLETE, threads);
}

static inline void ompi_request_tell(ompi_request_t *request, int32_t before)
{
    if (OPAL_UNLIKELY(before & (OMPI_REQUEST_WATCHED | OMPI_REQUEST_FREED))) {
        ompi_request_completed(request, before);
    }
}

/* Status is set; say that it is done. Tells the watcher; frees the request if the user has freed it. After this the request
 * may be gone. */
static inline void ompi_request_complete(ompi_request_t *request)
{
    ompi_request_tell(request, ompi_request_finish_if(request, opal_progress_threads));
}

/*
 * Have fn(request, context) called once when an active request completes; false: it is complete already, and fn will not be
 * called. A watched request is the watcher's alone: nobody else waits for it or frees it, and it may be freed from
 * fn on. fn runs wherever the request completes, without locks: it must be short, and neither wait nor drive progress.
 * Not for ompi_request_send_done and its like, which are shared.
 */
static inline bool ompi_request_watch(ompi_request_t *request, void (*fn)(ompi_request_t *request, void *context),
                                      void *context)
{
    request->on_complete = fn;
    request->on_complete_context = context;
    return !(ompi_request_mark(request, OMPI_REQUEST_WATCHED) & OMPI_REQUEST_COMPLETE);
}

/* Wait, copy the status unless NULL, free or deactivate; *request becomes NULL unless persistent. Returns the request's MPI error. */
int ompi_request_wait(ompi_request_t **request, MPI_Status *status);
/* All of them; the first error. */
int ompi_request_wait_all(size_t count, ompi_request_t **requests);

int ompi_request_module_init(void);
void ompi_request_module_finalize(void);

#pragma GCC visibility pop

#endif
