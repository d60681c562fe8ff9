/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the installation is now: the prefix is taken from the place of the opal library itself, so
 * that a moved tree works; HAWSER_PREFIX in the environment overrides it, then OPAL_PREFIX if there
 * is a Hawser: it may as well be left by Open MPI. In an
 * uninstalled build tree (library found under .libs) the build tree's folders are used.
 */
#ifndef OPAL_UTIL_INSTALLDIRS_H
#define OPAL_UTIL_INSTALLDIRS_H

#include <stdbool.h>

#include "opal/constants.h"

typedef struct opal_installdirs {
    const char *prefix, *bindir, *libdir, *includedir, *sysconfdir, *datadir, *mandir;
    const char *hawserlibdir; /* components; a colon-separated list in a build tree */
} opal_installdirs_t;

/* Valid from the first call until the process ends; thread-safe. */
OPAL_DECLSPEC const opal_installdirs_t *opal_installdirs(void);

/* OPAL_ERR_NOT_FOUND: HAWSER_PREFIX names a place without Hawser; it was reported. */
OPAL_DECLSPEC int opal_installdirs_check(void);

/* Is there an OPAL_PREFIX that names a place without Hawser, and has no effect? */
OPAL_DECLSPEC bool opal_installdirs_foreign(void);

#endif
