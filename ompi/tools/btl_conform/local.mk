# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# The BTL conformance kit: stands on the public headers alone.
bin_PROGRAMS += hawser-btl-conform
hawser_btl_conform_SOURCES = tools/btl_conform/conform.h tools/btl_conform/main.c \
    tools/btl_conform/services.c tools/btl_conform/link.c tools/btl_conform/bench.c \
    tools/btl_conform/tests.h tools/btl_conform/test_table.c tools/btl_conform/test_basic.c tools/btl_conform/test_flow.c \
    tools/btl_conform/test_life.c tools/btl_conform/test_let_go.c tools/btl_conform/test_rma.c tools/btl_conform/test_group.c \
    tools/btl_conform/faults.c
hawser_btl_conform_LDADD = -lpthread
