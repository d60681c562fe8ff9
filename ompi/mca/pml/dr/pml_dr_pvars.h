/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Performance variables of dr: what came damaged, and what is known of each path, a link to a process. */
#ifndef MCA_PML_DR_PVARS_H
#define MCA_PML_DR_PVARS_H

/* Once there are links. Returns an OPAL_ code. */
int dr_pvars_open(void);
/* Before peers go. */
void dr_pvars_close(void);

#endif
