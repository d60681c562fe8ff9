/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contents of messages between daemons: a writer that appends and a reader that checks. Numbers are
 * little-endian, lengths 64 bits, no type tags: both sides know what comes next.
 *
 * Errors stick: after the first one a writer ignores what is appended and a reader gives zeros,
 * NULLs and empty pieces, so that a sequence of calls needs one check at its end. A reader never
 * looks beyond its bytes and never allocates more than these bytes can hold.
 */
#ifndef ORTE_UTIL_PACK_H
#define ORTE_UTIL_PACK_H

#include "opal/constants.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Writing ---- */

typedef struct orte_pack {
    uint8_t *data;
    size_t size, room;
    int rc; /* OPAL_SUCCESS or OPAL_ERR_OUT_OF_RESOURCE */
} orte_pack_t;

ORTE_DECLSPEC void orte_pack_init(orte_pack_t *pack);
/* Free the bytes, unless orte_pack_take() gave them away. */
ORTE_DECLSPEC void orte_pack_fini(orte_pack_t *pack);
/* The bytes, to be freed by the caller, and their number; NULL after an error (already cleaned up).
 * Never NULL without an error, even if nothing was appended. The writer is as new. */
ORTE_DECLSPEC uint8_t *orte_pack_take(orte_pack_t *pack, size_t *size);

ORTE_DECLSPEC void orte_pack_u8(orte_pack_t *pack, uint8_t value);
ORTE_DECLSPEC void orte_pack_u16(orte_pack_t *pack, uint16_t value);
ORTE_DECLSPEC void orte_pack_u32(orte_pack_t *pack, uint32_t value);
ORTE_DECLSPEC void orte_pack_u64(orte_pack_t *pack, uint64_t value);
ORTE_DECLSPEC void orte_pack_i32(orte_pack_t *pack, int32_t value);
ORTE_DECLSPEC void orte_pack_i64(orte_pack_t *pack, int64_t value);
ORTE_DECLSPEC void orte_pack_bool(orte_pack_t *pack, bool value);
/* With their length; `data` may be NULL if size is 0. */
ORTE_DECLSPEC void orte_pack_bytes(orte_pack_t *pack, const void *data, size_t size);
/* NULL is kept apart from "". */
ORTE_DECLSPEC void orte_pack_string(orte_pack_t *pack, const char *text);
/* A NULL-terminated vector; NULL is kept apart from an empty one. */
ORTE_DECLSPEC void orte_pack_strings(orte_pack_t *pack, char *const *texts);
/* Without a length: the rest of the message, or something whose length is known otherwise. */
ORTE_DECLSPEC void orte_pack_raw(orte_pack_t *pack, const void *data, size_t size);

/* ---- Reading ---- */

typedef struct orte_unpack {
    const uint8_t *at;
    size_t left;
    int rc; /* OPAL_SUCCESS, OPAL_ERR_TRUNCATE, OPAL_ERR_PARSE or OPAL_ERR_OUT_OF_RESOURCE */
} orte_unpack_t;

/* The bytes stay the caller's and must outlive the reader and the pieces it gave. */
ORTE_DECLSPEC void orte_unpack_init(orte_unpack_t *unpack, const void *data, size_t size);
/* No error, and nothing left: the check at the end of a message. */
ORTE_DECLSPEC bool orte_unpack_is_done(const orte_unpack_t *unpack);

ORTE_DECLSPEC uint8_t orte_unpack_u8(orte_unpack_t *unpack);
ORTE_DECLSPEC uint16_t orte_unpack_u16(orte_unpack_t *unpack);
ORTE_DECLSPEC uint32_t orte_unpack_u32(orte_unpack_t *unpack);
ORTE_DECLSPEC uint64_t orte_unpack_u64(orte_unpack_t *unpack);
ORTE_DECLSPEC int32_t orte_unpack_i32(orte_unpack_t *unpack);
ORTE_DECLSPEC int64_t orte_unpack_i64(orte_unpack_t *unpack);
/* Other bytes than 0 and 1 are OPAL_ERR_PARSE. */
ORTE_DECLSPEC bool orte_unpack_bool(orte_unpack_t *unpack);
/* A piece of the reader's bytes; NULL only after an error. */
ORTE_DECLSPEC const uint8_t *orte_unpack_bytes(orte_unpack_t *unpack, size_t *size);
/* All that is left, as one piece. */
ORTE_DECLSPEC const uint8_t *orte_unpack_rest(orte_unpack_t *unpack, size_t *size);
/* To be freed; NULL for NULL and after an error. A zero byte inside is OPAL_ERR_PARSE. */
ORTE_DECLSPEC char *orte_unpack_string(orte_unpack_t *unpack);
/* To be freed with opal_argv_free(); NULL for NULL and after an error. */
ORTE_DECLSPEC char **orte_unpack_strings(orte_unpack_t *unpack);

#endif
