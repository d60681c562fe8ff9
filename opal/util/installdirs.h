/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the installation is now: the prefix is taken from the place of the opal library itself, so
 * that a moved tree works; HAWSER_PREFIX (then OPAL_PREFIX) in the environment overrides it. In an
 * uninstalled build tree (library found under .libs) the build tree's folders are used.
 */
#ifndef OPAL_UTIL_INSTALLDIRS_H
#define OPAL_UTIL_INSTALLDIRS_H

#include "opal/constants.h"

typedef struct opal_installdirs {
    const char *prefix, *bindir, *libdir, *includedir, *sysconfdir, *datadir, *mandir;
    const char *hawserlibdir; /* components; a colon-separated list in a build tree */
} opal_installdirs_t;

/* Valid from the first call until the process ends; thread-safe. */
OPAL_DECLSPEC const opal_installdirs_t *opal_installdirs(void);

#endif
