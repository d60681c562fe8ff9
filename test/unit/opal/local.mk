# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause

check_PROGRAMS += unit/opal/datatype/layout_property
unit_opal_datatype_layout_property_SOURCES = unit/opal/datatype/layout_property.c
unit_opal_datatype_layout_property_LDADD = $(opal_lib)
