/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * grpcomm: collectives among daemons, over oob. One operation, allgather, serves PMIx fences (with
 * data) and barriers (without): each participating daemon contributes some bytes, each gets those
 * of all. Contributions are merged on their way up the tree, the result goes down to the
 * participants' subtrees; memory is that of the data.
 *
 * A collective is named by a digest and its participants. Several run at the same time. A daemon
 * that calls again with the name of one it takes part in gets the next one of that name, after the
 * first has ended; daemons must call in the same order per name only.
 *
 * A collective whose participants include a lost daemon (orte_oob_is_lost(), so one below a lost
 * daemon too) ends in every participant with OPAL_ERR_PEER_FAILED; where the loss happens while the
 * result is on its way, some may have had success before.
 *
 * Threads: the event loop's alone. The callback is never made from inside the call.
 */
#ifndef ORTE_MCA_GRPCOMM_GRPCOMM_H
#define ORTE_MCA_GRPCOMM_GRPCOMM_H

#include "opal/util/sha256.h"
#include "orte/oob/oob.h"

typedef struct orte_grpcomm orte_grpcomm_t;

typedef struct orte_grpcomm_piece {
    uint32_t from;
    const uint8_t *data;
    size_t size;
} orte_grpcomm_piece_t;

/* The pieces of all participants by ascending index, living for the call only; none if rc is not
 * OPAL_SUCCESS. OPAL_ERR_PEER_FAILED: `failed` is a participant that is lost. */
typedef void (*orte_grpcomm_done_t)(void *arg, int rc, uint32_t failed,
                                    const orte_grpcomm_piece_t *pieces, size_t count);

/* Uses ORTE_OOB_TAG_GRPCOMM of `oob`, which must outlive it. NULL: no memory. */
ORTE_DECLSPEC orte_grpcomm_t *orte_grpcomm_create(orte_oob_t *oob);
/* Unfinished collectives are forgotten; their callbacks are not called. */
ORTE_DECLSPEC void orte_grpcomm_destroy(orte_grpcomm_t *grpcomm);

/* `participants`: `count` daemons, ascending, without repeats, with this one among them; copied.
 * NULL: all daemons. `data` is copied. `name`: equal in all participants; a digest of whatever
 * makes this collective different from others, such as the processes of a fence.
 * OPAL_ERR_BAD_PARAM, OPAL_ERR_OUT_OF_RESOURCE: then there will be no callback. */
ORTE_DECLSPEC int orte_grpcomm_allgather(orte_grpcomm_t *grpcomm,
                                         const uint8_t name[OPAL_SHA256_BYTES],
                                         const uint32_t *participants, size_t count,
                                         const void *data, size_t size, orte_grpcomm_done_t done,
                                         void *arg);

/* From on_lost of `oob`: end the collectives that `index` and those below it took part in. */
ORTE_DECLSPEC void orte_grpcomm_lost(orte_grpcomm_t *grpcomm, uint32_t index);

#endif
