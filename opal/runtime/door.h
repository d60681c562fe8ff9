/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process's doorbell for other processes of its node: whoever has published something in shared memory and finds that
 * its reader sleeps rings. It ends the sleep of the progress engine, no more. A datagram socket with an abstract name:
 * nothing on disk, gone with its process, the name never used again.
 *
 * A sleeper says so in shared memory from its poller's arm(), before the engine's fence; a ringer publishes, then looks.
 */
#ifndef OPAL_RUNTIME_DOOR_H
#define OPAL_RUNTIME_DOOR_H

#include <stdint.h>
#include "opal/constants.h"

/* Where to ring; stands in shared memory. Zero: nowhere. */
typedef struct opal_door_id {
    uint64_t word[2];
} opal_door_id_t;

/* Make this process's doorbell, if it has none yet. Any thread. */
OPAL_DECLSPEC int opal_door_open(opal_door_id_t *own);
/* Ring another process's; whoever is gone hears nothing. Needs an open doorbell of one's own. */
OPAL_DECLSPEC void opal_door_ring(opal_door_id_t id);
/* Part of the progress engine's end. */
void opal_door_close(void);

#endif
