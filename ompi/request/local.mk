# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
libmpi_abi_la_SOURCES += request/request.h request/request_private.h request/request.c request/wait.c \
    request/grequest.c mpi/p2p/p2p.c mpi/p2p/isendrecv.c \
    mpi/p2p/partitioned.h mpi/p2p/partitioned.c mpi/p2p/psend.c mpi/p2p/precv.c
