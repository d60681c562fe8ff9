/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Counts what a process asks of libibverbs, without its knowledge: the dynamic linker's auditor (LD_AUDIT, see rtld-audit(7))
   gives it another ibv_open_device, also where it looks that up by itself, and the device's calls go through ours. Sums of all
   processes go to the file that VERBS_COUNT names, of 4096 bytes of zeros, as 64-bit numbers in the order of `counts`; behind
   them copies_count.c adds the bytes copied. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SENDS, SENT_BYTES, INLINE, SIGNALED, RECEIVES, SEND_COMPLETIONS, RECEIVE_COMPLETIONS, POLLS };

static uint64_t *counts;
static struct ibv_context_ops ops; /* all devices have the same driver here */
static struct ibv_context *(*open_device)(struct ibv_device *);

static void count(int what, uint64_t n)
{
    __atomic_fetch_add(&counts[what], n, __ATOMIC_RELAXED);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    for (struct ibv_send_wr *w = wr; w; w = w->next) {
        count(SENDS, 1);
        count(INLINE, !!(w->send_flags & IBV_SEND_INLINE));
        count(SIGNALED, !!(w->send_flags & IBV_SEND_SIGNALED));
        for (int i = 0; i < w->num_sge; i++) {
            count(SENT_BYTES, w->sg_list[i].length);
        }
    }
    return ops.post_send(qp, wr, bad);
}

static void count_receives(const struct ibv_recv_wr *wr)
{
    for (; wr; wr = wr->next) {
        count(RECEIVES, 1);
    }
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    count_receives(wr);
    return ops.post_recv(qp, wr, bad);
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    count_receives(wr);
    return ops.post_srq_recv(srq, wr, bad);
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
    int n = ops.poll_cq(cq, most, wc);
    count(POLLS, 1);
    for (int i = 0; i < n; i++) {
        count(wc[i].opcode & IBV_WC_RECV ? RECEIVE_COMPLETIONS : SEND_COMPLETIONS, 1);
    }
    return n;
}

static struct ibv_context *open_counted(struct ibv_device *device)
{
    struct ibv_context *c = open_device(device);
    if (c) {
        ops = c->ops;
        c->ops.post_send = post_send;
        c->ops.post_recv = post_recv;
        c->ops.post_srq_recv = post_srq_recv;
        c->ops.poll_cq = poll_cq;
    }
    return c;
}

unsigned int la_version(unsigned int version)
{
    const char *path = getenv("VERBS_COUNT");
    int fd = path ? open(path, O_RDWR) : -1;
    void *all = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) {
        close(fd);
    }
    counts = all;
    return all == MAP_FAILED ? 0 : version; /* 0: without us */
}

unsigned int la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie)
{
    (void) map;
    (void) space;
    (void) cookie;
    return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

uintptr_t la_symbind64(Elf64_Sym *sym, unsigned int n, uintptr_t *from, uintptr_t *to, unsigned int *flags,
                       const char *name)
{
    (void) n;
    (void) from;
    (void) to;
    (void) flags;
    if (strcmp(name, "ibv_open_device") == 0) {
        open_device = (struct ibv_context *(*) (struct ibv_device *)) sym->st_value;
        return (uintptr_t) open_counted;
    }
    return sym->st_value;
}
