# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
libmpi_abi_la_SOURCES += communicator/communicator.h communicator/context.h communicator/communicator.c \
    communicator/context.c communicator/query.c communicator/create.c communicator/split.h communicator/split.c \
    communicator/hardware.c communicator/intercomm.c communicator/from_group.c communicator/idup.c
libmpi_abi_la_SOURCES += communicator/dynamic.h communicator/dynamic.c communicator/meet.h \
    communicator/meet.c communicator/port.h communicator/port.c communicator/join.c \
    communicator/roster.h communicator/roster.c
