/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Where in its node's hardware this process is bound. */
#include <hwloc.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "ompi/communicator/split.h"
#include "ompi/info/info.h"

#define URI "hwloc://"

/* HWLOC_OBJ_TYPE_MAX: no such type. (hwloc's own parser takes abbreviations, too.) */
static hwloc_obj_type_t type_of(const char *name)
{
    int type = HWLOC_OBJ_TYPE_MIN;
    if (strncmp(name, URI, strlen(URI)) == 0) {
        name += strlen(URI);
    }
    while (type < HWLOC_OBJ_TYPE_MAX && strcasecmp(name, hwloc_obj_type_string(type)) != 0) {
        type++;
    }
    return type;
}

/* The first object of a type that holds all processors of the set. */
static int64_t object_around(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_const_cpuset_t bound)
{
    hwloc_obj_t object = NULL;
    while (type < HWLOC_OBJ_TYPE_MAX &&
           (object = hwloc_get_next_obj_by_type(topology, type, object)) != NULL) {
        if (object->cpuset && hwloc_bitmap_isincluded(bound, object->cpuset)) {
            return object->logical_index;
        }
    }
    return OMPI_COLOR_NONE;
}

/* The node's hardware, and to which processors of it this process is bound. */
static bool look(hwloc_topology_t *topology, hwloc_cpuset_t *bound)
{
    *bound = hwloc_bitmap_alloc();
    if (!*bound || hwloc_topology_init(topology) != 0) {
        hwloc_bitmap_free(*bound);
        return false;
    }
    if (hwloc_topology_load(*topology) == 0 && hwloc_get_cpubind(*topology, *bound, HWLOC_CPUBIND_PROCESS) == 0) {
        return true;
    }
    hwloc_topology_destroy(*topology);
    hwloc_bitmap_free(*bound);
    return false;
}

static void look_away(hwloc_topology_t topology, hwloc_cpuset_t bound)
{
    hwloc_topology_destroy(topology);
    hwloc_bitmap_free(bound);
}

void ompi_comm_hardware_colors(const char *const *types, int count, int64_t *colors)
{
    hwloc_topology_t topology;
    hwloc_cpuset_t bound;
    const bool known = look(&topology, &bound);
    for (int i = 0; i < count; i++) {
        colors[i] = known ? object_around(topology, type_of(types[i]), bound) : OMPI_COLOR_NONE;
    }
    if (known) {
        look_away(topology, bound);
    }
}

int ompi_comm_hardware_info(ompi_info_t *info)
{
    hwloc_topology_t topology;
    hwloc_cpuset_t bound;
    int rc = MPI_SUCCESS;
    if (!look(&topology, &bound)) {
        return MPI_SUCCESS;
    }
    for (int type = HWLOC_OBJ_TYPE_MIN; type < HWLOC_OBJ_TYPE_MAX && rc == MPI_SUCCESS; type++) {
        const hwloc_obj_t first = hwloc_get_next_obj_by_type(topology, (hwloc_obj_type_t) type, NULL);
        char key[64];
        if (first && first->cpuset) { /* others, such as devices, restrict nobody */
            snprintf(key, sizeof key, URI "%s", hwloc_obj_type_string((hwloc_obj_type_t) type));
            rc = ompi_info_put(info, key, object_around(topology, (hwloc_obj_type_t) type, bound) != OMPI_COLOR_NONE
                                              ? "true" : "false");
        }
    }
    look_away(topology, bound);
    return rc;
}
