# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
dist_doc_DATA += \
    docs/btl.md \
    docs/collectives.md \
    docs/direct-launch.md \
    docs/links.md \
    docs/performance.md \
    docs/reliability.md \
    docs/rehearsing-failures.md \
    docs/running.md \
    docs/testing.md \
    docs/verbs.md
plotsdir = $(docdir)/plots
dist_plots_DATA = \
    docs/plots/links-cut.svg \
    docs/plots/links-throttle.svg \
    docs/plots/verbs-memory.svg \
    docs/plots/verbs-striping.svg \
    docs/plots/verbs-time.svg
dist_man1_MANS = \
    docs/man/hawser-btl-conform.1 \
    docs/man/mpiCC.1 \
    docs/man/mpic++.1 \
    docs/man/mpicc.1 \
    docs/man/mpicc_abi.1 \
    docs/man/mpicxx.1 \
    docs/man/mpicxx_abi.1 \
    docs/man/mpiexec.1 \
    docs/man/mpirun.1 \
    docs/man/ompi_info.1 \
    docs/man/orte-clean.1 \
    docs/man/orted.1
