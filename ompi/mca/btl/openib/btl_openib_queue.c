/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a connection's receives are: in the port's shared queue, or, if the user wants that, in one of its own. A queue
 * of its own goes to another connection when this one ends, and is freed with the module: completions of receives may be
 * found long after the queue pair has gone.
 */
#include "ompi/mca/btl/openib/btl_openib.h"

#include <stdlib.h>

uint32_t btl_openib_queue_receives(void)
{
    uint32_t wanted = (uint32_t) mca_btl_openib.params.window + BTL_OPENIB_CONTROL_ROOM + COMMON_VERBS_BATCH;
    return (wanted + COMMON_VERBS_CHUNK - 1) / COMMON_VERBS_CHUNK * COMMON_VERBS_CHUNK;
}

static btl_openib_queue_t *queue_new(btl_openib_module_t *m)
{
    opal_list_item_t *item = opal_list_pop(&m->spare_queues);
    if (item) {
        return OPAL_CONTAINER_OF(item, btl_openib_queue_t, item);
    }
    btl_openib_queue_t *q = calloc(1, sizeof(*q));
    if (q) {
        opal_list_item_init(&q->item);
        common_verbs_pool_init(&q->pool, m->port->device->pd, mca_btl_openib.threads,
                               (uint32_t) (BTL_OPENIB_PREFIX + m->super.limits.max_frag), btl_openib_queue_receives());
    }
    return q;
}

bool btl_openib_queue_attach(mca_btl_endpoint_t *ep)
{
    btl_openib_module_t *m = ep->module;
    ep->queue_in = &m->received;
    ep->promised = &m->promised;
    if (m->srq) {
        return true;
    }
    btl_openib_queue_t *q = ep->own = queue_new(m);
    if (!q) {
        return false;
    }
    q->pool.qp = ep->qp;
    q->promised = 0;
    ep->queue_in = &q->pool;
    ep->promised = &q->promised;
    return true;
}

void btl_openib_queue_detach(mca_btl_endpoint_t *ep)
{
    if (ep->own) {
        common_verbs_pool_unpost(&ep->own->pool);
        opal_list_append(&ep->module->spare_queues, &ep->own->item);
        ep->own = NULL;
    }
}

bool btl_openib_queue_is_stale(const btl_openib_module_t *m, const common_verbs_pool_t *pool, uint32_t qpn)
{
    return pool != &m->greetings && pool != &m->received && (!pool->qp || pool->qp->qp_num != qpn);
}

void btl_openib_queues_free(btl_openib_module_t *m)
{
    opal_list_item_t *item;
    while ((item = opal_list_pop(&m->spare_queues))) {
        btl_openib_queue_t *q = OPAL_CONTAINER_OF(item, btl_openib_queue_t, item);
        common_verbs_pool_fini(&q->pool);
        free(q);
    }
}
