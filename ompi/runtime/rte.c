/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The PMIx client behind rte.h. libpmix calls back in a thread of its own: what it brings is copied
 * there and handed to the progress engine. */
#include "ompi/runtime/rte.h"

#include <ctype.h>
#include <errno.h>
#include <pmix.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ompi/runtime/cpus.h"
#include "ompi/runtime/launcher.h"
#include "ompi/runtime/names.h"
#include "ompi/runtime/spawn.h"
#include "opal/class/list.h"
#include "opal/runtime/progress.h"
#include "opal/util/output.h"
#include "opal/util/signals.h"

/* Job information from our mpirun; else published by rank 0. */
#define SECRET_KEY "hawser.job.secret"
#define PART_KEY "hawser.part"
/* Event of our own launcher's (orte/pmix/server.h): a process has ended as it should. */
#define PROC_ENDED (PMIX_EXTERNAL_ERR_BASE - 1)

ompi_rte_t ompi_rte;

/* What this process published: answers look-ups of our own values, and all of them in a world of
 * one. */
typedef struct published {
    opal_list_item_t item;
    char *key;
    size_t len;
    char data[];
} published_t;

static opal_list_t published = OPAL_LIST_INIT(published);

/* A fence that goes on. */
typedef struct fence {
    _Atomic int32_t result; /* 0: not yet; 1: done; negative: a PMIx status */
} fence_t;

/* The fence that tells that all have published. It goes on while MPI_Init returns; look-ups wait
 * for it, as libpmix answers "not found", or gives up after a while, when a process has yet to
 * commit. */
static fence_t start;
static _Atomic bool some_ended; /* of this job, in order: no fence of all of it will be over any more. Told in progress */
static pthread_mutex_t lookups_lock = PTHREAD_MUTEX_INITIALIZER;
static opal_list_t early_lookups = OPAL_LIST_INIT(early_lookups); /* wait for the fence */
static opal_list_t asked_lookups = OPAL_LIST_INIT(asked_lookups); /* are with libpmix */
static bool closed; /* nobody wants an answer any more */
/* A look-up under way, and then its answer on the way to the progress engine. */
typedef struct lookup {
    opal_list_item_t item;
    char *nspace; /* NULL: our own */
    uint32_t rank;
    char *key;
    ompi_rte_get_fn_t fn;
    void *context;
    int status;
    size_t len;
    char *data;
} lookup_t;

static void free_lookup(lookup_t *lookup)
{
    free(lookup->nspace);
    free(lookup->key);
    free(lookup->data);
    free(lookup);
}

static pmix_proc_t my_proc;
static bool own_launcher; /* the only one that gives a secret */
static bool collect_cards; /* the starting fence brings all addresses to every node */
static bool up_again;      /* the runtime has been up before in this process */
static pthread_mutex_t hosts_lock = PTHREAD_MUTEX_INITIALIZER;
static char **hosts; /* of ranks that were asked for */

/* ---- Who are we ---- */

uint32_t ompi_rte_hash(const char *text)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (; *text; text++) {
        hash = (hash ^ (unsigned char) *text) * 16777619u;
    }
    return hash;
}

static int random_bytes(void *to, size_t len)
{
    for (size_t have = 0; have < len;) {
        ssize_t n = getrandom((char *) to + have, len - have, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            opal_show_help("rte:random",
                           "The system gives no random numbers for the job's secret: getrandom: %s",
                           strerror(errno));
            return OPAL_ERR_NOT_AVAILABLE;
        }
        have += (size_t) n;
    }
    return OPAL_SUCCESS;
}

static char *own_host_name(void)
{
    char name[256];
    if (gethostname(name, sizeof name) != 0) {
        return strdup("localhost");
    }
    name[sizeof name - 1] = '\0';
    return strdup(name);
}

/* Job information lies in this process or in its node's store: no server is asked for what isn't
 * there. */
static pmix_value_t *info_of(const char *nspace, pmix_rank_t rank, const char *key)
{
    pmix_proc_t proc;
    pmix_info_t optional;
    pmix_value_t *value = NULL;
    bool yes = true;
    PMIX_LOAD_PROCID(&proc, nspace, rank);
    PMIX_INFO_LOAD(&optional, PMIX_OPTIONAL, &yes, PMIX_BOOL);
    pmix_status_t rc = PMIx_Get(&proc, key, &optional, 1, &value);
    PMIX_INFO_DESTRUCT(&optional);
    if (rc != PMIX_SUCCESS) {
        return NULL;
    }
    return value;
}

static pmix_value_t *job_info(pmix_rank_t rank, const char *key)
{
    return info_of(my_proc.nspace, rank, key);
}

static bool job_number(pmix_rank_t rank, const char *key, uint32_t *number)
{
    pmix_value_t *value = job_info(rank, key);
    bool found = value != NULL;
    if (found) {
        switch (value->type) { /* servers differ in the types they give */
        case PMIX_UINT8: *number = value->data.uint8; break;
        case PMIX_UINT16: *number = value->data.uint16; break;
        case PMIX_UINT32: *number = value->data.uint32; break;
        case PMIX_UINT64: *number = (uint32_t) value->data.uint64; break;
        case PMIX_INT: *number = (uint32_t) value->data.integer; break;
        case PMIX_INT32: *number = (uint32_t) value->data.int32; break;
        case PMIX_SIZE: *number = (uint32_t) value->data.size; break;
        case PMIX_PROC_RANK: *number = value->data.rank; break;
        default: found = false; break;
        }
        PMIX_VALUE_RELEASE(value);
    }
    return found;
}

/* A copy, or NULL: servers also answer SUCCESS with a null string. */
static char *take_string(pmix_value_t *value)
{
    char *text = NULL;
    if (value) {
        if (value->type == PMIX_STRING && value->data.string && *value->data.string) {
            text = strdup(value->data.string);
        }
        PMIX_VALUE_RELEASE(value);
    }
    return text;
}

static char *job_string(pmix_rank_t rank, const char *key)
{
    return take_string(job_info(rank, key));
}

static int compare_ranks(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
    return (x > y) - (x < y);
}

/* "0,2,1" to an ascending array. Some servers give the peers unsorted. */
static int parse_local_peers(const char *text)
{
    size_t count = 1;
    for (const char *c = text; *c; c++) {
        count += *c == ',';
    }
    uint32_t *peers = malloc(count * sizeof *peers);
    if (!peers) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    const char *at = text;
    for (size_t i = 0; i < count; i++) {
        char *end;
        unsigned long rank = strtoul(at, &end, 10);
        if (end == at || (*end && *end != ',') || rank >= ompi_rte.size) {
            opal_show_help(
                "rte:local-peers",
                "The launcher's PMIx server gave a list of local processes that makes no "
                "sense: \"%s\"",
                text);
            free(peers);
            return OPAL_ERR_PARSE;
        }
        peers[i] = (uint32_t) rank;
        at = end + 1;
    }
    qsort(peers, count, sizeof *peers, compare_ranks);
    ompi_rte.local_peers = peers;
    ompi_rte.local_size = (uint32_t) count;
    return OPAL_SUCCESS;
}

static int find_local_peers(void)
{
    char *text = job_string(PMIX_RANK_WILDCARD, PMIX_LOCAL_PEERS);
    int rc = OPAL_SUCCESS;
    if (text) {
        rc = parse_local_peers(text);
        free(text);
    } else { /* nobody knows: alone on the node */
        ompi_rte.local_peers = malloc(sizeof *ompi_rte.local_peers);
        if (!ompi_rte.local_peers) {
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
        ompi_rte.local_peers[0] = ompi_rte.rank;
        ompi_rte.local_size = 1;
    }
    if (rc == OPAL_SUCCESS && !ompi_rte_is_local(ompi_rte.rank, &ompi_rte.local_rank)) {
        opal_show_help("rte:local-peers",
                       "The launcher's PMIx server does not count this process (rank %u) "
                       "among those of its node.",
                       ompi_rte.rank);
        rc = OPAL_ERR_NOT_FOUND;
    }
    return rc;
}

/* ---- The job's secret ---- */

static bool parse_secret(const char *hex)
{
    if (strlen(hex) != 2 * sizeof ompi_rte.secret) {
        return false;
    }
    for (size_t i = 0; i < sizeof ompi_rte.secret; i++) {
        char digits[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        char *end;
        if (!isxdigit((unsigned char) digits[0])) {
            return false;
        }
        ompi_rte.secret[i] = (uint8_t) strtoul(digits, &end, 16);
        if (*end) {
            return false;
        }
    }
    return true;
}

static pmix_status_t fetch_secret(void)
{
    pmix_proc_t root;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&root, my_proc.nspace, 0);
    pmix_status_t rc = PMIx_Get(&root, SECRET_KEY, NULL, 0, &value);
    if (rc == PMIX_SUCCESS &&
        (value->type != PMIX_BYTE_OBJECT || value->data.bo.size != sizeof ompi_rte.secret)) {
        rc = PMIX_ERR_TYPE_MISMATCH;
    }
    if (rc == PMIX_SUCCESS) {
        memcpy(ompi_rte.secret, value->data.bo.bytes, sizeof ompi_rte.secret);
    }
    if (value) {
        PMIX_VALUE_RELEASE(value);
    }
    return rc;
}

/* Rank 0 makes one up and commits it alone: some servers look up once what a process has committed,
 * and never see what it adds. So the fence collects. Still part of the start: blocking calls. */
static int make_secret(void)
{
    pmix_info_t collect;
    bool yes = true;
    pmix_status_t prc = PMIX_SUCCESS;
    if (ompi_rte.rank == 0) {
        int rc = random_bytes(ompi_rte.secret, sizeof ompi_rte.secret);
        if (rc == OPAL_SUCCESS) {
            rc = ompi_rte_put(SECRET_KEY, ompi_rte.secret, sizeof ompi_rte.secret);
        }
        if (rc != OPAL_SUCCESS) {
            return rc;
        }
        prc = PMIx_Commit();
    }
    if (prc == PMIX_SUCCESS) {
        PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
        prc = PMIx_Fence(NULL, 0, &collect, 1);
        PMIX_INFO_DESTRUCT(&collect);
    }
    if (prc == PMIX_SUCCESS && ompi_rte.rank != 0) {
        prc = fetch_secret();
    }
    if (prc != PMIX_SUCCESS) {
        opal_show_help("rte:secret", "The job's secret can't be had from rank 0 through PMIx: %s",
                       PMIx_Error_string(prc));
        return OPAL_ERR_NOT_AVAILABLE;
    }
    return OPAL_SUCCESS;
}

/* Children have the secret of the job that spawned them, so that both can talk to each other. Still
 * part of the start: a blocking call. */
static int inherit_secret(const char *port)
{
    pmix_pdata_t data;
    char name[PMIX_MAX_KEYLEN + 1];
    PMIX_PDATA_CONSTRUCT(&data);
    snprintf(name, sizeof name, "%s" OMPI_SPAWN_SECRET_SUFFIX, port);
    PMIX_LOAD_KEY(data.key, name);
    pmix_status_t rc = PMIx_Lookup(&data, 1, NULL, 0);
    if (rc == PMIX_SUCCESS && (data.value.type != PMIX_BYTE_OBJECT ||
                               data.value.data.bo.size != sizeof ompi_rte.secret)) {
        rc = PMIX_ERR_TYPE_MISMATCH;
    }
    if (rc == PMIX_SUCCESS) {
        memcpy(ompi_rte.secret, data.value.data.bo.bytes, sizeof ompi_rte.secret);
    } else {
        opal_show_help("rte:secret", "The secret of the job that spawned this one can't be had "
                       "through PMIx (look-up of %s): %s", name, PMIx_Error_string(rc));
    }
    PMIX_PDATA_DESTRUCT(&data);
    return rc == PMIX_SUCCESS ? OPAL_SUCCESS : OPAL_ERR_NOT_AVAILABLE;
}

/* From the parents; else our mpirun gives one; other launchers give none. */
static int find_secret(void)
{
    const char *parents = getenv(OMPI_SPAWN_PORT_ENV);
    char *hex = job_string(PMIX_RANK_WILDCARD, SECRET_KEY);
    own_launcher = hex != NULL;
    /* A server answers with what it has been told of a process once, unless new addresses are brought to it. */
    collect_cards = ompi_launcher_params.modex == OMPI_MODEX_COLLECT || up_again ||
                    (ompi_launcher_params.modex == OMPI_MODEX_AUTO && !hex);
    if (parents) {
        free(hex);
        return inherit_secret(parents);
    }
    if (!hex) {
        return make_secret();
    }
    bool good = parse_secret(hex);
    explicit_bzero(hex, strlen(hex));
    free(hex);
    if (!good) {
        opal_show_help("rte:secret", "The job's secret that the launcher gave is damaged (%s).",
                       SECRET_KEY);
        return OPAL_ERR_PARSE;
    }
    return OPAL_SUCCESS;
}

/* ---- Start ---- */

static int init_singleton(void)
{
    uint64_t tag;
    char name[64];
    int rc = ompi_launcher_refuse_foreign();
    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    if ((rc = random_bytes(&tag, sizeof tag)) != OPAL_SUCCESS ||
        (rc = random_bytes(ompi_rte.secret, sizeof ompi_rte.secret)) != OPAL_SUCCESS) {
        return rc;
    }
    snprintf(name, sizeof name, "singleton-%016llx", (unsigned long long) tag);
    ompi_rte.singleton = true;
    ompi_rte.size = ompi_rte.local_size = ompi_rte.node_count = 1;
    ompi_rte.nspace = strdup(name);
    ompi_rte.host = own_host_name();
    ompi_rte.local_peers = calloc(1, sizeof *ompi_rte.local_peers);
    if (!ompi_rte.nspace || !ompi_rte.host || !ompi_rte.local_peers) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    return OPAL_SUCCESS;
}

/* A folder of the job's that the launcher removes, if it gave one that we can use. */
static char *find_session_dir(void)
{
    struct stat st;
    char *dir = job_string(PMIX_RANK_WILDCARD, PMIX_NSDIR);
    if (dir && (stat(dir, &st) != 0 || !S_ISDIR(st.st_mode) || access(dir, W_OK | X_OK) != 0)) {
        free(dir);
        dir = NULL;
    }
    return dir;
}

static int init_with_server(void)
{
    int rc;
    ompi_rte.rank = my_proc.rank;
    if (!job_number(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, &ompi_rte.size) ||
        ompi_rte.rank >= ompi_rte.size) {
        opal_show_help("rte:job-size",
                       "The launcher's PMIx server does not tell the number of processes "
                       "of job %s (or rank %u is not among them).",
                       my_proc.nspace, my_proc.rank);
        return OPAL_ERR_NOT_FOUND;
    }
    job_number(PMIX_RANK_WILDCARD, PMIX_UNIV_SIZE, &ompi_rte.universe_size);
    job_number(my_proc.rank, PMIX_APPNUM, &ompi_rte.appnum);
    job_number(my_proc.rank, PMIX_NODEID, &ompi_rte.node_id);
    if (!job_number(PMIX_RANK_WILDCARD, PMIX_NUM_NODES, &ompi_rte.node_count)) {
        ompi_rte.node_count = 1;
    }
    ompi_rte.nspace = strdup(my_proc.nspace);
    ompi_rte.host = job_string(my_proc.rank, PMIX_HOSTNAME);
    if (!ompi_rte.host) {
        ompi_rte.host = own_host_name();
    }
    ompi_rte.session_dir = find_session_dir();
    if (!ompi_rte.nspace || !ompi_rte.host) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    if ((rc = find_local_peers()) != OPAL_SUCCESS) {
        return rc;
    }
    return find_secret();
}

/* A bound process sees few processors: the launcher's own mask tells what the node's processes
 * share. */
static bool is_oversubscribed(void)
{
    const char *told = getenv("HAWSER_OVERSUBSCRIBED");
    if (told && (strcmp(told, "0") == 0 || strcmp(told, "1") == 0)) {
        return *told == '1';
    }
    return ompi_rte.local_size > ompi_usable_cpus();
}

static void set_identity(void)
{
    char identity[320];
    if (ompi_rte.singleton) {
        snprintf(identity, sizeof identity, "%s pid %d", ompi_rte.host, (int) getpid());
    } else {
        snprintf(identity, sizeof identity, "%s rank %u", ompi_rte.host, ompi_rte.rank);
    }
    opal_output_set_identity(identity);
}

/* Every PMIx launcher names the job in the environment; without that name libpmix would only look
 * for stray servers. */
static int connect_server(bool *served)
{
    *served = getenv("PMIX_NAMESPACE") != NULL;
    if (!*served) {
        return OPAL_SUCCESS;
    }
    sigset_t before;
    opal_signals_block(&before); /* for the thread made in there */
    pmix_status_t rc = PMIx_Init(&my_proc, NULL, 0);
    opal_signals_restore(&before);
    if (rc == PMIX_SUCCESS) {
        return OPAL_SUCCESS;
    }
    opal_show_help(
        "rte:pmix-init",
        "The PMIx server of the launcher of job %s can't be used: %s\n"
        "The process may have been started by hand from within a job (then unset the PMIX_* "
        "variables), or the launcher's PMIx may not go together with libpmix %s.",
        getenv("PMIX_NAMESPACE"), PMIx_Error_string(rc), PMIx_Get_version());
    return OPAL_ERR_NOT_AVAILABLE;
}

int ompi_rte_init(void)
{
    bool served;
    closed = false;
    some_ended = false;
    int rc = connect_server(&served);
    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    rc = served ? init_with_server() : init_singleton();
    if (rc != OPAL_SUCCESS) {
        ompi_rte_finalize();
        return rc;
    }
    ompi_rte.self = (mca_btl_name_t) ompi_rte_hash(ompi_rte.nspace) << 32 | ompi_rte.rank;
    ompi_rte.oversubscribed = is_oversubscribed();
    const char *mixed = getenv("HAWSER_MIXED_ARCHITECTURES");
    ompi_rte.mixed = mixed && strcmp(mixed, "1") == 0;
    set_identity();
    return OPAL_SUCCESS;
}

void ompi_rte_finalize(void)
{
    opal_list_item_t *item;
    up_again = true;
    if (my_proc.nspace[0]) {
        PMIx_Finalize(NULL, 0); /* no more callbacks */
        ompi_names_finalize();
    }
    closed = true; /* answers may still be on their way in the progress engine */
    while ((item = opal_list_pop(&published)) != NULL) {
        published_t *p = OPAL_CONTAINER_OF(item, published_t, item);
        free(p->key);
        free(p);
    }
    opal_list_splice(&asked_lookups, &early_lookups);
    while ((item = opal_list_pop(&asked_lookups)) != NULL) {
        free_lookup(OPAL_CONTAINER_OF(item, lookup_t, item));
    }
    atomic_store(&start.result, 0);
    for (uint32_t i = 0; hosts && i < ompi_rte.size; i++) {
        free(hosts[i]);
    }
    free(hosts);
    hosts = NULL;
    free(ompi_rte.nspace);
    free(ompi_rte.host);
    free(ompi_rte.session_dir);
    free(ompi_rte.local_peers);
    explicit_bzero(&ompi_rte, sizeof ompi_rte);
    memset(&my_proc, 0, sizeof my_proc);
}

/* ---- Waiting for the others ---- */

static bool fence_is_over(fence_t *fence)
{
    return atomic_load_explicit(&fence->result, memory_order_acquire) != 0;
}

static void end_fence(fence_t *fence, pmix_status_t status)
{
    atomic_store_explicit(&fence->result, status == PMIX_SUCCESS ? 1 : status,
                          memory_order_release);
    opal_progress_wake();
}

/* `done` comes in libpmix's thread, or from in here. */
static int start_fence(bool collect, pmix_op_cbfunc_t done, fence_t *fence)
{
    pmix_info_t info; /* copied by libpmix before it returns */
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    pmix_status_t rc = PMIx_Fence_nb(NULL, 0, &info, 1, done, fence);
    PMIX_INFO_DESTRUCT(&info);
    if (rc == PMIX_OPERATION_SUCCEEDED) {
        done(PMIX_SUCCESS, fence);
        return OPAL_SUCCESS;
    }
    if (rc != PMIX_SUCCESS) {
        opal_show_help("rte:fence",
                       "The processes of the job can't wait for each other: PMIx fence: %s",
                       PMIx_Error_string(rc));
        return OPAL_ERROR;
    }
    return OPAL_SUCCESS;
}

static int wait_for_fence(fence_t *fence)
{
    opal_progress_wait(&fence->result);
    int32_t result = atomic_load_explicit(&fence->result, memory_order_acquire);
    if (result == PMIX_ERR_PARTIAL_SUCCESS) { /* a process is gone: the launcher tells which */
        return OPAL_ERR_PEER_FAILED;
    }
    if (result != 1) {
        opal_show_help("rte:fence",
                       "The processes of the job can't wait for each other: PMIx fence: %s",
                       PMIx_Error_string(result));
        return OPAL_ERROR;
    }
    return OPAL_SUCCESS;
}

bool ompi_rte_can_part(void)
{
    return own_launcher;
}

/* What a call returned that answers through `fence`, and then the answer. */
static int wait_for_answer(pmix_status_t rc, fence_t *fence)
{
    if (rc == PMIX_SUCCESS) {
        opal_progress_wait(&fence->result);
        return atomic_load_explicit(&fence->result, memory_order_acquire) == 1 ? OPAL_SUCCESS
                                                                              : OPAL_ERROR;
    }
    return rc == PMIX_OPERATION_SUCCEEDED ? OPAL_SUCCESS : OPAL_ERROR;
}

/* In libpmix's thread. */
static void part_done(pmix_status_t status, pmix_info_t info[], size_t ninfo, void *context,
                      pmix_release_cbfunc_t release, void *release_context)
{
    (void) info;
    (void) ninfo;
    if (release) {
        release(release_context);
    }
    end_fence(context, status);
}

int ompi_rte_part_job(const char *nspace)
{
    fence_t fence = {.result = 0};
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, PART_KEY, nspace, PMIX_STRING);
    int rc = wait_for_answer(PMIx_Job_control_nb(&my_proc, 1, &info, 1, part_done, &fence), &fence);
    PMIX_INFO_DESTRUCT(&info);
    return rc;
}

/* Some processes wait for each other. libpmix may come back to it when we have given it up, as a member is gone: its server
 * waits on, for a list of processes that named one which had died before. */
typedef struct part {
    fence_t fence; /* first: libpmix brings back either's address */
    _Atomic int holders; /* we, and libpmix */
    bool (*vain)(void *context);
    void *context;
} part_t;

static void part_release(part_t *part)
{
    if (atomic_fetch_sub(&part->holders, 1) == 1) {
        free(part);
    }
}

/* In libpmix's thread. */
static void part_over(pmix_status_t status, void *context)
{
    part_t *part = context;
    end_fence(&part->fence, status);
    part_release(part);
}

static bool part_is_over(void *context)
{
    const part_t *part = context;
    return atomic_load_explicit(&part->fence.result, memory_order_acquire) != 0 || part->vain(part->context);
}

/* Within a job a fence does, which a server takes as given by whoever is gone meanwhile. If two threads are here for the same
 * processes a server can't tell their meetings apart: one may end early, none waits for ever, as all give the same number. */
static int meet(part_t *part, const ompi_rte_id_t *ids, size_t count)
{
    bool own = true;
    pmix_proc_t *procs = malloc(count * sizeof *procs);
    if (!procs) {
        part_release(part);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    for (size_t i = 0; i < count; i++) {
        PMIX_LOAD_PROCID(&procs[i], ids[i].nspace, ids[i].rank);
        own = own && strcmp(ids[i].nspace, ompi_rte.nspace) == 0;
    }
    pmix_status_t rc = own ? PMIx_Fence_nb(procs, count, NULL, 0, part_over, part)
                           : PMIx_Disconnect_nb(procs, count, NULL, 0, part_over, part);
    free(procs);
    if (rc != PMIX_SUCCESS) {
        part_release(part);
        return rc == PMIX_OPERATION_SUCCEEDED ? OPAL_SUCCESS : OPAL_ERROR;
    }
    opal_progress_wait_until(part_is_over, part);
    return atomic_load_explicit(&part->fence.result, memory_order_acquire) == 1 ? OPAL_SUCCESS : OPAL_ERROR;
}

/* One of the job has ended: either it was here, and then all are, or it never will be. */
static bool one_has_ended(void *context)
{
    (void) context;
    return some_ended;
}

static part_t *new_part(bool (*vain)(void *context), void *context)
{
    part_t *part = malloc(sizeof *part);
    if (part) {
        *part = (part_t){.holders = 2, .vain = vain, .context = context};
    }
    return part;
}

int ompi_rte_fence(void)
{
    if (ompi_rte.singleton) {
        return OPAL_SUCCESS;
    }
    /* Two fences of the same processes must not go on at once: a server can't tell them apart. */
    int rc = wait_for_fence(&start);
    if (rc != OPAL_SUCCESS || some_ended) {
        return rc != OPAL_SUCCESS ? rc : OPAL_ERR_PEER_FAILED;
    }
    part_t *part = new_part(one_has_ended, NULL);
    if (!part) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    rc = start_fence(false, part_over, &part->fence);
    if (rc == OPAL_SUCCESS) {
        opal_progress_wait_until(part_is_over, part);
        rc = fence_is_over(&part->fence) ? wait_for_fence(&part->fence) : OPAL_ERR_PEER_FAILED;
    } else {
        part_release(part);
    }
    part_release(part);
    return rc;
}

int ompi_rte_part(const ompi_rte_id_t *ids, size_t count, bool (*vain)(void *context), void *context)
{
    part_t *part = new_part(vain, context);
    if (!part) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    int rc = wait_for_fence(&start);
    if (rc == OPAL_SUCCESS || some_ended) {
        rc = meet(part, ids, count);
    } else {
        part_release(part);
    }
    part_release(part);
    return rc;
}

/* ---- Business cards ---- */

static published_t *find_published(const char *key)
{
    opal_list_item_t *item, *next;
    OPAL_LIST_FOREACH(item, next, &published) {
        published_t *p = OPAL_CONTAINER_OF(item, published_t, item);
        if (strcmp(p->key, key) == 0) {
            return p;
        }
    }
    return NULL;
}

static int remember(const char *key, const void *data, size_t len)
{
    published_t *p = malloc(sizeof *p + len);
    char *name = strdup(key);
    if (!p || !name) {
        free(p);
        free(name);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    p->key = name;
    p->len = len;
    memcpy(p->data, data, len);
    opal_list_append(&published, &p->item);
    return OPAL_SUCCESS;
}

int ompi_rte_put(const char *key, const void *data, size_t len)
{
    int rc = remember(key, data, len);
    if (rc != OPAL_SUCCESS || ompi_rte.singleton) {
        return rc;
    }
    pmix_value_t value;
    PMIX_VALUE_CONSTRUCT(&value);
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = (char *) data; /* copied by PMIx_Put */
    value.data.bo.size = len;
    pmix_status_t prc = PMIx_Put(PMIX_GLOBAL, key, &value);
    if (prc != PMIX_SUCCESS) {
        opal_show_help("rte:put", "This process's addresses can't be published: PMIx put of %s: %s",
                       key, PMIx_Error_string(prc));
        return OPAL_ERROR;
    }
    return OPAL_SUCCESS;
}

/* In progress. */
static void deliver(void *arg)
{
    lookup_t *lookup = arg;
    if (!closed) {
        lookup->fn(lookup->status, lookup->data, lookup->len, lookup->context);
    }
    free_lookup(lookup);
}

static void hand_over(lookup_t *lookup)
{
    pthread_mutex_lock(&lookups_lock);
    opal_list_remove(&lookup->item);
    pthread_mutex_unlock(&lookups_lock);
    if (opal_progress_defer(deliver, lookup) != OPAL_SUCCESS) {
        /* Dropping it would leave somebody waiting for ever. */
        opal_show_help("rte:memory", "Out of memory for the answer to an address look-up.");
        abort();
    }
    opal_progress_wake();
}

/* In libpmix's thread; the value is libpmix's. */
static void lookup_done(pmix_status_t status, pmix_value_t *value, void *context)
{
    lookup_t *lookup = context;
    lookup->status = OPAL_ERR_NOT_FOUND;
    if (status == PMIX_SUCCESS && value && value->type == PMIX_BYTE_OBJECT) {
        size_t len = value->data.bo.size;
        lookup->data = malloc(len ? len : 1);
        lookup->status = lookup->data ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
        if (lookup->data) {
            memcpy(lookup->data, value->data.bo.bytes, len);
            lookup->len = len;
        }
    }
    hand_over(lookup);
}

static void start_lookup(lookup_t *lookup)
{
    pmix_proc_t proc;
    pthread_mutex_lock(&lookups_lock);
    opal_list_append(&asked_lookups, &lookup->item);
    pthread_mutex_unlock(&lookups_lock);
    PMIX_LOAD_PROCID(&proc, lookup->nspace ? lookup->nspace : my_proc.nspace, lookup->rank);
    pmix_status_t rc = ompi_rte.singleton ? PMIX_ERR_NOT_FOUND /* nobody is there to ask */
                                          : PMIx_Get_nb(&proc, lookup->key, NULL, 0, lookup_done, lookup);
    if (rc != PMIX_SUCCESS) {
        lookup_done(rc, NULL, lookup);
    }
}

/* In libpmix's thread: all have published. */
static void start_done(pmix_status_t status, void *context)
{
    opal_list_t early = OPAL_LIST_INIT(early);
    opal_list_item_t *item;
    pthread_mutex_lock(&lookups_lock);
    opal_list_splice(&early, &early_lookups);
    end_fence(context, status);
    pthread_mutex_unlock(&lookups_lock);
    while ((item = opal_list_pop(&early)) != NULL) {
        start_lookup(OPAL_CONTAINER_OF(item, lookup_t, item));
    }
}

static lookup_t *new_lookup(const char *nspace, const char *key)
{
    lookup_t *lookup = calloc(1, sizeof *lookup);
    if (lookup) {
        lookup->nspace = nspace ? strdup(nspace) : NULL;
        lookup->key = strdup(key);
        if (!lookup->key || (nspace && !lookup->nspace)) {
            free_lookup(lookup);
            lookup = NULL;
        }
    }
    return lookup;
}

int ompi_rte_get(const char *nspace, uint32_t rank, const char *key, ompi_rte_get_fn_t fn,
                 void *context)
{
    if (!nspace && rank >= ompi_rte.size) {
        return OPAL_ERR_BAD_PARAM;
    }
    if (!nspace && rank == ompi_rte.rank) {
        const published_t *p = find_published(key);
        fn(p ? OPAL_SUCCESS : OPAL_ERR_NOT_FOUND, p ? p->data : NULL, p ? p->len : 0, context);
        return OPAL_SUCCESS;
    }
    lookup_t *lookup = new_lookup(nspace, key);
    if (!lookup) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    lookup->rank = rank;
    lookup->fn = fn;
    lookup->context = context;
    pthread_mutex_lock(&lookups_lock);
    bool early = !ompi_rte.singleton && !fence_is_over(&start);
    if (early) {
        opal_list_append(&early_lookups, &lookup->item);
    }
    pthread_mutex_unlock(&lookups_lock);
    if (!early) {
        start_lookup(lookup);
    }
    return OPAL_SUCCESS;
}

int ompi_rte_commit(void)
{
    if (ompi_rte.singleton) {
        return OPAL_SUCCESS;
    }
    pmix_status_t prc = PMIx_Commit();
    if (prc != PMIX_SUCCESS) {
        opal_show_help("rte:commit", "This process's addresses can't be published: PMIx commit: %s",
                       PMIx_Error_string(prc));
        return OPAL_ERROR;
    }
    return OPAL_SUCCESS;
}

int ompi_rte_begin(void)
{
    return ompi_rte.singleton ? OPAL_SUCCESS : start_fence(collect_cards, start_done, &start);
}

/* ---- Processes that are lost ---- */

typedef struct loss {
    pmix_nspace_t nspace;
    uint32_t rank;
    bool in_order;
} loss_t;

static ompi_rte_lost_fn_t lost_fn;

/* It will not be over any more, if it isn't: who has published is found, who has not is gone. */
static void give_up_start(void)
{
    if (!fence_is_over(&start)) {
        start_done(PMIX_ERR_PARTIAL_SUCCESS, &start);
    }
}

/* In progress. */
static void deliver_loss(void *arg)
{
    loss_t *loss = arg;
    if (!closed && loss->in_order && strcmp(loss->nspace, my_proc.nspace) == 0) {
        some_ended = true;
        give_up_start();
    }
    if (!closed) {
        lost_fn(loss->nspace, loss->rank);
    }
    free(loss);
}

/* In libpmix's thread. Without memory the links to the process tell the same, later. */
static void loss_event(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                       size_t ninfo, pmix_info_t results[], size_t nresults,
                       pmix_event_notification_cbfunc_fn_t done, void *context)
{
    (void) id;
    (void) results;
    (void) nresults;
    for (size_t i = 0; i < ninfo; i++) {
        if (PMIX_CHECK_KEY(&info[i], PMIX_EVENT_AFFECTED_PROC) && info[i].value.type == PMIX_PROC) {
            source = info[i].value.data.proc;
        }
    }
    loss_t *loss = source ? malloc(sizeof *loss) : NULL;
    if (loss) {
        PMIX_LOAD_NSPACE(loss->nspace, source->nspace);
        loss->in_order = status == PROC_ENDED;
        loss->rank = status == PMIX_EVENT_JOB_END ? OMPI_RTE_ALL_RANKS : source->rank;
        if (opal_progress_defer(deliver_loss, loss) != OPAL_SUCCESS) {
            free(loss);
        }
        opal_progress_wake();
    }
    if (done) {
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, context);
    }
}

/* A launcher that knows no events: nothing is lost by that. */
static void loss_watched(pmix_status_t status, size_t id, void *context)
{
    (void) status;
    (void) id;
    (void) context;
}

void ompi_rte_watch(ompi_rte_lost_fn_t fn)
{
    static pmix_status_t events[] = {PMIX_ERR_PROC_TERM_WO_SYNC, PMIX_ERR_PROC_ABORTED_BY_SIG,
                                     PMIX_ERR_PROC_KILLED_BY_CMD, PMIX_EVENT_JOB_END, PROC_ENDED};
    lost_fn = fn;
    if (!ompi_rte.singleton) {
        PMIx_Register_event_handler(events, sizeof events / sizeof *events, NULL, 0, loss_event,
                                    loss_watched, NULL);
    }
}

/* ---- Where the others are ---- */

bool ompi_rte_is_local(uint32_t rank, uint32_t *local_rank)
{
    const uint32_t *found = bsearch(&rank, ompi_rte.local_peers, ompi_rte.local_size, sizeof rank,
                                    compare_ranks);
    if (found && local_rank) {
        *local_rank = (uint32_t) (found - ompi_rte.local_peers);
    }
    return found != NULL;
}

const char *ompi_rte_host_of(uint32_t rank)
{
    const char *host = "unknown";
    if (rank >= ompi_rte.size) {
        return host;
    }
    if (ompi_rte_is_local(rank, NULL)) {
        return ompi_rte.host;
    }
    pthread_mutex_lock(&hosts_lock);
    if (!hosts) {
        hosts = calloc(ompi_rte.size, sizeof *hosts);
    }
    if (hosts) {
        if (!hosts[rank]) {
            hosts[rank] = job_string(rank, PMIX_HOSTNAME);
        }
        host = hosts[rank] ? hosts[rank] : host;
    }
    pthread_mutex_unlock(&hosts_lock);
    return host;
}

char *ompi_rte_find_host(const char *nspace, uint32_t rank)
{
    return my_proc.nspace[0] ? take_string(info_of(nspace, rank, PMIX_HOSTNAME)) : NULL;
}

/* ---- The end ---- */

void ompi_rte_abort(int code, const char *text)
{
    int status = code & 0xff;
    if (status == 0 && code != 0) {
        status = 1; /* an exit status has eight bits; a failure must not look like success */
    }
    /* The server may be gone, or another thread may hold a stream's lock: then SIGALRM ends us. */
    signal(SIGALRM, SIG_DFL);
    alarm(10);
    fflush(NULL);
    if (my_proc.nspace[0]) {
        PMIx_Abort(status, text, NULL, 0);
    }
    _exit(status);
}
