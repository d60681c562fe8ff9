/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A scratch installation for tests of parameters and components: a folder with etc/ (site files)
 * and home/ (user files), to which HAWSER_PREFIX and HOME point. */
#ifndef TEST_UNIT_OPAL_MCA_SCENE_H
#define TEST_UNIT_OPAL_MCA_SCENE_H

#include <ftw.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "opal/util/installdirs.h"
#include "support/child.h"
#include "support/tap.h"

static char scene_dir[64];

/* Without it no Hawser is there; where it is, configure has said. */
static inline int scene_make_component_dir(void *context)
{
    char command[512];
    (void) context;
    snprintf(command, sizeof(command), "mkdir -p '%s'", opal_installdirs()->hawserlibdir);
    return system(command);
}

static inline void scene_make(void)
{
    char path[128];
    child_result_t r;
    strcpy(scene_dir, "/tmp/hawser-test-XXXXXX");
    TAP_REQUIRE(NULL != mkdtemp(scene_dir), "scratch folder");
    static const char *const parts[] = {"etc", "home", "home/.hawser", "lib", "lib/hawser",
                                        "extra"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", scene_dir, parts[i]);
        mkdir(path, 0755);
    }
    setenv("HAWSER_PREFIX", scene_dir, 1);
    child_run(scene_make_component_dir, NULL, &r);
    snprintf(path, sizeof(path), "%s/home", scene_dir);
    setenv("HOME", path, 1);
}

static int scene_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void) st;
    (void) type;
    (void) ftw;
    return remove(path);
}

static inline void scene_remove(void)
{
    nftw(scene_dir, scene_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Do site files follow the prefix? Not if configure was told a place outside. To be called in a
 * child. */
static inline bool scene_has_site_files(void)
{
    return 0 == strncmp(opal_installdirs()->sysconfdir, scene_dir, strlen(scene_dir));
}

/* Write a file below the scene; NULL text removes it. */
static inline void scene_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", scene_dir, name);
    if (NULL == text) {
        unlink(path);
        return;
    }
    FILE *f = fopen(path, "w");
    if (f) {
        fputs(text, f);
        fclose(f);
    }
}

#define SCENE_SITE "etc/hawser-mca-params.conf"
#define SCENE_OVERRIDE "etc/hawser-mca-params-override.conf"
#define SCENE_USER "home/.hawser/mca-params.conf"

#endif
