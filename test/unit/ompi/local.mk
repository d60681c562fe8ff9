# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause

check_PROGRAMS += unit/ompi/abi/handles unit/ompi/abi/errcode unit/ompi/abi/arguments
unit_ompi_abi_handles_LDADD = $(ompi_lib) -lpthread
unit_ompi_abi_errcode_LDADD = $(ompi_lib)
unit_ompi_abi_arguments_LDADD = $(ompi_lib)
ompi_unit_scripts = unit/ompi/abi/oracle.sh unit/ompi/abi/link.sh unit/ompi/abi/classes.py unit/ompi/abi/compile.sh unit/ompi/abi/exchange.sh unit/ompi/abi/man.sh \
    unit/ompi/wrappers/options.sh unit/ompi/wrappers/findmpi.sh
check_SCRIPTS += $(ompi_unit_scripts)
EXTRA_DIST += $(ompi_unit_scripts) unit/ompi/abi/exchange.c support/tap.sh support/mpich.sh support/wheel.sh
# Types and operators, through the MPI interface, in a world of one.
check_PROGRAMS += unit/ompi/datatype/constructors unit/ompi/datatype/predefined unit/ompi/op/op_types
unit_ompi_datatype_constructors_SOURCES = unit/ompi/datatype/constructors.c
unit_ompi_datatype_constructors_LDADD = $(ompi_lib)
unit_ompi_datatype_predefined_SOURCES = unit/ompi/datatype/predefined.c
unit_ompi_datatype_predefined_LDADD = $(ompi_lib)
unit_ompi_op_op_types_SOURCES = unit/ompi/op/op_types.c
unit_ompi_op_op_types_LDADD = $(ompi_lib)

# The tools interface and ompi_info.
check_PROGRAMS += unit/ompi/tool/mpit_test
unit_ompi_tool_mpit_test_SOURCES = unit/ompi/tool/mpit_test.c
unit_ompi_tool_mpit_test_LDADD = $(ompi_lib) $(opal_lib)
check_SCRIPTS += unit/ompi/tools/ompi_info.sh unit/ompi/tools/conform.sh
EXTRA_DIST += unit/ompi/tools/ompi_info.sh unit/ompi/tools/conform.sh
# btl/tcp: its formats, strangers at its door, data between processes, broken connections.
btl_tcp_core = $(top_builddir)/ompi/mca/btl/tcp/libbtl_tcp_core.la $(opal_lib) -lpthread
btl_tcp_world = unit/ompi/btl_tcp/world.c unit/ompi/btl_tcp/world.h
check_PROGRAMS += unit/ompi/btl_tcp/wire_test unit/ompi/btl_tcp/greeting_test unit/ompi/btl_tcp/data_test \
    unit/ompi/btl_tcp/fault_test unit/ompi/btl_tcp/netns_test
unit_ompi_btl_tcp_wire_test_SOURCES = unit/ompi/btl_tcp/wire_test.c
unit_ompi_btl_tcp_wire_test_LDADD = $(btl_tcp_core)
unit_ompi_btl_tcp_greeting_test_SOURCES = unit/ompi/btl_tcp/greeting_test.c $(btl_tcp_world)
unit_ompi_btl_tcp_greeting_test_LDADD = $(btl_tcp_core)
unit_ompi_btl_tcp_data_test_SOURCES = unit/ompi/btl_tcp/data_test.c $(btl_tcp_world)
unit_ompi_btl_tcp_data_test_LDADD = $(btl_tcp_core)
unit_ompi_btl_tcp_fault_test_SOURCES = unit/ompi/btl_tcp/fault_test.c $(btl_tcp_world)
unit_ompi_btl_tcp_fault_test_LDADD = $(btl_tcp_core)

# btl/shm: the choice among ways through chunks, chunks kept for answers, memory of kept arrivals, long fragments in parts, rings and looks at them.
btl_shm_core = $(top_builddir)/ompi/mca/btl/shm/libbtl_shm_core.la $(opal_lib) -lpthread
check_PROGRAMS += unit/ompi/btl_shm/ways_test unit/ompi/btl_shm/buffers_test unit/ompi/btl_shm/warm_test \
    unit/ompi/btl_shm/even_test unit/ompi/btl_shm/trust_test unit/ompi/btl_shm/whole_test unit/ompi/btl_shm/poll_test unit/ompi/btl_shm/ring_test
unit_ompi_btl_shm_whole_test_LDADD = $(opal_lib)
unit_ompi_btl_shm_even_test_LDADD = $(opal_lib)
unit_ompi_btl_shm_ways_test_LDADD = $(btl_shm_core)
unit_ompi_btl_shm_buffers_test_LDADD = $(btl_shm_core)
unit_ompi_btl_shm_warm_test_LDADD = $(btl_shm_core)
unit_ompi_btl_shm_poll_test_LDADD = $(btl_shm_core)
unit_ompi_btl_shm_ring_test_LDADD = $(btl_shm_core)

check_PROGRAMS += unit/ompi/topo/place
unit_ompi_topo_place_LDADD = $(ompi_lib)
check_PROGRAMS += unit/ompi/communicator/dims
unit_ompi_communicator_dims_SOURCES = unit/ompi/communicator/dims.c
unit_ompi_communicator_dims_LDADD = $(ompi_lib)
check_PROGRAMS += unit/ompi/communicator/idup_shortage
unit_ompi_communicator_idup_shortage_LDADD = $(ompi_lib)
# Groups and info objects, in a world of one.
check_PROGRAMS += unit/ompi/group/group_algebra unit/ompi/info/info_test
unit_ompi_group_group_algebra_LDADD = $(ompi_lib)
unit_ompi_info_info_test_LDADD = $(ompi_lib)
unit_ompi_btl_tcp_netns_test_SOURCES = unit/ompi/btl_tcp/netns_test.c $(btl_tcp_world)
unit_ompi_btl_tcp_netns_test_LDADD = $(btl_tcp_core)

# The messaging engine's parts: matching, and everything that reads what others sent.
check_PROGRAMS += unit/ompi/pml/match_test unit/ompi/pml/sched_test unit/ompi/pml/wire_test unit/ompi/pml/pace_test unit/ompi/pml/past_test unit/ompi/pml/cancel_test \
    unit/ompi/pml/under_way_test unit/ompi/pml/bsend_test
unit_ompi_pml_cancel_test_LDADD = $(ompi_lib) $(opal_lib)
unit_ompi_pml_bsend_test_LDADD = $(ompi_lib) $(opal_lib)
unit_ompi_pml_under_way_test_LDADD = $(ompi_lib) $(opal_lib) -lpthread
unit_ompi_pml_pace_test_LDADD = $(ompi_lib) $(opal_lib)
unit_ompi_pml_past_test_LDADD = $(ompi_lib) $(opal_lib)
unit_ompi_pml_sched_test_LDADD = $(ompi_lib) $(opal_lib)
unit_ompi_pml_match_test_LDADD = $(ompi_lib) $(opal_lib)
unit_ompi_pml_wire_test_LDADD = $(ompi_lib) $(opal_lib)

# pml/dr: the simulation, its wire format and timer wheel.
pml_dr_core = $(top_builddir)/ompi/mca/pml/dr/libpml_dr_core.la $(ompi_lib) $(opal_lib)
check_PROGRAMS += unit/ompi/pml/dr_sim unit/ompi/pml/dr_parts_test
unit_ompi_pml_dr_sim_LDADD = $(pml_dr_core)
unit_ompi_pml_dr_parts_test_LDADD = $(pml_dr_core)

# btl/udp: its formats; strangers, replays and odd fragments at its sockets.
btl_udp_core = $(top_builddir)/ompi/mca/btl/udp/libbtl_udp_core.la $(opal_lib) -lpthread
check_PROGRAMS += unit/ompi/btl_udp/wire_test unit/ompi/btl_udp/stranger_test
unit_ompi_btl_udp_wire_test_SOURCES = unit/ompi/btl_udp/wire_test.c
unit_ompi_btl_udp_wire_test_LDADD = $(btl_udp_core)
unit_ompi_btl_udp_stranger_test_SOURCES = unit/ompi/btl_udp/stranger_test.c
unit_ompi_btl_udp_stranger_test_LDADD = $(btl_udp_core)
# btl/uct: what it tells others.
if HAWSER_BUILD_btl_uct
check_PROGRAMS += unit/ompi/btl_uct/wire_test
unit_ompi_btl_uct_wire_test_SOURCES = unit/ompi/btl_uct/wire_test.c
unit_ompi_btl_uct_wire_test_CPPFLAGS = $(AM_CPPFLAGS) $(UCX_CFLAGS)
unit_ompi_btl_uct_wire_test_LDADD = $(top_builddir)/ompi/mca/btl/uct/libbtl_uct_core.la $(opal_lib) -lpthread
endif
# What the BTLs over libibverbs share.
if HAWSER_IBVERBS
common_verbs_core = $(top_builddir)/ompi/mca/common/verbs/libcommon_verbs.la $(opal_lib) -lpthread -ldl
check_PROGRAMS += unit/ompi/common_verbs/cache_test unit/ompi/common_verbs/port_test
unit_ompi_common_verbs_cache_test_SOURCES = unit/ompi/common_verbs/cache_test.c
unit_ompi_common_verbs_cache_test_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
unit_ompi_common_verbs_cache_test_LDADD = $(common_verbs_core)
unit_ompi_common_verbs_port_test_SOURCES = unit/ompi/common_verbs/port_test.c
unit_ompi_common_verbs_port_test_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
unit_ompi_common_verbs_port_test_LDADD = $(common_verbs_core)
endif
# btl/ud: what it puts on the wire; who sends to it.
if HAWSER_BUILD_btl_ud
btl_ud_core = $(top_builddir)/ompi/mca/btl/ud/libbtl_ud_core.la $(common_verbs_core)
check_PROGRAMS += unit/ompi/btl_ud/wire_test unit/ompi/btl_ud/stranger_test
unit_ompi_btl_ud_wire_test_SOURCES = unit/ompi/btl_ud/wire_test.c
unit_ompi_btl_ud_wire_test_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
unit_ompi_btl_ud_wire_test_LDADD = $(btl_ud_core)
unit_ompi_btl_ud_stranger_test_SOURCES = unit/ompi/btl_ud/stranger_test.c
unit_ompi_btl_ud_stranger_test_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
unit_ompi_btl_ud_stranger_test_LDADD = $(btl_ud_core)
endif
# btl/openib: what it puts on the wire; an adapter that is a program.
if HAWSER_BUILD_btl_openib
btl_openib_core = $(top_builddir)/ompi/mca/btl/openib/libbtl_openib_core.la $(common_verbs_core)
check_PROGRAMS += unit/ompi/btl_openib/wire_test unit/ompi/btl_openib/peer_test
unit_ompi_btl_openib_wire_test_SOURCES = unit/ompi/btl_openib/wire_test.c
unit_ompi_btl_openib_wire_test_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
unit_ompi_btl_openib_wire_test_LDADD = $(btl_openib_core)
unit_ompi_btl_openib_peer_test_SOURCES = unit/ompi/btl_openib/peer_test.c
unit_ompi_btl_openib_peer_test_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
unit_ompi_btl_openib_peer_test_LDADD = $(btl_openib_core)
endif
# btl/chaos over a link that notes what it is given.
check_PROGRAMS += unit/ompi/btl_chaos/chaos_test
unit_ompi_btl_chaos_chaos_test_LDADD = $(opal_lib) -ldl
