# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
libhawser_opal_la_SOURCES += util/error.c util/output.h util/installdirs.h include/opal/constants.h include/opal/declspec.h
