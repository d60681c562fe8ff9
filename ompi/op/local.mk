# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
libmpi_abi_la_SOURCES += op/arithmetic.c op/arithmetic.inc op/complex.inc op/half.c op/logical.c op/logical.inc \
    op/loops.h op/op.c op/op.h op/pair.c op/pair.inc
