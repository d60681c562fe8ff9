# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
libhawser_opal_la_SOURCES += class/list.h \
    class/free_list.c class/free_list.h \
    class/hash.c class/hash.h
