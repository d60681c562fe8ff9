# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause

check_PROGRAMS += unit/opal/datatype/arch_test
unit_opal_datatype_arch_test_LDADD = $(opal_lib)
check_PROGRAMS += unit/opal/datatype/layout_property
unit_opal_datatype_layout_property_SOURCES = unit/opal/datatype/layout_property.c
unit_opal_datatype_layout_property_LDADD = $(opal_lib)
check_PROGRAMS += unit/opal/datatype/second_test
unit_opal_datatype_second_test_SOURCES = unit/opal/datatype/second_test.c
unit_opal_datatype_second_test_LDADD = $(opal_lib)

check_PROGRAMS += unit/opal/checksum/checksum_test
unit_opal_checksum_checksum_test_SOURCES = unit/opal/checksum/checksum_test.c
unit_opal_checksum_checksum_test_LDADD = $(opal_lib)

check_PROGRAMS += unit/opal/class/hash_test
unit_opal_class_hash_test_SOURCES = unit/opal/class/hash_test.c
unit_opal_class_hash_test_LDADD = $(opal_lib)

check_PROGRAMS += unit/opal/class/free_list_test
unit_opal_class_free_list_test_SOURCES = unit/opal/class/free_list_test.c
unit_opal_class_free_list_test_LDADD = $(opal_lib)

check_PROGRAMS += unit/opal/util/argv_test
unit_opal_util_argv_test_SOURCES = unit/opal/util/argv_test.c
unit_opal_util_argv_test_LDADD = $(opal_lib)

check_PROGRAMS += unit/opal/util/keyval_test
unit_opal_util_keyval_test_SOURCES = unit/opal/util/keyval_test.c
unit_opal_util_keyval_test_LDADD = $(opal_lib)

check_PROGRAMS += unit/opal/util/cache_test
unit_opal_util_cache_test_SOURCES = unit/opal/util/cache_test.c
unit_opal_util_cache_test_LDADD = $(opal_lib)
check_PROGRAMS += unit/opal/util/contest_test
unit_opal_util_contest_test_SOURCES = unit/opal/util/contest_test.c
unit_opal_util_contest_test_LDADD = $(opal_lib)

check_PROGRAMS += unit/opal/util/copy_test
unit_opal_util_copy_test_SOURCES = unit/opal/util/copy_test.c
unit_opal_util_copy_test_LDADD = $(opal_lib)

check_PROGRAMS += unit/opal/util/alone_test
unit_opal_util_alone_test_SOURCES = unit/opal/util/alone_test.c
unit_opal_util_alone_test_LDADD = $(opal_lib) -lpthread
check_PROGRAMS += unit/opal/util/lock_test
unit_opal_util_lock_test_SOURCES = unit/opal/util/lock_test.c
unit_opal_util_lock_test_LDADD = $(opal_lib) -lpthread

check_PROGRAMS += unit/opal/util/nearest_test
unit_opal_util_nearest_test_SOURCES = unit/opal/util/nearest_test.c
unit_opal_util_nearest_test_LDADD = $(opal_lib)

check_PROGRAMS += unit/opal/util/output_test
unit_opal_util_output_test_SOURCES = unit/opal/util/output_test.c
unit_opal_util_output_test_LDADD = $(opal_lib)

check_PROGRAMS += unit/opal/mca/var_test
unit_opal_mca_var_test_SOURCES = unit/opal/mca/var_test.c unit/opal/mca/scene.h
unit_opal_mca_var_test_LDADD = $(opal_lib)

# Components for tests of the component architecture: one source, many faults.
tst_component_ldflags = -module -avoid-version -shared -rpath /nowhere $(HAWSER_COMPONENT_LDFLAGS)
check_LTLIBRARIES += unit/opal/mca/libtstgone.la
unit_opal_mca_libtstgone_la_SOURCES = unit/opal/mca/tst_needed.c
unit_opal_mca_libtstgone_la_LDFLAGS = -avoid-version -shared -rpath /nowhere $(HAWSER_COMPONENT_LDFLAGS)
check_LTLIBRARIES += unit/opal/mca/mca_tst_good.la
unit_opal_mca_mca_tst_good_la_SOURCES = unit/opal/mca/tst_component.c
unit_opal_mca_mca_tst_good_la_LDFLAGS = $(tst_component_ldflags)
unit_opal_mca_mca_tst_good_la_CPPFLAGS = $(AM_CPPFLAGS) -DTST_NAME=good
check_LTLIBRARIES += unit/opal/mca/mca_tst_other.la
unit_opal_mca_mca_tst_other_la_SOURCES = unit/opal/mca/tst_component.c
unit_opal_mca_mca_tst_other_la_LDFLAGS = $(tst_component_ldflags)
unit_opal_mca_mca_tst_other_la_CPPFLAGS = $(AM_CPPFLAGS) -DTST_NAME=other
check_LTLIBRARIES += unit/opal/mca/mca_tst_badmagic.la
unit_opal_mca_mca_tst_badmagic_la_SOURCES = unit/opal/mca/tst_component.c
unit_opal_mca_mca_tst_badmagic_la_LDFLAGS = $(tst_component_ldflags)
unit_opal_mca_mca_tst_badmagic_la_CPPFLAGS = $(AM_CPPFLAGS) -DTST_NAME=badmagic -DTST_MAGIC=1
check_LTLIBRARIES += unit/opal/mca/mca_tst_newmajor.la
unit_opal_mca_mca_tst_newmajor_la_SOURCES = unit/opal/mca/tst_component.c
unit_opal_mca_mca_tst_newmajor_la_LDFLAGS = $(tst_component_ldflags)
unit_opal_mca_mca_tst_newmajor_la_CPPFLAGS = $(AM_CPPFLAGS) -DTST_NAME=newmajor -DTST_MAJOR=3 -DTST_MINOR=0
check_LTLIBRARIES += unit/opal/mca/mca_tst_oldmajor.la
unit_opal_mca_mca_tst_oldmajor_la_SOURCES = unit/opal/mca/tst_component.c
unit_opal_mca_mca_tst_oldmajor_la_LDFLAGS = $(tst_component_ldflags)
unit_opal_mca_mca_tst_oldmajor_la_CPPFLAGS = $(AM_CPPFLAGS) -DTST_NAME=oldmajor -DTST_MAJOR=1 -DTST_MINOR=0
check_LTLIBRARIES += unit/opal/mca/mca_tst_newminor.la
unit_opal_mca_mca_tst_newminor_la_SOURCES = unit/opal/mca/tst_component.c
unit_opal_mca_mca_tst_newminor_la_LDFLAGS = $(tst_component_ldflags)
unit_opal_mca_mca_tst_newminor_la_CPPFLAGS = $(AM_CPPFLAGS) -DTST_NAME=newminor -DTST_MINOR=2
check_LTLIBRARIES += unit/opal/mca/mca_tst_nosymbol.la
unit_opal_mca_mca_tst_nosymbol_la_SOURCES = unit/opal/mca/tst_needed.c
unit_opal_mca_mca_tst_nosymbol_la_LDFLAGS = $(tst_component_ldflags)
unit_opal_mca_mca_tst_nosymbol_la_CPPFLAGS = $(AM_CPPFLAGS)
check_LTLIBRARIES += unit/opal/mca/mca_tst_misnamed.la
unit_opal_mca_mca_tst_misnamed_la_SOURCES = unit/opal/mca/tst_component.c
unit_opal_mca_mca_tst_misnamed_la_LDFLAGS = $(tst_component_ldflags)
unit_opal_mca_mca_tst_misnamed_la_CPPFLAGS = $(AM_CPPFLAGS) -DTST_NAME=misnamed -DTST_SAYS_NAME='"somebody"'
check_LTLIBRARIES += unit/opal/mca/mca_tst_nohardware.la
unit_opal_mca_mca_tst_nohardware_la_SOURCES = unit/opal/mca/tst_component.c
unit_opal_mca_mca_tst_nohardware_la_LDFLAGS = $(tst_component_ldflags)
unit_opal_mca_mca_tst_nohardware_la_CPPFLAGS = $(AM_CPPFLAGS) -DTST_NAME=nohardware -DTST_OPEN=MCA_ERR_NOT_AVAILABLE
check_LTLIBRARIES += unit/opal/mca/mca_tst_needy.la
unit_opal_mca_mca_tst_needy_la_SOURCES = unit/opal/mca/tst_component.c
unit_opal_mca_mca_tst_needy_la_LDFLAGS = $(tst_component_ldflags)
unit_opal_mca_mca_tst_needy_la_CPPFLAGS = $(AM_CPPFLAGS) -DTST_NAME=needy -DTST_NEEDS
unit_opal_mca_mca_tst_needy_la_LIBADD = unit/opal/mca/libtstgone.la

check_PROGRAMS += unit/opal/mca/component_test
unit_opal_mca_component_test_SOURCES = unit/opal/mca/component_test.c unit/opal/mca/scene.h
unit_opal_mca_component_test_LDADD = $(opal_lib)

check_PROGRAMS += unit/opal/datatype/layout_limits
unit_opal_datatype_layout_limits_SOURCES = unit/opal/datatype/layout_limits.c
unit_opal_datatype_layout_limits_LDADD = $(opal_lib) -lpthread

# What configure refuses; the layers as files and as libraries.
opal_unit_scripts = unit/opal/configure.sh unit/opal/layers.sh unit/opal/symbols.sh
check_SCRIPTS += $(opal_unit_scripts)
EXTRA_DIST += $(opal_unit_scripts)
check_PROGRAMS += unit/opal/util/sha256_test unit/opal/util/net_if_test
unit_opal_util_sha256_test_SOURCES = unit/opal/util/sha256_test.c
unit_opal_util_sha256_test_LDADD = $(opal_lib)
unit_opal_util_net_if_test_SOURCES = unit/opal/util/net_if_test.c
unit_opal_util_net_if_test_LDADD = $(opal_lib)

check_PROGRAMS += unit/opal/mca/shmem_test
unit_opal_mca_shmem_test_SOURCES = unit/opal/mca/shmem_test.c
unit_opal_mca_shmem_test_LDADD = $(opal_lib)

check_PROGRAMS += unit/opal/runtime/door_test
unit_opal_runtime_door_test_SOURCES = unit/opal/runtime/door_test.c
unit_opal_runtime_door_test_LDADD = $(ompi_lib) $(opal_lib) -lpthread

check_PROGRAMS += unit/opal/runtime/progress_test
unit_opal_runtime_progress_test_SOURCES = unit/opal/runtime/progress_test.c
unit_opal_runtime_progress_test_LDADD = $(opal_lib) -lpthread

check_PROGRAMS += unit/opal/runtime/lanes_test
unit_opal_runtime_lanes_test_SOURCES = unit/opal/runtime/lanes_test.c
unit_opal_runtime_lanes_test_LDADD = $(opal_lib) -lpthread
