/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Loading libibverbs. See common_verbs_lib.h. */
#include "ompi/mca/common/verbs/common_verbs_lib.h"

#include <dirent.h>
#include <stddef.h>
#include <string.h>

#include "ompi/mca/btl/base/btl_base_load.h"

common_verbs_lib_t common_verbs_lib;

static const mca_btl_load_entry_t table[] = {
#define ENTRY(name) {"ibv_" #name, offsetof(common_verbs_lib_t, name)},
    COMMON_VERBS_FUNCTIONS(ENTRY)
#undef ENTRY
    {"_ibv_query_gid_ex", offsetof(common_verbs_lib_t, query_gid_ex)},
};

/* The library looks there, too. */
bool common_verbs_lib_wanted(void)
{
    DIR *dir = opendir("/sys/class/infiniband_verbs");
    bool found = common_verbs_lib.get_device_list != NULL;
    for (struct dirent *e; dir && !found && (e = readdir(dir));) {
        found = strncmp(e->d_name, "uverbs", strlen("uverbs")) == 0;
    }
    if (dir) {
        closedir(dir);
    }
    return found;
}

const char *common_verbs_lib_load(void)
{
    if (common_verbs_lib.get_device_list) {
        return NULL;
    }
    return mca_btl_load("libibverbs.so.1", table, sizeof(table) / sizeof(table[0]), &common_verbs_lib);
}
