# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Programs that start themselves under mpirun (support/mpi_test.h).
check_PROGRAMS += mpi/comm
mpi_comm_SOURCES = mpi/comm.c
mpi_comm_LDADD = $(ompi_lib) -lpthread
