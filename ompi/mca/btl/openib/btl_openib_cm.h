/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * HELLOs by rdma_cm, where the user prefers that to datagrams of our own: a request of its service for datagrams (SIDR)
 * takes one there, the reply brings one back. rdma_cm finds the address by the system's routes, and passes where only
 * its own messages may. What the HELLOs say, and when they are sent, is the same.
 *
 * A port's listener is at its IP address, with a port number that the process publishes. One request of an endpoint is under
 * way at a time; who greets again begins a new one. Everything here is done by the polling thread.
 */
#ifndef BTL_OPENIB_CM_H
#define BTL_OPENIB_CM_H

#include "ompi/mca/btl/openib/btl_openib.h"

#ifdef HAWSER_HAVE_RDMACM
#include <rdma/rdma_cma.h>

#define BTL_OPENIB_CM_FUNCTIONS(F) \
    F(accept) F(ack_cm_event) F(bind_addr) F(connect) F(create_event_channel) F(create_id) F(destroy_event_channel) \
    F(destroy_id) F(get_cm_event) F(get_src_port) F(listen) F(reject) F(resolve_addr) F(resolve_route)

typedef struct btl_openib_cm_lib {
#define MEMBER(name) __typeof__(rdma_##name) *name;
    BTL_OPENIB_CM_FUNCTIONS(MEMBER)
#undef MEMBER
} btl_openib_cm_lib_t;

extern btl_openib_cm_lib_t btl_openib_cm_lib;
#endif

/* A port's listener; its number goes into the port's address. NULL, or why there is none. */
const char *btl_openib_cm_open(btl_openib_module_t *module);
void btl_openib_cm_close(btl_openib_module_t *module);
/* Under the lock. */
void btl_openib_cm_greet(mca_btl_endpoint_t *ep);
/* The endpoint's request, if one is under way, ends; under the lock. */
void btl_openib_cm_forget(mca_btl_endpoint_t *ep);

#endif
