/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The allocation that consists of this host. */
#include "orte/mca/ras/ras.h"

#include "opal/constants.h"
#include "opal/util/argv.h"
#include "orte/mca/rmaps/rmaps.h"
#include "orte/util/report.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Number after `text`, at least 1, up to the end of the word; false if it is none. */
static bool parse_slots(const char *text, int *slots)
{
    char *end;
    long number = strtol(text, &end, 10);

    if (end == text || *end != '\0' || number < 1 || number > INT_MAX) {
        return false;
    }
    *slots = (int)number;
    return true;
}

static bool is_this_host(const orte_runtime_t *rt, const char *name, size_t length)
{
    static const char *const aliases[] = {"localhost", "127.0.0.1", "[::1]",
                                          "localhost.localdomain"};
    size_t short_length = strcspn(rt->hostname, ".");

    for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
        if (strlen(aliases[i]) == length && strncasecmp(aliases[i], name, length) == 0) {
            return true;
        }
    }
    /* Our name as given, its first part, or a longer form of it; no name service is asked. */
    return (strlen(rt->hostname) == length && strncasecmp(rt->hostname, name, length) == 0) ||
           (strcspn(name, ".:") == short_length &&
            strncasecmp(rt->hostname, name, short_length) == 0);
}

/* Slots that --host and --hostfile give this host; 0: not said. */
static int requested_slots(const orte_runtime_t *rt, int *slots)
{
    int mentions = 0, sum = 0;

    for (char **host = rt->opt.hosts; host != NULL && *host != NULL; host++) {
        const char *colon = strrchr(*host, ':');
        bool has_slots = colon != NULL && strchr(colon, ']') == NULL;
        size_t length = has_slots ? (size_t)(colon - *host) : strlen(*host);
        int given = 0;
        if (!is_this_host(rt, *host, length)) {
            orte_report("host '%.*s' is not this host (%s): jobs over several hosts are not "
                        "supported by this version; use localhost", (int)length, *host,
                        rt->hostname);
            return OPAL_ERR_NOT_SUPPORTED;
        }
        if (has_slots && !parse_slots(colon + 1, &given)) {
            orte_report("host '%s': the number of slots after ':' must be at least 1", *host);
            return OPAL_ERR_BAD_PARAM;
        }
        mentions++;
        sum += has_slots ? given : 0;
    }
    /* A host named several times without numbers has as many slots as it was named. */
    *slots = sum > 0 ? sum : mentions > 1 ? mentions : 0;
    return OPAL_SUCCESS;
}

/* hwloc's plug-ins look for devices and pull in graphics and accelerator libraries, up to 10 ms
 * of work for nothing that is asked here. They are looked for on the first use of hwloc in a
 * process. */
static int init_without_plugins(hwloc_topology_t *topo)
{
    static const char variable[] = "HWLOC_PLUGINS_PATH";
    bool ours = getenv(variable) == NULL && setenv(variable, "/dev/null", 0) == 0;
    int rc = hwloc_topology_init(topo);

    if (ours) {
        unsetenv(variable);
    }
    return rc;
}

static hwloc_topology_t load_topology(void)
{
    hwloc_topology_t topo;

    if (init_without_plugins(&topo) != 0) {
        return NULL;
    }
    /* Where the kernel tells all, nothing is gained by visiting every cpu to ask it directly,
     * and on a busy machine each visit waits for its turn. */
    if (access("/sys/devices/system/cpu/cpu0/topology", F_OK) == 0) {
        hwloc_topology_set_components(topo, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
    }
    /* Devices are of no use here, and looking for them takes longer than all the rest. */
    hwloc_topology_set_io_types_filter(topo, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (hwloc_topology_load(topo) != 0) {
        hwloc_topology_destroy(topo);
        return NULL;
    }
    return topo;
}

/* Cut the allowed cpus to --cpu-set: numbers of cores, or of hardware threads if these are cpus. */
static int apply_cpu_set(orte_node_t *node, const orte_placement_t *placement)
{
    hwloc_bitmap_t wanted = hwloc_bitmap_alloc(), chosen = hwloc_bitmap_alloc();
    hwloc_obj_type_t type = placement->hwthread_cpus ? HWLOC_OBJ_PU : HWLOC_OBJ_CORE;
    int rc = OPAL_SUCCESS;
    int id;

    if (hwloc_get_nbobjs_by_type(node->topo, type) < 1) {
        type = HWLOC_OBJ_PU;
    }
    if (wanted == NULL || chosen == NULL) {
        rc = OPAL_ERR_OUT_OF_RESOURCE;
    } else if (hwloc_bitmap_list_sscanf(wanted, placement->cpu_set) != 0 ||
               hwloc_bitmap_weight(wanted) < 1) {
        orte_report("--cpu-set %s: expected numbers of cpus, like 0-3,8", placement->cpu_set);
        rc = OPAL_ERR_BAD_PARAM;
    } else {
        hwloc_bitmap_foreach_begin(id, wanted) {
            hwloc_obj_t object = hwloc_get_obj_by_type(node->topo, type, (unsigned)id);
            if (object != NULL) {
                hwloc_bitmap_or(chosen, chosen, object->cpuset);
            }
        } hwloc_bitmap_foreach_end();
        hwloc_bitmap_and(node->allowed, node->allowed, chosen);
        if (hwloc_bitmap_iszero(node->allowed)) {
            orte_report("--cpu-set %s: none of these cpus exists and may be used here",
                        placement->cpu_set);
            rc = OPAL_ERR_BAD_PARAM;
        }
    }
    hwloc_bitmap_free(wanted);
    hwloc_bitmap_free(chosen);
    return rc;
}

/* Path of our control group below `controller` ("" in version 2), from /proc/self/cgroup. */
static bool own_cgroup(const char *controller, char *path, size_t size)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[PATH_MAX];
    bool found = false;

    while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL) {
        char *names = strchr(line, ':');
        char *where = names == NULL ? NULL : strchr(names + 1, ':');
        if (where == NULL) {
            continue;
        }
        *where++ = '\0';
        where[strcspn(where, "\n")] = '\0';
        found = controller[0] == '\0' ? names[1] == '\0' : strstr(names + 1, controller) != NULL;
        if (found) {
            snprintf(path, size, "%s", where);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* cpu.max of one group: "QUOTA PERIOD" or "max PERIOD". 0: no limit. */
static int quota_cpus(const char *group)
{
    char path[PATH_MAX + 64];
    long quota, period;
    int cpus = 0;

    snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", group);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    if (fscanf(file, "%ld %ld", &quota, &period) == 2 && quota > 0 && period > 0) {
        cpus = (int)((quota + period - 1) / period);
    }
    fclose(file);
    return cpus;
}

/* The tightest cpu time limit of our control group and all around it, in cpus; 0: none. */
static int cgroup_cpu_limit(void)
{
    char group[PATH_MAX];
    int limit = 0;

    if (!own_cgroup("", group, sizeof(group))) {
        return 0;
    }
    for (;;) {
        int cpus = quota_cpus(strcmp(group, "/") == 0 ? "" : group);
        if (cpus > 0 && (limit == 0 || cpus < limit)) {
            limit = cpus;
        }
        char *slash = strrchr(group, '/');
        if (slash == NULL) {
            return limit;
        }
        *slash = '\0';
    }
}

static int describe_cpus(orte_node_t *node, const orte_placement_t *placement)
{
    hwloc_bitmap_t bound = hwloc_bitmap_alloc();

    node->topo = load_topology();
    if (node->topo == NULL || bound == NULL) {
        orte_report("can't find out the topology of this machine (hwloc): %s", strerror(errno));
        hwloc_bitmap_free(bound);
        return OPAL_ERR_NOT_AVAILABLE;
    }
    node->allowed = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(node->topo));
    if (node->allowed != NULL &&
        hwloc_get_cpubind(node->topo, bound, HWLOC_CPUBIND_PROCESS) == 0 &&
        hwloc_bitmap_intersects(node->allowed, bound)) {
        hwloc_bitmap_and(node->allowed, node->allowed, bound);
    }
    hwloc_bitmap_free(bound);
    if (node->allowed == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    node->cpu_limit = cgroup_cpu_limit();
    return placement->cpu_set == NULL ? OPAL_SUCCESS : apply_cpu_set(node, placement);
}

int orte_ras_allocate(orte_runtime_t *rt, const orte_placement_t *placement)
{
    int slots;
    int rc = requested_slots(rt, &slots);

    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    orte_node_t *node = orte_node_create(rt->hostname, 0);
    rt->nodes = calloc(1, sizeof(orte_node_t *));
    if (node == NULL || rt->nodes == NULL) {
        orte_node_destroy(node);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    rt->nodes[rt->nnodes++] = node;
    node->local = true;
    rc = describe_cpus(node, placement);
    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    node->slots = slots > 0 ? slots : orte_rmaps_count_cpus(node, placement->hwthread_cpus);
    if (rt->opt.display_allocation) {
        printf("Allocation:\n  %s: %d slot%s, %d cpu%s may be used\n", node->name, node->slots,
               node->slots == 1 ? "" : "s", orte_rmaps_count_cpus(node, placement->hwthread_cpus),
               orte_rmaps_count_cpus(node, placement->hwthread_cpus) == 1 ? "" : "s");
        fflush(stdout);
    }
    return OPAL_SUCCESS;
}
