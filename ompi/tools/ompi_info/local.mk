# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# ompi_info: what is installed, and its parameters.
bin_PROGRAMS += ompi_info
ompi_info_SOURCES = tools/ompi_info/ompi_info.h tools/ompi_info/links.c tools/ompi_info/main.c tools/ompi_info/options.c \
    tools/ompi_info/params.c tools/ompi_info/print.c
ompi_info_LDADD = libmpi_abi.la $(top_builddir)/opal/libhawser-opal.la
