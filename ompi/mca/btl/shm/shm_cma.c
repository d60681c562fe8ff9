/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/*
 * Single copy between address spaces: process_vm_readv and process_vm_writev. On many machines two
 * copies through a shared buffer, which run at the same time in two processes, are faster: get()
 * is offered as worth trying (limits.get_try), and the user measures both on its messages.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>
#include "ompi/mca/btl/shm/shm.h"

enum {
    SHM_CMA_MIN = 8 * 1024, /* below it the system call takes longer than any copy */
};

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

/* Where pid namespaces differ but files are shared, its pid is somebody else here: only the peer has
 * this segment's token at that place. */
static bool shm_cma_is_peer(mca_btl_endpoint_t *ep)
{
    uint64_t token[2] = {0};
    struct iovec here = {.iov_base = token, .iov_len = sizeof(token)};
    struct iovec there = {.iov_base = (void *)(uintptr_t)ep->header->token_address,
                          .iov_len = sizeof(token)};
    if (ep->cma_proved) {
        return true;
    }
    if (process_vm_readv(ep->segment.id.pid, &here, 1, &there, 1, 0) != (ssize_t)sizeof(token)) {
        return false;
    }
    errno = ESRCH;
    ep->cma_proved = memcmp(token, ep->header->token, sizeof(token)) == 0;
    return ep->cma_proved;
}

int mca_btl_shm_cma_ready(mca_btl_endpoint_t *ep)
{
    if (ep->no_cma || mca_btl_shm_params.single_copy == SHM_COPY_NEVER) {
        return MCA_ERR_NOT_AVAILABLE;
    }
    if (ep->special & SHM_SPECIAL_DOWN) {
        return MCA_ERR_UNREACHABLE;
    }
    return shm_cma_is_peer(ep) ? MCA_SUCCESS : shm_cma_refused(ep, errno);
}

/* The kernel may move less than asked for: go on where it stopped. */
bool mca_btl_shm_cma_move(mca_btl_endpoint_t *ep, shm_cma_call_t call, uint64_t here, uint64_t there, uint64_t len)
{
    while (len > 0) {
        struct iovec local = {.iov_base = (void *)(uintptr_t)here, .iov_len = len};
        struct iovec remote = {.iov_base = (void *)(uintptr_t)there, .iov_len = len};
        ssize_t n = call(ep->segment.id.pid, &local, 1, &remote, 1, 0);
        if (n <= 0) {
            errno = n < 0 ? errno : EFAULT;
            return false;
        }
        here += (uint64_t)n;
        there += (uint64_t)n;
        len -= (uint64_t)n;
    }
    return true;
}

static int shm_cma(mca_btl_endpoint_t *ep, const mca_btl_descriptor_t *desc, uint64_t remote,
                   shm_cma_call_t call)
{
    for (uint32_t i = 0; i < desc->iov_count; i++) {
        const struct iovec *local = &desc->iov[i];
        if (!mca_btl_shm_cma_move(ep, call, (uint64_t)(uintptr_t)local->iov_base, remote, local->iov_len)) {
            return shm_cma_refused(ep, errno);
        }
        remote += local->iov_len;
    }
    return 1;
}

int mca_btl_shm_put(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key)
{
    (void)key;
    int rc = mca_btl_shm_cma_ready(ep);
    return rc == MCA_SUCCESS ? shm_cma(ep, desc, remote, process_vm_writev) : rc;
}

int mca_btl_shm_get(mca_btl_endpoint_t *ep, mca_btl_descriptor_t *desc, uint64_t remote, const void *key)
{
    (void)key;
    int rc = mca_btl_shm_cma_ready(ep);
    /* What the sender writes would have to cross over once more; or it has to copy for itself. */
    bool shared = !(desc->flags & (MCA_BTL_DESC_READ | MCA_BTL_DESC_ALONE));
    if (rc == MCA_SUCCESS && shared && desc->iov_count == 1 && desc->iov[0].iov_len >= mca_btl_shm_params.share_min
        && !ep->module->services->oversubscribed) {
        rc = mca_btl_shm_share_get(ep, desc, remote);
        if (rc != MCA_ERR_AGAIN) {
            return rc;
        }
        rc = MCA_SUCCESS;
    }
    return rc == MCA_SUCCESS ? shm_cma(ep, desc, remote, process_vm_readv) : rc;
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

/* ---- Is it offered? ---- */

void mca_btl_shm_cma_offer(shm_module_t *m)
{
    if (m->cma_offered || mca_btl_shm_params.single_copy == SHM_COPY_NEVER) {
        return;
    }
    m->cma_offered = true;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* Yama: let siblings in; an error means there is no Yama */
    if (mca_btl_shm_params.single_copy == SHM_COPY_ALWAYS) {
        m->super.limits.get_min = SHM_CMA_MIN;
    } else {
        m->super.limits.get_try = SHM_CMA_MIN;
    }
}
