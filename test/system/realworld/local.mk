# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Not part of "make check": these need an installed library and a network; test/run runs them.
EXTRA_DIST += \
    run \
    system/realworld/abi_swap.c \
    system/realworld/abi_swap.py \
    system/realworld/mpi4py-tests.list \
    system/realworld/mpi4py_suite.py \
    system/realworld/netpipe.py \
    system/realworld/petsc.py \
    system/realworld/realworld.py
