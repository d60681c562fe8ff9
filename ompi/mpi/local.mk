# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# The C binding. mpi.h, bodies.h and the shells are generated from the description in mpi/api: in a git
# checkout by Python, into the build tree; a dist tarball carries them.
libmpi_abi_la_SOURCES += include/ompi/handles.h mpi/c/counts.h mpi/c/state.h mpi/c/shell.h mpi/c/shell.c mpi/c/handles.c \
    mpi/c/environment.c mpi/c/abi.c mpi/c/status.c

ompi_generated_shells = \
    mpi/c/shell_abi.c mpi/c/shell_alltoall.c mpi/c/shell_attr.c mpi/c/shell_buffer.c \
    mpi/c/shell_cart.c mpi/c/shell_coll_init.c mpi/c/shell_comm.c mpi/c/shell_comm_make.c \
    mpi/c/shell_dynamic.c mpi/c/shell_errcode.c mpi/c/shell_errhandler.c mpi/c/shell_file.c \
    mpi/c/shell_file_read.c mpi/c/shell_file_write.c mpi/c/shell_gather.c mpi/c/shell_graph.c \
    mpi/c/shell_group.c mpi/c/shell_ialltoall.c mpi/c/shell_igather.c \
    mpi/c/shell_ineighbor.c mpi/c/shell_info.c mpi/c/shell_init.c mpi/c/shell_ireduce.c \
    mpi/c/shell_isend.c mpi/c/shell_name.c mpi/c/shell_neighbor.c \
    mpi/c/shell_neighbor_init.c mpi/c/shell_op.c mpi/c/shell_pack.c \
    mpi/c/shell_partitioned.c mpi/c/shell_recv.c mpi/c/shell_reduce.c mpi/c/shell_request.c \
    mpi/c/shell_rma.c mpi/c/shell_send.c mpi/c/shell_send_init.c mpi/c/shell_sendrecv.c \
    mpi/c/shell_session.c mpi/c/shell_status.c mpi/c/shell_t_category.c \
    mpi/c/shell_t_cvar.c mpi/c/shell_t_event.c mpi/c/shell_t_pvar.c mpi/c/shell_toint.c \
    mpi/c/shell_type.c mpi/c/shell_type_make.c mpi/c/shell_win.c mpi/c/shell_win_sync.c
ompi_generated = include/mpi.h mpi/c/bodies.h mpi/c/unsupported.c $(ompi_generated_shells)

include_HEADERS += include/mpi.h
libmpi_abi_la_SOURCES += mpi/c/bodies.h mpi/c/unsupported.c $(ompi_generated_shells)

ompi_api_sources = mpi/api/generate.py mpi/api/model.py mpi/api/header.py mpi/api/bodies.py \
    mpi/api/checks.py mpi/api/groups.py mpi/api/shells.py mpi/api/standard.json \
    mpi/api/constants.tab
EXTRA_DIST += $(ompi_api_sources) $(ompi_man_sources) mpi/api/extract.py

# One manual page for each routine: too many for a list here, so that a folder stands for them.
ompi_man_sources = mpi/api/man.py mpi/api/summaries.tab

if OMPI_GENERATE
ompi_man = mpi/man
mpi/man/generated: $(ompi_api_sources) $(ompi_man_sources)
	$(AM_V_GEN)rm -rf mpi/man && $(PYTHON) -B $(srcdir)/mpi/api/man.py mpi/man && touch $@
all-local: mpi/man/generated
ompi_man_made = mpi/man/generated
clean-local:
	rm -rf mpi/man
BUILT_SOURCES += $(ompi_generated)
CLEANFILES += $(ompi_generated) mpi/api/generated
$(ompi_generated): mpi/api/generated
	@test -f $@ || { rm -f mpi/api/generated; $(MAKE) $(AM_MAKEFLAGS) mpi/api/generated; }
mpi/api/generated: $(ompi_api_sources)
	$(AM_V_GEN)$(MKDIR_P) mpi/api && \
	    $(PYTHON) -B $(srcdir)/mpi/api/generate.py . $(ompi_generated) && touch $@
else
ompi_man = $(srcdir)/mpi/man
endif

install-data-local:
	$(MKDIR_P) "$(DESTDIR)$(mandir)/man3"
	$(INSTALL_DATA) $(ompi_man)/*.3 "$(DESTDIR)$(mandir)/man3"
uninstall-local:
	cd $(ompi_man) && for page in *.3; do rm -f "$(DESTDIR)$(mandir)/man3/$$page"; done
dist-hook: $(ompi_man_made)
	$(MKDIR_P) "$(distdir)/mpi/man" && cp $(ompi_man)/*.3 "$(distdir)/mpi/man"
