# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
# Programs that start themselves under mpirun (support/mpi_test.h).
check_PROGRAMS += mpi/comm mpi/intercomm mpi/attributes mpi/errors mpi/init mpi/session
check_PROGRAMS += mpi/topo
mpi_topo_LDADD = $(ompi_lib)
check_PROGRAMS += mpi/partitioned
mpi_partitioned_LDADD = $(ompi_lib) -lpthread
mpi_comm_LDADD = $(ompi_lib) -lpthread
check_PROGRAMS += mpi/port mpi/spawn
mpi_spawn_LDADD = $(ompi_lib)
mpi_port_LDADD = $(ompi_lib) -lpthread
mpi_intercomm_LDADD = $(ompi_lib)
mpi_attributes_LDADD = $(ompi_lib)
mpi_errors_LDADD = $(ompi_lib)
mpi_session_LDADD = $(ompi_lib)
mpi_init_LDADD = $(ompi_lib) -lpthread

check_PROGRAMS += mpi/datatype
mpi_datatype_SOURCES = mpi/datatype.c
mpi_datatype_LDADD = $(ompi_lib)

check_PROGRAMS += mpi/tools mpi/events
mpi_tools_SOURCES = mpi/tools.c
mpi_tools_LDADD = $(ompi_lib)
mpi_events_SOURCES = mpi/events.c
mpi_events_LDADD = $(ompi_lib)

# Messages, over every point-to-point layer and set of links.
check_PROGRAMS += mpi/p2p
mpi_p2p_LDADD = $(ompi_lib) -lpthread
# Cases drawn from a product, over every layer and set of links.
EXTRA_PROGRAMS += mpi/grid
mpi_grid_SOURCES = mpi/grid.c
mpi_grid_LDADD = $(ompi_lib)
check_SCRIPTS += mpi/grid.sh
mpi/grid.log: mpi/grid$(EXEEXT) mpi/huge$(EXEEXT)
EXTRA_DIST += mpi/grid.sh
check_PROGRAMS += mpi/to_self
mpi_to_self_LDADD = $(ompi_lib)
check_PROGRAMS += mpi/windows
mpi_windows_LDADD = $(ompi_lib)
check_PROGRAMS += mpi/threads mpi/lanes
mpi_threads_LDADD = $(ompi_lib) -lpthread
mpi_lanes_LDADD = $(ompi_lib) -lpthread
check_SCRIPTS += mpi/matrix.sh mpi/matrix_threads.sh mpi/udp_loss.sh mpi/uct.sh
EXTRA_DIST += mpi/mix.h mpi/matrix.sh mpi/matrix_threads.sh mpi/udp_loss.sh mpi/uct.sh support/combinations.sh
check_PROGRAMS += mpi/coll
mpi_coll_SOURCES = mpi/coll.c
mpi_coll_LDADD = $(ompi_lib) -lpthread
# Collectives through shared memory; the ways in which processes meet there in matrix.sh.
check_PROGRAMS += mpi/coll_shm
mpi_coll_shm_LDADD = $(ompi_lib) -lpthread
# More than 2 GiB in a message.
check_PROGRAMS += mpi/huge
mpi_huge_SOURCES = mpi/huge.c
mpi_huge_LDADD = $(ompi_lib)
check_PROGRAMS += mpi/coll_requests mpi/nbc mpi/neighbor
mpi_coll_requests_SOURCES = mpi/coll_requests.c
mpi_coll_requests_LDADD = $(ompi_lib) -lpthread
mpi_nbc_SOURCES = mpi/nbc.c
mpi_nbc_LDADD = $(ompi_lib) -lpthread
mpi_neighbor_SOURCES = mpi/neighbor.c
mpi_neighbor_LDADD = $(ompi_lib)

# Links chosen for a communicator; the default layer here, others in matrix.sh.
check_PROGRAMS += mpi/bind
mpi_bind_LDADD = $(ompi_lib)

# Processes of unlike architectures; the default links here, others in matrix.sh.
check_PROGRAMS += mpi/foreign
mpi_foreign_LDADD = $(ompi_lib)
mpi_foreign_LDFLAGS = -export-dynamic

# A process is killed; the default links here, others in matrix.sh.
check_PROGRAMS += mpi/lost
mpi_lost_LDADD = $(ompi_lib)

# A random mix of messages over links that fail and come back (btl/strand.c, built as outside the tree).
EXTRA_PROGRAMS += mpi/strands
mpi_strands_SOURCES = mpi/strands.c
mpi_strands_LDADD = $(ompi_lib)
check_SCRIPTS += mpi/strands.sh
mpi/strands.log: mpi/strands$(EXEEXT)
EXTRA_DIST += mpi/strands.sh btl/strand.c

# Links that do wrong (btl/chaos).
EXTRA_PROGRAMS += mpi/rehearsal
mpi_rehearsal_LDADD = $(ompi_lib)
check_SCRIPTS += mpi/rehearsal.sh
mpi/rehearsal.log: mpi/rehearsal$(EXEEXT) mpi/p2p$(EXEEXT)
EXTRA_DIST += mpi/rehearsal.sh
# What tools read of each link to each process.
EXTRA_PROGRAMS += mpi/shortage
mpi_shortage_LDADD = $(ompi_lib)
check_SCRIPTS += mpi/shortage.sh
mpi/shortage.log: mpi/shortage$(EXEEXT)
EXTRA_DIST += mpi/shortage.sh
EXTRA_PROGRAMS += mpi/paths
mpi_paths_LDADD = $(ompi_lib)
check_SCRIPTS += mpi/paths.sh
mpi/paths.log: mpi/paths$(EXEEXT)
EXTRA_DIST += mpi/paths.sh

# One process gives another one up, and the link comes back.
EXTRA_PROGRAMS += mpi/given_up
mpi_given_up_LDADD = $(ompi_lib)
check_SCRIPTS += mpi/given_up.sh
mpi/given_up.log: mpi/given_up$(EXEEXT)
EXTRA_DIST += mpi/given_up.sh

# Processes that compute while connections are made.
EXTRA_PROGRAMS += mpi/away
mpi_away_LDADD = $(ompi_lib)
check_SCRIPTS += mpi/away.sh
mpi/away.log: mpi/away$(EXEEXT)
EXTRA_DIST += mpi/away.sh

# Senders that do not keep to a receiver's window.
EXTRA_PROGRAMS += mpi/flood
mpi_flood_LDADD = $(ompi_lib)
check_SCRIPTS += mpi/flood.sh
mpi/flood.log: mpi/flood$(EXEEXT)
EXTRA_DIST += mpi/flood.sh

# How long messages are cut.
EXTRA_PROGRAMS += mpi/pieces
mpi_pieces_LDADD = $(ompi_lib)
check_SCRIPTS += mpi/pieces.sh
mpi/pieces.log: mpi/pieces$(EXEEXT)
EXTRA_DIST += mpi/pieces.sh

# pml/dr and processes that do not answer.
EXTRA_PROGRAMS += mpi/dr mpi/lent
mpi_dr_SOURCES = mpi/dr.c
mpi_dr_LDADD = $(ompi_lib)
mpi_lent_LDADD = $(ompi_lib)
check_SCRIPTS += mpi/dr.sh
mpi/dr.log: mpi/dr$(EXEEXT) mpi/lent$(EXEEXT)
EXTRA_DIST += mpi/dr.sh
# Messages that go in pieces before they are asked for.
EXTRA_PROGRAMS += mpi/unasked
mpi_unasked_LDADD = $(ompi_lib)
check_SCRIPTS += mpi/unasked.sh
mpi/unasked.log: mpi/unasked$(EXEEXT)
EXTRA_DIST += mpi/unasked.sh
# Some of them under valgrind.
check_SCRIPTS += mpi/memcheck.sh
mpi/memcheck.log: mpi/p2p$(EXEEXT) mpi/unasked$(EXEEXT)
EXTRA_DIST += mpi/memcheck.sh
# All of them over pml/dr.
check_SCRIPTS += mpi/dr_suite.sh
EXTRA_DIST += mpi/dr_suite.sh
