# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
libmpi_abi_la_SOURCES += mca/pml/pml.h mca/coll/coll.h mca/topo/topo.h
libmpi_abi_la_SOURCES += mca/coll/base/coll_base.c mpi/coll/coll.c \
    mpi/coll/nonblocking.c mpi/coll/persistent.c mpi/coll/neighbor.c \
    mca/topo/base/topo_base.h mca/topo/base/topo_base.c mca/topo/base/topo_base_cart.c \
    mca/topo/base/topo_base_graph.c mca/topo/base/topo_base_dist_graph.c \
    mca/topo/base/topo_base_place.c mca/topo/base/topo_base_dims.c \
    mca/btl/base/btl_base_attention.h mca/btl/base/btl_base.h mca/btl/base/btl_base_keep.h mca/btl/base/btl_base_load.h mca/btl/base/btl_base_messages_only.h mca/btl/base/btl_base_params.h mca/btl/base/btl_base_place.h mca/btl/base/btl_base_private.h mca/btl/base/btl_base_open.c \
    mca/btl/base/btl_base_card.c \
    mca/pml/base/pml_base_hdr.h mca/pml/base/pml_base_match.h mca/pml/base/pml_base_match.c \
    mca/pml/base/pml_base_bind.h mca/pml/base/pml_base_bind.c \
    mca/pml/base/pml_base_peer.h mca/pml/base/pml_base_peer.c mca/pml/base/pml_base_links.c mca/pml/base/pml_base_params.c mca/pml/base/pml_base_id.c \
    mca/pml/base/pml_base_lane.h mca/pml/base/pml_base_lane.c \
    mca/pml/base/pml_base_pace.h mca/pml/base/pml_base_pace.c \
    mca/pml/base/pml_base_past.h mca/pml/base/pml_base_past.c \
    mca/pml/base/pml_base_ranges.h mca/pml/base/pml_base_ranges.c mca/pml/base/pml_base_request.h \
    mca/pml/base/pml_base_policy_plain.h mca/pml/base/pml_base_sched.h mca/pml/base/pml_base_sched.c \
    mca/pml/base/pml_base_report.h mca/pml/base/pml_base_report.c mca/pml/base/pml_base_trace.c \
    mca/pml/base/pml_base_cache.h mca/pml/base/pml_base_cache.c mca/pml/base/pml_base_util.h mca/pml/base/pml_base_util.c \
    mca/pml/base/pml_base_bsend.h mca/pml/base/pml_base_bsend.c \
    mca/pml/base/pml_base_open.c mca/pml/base/pml_base_pvars.c mca/pml/base/pml_base_events.h mca/pml/base/pml_base_events.c \
    mca/pml/base/pml_base_engine.h mca/pml/base/pml_base_engine_send.h mca/pml/base/pml_base_engine_eager.h \
    mca/pml/base/pml_base_engine_first.h mca/pml/base/pml_base_engine_freed.h \
    mca/pml/base/pml_base_engine_pieces.h mca/pml/base/pml_base_engine_flush.h \
    mca/pml/base/pml_base_engine_silent.h mca/pml/base/pml_base_engine_answers.h mca/pml/base/pml_base_engine_isend.h \
    mca/pml/base/pml_base_engine_recv.h mca/pml/base/pml_base_engine_meet.h mca/pml/base/pml_base_engine_order.h \
    mca/pml/base/pml_base_engine_place.h mca/pml/base/pml_base_engine_unasked.h mca/pml/base/pml_base_engine_arrive.h mca/pml/base/pml_base_engine_irecv.h \
    mca/pml/base/pml_base_engine_self.h mca/pml/base/pml_base_engine_cancel.h \
    mca/pml/base/pml_base_engine_fetch.h mca/pml/base/pml_base_engine_lend.h \
    mca/pml/base/pml_base_engine_probe.h mca/pml/base/pml_base_engine_life.h mca/pml/base/pml_base_engine_loss.h mca/pml/base/pml_base_engine_lane.h
