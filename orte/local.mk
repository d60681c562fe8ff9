# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Sources of the runtime's library, and its tools.
libhawser_orte_la_SOURCES += \
    util/env.c util/env.h \
    util/pack.c util/pack.h \
    util/proctree.c util/proctree.h \
    util/report.c util/report.h \
    util/stacks.c util/stacks.h \
    runtime/daemons.c runtime/daemons.h \
    runtime/follow.c runtime/follow.h \
    runtime/job.c runtime/types.h \
    runtime/params.c runtime/params.h \
    runtime/queue.c runtime/queue.h \
    runtime/reaper.c runtime/reaper.h \
    runtime/runtime.c runtime/runtime.h \
    runtime/session.c runtime/session.h \
    runtime/state.c runtime/state.h \
    runtime/topology.c runtime/topology.h \
    runtime/wire.c runtime/wire.h \
    pmix/data.c pmix/internal.h pmix/output.c pmix/register.c pmix/remote.c pmix/server.c pmix/server.h \
    pmix/spawn.c \
    mca/errmgr/errmgr.h mca/errmgr/base/ended.c mca/errmgr/base/ended.h mca/errmgr/base/errmgr.c \
    mca/iof/iof.h mca/iof/base/internal.h mca/iof/base/help.c mca/iof/base/input.c mca/iof/base/iof.c \
    mca/iof/base/output.c mca/iof/base/sink.c mca/iof/base/sink.h \
    mca/odls/odls.h mca/odls/base/environ.c mca/odls/base/environ.h mca/odls/base/odls.c \
    mca/odls/base/spawn.c mca/odls/base/spawn.h \
    mca/plm/plm.h mca/plm/base/agent.c mca/plm/base/base.h mca/plm/base/orders.c mca/plm/base/plm.c \
    mca/ras/ras.h mca/ras/base/base.h mca/ras/base/hostfile.c mca/ras/base/hosts.c \
    mca/ras/base/known.c mca/ras/base/names.c mca/ras/base/nodelist.c mca/ras/base/ras.c \
    mca/ras/base/select.c \
    mca/rmaps/rmaps.h mca/rmaps/base/bind.c mca/rmaps/base/bind.h mca/rmaps/base/display.c \
    mca/rmaps/base/map.c mca/rmaps/base/objects.c mca/rmaps/base/parse.c mca/rmaps/base/rank.c \
    mca/schizo/schizo.h mca/schizo/base/cli.h mca/schizo/base/files.c mca/schizo/base/help.c \
    mca/schizo/base/options.c mca/schizo/base/parse.c mca/schizo/base/programs.c

# Messages and collectives among daemons; apart, so that tests reach what the library hides.
noinst_LTLIBRARIES += liborte-oob.la
liborte_oob_la_SOURCES = oob/connect.c oob/greet.c oob/internal.h oob/link.c oob/listen.c oob/message.c \
    oob/oob.c oob/oob.h oob/tree.c oob/tree.h oob/wire.c oob/wire.h \
    mca/grpcomm/grpcomm.h mca/grpcomm/base/grpcomm.c
libhawser_orte_la_LIBADD += liborte-oob.la
libhawser_orte_la_DEPENDENCIES += liborte-oob.la

bin_PROGRAMS += mpirun orted orte-clean
orted_SOURCES = tools/orted/main.c
orted_LDADD = libhawser-orte.la $(top_builddir)/opal/libhawser-opal.la $(LIBEVENT_LIBS)
mpirun_SOURCES = tools/mpirun/main.c
mpirun_LDADD = libhawser-orte.la $(top_builddir)/opal/libhawser-opal.la $(LIBEVENT_LIBS)
orte_clean_SOURCES = tools/orte-clean/main.c
orte_clean_LDADD = libhawser-orte.la $(top_builddir)/opal/libhawser-opal.la

bashcompdir = $(datadir)/bash-completion/completions
dist_bashcomp_DATA = tools/mpirun/completion.bash

# Two names, one program.
install-exec-hook:
	cd $(DESTDIR)$(bindir) && rm -f mpiexec && $(LN_S) mpirun mpiexec
install-data-hook:
	cd $(DESTDIR)$(bashcompdir) && mv -f completion.bash mpirun && rm -f mpiexec && $(LN_S) mpirun mpiexec
uninstall-hook:
	rm -f $(DESTDIR)$(bindir)/mpiexec
	rm -f $(DESTDIR)$(bashcompdir)/mpirun $(DESTDIR)$(bashcompdir)/mpiexec
