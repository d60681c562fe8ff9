/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Private to the ras base. */
#ifndef ORTE_MCA_RAS_BASE_BASE_H
#define ORTE_MCA_RAS_BASE_BASE_H

#include "orte/mca/ras/ras.h"

/* Whole number from 1 to INT_MAX that fills the text; false if it is none. */
bool orte_ras_base_number(const char *text, int *value);
/* Append an empty mention; NULL: no memory. */
orte_ras_host_t *orte_ras_base_append(orte_ras_hosts_t *hosts, const char *where);
/* Take "[user@]name" with the brackets of an address, into the mention. Reports. */
int orte_ras_base_set_name(orte_ras_host_t *host, const char *text);
bool orte_ras_base_is_address(const char *name);
/* Does the name mean this host? `self` is what the resource manager calls it, or NULL. */
bool orte_ras_base_is_self(const orte_runtime_t *rt, const char *name, const char *self);
/* Do two names mean one host: equal, or one is the other's first part. */
bool orte_ras_base_same_name(const char *a, const char *b);
/* The hosts of an allocation become rt->nodes. */
int orte_ras_base_make_nodes(orte_runtime_t *rt, const orte_ras_allocation_t *allocation);
/* Read the allocation of the component that serves, if any: title is NULL then. */
int orte_ras_base_discover(orte_ras_allocation_t *allocation);
/* The value of parameter ras_base_default_hostfile, NULL if there is no such file. */
const char *orte_ras_base_default_hostfile(void);
/* The description that stands for hosts of the simulator, or NULL. */
extern char *orte_ras_base_simulated;

#endif
