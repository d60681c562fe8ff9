/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Where in its node's hardware this process is bound. */
#include <hwloc.h>
#include <string.h>
#include <strings.h>

#include "ompi/communicator/split.h"

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
static int64_t object_around(hwloc_topology_t topology, const char *type_name,
                             hwloc_const_cpuset_t bound)
{
    hwloc_obj_t object = NULL;
    hwloc_obj_type_t type = type_of(type_name);
    while (type < HWLOC_OBJ_TYPE_MAX &&
           (object = hwloc_get_next_obj_by_type(topology, type, object)) != NULL) {
        if (object->cpuset && hwloc_bitmap_isincluded(bound, object->cpuset)) {
            return object->logical_index;
        }
    }
    return OMPI_COLOR_NONE;
}

void ompi_comm_hardware_colors(const char *const *types, int count, int64_t *colors)
{
    hwloc_topology_t topology;
    hwloc_cpuset_t bound = hwloc_bitmap_alloc();
    bool known = bound && hwloc_topology_init(&topology) == 0;
    bool loaded = known && hwloc_topology_load(topology) == 0 &&
                  hwloc_get_cpubind(topology, bound, HWLOC_CPUBIND_PROCESS) == 0;
    for (int i = 0; i < count; i++) {
        colors[i] = loaded ? object_around(topology, types[i], bound) : OMPI_COLOR_NONE;
    }
    if (known) {
        hwloc_topology_destroy(topology);
    }
    hwloc_bitmap_free(bound);
}
