/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* From mentions of hosts to the nodes of the runtime. */
#include "orte/mca/ras/base/base.h"

#include "opal/constants.h"
#include "opal/util/argv.h"
#include "orte/util/report.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* What the mentions of one host add up to. */
typedef struct {
    long said; /* sum of numbers */
    int unsaid;
    bool all;
} tally_t;

/* Numbers add up, and mentions without one count as one slot each. A single one without a number
 * leaves the slots open: 0. */
static int slots_of(const tally_t *tally)
{
    long slots = tally->said + (tally->said > 0 || tally->unsaid > 1 ? tally->unsaid : 0);

    return tally->all ? 0 : slots > 1 << 30 ? 1 << 30 : (int)slots;
}

static void count_mention(tally_t *tally, int slots)
{
    if (slots > 0) {
        tally->said += slots;
    } else if (slots == ORTE_RAS_SLOTS_ALL) {
        tally->all = true;
    } else {
        tally->unsaid++;
    }
}

static int append_node(orte_runtime_t *rt, orte_node_t *node)
{
    orte_node_t **grown = rt->nodes;

    if ((rt->nnodes & (rt->nnodes - 1)) == 0) {
        size_t room = rt->nnodes == 0 ? 1 : 2 * (size_t)rt->nnodes;
        grown = realloc(rt->nodes, room * sizeof(orte_node_t *));
    }
    if (grown == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    rt->nodes = grown;
    node->index = rt->nnodes;
    rt->nodes[rt->nnodes++] = node;
    return OPAL_SUCCESS;
}

/* The resource manager has its own name for this host: others know us by it. */
static int adopt_name(orte_runtime_t *rt, const char *name)
{
    char *node_name = strdup(name), *hostname = strdup(name);

    if (node_name == NULL || hostname == NULL) {
        free(node_name);
        free(hostname);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    free(rt->self->name);
    free(rt->hostname);
    rt->self->name = node_name;
    rt->hostname = hostname;
    return OPAL_SUCCESS;
}

/* The node of a mention that has none yet. */
static orte_node_t *new_node(orte_runtime_t *rt, const orte_ras_host_t *host, const char *self)
{
    orte_node_t *node;

    if (orte_ras_base_is_self(rt, host->name, self)) {
        bool renamed = self != NULL && !orte_ras_base_same_name(rt->hostname, self);
        node = renamed && adopt_name(rt, host->name) != OPAL_SUCCESS ? NULL : rt->self;
    } else {
        node = orte_node_create(host->name, rt->nnodes);
    }
    if (node != NULL && append_node(rt, node) != OPAL_SUCCESS) {
        if (node != rt->self) {
            orte_node_destroy(node);
        }
        return NULL;
    }
    return node;
}

static int set_login(orte_node_t *node, const orte_ras_host_t *host)
{
    if (host->port > 0) {
        node->port = host->port;
    }
    if (host->user == NULL) {
        return OPAL_SUCCESS;
    }
    free(node->user);
    node->user = strdup(host->user);
    return node->user == NULL ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

/* One daemon serves a host, under one name. */
static int same_login(const orte_node_t *node, const orte_ras_host_t *host)
{
    bool users = node->user != NULL && host->user != NULL && strcmp(node->user, host->user) != 0;

    if (users) {
        orte_report("%s: log in to host %s as %s, or as %s? A host has one login name in a job", host->where, node->name,
                    node->user, host->user);
    } else if (node->port > 0 && host->port > 0 && node->port != host->port) {
        orte_report("%s: is the remote shell of host %s at port %d, or at %d? A host has one port in a job", host->where,
                    node->name, node->port, host->port);
    } else {
        return OPAL_SUCCESS;
    }
    return OPAL_ERR_BAD_PARAM;
}

int orte_ras_base_make_nodes(orte_runtime_t *rt, const orte_ras_allocation_t *allocation)
{
    const orte_ras_hosts_t *hosts = &allocation->hosts;
    tally_t *tallies = calloc((size_t)hosts->count + 1, sizeof(*tallies));
    int rc = tallies == NULL ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;

    for (int i = 0; i < hosts->count && rc == OPAL_SUCCESS; i++) {
        const orte_ras_host_t *host = &hosts->at[i];
        orte_node_t *node = orte_ras_find_node(rt, host);
        if (host->kind != ORTE_RAS_NAME) {
            orte_report("%s: '%s' counts from an allocation or a host file, and there is none",
                        host->where, host->kind == ORTE_RAS_INDEX ? "+n" : "+e");
            rc = OPAL_ERR_BAD_PARAM;
            break;
        }
        if (node == NULL) {
            node = new_node(rt, host, allocation->self);
        }
        rc = node == NULL ? OPAL_ERR_OUT_OF_RESOURCE : same_login(node, host);
        rc = rc == OPAL_SUCCESS ? set_login(node, host) : rc;
        if (rc == OPAL_SUCCESS) {
            count_mention(&tallies[node->index], host->slots);
            node->max_slots = host->max_slots > INT_MAX - node->max_slots ? INT_MAX : node->max_slots + host->max_slots;
        }
    }
    for (int i = 0; i < rt->nnodes && rc == OPAL_SUCCESS; i++) {
        rt->nodes[i]->slots = slots_of(&tallies[i]);
    }
    free(tallies);
    return rc;
}

/* --- choosing among nodes --- */

/* What a program's host file or --host leaves of the nodes. */
typedef struct {
    const orte_runtime_t *rt;
    orte_share_t *from; /* to choose from, nfrom of them */
    int nfrom;
    orte_share_t *to;   /* chosen; room for nfrom */
    int nto;
    tally_t *tallies;   /* by node index */
    bool *excluded;     /* by node index */
} choice_t;

static orte_share_t *in_list(orte_share_t *shares, int count, const orte_node_t *node)
{
    for (int i = 0; node != NULL && i < count; i++) {
        if (shares[i].node == node) {
            return &shares[i];
        }
    }
    return NULL;
}

/* "a, b, c, ..." of what could have been chosen; static storage. */
static const char *list_names(const choice_t *choice)
{
    static char text[256];
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; i < choice->nfrom && used < sizeof(text); i++) {
        bool room = used + strlen(choice->from[i].node->name) + 8 < sizeof(text);
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i == 0 ? "" : ", ",
                                 room ? choice->from[i].node->name : "...");
        if (!room) {
            break;
        }
    }
    return text;
}

static int not_among(const choice_t *choice, const orte_ras_host_t *host)
{
    const char *source = choice->rt->allocation;

    if (host->kind == ORTE_RAS_INDEX) {
        orte_report("%s: +n%d: there are %d hosts only, counted from +n0: %s", host->where,
                    host->number, choice->nfrom, list_names(choice));
    } else {
        orte_report("%s: host %s is not among those that may be used (%s%s%s): name one of these",
                    host->where, host->name, source == NULL ? "" : source,
                    source == NULL ? "" : ": ", list_names(choice));
    }
    return OPAL_ERR_NOT_FOUND;
}

static void choose(choice_t *choice, orte_node_t *node, int slots)
{
    count_mention(&choice->tallies[node->index], slots);
    if (in_list(choice->to, choice->nto, node) == NULL) {
        choice->to[choice->nto++] = *in_list(choice->from, choice->nfrom, node);
    }
}

static void choose_empty(choice_t *choice, const orte_ras_host_t *host)
{
    int left = host->number > 0 ? host->number : choice->nfrom;

    for (int i = 0; i < choice->nfrom && left > 0; i++) {
        orte_node_t *node = choice->from[i].node;
        if (node->nprocs == 0 && in_list(choice->to, choice->nto, node) == NULL) {
            choose(choice, node, host->slots);
            left--;
        }
    }
}

static int take_mention(choice_t *choice, const orte_ras_host_t *host, int unsaid)
{
    if (host->kind == ORTE_RAS_EMPTY) {
        choose_empty(choice, host);
        return OPAL_SUCCESS;
    }
    orte_node_t *node = orte_ras_find_node(choice->rt, host);
    if (host->kind == ORTE_RAS_INDEX) {
        node = host->number < choice->nfrom ? choice->from[host->number].node : NULL;
    }
    if (in_list(choice->from, choice->nfrom, node) == NULL) {
        return not_among(choice, host);
    }
    if (host->kind == ORTE_RAS_EXCLUDE) {
        choice->excluded[node->index] = true;
        return OPAL_SUCCESS;
    }
    choose(choice, node, host->slots == ORTE_RAS_SLOTS_UNSAID ? unsaid : host->slots);
    return set_login(node, host); /* --host has the last word */
}

static bool only_excludes(const orte_ras_hosts_t *hosts)
{
    for (int i = 0; i < hosts->count; i++) {
        if (hosts->at[i].kind != ORTE_RAS_EXCLUDE) {
            return false;
        }
    }
    return true;
}

/* Named and excluded in one list: as if it were not mentioned. */
static bool is_cancelled(const orte_ras_hosts_t *hosts, const orte_ras_host_t *host)
{
    bool exclude = host->kind == ORTE_RAS_EXCLUDE;

    for (int i = 0; hosts->excludes && host->name != NULL && i < hosts->count; i++) {
        const orte_ras_host_t *other = &hosts->at[i];
        if (other->name != NULL && (other->kind == ORTE_RAS_EXCLUDE) != exclude &&
            orte_ras_base_same_name(other->name, host->name)) {
            return true;
        }
    }
    return false;
}

/* Slots of what was chosen, without what was excluded. */
static int finish_choice(choice_t *choice, const orte_ras_hosts_t *hosts)
{
    int kept = 0;

    for (int i = 0; i < choice->nto; i++) {
        orte_share_t share = choice->to[i];
        int slots = slots_of(&choice->tallies[share.node->index]);
        if (slots > 0 && (share.slots == 0 || slots < share.slots)) {
            share.slots = slots;
        }
        if (!choice->excluded[share.node->index]) {
            choice->to[kept++] = share;
        }
    }
    choice->nto = kept;
    if (kept == 0) {
        orte_report("%s: no host is left of %s: name or leave at least one", hosts->at[0].where,
                    list_names(choice));
        return OPAL_ERR_NOT_FOUND;
    }
    return OPAL_SUCCESS;
}

/* Narrow the shares of a program to the hosts that are mentioned. `unsaid` is what a mention
 * without a number counts. */
static int narrow(const orte_runtime_t *rt, orte_app_t *app, const orte_ras_hosts_t *hosts,
                  int unsaid)
{
    choice_t choice = {.rt = rt, .from = app->shares, .nfrom = app->nshares};
    size_t room = (size_t)rt->nnodes + 1;
    int rc = OPAL_SUCCESS;

    choice.to = calloc(room, sizeof(*choice.to));
    choice.tallies = calloc(room, sizeof(*choice.tallies));
    choice.excluded = calloc(room, sizeof(*choice.excluded));
    if (choice.to == NULL || choice.tallies == NULL || choice.excluded == NULL) {
        rc = OPAL_ERR_OUT_OF_RESOURCE;
    } else if (only_excludes(hosts)) {
        memcpy(choice.to, choice.from, (size_t)choice.nfrom * sizeof(*choice.to));
        choice.nto = choice.nfrom;
    }
    for (int i = 0; i < hosts->count && rc == OPAL_SUCCESS; i++) {
        if (!is_cancelled(hosts, &hosts->at[i])) {
            rc = take_mention(&choice, &hosts->at[i], unsaid);
        }
    }
    if (rc == OPAL_SUCCESS) {
        rc = finish_choice(&choice, hosts);
    }
    if (rc == OPAL_SUCCESS) {
        free(app->shares);
        app->shares = choice.to;
        app->nshares = choice.nto;
    } else {
        free(choice.to);
    }
    free(choice.tallies);
    free(choice.excluded);
    return rc;
}

/* All that a program's host files, or its --host, say. */
static int read_files(const orte_app_t *app, orte_ras_hosts_t *hosts)
{
    int rc = OPAL_SUCCESS;

    for (char **path = app->hostfiles; path != NULL && *path != NULL && rc == OPAL_SUCCESS;
         path++) {
        rc = orte_ras_read_hostfile(hosts, *path);
    }
    return rc;
}

static int read_args(const orte_app_t *app, orte_ras_hosts_t *hosts)
{
    int rc = OPAL_SUCCESS;

    for (char **text = app->hosts; text != NULL && *text != NULL && rc == OPAL_SUCCESS; text++) {
        rc = orte_ras_parse_hosts(hosts, *text, "--host");
    }
    return rc;
}

/* A program that named hosts starts with all nodes as its shares. */
static int start_shares(const orte_runtime_t *rt, orte_app_t *app)
{
    app->shares = calloc((size_t)rt->nnodes + 1, sizeof(*app->shares));
    if (app->shares == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    for (int i = 0; i < rt->nnodes; i++) {
        app->shares[i].node = rt->nodes[i];
    }
    app->nshares = rt->nnodes;
    return OPAL_SUCCESS;
}

static int choose_for_app(const orte_runtime_t *rt, orte_app_t *app)
{
    orte_ras_hosts_t files = {0}, args = {0};
    int rc = read_files(app, &files);

    if (rc == OPAL_SUCCESS) {
        rc = read_args(app, &args);
    }
    if (rc == OPAL_SUCCESS && files.count + args.count > 0) {
        rc = start_shares(rt, app);
    }
    if (rc == OPAL_SUCCESS && files.count > 0) {
        rc = narrow(rt, app, &files, ORTE_RAS_SLOTS_UNSAID);
    }
    if (rc == OPAL_SUCCESS && args.count > 0) {
        rc = narrow(rt, app, &args, 1);
    }
    orte_ras_hosts_free(&files);
    orte_ras_hosts_free(&args);
    return rc;
}

int orte_ras_choose(orte_runtime_t *rt, orte_job_t *job)
{
    int rc = OPAL_SUCCESS;

    for (int i = 0; i < job->napps && rc == OPAL_SUCCESS; i++) {
        rc = choose_for_app(rt, job->apps[i]);
    }
    return rc;
}

/* --- where nodes come from without a resource manager --- */

/* Move all mentions but exclusions and what they exclude to the end of another list. */
static int move_hosts(orte_ras_hosts_t *to, orte_ras_hosts_t *from)
{
    for (int i = 0; i < from->count; i++) {
        if (from->at[i].kind == ORTE_RAS_EXCLUDE || is_cancelled(from, &from->at[i])) {
            continue;
        }
        orte_ras_host_t *host = orte_ras_base_append(to, from->at[i].where);
        if (host == NULL) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
        free(host->where);
        *host = from->at[i];
        from->at[i] = (orte_ras_host_t){0};
    }
    return OPAL_SUCCESS;
}

static bool listed_before(const orte_job_t *job, int before, const char *path)
{
    for (int i = 0; i < before; i++) {
        for (char **other = job->apps[i]->hostfiles; other != NULL && *other != NULL; other++) {
            if (strcmp(*other, path) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* The hosts of one program's files (one that an earlier program named as well counts once), or
 * else of its --host, to the end of the list. */
static int collect_app(const orte_job_t *job, int index, orte_ras_hosts_t *all)
{
    const orte_app_t *app = job->apps[index];
    orte_ras_hosts_t own = {0};
    int rc = OPAL_SUCCESS;

    if (app->hostfiles == NULL && app->hosts == NULL && job->placement.map == ORTE_MAP_SEQ &&
        job->placement.map_file != NULL && index == 0) {
        rc = orte_ras_read_hostfile(&own, job->placement.map_file); /* says it all */
    }
    for (char **path = app->hostfiles; path != NULL && *path != NULL && rc == OPAL_SUCCESS;
         path++) {
        rc = listed_before(job, index, *path) ? OPAL_SUCCESS : orte_ras_read_hostfile(&own, *path);
    }
    if (rc == OPAL_SUCCESS && app->hostfiles == NULL) {
        rc = read_args(app, &own);
        for (int i = 0; i < own.count; i++) {
            own.at[i].slots = own.at[i].slots == 0 ? 1 : own.at[i].slots;
        }
    }
    if (rc == OPAL_SUCCESS && own.count > 0 && !only_excludes(&own)) {
        rc = move_hosts(all, &own);
    }
    orte_ras_hosts_free(&own);
    return rc;
}

static int collect(const orte_job_t *job, orte_ras_hosts_t *hosts)
{
    const char *path = orte_ras_base_default_hostfile();
    bool has_files = false;
    int rc = OPAL_SUCCESS;

    for (int i = 0; i < job->napps; i++) {
        has_files = has_files || job->apps[i]->hostfiles != NULL;
    }
    if (path != NULL && !has_files) {
        return orte_ras_read_hostfile(hosts, path);
    }
    for (int i = 0; i < job->napps && rc == OPAL_SUCCESS; i++) {
        rc = collect_app(job, i, hosts);
    }
    if (rc == OPAL_SUCCESS && hosts->count == 0) {
        rc = orte_ras_add(hosts, "localhost", ORTE_RAS_SLOTS_UNSAID, "this host");
    }
    return rc;
}

/* --- the whole --- */

static bool is_used(const orte_job_t *job, const orte_node_t *node)
{
    for (int i = 0; i < job->napps; i++) {
        orte_app_t *app = job->apps[i];
        if (app->nshares == 0 || in_list(app->shares, app->nshares, node) != NULL) {
            return true;
        }
    }
    return false;
}

/* No daemon is needed on a host that no program may use. */
static void drop_unused(orte_runtime_t *rt, const orte_job_t *job)
{
    int kept = 0;

    for (int i = 0; i < rt->nnodes; i++) {
        orte_node_t *node = rt->nodes[i];
        if (is_used(job, node)) {
            node->index = kept;
            rt->nodes[kept++] = node;
        } else if (node == rt->self) {
            node->index = -1;
        } else {
            orte_node_destroy(node);
        }
    }
    rt->nnodes = kept;
}

static void free_allocation(orte_ras_allocation_t *allocation)
{
    orte_ras_hosts_free(&allocation->hosts);
    free(allocation->title);
    free(allocation->self);
    free(allocation->topology);
}

/* What the manager said beside the hosts. */
static int take_over(orte_runtime_t *rt, orte_job_t *job, orte_ras_allocation_t *allocation)
{
    rt->allocation = allocation->title;
    allocation->title = NULL;
    if (job->placement.threads_per_proc == 0) {
        job->placement.threads_per_proc = allocation->cpus_per_proc;
    }
    if (allocation->topology != NULL && !rt->opt.do_not_launch) {
        orte_report("the hosts of %s do not exist and can start nothing: add --do-not-launch",
                    rt->allocation);
        return OPAL_ERR_NOT_AVAILABLE;
    }
    free(orte_ras_base_simulated);
    orte_ras_base_simulated = allocation->topology;
    allocation->topology = NULL;
    return OPAL_SUCCESS;
}

int orte_ras_allocate(orte_runtime_t *rt, orte_job_t *job)
{
    orte_ras_allocation_t allocation = {0};
    int rc = orte_ras_base_discover(&allocation);

    if (rc == OPAL_SUCCESS) {
        rc = allocation.hosts.count > 0 ? take_over(rt, job, &allocation)
                                        : collect(job, &allocation.hosts);
    }
    if (rc == OPAL_SUCCESS) {
        rc = orte_ras_base_make_nodes(rt, &allocation);
    }
    free_allocation(&allocation);
    if (rc == OPAL_SUCCESS) {
        rc = orte_ras_choose(rt, job);
    }
    if (rc == OPAL_SUCCESS) {
        drop_unused(rt, job);
    }
    if (rc == OPAL_ERR_OUT_OF_RESOURCE) {
        orte_report("no memory for the list of hosts");
    }
    return rc;
}
