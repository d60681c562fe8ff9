# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
libmpi_abi_la_SOURCES += datatype/arrays.c datatype/constructors.c datatype/contents.c datatype/datatype.c \
    datatype/datatype.h datatype/f90.c datatype/internal.h datatype/pack.c datatype/predefined.c datatype/query.c
