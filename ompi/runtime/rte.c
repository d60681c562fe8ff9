/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* The PMIx client: its start and its end, who this process is among those of its job, and where the others are. */
#include "ompi/runtime/rte_client.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ompi/runtime/cpus.h"
#include "ompi/runtime/launcher.h"
#include "ompi/runtime/names.h"
#include "opal/util/output.h"
#include "opal/util/signals.h"

ompi_rte_t ompi_rte;
ompi_rte_client_t ompi_rte_client;

static bool up_again; /* the runtime has been up before in this process */
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
    return info_of(ompi_rte_client.proc.nspace, rank, key);
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

/* Only our mpirun gives a secret. */
static int settle_secret(void)
{
    char *hex = job_string(PMIX_RANK_WILDCARD, OMPI_RTE_SECRET_KEY);
    ompi_rte_client.own_launcher = hex != NULL;
    /* A server answers with what it has been told of a process once, unless new addresses are brought to it. */
    ompi_rte_client.collect_cards = ompi_launcher_params.modex == OMPI_MODEX_COLLECT || up_again ||
                                    (ompi_launcher_params.modex == OMPI_MODEX_AUTO && !hex);
    int rc = ompi_rte_secret_find(hex);
    if (hex) {
        explicit_bzero(hex, strlen(hex));
    }
    free(hex);
    return rc;
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
    if ((rc = ompi_rte_random(&tag, sizeof tag)) != OPAL_SUCCESS ||
        (rc = ompi_rte_random(ompi_rte.secret, sizeof ompi_rte.secret)) != OPAL_SUCCESS) {
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
    ompi_rte.rank = ompi_rte_client.proc.rank;
    if (!job_number(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, &ompi_rte.size) ||
        ompi_rte.rank >= ompi_rte.size) {
        opal_show_help("rte:job-size",
                       "The launcher's PMIx server does not tell the number of processes "
                       "of job %s (or rank %u is not among them).",
                       ompi_rte_client.proc.nspace, ompi_rte_client.proc.rank);
        return OPAL_ERR_NOT_FOUND;
    }
    job_number(PMIX_RANK_WILDCARD, PMIX_UNIV_SIZE, &ompi_rte.universe_size);
    job_number(ompi_rte_client.proc.rank, PMIX_APPNUM, &ompi_rte.appnum);
    job_number(ompi_rte_client.proc.rank, PMIX_NODEID, &ompi_rte.node_id);
    if (!job_number(PMIX_RANK_WILDCARD, PMIX_NUM_NODES, &ompi_rte.node_count)) {
        ompi_rte.node_count = 1;
    }
    ompi_rte.nspace = strdup(ompi_rte_client.proc.nspace);
    ompi_rte.host = job_string(ompi_rte_client.proc.rank, PMIX_HOSTNAME);
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
    return settle_secret();
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
    pmix_status_t rc = PMIx_Init(&ompi_rte_client.proc, NULL, 0);
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
    ompi_rte_client.closed = false;
    ompi_rte_client.some_ended = false;
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
    up_again = true;
    if (ompi_rte_client.proc.nspace[0]) {
        PMIx_Finalize(NULL, 0); /* no more callbacks */
        ompi_names_finalize();
    }
    ompi_rte_client.closed = true; /* answers may still be on their way in the progress engine */
    ompi_rte_cards_finalize();
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
    memset(&ompi_rte_client.proc, 0, sizeof ompi_rte_client.proc);
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
    return ompi_rte_client.proc.nspace[0] ? take_string(info_of(nspace, rank, PMIX_HOSTNAME)) : NULL;
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
    if (ompi_rte_client.proc.nspace[0]) {
        PMIx_Abort(status, text, NULL, 0);
    }
    _exit(status);
}
