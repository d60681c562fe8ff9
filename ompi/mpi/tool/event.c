/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of the tools interface: types, the one source, registrations and their callbacks.
 *
 * Callbacks are called from progress, with none of the library's locks held, one at a time, in the order of the
 * events' times: what they have to put up with is MPI_T_CB_REQUIRE_MPI_RESTRICTED. An event is read while it is
 * handed over, and at no other time.
 */
#include <stdlib.h>
#include <string.h>

#include "ompi/info/info.h"
#include "ompi/mpi/tool/tool.h"
#include "opal/class/list.h"
#include "opal/runtime/progress.h"

enum { LEVELS = 4, SOURCES = 1, NANOSECONDS = 1000000000 };

static const MPI_T_cb_safety levels[LEVELS] = {MPI_T_CB_REQUIRE_NONE, MPI_T_CB_REQUIRE_MPI_RESTRICTED,
                                               MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE};

typedef struct callback {
    MPI_T_event_cb_function *fn;
    void *user_data;
} callback_t;

typedef struct registration {
    opal_list_item_t item;
    ompi_event_listener_t listener;
    callback_t callbacks[LEVELS];
    MPI_T_event_dropped_cb_function *dropped;
    MPI_T_event_free_cb_function *freed;
    void *freed_data;
} registration_t;

/* Those that are not freed. Under the lock of the tools interface. */
static opal_list_t registrations = OPAL_LIST_INIT(registrations);

/* What is handed over now. */
static const ompi_event_instance_t *_Atomic current;

/* ---- Beginnings of routines ---- */

static int enter_type(int index, ompi_event_type_t **type)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    *type = ompi_event_type_get(index);
    return *type ? MPI_SUCCESS : ompi_tool_leave(MPI_T_ERR_INVALID_INDEX);
}

static int enter_source(int index)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    return index >= 0 && index < SOURCES ? MPI_SUCCESS : ompi_tool_leave(MPI_T_ERR_INVALID_INDEX);
}

static int enter_registration(MPI_T_event_registration handle, registration_t **found)
{
    opal_list_item_t *i, *tmp;
    *found = NULL;
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    OPAL_LIST_FOREACH (i, tmp, &registrations) {
        registration_t *r = OPAL_CONTAINER_OF(i, registration_t, item);
        if ((MPI_T_event_registration) r == handle) {
            *found = r;
            return MPI_SUCCESS;
        }
    }
    return ompi_tool_leave(MPI_T_ERR_INVALID_HANDLE);
}

static int enter_instance(MPI_T_event_instance handle, const ompi_event_instance_t **event)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    *event = atomic_load(&current);
    return *event && (MPI_T_event_instance) (uintptr_t) *event == handle ? MPI_SUCCESS
        : ompi_tool_leave(MPI_T_ERR_INVALID_HANDLE);
}

/* The place of a level; -1: there is no such level. */
static int place_of(MPI_T_cb_safety level)
{
    for (int i = 0; i < LEVELS; i++) {
        if (levels[i] == level) {
            return i;
        }
    }
    return -1;
}

static int give_count(int value, int *count)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    if (NULL == count) {
        return ompi_tool_leave(MPI_T_ERR_INVALID);
    }
    *count = value;
    return ompi_tool_leave(MPI_SUCCESS);
}

/* There are no hints: an empty object. */
static int give_no_hints(MPI_Info *info)
{
    ompi_info_t *made = ompi_info_new();
    if (NULL == made) {
        return MPI_T_ERR_MEMORY;
    }
    *info = ompi_info_handle(made);
    return MPI_SUCCESS;
}

/* ---- Sources ---- */

int ompi_mpi_t_source_get_num(int *num_sources)
{
    return give_count(SOURCES, num_sources);
}

int ompi_mpi_t_source_get_info(int source_index, char *name, int *name_len, char *desc,
                               int *desc_len, MPI_T_source_order *ordering,
                               MPI_Count *ticks_per_second, MPI_Count *max_ticks, MPI_Info *info)
{
    int rc = enter_source(source_index);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    ompi_tool_put_text("process", name, name_len);
    ompi_tool_put_text("What this process notices of its links, its peers and their messages", desc, desc_len);
    if (ordering) {
        *ordering = MPI_T_SOURCE_ORDERED;
    }
    if (ticks_per_second) {
        *ticks_per_second = NANOSECONDS;
    }
    if (max_ticks) {
        *max_ticks = INT64_MAX;
    }
    rc = info ? give_no_hints(info) : MPI_SUCCESS;
    return ompi_tool_leave(rc);
}

int ompi_mpi_t_source_get_timestamp(int source_index, MPI_Count *timestamp)
{
    const int rc = enter_source(source_index);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    if (NULL == timestamp) {
        return ompi_tool_leave(MPI_T_ERR_INVALID);
    }
    *timestamp = (MPI_Count) opal_now_ns();
    return ompi_tool_leave(MPI_SUCCESS);
}

/* ---- Types ---- */

int ompi_mpi_t_event_get_num(int *num_events)
{
    return give_count(ompi_event_type_count(), num_events);
}

int ompi_mpi_t_event_get_index(const char *name, int *event_index)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    if (NULL == name || NULL == event_index) {
        return ompi_tool_leave(MPI_T_ERR_INVALID);
    }
    for (int i = 0; i < ompi_event_type_count(); i++) {
        if (0 == strcmp(ompi_event_type_get(i)->full_name, name)) {
            *event_index = i;
            return ompi_tool_leave(MPI_SUCCESS);
        }
    }
    return ompi_tool_leave(MPI_T_ERR_INVALID_NAME);
}

/* All elements are alike. */
static void give_elements(const ompi_event_type_t *type, MPI_Datatype datatypes[], MPI_Aint displacements[], int *room)
{
    for (int i = 0; i < type->count && i < *room; i++) {
        if (datatypes) {
            datatypes[i] = MPI_INT64_T;
        }
        if (displacements) {
            displacements[i] = (MPI_Aint) ((size_t) i * sizeof(int64_t));
        }
    }
    *room = type->count;
}

int ompi_mpi_t_event_get_info(int event_index, char *name, int *name_len, int *verbosity,
                              MPI_Datatype array_of_datatypes[], MPI_Aint array_of_displacements[],
                              int *num_elements, MPI_T_enum *enumtype, MPI_Info *info, char *desc,
                              int *desc_len, int *bind)
{
    ompi_event_type_t *type;
    int rc = enter_type(event_index, &type);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    ompi_tool_put_text(type->full_name, name, name_len);
    ompi_tool_put_text(type->desc.help, desc, desc_len);
    if (verbosity) {
        *verbosity = ompi_tool_verbosity(type->desc.level);
    }
    if (num_elements) {
        give_elements(type, array_of_datatypes, array_of_displacements, num_elements);
    }
    if (enumtype) {
        *enumtype = ompi_tool_enum_of_event(type);
    }
    if (bind) {
        *bind = MPI_T_BIND_NO_OBJECT;
    }
    rc = info ? give_no_hints(info) : MPI_SUCCESS;
    return ompi_tool_leave(rc);
}

/* ---- What listeners are told ---- */

/* The callback with the lowest level that will do here; its function is NULL if there is none. */
static callback_t choose(const registration_t *r, MPI_T_event_dropped_cb_function **dropped)
{
    callback_t chosen = {.fn = NULL};
    pthread_mutex_lock(&ompi_pvar_lock);
    for (int i = place_of(MPI_T_CB_REQUIRE_MPI_RESTRICTED); i < LEVELS && NULL == chosen.fn; i++) {
        chosen = r->callbacks[i];
    }
    *dropped = r->dropped;
    pthread_mutex_unlock(&ompi_pvar_lock);
    return chosen;
}

static void happened(ompi_event_listener_t *listener, const ompi_event_instance_t *event)
{
    registration_t *r = OPAL_CONTAINER_OF(listener, registration_t, listener);
    MPI_T_event_dropped_cb_function *dropped;
    const callback_t callback = choose(r, &dropped);
    if (callback.fn) { /* else the event is lost, says the standard */
        atomic_store(&current, event);
        callback.fn((MPI_T_event_instance) (uintptr_t) event, (MPI_T_event_registration) r,
                    MPI_T_CB_REQUIRE_MPI_RESTRICTED, callback.user_data);
        atomic_store(&current, NULL);
    }
}

static void dropped(ompi_event_listener_t *listener, uint64_t count)
{
    registration_t *r = OPAL_CONTAINER_OF(listener, registration_t, listener);
    MPI_T_event_dropped_cb_function *fn;
    const callback_t callback = choose(r, &fn);
    if (fn && callback.fn) {
        fn(count > INT64_MAX ? INT64_MAX : (MPI_Count) count, (MPI_T_event_registration) r, 0,
           MPI_T_CB_REQUIRE_MPI_RESTRICTED, callback.user_data);
    }
}

static void gone(ompi_event_listener_t *listener, bool inside)
{
    registration_t *r = OPAL_CONTAINER_OF(listener, registration_t, listener);
    if (r->freed) {
        r->freed((MPI_T_event_registration) r, inside ? MPI_T_CB_REQUIRE_MPI_RESTRICTED : MPI_T_CB_REQUIRE_NONE,
                 r->freed_data);
    }
    free(r);
}

/* ---- Registrations ---- */

int ompi_mpi_t_event_handle_alloc(int event_index, void *obj_handle, MPI_Info info,
                                  MPI_T_event_registration *event_registration)
{
    (void) obj_handle; /* no type is bound to an object */
    (void) info;       /* there are no hints */
    ompi_event_type_t *type;
    const int rc = enter_type(event_index, &type);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    registration_t *r = event_registration ? calloc(1, sizeof(*r)) : NULL;
    if (NULL == r) {
        return ompi_tool_leave(event_registration ? MPI_T_ERR_OUT_OF_HANDLES : MPI_T_ERR_INVALID);
    }
    r->listener = (ompi_event_listener_t) {.type = type, .happened = happened, .dropped = dropped, .gone = gone};
    if (OPAL_SUCCESS != ompi_event_listen(&r->listener)) {
        free(r);
        return ompi_tool_leave(MPI_T_ERR_OUT_OF_HANDLES);
    }
    opal_list_append(&registrations, &r->item);
    *event_registration = (MPI_T_event_registration) r;
    return ompi_tool_leave(MPI_SUCCESS);
}

int ompi_mpi_t_event_handle_free(MPI_T_event_registration event_registration, void *user_data,
                                 MPI_T_event_free_cb_function free_cb_function)
{
    registration_t *r;
    const int rc = enter_registration(event_registration, &r);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    opal_list_remove(&r->item);
    r->freed = free_cb_function;
    r->freed_data = user_data;
    ompi_tool_leave(MPI_SUCCESS); /* its function may call us */
    ompi_event_leave(&r->listener);
    return MPI_SUCCESS;
}

void ompi_tool_events_end(void)
{
    opal_list_item_t *i;
    while ((i = opal_list_pop(&registrations))) {
        ompi_event_leave(&OPAL_CONTAINER_OF(i, registration_t, item)->listener);
    }
}

int ompi_mpi_t_event_register_callback(MPI_T_event_registration event_registration,
                                       MPI_T_cb_safety cb_safety, MPI_Info info, void *user_data,
                                       MPI_T_event_cb_function event_cb_function)
{
    (void) info;
    registration_t *r;
    const int rc = enter_registration(event_registration, &r);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    const int place = place_of(cb_safety);
    if (place < 0) {
        return ompi_tool_leave(MPI_T_ERR_INVALID);
    }
    r->callbacks[place] = (callback_t) {.fn = event_cb_function, .user_data = user_data};
    return ompi_tool_leave(MPI_SUCCESS);
}

int ompi_mpi_t_event_set_dropped_handler(MPI_T_event_registration event_registration,
                                         MPI_T_event_dropped_cb_function dropped_cb_function)
{
    registration_t *r;
    const int rc = enter_registration(event_registration, &r);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    r->dropped = dropped_cb_function;
    return ompi_tool_leave(MPI_SUCCESS);
}

/* ---- Hints of registrations and callbacks: none ---- */

static int get_hints(MPI_T_event_registration handle, MPI_T_cb_safety level, MPI_Info *info)
{
    registration_t *r;
    const int rc = enter_registration(handle, &r);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    return ompi_tool_leave(place_of(level) >= 0 && info ? give_no_hints(info) : MPI_T_ERR_INVALID);
}

static int set_hints(MPI_T_event_registration handle, MPI_T_cb_safety level)
{
    registration_t *r;
    const int rc = enter_registration(handle, &r);
    return MPI_SUCCESS == rc ? ompi_tool_leave(place_of(level) >= 0 ? MPI_SUCCESS : MPI_T_ERR_INVALID) : rc;
}

int ompi_mpi_t_event_handle_get_info(MPI_T_event_registration event_registration,
                                     MPI_Info *info_used)
{
    return get_hints(event_registration, MPI_T_CB_REQUIRE_NONE, info_used);
}

int ompi_mpi_t_event_handle_set_info(MPI_T_event_registration event_registration, MPI_Info info)
{
    (void) info;
    return set_hints(event_registration, MPI_T_CB_REQUIRE_NONE);
}

int ompi_mpi_t_event_callback_get_info(MPI_T_event_registration event_registration,
                                       MPI_T_cb_safety cb_safety, MPI_Info *info_used)
{
    return get_hints(event_registration, cb_safety, info_used);
}

int ompi_mpi_t_event_callback_set_info(MPI_T_event_registration event_registration,
                                       MPI_T_cb_safety cb_safety, MPI_Info info)
{
    (void) info;
    return set_hints(event_registration, cb_safety);
}

/* ---- What an event says ---- */

int ompi_mpi_t_event_read(MPI_T_event_instance event_instance, int element_index, void *buffer)
{
    const ompi_event_instance_t *event;
    const int rc = enter_instance(event_instance, &event);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    if (element_index < 0 || element_index >= event->type->count) {
        return ompi_tool_leave(MPI_T_ERR_INVALID_INDEX);
    }
    if (NULL == buffer) {
        return ompi_tool_leave(MPI_T_ERR_INVALID);
    }
    memcpy(buffer, &event->values[element_index], sizeof(int64_t));
    return ompi_tool_leave(MPI_SUCCESS);
}

int ompi_mpi_t_event_copy(MPI_T_event_instance event_instance, void *buffer)
{
    const ompi_event_instance_t *event;
    const int rc = enter_instance(event_instance, &event);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    if (NULL == buffer) {
        return ompi_tool_leave(MPI_T_ERR_INVALID);
    }
    memcpy(buffer, event->values, (size_t) event->type->count * sizeof(int64_t));
    return ompi_tool_leave(MPI_SUCCESS);
}

int ompi_mpi_t_event_get_timestamp(MPI_T_event_instance event_instance, MPI_Count *event_timestamp)
{
    const ompi_event_instance_t *event;
    const int rc = enter_instance(event_instance, &event);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    if (NULL == event_timestamp) {
        return ompi_tool_leave(MPI_T_ERR_INVALID);
    }
    *event_timestamp = (MPI_Count) event->when;
    return ompi_tool_leave(MPI_SUCCESS);
}

int ompi_mpi_t_event_get_source(MPI_T_event_instance event_instance, int *source_index)
{
    const ompi_event_instance_t *event;
    const int rc = enter_instance(event_instance, &event);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    if (NULL == source_index) {
        return ompi_tool_leave(MPI_T_ERR_INVALID);
    }
    *source_index = 0;
    return ompi_tool_leave(MPI_SUCCESS);
}
