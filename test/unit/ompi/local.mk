# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause

check_PROGRAMS += unit/ompi/abi/handles unit/ompi/abi/errcode unit/ompi/abi/arguments
unit_ompi_abi_handles_LDADD = $(ompi_lib) -lpthread
unit_ompi_abi_errcode_LDADD = $(ompi_lib)
unit_ompi_abi_arguments_LDADD = $(ompi_lib)
ompi_unit_scripts = unit/ompi/abi/oracle.sh unit/ompi/abi/compile.sh \
    unit/ompi/wrappers/options.sh unit/ompi/wrappers/findmpi.sh
check_SCRIPTS += $(ompi_unit_scripts)
EXTRA_DIST += $(ompi_unit_scripts) support/tap.sh support/mpich.sh
