# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
libmpi_abi_la_SOURCES += errhandler/errhandler.h session/session.h errhandler/errhandler.c errhandler/errcode.c errhandler/initial.c
