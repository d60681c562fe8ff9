# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
libhawser_opal_la_SOURCES += include/opal/constants.h include/opal/declspec.h \
    util/alone.c util/alone.h \
    util/argv.c util/argv.h util/cache.c util/cache.h \
    util/contest.c util/contest.h \
    util/copy.c util/copy.h util/error.c \
    util/help_envelope.c util/help_envelope.h \
    util/installdirs.c util/installdirs.h \
    util/keyval.c util/keyval.h \
    util/lock.c util/lock.h util/sanitize.h util/thread_text.c util/thread_text.h \
    util/nearest.c util/nearest.h \
    util/le.h util/net_card.c util/net_card.h util/net_if.c util/net_if.h \
    util/net_pair.c util/net_pair.h \
    util/output.c util/output.h \
    util/signals.h util/siphash.h util/socket_call.h \
    util/sha256.c util/sha256.h util/sha256_x86.c util/sha256_x86.h
