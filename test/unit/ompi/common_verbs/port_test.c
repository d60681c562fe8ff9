/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Devices and ports, over devices that are tables of the test's: which ports are used and why not the others, which of
 * their addresses, which port talks to which of the peer's, and what becomes of their events.
 */
#include "ompi/mca/common/verbs/common_verbs.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "test/support/tap.h"

enum { DEVICES = 3, PORTS = 2, GIDS = 4, PKEYS = 4 };

/* ---- The devices ---- */

typedef struct gid {
    const char *text; /* IPv4 mapped, in four numbers; NULL: 16 bytes in raw */
    uint32_t type;
    uint8_t raw[16];
} entry_t;

typedef struct device {
    struct ibv_device handle;
    struct ibv_context context;
    const char *name;
    int error; /* of opening it */
    uint8_t ports;
    struct ibv_port_attr port[PORTS];
    entry_t gid[GIDS];
    uint16_t pkey[PKEYS]; /* of each port */
    struct ibv_pd pd;
    struct ibv_async_event event;
    bool has_event, open;
} device_t;

static device_t device[DEVICES];
static struct ibv_device *list[DEVICES + 1];

static device_t *of(struct ibv_context *context)
{
    for (int i = 0; i < DEVICES; i++) {
        if (context == &device[i].context) {
            return &device[i];
        }
    }
    return NULL;
}

static struct ibv_device **get_device_list(int *count)
{
    *count = 0;
    for (int i = 0; i < DEVICES && device[i].name; i++) {
        list[(*count)++] = &device[i].handle;
    }
    return list;
}

static void free_device_list(struct ibv_device **devices)
{
    (void) devices;
}

static const char *get_device_name(struct ibv_device *d)
{
    return ((device_t *) d)->name;
}

static bool fork_safe;

static int fork_init(void)
{
    fork_safe = true;
    return 0;
}

static struct ibv_context *open_device(struct ibv_device *d)
{
    device_t *dev = (device_t *) d;
    errno = fork_safe ? dev->error : EPERM;
    if (dev->error == 0 && fork_safe) {
        int fds[2];
        if (pipe(fds) != 0) {
            return NULL;
        }
        close(fds[1]);
        dev->context.async_fd = fds[0];
        dev->open = true;
    }
    return dev->open ? &dev->context : NULL;
}

static int close_device(struct ibv_context *context)
{
    of(context)->open = false;
    return close(context->async_fd);
}

static int query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    *attr = (struct ibv_device_attr){.phys_port_cnt = of(context)->ports};
    return 0;
}

static int query_port(struct ibv_context *context, uint8_t number, struct _compat_ibv_port_attr *attr)
{
    memcpy(attr, &of(context)->port[number - 1], sizeof(struct ibv_port_attr));
    return 0;
}

static int query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry,
                        uint32_t flags, size_t size)
{
    (void) port, (void) flags, (void) size;
    const entry_t *g = index < GIDS ? &of(context)->gid[index] : NULL;
    if (!g || (!g->text && g->raw[0] == 0)) {
        return ENODATA;
    }
    *entry = (struct ibv_gid_entry){.gid_index = index, .port_num = port, .gid_type = g->type};
    memcpy(entry->gid.raw, g->raw, 16);
    if (g->text) {
        unsigned a, b, c, d;
        sscanf(g->text, "%u.%u.%u.%u", &a, &b, &c, &d);
        memcpy(entry->gid.raw, (uint8_t[16]){[10] = 0xff, [11] = 0xff, [12] = (uint8_t) a, [13] = (uint8_t) b,
                                             [14] = (uint8_t) c, [15] = (uint8_t) d}, 16);
    }
    return 0;
}

static int query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    (void) port;
    *pkey = htobe16(of(context)->pkey[index]);
    return 0;
}

static struct ibv_pd *alloc_pd(struct ibv_context *context)
{
    return &of(context)->pd;
}

static int dealloc_pd(struct ibv_pd *pd)
{
    (void) pd;
    return 0;
}

static int get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    device_t *d = of(context);
    bool has = d->has_event;
    *event = d->event;
    d->has_event = false;
    return has ? 0 : -1;
}

static void ack_async_event(struct ibv_async_event *event)
{
    (void) event;
}

/* ---- Services ---- */

static char *net_include, *net_exclude;
static char said[2048]; /* "link: reason; " of each that was rejected */
static unsigned reports;
static mca_btl_event_fn_t event_fn;
static void *event_context;

static int var_register(const mca_base_var_desc_t *desc, void *storage)
{
    *(char **) storage = strcmp(desc->name, "net_include") == 0   ? net_include
                         : strcmp(desc->name, "net_exclude") == 0 ? net_exclude
                                                                  : NULL;
    return MCA_SUCCESS;
}

static void logs(const char *framework, const char *component, mca_log_level_t level, const char *format, ...)
{
    (void) framework, (void) component, (void) level, (void) format;
}

static void report(const char *topic, const char *format, ...)
{
    (void) topic, (void) format;
    reports++;
}

static void rejected(const char *link, const char *why)
{
    size_t used = strlen(said);
    snprintf(said + used, sizeof(said) - used, "%s: %s; ", link, why);
}

static int event_add(int fd, unsigned what, mca_btl_event_fn_t fn, void *context, void **handle)
{
    (void) fd, (void) what;
    event_fn = fn;
    event_context = context;
    *handle = &device;
    return MCA_SUCCESS;
}

static void event_del(void *handle)
{
    (void) handle;
}

static char changes[512];

static void changed(common_verbs_port_t *port, bool up, const char *why)
{
    size_t used = strlen(changes);
    snprintf(changes + used, sizeof(changes) - used, "%s %s: %s; ", port->name, up ? "up" : "down", why);
}

static common_verbs_t verbs;

static int open_with(const common_verbs_params_t *params)
{
    static const mca_base_services_t base = {.log = logs, .report = report, .var_register = var_register};
    static const mca_btl_job_t job = {.host = "here"};
    static const mca_btl_services_t services = {.struct_size = sizeof(services), .base = &base, .job = &job, .rejected = rejected, .event_add = event_add,
                                                .event_del = event_del};
    const common_verbs_wanted_t wanted = {.params = *params, .changed = changed};
    said[0] = 0;
    return common_verbs_open(&verbs, &services, "openib", &wanted);
}

static int open_ports(const char *include, const char *exclude, int gid_index)
{
    return open_with(&(common_verbs_params_t){.if_include = (char *) (uintptr_t) include,
                                              .if_exclude = (char *) (uintptr_t) exclude, .gid_index = gid_index});
}

static void close_ports(void)
{
    common_verbs_close(&verbs);
    bool open = false;
    for (int i = 0; i < DEVICES; i++) {
        open |= device[i].open;
    }
    if (open) {
        TAP_OK(false, "all devices are closed");
    }
}

static void lib_start(void)
{
    common_verbs_lib = (common_verbs_lib_t){
        .get_device_list = get_device_list, .free_device_list = free_device_list, .get_device_name = get_device_name,
        .fork_init = fork_init, .open_device = open_device, .close_device = close_device, .query_device = query_device, .query_port = query_port,
        .query_gid_ex = query_gid_ex, .query_pkey = query_pkey, .alloc_pd = alloc_pd, .dealloc_pd = dealloc_pd, .get_async_event = get_async_event,
        .ack_async_event = ack_async_event};
}

static const struct ibv_port_attr roce_port = {.state = IBV_PORT_ACTIVE, .active_mtu = IBV_MTU_4096, .active_width = 2,
                                               .active_speed = 32, .pkey_tbl_len = 1, .link_layer = IBV_LINK_LAYER_ETHERNET};
static const struct ibv_port_attr ib_port = {.state = IBV_PORT_ACTIVE, .active_mtu = IBV_MTU_4096, .active_width = 2,
                                             .active_speed = 32, .lid = 64, .lmc = 2, .pkey_tbl_len = PKEYS, .link_layer = IBV_LINK_LAYER_INFINIBAND};

/* One RoCE port in two subnets, one of them on `lo`. */
static void one_roce(void)
{
    memset(device, 0, sizeof(device));
    device[0] = (device_t){.name = "roce0", .ports = 1, .port = {roce_port}, .pkey = {0xffff},
                           .gid = {{.raw = {0xfe, 0x80, [15] = 1}, .type = IBV_GID_TYPE_ROCE_V2},
                                   {.text = "10.1.0.1", .type = IBV_GID_TYPE_ROCE_V1},
                                   {.text = "10.1.0.1", .type = IBV_GID_TYPE_ROCE_V2},
                                   {.text = "127.0.0.1", .type = IBV_GID_TYPE_ROCE_V2}}};
}

/* ---- Tests ---- */

static int chosen(const char *include, const char *exclude, int gid_index)
{
    int rc = open_ports(include, exclude, gid_index), index = verbs.count == 1 ? verbs.port[0].gid_index : -1;
    close_ports();
    return rc == MCA_SUCCESS ? index : -2;
}

static void test_none(void)
{
    memset(device, 0, sizeof(device));
    if (common_verbs_lib_wanted()) {
        TAP_SKIP("this machine has an RDMA device");
        return;
    }
    TAP_OK(open_ports(NULL, NULL, -1) == MCA_SUCCESS && verbs.count == 0 && said[0] == 0 && reports == 0,
           "without a device there is no port and not a word");
    close_ports();
}

static void test_gids(void)
{
    one_roce();
    TAP_OK(chosen(NULL, NULL, -1) == 2, "of a RoCE port's addresses the first of RoCE v2 over IPv4 is used");
    TAP_OK(chosen(NULL, NULL, 0) == 0 && chosen(NULL, NULL, 1) == 1, "unless the user names another");
    TAP_OK(chosen(NULL, NULL, 7) == -1 && strstr(said, "index in gid_index"), "one that is not there is told of: %s", said);
    TAP_OK(chosen("127.0.0.0/8", NULL, -1) == 3, "a block says which subnet");
    TAP_OK(chosen("roce0,127.0.0.0/8", NULL, -1) == 3 && chosen("other,127.0.0.0/8", NULL, -1) == -1,
           "beside the names of devices, too");
    TAP_OK(chosen(NULL, "10.1.0.0/16", -1) == 3, "and which not");
    TAP_OK(chosen("10.9.0.0/16", NULL, -1) == -1 && strstr(said, "none of its addresses"),
           "a port in no wanted subnet is told of: %s", said);
    TAP_OK(chosen("10.1.0.0/99", NULL, -1) == -2 && reports == 1, "a block that is none is an error");
    net_include = (char[]){"127.0.0.0/8"};
    TAP_OK(chosen(NULL, NULL, -1) == 3, "net_include holds where the component has no list of its own");
    TAP_OK(chosen("roce0", NULL, -1) == 2, "and does not where it has one");
    net_include = NULL;
    net_exclude = (char[]){"10.0.0.0/8"};
    TAP_OK(chosen(NULL, NULL, -1) == 3, "so does net_exclude");
    net_exclude = (char[]){"lo"};
    device[0].gid[2].text = NULL;
    device[0].gid[1].text = NULL;
    TAP_OK(chosen(NULL, NULL, -1) == 0, "by the name of the address's interface, too");
    net_exclude = NULL;
}

static void test_ports(void)
{
    one_roce();
    device[1] = (device_t){.name = "ib0", .ports = 2, .port = {ib_port, ib_port}, .gid = {{.raw = {0xfe, 0x80, [15] = 9}}}};
    device[2] = (device_t){.name = "gone0", .error = ENOENT};
    device[1].port[1].lid = 80;
    open_ports(NULL, NULL, -1);
    TAP_OK(verbs.count == 3 && strcmp(verbs.port[0].name, "roce0") == 0 && strcmp(verbs.port[1].name, "ib0:1") == 0 &&
               strcmp(verbs.port[2].name, "ib0:2") == 0, "each active port of each device is used");
    TAP_OK(strcmp(said, "openib:gone0: it can't be opened: this process sees no device file of it; ") == 0,
           "a device without its file is told of: %s", said);
    TAP_OK(verbs.port[2].addr.lid == 80 && verbs.port[2].addr.lmc == 2 && verbs.port[2].addr.prefix == 64 &&
               verbs.port[2].bandwidth == UINT64_C(100000) * 125000, "with the address and the speed that it has");
    device[1].event = (struct ibv_async_event){.event_type = IBV_EVENT_PORT_ERR, .element.port_num = 2};
    device[1].has_event = true;
    event_fn(device[1].context.async_fd, MCA_BTL_EVENT_READ, event_context);
    TAP_OK(strcmp(changes, "ib0:2 down: the port is down; ") == 0, "an event of a port is that port's: %s", changes);
    changes[0] = 0;
    device[1].port[1].lid = 99;
    device[1].event.event_type = IBV_EVENT_LID_CHANGE;
    device[1].has_event = true;
    event_fn(device[1].context.async_fd, MCA_BTL_EVENT_READ, event_context);
    TAP_OK(verbs.port[2].addr.lid == 99 && strcmp(changes, "ib0:2 down: it has another LID; ib0:2 up: it has another LID; ") == 0,
           "the address that a port gets later is noted, and told, as peers do not know it: %s", changes);
    changes[0] = 0;
    device[1].has_event = true;
    event_fn(device[1].context.async_fd, MCA_BTL_EVENT_READ, event_context);
    TAP_OK(changes[0] == 0, "once");
    device[1].port[1].lid = 80;
    device[1].port[1].active_mtu = IBV_MTU_2048;
    device[1].event.event_type = IBV_EVENT_PORT_ACTIVE;
    device[1].has_event = true;
    event_fn(device[1].context.async_fd, MCA_BTL_EVENT_READ, event_context);
    TAP_OK(verbs.port[2].addr.lid == 80 && strcmp(changes, "ib0:2 down: it has another LID; ib0:2 up: the port is up; ") == 0,
           "and so is the one with which it comes back: %s", changes);
    TAP_OK(verbs.port[2].addr.mtu == IBV_MTU_2048, "so is how long its packets may be then");
    changes[0] = 0;
    device[1].event.event_type = IBV_EVENT_DEVICE_FATAL;
    device[1].has_event = true;
    event_fn(device[1].context.async_fd, MCA_BTL_EVENT_READ, event_context);
    TAP_OK(strstr(changes, "ib0:1 down") && strstr(changes, "ib0:2 down") && !strstr(changes, "roce0"),
           "one of a device is all its ports': %s", changes);
    close_ports();
    device[1].port[0].state = IBV_PORT_DOWN;
    device[1].port[1].state = IBV_PORT_INIT;
    device[2].name = NULL;
    open_ports(NULL, "roce0", -1);
    TAP_OK(verbs.count == 0 && strcmp(said, "openib:roce0: in if_exclude; openib:ib0:1: its port is down; "
                                            "openib:ib0:2: its port is not active yet; ") == 0, "of each other port is said why not: %s", said);
    close_ports();
    device[1].port[0].state = device[1].port[1].state = IBV_PORT_ACTIVE;
    open_ports("ib0:2", NULL, -1);
    TAP_OK(verbs.count == 1 && verbs.port[0].number == 2 && strstr(said, "openib:ib0:1: not in if_include"),
           "one port of a device can be chosen");
    close_ports();
    memset(&device[1].gid, 0, sizeof(device[1].gid));
    open_ports("ib0:2", NULL, -1);
    TAP_OK(verbs.count == 0 && strstr(said, "no address (GID)"), "a port without an address is told of");
    close_ports();
}

/* An interface that goes and comes has its addresses at other places of the port's table. */
static void test_moves(void)
{
    one_roce();
    open_ports(NULL, NULL, -1);
    device[0].event = (struct ibv_async_event){.event_type = IBV_EVENT_GID_CHANGE, .element.port_num = 1};
    const char *const wanted[] = {"", "roce0 down: its address has gone; ", "", "roce0 up: its address is back; ",
                                  "roce0 down: its address has gone; roce0 up: its address is back; "};
    for (int i = 0; i < 5; i++) {
        changes[0] = 0;
        device[0].gid[2].text = i == 0 || i == 4 ? "10.1.0.1" : NULL;
        device[0].gid[3].text = i == 3 ? "10.1.0.1" : "127.0.0.1";
        device[0].has_event = true;
        event_fn(device[0].context.async_fd, MCA_BTL_EVENT_READ, event_context);
        TAP_OK(strcmp(changes, wanted[i]) == 0, "an address that %s: %s", i == 0   ? "stays"
                                                                         : i == 1 ? "goes"
                                                                         : i == 2 ? "is away"
                                                                         : i == 3 ? "comes back"
                                                                                  : "moves", changes);
        TAP_OK(verbs.port[0].gid_index == (i == 3 ? 3 : 2), "its index is known (%d)", verbs.port[0].gid_index);
    }
    close_ports();
}

/* What frames have in them for the switches. */
static void test_quality(void)
{
    static const common_verbs_addr_t other_subnet = {.gid = {0xfe, 0xc0, [15] = 7}, .lid = 7};
    common_verbs_params_t params = {.gid_index = -1, .service_level = 9, .traffic_class = 0x68};
    struct ibv_ah_attr attr;
    one_roce();
    device[1] = (device_t){.name = "ib0", .ports = 1, .port = {ib_port}, .gid = {{.raw = {0xfe, 0x80, [15] = 9}}}};
    open_with(&params);
    TAP_OK(verbs.count == 1 && strcmp(verbs.port[0].name, "ib0") == 0 &&
               strcmp(said, "openib:roce0: RoCE has the service levels (priorities) 0 to 7 alone (service_level); ") == 0,
           "a service level that a network does not have is none: %s", said);
    common_verbs_route(&verbs.port[0], &other_subnet, 0, &attr);
    TAP_OK(attr.sl == 9 && attr.is_global && attr.grh.traffic_class == 0x68, "what goes out of a port has its service level");
    close_ports();
    params.service_level = 5;
    open_with(&params);
    common_verbs_route(&verbs.port[0], &other_subnet, 0, &attr);
    TAP_OK(verbs.count == 2 && attr.sl == 5 && attr.grh.traffic_class == 0x68, "and so on RoCE, and its traffic class");
    close_ports();
}

/* One RoCE port, and one of InfiniBand that is in these partitions. */
static void partitions(const uint16_t pkey[PKEYS])
{
    one_roce();
    device[1] = (device_t){.name = "ib0", .ports = 1, .port = {ib_port}, .gid = {{.raw = {0xfe, 0x80, [15] = 9}}}};
    memcpy(device[1].pkey, pkey, sizeof(device[1].pkey));
}

/* The index of the key with which ib0 is used; -1: it is not. */
static int partition(int64_t pkey)
{
    open_with(&(common_verbs_params_t){.gid_index = -1, .pkey = pkey});
    int index = -1;
    for (unsigned i = 0; i < verbs.count; i++) {
        index = strcmp(verbs.port[i].name, "ib0") == 0 ? verbs.port[i].pkey_index : index;
    }
    close_ports();
    return index;
}

static void test_partitions(void)
{
    partitions((uint16_t[PKEYS]){0x7fff, 0, 0x0003, 0x8003});
    TAP_OK(partition(0) == 0, "a port is used with the first of its partitions");
    TAP_OK(partition(0x8003) == 3 && partition(3) == 3, "unless the user names another, with or without the bit of membership; a full one counts");
    TAP_OK(strcmp(said, "openib:roce0: it is in no partition with the key in pkey; ") == 0, "a port that is not in it is told of: %s", said);
    TAP_OK(partition(0x8004) == -1 && strstr(said, "ib0: it is in no partition"), "so is one of InfiniBand");
    TAP_OK(partition(0x7fff) == 0 && said[0] == 0, "all are in the default one, RoCE knows no other");
    TAP_OK(partition(0x8000) == -1, "a key that is none is nowhere");
}

static void pkey_event(void)
{
    device[1].event = (struct ibv_async_event){.event_type = IBV_EVENT_PKEY_CHANGE, .element.port_num = 1};
    device[1].has_event = true;
    changes[0] = 0;
    event_fn(device[1].context.async_fd, MCA_BTL_EVENT_READ, event_context);
}

/* The subnet's manager takes a port out of its partition, and puts it in again. */
static void test_partition_gone(void)
{
    partitions((uint16_t[PKEYS]){0xffff, 0x8003});
    open_with(&(common_verbs_params_t){.gid_index = -1, .pkey = 3});
    device[1].pkey[0] = 0x8009;
    pkey_event();
    TAP_OK(changes[0] == 0, "other partitions come and go");
    device[1].pkey[1] = 0x8004;
    pkey_event();
    TAP_OK(strcmp(changes, "ib0 down: its partition has gone; ") == 0, "a port that has lost its own is down: %s", changes);
    pkey_event();
    TAP_OK(changes[0] == 0, "once");
    device[1].pkey[1] = 0x0003;
    pkey_event();
    TAP_OK(strcmp(changes, "ib0 up: its partition is back; ") == 0, "until it has it again: %s", changes);
    close_ports();
}

static common_verbs_addr_t at(unsigned a, unsigned b, unsigned lid)
{
    common_verbs_addr_t addr = {.gid = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = (uint8_t) a, [15] = (uint8_t) b},
                                .prefix = 112, .mtu = IBV_MTU_4096, .lid = (uint16_t) lid};
    return addr;
}

/* What port of theirs does each of ours talk to, as both sides see it? */
static bool pairs(const common_verbs_addr_t *ours, unsigned n, const common_verbs_addr_t *theirs, unsigned k, const int *want)
{
    const char *why;
    common_verbs_t us = {.count = n}, them = {.count = k};
    common_verbs_card_t our_card = {.count = n}, their_card = {.count = k};
    for (unsigned i = 0; i < n; i++) {
        us.port[i].addr = our_card.port[i] = ours[i];
    }
    for (unsigned i = 0; i < k; i++) {
        them.port[i].addr = their_card.port[i] = theirs[i];
    }
    bool good = true;
    for (unsigned i = 0; i < n; i++) {
        int port = common_verbs_pair(&us, 1, &their_card, 2, i, &why);
        good &= port == want[i] && (port < 0 || common_verbs_pair(&them, 2, &our_card, 1, (unsigned) port, &why) == (int) i);
    }
    return good;
}

static void test_pairs(void)
{
    common_verbs_addr_t two[] = {at(1, 1, 0), at(2, 1, 0)}, crossed[] = {at(2, 2, 0), at(1, 2, 0)},
                        one[] = {at(2, 3, 0)}, far[] = {at(7, 1, 0), at(8, 1, 0)}, ib[] = {at(1, 1, 5), at(1, 2, 6)};
    TAP_OK(pairs(two, 2, crossed, 2, (int[]){1, 0}), "ports of one subnet talk to each other, in whatever order they are");
    TAP_OK(pairs(two, 2, one, 1, (int[]){-1, 0}), "one that finds no partner talks to nobody");
    TAP_OK(pairs(two, 2, far, 2, (int[]){0, 1}), "RoCE ports of different subnets are taken to have a route");
    TAP_OK(pairs(two, 2, ib, 2, (int[]){-1, -1}), "InfiniBand and RoCE have none");
    TAP_OK(pairs(ib, 2, ib, 2, (int[]){0, 1}), "two ports in one subnet are two pairs");
    common_verbs_addr_t many[] = {at(1, 3, 7), at(1, 4, 8)};
    ib[0].pkey = 0x8003, ib[1].pkey = 0x8004, many[0].pkey = 0x0004, many[1].pkey = 0x0003;
    TAP_OK(pairs(ib, 2, many, 2, (int[]){1, 0}), "ports talk to those in their partition");
    ib[0].pkey = 0x0003;
    TAP_OK(pairs(ib, 2, many, 2, (int[]){-1, 0}), "but limited members of one do not hear each other");
    many[1].pkey = 0;
    TAP_OK(pairs(ib, 2, many, 2, (int[]){1, 0}), "one whose partition is not known may be in any");
}

static void test_apart(void)
{
    common_verbs_t us = {.count = 1, .port[0].addr = at(1, 1, 5)};
    common_verbs_card_t card = {.count = 1, .port[0] = at(1, 2, 6)};
    const char *why = "";
    us.port[0].addr.pkey = 0x8003;
    card.port[0].pkey = 0x8004;
    TAP_OK(common_verbs_pair(&us, 1, &card, 2, 0, &why) == -1 && strstr(why, "partition"), "who is in another partition is told of: %s", why);
    card.port[0].pkey = 0x8003;
    card.port[0].gid[13] = 2;
    TAP_OK(common_verbs_pair(&us, 1, &card, 2, 0, &why) == -1 && !strstr(why, "partition"), "not who is in another network: %s", why);
}

static void test_card(void)
{
    common_verbs_t us = {.count = 2, .port = {{.addr = at(1, 1, 5)}, {.addr = at(2, 1, 6)}}};
    common_verbs_card_t card;
    uint8_t bytes[COMMON_VERBS_CARD_MAX];
    bool cut = false;
    us.port[1].addr.pkey = 0x8003;
    us.port[1].addr.frag = 4096;
    size_t len = common_verbs_card_write(&us, bytes);
    TAP_OK(common_verbs_card_read(bytes, len, &card) == MCA_SUCCESS && card.count == 2 && card.port[0].pkey == 0 &&
               card.port[1].pkey == 0x8003 && card.port[1].frag == 4096 && card.port[1].lid == 6, "a card tells of all ports");
    for (size_t i = 0; i < len; i++) {
        cut |= common_verbs_card_read(bytes, i, &card) == MCA_SUCCESS;
    }
    TAP_OK(!cut, "and is whole or none");
    us.port[1].addr.pkey = 0x8000;
    common_verbs_card_write(&us, bytes);
    TAP_OK(common_verbs_card_read(bytes, len, &card) == MCA_ERR_BAD_PARAM, "a key that is none is refused");
}

int main(void)
{
    tap_start(30);
    test_none();
    lib_start();
    test_gids();
    test_ports();
    test_moves();
    test_quality();
    test_partitions();
    test_partition_gone();
    test_pairs();
    test_apart();
    test_card();
    return tap_end();
}
