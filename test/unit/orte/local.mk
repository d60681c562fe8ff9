# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause

check_PROGRAMS += unit/orte/ras_test
unit_orte_ras_test_SOURCES = unit/orte/ras_test.c
unit_orte_ras_test_LDADD = $(orte_lib) $(opal_lib)

check_PROGRAMS += unit/orte/rmaps_test
unit_orte_rmaps_test_SOURCES = unit/orte/rmaps_test.c
unit_orte_rmaps_test_LDADD = $(orte_lib) $(opal_lib) $(HWLOC_LIBS)

check_PROGRAMS += unit/orte/schizo_test
unit_orte_schizo_test_SOURCES = unit/orte/schizo_test.c
unit_orte_schizo_test_LDADD = $(orte_lib) $(opal_lib)
