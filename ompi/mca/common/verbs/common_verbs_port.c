/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Devices and ports: which are there, which are used, and what happens to them. */
#include "ompi/mca/common/verbs/common_verbs.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ompi/mca/common/verbs/common_verbs_gid.h"

enum { ROCE_PRIORITY_MAX = 7 };

/* ---- What the user wants ---- */

/* Does a comma-separated list name the device, or its port? */
static bool is_listed(const char *list, const char *device, unsigned port)
{
    char name[COMMON_VERBS_NAME_MAX + 8];
    snprintf(name, sizeof(name), "%s:%u", device, port);
    for (const char *at = list; at && *at;) {
        size_t len = strcspn(at, ",");
        if ((len == strlen(device) && strncmp(at, device, len) == 0) ||
            (len == strlen(name) && strncmp(at, name, len) == 0)) {
            return true;
        }
        at += len + (at[len] == ',');
    }
    return false;
}

/* Is there anything in it but CIDR blocks, which are about addresses? */
static bool has_names(const char *list)
{
    for (const char *at = list; at && *at;) {
        size_t len = strcspn(at, ",");
        if (len > 0 && !memchr(at, '/', len)) {
            return true;
        }
        at += len + (at[len] == ',');
    }
    return false;
}

static const char *unwanted(const common_verbs_params_t *w, const char *device, unsigned port)
{
    if (has_names(w->if_include) && !is_listed(w->if_include, device, port)) {
        return "not in if_include";
    }
    return is_listed(w->if_exclude, device, port) ? "in if_exclude" : NULL;
}

/* ---- What a port is like ---- */

/* Bytes/s, from lanes and their speed as the port tells them. */
static uint64_t port_bandwidth(const struct ibv_port_attr *attr)
{
    static const uint32_t mbps[] = {2500, 5000, 10000, 10000, 14000, 25000, 50000, 100000};
    static const unsigned widths[] = {1, 4, 8, 12, 2};
    unsigned lanes = 1;
    for (unsigned i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        lanes = attr->active_width == 1u << i ? widths[i] : lanes;
    }
    for (unsigned i = 0; i < sizeof(mbps) / sizeof(mbps[0]); i++) {
        if (attr->active_speed == 1u << i) {
            return (uint64_t) mbps[i] * lanes * 125000;
        }
    }
    return (uint64_t) mbps[0] * lanes * 125000;
}

unsigned common_verbs_mtu_bytes(unsigned mtu)
{
    return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

/* What the subnet's manager gives a port, maybe another one each time, and how long packets may be. */
static void note_attr(common_verbs_port_t *p, const struct ibv_port_attr *attr)
{
    p->addr.mtu = (uint8_t) attr->active_mtu;
    p->addr.lid = p->ethernet ? 0 : attr->lid;
    p->addr.lmc = p->ethernet ? 0 : attr->lmc;
}

static int query_port(const common_verbs_port_t *p, struct ibv_port_attr *attr)
{
    memset(attr, 0, sizeof(*attr));
    return common_verbs_lib.query_port(p->device->context, p->number, (struct _compat_ibv_port_attr *) attr);
}

/* The key at a place of the port's table; 0: there is none. */
static uint16_t pkey_at(const common_verbs_port_t *p, unsigned index)
{
    __be16 key;
    int rc = common_verbs_lib.query_pkey(p->device->context, p->number, (int) index, &key);
    return rc == 0 && (be16toh(key) & COMMON_VERBS_PARTITION) ? be16toh(key) : 0;
}

static bool same_partition(uint16_t a, uint16_t b)
{
    return ((a ^ b) & COMMON_VERBS_PARTITION) == 0;
}

static bool is_in_partition(const common_verbs_port_t *p)
{
    return p->addr.pkey == 0 || same_partition(pkey_at(p, p->pkey_index), p->addr.pkey);
}

/* Of `count` partitions. NULL, with the port's filled in, or why it has none. */
static const char *choose_partition(common_verbs_port_t *p, uint16_t wanted, unsigned count)
{
    p->pkey_index = 0;
    p->addr.pkey = wanted == 0 ? pkey_at(p, 0) : 0;
    for (unsigned i = 0; wanted != 0 && i < count; i++) {
        uint16_t key = pkey_at(p, i);
        if (same_partition(key, wanted) && key > p->addr.pkey) { /* the key of a full member is the larger one */
            p->pkey_index = (uint16_t) i;
            p->addr.pkey = key;
        }
    }
    return wanted != 0 && p->addr.pkey == 0 ? "it is in no partition with the key in pkey" : NULL;
}

/* NULL, with what its frames are to have in them for the switches filled in, or why they can't. */
static const char *choose_quality(common_verbs_port_t *p, const common_verbs_params_t *w)
{
    p->service_level = (uint8_t) w->service_level;
    p->traffic_class = (uint8_t) w->traffic_class;
    return p->ethernet && p->service_level > ROCE_PRIORITY_MAX
               ? "RoCE has the service levels (priorities) 0 to 7 alone (service_level)" : NULL;
}

/* ---- Events ---- */

/* The port is active: its number may be another one, where peers will not find it before they are told, and so, on Ethernet, may the
 * index of its address, which comes and goes with the interface's. Its queue pairs stay with their place in the table of partitions. */
static void port_active(common_verbs_t *v, common_verbs_port_t *p, bool came_up)
{
    static const char *const lost[] = {"its address has gone", "its address has gone", "its partition has gone"},
                      *const back[] = {"its address is back", "its address is back", "its partition is back"};
    struct ibv_port_attr attr;
    if (query_port(p, &attr) != 0 || attr.state != IBV_PORT_ACTIVE) {
        return;
    }
    uint16_t lid = p->addr.lid;
    note_attr(p, &attr);
    int index = p->ethernet ? common_verbs_gid_find(p) : p->gid_index;
    common_verbs_lack_t lack = index < 0             ? COMMON_VERBS_NO_ADDRESS
                               : is_in_partition(p) ? COMMON_VERBS_NO_LACK
                                                    : COMMON_VERBS_NO_PARTITION;
    bool moved = p->addr.lid != lid, same = index == p->gid_index && !lack && !p->lack && !moved;
    if (!same && !p->lack) {
        v->wanted.changed(p, false, moved ? "it has another LID" : lost[lack]);
    }
    if (!lack && (!same || came_up)) {
        p->gid_index = (uint8_t) index;
        v->wanted.changed(p, true, came_up ? "the port is up" : moved ? "it has another LID" : back[p->lack]);
    }
    p->lack = lack;
}

static bool is_of_port(const struct ibv_async_event *e)
{
    return e->event_type == IBV_EVENT_PORT_ERR || e->event_type == IBV_EVENT_PORT_ACTIVE ||
           e->event_type == IBV_EVENT_DEVICE_FATAL || e->event_type == IBV_EVENT_LID_CHANGE ||
           e->event_type == IBV_EVENT_CLIENT_REREGISTER || e->event_type == IBV_EVENT_GID_CHANGE ||
           e->event_type == IBV_EVENT_PKEY_CHANGE;
}

static void port_event(common_verbs_t *v, const common_verbs_device_t *d, const struct ibv_async_event *e)
{
    for (unsigned i = 0; i < v->count; i++) {
        common_verbs_port_t *p = &v->port[i];
        if (p->device != d) {
            continue;
        }
        if (e->event_type == IBV_EVENT_DEVICE_FATAL) {
            v->wanted.changed(p, false, "the device has failed");
        } else if (e->element.port_num == p->number && e->event_type == IBV_EVENT_PORT_ERR) {
            v->wanted.changed(p, false, "the port is down");
        } else if (e->element.port_num == p->number) {
            port_active(v, p, e->event_type == IBV_EVENT_PORT_ACTIVE);
        }
    }
}

static void async_ready(int fd, unsigned what, void *context)
{
    common_verbs_t *v = context;
    struct ibv_async_event e;
    (void) what;
    for (unsigned i = 0; i < v->device_count; i++) {
        common_verbs_device_t *d = &v->device[i];
        while (d->context->async_fd == fd && common_verbs_lib.get_async_event(d->context, &e) == 0) {
            bool of_port = is_of_port(&e);
            struct ibv_async_event copy = e;
            common_verbs_lib.ack_async_event(&e);
            if (of_port) {
                port_event(v, d, &copy);
            } else if (v->wanted.event) {
                v->wanted.event(d, &copy);
            }
        }
    }
}

/* ---- Devices ---- */

static int device_start(common_verbs_t *v, common_verbs_device_t *d)
{
    int fd = d->context->async_fd;
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    return v->services->event_add(fd, MCA_BTL_EVENT_READ | MCA_BTL_EVENT_LATE, async_ready, v, &d->event);
}

static void device_close(common_verbs_t *v, common_verbs_device_t *d)
{
    if (d->event) {
        v->services->event_del(d->event);
    }
    if (d->pd) {
        common_verbs_lib.dealloc_pd(d->pd);
    }
    if (d->context) {
        common_verbs_lib.close_device(d->context);
    }
    *d = (common_verbs_device_t){.users = 0};
}

static void reject(common_verbs_t *v, const char *name, const char *why)
{
    char link[COMMON_VERBS_NAME_MAX + 16];
    snprintf(link, sizeof(link), "%s:%s", v->component, name);
    v->services->rejected(link, why);
}

/* A device of one port gives it its own name. */
static void name_port(const common_verbs_device_t *d, unsigned number, char name[COMMON_VERBS_NAME_MAX])
{
    char text[COMMON_VERBS_NAME_MAX + 16];
    int len = snprintf(text, sizeof(text), "%s:%u", d->name, number);
    if (d->attr.phys_port_cnt == 1) {
        len = (int) strlen(d->name);
    }
    text[len < COMMON_VERBS_NAME_MAX - 1 ? len : COMMON_VERBS_NAME_MAX - 1] = 0;
    memcpy(name, text, strlen(text) + 1);
}

static bool port_use(common_verbs_t *v, common_verbs_device_t *d, uint8_t number)
{
    struct ibv_port_attr attr;
    common_verbs_port_t *p = &v->port[v->count];
    const char *why = NULL;
    *p = (common_verbs_port_t){.device = d, .number = number};
    name_port(d, number, p->name);
    if (query_port(p, &attr) != 0) {
        why = "its state can't be read";
    } else if ((why = unwanted(&v->wanted.params, d->name, number)) == NULL && attr.state != IBV_PORT_ACTIVE) {
        why = attr.state == IBV_PORT_DOWN ? "its port is down" : "its port is not active yet";
    }
    if (!why) {
        p->ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
        note_attr(p, &attr);
        p->bandwidth = port_bandwidth(&attr);
        why = common_verbs_gid_choose(&v->gids, p, (int) v->wanted.params.gid_index);
    }
    why = why ? why : choose_partition(p, (uint16_t) v->wanted.params.pkey, attr.pkey_tbl_len);
    why = why ? why : choose_quality(p, &v->wanted.params);
    if (why) {
        reject(v, p->name, why);
        return false;
    }
    v->count++;
    return true;
}

/* What is on no bus is a program: Soft-RoCE, Soft-iWARP. */
static bool is_hardware(const char *name)
{
    char path[COMMON_VERBS_NAME_MAX + 64];
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device", name);
    return access(path, F_OK) == 0;
}

static int device_use(common_verbs_t *v, struct ibv_device *device)
{
    common_verbs_device_t *d = &v->device[v->device_count];
    snprintf(d->name, sizeof(d->name), "%s", common_verbs_lib.get_device_name(device));
    d->hardware = is_hardware(d->name);
    d->context = common_verbs_lib.open_device(device);
    if (!d->context || common_verbs_lib.query_device(d->context, &d->attr) != 0) {
        reject(v, d->name, errno == ENOENT ? "it can't be opened: this process sees no device file of it"
                                           : "it can't be opened");
        device_close(v, d);
        return MCA_SUCCESS;
    }
    for (unsigned port = 1; port <= d->attr.phys_port_cnt && v->count < COMMON_VERBS_PORTS_MAX; port++) {
        d->users += port_use(v, d, (uint8_t) port);
    }
    if (d->users == 0) {
        device_close(v, d);
        return MCA_SUCCESS;
    }
    v->device_count++;
    d->pd = common_verbs_lib.alloc_pd(d->context);
    return d->pd ? device_start(v, d) : MCA_ERR_OUT_OF_RESOURCE;
}

int common_verbs_open(common_verbs_t *v, const mca_btl_services_t *services, const char *component,
                      const common_verbs_wanted_t *wanted)
{
    int count = 0, rc = MCA_SUCCESS;
    *v = (common_verbs_t){.services = services, .component = component, .wanted = *wanted};
    if (!common_verbs_lib_wanted()) {
        services->base->log("btl", component, MCA_LOG_INFO, "this host has no RDMA device");
        return MCA_SUCCESS;
    }
    const char *why = common_verbs_lib_load();
    if (why) {
        services->base->report("common-verbs:library", "btl/%s can't use the RDMA devices of host %s: libibverbs can't be "
                               "loaded: %s. (Debian: apt install libibverbs1 ibverbs-providers)", component,
                               services->job->host, why);
        return MCA_SUCCESS;
    }
    /* Before Linux 5.12 a process that has forked, and writes, gets another page than the adapter has. */
    if (common_verbs_lib.fork_init() != 0) {
        services->base->log("btl", component, MCA_LOG_INFO, "libibverbs can't see to it that fork() does no harm");
    }
    rc = common_verbs_gids_begin(&v->gids, services, component, &wanted->params);
    struct ibv_device **list = rc == MCA_SUCCESS ? common_verbs_lib.get_device_list(&count) : NULL;
    for (int i = 0; list && i < count && v->device_count < COMMON_VERBS_PORTS_MAX && rc == MCA_SUCCESS; i++) {
        rc = device_use(v, list[i]);
    }
    if (list) {
        common_verbs_lib.free_device_list(list);
    }
    common_verbs_gids_end(&v->gids);
    if (rc != MCA_SUCCESS) {
        common_verbs_close(v);
    }
    return rc;
}

void common_verbs_drop(common_verbs_t *v, unsigned index)
{
    v->port[index].device->users--;
    v->count--;
    memmove(&v->port[index], &v->port[index + 1], (v->count - index) * sizeof(v->port[0]));
}

void common_verbs_close(common_verbs_t *v)
{
    for (unsigned i = 0; i < v->device_count; i++) {
        device_close(v, &v->device[i]);
    }
    v->count = v->device_count = 0;
}
