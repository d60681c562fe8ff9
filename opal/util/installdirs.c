/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Installation directories, worked out once from the place of this library. */
#include "opal/util/installdirs.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "opal/util/output.h"

static opal_installdirs_t dirs;
static pthread_once_t dirs_once = PTHREAD_ONCE_INIT;
static bool wrong_prefix, foreign_prefix; /* HAWSER_PREFIX, OPAL_PREFIX: no Hawser is there */

static char *join(const char *a, const char *b)
{
    char *out = NULL;
    return asprintf(&out, "%s%s", a, b) < 0 ? NULL : out;
}

/* A folder of the build tree; out of memory is no reason to have none. */
static const char *under(const char *top, const char *tail)
{
    const char *out = join(top, tail);
    return out ? out : top;
}

/* What follows `prefix` in `path` ("" or "/..."), or NULL if `path` is not below it. */
static const char *below(const char *path, const char *prefix)
{
    const size_t len = strlen(prefix);
    if (0 != strncmp(path, prefix, len) || (path[len] != '\0' && path[len] != '/')) {
        return NULL;
    }
    return path + len;
}

/* A directory chosen by configure, moved along with the prefix. Those outside the prefix stay. */
static const char *moved(const char *prefix, const char *configured)
{
    const char *rest = below(configured, HAWSER_BUILDTIME_PREFIX);
    const char *out = rest ? join(prefix, rest) : configured;
    return out ? out : configured;
}

static void set_installed(const char *prefix)
{
    dirs = (opal_installdirs_t) {
        .prefix = prefix,
        .bindir = moved(prefix, HAWSER_BUILDTIME_BINDIR),
        .libdir = moved(prefix, HAWSER_BUILDTIME_LIBDIR),
        .includedir = moved(prefix, HAWSER_BUILDTIME_INCLUDEDIR),
        .sysconfdir = moved(prefix, HAWSER_BUILDTIME_SYSCONFDIR),
        .datadir = moved(prefix, HAWSER_BUILDTIME_DATADIR),
        .mandir = moved(prefix, HAWSER_BUILDTIME_MANDIR),
        .hawserlibdir = moved(prefix, HAWSER_BUILDTIME_LIBDIR "/hawser"),
    };
}

/* The .libs folders of all components of a build tree, separated by colons. */
static char *build_component_dirs(const char *top)
{
    char *pattern = join(top, "/{opal,orte,ompi}/mca/*/*/.libs");
    char *out = NULL;
    size_t size = 0;
    glob_t found;
    if (NULL == pattern) {
        return NULL;
    }
    if (0 == glob(pattern, GLOB_BRACE | GLOB_ONLYDIR, NULL, &found)) {
        FILE *stream = open_memstream(&out, &size);
        for (size_t i = 0; stream && i < found.gl_pathc; i++) {
            fprintf(stream, "%s%s", i > 0 ? ":" : "", found.gl_pathv[i]);
        }
        if (stream && 0 != fclose(stream)) {
            free(out);
            out = NULL;
        }
        globfree(&found);
    }
    free(pattern);
    return out;
}

/* `top` is the top of a build tree: nothing there is where it will be installed. Site files of an
 * installation are of no concern to it. */
static void set_build_tree(const char *top)
{
    const char *components = build_component_dirs(top);
    dirs = (opal_installdirs_t) {
        .prefix = top,
        .bindir = under(top, "/orte"),
        .libdir = under(top, "/ompi/.libs"),
        .includedir = under(top, "/ompi/include"),
        .sysconfdir = under(top, "/etc"),
        .datadir = under(top, "/share"),
        .mandir = under(top, "/docs/man"),
        .hawserlibdir = components ? components : "",
    };
}

/* The directory of this library, without symbolic links; NULL if the loader doesn't tell. */
static char *library_dir(void)
{
    Dl_info info;
    if (0 == dladdr((const void *) &dirs, &info) || NULL == info.dli_fname) {
        return NULL;
    }
    char *path = realpath(info.dli_fname, NULL);
    char *slash = path ? strrchr(path, '/') : NULL;
    if (slash) {
        *slash = '\0';
    }
    return path;
}

/* Cut `tail` off the end of `path`; false if it doesn't end so. */
static bool cut_tail(char *path, const char *tail)
{
    const size_t len = strlen(path);
    const size_t tail_len = strlen(tail);
    if (len < tail_len || 0 != strcmp(path + len - tail_len, tail)) {
        return false;
    }
    path[len - tail_len] = '\0';
    return true;
}

/* Is Hawser's folder of components below `prefix`? */
static bool is_ours(const char *prefix)
{
    const char *tail = below(HAWSER_BUILDTIME_LIBDIR "/hawser", HAWSER_BUILDTIME_PREFIX);
    char *folder = tail ? join(prefix, tail) : strdup(HAWSER_BUILDTIME_LIBDIR "/hawser");
    struct stat st;
    const bool ours = folder && 0 == stat(folder, &st) && S_ISDIR(st.st_mode);
    free(folder);
    return ours;
}

/* The prefix that the environment names, copied; NULL: none. Not for programs that run with another
 * user's rights. OPAL_PREFIX is Open MPI's as well, whose module files and wheels set it. */
static char *prefix_of_environment(void)
{
    const char *env = secure_getenv("HAWSER_PREFIX");
    if (env && *env != '\0') {
        wrong_prefix = !is_ours(env);
        return strdup(env);
    }
    env = secure_getenv("OPAL_PREFIX");
    if (NULL == env || '\0' == *env) {
        return NULL;
    }
    foreign_prefix = !is_ours(env);
    return foreign_prefix ? NULL : strdup(env);
}

static void find_dirs(void)
{
    char *prefix = prefix_of_environment();
    if (prefix) {
        set_installed(prefix);
        return;
    }

    char *dir = library_dir();
    const char *lib_tail = below(HAWSER_BUILDTIME_LIBDIR, HAWSER_BUILDTIME_PREFIX);
    if (dir && cut_tail(dir, "/opal/.libs")) {
        set_build_tree(dir);
    } else if (dir && lib_tail && cut_tail(dir, lib_tail)) {
        set_installed(dir);
    } else {
        free(dir);
        set_installed(HAWSER_BUILDTIME_PREFIX);
    }
}

const opal_installdirs_t *opal_installdirs(void)
{
    pthread_once(&dirs_once, find_dirs);
    return &dirs;
}

int opal_installdirs_check(void)
{
    opal_installdirs();
    if (wrong_prefix) {
        opal_show_help("installdirs:prefix", "HAWSER_PREFIX in the environment is %s, and no Hawser is installed there "
                       "(%s is missing).\nCorrect it, or unset it: Hawser knows by itself where it is.",
                       dirs.prefix, dirs.hawserlibdir);
        return OPAL_ERR_NOT_FOUND;
    }
    return OPAL_SUCCESS;
}

bool opal_installdirs_foreign(void)
{
    opal_installdirs();
    return foreign_prefix;
}
