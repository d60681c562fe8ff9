/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Performance variables as tools use them: sessions, and handles with a state of their own.
 *
 * A source only counts up. What a handle shows is, for classes that sum (counter, aggregate,
 * timer),
 *
 *      sum + (running ? raw - base : 0)
 *
 * where start() sets base = raw, stop() adds raw - base to the sum, and reset() sets sum = 0 and
 * base = raw. A handle of a variable that runs from the beginning starts with sum = base = 0: it
 * shows the total. For other classes a handle shows the raw value, or the one at the time of
 * stop().
 *
 * A handle of a variable about processes keeps those of its communicator, which may be freed, and
 * shows what was read last once the library has ended.
 */
#include <stdlib.h>
#include <string.h>

#include "ompi/mpi/tool/tool.h"

enum { SESSION_MAGIC = 0x50534553, HANDLE_MAGIC = 0x50564152 };

typedef union value {
    uint64_t u;
    double d;
} value_t;

_Static_assert(sizeof(value_t) == sizeof(uint64_t), "sources store either");

typedef struct handle {
    struct handle *next;    /* of the session */
    uint32_t magic;
    int index;
    bool running;
    size_t count;
    ompi_group_t *processes;    /* that its values are of; NULL: of none */
    value_t *sum, *base, *raw;
} handle_t;

typedef struct session {
    uint32_t magic;
    handle_t *handles;
} session_t;

static bool sums(const ompi_pvar_t *p)
{
    return MPI_T_PVAR_CLASS_COUNTER == p->desc.var_class
        || MPI_T_PVAR_CLASS_AGGREGATE == p->desc.var_class
           || MPI_T_PVAR_CLASS_TIMER == p->desc.var_class;
}

static session_t *session_of(MPI_T_pvar_session handle)
{
    session_t *s = (session_t *) handle;
    return s && SESSION_MAGIC == s->magic ? s : NULL;
}

/* Begin a routine about a handle of a session. */
static int enter(MPI_T_pvar_session session, MPI_T_pvar_handle handle, handle_t **found)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    const session_t *s = session_of(session);
    if (NULL == s) {
        return ompi_tool_leave(MPI_T_ERR_INVALID_SESSION);
    }
    for (handle_t *h = s->handles; h; h = h->next) {
        if ((MPI_T_pvar_handle) h == handle) {
            *found = h;
            return MPI_SUCCESS;
        }
    }
    return ompi_tool_leave(MPI_T_ERR_INVALID_HANDLE);
}

/* ---- What there is ---- */

int ompi_mpi_t_pvar_get_num(int *num_pvar)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    if (NULL == num_pvar) {
        return ompi_tool_leave(MPI_T_ERR_INVALID);
    }
    *num_pvar = ompi_pvar_count();
    return ompi_tool_leave(MPI_SUCCESS);
}

int ompi_mpi_t_pvar_get_index(const char *name, int var_class, int *pvar_index)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    if (NULL == name || NULL == pvar_index) {
        return ompi_tool_leave(MPI_T_ERR_INVALID);
    }
    for (int i = 0; i < ompi_pvar_count(); i++) {
        const ompi_pvar_t *p = ompi_pvar_get(i);
        if (0 == strcmp(p->full_name, name) && p->desc.var_class == var_class) {
            *pvar_index = i;
            return ompi_tool_leave(MPI_SUCCESS);
        }
    }
    return ompi_tool_leave(MPI_T_ERR_INVALID_NAME);
}

static void put(int *where, int value)
{
    if (where) {
        *where = value;
    }
}

int ompi_mpi_t_pvar_get_info(int pvar_index, char *name, int *name_len, int *verbosity,
                             int *var_class,
                             MPI_Datatype *datatype, MPI_T_enum *enumtype, char *desc,
                             int *desc_len, int *bind,
                             int *readonly, int *continuous, int *atomic)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    const ompi_pvar_t *p = ompi_pvar_get(pvar_index);
    if (NULL == p) {
        return ompi_tool_leave(MPI_T_ERR_INVALID_INDEX);
    }
    ompi_tool_put_text(p->full_name, name, name_len);
    ompi_tool_put_text(p->description ? p->description : p->desc.help, desc, desc_len);
    put(verbosity, ompi_tool_verbosity(p->desc.level));
    put(var_class, p->desc.var_class);
    put(bind, p->desc.of_peers ? MPI_T_BIND_MPI_COMM : MPI_T_BIND_NO_OBJECT);
    put(readonly, !sums(p)); /* sums can be reset, nothing can be written */
    put(atomic, sums(p));
    put(continuous, !p->desc.on_demand);
    if (datatype) {
        *datatype = p->desc.states ? MPI_INT : p->desc.is_double ? MPI_DOUBLE : MPI_UNSIGNED_LONG_LONG;
    }
    if (enumtype) {
        *enumtype = ompi_tool_enum_of_pvar(p);
    }
    return ompi_tool_leave(MPI_SUCCESS);
}

/* ---- Sessions and handles ---- */

int ompi_mpi_t_pvar_session_create(MPI_T_pvar_session *pe_session)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    session_t *s = pe_session ? calloc(1, sizeof(*s)) : NULL;
    if (NULL == s) {
        return ompi_tool_leave(pe_session ? MPI_T_ERR_OUT_OF_SESSIONS : MPI_T_ERR_INVALID);
    }
    s->magic = SESSION_MAGIC;
    *pe_session = (MPI_T_pvar_session) s;
    return ompi_tool_leave(MPI_SUCCESS);
}

static void free_handle(handle_t *h)
{
    free(h->sum);
    free(h->base);
    free(h->raw);
    if (h->processes) {
        ompi_group_release(h->processes);
    }
    h->magic = 0;
    free(h);
}

int ompi_mpi_t_pvar_session_free(MPI_T_pvar_session *pe_session)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    session_t *s = pe_session ? session_of(*pe_session) : NULL;
    if (NULL == s) {
        return ompi_tool_leave(MPI_T_ERR_INVALID_SESSION);
    }
    while (s->handles) {
        handle_t *h = s->handles;
        s->handles = h->next;
        free_handle(h);
    }
    s->magic = 0;
    free(s);
    *pe_session = MPI_T_PVAR_SESSION_NULL;
    return ompi_tool_leave(MPI_SUCCESS);
}

/* `processes`: NULL if the variable is about none. */
static handle_t *make_handle(int index, const ompi_pvar_t *p, ompi_group_t *processes)
{
    handle_t *h = calloc(1, sizeof(*h));
    if (NULL == h) {
        return NULL;
    }
    h->magic = HANDLE_MAGIC;
    h->index = index;
    h->count = ompi_pvar_value_count(p) * (processes ? (size_t) processes->size : 1);
    h->running = !p->desc.on_demand;
    h->processes = processes;
    if (processes) {
        ompi_group_retain(processes);
    }
    const size_t room = h->count > 0 ? h->count : 1;
    h->sum = calloc(room, sizeof(value_t));
    h->base = calloc(room, sizeof(value_t));
    h->raw = calloc(room, sizeof(value_t));
    if (NULL == h->sum || NULL == h->base || NULL == h->raw) {
        free_handle(h);
        return NULL;
    }
    return h;
}

/* The processes of the communicator to whose handle a tool points; NULL: it is none. */
static ompi_group_t *processes_of(const void *obj_handle)
{
    const ompi_communicator_t *comm = obj_handle ? ompi_comm_from_handle(*(const MPI_Comm *) obj_handle)
                                                 : NULL;
    return comm ? comm->remote_group : NULL;
}

int ompi_mpi_t_pvar_handle_alloc(MPI_T_pvar_session pe_session, int pvar_index, void *obj_handle,
                                 MPI_T_pvar_handle *handle, int *count)
{
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    session_t *s = session_of(pe_session);
    const ompi_pvar_t *p = ompi_pvar_get(pvar_index);
    if (NULL == s || NULL == p || NULL == handle || NULL == count) {
        return ompi_tool_leave(NULL == s   ? MPI_T_ERR_INVALID_SESSION
                               : NULL == p ? MPI_T_ERR_INVALID_INDEX
                                           : MPI_T_ERR_INVALID);
    }
    ompi_group_t *processes = p->desc.of_peers ? processes_of(obj_handle) : NULL;
    if (p->desc.of_peers && NULL == processes) {
        return ompi_tool_leave(MPI_T_ERR_INVALID);
    }
    handle_t *h = make_handle(pvar_index, p, processes);
    if (NULL == h) {
        return ompi_tool_leave(MPI_T_ERR_OUT_OF_HANDLES);
    }
    h->next = s->handles;
    s->handles = h;
    *handle = (MPI_T_pvar_handle) h;
    *count = (int) h->count;
    return ompi_tool_leave(MPI_SUCCESS);
}

int ompi_mpi_t_pvar_handle_free(MPI_T_pvar_session pe_session, MPI_T_pvar_handle *handle)
{
    handle_t *h;
    const int rc = enter(pe_session, handle ? *handle : MPI_T_PVAR_HANDLE_NULL, &h);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    handle_t **link = &session_of(pe_session)->handles;
    while (*link != h) {
        link = &(*link)->next;
    }
    *link = h->next;
    free_handle(h);
    *handle = MPI_T_PVAR_HANDLE_NULL;
    return ompi_tool_leave(MPI_SUCCESS);
}

/* ---- Values ---- */

/* One more reading of the source, added up as far as the class asks for it. */
static void take(handle_t *h, value_t *out)
{
    const ompi_pvar_t *p = ompi_pvar_get(h->index);
    if (h->running) {
        ompi_pvar_values(p, h->processes, h->raw, h->count);
    }
    for (size_t i = 0; i < h->count; i++) {
        if (!sums(p)) {
            out[i] = h->raw[i];
        } else if (p->desc.is_double) {
            out[i].d = h->sum[i].d + (h->running ? h->raw[i].d - h->base[i].d : 0.0);
        } else {
            out[i].u = h->sum[i].u + (h->running ? h->raw[i].u - h->base[i].u : 0);
        }
    }
}

/* Set base to the present reading. */
static void rebase(handle_t *h)
{
    ompi_pvar_values(ompi_pvar_get(h->index), h->processes, h->raw, h->count);
    memcpy(h->base, h->raw, h->count * sizeof(*h->base));
}

static int start(handle_t *h)
{
    if (!ompi_pvar_get(h->index)->desc.on_demand) {
        return MPI_T_ERR_PVAR_NO_STARTSTOP;
    }
    if (!h->running) {
        rebase(h);
        h->running = true;
    }
    return MPI_SUCCESS;
}

static int stop(handle_t *h)
{
    if (!ompi_pvar_get(h->index)->desc.on_demand) {
        return MPI_T_ERR_PVAR_NO_STARTSTOP;
    }
    if (h->running) {
        take(h, h->sum);
        h->running = false;
    }
    return MPI_SUCCESS;
}

static int reset(handle_t *h)
{
    if (!sums(ompi_pvar_get(h->index))) {
        return MPI_T_ERR_PVAR_NO_WRITE;
    }
    memset(h->sum, 0, h->count * sizeof(*h->sum));
    rebase(h);
    return MPI_SUCCESS;
}

/* An operation on one handle, or on all for which it makes sense. */
static int apply(MPI_T_pvar_session session, MPI_T_pvar_handle handle, int (*fn)(handle_t *))
{
    if (handle != MPI_T_PVAR_ALL_HANDLES) {
        handle_t *h;
        const int rc = enter(session, handle, &h);
        return MPI_SUCCESS == rc ? ompi_tool_leave(fn(h)) : rc;
    }
    const int rc = ompi_tool_enter();
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    const session_t *s = session_of(session);
    if (NULL == s) {
        return ompi_tool_leave(MPI_T_ERR_INVALID_SESSION);
    }
    for (handle_t *h = s->handles; h; h = h->next) {
        fn(h); /* continuous or read-only ones are passed over, says the standard */
    }
    return ompi_tool_leave(MPI_SUCCESS);
}

int ompi_mpi_t_pvar_start(MPI_T_pvar_session pe_session, MPI_T_pvar_handle handle)
{
    return apply(pe_session, handle, start);
}

int ompi_mpi_t_pvar_stop(MPI_T_pvar_session pe_session, MPI_T_pvar_handle handle)
{
    return apply(pe_session, handle, stop);
}

int ompi_mpi_t_pvar_reset(MPI_T_pvar_session pe_session, MPI_T_pvar_handle handle)
{
    return apply(pe_session, handle, reset);
}

static int read_handle(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf,
                       bool and_reset)
{
    handle_t *h;
    const int rc = enter(session, handle, &h);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    if (NULL == buf) {
        return ompi_tool_leave(MPI_T_ERR_INVALID);
    }
    if (and_reset && !sums(ompi_pvar_get(h->index))) {
        return ompi_tool_leave(MPI_T_ERR_PVAR_NO_ATOMIC);
    }
    if (ompi_pvar_get(h->index)->desc.states) {
        take(h, h->sum); /* which has no use of its own: states are not summed */
        for (size_t i = 0; i < h->count; i++) {
            ((int *) buf)[i] = (int) h->sum[i].u;
        }
        return ompi_tool_leave(MPI_SUCCESS);
    }
    take(h, buf);
    if (and_reset) {
        memset(h->sum, 0, h->count * sizeof(*h->sum));
        memcpy(h->base, h->raw, h->count * sizeof(*h->base)); /* nothing between the two is lost */
    }
    return ompi_tool_leave(MPI_SUCCESS);
}

int ompi_mpi_t_pvar_read(MPI_T_pvar_session pe_session, MPI_T_pvar_handle handle, void *buf)
{
    return read_handle(pe_session, handle, buf, false);
}

int ompi_mpi_t_pvar_readreset(MPI_T_pvar_session pe_session, MPI_T_pvar_handle handle, void *buf)
{
    return read_handle(pe_session, handle, buf, true);
}

int ompi_mpi_t_pvar_write(MPI_T_pvar_session pe_session, MPI_T_pvar_handle handle, const void *buf)
{
    handle_t *h;
    (void) buf;
    const int rc = enter(pe_session, handle, &h);
    return MPI_SUCCESS == rc ? ompi_tool_leave(MPI_T_ERR_PVAR_NO_WRITE) : rc;
}
