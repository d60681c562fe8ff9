# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause

include $(srcdir)/tools/wrappers/local.mk
include $(srcdir)/tools/btl_conform/local.mk
include $(srcdir)/tools/ompi_info/local.mk
