/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Comm_join: two processes meet over a socket that the user has connected (MPI-5.0, 11.10.6).
 * A text travels as its length in four bytes, most significant first, and its bytes. The socket is
 * quiescent before and after, and stays the user's. Where that holds and the processes still can't have a communicator, they
 * get MPI_COMM_NULL, which is no error.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ompi/communicator/meet.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/mpi/c/bodies.h"
#include "opal/runtime/progress.h"
#include "opal/util/output.h"

enum { TEXT_MAX = 4096 };

typedef struct line {
    int fd;
    bool quiet; /* all that was written on either side has been read */
} line_t;

static int socket_error(const char *what)
{
    return errno ? ompi_error(MPI_ERR_OTHER, "the socket can't be %s: %s", what, strerror(errno))
                 : ompi_error(MPI_ERR_OTHER, "the other side has closed the socket");
}

/* The descriptor may block or not: nothing is done before it is ready, and MPI goes on meanwhile,
 * as the other side may need that to come here. */
static int wait_ready(int fd, short events)
{
    struct pollfd ready = {.fd = fd, .events = events};
    for (;;) {
        int count = poll(&ready, 1, 1);
        if (count > 0) {
            return MPI_SUCCESS;
        }
        if (count < 0 && errno != EINTR) {
            return socket_error("waited for");
        }
        opal_progress();
    }
}

static int write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        int rc = wait_ready(fd, POLLOUT);
        if (rc != MPI_SUCCESS) {
            return rc;
        }
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EINTR && errno != EAGAIN) {
            return socket_error("written");
        }
        bytes += n > 0 ? n : 0;
        len -= n > 0 ? (size_t) n : 0;
    }
    return MPI_SUCCESS;
}

static int read_all(int fd, char *bytes, size_t len)
{
    while (len > 0) {
        int rc = wait_ready(fd, POLLIN);
        if (rc != MPI_SUCCESS) {
            return rc;
        }
        errno = 0;
        ssize_t n = recv(fd, bytes, len, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
            return socket_error("read");
        }
        bytes += n > 0 ? n : 0;
        len -= n > 0 ? (size_t) n : 0;
    }
    return MPI_SUCCESS;
}

/* Texts are far shorter than any socket's buffer: both sides can write first. */
static int swap_texts(int fd, const char *mine, char **theirs)
{
    size_t len = strlen(mine);
    unsigned char head[4] = {(unsigned char) (len >> 24), (unsigned char) (len >> 16),
                             (unsigned char) (len >> 8), (unsigned char) len};
    int rc = write_all(fd, (char *) head, sizeof head);
    rc = rc == MPI_SUCCESS ? write_all(fd, mine, len) : rc;
    rc = rc == MPI_SUCCESS ? read_all(fd, (char *) head, sizeof head) : rc;
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    len = (size_t) head[0] << 24 | (size_t) head[1] << 16 | (size_t) head[2] << 8 | head[3];
    if (len > TEXT_MAX) {
        return ompi_error(MPI_ERR_OTHER, "what comes from the socket is not another MPI_Comm_join");
    }
    *theirs = calloc(len + 1, 1);
    return *theirs ? read_all(fd, *theirs, len) : MPI_ERR_NO_MEM;
}

static int swap(void *context, const char *mine, char **theirs)
{
    line_t *line = context;
    int rc = swap_texts(line->fd, mine, theirs);
    line->quiet = rc == MPI_SUCCESS;
    return rc;
}

int ompi_mpi_comm_join(int fd, ompi_communicator_t **intercomm)
{
    line_t line = {.fd = fd};
    const ompi_meeting_t meeting = {.swap = swap, .context = &line};
    int rc = ompi_comm_connect_meeting(&ompi_comm_self, 0, &meeting, intercomm);
    if (rc == MPI_SUCCESS || rc == MPI_ERR_NO_MEM || !line.quiet) {
        return rc;
    }
    char text[MPI_MAX_ERROR_STRING];
    const char *why = ompi_error_reason(rc);
    ompi_error_text(rc, text);
    opal_show_help("mpi:join", "MPI_Comm_join gives MPI_COMM_NULL, as the two processes can't have a communicator: %s",
                   *why ? why : text);
    return MPI_SUCCESS;
}
