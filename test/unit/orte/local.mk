# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause

check_PROGRAMS += unit/orte/ras_test
unit_orte_ras_test_SOURCES = unit/orte/ras_test.c
unit_orte_ras_test_LDADD = $(orte_lib) $(opal_lib)

check_PROGRAMS += unit/orte/rmaps_test
unit_orte_rmaps_test_SOURCES = unit/orte/rmaps_test.c
unit_orte_rmaps_test_LDADD = $(orte_lib) $(opal_lib) $(HWLOC_LIBS)

check_PROGRAMS += unit/orte/rmaps_hosts_test
unit_orte_rmaps_hosts_test_SOURCES = unit/orte/rmaps_hosts_test.c
unit_orte_rmaps_hosts_test_LDADD = $(orte_lib) $(opal_lib) $(HWLOC_LIBS)

check_PROGRAMS += unit/orte/schizo_test
unit_orte_schizo_test_SOURCES = unit/orte/schizo_test.c
unit_orte_schizo_test_LDADD = $(orte_lib) $(opal_lib)

# Messages among daemons: contents, tree, formats, greetings with strangers, worlds of processes.
orte_oob_core = $(top_builddir)/orte/liborte-oob.la $(orte_lib) $(opal_lib) $(LIBEVENT_LIBS)
check_PROGRAMS += unit/orte/pack_test unit/orte/oob/tree_test unit/orte/oob/wire_test
unit_orte_pack_test_LDADD = $(orte_lib) $(opal_lib)
unit_orte_oob_tree_test_LDADD = $(orte_lib)
unit_orte_oob_wire_test_LDADD = $(orte_oob_core)
check_PROGRAMS += unit/orte/oob/world_test
unit_orte_oob_world_test_SOURCES = unit/orte/oob/world_test.c unit/orte/oob/world.h
unit_orte_oob_world_test_LDADD = $(orte_lib) $(opal_lib) $(LIBEVENT_LIBS)
check_PROGRAMS += unit/orte/oob/greeting_test
unit_orte_oob_greeting_test_LDADD = $(orte_oob_core)
check_PROGRAMS += unit/orte/oob/grpcomm_test
unit_orte_oob_grpcomm_test_SOURCES = unit/orte/oob/grpcomm_test.c unit/orte/oob/world.h
unit_orte_oob_grpcomm_test_LDADD = $(orte_lib) $(opal_lib) $(LIBEVENT_LIBS)

# What mpirun and its daemons say to each other.
check_PROGRAMS += unit/orte/messages_test
unit_orte_messages_test_LDADD = $(orte_lib) $(opal_lib) $(HWLOC_LIBS)
