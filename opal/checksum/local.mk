# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
libhawser_opal_la_SOURCES += checksum/checksum.c checksum/checksum.h checksum/crc32c.h \
    checksum/crc32c_arm.c checksum/crc32c_streams.h checksum/crc32c_table.c checksum/crc32c_x86.c
