# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
libhawser_opal_la_SOURCES += runtime/opal.c runtime/opal.h runtime/progress.h runtime/refs.h runtime/progress_private.h runtime/progress.c runtime/progress_lanes.c runtime/event.c runtime/bell.h runtime/bell.c runtime/door.h runtime/door.c
