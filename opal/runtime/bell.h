/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bells: datagrams of one byte that wake who sleeps with its socket of the family AF_UNIX among its events. Their content means nothing.
 * Thread-safe.
 */
#ifndef OPAL_RUNTIME_BELL_H
#define OPAL_RUNTIME_BELL_H

#include <sys/socket.h>
#include <sys/un.h>

#include "opal/declspec.h"

/*
 * Ring from `socket`. 0: who sleeps there wakes; else an error's number, such as ECONNREFUSED: there is nobody. Bells that are not yet taken
 * count against the ringer's own buffer: where that is full of them it waits, up to a second, for those who were told to wake.
 */
OPAL_DECLSPEC int opal_bell_ring(int socket, const struct sockaddr_un *address, socklen_t len);

/* Take all bells that have come. */
OPAL_DECLSPEC void opal_bells_take(int socket);

#endif
