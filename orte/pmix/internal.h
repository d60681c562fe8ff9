/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What the PMIx server's source files share. */
#ifndef ORTE_PMIX_INTERNAL_H
#define ORTE_PMIX_INTERNAL_H

#include "orte/oob/oob.h"
#include "orte/pmix/server.h"

#include <pmix.h>
#include <pmix_server.h>

typedef struct orte_pmix_server {
    orte_runtime_t *rt;
} orte_pmix_server_t;

/* The server of this process: libpmix hands its callbacks no context. NULL before start. */
extern orte_pmix_server_t *orte_pmix_self;

/* The process a callback speaks of, or NULL. Event loop's thread only. */
orte_proc_t *orte_pmix_find_proc(const pmix_proc_t *id);
/* Post a task to the event loop; a PMIx status. */
pmix_status_t orte_pmix_post(void (*task)(void *), void *arg);

/* What libpmix says goes through us, to standard error: before and after it is started. */
void orte_pmix_output_redirect(orte_runtime_t *rt);
void orte_pmix_output_redirected(void);

/* Answers to clients. libpmix 4 writes some of them to the client from whatever thread calls back, while its
 * own may be writing there: then one of both is lost, and the client waits for ever. These make its own
 * thread call back. The data, made by PMIX_PDATA_CREATE with this much room, is taken. */
void orte_pmix_answer_op(pmix_op_cbfunc_t cbfunc, pmix_status_t status, void *cbdata);
void orte_pmix_answer_info(pmix_info_cbfunc_t cbfunc, pmix_status_t status, void *cbdata);
void orte_pmix_answer_lookup(pmix_lookup_cbfunc_t cbfunc, pmix_status_t status, pmix_pdata_t *data,
                             size_t ndata, size_t room, void *cbdata);

/* Requests of others' servers (remote.c): callbacks of the server module. */
pmix_status_t orte_pmix_fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                              size_t ninfo, char *data, size_t ndata, pmix_modex_cbfunc_t cbfunc,
                              void *cbdata);
pmix_status_t orte_pmix_connect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t orte_pmix_disconnect(const pmix_proc_t procs[], size_t nprocs,
                                   const pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t cbfunc,
                                   void *cbdata);
pmix_status_t orte_pmix_direct_modex(const pmix_proc_t *id, const pmix_info_t info[], size_t ninfo,
                                     pmix_modex_cbfunc_t cbfunc, void *cbdata);
/* Ask a daemon; the reply comes exactly once, with PMIX_ERR_UNREACH if it is lost. The data is
 * copied; that of the reply lives for the call. */
typedef void (*orte_pmix_reply_t)(void *arg, pmix_status_t status, const void *data, size_t size);
void orte_pmix_ask(uint32_t daemon, uint16_t tag, int number, const void *data, size_t size,
                   orte_pmix_reply_t reply, void *arg);
void orte_pmix_answer(uint32_t daemon, uint16_t tag, uint64_t id, pmix_status_t status,
                      const void *data, size_t size);

/* A DATA message, in mpirun. */
void orte_pmix_take_data(void *arg, orte_oob_message_t *message);
/* libpmix's own packing, of values that have many types. The number of things packed comes first; more
 * than there are bytes is no number. Unpacked into `items` with room for all; false: it makes no
 * sense. */
void orte_pmix_pack(orte_pack_t *pack, const void *items, size_t count, pmix_data_type_t type);
uint32_t orte_pmix_unpack_count(orte_unpack_t *unpack, const uint8_t **data, size_t *size);
bool orte_pmix_unpack(const uint8_t *data, size_t size, void *items, uint32_t count,
                      pmix_data_type_t type);

/* The processes of a job are gone, and what they published and look for with them. */
void orte_pmix_forget_names(const char *nspace);
/* A SPAWN message, in mpirun. */
void orte_pmix_take_spawn(void *arg, orte_oob_message_t *message);
/* A process asks for a job (spawn.c): callback of the server module. */
pmix_status_t orte_pmix_spawn(const pmix_proc_t *proc, const pmix_info_t infos[], size_t ninfos,
                              const pmix_app_t apps[], size_t napps, pmix_spawn_cbfunc_t cbfunc,
                              void *cbdata);
/* ORTE_PMIX_PART, and nothing else yet. */
pmix_status_t orte_pmix_job_control(const pmix_proc_t *proc, const pmix_proc_t targets[],
                                    size_t ntargets, const pmix_info_t infos[], size_t ninfos,
                                    pmix_info_cbfunc_t cbfunc, void *cbdata);
/* In mpirun: publish a text in the name of a process, in place of any of that key. */
void orte_pmix_publish_text(const pmix_proc_t *owner, const char *key, const char *text);
/* Names published by processes (data.c): callbacks of the server module. */
pmix_status_t orte_pmix_publish(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                                pmix_op_cbfunc_t cbfunc, void *cbdata);
pmix_status_t orte_pmix_lookup(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                               size_t ninfo, pmix_lookup_cbfunc_t cbfunc, void *cbdata);
pmix_status_t orte_pmix_unpublish(const pmix_proc_t *proc, char **keys, const pmix_info_t info[],
                                  size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata);

#endif
