# Copyright (c) 2026 The Hawser developers. SPDX-License-Identifier: BSD-3-Clause
"""Which shell goes into which file. The first pattern that matches a routine's name decides."""

import re

GROUPS = (
    ("t_event", r"T_(event|source)_"),
    ("t_category", r"T_(category|enum)_"),
    ("t_cvar", r"T_(cvar|init|finalize)"),
    ("t_pvar", r"T_pvar_"),
    ("toint", r"\w+_(to|from)int$"),
    ("abi", r"(Abi_|Get_(version|library_version|processor_name|hw_resource_info)|Wt|Aint_|"
            r"Get_address|Pcontrol|Alloc_mem|Free_mem)"),
    ("init", r"(Init|Initialized|Finalize|Finalized|Query_thread|Is_thread_main|Abort)"
             r"(_thread)?$"),
    ("session", r"Session_"),
    ("errhandler", r"(\w+_errhandler|Errhandler_\w+)$"),
    ("errcode", r"(Error_|Add_error|Remove_error)"),
    ("info", r"Info_"),
    ("attr", r"(\w+_attr|\w+_keyval|Attr_\w+|Keyval_\w+)$"),
    ("name", r"\w+_[gs]et_name$"),
    ("file_read", r"File_i?read"),
    ("file_write", r"File_i?write"),
    ("file", r"(File_|Register_datarep)"),
    ("win_sync", r"Win_(fence|flush|lock|unlock|post|start|complete|wait|test|sync)"),
    ("win", r"Win_"),
    ("rma", r"(R?(put|get|accumulate|get_accumulate)$|Fetch_and_op|Compare_and_swap)"),
    ("neighbor_init", r"Neighbor_\w+_init$"),
    ("neighbor", r"Neighbor_"),
    ("ineighbor", r"Ineighbor_"),
    ("coll_init", r"(Barrier|Bcast|Gatherv?|Scatterv?|Allgatherv?|Alltoall[vw]?|Reduce\w*|"
                  r"Allreduce|Scan|Exscan)_init$"),
    ("gather", r"(Gatherv?|Scatterv?|Allgatherv?)$"),
    ("alltoall", r"(Alltoall[vw]?|Barrier|Bcast)$"),
    ("reduce", r"(Reduce\w*|Allreduce|Scan|Exscan)$"),
    ("igather", r"I(gatherv?|scatterv?|allgatherv?)$"),
    ("ialltoall", r"I(alltoall[vw]?|barrier|bcast)$"),
    ("ireduce", r"I(reduce\w*|allreduce|scan|exscan)$"),
    ("op", r"Op_"),
    ("buffer", r"(Buffer_|Comm_(attach|detach|flush|iflush)_buffer)"),
    ("status", r"(Status_|Get_count|Get_elements|Test_cancelled)"),
    ("request", r"(Wait|Test|Request_|Cancel|Start|Grequest_)"),
    ("partitioned", r"(P(ready|arrived|send_init|recv_init))"),
    ("send_init", r"\w+_init$"),
    ("sendrecv", r"I?sendrecv"),
    ("send", r"[BSR]?send$"),
    ("isend", r"I[bsr]?send$"),
    ("recv", r"I?m?(recv|probe)$"),
    ("pack", r"(Pack|Unpack)"),
    ("type_make", r"Type_(contiguous|vector|indexed|create_|dup|commit|free|match|get_value)"),
    ("type", r"Type_"),
    ("cart", r"(Cart|Dims_create|Topo_test)"),
    ("graph", r"(Graph|Dist_graph)"),
    ("dynamic", r"(Comm_(spawn|accept|connect|disconnect|join|get_parent)|\w+_port$|\w+_name$)"),
    ("group", r"Group_"),
    ("comm_make", r"(Comm_(dup|idup|create|split)|Intercomm_)"),
    ("comm", r"Comm_"),
)


def group_of(name):
    plain = name.removeprefix("MPI_")
    for group, pattern in GROUPS:
        if re.match(pattern, plain, re.IGNORECASE):
            return group
    raise ValueError(f"groups.py: no file for {name}")
