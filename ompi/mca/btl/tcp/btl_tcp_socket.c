/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Options of connected sockets, and the greeting's input and output. */
#include "ompi/mca/btl/tcp/btl_tcp.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
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
    if (p->unsent > 0 && !loopback) {
        set_int(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, (int64_t) p->unsent, "TCP_NOTSENT_LOWAT");
    }
    if (p->user_timeout_ms > 0) {
        set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, p->user_timeout_ms, "TCP_USER_TIMEOUT");
    }
}

/* Does this host answer ARP for an address only where the device has it? By default the kernel answers for any
 * of its addresses on every device: what a peer sends to one may then come in by another in the same subnet. */
bool btl_tcp_is_arp_exact(const char *device)
{
    static const char *const settings[] = {"arp_ignore", "arp_filter"};
    const char *const devices[] = {"all", device};
    int value = 0;
    for (int i = 0; i < 4 && value == 0; i++) {
        char path[128];
        snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/%s", devices[i % 2], settings[i / 2]);
        FILE *file = fopen(path, "re");
        if (file && fscanf(file, "%d", &value) != 1) {
            value = 0;
        }
        if (file) {
            fclose(file);
        }
    }
    return value != 0;
}

static void bind_device(const btl_tcp_module_t *module, int fd, const char *name)
{
    if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, (socklen_t) strlen(name)) != 0) {
        BTL_TCP_LOG(MCA_LOG_DEBUG, "%s: can't bind to device \"%s\": %s", module->super.name, name,
                    strerror(errno));
    }
}

/* Would routing send from this address by itself? */
static bool is_routed(const btl_tcp_module_t *module, const opal_net_route_t *route, uint16_t port)
{
    struct sockaddr_storage sock;
    socklen_t len = opal_net_addr_to_sock(&route->to, module->kernel_index, port, &sock);
    opal_net_addr_t from;
    int fd = socket(route->to.family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool same = fd >= 0 && connect(fd, (struct sockaddr *) &sock, len) == 0 &&
                (len = sizeof(sock), getsockname(fd, (struct sockaddr *) &sock, &len)) == 0 &&
                opal_net_addr_from_sock(&sock, &from) && opal_net_addr_equal(&from, &route->from);
    if (fd >= 0) {
        close(fd);
    }
    return same;
}

static bool stays_bound(const btl_tcp_module_t *module, int family)
{
    return module->bind_device && (family == AF_INET6 || module->arp_exact);
}

void btl_tcp_bind_device(const btl_tcp_module_t *module, int fd, const opal_net_route_t *route, uint16_t port)
{
    if (module->bind_device &&
        (stays_bound(module, route->to.family) || !is_routed(module, route, port))) {
        bind_device(module, fd, mca_btl_tcp.card.nif[module->nif].name);
    }
}

void btl_tcp_bind_connected(const btl_tcp_module_t *module, int fd)
{
    struct sockaddr_storage sock;
    socklen_t len = sizeof(sock);
    opal_net_addr_t own;
    if (module->bind_device && getsockname(fd, (struct sockaddr *) &sock, &len) == 0 &&
        opal_net_addr_from_sock(&sock, &own)) {
        bind_device(module, fd, stays_bound(module, own.family) ? mca_btl_tcp.card.nif[module->nif].name : "");
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

bool btl_tcp_all_taken(int fd)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 && info.tcpi_unacked == 0;
}

bool btl_tcp_random(void *buf, size_t len)
{
    ssize_t n;
    do {
        n = getrandom(buf, len, 0);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t) len;
}
