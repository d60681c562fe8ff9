/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* What hwloc and the control groups say of this host. */
#include "orte/runtime/topology.h"

#include "opal/constants.h"
#include "orte/util/report.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

int orte_topology_discover(orte_node_t *node)
{
    hwloc_bitmap_t bound = hwloc_bitmap_alloc();

    if (node->topo != NULL) {
        hwloc_bitmap_free(bound);
        return OPAL_SUCCESS;
    }
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
    return OPAL_SUCCESS;
}

int orte_topology_text(const orte_node_t *node, char **text, int *size)
{
    if (hwloc_topology_export_xmlbuffer(node->topo, text, size, 0) != 0) {
        orte_report("can't describe the topology of host %s: %s", node->name, strerror(errno));
        return OPAL_ERR_IN_ERRNO;
    }
    return OPAL_SUCCESS;
}

void orte_topology_text_free(const orte_node_t *node, char *text)
{
    hwloc_free_xmlbuffer(node->topo, text);
}

/* Host names, boot times and memory in use, which differ between machines of one kind, stand in
 * lines of their own; nothing that a mapper looks at does. */
static bool is_machine_line(const char *line, size_t length)
{
    static const char *const marks[] = {"<info name=", "<page_type ", "local_memory="};

    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        if (memmem(line, length, marks[i], strlen(marks[i])) != NULL) {
            return true;
        }
    }
    return false;
}

int orte_topology_digest(const orte_node_t *node, uint8_t digest[OPAL_SHA256_BYTES])
{
    opal_sha256_t hash;
    char *text;
    int size;
    int rc = orte_topology_text(node, &text, &size);

    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    opal_sha256_init(&hash);
    for (const char *line = text, *end = text + size; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t length = (size_t)((stop == NULL ? end : stop + 1) - line);
        if (!is_machine_line(line, length)) {
            opal_sha256_update(&hash, line, length);
        }
        line += length;
    }
    opal_sha256_final(&hash, digest);
    orte_topology_text_free(node, text);
    return OPAL_SUCCESS;
}

hwloc_topology_t orte_topology_parse(const char *text, size_t size)
{
    hwloc_topology_t topo;

    /* As exported, the text ends with a zero byte, and hwloc reads up to there. */
    if (size == 0 || size > INT_MAX || text[size - 1] != '\0' || init_without_plugins(&topo) != 0) {
        return NULL;
    }
    if (hwloc_topology_set_xmlbuffer(topo, text, (int)size) != 0 ||
        hwloc_topology_load(topo) != 0) {
        hwloc_topology_destroy(topo);
        return NULL;
    }
    return topo;
}

/* Numbers with one '-' or ',' between them. A made-up number must not allocate a bitmap of its size:
 * six digits are enough. */
static bool is_cpu_list(const char *text)
{
    for (;;) {
        size_t digits = strspn(text, "0123456789");
        if (digits == 0 || digits > 6) {
            return false;
        }
        text += digits;
        if (*text == '\0') {
            return true;
        }
        if (*text != '-' && *text != ',') {
            return false;
        }
        text++;
    }
}

hwloc_bitmap_t orte_topology_parse_cpus(const char *text)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();

    if (set == NULL || !is_cpu_list(text) || hwloc_bitmap_list_sscanf(set, text) != 0 ||
        hwloc_bitmap_weight(set) < 1) {
        hwloc_bitmap_free(set);
        return NULL;
    }
    return set;
}
