/* Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests. */
#ifndef BTL_CONFORM_TESTS_H
#define BTL_CONFORM_TESTS_H

#include "ompi/tools/btl_conform/conform.h"

/* The peer's rank in a test between two; the process itself where the link reaches no other. */
int test_other(void);
conform_peer_t *test_start(void);
/* All of the other's fragments have come, and mine (`sent`) were handed up there. */
void test_finish(conform_peer_t *peer, uint64_t sent);

void test_contract(void);
void test_sizes(void);
void test_mixed(void);
void test_messages(void);
void test_room(void);
void test_descriptors(void);
void test_upcalls(void);
void test_keep(void);
void test_place(void);
void test_brief(void);
void test_parts(void);
void test_ahead(void);
void test_parts_death(void);
void test_putget(void);
void test_get_fail(void);
void test_remap(void);
void test_group(void);
void test_pressure(void);
void test_sleep(void);
void test_sleep_sender(void);
void test_threads(void);
void test_many(void);
void test_again(void);
void test_leak(void);
void test_death(void);
void test_recall(void);
void test_displace(void);
void test_fail(void);

#endif
