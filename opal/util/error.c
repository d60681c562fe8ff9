/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Texts of the return codes. */
#include "opal/constants.h"

const char *opal_strerror(int code)
{
    switch (code) {
    case OPAL_SUCCESS: return "success";
    case OPAL_ERROR: return "error";
    case OPAL_ERR_OUT_OF_RESOURCE: return "out of memory or another resource";
    case OPAL_ERR_NOT_AVAILABLE: return "not available";
    case OPAL_ERR_BAD_PARAM: return "bad parameter";
    case OPAL_ERR_NOT_SUPPORTED: return "not supported";
    case OPAL_ERR_UNREACHABLE: return "unreachable";
    case OPAL_ERR_AGAIN: return "no room now";
    case OPAL_ERR_NOT_FOUND: return "not found";
    case OPAL_ERR_TIMEOUT: return "timed out";
    case OPAL_ERR_TRUNCATE: return "truncated";
    case OPAL_ERR_EXISTS: return "exists already";
    case OPAL_ERR_IN_ERRNO: return "system error";
    case OPAL_ERR_PEER_FAILED: return "peer failed";
    case OPAL_ERR_PERMISSION: return "permission denied";
    case OPAL_ERR_PARSE: return "can't be parsed";
    case OPAL_ERR_VALUE_OUT_OF_BOUNDS: return "value out of bounds";
    default: return "unknown error code";
    }
}
