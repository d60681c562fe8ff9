# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Fuzz targets in their short, deterministic form; see the head of each source for the long one.
check_PROGRAMS += fuzz/btl_tcp_fuzz
fuzz_btl_tcp_fuzz_SOURCES = fuzz/btl_tcp_fuzz.c
fuzz_btl_tcp_fuzz_LDADD = $(btl_tcp_core)
EXTRA_DIST += fuzz/btl_tcp
check_PROGRAMS += fuzz/oob_fuzz
fuzz_oob_fuzz_SOURCES = fuzz/oob_fuzz.c
fuzz_oob_fuzz_LDADD = $(orte_oob_core)
EXTRA_DIST += fuzz/oob
check_PROGRAMS += fuzz/btl_udp_fuzz
fuzz_btl_udp_fuzz_SOURCES = fuzz/btl_udp_fuzz.c
fuzz_btl_udp_fuzz_LDADD = $(btl_udp_core)
EXTRA_DIST += fuzz/btl_udp
