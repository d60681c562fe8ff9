# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause

check_PROGRAMS += unit/opal/datatype/layout_property
unit_opal_datatype_layout_property_SOURCES = unit/opal/datatype/layout_property.c
unit_opal_datatype_layout_property_LDADD = $(opal_lib)

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

check_PROGRAMS += unit/opal/util/nearest_test
unit_opal_util_nearest_test_SOURCES = unit/opal/util/nearest_test.c
unit_opal_util_nearest_test_LDADD = $(opal_lib)

check_PROGRAMS += unit/opal/util/output_test
unit_opal_util_output_test_SOURCES = unit/opal/util/output_test.c
unit_opal_util_output_test_LDADD = $(opal_lib)

check_PROGRAMS += unit/opal/mca/var_test
unit_opal_mca_var_test_SOURCES = unit/opal/mca/var_test.c unit/opal/mca/scene.h
unit_opal_mca_var_test_LDADD = $(opal_lib)
