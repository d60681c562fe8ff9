# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Wrapper compilers and pkg-config files.
bin_PROGRAMS += mpicc mpicxx
wrapper_cppflags = $(AM_CPPFLAGS) -DWRAPPER_LDFLAGS='"$(HAWSER_LDFLAGS)"'
mpicc_SOURCES = tools/wrappers/wrapper.c
mpicc_CPPFLAGS = $(wrapper_cppflags) -DWRAPPER_COMPILER='"$(CC)"'
mpicc_LDADD = $(top_builddir)/opal/libhawser-opal.la
mpicxx_SOURCES = tools/wrappers/wrapper.c
mpicxx_CPPFLAGS = $(wrapper_cppflags) -DWRAPPER_CXX -DWRAPPER_COMPILER='"$(CXX)"'
mpicxx_LDADD = $(top_builddir)/opal/libhawser-opal.la

ompi_pkgconfig_files = tools/wrappers/hawser.pc tools/wrappers/ompi.pc \
    tools/wrappers/ompi-c.pc tools/wrappers/hawser-btl.pc
pkgconfig_DATA += $(ompi_pkgconfig_files)
EXTRA_DIST += tools/wrappers/mpi.pc.in tools/wrappers/hawser-btl.pc.in tools/wrappers/make-pc.sh
CLEANFILES += $(ompi_pkgconfig_files)

make_pc = $(AM_V_GEN)$(MKDIR_P) tools/wrappers && $(SHELL) $(srcdir)/tools/wrappers/make-pc.sh
pc_dirs = "$(prefix)" "$(pkgconfigdir)" "$(libdir)" "$(includedir)" "$(hawserlibdir)" "$(VERSION)"

tools/wrappers/hawser.pc tools/wrappers/ompi.pc tools/wrappers/ompi-c.pc: \
        tools/wrappers/mpi.pc.in tools/wrappers/make-pc.sh
	$(make_pc) $(srcdir)/tools/wrappers/mpi.pc.in $(pc_dirs) >$@.tmp && mv $@.tmp $@
tools/wrappers/hawser-btl.pc: tools/wrappers/hawser-btl.pc.in tools/wrappers/make-pc.sh
	$(make_pc) $(srcdir)/tools/wrappers/hawser-btl.pc.in $(pc_dirs) >$@.tmp && mv $@.tmp $@

# Other names of the wrappers, and of the library for programs that link -lmpi.
install-exec-hook:
	cd "$(DESTDIR)$(bindir)" && \
	    for name in mpicc_abi; do rm -f $$name && $(LN_S) mpicc $$name || exit 1; done && \
	    for name in mpic++ mpiCC mpicxx_abi; do rm -f $$name && $(LN_S) mpicxx $$name || exit 1; done
	cd "$(DESTDIR)$(libdir)" && rm -f libmpi.so && $(LN_S) libmpi_abi.so libmpi.so
uninstall-hook:
	cd "$(DESTDIR)$(bindir)" && rm -f mpicc_abi mpic++ mpiCC mpicxx_abi
	rm -f "$(DESTDIR)$(libdir)/libmpi.so"
