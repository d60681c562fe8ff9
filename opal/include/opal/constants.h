/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Return codes of all functions below MPI. The first nine equal those of the public component header. */
#ifndef OPAL_CONSTANTS_H
#define OPAL_CONSTANTS_H

#include "hawser/component.h"

enum {
    OPAL_SUCCESS = MCA_SUCCESS,
    OPAL_ERROR = MCA_ERR, /* unspecified; already reported */
    OPAL_ERR_OUT_OF_RESOURCE = MCA_ERR_OUT_OF_RESOURCE,
    OPAL_ERR_NOT_AVAILABLE = MCA_ERR_NOT_AVAILABLE,
    OPAL_ERR_BAD_PARAM = MCA_ERR_BAD_PARAM,
    OPAL_ERR_NOT_SUPPORTED = MCA_ERR_NOT_SUPPORTED,
    OPAL_ERR_UNREACHABLE = MCA_ERR_UNREACHABLE,
    OPAL_ERR_AGAIN = MCA_ERR_AGAIN,
    OPAL_ERR_NOT_FOUND = MCA_ERR_NOT_FOUND,
    OPAL_ERR_TIMEOUT = -9,
    OPAL_ERR_TRUNCATE = -10,
    OPAL_ERR_EXISTS = -11,
    OPAL_ERR_IN_ERRNO = -12,   /* errno says what */
    OPAL_ERR_PEER_FAILED = -13,
    OPAL_ERR_PERMISSION = -14,
    OPAL_ERR_PARSE = -15,
    OPAL_ERR_VALUE_OUT_OF_BOUNDS = -16,
};

#include "opal/declspec.h"

/* A short English text for a code; never NULL. */
OPAL_DECLSPEC const char *opal_strerror(int code);

#endif
