# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
libhawser_opal_la_SOURCES += datatype/arch.c datatype/arch.h datatype/convertor.c datatype/convertor.h \
    datatype/convertor_remote.c datatype/copy.c datatype/copy.h datatype/copy_second.c datatype/copy_second.h datatype/datatype.c datatype/datatype.h \
    datatype/layout.c datatype/layout.h datatype/sequence.h datatype/walk.h
