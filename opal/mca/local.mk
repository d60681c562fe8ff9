# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
libhawser_opal_la_SOURCES += \
    mca/base/component.c mca/base/component.h \
    mca/base/foreign.c mca/base/foreign.h \
    mca/base/framework.c mca/base/framework.h \
    mca/base/log.c mca/base/log.h \
    mca/base/selection.c mca/base/selection.h \
    mca/base/var.c mca/base/var.h \
    mca/base/var_check.c \
    mca/base/var_source.c mca/base/var_source.h \
    mca/base/var_value.c mca/base/var_value.h
libhawser_opal_la_SOURCES += mca/shmem/shmem.h mca/shmem/shmem.c
