# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
libmpi_abi_la_SOURCES += attribute/attribute.h attribute/keyval.h attribute/attribute.c attribute/attribute_mpi.c
