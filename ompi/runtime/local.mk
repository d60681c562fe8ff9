# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
libmpi_abi_la_SOURCES += runtime/rte.h runtime/runtime.h runtime/rte.c runtime/rte_client.h runtime/rte_secret.c runtime/rte_fence.c \
    runtime/rte_cards.c runtime/rte_watch.c runtime/launcher.h runtime/launcher.c \
    runtime/names.h runtime/names.c runtime/spawn.h runtime/spawn.c runtime/cpus.h runtime/cpus.c runtime/pvar.h \
    runtime/pvar.c runtime/alike.h runtime/alike.c runtime/event.h runtime/event.c runtime/params.h runtime/params.c runtime/instance.c runtime/init.c
