/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Setting up and taking down the stdio of processes. */
#include "orte/mca/iof/base/internal.h"

#include "opal/constants.h"
#include "opal/mca/base/var.h"
#include "orte/mca/errmgr/errmgr.h"
#include "orte/runtime/daemons.h"
#include "orte/runtime/queue.h"
#include "orte/util/report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

static bool use_terminal;

int orte_iof_register_params(void)
{
    static const mca_base_var_desc_t terminal = {
        .framework = "iof",
        .component = "base",
        .name = "terminal",
        .help = "Give processes a terminal as standard output where mpirun's own is one, so that "
                "they show each line at once",
        .type = MCA_VAR_BOOL,
        .level = MCA_VAR_LEVEL_USER,
        .scope = MCA_VAR_SCOPE_STARTUP,
        .def.b = true,
    };
    return mca_base_var_register(&terminal, &use_terminal);
}

static void resume_job(orte_job_t *job)
{
    for (int i = 0; i < job->nprocs; i++) {
        orte_iof_proc_t *io = job->procs[i]->iof;
        if (io != NULL) {
            orte_iof_channel_resume(&io->out);
            orte_iof_channel_resume(&io->err);
        }
    }
}

static void resume_all(orte_iof_t *iof)
{
    for (orte_job_t *job = iof->rt->jobs; job != NULL; job = job->next) {
        resume_job(job);
    }
}

static bool is_full(const orte_iof_t *iof, bool is_stderr)
{
    return orte_sink_pending(is_stderr ? iof->err : iof->out) > ORTE_SINK_HIGH;
}

/* Daemons whose output filled a sink may go on once that one has room: what the other has is no use. */
static void pay_back(orte_iof_t *iof)
{
    for (uint32_t i = 1; iof->owed != NULL && i < iof->rt->ndaemons; i++) {
        for (int which = 0; which < 2; which++) {
            if (iof->owed[i][which] > 0 && !is_full(iof, which == 1)) {
                orte_daemons_consumed(iof->rt, i, iof->owed[i][which]);
                iof->owed[i][which] = 0;
            }
        }
    }
}

static void sink_drained(void *arg)
{
    orte_iof_t *iof = arg;

    resume_all(iof);
    pay_back(iof);
    if (iof->flushed != NULL && orte_iof_pending(iof) == 0) {
        orte_queue_post(iof->rt->queue, iof->flushed, iof->flushed_arg);
        iof->flushed = NULL;
    }
}

orte_iof_t *orte_iof_create(orte_runtime_t *rt)
{
    orte_iof_t *iof = calloc(1, sizeof(*iof));

    if (iof == NULL) {
        return NULL;
    }
    iof->rt = rt;
    iof->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    iof->out = orte_sink_create(rt->base, STDOUT_FILENO, sink_drained, iof);
    iof->err = orte_sink_create(rt->base, STDERR_FILENO, sink_drained, iof);
    iof->chunk = malloc(ORTE_IOF_CHUNK);
    iof->input = orte_iof_input_create(iof);
    if (iof->null_fd < 0 || iof->out == NULL || iof->err == NULL || iof->chunk == NULL ||
        iof->input == NULL) {
        orte_report("can't set up standard input and output: %s", strerror(errno));
        orte_iof_destroy(iof);
        return NULL;
    }
    return iof;
}

void orte_iof_destroy(orte_iof_t *iof)
{
    if (iof == NULL) {
        return;
    }
    orte_iof_input_destroy(iof->input);
    orte_sink_destroy(iof->out);
    orte_sink_destroy(iof->err);
    free(iof->owed);
    if (iof->null_fd >= 0) {
        close(iof->null_fd);
    }
    free(iof->chunk);
    free(iof);
}

bool orte_iof_failed(const orte_iof_t *iof)
{
    return iof->file_failed || orte_sink_failed(iof->out) || orte_sink_failed(iof->err);
}

/* Make all directories of a path that ends in a file name. */
static int make_parents(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int rc = mkdir(path, 0777);
        *slash = '/';
        if (rc != 0 && errno != EEXIST) {
            return -1;
        }
    }
    return 0;
}

static const char *pattern_of(const orte_io_options_t *options, bool is_stderr)
{
    return is_stderr ? options->err_pattern : options->out_pattern;
}

/* The pattern with its %r, %h and %g replaced; the command line has checked it. One without %g gets the
 * number of a further job at its end: its files are not to overwrite those of the first. Returns the
 * length. */
static int expand_pattern(const orte_proc_t *proc, const char *pattern, char *path, size_t size)
{
    FILE *out = fmemopen(path, size, "w");
    int length = 0;
    bool has_job = proc->job->number == 1;

    if (out == NULL) {
        return (int)size;
    }
    for (const char *at = pattern; *at != '\0'; at++) {
        int more = 1;
        if (*at != '%') {
            putc(*at, out);
        } else if (*++at == 'r') {
            more = fprintf(out, "%d", proc->rank);
        } else if (*at == 'g') {
            more = fprintf(out, "%d", proc->job->number);
            has_job = true;
        } else if (*at == 'h') {
            more = fprintf(out, "%s", proc->node->name);
        } else {
            putc(*at, out);
        }
        length += more;
    }
    if (!has_job) {
        length += fprintf(out, ".%d", proc->job->number);
    }
    fclose(out);
    return length;
}

/* DIR/<job>/rank.<NN>/stdout: ranks are padded to one width, so that names sort. */
static int directory_path(const orte_iof_channel_t *channel, char *path, size_t size)
{
    const orte_job_t *job = channel->proc->job;
    int width = snprintf(NULL, 0, "%d", job->nprocs - 1);

    return snprintf(path, size, "%s/%d/rank.%0*d/%s", job->io.output_dir, job->number, width,
                    channel->proc->rank, channel->name);
}

static int open_file(orte_iof_channel_t *channel)
{
    const orte_io_options_t *options = &channel->proc->job->io;
    const char *pattern = pattern_of(options, channel->is_stderr);
    char path[PATH_MAX];

    if (options->output_dir == NULL && pattern == NULL) {
        return OPAL_SUCCESS;
    }
    int length = pattern != NULL ? expand_pattern(channel->proc, pattern, path, sizeof(path))
                                 : directory_path(channel, path, sizeof(path));
    if (length >= (int)sizeof(path)) {
        orte_report("the path of an output file is too long: %s",
                    pattern != NULL ? pattern : options->output_dir);
        return OPAL_ERR_BAD_PARAM;
    }
    if (make_parents(path) != 0 ||
        (channel->file = orte_sink_open(channel->iof->rt->base, path)) == NULL) {
        orte_report("can't write output file %s: %s", path, strerror(errno));
        return OPAL_ERR_IN_ERRNO;
    }
    return OPAL_SUCCESS;
}

/* Our end of a pipe does not block; the child's end is an ordinary one. */
static int make_pipe(int *ours, int *theirs, bool we_read)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    *ours = ends[we_read ? 0 : 1];
    *theirs = ends[we_read ? 1 : 0];
    return fcntl(*ours, F_SETFL, O_NONBLOCK);
}

/* A terminal without any processing, the size of ours. The program buffers lines, not blocks,
 * and sees that somebody looks, exactly if somebody does. */
static int make_terminal(int *ours, int *theirs)
{
    char name[64];
    struct termios settings;
    struct winsize size;
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

    if (master < 0) {
        return -1;
    }
    if (grantpt(master) != 0 || unlockpt(master) != 0 ||
        ptsname_r(master, name, sizeof(name)) != 0 ||
        (*theirs = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0) {
        close(master);
        return -1;
    }
    if (tcgetattr(*theirs, &settings) == 0) {
        cfmakeraw(&settings);
        tcsetattr(*theirs, TCSANOW, &settings);
    }
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
        ioctl(master, TIOCSWINSZ, &size);
    }
    *ours = master;
    return 0;
}

static int open_output(orte_iof_channel_t *channel, int *child)
{
    bool terminal = channel->proc->job->io.terminal && !channel->is_stderr;
    int ours;
    int rc = open_file(channel);

    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    /* Where there are no terminals left (or no /dev/pts at all) a pipe does. */
    if ((!terminal || make_terminal(&ours, child) != 0) && make_pipe(&ours, child, true) != 0) {
        orte_report("can't make a pipe for the output of rank %d: %s (the limit on open files is "
                    "shown by ulimit -Hn)", channel->proc->rank, strerror(errno));
        return OPAL_ERR_IN_ERRNO;
    }
    return orte_iof_channel_open(channel, ours);
}

static int open_input(orte_iof_t *iof, orte_proc_t *proc, int *child)
{
    int ours;

    if (!orte_iof_wants_input(proc)) {
        *child = fcntl(iof->null_fd, F_DUPFD_CLOEXEC, 0);
        return *child < 0 ? OPAL_ERR_IN_ERRNO : OPAL_SUCCESS;
    }
    if (make_pipe(&ours, child, false) != 0) {
        orte_report("can't make a pipe for the input of rank %d: %s", proc->rank, strerror(errno));
        return OPAL_ERR_IN_ERRNO;
    }
    return orte_iof_input_add(iof->input, ours);
}

/* Does the stream go to a file alone? */
static bool hides(const orte_io_options_t *options, bool is_stderr)
{
    return options->output_only_files || pattern_of(options, is_stderr) != NULL;
}

bool orte_iof_has_terminal(const orte_job_t *job)
{
    return use_terminal && !hides(&job->io, false) && isatty(STDOUT_FILENO);
}

static orte_iof_proc_t *make_channels(orte_iof_t *iof, orte_proc_t *proc)
{
    const orte_io_options_t *options = &proc->job->io;
    orte_iof_proc_t *io = calloc(1, sizeof(*io));

    if (io != NULL) {
        proc->iof = io;
        io->out = (orte_iof_channel_t){.iof = iof, .proc = proc, .name = "stdout", .fd = -1,
                                       .console = hides(options, false) ? NULL : iof->out};
        io->err = (orte_iof_channel_t){.iof = iof, .proc = proc, .name = "stderr",
                                       .is_stderr = true, .fd = -1,
                                       .console = hides(options, true) ? NULL : iof->err};
    }
    return io;
}

int orte_iof_prepare(orte_iof_t *iof, orte_proc_t *proc, int child[3])
{
    const orte_io_options_t *options = &proc->job->io;
    orte_iof_proc_t *io = make_channels(iof, proc);
    int rc;

    child[0] = child[1] = child[2] = -1;
    if (io == NULL) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    rc = open_input(iof, proc, &child[0]);
    if (rc == OPAL_SUCCESS) {
        rc = open_output(&io->out, &child[1]);
    }
    if (rc != OPAL_SUCCESS) {
        return rc;
    }
    if (options->merge_stderr) {
        child[2] = fcntl(child[1], F_DUPFD_CLOEXEC, 0);
        return child[2] < 0 ? OPAL_ERR_IN_ERRNO : OPAL_SUCCESS;
    }
    return open_output(&io->err, &child[2]);
}

void orte_iof_start(orte_iof_t *iof, orte_proc_t *proc)
{
    orte_iof_proc_t *io = proc->iof;

    (void)iof;
    orte_iof_channel_start(&io->out);
    orte_iof_channel_start(&io->err);
}

/* The first process of each host that wants input stands for its daemon. */
static int feed_daemons(orte_iof_t *iof, const orte_job_t *job)
{
    int rc = OPAL_SUCCESS;

    for (int i = 0; i < job->nprocs && rc == OPAL_SUCCESS; i++) {
        const orte_proc_t *proc = job->procs[i];
        if (proc->node->daemon != iof->rt->index && orte_iof_wants_input(proc)) {
            rc = orte_iof_input_add_daemon(iof->input, proc->node->daemon);
        }
    }
    return rc;
}

void orte_iof_start_stdin(orte_iof_t *iof, orte_job_t *job)
{
    if (job->io.stdin_kind == ORTE_STDIN_NONE) {
        return;
    }
    if (iof->rt->index == 0 && feed_daemons(iof, job) != OPAL_SUCCESS) {
        orte_warn("no memory to pass standard input to all hosts");
    }
    orte_iof_input_start(iof->input);
}

/* A process on another host has said something for the first time. */
static orte_iof_proc_t *remote_channels(orte_iof_t *iof, orte_proc_t *proc)
{
    orte_iof_proc_t *io = make_channels(iof, proc);

    if (io == NULL || open_file(&io->out) != OPAL_SUCCESS ||
        orte_iof_channel_open(&io->out, -1) != OPAL_SUCCESS ||
        open_file(&io->err) != OPAL_SUCCESS ||
        orte_iof_channel_open(&io->err, -1) != OPAL_SUCCESS) {
        orte_errmgr_step_failed(proc->job, ORTE_EXIT_USAGE);
        return NULL;
    }
    return io;
}

int orte_iof_prepare_remote(orte_iof_t *iof, orte_job_t *job)
{
    const orte_io_options_t *io = &job->io;

    if (io->output_dir == NULL && io->out_pattern == NULL && io->err_pattern == NULL) {
        return OPAL_SUCCESS; /* a process that says nothing needs nothing */
    }
    for (int i = 0; i < job->nprocs; i++) {
        if (!job->procs[i]->node->local && remote_channels(iof, job->procs[i]) == NULL) {
            return OPAL_ERROR;
        }
    }
    return OPAL_SUCCESS;
}

void orte_iof_remote_output(orte_iof_t *iof, orte_proc_t *proc, bool is_stderr, const void *data,
                            size_t size)
{
    orte_iof_proc_t *io = proc->iof != NULL ? proc->iof : remote_channels(iof, proc);
    orte_iof_channel_t *channel = io == NULL ? NULL : is_stderr ? &io->err : &io->out;

    if (channel != NULL && channel->open && !channel->unread) {
        orte_iof_channel_feed(channel, data, size);
    }
}

void orte_iof_remote_owes(orte_iof_t *iof, uint32_t daemon, bool is_stderr, size_t size)
{
    if (!is_full(iof, is_stderr)) {
        orte_daemons_consumed(iof->rt, daemon, size);
        return;
    }
    if (iof->owed == NULL) {
        iof->owed = calloc(iof->rt->ndaemons, sizeof(*iof->owed));
    }
    if (iof->owed == NULL) {
        orte_daemons_consumed(iof->rt, daemon, size); /* better too much than none for ever */
    } else {
        iof->owed[daemon][is_stderr] += size;
    }
}

void orte_iof_daemon_lost(orte_iof_t *iof, uint32_t daemon)
{
    orte_iof_input_remove_daemon(iof->input, daemon);
}

void orte_iof_remote_input(orte_iof_t *iof, const void *data, size_t size)
{
    orte_iof_input_take(iof->input, data, size);
}

void orte_iof_close_output(orte_iof_t *iof, orte_proc_t *proc, bool is_stderr)
{
    orte_iof_proc_t *io = proc->iof;

    (void)iof;
    if (io != NULL) {
        orte_iof_channel_close(is_stderr ? &io->err : &io->out);
    }
}

void orte_iof_remote_drained(orte_iof_t *iof)
{
    if (iof->rt->index == 0) {
        orte_iof_input_drained(iof->input);
    } else {
        resume_all(iof);
    }
}

void orte_iof_continued(orte_iof_t *iof)
{
    orte_iof_input_continued(iof->input);
}

void orte_iof_finish(orte_iof_t *iof, orte_proc_t *proc)
{
    orte_iof_proc_t *io = proc->iof;

    (void)iof;
    if (io == NULL) {
        return;
    }
    orte_iof_channel_finish(&io->out);
    orte_iof_channel_finish(&io->err);
    free(io);
    proc->iof = NULL;
}

size_t orte_iof_pending(const orte_iof_t *iof)
{
    return orte_sink_pending(iof->out) + orte_sink_pending(iof->err);
}

void orte_iof_when_flushed(orte_iof_t *iof, void (*task)(void *), void *arg)
{
    orte_iof_help_summary(iof);
    if (orte_iof_pending(iof) == 0) {
        orte_queue_post(iof->rt->queue, task, arg);
        return;
    }
    iof->flushed = task;
    iof->flushed_arg = arg;
}

static void take_report(void *arg, const char *text, size_t size)
{
    orte_iof_t *iof = arg;

    orte_sink_write(iof->err, text, size); /* lost if nobody is left who could read it */
}

void orte_iof_take_reports(orte_iof_t *iof)
{
    orte_report_through(take_report, iof);
}

void orte_iof_leave_reports(orte_iof_t *iof)
{
    orte_report_through(NULL, NULL);
    orte_sink_flush(iof->err);
}

bool orte_iof_output_lost(const orte_iof_t *iof)
{
    return iof->output_lost;
}
