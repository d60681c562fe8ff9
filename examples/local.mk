# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Examples are compiled with the installed mpicc, as a user does; here they are only shipped.
EXTRA_DIST += \
    examples/btl_loop/Makefile \
    examples/btl_loop/btl_loop.c \
    examples/hello.c \
    examples/links.c
