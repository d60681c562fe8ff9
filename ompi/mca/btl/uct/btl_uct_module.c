/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Which of UCT's resources become links, their interfaces, limits and addresses. */
#include "ompi/mca/btl/uct/btl_uct.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "opal/util/argv.h"

enum { PATH_MAX_DEVICE = 64 + UCT_DEVICE_NAME_MAX };

/* ---- What the user allows ---- */

/* Is "transport" or "transport/device" in the list? */
static bool is_named(char *const *list, const uct_tl_resource_desc_t *r)
{
    char both[UCT_TL_NAME_MAX + UCT_DEVICE_NAME_MAX + 2];
    snprintf(both, sizeof(both), "%s/%s", r->tl_name, r->dev_name);
    for (; list && *list; list++) {
        if (strcmp(*list, r->tl_name) == 0 || strcmp(*list, both) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_allowed(const uct_tl_resource_desc_t *r, bool *by_name)
{
    const char *text = mca_btl_uct.params.transports;
    bool exclude = text && text[0] == '^';
    char **list = opal_argv_split(exclude ? text + 1 : text ? text : "", ',');
    bool named = is_named(list, r), all = !text || !text[0];
    opal_argv_free(list);
    *by_name = named && !exclude;
    return all || named != exclude;
}

/* ---- Interfaces ---- */

static const char moves_memory[] = "it moves memory alone, for links of shared memory, of which there is none";

/* Why such an interface makes no link; NULL: it does. */
static const char *unfit(const uct_iface_attr_t *a, bool by_name)
{
    if (!(a->cap.flags & UCT_IFACE_FLAG_AM_BCOPY) || a->cap.am.max_bcopy < 512) {
        return a->cap.flags & UCT_IFACE_FLAG_GET_ZCOPY ? moves_memory : "it carries no messages";
    }
    if (a->cap.flags & UCT_IFACE_FLAG_AM_DUP) {
        return "it may repeat messages";
    }
    /* One whose endpoints are connected to each other (rc_verbs) may have no address of its own. */
    if (!(a->cap.flags & UCT_IFACE_FLAG_CONNECT_TO_EP) &&
        (!(a->cap.flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE) || a->iface_addr_len == 0)) {
        return "its endpoints can't be connected by address";
    }
    if (a->device_addr_len == 0) {
        return "it reaches the process itself only";
    }
    if (a->device_addr_len > BTL_UCT_ADDRESS_MAX || a->iface_addr_len > BTL_UCT_ADDRESS_MAX ||
        a->ep_addr_len > BTL_UCT_ADDRESS_MAX) {
        return "its addresses are too long";
    }
    if (!by_name && !(a->cap.flags & UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE)) {
        return "it does not say when a peer has failed, and nobody asked for it by name";
    }
    return NULL;
}

/* In UCX's thread, which holds locks of UCX's: what has come waits for the poller. */
static void rings(void *context, unsigned flags)
{
    (void) context;
    (void) flags;
    mca_btl_uct.services->wake();
}

static ucs_status_t iface_open(btl_uct_module_t *m, const btl_uct_md_t *md, const uct_tl_resource_desc_t *r,
                               btl_uct_iface_t *i)
{
    uct_iface_config_t *config;
    ucs_status_t s = btl_uct_ucx.uct_md_iface_config_read(md->md, r->tl_name, NULL, NULL, &config);
    i->md = md;
    if (s != UCS_OK) {
        return s;
    }
    uct_iface_params_t p = {
        .field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE |
                      UCT_IFACE_PARAM_FIELD_RX_HEADROOM | UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                      UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG | UCT_IFACE_PARAM_FIELD_ERR_HANDLER_FLAGS |
                      UCT_IFACE_PARAM_FIELD_FEATURES | UCT_IFACE_PARAM_FIELD_ASYNC_EVENT_CB |
                      UCT_IFACE_PARAM_FIELD_ASYNC_EVENT_ARG,
        .open_mode = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device = {.tl_name = r->tl_name, .dev_name = r->dev_name},
        .err_handler = btl_uct_failed,
        .err_handler_arg = m,
        .features = UCT_IFACE_FEATURE_AM | UCT_IFACE_FEATURE_PUT | UCT_IFACE_FEATURE_GET,
        .async_event_cb = rings,
        .async_event_arg = NULL,
    };
    s = btl_uct_ucx.uct_iface_open(md->md, mca_btl_uct.worker, &p, config, &i->iface);
    btl_uct_ucx.uct_config_release(config);
    if (s == UCS_OK) {
        s = btl_uct_ucx.uct_iface_query(i->iface, &i->attr);
    }
    return s;
}

static void iface_close(btl_uct_iface_t *i)
{
    if (i->event) {
        mca_btl_uct.services->event_del(i->event);
    }
    if (i->iface) {
        btl_uct_ucx.uct_iface_close(i->iface);
    }
    *i = (btl_uct_iface_t) {.event = NULL};
}

/* Only to end a sleep: the poller does the work. */
static void iface_ready(int fd, unsigned what, void *context)
{
    (void) fd;
    (void) what;
    (void) context;
    btl_uct_poll(&mca_btl_uct);
}

static int iface_start(btl_uct_module_t *m, btl_uct_iface_t *i)
{
    int fd, rc = btl_uct_set_handlers(m, i->iface);
    uct_iface_progress_enable(i->iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    if (rc == MCA_SUCCESS && (i->attr.cap.event_flags & UCT_IFACE_FLAG_EVENT_FD) &&
        btl_uct_ucx.uct_iface_event_fd_get(i->iface, &fd) == UCS_OK) {
        rc = mca_btl_uct.services->event_add(fd, MCA_BTL_EVENT_LATE, iface_ready, NULL, &i->event);
    }
    i->rings = i->attr.cap.event_flags & UCT_IFACE_FLAG_EVENT_ASYNC_CB;
    return rc;
}

static bool iface_address(const btl_uct_iface_t *i, btl_uct_address_t *a)
{
    a->len = (uint16_t) i->attr.iface_addr_len;
    return btl_uct_ucx.uct_iface_get_address(i->iface, (uct_iface_addr_t *) a->bytes) == UCS_OK;
}

static bool iface_device(const btl_uct_iface_t *i, btl_uct_address_t *a)
{
    a->len = (uint16_t) i->attr.device_addr_len;
    return btl_uct_ucx.uct_iface_get_device_address(i->iface, (uct_device_addr_t *) a->bytes) == UCS_OK;
}

/* ---- Modules ---- */

/* An interface of the same device that connects to interfaces, for HELLOs. */
static bool greeter_open(btl_uct_module_t *m, const uct_tl_resource_desc_t *all, unsigned count)
{
    for (unsigned k = 0; k < count; k++) {
        if (strcmp(all[k].dev_name, m->place.device) != 0 || strcmp(all[k].tl_name, m->place.transport) == 0) {
            continue;
        }
        if (iface_open(m, m->data.md, &all[k], &m->greeter) == UCS_OK &&
            (m->greeter.attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE) && !unfit(&m->greeter.attr, true) &&
            m->greeter.attr.cap.am.max_bcopy >= BTL_UCT_HELLO_MAX) {
            return true;
        }
        iface_close(&m->greeter);
    }
    return false;
}

static void limits(const btl_uct_module_t *m, mca_btl_limits_t *l, bool local)
{
    const uct_iface_attr_t *a = &m->data.attr;
    const btl_uct_params_t *p = &mca_btl_uct.params;
    double bandwidth = a->bandwidth.dedicated + a->bandwidth.shared / mca_btl_uct.services->job->local_size;
    l->max_frag = a->cap.am.max_bcopy - BTL_UCT_PREFIX;
    l->max_frag = l->max_frag < p->max_frag ? l->max_frag : p->max_frag;
    l->short_max = l->eager_limit = l->max_frag;
    l->min_frag = l->max_frag / 2;
    l->send_min = 1; /* UCT copies from the user's memory, reserve() and commit() need a copy more */
    l->window = p->window;
    l->get_min = l->get_try = SIZE_MAX;
    l->bandwidth = p->bandwidth ? p->bandwidth : bandwidth > 1e6 ? (uint64_t) bandwidth : 1000000;
    l->latency_ns = (uint32_t) (a->latency.c * 1e9) + 1000;
    l->exclusivity = (int32_t) p->exclusivity;
    l->caps = MCA_BTL_CAP_RELIABLE | MCA_BTL_CAP_ORDERED | (local ? MCA_BTL_CAP_LOCAL : 0) |
              (a->cap.flags & UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE ? MCA_BTL_CAP_CAN_FAIL | MCA_BTL_CAP_LET_GO : 0);
}

/* A device of InfiniBand's kind that is on no bus is a program, and reports as read what is not there (docs/verbs.md). */
static bool is_program(const char *device)
{
    char verbs[PATH_MAX_DEVICE], hardware[PATH_MAX_DEVICE];
    int len = (int) strcspn(device, ":");
    snprintf(verbs, sizeof(verbs), "/sys/class/infiniband/%.*s", len, device);
    snprintf(hardware, sizeof(hardware), "/sys/class/infiniband/%.*s/device", len, device);
    return access(verbs, F_OK) == 0 && access(hardware, F_OK) != 0;
}

/* Have puts and gets go over this interface, if they can. */
static void rma_start(btl_uct_module_t *m, const btl_uct_iface_t *i)
{
    const btl_uct_params_t *p = &mca_btl_uct.params;
    mca_btl_limits_t *l = &m->super.limits;
    uint32_t caps = btl_uct_rma_caps(i);
    if (!caps) {
        return;
    }
    m->rma = i;
    l->caps |= caps;
    if (caps & MCA_BTL_CAP_GET) { /* where processors copy, others may do so sooner */
        l->get_min = i == &m->mover ? SIZE_MAX : (size_t) p->get_min;
        l->get_try = i == &m->mover ? (size_t) p->get_min : SIZE_MAX;
    }
    if (p->trust_reads == BTL_UCT_NEVER || (p->trust_reads == BTL_UCT_AUTO && is_program(m->place.device))) {
        l->caps |= MCA_BTL_CAP_GET_UNSURE;
    }
}

/* Links of shared memory that move none themselves get an interface that does. */
static void add_movers(btl_uct_component_t *c)
{
    size_t count = 0;
    for (size_t i = 0; i < c->module_count; i++) {
        btl_uct_module_t *m = c->modules[i];
        if (!(m->super.limits.caps & MCA_BTL_CAP_LOCAL) || m->rma) {
            continue;
        }
        if (iface_open(m, c->mover_md, &c->mover, &m->mover) == UCS_OK && iface_device(&m->mover, &m->place.mover_on) &&
            iface_address(&m->mover, &m->place.mover)) {
            uct_iface_progress_enable(m->mover.iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
            rma_start(m, &m->mover);
            count++;
        } else {
            iface_close(&m->mover);
            m->place.mover_on.len = m->place.mover.len = 0;
        }
    }
    if (count == 0) {
        char name[sizeof(c->modules[0]->super.name)];
        snprintf(name, sizeof(name), "uct:%.12s/%.12s", c->mover.tl_name, c->mover.dev_name);
        c->services->rejected(name, moves_memory);
    }
}

/* NULL: it is a link; else why not. */
static const char *module_open(btl_uct_module_t *m, const btl_uct_md_t *md, const uct_tl_resource_desc_t *all,
                               unsigned count, unsigned which, bool by_name)
{
    const uct_tl_resource_desc_t *r = &all[which];
    ucs_status_t s = iface_open(m, md, r, &m->data);
    if (s != UCS_OK) {
        return btl_uct_ucx.ucs_status_string(s);
    }
    const char *why = unfit(&m->data.attr, by_name);
    if (why) {
        return why;
    }
    m->to_endpoint = !(m->data.attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE);
    if (m->to_endpoint && !greeter_open(m, all, count)) {
        return "no transport of the same device can exchange its endpoints' addresses";
    }
    if (!iface_address(&m->data, &m->place.iface) ||
        (m->to_endpoint && !iface_address(&m->greeter, &m->place.greeter)) ||
        !iface_device(&m->data, &m->place.on)) {
        return "it does not tell its address";
    }
    if (iface_start(m, &m->data) != MCA_SUCCESS || (m->to_endpoint && iface_start(m, &m->greeter) != MCA_SUCCESS)) {
        return "its events can't be had";
    }
    bool local = r->dev_type == UCT_DEVICE_TYPE_SHM;
    m->watch = local && !(m->data.attr.cap.flags & UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE);
    m->check = mca_btl_uct.params.keepalive_ms > 0 && !m->watch && (m->data.attr.cap.flags & UCT_IFACE_FLAG_EP_CHECK) &&
               !(m->data.attr.cap.flags & UCT_IFACE_FLAG_EP_KEEPALIVE);
    limits(m, &m->super.limits, local);
    rma_start(m, &m->data);
    return NULL;
}

static btl_uct_module_t *module_new(const uct_tl_resource_desc_t *r)
{
    btl_uct_module_t *m = calloc(1, sizeof(*m));
    if (m) {
        m->super.struct_size = sizeof(m->super);
        m->super.ops = &btl_uct_ops;
        m->super.component = &mca_btl_uct_component;
        snprintf(m->super.name, sizeof(m->super.name), "uct:%.12s/%.12s", r->tl_name, r->dev_name);
        snprintf(m->place.transport, sizeof(m->place.transport), "%s", r->tl_name);
        snprintf(m->place.device, sizeof(m->place.device), "%s", r->dev_name);
        m->place.index = (uint16_t) mca_btl_uct.module_count;
        for (size_t i = 0; i < mca_btl_uct.module_count; i++) {
            m->nth += strcmp(mca_btl_uct.modules[i]->place.transport, m->place.transport) == 0;
        }
    }
    return m;
}

static void module_close(btl_uct_module_t *m)
{
    for (int b = 0; b < BTL_UCT_BUCKETS; b++) {
        while (m->peers[b]) {
            btl_uct_endpoint_free(m->peers[b]);
        }
    }
    iface_close(&m->data);
    iface_close(&m->greeter);
    iface_close(&m->mover);
    free(m);
}

static int module_try(const btl_uct_md_t *md, const uct_tl_resource_desc_t *all, unsigned count, unsigned which, bool by_name)
{
    btl_uct_component_t *c = &mca_btl_uct;
    btl_uct_module_t **more = realloc(c->modules, (c->module_count + 1) * sizeof(*more));
    if (!more) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    c->modules = more;
    btl_uct_module_t *m = module_new(&all[which]);
    if (!m) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    const char *why = module_open(m, md, all, count, which, by_name);
    if (!why) {
        c->modules[c->module_count++] = m;
        return MCA_SUCCESS;
    }
    if (why == moves_memory && by_name) {
        c->mover_md = md;
        c->mover = all[which];
    } else if (by_name) {
        c->services->rejected(m->super.name, why);
    }
    BTL_UCT_LOG(MCA_LOG_INFO, "%s: not used: %s", m->super.name, why);
    module_close(m);
    return MCA_SUCCESS;
}

/* ---- Memory domains ---- */

/* It stays open if a module stands on it. */
static int md_modules(const btl_uct_md_t *md, bool *used)
{
    uct_tl_resource_desc_t *list;
    unsigned count;
    size_t before = mca_btl_uct.module_count;
    int rc = MCA_SUCCESS;
    if (btl_uct_ucx.uct_md_query_tl_resources(md->md, &list, &count) != UCS_OK) {
        return MCA_SUCCESS;
    }
    for (unsigned k = 0; k < count && rc == MCA_SUCCESS; k++) {
        bool by_name;
        if (is_allowed(&list[k], &by_name)) {
            rc = module_try(md, list, count, k, by_name);
        }
    }
    btl_uct_ucx.uct_release_tl_resource_list(list);
    *used = mca_btl_uct.module_count > before || mca_btl_uct.mover_md == md;
    return rc;
}

static ucs_status_t md_open(btl_uct_md_t *md, uct_component_h component, const char *name)
{
    uct_md_config_t *config;
    ucs_status_t s = btl_uct_ucx.uct_md_config_read(component, NULL, NULL, &config);
    if (s != UCS_OK) {
        return s;
    }
    s = btl_uct_ucx.uct_md_open(component, name, config, &md->md);
    btl_uct_ucx.uct_config_release(config);
    if (s == UCS_OK && (s = btl_uct_ucx.uct_md_query(md->md, &md->attr)) != UCS_OK) {
        btl_uct_ucx.uct_md_close(md->md);
    }
    md->component = component;
    return s;
}

static int md_try(uct_component_h component, const char *name)
{
    btl_uct_component_t *c = &mca_btl_uct;
    btl_uct_md_t **more = realloc(c->mds, (c->md_count + 1) * sizeof(*more)), *md = calloc(1, sizeof(*md));
    bool used = false;
    c->mds = more ? more : c->mds;
    if (!more || !md) {
        free(md);
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    ucs_status_t s = md_open(md, component, name);
    if (s != UCS_OK) {
        BTL_UCT_LOG(MCA_LOG_INFO, "%s: not used: %s", name, btl_uct_ucx.ucs_status_string(s));
        free(md);
        return MCA_SUCCESS;
    }
    int rc = md_modules(md, &used);
    if (used) {
        c->mds[c->md_count++] = md;
    } else {
        btl_uct_ucx.uct_md_close(md->md);
        free(md);
    }
    return rc;
}

static int component_modules(uct_component_h component)
{
    uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT};
    int rc = MCA_SUCCESS;
    if (btl_uct_ucx.uct_component_query(component, &attr) != UCS_OK || attr.md_resource_count == 0) {
        return MCA_SUCCESS;
    }
    unsigned count = attr.md_resource_count;
    uct_md_resource_desc_t *names = calloc(count, sizeof(*names));
    if (!names) {
        return MCA_ERR_OUT_OF_RESOURCE;
    }
    attr = (uct_component_attr_t) {.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES, .md_resources = names};
    if (btl_uct_ucx.uct_component_query(component, &attr) == UCS_OK) {
        for (unsigned k = 0; k < count && rc == MCA_SUCCESS; k++) {
            rc = md_try(component, names[k].md_name);
        }
    }
    free(names);
    return rc;
}

int btl_uct_make_modules(void)
{
    uct_component_h *components;
    unsigned count;
    int rc = MCA_SUCCESS;
    if (btl_uct_ucx.uct_query_components(&components, &count) != UCS_OK) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    for (unsigned k = 0; k < count && rc == MCA_SUCCESS; k++) {
        rc = component_modules(components[k]);
    }
    btl_uct_ucx.uct_release_component_list(components);
    if (mca_btl_uct.mover_md) {
        add_movers(&mca_btl_uct);
    }
    if (rc == MCA_SUCCESS && mca_btl_uct.module_count == 0) {
        const char *asked = mca_btl_uct.params.transports;
        mca_btl_uct.services->base->report(
            "btl-uct:none", "btl/uct has no link on host %s: UCX knows no transport there that can be used and that "
            "btl_uct_transports (\"%s\") allows. ucx_info -d lists them; --mca btl_base_verbose 20 says why each is "
            "not used.", mca_btl_uct.services->job->host, asked ? asked : "");
        rc = MCA_ERR_NOT_AVAILABLE;
    }
    return rc;
}

void btl_uct_close_modules(void)
{
    btl_uct_component_t *c = &mca_btl_uct;
    for (size_t i = 0; i < c->module_count; i++) {
        module_close(c->modules[i]);
    }
    for (unsigned i = 0; i < c->md_count; i++) {
        btl_uct_ucx.uct_md_close(c->mds[i]->md);
        free(c->mds[i]);
    }
    free(c->modules);
    free(c->mds);
    c->modules = NULL;
    c->mds = NULL;
    c->mover_md = NULL;
    c->module_count = c->md_count = 0;
}
