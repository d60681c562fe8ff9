/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Single copy between address spaces: process_vm_readv and process_vm_writev. On many machines two copies
 * through a shared buffer, which run at the same time in two processes, are faster: whether get() is offered
 * as worthwhile (limits.get_min) is measured.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>
#include "ompi/mca/btl/shm/shm.h"

enum {
    SHM_CMA_SAMPLE = 256 * 1024, /* bytes of the measured copy */
    SHM_CMA_ROUNDS = 4,
    SHM_CMA_GET_MIN = 256 * 1024,
};

typedef ssize_t (*shm_cma_call_t)(pid_t, const struct iovec *, unsigned long, const struct iovec *,
                                  unsigned long, unsigned long);

/* Not permitted, or not there: said once; the user goes on with fragments. */
static int shm_cma_refused(mca_btl_endpoint_t *ep, int error)
{
    static atomic_bool told;
    ep->no_cma = true;
    if (!atomic_exchange(&told, true)) {
        SHM_LOG(ep->module, MCA_LOG_INFO, "no single copy to local rank %" PRIu32 " (%s): copying through "
                "shared memory", ep->local_rank, strerror(error));
    }
    return MCA_ERR_NOT_AVAILABLE;
}

/* The kernel may move less than asked for: go on where it stopped. */
static int shm_cma(mca_btl_endpoint_t *ep, const mca_btl_descriptor_t *desc, uint64_t remote,
                   shm_cma_call_t call)
{
    if (ep->no_cma || mca_btl_shm_params.single_copy == SHM_COPY_NEVER) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    if (ep->special & SHM_SPECIAL_DOWN) {
        return MCA_ERR_UNREACHABLE;
    }
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        struct iovec local = desc->iov[i];
        while (local.iov_len > 0) {
            struct iovec there = {.iov_base = (void *)(uintptr_t)remote, .iov_len = local.iov_len};
            ssize_t n = call(ep->segment.id.pid, &local, 1, &there, 1, 0);
            if (n <= 0) {
                return shm_cma_refused(ep, n < 0 ? errno : EFAULT);
            }
            local.iov_base = (char *)local.iov_base + n;
            local.iov_len -= (size_t)n;
            remote += (uint64_t)n;
        }
    }
    return 1;
}

int mca_btl_shm_put(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key)
{
    (void)key;
    return shm_cma(ep, desc, remote, process_vm_writev);
}

int mca_btl_shm_get(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key)
{
    (void)key;
    return shm_cma(ep, desc, remote, process_vm_readv);
}

/* SINGLE_COPY: nothing needs registering. */
int mca_btl_shm_register_mem(mca_btl_module_t *module, void *addr, size_t len, uint8_t key[MCA_BTL_KEY_MAX],
                             size_t *key_len, mca_btl_registration_t **registration)
{
    (void)module, (void)addr, (void)len, (void)key, (void)key_len, (void)registration;
    return MCA_ERR_NOT_SUPPORTED;
}

void mca_btl_shm_deregister_mem(mca_btl_module_t *module, mca_btl_registration_t *registration)
{
    (void)module, (void)registration;
}

/* ---- Does it pay? ---- */

/* The best of a few copies, in ns; UINT64_MAX if it does not work. */
static uint64_t shm_time_copy(shm_module_t *m, unsigned char *to, unsigned char *from, bool by_kernel)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < SHM_CMA_ROUNDS; i++) {
        uint64_t start = m->services->now_ns();
        if (by_kernel) {
            struct iovec local = {to, SHM_CMA_SAMPLE}, there = {from, SHM_CMA_SAMPLE};
            if (process_vm_readv(getpid(), &local, 1, &there, 1, 0) != SHM_CMA_SAMPLE) {
                return UINT64_MAX;
            }
        } else {
            memcpy(to, from, SHM_CMA_SAMPLE);
            __asm__ volatile("" : : "r"(to) : "memory");
        }
        uint64_t took = m->services->now_ns() - start;
        best = took < best ? took : best;
    }
    return best;
}

static bool shm_cma_pays(shm_module_t *m)
{
    unsigned char *memory = mmap(NULL, 2 * SHM_CMA_SAMPLE, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) {
        return false;
    }
    uint64_t two_copies = shm_time_copy(m, memory, memory + SHM_CMA_SAMPLE, false);
    uint64_t one_copy = shm_time_copy(m, memory, memory + SHM_CMA_SAMPLE, true);
    munmap(memory, 2 * SHM_CMA_SAMPLE);
    /* Two copies overlap where each process has a processor, and follow each other where not. */
    if (m->services->oversubscribed) {
        two_copies *= 2;
    }
    SHM_LOG(m, MCA_LOG_INFO, "%d KiB: single copy %" PRIu64 " ns, through shared memory %" PRIu64 " ns",
            SHM_CMA_SAMPLE / 1024, one_copy, two_copies);
    return one_copy < two_copies;
}

void mca_btl_shm_cma_measure(shm_module_t *m)
{
    if (m->cma_measured || mca_btl_shm_params.single_copy == SHM_COPY_NEVER) {
        return;
    }
    m->cma_measured = true;
    if (mca_btl_shm_params.single_copy == SHM_COPY_AUTO && !shm_cma_pays(m)) {
        return;
    }
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* Yama: let siblings in; an error means there is no Yama */
    m->super.limits.get_min = SHM_CMA_GET_MIN;
}
