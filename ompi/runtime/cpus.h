/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* How many processors the processes of this job may use together on this node. */
#ifndef OMPI_RUNTIME_CPUS_H
#define OMPI_RUNTIME_CPUS_H

/* At least 1. The smaller of the affinity mask (the launcher's, if ours is a part of it: then we
 * were bound one by one) and the control groups' quota of processor time. */
unsigned ompi_usable_cpus(void);

#endif
