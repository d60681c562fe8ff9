# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# The tools interface, MPI_T.
libmpi_abi_la_SOURCES += mpi/tool/category.c mpi/tool/cvar.c mpi/tool/enum.c mpi/tool/event.c mpi/tool/init.c \
    mpi/tool/pvar.c mpi/tool/tool.h
