/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Options of connected sockets, and the greeting's input and output. */
#include "ompi/mca/btl/tcp/btl_tcp.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

static void set_int(int fd, int level, int option, int64_t value, const char *name)
{
    int number = (int) value;
    if (setsockopt(fd, level, option, &number, sizeof(number)) != 0) {
        BTL_TCP_LOG(MCA_LOG_INFO, "the kernel refuses %s = %d: %s", name, number, strerror(errno));
    }
}

/* The congestion control that sockets of the loopback interface get unless the user says otherwise:
 * a model of the path, as of bbr, costs half of the bandwidth where the path is a memory copy. */
static const char *congestion_control(bool loopback)
{
    const char *asked = mca_btl_tcp.params.congestion;
    return asked && *asked ? asked : loopback ? "reno" : NULL;
}

void btl_tcp_socket_options(int fd, bool loopback)
{
    const btl_tcp_params_t *p = &mca_btl_tcp.params;
    const char *congestion = congestion_control(loopback);
    set_int(fd, IPPROTO_TCP, TCP_NODELAY, p->nodelay, "TCP_NODELAY");
    if (p->sndbuf > 0) {
        set_int(fd, SOL_SOCKET, SO_SNDBUF, (int64_t) p->sndbuf, "SO_SNDBUF");
    }
    if (p->rcvbuf > 0) {
        set_int(fd, SOL_SOCKET, SO_RCVBUF, (int64_t) p->rcvbuf, "SO_RCVBUF");
    }
    if (congestion && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion,
                                 (socklen_t) strlen(congestion)) != 0) {
        BTL_TCP_LOG(MCA_LOG_INFO, "the kernel refuses congestion control %s: %s", congestion,
                    strerror(errno));
    }
    if (p->keepalive_s > 0 && !loopback) {
        set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE");
        set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, p->keepalive_s, "TCP_KEEPIDLE");
        set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, (p->keepalive_s + 5) / 6, "TCP_KEEPINTVL");
        set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, 6, "TCP_KEEPCNT");
    }
    if (p->user_timeout_ms > 0) {
        set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, p->user_timeout_ms, "TCP_USER_TIMEOUT");
    }
}

void btl_tcp_bind_device(const btl_tcp_module_t *module, int fd)
{
    const char *name = mca_btl_tcp.card.nif[module->nif].name;
    if (module->bind_device &&
        setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, (socklen_t) strlen(name)) != 0) {
        BTL_TCP_LOG(MCA_LOG_DEBUG, "can't bind to %s: %s", name, strerror(errno));
    }
}

int btl_tcp_greeting_receive(int fd, uint8_t *buf, size_t *have, size_t need)
{
    while (*have < need) {
        ssize_t n = recv(fd, buf + *have, need - *have, MSG_DONTWAIT);
        if (n > 0) {
            *have += (size_t) n;
        } else if (n == 0) {
            errno = 0;
            return -1;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return 0;
        } else if (errno != EINTR) {
            return -1;
        }
    }
    return 1;
}

bool btl_tcp_greeting_send(int fd, const uint8_t *buf, size_t len)
{
    ssize_t n;
    do {
        n = send(fd, buf, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t) len; /* a fresh socket has room for a greeting */
}

bool btl_tcp_random(void *buf, size_t len)
{
    ssize_t n;
    do {
        n = getrandom(buf, len, 0);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t) len;
}
