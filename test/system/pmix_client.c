/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* A PMIx program for the tests of mpirun; its first argument says what it does. */
#include <errno.h>
#include <fcntl.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pmix_proc_t self;

static void fail(const char *what, pmix_status_t rc)
{
    fprintf(stderr, "%s: %s\n", what, PMIx_Error_string(rc));
    exit(99);
}

static pmix_value_t *get(pmix_rank_t rank, const char *key)
{
    pmix_proc_t proc;
    pmix_value_t *value = NULL;

    PMIX_LOAD_PROCID(&proc, self.nspace, rank);
    pmix_status_t rc = PMIx_Get(&proc, key, NULL, 0, &value);
    if (rc != PMIX_SUCCESS) {
        fail(key, rc);
    }
    return value;
}

static void fence(void)
{
    pmix_info_t info;
    bool collect = true;

    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    pmix_status_t rc = PMIx_Fence(NULL, 0, &info, 1);
    if (rc != PMIX_SUCCESS) {
        fail("fence", rc);
    }
}

/* Every rank puts a value and sees those of all others. */
static void exchange(void)
{
    uint32_t size = get(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE)->data.uint32;
    uint32_t mine = 1000 + self.rank;
    pmix_value_t value;

    PMIX_VALUE_LOAD(&value, &mine, PMIX_UINT32);
    PMIx_Put(PMIX_GLOBAL, "card", &value);
    PMIx_Commit();
    fence();
    for (uint32_t rank = 0; rank < size; rank++) {
        if (get(rank, "card")->data.uint32 != 1000 + rank) {
            fail("card", PMIX_ERROR);
        }
    }
    printf("%u of %u\n", self.rank, size);
}

static void keys(void)
{
    printf("%u size=%u univ=%u apps=%u appnum=%u local=%u node=%u secret=%zu jobid=%d locality=%d\n",
           self.rank, get(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE)->data.uint32,
           get(PMIX_RANK_WILDCARD, PMIX_UNIV_SIZE)->data.uint32,
           get(PMIX_RANK_WILDCARD, PMIX_JOB_NUM_APPS)->data.uint32,
           get(self.rank, PMIX_APPNUM)->data.uint32, get(self.rank, PMIX_LOCAL_RANK)->data.uint16,
           get(self.rank, PMIX_NODE_RANK)->data.uint16,
           strlen(get(PMIX_RANK_WILDCARD, "hawser.job.secret")->data.string),
           strcmp(get(PMIX_RANK_WILDCARD, PMIX_JOBID)->data.string, self.nspace),
           get(self.rank, PMIX_LOCALITY_STRING)->data.string != NULL);
}

/* Rank 0 publishes; the others look it up, waiting for it; then it is taken back. */
static void publish(void)
{
    char *names[] = {"port", NULL};
    pmix_pdata_t data;
    pmix_info_t info;
    pmix_status_t rc = PMIX_SUCCESS;
    int all = 0;

    if (self.rank == 0) {
        PMIX_INFO_LOAD(&info, "port", "somewhere", PMIX_STRING);
        rc = PMIx_Publish(&info, 1);
        if (rc == PMIX_SUCCESS && PMIx_Publish(&info, 1) == PMIX_SUCCESS) {
            fail("second publish of a name", PMIX_ERROR);
        }
    } else {
        PMIX_PDATA_CONSTRUCT(&data);
        PMIX_LOAD_KEY(data.key, "port");
        PMIX_INFO_LOAD(&info, PMIX_WAIT, &all, PMIX_INT);
        rc = PMIx_Lookup(&data, 1, &info, 1);
        if (rc == PMIX_SUCCESS && strcmp(data.value.data.string, "somewhere") != 0) {
            rc = PMIX_ERROR;
        }
    }
    if (rc != PMIX_SUCCESS) {
        fail("publish or lookup", rc);
    }
    fence();
    if (self.rank == 0 && (rc = PMIx_Unpublish(names, NULL, 0)) != PMIX_SUCCESS) {
        fail("unpublish", rc);
    }
    fence();
    PMIX_PDATA_CONSTRUCT(&data);
    PMIX_LOAD_KEY(data.key, "port");
    if (PMIx_Lookup(&data, 1, NULL, 0) != PMIX_ERR_NOT_FOUND) {
        fail("lookup of a name taken back", PMIX_ERROR);
    }
    printf("%u published\n", self.rank);
}

static void spawned(pmix_status_t status, char *nspace, void *arg)
{
    (void)status;
    (void)nspace;
    (void)arg;
}

/* Jobs of one process each. */
static void spawn(int count, char **argv)
{
    pmix_app_t app;

    PMIX_APP_CONSTRUCT(&app);
    app.cmd = argv[0];
    app.argv = argv;
    app.maxprocs = 1;
    for (int i = 0; i < count; i++) {
        pmix_status_t rc = PMIx_Spawn_nb(NULL, 0, &app, 1, spawned, NULL);
        if (rc != PMIX_SUCCESS) {
            fail("spawn", rc);
        }
    }
}

/* Keep the pipe that is our output full, until nobody reads it. The file says that it is. */
static void flood(const char *file)
{
    static char lines[16384];

    memset(lines, '\n', sizeof(lines));
    fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK);
    while (write(STDOUT_FILENO, lines, sizeof(lines)) >= 0 || errno == EAGAIN) {
        if (errno == EAGAIN && file != NULL) {
            close(open(file, O_CREAT | O_WRONLY, 0600));
            file = NULL;
        }
    }
    exit(0);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "flood") == 0) {
        flood(argv[2]);
    }
    const char *what = argc > 1 ? argv[1] : "exchange";
    pmix_status_t rc = PMIx_Init(&self, NULL, 0);

    if (rc != PMIX_SUCCESS) {
        fail("init", rc);
    }
    if (strcmp(what, "exchange") == 0) {
        exchange();
    } else if (strcmp(what, "keys") == 0) {
        keys();
    } else if (strcmp(what, "publish") == 0) {
        publish();
    } else if (strcmp(what, "abort") == 0) {
        fence();
        if (self.rank == 1) {
            PMIx_Abort(argc > 2 ? atoi(argv[2]) : 1, "this is the reason", NULL, 0);
        }
        pause(); /* until we are killed */
    } else if (strcmp(what, "spawn") == 0) { /* COUNT PROGRAM ARGUMENTS...; rank 1 aborts when it has asked */
        fence();
        spawn(atoi(argv[2]), argv + 3);
        if (self.rank == 1) {
            PMIx_Abort(7, "no more", NULL, 0);
        }
        pause();
    } else if (strcmp(what, "no-finalize") == 0) {
        fence();
        if (self.rank == 1) {
            _exit(0);
        }
        pause();
    }
    rc = PMIx_Finalize(NULL, 0);
    return rc == PMIX_SUCCESS ? 0 : 98;
}
