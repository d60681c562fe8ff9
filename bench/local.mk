# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# The benchmarks are compiled by bench/run itself, for each MPI library; here they are only shipped.
EXTRA_DIST += \
    bench/README.md \
    bench/run \
    bench/instructions \
    bench/startup \
    bench/links \
    bench/pack \
    bench/verbs \
    bench/driver/__init__.py \
    bench/driver/goals.py \
    bench/driver/jobs.py \
    bench/driver/machine.py \
    bench/driver/main.py \
    bench/driver/netns.py \
    bench/driver/peers.py \
    bench/driver/rdma.py \
    bench/driver/report.py \
    bench/driver/suites.py \
    bench/src/allconnect.c \
    bench/src/checksum.c \
    bench/src/collectives.c \
    bench/src/copies_count.c \
    bench/src/crowd.c \
    bench/src/datatype_pack.c \
    bench/src/idle.c \
    bench/src/latency.c \
    bench/src/matching.c \
    bench/src/memory.c \
    bench/src/mpi_support.h \
    bench/src/overlap.c \
    bench/src/raw_checked.c \
    bench/src/raw_crowd.c \
    bench/src/raw_pmix.c \
    bench/src/raw_shm.c \
    bench/src/raw_support.h \
    bench/src/raw_tcp.c \
    bench/src/raw_udp.c \
    bench/src/startup.c \
    bench/src/stream.c \
    bench/src/support.h \
    bench/src/threads.c \
    bench/src/throughput.c \
    bench/src/verbs_count.c \
    bench/src/wakeup.c
